"""Exact laws of the report's mechanisms: reference values, switches, errors."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.divergences.divergence import epsilon as exact_epsilon
from dpaudit.exact.mechanism_laws.above_threshold import (
    above_threshold_law,
    above_threshold_log_pmf,
    worst_case_epsilon,
)
from dpaudit.exact.mechanism_laws.histogram import (
    AS_PRINTED,
    HistogramDesign,
    PrintedBugs,
    as_quantile,
    default_steps,
    rank,
)
from dpaudit.exact.mechanism_laws.histogram_iid import histogram_index_law_iid
from dpaudit.exact.mechanism_laws.inverse_sensitivity import (
    finite_quantile_law,
    mean_absolute_error,
    mean_law,
    mean_length,
    mean_segments,
    mean_value,
    probability_beyond,
    quantile_law,
    quantile_length,
    quantile_segments,
)
from dpaudit.exact.mechanism_laws.threshold_closed_form import above_threshold_closed_form

TENTHS = np.arange(0.05, 1.0, 0.1)


def log_ratio(answers, moved, outcome, epsilon=1.0, **scales):
    one = above_threshold_log_pmf(answers, 0.0, epsilon, **scales)
    other = above_threshold_log_pmf(moved, 0.0, epsilon, **scales)
    return one[outcome] - other[outcome]


# AboveThreshold ------------------------------------------------------------------------------------------------------


def test_five_queries():
    # at_pmf_5q: mpmath, 50 digits, piecewise exponential integration (docs/theory.md R2).
    expected = [
        0.1693089323202860886768537,
        0.1689797451936872655199182,
        0.2244141352803172152278956,
        0.2229143844765654142270045,
        0.1541919307917756206955057,
        0.06019087193736839565282235,
    ]
    law = above_threshold_law([0, 1, 3, 5, 8], threshold=4, epsilon=1.3)
    assert law.outcomes == (0, 1, 2, 3, 4, -1)
    assert np.exp(law.log_probabilities) == pytest.approx(expected, rel=1e-13)


def test_one_query_is_the_tail_of_a_difference():
    # P(nu - Z > x) = (2/3) exp(-x/4) - (1/6) exp(-x/2) at epsilon = 1 (docs/theory.md R4).
    for x in (0.0, 0.3, 5.0, 40.0, 800.0):
        tail = math.log(2 / 3) - x / 4 + math.log1p(-math.exp(-x / 4) / 4)
        assert above_threshold_log_pmf([-x], 0.0, 1.0)[0] == pytest.approx(tail, abs=1e-13)


@pytest.mark.parametrize(
    ("answers", "moved", "expected"),
    [
        ([20] * 4 + [-280], [21] * 4 + [-281], 0.9993847759623023910688952),  # at_logratio_general_j4_Y20
        ([40] * 2 + [-260], [41] * 2 + [-261], 0.7499964851002062718415395),  # at_logratio_general_j2_Y40
        ([60] * 12 + [61], [61] * 13, 0.7493246492926897032237643),  # at_logratio_counts_j12
    ],
)
def test_log_ratios(answers, moved, expected):
    assert log_ratio(answers, moved, -2) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("queries", [1, 7, 400, 10_000])
def test_equal_answers_at_the_threshold(queries):
    # With u = 0 and x = exp(-z/b2): P(-1) = 2^-m / (2 + m) + 4 int_{1/2}^1 v^m (1 - v) dv.
    m = queries
    upper = 4 * ((1 - 0.5 ** (m + 1)) / (m + 1) - (1 - 0.5 ** (m + 2)) / (m + 2))
    log_pmf = above_threshold_log_pmf(np.full(m, 7.0), 7.0, 0.4)
    assert log_pmf[-1] == pytest.approx(math.log(0.5**m / (2 + m) + upper), abs=1e-11)
    assert np.exp(log_pmf).sum() == pytest.approx(1.0, abs=1e-12)


def test_probabilities_of_ten_thousand_queries_sum_to_one():
    answers = np.floor(np.linspace(0.0, 300.0, 10_000))
    log_pmf = above_threshold_log_pmf(answers, 150.0, 0.5)
    assert log_pmf.shape == (10_001,)
    assert np.exp(log_pmf).sum() == pytest.approx(1.0, abs=1e-12)


def test_the_law_depends_on_scaled_distances_only():
    # The law depends on (answers - threshold) epsilon only.
    answers = np.array([0.0, 2.0, -3.0, 7.0])
    base = above_threshold_log_pmf(answers, 1.0, 1.0)
    for factor in (2.0**-40, 2.0**40):
        scaled = above_threshold_log_pmf(answers * factor, factor, 1.0 / factor)
        assert scaled == pytest.approx(base, abs=1e-14)


@pytest.mark.parametrize("monotone", [False, True])
def test_worst_case_of_the_report(monotone):
    # at_exact_eps_general, at_exact_eps_monotone (docs/theory.md R3).
    expected = [0.25, 0.5, 0.5, 0.75, 0.75, 0.75] if monotone else [0.25, 0.5, 0.75, 1, 1, 1]
    assert [worst_case_epsilon(m, 1.0, monotone=monotone) for m in range(1, 7)] == pytest.approx(expected)


def test_improved_noise_is_private_for_monotone_queries_only():
    # Theory R5: Lap(2/eps) on both costs eps for monotone moves and 1.5 eps for others.
    scales = {"threshold_scale": 2.0, "query_scale": 2.0}
    assert worst_case_epsilon(50, 1.0, monotone=True, **scales) == pytest.approx(1.0)
    assert worst_case_epsilon(50, 1.0, **scales) == pytest.approx(1.5)
    assert log_ratio([40] * 30 + [-100], [41] * 30 + [-101], -2, **scales) == pytest.approx(1.5, abs=1e-6)


@pytest.mark.parametrize("scales", [(2.0, 4.0), (2.0, 2.0), (5.0, 1.0), (1.0, 7.0)])
@pytest.mark.parametrize("queries", [1, 2, 3, 4, 12])
def test_worst_case_is_approached(queries, scales):
    b1, b2 = scales
    named = {"threshold_scale": b1, "query_scale": b2}
    far = 400.0 * max(scales)

    def largest(monotone):
        pairs = []
        for before in range(queries):
            rest = queries - before - 1
            for up, down in ((1.0, 0.0), (0.0, 1.0)) if monotone else ((1.0, 1.0),):
                pairs.append(([far] * before + [-far] * (rest + 1), [far + up] * before + [-far - down] * (rest + 1)))
        pairs.append(([far] * queries, [far + 1.0] * queries))
        return max(
            float(np.abs(np.subtract(*(above_threshold_log_pmf(y, 0.0, 1.0, **named) for y in pair))).max())
            for pair in pairs
        )

    for monotone in (False, True):
        bound = worst_case_epsilon(queries, 1.0, monotone=monotone, **named)
        assert bound * (1 - 3e-3) <= largest(monotone) <= bound * (1 + 1e-10)


@given(
    pairs=st.lists(st.tuples(st.floats(-60, 60), st.floats(-1, 1)), min_size=1, max_size=8),
    scales=st.tuples(st.floats(0.2, 5), st.floats(0.2, 5)),
    monotone=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_worst_case_is_never_exceeded(pairs, scales, monotone):
    answers = np.array([y for y, _ in pairs])
    moves = np.array([move for _, move in pairs])
    moves = np.abs(moves) if monotone else moves
    named = {"threshold_scale": scales[0], "query_scale": scales[1]}
    one = above_threshold_log_pmf(answers, 0.0, 1.0, **named)
    other = above_threshold_log_pmf(answers + moves, 0.0, 1.0, **named)
    assert np.abs(one - other).max() <= worst_case_epsilon(len(pairs), 1.0, monotone=monotone, **named) + 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 0.0, 1.0), "answers is empty"),
        (([1.0, math.nan], 0.0, 1.0), "answers holds"),
        (([1.0], math.inf, 1.0), "threshold=inf"),
        (([1.0], 0.0, 0.0), "epsilon=0.0"),
    ],
)
def test_above_threshold_refuses_invalid_arguments(arguments, message):
    for function in (above_threshold_law, above_threshold_closed_form):
        with pytest.raises(InvalidArgument, match=message):
            function(*arguments)


@pytest.mark.parametrize("answers", [[1e300, -1e300], [1e308, 0.0]])
def test_answers_beyond_resolution_are_refused(answers):
    with pytest.raises(InvalidArgument, match="Clip the answers"):
        above_threshold_law(answers, -1e308, 1.0)


def test_closed_form_refuses_many_queries():
    with pytest.raises(InvalidArgument, match="at most 60"):
        above_threshold_closed_form(np.zeros(61), 0.0, 1.0)


# HistogramMethod on fixed data ---------------------------------------------------------------------------------------


def test_median_of_ten_records():
    # hist_decile5_fixed10: counts (2, 4, 6, 8, 10), threshold 5, epsilon0 = 1 (docs/theory.md R2, R6).
    expected = [
        0.277722675135938166603151,
        0.2685412331337520545061401,
        0.2211524245620346680636862,
        0.1342616898765291136436474,
        0.06151342044112096652660078,
        0.03680855685062503065677453,
    ]
    design = HistogramDesign(epsilon=9.0, low=0.0, high=1.0, steps=5, edge="left")
    median = design.law(TENTHS).laws[4]
    assert median.outcomes == pytest.approx((0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    assert np.exp(median.log_probabilities) == pytest.approx(expected, rel=1e-13)
    # hist_decile5_fixed10_mean_left: -1 becomes -1/steps.
    printed = replace(design, bugs=PrintedBugs(left_edge=True, none_below_range=True)).law(TENTHS).laws[4]
    mean = np.exp(printed.log_probabilities) @ np.array(printed.outcomes)
    assert mean == pytest.approx(0.2645752553602535134028167, rel=1e-13)


def printed_method(data, steps, low, high, bugs, quantiles):
    """The report's pseudo-code line by line, without noise; a bug that is switched off is corrected on its line."""
    result, queries = [], []
    for d in quantiles:
        if not bugs.queries_never_cleared:
            queries = []
        offset = 0.0 if bugs.missing_offset else low
        for i in range(1, math.floor(steps) + 1):
            queries.append(lambda x, i=i, offset=offset: sum(e < offset + i * (high - low) / steps for e in x))
        index = next((j for j, query in enumerate(queries) if query(data) > d * len(data)), -1)
        if index == -1 and not bugs.none_below_range:
            result.append(high)
        elif index == -1:
            result.append(offset - (high - low) / steps)
        else:
            result.append(offset + (index + (not bugs.left_edge)) * (high - low) / steps)
    return result


@pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=5)))
def test_every_bug_switch_follows_the_pseudo_code(flags):
    bugs = PrintedBugs(**dict(zip((field.name for field in fields(PrintedBugs)), flags, strict=True)))
    steps = 7.6 if bugs.fractional_steps else 7
    quantiles = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
    data = [
        -1.9,
        -1.2,
        -0.3,
        0.4,
        0.8,
        1.4,
        2.5,
        2.9,
        3.0,
    ]  # the last one equals high: 9/10 of the records are never seen
    design = HistogramDesign(epsilon=3e4, low=-2.0, high=3.0, steps=steps, quantiles=quantiles, bugs=bugs)
    expected = printed_method(data, steps, -2.0, 3.0, bugs, quantiles)
    for law, value in zip(design.law(data).laws, expected, strict=True):
        assert float(law.log_prob([law.outcomes[int(np.argmax(law.log_probabilities))]])[0]) > -1e-6
        assert law.outcomes[int(np.argmax(law.log_probabilities))] == pytest.approx(value, abs=1e-12)


def test_a_list_that_is_never_cleared_searches_copies_of_the_grid():
    design = HistogramDesign(epsilon=2.0, low=0.0, high=1.0, steps=4, bugs=AS_PRINTED)
    searches = design.searches(TENTHS)
    assert [search.answers.size for search in searches] == [4 * d for d in range(1, 10)]
    assert searches[2].values.max() == pytest.approx(11 / 4)
    assert searches[2].released([0, 11, -1]).tolist() == pytest.approx([0.0, 2.75, -0.25])


