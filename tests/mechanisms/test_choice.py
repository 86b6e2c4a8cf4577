"""Exponential mechanism, noisy max, randomised response, RAPPOR: laws, claims, estimators and refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import exact, neighbours
from dpaudit.claims import PureDP, Relation, Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.exact.verification import verify
from mechanisms.exponential import ExponentialMechanism, FilmRecommendation
from mechanisms.noisy_max import ReportNoisyMax
from mechanisms.randomised_response import RandomisedResponse, RangeResponse
from mechanisms.rappor import Rappor


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def pmf(law) -> dict:
    return dict(zip(law.outcomes, np.exp(law.log_probabilities), strict=True))


# --------------------------------------------------------------------------------------------------------- exponential


def at(data, candidate):
    return data[candidate]


def test_film_example():
    # docs/theory.md R20, reference value expmech_film: D = {1, 2}, candidates 1.5, 3, 5, 9, M_u = 10, eps = 1, sign put right
    film = FilmRecommendation(1.0, (1.5, 3.0, 5.0, 9.0), 0.0, 10.0)
    weights = np.exp(-np.array([0.5, 1.0, 3.0, 7.0]) / 20.0)
    assert list(pmf(film.law([1.0, 2.0])).values()) == pytest.approx(weights / weights.sum(), rel=1e-14)
    corrected = [0.2793035378838351842, 0.2724075089626853744, 0.2464845070634037502, 0.2018044460900756912]
    assert weights / weights.sum() == pytest.approx(corrected, rel=1e-14)
    found = verify(film, film.claim, neighbours.substitute(st.floats(0.0, 10.0), max_size=2), examples=60)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND


def test_exponential_mechanism_approaches_its_claim():
    mechanism = ExponentialMechanism(1.0, tuple(range(5)), at, relation=Relation.ANSWERS)
    low, high = np.array([-40.0, 0, 0, 0, 0]), np.array([-39.0, -1, -1, -1, -1])
    assert exact.epsilon(mechanism.law(low), mechanism.law(high)) == pytest.approx(1.0, rel=1e-6)
    found = verify(mechanism, mechanism.claim, neighbours.answers(5, -10, 10), examples=100)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND


def test_monotone_exponential_mechanism():
    mechanism = ExponentialMechanism(1.0, (0, 1, 2), at, relation=Relation.ANSWERS, monotone=True)
    found = verify(mechanism, mechanism.claim, neighbours.answers(3, -30, 30, monotone=True), examples=100)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.largest == pytest.approx(1.0, rel=1e-4)


def test_exponential_candidates_of_any_kind():
    mechanism = ExponentialMechanism(1.0, ("a", None, (1, 2)), lambda data, r: 0.0)
    assert set(mechanism.sample([], 200, rng()).tolist()) == {"a", None, (1, 2)}


# ----------------------------------------------------------------------------------------------------------- noisy max


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
@pytest.mark.parametrize("answers", [[0.0, 1.0], [3.0, 3.0, 1.0], [0.0, -7.5, 2.0, 40.0], [5.0]])
def test_noisy_max_law_against_mpmath(noise, answers):
    mpmath = pytest.importorskip("mpmath")
    scale, count = 2.0, len(answers)

    def cdf(x):
        if noise == "exponential":
            return 1 - mpmath.exp(-x / scale) if x > 0 else mpmath.mpf(0)
        return mpmath.exp(x / scale) / 2 if x < 0 else 1 - mpmath.exp(-x / scale) / 2

    def density(x):
        if noise == "exponential":
            return mpmath.exp(-x / scale) / scale if x > 0 else mpmath.mpf(0)
        return mpmath.exp(-abs(x) / scale) / (2 * scale)

    with mpmath.workdps(30):
        got = pmf(ReportNoisyMax(1.0, noise=noise).law(answers))
        for i in range(count):

            def integrand(x, i=i):
                others = (cdf(x - a) for j, a in enumerate(answers) if j != i)
                return density(x - answers[i]) * mpmath.fprod(others)

            marks = sorted(set(answers))
            points = [marks[0] - 160, marks[0] - 20, *marks, marks[-1] + 20, marks[-1] + 160]
            want = mpmath.quad(integrand, points, maxdegree=8)
            assert got[i] == pytest.approx(float(want), rel=1e-10)


def test_noisy_max_on_the_published_patterns():
    # catalogue rows 5 and 6, nominal 0.1: 0.0946 for Laplace, 0.1 for exponential noise
    pairs = neighbours.answers(5, 0, 2).corners()[:8]
    worst = {}
    for noise in ("laplace", "exponential"):
        mechanism = ReportNoisyMax(0.1, noise=noise)
        worst[noise] = max(exact.epsilon(mechanism.law(a), mechanism.law(b)) for a, b in pairs)
    assert worst["laplace"] == pytest.approx(0.0946, abs=5e-5)
    assert worst["exponential"] == pytest.approx(0.1, abs=5e-6)
    assert worst["exponential"] <= 0.1 * (1 + 1e-12)


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_noisy_max_keeps_its_claim_and_approaches_it(noise):
    mechanism = ReportNoisyMax(1.0, noise=noise)
    found = verify(mechanism, mechanism.claim, neighbours.answers(3, -40, 40), examples=60)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.largest > 0.99


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_monotone_noisy_max_keeps_its_claim_with_half_the_noise(noise):
    mechanism = ReportNoisyMax(1.0, noise=noise, monotone=True)
    found = verify(mechanism, mechanism.claim, neighbours.answers(3, -40, 40, monotone=True), examples=60)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND


# --------------------------------------------------------------------------------------------------- randomised response


def test_probabilities_and_epsilons():
    # mechanisms section 6
    for k, epsilon, p, q in [
        (2, 1.0, 0.731058578630, 0.268941421370),
        (4, 1.0, 0.475366886419, 0.174877704527),
        (10, 2.0, 0.450853060379, 0.061016326625),
    ]:
        channel = RandomisedResponse.k_ary(epsilon, tuple(range(k)))
        assert (channel.truthful, channel.other) == pytest.approx((p, q), rel=1e-11)
        assert channel.epsilon == pytest.approx(epsilon, rel=1e-13)
    assert RandomisedResponse.warner(0.75).epsilon == pytest.approx(1.0986122887, rel=1e-10)
    assert RandomisedResponse.warner(0.25).epsilon == pytest.approx(1.0986122887, rel=1e-10)
    half = RandomisedResponse.keep_or_uniform(0.5, tuple("abcd"))
    assert (half.truthful, half.other, half.epsilon) == pytest.approx((0.625, 0.125, 1.6094379124), rel=1e-10)


def test_randomised_response_epsilon_is_exact():
    channel = RandomisedResponse.k_ary(0.8, ("x", "y", "z"))
    found = verify(channel, channel.claim, neighbours.substitute(st.sampled_from("xyz"), max_size=3), examples=40)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.largest == pytest.approx(0.8, rel=1e-12)


def exact_moments(channel, data, statistic):
    """Mean and covariance of a statistic of the answers, over all answers, by enumeration."""
    k = len(channel.categories)
    mean, second = np.zeros(k), np.zeros((k, k))
    for answers in itertools.product(range(k), repeat=len(data)):
        weight = math.prod(channel.truthful if a == x else channel.other for a, x in zip(answers, data, strict=True))
        value = statistic([channel.categories[a] for a in answers])
        mean += weight * value
        second += weight * np.outer(value, value)
    return mean, second - np.outer(mean, mean)


def test_estimator_is_unbiased_with_the_stated_covariance():
    # mechanisms section 6: k=3, n=4, eps=1, x=(0,0,1,2)
    channel = RandomisedResponse.k_ary(1.0, (0, 1, 2))
    mean, covariance = exact_moments(channel, (0, 0, 1, 2), channel.estimate)
    assert mean == pytest.approx([0.5, 0.25, 0.25], rel=1e-12)
    stated = channel.covariance([0.5, 0.25, 0.25], 4)
    assert stated == pytest.approx(covariance, rel=1e-10)
    assert np.diag(stated) == pytest.approx([0.3875897087, 0.3512161646, 0.3512161646], rel=1e-9)
    assert stated[0, 1] == pytest.approx(-0.1937948544, rel=1e-9)
    assert np.diag(channel.covariance([0.5, 0.25, 0.25], 4, iid=True))[:2] == pytest.approx(
        [0.4500897087, 0.3980911646], rel=1e-9
    )


def test_lecture_notes_example():
    # docs/theory.md R21, reference value rr_var: n=18, a=1/2, p=.3: exact iid 4/75, fixed X 1/24
    channel = RandomisedResponse.keep_or_uniform(0.5)
    assert channel.covariance([0.7, 0.3], 18, iid=True)[1, 1] == pytest.approx(4 / 75, rel=1e-12)
    assert channel.covariance([0.7, 0.3], 18)[1, 1] == pytest.approx(1 / 24, rel=1e-12)
    assert RandomisedResponse.warner(0.75).covariance([0.7, 0.3], 1000, iid=True)[1, 1] == pytest.approx(
        9.6e-4, rel=1e-12
    )
    assert channel.estimate([0] * 9 + [1] * 9) == pytest.approx([0.5, 0.5])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_estimate_sums_to_one_and_projection_lies_in_the_simplex(answers):
    channel = RandomisedResponse.k_ary(0.5, (0, 1, 2, 3))
    assert channel.estimate(answers).sum() == pytest.approx(1.0)
    projected = channel.estimate(answers, project=True)
    assert projected.sum() == pytest.approx(1.0)
    assert (projected >= 0.0).all()


def test_ranges():
    # mechanisms section 6: [0, 10], 5 bins, eps=1, uniform, n=10
    ranges = RangeResponse.of(1.0, (0.0, 2.0, 4.0, 6.0, 8.0, 10.0))
    assert (ranges.response.truthful, ranges.response.other) == pytest.approx(
        (0.404609675192, 0.148847581202), rel=1e-11
    )
    assert ranges.mean_variance([0.2] * 5, 10) == pytest.approx(11.42975140172, rel=1e-11)
    assert ranges.mean_variance([0.2] * 5, 10, iid=True) == pytest.approx(12.22975, rel=1e-6)
    assert ranges.ranges(10.0) == 4
    assert ranges.law(3.0) == ranges.law(2.0)
    assert ranges.sample([1.0, 9.0], 4, rng()).shape == (4, 2)


# -------------------------------------------------------------------------------------------------------------- RAPPOR


def test_rappor_epsilons():
    # catalogue rows 15, 16: 0.05 and 0.1001 a bit; 0.400 and 0.80 for disjoint filters
    assert Rappor().bit_epsilon == pytest.approx(math.log(0.5125 / 0.4875), rel=1e-12)
    assert Rappor().claim == PureDP(8 * Rappor().bit_epsilon, Relation.SUBSTITUTE)
    once = Rappor(f=0.95, instantaneous=False)
    assert once.bit_epsilon == pytest.approx(math.log(0.525 / 0.475), rel=1e-12)
    assert once.claim.epsilon == pytest.approx(0.8006, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_rappor_law_differs_by_the_bits_that_differ(first, second):
    rappor = Rappor()
    differing = int((rappor.bloom(first) != rappor.bloom(second)).sum())
    got = exact.epsilon(rappor.law(first), rappor.law(second))
    assert got == pytest.approx(differing * rappor.bit_epsilon, abs=1e-12)
    assert got <= rappor.claim.epsilon * (1 + 1e-12)


# --------------------------------------------------------------------------------------------------------------- refusals


REFUSED = [
    (lambda: ExponentialMechanism(1.0, (), at), "empty"),
    (lambda: ExponentialMechanism(1.0, (1, 1), at), "differ"),
    (lambda: ExponentialMechanism(0.0, (1,), at), "epsilon=0.0"),
    (lambda: ExponentialMechanism(1.0, (0,), at).sample([math.nan], 1, rng()), "nan"),
    (lambda: FilmRecommendation(1.0, (11.0,), 0.0, 10.0), "outside"),
    (lambda: FilmRecommendation(1.0, (1.0,), 0.0, 10.0).sample([], 1, rng()), "empty"),
    (lambda: ReportNoisyMax(1.0, noise="cauchy"), "noise='cauchy'"),
    (lambda: ReportNoisyMax(1.0).sample([], 1, rng()), "empty"),
    (lambda: ReportNoisyMax(1.0).sample(3.0, 1, rng()), "1 dimension"),
    (lambda: ReportNoisyMax(1.0).sample([1.0, math.inf], 1, rng()), "finite"),
    (lambda: RandomisedResponse.warner(0.5), "independent of the truth"),
    (lambda: RandomisedResponse.warner(1.0), "truthful=1.0"),
    (lambda: RandomisedResponse.keep_or_uniform(0.0), "keep=0.0"),
    (lambda: RandomisedResponse.k_ary(-1.0, (0, 1)), "epsilon=-1.0"),
    (lambda: RandomisedResponse.k_ary(1.0, (0,)), "at least two"),
    (lambda: RandomisedResponse.k_ary(1.0, ("yes", "no")).sample(["yes", "nope"], 1, rng()), "'nope'"),
    (lambda: RandomisedResponse.warner(0.75).sample([], 1, rng()), "empty"),
    (lambda: RandomisedResponse.warner(0.75).sample(np.zeros((2, 2)), 1, rng()), "shape"),
    (lambda: RandomisedResponse.warner(0.75).estimate([2]), "none of the categories"),
    (lambda: RandomisedResponse.warner(0.75).covariance([0.5, 0.6], 3), "sum to 1"),
    (lambda: RangeResponse.of(1.0, (0.0, 1.0)), "at least two|three increasing"),
    (lambda: RangeResponse.of(1.0, (0.0, 2.0, 1.0)), "increasing"),
    (lambda: RangeResponse.of(1.0, (0.0, 1.0, 2.0)).sample(2.5, 1, rng()), "outside"),
    (lambda: RangeResponse.of(1.0, (0.0, 1.0, 2.0)).sample(math.nan, 1, rng()), "nan"),
    (lambda: Rappor(f=1.0), "f=1.0"),
    (lambda: Rappor(p=0.5, q=0.5), "must differ"),
    (lambda: Rappor().sample(1.5, 1, rng()), "whole number or string"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_refused_with_its_name(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()
