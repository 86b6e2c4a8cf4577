"""Bounded noise whose radius was taken from the wrong place, or cut off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import exact
from dpaudit.claims import ApproxDP, Relation
from dpaudit.validation import check_count, check_open_unit, check_positive
from mechanisms._common import Floats, answer_of, answers_of, check_draw
from mechanisms.bounded_density import noise_law, unit_noise
from mechanisms.bounded_noise import calibrate_radius, composed_delta, composed_epsilon


@dataclass(frozen=True, slots=True)
class RadiusForOneQuery:
    """The radius of one query used for ``queries`` of them, as if noise that is bounded need not grow.

    >>> broken = RadiusForOneQuery(1.0, 1e-6, queries=100)
    >>> broken.delta_exact > 1e-3
    True
    """

    epsilon: float
    delta: float
    queries: int = 100
    family: str = "DE"

    def __post_init__(self) -> None:
        check_count(queries=self.queries)
        _ = self.radius

    @property
    def radius(self) -> float:
        """Largest error."""
        return calibrate_radius(family=self.family, epsilon=self.epsilon, delta=self.delta)

    @property
    def relation(self) -> Relation:
        """Vectors of query answers."""
        return Relation.ANSWERS

    @property
    def claim(self) -> ApproxDP:
        """What it pretends."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    @property
    def delta_exact(self) -> float:
        """The delta it keeps at the claimed epsilon, reached where all answers move."""
        return composed_delta(
            family=self.family, radius=self.radius, sensitivity=1.0, epsilon=self.epsilon, queries=self.queries
        )

    @property
    def epsilon_exact(self) -> float:
        """The epsilon it keeps at the claimed delta."""
        return composed_epsilon(
            family=self.family, radius=self.radius, sensitivity=1.0, delta=self.delta, queries=self.queries
        )

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` rows of noisy answers."""
        check_draw(size, rng)
        answers = answers_of(data, length=self.queries)
        return answers + self.radius * unit_noise(self.family, size * answers.size, rng).reshape(size, -1)

    def law(self, data: ArrayLike) -> exact.Law:
        """Exact law of a row."""
        return exact.Product(
            [noise_law(self.family, float(answer), self.radius) for answer in answers_of(data, length=self.queries)]
        )


@dataclass(frozen=True, slots=True)
class RadiusWithoutSensitivity:
    """The radius for sensitivity 1, whatever the sensitivity of the query is.

    >>> broken = RadiusWithoutSensitivity(1.0, 1e-5, sensitivity=10.0)
    >>> broken.delta_exact > 0.01
    True
    """

    epsilon: float
    delta: float
    sensitivity: float
    family: str = "DE"

    def __post_init__(self) -> None:
        check_positive(sensitivity=self.sensitivity)
        _ = self.radius

    @property
    def radius(self) -> float:
        """Largest error."""
        return calibrate_radius(family=self.family, epsilon=self.epsilon, delta=self.delta)

    @property
    def relation(self) -> Relation:
        """The data are the answer."""
        return Relation.ANSWERS

    @property
    def claim(self) -> ApproxDP:
        """What it pretends."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    @property
    def delta_exact(self) -> float:
        """The delta it keeps at the claimed epsilon."""
        return composed_delta(
            family=self.family, radius=self.radius, sensitivity=self.sensitivity, epsilon=self.epsilon, queries=1
        )

    @property
    def epsilon_exact(self) -> float:
        """The epsilon it keeps at the claimed delta."""
        return composed_epsilon(
            family=self.family, radius=self.radius, sensitivity=self.sensitivity, delta=self.delta, queries=1
        )

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers."""
        check_draw(size, rng)
        answer = answer_of(None, data)
        return answer + self.radius * unit_noise(self.family, size * answer.size, rng).reshape((size, *answer.shape))

    def law(self, data: Any) -> exact.Law:
        """Exact law of a release."""
        answer = answer_of(None, data)
        laws = [noise_law(self.family, float(entry), self.radius) for entry in answer.reshape(-1)]
        return laws[0] if answer.ndim == 0 else exact.Product(laws)


@dataclass(frozen=True, slots=True)
class ClippedNoise:
    """The noise is clipped to ``share`` of its radius to look better: the cut-off mass sits in two atoms.

    An atom at ``answer + share * R`` names the answer, so its mass counts fully towards delta, at every epsilon.

    >>> broken = ClippedNoise(1.0, 1e-5, share=0.5)
    >>> broken.epsilon_exact, broken.delta_exact > 0.05
    (inf, True)
    """

    epsilon: float
    delta: float
    share: float = 0.5
    family: str = "DE"

    def __post_init__(self) -> None:
        check_open_unit(share=self.share)
        _ = self.radius

    @property
    def radius(self) -> float:
        """Radius before clipping."""
        return calibrate_radius(family=self.family, epsilon=self.epsilon, delta=self.delta)

    @property
    def relation(self) -> Relation:
        """The data are the answer."""
        return Relation.ANSWERS

    @property
    def claim(self) -> ApproxDP:
        """What it pretends."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    @property
    def delta_exact(self) -> float:
        """The delta it keeps at the claimed epsilon, between two answers that are 1 apart."""
        return exact.delta(self.law(0.0), self.law(1.0), self.epsilon)

    @property
    def epsilon_exact(self) -> float:
        """The epsilon it keeps at the claimed delta: none, while the atoms weigh more than that."""
        laws = self.law(0.0), self.law(1.0)
        return math.inf if exact.delta(*laws, 700.0) > self.delta else exact.epsilon(*laws)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers."""
        check_draw(size, rng)
        answer = answer_of(None, data)
        noise = unit_noise(self.family, size * answer.size, rng).reshape((size, *answer.shape))
        return answer + self.radius * np.clip(noise, -self.share, self.share)

    def law(self, data: Any) -> exact.Law:
        """Exact law of a release."""
        answer = answer_of(None, data)
        laws = [self._one(float(entry)) for entry in answer.reshape(-1)]
        return laws[0] if answer.ndim == 0 else exact.Product(laws)

    def _one(self, answer: float) -> exact.Law:
        # The ends are computed as the sampler computes them, to the last bit.
        reach = self.radius * self.share
        return exact.Clipped(noise_law(self.family, answer, self.radius), answer - reach, answer + reach)
