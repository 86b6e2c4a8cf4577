"""Private quantiles by the exponential mechanism: one at a time (Smith 2011), and all at once (Gillenwater et al. 2021).

Both are what people would use instead of HistogramMethod or inverse sensitivity. One at a time: density proportional to
exp(-epsilon |#{x < t} - q n|/2) on [low, high]; a substitution changes the count by at most 1. All at once: the vector o of m
sorted answers has density proportional to exp(-epsilon u/4), u = sum over j of |#{x between o_{j-1} and o_j} -
(q_j - q_{j-1}) n|; a substitution changes u by at most 2, because a record leaves one interval and enters another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import array_within, check_interval, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument
from dpaudit.exact.mechanism_laws.histogram import DECILE_LEVELS, as_quantile

from ._common import Floats, check_draw
from .inverse_sensitivity import draw_piecewise


@dataclass(frozen=True, slots=True)
class ExponentialQuantile:
    """One quantile of numbers in [low, high].

    >>> law = ExponentialQuantile(1.0, 0.0, 1.0).law([0.1, 0.2, 0.4, 0.8])
    >>> np.exp(law.log_prob([0.05, 0.3, 0.9])).round(4).tolist()
    [0.5995, 1.6296, 0.5995]
    """

    epsilon: float
    low: float
    high: float
    quantile: Fraction | float = 0.5
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)
        as_quantile(self.quantile)

    @property
    def claim(self) -> PureDP:
        """epsilon-DP."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy quantiles."""
        return draw_piecewise(self.law(data), size, rng)

    def law(self, data: Any) -> exact.PiecewiseConstant:
        """The piecewise constant density."""
        rows = np.sort(array_within("data", data, self.low, self.high, empty=False))
        edges = np.concatenate([[self.low], rows, [self.high]])
        scores = -0.5 * self.epsilon * np.abs(np.arange(rows.size + 1) - float(as_quantile(self.quantile) * rows.size))
        kept = np.diff(edges) > 0.0
        return exact.PiecewiseConstant(np.append(edges[:-1][kept], self.high), scores[kept])


@dataclass(frozen=True, slots=True)
class JointExponentialQuantiles:
    """Several quantiles at once, sorted; the budget is not divided.

    The sampler runs over the quantiles and the n + 1 gaps between records. With F_j(i, k) the weight of the first j answers, the
    j-th of them the k-th in gap i of width g_i, and f_j(d) = exp(-epsilon |d - n_j|/4):

        F_j(i, 1) = g_i sum over i' < i of f_j(i - i') sum over k' of F_{j-1}(i', k'),
        F_j(i, k) = F_{j-1}(i, k - 1) f_j(0) g_i/k,

    where k! is the number of orders of k answers in one gap. Gaps are drawn backwards, then points uniformly in them.

    >>> joint = JointExponentialQuantiles(100.0, 0.0, 1.0, quantiles=(0.25, 0.75))
    >>> joint.sample(np.linspace(0.01, 0.99, 40), 3, np.random.default_rng(0)).round(1).tolist()
    [[0.2, 0.7], [0.3, 0.8], [0.2, 0.8]]
    """

    epsilon: float
    low: float
    high: float
    quantiles: tuple[Fraction | float, ...] = DECILE_LEVELS
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)
        levels = [as_quantile(q) for q in self.quantiles]
        if not levels or levels != sorted(set(levels)):
            raise InvalidArgument(f"quantiles={self.quantiles!r} must be increasing, and at least one.")

    @property
    def claim(self) -> PureDP:
        """epsilon-DP."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` rows of noisy quantiles."""
        check_draw(size, rng)
        rows = np.sort(array_within("data", data, self.low, self.high, empty=False))
        edges = np.concatenate([[self.low], rows, [self.high]])
        forward = self._forward(np.diff(edges))
        outputs = np.empty((size, len(self.quantiles)))
        for row in outputs:
            self._draw(forward, edges, rng, row)
        return outputs

    def _factor(self, j: int, records: int) -> Floats:
        """Return f_j(d) for d = 0, ..., n; j = 1, ..., m + 1."""
        levels = [Fraction(0), *(as_quantile(q) for q in self.quantiles), Fraction(1)]
        wanted = float((levels[j] - levels[j - 1]) * records)
        return np.asarray(np.exp(-0.25 * self.epsilon * np.abs(np.arange(records + 1) - wanted)))

    def _forward(self, gaps: Floats) -> list[Floats]:
        """F_j as arrays (gap, k - 1), each scaled by its sum: only ratios matter."""
        n, m = gaps.size - 1, len(self.quantiles)
        first = np.zeros((n + 1, m))
        first[:, 0] = gaps * self._factor(1, n)
        tables = [first / first.sum()]
        for j in range(2, m + 1):
            factor = self._factor(j, n)
            table = np.zeros((n + 1, m))
            before = tables[-1].sum(axis=1)
            table[1:, 0] = gaps[1:] * np.convolve(before, factor[1:])[:n]
            for k in range(2, j + 1):
                table[:, k - 1] = tables[-1][:, k - 2] * factor[0] * gaps / k
            tables.append(table / table.sum())
        return tables

    def _draw(self, forward: list[Floats], edges: Floats, rng: np.random.Generator, out: Floats) -> None:
        n, m = edges.size - 2, len(self.quantiles)
        j, right = m, n
        last = True
        while j > 0:
            factor = self._factor(j + 1, n)
            stop = right + 1 if last else right  # the last answer may lie in any gap, earlier ones left of the next
            weights = forward[j - 1][:stop] * factor[right - np.arange(stop)][:, None]
            cumulative = np.cumsum(weights.ravel())
            chosen = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
            gap, k = divmod(min(chosen, cumulative.size - 1), weights.shape[1])
            points = np.sort(rng.uniform(edges[gap], edges[gap + 1], k + 1))
            out[j - k - 1 : j] = points
            j, right, last = j - k - 1, gap, False
        assert math.isfinite(out[0])