def test_right_edge_of_the_last_bin_and_none_are_one_outcome():
    low, high = -0.3, 0.1  # low + (high - low) is not high in floating point
    design = HistogramDesign(epsilon=1.0, low=low, high=high, steps=3, quantiles=(0.5,))
    outcomes = design.law([0.0, 0.05]).laws[0].outcomes
    assert len(outcomes) == 3
    assert outcomes[-1] == high


def test_ranks_and_quantiles_are_exact():
    for n, i in itertools.product(range(1, 200), range(1, 10)):
        assert rank(as_quantile(i / 10), n) == (i * n + 9) // 10
    design = HistogramDesign(epsilon=1.0, low=0.0, high=1.0, steps=3, quantiles=(0.3, Fraction(1, 3)))
    assert design.quantiles == (Fraction(3, 10), Fraction(1, 3))
    assert design.epsilon_per_quantile == 0.5


def test_steps_of_the_slides():
    # Theory R6: 217.147 at n = 1000.
    assert default_steps(1000) == 218
    assert default_steps(2) == 5
    data = np.linspace(0.0, 1.0, 1000)
    rounded = HistogramDesign(epsilon=1.0, low=0.0, high=1.0).searches(data)[0]
    assert rounded.values.size == 218
    raw = HistogramDesign(epsilon=1.0, low=0.0, high=1.0, bugs=PrintedBugs(fractional_steps=True)).searches(data)[0]
    assert raw.values.size == 217
    assert raw.values[-1] == pytest.approx(217 / (1500 / math.log(1000)))


