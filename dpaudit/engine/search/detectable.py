"""Compute the smallest epsilon that an audit would have detected.

The alternative: on one of the pairs there is an event of probability ``mass + delta`` on one side whose probability on the
other is ``mass / exp(epsilon)``; all other pairs keep the claim. Where outputs repeat, the event is any set of the values
that have cells of their own; where they are numbers, an end of the range; where they are vectors, an end of the range of one
coordinate, the others carrying no information. The log-wealth of a bettor that knows the event, with the best of the fixed
bet sizes, is a sum of independent terms, so its mean and variance are known exactly. The audit detects ``epsilon`` if the
mean minus ``spreads`` standard deviations passes the threshold plus the cost of mixing over experts, bet sizes and pairs
(``PowerModel`` has the constants).

The audit has to find the event, and the cost of that depends on the outputs (``SearchCost``). Of outputs that hold the event
x times, the share ``bet_on`` x / (x + ``spent``) counts as bet on by a bettor that knows it. Among numbers the cells do not
end exactly at the event: they are quantiles, and beyond the last of them each is half as wide as the one before, so that up
to a third of a rare event is lost. Among words (or other outputs that repeat) every word of the event has to be found by
itself: that takes a number of outputs in proportion to the words, and more of them if epsilon is small, because a word that
leaks must stand out from those that do not. Nothing is promised about outputs that have no cell of their own, about the
rarest words, and about words that were hardly more frequent than the last one in a full table: the words of a table are those
most frequent on both sides together, and a word that leaks is rarer on one of them.

The audit also has to find the pair. Until the pair with the leak takes the lead, most outputs go to another one
(``PairCost``). The constants come from simulated audits: at least 9 in 10 succeed at the epsilon computed here
(``python -m benchmarks promises``, and ``tests/engine/search/test_promises.py``). An interval inside the range has two such
ends: it needs up to twice the outputs, and if it is narrower than a cell it is not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpaudit.claims import Claim, GaussianDP, RenyiDP, ZeroConcentratedDP
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.evidence.e_process import LARGEST_EXPONENT, MANY_CELLS, Floats, Points, bet_sizes
from dpaudit.engine.evidence.wealth import RESERVE
from dpaudit.engine.views.learner import Learner
from dpaudit.engine.views.suspect_view import SuspectView
from dpaudit.engine.views.view import MOST_RECORDS, RecordView, ScoreView, ShapeView, ValueView, View

MASSES = (0.5, 0.1, 0.01, 0.001)  # probabilities of the events that are reported
HEADLINE = 0.1  # the mass of the one number in a result
ZERO_SHARE = 1e-300  # stands for zero in a log-ratio


@dataclass(frozen=True, slots=True)
class PowerModel:
    """Constants of the model above."""

    spreads: float = 1.3
    """Standard deviations below the mean: the log-wealth exceeds that value in 9 of 10 audits."""
    largest_epsilon: float = 100.0
    """A larger detectable epsilon is reported as infinite."""
    steps: int = 16
    """Each refinement divides the interval that holds the result into so many parts."""
    refinements: int = 3
    """The number of refinements. The upper end of the last interval is reported."""
    bet_on: float = 0.8
    """The share of the outputs that count as bet on if an event is found at once."""
    range_cells: float = 35.0
    """Cells into which a range is cut: at its end an event loses one cell or less."""
    least_inside: float = 2.0 / 3.0
    """The smallest share of an event that lies inside whole cells."""


@dataclass(frozen=True, slots=True)
class PairCost:
    """Outputs that are used up before the pair with the leak leads, in an audit of several pairs."""

    first: float = 100.0
    """Outputs of each pair before any pair leads."""
    errors: float = 2.0
    """Standard errors by which the advantage of the pair must stand out before it leads."""
    per_output: float = 10.0
    """Outputs drawn on all pairs, for each output of each pair: another pair leads, in rounds that double."""

    def left(self, per_side: int, pairs: int, found_after: Floats, explored: float | None) -> Floats:
        """Return the outputs that are left when the pair leads, if it stands out after ``found_after`` of its own.

        An audit for a bound shares the part ``explored`` of its outputs among the pairs, and then keeps to one.
        """
        if pairs == 1:
            return np.full_like(found_after, per_side)
        if explored is not None:
            return np.where(pairs * found_after <= explored * per_side, (1.0 - explored) * per_side, 0.0)
        spent = pairs * (self.first + self.per_output * np.maximum(found_after - self.first, 0.0))
        return np.maximum(per_side - spent, 0.0)


POWER = PowerModel()
PAIRS = PairCost()


@dataclass(frozen=True, slots=True)
class SearchCost:
    """Cost of finding an event."""

    experts: int  # experts that share the capital
    spent: float  # outputs inside the event that are used up before it is found
    cells: float = POWER.range_cells  # cells of a range; infinite if every value has its own
    rarest: float = 0.0  # events of smaller probability are not seen, because scores join values into groups
    values: int = 0  # distinct values of which each has to be found by itself
    covered: float = 1.0  # share of the outputs that have a cell of their own

    def inside(self, mass: Floats) -> Floats:
        """Return the share of the outputs that would count as bet on if the event were found at once."""
        inside = np.maximum(1.0 - 1.0 / (self.cells * mass), POWER.least_inside)
        return np.where(mass < self.rarest, 0.0, POWER.bet_on * self.covered * inside)

    def known(self, mass: Floats, epsilon: Floats, claimed: float, per_side: Floats) -> Floats:
        """Return the outputs that count as bet on by a bettor that knows the event."""
        later = self.spent / mass + self.values * OUTPUTS_PER_VALUE * _purity(epsilon, claimed)
        return np.asarray(self.inside(mass) * per_side**2 / np.maximum(per_side + later, 1.0))

    def found_after(self, mass: Floats, bet_on: Floats) -> Floats:
        """Return the outputs of a pair after which so many have shown what a bettor that knows the event would see."""
        inside = np.maximum(self.inside(mass), 1e-12)
        later = self.spent / mass + self.values * FIRST_PER_VALUE[self.values > MANY_CELLS]
        return np.asarray((bet_on + np.sqrt(bet_on**2 + 4.0 * inside * bet_on * later)) / (2.0 * inside))


def _purity(epsilon: Floats, claimed: float) -> Floats:
    """Return by which factor values have to be seen more often, so that bets are on those that leak and on no others.

    A value that leaks is distinguished from one that does not by a number of outputs that grows as 1 / (1 - exp(-epsilon))^2;
    the power 3 is calibrated, because values are also put in order. One that does not leak costs e^claimed - 1 where one that
    leaks brings 1 - e^(claimed - epsilon), so the closer epsilon is to the claim the fewer may be confused.
    """
    cost = np.expm1(min(claimed, LARGEST_EXPONENT)) / -np.expm1(-np.maximum(epsilon - claimed, 1e-9))
    return np.asarray((1.0 + cost) / (-np.expm1(-np.maximum(epsilon, 1e-9))) ** 3)


COST_OF_NUMBERS = SearchCost(4, 20.0)
OUTPUTS_PER_VALUE = (
    20.0  # outputs for each distinct value, times `_purity`, after which half of the next count as bet on
)
# Outputs for each distinct value before a leak shows in the index of a pair: with few values, and with more than ``MANY_CELLS``,
# where a part of the outputs orders the values and only the rest decides.
FIRST_PER_VALUE = 5.0, 50.0
FREQUENT = 0.95  # the most frequent values that make up this share of the outputs have to be found
SURE_OF_A_CELL = 2.0  # a value this many times as frequent as the last one in a full table has a cell also if it leaks
EXPERTS_OF_A_VIEW = 3  # of a suspect or a feature
SPENT_ON_FEATURES = (
    100.0  # outputs inside an event of one feature that are used up before it is found among all features
)


def search_cost(learner: Learner) -> SearchCost:
    """Return the cost for the views of a learner."""
    views = [view for view in learner.views if not isinstance(view, SuspectView) and not view.needs_features]
    cost, scores = COST_OF_NUMBERS, sum(isinstance(view, ScoreView) for view in views)
    if scores:
        cost = SearchCost(4 * scores, 600.0, rarest=1.0 / 32.0)
    elif any(view.needs_features for view in learner.views):
        cost = SearchCost(3, SPENT_ON_FEATURES)
    elif all(isinstance(view, RecordView | ShapeView) or _without_numbers(view) for view in views):
        tables = [past.sum(axis=0) for past, _ in learner.past_counts()]
        cost = _cost_of_values(max(tables, key=lambda table: table.size, default=np.zeros(1, np.int64)))
    elif learner.has_a_cell_for_every_output():
        cost = SearchCost(3, 20.0, math.inf)
    return replace(cost, experts=cost.experts + EXPERTS_OF_A_VIEW * (len(learner.views) - len(views)))


def _without_numbers(view: View) -> bool:
    return isinstance(view, ValueView) and not any(view.lines)


def _cost_of_values(table: NDArray[np.int64]) -> SearchCost:
    """Return the cost for outputs that repeat, from the counts of each; the last count is that of all others."""
    drawn = max(int(table.sum()), 1)
    frequency, others = np.sort(table[:-1][table[:-1] > 0])[::-1], table[-1]
    if others and frequency.size >= MOST_RECORDS:
        frequency = frequency[frequency >= SURE_OF_A_CELL * frequency[-1]]
        if 2 * frequency.sum() < drawn:  # most outputs have no cell, and an event may be made of them
            frequency = frequency[:0]
    values = int((frequency.cumsum() - frequency < FREQUENT * drawn).sum())
    return SearchCost(3, 20.0, math.inf, values=values, covered=float(frequency.sum() / drawn))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The extent of an audit, on which its power depends."""

    per_side: int
    """Outputs of each side, of all pairs together."""
    log_threshold: float
    """Log-wealth that refutes the claim."""
    log_share: float
    """Log of the share of the capital that bets on the pair once it leads."""
    samples: int
    """The budget, which fixes the bet sizes."""
    cost: SearchCost = COST_OF_NUMBERS
    """Cost of finding the event."""
    pairs: int = 1
    """Pairs that were sampled, of which one leaks."""
    explored: float | None = None
    """The share of the outputs that an audit for a bound divides among the pairs; None if the audit is to refute the claim."""


