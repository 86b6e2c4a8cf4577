"""What an audit would have caught.

The alternative is stated: on the pair sampled most there is an event of probability ``mass + delta`` on one side whose
probability on the other is ``mass / exp(epsilon)``. The log-wealth of the bettor who knows the event, with the
best of the fixed bet sizes, is a sum of independent terms, so its mean and variance are known exactly; the audit is said
to detect ``epsilon`` where the mean, less ``SPREADS`` standard deviations, passes the threshold plus what mixing over
experts, bet sizes and pairs costs, after the outputs spent on finding the event.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.claims import Claim
from dpaudit.engine.evidence import LARGEST_EPSILON, Floats, Points, bet_sizes
from dpaudit.engine.family import points_of
from dpaudit.engine.wealth import RESERVE

MASSES = (0.5, 0.1, 0.01, 0.001)
HEADLINE = 0.1
SPREADS = 1.3  # one-sided 90 %
EXPERTS = 4
MOST = 100.0  # beyond it nothing is said to be detectable
RUNGS = 32  # into which what is left between two bounds is cut,
REFINEMENTS = 3  # so often; what is told errs upwards
LEARNING = 0.7  # share of the outputs that bets are effectively placed on: the rest goes into finding the event


def detectable_epsilon(
    claim: Claim, *, per_side: int, log_threshold: float, log_share: float, samples: int
) -> dict[float, float]:
    """Smallest epsilon (at the delta of the bet) of the alternative that this many outputs detect, by mass; inf if none."""
    points = points_of(claim)
    bets = bet_sizes(samples)
    needed = log_threshold - log_share + math.log(bets.size * EXPERTS * len(points) / (1.0 - RESERVE))
    mass = np.array(MASSES)
    low = np.full(mass.size, float(points.epsilon.min()))
    high = np.full(mass.size, max(2.0 * float(points.epsilon.max()), 1.0))
    while (missed := (_margin(points, bets, mass, high, LEARNING * per_side) < needed) & (high <= MOST)).any():
        high[missed] *= 2.0
    column = np.arange(mass.size)
    for _ in range(REFINEMENTS):
        rungs = low + (high - low) * np.arange(RUNGS + 1)[:, None] / RUNGS
        margin = _margin(points, bets, np.tile(mass, RUNGS - 1), rungs[1:-1].ravel(), LEARNING * per_side)
        found = np.concatenate([margin.reshape(RUNGS - 1, -1) >= needed, np.ones((1, mass.size), bool)])
        first = found.argmax(axis=0)
        low, high = rungs[first, column], rungs[first + 1, column]
    return {m: float(value) if value <= MOST else math.inf for m, value in zip(MASSES, high, strict=True)}


def _margin(points: Points, bets: Floats, mass: Floats, epsilon: Floats, per_side: float) -> Floats:
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
    best = (per_side * mean - SPREADS * np.sqrt(per_side * variance)).max(axis=2)
    return np.asarray(np.where(harmless, -math.inf, best).max(axis=0))
