"""Tails and mean errors of noise distributions (docs/theory.md R19, R24; bounded noise and importance weights)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpaudit._util.validation import check_choice, check_count, check_non_negative, check_positive
from dpaudit.accuracy.conditions import Real, check, plain


def laplace_tail(x: ArrayLike, scale: ArrayLike, draws: int = 1) -> Any:
    """P(max of ``draws`` |Lap(scale)| > x) = 1 - (1 - exp(-x/scale))^draws, exact.

    Parameters
    ----------
    x, scale : array_like
        Size of the error, scale of the noise.
    draws : int
        Number of independent draws.

    Examples
    --------
    >>> round(laplace_tail(3.0, 1.0), 12)
    0.049787068368
    """
    check(x=x, scale=scale)
    check_count(draws=draws)
    single = np.exp(-np.asarray(x, float) / np.asarray(scale, float))
    return plain(_any_of(single, draws))


def laplace_tail_inverse(beta: ArrayLike, scale: ArrayLike, draws: int = 1) -> Any:
    """Error that the largest of ``draws`` Laplace noises exceeds with probability exactly ``beta``.

    Parameters
    ----------
    beta, scale : array_like
        Probability of a larger error, scale of the noise.
    draws : int
        Number of independent draws.
    """
    check(beta=beta, scale=scale)
    return plain(-np.asarray(scale, float) * np.log(_each_of(np.asarray(beta, float), draws)))


def gaussian_tail(x: ArrayLike, scale: ArrayLike, draws: int = 1) -> Any:
    """P(max of ``draws`` |N(0, scale^2)| > x) = 1 - erf(x/(scale sqrt 2))^draws, exact.

    The notes print the distribution function with erf((x - mu)/rho): the sqrt 2 is missing, and the sampler that
    follows from it has variance rho^2/2 (docs/theory.md R19).

    Parameters
    ----------
    x, scale : array_like
        Size of the error, standard deviation of the noise.
    draws : int
        Number of independent draws.

    Examples
    --------
    >>> round(gaussian_tail(1.959963984540054, 1.0), 12)
    0.05
    """
    check(x=x, scale=scale)
    check_count(draws=draws)
    single = special.erfc(np.asarray(x, float) / (np.asarray(scale, float) * math.sqrt(2.0)))
    return plain(_any_of(single, draws))


def gaussian_tail_inverse(beta: ArrayLike, scale: ArrayLike, draws: int = 1) -> Any:
    """Error that the largest of ``draws`` Gaussian noises exceeds with probability exactly ``beta``.

    Parameters
    ----------
    beta, scale : array_like
        Probability of a larger error, standard deviation of the noise.
    draws : int
        Number of independent draws.

    Examples
    --------
    >>> round(gaussian_tail_inverse(0.05, 42.247, 100), 1)
    146.8
    """
    check(beta=beta, scale=scale)
    each = _each_of(np.asarray(beta, float), draws)
    return plain(-np.asarray(scale, float) * special.ndtri(0.5 * each))


def _any_of(single: Real, draws: int) -> Real:
    with np.errstate(divide="ignore"):  # a tail of one: log1p(-1) is minus infinity, and the answer is one
        return np.asarray(-np.expm1(draws * np.log1p(-single)))


def _each_of(beta: Real, draws: int) -> Real:
    check_count(draws=draws)
    return np.asarray(-np.expm1(np.log1p(-beta) / draws))


def naive_median_error(
    epsilon: ArrayLike, *, median: ArrayLike | None = None, averaged: bool = False, clipped: bool = False
) -> Any:
    """E|M - med| of the median plus Laplace noise, data in [0, 1] (slides, "L'echec de la methode naive"; docs/theory.md R24).

    1/epsilon as printed for an order statistic (sensitivity 1); 1/(2 epsilon) for even n with the two middle records
    ``averaged`` (sensitivity 1/2). ``clipped`` to [0, 1], which costs no privacy: with noise scale s the error is
    s (1 - exp(-m/s)/2 - exp(-(1-m)/s)/2) at the true ``median`` m, since E min(|Lap|, c) on one side is (s/2)(1 -
    exp(-c/s)).

    Parameters
    ----------
    epsilon : array_like
        Privacy budget.
    median : array_like, optional
        The true median, used if ``clipped``; 1/2 by default.
    averaged : bool
        The median of an even number of records is the mean of the middle two.
    clipped : bool
        The output is clipped to [0, 1].

    Examples
    --------
    >>> naive_median_error(1.0), round(naive_median_error(1.0, median=0.5, clipped=True), 5)
    (1.0, 0.39347)
    """
    check(epsilon=epsilon)
    scale = (0.5 if averaged else 1.0) / np.asarray(epsilon, float)
    if not clipped:
        return plain(scale)
    centre = 0.5 if median is None else median
    check(median=centre)
    m = np.asarray(centre, float)
    return plain(-0.5 * scale * (np.expm1(-m / scale) + np.expm1((m - 1.0) / scale)))


_SHAPES = {"DE": 0, "p1": 1, "p2": 2}


@lru_cache(maxsize=1)
def _legendre() -> tuple[Real, Real]:
    return np.polynomial.legendre.leggauss(200)


@dataclass(frozen=True, slots=True)
class BoundedNoise:
    """Noise with density proportional to exp(-g(x/R)) on (-R, R), reconstructed from Dagan and Kur 2022.

    ``family`` "DE" is g(x) = exp(1/(1 - x^2)), "p1" and "p2" are g(x) = (1 - x^2)^-p. The error is below R with
    probability one. The notes quote R = O(M sqrt(k log(1/delta))/epsilon) without a constant. The constant depends on k and
    delta (from 25 down to 4.5 at usual values), so R is not computed here.

    >>> noise = BoundedNoise("DE", 64.0)
    >>> round(noise.standard_deviation / 64.0, 9), round(noise.tail(64.0), 12)
    (0.286274659, 0.0)
    """

    family: str
    radius: float

    def __post_init__(self) -> None:
        check_choice(_SHAPES, family=self.family)
        check_positive(radius=self.radius)

    def _weights(self) -> tuple[Real, Real]:
        """Nodes on (0, 1) and normalised weights; all derivatives vanish at 1, so Gauss-Legendre converges fast."""
        unit, mass = _legendre()
        x = 0.5 * (1.0 + unit)
        w = 0.5 * mass * np.exp(-self._exponent(x))
        return x, w / (2.0 * w.sum())

    def _exponent(self, x: Real) -> Real:
        inverse = 1.0 / np.maximum(1.0 - x * x, 1e-300)
        if self.family == "DE":
            return np.exp(np.minimum(inverse, 700.0))
        return np.minimum(inverse, 1e6) ** _SHAPES[self.family]

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of one draw."""
        x, w = self._weights()
        return self.radius * math.sqrt(2.0 * float(w @ x**2))

    @property
    def mean_absolute(self) -> float:
        """Mean size of one draw."""
        x, w = self._weights()
        return self.radius * 2.0 * float(w @ x)

    def tail(self, x: float) -> float:
        """P(|noise| > x)."""
        check_non_negative(x=x)
        start = min(x / self.radius, 1.0)
        nodes, _ = self._weights()
        unit, mass = _legendre()
        inner = start + 0.5 * (1.0 - start) * (1.0 + unit)
        part = 0.5 * (1.0 - start) * float(mass @ np.exp(-self._exponent(inner)))
        whole = 0.5 * float(mass @ np.exp(-self._exponent(nodes)))
        return part / whole

    def single_query_delta(self, epsilon: float, sensitivity: float = 1.0) -> float:
        """Exact delta at ``epsilon`` for one query: F(t) - e^epsilon F(t - s), at the root of g(t - s) - g(t) = epsilon.

        g is convex, so the privacy loss of (f, f shifted by s = sensitivity/R) is monotone, and the best event is a
        half line. Below -1 + s the loss is infinite.
        """
        check_positive(epsilon=epsilon, sensitivity=sensitivity)
        shift = sensitivity / self.radius
        if shift >= 2.0:
            return 1.0

        def loss(t: float) -> float:
            pair = self._exponent(np.array([t - shift, t]))
            return float(pair[0] - pair[1]) - epsilon

        start, stop = -1.0 + shift + 1e-9 * shift, 1.0 - 1e-9
        root = stop if loss(stop) > 0.0 else float(optimize.brentq(loss, start, stop, xtol=1e-15))
        return max(0.0, self._below(root) - math.exp(epsilon) * self._below(root - shift))

    def _below(self, t: float) -> float:
        """Distribution function at unit radius."""
        if t <= 0.0:
            return 0.5 * self.tail(-t * self.radius)
        return 1.0 - 0.5 * self.tail(t * self.radius)


