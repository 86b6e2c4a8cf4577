"""Broken randomised response: ranges taken from the data, and the same question asked again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import array_within, check_count, check_interval, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from .._common import Floats, check_draw
from ..randomised_response import RandomisedResponse, RangeResponse


@dataclass(frozen=True, slots=True)
class RangesFromData:
    """Randomised response on ranges that reach from the smallest to the largest value of the data.

    People answer with the middle of a range, so every answer reveals where the extreme values are: epsilon is
    infinite. With public edges (:class:`mechanisms.randomised_response.RangeResponse`) it is what is claimed.
    """

    epsilon: float
    ranges: int
    low: float
    high: float
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    epsilon_exact: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)
        check_count(minimum=2, ranges=self.ranges)

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` collections of answers, each the middle of a range."""
        check_draw(size, rng)
        values, inner = self._ranges(data)
        if inner is None:
            return np.broadcast_to(values, (size, values.size)).copy()
        answers: Floats = inner.midpoints[inner.sample(values, size, rng)]
        return answers

    def law(self, data: Any) -> exact.Law:
        """Product of one channel a person, on the midpoints."""
        values, inner = self._ranges(data)
        if inner is None:
            return exact.Product([exact.Discrete({float(value): 1.0}) for value in values])
        middles = tuple(inner.midpoints.tolist())
        channel = RandomisedResponse(inner.response.truthful, middles)
        return channel.law([middles[index] for index in inner.ranges(values)])

    def _ranges(self, data: Any) -> tuple[Floats, RangeResponse | None]:
        values = array_within("data", data, self.low, self.high, empty=False)
        edges = np.linspace(values.min(), values.max(), self.ranges + 1)
        if not (np.diff(edges) > 0.0).all():  # too narrow to be cut: one single range, and nothing to randomise
            return values, None
        return values, RangeResponse.of(self.epsilon, tuple(edges.tolist()))


@dataclass(frozen=True, slots=True)
class RepeatedResponse:
    """The same person asked ``times`` times, answering with fresh randomness, and charged once: ``times * epsilon``.

    RAPPOR memoises the permanent answer for this reason.

    >>> round(RepeatedResponse(RandomisedResponse.k_ary(1.0, (0, 1)), 10).epsilon_exact, 9)
    10.0
    """

    response: RandomisedResponse
    times: int
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        check_count(times=self.times)

    @property
    def epsilon_exact(self) -> float:
        """The true epsilon."""
        return self.times * self.response.epsilon

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return self.response.claim

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``size`` rows of answers to the repeated question."""
        return self.response.sample(self._asked(data), size, rng)

    def law(self, data: Any) -> exact.Law:
        """Product of equal channels."""
        return self.response.law(self._asked(data))

    def _asked(self, data: Any) -> list[Any]:
        if np.ndim(data) != 0:
            raise InvalidArgument(f"data={data!r} must be one person's answer.")
        return [data] * self.times
