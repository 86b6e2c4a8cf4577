r"""Integer noise: the two-sided geometric (discrete Laplace) mechanism, and the truncated geometric mechanism.

Both are exact on a finite computer where a Laplace in doubles is not (Mironov 2012): the outputs are integers, and the
truncated one is drawn from one uniform integer, so that its law is made of rational numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import check_count, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import Query, answer_of, check_draw, place, whole_numbers


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceMechanism:
    """Whole-number answers plus noise of mass proportional to ``exp(-epsilon |k| / sensitivity)`` on the integers.

    Ghosh, Roughgarden and Sundararajan 2009. The noise is the difference of two geometric variables of ratio
    ``exp(-epsilon / sensitivity)``. Privacy is that of the Laplace mechanism, and exactly reached beyond both answers.

    >>> import numpy as np
    >>> count = DiscreteLaplaceMechanism(epsilon=1.0, query=len, relation=Relation.ADD_REMOVE)
    >>> count.sample("abc", 4, np.random.default_rng(0)).dtype
    dtype('int64')
    """

    epsilon: float
    sensitivity: int = 1
    query: Query | None = None
    relation: Relation = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_count(sensitivity=self.sensitivity)
        if self.epsilon / self.sensitivity < 1e-12:
            raise InvalidArgument(
                f"epsilon={self.epsilon!r} with sensitivity={self.sensitivity!r} needs noise beyond 64 bits; "
                "use an epsilon of at least 1e-12 times the sensitivity."
            )

    @property
    def scale(self) -> float:
        """Scale of the noise: its mass falls by ``exp(-1/scale)`` a step."""
        return self.sensitivity / self.epsilon

    @property
    def claim(self) -> PureDP:
        """epsilon-DP, exactly reached."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return ``size`` noisy answers, as integers."""
        check_draw(size, rng)
        answer = whole_numbers("answer", answer_of(self.query, data))
        stop = -math.expm1(-1.0 / self.scale)
        noise = rng.geometric(stop, (size, *answer.shape))
        noise -= rng.geometric(stop, noise.shape)
        noise += answer
        return noise

    def law(self, data: Any) -> exact.Law:
        """Discrete Laplace at the answer; for a vector the product of one per coordinate."""
        answer = whole_numbers("answer", answer_of(self.query, data))
        if answer.ndim == 0:
            return exact.DiscreteLaplace(int(answer), self.scale)
        return exact.Product([exact.DiscreteLaplace(int(entry), self.scale) for entry in answer])


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """A count in ``0..largest`` plus two-sided geometric noise of ratio ``1/(1 + 2^-bits)``, clamped to that range.

    Balcer and Vadhan 2018, GeoSample: ``bits = ceil(log2(2/epsilon))`` makes the ratio rational, and a single uniform
    integer below ``(2^(bits+1) + 1)(2^bits + 1)^(largest - 1)`` decides the output by exact comparison. The epsilon
    reached is ``log(1 + 2^-bits)``, at most ``epsilon / 2``: clamping is post-processing, and the end points keep the
    ratio.

    >>> mechanism = TruncatedGeometric(epsilon=0.1, largest=5)
    >>> mechanism.bits, round(mechanism.epsilon_exact, 6)
    (5, 0.030772)
    """

    epsilon: float
    largest: int
    relation: Relation = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_count(largest=self.largest)
        truncated_geometric_steps(self.bits, self.largest, 0)

    @property
    def bits(self) -> int:
        """Binary digits of the ratio, ``ceil(log2(2 / epsilon))`` and at least zero."""
        return max(0, math.ceil(math.log2(2.0 / self.epsilon)))

    @property
    def epsilon_exact(self) -> float:
        """The epsilon reached for counts that differ by one."""
        return math.log1p(2.0**-self.bits)

    @property
    def claim(self) -> PureDP:
        """epsilon-DP; the mechanism is better than that, see ``epsilon_exact``."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return ``size`` noisy counts in ``0..largest``: one uniform integer each among the cumulative weights."""
        check_draw(size, rng)
        steps = np.array(self._steps(data), dtype=np.int64)
        return place(steps[:-1], rng.integers(1, steps[-1], size, endpoint=True), "left")

    def law(self, data: Any) -> exact.Law:
        """The clamped geometric law: differences of the cumulative weights over their total, rounded once."""
        steps = [0, *self._steps(data)]
        return exact.Discrete({z: float(Fraction(steps[z + 1] - steps[z], steps[-1])) for z in range(self.largest + 1)})

    def _steps(self, data: Any) -> list[int]:
        count = whole_numbers("data", data)
        if count.size != 1 or not 0 <= int(count.flat[0]) <= self.largest:
            raise InvalidArgument(f"data={data!r} must be one count between 0 and {self.largest}.")
        return truncated_geometric_steps(self.bits, self.largest, int(count.flat[0]))


def truncated_geometric_steps(bits: int, largest: int, count: int) -> list[int]:
    """Cumulative probabilities at ``0..largest`` times their common denominator, as integers.

    With ratio ``a = 2^b/(2^b + 1)``, ``P(Z <= z)`` is ``a^(count - z)/(1 + a)`` below the count and
    ``1 - a^(z - count + 1)/(1 + a)`` from it on, and ``a^j/(1 + a) = 2^(bj)/((2^b + 1)^(j - 1) (2^(b+1) + 1))``.
    """
    base, power = 2**bits + 1, 2**bits
    total = (2 * power + 1) * base ** (largest - 1)
    if total >= 2**63:
        raise InvalidArgument(
            f"largest={largest!r} with {bits} bits needs integers beyond 64 bits; use a smaller range."
        )

    def tail(j: int) -> int:
        return int(power**j * base ** (largest - j))

    below = [tail(count - z) for z in range(count)]
    return below + [total - tail(z - count + 1) for z in range(count, largest)] + [total]