def detectable_epsilon(claim: Claim, extent: Extent) -> dict[float, float]:
    """Return, for each mass, the smallest epsilon of the alternative that an audit of this extent detects (infinite if none)."""
    model = _Model.of(claim, extent)
    points = model.points
    mass = np.array(MASSES)
    low = np.full(mass.size, float(points.epsilon.min()))
    high = np.full(mass.size, max(2.0 * float(points.epsilon.max()), 1.0))
    while (missed := (model.margin(mass, high) < 0.0) & (high <= POWER.largest_epsilon)).any():
        high[missed] *= 2.0
    column = np.arange(mass.size)
    for _ in range(POWER.refinements):
        ladder = low + (high - low) * np.arange(POWER.steps + 1)[:, None] / POWER.steps
        margin = model.margin(np.tile(mass, POWER.steps - 1), ladder[1:-1].ravel())
        found = np.concatenate([margin.reshape(POWER.steps - 1, -1) >= 0.0, np.ones((1, mass.size), bool)])
        first = found.argmax(axis=0)
        low, high = ladder[first, column], ladder[first + 1, column]
    return {
        m: float(value) if value <= POWER.largest_epsilon else math.inf for m, value in zip(MASSES, high, strict=True)
    }


def detects_multiple(claim: Claim, factor: float, extent: Extent) -> bool:
    """Return whether an audit of this extent detects a mechanism that leaks ``factor`` times what a claim that is a curve allows.

    The mechanism is a Gaussian one where the claim is about moments or Gaussian DP, and otherwise one that has the whole curve.
    The best of all ends of its range decides: which one that is depends on the claim, so no single mass stands for all.
    """
    heavy = np.concatenate([np.geomspace(1e-6, 0.1, 60), np.linspace(0.1, 0.9999, 60)])
    light = _lighter_side(claim, factor, heavy)
    epsilon = np.log(heavy / np.maximum(light, ZERO_SHARE))
    return bool((_Model.of(claim, extent).margin_of(heavy, light, heavy, epsilon) >= 0.0).any())


