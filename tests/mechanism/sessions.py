"""Sessions that answer one question after another: sound ones, and the same with one mistake each.

Data are lists of numbers. A question of a sparse vector is a place in that list, whose number is compared with a threshold; the
other sessions count the rows above a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

THRESHOLD = 0.5
SVT_EPSILON = 4.0
BUDGET = 1.0


class Refused(Exception):
    """The session answers no more, or not this question."""


@dataclass
class SparseVector:
    """Is the answer above the threshold? Ends after the first yes: SVT_EPSILON-DP (Lyu, Su and Li 2017, algorithm 1, c = 1)."""

    data: list[float]
    rng: np.random.Generator
    stops: bool = True

    def __post_init__(self) -> None:
        self.threshold = THRESHOLD + self.rng.laplace(scale=2.0 / SVT_EPSILON)
        self.stopped = False

    def ask(self, place: int) -> bool:
        if self.stopped:
            raise Refused
        above = bool(self.data[place] + self.rng.laplace(scale=4.0 / SVT_EPSILON) >= self.threshold)
        self.stopped = above and self.stops
        return above


def sparse_vector(data: list[float], rng: np.random.Generator) -> SparseVector:
    return SparseVector(data, rng)


def forgets_to_stop(data: list[float], rng: np.random.Generator) -> SparseVector:
    return SparseVector(data, rng, stops=False)


@dataclass
class NumericSparseVector:
    """As above with epsilon 1, and a yes comes with the answer, with noise of its own for another 1; two yeses: 4-DP in all."""

    data: list[float]
    rng: np.random.Generator
    reuses: bool = False
    left: int = 2

    def __post_init__(self) -> None:
        self.noise = self.rng.laplace(scale=2.0)

    def ask(self, place: int) -> float | None:
        if not self.left:
            raise Refused
        if self.data[place] + self.rng.laplace(scale=4.0) < THRESHOLD + self.noise:
            return None
        self.left -= 1
        if self.reuses:
            return float(self.data[place] + self.noise)
        self.noise = self.rng.laplace(scale=2.0)
        return float(self.data[place] + self.rng.laplace(scale=1.0))


def numeric_sparse_vector(data: list[float], rng: np.random.Generator) -> NumericSparseVector:
    return NumericSparseVector(data, rng)


def reuses_threshold_noise(data: list[float], rng: np.random.Generator) -> NumericSparseVector:
    """The noise of the threshold is that of the answers too, and is not drawn again after a yes."""
    return NumericSparseVector(data, rng, reuses=True)


@dataclass
class Filter:
    """Counts of rows above a number, each with an epsilon of its own; refuses what exceeds the budget in sum: BUDGET-DP."""

    data: list[int]
    rng: np.random.Generator
    price: Callable[[Filter, int, float], float] = lambda _, __, epsilon: epsilon
    spent: float = 0.0
    paid: dict[int, float] = field(default_factory=dict)

    def ask(self, question: tuple[int, float]) -> float:
        above, epsilon = question
        price = self.price(self, above, epsilon)
        if self.spent + price > BUDGET + 1e-9:
            raise Refused
        self.spent += price
        self.paid[above] = max(epsilon, self.paid.get(above, 0.0))
        return sum(row > above for row in self.data) + self.rng.laplace(scale=1.0 / epsilon)


def filter_by_sum(data: list[int], rng: np.random.Generator) -> Filter:
    return Filter(data, rng)


def charges_the_difference(data: list[int], rng: np.random.Generator) -> Filter:
    """Charges a repeated question only what it exceeds the earlier one by, as if the noise were the same."""
    return Filter(data, rng, lambda session, above, epsilon: max(epsilon - session.paid.get(above, 0.0), 0.0))


@dataclass
class Cache:
    """Counts with noise for BUDGET each, one question at most; an answer given once is given again for free."""

    data: list[int]
    rng: np.random.Generator
    draws_again: bool = False
    answers: dict[int, float] = field(default_factory=dict)

    def __call__(self, above: int) -> float:
        if above not in self.answers and self.answers:
            raise Refused
        if above not in self.answers or self.draws_again:
            self.answers[above] = sum(row > above for row in self.data) + self.rng.laplace(scale=1.0 / BUDGET)
        return self.answers[above]


def cache(data: list[int], rng: np.random.Generator) -> Cache:
    return Cache(data, rng)


def draws_again(data: list[int], rng: np.random.Generator) -> Cache:
    return Cache(data, rng, draws_again=True)


def one_more_time(transcript: list[tuple[Any, Any]]) -> tuple[int, float] | None:
    """An analyst who asks the same again, a little more precisely, until the session refuses."""
    if transcript and not isinstance(transcript[-1][1], float):
        return None
    return (0, 0.8 + 0.1 * len(transcript))
