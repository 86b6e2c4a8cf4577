"""Order statistics: ranks in exact integers, Beta tails, mean errors in closed form (docs/theory.md R8, R13).

For n independent uniform records X_(r) has the law Beta(r, n - r + 1), and P(X_(r) <= x) = I_x(r, n - r + 1) =
P(Bin(n, x) >= r). For another continuous law F the record is F^{-1}(U), so that only the points move.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpaudit.accuracy.conditions import Real, check, plain
from dpaudit.errors import InvalidArgument

Whole = NDArray[np.int64]


def as_fraction(quantile: float | Fraction) -> Fraction:
    """Return the level as the fraction that is meant, so that ``ceil(q n)`` is exact: 0.3 is 3/10, not a binary float.

    >>> as_fraction(0.3)
    Fraction(3, 10)
    """
    check(quantile=float(quantile))
    if isinstance(quantile, Fraction):
        return quantile
    near = Fraction(float(quantile)).limit_denominator(1_000_000)
    if abs(float(near) - float(quantile)) > 1e-15:
        raise InvalidArgument(
            f"quantile={quantile!r} is not a fraction with a small denominator; pass a fractions.Fraction."
        )
    return near


def decile(i: int) -> Fraction:
    """Return the level of the i-th decile."""
    check(i=i)
    return Fraction(int(i), 10)


def level_of(i: int, quantile: float | Fraction | None = None) -> Fraction:
    """Return the level that is asked for: ``quantile`` if it is given, otherwise the i-th decile.

    >>> level_of(3), level_of(5, 0.25)
    (Fraction(3, 10), Fraction(1, 4))
    """
    return decile(i) if quantile is None else as_fraction(quantile)


def rank(n: ArrayLike, quantile: float | Fraction) -> Any:
    """Rank ceil(q n) of the empirical quantile, computed in integers (docs/theory.md R8).

    >>> rank(95, 0.3), rank([10, 100, 1000], 0.1).tolist()
    (29, [1, 10, 100])
    """
    level = as_fraction(quantile)
    check(n=n)
    return plain(-((-np.asarray(n, dtype=np.int64) * level.numerator) // level.denominator))


def binomial_at_most(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Real:
    """P(Bin(n, p) <= floor(k)); 0 below zero and 1 from n on.

    Parameters
    ----------
    k, n, p : array_like
        Largest number of successes, number of trials, probability of success.
    """
    k_whole, n_real, p_real = np.broadcast_arrays(
        np.floor(np.asarray(k, float)), np.asarray(n, float), np.asarray(p, float)
    )
    inner = (k_whole >= 0) & (k_whole < n_real)
    first, second = np.where(inner, k_whole + 1.0, 1.0), np.where(inner, n_real - k_whole, 1.0)
    tail = special.betaincc(first, second, np.clip(p_real, 0.0, 1.0))
    return np.where(inner, tail, np.where(k_whole < 0, 0.0, 1.0))


def below(x: ArrayLike, r: ArrayLike, n: ArrayLike) -> Real:
    """P(X_(r) < x) = I_x(r, n - r + 1) for uniform records; X_(r) is minus infinity for r < 1, infinity for r > n.

    Parameters
    ----------
    x, r, n : array_like
        Point of the unit interval, rank of the order statistic, number of records.
    """
    return _beta_tail(special.betainc, x, r, n, rank_below_one=lambda x: x > 0.0, rank_above_n=0.0)


def above(x: ArrayLike, r: ArrayLike, n: ArrayLike) -> Real:
    """P(X_(r) > x), the complement of :func:`below` without cancellation.

    Parameters
    ----------
    x, r, n : array_like
        Point of the unit interval, rank of the order statistic, number of records.
    """
    return _beta_tail(special.betaincc, x, r, n, rank_below_one=lambda x: x <= 0.0, rank_above_n=1.0)


def _beta_tail(
    tail: Any, x: ArrayLike, r: ArrayLike, n: ArrayLike, *, rank_below_one: Callable[[Real], Any], rank_above_n: float
) -> Real:
    x_real, r_real, n_real = np.broadcast_arrays(*(np.asarray(v, float) for v in (x, r, n)))
    inner = (r_real >= 1) & (r_real <= n_real)
    safe = np.where(inner, r_real, 1.0)
    value = tail(safe, np.where(inner, n_real - safe + 1.0, 1.0), np.clip(x_real, 0.0, 1.0))
    return np.where(inner, value, np.where(r_real < 1, rank_below_one(x_real), rank_above_n))


def mean_above(d: ArrayLike, r: ArrayLike, n: ArrayLike) -> Any:
    """E(X_(r) - d)_+ for uniform records; 1 - d for a rank above n.

    The closed form r/(n+1) (1 - I_d(r+1, n-r+1)) - d (1 - I_d(r, n-r+1)) of docs/theory.md R13 cancels in the tail. Since
    I_d(r, b) - I_d(r+1, b) = (1-d) C(n, r) d^r (1-d)^(n-r) with b = n-r+1, it equals

        (r/(n+1) - d) P(X_(r) > d) + r/(n+1) (1-d) P(Bin(n, d) = r),

    in which nothing cancels for r/(n+1) >= d, and only mildly below.

    Parameters
    ----------
    d, r, n : array_like
        Point of the unit interval, rank of the order statistic, number of records.

    Examples
    --------
    >>> round(mean_above(0.5, 550, 1000), 12)
    0.049454299175
    """
    d_real, r_real, n_real = np.broadcast_arrays(*(np.asarray(v, float) for v in (d, r, n)))
    inner = (r_real >= 1) & (r_real <= n_real)
    safe = np.where(inner, r_real, 1.0)
    centre = safe / (n_real + 1.0)
    value = (centre - d_real) * above(d_real, safe, n_real) + centre * (1.0 - d_real) * _pmf(safe, n_real, d_real)
    outer = np.where(r_real < 1, 0.0, np.maximum(1.0 - d_real, 0.0))
    return plain(np.where(inner, np.maximum(value, 0.0), outer))


def mean_below(d: ArrayLike, r: ArrayLike, n: ArrayLike) -> Any:
    """E(d - X_(r))_+ for uniform records, by the reflection x -> 1 - x; d for a rank below 1.

    Parameters
    ----------
    d, r, n : array_like
        Point of the unit interval, rank of the order statistic, number of records.

    Examples
    --------
    >>> round(mean_below(0.5, 450, 1000), 12)
    0.050452520385
    """
    d_real, r_real, n_real = (np.asarray(v, float) for v in (d, r, n))
    return mean_above(1.0 - d_real, n_real + 1.0 - r_real, n_real)


def mean_absolute(d: ArrayLike, r: ArrayLike, n: ArrayLike) -> Any:
    """E|X_(r) - d| for uniform records: the sampling error of the quantile without privacy.

    Parameters
    ----------
    d, r, n : array_like
        Point of the unit interval, rank of the order statistic, number of records.

    Examples
    --------
    >>> round(mean_absolute(0.5, 500, 1000), 4)
    0.0126
    """
    return plain(np.asarray(mean_above(d, r, n)) + np.asarray(mean_below(d, r, n)))


def _pmf(k: Real, n: Real, p: Real) -> Real:
    from scipy import stats  # imported here: slow to load, and rarely needed

    return np.asarray(stats.binom.pmf(k, n, p), dtype=np.float64)
