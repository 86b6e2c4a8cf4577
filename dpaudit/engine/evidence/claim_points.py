"""A claim as points (epsilon, delta) to bet against, and the grids on which lower bounds are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    Claim,
    GaussianDP,
    MetricDP,
    ProfileDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
    ZeroConcentratedDP,
)
from dpaudit.engine.evidence.e_process import Points

GAUSSIAN_SPREAD = (-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""A Gaussian claim is bet against at the epsilons mu (mu / 2 + x) for these x, in standard deviations of the loss."""
MOST_BETS = 8
"""A curve is bet against at so many of its points at most."""
RARE = 1e-3
"""Of the points of a curve, those are preferred whose delta is at least this share of the largest."""
RANGE_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""A claim of bounded range is bet against at these shares of its epsilon; at the last one its delta is zero."""
CURVE_POINTS = 32
"""Points that describe a whole curve (see :func:`curve_points`)."""
LARGEST_EPSILON = 60.0
"""The largest lower bound of epsilon that is reported. More evidence would take more outputs than can be drawn."""


def points_of(claim: Claim) -> Points:
    """Return the points of the claim's profile that are bet against.

    One for pure, metric and approximate DP; for metric privacy that of a pair at distance 1 (see :meth:`Points.stretched`). For
    curves at most ``MOST_BETS`` of the points that define them. For the others, several epsilons around the one at which a
    Gaussian pair of the same strength is easiest to distinguish. Any choice is valid, because the claim promises the whole
    profile.
    """
    match claim:
        case PureDP() | MetricDP():
            return Points.of([(claim.epsilon, 0.0)])
        case ApproxDP():
            return Points.of([(claim.epsilon, claim.delta_claimed)])
        case BoundedRange():
            epsilon = claim.epsilon * np.array(RANGE_SHARES)
            return Points(epsilon, claim.delta(epsilon))
        case ProfileDP() | TradeOffDP():
            epsilon = _spread(claim.levels, claim.at(1.0).delta(claim.levels))
            return Points(epsilon, claim.delta(epsilon))
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


def _spread(levels: NDArray[np.float64], deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return at most ``MOST_BETS`` levels: the last one, and others evenly spread over those with a delta that is not rare."""
    if levels.size <= MOST_BETS:
        return levels
    common = levels[deltas >= RARE * deltas.max()]
    wanted = np.linspace(common[0], common[-1], MOST_BETS - 1)
    nearest = [int(np.argmin(np.abs(levels - epsilon))) for epsilon in wanted]
    return levels[sorted({*nearest, levels.size - 1})]


def curve_points(claim: Claim) -> Points:
    """Return points that describe the whole curve of a claim, for tests that use all of them at once.

    With many canaries those count whose delta is far below one over their number, so the points reach further than those of
    :func:`points_of`.
    """
    if isinstance(claim, ProfileDP | TradeOffDP):
        return Points(claim.levels, claim.delta(claim.levels))
    points = points_of(claim)
    if len(points) == 1:
        return points
    epsilon = np.linspace(0.0, 3.0 * float(points.epsilon.max()), CURVE_POINTS)
    return Points(epsilon, claim.delta(epsilon))


@dataclass(frozen=True, slots=True)
class GridStretch:
    """A stretch of the grid on which a bound is read: its values in ascending order, the last of them an anchor."""

    values: tuple[float, ...]

    @property
    def anchor(self) -> float:
        """The largest value."""
        return self.values[-1]


@lru_cache(maxsize=256)
def parameter_grid(claimed: float, largest: float) -> tuple[GridStretch, ...]:
    """Return the grid on which a lower bound is read, fixed by the claim alone; the claimed value is an anchor.

    Anchors at every tenth of the claim up to 1.2 of it, then 10 % apart; between them steps of 0.5 % of the claim, and of
    0.5 % of the last anchor beyond.

    >>> grid = parameter_grid(1.0, 2.0)
    >>> [round(interval.anchor, 3) for interval in grid]
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.32, 1.452, 1.597, 1.757, 1.933, 2.126]
    """
    unit = claimed if claimed > 0.0 else 0.01
    grid = [GridStretch((0.0,))] if claimed == 0.0 else []
    for tenth in range(1, 13):
        low = unit + (tenth - 11) * 0.1 * unit  # counted from the claim, so that it is met exactly
        high = unit if tenth == 10 else low + 0.1 * unit
        grid.append(GridStretch((*(low + 0.005 * unit * step for step in range(1, 20)), high)))
    low = grid[-1].anchor
    while low < largest:
        grid.append(GridStretch(tuple(low * (1.0 + 0.005 * step) for step in range(1, 21))))
        low = grid[-1].anchor
    return tuple(grid)
