"""Exact confidence intervals for a probability (Clopper and Pearson 1934)."""

from __future__ import annotations

from dpaudit._util.validation import check_count, check_open_unit
from dpaudit.errors import InvalidArgument


def clopper_pearson(count: int, trials: int, *, alpha: float) -> tuple[float, float]:
    """Return the exact two-sided interval for a probability, of confidence ``1 - alpha``.

    The ends are the ``alpha / 2`` quantile of Beta(count, trials - count + 1) and the upper ``alpha / 2`` quantile of
    Beta(count + 1, trials - count). They equal ``statsmodels.stats.proportion.proportion_confint(method="beta")`` bit for
    bit, without its import time. With no hit the lower end is 0, and with no miss the upper end is 1.

    Parameters
    ----------
    count : int
        Trials in which the event happened, from 0 to ``trials``.
    trials : int
        Independent trials, at least 1.
    alpha : float
        Probability that the interval misses the truth, at most; half of it at each end.

    Returns
    -------
    tuple of float
        The lower and the upper end.

    Raises
    ------
    InvalidArgument
        If the counts or ``alpha`` are out of range.
    ArithmeticError
        If a quantile cannot be computed (it can fail for ``alpha`` below about 1e-100).

    Examples
    --------
    >>> low, high = clopper_pearson(3, 10, alpha=0.05)
    >>> round(low, 6), round(high, 6)
    (0.06674, 0.652453)
    >>> clopper_pearson(0, 10, alpha=0.05)[0]
    0.0
    """
    check_count(trials=trials)
    check_count(minimum=0, count=count)
    check_open_unit(alpha=alpha)
    if count > trials:
        raise InvalidArgument(f"count={count!r} must be at most trials={trials!r}.")
    from scipy.special import betainccinv, betaincinv  # here, so that argument checks load no scipy

    low = 0.0 if count == 0 else float(betaincinv(count, trials - count + 1, alpha / 2.0))
    high = 1.0 if count == trials else float(betainccinv(count + 1, trials - count, alpha / 2.0))
    if not 0.0 <= low <= high <= 1.0:  # false for NaN too
        raise ArithmeticError(
            f"No exact interval for count={count}, trials={trials}, alpha={alpha:g}: got ({low}, {high}). Use a larger alpha."
        )
    return low, high
