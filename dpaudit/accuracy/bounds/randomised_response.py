"""Randomised response (lecture notes, section 6.1): the variance of the estimate (docs/theory.md R21).

Each person answers the truth with rate a and a fair coin otherwise, so q = P(answer 1) = a p + (1 - a)/2, and the
estimate of p from Y ones among n answers is (Y/n - (1 - a)/2)/a. It is unbiased, and epsilon = log((1 + a)/(1 - a)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import check_choice
from dpaudit.accuracy.bound import Variant
from dpaudit.accuracy.conditions import check, plain
from dpaudit.accuracy.distributions.error_law import ErrorLaw

VARIANTS = (Variant.PRINTED, Variant.CORRECTED, Variant.SHARP, Variant.EXACT)


def epsilon(truth_rate: ArrayLike) -> Any:
    """log((1 + a)/(1 - a)) = 2 artanh(a); infinite at a = 1.

    >>> round(epsilon(0.5), 12)
    1.098612288668
    """
    check(truth_rate=truth_rate)
    with np.errstate(divide="ignore"):
        return plain(2.0 * np.arctanh(np.asarray(truth_rate, float)))


def truth_rate(epsilon: ArrayLike) -> Any:
    """The rate of true answers a = tanh(epsilon/2) for which randomised response is epsilon-DP."""
    check(epsilon=epsilon)
    return plain(np.tanh(0.5 * np.asarray(epsilon, float)))


def variance(n: ArrayLike, truth_rate: ArrayLike, p: ArrayLike | None = None, variant: Variant = Variant.EXACT) -> Any:
    """Variance of the estimate of p.

    * ``printed``: 1/(a^2 n). The lecture notes write an equality; as an upper bound it is 4 times too large.
    * ``corrected``: 1/(4 a^2 n), since Var Y_i = q (1 - q) <= 1/4.
    * ``exact``: q (1 - q)/(a^2 n), for persons drawn independently with rate p.
    * ``sharp``: (1 - a^2)/(4 a^2 n), given the true values: every answer has variance (1 - a^2)/4.

    Parameters
    ----------
    n, truth_rate : array_like
        Number of answers, rate a of true answers.
    p : array_like, optional
        Share of ones in the population.
    variant : Variant
        One of ``VARIANTS``.

    Examples
    --------
    >>> [round(variance(18, 0.5, 0.3, v), 6) for v in VARIANTS]
    [0.222222, 0.055556, 0.041667, 0.053333]
    """
    check_choice(VARIANTS, variant=variant)
    check(n=n, truth_rate=truth_rate)
    size, a = np.asarray(n, float), np.asarray(truth_rate, float)
    if variant is Variant.PRINTED:
        return plain(1.0 / (a**2 * size))
    if variant is Variant.CORRECTED:
        return plain(0.25 / (a**2 * size))
    if variant is Variant.SHARP:
        return plain(0.25 * (1.0 - a) * (1.0 + a) / (a**2 * size))
    share = 0.5 if p is None else p
    check(p=share)
    q = a * np.asarray(share, float) + 0.5 * (1.0 - a)
    return plain(q * (1.0 - q) / (a**2 * size))


def estimate_law(n: int, truth_rate: float, p: float) -> ErrorLaw:
    """Exact law of the estimate for independent persons: Y ~ Bin(n, q), mapped to (Y/n - (1 - a)/2)/a.

    Parameters
    ----------
    n : int
        Number of answers.
    truth_rate, p : float
        Rate a of true answers, share of ones in the population.

    Examples
    --------
    >>> law = estimate_law(18, 0.5, 0.3)
    >>> round(law.variance(), 12), round(1.0 - law.probability(0.0, 1.0), 4)
    (0.053333333333, 0.0954)
    """
    from scipy import stats

    check(n=n, truth_rate=truth_rate, p=p)
    counts = np.arange(n + 1)
    q = truth_rate * p + 0.5 * (1.0 - truth_rate)
    values = (counts / n - 0.5 * (1.0 - truth_rate)) / truth_rate
    return ErrorLaw(values, np.asarray(stats.binom.pmf(counts, n, q)), target=p)


def kary_rates(categories: int, epsilon: float) -> tuple[float, float]:
    """Probabilities p = e^epsilon/(e^epsilon + k - 1) of keeping a category and q of each other one.

    >>> tuple(round(rate, 12) for rate in kary_rates(4, 1.0))
    (0.475366886419, 0.174877704527)
    """
    check(length=categories, epsilon=epsilon)
    damp = np.exp(-epsilon)
    keep = 1.0 / (1.0 + (categories - 1) * damp)
    return float(keep), float(damp * keep)
