"""A pair of data sets with views of few cells: what an exploration hands on to be bet on.

Data sets and cells are kept as text and JSON, so that they can be read back in another process, and nothing that is read is
ever executed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.literals import rebuild
from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.evidence.e_process import Counts, Points, Record, choose_events, natural_order, sorted_order
from dpaudit.engine.search.campaign import CHOICE, Candidate
from dpaudit.engine.views.condition import AnyOf
from dpaudit.engine.views.plain_events import read_event, union
from dpaudit.engine.views.view import Block, View
from dpaudit.engine.witness.event import with_coordinates
from dpaudit.engine.witness.shrink import literal
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours import Pair

MOST_VIEWS = 3  # of a nominee; each has its share of the capital
NOMINATED_TAILS = 0.5 ** np.arange(1, 9)  # shares of the outputs in a tail, at which the cells of a view are cut
FEWEST_OUTPUTS = 4  # of each side on which cells are chosen
MOST_OUTPUTS = 8192


@dataclass(frozen=True, slots=True)
class Cells:
    """Disjoint sets of outputs, in the order in which the first data set grows heavier; a last one holds all others."""

    events: tuple[Mapping[str, Any], ...]  # see `plain_events`
    conditions: tuple[AnyOf, ...]

    @classmethod
    def of(cls, events: Sequence[Mapping[str, Any]]) -> Cells:
        """Read the events."""
        return cls(tuple(events), tuple(map(read_event, events)))

    def count(self, batch: Encoded) -> Counts:
        """Count the outputs in each cell; one that fits several belongs to the first of them."""
        place = np.full(len(batch), len(self.conditions))
        for number, condition in reversed(list(enumerate(self.conditions))):
            place[condition.contains(batch)] = number
        return np.bincount(place, minlength=len(self.conditions) + 1)


@dataclass(slots=True)
class Nominee:
    """A pair, its views, and what was counted there: on outputs of the exploration, and in settled rounds."""

    number: int
    pair: Pair
    views: tuple[Cells, ...]
    counts: tuple[Counts, ...]  # per view: (2, cells)
    features: bool  # the cells of a view need features of the outputs

    @property
    def seen(self) -> int:
        """Outputs of each side that were counted."""
        return int(self.counts[0][0].sum())

    def records(self, new: Sequence[Counts]) -> tuple[Record, ...]:
        """Return a round as records for the bets, and add it to what was counted."""
        records = tuple(
            Record(f"view {place}", past, counts, True, np.zeros_like(past))
            for place, (past, counts) in enumerate(zip(self.counts, new, strict=True), start=1)
        )
        self.counts = tuple(past + counts for past, counts in zip(self.counts, new, strict=True))
        return records

    def promise(self, points: Points) -> float:
        """Return a low estimate of the advantage of the best event, in standard deviations of one output."""
        best = max(float(choose_events(counts[:, None], points).score.max()) for counts in self._oriented())
        return (best - CHOICE.lower_errors) / math.sqrt(self.seen)

    def _oriented(self) -> list[Counts]:
        return [counts[:, order] for counts in self.counts for order in (natural_order(counts), sorted_order(counts))]

    def event(self, points: Points) -> tuple[AnyOf, bool]:
        """Return the event that shows most, and whether it is likelier on the neighbour."""
        found: list[tuple[float, bool, AnyOf]] = []
        for cells, counts in zip(self.views, self.counts, strict=True):
            for order in (natural_order(counts), sorted_order(counts)):
                choice = choose_events(counts[:, order][:, None], points)
                for swapped in (False, True):
                    sizes, scores = choice.size[int(swapped), 0], choice.score[int(swapped), 0]
                    point = int(np.argmax(scores))
                    chosen = order[: sizes[point]] if swapped else order[order.size - sizes[point] :]
                    named = [cells.events[cell] for cell in sorted(chosen.tolist()) if cell < len(cells.events)]
                    if named:
                        found.append((float(scores[point]), swapped, union(named)))
        _, swapped, event = max(found, key=lambda offer: offer[0])
        return event, swapped

    def plain(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {
            "pair": [literal(data)[0] for data in self.pair],
            "views": [list(cells.events) for cells in self.views],
            "counts": [counts.tolist() for counts in self.counts],
            "features": self.features,
        }

    @classmethod
    def from_plain(cls, number: int, plain: Mapping[str, Any]) -> Nominee:
        """Read back what :meth:`plain` wrote."""
        first, second = map(rebuild, plain["pair"])
        views = tuple(map(Cells.of, plain["views"]))
        counts = tuple(np.array(rows, dtype=np.int64) for rows in plain["counts"])
        if any(rows.shape != (2, len(cells.events) + 1) for rows, cells in zip(counts, views, strict=True)):
            raise InvalidArgument("counts: they do not fit the cells.")
        return cls(number, Pair(first, second), views, counts, bool(plain["features"]))


def nominate(number: int, candidate: Candidate, points: Points) -> Nominee | None:
    """Return the pair of an exploration with the views that show most; None if it has no form in which it can be kept.

    Cells are chosen on the first half of the outputs that were kept for learning, and counted on others.
    """
    learner = candidate.learner
    if not learner.keeps or not all(literal(data)[1] for data in candidate.pair):
        return None
    sides, (half, others) = learner.kept(), learner.halves()
    first = slice(min(half.stop, MOST_OUTPUTS))
    if first.stop < FEWEST_OUTPUTS:
        return None
    chosen_on, rest = ((sides[0].rows(part), sides[1].rows(part)) for part in (first, others))
    offers: list[tuple[float, View, list[NDArray[np.intp]]]] = []
    for view in with_coordinates(chosen_on, learner.views):
        counts = np.stack([view.count(Block(batch)) for batch in chosen_on])
        if counts.shape[1] < 2 or counts.sum(axis=1).min() == 0:
            continue
        for order in [natural_order(counts)] * view.ordered + [sorted_order(counts)]:
            groups = _groups(order, counts)
            grouped = np.stack([counts[:, group].sum(axis=1) for group in groups], axis=1)
            offers.append((float(choose_events(grouped[:, None], points).score.max()), view, groups))
    views: list[Cells] = []
    counted: list[Counts] = []
    needed = False
    for _, view, groups in sorted(offers, key=lambda offer: -offer[0]):
        events = [_event(view, group, learner.labels) for group in groups]
        if len(views) == MOST_VIEWS or None in events or any(events == list(cells.events) for cells in views):
            continue
        views.append(Cells.of([event for event in events if event is not None]))
        counted.append(np.stack([views[-1].count(batch) for batch in rest]))
        needed |= view.needs_features
    return Nominee(number, candidate.pair, tuple(views), tuple(counted), needed) if views else None


def _groups(order: NDArray[np.intp], counts: Counts) -> list[NDArray[np.intp]]:
    """Join the cells of an order into groups: tails whose shares halve on both ends, so that rare outputs stay apart."""
    share = np.cumsum(counts.sum(axis=0)[order]) / counts.sum()
    cuts = np.searchsorted(share, np.concatenate([NOMINATED_TAILS, 1.0 - NOMINATED_TAILS]), side="right")
    return [group for group in np.split(order, np.unique(cuts)) if group.size]


def _event(view: View, group: NDArray[np.intp], labels: Mapping[int, str]) -> dict[str, Any] | None:
    cells = np.zeros(view.cells, dtype=bool)
    cells[group] = True
    return view.condition(cells, labels).plain()