def _lighter_side(claim: Claim, factor: float, heavy: Floats) -> Floats:
    """Return the smallest probabilities, on the other side, of events with these on one side, at ``factor`` times the claim."""
    match claim:
        case GaussianDP(mu=mu):
            return np.asarray(ndtr(ndtri(heavy) - factor * mu))
        case ZeroConcentratedDP(rho=rho):
            return np.asarray(ndtr(ndtri(heavy) - math.sqrt(2.0 * factor * rho)))
        case RenyiDP(order=order, epsilon=epsilon):
            return np.asarray(ndtr(ndtri(heavy) - math.sqrt(2.0 * factor * epsilon / order)))
    stronger = claim.at(factor * claim.parameter)
    levels = np.linspace(0.0, 2.0 * max(float(points_of(stronger).epsilon.max()), 1.0), 400)
    allowed = np.array([float(stronger.delta(float(level))) for level in levels])
    return np.asarray(((heavy[:, None] - allowed) * np.exp(-levels)).max(axis=1).clip(min=0.0))


@dataclass(frozen=True, slots=True)
class _Model:
    """The log-wealth that an event brings, for arrays of masses and epsilons."""

    points: Points
    bets: Floats
    extent: Extent
    needed: float  # log-wealth of a bettor that knows the event and bets all of its capital

    @classmethod
    def of(cls, claim: Claim, extent: Extent) -> _Model:
        points, bets = points_of(claim), bet_sizes(extent.samples)
        bettors = bets.size * extent.cost.experts * len(points)
        needed = extent.log_threshold - extent.log_share + math.log(bettors / (1.0 - RESERVE))
        return cls(points, bets, extent, needed)

    def margin(self, mass: Floats, epsilon: Floats) -> Floats:
        """Return by how much the log-wealth exceeds what is needed, for events of probability ``mass`` plus delta."""
        p = np.minimum(mass + self.points.delta[:, None], 1.0)
        return self.margin_of(p, mass * np.exp(-np.minimum(epsilon, LARGEST_EXPONENT)), mass, epsilon)

    def margin_of(self, p: Floats, q: Floats, mass: Floats, epsilon: Floats) -> Floats:
        """Return the same for events of probabilities ``p`` and ``q``, at the best point and bet size.

        It is mean minus ``spreads`` standard deviations of the log-wealth, minus what is needed. ``mass`` and ``epsilon`` say how
        hard the event is to find.
        """
        c, delta = self.points.ratio[:, None], self.points.delta[:, None]
        p, q = (np.broadcast_to(share, (len(self.points), mass.size)) for share in (p, q))
        advantage = (p - c * q - delta) / np.sqrt(p * (1.0 - p) + c * c * q * (1.0 - q))
        harmless = advantage <= 0.0
        centre = 0.5 * (q + np.maximum(p - delta, 0.0) / c)
        m1, m0 = c * centre + delta, -c * centre
        steps = np.stack([1.0 - m1, -m1, -c - m0, -m0])[..., None]
        gain = np.log1p(steps * (self.bets / np.maximum(-steps.min(axis=0), 1e-300)))
        p, q = p[..., None], q[..., None]
        mean = p * gain[0] + (1 - p) * gain[1] + q * gain[2] + (1 - q) * gain[3]
        variance = p * (1 - p) * (gain[0] - gain[1]) ** 2 + q * (1 - q) * (gain[2] - gain[3]) ** 2
        drawn = self._known(mass, epsilon, np.maximum(advantage.max(axis=0), 1e-9))[:, None]
        best = (drawn * mean - POWER.spreads * np.sqrt(drawn * variance)).max(axis=2)
        return np.asarray(np.where(harmless, -math.inf, best).max(axis=0)) - self.needed

    def _known(self, mass: Floats, epsilon: Floats, advantage: Floats) -> Floats:
        """Return the outputs of the pair that count as bet on, after the pair and the event were found."""
        extent, cost = self.extent, self.extent.cost
        found_after = cost.found_after(mass, (PAIRS.errors / advantage) ** 2)
        left = PAIRS.left(extent.per_side, extent.pairs, found_after, extent.explored)
        return cost.known(mass, epsilon, float(self.points.epsilon.min()), left)
