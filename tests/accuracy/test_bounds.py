"""Value objects, parameter conditions, and relations between the forms of a theorem."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.accuracy.bound import Bound, Sense, Status, Truth, Variant, excess, judge
from dpaudit.accuracy.bounds import above_threshold as at
from dpaudit.accuracy.bounds import deciles, inverse_sensitivity, mean_error, noise, randomised_response
from dpaudit.accuracy.conditions import SYMBOLS, check
from dpaudit.accuracy.distributions import order_statistics
from dpaudit.accuracy.distributions.data_law import BETA_2_5, EXPONENTIAL, LAWS, NORMAL, UNIFORM, DataLaw
from dpaudit.accuracy.distributions.error_law import ErrorLaw
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import histogram_law
from dpaudit.errors import InvalidArgument, LawError


def make(value: float, sense: Sense, **options) -> Bound:
    return Bound(value=value, variant=Variant.CORRECTED, theorem="t", sense=sense, **options)


@pytest.mark.parametrize(
    ("bound", "truth", "status"),
    [
        (make(0.9, Sense.AT_LEAST), Truth.exact(0.95), Status.HOLDS),
        (make(0.9, Sense.AT_LEAST), Truth.exact(0.85), Status.VIOLATED),
        (make(0.9, Sense.AT_LEAST), Truth.exact(0.9), Status.HOLDS),
        (make(-0.1, Sense.AT_LEAST), Truth.exact(0.0), Status.VACUOUS),
        (make(0.2, Sense.AT_MOST), Truth.exact(0.3), Status.VIOLATED),
        (make(0.2, Sense.AT_MOST), Truth(low=0.1, high=0.3, method="monte carlo"), Status.UNDECIDED),
        (make(0.2, Sense.AT_MOST), Truth(low=0.1, high=0.15, method="monte carlo"), Status.HOLDS),
        (make(0.2, Sense.AT_MOST), Truth(low=0.21, high=0.3, method="certified"), Status.VIOLATED),
        (make(1.2, Sense.AT_MOST), Truth.exact(0.3), Status.VACUOUS),
        (make(1.2, Sense.AT_MOST, trivial=math.inf), Truth.exact(0.3), Status.HOLDS),
        (make(0.2, Sense.EQUAL), Truth.exact(0.2), Status.HOLDS),
        (make(0.2, Sense.EQUAL), Truth.exact(0.21), Status.VIOLATED),
        (make(0.2, Sense.EQUAL), Truth(low=0.1, high=0.3, method="monte carlo"), Status.UNDECIDED),
        (make(0.9, Sense.AT_LEAST, unmet=("n > 3",)), Truth.exact(0.1), Status.NOT_APPLICABLE),
        (make(math.nan, Sense.AT_LEAST, unmet=("n > 3",)), Truth.exact(0.1), Status.NOT_APPLICABLE),
    ],
)
def test_judge(bound, truth, status):
    assert judge(bound, truth) is status
    if status is Status.VIOLATED:
        assert excess(bound, truth) > 0
    elif bound.applies:
        assert excess(bound, truth) <= 0


def test_bounds_pickle_and_have_strict_json():
    bound = make(math.nan, Sense.AT_MOST, unmet=("alpha <= n/10",), terms={"alpha": math.inf})
    assert pickle.loads(pickle.dumps(bound)).unmet == bound.unmet
    assert json.loads(json.dumps(bound.as_json(), allow_nan=False))["value"] is None


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("beta", 0.0, "beta=0.0 must lie strictly between 0 and 1: beta is the failure probability"),
        ("beta", 1.0, "beta=1.0"),
        ("i", 0, "i=0 must be from 1 to 9"),
        ("i", 10, "decile"),
        ("n", 0, "n=0 must be at least 1"),
        ("n_slides", 1, "n=1 must be at least 2: the slides divide by log n"),
        ("steps", 217.147, "steps=217.147 must be a whole number"),
        ("gamma", -0.1, "gamma=-0.1 must be zero or positive: gamma is the half width"),
        ("epsilon", math.nan, "epsilon=nan"),
        ("epsilon", math.inf, "epsilon=inf"),
        ("epsilon", "one", "must be a number"),
        ("truth_rate", 0.0, "divides by the rate"),
    ],
)
def test_each_refusal_names_the_condition(name, value, words):
    with pytest.raises(InvalidArgument) as caught:
        check(**{name: value})
    assert words in str(caught.value)


def refusal(name, value):
    try:
        check(**{name: value})
    except InvalidArgument as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", SYMBOLS)
def test_plain_numbers_raise_the_same_errors_as_arrays(name):
    for number in (-1, -0.5, 0, 1e-300, 0.5, True, 1.0, 1.5, 2, 3, 9, 10, 10**12, math.nan, math.inf, -math.inf):
        assert refusal(name, number) == refusal(name, np.asarray(number))


def test_arrays_are_checked_entry_by_entry():
    with pytest.raises(InvalidArgument, match=r"beta=2\.0"):
        at.alpha(10, np.array([0.1, 2.0]), 1.0)
    assert SYMBOLS["n"].parse("40") == 40
    assert SYMBOLS["quantile"].parse("1/4") == 0.25
    with pytest.raises(InvalidArgument, match="'x' is not a number"):
        SYMBOLS["n"].parse("x")


@settings(max_examples=60, deadline=None)
@given(queries=st.integers(1, 10**6), beta=st.floats(1e-9, 0.49), epsilon=st.floats(1e-3, 20))
def test_alphas_decrease_and_the_quadratic_one_meets_the_union_bound(queries, beta, epsilon):
    printed, tight, quadratic = (
        at.alpha(queries, beta, epsilon, v) for v in (Variant.PRINTED, Variant.TIGHT, Variant.QUADRATIC)
    )
    assert printed > tight >= quadratic * (1 - 1e-12) > 0
    assert queries * at.noise_tail(quadratic, epsilon) == pytest.approx(beta, rel=1e-9)
    improved = at.improved_alpha(queries, beta, epsilon)
    assert queries * at.improved_noise_tail(improved, epsilon) == pytest.approx(beta, rel=1e-9)
    assert improved < quadratic


def test_parameters_without_a_positive_alpha_are_refused():
    with pytest.raises(InvalidArgument, match="beta/queries"):
        at.alpha(1, 0.7, 1.0, Variant.TIGHT)
    with pytest.raises(InvalidArgument, match="smaller beta"):
        at.alpha(1, 0.5, 1.0, Variant.QUADRATIC)
    with pytest.raises(InvalidArgument, match="variant"):
        at.alpha(1, 0.1, 1.0, Variant.SHARP)


def test_error_probability_is_within_the_union_bound_for_any_answers():
    rng = np.random.default_rng(2)
    for _ in range(25):
        m = int(rng.integers(1, 12))
        distance = at.alpha(m, 0.1, 1.0, Variant.QUADRATIC)
        answers = distance * rng.choice([-1.0, 1.0, -1.1, 1.3, 0.2], size=m)
        assert at.error_probability(answers, 0.0, distance, 1.0) <= 0.1 + 1e-12


def test_a_single_query_attains_the_tail():
    assert at.error_probability([-5.0], 0.0, 5.0, 1.0) == pytest.approx(at.noise_tail(5.0, 1.0), rel=1e-11)
    assert at.error_probability([5.0], 0.0, 5.0, 1.0) == pytest.approx(at.noise_tail(5.0, 1.0), rel=1e-11)
    assert at.error_probability([4.9], 0.0, 5.0, 1.0) == 0.0


def test_ranks_are_exact_in_integers():
    assert order_statistics.rank(30, 0.7) == 21
    assert order_statistics.rank(10**12, Fraction(3, 10)) == 3 * 10**11
    assert order_statistics.as_fraction(0.3) == Fraction(3, 10)
    assert deciles.centre(30, 0.7) == 21.0
    with pytest.raises(InvalidArgument, match="small denominator"):
        order_statistics.as_fraction(math.pi / 4)
    with pytest.raises(InvalidArgument):
        order_statistics.as_fraction(1.0)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 3000),
    steps=st.integers(1, 5000),
    i=st.integers(1, 9),
    gamma=st.floats(0.0, 0.1),
    beta=st.floats(1e-6, 0.6),
    epsilon=st.floats(0.05, 200),
    law=st.sampled_from([UNIFORM, NORMAL]),
)
def test_literal_is_vacuous_and_sharp_dominates(n, steps, i, gamma, beta, epsilon, law):
    point = {"n": n, "steps": steps, "quantile": Fraction(i, 10), "gamma": gamma, "beta": beta, "epsilon": epsilon}
    values = {
        v: deciles.within(**point, variant=v, law=law) for v in deciles.WITHIN_VARIANTS if beta < 0.6 or steps > 1
    }
    assert values[Variant.LITERAL] <= 0.0
    slack = 1e-12
    assert values[Variant.SHARP] >= values[Variant.CORRECTED_36] - slack
    assert values[Variant.CORRECTED_36] >= values[Variant.CORRECTED_72] - slack
    assert values[Variant.SEMI_REPAIRED] == values[Variant.SEMI_WIDENED]


def test_calculators_are_vectorised():
    n = np.array([100, 1000, 5000])
    within = deciles.within(n=n, steps=50, quantile=0.5, gamma=0.05, beta=0.05, epsilon=20.0, variant=Variant.SHARP)
    each = [
        deciles.within(n=int(m), steps=50, quantile=0.5, gamma=0.05, beta=0.05, epsilon=20.0, variant=Variant.SHARP)
        for m in n
    ]
    assert within.tolist() == each
    assert isinstance(each[0], float)
    assert mean_error.printed_closed_form(n, 0.5, 3.0).shape == (3,)
    assert mean_error.corrected_mean_error(n=n, steps=20, quantile=0.3, epsilon=9.0, beta=0.01).shape == (3,)
    assert mean_error.corrected_closed_form(n=n, steps=20, quantile=0.3, epsilon=9.0, beta=0.01).shape == (3,)
    assert deciles.mu(n, 0.5, 0.1, 7, Variant.EXACT).shape == (3,)
    assert deciles.eta(n, 0.5, [0.01, 0.02, 0.03]).shape == (3,)
    assert randomised_response.variance(n, 0.5, 0.3).shape == (3,)
    assert noise.laplace_tail([0.0, 1.0], 1.0).tolist() == pytest.approx([1.0, math.exp(-1)])


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(3, 10**6),
    i=st.integers(1, 9),
    epsilon=st.floats(0.01, 500),
    beta=st.floats(1e-9, 0.3),
    variant=st.sampled_from(mean_error.CORRECTED_VARIANTS),
)
def test_closed_form_is_above_the_theorem_it_comes_from(n, i, epsilon, beta, variant):
    steps = mean_error.slides_steps(n)
    point = {"n": n, "steps": steps, "quantile": Fraction(i, 10), "epsilon": epsilon, "beta": beta, "variant": variant}
    assert mean_error.corrected_closed_form(**point) >= mean_error.corrected_mean_error(**point) * (1 - 1e-12)


def test_best_beta_is_no_worse_than_the_slides():
    chosen = mean_error.corrected_mean_error_bound(n=500, quantile=0.5, epsilon=10.0)
    fixed = mean_error.corrected_mean_error_bound(n=500, quantile=0.5, epsilon=10.0, beta=mean_error.slides_beta(500))
    assert chosen.value <= fixed.value
    monotone = mean_error.corrected_mean_error_bound(n=500, quantile=0.5, epsilon=10.0, variant=Variant.MONOTONE_NOISE)
    assert monotone.value < chosen.value


def test_hypotheses_of_the_slides_are_reported():
    bound = mean_error.printed_closed_form_bound(n=1000, quantile=0.5, epsilon=0.1)
    assert not bound.applies
    assert "alpha <= n/10" in bound.unmet[0]
    undefined = mean_error.printed_mean_error_bound(n=1000, quantile=0.1, epsilon=0.8, beta=0.5)
    assert math.isnan(undefined.value)
    assert any("floor" in words for words in undefined.unmet)
    wide = {"n": 100, "steps": 10, "quantile": 0.5, "beta": 0.1, "epsilon": 9.0, "low": 0.0, "high": 2.0}
    assert len(deciles.within_bound(**wide, gamma=0.2, variant=Variant.SEMI_REPAIRED).unmet) == 2


@pytest.mark.parametrize("variant", [Variant.CORRECTED_72, Variant.CORRECTED_36, Variant.SHARP])
def test_proved_forms_need_the_interval_to_end_inside_the_range_and_nothing_else(variant):
    point = {"n": 300, "steps": 20, "quantile": 0.5, "beta": 0.1, "epsilon": 300.0, "variant": variant}
    for gamma in (0.05, 0.2, 0.45):
        bound = deciles.within_bound(**point, gamma=gamma)
        setting = HistogramSetting(n=300, steps=20, quantile=Fraction(1, 2), epsilon=300.0)
        assert bound.unmet == ()
        assert histogram_law(setting).within(gamma, below=1 / 20) >= bound.value > 0.0
    assert "a <= d + gamma <= b" in deciles.within_bound(**point, gamma=0.6).unmet[0]


@pytest.mark.parametrize("law", LAWS.values(), ids=lambda law: law.name)
def test_quantiles_invert_the_distribution_functions(law):
    for level in (0.1, 0.5, 0.9):
        assert law.probability_below(law.quantile(level)) == pytest.approx(level, abs=1e-12)
    by_bisection = DataLaw(law.name, law.cdf, law.low, law.high)
    assert by_bisection.quantile(0.3) == pytest.approx(law.quantile(0.3), abs=1e-9)
    with pytest.raises(InvalidArgument, match="no inverse"):
        by_bisection.sample(3, np.random.default_rng(0))
    draws = law.sample(2000, np.random.default_rng(1))
    assert np.mean(draws <= law.quantile(0.5)) == pytest.approx(0.5, abs=0.06)


def test_a_law_without_inverse_gives_the_same_bound():
    point = {"n": 200, "steps": 40, "quantile": 0.5, "epsilon": 20.0, "beta": 0.02}
    plain = DataLaw("beta", BETA_2_5.cdf, 0.0, 1.0)
    with_inverse = mean_error.corrected_mean_error_for_law(**point, law=BETA_2_5)
    assert mean_error.corrected_mean_error_for_law(**point, law=plain) == pytest.approx(with_inverse, rel=1e-7)
    with pytest.raises(InvalidArgument, match="outside"):
        DataLaw("narrow", NORMAL.cdf, 0.0, 1.0).quantile(0.1)
    with pytest.raises(InvalidArgument, match=r"outside \[0, 1\]"):
        DataLaw("wrong", lambda x: x * 2.0, 0.0, 1.0).probability_below(0.9)


def test_inverse_sensitivity_helpers():
    data = [0.1, 0.2, 0.35, 0.5, 0.9]
    assert inverse_sensitivity.reach(data, 3, 0) == 0.0
    assert inverse_sensitivity.reach(data, 3, 9) == pytest.approx(0.65)
    assert inverse_sensitivity.error_quantile(data, 3, 50.0, 0.05, 0.01) == pytest.approx(0.05)
    general = inverse_sensitivity.mean_error(n=40, quantile=0.5, epsilon=1.0, law=EXPONENTIAL)
    assert general[0] > 0
    with pytest.raises(InvalidArgument, match="rank=6"):
        inverse_sensitivity.reach(data, 6, 1)


def test_error_law():
    law = ErrorLaw(np.array([0.0, 0.4, 0.6, 1.0]), np.array([0.1, 0.4, 0.3, 0.2]), target=0.5)
    assert law.within(0.1) == pytest.approx(0.7)  # 0.5 - 0.1 is 0.4 although floats differ in the last place
    assert law.error_quantile(0.7) == pytest.approx(0.1)
    assert law.error_quantile(0.71) == pytest.approx(0.5)
    assert law.mean_error() == pytest.approx(0.22)
    with pytest.raises(LawError, match="sum"):
        ErrorLaw(np.array([0.0, 1.0]), np.array([0.5, 0.6]), 0.0)
    with pytest.raises(LawError, match="match"):
        ErrorLaw(np.array([0.0, 1.0]), np.array([1.0]), 0.0)


def test_bounded_noise_refuses_invalid_arguments_and_has_finite_support():
    with pytest.raises(InvalidArgument, match="family"):
        noise.BoundedNoise("DF", 1.0)
    assert noise.BoundedNoise("DE", 0.4).single_query_delta(1.0) == 1.0
    assert noise.BoundedNoise("DE", 3.0).tail(3.0) == 0.0
    x = np.linspace(-1.0, 1.0, 200_003)[1:-1]
    density = np.exp(-((1.0 - x**2) ** -2.0))
    share = density[np.abs(x) > 0.25].sum() / density.sum()
    assert noise.BoundedNoise("p2", 2.0).tail(0.5) == pytest.approx(share, rel=1e-4)
