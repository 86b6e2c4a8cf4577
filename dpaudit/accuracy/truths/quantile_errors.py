"""Exact error laws of HistogramMethod and inverse sensitivity, and the choice between exact, certified and simulated values."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from dpaudit._util.validation import array_within, check_generator, check_open_unit
from dpaudit.accuracy.bound import Truth
from dpaudit.accuracy.bounds.mean_error import excess_over, excess_under
from dpaudit.accuracy.conditions import Real
from dpaudit.accuracy.distributions.data_law import UNIFORM, DataLaw
from dpaudit.accuracy.distributions.error_law import ErrorLaw
from dpaudit.accuracy.distributions.order_statistics import as_fraction, rank
from dpaudit.accuracy.truths import certified
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.sequential import estimate_mean
from dpaudit.exact.laws.piecewise import PiecewiseConstant
from dpaudit.exact.mechanism_laws.above_threshold import above_threshold_log_pmf
from dpaudit.exact.mechanism_laws.histogram_iid import histogram_index_law_iid
from dpaudit.exact.mechanism_laws.inverse_sensitivity import probability_beyond

EXACT_LIMIT = 7e7
"""Largest number of records times steps for which the exact law over random data is computed (about half a minute)."""
_LAW_TOLERANCE = 1e-8
"""Accuracy of each probability of the law over random data."""


def _outputs(setting: HistogramSetting) -> Real:
    """Left edges of the bins, and b for a run that finds nothing."""
    values = np.asarray(setting.low + setting.width * np.arange(setting.steps + 1), dtype=np.float64)
    values[-1] = setting.high
    return values


@lru_cache(maxsize=4096)
def histogram_law(setting: HistogramSetting) -> ErrorLaw:
    """Exact law of one private quantile over independent records (docs/theory.md R12); "none" is read as b.

    >>> setting = HistogramSetting(n=10, steps=4, quantile=Fraction(1, 2), epsilon=9.0)
    >>> histogram_law(setting).probabilities.round(6).tolist()
    [0.317858, 0.302097, 0.218047, 0.111513, 0.050485]
    """
    threshold_scale, query_scale = setting.scales
    probabilities = histogram_index_law_iid(
        setting.n,
        setting.steps,
        setting.quantile,
        setting.share,
        cdf=None if setting.law is UNIFORM else setting.law.probability_below,
        low=setting.low,
        high=setting.high,
        threshold_scale=threshold_scale,
        query_scale=query_scale,
    )
    values = _outputs(setting)
    return ErrorLaw(values, np.maximum(probabilities, 0.0), setting.target)


def histogram_law_for_data(data: ArrayLike, setting: HistogramSetting, target: float | None = None) -> ErrorLaw:
    """Exact law of one private quantile on fixed data (docs/theory.md R2, R6).

    Parameters
    ----------
    data : array_like
        The records.
    setting : HistogramSetting
        The parameters of the method.
    target : float, optional
        The target of the error; by default the empirical quantile.

    Examples
    --------
    >>> setting = HistogramSetting(n=10, steps=5, quantile=Fraction(1, 2), epsilon=9.0)
    >>> histogram_law_for_data(np.arange(0.05, 1.0, 0.1), setting).probabilities.round(6).tolist()
    [0.277723, 0.268541, 0.221152, 0.134262, 0.061513, 0.036809]
    """
    records = np.sort(np.asarray(data, dtype=np.float64))
    values = _outputs(setting)
    counts = np.searchsorted(records, values[1:], side="left")
    threshold_scale, query_scale = setting.scales
    log_pmf = above_threshold_log_pmf(
        counts,
        float(setting.quantile * records.size),
        setting.share,
        threshold_scale=threshold_scale,
        query_scale=query_scale,
    )
    aim = float(records[int(rank(records.size, setting.quantile)) - 1]) if target is None else target
    return ErrorLaw(values, np.exp(log_pmf), aim)


def affordable(setting: HistogramSetting) -> bool:
    """Return True if the exact law over random data is computed in seconds."""
    return setting.n * setting.steps <= EXACT_LIMIT


def histogram_probability(setting: HistogramSetting, low: float, high: float) -> Truth:
    """P(low <= A <= high): exact if that takes seconds, otherwise a proven enclosure.

    Parameters
    ----------
    setting : HistogramSetting
        The parameters of the method.
    low, high : float
        Ends of the interval.
    """
    if affordable(setting):
        return Truth.exact(histogram_law(setting).probability(low, high), _LAW_TOLERANCE)
    return certified.probability(setting, low, high)


def histogram_mean_error(setting: HistogramSetting, against: float | None = None) -> Truth:
    """E|A - d|: exact if that takes seconds, otherwise a proven enclosure, finer if ``against`` lies inside it."""
    if affordable(setting):
        return Truth.exact(histogram_law(setting).mean_error(), _LAW_TOLERANCE)
    truth = certified.mean_error(setting, blocks=1000, cells=400)
    if against is not None and truth.low <= against <= truth.high:
        truth = certified.mean_error(setting, blocks=3000, cells=1200)
    return truth


def inverse_sensitivity_errors(
    data: Real,
    r: int,
    epsilon: float,
    rho: float,
    target: float | Real,
    low: float,
    high: float,
    *,
    power: int = 1,
    lengths: Real | None = None,
) -> Real:
    """E|M - target|^power of the rho-smooth mechanism for each row of ``data``, all rows at once (docs/theory.md R16, R17).

    The closed form of :func:`dpaudit.exact.mechanism_laws.inverse_sensitivity.mean_absolute_error`: on a segment the
    integral of |t - v| is the increment of sgn(t - v)(t - v)^2/2, and that of (t - v)^2 is the increment of (t - v)^3/3.

    Parameters
    ----------
    data : array of shape (data sets, records)
        Records, one data set per row.
    r : int
        Rank of the order statistic.
    epsilon, rho : float
        Budget of this release, smoothing radius.
    target : float, or array with an entry for each row
        The target of the error.
    low, high : float
        Range [a, b].
    power : 1 or 2
        The power of the error.
    lengths : array of n + 1 numbers, optional
        Scores of the gaps between the sorted records, in the place of the lengths: the density is exp(-epsilon score/2)
        there. Only without smoothing.

    Examples
    --------
    >>> rows = np.array([[0.1, 0.25, 0.3, 0.55, 0.8]])
    >>> inverse_sensitivity_errors(rows, 3, 1.0, 0.0, 0.3, 0.0, 1.0).round(12).tolist()
    [0.235961498553]
    """
    records = np.sort(array_within("data", data, low, high, ndim=2, empty=False), axis=1)
    ends = [np.full((records.shape[0], 1), end) for end in (low, high)]
    left, right = np.clip(records[:, :r] - rho, low, high), np.clip(records[:, r - 1 :] + rho, low, high)
    edges = np.concatenate([ends[0], left, right, ends[1]], axis=1)
    n = records.shape[1]
    if lengths is None:
        scores: Real = np.concatenate([np.arange(r, -1.0, -1.0), np.arange(1.0, n - r + 2.0)])
    else:
        scores = np.insert(np.asarray(lengths, dtype=np.float64), r, 0.0)  # a plateau of width zero
    weights = np.exp(-0.5 * epsilon * (scores - scores.min()))
    offset = edges - (target if np.ndim(target) == 0 else np.asarray(target)[:, None])
    signed = 0.5 * offset * np.abs(offset) if power == 1 else offset**3 / 3.0
    return np.asarray((np.diff(signed, axis=1) @ weights) / (np.diff(edges, axis=1) @ weights))


def error_quantile(law: PiecewiseConstant, target: float, level: float) -> float:
    """Smallest e with P(|M - target| <= e) >= level, for a law with piecewise constant density.

    Parameters
    ----------
    law : PiecewiseConstant
        Law of the output.
    target, level : float
        The target of the error, probability of an error of at most the result.

    Examples
    --------
    >>> round(error_quantile(PiecewiseConstant([0.0, 1.0], [0.0]), 0.5, 0.9), 9)
    0.45
    """
    check_open_unit(level=level)
    largest = max(target - float(law.edges[0]), float(law.edges[-1]) - target)
    root = optimize.brentq(lambda e: probability_beyond(law, target, e) - (1.0 - level), 0.0, largest, xtol=1e-14)
    return float(root)


def inverse_sensitivity_mean_error(
    n: int,
    quantile: float | Fraction,
    epsilon: float,
    rho: float,
    *,
    rng: np.random.Generator,
    alpha: float,
    against: float | None = None,
    law: DataLaw = UNIFORM,
    width: float = 0.0,
    most: int = 6000,
) -> Truth:
    """E|M - d| over independent records: exact given the data, averaged over data with an anytime-valid interval.

    The sampling error |X_(r) - d| of the same data, whose mean is known, is the control variate: what is averaged is
    Y = E(|M - d| given the data) - c |X_(r) - d|, which lies in [-c w, w] for w the largest error, and c E|X_(r) - d| is added to
    the interval. c comes from a pilot sample that is used for nothing else, so it does not depend on the draws that are averaged.

    Parameters
    ----------
    n, quantile, epsilon, rho, law
        As for :func:`dpaudit.accuracy.bounds.inverse_sensitivity.mean_error`.
    rng : numpy.random.Generator
        Draws the data.
    alpha, against, width, most
        As for :func:`dpaudit.accuracy.truths.sequential.estimate_mean`.
    """
    check_generator(rng=rng)
    r, d = int(rank(n, as_fraction(quantile))), law.quantile(quantile)
    largest = max(d - law.low, law.high - d)

    def errors(size: int) -> tuple[Real, Real]:
        data = np.clip(law.sample((size, n), rng), law.low, law.high)
        private = np.minimum(inverse_sensitivity_errors(data, r, epsilon, rho, d, law.low, law.high), largest)
        return private, np.abs(np.partition(data, r - 1, axis=1)[:, r - 1] - d)

    batch = max(16, min(256, math.ceil(2e6 / n)))
    factor = control_factor(*errors(batch))
    known = factor * sampling_error(n, quantile, law)

    def draw(size: int) -> Real:
        private, control = errors(size)
        return np.asarray(private - factor * control)

    truth = estimate_mean(
        draw,
        alpha=alpha,
        low=-factor * largest,
        high=largest,
        against=None if against is None else against - known,
        width=width,
        batch=batch,
        most=most,
    )
    return replace(truth, low=truth.low + known, high=truth.high + known, estimate=truth.middle + known)


def control_factor(errors: Real, control: Real) -> float:
    """Return the factor in [0, 1] that removes most variance: cov(errors, control)/var(control) of a pilot sample."""
    spread = float(np.var(control))
    return float(np.clip(np.cov(errors, control)[0, 1] / spread, 0.0, 1.0)) if spread > 0.0 else 0.0


def sampling_error(n: int, quantile: float | Fraction, law: DataLaw = UNIFORM) -> float:
    """E|X_(r) - d| of the empirical quantile, records clipped to the range of the law.

    Parameters
    ----------
    n : int
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    law : DataLaw
        Distribution of one record.

    Examples
    --------
    >>> round(sampling_error(1000, 0.5), 4)
    0.0126
    """
    d, r = law.quantile(quantile), int(rank(n, quantile))
    return excess_over(law, d, r, n, law.high) + excess_under(law, d, r, n, law.low)


def simulated_histogram_mean_error(
    setting: HistogramSetting,
    *,
    rng: np.random.Generator,
    alpha: float,
    against: float | None = None,
    width: float = 0.0,
    most: int = 4000,
) -> Truth:
    """E|A - d| by running HistogramMethod on random data, with an anytime-valid interval, for millions of records.

    The keyword parameters are those of :func:`dpaudit.accuracy.truths.sequential.estimate_mean`, and the generator of the data.
    """
    largest = max(setting.target - setting.low, setting.high - setting.target)
    return estimate_mean(
        lambda size: simulated_histogram_errors(setting, size, rng),
        alpha=alpha,
        low=0.0,
        high=largest,
        against=against,
        width=width,
        most=most,
    )


def simulated_histogram_errors(setting: HistogramSetting, size: int, rng: np.random.Generator) -> Real:
    """Return |A - d| of ``size`` runs of HistogramMethod, each on new random data, of which only the counts are drawn.

    Parameters
    ----------
    setting : HistogramSetting
        The parameters of the method.
    size : int
        Number of runs.
    rng : numpy.random.Generator
        Draws counts and noise.
    """
    check_generator(rng=rng)
    values = _outputs(setting)
    bins = np.diff(setting.law.probability_below(values), prepend=0.0)
    # Records below a are counted from the first query on, records above b never.
    bins[0], bins[1] = 0.0, bins[0] + bins[1]
    shares = np.append(bins[1:], max(0.0, 1.0 - bins.sum()))
    threshold = float(setting.quantile * setting.n)
    threshold_scale, query_scale = setting.scales
    errors = np.empty(size)
    for run in range(size):
        counts = np.cumsum(rng.multinomial(setting.n, shares)[:-1])
        noisy = counts + rng.laplace(scale=query_scale, size=setting.steps)
        above = noisy > threshold + rng.laplace(scale=threshold_scale)
        index = int(np.argmax(above)) if above.any() else setting.steps
        errors[run] = abs(values[index] - setting.target)
    return errors
