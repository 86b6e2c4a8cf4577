"""The truncated geometric mechanism with the wrong logarithm (catalogue row 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit.claims import PureDP, Relation
from dpaudit.validation import check_count, check_positive
from mechanisms.geometric import draw_truncated_geometric, truncated_geometric_law, truncated_geometric_steps


@dataclass(frozen=True, slots=True)
class NaturalLogGeometric:
    """GeoSample with ``bits = ceil(ln(2/epsilon))`` where Balcer and Vadhan 2018 take the binary logarithm.

    That is how the catalogue runs it: 3 bits at epsilon 0.1, and ``log(1 + 2^-3) = 0.1178`` above the claim.

    >>> mechanism = NaturalLogGeometric(epsilon=0.1, largest=5)
    >>> mechanism.bits, round(mechanism.epsilon_exact, 6)
    (3, 0.117783)
    """

    epsilon: float
    largest: int

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_count(largest=self.largest)
        truncated_geometric_steps(self.bits, self.largest, 0)

    @property
    def bits(self) -> int:
        """Binary digits of the ratio, by the wrong logarithm."""
        return max(0, math.ceil(math.log(2.0 / self.epsilon)))

    @property
    def relation(self) -> Relation:
        """The data are one count."""
        return Relation.ANSWERS

    @property
    def epsilon_exact(self) -> float:
        """The true epsilon."""
        return math.log1p(2.0**-self.bits)

    @property
    def claim(self) -> PureDP:
        """What it pretends."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return ``size`` noisy counts."""
        return draw_truncated_geometric(self.bits, self.largest, data, size, rng)

    def law(self, data: Any) -> exact.Law:
        """The clamped geometric law."""
        return truncated_geometric_law(self.bits, self.largest, data)
