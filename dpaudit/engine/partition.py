"""Cutting the real line, or a table of exact values, into cells that can be counted fast.

A cell is ``[cut, next cut)``; an exact value ``a`` is the cell ``[a, nextafter(a))``, so one sorted search per cut counts
everything. Minus infinity, plus infinity and NaN have cells of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

LOWEST = -np.finfo(np.float64).max
MOST_ATOMS = 256
FEWEST_PER_TAIL_CELL = 8
FEWEST_PER_CELL = 8
BINS = 4096
FIRST_BIN = 2.0**52
WIDTHS = (2.0**-900, 2.0**900)  # of bins: beyond them sums overflow, or lose their last bits
BEYOND = 0.15  # of the range of what was learned from, on either side: a later block seldom reaches further
AT_ONCE = 32_768
KEPT_CUTS = 0.9  # share of the cuts that a raster must keep apart
WORTH_A_RASTER = 30_000  # values learned from; before that sorting costs little


@dataclass(frozen=True, slots=True)
class Ascending:
    """A sorted sample (NaNs last, as numpy sorts them). Values that were counted are told once, with how many lie up to them."""

    values: NDArray[Any]
    upto: Counts | None = None  # None: every value stands for one output

    @classmethod
    def counted(cls, values: NDArray[Any], counts: Counts) -> Ascending:
        """From values in any order and how often they occur."""
        order = np.argsort(values)
        return cls(values[order], np.cumsum(counts[order]))

    @property
    def size(self) -> int:
        """How many outputs there are."""
        return int(self.values.size if self.upto is None else self.upto[-1] if self.upto.size else 0)

    def below(self, cuts: NDArray[Any], side: Literal["left", "right"] = "left") -> Counts:
        """How many outputs lie below each cut; with side ``right``, how many do not lie above it."""
        place = np.searchsorted(self.values, cuts, side=side)
        return place if self.upto is None else np.concatenate(([0], self.upto))[place]

    def equal(self, keys: NDArray[Any]) -> Counts:
        """How many outputs equal each of some sorted keys."""
        if self.upto is None or self.values.shape != keys.shape or (self.values != keys).any():
            return self.below(keys, "right") - self.below(keys)
        counts = self.upto.copy()  # every value is a key: the usual case, block after block
        counts[1:] -= self.upto[:-1]
        return counts

    def repeated(self, limit: int) -> tuple[NDArray[Any], Counts]:
        """Values that occur more than once, and how often; the ``limit`` most frequent of them, sorted."""
        if self.upto is None:
            same = self.values[1:] == self.values[:-1]
            if not same.any():
                return self.values[:0], np.empty(0, np.int64)
            edge = np.diff(np.concatenate(([0], same.view(np.int8), [0])))
            starts = np.flatnonzero(edge == 1)
            values, lengths = self.values[starts], np.flatnonzero(edge == -1) - starts + 1
        else:
            lengths = np.diff(self.upto, prepend=0)
            values, lengths = self.values[lengths > 1], lengths[lengths > 1]
        return most_frequent(values, lengths, limit)


def most_frequent(values: NDArray[Any], lengths: Counts, limit: int) -> tuple[NDArray[Any], Counts]:
    """The ``limit`` most frequent of some sorted values, sorted."""
    if values.size > limit:
        chosen = np.sort(np.argpartition(lengths, -limit)[-limit:])
        values, lengths = values[chosen], lengths[chosen]
    return values, lengths.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Raster:
    """Equal bins whose edges hold all inner cuts of a line, so that a histogram, without a sort, counts its cells.

    For a power of two w, floats between 2**52 w and 2**53 w are the multiples of w, and their bits count them. So ``x + shift``
    with a shift of about 2**52 w is the number of a bin of width w as it stands, rounded by the sum itself. Each operation,
    rounding and clipping to the bins 0 ... ``BINS`` included, is monotone in x, so "bin >= k" is the same as "x >= cut" for the
    smallest float in bin k, and that float is the cut.
    """

    width: float  # a power of two
    shift: float
    starts: NDArray[np.intp]  # the first bin of each cell: 0, and that of each inner cut

    def place(self, values: Floats) -> NDArray[np.int64]:
        """The bin of each finite value."""
        first = FIRST_BIN * self.width
        with np.errstate(over="ignore"):  # infinitely far is in the last bin
            place = np.clip(values + self.shift, first, first + BINS * self.width)
        return place.view(np.int64) - np.float64(first).view(np.int64)

    def count(self, values: Floats) -> Counts | None:
        """How many of the values lie below the first cut, between the cuts, and above; None where one is not finite."""
        histogram = np.zeros(BINS + 1, np.int64)
        buffer = np.empty(min(AT_ONCE, values.size))
        bits_of_first = np.float64(FIRST_BIN * self.width).view(np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            # Pieces that stay in the cache, those that were drawn last, and are there already, first.
            for start in reversed(range(0, values.size, AT_ONCE)):
                part = values[start : start + AT_ONCE]
                bins = np.add(part, self.shift, out=buffer[: part.size]).view(np.int64)
                bins -= bits_of_first
                # Any value out of range, NaN and infinities among them, leaves a bit that no bin has.
                if np.bitwise_or.reduce(bins) & ~(BINS - 1):
                    if not np.isfinite(part).all():
                        return None
                    bins = self.place(part)
                histogram += np.bincount(bins, minlength=BINS + 1)
        return np.add.reduceat(histogram, self.starts)

    @classmethod
    def under(cls, edges: Floats, low: float, high: float) -> tuple[Raster, Floats] | None:
        """A raster for (almost) these edges, and the edges moved to its bins; None where it would blur them."""
        with np.errstate(over="ignore", invalid="ignore"):
            margin = BEYOND * (np.float64(high) - low)
            low, high = float(low - margin), float(high + margin)
            least = (np.float64(high) - low) / BINS
        if not edges.size or not WIDTHS[0] <= least <= WIDTHS[1]:
            return None
        width = 2.0 ** math.ceil(math.log2(least))
        if not abs(low) < FIRST_BIN / 4.0 * width:  # floats as large are too far apart for such bins
            return None
        raster = cls(width, (FIRST_BIN - math.floor(low / width)) * width, np.empty(0, np.intp))
        bins = np.unique(raster.place(edges))
        bins = bins[(bins > 0) & (bins < BINS)]
        if bins.size < KEPT_CUTS * edges.size:
            return None
        # Sums are rounded to the nearest bin: half a bin below its centre is the first float in it, or the last before it.
        halfway: Floats = np.asarray((bins + (math.floor(low / width) - 0.5)) * width, dtype=np.float64)
        cuts = np.where(raster.place(halfway) >= bins, halfway, np.nextafter(halfway, np.inf))
        return cls(width, raster.shift, np.concatenate(([0], bins)).astype(np.intp)), cuts


@dataclass(frozen=True, slots=True)
class Line:
    """Cells of the real line: {-inf}, [LOWEST, cut), ..., {+inf}, {NaN}."""

    cuts: Floats
    raster: Raster | None = None

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self.cuts.size) + 2

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Which cells hold a single value."""
        with np.errstate(over="ignore"):
            single = np.nextafter(self.cuts[:-1], np.inf) == self.cuts[1:]
        return np.concatenate([[True], single, [True, True]])

    def count(self, ascending: Ascending) -> Counts:
        """Count a sorted sample."""
        below = np.zeros(self.cells + 1, np.int64)
        below[1:-2] = ascending.below(self.cuts)
        below[-2:] = ascending.size
        if np.isnan(ascending.values[-1:]).any():
            below[-2] = ascending.below(np.array([np.nan]))[0]
        return below[1:] - below[:-1]

    def tally(self, values: Floats) -> Counts:
        """Count values in any order."""
        inside = None if self.raster is None else self.raster.count(values)
        if inside is None:
            return self.count(Ascending(np.sort(values)))
        counts = np.zeros(self.cells, np.int64)
        counts[1:-2] = inside
        return counts

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
    return line_from_sorted(np.sort(pooled), resolution=resolution)


