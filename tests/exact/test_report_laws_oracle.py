"""The report's laws against independent computations: mpmath, enumeration, brute force."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.exact.mechanism_laws.above_threshold import (
    above_threshold_log_pmf,
    worst_case_epsilon,
)
from dpaudit.exact.mechanism_laws.histogram import HistogramDesign
from dpaudit.exact.mechanism_laws.histogram_iid import histogram_index_law_iid
from dpaudit.exact.mechanism_laws.inverse_sensitivity import (
    finite_quantile_law,
    mean_length,
    mean_segments,
    quantile_length,
)
from dpaudit.exact.mechanism_laws.threshold_closed_form import above_threshold_closed_form


def mpmath_log_pmf(answers, threshold, b1, b2):
    """Numerical integration of the defining integrals in 40 digits; nothing shared with the library."""
    with mpmath.workdps(40):
        u = [mpmath.mpf(y) - mpmath.mpf(threshold) for y in answers]
        b1, b2 = mpmath.mpf(b1), mpmath.mpf(b2)
        inner = sorted({mpmath.mpf(0), *u})
        reach = 60 * max(b1, b2)
        cuts = sorted(
            {*inner, *(inner[0] - reach * k / 8 for k in range(9)), *(inner[-1] + reach * k / 8 for k in range(9))}
        )
        for left, right in itertools.pairwise(inner):
            pieces = int(mpmath.ceil((right - left) / (4 * min(b1, b2))))
            cuts += [left + (right - left) * k / pieces for k in range(1, pieces)]

        def cdf(x):
            return mpmath.exp(x / b2) / 2 if x < 0 else 1 - mpmath.exp(-x / b2) / 2

        def integrand(j, z):
            value = mpmath.exp(-abs(z) / b1) / (2 * b1)
            for i in range(min(j, len(u))):
                value *= cdf(z - u[i])
            return value * cdf(u[j] - z) if j < len(u) else value

        cuts = sorted(set(cuts))
        return [mpmath.log(mpmath.quad(lambda z, j=j: integrand(j, z), cuts)) for j in range(len(u) + 1)]


@pytest.mark.parametrize(
    ("answers", "threshold", "b1", "b2"),
    [
        ([0.0, 1.0, 3.0], 4.0, 2 / 1.3, 4 / 1.3),
        ([-7.0, 30.0, -1.0], 0.5, 2.0, 4.0),
        ([3.0, 3.0, 27.0], 1.0, 1.0, 2.0),  # docs/theory.md R2's warning: narrow ranges get outcomes of 1e-24 wrong
        ([2.0, -2.0], 0.0, 5.0, 0.7),
    ],
)
def test_both_evaluations_against_mpmath(answers, threshold, b1, b2):
    oracle = mpmath_log_pmf(answers, threshold, b1, b2)
    scales = {"threshold_scale": b1, "query_scale": b2}
    quadrature = above_threshold_log_pmf(answers, threshold, 1.0, **scales)
    assert quadrature == pytest.approx([float(value) for value in oracle], abs=1e-12)
    closed = above_threshold_closed_form(answers, threshold, 1.0, **scales, digits=25)
    with mpmath.workdps(40):
        for value, logarithm in zip(closed, oracle, strict=True):
            assert abs(mpmath.mpf(str(value)) / mpmath.exp(logarithm) - 1) < 1e-20


def logs(probabilities):
    return [float(p.ln()) for p in probabilities]


@given(
    answers=st.lists(
        st.one_of(st.integers(-4, 4).map(float), st.floats(-300, 300), st.sampled_from([-1e4, 5e3])),
        min_size=1,
        max_size=9,
    ),
    scales=st.tuples(st.floats(0.05, 20), st.floats(0.05, 20)),
)
@settings(max_examples=60, deadline=None)
def test_quadrature_against_closed_form(answers, scales):
    named = {"threshold_scale": scales[0], "query_scale": scales[1]}
    closed = logs(above_threshold_closed_form(answers, 0.5, 1.0, **named, digits=20))
    # Relative accuracy of the probabilities; those of 1e-100000 inherit the rounding of their logarithm.
    assert above_threshold_log_pmf(answers, 0.5, 1.0, **named) == pytest.approx(closed, rel=1e-14, abs=1e-11)


@pytest.mark.parametrize(
    "answers",
    [
        np.zeros(40),
        np.arange(40.0),
        np.arange(40.0)[::-1] * 7,
        np.where(np.arange(30) % 2, 50.0, -50.0),
        np.array([3, 3, 27, 49, 51, 60, 75, 80, 81, 90.0]),
    ],
)
def test_many_queries_against_closed_form(answers):
    closed = logs(above_threshold_closed_form(answers, 1.0, 2.0, digits=20))
    assert min(closed) < -3.0
    assert above_threshold_log_pmf(answers, 1.0, 2.0) == pytest.approx(closed, abs=1e-12)


def test_no_false_violation_in_the_tails():
    # Theory R2: with a narrow range of z a checker "found" 2 epsilon here.
    answers = np.array([3.0, 3.0, 27.0, 49.0, 60.0])
    for signs in itertools.product([-1.0, 0.0, 1.0], repeat=5):
        one = above_threshold_log_pmf(answers, 1.0, 2.0)
        other = above_threshold_log_pmf(answers + np.array(signs), 1.0, 2.0)
        assert np.abs(one - other).max() <= worst_case_epsilon(5, 2.0) + 1e-10


def test_noise_scales_that_differ_by_a_factor_of_a_million():
    for b1, b2 in ((1.0, 1e6), (1e6, 1.0), (1.0, 3e3), (3e3, 1.0)):
        for answers in ([0.0, 1.0, -3.0, 5.0], [500.0] * 8 + [-100.0], [2000.0] * 20):
            named = {"threshold_scale": b1, "query_scale": b2}
            closed = logs(above_threshold_closed_form(answers, 0.0, 1.0, **named, digits=20))
            assert above_threshold_log_pmf(answers, 0.0, 1.0, **named) == pytest.approx(closed, abs=1e-11)


@pytest.mark.parametrize(
    ("before", "expected"),
    [(1, 0.2500), (2, 0.4957), (3, 0.6294), (4, 0.6895), (8, 0.7444), (12, 0.74932), (40, 0.7499999994)],
)
def test_counts_of_a_substitution(before, expected):
    # Theory R5: the structure (Y, ..., Y, Y+1) against (Y+1, ..., Y+1) approaches 3/4; the values are for Y = 60.
    far = 60.0
    one = above_threshold_log_pmf([far] * before + [far + 1], 0.0, 1.0)[-2]
    other = above_threshold_log_pmf([far + 1] * (before + 1), 0.0, 1.0)[-2]
    digits = 10 if before == 40 else 5 if before == 12 else 4
    assert abs(one - other) == pytest.approx(expected, abs=0.51 * 10.0**-digits)


# HistogramMethod -----------------------------------------------------------------------------------------------------


def enumerate_counts(n, chances):
    """All paths of the counts at the grid points with their probabilities."""
    rest = 1.0 - sum(chances)
    for jumps in itertools.product(range(n + 1), repeat=len(chances)):
        left = n - sum(jumps)
        if left < 0 or (left > 0 and rest <= 0.0):
            continue
        log_probability = math.lgamma(n + 1) - math.lgamma(left + 1) + (left * math.log(rest) if left else 0.0)
        for jump, chance in zip(jumps, chances, strict=True):
            if jump and chance == 0.0:
                log_probability = -math.inf
            elif jump:
                log_probability += jump * math.log(chance)
            log_probability -= math.lgamma(jump + 1)
        yield np.cumsum(jumps), math.exp(log_probability)


@pytest.mark.parametrize(
    ("n", "cdf", "quantile", "epsilon"),
    [
        (5, [0.25, 0.5, 0.75, 1.0], 0.3, 1.0),
        (4, [0.1, 0.1, 0.65, 0.7], 0.5, 0.2),  # an empty bin, records above the range
        (6, [0.4, 0.9, 1.0], 0.9, 7.0),
        (1, [0.2, 0.6], 0.5, 0.01),
    ],
)
def test_independent_records_against_enumeration(n, cdf, quantile, epsilon):
    steps = len(cdf)
    expected = np.zeros(steps + 1)
    for counts, probability in enumerate_counts(n, np.diff(cdf, prepend=0.0)):
        expected += probability * np.exp(above_threshold_log_pmf(counts, quantile * n, epsilon))
    assert expected.sum() == pytest.approx(1.0, abs=1e-12)
    law = histogram_index_law_iid(n, steps, quantile, epsilon, cdf=lambda t: np.array(cdf), tolerance=1e-12)
    assert law == pytest.approx(expected, abs=1e-12)
    scales = {"threshold_scale": 0.9 / epsilon, "query_scale": 2.5 / epsilon}
    expected = np.zeros(steps + 1)
    for counts, probability in enumerate_counts(n, np.diff(cdf, prepend=0.0)):
        expected += probability * np.exp(above_threshold_log_pmf(counts, quantile * n, epsilon, **scales))
    law = histogram_index_law_iid(n, steps, quantile, epsilon, cdf=lambda t: np.array(cdf), **scales)
    assert law == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("records", "steps", "epsilon", "bound", "closed", "widened"),
    [
        (3000, 12_000, 0.9062, 0.961509, 0.937503425, 0.937862697),
        (5000, 5000, 0.525, 0.979279, 0.966427710, 0.966892080),
        (5000, 20_000, 0.58, 0.982859, 0.944068190, 0.944277040),
    ],
)
def test_semi_repaired_theorem_is_violated(records, steps, epsilon, bound, closed, widened):
    # thm_uniform_violation_n..._k... (docs/theory.md R10): the truth, known to 1e-7, lies below the bound.
    law = histogram_index_law_iid(records, steps, 0.5, epsilon / 9, tolerance=1e-7)
    left = np.arange(steps)
    inside = law[:steps][(left >= 0.4 * steps) & (left <= 0.6 * steps)].sum()
    assert inside == pytest.approx(closed, abs=1e-7)
    assert inside + law[round(0.4 * steps) - 1] == pytest.approx(widened, abs=1e-7)
    assert inside < bound


def test_average_over_data_is_the_law_over_independent_records():
    # 150 data sets; each probability is an average of numbers in [0, 1] with the variance seen, ten standard errors.
    rng = np.random.default_rng(20)
    design = HistogramDesign(epsilon=2.0, low=0.0, high=1.0, steps=8, quantiles=(0.3, 0.7), edge="left")
    laws = [design.law(rng.random(40)) for _ in range(150)]
    for column, quantile in enumerate((0.3, 0.7)):
        sample = np.exp([law.laws[column].log_probabilities for law in laws])
        exact = histogram_index_law_iid(40, 8, quantile, 1.0)
        error = sample.std(axis=0) / math.sqrt(len(laws))
        assert (np.abs(sample.mean(axis=0) - exact) <= 10.0 * error).all()


# Inverse sensitivity -------------------------------------------------------------------------------------------------


def brute_force_lengths(data, points, statistic):
    """Least number of replaced records for every reachable value of the statistic, over all data sets."""
    lengths = {}
    for other in itertools.product(points, repeat=len(data)):
        distance = len(data) - sum((Counter(data) & Counter(other)).values())
        value = statistic(other)
        lengths[value] = min(distance, lengths.get(value, distance))
    return lengths


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_quantile_length_by_brute_force(rank):
    points = range(5)
    for data in itertools.combinations_with_replacement(points, 3):
        lengths = brute_force_lengths(data, points, lambda x: sorted(x)[rank - 1])
        expected = [lengths[t] for t in points]
        assert quantile_length(data, rank, list(points)).tolist() == expected
        # Smooth lengths on a finite set: the least length among the points within rho.
        for rho in (0.5, 1.0, 2.0):
            smooth = [min(expected[s] for s in points if abs(s - t) <= rho) for t in points]
            law = finite_quantile_law(data, rank, epsilon=1.0, points=points, rho=rho)
            found = -2.0 * (law.log_probabilities - law.log_probabilities.max())
            assert found == pytest.approx(np.array(smooth) - min(smooth), abs=1e-12)


def test_smooth_quantile_length_by_brute_force():
    # On an interval: the infimum over [t - rho, t + rho], taken on a fine grid that holds all data.
    rng = np.random.default_rng(3)
    grid = np.arange(0, 257) / 256
    for _ in range(30):
        x = rng.integers(0, 257, 6) / 256
        rank, rho = int(rng.integers(1, 7)), float(rng.integers(0, 80)) / 256
        plain = quantile_length(x, rank, grid)
        expected = [plain[np.abs(grid - t) <= rho].min() for t in grid]
        assert quantile_length(x, rank, grid, rho=rho).tolist() == expected


def test_mean_length_by_brute_force():
    # Four records on a grid of fifths of a quarter: sums are exact, and every mean of the grid is reached by some data.
    points = [0, 1, 2, 3, 4]
    for data in itertools.combinations_with_replacement(points, 4):
        lengths = brute_force_lengths(data, points, sum)
        totals = np.arange(17)
        found = mean_length(np.array(data) / 4.0, totals / 16.0, low=0.0, high=1.0)
        assert found.tolist() == [lengths[t] for t in totals]


@given(
    data=st.lists(st.integers(0, 16), min_size=4, max_size=4),
    position=st.integers(0, 3),
    value=st.integers(0, 16),
    rho=st.integers(0, 8),
)
def test_one_replacement_changes_lengths_by_at_most_one(data, position, value, rho):
    x = np.array(data) / 16.0
    y = x.copy()
    y[position] = value / 16.0
    t = np.arange(129) / 128.0
    for rank in range(1, 5):
        assert np.abs(quantile_length(x, rank, t, rho=rho / 16) - quantile_length(y, rank, t, rho=rho / 16)).max() <= 1
    both = [mean_length(d, t, low=0.0, high=1.0, rho=rho / 16) for d in (x, y)]
    assert np.abs(both[0] - both[1]).max() <= 1


def test_mean_staircase_reaches_the_ends():
    rng = np.random.default_rng(8)
    for _ in range(50):
        x = rng.random(int(rng.integers(1, 30))) * 3.0 - 1.0
        staircase = mean_segments(x, low=-1.0, high=2.0)
        assert staircase.edges[0] == -1.0
        assert staircase.edges[-1] == 2.0
        assert staircase.lengths.max() == x.size
        assert np.abs(np.diff(staircase.lengths)).max() <= 1
