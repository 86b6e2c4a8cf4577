"""A small summary of outputs on one pair, as plain data: for pictures, and for comparing with a later run.

The event is in its JSON form, without code, so that a file from anywhere can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.views.building import Sides
from dpaudit.engine.views.partition import quantiles
from dpaudit.engine.views.view import Block, View
from dpaudit.engine.witness.event import Event
from dpaudit.engine.witness.python_code import OutputNames

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PictureSizes:
    """Sizes of a picture."""

    cells: int = 40
    """Bars of a histogram."""
    most_whole_numbers: int = 60
    """Whole numbers up to this many get a bar each."""
    largest_number: float = 1e300
    """Larger numbers are left out: the width of a bar might overflow."""
    tails: float = 0.001
    """Share of the numbers that is left out at each end."""
    most_categories: int = 24
    """Categories that are drawn, the most frequent ones."""
    longest_category: int = 120
    """Characters of the name of a category."""


PICTURE = PictureSizes()


def picture(event: Event, sides: Sides) -> dict[str, Any]:
    """Return counts of both sides over cells of the value (or score), or over the parts that the event is made of."""
    made: dict[str, Any] = {}
    axis = event.view.axis(event.cells)
    if axis is not None:
        made = _histogram([axis.of(batch) for batch in sides], axis.selected)
        if made and axis.label:
            made["label"] = axis.label
    return {**(made or _categories(event, sides)), "trials": [len(batch) for batch in sides]}


def _histogram(columns: list[Floats], event: Sequence[tuple[float, float]]) -> dict[str, Any]:
    columns = [np.sort(column[np.abs(column) < PICTURE.largest_number]) for column in columns]  # drops NaN too
    ends = [quantiles(column, np.array([PICTURE.tails, 1.0 - PICTURE.tails])) for column in columns if column.size]
    if not ends:
        return {}
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    whole = high - low <= PICTURE.most_whole_numbers and all((column == np.round(column)).all() for column in columns)
    if whole:
        edges = np.arange(np.round(low) - 0.5, np.round(high) + 1.0)
        # A cell of a whole number is in the event or not, so the shading goes to its borders.
        event = [
            (np.ceil(start) - 0.5, np.floor(stop) + 0.5 if start == stop else np.ceil(stop) - 0.5)
            for start, stop in event
        ]
    elif low < high:
        edges = np.linspace(low, high, PICTURE.cells + 1)
    else:
        edges = np.array([low - 0.5, low + 0.5])
    if edges.size < 2 or not (np.diff(edges) > 0.0).all():
        return {}
    # The last cell holds its upper edge too.
    below = [(*np.searchsorted(column, edges[:-1]), np.searchsorted(column, edges[-1], "right")) for column in columns]
    counts = [np.diff(each).tolist() for each in below]
    intervals = [[float(start), float(stop)] for start, stop in event if start < stop or not whole]
    return {"edges": edges.tolist(), "data": counts[0], "neighbour": counts[1], "event": intervals}


def _categories(event: Event, sides: Sides) -> dict[str, Any]:
    """Return the groups of cells that belong together in words, each divided by the event."""
    view = event.view
    counts = np.stack([view.count(Block(batch)) for batch in sides])
    # A cell for NaN that nothing fell into would only make names longer.
    named = counts.any(axis=0) | ~_nan_cells(view)
    split = view.groups
    groups = [group & named for group in _divided(split.of_cell, event.cells) if counts[:, group].any()]
    if not split.ascending:
        groups.sort(key=lambda group: -int(counts[:, group].sum(axis=1).max()))
    kept, names = groups[: PICTURE.most_categories], OutputNames(event.labels)
    return {
        "categories": [shorten_text(view.category(group, event.cells, names, event.labels)) for group in kept],
        "data": [int(counts[0][group].sum()) for group in kept],
        "neighbour": [int(counts[1][group].sum()) for group in kept],
        "event": [place for place, group in enumerate(kept) if (group & event.cells).any()],
    }


def _nan_cells(view: View) -> Mask:
    found = np.zeros(view.cells, dtype=bool)
    ends = np.cumsum([1 if line is None else line.cells for line in view.number_lines], dtype=np.intp)
    found[[end - 1 for end, line in zip(ends, view.number_lines, strict=True) if line is not None]] = True
    return found


def _divided(group_of_cell: NDArray[np.intp], chosen: Mask) -> Iterator[Mask]:
    """Yield the cells of each group inside the event, and those outside it."""
    for number in np.unique(group_of_cell):
        group = group_of_cell == number
        yield from (part for part in (group & chosen, group & ~chosen) if part.any())


def shorten_text(text: str) -> str:
    """Return a name of limited length."""
    return text if len(text) <= PICTURE.longest_category else f"{text[: PICTURE.longest_category - 3]}..."


def leading(event: Event, data: str, neighbour: str, counts: list[int], trials: int) -> dict[str, Any]:
    """Return the entry that a baseline keeps: the pair, the event, and how often it happened on each side."""
    return {
        "data": data,
        "neighbour": neighbour,
        "text": str(event),
        "event": event.condition.plain(),
        "on_data": [counts[0], trials],
        "on_neighbour": [counts[1], trials],
    }


def summary(event: Event, sides: tuple[Encoded, Encoded], lead: dict[str, Any]) -> dict[str, Any]:
    """Return picture, event and pair together."""
    return {**picture(event, sides), "leading": lead, "pair": [lead["data"], lead["neighbour"]]}
