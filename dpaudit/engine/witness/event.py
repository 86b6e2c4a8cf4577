"""Events a person can read: chosen on the past, the simplest that still shows the leak, and testable one output at a time."""

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
from dpaudit.engine.views.learner import Sides
from dpaudit.engine.views.partition import Line, line_from
from dpaudit.engine.views.scores import Coordinate
from dpaudit.engine.views.view import Block, RecordView, ScoreView, ValueView, View
from dpaudit.engine.witness.python_code import expression, told_apart

Mask: TypeAlias = NDArray[np.bool_]

SIMPLE_ENOUGH = 0.6  # a simpler event wins if it keeps this share of the best advantage in standard errors
CLEAR = 6.0  # so many standard errors are enough for any event
MOST_COORDINATES = 64
READABLE_CELLS = 24
DIGITS = 3
_COMPARED = re.compile(r"[<>=] -?\d")


@dataclass(frozen=True, slots=True)
class Event:
    """A union of cells of one view."""

    view: View
    cells: Mask
    labels: Mapping[int, str]
    swapped: bool = False  # likelier on the neighbour than on the data
    note: str = ""  # what the numbers are

    def contains(self, batch: Encoded) -> Mask:
        """Which outputs are in the event."""
        return np.asarray(self.cells[self.view.locate(batch)])

    def count(self, batch: Encoded) -> int:
        """How many outputs are in the event; quicker than to ask which."""
        return int(self.view.count(Block(batch))[self.cells].sum())

    def __str__(self) -> str:
        view = self.view
        if isinstance(view, RecordView) and not view.floats:
            return told_apart(view, self.labels).describe(self.cells, self.labels)
        text = view.describe(self.cells, self.labels)
        return text + self.note if _COMPARED.search(text) else text

    def code(self) -> tuple[str, str]:
        """Python source for it: definitions, and an expression in ``output`` (both empty where there is none)."""
        return expression(self.view, self.cells, self.labels)


@dataclass(frozen=True, slots=True)
class Offer:
    """An event with its advantage in standard errors, and how hard it is to read."""

    event: Event
    score: float
    complexity: float


def simplest(sides: Sides, views: Sequence[View], points: Points, labels: Mapping[int, str]) -> Event | None:
    """The simplest event that keeps most of the best advantage on these outputs."""
    offers = [offer for view in _with_coordinates(sides, views) for offer in _offers(view, sides, points, labels)]
    if not offers:
        return None
    best = max(offer.score for offer in offers)
    enough = min(SIMPLE_ENOUGH * best, CLEAR) if best > 0.0 else best
    good = [offer for offer in offers if offer.score >= enough]
    event = min(good, key=lambda offer: (offer.complexity, -offer.score)).event
    return replace(event, note=explained(labels))


def _with_coordinates(sides: Sides, views: Sequence[View]) -> Iterator[View]:
    """The views with cuts that a person can read, and every coordinate by itself."""
    for view in views:
        match view:
            case ValueView():
                lines = tuple(
                    None if line is None else _readable(_column(sides, code))
                    for code, line in zip(view.codes.keys, view.lines, strict=True)
                )
                yield ValueView(view.codes, lines)
            case ScoreView():
                yield ScoreView(view.name, view.score, _readable([view.score(batch) for batch in sides]))
            case _:
                yield view
    width = sides[0].width
    if width > 1:
        for index in range(min(width, MOST_COORDINATES)):
            score = Coordinate(index)
            yield ScoreView(f"output[{index}]", score, _readable([score(batch) for batch in sides]))


def _column(sides: Sides, code: np.uint64) -> list[NDArray[np.float64]]:
    return [batch.of_kind(code) if batch.width else np.empty(0) for batch in sides]


def _readable(values: Sequence[NDArray[np.float64]]) -> Line:
    """Cuts rounded to a few digits of the spread; exact values stay exact."""
    line = line_from(np.concatenate(values), resolution=READABLE_CELLS)
    inner = line.cuts[1:-1]
    exact = np.zeros(inner.size, dtype=bool)
    exact[:-1] |= np.nextafter(inner[:-1], np.inf) == inner[1:]
    exact[1:] |= exact[:-1].copy() & (np.nextafter(inner[:-1], np.inf) == inner[1:])
    with np.errstate(over="ignore"):
        spread = float(np.subtract(*np.quantile(inner, [0.9, 0.1]))) if inner.size > 1 else 1.0
    digits = DIGITS - 1 - math.floor(math.log10(spread)) if spread > 0.0 and math.isfinite(spread) else DIGITS
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(inner, min(max(digits, -300), 300))
    rounded = np.where(exact | ~np.isfinite(rounded), inner, rounded)
    return Line(np.unique(np.concatenate([line.cuts[:1], rounded, line.cuts[-1:]])))


def _offers(view: View, sides: Sides, points: Points, labels: Mapping[int, str]) -> Iterator[Offer]:
    counts = np.stack([view.count(Block(batch)) for batch in sides])
    if counts.shape[1] < 2 or counts.sum(axis=1).min() == 0:
        return
    orders = [natural_order(counts)] if view.ordered else []
    if not isinstance(view, ScoreView):  # a union of intervals of a score tells nobody anything
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
            yield Offer(event, float(scores[point]), _complexity(view, str(event)))


def _absorb_empty(view: View, cells: Mask, counts: NDArray[np.int64]) -> None:
    """Cells in which nothing was seen go with their neighbour, so that intervals join and reach to the ends."""
    empty = counts.sum(axis=0) == 0
    lines = view.lines if isinstance(view, ValueView) else (view.line,) if isinstance(view, ScoreView) else ()
    offset = 0
    for line in lines:
        width = 1 if line is None else line.cells
        if line is not None:
            numbers = range(offset, offset + width - 1)  # the last cell is NaN
            for cell in [*numbers[1:], *reversed(numbers[:-1])]:
                towards = cell - 1 if cell - 1 in numbers and not empty[cell - 1] else cell + 1
                if empty[cell] and towards in numbers and not empty[towards]:
                    cells[cell], empty[cell] = cells[towards], False
        offset += width


def _unseen(view: View, counts: NDArray[np.int64]) -> Mask:
    """Cells in which nothing was seen, but for those of numbers: "or output is NaN" helps nobody where there was none."""
    unseen = np.asarray(counts.sum(axis=0) == 0)
    lines = view.lines if isinstance(view, ValueView) else (view.line,) if isinstance(view, ScoreView) else ()
    offset = 0
    for line in lines:
        width = 1 if line is None else line.cells
        if line is not None:
            unseen[offset : offset + width - 1] = False
        offset += width
    return unseen


def _complexity(view: View, text: str) -> float:
    pieces = text.count(" or ") + text.count(" <= ") + (3 if "not seen while learning" in text else 0)
    learned = 20 if isinstance(view, ScoreView) and not isinstance(view.score, Coordinate) else 0
    return pieces + learned + (1 if isinstance(view, ScoreView) else 0) + len(text) / 1000.0


def observed_epsilon(in_data: int, in_neighbour: int, trials: int, delta: float) -> float:
    """Log-ratio of the observed shares at ``delta``; infinite where the neighbour never showed the event."""
    share = in_data / trials - delta
    if share <= 0.0:
        return 0.0
    return math.inf if in_neighbour == 0 else math.log(share / (in_neighbour / trials))
