r"""The inverse sensitivity mechanism (Asi and Duchi 2020; report, section 3; slides), for quantiles and for the mean.

An output t is the less likely the more rows must be replaced to make it the true answer: density proportional to
``exp(-epsilon len(x, t) / 2)`` on [low, high]. One substitution changes every length by at most 1, the weight by at
most ``exp(epsilon/2)`` and the normalisation by as much: epsilon-DP under substitution (report, theorem 3.1.0.1).
Smoothing by ``rho`` takes the smallest length within rho, and keeps it. For order statistics and the mean the length is
a staircase, so the density is piecewise constant; after a sort, one uniform number and one binary search draw an
output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import array_within, check_count, check_interval, check_non_negative, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument
from dpaudit.exact.mechanism_laws.histogram import as_quantile, rank
from dpaudit.exact.mechanism_laws.inverse_sensitivity import Segments, mean_segments, quantile_segments

from ._common import Floats, check_draw


@dataclass(frozen=True, slots=True)
class InverseSensitivityQuantile:
    """A quantile of numbers in [low, high]: the order statistic of rank ``ceil(quantile n)``.

    A median that averages two rows would have another length; the order statistic is meant for even n too.

    >>> import numpy as np
    >>> median = InverseSensitivityQuantile(1.0, 0.0, 1.0)
    >>> law = median.law([0.1, 0.2, 0.35, 0.5, 0.9])
    >>> np.exp(law.log_prob([0.3, 0.4])).round(6)
    array([1.477451, 1.477451])
    """

    epsilon: float
    low: float
    high: float
    quantile: Fraction | float = 0.5
    smoothing: float = 0.0
    relation: ClassVar[Relation] = Relation.SUBSTITUTE  # the number of rows is public

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)
        check_non_negative(smoothing=self.smoothing)
        as_quantile(self.quantile)

    @property
    def claim(self) -> PureDP:
        """epsilon-DP, approached for inner ranks."""
        return PureDP(self.epsilon, self.relation)

    def epsilon_bound(self, rows: int) -> float:
        """Return an epsilon that is kept for that many rows: the smallest one without smoothing and for one row.

        Without smoothing the smallest and the largest row cost half, because all lengths move the same way, and a single
        row costs nothing, because its density is uniform (docs/theory.md R18). Smoothing leaves a plateau of length 0 around the
        quantile, at least p = min(smoothing, W) of which lies in the range, W = high - low. Weights exp(-epsilon len/2) of
        neighbours differ by a factor of at most e = exp(epsilon/2), but on the plateau of the first they are at most its
        own, so its normaliser Z and the neighbour's Z' have Z'/Z <= e - (e - 1) p/Z, and Z <= p + (W - p)/e makes that

            epsilon/2 + log(e - (e - 1) p/(p + (W - p)/e)) < epsilon.

        One row: Z = w + (W - w)/e for the plateau's width w in the range, between p and min(2 smoothing, W), and both ends
        are approached, so epsilon/2 + log(Z(largest)/Z(p)) is exact; it is 0 where every plateau is the whole range.

        >>> [InverseSensitivityQuantile(1.0, 0.0, 1.0).epsilon_bound(n) for n in (1, 2, 3)]
        [0.0, 0.5, 1.0]
        >>> smooth = InverseSensitivityQuantile(1.0, 0.0, 1.0, smoothing=0.25)
        >>> round(smooth.epsilon_bound(1), 4), round(smooth.epsilon_bound(5), 4)
        (0.6306, 0.8497)
        """
        check_count(rows=rows)
        place = rank(as_quantile(self.quantile), rows)
        if self.smoothing == 0.0:
            return self.epsilon if 1 < place < rows else 0.0 if rows == 1 else self.epsilon / 2.0
        width, e = self.high - self.low, math.exp(self.epsilon / 2.0)
        least, most = min(self.smoothing, width), min(2.0 * self.smoothing, width)
        if rows == 1:
            total = [plateau + (width - plateau) / e for plateau in (least, most)]
            return 0.0 if least == width else self.epsilon / 2.0 + math.log(total[1] / total[0])
        return self.epsilon / 2.0 + math.log(e - (e - 1.0) * least / (least + (width - least) / e))

    def epsilon_exact(self, rows: int) -> float:
        """True epsilon for that many rows: the supremum over the data, where it is known (docs/theory.md R18).

        >>> [InverseSensitivityQuantile(1.0, 0.0, 1.0).epsilon_exact(n) for n in (1, 2, 3)]
        [0.0, 0.5, 1.0]
        """
        check_count(rows=rows)
        if self.smoothing > 0.0 and rows > 1:
            raise InvalidArgument(
                f"smoothing={self.smoothing!r}: the exact epsilon of {rows} rows is not known with smoothing; epsilon_bound(rows="
                f"{rows}) = {self.epsilon_bound(rows):.6g} is a proven upper bound."
            )
        return self.epsilon_bound(rows)

    def segments(self, data: Any) -> Segments:
        """The staircase of lengths."""
        rows = array_within("data", data, self.low, self.high, empty=False)
        place = rank(as_quantile(self.quantile), rows.size)
        return quantile_segments(rows, place, low=self.low, high=self.high, rho=self.smoothing)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy quantiles."""
        return draw_piecewise(self.law(data), size, rng)

    def law(self, data: Any) -> exact.PiecewiseConstant:
        """The piecewise constant density."""
        return self.segments(data).law(self.epsilon)


@dataclass(frozen=True, slots=True)
class InverseSensitivityMean:
    """The mean of numbers in [low, high].

    >>> import numpy as np
    >>> mean = InverseSensitivityMean(1.0, 0.0, 1.0)
    >>> mean.segments([0.1, 0.2, 0.35, 0.5, 0.9]).lengths
    array([5, 4, 3, 2, 1, 1, 2, 3, 4, 5])
    """

    epsilon: float
    low: float
    high: float
    smoothing: float = 0.0
    relation: ClassVar[Relation] = Relation.SUBSTITUTE  # the number of rows is public

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)
        check_non_negative(smoothing=self.smoothing)

    @property
    def claim(self) -> PureDP:
        """epsilon-DP."""
        return PureDP(self.epsilon, self.relation)

    def segments(self, data: Any) -> Segments:
        """The staircase of lengths."""
        rows = array_within("data", data, self.low, self.high, empty=False)
        return mean_segments(rows, low=self.low, high=self.high, rho=self.smoothing)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy means."""
        return draw_piecewise(self.law(data), size, rng)

    def law(self, data: Any) -> exact.PiecewiseConstant:
        """The piecewise constant density."""
        return self.segments(data).law(self.epsilon)


def draw_piecewise(law: exact.PiecewiseConstant, size: int, rng: np.random.Generator) -> Floats:
    """Draw from a piecewise constant density by inverting its distribution function, a broken line through the edges."""
    check_draw(size, rng)
    edges = np.asarray(law.edges)
    masses = np.exp(np.asarray(law.log_weights) - max(law.log_weights)) * np.diff(edges)
    cumulative = np.concatenate([[0.0], np.cumsum(masses)])
    uniform = rng.random(size)
    uniform *= cumulative[-1]
    return np.asarray(np.interp(uniform, cumulative, edges))
