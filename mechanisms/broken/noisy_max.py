"""Noisy max that releases the value of the maximum instead of its index (catalogue rows 7 and 8)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import check_choice, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.exact.form import Continuous, Form, Tail

from .._common import Floats, answers_of, check_draw, chunks
from .._quadrature import log_laplace_cdf, log_laplace_density
from ..noisy_max import noisy


@dataclass(frozen=True, slots=True)
class NoisyMaxValue:
    """The largest of the noisy answers itself, with noise of scale ``2 sensitivity / epsilon`` that pays for the index.

    Laplace noise: the density is a sum of products of one density and m - 1 distribution functions, each of which moves
    by at most ``epsilon/2``, and far below all answers every one of them does: the true epsilon is ``m epsilon / 2``.
    Exponential noise: the output is never below the largest answer, so epsilon is infinite.

    >>> round(NoisyMaxValue(0.1).epsilon_exact(5), 12), NoisyMaxValue(0.1, noise="exponential").epsilon_exact(5)
    (0.25, inf)
    """

    epsilon: float
    noise: str = "laplace"
    sensitivity: float = 1.0
    relation: ClassVar[Relation] = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        check_choice(("laplace", "exponential"), noise=self.noise)

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return 2.0 * self.sensitivity / self.epsilon

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return PureDP(self.epsilon, self.relation)

    def epsilon_exact(self, answers: int) -> float:
        """The true epsilon for that many answers."""
        return answers * self.epsilon / 2.0 if self.noise == "laplace" else math.inf

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy maxima."""
        check_draw(size, rng)
        answers = answers_of(data)
        maxima = np.empty(size)
        for rows in chunks(size, answers.size):
            np.max(noisy(answers, self.noise, self.scale, rows.stop - rows.start, rng), axis=0, out=maxima[rows])
        return maxima

    def law(self, data: Any) -> exact.Law:
        """Law with the distribution function ``prod_j F(x - a_j)``."""
        return MaximumLaw(tuple(answers_of(data).tolist()), self.noise, self.scale)


@dataclass(frozen=True, slots=True)
class MaximumLaw:
    """Law of the largest of several numbers with independent Laplace or exponential noise."""

    answers: tuple[float, ...]
    noise: str
    scale: float

    def _factors(self, x: Floats) -> tuple[Floats, Floats]:
        """Log distribution function and log-density of every noisy answer at every x."""
        gaps = x[..., None] - np.asarray(self.answers)
        if self.noise == "laplace":
            return log_laplace_cdf(gaps, self.scale), log_laplace_density(gaps, self.scale)
        positive = np.maximum(gaps, 0.0) / self.scale
        with np.errstate(divide="ignore"):
            log_cdf = np.log(-np.expm1(-positive))
        return log_cdf, np.where(gaps < 0.0, -np.inf, -positive - math.log(self.scale))

    def log_cdf(self, x: Floats) -> Floats:
        """Log-probability of at most x."""
        return np.asarray(self._factors(np.asarray(x, dtype=np.float64))[0].sum(axis=-1))

    def log_density(self, x: Floats, side: int = 1) -> Floats:
        """``sum_i f(x - a_i) prod_{j != i} F(x - a_j)`` in logs; at the end of the support by the side asked for."""
        x = np.asarray(x, dtype=np.float64)
        log_cdf, log_density = self._factors(x)
        count = len(self.answers)
        others = np.stack([np.delete(log_cdf, i, axis=-1).sum(axis=-1) for i in range(count)], axis=-1)
        total: Floats = np.logaddexp.reduce(log_density + others, axis=-1)
        if self.noise == "exponential" and side < 0:
            total = np.where(x <= max(self.answers), -np.inf, total)
        return total

    def log_prob(self, outputs: Any) -> Floats:
        """Log-density of each output."""
        return self.log_density(np.asarray(outputs, dtype=np.float64))

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` independent draws."""
        check_draw(size, rng)
        maxima: Floats = noisy(np.array(self.answers), self.noise, self.scale, size, rng).max(axis=0)
        return maxima

    def form(self) -> Form:
        """A density with kinks at the answers and exponential tails."""

        def log_mass(low: Floats, high: Floats) -> Floats:
            upper, lower = self.log_cdf(high), self.log_cdf(low)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(upper > lower, upper + np.log(-np.expm1(lower - upper)), -np.inf)

        points = np.sort(np.asarray(self.answers))
        count, rate = points.size, 1.0 / self.scale
        spread = (points[0] - 8 * self.scale, *points.tolist(), points[-1] + 8 * self.scale)
        top = float(np.logaddexp.reduce(points * rate))
        if self.noise == "exponential":
            right = Tail(linear=rate, constant=top - math.log(self.scale))
            end = float(points[-1])
            inner = tuple(x for x in spread if x >= end)
            return Form(
                continuous=Continuous(self.log_density, log_mass, (end, math.inf), (end,), inner, (None, right))
            )
        right = Tail(linear=rate, constant=top - math.log(2.0 * self.scale))
        # Below all answers the distribution function is exp(sum of (x - a_j)/scale) / 2^count.
        constant = math.log(count * rate) - count * math.log(2.0) - float(points.sum()) * rate
        left = Tail(linear=count * rate, constant=constant)
        kinks = tuple(np.unique(points).tolist())
        return Form(
            continuous=Continuous(
                self.log_density, log_mass, (-math.inf, math.inf), kinks, tuple(sorted(set(spread))), (left, right)
            )
        )
