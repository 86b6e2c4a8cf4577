r"""Binomial and Poisson probabilities whose logarithms are accurate relative to themselves, also where parameters are large.

``k log(m) - m - log k!`` subtracts numbers of the size of ``m log m``. Loader's form (Fast and Accurate Computation of
Binomial Probabilities, 2000) subtracts nothing: with ``D(k, m) = k log(k / m) + m - k`` and Stirling's remainder
``s(k) = log k! - (k + 1/2) log k + k - log(2 pi) / 2``, the Poisson log-probability is
``-s(k) - D(k, m) - log(2 pi k) / 2``, a sum of terms of one sign. Masses of ranges are sums over the points that matter: both
laws are log-concave, so what is left out beyond a point where the mass has fallen by ``exp(-50)`` is smaller than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpaudit.errors import LawError
from dpaudit.exact.form import Array, Integers, log_sum
from dpaudit.symbolic.draws.rounding import ELEMENTARY, UNIT

_FEW = 16
"""Below it logarithms of factorials are exact sums, above it Stirling's series has four terms to 1e-16."""
_NEGLIGIBLE = 50.0
_MOST_POINTS = 1 << 24
_HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
_SERIES = [1.0 / k if k % 2 == 0 else -1.0 / k for k in range(2, 40)]


def deviance(k: Array, mean: float) -> Array:
    """``k log(k / mean) + mean - k`` for positive ``k``: by its series in ``(mean - k) / k`` where that is small."""
    x = (mean - k) / k
    near = np.abs(x) < 0.3
    small = np.where(near, x, 0.0)
    series = np.zeros_like(small)
    for coefficient in reversed(_SERIES):
        series = series * small + coefficient
    with np.errstate(divide="ignore"):
        return np.asarray(k * np.where(near, small * small * series, np.log(k / mean) + x), dtype=np.float64)


def stirling_remainder(k: Array) -> Array:
    """``log k! - (k + 1/2) log k + k - log(2 pi) / 2`` for ``k >= 16``."""
    square = 1.0 / (k * k)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - square / 1188) * square) * square) * square) / k


def poisson_log_mass(k: Integers, mean: float) -> Array:
    """Log-probabilities of the Poisson law; minus infinity below 0."""
    value = np.asarray(k, dtype=np.float64)
    large = np.maximum(value, _FEW)
    result = -stirling_remainder(large) - deviance(large, mean) - 0.5 * np.log(large) - _HALF_LOG_TAU
    for few in np.unique(value[(value >= 0) & (value < _FEW)]):
        result[value == few] = few * math.log(mean) - mean - math.lgamma(few + 1.0)
    return np.where(value < 0, -np.inf, result)


def binomial_log_mass(k: Integers, trials: int, success: float) -> Array:
    """Log-probabilities of the binomial law; minus infinity outside."""
    value = np.asarray(k, dtype=np.float64)
    large = np.clip(value, _FEW, trials - _FEW)
    other = trials - large
    result = (
        stirling_remainder(np.array(float(trials)))
        - stirling_remainder(large)
        - stirling_remainder(other)
        - deviance(large, trials * success)
        - deviance(other, trials * (1.0 - success))
        + 0.5 * (math.log(trials) - np.log(large) - np.log(other))
        - _HALF_LOG_TAU
    )
    inside = (value >= 0) & (value <= trials)
    for few in np.unique(value[inside & ((value < _FEW) | (value > trials - _FEW))]):
        ways = math.log(math.comb(trials, int(few)))
        result[value == few] = ways + few * math.log(success) + (trials - few) * math.log1p(-success)
    return np.where(inside, result, -np.inf)


def log_error(trials: float) -> Callable[[float, float, float], float]:
    """Return the error of a log-mass, where at most ``trials`` trials are rounded: 0 for the Poisson law.

    The deviance is used 34 times at most (it is 16 times smaller than its terms where they are subtracted), and below 16 the
    logarithm of a number of combinations is at most 640. The mean of a binomial law is rounded, which moves the log by
    ``UNIT |k - mean|``, and ``|k - mean|`` is at most the square root of ``trials log / 2`` (Hoeffding). Points of a sum that are
    smaller by ``exp(-50)`` do not matter.
    """

    def error(_first: float, _last: float, log_mass: float) -> float:
        size = abs(log_mass) + _NEGLIGIBLE
        return ELEMENTARY * (1400.0 + 40.0 * size) + 4.0 * UNIT * math.sqrt(0.5 * trials * size)

    return error


def log_range(log_mass: Callable[[Integers], Array], first: float, last: float, mode: int) -> float:
    """Log of the sum from ``first`` to ``last`` of a log-concave law with that mode; both may be far out in a tail."""
    if first > last:
        return -math.inf
    peak = int(min(max(mode, first), last))
    top = float(log_mass(np.array([peak]))[0])
    if top == -math.inf:
        return -math.inf

    def reach(direction: int, end: float) -> int:
        width = 16
        while True:
            edge = peak + direction * width
            if (edge - end) * direction >= 0:
                return int(end)
            if float(log_mass(np.array([edge]))[0]) < top - _NEGLIGIBLE:
                return edge
            width *= 2

    low, high = reach(-1, first), reach(1, last)
    if high - low > _MOST_POINTS:
        raise LawError(f"A random whole number was compared with a number, and {high - low} of its values matter.")
    return log_sum(log_mass(np.arange(low, high + 1)))
