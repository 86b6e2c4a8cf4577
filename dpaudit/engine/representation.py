"""The channel ``representation``: what the bits of a float say beyond its value.

Floating-point noise lives on a grid that depends on the answer it is added to (Mironov 2012): ``0.0 + noise`` keeps low
bits that ``1.0 + noise`` has rounded away. The exponent of the lowest set bit, together with a rough value, tells the two
apart although the real-valued laws are private.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.outputs import Encoded
from dpaudit.engine.partition import Ascending, Table
from dpaudit.engine.views import Block, RecordView

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Sides: TypeAlias = tuple[Encoded, Encoded]

VALUE_BINS = 8
MOST_COLUMNS = 16
NO_BIT = -1100  # zero, infinities and NaN have no lowest set bit

MEANING = (
    "The leak is in the bits of the floating-point numbers, not in their law over the reals: which low bits can occur "
    "depends on the answer that noise was added to (Mironov 2012). Release integers or a fixed dyadic grid (discrete "
    "Laplace or discrete Gaussian on multiples of 2^-k), or use a snapping mechanism."
)


def lowest_bit(values: Floats) -> NDArray[np.int64]:
    """Exponent of the lowest set bit of each float.

    >>> lowest_bit(np.array([1.0, 0.75, 6.0, 0.1, 0.0, np.inf])).tolist()
    [0, -2, 1, -55, -1100, -1100]
    """
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    field = (bits >> 52) & 0x7FF
    fraction = bits & 0xFFFFFFFFFFFFF
    mantissa = np.where(field > 0, fraction | (1 << 52), fraction)
    lowest = (mantissa & -mantissa).astype(np.float64)
    exponent = np.maximum(field, 1) - 1075 + np.frexp(lowest)[1] - 1
    return np.where((mantissa == 0) | (field == 0x7FF), NO_BIT, exponent).astype(np.int64)


@dataclass(frozen=True, slots=True)
class BitsView:
    """Lowest set bit and rough value of one coordinate, jointly."""

    column: int
    bits: Table  # the exponents that have cells
    cuts: Floats  # between the value bins
    name: str
    ordered: bool = False

    @property
    def cells(self) -> int:
        """A cell for every exponent (or none of the known) and value bin."""
        return self.bits.cells * (self.cuts.size + 1)

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """The cell of each output."""
        if self.column >= batch.values.shape[1]:
            return np.full(len(batch), self.cells - 1)
        values = batch.values[:, self.column]
        found = lowest_bit(values)
        place = np.searchsorted(self.bits.keys, found)
        place = np.where(np.isin(found, self.bits.keys), place, self.bits.keys.size)
        return np.asarray(place * (self.cuts.size + 1) + np.searchsorted(self.cuts, values, side="right"))

    def count(self, block: Block) -> Counts:
        """Count the cells."""
        return np.bincount(self.locate(block.batch), minlength=self.cells).astype(np.int64)

    def describe(self, cells: NDArray[np.bool_], labels: Mapping[int, str]) -> str:
        """By value bin: which lowest bits."""
        del labels
        name = "output" if self.name == "bits" else f"output[{self.column}]"
        grid = cells.reshape(self.bits.cells, self.cuts.size + 1)
        parts = []
        edges = [-np.inf, *self.cuts.tolist(), np.inf]
        for index in range(self.cuts.size + 1):
            chosen = grid[:, index]
            if not chosen.any():
                continue
            where = f"{edges[index]:.4g} <= {name} < {edges[index + 1]:.4g}"
            parts.append(where if chosen.all() else f"({where} and {self._bits(chosen)})")
        return " or ".join(parts)

    def _bits(self, chosen: NDArray[np.bool_]) -> str:
        known = self.bits.keys
        inside = [f"2^{bit}" if bit != NO_BIT else "none" for bit in known[chosen[:-1]]]
        below = chosen[:-1].any() and bool((known[chosen[:-1]] <= known[chosen[:-1]].max()).all())
        run = below and int(chosen[:-1].sum()) == int(np.flatnonzero(chosen[:-1]).max()) + 1
        if run and len(inside) > 1:
            return f"lowest set bit <= {inside[-1]}"
        shown = ", ".join(inside[:6]) + (", ..." if len(inside) > 6 else "")
        return f"lowest set bit in {{{shown}}}" if inside else "lowest set bit not seen while learning"


def build_bit_views(sides: Sides) -> list[tuple[BitsView | RecordView, Counts]]:
    """Joint views of lowest bit and value for the first coordinates, and exactly repeated single values."""
    width = max(batch.values.shape[1] for batch in sides)
    built: list[tuple[BitsView | RecordView, Counts]] = []
    for column in range(min(width, MOST_COLUMNS)):
        pooled = np.concatenate([batch.values[:, column] for batch in sides])
        finite = pooled[np.isfinite(pooled)]
        if not finite.size:
            continue
        levels = np.arange(1, VALUE_BINS) / VALUE_BINS
        cuts = np.unique(np.quantile(finite, levels))
        view = BitsView(column, Table(np.unique(lowest_bit(pooled))), cuts, "bits" if width == 1 else f"bits[{column}]")
        built.append((view, _count(view, sides)))
    if width == 1:
        keys, _ = Ascending(np.sort(np.concatenate([batch.values[:, 0] for batch in sides]))).repeated(1024)
        record = RecordView(Table(keys), {float(key): f"output == {float(key)!r}" for key in keys}, floats=True)
        built.append((record, _count(record, sides)))
    return built


def _count(view: BitsView | RecordView, sides: Sides) -> Counts:
    return np.stack([view.count(Block(batch)) for batch in sides])
