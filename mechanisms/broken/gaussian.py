"""Gaussian noise with less variance than its calibration asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import erfinv

from dpaudit import exact
from dpaudit.claims import ApproxDP, Relation, gaussian_delta

from .._common import Floats, answer_of, check_draw, gaussian_epsilon
from ..gaussian import add_gaussian, analytic_scale, classical_scale, gaussian_law


@dataclass(frozen=True, slots=True)
class HalvedVariance:
    """The analytic Gaussian mechanism with half its variance: a variance used where a standard deviation was meant.

    >>> round(HalvedVariance(1.0, 1e-2).epsilon_exact, 4)
    1.5862
    """

    epsilon: float
    delta: float
    sensitivity: float = 1.0
    relation: ClassVar[Relation] = Relation.ANSWERS

    def __post_init__(self) -> None:
        _ = self.scale

    @property
    def scale(self) -> float:
        """Standard deviation of the noise: the right one over sqrt(2)."""
        return analytic_scale(self.epsilon, self.delta, self.sensitivity) / math.sqrt(2.0)

    @property
    def epsilon_exact(self) -> float:
        """The epsilon it keeps at the claimed delta."""
        return gaussian_epsilon(self.sensitivity / self.scale, self.delta)

    @property
    def claim(self) -> ApproxDP:
        """The claim made for it."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers."""
        check_draw(size, rng)
        return add_gaussian(answer_of(None, data), self.scale, size, rng)

    def law(self, data: Any) -> exact.Law:
        """Normal at the answer."""
        return gaussian_law(answer_of(None, data), self.scale)


@dataclass(frozen=True, slots=True)
class NotesGaussian:
    """The Gaussian sampler printed in the notes: ``mu + rho erfinv(2u - 1)`` for a noise of variance ``rho^2``.

    Since ``F(x) = (1 + erf((x - mu)/(rho sqrt 2)))/2``, the root of 2 is missing and the variance is ``rho^2/2``
    (docs/theory.md R19). The slack of the classical calibration hides it for some parameters: at (0.5, 1e-5) the true delta is
    1.465e-5, at (0.1, 1e-5) it is 2.4e-6.

    >>> sampler = NotesGaussian(0.5, 1e-5)
    >>> round(sampler.delta_exact * 1e5, 4), round(sampler.epsilon_exact, 5)
    (1.4652, 0.51436)
    """

    epsilon: float
    delta: float
    sensitivity: float = 1.0
    relation: ClassVar[Relation] = Relation.ANSWERS

    def __post_init__(self) -> None:
        _ = self.rho

    @property
    def rho(self) -> float:
        """The standard deviation, according to the notes."""
        return classical_scale(self.epsilon, self.delta, self.sensitivity)

    @property
    def scale(self) -> float:
        """The standard deviation that the formula gives."""
        return self.rho / math.sqrt(2.0)

    @property
    def delta_exact(self) -> float:
        """The delta it keeps at the claimed epsilon."""
        return float(gaussian_delta(self.epsilon, self.sensitivity / self.scale))

    @property
    def epsilon_exact(self) -> float:
        """The epsilon it keeps at the claimed delta."""
        return gaussian_epsilon(self.sensitivity / self.scale, self.delta)

    @property
    def claim(self) -> ApproxDP:
        """The claim made for it."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers by the printed formula; ``u = 0``, which has no image, is read as 2^-54."""
        check_draw(size, rng)
        answer = answer_of(None, data)
        uniform = np.maximum(rng.random((size, *answer.shape)), 2.0**-54)
        noise: Floats = erfinv(2.0 * uniform - 1.0)
        noise *= self.rho
        noise += answer
        return noise

    def law(self, data: Any) -> exact.Law:
        """Normal at the answer, with half the variance."""
        return gaussian_law(answer_of(None, data), self.scale)


def printed_cdf(x: float) -> float:
    """The standard normal's distribution function as the notes print it, with ``erf`` defined without ``2/sqrt(pi)``.

    ``(1 + integral_0^x exp(-t^2) dt) / 2`` runs from 0.0569 to 0.9431 and so is none (docs/theory.md R19).

    >>> [round(printed_cdf(x), 10) for x in (-math.inf, 0.0, math.inf)]
    [0.0568865373, 0.5, 0.9431134627]
    """
    return 0.5 * (1.0 + 0.5 * math.sqrt(math.pi) * math.erf(x))
