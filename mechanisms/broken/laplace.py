"""Broken Laplace noise: too little of it, made from the data, or sometimes none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import array_within, check_interval, check_open_unit, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from .._common import Floats, Query, answer_of, answers_of, check_draw
from ..laplace import LaplaceMechanism, add_laplace, laplace_law


@dataclass(frozen=True, slots=True)
class MisscaledLaplace:
    """Laplace noise of ``factor`` times the scale that the claim needs; the true epsilon is ``epsilon / factor``.

    One half is a forgotten sensitivity of 2 (substitution charged as removal), 0.9 a small slip that only a sharp audit
    sees, and ``epsilon**2`` the scale ``epsilon`` in place of ``1/epsilon`` (catalogue row 4).

    >>> MisscaledLaplace(1.0, factor=0.5).epsilon_exact
    2.0
    """

    epsilon: float
    factor: float
    sensitivity: float = 1.0
    query: Query | None = None
    relation: Relation = Relation.ANSWERS
    method: str = "numpy"

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, factor=self.factor)
        _ = self.sound

    @property
    def epsilon_exact(self) -> float:
        """The true epsilon."""
        return self.epsilon / self.factor

    @property
    def sound(self) -> LaplaceMechanism:
        """The mechanism that it is, with its true epsilon."""
        return LaplaceMechanism(self.epsilon_exact, self.sensitivity, self.query, self.relation, self.method)

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers."""
        return self.sound.sample(data, size, rng)

    def law(self, data: Any) -> exact.Law:
        """Laplace at the answer, coordinate by coordinate."""
        return self.sound.law(data)


@dataclass(frozen=True, slots=True)
class OccasionallyRaw:
    """The Laplace mechanism that releases the answer itself once in ``1/probability`` times: epsilon is infinite.

    The raw answer is an atom that a neighbour cannot produce. It is as rare as wanted, so an auditor with a floor on
    the probability of its events never sees it.
    """

    epsilon: float
    probability: float = 1e-3
    sensitivity: float = 1.0
    relation: ClassVar[Relation] = Relation.ANSWERS
    epsilon_exact: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        check_open_unit(probability=self.probability)

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` outputs, some of them raw."""
        check_draw(size, rng)
        answer = answer_of(None, data)
        outputs = add_laplace(answer, self.sensitivity / self.epsilon, size, rng)
        outputs[rng.random(size) < self.probability] = answer
        return outputs

    def law(self, data: Any) -> exact.Law:
        """An atom at the answer and a Laplace density around it, for one answer: several are raw together."""
        answers = np.asarray(answer_of(None, data))
        if answers.size != 1:
            raise InvalidArgument(f"data={data!r} must hold one answer; the joint law of several is not written down.")
        answer = float(answers.item())
        noisy = exact.Laplace(answer, self.sensitivity / self.epsilon)
        law = exact.WithAtoms({answer: self.probability}, 1.0 - self.probability, noisy)
        return law if answers.ndim == 0 else exact.Product([law])


@dataclass(frozen=True, slots=True)
class SensitivityFromData:
    """The mean of numbers in [low, high], with noise for the range that the data happen to have: epsilon is infinite.

    The notes define the sensitivity as a maximum over pairs of D; read as the data at hand (docs/theory.md R19c) it is zero on
    equal rows, which are then released raw, and elsewhere the scale itself distinguishes the data.
    """

    epsilon: float
    low: float
    high: float
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    epsilon_exact: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy means."""
        check_draw(size, rng)
        mean, scale = self._mean(data)
        return add_laplace(np.asarray(mean), scale, size, rng)

    def law(self, data: Any) -> exact.Law:
        """Laplace at the mean, or the mean itself where all rows are equal."""
        mean, scale = self._mean(data)
        return exact.Laplace(mean, scale) if scale > 0.0 else exact.Discrete({mean: 1.0})

    def _mean(self, data: Any) -> tuple[float, float]:
        rows = array_within("data", data, self.low, self.high, empty=False)
        return float(rows.mean()), float(np.ptp(rows)) / (rows.size * self.epsilon)


@dataclass(frozen=True, slots=True)
class PrefixSum:
    """Prefix sums of noisy answers, charged for one answer (catalogue row 19).

    The sums are a one-to-one map of the noisy answers, whose differences give them back, so the true epsilon is that of
    the answers: ``length * epsilon`` if all may move, not epsilon. There is no law object for the sums themselves;
    :meth:`law_of_answers` has the law of their differences, with the same divergences.
    """

    epsilon: float
    length: int = 10
    relation: ClassVar[Relation] = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, length=self.length)

    @property
    def epsilon_exact(self) -> float:
        """``length * epsilon``."""
        return self.length * self.epsilon

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` rows of prefix sums."""
        check_draw(size, rng)
        answers = answers_of(data, length=self.length)
        sums = add_laplace(answers, 1.0 / self.epsilon, size, rng, method="signed-exponential")
        for column in range(1, self.length):  # columns are contiguous, so this is faster than a cumulative sum of rows
            sums[:, column] += sums[:, column - 1]
        return sums

    def law_of_answers(self, data: Any) -> exact.Law:
        """Law of the noisy answers, which are the differences of the released sums."""
        return laplace_law(answers_of(data, length=self.length), 1.0 / self.epsilon)
