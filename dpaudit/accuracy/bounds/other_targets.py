"""Errors of HistogramMethod that the report names and does not bound: squared error, and the error against the sample.

Section 2.2.3 announces the root mean squared error, and two targets: the deciles of the sample, for which "the calculations were
difficult", and those of the law. Both follow from the two order statistics that enclose the output on the good event of
AboveThreshold, X_(r_-) - h < A <= X_(r_+) (:func:`dpaudit.accuracy.bounds.deciles.sharp_ranks`), for uniform records on [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpaudit.accuracy.bound import Variant
from dpaudit.accuracy.bounds.above_threshold import panels
from dpaudit.accuracy.bounds.deciles import DECILES, histogram_alpha, sharp_ranks
from dpaudit.accuracy.conditions import Real, check
from dpaudit.accuracy.distributions.order_statistics import above, as_fraction, below, rank
from dpaudit.errors import InvalidArgument


def sample_quantile_error(
    *,
    n: int,
    steps: int,
    quantile: float | Fraction,
    epsilon: float,
    beta: float,
    variant: Variant = Variant.CORRECTED_36,
    releases: int = DECILES,
) -> float:
    """Upper bound on E|A - X_(r)|, the mean error against the quantile of the sample.

    On the good event X_(r_-) - h < A <= X_(r_+) and X_(r_-) <= X_(r) <= X_(r_+), so |A - X_(r)| is at most the larger of
    X_(r_+) - X_(r) and X_(r) - X_(r_-) + h, hence at most their sum; off it, which has probability at most beta, it is at most 1.
    Spacings of n uniform records have mean 1/(n + 1), and ranks beyond the data stand for 0 and 1, so

        E|A - X_(r)| <= (min(r_+, n + 1) - max(r_-, 0))/(n + 1) + 1/k + beta.  QED

    Parameters
    ----------
    n, steps, quantile, epsilon, beta, variant, releases
        As for :func:`dpaudit.accuracy.bounds.mean_error.corrected_mean_error`.

    Examples
    --------
    >>> round(sample_quantile_error(n=1000, steps=218, quantile=0.5, epsilon=10.0, beta=0.01), 4)
    0.0835
    """
    check(n=n, steps=steps, epsilon=epsilon, beta=beta)
    level = as_fraction(quantile)
    lower, upper = sharp_ranks(n, level, histogram_alpha(steps, beta, epsilon, variant, releases))
    if not lower <= int(rank(n, level)) <= upper:
        raise InvalidArgument(f"n={n}, beta={beta!r} leave no record between the ranks {lower} and {upper}.")
    return float((min(upper, n + 1) - max(lower, 0)) / (n + 1) + 1.0 / steps + beta)


def root_mean_squared_error(
    *,
    n: int,
    steps: int,
    quantile: float | Fraction,
    epsilon: float,
    beta: float,
    variant: Variant = Variant.CORRECTED_36,
    releases: int = DECILES,
) -> float:
    """Upper bound on the square root of E(A - d)^2.

    On the good event A - d <= (X_(r_+) - d)_+ if A >= d, and d - A <= (d - X_(r_-))_+ + h otherwise; off it the error is at most
    max(d, 1 - d). So E(A - d)^2 <= E(X_(r_+) - d)_+^2 + E((d - X_(r_-))_+ + h)^2 + beta max(d, 1 - d)^2.  QED

    Parameters
    ----------
    n, steps, quantile, epsilon, beta, variant, releases
        As for :func:`dpaudit.accuracy.bounds.mean_error.corrected_mean_error`.

    Examples
    --------
    >>> round(root_mean_squared_error(n=1000, steps=218, quantile=0.5, epsilon=10.0, beta=0.01), 4)
    0.0756
    """
    check(n=n, steps=steps, epsilon=epsilon, beta=beta)
    level = as_fraction(quantile)
    d, h = float(level), 1.0 / steps
    lower, upper = sharp_ranks(n, level, histogram_alpha(steps, beta, epsilon, variant, releases))
    # E(Y + h)^2 for Y = (d - X)_+ is h^2 + int_0^d 2 (y + h) P(Y > y) dy.
    over = _moment(lambda y: 2.0 * y * above(d + y, upper, n), 1.0 - d, n)
    under = h**2 + _moment(lambda y: 2.0 * (y + h) * below(d - y, lower, n), d, n)
    return math.sqrt(over + under + beta * max(d, 1.0 - d) ** 2)


def _moment(integrand: Callable[[Real], Real], stop: float, n: int) -> float:
    """Integral from 0 to ``stop`` of a function that changes on the scale 1/sqrt(n) of an order statistic."""
    nodes, weights = panels(np.array([0.0, stop]), min(stop, 0.5 / math.sqrt(n)))
    return float(np.sum(weights * integrand(nodes)))
