"""One run against a whole curve: valid where canaries share one loss magnitude, and equal to the recursion to 40 digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom, norm

from dpaudit import ApproxDP, GaussianDP, PureDP, Verdict, ZeroConcentratedDP, one_run_bound
from dpaudit.claims import gaussian_epsilon
from dpaudit.engine.evidence.one_run_tail import largest_refuted_curve, one_run_tail
from dpaudit.engine.membership import one_run_p_value
from dpaudit.errors import InvalidArgument

ALPHA = 0.1
DECLARED = 1e-6


def shared_magnitude_tail(mu: float, guesses: int, correct: int) -> float:
    """P(N >= correct) where one magnitude of the loss, drawn once, is that of all canaries.

    N(mu/2, 1) against N(-mu/2, 1) is a magnitude |loss|, which says nothing about the side, and then randomised response with
    epsilon = |loss|. Drawing the magnitude once for all canaries, and responding to each coin on its own, is mu-GDP exactly for
    the flip of one coin.
    """

    def given(x: float) -> float:
        density = norm.pdf(x - mu / 2.0) + norm.pdf(x + mu / 2.0)
        return float(density * binom.sf(correct - 1, guesses, 1.0 / (1.0 + math.exp(-mu * x))))

    return quad(given, 0.0, 12.0 + mu, limit=400, epsabs=1e-12)[0]


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("guesses", [8, 60])
def test_canaries_that_share_one_loss_magnitude_stay_below_the_bound(mu, guesses):
    broken = 0
    for correct in range(1, guesses + 1, max(1, guesses // 12)):
        true = shared_magnitude_tail(mu, guesses, correct)
        assert true <= one_run_tail(guesses, guesses, correct, GaussianDP(mu)) + 1e-9
        broken += true > 1.1 * binom.sf(correct - 1, guesses, ndtr(mu / 2.0)) + 1e-9
    assert broken  # the bound for independent canaries is wrong here


def test_bounds_from_runs_with_one_loss_magnitude_are_rarely_above_the_truth():
    mu, runs, above, product_above = 1.0, 60, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([17, seed])
        members = rng.random(200) < 0.5
        magnitude = mu * abs(rng.normal(mu / 2.0))
        honest = rng.random(200) < 1.0 / (1.0 + math.exp(-magnitude))
        scores = np.where(honest, members, ~members) + 0.1 * rng.random(200)
        bound = one_run_bound(scores, members, GaussianDP(mu), alpha=ALPHA, guesses=100)
        above += bound.parameter_lower > mu or bound.epsilon_lower > gaussian_epsilon(mu, bound.delta)  # jointly
        assert (bound.verdict is Verdict.VIOLATION) == (bound.parameter_lower >= mu)
        product_above += binom.sf(bound.correct - 1, bound.guesses, ndtr(mu / 2.0)) <= ALPHA
    assert above <= binom.isf(DECLARED, runs, ALPHA)
    assert product_above > 0.3 * runs


def recursion(m: int, r: int, v: int, mu: float, alpha: float) -> mpmath.mpf:
    """R + H of the theorem, in the precision of mpmath, with the normal quantile as a root."""
    right, wrong = mpmath.mpf(alpha) * v, mpmath.mpf(alpha) * (r - v)
    for j in range(v, 0, -1):
        y = min(right / m, mpmath.mpf(1))
        quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * y - 1)
        more = max(wrong, m * mpmath.ncdf(quantile - mu))
        right += mpmath.mpf(j - 1) / (r - j + 1) * (more - wrong)
        wrong = more
    return right + wrong


@pytest.mark.parametrize(("m", "r", "v", "mu"), [(60, 30, 27, 0.6), (40, 40, 33, 1.0), (100, 12, 12, 0.3)])
def test_the_recursion_to_forty_digits(m, r, v, mu):
    tail = one_run_tail(m, r, v, GaussianDP(mu))
    with mpmath.workdps(40):
        assert recursion(m, r, v, mu, tail) >= r  # the tail is excluded, so it is not too small
        assert recursion(m, r, v, mu, tail * (1.0 - 1e-4)) < r  # and nearly the smallest that is


def test_figures_of_the_paper():
    # 1,000 canaries, 100 guesses, 10 errors, alpha 0.05: jax_privacy's code of the recursion gives the same 0.603.
    by_curve = largest_refuted_curve(1000, 100, 90, GaussianDP(0.5), tail=0.05, largest=50.0)
    assert by_curve == pytest.approx(0.6025, abs=2e-4)
    rng = np.random.default_rng(0)
    members = np.arange(1000) < 500
    scores = np.where(members, 1.0, -1.0) * (1.0 + rng.random(1000))
    wrong = np.concatenate([np.flatnonzero(members)[:5], np.flatnonzero(~members)[:5]])
    order = np.argsort(np.abs(scores))[:-90]
    scores[order] *= 0.01
    scores[wrong] = -5.0 * np.where(members[wrong], 1.0, -1.0)
    shown = {
        method: one_run_bound(scores, members, GaussianDP(0.5), guesses=100, method=method)
        for method in ("points", "both")
    }
    assert {(bound.guesses, bound.correct) for bound in shown.values()} == {(100, 90)}
    assert shown["points"].parameter_lower == pytest.approx(0.571, abs=2e-3)
    assert shown["both"].parameter_lower == pytest.approx(0.6025, abs=2e-4)


@pytest.mark.parametrize(("m", "r", "v"), [(20, 10, 9), (100, 100, 80), (1000, 100, 90), (3, 3, 3), (5, 1, 1)])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 0.01), (2.0, 1e-5)])
def test_one_point_is_never_below_the_exact_bound(m, r, v, epsilon, delta):
    claim = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    exact = one_run_p_value(m, r, v, epsilon, delta)
    assert exact <= one_run_tail(m, r, v, claim) * (1.0 + 1e-8)
    if v == r:
        assert one_run_tail(m, r, v, claim) == pytest.approx(exact, rel=1e-4)


def test_all_right_needs_no_slack_where_a_mechanism_attains_it():
    # One canary, one guess: the largest probability of a right guess is 1 - f at its fixed point.
    assert one_run_tail(1, 1, 1, GaussianDP(1.0)) == pytest.approx(ndtr(0.5), rel=1e-4)


def test_claims_without_a_closed_form_use_their_profile():
    claim = ZeroConcentratedDP(0.125)  # weaker than GaussianDP(0.5)
    assert one_run_tail(100, 50, 45, claim) >= one_run_tail(100, 50, 45, GaussianDP(0.5))
    assert largest_refuted_curve(200, 100, 98, claim, tail=0.05, largest=12.5) > 0.1
    assert one_run_tail(10, 5, 0, claim) == 1.0
    assert largest_refuted_curve(10, 5, 0, claim, tail=0.05, largest=1.0) == 0.0


def test_an_unknown_method_is_refused():
    with pytest.raises(InvalidArgument, match="method='curve' must be one of 'points', 'both'"):
        one_run_bound([1.0, 0.0], [True, False], GaussianDP(1.0), method="curve")
