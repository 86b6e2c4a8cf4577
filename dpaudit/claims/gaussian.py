"""The privacy profile of N(0, 1) against N(mu, 1), and its inverse."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from dpaudit._util.validation import check_open_unit, check_positive


def gaussian_delta(epsilon: NDArray[np.float64] | float, mu: float) -> NDArray[np.float64]:
    """Hockey-stick divergence of N(mu, 1) from N(0, 1): ``Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)``.

    Put ``x = e/mu - mu/2`` and let ``R(t) = (1 - Phi(t)) / phi(t)`` be the Mills ratio. As ``phi(x) = exp(e)
    phi(x + mu)``, the divergence is ``phi(x) (R(x) - R(x + mu))``, and ``R'(t) = t R(t) - 1``. This form does not
    overflow, and keeps its relative accuracy (1e-12) far in the tail. For small mu the difference is the integral of
    ``1 - t R(t)``, evaluated by Gauss-Legendre quadrature.
    """
    with np.errstate(over="ignore"):  # an epsilon / mu that overflows may be replaced by 50: phi is 0 at both
        x = np.minimum(np.asarray(epsilon, dtype=np.float64) / mu - mu / 2.0, 50.0)
    density = np.exp(-(np.maximum(x, -50.0) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
    if mu <= 0.5:
        t = x[..., np.newaxis] + mu * _NODES
        return np.asarray(density * mu * np.sum(_WEIGHTS * (1.0 - t * _mills(t)), axis=-1))
    # For x < 0 the Mills ratio grows without bound. The normal distribution function is above 1/2 there: no cancellation.
    first = np.where(x < 0.0, ndtr(-x), density * _mills(np.maximum(x, 0.0)))
    return np.asarray(first - density * _mills(x + mu))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon at which mu-Gaussian privacy has that delta: the root of the profile, which falls, or 0.

    >>> round(gaussian_epsilon(1.0, 1e-5), 6)
    4.377178
    """
    check_positive(mu=mu)
    check_open_unit(delta=delta)

    def excess(epsilon: float) -> float:
        return math.log(max(float(gaussian_delta(epsilon, mu)), 1e-320)) - math.log(delta)

    if excess(0.0) <= 0.0:
        return 0.0
    from scipy.optimize import brentq  # imported here: slow to load

    # The loss is N(mu^2/2, mu^2), so delta is zero in floats forty standard deviations above its mean.
    return float(brentq(excess, 0.0, mu**2 / 2.0 + 40.0 * mu, xtol=1e-12, rtol=1e-12))


def _mills(t: NDArray[np.float64]) -> NDArray[np.float64]:
    return math.sqrt(math.pi / 2.0) * erfcx(t / math.sqrt(2.0))


def _unit_interval_rule(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1.0) / 2.0, weights / 2.0


_NODES, _WEIGHTS = _unit_interval_rule(12)
