"""Inequality (1), the event E_{A_i}, squared errors, the sample as target, and inverse sensitivity without smoothing."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.accuracy import verify
from dpaudit.accuracy.bound import Status
from dpaudit.accuracy.bounds import above_threshold as at
from dpaudit.accuracy.bounds import inverse_sensitivity, other_targets
from dpaudit.accuracy.comparison import compare
from dpaudit.accuracy.distributions.data_law import EXPONENTIAL
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import inverse_sensitivity_errors, sampling_error
from dpaudit.accuracy.truths.separation import separation
from dpaudit.exact.mechanism_laws.above_threshold import above_threshold_log_pmf
from dpaudit.exact.mechanism_laws.inverse_sensitivity import quantile_law


@pytest.mark.parametrize(("queries", "distance", "epsilon"), [(1, 3.0, 1.0), (10, 15.0, 1.0), (200, 9.0, 4.0)])
def test_inequality_1_is_the_integral_of_its_density(queries, distance, epsilon):
    def integrand(z):
        return (
            mp.mpf(epsilon) / 2 * mp.e ** (-epsilon * z / 2) * (1 - mp.e ** (-epsilon * (distance - z) / 4)) ** queries
        )

    exact = mp.quad(integrand, mp.linspace(0, distance, 20))
    assert at.noise_within(queries, distance, epsilon) == pytest.approx(float(exact), rel=1e-9)


def test_separating_records_equal_an_enumeration_of_all_counts():
    n, steps = 6, 3
    law = separation(HistogramSetting(n=n, steps=steps, quantile=Fraction(1, 2), epsilon=9.0))
    before, at_stop = np.zeros(n + 1), np.zeros(n + 1)
    for bins in itertools.product(range(n + 1), repeat=steps):
        if sum(bins) != n:
            continue
        weight = math.factorial(n) / math.prod(map(math.factorial, bins)) / steps**n
        counts = np.concatenate([[0], np.cumsum(bins)])
        answers = np.exp(above_threshold_log_pmf(counts[1:].astype(float), n / 2, 1.0))
        for j, probability in enumerate(answers):
            found = j < steps
            before[counts[j] if found else n] += weight * probability
            at_stop[counts[j + 1] if found else n] += weight * probability
    assert law.before == pytest.approx(before, abs=1e-12)
    assert law.at == pytest.approx(at_stop, abs=1e-12)
    # r = 3: at most one record between means counts 1 to 4 at the left edge; from the bin at least 1, at most 4.
    assert law.fewer_than(2) == pytest.approx(before[1:5].sum())
    assert law.fewer_than(2, whole_bin=True) == pytest.approx(1 - before[5:].sum() - at_stop[:1].sum())


def test_squared_error_bound_integrates_order_statistics():
    n, steps, beta, epsilon = 300, 40, 0.05, 60.0
    value = other_targets.root_mean_squared_error(n=n, steps=steps, quantile=0.5, epsilon=epsilon, beta=beta)
    alpha = 36 * math.log(2 * steps / (3 * beta)) / epsilon
    upper, lower = math.ceil(150 + alpha), math.floor(150 - alpha) + 1
    over = integrate.quad(lambda x: (x - 0.5) ** 2 * stats.beta.pdf(x, upper, n - upper + 1), 0.5, 1)[0]
    under = integrate.quad(
        lambda x: (max(0.5 - x, 0) + 1 / steps) ** 2 * stats.beta.pdf(x, lower, n - lower + 1), 0, 1, points=[0.5]
    )[0]
    assert value**2 == pytest.approx(over + under + beta / 4, rel=1e-7)


@pytest.mark.parametrize("theorem", ["above-threshold-noise", "separating-records", "sample-decile", "squared-error"])
def test_every_form_ends_as_expected(theorem):
    for result in verify(theorem, points=8):
        assert result.status is result.form.expected


def test_inverse_sensitivity_without_smoothing_is_bounded():
    (result,) = verify("inverse-sensitivity-plain", {"n": [5, 60, 400], "i": [1, 5], "epsilon": [0.5, 3.0]})
    assert set(result.counts) <= {Status.HOLDS, Status.VACUOUS}
    assert result.counts[Status.HOLDS] >= 6
    # The mean of 1/W for the width W of m of the n + 1 spacings, by the Beta density.
    n, m = 40, 7
    mean = integrate.quad(lambda w: stats.beta.pdf(w, m, n + 1 - m) / w, 0, 1)[0]
    assert mean == pytest.approx(n / (m - 1), rel=1e-9)


def test_squared_errors_and_scores_of_gaps():
    data = np.array([[0.1, 0.25, 0.3, 0.55, 0.8]])
    law = quantile_law(data[0], 3, epsilon=1.0, low=0.0, high=1.0)
    density = lambda t: math.exp(law.log_prob([t])[0])  # noqa: E731
    edges = [0.0, *data[0], 1.0]
    squared = sum(integrate.quad(lambda t: (t - 0.3) ** 2 * density(t), a, b)[0] for a, b in itertools.pairwise(edges))
    assert inverse_sensitivity_errors(data, 3, 1.0, 0.0, 0.3, 0.0, 1.0, power=2)[0] == pytest.approx(squared, rel=1e-9)
    lengths = np.array([3, 2, 1, 1, 2, 3])
    plain = inverse_sensitivity_errors(data, 3, 1.0, 0.0, 0.3, 0.0, 1.0)
    assert inverse_sensitivity_errors(data, 3, 1.0, 0.0, 0.3, 0.0, 1.0, lengths=lengths) == pytest.approx(plain)


def test_control_variate_narrows_the_interval_and_keeps_the_truth():
    # Exponential law, n = 400: without the control variate the same 3000 draws leave an interval 2.5 times as wide.
    (row,) = compare(n=[400], epsilon=[9.0], laws=["exponential"], contenders=["inverse-sensitivity"], seed=3)
    rng = np.random.default_rng(5)
    data = np.clip(EXPONENTIAL.sample((4000, 400), rng), 0.0, 8.0)
    errors = inverse_sensitivity_errors(data, 200, 1.0, 0.0, math.log(2), 0.0, 8.0)
    assert row.error.low < errors.mean() < row.error.high
    assert row.sampling_error == pytest.approx(sampling_error(400, 0.5, EXPONENTIAL))
    assert row.error.low < row.sampling_error * 1.2 < row.error.high
    assert row.root_mean_squared_error > row.error.middle


def test_one_release_has_the_whole_budget():
    nine, one = (
        compare(n=[100], epsilon=[9.0 / shares], contenders=["histogram"], releases=9 // shares)[0] for shares in (1, 9)
    )
    assert nine.error.middle == pytest.approx(one.error.middle)
    assert inverse_sensitivity.plain_mean_error(n=100, quantile=0.25, epsilon=2.0)[0] < 0.75
