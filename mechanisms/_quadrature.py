r"""Integrals over one Laplace or exponential variable, exact to rounding.

The laws of noisy maxima and of the sparse vector technique are integrals of products of Laplace densities and
distribution functions. Between consecutive break points such a product is a finite sum of exponentials, so
Gauss-Legendre panels that start at the break points and double in length away from them converge geometrically: far
from its break point an exponential that is no longer resolved no longer weighs. All weights and integrands are
positive, so small probabilities keep their relative accuracy; everything stays in logs.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import logsumexp

from ._common import Floats

_NODES = 40
_REACH = 64.0  # tails end where the slowest exponential has fallen by exp(-64)


@cache
def _legendre() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1.0) / 2.0, np.log(weights / 2.0)


def panels(breaks: Floats, fastest: float, slowest: float) -> tuple[Floats, Floats]:
    """Return nodes and log-weights for integrands that are sums of exponentials between ``breaks``.

    ``fastest`` is the shortest length over which the integrand changes by a factor e, ``slowest`` the length over which
    it decays beyond the outermost break points.

    >>> nodes, log_weights = panels(np.array([0.0]), 1.0, 1.0)
    >>> round(float(np.exp(log_weights - np.abs(nodes)).sum()), 12)
    2.0
    """
    points = np.unique(breaks)
    reach = _REACH * slowest
    lengths = [reach, *np.diff(points), reach]
    lefts = [points[0] - reach, *points]
    edges: list[float] = [lefts[0]]
    for number, (left, length) in enumerate(zip(lefts, lengths, strict=True)):
        steps = _doubling(length / 2.0 if 0 < number < len(lengths) - 1 else length, 8.0 * fastest)
        if number == 0:
            edges.extend(left + length - steps[::-1][1:])
        elif number == len(lengths) - 1:
            edges.extend(left + steps[1:])
        else:
            edges.extend(left + steps[1:])
            edges.extend(left + length - steps[::-1][1:])
    start, width = np.array(edges[:-1]), np.diff(edges)
    keep = width > 0.0
    unit, log_unit = _legendre()
    nodes = start[keep, None] + width[keep, None] * unit
    return nodes.ravel(), (np.log(width[keep])[:, None] + log_unit).ravel()


def integrate(log_integrand: Floats, log_weights: Floats) -> Floats:
    """Log of the integral along the first axis."""
    return np.asarray(logsumexp(log_integrand.T + log_weights, axis=-1))


def log_laplace_cdf(x: Floats, scale: float) -> Floats:
    """Log of the Laplace distribution function, accurate in both tails."""
    tail = -np.abs(x) / scale - math.log(2.0)
    return np.where(x < 0.0, tail, np.log1p(-np.exp(tail)))


def log_laplace_density(x: Floats, scale: float) -> Floats:
    """Log of the Laplace density."""
    return -np.abs(x) / scale - math.log(2.0 * scale)


def _doubling(length: float, unit: float) -> Floats:
    """Cut points 0, unit, 2 unit, 4 unit, ... up to ``length``."""
    count = max(0, math.ceil(math.log2(length / unit))) if length > unit else 0
    return np.concatenate([[0.0], unit * 2.0 ** np.arange(count), [length]])
