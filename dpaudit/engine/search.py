"""The campaign: which pair of data sets to sample next, and the capital of all of them together.

Every pair owns its share of the capital before it is sampled: half goes in equal parts to the pool that Hypothesis gave,
and the k-th pair proposed later owns 1 / (2 k (k + 1)). Wealth that is not at stake stays as it is, so the sum is a
supermartingale whatever pair is chosen next, and one alpha covers all of them. A list of pairs that is complete from
the start is shared out in equal parts and keeps nothing back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import Claim
from dpaudit.engine.evidence import (
    Floats,
    Points,
    Record,
    Wealth,
    bet_sizes,
    choose_events,
    natural_order,
    sorted_order,
)
from dpaudit.engine.family import parameter_grid
from dpaudit.engine.learning import Builder, Learner
from dpaudit.neighbours import Pair

FIRST_ROUND = 100  # outputs of each side that are only learned from
SMALLEST_ROUND = 50
GROWTH = 0.15  # a round adds this share to what a pair has seen,
LATE_GROWTH = 0.5  # and this share once it has seen so many outputs that a late stop matters less than many rounds
LARGE = 50_000
ANCHORS_AT_ONCE = 16


@dataclass
class Candidate:
    """One pair of data sets under audit."""

    number: int  # names its seeds; 0 is the probe
    pair: Pair
    log_share: float
    wealth: Wealth
    learner: Learner
    rounds: int = 0
    log_wealth: float = 0.0

    @property
    def seen(self) -> int:
        """Outputs of each side settled so far."""
        return self.learner.seen

    def next_size(self) -> int:
        """Outputs of each side in its next round."""
        if not self.rounds:
            return FIRST_ROUND
        growth = GROWTH if self.seen < LARGE else LATE_GROWTH
        return max(SMALLEST_ROUND, math.ceil(growth * self.seen))

    def promise(self, points: Points) -> float:
        """Upper confidence index: the best advantage seen, in standard deviations of one output, plus 1 / sqrt(seen)."""
        if not self.seen:
            return math.inf
        best = -math.inf
        for past, ordered in self.learner.past_counts():
            orders = [sorted_order(past), natural_order(past)] if ordered else [sorted_order(past)]
            choice = choose_events(past, np.stack(orders), points)
            best = max(best, float(choice.right_score.max()), float(choice.left_score.max()))
        return (best + 1.0) / math.sqrt(self.seen)


class Campaign:
    """All candidates of an audit, their common wealth, and the timeline from which bounds are read."""

    def __init__(
        self,
        claim: Claim,
        points: Points,
        pairs: Sequence[Pair],
        *,
        samples: int,
        complete: bool,
        build: Builder,
    ) -> None:
        self.claim = claim
        self.points = points
        self.bets = bet_sizes(samples)
        self.build = build
        self._reserve = 0.0 if complete else 0.5
        self._late = 0
        self.candidates: list[Candidate] = []
        self.timeline: list[tuple[int, tuple[Record, ...]]] = []
        share = math.log((1.0 - self._reserve) / len(pairs))
        for pair in pairs:
            self._add(pair, share)

    def _add(self, pair: Pair, log_share: float) -> Candidate:
        number = len(self.candidates) + 1
        candidate = Candidate(number, pair, log_share, Wealth(self.points, self.bets), Learner(self.build))
        self.candidates.append(candidate)
        return candidate

    def propose(self, pair: Pair) -> Candidate:
        """Add a pair while the audit runs; its share was set aside at the start."""
        self._late += 1
        share = self._reserve / (self._late * (self._late + 1))
        if share <= 0.0:
            raise AssertionError("a complete list of pairs has nothing set aside for proposals")
        return self._add(pair, math.log(share))

    def next_candidate(self) -> Candidate:
        """The most promising pair; pairs never sampled come first, in their order."""
        if len(self.candidates) == 1:
            return self.candidates[0]
        return max(self.candidates, key=lambda candidate: (candidate.promise(self.points), -candidate.number))

    def settle(self, candidate: Candidate, records: tuple[Record, ...]) -> float:
        """Book one round and return the log-wealth of the whole campaign against the claim."""
        if records:
            self.timeline.append((candidate.number, records))
            # A claim of several points is refuted by their average.
            candidate.log_wealth = _log_mean(candidate.wealth.settle(records))
        return self.log_wealth()

    def log_wealth(self) -> float:
        """Log of the capital of all pairs, sampled or not, and of what is set aside."""
        parts = [candidate.log_share + candidate.log_wealth for candidate in self.candidates]
        return float(np.logaddexp.reduce([*parts, *self._set_aside()]))

    def _set_aside(self) -> list[float]:
        kept = self._reserve / (self._late + 1)
        return [math.log(kept)] if kept > 0.0 else []

    def leader(self) -> Candidate:
        """The pair that carries most of the evidence."""
        return max(self.candidates, key=lambda candidate: candidate.log_share + candidate.log_wealth)

    def lower_bound(
        self, points_at: Callable[[float], Points], claimed: float, log_threshold: float, *, largest: float, tied: bool
    ) -> float:
        """Largest grid value such that it and all below are refuted (see ``evidence``: Bound).

        Wealth against a weaker claim is also wealth against a stronger one, so each value may share its stake with values
        above it, in proportions fixed beforehand: in equal parts with the anchor of its interval and, below the claim and
        if ``tied``, with the claim itself. The first makes it unnecessary to look at values below an anchor whose own wealth
        is three times what is needed; the second makes verdict and bound agree, and hold together at alpha.
        """
        grid = parameter_grid(claimed, largest)
        reached, start = 0.0, 0
        for first in range(0, len(grid), ANCHORS_AT_ONCE):
            stretch = grid[first : first + ANCHORS_AT_ONCE]
            best = self._timeline_wealth(points_at, [interval.anchor for interval in stretch]).max(
                axis=0, initial=-math.inf
            )
            strong = best >= log_threshold + math.log(3.0)
            start += len(stretch) if strong.all() else int(np.argmin(strong))
            if not strong.all():
                break
        if start:
            reached = grid[start - 1].anchor
        at_claim = self._timeline_wealth(points_at, [claimed]) if tied and self.timeline else None
        for interval in grid[start:]:
            values = np.array(interval.values)
            own = self._timeline_wealth(points_at, list(interval.values))
            shared = [own, np.broadcast_to(own[:, -1:], own.shape)]
            if at_claim is not None:
                shared.append(np.where(values < claimed, at_claim, -np.inf))
            count = 1.0 + (values < interval.anchor) + (values < claimed if at_claim is not None else 0.0)
            shared[1] = np.where(values < interval.anchor, shared[1], -np.inf)
            wealth = np.logaddexp.reduce(shared, axis=0) - np.log(count)
            refuted = wealth.max(axis=0, initial=-math.inf) >= log_threshold
            if not refuted.all():
                kept = int(np.argmin(refuted))
                return float(interval.values[kept - 1]) if kept else reached
            reached = interval.anchor
        return reached

    def _timeline_wealth(self, points_at: Callable[[float], Points], values: list[float]) -> Floats:
        """Log-wealth of the campaign against each value, after each settled round: shape (rounds, values)."""
        grids = [points_at(value) for value in values]
        width = len(grids[0])
        points = Points(np.concatenate([g.epsilon for g in grids]), np.concatenate([g.delta for g in grids]))
        shares = np.array([candidate.log_share for candidate in self.candidates])
        current = np.zeros((len(self.candidates), len(values)))
        wealth = {candidate.number: Wealth(points, self.bets) for candidate in self.candidates}
        lines = np.empty((len(self.timeline), len(values)))
        aside = self._set_aside()
        for row, (number, records) in enumerate(self.timeline):
            settled = wealth[number].settle(records).reshape(len(values), width)
            current[number - 1] = np.logaddexp.reduce(settled, axis=1) - math.log(width)
            total = np.logaddexp.reduce(shares[:, None] + current, axis=0)
            lines[row] = np.logaddexp(total, aside[0]) if aside else total
        return lines


def _log_mean(values: Floats) -> float:
    return float(np.logaddexp.reduce(values) - math.log(values.size))
