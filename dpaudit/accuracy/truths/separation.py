"""Exact number of records that separate an empirical quantile from the answer of HistogramMethod, over random data.

The proof of theorem 2.2.3.1 uses the event E_{A_i}, "fewer than alpha records separate d_i and A_i", and takes its probability
from the lemma on AboveThreshold. With N_j = #{x < t_j}, J the 1-based index at which the search stops, r the rank of the
empirical quantile and A = t_{J-1} the left edge that is released:

    records in (X_(r), A)    N_{J-1} - r        if N_{J-1} >= r,
    records in [A, X_(r))    r - 1 - N_{J-1}    otherwise.

The lemma bounds N_{J-1} from above and N_J (not N_{J-1}) from below, so for the left edge the lower half of the event does not
follow from it: the records of the bin itself may lie between. For the bin [A, A + h] it does. Both probabilities are computed
here. Given the threshold noise z the counts are a Markov chain, N_j - N_{j-1} ~ Bin(n - N_{j-1}, p_j), and the integral over z
is taken by Gauss-Legendre panels that end at every kink c - q n. The cost is steps n^2 nodes: for a few hundred records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit.accuracy.bounds.above_threshold import panels
from dpaudit.accuracy.bounds.deciles import centre
from dpaudit.accuracy.conditions import Real, check
from dpaudit.accuracy.distributions.order_statistics import rank
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.errors import InvalidArgument

MOST_OPERATIONS = 2e9
"""Largest steps times squared records: some seconds."""


@dataclass(frozen=True, slots=True)
class Separation:
    """The laws of N_{J-1} (``before``) and N_J (``at``), entry c for the count c; "none" counts all records for both."""

    before: Real
    at: Real
    rank: int

    def fewer_than(self, alpha: float, *, whole_bin: bool = False) -> float:
        """P(fewer than ``alpha`` records separate the empirical quantile from the left edge, or from the ``whole_bin``).

        Parameters
        ----------
        alpha : float
            Number of records.
        whole_bin : bool
            Count from the bin [A, A + h] instead of from its left edge A.
        """
        check(alpha=alpha)
        counts = np.arange(self.before.size)
        too_high = float(self.before[counts - self.rank >= alpha].sum())
        low_side = self.at if whole_bin else self.before
        return 1.0 - too_high - float(low_side[(self.rank - 1 - counts >= alpha) & (counts < self.rank)].sum())


def separation(setting: HistogramSetting) -> Separation:
    """Return the exact laws of the counts on both sides of the bin that is found.

    >>> from fractions import Fraction
    >>> law = separation(HistogramSetting(n=10, steps=4, quantile=Fraction(1, 2), epsilon=9.0))
    >>> round(law.fewer_than(3.0), 6), round(law.fewer_than(3.0, whole_bin=True), 6)
    (0.510014, 0.850477)
    """
    n, k = setting.n, setting.steps
    if k * n**2 > MOST_OPERATIONS:
        raise InvalidArgument(
            f"n={n}, steps={k}: the exact law of the counts costs steps n^2; keep it below {MOST_OPERATIONS:g}."
        )
    threshold_scale, query_scale = setting.scales
    threshold = float(centre(n, setting.quantile))
    grid = setting.low + setting.width * np.arange(k + 1)
    shares = setting.law.probability_below(grid)
    kinks = np.arange(n + 1) - threshold
    reach = 45.0 * max(threshold_scale, query_scale)
    ends = np.unique(np.concatenate([[-reach, 0.0, reach], kinks[np.abs(kinks) < reach]]))
    z, weights = panels(ends, 0.5 * min(threshold_scale, query_scale), order=8)
    weights = weights * np.exp(-np.abs(z) / threshold_scale) / (2.0 * threshold_scale)
    keep = _laplace_cdf((threshold + z[None, :] - np.arange(n + 1)[:, None]) / query_scale)
    alive = np.zeros((n + 1, z.size))
    alive[0] = 1.0
    # Records below the range are counted from the first query on.
    alive = _transition(n, float(shares[0])).T @ alive
    before, at = np.zeros(n + 1), np.zeros(n + 1)
    for j in range(1, k + 1):
        rest = 1.0 - float(shares[j - 1])
        step = _transition(n, (float(shares[j]) - float(shares[j - 1])) / rest if rest > 0.0 else 0.0)
        moved = step.T @ alive
        on = moved * keep
        at += (moved - on) @ weights
        # From the count c the search goes on with probability sum over c' of P(c' | c) F(T + z - c').
        before += (alive * (1.0 - step @ keep)) @ weights
        alive = on
    none = alive.sum(axis=0) @ weights
    before[n] += none
    at[n] += none
    return Separation(before, at, int(rank(n, setting.quantile)))


def _laplace_cdf(x: Real) -> Real:
    return np.where(x < 0.0, 0.5 * np.exp(np.minimum(x, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(x, 0.0)))


def _transition(n: int, p: float) -> Real:
    """Matrix of P(count c' | count c): each of the n - c records that are not counted yet is counted with probability p."""
    from scipy import stats

    counts = np.arange(n + 1)
    more = counts[None, :] - counts[:, None]
    return np.asarray(stats.binom.pmf(more, (n - counts)[:, None], min(max(p, 0.0), 1.0)), dtype=np.float64)