def test_privacy_of_the_method():
    # histogram_privacy_constants (docs/theory.md R5), and its table by decile for addition and removal.
    design = HistogramDesign(epsilon=1.0, low=0.0, high=1.0, steps=50)
    assert design.epsilon_bound(Relation.SUBSTITUTE) == pytest.approx(0.75)
    assert design.epsilon_bound(Relation.ADD_REMOVE) == pytest.approx(0.5)
    assert replace(design, bugs=AS_PRINTED).epsilon_bound(Relation.ADD_REMOVE) == pytest.approx(0.5)
    assert replace(design, monotone_noise=True).epsilon_bound(Relation.SUBSTITUTE) == pytest.approx(1.0)
    assert replace(design, steps=None).epsilon_bound(Relation.ADD_REMOVE) == math.inf
    table = {1: 0.45, 3: 0.40, 5: 0.50, 7: 0.60, 9: 0.70}
    for d, worse in table.items():
        one = replace(design, quantiles=(Fraction(d, 10),))
        assert one.epsilon_bound(Relation.ADD_REMOVE) == pytest.approx(worse)


@given(
    data=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    record=st.floats(0, 1),
    steps=st.integers(1, 12),
    monotone_noise=st.booleans(),
    never_cleared=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_privacy_bounds_hold(data, record, steps, monotone_noise, never_cleared):
    design = HistogramDesign(
        epsilon=3.0,
        low=0.0,
        high=1.0,
        steps=steps,
        quantiles=(0.1, 0.5, 0.8),
        monotone_noise=monotone_noise,
        bugs=PrintedBugs(queries_never_cleared=never_cleared),
    )
    law = design.law(data)
    for relation, other in ((Relation.SUBSTITUTE, [record, *data[1:]]), (Relation.ADD_REMOVE, [record, *data])):
        moved = design.law(other)
        apart = [one.log_probabilities - two.log_probabilities for one, two in zip(law.laws, moved.laws, strict=True)]
        for sign in (1.0, -1.0):
            assert sum(float((sign * a).max()) for a in apart) <= design.epsilon_bound(relation) + 1e-9


def test_histogram_refuses_invalid_arguments():
    good = {"epsilon": 1.0, "low": 0.0, "high": 1.0, "steps": 4}
    for change, message in [
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"low": 1.0}, "low=1.0"),
        ({"steps": 2.5}, "steps=2.5"),
        ({"steps": 0.5, "bugs": PrintedBugs(fractional_steps=True)}, "steps=0.5"),
        ({"quantiles": ()}, "quantiles"),
        ({"quantiles": (0.5, 1.0)}, "quantile=1.0"),
        ({"quantiles": ("half",)}, "quantile='half'"),
        ({"edge": "midle"}, "Did you mean 'middle'"),
    ]:
        with pytest.raises(InvalidArgument, match=message):
            HistogramDesign(**{**good, **change})
    with pytest.raises(InvalidArgument, match="records=1"):
        HistogramDesign(epsilon=1.0, low=0.0, high=1.0).searches([0.5])
    with pytest.raises(InvalidArgument, match="relation"):
        HistogramDesign(**good).epsilon_bound(Relation.ANSWERS)