def importance_sensitivity(records: ArrayLike, dimension: ArrayLike, regularisation: ArrayLike) -> Any:
    """S = sqrt(d)/(N_D lambda), the L2 sensitivity of the regularised logistic coefficients (Ji and Elkan 2013).

    Reconstructed: the objective is lambda-strongly convex, replacing one record of [0, 1]^d changes its gradient by at
    most sqrt(d)/N_D.

    Parameters
    ----------
    records, dimension, regularisation : array_like
        Number N_D of private records, number d of features, the parameter lambda.

    Examples
    --------
    >>> round(importance_sensitivity(4, 3, 0.1), 10)
    4.3301270189
    """
    check(records=records, dimension=dimension, regularisation=regularisation)
    d = np.asarray(dimension, float)
    return plain(np.sqrt(d) / (np.asarray(records, float) * np.asarray(regularisation, float)))


def importance_mean_error(dimension: ArrayLike, scale: ArrayLike) -> Any:
    """Upper bound min(1, sqrt(d)/4 * d S/epsilon) on the mean error that the noise adds to a mean of b in [0, 1].

    The gradient Cov_w(b, x) has entries of size at most 1/4 wherever it is taken (b and x lie in [0, 1]), so by the
    mean value theorem the change is at most (sqrt(d)/4) ||z||, and E||z|| = d S/epsilon. The bias of the regularisation is not
    included.

    >>> round(importance_mean_error(3, 0.05), 6)
    0.064952
    """
    check(dimension=dimension, scale=scale)
    d = np.asarray(dimension, float)
    return plain(np.minimum(1.0, 0.25 * d**1.5 * np.asarray(scale, float)))
