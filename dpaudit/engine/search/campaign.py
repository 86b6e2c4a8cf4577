"""Choose which pair of data sets to sample next, and keep the wealth of all pairs together.

Part of the capital is divided into shares. Every pair owns its share before it is sampled: most goes in equal parts to the pool
that Hypothesis gave, and the k-th pair proposed later owns the part 1 / (k (k + 1)) of what was set aside. Wealth that is
not at stake stays as it is, so the sum is a supermartingale whatever pair is chosen next. A list of pairs that is complete
from the start is shared out in equal parts and keeps nothing back.

The rest follows the leader. Before a round is drawn, the past says which pair it is drawn from and whether that pair is in
the lead; if it is, the follower bets on it with the pair's own bettors, among whom its capital was divided when the pair
took the lead; otherwise the follower keeps what it has. Each bettor's factor has conditional mean at most 1 for every pair,
so for the one chosen too, and the follower's wealth is a supermartingale that pays neither for the number of pairs nor for
what was lost while pairs were explored and bettors learned. One alpha covers shares and follower, because their sum is a
supermartingale that starts from 1. An audit of one pair to refute its claim follows nothing: all capital is the pair's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.claims import Claim, distance_between
from dpaudit.engine.evidence.claim_points import GridStretch, parameter_grid
from dpaudit.engine.evidence.e_process import (
    Bets,
    Floats,
    Points,
    Record,
    choose_events,
    log_mean_exp,
    plug_in_epsilon,
)
from dpaudit.engine.evidence.wealth import Wealth
from dpaudit.engine.sampling.blocks import Sampler
from dpaudit.engine.sampling.serial_dependence import Timeline
from dpaudit.engine.views.learner import Builder, Learner
from dpaudit.neighbours import Pair


@dataclass(frozen=True, slots=True)
class RoundGrowth:
    """Size of the next round of a pair, by what the pair has shown so far.

    Short rounds allow an early stop, long rounds cost less time per output.
    """

    first_round: int = 100
    """Outputs of each side in the first round of a pair, which is only learned from."""
    smallest_round: int = 100
    """Fewest outputs of each side in any later round."""
    near_a_stop: float = 0.2
    """A round adds this share of the outputs seen while the audit may soon stop (see ``Candidate.next_size``)."""
    later: float = 0.5
    """A round of the leading pair adds this share when a stop is not near but it has won something."""
    explored: float = 1.0
    """A round of another pair adds this share."""
    explored_for_bound: float = 3.0
    """The same while a bound explores all pairs: it never stops early, so nothing is gained by short rounds."""
    nothing_won: float = 1.0
    """A round of the leading pair adds this share when it has won nothing yet."""
    of_missing: float = 0.5
    """A round adds at most this share of the outputs that still seem to be missing for a verdict."""
    least: float = 0.05
    """A round adds at least this share of the outputs seen, however few seem to be missing."""
    few_outputs: int = 200
    """Up to this many outputs a stop counts as near whatever was won."""
    early_outputs: int = 1000
    """Up to this many outputs a stop counts as near if the log-wealth is positive."""
    many_outputs: int = 50_000
    """From this many outputs on, a stop that comes a little late costs less than many short rounds."""
    promising: float = 1.0
    """Log-wealth above which a pair is expected to reach the threshold."""


def growth_of(sampler: Sampler) -> RoundGrowth:
    """Return the growth of rounds that suits how calls are made."""
    return GROWTH if sampler.batched else LEAN


@dataclass(frozen=True, slots=True)
class CapitalShares:
    """Division of the capital before anything is drawn."""

    for_proposals: float = 0.25
    """Share kept for pairs that are proposed while the audit runs."""
    follower: float = 0.5
    """Share that follows the leading pair in an audit of several pairs."""
    follower_for_bound: float = 0.9
    """Share that follows the leading pair when a lower bound is the aim."""


@dataclass(frozen=True, slots=True)
class PairChoice:
    """Which pair is sampled next."""

    leader_outputs: int = 3
    """Outputs of the leading pair for each output of all other pairs."""
    convincing_outputs: int = 12
    """The same for a pair that leads because of its wealth."""
    explore: float = 0.3
    """Share of the budget that a bound on several pairs spends before it commits to one."""
    explore_all: float = 0.15
    """Share of the budget up to which none of them is left out."""
    learn: float = 0.03
    """Share of the budget after which a bound on a single pair starts to follow its experts, which have learned by then."""
    followed: float = 1.0
    """Log-wealth from which a leading pair is followed: many pairs lead by chance at first, and each would cost something."""
    convincing: float = 3.0
    """Log-wealth from which the pair with most wealth leads, whatever the confidence indices say."""
    lower_errors: float = 1.7
    """Standard errors below the estimate of the lower index; with fewer, pairs sampled little would seem to lead by chance."""
    upper_errors: float = 3.3
    """Standard errors above the estimate of the upper index, so that a pair with bad luck at first is sampled again."""
    bound_uncertainty: float = 10.0
    """Uncertainty about the epsilon of a pair after one output, for events of a few percent; it falls as 1 / sqrt(outputs).
    Rare events, where epsilon is largest, are seen late, so it covers all events and not only the best so far."""
    change_of_lead: float = 3.0
    """The same for a pair that a bound is read from: another one takes its place if it is better by both uncertainties."""


@dataclass(frozen=True, slots=True)
class BoundReading:
    """Which grid values and pairs a lower bound is computed from."""

    anchors_at_once: int = 12
    """Anchors of the grid whose wealth is computed together."""
    claim_share: float = 0.8
    """Share of the claim's wealth in that of a smaller value, if a verdict is the aim: it then costs log(1 / 0.8) more."""
    claim_share_for_bound: float = 1.0 / 3.0
    """The same if a lower bound is the aim. The value and its anchor share the rest in equal parts."""
    negligible: float = 10.0
    """A pair with this much less log-wealth than the best pair is left out."""
    most_pairs: int = 8
    """The largest number of pairs included for their wealth."""