# HistogramMethod on independent records ------------------------------------------------------------------------------


def test_ten_uniform_records():
    # hist_law_random_uniform_n10_k4_i5_eps0_1: full multinomial enumeration (docs/theory.md R12).
    expected = [
        0.3178576161796386308027468,
        0.3020967501903579954158798,
        0.2180469022237961592889636,
        0.1115132675065311246876538,
        0.05048546389967608980475608,
    ]
    assert histogram_index_law_iid(10, 4, 0.5, 1.0) == pytest.approx(expected, abs=1e-10)
    assert histogram_index_law_iid(10, 4, 0.5, 1.0, tolerance=1e-12) == pytest.approx(expected, abs=1e-13)


def test_none_found_among_fifty():
    # Theory R6: n = 50, ten bins, epsilon = 1 over nine calls, uniform records, list cleared.
    expected = [0.00716, 0.00945, 0.01247, 0.01646, 0.02172, 0.02864, 0.03769, 0.04944, 0.06447]
    found = [histogram_index_law_iid(50, 10, d / 10, 1 / 9, tolerance=1e-7)[-1] for d in range(1, 10)]
    assert found == pytest.approx(expected, abs=5e-6)


@pytest.mark.parametrize(("n", "steps", "epsilon", "expected"), [(200, 56, 20, 0.030841), (500, 60, 10, 0.020688)])
def test_mean_error_of_the_median(n, steps, epsilon, expected):
    # Theory R13: exact E|A - d| with left edges and "none" read as 1.
    law = histogram_index_law_iid(n, steps, 0.5, epsilon / 9)
    values = np.append(np.arange(steps) / steps, 1.0)
    assert law @ np.abs(values - 0.5) == pytest.approx(expected, abs=6e-7)


def test_grid_too_coarse_for_the_theorem():
    # thm_uniform_violation_k1 and docs/theory.md R10: with 1 or 3 bins no output lies within 0.1 of the median.
    for steps in (1, 3):
        law = histogram_index_law_iid(1000, steps, 0.5, 100 / 9)
        values = np.append(np.arange(steps) / steps, -1.0)
        assert law[np.abs(values - 0.5) <= 0.1].sum() == pytest.approx(0.0, abs=1e-9)


def test_normal_records():
    # Theory R11: n = 500 on [-4, 4].
    from scipy.special import ndtr

    law = histogram_index_law_iid(500, 8, 0.5, 60 / 9, cdf=ndtr, low=-4.0, high=4.0)
    left = -4.0 + np.arange(8)
    assert law[:8][np.abs(left) <= 0.6].sum() == pytest.approx(0.5, abs=1e-9)
    assert law[:8][(left >= -1.6) & (left <= 0.6)].sum() == pytest.approx(1.0, abs=1e-9)