def line_from_sorted(ascending: Floats, *, resolution: int) -> Line:
    """The same from a sorted sample."""
    finite = ascending[np.searchsorted(ascending, -np.inf, side="right") : np.searchsorted(ascending, np.inf)]
    atoms, _ = Ascending(finite).repeated(MOST_ATOMS)
    rest = finite[~np.isin(finite, atoms)] if atoms.size else finite
    cells = min(resolution, rest.size // FEWEST_PER_CELL)
    levels = np.arange(1, cells) / cells if cells > 1 else np.empty(0)
    if cells > 1:
        depth = int(np.log2(max(rest.size / cells / FEWEST_PER_TAIL_CELL, 1.0)))
        tails = 0.5 ** np.arange(1, depth + 1) / cells
        levels = np.concatenate([levels, tails, 1.0 - tails])
    edges = quantiles(rest, levels)
    if not atoms.size and rest.size >= WORTH_A_RASTER:
        rastered = Raster.under(edges, float(rest[0]), float(rest[-1]))
        if rastered is not None:
            raster, edges = rastered
            return Line(np.concatenate([[LOWEST], edges, [np.inf]]), raster)
    with np.errstate(over="ignore"):  # beyond the largest float is infinity, which is a cut already
        cuts = np.concatenate([[LOWEST, np.inf], edges, atoms, np.nextafter(atoms, np.inf)])
    return Line(np.unique(cuts))


def quantiles(ascending: Floats, levels: Floats) -> Floats:
    """Quantiles of a sorted sample, by linear interpolation; numpy's own would sort it again."""
    if not levels.size:
        return np.empty(0)
    place = levels * (ascending.size - 1)
    below = place.astype(np.intp)
    low, high = ascending[below], ascending[np.minimum(below + 1, ascending.size - 1)]
    share = place - below
    return np.asarray(low * (1.0 - share) + high * share)  # the difference of the two may overflow


@dataclass(frozen=True, slots=True)
class Table:
    """One cell for each known exact value (or key), and a last one for everything else."""

    keys: NDArray[Any]  # sorted, distinct

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self.keys.size) + 1

    def count(self, ascending: Ascending) -> Counts:
        """Count a sorted sample of values or keys."""
        counts = np.empty(self.cells, np.int64)
        counts[:-1] = ascending.equal(self.keys)
        counts[-1] = ascending.size - counts[:-1].sum()
        return counts

    def unknown(self, ascending: Ascending, limit: int) -> tuple[NDArray[Any], Counts]:
        """Repeated values that have no cell yet."""
        if self.keys.size and self.count(ascending)[-1] < 2:
            return ascending.values[:0], np.empty(0, np.int64)
        keys, lengths = ascending.repeated(limit + self.keys.size)
        new = ~np.isin(keys, self.keys)
        return most_frequent(keys[new], lengths[new], limit)
