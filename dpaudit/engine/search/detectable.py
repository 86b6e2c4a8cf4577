"""Compute the smallest epsilon that an audit would have detected.

The alternative: on the pair sampled most there is an event of probability ``mass + delta`` on one side whose probability on
the other is ``mass / exp(epsilon)``. Where outputs repeat it is a few of the values; where they are numbers, an end of the
range; where they are vectors, an end of the range of one coordinate, the others carrying no information. The log-wealth of a
bettor that knows the event, with the best of the fixed bet sizes, is a sum of independent terms, so its mean and variance
are known exactly. The audit detects ``epsilon`` if the mean minus ``spreads`` standard deviations passes the threshold plus
the cost of mixing over experts, bet sizes and pairs (``PowerModel`` has the constants).

The audit has to find the event, and the cost of that depends on the outputs (``SearchCost``). Of outputs that hold the event
x times, the share ``bet_on`` x / (x + ``spent``) counts as bet on by a bettor that knows it. Among numbers the cells do not
end exactly at the event: they are quantiles, and beyond the last of them each is half as wide as the one before, so that up
to a third of a rare event is lost. The constants come from simulated audits: at least 9 in 10 succeed at the epsilon
computed here (``tests/engine/test_power.py``). An interval inside the range has two such ends: it needs up to twice the
outputs, and if it is narrower than a cell it is not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.claims import Claim
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.evidence.e_process import LARGEST_EXPONENT, Floats, Points, bet_sizes
from dpaudit.engine.evidence.wealth import RESERVE
from dpaudit.engine.views.learner import Learner
from dpaudit.engine.views.suspect_view import SuspectView
from dpaudit.engine.views.view import RecordView, ScoreView, ShapeView

MASSES = (0.5, 0.1, 0.01, 0.001)  # probabilities of the events that are reported
HEADLINE = 0.1  # the mass of the one number in a result


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


POWER = PowerModel()


@dataclass(frozen=True, slots=True)
class SearchCost:
    """Cost of finding an event."""

    experts: int  # experts that share the capital
    spent: float  # outputs inside the event that are used up before it is found
    cells: float = POWER.range_cells  # cells of a range; infinite if every value has its own
    rarest: float = 0.0  # events of smaller probability are not seen, because scores join values into groups

    def share(self, mass: Floats, per_side: int) -> Floats:
        """Return the share of the outputs that count as bet on by a bettor that knows the event."""
        inside = np.maximum(1.0 - 1.0 / (self.cells * mass), POWER.least_inside)
        share = POWER.bet_on * inside * (mass * per_side / (mass * per_side + self.spent))
        return np.where(mass < self.rarest, 0.0, share)


COST_OF_NUMBERS = SearchCost(4, 20.0)
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
    elif learner.has_a_cell_for_every_output() or all(isinstance(view, RecordView | ShapeView) for view in views):
        cost = SearchCost(3, 20.0, math.inf)
    if learner.features:
        cost = replace(cost, spent=max(cost.spent, SPENT_ON_FEATURES), cells=POWER.range_cells)
    return replace(cost, experts=cost.experts + EXPERTS_OF_A_VIEW * (len(learner.views) - len(views)))


def detectable_epsilon(
    claim: Claim,
    *,
    per_side: int,
    log_threshold: float,
    log_share: float,
    samples: int,
    cost: SearchCost = COST_OF_NUMBERS,
) -> dict[float, float]:
    """Return, for each mass, the smallest epsilon of the alternative that this many outputs detect (infinite if none).

    Parameters
    ----------
    claim : Claim
        The claim that was bet against.
    per_side : int
        Outputs of each side of the pair sampled most.
    log_threshold : float
        Log-wealth that refutes the claim.
    log_share : float
        Log of the share of the capital that the pair owned.
    samples : int
        The budget, which fixes the bet sizes.
    cost : SearchCost
        Cost of finding the event.
    """
    points = points_of(claim)
    bets = bet_sizes(samples)
    needed = log_threshold - log_share + math.log(bets.size * cost.experts * len(points) / (1.0 - RESERVE))
    mass = np.array(MASSES)
    known = per_side * cost.share(mass, per_side)
    low = np.full(mass.size, float(points.epsilon.min()))
    high = np.full(mass.size, max(2.0 * float(points.epsilon.max()), 1.0))
    while (missed := (_margin(points, bets, mass, high, known) < needed) & (high <= POWER.largest_epsilon)).any():
        high[missed] *= 2.0
    column = np.arange(mass.size)
    for _ in range(POWER.refinements):
        ladder = low + (high - low) * np.arange(POWER.steps + 1)[:, None] / POWER.steps
        margin = _margin(
            points, bets, np.tile(mass, POWER.steps - 1), ladder[1:-1].ravel(), np.tile(known, POWER.steps - 1)
        )
        found = np.concatenate([margin.reshape(POWER.steps - 1, -1) >= needed, np.ones((1, mass.size), bool)])
        first = found.argmax(axis=0)
        low, high = ladder[first, column], ladder[first + 1, column]
    return {
        m: float(value) if value <= POWER.largest_epsilon else math.inf for m, value in zip(MASSES, high, strict=True)
    }


def _margin(points: Points, bets: Floats, mass: Floats, epsilon: Floats, per_side: Floats) -> Floats:
    """Return, for each mass, mean minus ``spreads`` standard deviations of the log-wealth at the best point and bet size."""
    c, delta = points.ratio[:, None], points.delta[:, None]
    p, q = np.minimum(mass + delta, 1.0), mass * np.exp(-np.minimum(epsilon, LARGEST_EXPONENT))
    q = np.broadcast_to(q, p.shape)
    centre = 0.5 * (q + np.maximum(p - delta, 0.0) / c)
    m1, m0 = c * centre + delta, -c * centre
    steps = np.stack([1.0 - m1, -m1, -c - m0, -m0])[..., None]
    gain = np.log1p(steps * (bets / np.maximum(-steps.min(axis=0), 1e-300)))
    harmless = p <= c * q + delta
    p, q = p[..., None], q[..., None]
    mean = p * gain[0] + (1 - p) * gain[1] + q * gain[2] + (1 - q) * gain[3]
    variance = p * (1 - p) * (gain[0] - gain[1]) ** 2 + q * (1 - q) * (gain[2] - gain[3]) ** 2
    drawn = per_side[:, None]
    best = (drawn * mean - POWER.spreads * np.sqrt(drawn * variance)).max(axis=2)
    return np.asarray(np.where(harmless, -math.inf, best).max(axis=0))