def test_a_subset_of_the_cells_gives_the_same_law(monkeypatch):
    from dpaudit.exact.mechanism_laws import histogram_iid

    fast = histogram_index_law_iid(400, 20, 0.5, 0.08)
    monkeypatch.setattr(histogram_iid, "_lattice_rule", lambda size, degree: (np.arange(size), np.ones(size)))
    slow = histogram_index_law_iid(400, 20, 0.5, 0.08, tolerance=1e-11)
    assert np.abs(fast - slow).sum() < 1e-9


def test_scale_and_location_of_the_records_do_not_matter():
    base = histogram_index_law_iid(30, 6, 0.3, 2.0)
    moved = histogram_index_law_iid(30, 6, 0.3, 2.0, cdf=lambda t: (t + 5.0) / 10.0, low=-5.0, high=5.0)
    assert moved == pytest.approx(base, abs=1e-12)


def test_independent_records_refuse_invalid_arguments():
    with pytest.raises(InvalidArgument, match="records=0"):
        histogram_index_law_iid(0, 4, 0.5, 1.0)
    with pytest.raises(InvalidArgument, match="quantile=0"):
        histogram_index_law_iid(5, 4, 0, 1.0)
    with pytest.raises(InvalidArgument, match="distribution function"):
        histogram_index_law_iid(5, 4, 0.5, 1.0, cdf=lambda t: 2.0 * t)
    with pytest.raises(InvalidArgument, match="tolerance"):
        histogram_index_law_iid(5, 4, 0.5, 1.0, tolerance=0.0)


# Inverse sensitivity -------------------------------------------------------------------------------------------------

FIVE = (0.1, 0.2, 0.35, 0.5, 0.9)
FIVE_REPLACED = (0.1, 0.2, 0.95, 0.5, 0.9)


def masses(law):
    return np.exp(np.array(law.log_weights) - law.log_normaliser) * np.diff(law.edges)


def test_median_of_five():
    # docs/mechanisms.md section 5, and inv_sens_* of the reference values.
    law = quantile_law(FIVE, 3, epsilon=1.0, low=0.0, high=1.0)
    assert math.exp(law.log_normaliser) == pytest.approx(0.410524950529, abs=1e-12)
    expected = [0.0543523993, 0.0896119568, 0.2216177088, 0.2216177088, 0.3584478271, 0.0543523993]
    assert masses(law) == pytest.approx(expected, abs=1e-10)
    assert mean_value(law) == pytest.approx(0.473840067892, abs=1e-12)
    assert mean_absolute_error(law, 0.35) == pytest.approx(0.225538946476, abs=1e-12)
    other = quantile_law([0.1, 0.25, 0.3, 0.55, 0.8], 3, epsilon=1.0, low=0.0, high=1.0)
    assert math.exp(other.log_normaliser) == pytest.approx(0.3960500224268959043993335, rel=1e-14)
    assert mean_absolute_error(other, 0.3) == pytest.approx(0.2359614985534306454692149, rel=1e-14)


def test_smooth_median_of_five():
    law = quantile_law(FIVE, 3, epsilon=1.0, low=0.0, high=1.0, rho=0.05)
    assert math.exp(law.log_normaliser) == pytest.approx(0.488211934514, abs=1e-12)
    assert law.edges == pytest.approx((0.0, 0.05, 0.15, 0.3, 0.4, 0.55, 0.95, 1.0))
    expected = [0.0228517724, 0.0753524064, 0.1863526729, 0.2048290771, 0.1863526729, 0.3014096257, 0.0228517724]
    assert masses(law) == pytest.approx(expected, abs=1e-10)
    assert mean_value(law) == pytest.approx(0.458581280409, abs=1e-12)
    assert mean_absolute_error(law, 0.35) == pytest.approx(0.212820030847, abs=1e-12)
    staircase = quantile_segments([0.1, 0.25, 0.3, 0.55, 0.8], 3, low=0.0, high=1.0, rho=0.07)
    assert math.exp(staircase.law(1.0).log_normaliser) == pytest.approx(0.5048118000061157283486742, rel=1e-14)
    plateau = 1.0 - staircase.length_tail(1.0, 1)
    assert plateau == pytest.approx(0.2773310766473840715937687, rel=1e-13)


