"""What an audit would have caught.

The alternative is stated: on the pair sampled most there is an event of probability ``mass + delta`` on one side whose
probability on the other is ``mass / exp(epsilon)``: a few of the values where outputs repeat, an end of the range where they
are numbers, an end of the range of one coordinate where they are vectors whose other coordinates tell nothing. The
log-wealth of the bettor who knows the event, with the best of the fixed bet sizes, is a sum of independent terms, so its
mean and variance are known exactly; the audit is said to detect ``epsilon`` where the mean, less ``SPREADS`` standard
deviations, passes the threshold plus what mixing over experts, bet sizes and pairs costs.

Nobody knows the event, and what that costs depends on where it hides. Of outputs that hold the event x times, the share
``BET_ON`` x / (x + ``spent``) is as good as bet on by somebody who knows; and among numbers the cells end beside the event:
they are quantiles, and beyond the last of them each is half as wide as the one before, so that of a rare event up to a third
is lost. Simulated audits gave the constants: at least 9 in 10 succeed at what is told (``tests/power/test_power.py``). An
interval inside the range has two such ends: it needs up to twice the outputs, and narrower than a cell it is not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import Claim
from dpaudit.engine.evidence import LARGEST_EPSILON, Floats, Points, bet_sizes
from dpaudit.engine.family import points_of
from dpaudit.engine.learning import Learner
from dpaudit.engine.views import RecordView, ScoreView, ShapeView
from dpaudit.engine.wealth import RESERVE

MASSES = (0.5, 0.1, 0.01, 0.001)
HEADLINE = 0.1
SPREADS = 1.3  # one-sided 90 %
MOST = 100.0  # beyond it nothing is said to be detectable
RUNGS = 16  # into which what is left between two bounds is cut,
REFINEMENTS = 3  # so often; what is told errs upwards
BET_ON = 0.8
CELLS = 35.0  # of an event at an end of a range one cell or less is lost, of half an event's probability on both sides
AT_LEAST_INSIDE = 2.0 / 3.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What it takes to find an event."""

    experts: int  # that share the capital
    spent: float  # outputs in the event that go into finding it
    cells: float = CELLS  # into which a range is cut; infinite where every value has its own
    rarest: float = 0.0  # probability below which an event is not seen: scores join values into groups

    def share(self, mass: Floats, per_side: int) -> Floats:
        """Share of the outputs that are bet on as if the event were known."""
        inside = np.maximum(1.0 - 1.0 / (self.cells * mass), AT_LEAST_INSIDE)
        share = BET_ON * inside * (mass * per_side / (mass * per_side + self.spent))
        return np.where(mass < self.rarest, 0.0, share)


NUMBERS = Finding(4, 20.0)


def finding(learner: Learner) -> Finding:
    """What it takes for the views that a learner has."""
    scores = sum(isinstance(view, ScoreView) for view in learner.views)
    if scores:
        return Finding(4 * scores, 600.0, rarest=1.0 / 32.0)
    if learner.all_told() or all(isinstance(view, RecordView | ShapeView) for view in learner.views):
        return Finding(3, 20.0, math.inf)
    return NUMBERS


def detectable_epsilon(
    claim: Claim, *, per_side: int, log_threshold: float, log_share: float, samples: int, hidden: Finding = NUMBERS
) -> dict[float, float]:
    """Smallest epsilon (at the delta of the bet) of the alternative that this many outputs detect, by mass; inf if none."""
    points = points_of(claim)
    bets = bet_sizes(samples)
    needed = log_threshold - log_share + math.log(bets.size * hidden.experts * len(points) / (1.0 - RESERVE))
    mass = np.array(MASSES)
    known = per_side * hidden.share(mass, per_side)
    low = np.full(mass.size, float(points.epsilon.min()))
    high = np.full(mass.size, max(2.0 * float(points.epsilon.max()), 1.0))
    while (missed := (_margin(points, bets, mass, high, known) < needed) & (high <= MOST)).any():
        high[missed] *= 2.0
    column = np.arange(mass.size)
    for _ in range(REFINEMENTS):
        rungs = low + (high - low) * np.arange(RUNGS + 1)[:, None] / RUNGS
        margin = _margin(points, bets, np.tile(mass, RUNGS - 1), rungs[1:-1].ravel(), np.tile(known, RUNGS - 1))
        found = np.concatenate([margin.reshape(RUNGS - 1, -1) >= needed, np.ones((1, mass.size), bool)])
        first = found.argmax(axis=0)
        low, high = rungs[first, column], rungs[first + 1, column]
    return {m: float(value) if value <= MOST else math.inf for m, value in zip(MASSES, high, strict=True)}


def _margin(points: Points, bets: Floats, mass: Floats, epsilon: Floats, per_side: Floats) -> Floats:
    """Mean minus ``SPREADS`` standard deviations of the log-wealth, for the best point and bet size; per mass."""
    c, delta = points.ratio[:, None], points.delta[:, None]
    p, q = np.minimum(mass + delta, 1.0), mass * np.exp(-np.minimum(epsilon, LARGEST_EPSILON))
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
    best = (drawn * mean - SPREADS * np.sqrt(drawn * variance)).max(axis=2)
    return np.asarray(np.where(harmless, -math.inf, best).max(axis=0))
