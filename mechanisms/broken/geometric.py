"""The truncated geometric mechanism with the wrong logarithm (catalogue row 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..geometric import TruncatedGeometric


@dataclass(frozen=True, slots=True)
class NaturalLogGeometric(TruncatedGeometric):
    """GeoSample with ``bits = ceil(ln(2/epsilon))`` where Balcer and Vadhan 2018 take the binary logarithm.

    That is how the catalogue runs it: 3 bits at epsilon 0.1, and ``log(1 + 2^-3) = 0.1178`` above the claim.

    >>> mechanism = NaturalLogGeometric(epsilon=0.1, largest=5)
    >>> mechanism.bits, round(mechanism.epsilon_exact, 6)
    (3, 0.117783)
    """

    @property
    def bits(self) -> int:
        """Binary digits of the ratio, by the wrong logarithm."""
        return max(0, math.ceil(math.log(2.0 / self.epsilon)))