def test_mean_of_five():
    staircase = mean_segments(FIVE, low=0.0, high=1.0)
    assert staircase.edges == pytest.approx([0, 0.02, 0.06, 0.13, 0.23, 0.41, 0.59, 0.75, 0.88, 0.98, 1])
    assert staircase.lengths.tolist() == [5, 4, 3, 2, 1, 1, 2, 3, 4, 5]
    law = mean_law(FIVE, epsilon=1.0, low=0.0, high=1.0)
    assert math.exp(law.log_normaliser) == pytest.approx(0.380856063829, abs=1e-12)


def test_epsilon_of_a_pair():
    # docs/mechanisms.md section 5: the record .35 becomes .95.
    for rho, expected in ((0.0, 0.2767264503), (0.05, 0.6909139250)):
        laws = [quantile_law(x, 3, epsilon=1.0, low=0.0, high=1.0, rho=rho) for x in (FIVE, FIVE_REPLACED)]
        assert exact_epsilon(*laws) == pytest.approx(expected, abs=1e-10)
    laws = [mean_law(x, epsilon=1.0, low=0.0, high=1.0) for x in (FIVE, FIVE_REPLACED)]
    assert exact_epsilon(*laws) == pytest.approx(0.5607345483, abs=1e-10)


def test_finite_set():
    law = finite_quantile_law([1, 2, 4], 2, epsilon=1.0, points=range(5))
    expected = [0.11541419, 0.19028583, 0.3137283, 0.19028583, 0.19028583]
    assert np.exp(law.log_probabilities) == pytest.approx(expected, abs=5e-9)
    assert quantile_length([4, 2, 4], 2, range(5)).tolist() == [2, 2, 1, 1, 0]
    moved = finite_quantile_law([4, 2, 4], 2, epsilon=1.0, points=range(5))
    assert exact_epsilon(law, moved) == pytest.approx(0.5778227855, abs=1e-10)
    worst = 0.0
    for x in itertools.combinations_with_replacement(range(5), 3):
        one = finite_quantile_law(x, 2, epsilon=1.0, points=range(5)).log_probabilities
        for position, value in itertools.product(range(3), range(5)):
            y = [*x[:position], value, *x[position + 1 :]]
            other = finite_quantile_law(y, 2, epsilon=1.0, points=range(5)).log_probabilities
            worst = max(worst, float(np.abs(one - other).max()))
    assert worst == pytest.approx(0.7344182074, abs=1e-10)


def test_epsilon_is_tight_inside_and_half_at_the_ends():
    # inv_sens_tightness_tau1e-2 (docs/theory.md R18).
    x = 0.01 * np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    moved = np.append(x[1:], 1.0)
    laws = [quantile_law(data, 3, epsilon=1.0, low=0.0, high=1.0) for data in (x, moved)]
    ratio = laws[0].log_prob([0.002])[0] - laws[1].log_prob([0.002])[0]
    assert ratio == pytest.approx(0.9919900059437160121864547, abs=1e-12)
    rng = np.random.default_rng(5)
    for rank_of_minimum in (1, 5):
        worst = 0.0
        for _ in range(200):
            data = rng.random(5) ** rng.choice([0.2, 1.0, 5.0])
            other = np.append(data[1:], rng.choice([0.0, 1.0, rng.random()]))
            pair = [quantile_law(d, rank_of_minimum, epsilon=1.0, low=0.0, high=1.0) for d in (data, other)]
            worst = max(worst, exact_epsilon(*pair))
        assert 0.4 < worst <= 0.5 + 1e-12


def test_median_of_a_sample():
    # docs/mechanisms.md section 5: n = 101, Beta(2, 5) from default_rng(7).
    x = np.sort(np.random.default_rng(7).beta(2, 5, 101))
    assert x[50] == pytest.approx(0.2410529478, abs=1e-10)
    law = quantile_law(x, 51, epsilon=1.0, low=0.0, high=1.0, rho=0.005)
    assert mean_absolute_error(law, x[50]) == pytest.approx(0.0098865159, abs=1e-10)


