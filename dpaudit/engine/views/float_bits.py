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
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.encoding.structure import placeholder
from dpaudit.engine.views.partition import KeyTable
from dpaudit.engine.views.view import Block, RecordView
from dpaudit.mechanism import Raised

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Sides: TypeAlias = tuple[Encoded, Encoded]

VALUE_BINS = 8  # bins of the rough value
MOST_COLUMNS = 16  # coordinates that are audited
NO_BIT = -1100  # for zero, infinities and NaN, which have no lowest set bit
NEGATIVE_ZERO = -1101
DECIMAL = 2000  # plus the number of decimals, for a short decimal that is on no coarse dyadic grid
MOST_DIGITS = 12  # digits of a short decimal; one random float in 15,000 is so short
MOST_DECIMALS = 22  # floats hold powers of ten exactly up to this exponent
POWERS = 10.0 ** np.arange(MOST_DECIMALS + 1)
COARSE = 44  # the most bits of a number on a coarse dyadic grid

MEANING = (
    "The leak is in the bits of the floating-point numbers, not in their law over the reals: which low bits (or decimals, or "
    "signs of zero) can occur depends on the answer that noise was added to (Mironov 2012). Release integers or a fixed "
    "dyadic grid (discrete Laplace or discrete Gaussian on multiples of 2^-k), or use a snapping mechanism."
)

NO_FLOATS = (
    'The outputs hold no floating-point numbers, and channel="representation" is about the bits of those: there was nothing '
    'to look at. Audit channel="value" instead.'
)


def lowest_bit(values: Floats) -> NDArray[np.int64]:
    """Return the grid of each float: the exponent of its lowest set bit, or ``DECIMAL`` plus the number of decimals.

    >>> lowest_bit(np.array([1.0, 0.75, 6.0, 1 / 3, 0.0, -0.0, np.inf, 0.1, -12.34])).tolist()
    [0, -2, 1, -54, -1100, -1101, -1100, 2001, 2002]
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    bits = values.view(np.int64)
    field = (bits >> 52) & 0x7FF
    fraction = bits & 0xFFFFFFFFFFFFF
    mantissa = np.where(field > 0, fraction | (1 << 52), fraction)
    lowest = (mantissa & -mantissa).astype(np.float64)
    zeros = np.frexp(lowest)[1] - 1
    grid = np.where((mantissa == 0) | (field == 0x7FF), NO_BIT, np.maximum(field, 1) - 1075 + zeros).astype(np.int64)
    grid[bits == np.iinfo(np.int64).min] = NEGATIVE_ZERO
    long = np.flatnonzero((zeros <= 52 - COARSE) & (field > 0) & (field < 0x7FF))
    decimals = _decimals(values[long])
    grid[long[decimals > 0]] = DECIMAL + decimals[decimals > 0]
    return grid


def is_grid(number: int) -> bool:
    """Return whether :func:`lowest_bit` may return this number."""
    return -1074 <= number <= 1023 or number in (NO_BIT, NEGATIVE_ZERO) or 0 < number - DECIMAL <= MOST_DECIMALS


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


def _decimals(values: Floats) -> NDArray[np.int64]:
    """Return the number of decimals of each number; 0 if it is not a short decimal."""
    places = np.floor(MOST_DIGITS - np.log10(np.abs(values))).astype(np.int64)
    scale = POWERS[np.clip(places, 0, MOST_DECIMALS)]
    digits = np.rint(values * scale)
    found = np.zeros(values.size, dtype=np.int64)
    short = np.flatnonzero((digits / scale == values) & (places > 0) & (places <= MOST_DECIMALS))
    digits, places = digits[short], places[short]
    while (spare := (places > 0) & (np.fmod(digits, 10.0) == 0.0)).any():
        digits, places = np.where(spare, digits / 10.0, digits), places - spare
    found[short] = places
    return found


@dataclass(frozen=True, slots=True)
class BitsView:
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
            parts.append(where if chosen.all() else f"({where} and {self._bits(chosen, name)})")
        return " or ".join(parts)

    def _bits(self, chosen: NDArray[np.bool_], name: str) -> str:
        known = self.bits.keys
        if chosen[-1]:  # and with it whatever was not seen while learning
            return f"not {self._grids(known[~chosen[:-1]], name)}"
        return self._grids(known[chosen[:-1]], name)

    def _grids(self, listed: Counts, name: str) -> str:
        def some(base: int, exponents: Counts) -> str:
            return ", ".join(f"{base}^{exponent}" for exponent in exponents[:6]) + ", ..." * (exponents.size > 6)

        bits, known = (grids[(grids > NO_BIT) & (grids < DECIMAL)] for grids in (listed, self.bits.keys))
        parts = []
        if bits.size > 1 and np.array_equal(bits, known[: bits.size]):
            parts.append(f"lowest set bit <= 2^{bits[-1]}")
        elif bits.size:
            parts.append(f"lowest set bit in {{{some(2, bits)}}}")
        if (decimals := listed[listed > DECIMAL]).size:
            parts.append(f"last decimal in {{{some(10, DECIMAL - decimals)}}}")
        if NO_BIT in listed:
            parts.append(f"{name} is 0.0, infinite or NaN")
        if NEGATIVE_ZERO in listed:
            parts.append(f"{name} is -0.0")
        return f"({' or '.join(parts)})"


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
            column, KeyTable(np.unique(lowest_bit(pooled))), cuts, "bits" if width == 1 else f"bits[{column}]"
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
        grids = [lowest_bit(batch.values[:, column]) for batch in sides]
        cells, place = np.unique(np.concatenate(grids), return_inverse=True)
        first, second = (np.bincount(part, minlength=cells.size) for part in np.split(place, [grids[0].size]))
        difference[column] = ((first - second) ** 2 / (first + second)).sum() - cells.size
    return sorted(np.argsort(-difference, kind="stable")[:MOST_COLUMNS].tolist())


def _count(view: BitsView | RecordView, sides: Sides) -> Counts:
    return np.stack([view.count(Block(batch)) for batch in sides])
