"""Views of the channel ``representation``: the low bits and decimals of floating-point numbers.

Floating-point noise lives on a grid that depends on the answer it is added to (Mironov 2012): ``0.0 + noise`` keeps low
bits that ``1.0 + noise`` has rounded away. The exponent of the lowest set bit, together with a rough value (which says how
large a unit in the last place is), distinguishes the two although the real-valued laws are private. Noise that was rounded to
decimals shows the decimals of the answer in the same way, and zeros have a sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.encoding.float_grid import lowest_bits
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.encoding.structure import placeholder
from dpaudit.engine.views.condition import AnyOf, Bits, Condition, Interval, Names, Number
from dpaudit.engine.views.partition import KeyTable
from dpaudit.engine.views.scores import Coordinate
from dpaudit.engine.views.view import BaseView, Block, Groups, Mask, RecordView
from dpaudit.mechanism import Raised

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Sides: TypeAlias = tuple[Encoded, Encoded]

VALUE_BINS = 8  # bins of the rough value
MOST_COLUMNS = 16  # coordinates that are audited

MEANING = (
    "The leak is in the bits of the floating-point numbers, not in their law over the reals: which low bits (or decimals, or "
    "signs of zero) can occur depends on the answer that noise was added to (Mironov 2012). Release integers or a fixed "
    "dyadic grid (discrete Laplace or discrete Gaussian on multiples of 2^-k), or use a snapping mechanism."
)

NO_FLOATS = (
    'The outputs hold no floating-point numbers, and channel="representation" is about the bits of those: there was nothing '
    'to look at. Audit channel="value" instead.'
)


def all_whole(batch: Encoded) -> bool:
    """Return whether no number of the outputs is known to be a float: all are integers or absent, without -0.0."""
    if any(placeholder("complex") in label for label in batch.labels.values()):
        return False
    values = batch.values[~np.isnan(batch.values)]
    return bool((np.isfinite(values) & (values == np.rint(values)) & ((values != 0.0) | ~np.signbit(values))).all())


def any_float(outputs: Iterable[Any]) -> bool:
    """Return whether the outputs may hold a float; an object of unknown type may.

    >>> any_float([3, None, "yes", (True, np.array([1, 2]))]), any_float([np.float32(2.0)]), any_float([{"mean": 2.0}])
    (False, True, True)
    """
    return any(map(_may_be_float, outputs))


def _may_be_float(output: Any) -> bool:
    match output:
        case None | int() | str() | bytes() | Raised():
            return False
        case np.ndarray() | np.generic():
            return output.dtype.kind not in "biumMUS"
        case list() | tuple() | set() | frozenset():
            return any_float(output)
        case dict():
            return any_float(output) or any_float(output.values())
    return True


@dataclass(frozen=True, slots=True)
class BitsView(BaseView):
    """Lowest set bit and rough value of one coordinate, jointly."""

    column: int
    bits: KeyTable  # the exponents that have cells
    cuts: Floats  # between the value bins
    name: str
    ordered: bool = False

    @property
    def cells(self) -> int:
        """A cell for every exponent (or none of the known) and value bin."""
        return self.bits.cells * (self.cuts.size + 1)

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each output."""
        # An absent number is NaN also in a narrow batch: the cell must not depend on the other outputs.
        values = batch.values[:, self.column] if self.column < batch.width else np.full(len(batch), np.nan)
        found = lowest_bits(values)
        place = np.searchsorted(self.bits.keys, found)
        place = np.where(np.isin(found, self.bits.keys), place, self.bits.keys.size)
        return np.asarray(place * (self.cuts.size + 1) + np.searchsorted(self.cuts, values, side="right"))

    def count(self, block: Block) -> Counts:
        """Count the cells."""
        return np.bincount(self.locate(block.batch), minlength=self.cells).astype(np.int64)

    def condition(self, cells: Mask, labels: Mapping[int, str]) -> AnyOf:
        """Return the lowest bits in each bin of the value."""
        del labels
        grid = cells.reshape(self.bits.cells, self.cuts.size + 1)
        lows, highs = [-np.inf, *self.cuts.tolist()], [*self.cuts.tolist(), None]
        parts: list[Condition] = []
        for place in np.flatnonzero(grid.any(axis=0)):
            chosen, high = grid[:, place], highs[place]
            # NaN, and a number that is absent, lie in the last bin.
            inside = Number(Coordinate(self.column), (Interval(lows[place], high),), high is None, self._number)
            # The last cell holds all grids that were not seen while learning.
            listed = None if chosen.all() else tuple(self.bits.keys[chosen[:-1] != chosen[-1]].tolist())
            others = listed is not None and bool(chosen[-1])
            parts.append(Bits(inside, listed, others, tuple(self.bits.keys.tolist())))
        return AnyOf(tuple(parts))

    @property
    def _number(self) -> str:
        return "output" if self.name == "bits" else f"output[{self.column}]"

    @property
    def groups(self) -> Groups:
        """Bins of the value, in their order."""
        return Groups(np.arange(self.cells) % (self.cuts.size + 1), ascending=True)

    def category(self, group: Mask, chosen: Mask, names: Names, labels: Mapping[int, str]) -> str:
        """Name the bin, and whether the bits are others than those of the event."""
        del names, labels
        place = int(np.flatnonzero(group)[0]) % (self.cuts.size + 1)
        low, high = np.concatenate(([-np.inf], self.cuts, [np.inf]))[place : place + 2]
        return f"{low:.2g} to {high:.2g}{'' if (group & chosen).any() else ': other bits'}"


def build_bit_views(sides: Sides) -> list[tuple[BitsView | RecordView, Counts]]:
    """Return joint views of lowest bit and value for the most different coordinates, and of repeated single values."""
    width = max(batch.width for batch in sides)
    built: list[tuple[BitsView | RecordView, Counts]] = []
    for column in range(width) if width <= MOST_COLUMNS else _most_different(sides, width):
        pooled = np.concatenate([batch.values[:, column] for batch in sides])
        finite = pooled[np.isfinite(pooled)]
        if not finite.size:
            continue
        levels = np.arange(1, VALUE_BINS) / VALUE_BINS
        cuts = np.unique(np.quantile(finite, levels))
        view = BitsView(
            column, KeyTable(np.unique(lowest_bits(pooled))), cuts, "bits" if width == 1 else f"bits[{column}]"
        )
        built.append((view, _count(view, sides)))
    if width == 1:
        keys, _ = SortedSample(np.sort(np.concatenate([batch.values[:, 0] for batch in sides]))).repeated(1024)
        record = RecordView(KeyTable(keys), {float(key): f"output == {float(key)!r}" for key in keys}, floats=True)
        built.append((record, _count(record, sides)))
    return built


def _most_different(sides: Sides, width: int) -> list[int]:
    """Return the columns whose lowest bits differ most between the sides (chi-squared minus its mean under equality)."""
    difference = np.empty(width)
    for column in range(width):
        grids = [lowest_bits(batch.values[:, column]) for batch in sides]
        cells, place = np.unique(np.concatenate(grids), return_inverse=True)
        first, second = (np.bincount(part, minlength=cells.size) for part in np.split(place, [grids[0].size]))
        difference[column] = ((first - second) ** 2 / (first + second)).sum() - cells.size
    return sorted(np.argsort(-difference, kind="stable")[:MOST_COLUMNS].tolist())


def _count(view: BitsView | RecordView, sides: Sides) -> Counts:
    return np.stack([view.count(Block(batch)) for batch in sides])