def test_closed_forms_agree_with_sums_over_a_fine_grid():
    law = quantile_law(FIVE, 2, epsilon=2.0, low=0.0, high=1.0, rho=0.03)
    t = (np.arange(200_000) + 0.5) / 200_000
    density = np.exp(law.log_prob(t))
    assert mean_value(law) == pytest.approx((density * t).mean(), abs=1e-5)
    for target in (-0.5, 0.2, 0.77, 1.5):
        assert mean_absolute_error(law, target) == pytest.approx((density * abs(t - target)).mean(), abs=2e-5)
        beyond = (density * (abs(t - target) > 0.11)).mean()
        assert probability_beyond(law, target, 0.11) == pytest.approx(beyond, abs=2e-5)
    assert probability_beyond(law, 0.5, 0.6) == 0.0


def test_ties_and_ends_of_the_range():
    tied = quantile_segments([0.3, 0.3, 0.3], 2, low=0.0, high=1.0)
    assert tied.edges.tolist() == [0.0, 0.3, 1.0]
    assert tied.lengths.tolist() == [2, 2]
    ends = quantile_segments([0.0, 0.0, 1.0], 2, low=0.0, high=1.0)
    assert ends.edges.tolist() == [0.0, 1.0]
    assert ends.lengths.tolist() == [1]
    assert quantile_segments([0.0, 0.0, 1.0], 2, low=0.0, high=1.0, rho=3.0).lengths.tolist() == [0]


@given(
    data=st.lists(st.integers(0, 32), min_size=1, max_size=9),
    rho=st.integers(0, 10),
    at=st.integers(0, 63),
    position=st.integers(0, 8),
)
def test_segments_agree_with_lengths(data, rho, at, position):
    x, t = np.array(data) / 32.0, (2 * at + 1) / 128.0  # dyadic, and never at an edge of the median's staircase
    chosen = min(position, x.size - 1) + 1
    for staircase, length in (
        (
            quantile_segments(x, chosen, low=0.0, high=1.0, rho=rho / 32),
            quantile_length(x, chosen, t, rho=rho / 32),
        ),
        (
            mean_segments(x, low=0.0, high=1.0, rho=rho / 32),
            mean_length(x, t, low=0.0, high=1.0, rho=rho / 32),
        ),
    ):
        j = np.searchsorted(staircase.edges, t) - 1
        if np.abs(staircase.edges - t).min() > 1e-9:
            assert staircase.lengths[j] == length


def test_inverse_sensitivity_refuses_invalid_arguments():
    for change, message in [
        ({"data": []}, "data is empty"),
        ({"data": [0.5, 1.5]}, "outside"),
        ({"data": [math.nan]}, "data holds .*nan"),
        ({"rank": 0}, "rank=0"),
        ({"rank": 6}, "rank=6"),
        ({"rho": -0.1}, "rho=-0.1"),
        ({"low": 1.0}, "low=1.0"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
    ]:
        arguments = {"data": FIVE, "rank": 3, "epsilon": 1.0, "low": 0.0, "high": 1.0, **change}
        with pytest.raises(InvalidArgument, match=message):
            quantile_law(**arguments)
    with pytest.raises(InvalidArgument, match="not one of the points"):
        finite_quantile_law([1, 2.5], 1, epsilon=1.0, points=[1, 2, 3])


def test_a_law_whose_probabilities_do_not_sum_to_one_is_refused(monkeypatch):
    from dpaudit.exact.mechanism_laws import above_threshold

    monkeypatch.setattr(above_threshold, "log_outcomes", lambda breakpoints, scale_ratio: np.log([0.5, 0.4]))
    with pytest.raises(LawError, match=r"adds up to 0\.9"):
        above_threshold_log_pmf([0.0], 0.0, 1.0)
