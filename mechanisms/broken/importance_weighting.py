"""Importance weights with too little noise, the wrong noise, none, or a public set that is not public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import exact
from dpaudit._util.validation import check_positive
from dpaudit.claims import PureDP, Relation

from .._common import Floats, check_draw
from ..importance_weighting import ImportanceWeighting, SphericalLaplace, features


@dataclass(frozen=True, slots=True)
class PerCoordinateNoise:
    """Laplace noise of scale ``S / epsilon`` on every coordinate, where ``S`` bounds the l2 distance.

    Noise that is independent by coordinate needs the l1 distance, which is up to ``sqrt(d)`` times larger.
    """

    mechanism: ImportanceWeighting
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return self.mechanism.claim

    def pair_epsilon(self, data: ArrayLike, neighbour: ArrayLike) -> float:
        """True epsilon of the noisy coefficients on this pair; that of the weights where they are lossless."""
        return exact.epsilon(self.coefficient_law(data), self.coefficient_law(neighbour))

    def coefficient_law(self, data: ArrayLike) -> exact.Law:
        """Exact law of the noisy coefficients."""
        right = self.mechanism.coefficient_law(data)
        return exact.Product([exact.Laplace(centre, right.scale) for centre in right.location])

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` rows of weights."""
        check_draw(size, rng)
        right = self.mechanism.coefficient_law(data)
        centre = np.array(right.location)
        return self.mechanism.weights(rng.laplace(centre, right.scale, (size, centre.size)))


@dataclass(frozen=True, slots=True)
class ForgottenRegularisation:
    """The sensitivity ``sqrt(d) / N_D``, without the ``1 / lambda`` of the strongly convex objective.

    Too little noise by the factor lambda, so the true epsilon is the right one over lambda.
    """

    mechanism: ImportanceWeighting
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return self.mechanism.claim

    def pair_epsilon(self, data: ArrayLike, neighbour: ArrayLike) -> float:
        """True epsilon of the weights on this pair."""
        return self.mechanism.visible_epsilon(data, neighbour) / self.mechanism.regularisation

    def coefficient_law(self, data: ArrayLike) -> SphericalLaplace:
        """Exact law of the noisy coefficients."""
        right = self.mechanism.coefficient_law(data)
        return SphericalLaplace(right.location, right.scale * self.mechanism.regularisation)

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` rows of weights."""
        return self.mechanism.weights(self.coefficient_law(data).sample(size, rng))


@dataclass(frozen=True, slots=True)
class PublicFromPrivate:
    """The "public" records are the private ones: their weights, however noisy, show which records are equal.

    Equal records get equal weights and different ones, almost surely, different weights, so epsilon is infinite on
    data that differ in a tie.
    """

    epsilon: float
    regularisation: float
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    epsilon_exact: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, regularisation=self.regularisation)

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` rows of weights, one weight per private record."""
        records = features("data", data)
        made = ImportanceWeighting(records, epsilon=self.epsilon, regularisation=self.regularisation)
        return made.sample(records, size, rng)


@dataclass(frozen=True, slots=True)
class WeightsWithoutNoise:
    """Weights of the coefficients before noise: the same every time, so epsilon is infinite."""

    mechanism: ImportanceWeighting
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    epsilon_exact: ClassVar[float] = math.inf  # on any pair whose coefficients differ

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return self.mechanism.claim

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` times the same weights."""
        check_draw(size, rng)
        return np.tile(self.mechanism.weights(self.mechanism.coefficients(data)), (size, 1))

    def law(self, data: ArrayLike) -> exact.Law:
        """All mass on one vector."""
        return exact.Discrete({tuple(self.mechanism.weights(self.mechanism.coefficients(data)).tolist()): 1.0})
