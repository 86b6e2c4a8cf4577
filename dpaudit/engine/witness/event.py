"""Choose the event to report: the simplest one that still shows the leak, chosen on outputs kept for learning."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.encoding.structure import explained
from dpaudit.engine.evidence.e_process import Points, choose_events, natural_order, sorted_order
from dpaudit.engine.views.building import Sides
from dpaudit.engine.views.condition import AnyOf
from dpaudit.engine.views.late.grid_view import GridView
from dpaudit.engine.views.partition import readable_line
from dpaudit.engine.views.scores import Coordinate
from dpaudit.engine.views.view import Block, ScoreView, ShapeView, ValueView, View
from dpaudit.engine.witness.python_code import EventCode, OutputNames, event_code

Mask: TypeAlias = NDArray[np.bool_]

_COMPARED = re.compile(r"[<>=] -?\d")


@dataclass(frozen=True, slots=True)
class EventChoice:
    """Limits of the choice among several events."""

    kept_advantage: float = 0.6
    """A simpler event wins if it keeps this share of the largest advantage in standard errors."""
    clear: float = 6.0
    """An advantage of so many standard errors is enough for any event."""
    most_coordinates: int = 64
    """Coordinates that are tried as events by themselves."""


EVENT_CHOICE = EventChoice()


@dataclass(frozen=True, slots=True)
class Event:
    """A union of cells of one view."""

    view: View
    cells: Mask
    labels: Mapping[int, str]
    swapped: bool = False  # likelier on the neighbour than on the data
    note: str = ""  # says what the numbers in the text are

    @property
    def condition(self) -> AnyOf:
        """The event as a tree of conditions on an output."""
        return self.view.condition(self.cells, self.labels)

    def contains(self, batch: Encoded) -> Mask:
        """Return for every output whether it is in the event."""
        return self.condition.contains(batch)

    def count(self, batch: Encoded) -> int:
        """Return how many outputs are in the event, by the counts of the view, which are faster."""
        return int(self.view.count(Block(batch))[self.cells].sum())

    def __str__(self) -> str:
        text = self.condition.text(OutputNames(self.labels))
        return text + self.note if _COMPARED.search(text) else text

    def code(self) -> EventCode:
        """Return the event as Python."""
        return event_code(self.condition, self.labels)


@dataclass(frozen=True, slots=True)
class RatedEvent:
    """An event with its advantage in standard errors, and how hard it is to read."""

    event: Event
    score: float
    complexity: float


def simplest(sides: Sides, views: Sequence[View], points: Points, labels: Mapping[int, str]) -> Event | None:
    """Return the simplest event that keeps most of the best advantage on these outputs."""
    rated = [
        candidate for view in with_coordinates(sides, views) for candidate in _rated_events(view, sides, points, labels)
    ]
    if not rated:
        return None
    best = max(candidate.score for candidate in rated)
    enough = min(EVENT_CHOICE.kept_advantage * best, EVENT_CHOICE.clear) if best > 0.0 else best
    good = [candidate for candidate in rated if candidate.score >= enough]
    event = min(good, key=lambda candidate: (candidate.complexity, -candidate.score)).event
    return replace(event, note=explained(labels))


def with_coordinates(sides: Sides, views: Sequence[View]) -> Iterator[View]:
    """Yield the views with readable cuts, structures without their numbers, and every coordinate by itself."""
    for view in views:
        yield view.readable(sides)
        if isinstance(view, ValueView) and any(view.lines) and len(view.lines) > 1:
            yield ShapeView(view.codes)
        if isinstance(view, GridView):
            yield from view.coarser(sides)
    width = sides[0].width
    if width > 1:
        for index in range(min(width, EVENT_CHOICE.most_coordinates)):
            score = Coordinate(index)
            yield ScoreView(f"output[{index}]", score, readable_line([score(batch) for batch in sides]))


def _rated_events(view: View, sides: Sides, points: Points, labels: Mapping[int, str]) -> Iterator[RatedEvent]:
    counts = np.stack([view.count(Block(batch)) for batch in sides])
    if counts.shape[1] < 2 or counts.sum(axis=1).min() == 0:
        return
    orders = [natural_order(counts)] if view.ordered else []
    if not orders or not view.reading_cost:  # a union of many intervals of a score is hard to read
        orders.append(sorted_order(counts))
    choice = choose_events(counts[:, np.stack(orders)], points)
    for row, order in enumerate(orders):
        for swapped, sizes, scores in (
            (False, choice.size[0, row], choice.score[0, row]),
            (True, choice.size[1, row], choice.score[1, row]),
        ):
            point = int(np.argmax(scores))
            cells = np.zeros(counts.shape[1], dtype=bool)
            chosen = order[: sizes[point]] if swapped else order[order.size - sizes[point] :]
            cells[chosen] = True
            if view.ordered:
                _absorb_empty(view, cells, counts)
            cells[_unseen(view, counts)] = False
            event = Event(view, cells, labels, swapped)
            yield RatedEvent(event, float(scores[point]), _complexity(view, str(event)))


def _absorb_empty(view: View, cells: Mask, counts: NDArray[np.int64]) -> None:
    """Treat cells in which nothing was seen like their neighbours, so that intervals join and reach to the ends."""
    empty = counts.sum(axis=0) == 0
    offset = 0
    for line in view.number_lines:
        width = 1 if line is None else line.cells
        if line is not None:
            numbers = range(offset, offset + width - 1)  # the last cell is NaN
            for cell in [*numbers[1:], *reversed(numbers[:-1])]:
                towards = cell - 1 if cell - 1 in numbers and not empty[cell - 1] else cell + 1
                if empty[cell] and towards in numbers and not empty[towards]:
                    cells[cell], empty[cell] = cells[towards], False
        offset += width


def _unseen(view: View, counts: NDArray[np.int64]) -> Mask:
    """Return the cells in which nothing was seen, except intervals: without a NaN, no event should say "or output is NaN"."""
    unseen = np.asarray(counts.sum(axis=0) == 0)
    offset = 0
    for line in view.number_lines:
        width = 1 if line is None else line.cells
        if line is not None:
            unseen[offset : offset + width - 1] = False
        offset += width
    return unseen


def _complexity(view: View, text: str) -> float:
    pieces = text.count(" or ") + text.count(" <= ") + (3 if "not seen while learning" in text else 0)
    # Where one side raises, "raises ValueError" says more than that the other side answers.
    explicit = -0.5 if text.startswith("raises ") else 0.0
    return pieces + view.reading_cost + explicit + len(text) / 1000.0


def observed_epsilon(in_data: int, in_neighbour: int, trials: int, delta: float) -> float:
    """Log-ratio of the observed shares at ``delta``; infinite where the neighbour never showed the event."""
    share = in_data / trials - delta
    if share <= 0.0:
        return 0.0
    return math.inf if in_neighbour == 0 else math.log(share / (in_neighbour / trials))
