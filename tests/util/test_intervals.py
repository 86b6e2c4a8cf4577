"""Clopper-Pearson intervals against statsmodels (bit for bit) and mpmath (the defining equations)."""

from __future__ import annotations

import math
import warnings

import mpmath
import numpy as np
import pytest
import scipy
from statsmodels.stats.proportion import proportion_confint

from dpaudit._util import intervals
from dpaudit._util.intervals import clopper_pearson
from dpaudit.errors import InvalidArgument

ALPHAS = (0.5, 0.05, 0.01, 1e-6, 1e-9, 1e-12)
TRIALS = (1, 2, 3, 10, 1000, 32_768, 10**6, 10**9, 10**12)
SCIPY = tuple(int(part) for part in scipy.__version__.split(".")[:2])


def counts_of(trials: int) -> list[int]:
    drawn = np.random.default_rng(trials).integers(0, trials + 1, size=12).tolist()
    return sorted({0, min(1, trials), min(2, trials), trials // 2, max(trials - 1, 0), trials, *drawn})


@pytest.mark.parametrize("trials", TRIALS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_interval_equals_statsmodels_bit_for_bit(trials, alpha):
    if SCIPY < (1, 15) and trials > 10**9:
        pytest.skip("SciPy before 1.15 returns NaN for some counts, which clopper_pearson refuses")
    for count in counts_of(trials):
        with warnings.catch_warnings():
            if SCIPY < (1, 15):
                warnings.simplefilter("ignore")  # of series that converge slowly
            low, high = proportion_confint(count, trials, alpha=alpha, method="beta")
            found = clopper_pearson(count, trials, alpha=alpha)
        # Releases of statsmodels differ at the ends (0 and 1, or NaN); the bound is the end itself.
        expected = (0.0 if count == 0 else float(low), 1.0 if count == trials else float(high))
        # In SciPy 1.14 its law of statistics and its special functions use different algorithms.
        assert found == (expected if SCIPY >= (1, 15) else pytest.approx(expected, rel=1e-9))


@pytest.mark.parametrize("trials", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_each_end_has_half_of_alpha_beyond_it(trials, alpha):
    # The tails of the binomial law are summed term by term, at 50 digits.
    with mpmath.workdps(50):
        for count in counts_of(trials):
            low, high = clopper_pearson(count, trials, alpha=alpha)
            if count > 0:
                assert float(tail(low, trials, count, trials)) == pytest.approx(alpha / 2.0, rel=1e-9)
            if count < trials:
                assert float(tail(high, trials, 0, count)) == pytest.approx(alpha / 2.0, rel=1e-9)


def tail(probability: float, trials: int, first: int, last: int) -> mpmath.mpf:
    """Probability of ``first`` to ``last`` hits."""
    p = mpmath.mpf(probability)
    q = 1 - p
    return mpmath.fsum(mpmath.binomial(trials, k) * p**k * q ** (trials - k) for k in range(first, last + 1))


def test_no_hits_and_no_misses_reach_the_ends():
    for trials in TRIALS:
        assert clopper_pearson(0, trials, alpha=0.01)[0] == 0.0
        assert clopper_pearson(trials, trials, alpha=0.01)[1] == 1.0


def test_numpy_counts_are_accepted():
    assert clopper_pearson(np.int64(3), np.int32(10), alpha=0.05) == clopper_pearson(3, 10, alpha=0.05)


@pytest.mark.parametrize(
    ("count", "trials", "alpha", "message"),
    [
        (-1, 10, 0.05, r"count=-1 must be a whole number of at least 0"),
        (11, 10, 0.05, r"count=11 must be at most trials=10"),
        (0, 0, 0.05, r"trials=0 must be a whole number of at least 1"),
        (1.5, 10, 0.05, r"count=1.5 must be a whole number"),
        (math.nan, 10, 0.05, r"count=nan must be a whole number"),
        (1, 10, 0.0, r"alpha=0.0 must lie strictly between 0 and 1"),
        (1, 10, 1.0, r"alpha=1.0 must lie strictly between 0 and 1"),
        (1, 10, math.nan, r"alpha=nan must lie strictly between 0 and 1"),
    ],
)
def test_bad_arguments_are_refused(count, trials, alpha, message):
    with pytest.raises(InvalidArgument, match=message):
        clopper_pearson(count, trials, alpha=alpha)


def test_a_quantile_that_is_not_finite_is_refused(monkeypatch):
    monkeypatch.setattr("scipy.special.betaincinv", lambda *_: math.nan)
    with pytest.raises(ArithmeticError, match=r"No exact interval for count=3, trials=10, alpha=0.05: got \(nan, "):
        intervals.clopper_pearson(3, 10, alpha=0.05)