GROWTH = RoundGrowth()
LEAN = RoundGrowth(
    first_round=6, smallest_round=4, few_outputs=300, near_a_stop=0.1, later=0.2, nothing_won=0.2, explored=0.2
)
"""Short rounds, for mechanisms whose calls make one release each, which may take a second."""
SHARES = CapitalShares()
CHOICE = PairChoice()
READING = BoundReading()
SMALLEST_DISTANCE = 1e-9  # of a pair, where an estimate of epsilon is divided by it


@dataclass
class Candidate:
    """One pair of data sets under audit."""

    number: int  # names its seeds; 0 is the probe
    pair: Pair
    log_share: float
    wealth: Wealth
    learner: Learner
    growth: RoundGrowth = GROWTH
    distance: float = 1.0  # the points to bet against are stretched by it; 1 unless the claim is about a metric
    rounds: int = 0
    log_wealth: float = 0.0
    views_bet_on: int = 0  # version of the views on which the next round is counted
    timeline: Timeline = field(default_factory=Timeline)  # releases in order, where calls make one release each
    _index: tuple[float, float] | None = None
    _shown: float | None = None

    @property
    def seen(self) -> int:
        """Outputs of each side settled so far."""
        return self.learner.seen

    @property
    def _unit(self) -> float:
        """The distance, by which estimates of epsilon are divided; never zero."""
        return max(self.distance, SMALLEST_DISTANCE)

    def next_size(self, *, leading: bool, log_threshold: float = math.inf) -> int:
        """Outputs of each side in its next round.

        Only the leading pair can stop the audit, so only its rounds are short. A bound (``log_threshold`` is infinite) never
        stops early, but rounds of its leading pair stay moderate because bets learn between rounds. Log-wealth grows about
        linearly, so the log-wealth so far predicts how many outputs are missing.
        """
        growth = self.growth
        if not self.rounds:
            return growth.first_round
        promising = self.log_wealth > growth.promising
        near = (
            self.seen < growth.few_outputs
            or (self.log_wealth > 0.0 and self.seen < growth.early_outputs)
            or (promising and self.seen < growth.many_outputs)
        )
        for_bound = log_threshold == math.inf
        if not leading:
            share = growth.explored_for_bound if for_bound else growth.explored
        elif near:
            share = growth.near_a_stop
        else:
            share = growth.later if for_bound or promising else growth.nothing_won
        if leading and promising:
            share = min(share, max(growth.of_missing * (log_threshold / self.log_wealth - 1.0), growth.least))
        return max(growth.smallest_round, math.ceil(share * max(self.learner.counted(), self.seen // 16)))

    def index(self, points: Points, *, bound: bool) -> tuple[float, float]:
        """Return the lower and upper confidence index of the pair, which change only with a round.

        To refute the claim: the best advantage seen, in standard deviations of one output, minus
        ``lower_errors`` and plus ``upper_errors`` standard errors. For the best bound: a low estimate of epsilon, and that plus
        its uncertainty.
        """
        if self._index is None:
            low, high = -math.inf, -math.inf
            counted = [plan.ordered for plan in self.learner.plans() if plan.ordered.sum(axis=1).min() > 0]
            for width in {counts.shape[1] for counts in counted}:
                rows = np.stack([counts for counts in counted if counts.shape[1] == width], axis=1)
                if bound:
                    guess = max(plug_in_epsilon(row[:, None], float(points.delta.min())) for row in rows.swapaxes(0, 1))
                    guess /= self._unit
                    low, high = max(low, guess), max(high, guess + CHOICE.bound_uncertainty / math.sqrt(self.seen))
                else:
                    best = choose_events(rows, points).score.max(axis=(0, 2))
                    root = np.sqrt(rows.sum(axis=2).min(axis=0))
                    low = max(low, float(((best - CHOICE.lower_errors) / root).max()))
                    high = max(high, float(((best + CHOICE.upper_errors) / root).max()))
            self._index = (low, high)
        return self._index

    def shown(self, delta: float) -> float:
        """Return a low estimate of the epsilon of the pair at ``delta``, per unit of distance; it changes only with a round."""
        if self._shown is None:
            plans = [plan.ordered[:, None] for plan in self.learner.plans() if plan.ordered.sum(axis=1).min() > 0]
            self._shown = max((plug_in_epsilon(rows, delta) / self._unit for rows in plans), default=-math.inf)
        return self._shown

    def settled(self, log_wealth: float | None) -> None:
        """Note the log-wealth of the pair after a round (None: the round was only learned from)."""
        self._index = self._shown = None
        if log_wealth is not None:
            self.log_wealth = log_wealth
            self.learner.won = log_wealth > GROWTH.promising


@dataclass(frozen=True, slots=True)
class Round:
    """One settled round: the number of its pair, its counts, and whether the follower bet on it."""

    number: int
    records: tuple[Record, ...]
    segment: int  # 0 if the follower did not bet, else the number of times that the followed pair has changed
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
        growth: RoundGrowth = GROWTH,
    ) -> None:
        self.claim = claim
        self.points = points
        self.bets = Bets.of(samples, for_bound=for_bound)
        self.build = build
        self.for_bound = for_bound
        self._growth = growth
        self._claim_share = READING.claim_share_for_bound if for_bound else READING.claim_share
        self._horizon = samples // 2
        self._reserve = 0.0 if complete else SHARES.for_proposals
        self._late = 0
        several = len(pairs) > 1 or not complete
        followed = SHARES.follower_for_bound if for_bound else SHARES.follower if several else 0.0
        self._log_shares = math.log1p(-followed)
        self._log_follower = math.log(followed) if followed else -math.inf
        self._follow_from = 0.0 if not for_bound else CHOICE.explore if several else CHOICE.learn
        self._followed = np.zeros(len(points))  # log-gain of the follower against each point
        self._segment = 0
        self._lead = (0, 0)  # the pair followed last, and the version of its views
        self._committed: Candidate | None = None  # the pair that a bound is read from, once all were explored
        self.candidates: list[Candidate] = []
        self.timeline: list[Round] = []
        share = math.log((1.0 - self._reserve) / len(pairs))
        for pair in pairs:
            self._add(pair, share)

    def _add(self, pair: Pair, log_share: float) -> Candidate:
        number = len(self.candidates) + 1
        distance = distance_between(self.claim, pair.data, pair.neighbour)
        points = self.points.stretched(distance)
        learner, wealth = Learner(self.build, self._horizon, points), Wealth(points, self.bets)
        candidate = Candidate(number, pair, log_share, wealth, learner, self._growth, distance)
        self.candidates.append(candidate)
        return candidate

    def propose(self, pair: Pair) -> Candidate:
        """Add a pair while the audit runs; its share was set aside at the start."""
        self._late += 1
        share = self._reserve / (self._late * (self._late + 1))
        if share <= 0.0:
            raise AssertionError("a complete list of pairs has nothing set aside for proposals")
        return self._add(pair, math.log(share))

    def keep(self, count: int) -> None:
        """Leave out all pairs but the first ones, before anything is bet: their shares go to those that stay."""
        if self.timeline:
            raise AssertionError("pairs cannot be left out once there was a bet")
        del self.candidates[count:]
        for candidate in self.candidates:
            candidate.log_share = math.log((1.0 - self._reserve) / len(self.candidates))

    @property
    def open_to_proposals(self) -> bool:
        """True if a share is reserved for pairs proposed later."""
        return self._reserve > 0.0

    def most_promising(self) -> Candidate:
        """Return the pair with the largest estimated epsilon, whether that breaks the claim or not.

        Evidence against the claim would not rank the pairs that keep it, so a search could not improve on them.
        """
        sampled = [candidate for candidate in self.candidates if candidate.rounds]
        return max(sampled, key=lambda candidate: candidate.shown(float(self.points.delta.min())))

    def next_candidate(self, spent: float = 0.0) -> tuple[Candidate, bool]:
        """Return the pair to sample next, and whether it is in the lead.

        Pairs never sampled come first, in their order. Then most samples go to the pair with the best lower confidence index
        (among equals the one sampled most, because evidence does not add up across pairs; from a log-wealth of ``convincing``
        on the one with most wealth), the rest to the pair with the best upper index. For a bound, exploration comes first,
        while less than ``explore`` of the budget is ``spent``.
        """
        for candidate in self.candidates:
            if not candidate.rounds:
                return candidate, False
        if len(self.candidates) == 1:
            return self.candidates[0], True
        index = {c.number: c.index(c.wealth.points, bound=self.for_bound) for c in self.candidates}
        leader = max(self.candidates, key=lambda c: index[c.number][0])
        others = [candidate for candidate in self.candidates if candidate is not leader]
        if self.for_bound:
            return self._next_for_bound(index, leader, spent)
        richest, outputs = max(self.candidates, key=lambda c: c.log_wealth), CHOICE.leader_outputs
        if richest.log_wealth > CHOICE.convincing:
            leader, outputs = richest, CHOICE.convincing_outputs
            others = [candidate for candidate in self.candidates if candidate is not leader]
        if leader.seen < outputs * sum(candidate.seen for candidate in others):
            return leader, True
        return max(others, key=lambda c: index[c.number][1]), False

    def _next_for_bound(
        self, index: Mapping[int, tuple[float, float]], best: Candidate, spent: float
    ) -> tuple[Candidate, bool]:
        """Return the next pair where a bound is the aim; ``best`` has the best lower index.

        Pairs are explored evenly, and after a while fewer and fewer of them, in a geometric sequence that ends at one: those
        with the best upper indices. Then one pair stays in the lead until another is clearly better, because among equal pairs
        the best lower index changes hands with every round.
        """
        if spent < CHOICE.explore:
            dropped = max(0.0, (spent - CHOICE.explore_all) / (CHOICE.explore - CHOICE.explore_all))
            count = math.ceil(len(self.candidates) ** (1.0 - dropped))
            hopeful = sorted(self.candidates, key=lambda c: -index[c.number][1])[:count]
            return min(hopeful, key=lambda c: c.seen), False
        leading = self._committed or best
        margin = CHOICE.change_of_lead * (1.0 / math.sqrt(best.seen) + 1.0 / math.sqrt(leading.seen))
        self._committed = best if index[best.number][0] > index[leading.number][0] + margin else leading
        return self._committed, True

    def settle(
        self, candidate: Candidate, records: tuple[Record, ...], *, leading: bool = False, spent: float = 0.0
    ) -> float:
        """Settle one round and return the log-wealth of the whole campaign against the claim.

        Parameters
        ----------
        candidate : Candidate
            The pair from which the round was drawn.
        records : tuple of Record
            The counts of each view; empty for a round that was only learned from.
        leading : bool
            Whether the pair was in the lead before the round was drawn.
        spent : float
            The share of the budget that was spent before the round was drawn.
        """
        if not records:
            candidate.settled(None)
            return self.log_wealth()
        version = candidate.views_bet_on
        candidate.views_bet_on = candidate.learner.version
        convinces = self.for_bound or candidate.log_wealth >= CHOICE.followed
        follows = leading and convinces and spent >= self._follow_from and self._log_follower > -math.inf
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
        """Return the log of the capital of all pairs (sampled or not), of the reserve, and of the follower."""
        parts = [candidate.log_share + candidate.log_wealth for candidate in self.candidates]
        shares = float(np.logaddexp.reduce([*parts, *self._set_aside()]))
        return float(np.logaddexp(self._log_shares + shares, self._log_follower + log_mean_exp(self._followed)))

    def _set_aside(self) -> list[float]:
        kept = self._reserve / (self._late + 1)
        return [math.log(kept)] if kept > 0.0 else []

    def log_stake(self, candidate: Candidate) -> float:
        """Return the log of the share of all capital that bets on the pair once it leads: its own and the follower's."""
        return float(np.logaddexp(self._log_shares + candidate.log_share, self._log_follower))

    def leader(self) -> Candidate:
        """Return the pair that carries most of the evidence."""
        return max(self.candidates, key=lambda candidate: candidate.log_share + candidate.log_wealth)

    def lower_bound(
        self, points_at: Callable[[float], Points], claimed: float, log_threshold: float, *, largest: float, tied: bool
    ) -> float:
        """Return the largest grid value such that it and all smaller ones are refuted (see ``e_process``: Bound).

        Wealth against a weaker claim is also wealth against a stronger one, so each value may share its stake with values
        above it, in proportions fixed beforehand: below the claim and if ``tied``, with the claim itself; and what is left of it
        in equal parts with the anchor of its interval. The first makes verdict and bound agree, and hold together at alpha; the
        second makes it unnecessary to look at values below an anchor whose own wealth suffices for its share.

        Parameters
        ----------
        points_at : callable
            The points to bet against for a grid value.
        claimed : float
            The claimed value, which is on the grid.
        log_threshold : float
            Log-wealth that refutes.
        largest : float
            End of the grid.
        tied : bool
            Whether values below the claim share their stake with the claim.
        """
        grid = parameter_grid(claimed, largest)
        below = [interval for interval in grid if interval.anchor <= claimed]
        # The anchor's share of the wealth against a value is smaller where the claim has a share, too.
        share = (1.0 - self._claim_share) / 2.0 if tied else 0.5
        reached = 0.0
        at_claim = None
        if tied and self.timeline:
            numbers = {candidate.number for candidate in self._relevant()}
            at_claim = np.array([[r.log_wealth] for r in self.timeline if r.number in numbers])
        for part, anchor_share in ((below, share), (grid[len(below) :], 0.5)):
            start = self._anchors_refuted(part, points_at, log_threshold - math.log(anchor_share))
            reached = part[start - 1].anchor if start else reached
            for interval in part[start:]:
                wealth = self._interval_wealth(interval, points_at, claimed, at_claim)
                refuted = wealth.max(axis=0, initial=-math.inf) >= log_threshold
                if not refuted.all():
                    kept = int(np.argmin(refuted))
                    return float(interval.values[kept - 1]) if kept else reached
                reached = interval.anchor
        return reached

    def _anchors_refuted(
        self, grid: Sequence[GridStretch], points_at: Callable[[float], Points], log_threshold: float
    ) -> int:
        """Count the first intervals whose anchor alone refutes all values of the interval."""
        count = 0
        for first in range(0, len(grid), READING.anchors_at_once):
            stretch = grid[first : first + READING.anchors_at_once]
            wealth = self._timeline_wealth(points_at, [interval.anchor for interval in stretch])
            strong = wealth.max(axis=0, initial=-math.inf) >= log_threshold
            if not strong.all():
                return count + int(np.argmin(strong))
            count += len(stretch)
        return count

    def _interval_wealth(
        self, interval: GridStretch, points_at: Callable[[float], Points], claimed: float, at_claim: Floats | None
    ) -> Floats:
        """Return the log-wealth against each value of an interval, its stake shared as :meth:`lower_bound` says."""
        values = np.array(interval.values)
        own = self._timeline_wealth(points_at, list(interval.values))
        with_claim = np.where((values < claimed) & (at_claim is not None), self._claim_share, 0.0)
        with_anchor = np.where(values < interval.anchor, (1.0 - with_claim) / 2.0, 0.0)
        shares = [1.0 - with_claim - with_anchor, with_anchor, with_claim]
        wealth = [own, own[:, -1:], 0.0 if at_claim is None else at_claim]
        with np.errstate(divide="ignore"):
            parts = [part + np.log(share) for part, share in zip(wealth, shares, strict=True)]
        return np.asarray(np.logaddexp.reduce(np.broadcast_arrays(*parts), axis=0))

    def _relevant(self) -> list[Candidate]:
        """Return the pairs that a bound is computed from: the two sampled most, those with most wealth, and those followed.

        Leaving out the others counts the wealth of their shares as zero, so the bound can only fall, however they are chosen. The
        follower's wealth is a product, from which nothing may be left out.
        """
        followed = {r.number for r in self.timeline if r.segment}
        most = sorted(self.candidates, key=lambda candidate: -candidate.seen)[:2]
        top = max(candidate.log_share + candidate.log_wealth for candidate in self.candidates)
        rich = [c for c in self.candidates if c.log_share + c.log_wealth > top - READING.negligible][
            : READING.most_pairs
        ]
        return [c for c in self.candidates if c in most or c in rich or c.number in followed]

    def _timeline_wealth(self, points_at: Callable[[float], Points], values: list[float]) -> Floats:
        """Return the log-wealth of the relevant pairs against each value after each of their rounds, shape (rounds, values)."""
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
            settled, gained[rows] = Wealth(points.stretched(candidate.distance), self.bets).settle_all(
                [timeline[row].records for row in rows], [timeline[row].segment for row in rows]
            )
            settled = settled.reshape(len(rows), len(values), width)
            own = np.concatenate([np.zeros((1, len(values))), log_mean_exp(settled)])
            sofar = np.searchsorted(rows, np.arange(len(timeline)), side="right")
            shares = np.logaddexp(shares, candidate.log_share + own[sofar])
        follower = log_mean_exp(np.cumsum(gained, axis=0).reshape(len(timeline), len(values), width))
        return np.logaddexp(self._log_shares + shares, self._log_follower + follower)
