"""A claim as points (epsilon, delta) to bet against, and the grids on which lower bounds are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.engine.evidence.e_process import Points

GAUSSIAN_SPREAD = (-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""A Gaussian claim is bet against at the epsilons mu (mu / 2 + x) for these x, in standard deviations of the loss."""
CURVE_POINTS = 32
"""Points that describe a whole curve (see :func:`curve_points`)."""
LARGEST_EPSILON = 60.0
"""The largest lower bound of epsilon that is reported. More evidence would take more outputs than can be drawn."""


def points_of(claim: Claim) -> Points:
    """Return the points of the claim's profile that are bet against.

    One for pure and approximate DP. For the others, several epsilons around the one at which a Gaussian pair of the same
    strength is easiest to distinguish. Any choice is valid, because the claim promises the whole profile.
    """
    match claim:
        case PureDP():
            return Points.of([(claim.epsilon, 0.0)])
        case ApproxDP():
            return Points.of([(claim.epsilon, claim.delta_claimed)])
        case GaussianDP():
            mu = claim.mu
        case ZeroConcentratedDP():
            mu = math.sqrt(2.0 * claim.rho)
        case RenyiDP():
            mu = math.sqrt(2.0 * claim.epsilon / claim.order)
        case _:
            mu = max(claim.parameter, 1e-6)
    epsilon = np.unique(np.maximum(mu * (mu / 2.0 + np.array(GAUSSIAN_SPREAD)), 0.0))
    return Points(epsilon, claim.delta(epsilon))


def curve_points(claim: Claim) -> Points:
    """Return points that describe the whole curve of a claim, for tests that use all of them at once.

    With many canaries those count whose delta is far below one over their number, so the points reach further than those of
    :func:`points_of`.
    """
    points = points_of(claim)
    if len(points) == 1:
        return points
    epsilon = np.linspace(0.0, 3.0 * float(points.epsilon.max()), CURVE_POINTS)
    return Points(epsilon, claim.delta(epsilon))


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of the grid on which a bound is read: its values in ascending order, the last of them an anchor."""

    values: tuple[float, ...]

    @property
    def anchor(self) -> float:
        """The largest value."""
        return self.values[-1]


@lru_cache(maxsize=256)
def parameter_grid(claimed: float, largest: float) -> tuple[Interval, ...]:
    """Return the grid on which a lower bound is read, fixed by the claim alone; the claimed value is an anchor.

    Anchors at every tenth of the claim up to 1.2 of it, then 10 % apart; between them steps of 0.5 % of the claim, and of
    0.5 % of the last anchor beyond.

    >>> grid = parameter_grid(1.0, 2.0)
    >>> [round(interval.anchor, 3) for interval in grid]
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.32, 1.452, 1.597, 1.757, 1.933, 2.126]
    """
    unit = claimed if claimed > 0.0 else 0.01
    grid = [Interval((0.0,))] if claimed == 0.0 else []
    for tenth in range(1, 13):
        low = unit + (tenth - 11) * 0.1 * unit  # counted from the claim, so that it is met exactly
        high = unit if tenth == 10 else low + 0.1 * unit
        grid.append(Interval((*(low + 0.005 * unit * step for step in range(1, 20)), high)))
    low = grid[-1].anchor
    while low < largest:
        grid.append(Interval(tuple(low * (1.0 + 0.005 * step) for step in range(1, 21))))
        low = grid[-1].anchor
    return tuple(grid)
