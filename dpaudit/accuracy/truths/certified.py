"""A proven enclosure of the error of HistogramMethod for any number of records (docs/theory.md R14, made two-sided).

It uses three monotonicity properties, no quadrature and no sampling:

* **Data.** More counts below the threshold points stop AboveThreshold earlier. By the inequality of Dvoretzky, Kiefer,
  Wolfowitz and Massart (one-sided, exponent -2 n e^2, valid for exp(-2 n e^2) <= 1/2) all counts #{x < t} are at least
  n (F(t) - e) except with probability p = exp(-2 n e^2), and at most n (F(t) + e) except with probability p. The noise
  is independent of the data, so with S(c) the survival function of the stopping index for fixed counts c,

      (1 - p) S(n (F + e)) <= E S <= (1 - p) S(n (F - e)) + p.

* **Threshold noise.** S given Z = z rises with z, so on a cell of z-values it lies between its values at the ends.
* **Queries.** In a block of queries the smallest count gives the largest factor, so the factor of a block of c queries lies
  between F(x_low)^c and F(x_high)^c. Billions of queries cost as much as thousands.

Every e gives valid bounds, so their pointwise best is valid too. Floating point rounding adds at most 1e-12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_count, check_interval
from dpaudit.accuracy.bound import Truth
from dpaudit.accuracy.bounds.deciles import DECILES, centre
from dpaudit.accuracy.conditions import Real, check
from dpaudit.accuracy.distributions.data_law import UNIFORM, DataLaw
from dpaudit.errors import InvalidArgument

_MISSED = (0.1, 0.03, 0.01, 3e-3, 3e-4)
"""Values of p = exp(-2 n e^2) that are tried."""
_ROUNDING = 1e-12
"""Allowance for floating point rounding."""
_CHUNK = 1 << 20
"""Number of cells times blocks that are computed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramSetting:
    """The parameters of HistogramMethod on independent records, and the scales of its noise.

    ``monotone_noise`` selects Lap(2/epsilon) for both threshold and queries (docs/theory.md R5); ``releases`` quantiles share
    ``epsilon``.
    """

    n: int
    steps: int
    quantile: Fraction
    epsilon: float
    law: DataLaw = UNIFORM
    low: float = 0.0
    high: float = 1.0
    releases: int = DECILES
    monotone_noise: bool = False

    def __post_init__(self) -> None:
        check(n=self.n, steps=self.steps, quantile=float(self.quantile), epsilon=self.epsilon)
        check_count(releases=self.releases)
        check_interval(low=self.low, high=self.high)
        if not self.low <= self.target <= self.high:
            raise InvalidArgument(
                f"quantile={float(self.quantile)!r} of law {self.law.name!r} is {self.target!r}, outside "
                f"[low={self.low!r}, high={self.high!r}]; widen the range of the mechanism."
            )

    @property
    def target(self) -> float:
        """The true quantile d."""
        return self.law.quantile(self.quantile)

    @property
    def width(self) -> float:
        """Width of a bin."""
        return (self.high - self.low) / self.steps

    @property
    def share(self) -> float:
        """Budget of this one release."""
        return self.epsilon / self.releases

    @property
    def scales(self) -> tuple[float, float]:
        """Scales of the threshold noise and of the query noise."""
        return 2.0 / self.share, (2.0 if self.monotone_noise else 4.0) / self.share


@dataclass(frozen=True, slots=True)
class Survival:
    """Bounds on S_m = P(the first m queries do not stop) at the indices ``ends``; S falls with m, and S_0 = 1."""

    ends: NDArray[np.int64]
    low: Real
    high: Real

    def at(self, index: int) -> tuple[float, float]:
        """Bounds on S at one of ``ends`` (0 beyond the last query: then A <= b surely)."""
        if index > int(self.ends[-1]):
            return 0.0, 0.0
        place = int(np.searchsorted(self.ends, index))
        return float(self.low[place]), float(self.high[place])


def survival(setting: HistogramSetting, cuts: tuple[int, ...] = (), blocks: int = 2000, cells: int = 800) -> Survival:
    """Enclose the survival function of the stopping index.

    Parameters
    ----------
    setting : HistogramSetting
        The parameters of the method.
    cuts : tuple of int
        Indices at which the bounds are needed.
    blocks, cells : int
        Numbers of blocks of queries and of cells of the threshold noise; more give a narrower enclosure.
    """
    ends, f_first, f_last = _blocks(setting, cuts, blocks)
    best_low, best_high = np.zeros(ends.size), np.ones(ends.size)
    for missed in _MISSED:
        slack = math.sqrt(-math.log(missed) / (2.0 * setting.n))
        more = setting.n * np.minimum(f_last + slack, 1.0)
        fewer = setting.n * np.maximum(f_first - slack, 0.0)
        low = (1.0 - missed) * _average(setting, more, np.diff(ends), cells, upper=False)
        high = (1.0 - missed) * _average(setting, fewer, np.diff(ends), cells, upper=True) + missed
        np.maximum(best_low, low, out=best_low)
        np.minimum(best_high, high, out=best_high)
    return Survival(ends, best_low - _ROUNDING, best_high + _ROUNDING)


def _blocks(setting: HistogramSetting, cuts: tuple[int, ...], blocks: int) -> tuple[NDArray[np.int64], Real, Real]:
    """Ends of the blocks of queries, and F at the first and the last query of each."""
    k = setting.steps
    wanted = np.concatenate([np.linspace(0, k, min(blocks, k) + 1).round(), [c for c in cuts if 0 <= c <= k]])
    ends = np.unique(wanted.astype(np.int64))
    first, last = setting.low + setting.width * (ends[:-1] + 1), setting.low + setting.width * ends[1:]
    return ends, setting.law.probability_below(first), setting.law.probability_below(last)


