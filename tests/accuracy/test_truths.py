"""Exact and certified truths, and the confidence sequence behind the Monte Carlo ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpaudit.accuracy.bound import Variant
from dpaudit.accuracy.bounds import mean_error
from dpaudit.accuracy.distributions.data_law import NORMAL
from dpaudit.accuracy.truths import certified
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import (
    affordable,
    histogram_law,
    histogram_mean_error,
    histogram_probability,
    inverse_sensitivity_mean_error,
    simulated_histogram_mean_error,
)
from dpaudit.accuracy.truths.sequential import MeanConfidence, estimate_mean, log_wealth
from dpaudit.errors import InvalidArgument

HALF = Fraction(1, 2)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("n", "steps", "quantile", "epsilon", "law"),
    [(300, 40, HALF, 20.0, None), (300, 7, Fraction(9, 10), 2.0, None), (200, 30, Fraction(1, 10), 30.0, NORMAL)],
)
def test_the_enclosure_contains_the_exact_value(n, steps, quantile, epsilon, law, monotone):
    options = {} if law is None else {"law": law, "low": law.low, "high": law.high}
    setting = HistogramSetting(n=n, steps=steps, quantile=quantile, epsilon=epsilon, monotone_noise=monotone, **options)
    exact = histogram_law(setting)
    truth = certified.mean_error(setting, cells=400)
    assert truth.low <= exact.mean_error() <= truth.high
    d = setting.target
    for low, high in ((d - 0.1, d + 0.1), (setting.low, d), (d, setting.high), (setting.low, setting.high)):
        enclosure = certified.probability(setting, low, high, cells=400)
        assert enclosure.low - 1e-9 <= exact.probability(low, high) <= enclosure.high + 1e-9


def test_enclosure_tightens_with_records():
    widths = []
    for n in (10**4, 10**6, 10**8):
        # Noise of the same size relative to n: only the sampling error of the counts shrinks.
        truth = certified.mean_error(HistogramSetting(n=n, steps=2000, quantile=HALF, epsilon=1900.0 / n), 600, 300)
        widths.append(truth.high - truth.low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.006


@pytest.mark.parametrize(
    ("i", "epsilon", "stated", "lower", "middle"),
    [(5, 0.0019, 0.130438, 0.139, 0.142366), (7, 0.00185, 0.133907, 0.1435, 0.1467)],
)
def test_closed_form_of_the_slides_is_false_at_a_million_records(i, epsilon, stated, lower, middle):
    # docs/theory.md R14: rigorous lower bounds 0.139673 and 0.144039; about 0.1424 by stratified simulation for i = 5.
    level = Fraction(i, 10)
    assert mean_error.printed_closed_form(10**6, level, epsilon) == pytest.approx(stated, abs=1e-6)
    setting = HistogramSetting(n=10**6, steps=108_574, quantile=level, epsilon=epsilon)
    truth = histogram_mean_error(setting)
    assert truth.method == "certified"
    assert stated < lower < truth.low < middle < truth.high


def test_corollary_is_false_at_ten_to_the_eleven_records():
    n = 10**11
    epsilon = mean_error.slides_alpha(n, 1.0) / (0.0995 * n)
    stated = mean_error.printed_mean_error_bound(n=n, quantile=HALF, epsilon=epsilon)
    assert stated.applies
    assert stated.value == pytest.approx(0.19900, abs=1e-5)
    setting = HistogramSetting(n=n, steps=mean_error.slides_steps(n), quantile=HALF, epsilon=epsilon)
    truth = certified.mean_error(setting, 1000, 400)
    assert stated.value < truth.low < 0.20522 < truth.high  # docs/theory.md R13, continuous-grid value


def test_theorem_of_the_slides_with_its_alpha_repaired_is_false():
    n, epsilon = 10**7, 1.538742265e-4
    for i, stated in ((5, 0.213001), (9, 0.217001)):
        level = Fraction(i, 10)
        value = mean_error.printed_mean_error(n, level, epsilon, 0.01, Variant.ALPHA_REPAIRED)
        assert value == pytest.approx(stated, abs=1e-6)
        setting = HistogramSetting(n=n, steps=mean_error.slides_steps(n), quantile=level, epsilon=epsilon)
        truth = certified.mean_error(setting, 1000, 400)
        assert 0.2285 < truth.low < 0.230973 < truth.high


def test_simulation_agrees_with_the_exact_law():
    for options in ({}, {"law": NORMAL, "low": -1.0, "high": 4.0}):
        setting = HistogramSetting(n=200, steps=30, quantile=HALF, epsilon=9.0, **options)
        truth = simulated_histogram_mean_error(setting, rng=np.random.default_rng(4), alpha=1e-6, most=3000)
        assert truth.low < histogram_law(setting).mean_error() < truth.high


def test_the_kind_of_truth_depends_on_the_size():
    small = HistogramSetting(n=100, steps=10, quantile=HALF, epsilon=9.0)
    large = HistogramSetting(n=10**6, steps=10**5, quantile=HALF, epsilon=0.01)
    assert affordable(small)
    assert not affordable(large)
    assert histogram_probability(small, 0.4, 0.6).method == "exact"
    assert histogram_probability(large, 0.4, 0.6).method == "certified"


def test_coarse_steps_have_probability_zero():
    # docs/theory.md R10: the only outputs are 0 and 1, so the truth is 0 where the semi-repaired theorem claims 0.948.
    setting = HistogramSetting(n=1000, steps=1, quantile=HALF, epsilon=100.0)
    assert histogram_law(setting).within(0.1) == 0.0


def test_inverse_sensitivity_mean_error_of_theory_r18():
    truth = inverse_sensitivity_mean_error(1000, HALF, 1 / 9, 0.0, rng=np.random.default_rng(8), alpha=1e-6, most=1500)
    assert truth.low < 0.0225 < truth.high
    assert truth.estimate == pytest.approx(0.0225, abs=0.001)


def test_setting_refuses_a_target_outside_its_range():
    with pytest.raises(InvalidArgument, match="widen the range"):
        HistogramSetting(n=10, steps=4, quantile=Fraction(1, 10), epsilon=1.0, law=NORMAL, low=0.0, high=4.0)


def test_wealth_at_the_true_mean_has_expectation_one():
    # The exact expectation over two draws of {0, 1} with mean 0.3 is one for all stakes.
    m = 0.3
    total = sum(
        (m if a else 1 - m) * (m if b else 1 - m) * np.exp(log_wealth(np.array([float(a), float(b)]), m))
        for a in (0, 1)
        for b in (0, 1)
    )
    assert total == pytest.approx(1.0, rel=1e-12)


def test_wealth_falls_in_the_mean_tested():
    x = np.random.default_rng(0).random(200)
    wealth = [log_wealth(x, m) for m in (0.1, 0.3, 0.5, 0.7)]
    assert wealth == sorted(wealth, reverse=True)
    assert log_wealth(x, float(x.mean())) <= 0.0


def test_confidence_at_the_ends_and_in_other_units():
    ones = MeanConfidence(alpha=1e-6, low=-1.0, high=3.0)
    ones.update(np.full(200, 3.0))
    assert ones.upper == 3.0
    assert 2.0 < ones.lower < 3.0
    zeros = MeanConfidence(alpha=1e-6)
    zeros.update(np.zeros(500))
    assert zeros.lower == 0.0
    assert 0.0 < zeros.upper < 0.05
    with pytest.raises(InvalidArgument, match="outside"):
        zeros.update([1.5])


def test_the_estimate_stops_when_the_interval_excludes_the_value():
    rng = np.random.default_rng(0)
    drawn: list[int] = []

    def draw(size):
        drawn.append(size)
        return rng.random(size)

    truth = estimate_mean(draw, alpha=1e-6, against=0.9, most=100_000)
    assert truth.high < 0.9
    assert sum(drawn) < 2000
