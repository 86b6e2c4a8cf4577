"""Accuracy of the inverse sensitivity mechanism for a quantile (docs/theory.md R16 to R18; Asi and Duchi 2020).

The density at t is proportional to exp(-epsilon len(t)/2) on [a, b], where len^rho(t) is the least number of records to
replace until the r-th order statistic lies within rho of t. The slides announce accuracy bounds but give none; those here are
derived in docs/theory.md R18. ``epsilon`` is the budget of one release.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpaudit._util.validation import array_within, check_finite, check_interval
from dpaudit.accuracy.bound import Bound, Sense, Variant
from dpaudit.accuracy.bounds.mean_error import excess_over, excess_under
from dpaudit.accuracy.conditions import Real, check, plain
from dpaudit.accuracy.distributions.data_law import UNIFORM, DataLaw
from dpaudit.accuracy.distributions.order_statistics import as_fraction, mean_above, mean_below, rank
from dpaudit.errors import InvalidArgument


def length_tail(length: ArrayLike, rho: ArrayLike, epsilon: ArrayLike, low: float = 0.0, high: float = 1.0) -> Any:
    """Upper bound (b - a) exp(-epsilon K/2)/min(rho, b - a) on P(len^rho(M) >= K), for any data (docs/theory.md R18).

    Numerator: the weight where len >= K is at most (b - a) exp(-epsilon K/2). Denominator: the plateau [x_(r) - rho,
    x_(r) + rho] has weight one, and at least min(rho, b - a) of it lies in [a, b].

    Parameters
    ----------
    length, rho, epsilon : array_like
        Number K of records, smoothing radius, budget of this release.
    low, high : float
        Range [a, b].

    Examples
    --------
    >>> round(length_tail(108, 0.035, 1 / 9), 6)
    0.070821
    """
    check(length=length, rho=rho, epsilon=epsilon)
    check_interval(low=low, high=high)
    plateau = np.minimum(np.asarray(rho, float), high - low)
    exponent = -0.5 * np.asarray(epsilon, float) * np.asarray(length, float)
    return plain((high - low) * np.exp(exponent) / plateau)


def reach(data: ArrayLike, r: int, length: int, low: float = 0.0, high: float = 1.0) -> float:
    """Largest distance omega(K) = max(x_(r+K) - x_(r), x_(r) - x_(r-K)) by which K replacements move x_(r).

    Ranks beyond the ends stand for a and b.

    Parameters
    ----------
    data : array_like
        The records.
    r, length : int
        Rank of the order statistic, number K of replaced records.
    low, high : float
        Range [a, b].

    Examples
    --------
    >>> round(reach([0.1, 0.2, 0.35, 0.5, 0.9], 3, 1), 12)
    0.15
    """
    records = np.sort(array_within("data", data, low, high, empty=False))
    check(rank=r)
    if r > records.size:
        raise InvalidArgument(f"rank={r} must be at most n={records.size}, the number of records.")
    padded = np.concatenate([[low], records, [high]])
    ends = np.clip([r + length, r - length], 0, records.size + 1)
    return float(max(padded[ends[0]] - padded[r], padded[r] - padded[ends[1]]))


def error_quantile(
    data: ArrayLike, r: int, epsilon: float, rho: float, beta: float, low: float = 0.0, high: float = 1.0
) -> float:
    """Error that the rho-smooth mechanism exceeds with probability at most ``beta`` on these data: omega(K - 1) + rho.

    K is the least length with :func:`length_tail` <= beta; len^rho(M) <= K - 1 puts M within rho of [x_(r-K+1),
    x_(r+K-1)].

    Parameters
    ----------
    data : array_like
        The records.
    r : int
        Rank of the order statistic.
    epsilon, rho, beta : float
        Budget of this release, smoothing radius, probability of a larger error.
    low, high : float
        Range [a, b].
    """
    check(epsilon=epsilon, rho=rho, beta=beta)
    needed = 2.0 / epsilon * np.log((high - low) / (min(rho, high - low) * beta))
    length = max(1, int(np.ceil(needed)))
    return reach(data, r, length - 1, low, high) + rho


def mean_error(
    *,
    n: int,
    quantile: float | Fraction,
    epsilon: float,
    rho: float | None = None,
    law: DataLaw = UNIFORM,
    low: float | None = None,
    high: float | None = None,
) -> tuple[float, int, float]:
    """Upper bound on E|M - d| over n independent records, optimised over K (and rho): (value, K, rho), docs/theory.md R18.

        E|M - d| <= E(X_(r+K-1) - d)_+ + E(d - X_(r-K+1))_+ + rho + min(1, t(K, rho)) max(d - a, b - d),

    t being :func:`length_tail`; ranks beyond the data stand for a and b. For given K the best rho balances rho against
    c/rho, c = (b - a) max(d - a, b - d) exp(-epsilon K/2), so rho = sqrt(c).

    Parameters
    ----------
    n, quantile, epsilon
        Number of records, level of the quantile, and budget of this release.
    rho : float, optional
        Smoothing radius; by default the best one.
    law : DataLaw
        Distribution of one record.
    low, high : float, optional
        Range [a, b]; by default that of the law.

    Examples
    --------
    >>> value, length, rho = mean_error(n=1000, quantile=0.5, epsilon=1 / 9)
    >>> round(value, 4), length, round(rho, 3)
    (0.2842, 107, 0.036)
    """
    low, high = law.low if low is None else low, law.high if high is None else high
    check(n=n, epsilon=epsilon)
    d, r = law.quantile(quantile), int(rank(n, quantile))
    span, worst = high - low, max(d - low, high - d)
    lengths = np.arange(1, n + 1)
    log_c = np.log(span * worst) - 0.5 * epsilon * lengths
    if rho is None:
        # Every rho gives a valid bound; the lower limit keeps it from underflowing.
        widths = np.clip(np.exp(0.5 * log_c), 1e-12 * span, span)
    else:
        check(rho=rho)
        widths = np.full(n, float(rho))
    noise = widths + worst * np.minimum(1.0, np.asarray(length_tail(lengths, widths, epsilon, low, high)))
    if law is UNIFORM and (low, high) == (0.0, 1.0):
        total = noise + _spread(d, r, n, lengths)
        place = int(np.argmin(total))
    else:
        place, total = _search(law, d, r, n, lengths, noise, low, high)
    return float(total[place]), int(lengths[place]), float(widths[place])


def _spread(d: float, r: int, n: int, lengths: Any) -> Real:
    return np.asarray(mean_above(d, r + lengths - 1, n) + mean_below(d, r - lengths + 1, n), dtype=np.float64)


def _search(
    law: DataLaw, d: float, r: int, n: int, lengths: Any, noise: Real, low: float, high: float
) -> tuple[int, Real]:
    """Minimise over K with few integrals: over a coarse grid of K, then over finer grids around the best."""
    total = np.full(lengths.size, np.inf)

    def evaluate(places: Any) -> int:
        for j in places:
            if not np.isfinite(total[j]):
                over = excess_over(law, d, int(r + lengths[j] - 1), n, high)
                total[j] = noise[j] + over + excess_under(law, d, int(r - lengths[j] + 1), n, low)
        return int(np.argmin(total))

    step = max(1, lengths.size // 40)
    best = evaluate(range(0, lengths.size, step))
    while step > 1:
        step = max(1, step // 4)
        best = evaluate(range(max(0, best - 4 * step), min(lengths.size, best + 4 * step + 1), step))
    return best, total


def mean_error_bound(
    *, n: int, quantile: float | Fraction, epsilon: float, rho: float | None = None, law: DataLaw = UNIFORM
) -> Bound:
    """Return :func:`mean_error` as a :class:`~dpaudit.accuracy.Bound`.

    Parameters
    ----------
    n : int
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    epsilon : float
        Budget of this release.
    rho : float, optional
        Smoothing radius.
    law : DataLaw
        Distribution of one record.
    """
    value, length, width = mean_error(n=n, quantile=quantile, epsilon=epsilon, rho=rho, law=law)
    d = law.quantile(quantile)
    return Bound(
        value=value,
        variant=Variant.DERIVED,
        theorem="inverse sensitivity, mean error (theory R18)",
        sense=Sense.AT_MOST,
        quantity="E|M - d|",
        trivial=max(d - law.low, law.high - d),
        terms={"K": float(length), "rho": width},
    )


def plain_mean_error(*, n: int, quantile: float | Fraction, epsilon: float) -> tuple[float, int, int]:
    """Upper bound on E|M - d| of the mechanism without smoothing, uniform records, best K and L: (value, K, L).

    Without smoothing no plateau has a known width, but the gaps around x_(r) do on average. The gaps of length at most L
    fill (X_(r-L), X_(r+L)), ranks beyond the data standing for a = 0 and b = 1, so the normaliser is at least
    exp(-epsilon L/2) W_L with W_L the width, and P(len(M) >= K given the data) <= exp(-epsilon (K - L)/2)/W_L. W_L is the sum of
    m = min(r + L, n + 1) - max(r - L, 0) of the n + 1 spacings of uniform records, so it has the law Beta(m, n + 1 - m) and
    E[1/W_L] = n/(m - 1) (for m = n + 1 it is 1, and n/(m - 1) is 1 too). If len(M) < K, then X_(r-K+1) <= M <= X_(r+K-1). Hence

        E|M - d| <= E(X_(r+K-1) - d)_+ + E(d - X_(r-K+1))_+ + min(1, exp(-epsilon (K - L)/2) n/(m - 1)) max(d, 1 - d).  QED

    Every K and L >= 1 with m >= 2 gives a valid bound.

    Parameters
    ----------
    n : int
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    epsilon : float
        Budget of this release.

    Examples
    --------
    >>> value, length, inner = plain_mean_error(n=1000, quantile=0.5, epsilon=1.0)
    >>> round(value, 4), length, inner
    (0.0497, 23, 3)
    """
    check(n=n, epsilon=epsilon)
    d, r = float(as_fraction(quantile)), int(rank(n, quantile))
    inner = np.arange(1, n + 1)
    spacings = np.minimum(r + inner, n + 1) - np.maximum(r - inner, 0)
    # The best L does not depend on K: it minimises exp(epsilon L/2) n/(m - 1).
    log_cost = np.where(spacings >= 2, 0.5 * epsilon * inner + np.log(n / np.maximum(spacings - 1.0, 0.5)), np.inf)
    place = int(np.argmin(log_cost))
    lengths = np.arange(1, n + 1)
    tail = np.exp(np.minimum(0.0, log_cost[place] - 0.5 * epsilon * lengths))
    total = _spread(d, r, n, lengths) + tail * max(d, 1.0 - d)
    best = int(np.argmin(total))
    return float(total[best]), int(lengths[best]), int(inner[place])


def two_point_lower(gap: ArrayLike, changes: ArrayLike, epsilon: ArrayLike) -> Any:
    """Return Delta/(1 + exp(k epsilon)): no epsilon-private mechanism has mean error below it on both of two data sets.

    x and x' differ in k records and |f(x) - f(x')| = Delta. E_x'|M - f(x')| >= exp(-k epsilon) E_x|M - f(x')| >=
    exp(-k epsilon) (Delta - E_x|M - f(x)|), so both errors below the value would contradict each other (docs/theory.md R18).

    Parameters
    ----------
    gap, changes : array_like
        Distance Delta of the two true values, number k of records in which the data sets differ.
    epsilon : array_like
        Privacy budget.

    Examples
    --------
    >>> round(two_point_lower(1.0, 1, 1.0), 10)
    0.2689414214
    """
    check(length=changes, epsilon=epsilon, x=gap)
    return plain(np.asarray(gap, float) * special.expit(-np.asarray(changes, float) * np.asarray(epsilon, float)))


def median_rank(n: int) -> int:
    """Rank of the (lower) median as an order statistic."""
    check_finite(n=n)
    return int(rank(n, as_fraction(0.5)))
