r"""Kernels: the log of a point's contribution to a divergence, as a function of its two log-probabilities.

Renyi and Kullback-Leibler divergences are usually sums of terms of both signs that cancel when the laws are close.
Since ``sum p = sum q = 1``, adding a multiple of ``p - q`` changes nothing, and makes every term non-negative:

.. math:: \sum_x q \, \psi(\log(p/q)), \qquad \psi(L) = \frac{e^{a L} - 1 - a (e^L - 1)}{a - 1},

equals ``(sum p^a q^(1-a) - 1) / (a - 1)``, and in the limit ``a = 1`` the Kullback-Leibler divergence.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.exact.divergences.pair import Kernel, log_ratio
from dpaudit.exact.form import Array

_ROUNDING = 1e-15


def hockey_stick(epsilon: float) -> Kernel:
    """``(p - exp(epsilon) q)_+``, as ``p (1 - exp(epsilon - L))``.

    An excess of ``L`` over ``epsilon`` that is no larger than the rounding of the two logarithms counts as none, so
    that a law that meets its epsilon exactly has delta exactly zero.
    """

    def kernel(p: Array, q: Array) -> Array:
        excess = log_ratio(p, q) - epsilon
        with np.errstate(invalid="ignore", divide="ignore"):
            above = excess > _ROUNDING * (1.0 + np.abs(p))
            return np.where(above, p + np.log(-np.expm1(-np.maximum(excess, 0.0))), -np.inf)

    return kernel


def renyi_term(order: float) -> Kernel:
    """``q psi(L)``: where ``p = 0`` it is ``q``; where ``q = 0`` and order is below 1, ``p order / (1 - order)``."""
    rate = order - 1.0

    def kernel(p: Array, q: Array) -> Array:
        values = np.where(p > -np.inf, np.inf if order >= 1.0 else p + math.log(order / (1.0 - order)), -np.inf)
        values = np.where(p == -np.inf, q, values)
        both = (p > -np.inf) & (q > -np.inf)
        values[both] = q[both] + _log_psi(p[both] - q[both], order, rate)
        return values

    return kernel


def renyi_power(order: float) -> Kernel:
    """``p^order q^(1 - order)``; for order below 1 nothing where either is zero."""

    def kernel(p: Array, q: Array) -> Array:
        both = (p > -np.inf) & (q > -np.inf)
        values = np.full(p.shape, -np.inf)
        values[both] = order * p[both] + (1.0 - order) * q[both]
        return values

    return kernel


def _log_psi(L: Array, order: float, rate: float) -> Array:
    """``log psi(L)``: a series near zero, where the formula cancels, and its leading terms factored out far away."""
    result = np.empty_like(L)
    near = np.abs(L) * max(1.0, order) <= 0.3
    right, left = (L > 0.0) & (np.maximum(1.0, rate) * L > 30.0), L < -30.0
    middle = ~(near | right | left)
    with np.errstate(divide="ignore"):
        result[near] = _log_series(L[near], order)
        result[middle] = np.log(_psi(L[middle], rate))
        result[left] = np.log(
            -np.expm1(L[left]) + (np.exp(order * L[left]) - np.exp(L[left])) / rate if rate else _psi(L[left], rate)
        )
    result[right] = _log_psi_right(L[right], rate)
    return result


def _psi(L: Array, rate: float) -> Array:
    growth = np.expm1(rate * L) / rate if rate else L
    return np.asarray(np.exp(L) * growth - np.expm1(L))


def _log_psi_right(L: Array, rate: float) -> Array:
    """``L + log((e^(rate L) - 1) / rate - 1 + e^-L)`` without overflow."""
    steep = rate * L > 30.0
    result = np.empty_like(L)
    gentle = L[~steep]
    growth = np.expm1(rate * gentle) / rate if rate else gentle
    result[~steep] = gentle + np.log(growth - 1.0 + np.exp(-gentle))
    rise = L[steep]
    if rise.size:
        rest = np.exp(-rate * rise) * (1.0 + rate - rate * np.exp(-rise))
        result[steep] = (1.0 + rate) * rise - math.log(rate) + np.log1p(-rest)
    return result


def _log_series(L: Array, order: float) -> Array:
    """``psi(L) = sum_{k >= 2} order (1 + order + ... + order^(k-2)) L^k / k!``."""
    coefficient, geometric, power = order, 1.0, 1.0
    factor = np.zeros_like(L)
    for k in range(2, 24):
        factor += coefficient * geometric * L ** (k - 2) / float(math.factorial(k))
        power *= order
        geometric += power
    return 2.0 * np.log(np.abs(L)) + np.log(factor)