def _average(setting: HistogramSetting, counts: Real, sizes: NDArray[np.int64], cells: int, *, upper: bool) -> Real:
    """Survival for fixed counts, averaged over threshold noise; each cell of noise is pushed to its upper or lower end."""
    threshold_scale, query_scale = setting.scales
    edges, masses = _noise_cells(cells)
    # The upper end of the last cell is infinite (survival 1), the lower end of the first is minus infinity (survival
    # 0).
    inner = edges[1:-1] * threshold_scale
    weights = masses[:-1] if upper else masses[1:]
    total = np.full(sizes.size + 1, masses[-1] if upper else 0.0)
    gap = (float(centre(setting.n, setting.quantile)) - counts) / query_scale
    rows = max(1, _CHUNK // sizes.size)
    for start in range(0, inner.size, rows):
        z = inner[start : start + rows, None] / query_scale
        log_survival = np.cumsum(sizes * _log_cdf(gap + z), axis=1)
        w = weights[start : start + rows]
        total[0] += w.sum()
        total[1:] += w @ np.exp(log_survival)
    return total


def _noise_cells(cells: int) -> tuple[Real, Real]:
    """Edges (unit scale) and probabilities of cells of Laplace noise: equal in the bulk, geometric in the tails."""
    tail = np.geomspace(1e-9, 0.5 / cells, 40)
    below = np.concatenate([tail, np.linspace(0.5 / cells, 0.5, cells // 2 + 1)[1:]])
    edges = np.concatenate([[-np.inf], np.log(2.0 * below), -np.log(2.0 * below[-2::-1]), [np.inf]])
    part = np.diff(np.concatenate([[0.0], below]))
    return edges, np.concatenate([part, part[::-1]])


def _log_cdf(x: Real) -> Real:
    """Log of the distribution function of Lap(1)."""
    return np.where(x < 0.0, x - math.log(2.0), np.log1p(-0.5 * np.exp(-np.abs(x))))


@lru_cache(maxsize=1024)
def mean_error(setting: HistogramSetting, blocks: int = 2000, cells: int = 800) -> Truth:
    """Enclose E|A - d|: int_a^d P(A <= t) dt + int_d^b P(A > t) dt with P(A > a + m h) = E S_{m+1}.

    Parameters
    ----------
    setting : HistogramSetting
        The parameters of the method.
    blocks : int
        Number of blocks of queries, as for :func:`survival`.
    cells : int
        Number of noise cells, as for :func:`survival`.

    Examples
    --------
    >>> setting = HistogramSetting(n=10**6, steps=108574, quantile=Fraction(1, 2), epsilon=0.0019)
    >>> truth = mean_error(setting, blocks=1000, cells=400)
    >>> 0.1385 < truth.low < 0.1424 < truth.high < 0.1475
    True
    """
    a, h, d = setting.low, setting.width, setting.target
    cut = min(int((d - a) / h), setting.steps - 1)
    curve = survival(setting, (cut, cut + 1), blocks, cells)
    # On [a + ends_i h, a + ends_{i+1} h) the survival lies between its values at the two ends.
    edges = a + h * curve.ends
    over = np.maximum(edges[1:], d) - np.maximum(edges[:-1], d)
    under = np.minimum(edges[1:], d) - np.minimum(edges[:-1], d)
    high, low = np.minimum(curve.high[:-1], 1.0), np.maximum(curve.low[1:], 0.0)
    slack = _ROUNDING * (setting.high - setting.low)
    return Truth(
        low=float((d - a) - under @ high + over @ low) - slack,
        high=float((d - a) - under @ low + over @ high) + slack,
        method="certified",
    )


@lru_cache(maxsize=1024)
def probability(setting: HistogramSetting, low: float, high: float, blocks: int = 2000, cells: int = 800) -> Truth:
    """Enclose P(low <= A <= high), ends included; an output within rounding of an end counts as inside.

    ``blocks`` and ``cells`` are those of :func:`survival`.
    """
    first, last = _grid_inside(setting, low, high)
    curve = survival(setting, (first, last + 1), blocks, cells)
    (start_low, start_high), (stop_low, stop_high) = curve.at(first), curve.at(last + 1)
    return Truth(low=max(0.0, start_low - stop_high), high=min(1.0, start_high - stop_low), method="certified")


def probability_at_mean_counts(
    setting: HistogramSetting, low: float, high: float, blocks: int = 400, cells: int = 200
) -> float:
    """P(low <= A <= high) if every count were its mean n F(t): a fast approximation for many records, not a bound.

    Parameters
    ----------
    setting : HistogramSetting
        The parameters of the method.
    low, high : float
        Ends of the interval.
    blocks : int
        Number of blocks of queries, as for :func:`survival`.
    cells : int
        Number of noise cells, as for :func:`survival`.
    """
    first, last = _grid_inside(setting, low, high)
    ends, f_first, f_last = _blocks(setting, (first, last + 1), blocks)
    sizes, middle = np.diff(ends), setting.n * 0.5 * (f_first + f_last)
    curve = 0.5 * sum(_average(setting, middle, sizes, cells, upper=upper) for upper in (True, False))
    at_ends = Survival(ends, np.asarray(curve), np.asarray(curve))
    return at_ends.at(first)[0] - at_ends.at(last + 1)[0]


def _grid_inside(setting: HistogramSetting, low: float, high: float) -> tuple[int, int]:
    """Return the first and the last grid point in [low, high]; one within rounding of an end is inside."""
    first = max(0, math.ceil((low - setting.low) / setting.width - 1e-9))
    return first, math.floor((high - setting.low) / setting.width + 1e-9)
