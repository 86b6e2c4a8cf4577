"""Accuracy calculators against closed forms in many digits, brute force, and values computed elsewhere.

"theory R.." values were computed with mpmath at 30 to 50 digits (closed forms, binomial sums, regularised beta), those of
R10 and R12 by an independent Markov chain with quadrature error 1e-8.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from dpaudit.accuracy.bound import Variant
from dpaudit.accuracy.bounds import above_threshold as at
from dpaudit.accuracy.bounds import deciles, inverse_sensitivity, mean_error, noise, randomised_response
from dpaudit.accuracy.distributions import order_statistics
from dpaudit.accuracy.distributions.data_law import NORMAL, UNIFORM
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import (
    error_quantile,
    histogram_law,
    histogram_law_for_data,
    inverse_sensitivity_errors,
)
from dpaudit.exact.mechanism_laws.inverse_sensitivity import mean_absolute_error, quantile_law

HALF = Fraction(1, 2)
V = Variant


def close(value: float, expected: str | float, rel: float = 1e-10) -> bool:
    return value == pytest.approx(float(expected), rel=rel, abs=1e-300)


# AboveThreshold ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (at.noise_tail(5.0, 1.0), "0.1773223648028102676883355"),
        (at.alpha(1000, 0.05, 1.0, V.TIGHT), "37.99208977771185465404474"),
        (at.alpha(1000, 0.05, 1.0, V.QUADRATIC), "37.99201477560239175909364"),
        (at.all_below_error(10, at.alpha(10, 0.1, 1.0, V.PRINTED), 1.0), "0.0001665940904395469504926405"),
        (at.all_below_error(10, at.alpha(10, 0.1, 1.0, V.TIGHT), 1.0), "0.09002457427602304649391139"),
        (at.all_below_error(1000, at.alpha(1000, 0.05, 1.0, V.PRINTED), 1 / 9), "0.9995572911656927411847173"),
        (at.all_below_error(1000, at.alpha(1000, 0.05, 1.0, V.TIGHT), 1.0), "0.04686183118752456882697321"),
    ],
)
def test_above_threshold_values_of_theory_r4(value, expected):
    assert close(value, expected)


@pytest.mark.parametrize("x", [0.0, 0.3, 2.0, 40.0])
def test_noise_tails_against_quadrature_of_the_convolution(x):
    with mp.workdps(30):
        for tail, scale in ((at.noise_tail, 4), (at.improved_noise_tail, 2)):
            # P(nu - Z > x) = int l_2(z) P(nu > x + z) dz
            def integrand(z, scale=scale):
                u = x + z
                above = mp.exp(-u / scale) / 2 if u >= 0 else 1 - mp.exp(u / scale) / 2
                return mp.exp(-abs(z) / 2) / 4 * above

            exact = mp.quad(integrand, [-mp.inf, -x - 50, -x, -x / 2, 0, 10, 50, mp.inf])
            assert close(tail(x, 1.0), exact, rel=1e-9)


def test_error_probability_for_any_answers_against_simulation():
    answers, distance = np.array([-3.0, 2.5, -3.0, 0.0, 4.0, -8.0]), 2.5
    rng, runs = np.random.default_rng(11), 400_000
    threshold = rng.laplace(scale=2.0, size=(runs, 1))
    above = answers + rng.laplace(scale=4.0, size=(runs, answers.size)) > threshold
    index = np.where(above.any(axis=1), above.argmax(axis=1), answers.size)
    passed_high = np.array([any(a >= distance for a in answers[:j]) for j in range(answers.size + 1)])
    low = np.append(answers <= -distance, False)
    frequency = (passed_high | low)[index].mean()
    # Hoeffding: a deviation of 0.005 has probability below 2 exp(-2 * 4e5 * 2.5e-5) = 4e-9.
    assert abs(at.error_probability(answers, 0.0, distance, 1.0) - frequency) < 0.005


@pytest.mark.parametrize(("beta", "expected"), [(0.5, 0.0645), (0.1, 0.00273)])
def test_random_index_form_of_theory_r4(beta, expected):
    each = np.asarray(at.alpha(np.arange(1, 401), beta, 1.0, V.RANDOM_INDEX))
    assert at.error_probability(-each, 0.0, np.append(each, each[-1]), 1.0) == pytest.approx(expected, rel=5e-3)


# Deciles -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "i", "gamma", "literal", "proof", "corrected"),
    [
        (100, 5, 0.1, "2.0", "1.634543630627709594762846", "0.317304397874197589395304"),
        (95, 3, 0.06, "1.982269580722382409830162", "1.478415930649265987164959", "0.5215840693507340128350412"),
        (10, 9, 0.0, "2.0847773692", "0.612579511", "1.0"),
    ],
)
def test_eta_uniform_of_theory_r8(n, i, gamma, literal, proof, corrected):
    level = Fraction(i, 10)
    assert close(deciles.eta(n, level, gamma, V.LITERAL), literal)
    assert close(deciles.eta(n, level, gamma, V.PROOF), proof)
    assert close(deciles.eta(n, level, gamma, V.CORRECTED), corrected)


def test_eta_and_mu_normal_of_theory_r11():
    third = Fraction(3, 10)
    assert close(deciles.eta(100, third, 0.3, V.LITERAL, NORMAL), "1.988536663215847200247438")
    assert close(deciles.eta(100, third, 0.3, V.PROOF, NORMAL), "0.9132161352465719124210394")
    assert close(deciles.eta(100, third, 0.3, V.CORRECTED, NORMAL), "0.2569785334928308329654773")
    assert close(deciles.mu(100, third, 0.3, 5, V.CORRECTED, NORMAL), "0.8438894860733299751349835")
    assert close(deciles.mu(100, third, 0.3, 5, V.PRINTED, NORMAL), "1.190553914044859606216685")
    assert close(deciles.mu(100, third, 0.3, 5, V.LITERAL, NORMAL), "1.009828762477778252644782")
    assert close(deciles.normal_decile(1), "-1.281551565544600466965103")
    assert deciles.normal_decile(5) == 0.0


def test_mu_of_theory_r9():
    assert close(deciles.mu(1000, HALF, 0.1, 30.4, V.PRINTED), "0.00255413583495967476577793")
    assert close(deciles.mu(1000, HALF, 0.1, 30.4, V.CORRECTED), "0.00255413583495967476577793")
    assert close(1.0 - deciles.mu(100, HALF, 0.1, 3, V.EXACT), "0.775790597461976", rel=1e-13)


def test_exact_flanks_against_trinomial_enumeration():
    n, left, right, needed = 12, *map(float, deciles.flanks(Fraction(7, 10), 0.5, NORMAL)), 2
    total = sum(
        math.factorial(n)
        / (math.factorial(a) * math.factorial(b) * math.factorial(n - a - b))
        * left**a
        * right**b
        * (1 - left - right) ** (n - a - b)
        for a, b in itertools.product(range(needed, n + 1), repeat=2)
        if a + b <= n
    )
    assert close(1.0 - deciles.mu(n, Fraction(7, 10), 0.5, needed, V.EXACT, NORMAL), total, rel=1e-12)


def test_sharp_theorem_of_theory_r10():
    value = deciles.within(n=1000, steps=50, quantile=HALF, gamma=0.05, beta=0.05, epsilon=20.0, variant=V.SHARP)
    assert close(value, "0.9354332792045659550482404")
    assert deciles.sharp_ranks(1000, HALF, "11.704122307573150806") == (489, 512)


@pytest.mark.parametrize(
    ("n", "steps", "beta", "epsilon", "expected"),
    [
        (3000, 12000, 0.03, 0.9062, "0.9615090434811828464"),
        (5000, 5000, 0.02, 0.525, "0.97927860388422392519"),
        (5000, 20000, 0.01, 0.58, "0.9828594200354766122"),
        (1000, 1, 0.05, 100.0, "0.9484726421209470035"),
        (1000, 3, 0.05, 100.0, "0.948473"),
    ],
)
def test_semi_repaired_bounds_of_theory_r10(n, steps, beta, epsilon, expected):
    value = deciles.within(
        n=n, steps=steps, quantile=HALF, gamma=0.1, beta=beta, epsilon=epsilon, variant=V.SEMI_REPAIRED
    )
    assert close(value, expected, rel=1e-10 if len(expected) > 10 else 1e-6)


def test_normal_theorem_of_theory_r11():
    point = {
        "n": 500,
        "steps": 40,
        "quantile": Fraction(1, 10),
        "gamma": 0.6,
        "beta": 0.05,
        "epsilon": 30.0,
        "law": NORMAL,
    }
    values = [deciles.within(**point, variant=v) for v in (V.CORRECTED_72, V.CORRECTED_36, V.SHARP)]
    assert values == pytest.approx([0.0837, 0.9096, 0.9500], abs=6e-5)
    setting = HistogramSetting(n=500, steps=40, quantile=Fraction(1, 10), epsilon=30.0, law=NORMAL, low=-4.0, high=4.0)
    assert histogram_law(setting).within(0.6, below=setting.width) == pytest.approx(1.0, abs=1e-6)
    coarse = HistogramSetting(n=500, steps=8, quantile=HALF, epsilon=60.0, law=NORMAL, low=-4.0, high=4.0)
    assert histogram_law(coarse).within(0.6) == pytest.approx(0.5, abs=1e-6)
    assert histogram_law(coarse).within(0.6, below=coarse.width) == pytest.approx(1.0, abs=1e-6)


def test_first_bin_counterexample_of_theory_r11():
    # d + gamma below a: the first bin already is too high, so the hypothesis a <= d + gamma is needed.
    bound = deciles.within_bound(
        n=100, steps=20, quantile=Fraction(1, 10), gamma=0.6, beta=0.05, epsilon=300.0, variant=V.SHARP, law=NORMAL,
        low=0.0, high=4.0,
    )  # fmt: skip
    assert bound.value == pytest.approx(0.949, abs=1e-3)
    assert not bound.applies
    assert "a <= d + gamma <= b" in bound.unmet[0]


# Mean error ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("n", "r"), [(1, 1), (10, 1), (10, 10), (40, 13), (1000, 550), (1000, 700), (1000, 120)])
def test_mean_above_against_binomial_sums(n, r, d):
    """E(X_(r) - d)_+ = r/(n+1) P(Beta(r+1, n-r+1) > d) - d P(Beta(r, n-r+1) > d), the tails as sums in 120 digits."""
    with mp.workdps(120):
        x = mp.mpf(d)

        def beta_above(k, size):
            return mp.fsum(mp.binomial(size, j) * x**j * (1 - x) ** (size - j) for j in range(k))

        over = mp.mpf(r) / (n + 1) * beta_above(r + 1, n + 1) - x * beta_above(r, n)
        under = over - (mp.mpf(r) / (n + 1) - x)
    assert order_statistics.mean_above(d, r, n) == pytest.approx(float(over), rel=1e-9, abs=1e-25)
    assert order_statistics.mean_below(d, r, n) == pytest.approx(float(under), rel=1e-9, abs=1e-25)


def test_order_statistic_means_of_theory_r13():
    assert close(order_statistics.mean_above(0.5, 550, 1000), "0.04945429917517287008467544")
    assert close(order_statistics.mean_below(0.5, 450, 1000), "0.05045252038454364970409837")


def test_slides_of_theory_r13_and_r14():
    assert close(mean_error.printed_closed_form(10**6, HALF, 0.0019), "0.1304382200098245941988852")
    beta = mean_error.slides_beta(10_000)
    point = {"n": 10_000, "steps": 1629, "quantile": HALF, "epsilon": 1.0, "beta": beta}
    for variant, closed, ranks, alpha in (
        (V.CORRECTED_72, "0.2286574167761723185411054", "0.215835940295944471046505", "1073.8343362692908323"),
        (V.CORRECTED_36, "0.1133639746708328455378722", "0.1006474591440596595276569", "497.36712574259346724"),
    ):
        assert close(deciles.histogram_alpha(1629, beta, 1.0, variant), alpha)
        assert close(mean_error.corrected_closed_form(**point, variant=variant), closed)
        assert close(mean_error.corrected_mean_error(**point, variant=variant), ranks)
    epsilon = mean_error.slides_alpha(10**7, 1.0, 0.01) / 990_000.0
    value = mean_error.printed_mean_error(10**7, HALF, epsilon, 0.01, V.ALPHA_REPAIRED)
    assert value == pytest.approx(0.213001, abs=5e-7)


def test_printed_integrals_against_quadrature():
    n, beta, epsilon, i = 100, 0.01, 16.0, 3
    d, alpha = 0.3, 8 * math.log(3 * n * math.sqrt(n)) / epsilon
    r, s = math.ceil(30 + alpha), math.floor(30 - alpha)
    with mp.workdps(30):

        def cdf(x, k):
            return mp.mpf(1) if x >= 1 else mp.betainc(k, n - k + 1, 0, x, regularized=True) if x > 0 else mp.mpf(0)

        first = mp.quad(lambda t: 1 - cdf(d + t, r), mp.linspace(0, d, 9))
        second = mp.quad(lambda t: cdf(d - t, s), mp.linspace(0, d, 9))
        rest = beta + cdf(d - 0.1, s) + 1 - cdf(d + 0.1, r) + 2 * mp.log(n) / (3 * n) + d * beta
        expected = first + second + rest
    assert close(mean_error.printed_mean_error(n, Fraction(i, 10), epsilon, beta), expected, rel=1e-10)


def test_general_law_reduces_to_the_uniform_one_and_matches_quadrature_for_the_normal():
    over = mean_error.excess_over(NORMAL, 0.0, 60, 100, 4.0)
    with mp.workdps(25):
        exact = mp.quad(lambda t: 1 - mp.betainc(60, 41, 0, mp.ncdf(t), regularized=True), [0, 0.1, 0.25, 0.5, 1, 2, 4])
    assert over == pytest.approx(float(exact), rel=1e-9)
    uniform = mean_error.excess_under(UNIFORM, 0.5, 45, 100, 0.0)
    assert uniform == pytest.approx(order_statistics.mean_below(0.5, 45, 100), rel=1e-10)


@pytest.mark.parametrize(("n", "steps", "epsilon", "expected"), [(200, 56, 20.0, 0.030841), (500, 60, 10.0, 0.020688)])
def test_exact_mean_errors_of_theory_r13(n, steps, epsilon, expected):
    setting = HistogramSetting(n=n, steps=steps, quantile=HALF, epsilon=epsilon)
    assert histogram_law(setting).mean_error() == pytest.approx(expected, abs=6e-7)


def test_histogram_laws_of_theory_r6_and_r12():
    fixed = histogram_law_for_data(
        np.arange(0.05, 1.0, 0.1), HistogramSetting(n=10, steps=5, quantile=HALF, epsilon=9.0)
    )
    expected = [
        0.277722675135938,
        0.268541233133752,
        0.221152424562035,
        0.134261689876529,
        0.061513420441121,
        0.036808556850625,
    ]
    assert fixed.probabilities == pytest.approx(expected, rel=1e-10)
    random = histogram_law(HistogramSetting(n=10, steps=4, quantile=HALF, epsilon=9.0))
    expected = [0.317857616179639, 0.302096750190358, 0.218046902223796, 0.111513267506531, 0.050485463899676]
    assert random.probabilities == pytest.approx(expected, rel=1e-7)


# Inverse sensitivity -------------------------------------------------------------------------------------------------


def test_inverse_sensitivity_errors_against_the_exact_law():
    rng = np.random.default_rng(3)
    data = rng.random((7, 11))
    for r, rho in ((1, 0.0), (6, 0.03), (11, 0.4)):
        rows = inverse_sensitivity_errors(data, r, 1.3, rho, 0.45, 0.0, 1.0)
        laws = [quantile_law(row, r, epsilon=1.3, low=0.0, high=1.0, rho=rho) for row in data]
        assert rows == pytest.approx([mean_absolute_error(law, 0.45) for law in laws], rel=1e-11)
    assert inverse_sensitivity_errors(
        np.array([[0.1, 0.25, 0.3, 0.55, 0.8]]), 3, 1.0, 0.0, 0.3, 0.0, 1.0
    ) == pytest.approx([0.2359614985534306], rel=1e-12)


def test_inverse_sensitivity_bound_of_theory_r18():
    assert inverse_sensitivity.mean_error(n=1000, quantile=HALF, epsilon=1 / 9)[0] == pytest.approx(0.2842, abs=5e-5)
    # At rho = 0.004 the bound is 0.04504; the optimum over rho is a little lower.
    assert inverse_sensitivity.mean_error(n=10_000, quantile=HALF, epsilon=1 / 9)[0] == pytest.approx(0.0450, abs=5e-5)
    k, rho = np.arange(1, 51)[:, None], np.geomspace(1e-4, 1.0, 400)
    spread = order_statistics.mean_above(0.3, 14 + k, 50) + order_statistics.mean_below(0.3, 16 - k, 50)
    brute = float(np.min(spread + rho + np.minimum(1.0, np.exp(-0.5 * k) / rho) * 0.7))
    best = inverse_sensitivity.mean_error(n=50, quantile=0.3, epsilon=1.0)[0]
    assert best <= brute + 1e-12
    assert best == pytest.approx(brute, rel=1e-3)


def test_two_point_lower_bound_value():
    assert close(inverse_sensitivity.two_point_lower(1.0, 1, 1.0), "0.26894142136999512")


def test_error_quantile_inverts_the_tail():
    law = quantile_law([0.1, 0.2, 0.35, 0.5, 0.9], 3, epsilon=1.0, low=0.0, high=1.0)
    distance = error_quantile(law, 0.35, 0.75)
    samples = law.sample(200_000, np.random.default_rng(5))
    # Hoeffding: 0.006 has probability below 2 exp(-2 * 2e5 * 3.6e-5) = 1.2e-6 of being exceeded.
    assert np.mean(np.abs(np.asarray(samples) - 0.35) <= distance) == pytest.approx(0.75, abs=0.006)


# Randomised response and noise ---------------------------------------------------------------------------------------


def test_randomised_response_of_theory_r21():
    assert close(randomised_response.epsilon(0.5), "1.098612288668109691395245")
    exact = [Fraction(2, 9), Fraction(1, 18), Fraction(1, 24), Fraction(4, 75)]
    for variant, value in zip(randomised_response.VARIANTS, exact, strict=True):
        assert close(randomised_response.variance(18, 0.5, 0.3, variant), float(value), rel=1e-14)
    law = randomised_response.estimate_law(18, 0.5, 0.3)
    assert law.mean() == pytest.approx(0.3, rel=1e-12)
    assert 1.0 - law.probability(0.0, 1.0) == pytest.approx(0.0954, abs=5e-5)


def test_kary_randomised_response_values():
    assert randomised_response.kary_rates(10, 2.0) == pytest.approx((0.450853060379, 0.061016326625), abs=1e-12)


@pytest.mark.parametrize(
    ("family", "deviation", "absolute"),
    [
        ("DE", 0.286274658999, 0.238300452918),
        ("p1", 0.397635054118, 0.33445399771),
        ("p2", 0.313428424760, 0.261755404212),
    ],
)
def test_bounded_noise_constants(family, deviation, absolute):
    unit = noise.BoundedNoise(family, 1.0)
    assert unit.standard_deviation == pytest.approx(deviation, rel=1e-9)
    assert unit.mean_absolute == pytest.approx(absolute, rel=1e-9)
    assert unit.tail(0.0) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("family", "radius", "delta"), [("DE", 64.0, 9.99979e-6), ("p1", 86.0, 9.97129e-6), ("p2", 61.0, 1.013562e-5)]
)
def test_bounded_noise_delta_of_one_query(family, radius, delta):
    assert noise.BoundedNoise(family, radius).single_query_delta(1.0) == pytest.approx(delta, rel=2e-6)


def test_importance_weighting_values():
    assert close(noise.importance_sensitivity(4, 3, 0.1), "4.330127018922193")


def test_noise_tails():
    with mp.workdps(25):
        assert close(noise.laplace_tail(40.0, 1.5, draws=100), 1 - (1 - mp.exp(-mp.mpf(40) / 1.5)) ** 100)
        assert close(noise.gaussian_tail(9.0, 1.5, draws=100), 1 - (1 - mp.erfc(6 / mp.sqrt(2))) ** 100)
    for tail, inverse in (
        (noise.laplace_tail, noise.laplace_tail_inverse),
        (noise.gaussian_tail, noise.gaussian_tail_inverse),
    ):
        assert close(tail(inverse(1e-7, 3.0, draws=12), 3.0, draws=12), 1e-7, rel=1e-9)


def test_naive_median_of_theory_r24():
    assert noise.naive_median_error(1.0, median=0.5, clipped=True) == pytest.approx(0.39347, abs=5e-6)
    # For small epsilon most outputs are at the ends, and the formula cancels unless it is written with expm1.
    with mp.workdps(40):
        e, m = mp.mpf("1e-9"), mp.mpf("0.25")
        exact = (2 - mp.exp(-e * m) - mp.exp(-e * (1 - m))) / (2 * e)
    assert close(noise.naive_median_error(1e-9, median=0.25, clipped=True), exact)
