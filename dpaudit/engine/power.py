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
from dpaudit.engine.evidence import LARGEST_EPSILON, RESERVE, Floats, Points, bet_sizes
from dpaudit.engine.family import points_of

MASSES = (0.5, 0.1, 0.01, 0.001)
HEADLINE = 0.1
SPREADS = 1.3  # one-sided 90 %
EXPERTS = 4
LEARNING = 0.7  # share of the outputs that bets are effectively placed on: the rest goes into finding the event


def detectable_epsilon(
    claim: Claim, *, mass: float, per_side: int, log_threshold: float, log_share: float, samples: int
) -> float:
    """Smallest epsilon (at the delta of the bet) of the alternative above that this many outputs detect; inf if none."""
    points = points_of(claim)
    bets = bet_sizes(samples)
    needed = log_threshold - log_share + math.log(bets.size * EXPERTS * len(points) / (1.0 - RESERVE))
    usable = LEARNING * per_side

    def margin(epsilon: float) -> float:
        return max(_margin(points, index, bets, mass, epsilon, usable) for index in range(len(points))) - needed

    low, high = float(points.epsilon.min()), max(2.0 * float(points.epsilon.max()), 1.0)
    while margin(high) < 0.0:
        high *= 2.0
        if high > 100.0:
            return math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if margin(middle) < 0.0 else (low, middle)
    return high


def _margin(points: Points, index: int, bets: Floats, mass: float, epsilon: float, per_side: float) -> float:
    """Mean minus ``SPREADS`` standard deviations of the log-wealth, for the best bet size."""
    c, delta = float(points.ratio[index]), float(points.delta[index])
    p, q = min(mass + delta, 1.0), mass * math.exp(-min(epsilon, LARGEST_EPSILON))
    if p <= c * q + delta:
        return -math.inf
    centre = 0.5 * (q + max(p - delta, 0.0) / c)
    m1, m0 = c * centre + delta, -c * centre
    steps = np.array([1.0 - m1, -m1, -c - m0, -m0])
    stake = bets / max(-steps.min(), 1e-300)
    gain = np.log1p(steps[:, None] * stake)
    mean = p * gain[0] + (1 - p) * gain[1] + q * gain[2] + (1 - q) * gain[3]
    variance = p * (1 - p) * (gain[0] - gain[1]) ** 2 + q * (1 - q) * (gain[2] - gain[3]) ** 2
    return float((per_side * mean - SPREADS * np.sqrt(per_side * variance)).max())
