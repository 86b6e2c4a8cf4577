"""Learn views for one pair of data sets from its settled rounds, and keep their counts.

Everything here is a function of settled rounds. Views change only between rounds, so that a bet never sees the outputs it
is settled with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from dpaudit.engine.encoding.batch import stack
from dpaudit.engine.encoding.structure import OPAQUE, OPEN
from dpaudit.engine.evidence.e_process import Plan, Points, Record
from dpaudit.engine.views import feature
from dpaudit.engine.views.building import VIEW_LIMITS, Counts, Sides, build_views, count_cells, score_view
from dpaudit.engine.views.late.search import SEARCH, late_views
from dpaudit.engine.views.partition import KeyTable
from dpaudit.engine.views.scores import NaiveBayes
from dpaudit.engine.views.suspect_view import SuspectView
from dpaudit.engine.views.view import MOST_RECORDS, Block, RecordView, ScoreView, ValueView, View

Builder: TypeAlias = Callable[[Sides], Sequence[tuple[View, Counts]]]  # views, with the counts they were not fitted on


@dataclass(frozen=True, slots=True)
class KeptOutputs:
    """Limits of the outputs kept for learning, and times at which scores are fitted again."""

    most_vectors: int = 65_536
    """Outputs of each side that are kept if they hold several numbers."""
    most_scalars: int = 32_768
    """Outputs of each side that are kept if they hold a single number, which leaves less to learn."""
    most_featured: int = 16_384
    """Outputs of each side that are kept if their features are kept too."""
    most_numbers: int = 4_000_000
    """Numbers of each side that are kept."""
    fewest: int = 1000
    """Outputs of each side that are kept where they hold more numbers than that."""
    most_numbers_of_few: int = 16_000_000
    """Numbers of each side that are kept of these few outputs."""
    least: int = 8
    """Outputs of each side that are kept however many numbers they hold."""
    refits: tuple[int, ...] = (64, 8)
    """Scores are fitted again, on counts of all outputs seen, after the horizon divided by each of these numbers."""

    @property
    def fewest_for_refit(self) -> int:
        """Outputs of each side from which counts hold clearly more than the outputs that are kept."""
        return 2 * self.most_vectors


OFTEN_ENOUGH = 20  # times that an output without numbers must be seen before it is bet on with success
KEPT = KeptOutputs()


@dataclass(frozen=True, slots=True)
class Settled:
    """Results of one round for one pair: counts per view and side, outputs to learn from, new exact repeats."""

    counts: tuple[Counts, ...]  # per view: (2, cells), followed by the counts that scores are refitted on
    learn: Sides
    repeats: tuple[tuple[int, Any, int, str], ...] = ()  # (side, key, count, text)


@dataclass(frozen=True, slots=True)
class ViewBuilder:
    """Builds the views of the channel ``value``, and searches later for what they miss."""

    boosted: bool = False
    suspects: tuple[str, ...] = ()

    def __call__(self, sides: Sides) -> Sequence[tuple[View, Counts]]:
        """Build the views; see :func:`build_views`."""
        return build_views(sides, boosted=self.boosted, suspects=self.suspects)


@dataclass
class Learner:
    """Learns views from settled rounds of one pair."""

    build: Builder
    horizon: int = 0  # outputs of each side that may come in all
    points: Points | None = None  # of the claim; with them a late search knows what exceeds it
    seen: int = 0  # outputs of each side settled so far
    won: bool = False  # the pair is expected to refute the claim, so that nothing more is searched
    version: int = 0  # how often scores were fitted on counts
    seconds_to_build: float = 0.0  # expected time of the next rebuild, on twice as many outputs
    views: tuple[View, ...] = ()
    features: bool = True  # compute the features of outputs: in the first round, and later if they are needed
    labels: dict[int, str] = field(default_factory=dict)
    _past: list[Counts] = field(default_factory=list)
    _chosen_on: list[Counts] = field(default_factory=list)  # the part of the past that structures were chosen on
    _older: list[Counts] = field(default_factory=list)
    _snapshot: list[Counts] = field(default_factory=list)
    _kept: list[Sides] = field(default_factory=list)
    _rows: int = 0
    _features_decided: bool = False
    _built_on: int = 0  # the number of kept outputs when views were last built
    _rebuild_at: int = 0
    _studied: dict[str, Counts] = field(default_factory=dict)
    _refits: list[int] = field(default_factory=list)
    _searches: list[int] = field(default_factory=list)
    _late: tuple[View, ...] = ()  # views that a late search has found
    searched: tuple[str, ...] = ()  # what late searches looked at
    _undecided: bool = True  # a late search for interactions may still find something

    def __post_init__(self) -> None:
        # Counts hold more than the kept outputs. Refits come early enough for the new score to be bet on.
        if isinstance(self.build, ViewBuilder) and self.points is not None:
            self._searches = [at for part in SEARCH.shares if (at := self.horizon // part) >= SEARCH.fewest]
        self._refits = [at for part in KEPT.refits if (at := self.horizon // part) >= KEPT.fewest_for_refit]

    def counted(self) -> int:
        """Return the number of outputs of each side on which every view has been counted."""
        return min((int(past[0].sum()) for past in self._past), default=0)

    def rows_to_keep(self, blocks: int = 1) -> int:
        """Return how many outputs of each side every block of the next round should return for learning."""
        return -(-max(0, self._capacity() - self._rows) // blocks)

    @property
    def width(self) -> int:
        """Numbers of an output in the first round, or features if these are needed; at least 1."""
        first = self._kept[0] if self._kept else ()
        of_features = [batch.features.width for batch in first if batch.features is not None]
        return max([1, *(batch.width for batch in first), *of_features])

    def _capacity(self) -> int:
        most = (
            KEPT.most_featured
            if self.features and self.views
            else KEPT.most_vectors
            if self.width > 1
            else KEPT.most_scalars
        )
        few = max(KEPT.least, min(KEPT.fewest, KEPT.most_numbers_of_few // self.width))
        return max(few, min(most, KEPT.most_numbers // self.width))

    def past_counts(self) -> list[tuple[Counts, bool]]:
        """Return cell counts of each view that may be compared with a later round, and whether its cells are ordered.

        If not every structure has a cell, those that do were the most frequent on the outputs that they were chosen on,
        partly by chance, so these outputs are left out.
        """
        fair = [
            past - chosen if isinstance(view, ValueView | SuspectView) and chosen[:, -1].any() else past
            for view, past, chosen in zip(self.views, self._past, self._chosen_on, strict=True)
        ]
        return [(past, view.ordered) for past, view in zip(fair, self.views, strict=True)]

    def plans(self) -> list[Plan]:
        """Return the orders of cells from which bets on the next round are chosen."""
        return [
            plan
            for view, past, older in zip(self.views, self._past, self._older, strict=True)
            for plan in Record(view.name, past, np.zeros_like(past), view.ordered, older).plans
        ]

    @property
    def keeps(self) -> bool:
        """True if outputs are kept; an interrupt may have come before those of the first round were."""
        return bool(self._kept)

    def kept(self) -> Sides:
        """Return the outputs kept for learning, of each side."""
        width = max(batch.width for sides in self._kept for batch in sides)
        return (stack([a for a, _ in self._kept], width=width), stack([b for _, b in self._kept], width=width))

    def coverage(self) -> float:
        """Return the share of outputs that fell where a bet could have been placed.

        Numbers can be bet on whatever they are. An output without numbers must have been seen ``OFTEN_ENOUGH`` times, and show
        more than its type. If features are looked at, an output must have one of them.
        """
        covered = 0
        sides = self.kept()
        scores = [view.score for view in self.views if isinstance(view, ScoreView)]
        features = next((score.features for score in scores if isinstance(score, feature.FeatureScore)), ())
        for batch in sides:
            if features and batch.features is not None:
                covered += int(batch.features.having(features).sum())
                continue
            # One stored code stands for all outputs in the usual case, which needs no sort.
            codes = batch.kinds[:1] if batch.one_code else batch.codes
            distinct, counts = np.unique(codes, return_counts=True)
            counts = counts * (len(batch) // max(codes.size, 1))
            for code, count in zip(distinct.tolist(), counts.tolist(), strict=True):
                label = self.labels.get(code, "")
                often = count > 1 and count * self.seen >= OFTEN_ENOUGH * len(batch)
                covered += count if OPEN in label or (often and OPAQUE not in label) else 0
        return covered / sum(map(len, sides))

    def halves(self) -> tuple[slice, slice]:
        """Return kept outputs to choose an event on, and others to count it on, on which no score was fitted."""
        # A refitted score was fitted on all outputs that came after the views were built.
        rows = self._built_on if self.version else self._rows
        return slice(rows // 2), slice(rows // 2, rows)

    def settle(self, settled: Settled, size: int, *, last: bool = False) -> tuple[Record, ...]:
        """Turn a round into records (bets from the past, counts from the round), and only then learn from it.

        After the ``last`` round nothing is fitted, because no bet will use it.
        """
        counts = [new[:, : view.cells] for view, new in zip(self.views, settled.counts, strict=True)]
        records = tuple(
            Record(view.name, past, new, view.ordered, older)
            for view, past, new, older in zip(self.views, self._past, counts, self._older, strict=True)
        )
        self.seen += size
        self._past = [past + new for past, new in zip(self._past, counts, strict=True)]
        for view, new in zip(self.views, settled.counts, strict=True):
            if new.shape[1] > view.cells:
                self._studied[view.name] = self._studied[view.name] + new[:, view.cells :]
        self._age()
        for batch in settled.learn:
            self.labels.update(batch.labels)
        if self.rows_to_keep() and len(settled.learn[0]):
            self._kept.append(settled.learn)
            self._rows += len(settled.learn[0])
        if last:
            return records
        if self.seen >= self._rebuild_at and self._kept and (self._rows >= self._rebuild_at or not self.views):
            if self.has_a_cell_for_every_output():
                self._rebuild_at = 2 * self._rows
            else:
                self._rebuild()
        elif settled.repeats:
            self._add_records(settled.repeats)
        if self._refits and self.seen >= self._refits[0]:
            self._refit()
        if self._searches and self.seen >= self._searches[0]:
            self._search()
        return records

    def has_a_cell_for_every_output(self) -> bool:
        """Return whether every output seen has a cell of its own, so that new views would be the same."""
        match self.views:
            case (ValueView() as view,):
                return view.lie_in_exact_cells(self._past[0].sum(axis=0))
        return False

    def _rebuild(self) -> None:
        begin = time.monotonic()
        sides = self.kept()
        self._kept = [sides]
        self._rebuild_at = 2 * self._rows
        if not self._features_decided:
            sides = self._decide_on_features(sides)
        built = self.build(sides)
        self.views = tuple(view for view, _ in built)
        self._past = [past for _, past in built]
        half = len(sides[0]) // 2
        self._built_on = self._rows
        if self._refits:
            self._study(sides)
        # Scores were fitted on the first half, and are counted from the middle on.
        first = [Block(batch.rows(slice(half))) for batch in sides]
        middle = [Block(batch.rows(slice(half, half + half // 2))) for batch in sides]
        self._older = [count_cells(view, middle if isinstance(view, ScoreView) else first) for view in self.views]
        self._chosen_on = list(self._older)
        self._snapshot = list(self._past)
        rest = [Block(batch.rows(slice(half, None))) for batch in sides]
        for view in self._late:
            self._add(view, count_cells(view, rest), count_cells(view, middle))
        self.seconds_to_build = 2.0 * (time.monotonic() - begin)

    def _decide_on_features(self, sides: Sides) -> Sides:
        """Decide whether features are computed from now on, and return the outputs to build on.

        Words that hardly repeat among few outputs may do so among more, so features can be given up later, but not taken up.
        """
        needed = feature.are_needed(sides)
        has_some = any(batch.features is not None for batch in sides)
        enough = VIEW_LIMITS.keep_features if needed else VIEW_LIMITS.give_up_features
        self._features_decided = not has_some or self._rows >= enough
        if self._features_decided:
            self.features = needed
        if not needed:
            sides = (sides[0].with_features(None), sides[1].with_features(None))
            if self._features_decided:
                self._kept = [sides]
        return sides

    def _study(self, sides: Sides) -> None:
        """Let views count what a later score is fitted on, beginning with the outputs that they were fitted on."""
        half = len(sides[0]) // 2
        for place, view in enumerate(self.views):
            if isinstance(view, ScoreView) and isinstance(view.score, NaiveBayes):
                score = view.score
                self._studied[view.name] = np.stack([score.study(batch.rows(slice(half)))[1] for batch in sides])
                self.views = (*self.views[:place], replace(view, studies=True), *self.views[place + 1 :])

    def _refit(self) -> None:
        """Fit scores on all counted outputs; their cells and past come from the second half of the kept outputs.

        Outputs kept after the views were built are among those counted, so the past looks a little too good. Bets stay valid,
        because their validity does not depend on the past.
        """
        self._refits.pop(0)
        sides = self.kept()
        half = len(sides[0]) // 2
        rest: Sides = (sides[0].rows(slice(half, None)), sides[1].rows(slice(half, None)))
        for place, view in enumerate(self.views):
            if isinstance(view, ScoreView) and isinstance(view.score, NaiveBayes) and view.studies:
                score = view.score.refitted(self._studied[view.name])
                fresh, past = score_view(view.name, score, rest)
                fresh = replace(fresh, studies=bool(self._refits))
                self.views = (*self.views[:place], fresh, *self.views[place + 1 :])
                self._past[place] = self._snapshot[place] = past
                self._older[place] = count_cells(fresh, [Block(batch.rows(slice(half // 2))) for batch in rest])
                self.version += 1

    def _search(self) -> None:
        """Search for what the views miss, unless they have won something, and add what is found."""
        self._searches = [at for at in self._searches if at > self.seen]
        if self.won or self._late or self.points is None or self.has_a_cell_for_every_output():
            return
        models = self.seen >= SEARCH.models and self.width > 1
        if not (models or self._undecided):
            return
        found = late_views(self.kept(), self.points, grids=self._undecided, models=models)
        self._undecided = found.undecided and self._undecided
        self.searched = tuple(dict.fromkeys([*self.searched, *found.tried]))
        for view, past, older in found.views:
            self._late = (*self._late, view)
            self._add(view, past, older)
        self.version += bool(found.views)  # capital that follows this pair is divided anew

    def _add(self, view: View, past: Counts, older: Counts) -> None:
        self.views = (*self.views, view)
        self._past.append(past)
        self._older.append(older)
        self._snapshot.append(past)
        self._chosen_on.append(older)

    def _age(self) -> None:
        """Keep "older" between a quarter and a half of the past."""
        if self._past and self._past[0].sum() >= 2 * self._snapshot[0].sum():
            self._older, self._snapshot = self._snapshot, list(self._past)

    def _add_records(self, repeats: Sequence[tuple[int, Any, int, str]]) -> None:
        """Give newly repeated outputs a cell; what was counted of them moves out of "everything else"."""
        for place, view in enumerate(self.views):
            if not isinstance(view, RecordView):
                continue
            counts: dict[Any, list[int]] = {}
            text_of_key: dict[Any, str] = {}
            for side, key, count, text in repeats:
                counts.setdefault(key, [0, 0])[side] += count
                text_of_key[key] = text
            free = MOST_RECORDS - view.table.keys.size
            new = sorted(counts, key=lambda key: (-sum(counts[key]), key))[: max(free, 0)]
            if not new:
                return
            keys = np.concatenate([view.table.keys, np.array(new, dtype=view.table.keys.dtype)])
            order = np.argsort(keys)
            past = self._past[place]
            moved = np.array([counts[key] for key in new], dtype=np.int64).T
            other = np.maximum(past[:, -1:] - moved.sum(axis=1, keepdims=True), 0)
            known = np.concatenate([past[:, :-1], moved], axis=1)[:, order]
            self._past[place] = np.concatenate([known, other], axis=1)
            # The older counts of the new cells are not known: they stay in "everything else".
            for kept in (self._older, self._snapshot):
                known = np.concatenate([kept[place][:, :-1], np.zeros_like(moved)], axis=1)[:, order]
                kept[place] = np.concatenate([known, np.minimum(kept[place][:, -1:], other)], axis=1)
            texts = {**view.texts, **{key: text_of_key[key] for key in new}}
            grown = RecordView(KeyTable(keys[order]), texts, view.floats)
            self.views = (*self.views[:place], grown, *self.views[place + 1 :])
