"""Bounded noise whose radius was taken from the wrong place, or cut off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import exact
from dpaudit._util.validation import check_count, check_open_unit, check_positive
from dpaudit.claims import ApproxDP, Relation

from .._common import Floats, answer_of, answers_of, check_draw
from ..bounded_noise import add_noise, calibrate_radius, composed_delta, composed_epsilon, release_law
from ..bounded_noise.density import noise_law


@dataclass(frozen=True, slots=True)
class RadiusForLess:
    """The radius for one query of sensitivity 1, whatever the number of queries and their sensitivity are.

    Its error: bounded noise must grow with both.

    >>> RadiusForLess(1.0, 1e-6, queries=100).delta_exact > 1e-3
    True
    >>> RadiusForLess(1.0, 1e-5, sensitivity=10.0).delta_exact > 0.01
    True
    """

    epsilon: float
    delta: float
    queries: int = 1
    sensitivity: float = 1.0
    family: str = "DE"
    relation: ClassVar[Relation] = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_count(queries=self.queries)
        check_positive(sensitivity=self.sensitivity)
        _ = self.radius

    @property
    def radius(self) -> float:
        """Largest error."""
        return calibrate_radius(family=self.family, epsilon=self.epsilon, delta=self.delta)

    @property
    def claim(self) -> ApproxDP:
        """The claim made for it."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    @property
    def delta_exact(self) -> float:
        """The delta it keeps at the claimed epsilon, reached where all answers move."""
        return composed_delta(epsilon=self.epsilon, **self._composed())

    @property
    def epsilon_exact(self) -> float:
        """The epsilon it keeps at the claimed delta."""
        return composed_epsilon(delta=self.delta, **self._composed())

    def _composed(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "radius": self.radius,
            "sensitivity": self.sensitivity,
            "queries": self.queries,
        }

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` releases."""
        check_draw(size, rng)
        return add_noise(self._answers(data), self.family, self.radius, size, rng)

    def law(self, data: ArrayLike) -> exact.Law:
        """Exact law of a release."""
        return release_law(self._answers(data), lambda answer: noise_law(self.family, answer, self.radius))

    def _answers(self, data: ArrayLike) -> Floats:
        return answer_of(None, data) if self.queries == 1 else answers_of(data, length=self.queries)


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
    relation: ClassVar[Relation] = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_open_unit(share=self.share)
        _ = self.radius

    @property
    def radius(self) -> float:
        """Radius before clipping."""
        return calibrate_radius(family=self.family, epsilon=self.epsilon, delta=self.delta)

    @property
    def claim(self) -> ApproxDP:
        """The claim made for it."""
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
        return add_noise(answer_of(None, data), self.family, self.radius, size, rng, clip=self.share)

    def law(self, data: Any) -> exact.Law:
        """Exact law of a release."""
        return release_law(answer_of(None, data), self._one)

    def _one(self, answer: float) -> exact.Law:
        # The ends are computed as the sampler computes them, to the last bit.
        reach = self.radius * self.share
        return exact.Clipped(noise_law(self.family, answer, self.radius), answer - reach, answer + reach)
