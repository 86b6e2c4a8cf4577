"""The privacy profile that a bound on Renyi divergences implies."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np


def best_order_delta(epsilon: float, divergence: MomentBound, largest: float) -> float:
    """Smallest delta over the orders ``1 < a <= largest`` (Canonne, Kamath and Steinke 2020, proposition 12).

    ``log delta(a) = (a - 1)(R(a) - epsilon) - log(a - 1) + a log(1 - 1/a)``. Any order gives a valid upper bound, so an
    imperfect optimiser costs tightness, never validity. The search runs over ``t = log(a - 1)``, where the function is
    smooth, from a coarse grid to a bracketed minimum. Total variation adds Bretagnolle-Huber at order 1, from
    KL <= R(a) as a -> 1: ``delta(e) <= delta(0) <= sqrt(1 - exp(-KL))``.

    Parameters
    ----------
    epsilon : float
        The argument of the profile.
    divergence : callable
        A bound R(a) on the Renyi divergence of each order.
    largest : float
        The largest order at which the bound holds; may be infinite.
    """
    if math.isinf(epsilon):
        return 0.0

    def log_delta(t: float) -> float:
        # a log(1 - 1/a) = -a log(1 + exp(-t)). Other forms cancel for large or small t, and the bound would be invalid.
        excess = math.exp(t)
        return excess * (divergence(1.0 + excess) - epsilon) - t - (1.0 + excess) * math.log1p(math.exp(-t))

    top = math.log(largest - 1.0) if math.isfinite(largest) else 40.0
    grid = np.linspace(min(-20.0, top - 1.0), top, 121).tolist()
    values = [log_delta(t) for t in grid]
    best = int(np.argmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    from scipy.optimize import minimize_scalar  # imported here: slow to load, and most claims do not need it

    refined = minimize_scalar(
        lambda t: log_delta(float(t)), bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    bretagnolle_huber = math.sqrt(-math.expm1(-divergence(1.0)))
    return min(1.0, math.exp(min(values[best], float(refined.fun), 0.0)), bretagnolle_huber)


class MomentBound(Protocol):
    """A bound on the Renyi divergence of each order."""

    def __call__(self, order: float, /) -> float:
        """Return the bound at one order."""
        ...
