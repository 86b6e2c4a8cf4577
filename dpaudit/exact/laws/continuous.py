"""Named one-dimensional densities: Laplace, one-sided exponential, Gaussian, Laplace plus Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr

from dpaudit._util.validation import check_finite, check_positive
from dpaudit.errors import InvalidArgument
from dpaudit.exact.form import Array, Continuous, Form, FormLaw, Tail
from dpaudit.exact.laws.piecewise import Pieces
from dpaudit.exact.quadrature import gauss_legendre, log_integrals

_LOG_SQRT_TAU = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SMALLEST_SCALE = 1e-150
"""Smallest allowed scale; the largest is its inverse. Squares of scales between them are finite and not zero."""


@dataclass(frozen=True, slots=True)
class Laplace(FormLaw):
    """The Laplace law: density ``exp(-|x - location| / scale) / (2 scale)``.

    >>> Laplace(0.0, 2.0).log_prob([0.0, 2.0]).round(6).tolist()
    [-1.386294, -2.386294]
    """

    location: float
    scale: float

    def __post_init__(self) -> None:
        check_finite(location=self.location)
        _check_scale(scale=self.scale)

    def form(self) -> Form:
        """A density that is log-linear on both sides of the location."""
        value, slope = -math.log(2.0 * self.scale), 1.0 / self.scale
        pieces = Pieces(
            np.array([-np.inf, self.location, np.inf]),
            np.array([self.location, self.location], dtype=np.float64),
            np.array([value, value]),
            np.array([slope, -slope]),
        )
        return Form(continuous=pieces.continuous())

    def _draw(self, size: int, rng: np.random.Generator) -> Array:
        return rng.laplace(self.location, self.scale, size)


@dataclass(frozen=True, slots=True)
class Exponential(FormLaw):
    """The one-sided exponential law: density ``exp(-(x - location) / scale) / scale`` for ``x >= location``.

    Two of them at different locations have different supports, so they are never private in one of the orders.

    >>> Exponential(1.0, 2.0).log_prob([0.5, 1.0]).round(6).tolist()
    [-inf, -0.693147]
    """

    location: float
    scale: float

    def __post_init__(self) -> None:
        check_finite(location=self.location)
        _check_scale(scale=self.scale)

    def form(self) -> Form:
        """A log-linear density with a jump at the location."""
        pieces = Pieces(
            np.array([self.location, np.inf]),
            np.array([self.location], dtype=np.float64),
            np.array([-math.log(self.scale)]),
            np.array([-1.0 / self.scale]),
        )
        return Form(continuous=pieces.continuous())

    def _draw(self, size: int, rng: np.random.Generator) -> Array:
        return self.location + rng.exponential(self.scale, size)


@dataclass(frozen=True, slots=True)
class Gaussian(FormLaw):
    """The normal law of mean ``location`` and standard deviation ``scale``.

    >>> Gaussian(1.0, 2.0).log_prob([1.0]).round(6).tolist()
    [-1.612086]
    """

    location: float
    scale: float

    def __post_init__(self) -> None:
        check_finite(location=self.location)
        _check_scale(scale=self.scale)

    def form(self) -> Form:
        """A smooth density."""
        precision = 1.0 / self.scale**2
        constant = -0.5 * (self.location / self.scale) ** 2 - _LOG_SQRT_TAU - math.log(self.scale)
        tails = tuple(Tail(0.5 * precision, sign * self.location * precision, 0.0, constant) for sign in (1.0, -1.0))
        landmarks = tuple(self.location + self.scale * k for k in (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0))
        support = (-math.inf, math.inf)
        return Form(
            continuous=Continuous(self._log_density, self._log_mass, support, (), landmarks, (tails[0], tails[1]))
        )

    def _draw(self, size: int, rng: np.random.Generator) -> Array:
        return rng.normal(self.location, self.scale, size)

    def _log_density(self, x: Array, side: int = 1) -> Array:  # noqa: ARG002 - smooth: both sides agree
        z = (x - self.location) / self.scale
        return -0.5 * z * z - (_LOG_SQRT_TAU + math.log(self.scale))

    def _log_mass(self, low: Array, high: Array) -> Array:
        """Difference of tails on the side where both are small; where it cancels, on narrow intervals, a quadrature."""
        a, b = np.broadcast_arrays(
            (np.asarray(low) - self.location) / self.scale, (np.asarray(high) - self.location) / self.scale
        )
        flip = np.abs(a) > np.abs(b)
        near, far = np.where(flip, -b, a), np.where(flip, -a, b)
        with np.errstate(invalid="ignore", divide="ignore"):
            larger, smaller = log_ndtr(-near), log_ndtr(-far)
            drop = smaller - larger
            values = np.where(a < b, larger + np.log(-np.expm1(drop)), -np.inf)
        narrow = (a < b) & (drop > -0.5)
        if narrow.any():
            left, right = np.broadcast_arrays(low, high)
            values[narrow] = gauss_legendre(self._log_density, left[narrow], right[narrow])
        return values


@dataclass(frozen=True, slots=True)
class LaplaceGaussian(FormLaw):
    """The law of ``location + Laplace(0, scale) + Gaussian(0, sigma)``, the two independent.

    With ``t = x - location``, ``b = scale`` and ``s = sigma`` the density is
    ``[exp(s^2/2b^2 - t/b) Phi(t/s - s/b) + exp(s^2/2b^2 + t/b) Phi(-t/s - s/b)] / 2b``: what an observer sees of a
    Gaussian secret behind Laplace noise.

    >>> LaplaceGaussian(0.0, 1.0, 1.0).log_prob([0.0, 30.0]).round(6).tolist()
    [-1.341022, -30.193147]
    """

    location: float
    scale: float
    sigma: float

    def __post_init__(self) -> None:
        check_finite(location=self.location)
        _check_scale(scale=self.scale, sigma=self.sigma)

    def form(self) -> Form:
        """A smooth density with exponential tails."""
        b, s = self.scale, self.sigma
        constant = 0.5 * (s / b) ** 2 - math.log(2.0 * b)
        tails = tuple(Tail(0.0, 1.0 / b, 0.0, constant + sign * self.location / b) for sign in (-1.0, 1.0))
        reach = {0.0, *(s * k for k in (1.0, 3.0, 8.0)), *(b * k for k in (1.0, 4.0)), s * s / b}
        landmarks = tuple(sorted({self.location + sign * r for r in reach for sign in (-1.0, 1.0)}))
        return Form(
            continuous=Continuous(
                self._log_density,
                lambda low, high: log_integrals(lambda x: self._log_density(x), low, high, (), landmarks),
                (-math.inf, math.inf),
                (),
                landmarks,
                (tails[0], tails[1]),
            )
        )

    def _draw(self, size: int, rng: np.random.Generator) -> Array:
        return rng.laplace(self.location, self.scale, size) + rng.normal(0.0, self.sigma, size)

    def _log_density(self, x: Array, side: int = 1) -> Array:  # noqa: ARG002 - smooth: both sides agree
        t = x - self.location
        return np.logaddexp(self._branch(t), self._branch(-t)) - math.log(2.0 * self.scale)

    def _branch(self, t: Array) -> Array:
        """``s^2/2b^2 - t/b + log Phi(t/s - s/b)``; left of ``s^2/b`` as ``-t^2/2s^2 + log(erfcx/2)``: no cancelling."""
        b, s = self.scale, self.sigma
        u = s / b - t / s
        z = t / s
        inner = -0.5 * z * z + np.log(0.5 * erfcx(np.maximum(u, 0.0) * _SQRT_HALF))
        outer = 0.5 * (s / b) ** 2 - t / b + log_ndtr(np.maximum(-u, 0.0))
        return np.where(u > 0.0, inner, outer)


def _check_scale(**named: Any) -> None:
    """Check that each scale is positive, and that its square does not over- or underflow."""
    check_positive(**named)
    for name, value in named.items():
        if not _SMALLEST_SCALE <= value <= 1.0 / _SMALLEST_SCALE:
            raise InvalidArgument(
                f"{name}={value!r} must lie between {_SMALLEST_SCALE} and {1.0 / _SMALLEST_SCALE}; change the unit."
            )
