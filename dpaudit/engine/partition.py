"""Cutting the real line, or a table of exact values, into cells that can be counted fast.

A cell is ``[cut, next cut)``; an exact value ``a`` is the cell ``[a, nextafter(a))``, so one sorted search per cut counts
everything. Minus infinity, plus infinity and NaN have cells of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

LOWEST = -np.finfo(np.float64).max
MOST_ATOMS = 256
FEWEST_PER_TAIL_CELL = 8
FEWEST_PER_CELL = 8


@dataclass(frozen=True, slots=True)
class Line:
    """Cells of the real line: {-inf}, [LOWEST, cut), ..., {+inf}, {NaN}."""

    cuts: Floats

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self.cuts.size) + 2

    def count(self, ascending: Floats) -> Counts:
        """Count a sorted array (NaNs last, as numpy sorts them)."""
        size = ascending.size
        numbers = int(np.searchsorted(ascending, np.nan)) if size and np.isnan(ascending[-1]) else size
        positions = np.searchsorted(ascending[:numbers], self.cuts)
        return np.diff(np.concatenate(([0], positions, [numbers, size])))

    def describe(self, cells: NDArray[np.bool_], name: str = "output") -> list[str]:
        """The selected cells as conditions on ``name``, neighbouring cells joined."""
        parts: list[str] = []
        bounds = np.concatenate(([-np.inf], self.cuts))
        start: int | None = None
        for cell in range(self.cuts.size + 1):
            if cells[cell] and start is None:
                start = cell
            if start is not None and (cell == self.cuts.size or not cells[cell + 1]):
                low = bounds[start]
                high = bounds[cell + 1] if cell < self.cuts.size else np.inf
                parts.append(_interval(float(low), float(high), cell == self.cuts.size, name))
                start = None
        if cells[-1]:
            parts.append(f"{name} is NaN")
        return parts


def _interval(low: float, high: float, to_infinity: bool, name: str) -> str:
    """``low <= name < high``, said as simply as it can be; exact about infinities."""
    if low == -np.inf and to_infinity:
        return f"{name} is a number"
    if low == -np.inf:
        return f"{name} == -inf" if high == LOWEST else f"{name} < {high!r}"
    if low == np.inf:
        return f"{name} == inf"
    if low == LOWEST:
        return f"{name} > -inf" if to_infinity else f"-inf < {name} < {high!r}"
    if to_infinity:
        return f"{name} >= {low!r}"
    with np.errstate(over="ignore"):
        if np.nextafter(low, np.inf) == high:
            return f"{name} == {low!r}"
    return f"{low!r} <= {name} < {high!r}"


def line_from(pooled: Floats, *, resolution: int) -> Line:
    """Cells learned from a pooled sample: atoms for repeated values, quantile bins, and finer and finer tails."""
    finite = np.sort(pooled[np.isfinite(pooled)])
    atoms, _ = repeated(finite, MOST_ATOMS)
    rest = finite[~np.isin(finite, atoms)] if atoms.size else finite
    cells = min(resolution, rest.size // FEWEST_PER_CELL)
    levels = np.arange(1, cells) / cells if cells > 1 else np.empty(0)
    if cells > 1:
        depth = int(np.log2(max(rest.size / cells / FEWEST_PER_TAIL_CELL, 1.0)))
        tails = 0.5 ** np.arange(1, depth + 1) / cells
        levels = np.concatenate([levels, tails, 1.0 - tails])
    edges = np.quantile(rest, levels) if levels.size else np.empty(0)
    with np.errstate(over="ignore"):  # beyond the largest float is infinity, which is a cut already
        cuts = np.concatenate([[LOWEST, np.inf], edges, atoms, np.nextafter(atoms, np.inf)])
    return Line(np.unique(cuts))


def repeated(ascending: NDArray[Any], limit: int) -> tuple[NDArray[Any], Counts]:
    """Values that occur more than once in a sorted array, and how often; the ``limit`` most frequent of them, sorted."""
    same = ascending[1:] == ascending[:-1]
    if not same.any():
        return ascending[:0], np.empty(0, np.int64)
    edge = np.diff(np.concatenate(([0], same.view(np.int8), [0])))
    starts = np.flatnonzero(edge == 1)
    lengths = np.flatnonzero(edge == -1) - starts + 1
    if starts.size > limit:
        chosen = np.sort(np.argpartition(lengths, -limit)[-limit:])
        starts, lengths = starts[chosen], lengths[chosen]
    return ascending[starts], lengths.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Table:
    """One cell for each known exact value (or key), and a last one for everything else."""

    keys: NDArray[Any]  # sorted, distinct

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self.keys.size) + 1

    def count(self, ascending: NDArray[Any]) -> Counts:
        """Count a sorted array of values or keys."""
        low = np.searchsorted(ascending, self.keys, side="left")
        high = np.searchsorted(ascending, self.keys, side="right")
        inside = high - low
        return np.concatenate([inside, [ascending.size - inside.sum()]]).astype(np.int64)

    def unknown(self, ascending: NDArray[Any], limit: int) -> tuple[NDArray[Any], Counts]:
        """Repeated values that have no cell yet."""
        keys, lengths = repeated(ascending, limit + self.keys.size)
        if not keys.size:
            return keys, lengths
        new = ~np.isin(keys, self.keys)
        keys, lengths = keys[new], lengths[new]
        if keys.size > limit:
            chosen = np.sort(np.argpartition(lengths, -limit)[-limit:])
            keys, lengths = keys[chosen], lengths[chosen]
        return keys, lengths
