"""A view of one, two or three quantities together: each is cut into intervals, and the cells are their combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.views.condition import AllOf, AnyOf, Condition, Floats, Interval, Mask, Number, Quantity
from dpaudit.engine.views.view import BaseView, Block, Counts

DIGITS = 3  # of the spread, to which cuts are rounded, so that they are readable


def cuts_from(values: Floats, cells: int) -> Floats:
    """Return at most ``cells - 1`` cuts at quantiles, rounded; at the values themselves if there are few of them.

    >>> cuts_from(np.array([0.0, 1.0, 0.0, 2.0]), 8).tolist(), cuts_from(np.linspace(0, 1, 1001), 4).tolist()
    ([0.0, 1.0, 2.0], [0.25, 0.5, 0.75])
    """
    ascending = np.sort(values[np.isfinite(values)])
    distinct = ascending[np.concatenate(([True], ascending[1:] != ascending[:-1]))[: ascending.size]]
    if distinct.size < cells:
        return distinct
    with np.errstate(over="ignore", invalid="ignore"):
        *cuts, low, high = _quantiles(ascending, np.array([*(np.arange(1, cells) / cells), 0.1, 0.9]))
        spread = float(high - low)
    if spread > 0.0 and math.isfinite(spread):
        cuts = np.round(cuts, min(max(DIGITS - 1 - math.floor(math.log10(spread)), -300), 300)).tolist()
    return np.unique(np.array(cuts) + 0.0)  # no cut at minus zero


def _quantiles(ascending: Floats, levels: Floats) -> Floats:
    """Return quantiles of sorted numbers, by linear interpolation."""
    position = levels * (ascending.size - 1)
    below = position.astype(np.intp)
    low, high = ascending[below], ascending[np.minimum(below + 1, ascending.size - 1)]
    return np.asarray(low + (high - low) * (position - below))


@dataclass(frozen=True, slots=True)
class Cut:
    """A quantity and where it is cut: below the first cut, between cuts, from the last one on, and NaN."""

    of: Quantity
    cuts: tuple[float, ...]

    @property
    def cells(self) -> int:
        """The intervals, and NaN."""
        return len(self.cuts) + 2

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each output."""
        return self.place(self.of(batch))

    def place(self, values: Floats) -> NDArray[np.intp]:
        """Return the cell of each value of the quantity."""
        return np.where(np.isnan(values), self.cells - 1, np.searchsorted(self.cuts, values, side="right"))

    def number(self, cells: Mask) -> Number:
        """Return a condition for some of the cells."""
        lows, highs = [-math.inf, *self.cuts], [*self.cuts, None]
        edges = np.flatnonzero(np.diff(np.concatenate(([False], cells[:-1], [False]))))
        intervals = tuple(Interval(lows[start], highs[stop - 1]) for start, stop in edges.reshape(-1, 2))
        return Number(self.of, intervals, bool(cells[-1]), self.of.describe())


@dataclass(frozen=True, slots=True)
class GridView(BaseView):
    """Combinations of the cells of a few quantities."""

    name: str
    axes: tuple[Cut, ...]
    ordered: bool = False

    @property
    def cells(self) -> int:
        """All combinations."""
        return math.prod(axis.cells for axis in self.axes)

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each output."""
        return np.asarray(
            np.ravel_multi_index(tuple(axis.locate(batch) for axis in self.axes), [axis.cells for axis in self.axes])
        )

    def count(self, block: Block) -> Counts:
        """Count the cells."""
        return np.bincount(self.locate(block.batch), minlength=self.cells).astype(np.int64)

    def condition(self, cells: Mask, labels: Mapping[int, str]) -> AnyOf:
        """Return the combinations; those that agree in all quantities but the first are joined."""
        del labels
        return AnyOf(tuple(self._parts(cells)))

    def _parts(self, chosen: Mask) -> Iterator[Condition]:
        first, *others = self.axes
        joined: dict[bytes, list[tuple[int, ...]]] = {}
        combinations = itertools.product(*(range(axis.cells) for axis in others))
        for places, column in zip(combinations, chosen.reshape(first.cells, -1).T, strict=True):
            if column.any():
                joined.setdefault(column.tobytes(), []).append(places)
        for pattern, places_of in joined.items():
            column = np.frombuffer(pattern, dtype=bool)
            conditions = [] if column.all() else [first.number(column)]
            if len(others) == 1:
                inside = np.zeros(others[0].cells, dtype=bool)
                inside[[places[0] for places in places_of]] = True
                yield AllOf((*conditions, *([] if inside.all() else [others[0].number(inside)])))
                continue
            for places in places_of:
                rest = [axis.number(np.arange(axis.cells) == place) for axis, place in zip(others, places, strict=True)]
                yield AllOf((*conditions, *rest))

    def coarser(self, sides: tuple[Encoded, Encoded]) -> Iterator[GridView]:
        """Yield the same quantities with few cells each, if there are several of them: these are readable."""
        if len(self.axes) > 1:
            for cells in (2, 3):
                axes = [(axis.of, np.concatenate([axis.of(batch) for batch in sides])) for axis in self.axes]
                yield GridView(
                    self.name, tuple(Cut(of, tuple(cuts_from(values, cells).tolist())) for of, values in axes)
                )

    @property
    def reading_cost(self) -> int:
        """More than that of a coordinate, and less than that of a learned score."""
        return 1 + 4 * (len(self.axes) - 1)
