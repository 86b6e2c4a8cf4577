"""The campaign: which pair of data sets to sample next, and the capital of all of them together.

Part of the capital is held in shares. Every pair owns its share before it is sampled: most goes in equal parts to the pool
that Hypothesis gave, and the k-th pair proposed later owns the part 1 / (k (k + 1)) of what was set aside. Wealth that is
not at stake stays as it is, so the sum is a supermartingale whatever pair is chosen next. A list of pairs that is complete
from the start is shared out in equal parts and keeps nothing back.

The rest follows the leader. Before a round is drawn, the past says which pair it is drawn from and whether that pair is in
the lead; if it is, the follower bets on it with the pair's own bettors, among whom he shared out his capital when the pair
took the lead; otherwise he keeps what he has. Each bettor's factor has conditional mean at most 1 for every pair, so for
the one chosen too, and the follower's wealth is a supermartingale that pays neither for the number of pairs nor for what
was lost while pairs were explored and bettors learned. One alpha covers shares and follower, because their sum is a
supermartingale that starts from 1. An audit of one pair to refute its claim follows nothing: all capital is the pair's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import Claim
from dpaudit.engine.evidence import (
    Bets,
    Floats,
    Points,
    Record,
    choose_events,
    log_mean_exp,
    plug_in_epsilon,
)
from dpaudit.engine.family import parameter_grid
from dpaudit.engine.learning import Builder, Learner
from dpaudit.engine.wealth import Wealth
from dpaudit.neighbours import Pair

FIRST_ROUND = 100  # outputs of each side that are only learned from
SMALLEST_ROUND = 50
GROWTH = 0.2  # a round adds this share to what a pair has seen, while a stop may be near:
FEW = 300  # outputs, or
EARLY = 1000  # outputs with some gain, or
HOPEFUL = 1.0  # log-wealth;
LARGE = 50_000  # outputs, after which a stop a little late matters less than many rounds;
LATE_GROWTH = 0.5  # this share otherwise, because rounds have a cost of their own,
HOPELESS_GROWTH = 1.0  # and this one where nothing was won yet
OF_MISSING = 0.5  # at most this share of what seems to be missing is drawn at once,
LEAST_GROWTH = 0.05  # or this one of what was seen
RESERVED = 0.25  # of the capital, for pairs proposed while the audit runs
LEADERS_SHARE = 3  # outputs of the leading pair for each output of all others
EXPLORE = 0.3
FOLLOWED = 0.5  # share of the capital that follows the leader,
FOLLOWED_FOR_BOUND = 0.9  # and where a bound is wanted
LEARN = 0.03  # share of the budget after which a bound on a single pair starts afresh, its experts having learned
CONVINCING = 3.0  # log-wealth of a pair
CAUTION = 2.0  # standard errors: more than chance shows, or pairs sampled little would always seem to lead
DOUBT = 3.0  # standard errors: a pair that was unlucky at first is looked at again
HOPE = 10.0  # doubt about the epsilon of a pair after one output, for events of a few percent
ANCHORS_AT_ONCE = 12
NEGLIGIBLE = 10.0  # so much less log-wealth than the richest pair adds nothing
MOST_RELEVANT = 8


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
    views_bet_on: int = 0  # version of the views on which the next round is counted
    _index: tuple[float, float] | None = None

    @property
    def seen(self) -> int:
        """Outputs of each side settled so far."""
        return self.learner.seen

    def next_size(self, *, leading: bool, log_threshold: float = math.inf) -> int:
        """Outputs of each side in its next round.

        A pair that is only explored needs no fine stopping, and a bound (whose threshold is infinite) no stopping at all,
        but on the leading pair bets that learn on the way. Evidence grows about evenly, so what was won tells how many
        outputs are missing.
        """
        if not self.rounds:
            return FIRST_ROUND
        hopeful = self.log_wealth > HOPEFUL
        near = self.seen < FEW or (self.log_wealth > 0.0 and self.seen < EARLY) or (hopeful and self.seen < LARGE)
        if leading and near:
            growth = GROWTH
        else:
            for_bound = log_threshold == math.inf
            growth = LATE_GROWTH if (leading if for_bound else hopeful or not leading) else HOPELESS_GROWTH
        if leading and hopeful:
            growth = min(growth, max(OF_MISSING * (log_threshold / self.log_wealth - 1.0), LEAST_GROWTH))
        return max(SMALLEST_ROUND, math.ceil(growth * max(self.learner.counted(), self.seen // 16)))

    def index(self, points: Points, *, bound: bool) -> tuple[float, float]:
        """Lower and upper confidence index of the pair, computed anew only after a round.

        To refute the claim: the best advantage seen, in standard deviations of one output, less ``CAUTION`` and plus
        ``DOUBT`` standard errors. For the best bound: a cautious and a hopeful guess of its epsilon.
        """
        if self._index is None:
            low, high = -math.inf, -math.inf
            for plan in self.learner.plans():
                if plan.ordered.sum(axis=1).min() == 0:
                    continue
                if bound:
                    guess = plug_in_epsilon(plan.ordered[:, None], float(points.delta.min()))
                else:
                    choice = choose_events(plan.ordered[:, None], points)
                    best = float(choice.score.max())
                    n = float(plan.ordered.sum(axis=1).min())
                    guess = ((best - CAUTION) / math.sqrt(n), (best + DOUBT) / math.sqrt(n))
                low, high = max(low, guess[0]), max(high, guess[1])
            # Rare events, where epsilon is largest, show late: doubt is for all events, not for the best one so far.
            self._index = (low, max(high, 0.0) + HOPE / math.sqrt(self.seen) if bound else high)
        return self._index

    def shown(self, delta: float) -> float:
        """A cautious guess of its epsilon at ``delta``."""
        plans = [plan.ordered[:, None] for plan in self.learner.plans() if plan.ordered.sum(axis=1).min() > 0]
        return max((plug_in_epsilon(rows, delta)[0] for rows in plans), default=-math.inf)

    def settled(self, log_wealth: float | None) -> None:
        """A round was booked."""
        self._index = None
        if log_wealth is not None:
            self.log_wealth = log_wealth


@dataclass(frozen=True, slots=True)
class Round:
    """One settled round: the pair it was drawn from, what was counted, and whether the follower bet on it."""

    number: int
    records: tuple[Record, ...]
    segment: int  # 0 where the follower did not bet, else the number of changes of the pair that he followed
    log_wealth: float  # of the whole campaign against the claim, afterwards


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
        for_bound: bool = False,
    ) -> None:
        self.claim = claim
        self.points = points
        self.bets = Bets.of(samples, for_bound=for_bound)
        self.build = build
        self.for_bound = for_bound
        self._horizon = samples // 2
        self._reserve = 0.0 if complete else RESERVED
        self._late = 0
        several = len(pairs) > 1 or not complete
        followed = FOLLOWED_FOR_BOUND if for_bound else FOLLOWED if several else 0.0
        self._log_shares = math.log1p(-followed)
        self._log_follower = math.log(followed) if followed else -math.inf
        self._follow_from = 0.0 if not for_bound else EXPLORE if several else LEARN
        self._followed = np.zeros(len(points))  # log-gain of the follower against each point
        self._segment = 0
        self._lead = (0, 0)  # the pair followed last, and the version of its views
        self.candidates: list[Candidate] = []
        self.timeline: list[Round] = []
        share = math.log((1.0 - self._reserve) / len(pairs))
        for pair in pairs:
            self._add(pair, share)

    def _add(self, pair: Pair, log_share: float) -> Candidate:
        number = len(self.candidates) + 1
        learner = Learner(self.build, self._horizon)
        candidate = Candidate(number, pair, log_share, Wealth(self.points, self.bets), learner)
        self.candidates.append(candidate)
        return candidate

    def propose(self, pair: Pair) -> Candidate:
        """Add a pair while the audit runs; its share was set aside at the start."""
        self._late += 1
        share = self._reserve / (self._late * (self._late + 1))
        if share <= 0.0:
            raise AssertionError("a complete list of pairs has nothing set aside for proposals")
        return self._add(pair, math.log(share))

    @property
    def open_to_proposals(self) -> bool:
        """Whether a share was set aside for pairs proposed later."""
        return self._reserve > 0.0

    def most_promising(self) -> Candidate:
        """The pair that shows the largest epsilon so far, whether that breaks the claim or not.

        Against the claim itself all pairs that keep it look alike, and a climb would have no direction.
        """
        sampled = [candidate for candidate in self.candidates if candidate.rounds]
        return max(sampled, key=lambda candidate: candidate.shown(float(self.points.delta.min())))

    def next_candidate(self, spent: float = 0.0) -> tuple[Candidate, bool]:
        """The pair to sample next, and whether it is in the lead.

        Pairs never sampled come first, in their order. Then most samples go to the pair with the best lower confidence index
        (of equal pairs the one sampled most, because evidence does not add up across pairs; and once one has won something,
        the richest), the rest to the pair with the best upper one. For a bound the exploration comes first, while less than
        ``EXPLORE`` of the budget is ``spent``.
        """
        for candidate in self.candidates:
            if not candidate.rounds:
                return candidate, False
        if len(self.candidates) == 1:
            return self.candidates[0], True
        index = {c.number: c.index(self.points, bound=self.for_bound) for c in self.candidates}
        leader = max(self.candidates, key=lambda c: index[c.number][0])
        others = [candidate for candidate in self.candidates if candidate is not leader]
        if self.for_bound:
            # Explore evenly among the pairs that may still be the best, then commit.
            alive = [c for c in self.candidates if index[c.number][1] >= index[leader.number][0]]
            return (min(alive, key=lambda c: c.seen), False) if spent < EXPLORE else (leader, True)
        richest = max(self.candidates, key=lambda c: c.log_wealth)
        if richest.log_wealth > CONVINCING:
            leader = richest
            others = [candidate for candidate in self.candidates if candidate is not leader]
        if leader.seen < LEADERS_SHARE * sum(candidate.seen for candidate in others):
            return leader, True
        return max(others, key=lambda c: index[c.number][1]), False

    def settle(
        self, candidate: Candidate, records: tuple[Record, ...], *, leading: bool = False, spent: float = 0.0
    ) -> float:
        """Book one round and return the log-wealth of the whole campaign against the claim.

        ``leading`` and ``spent`` are what was known before the round was drawn.
        """
        if not records:
            candidate.settled(None)
            return self.log_wealth()
        version = candidate.views_bet_on
        candidate.views_bet_on = candidate.learner.version
        follows = leading and spent >= self._follow_from and self._log_follower > -math.inf
        if follows and self._lead != (candidate.number, version):
            self._lead = (candidate.number, version)
            self._segment += 1
        segment = self._segment if follows else 0
        # A claim of several points is refuted by their average.
        wealth, gained = candidate.wealth.settle(records, segment)
        candidate.settled(float(log_mean_exp(wealth)))
        self._followed = self._followed + gained
        self.timeline.append(Round(candidate.number, records, segment, self.log_wealth()))
        return self.timeline[-1].log_wealth

    def log_wealth(self) -> float:
        """Log of the capital of all pairs, sampled or not, of what is set aside, and of the follower."""
        parts = [candidate.log_share + candidate.log_wealth for candidate in self.candidates]
        shares = float(np.logaddexp.reduce([*parts, *self._set_aside()]))
        return float(np.logaddexp(self._log_shares + shares, self._log_follower + log_mean_exp(self._followed)))

    def _set_aside(self) -> list[float]:
        kept = self._reserve / (self._late + 1)
        return [math.log(kept)] if kept > 0.0 else []

    def log_stake(self, candidate: Candidate) -> float:
        """Log of the part of all capital that the pair owned from the start."""
        return self._log_shares + candidate.log_share

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
        at_claim = None
        if tied and self.timeline:
            places = {candidate.number for candidate in self._relevant()}
            at_claim = np.array([[r.log_wealth] for r in self.timeline if r.number in places])
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

    def _relevant(self) -> list[Candidate]:
        """The pairs that can carry a bound: the most sampled ones, those whose wealth counts, and those followed.

        Leaving out the others counts the wealth of their shares as zero, so the bound can only fall, whatever the choice
        depends on. The follower's wealth is a product, from which nothing may be left out.
        """
        followed = {r.number for r in self.timeline if r.segment}
        most = sorted(self.candidates, key=lambda candidate: -candidate.seen)[:2]
        top = max(candidate.log_share + candidate.log_wealth for candidate in self.candidates)
        rich = [c for c in self.candidates if c.log_share + c.log_wealth > top - NEGLIGIBLE][:MOST_RELEVANT]
        return [c for c in self.candidates if c in most or c in rich or c.number in followed]

    def _timeline_wealth(self, points_at: Callable[[float], Points], values: list[float]) -> Floats:
        """Log-wealth of the relevant pairs against each value, after each of their rounds: shape (rounds, values)."""
        grids = [points_at(value) for value in values]
        width = len(grids[0])
        points = Points(np.concatenate([g.epsilon for g in grids]), np.concatenate([g.delta for g in grids]))
        relevant = {candidate.number: candidate for candidate in self._relevant()}
        timeline = [r for r in self.timeline if r.number in relevant]
        shares = np.full((len(timeline), len(values)), -math.inf)
        gained = np.zeros((len(timeline), len(points)))  # by the follower, in each round
        for number, candidate in relevant.items():
            rows = [row for row, r in enumerate(timeline) if r.number == number]
            if not rows:
                continue
            settled, gained[rows] = Wealth(points, self.bets).settle_all(
                [timeline[row].records for row in rows], [timeline[row].segment for row in rows]
            )
            settled = settled.reshape(len(rows), len(values), width)
            own = np.concatenate([np.zeros((1, len(values))), log_mean_exp(settled)])
            sofar = np.searchsorted(rows, np.arange(len(timeline)), side="right")
            shares = np.logaddexp(shares, candidate.log_share + own[sofar])
        follower = log_mean_exp(np.cumsum(gained, axis=0).reshape(len(timeline), len(values), width))
        return np.logaddexp(self._log_shares + shares, self._log_follower + follower)
