"""Pairs of data sets whose calls are timed: their calls so far, the bets on the labels, and the choice of the next pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.engine.evidence.e_process import Counts, Floats, Points, choose_events, natural_order, sorted_order
from dpaudit.engine.timing.clock import Times
from dpaudit.engine.timing.label_bets import LabelWealth
from dpaudit.neighbours import Pair

REMEMBERED = 50_000  # calls of a pair that events are learned from: the latest
RECENT = 32  # calls just before one that it is compared with
LEADERS_SHARE = 3  # calls of the leading pair for each call of all others


@dataclass
class LabelledCalls:
    """One comparison of two data sets: its calls so far, and the wealth of the bets on their labels."""

    wealth: LabelWealth
    labels: Times = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    nanoseconds: Times = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    relative: Floats = field(default_factory=lambda: np.zeros(0))  # durations by those of the calls just before
    seen: int = 0
    log_wealth: float = 0.0

    def settle(self, labels: Times, nanoseconds: Times) -> tuple[tuple[Counts, Counts], ...]:
        """Bet on a block by the past, then learn from it; return the counts of past and block in both views."""
        relative = relative_to_recent(self.nanoseconds, nanoseconds)
        views = []
        for before, now in ((self.nanoseconds, nanoseconds), (self.relative, relative)):
            cuts = cuts_of(before)
            views.append((counts_of(self.labels, before, cuts), counts_of(labels, now, cuts)))
        if self.seen:
            against = self.wealth.settle(views)
            self.log_wealth = float(np.logaddexp.reduce(against) - math.log(against.size))
        self.labels = np.concatenate([self.labels, labels])[-REMEMBERED:]
        self.nanoseconds = np.concatenate([self.nanoseconds, nanoseconds])[-REMEMBERED:]
        self.relative = np.concatenate([self.relative, relative])[-REMEMBERED:]
        self.seen += labels.size
        return tuple(views)


@dataclass
class TimedPair:
    """A pair under audit: the comparison of D with D', and the control of D with a copy of D."""

    number: int
    pair: Pair
    copy: Any
    comparison: LabelledCalls
    control: LabelledCalls

    def score(self, points: Points) -> float:
        """The best advantage seen, in standard errors."""
        best = 0.0
        for durations in (self.comparison.nanoseconds, self.comparison.relative):
            past = counts_of(self.comparison.labels, durations, cuts_of(durations))
            if past.sum(axis=1).min() > 0 and past.shape[1] > 1:
                choice = choose_events(past[:, np.stack([natural_order(past), sorted_order(past)])], points)
                best = max(best, float(choice.score.max()))
        return best


def relative_to_recent(before: Times, now: Times) -> Floats:
    """Each duration over the lower quartile of the calls just before it: steady on a machine that speeds up or slows down.

    It is a function of the call and of earlier ones, so it may be bet on like the duration itself.

    >>> relative_to_recent(np.full(40, 100), np.array([100, 300])).tolist()
    [1.0, 3.0]
    """
    if not now.size:  # interrupted before the first call of a block
        return np.zeros(0)
    line = np.concatenate([before[-RECENT:], now]).astype(np.float64)
    line = np.concatenate([np.full(RECENT - min(before.size, RECENT), np.nan), line])
    windows = np.lib.stride_tricks.sliding_window_view(line[:-1], RECENT)
    known = ~np.isnan(windows).any(axis=1)
    recent = now.astype(np.float64)  # the very first calls have nothing to be compared with
    recent[known] = np.partition(windows[known], RECENT // 4, axis=1)[:, RECENT // 4]
    return np.asarray(now / np.maximum(recent, 1.0))


def cuts_of(durations: Times | Floats) -> Floats:
    """Between cells of equal mass, finer towards both ends: rare long calls are where loops show."""
    if not durations.size:
        return np.zeros(0)
    cells = 16 if durations.size < 2_000 else 32
    tails = 2.0 ** -np.arange(1, max(1, int(math.log2(durations.size / (10.0 * cells)))) + 1) / cells
    levels = np.concatenate([np.arange(1, cells) / cells, tails, 1.0 - tails])
    return np.unique(np.quantile(durations, np.sort(levels), method="higher")).astype(np.float64)


def counts_of(labels: Times, durations: Times | Floats, cuts: Floats) -> Counts:
    """Calls in each cell, by label."""
    cell = np.searchsorted(cuts, durations, side="right")
    return np.stack([np.bincount(cell[labels == label], minlength=cuts.size + 1) for label in (0, 1)]).astype(np.int64)


def next_pair(timed_pairs: Sequence[TimedPair], points: Points) -> TimedPair:
    """Return the next pair: each once, then mostly the one with the largest difference between its sides.

    The choice may depend on all calls so far: wealth that is not at stake stays as it is.
    """
    for timed_pair in timed_pairs:
        if not timed_pair.comparison.seen:
            return timed_pair
    if len(timed_pairs) == 1:
        return timed_pairs[0]
    root = {timed_pair.number: math.sqrt(timed_pair.comparison.seen) for timed_pair in timed_pairs}
    score = {timed_pair.number: timed_pair.score(points) for timed_pair in timed_pairs}
    leader = max(timed_pairs, key=lambda timed_pair: (score[timed_pair.number] - 1.0) / root[timed_pair.number])
    others = [timed_pair for timed_pair in timed_pairs if timed_pair is not leader]
    if leader.comparison.seen < LEADERS_SHARE * sum(timed_pair.comparison.seen for timed_pair in others):
        return leader
    return max(others, key=lambda timed_pair: (score[timed_pair.number] + 1.0) / root[timed_pair.number])
