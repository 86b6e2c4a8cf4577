"""Ends of intervals: outside of the truth, close to it, and not moved to infinity by the rounding of numbers in the code."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpaudit import ApproxDP, BoundedRange, MetricDP, PureDP, RenyiDP, Verdict, verify

mpmath.mp.dps = 50


def interval(function, claim, pair):
    found = verify(function, claim, [pair])
    return found.verdict, found.interval


@pytest.mark.parametrize(
    "function",
    [
        lambda data, rng: rng.laplace() + data + 1e15,
        lambda data, rng: round(rng.laplace() + data + 1e9, 2),
        lambda data, rng: abs(rng.laplace() + data + 1e9),
        lambda data, rng: min(max(rng.laplace() + data + 1e10, 1e10 - 5.0), 1e10 + 5.0),
        lambda data, rng: [rng.laplace() + data + 1e15, rng.laplace() - 1e15],
    ],
    ids=["plain", "rounded", "absolute", "clipped", "listed"],
)
def test_a_large_location_does_not_hide_a_small_difference(function):
    """Over the reals: 1e15 + 0.1 as a float is 1e15 + 0.125."""
    truth = float(Fraction(0.3) - Fraction(0.2))
    verdict, (low, high) = interval(function, PureDP(truth), (0.2, 0.3))
    assert low <= truth <= high <= truth * (1.0 + 1e-9)
    assert verdict is Verdict.NO_VIOLATION_FOUND
    assert interval(function, PureDP(0.9 * truth), (0.2, 0.3))[0] is not Verdict.NO_VIOLATION_FOUND


@pytest.mark.parametrize("trials", [201, 20_000, 10**5])
def test_delta_of_binomial_noise_is_inside_its_interval(trials):
    level = 6.0 / trials**0.5
    _, (low, high) = interval(lambda data, rng: data + int(rng.binomial(trials, 0.5)), ApproxDP(level, 0.5), (0, 1))
    # P(X = j - 1) / P(X = j) = j / (trials + 1 - j) passes exp(level) at:
    first = math.floor((trials + 1) / (1.0 + math.exp(-level))) + 1
    above = [tail(trials, j) for j in (first - 1, first)]
    truth = above[0] - mpmath.exp(mpmath.mpf(level)) * above[1]
    assert low <= truth <= high
    assert high - low <= 1e-6 * high


def tail(trials, first):
    """P(X >= first) for a fair binomial law, from its largest terms."""
    term = mpmath.exp(mpmath.loggamma(trials + 1) - mpmath.loggamma(first + 1) - mpmath.loggamma(trials - first + 1))
    term, total = term * mpmath.mpf(0.5) ** trials, mpmath.mpf(0)
    while term > mpmath.mpf("1e-30"):
        total += term
        term *= mpmath.mpf(trials - first) / (first + 1)
        first += 1
    return total


def cumulative(data, rng):
    """The exponential mechanism by hand; its cumulative sum ends at 1 - 2^-52 on one data set and at 1 on the other."""
    shares = np.array(data) / np.sum(data)
    return int(np.searchsorted(np.cumsum(shares), rng.random()))


SHORT = ([1.0] * 14, [1.0] * 12 + [2.0, 2.0])
"""Shares whose floats sum to less than one on the first data set alone."""


def test_a_cumulative_sum_that_ends_below_one_is_no_violation():
    first, second = (np.cumsum(np.array(row) / np.sum(row))[-1] for row in SHORT)
    assert first < 1.0 - 2.0**-52
    assert second == 1.0
    for claim in (PureDP(1.0), BoundedRange(2.0), MetricDP(1.0, lambda a, b: 1.0), RenyiDP(2.0, 1.0)):
        found = verify(cumulative, claim, [SHORT])
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.rare == 1
        assert "only events of probability below 1e-12" in str(found)
    assert found.epsilon[1] == math.inf
    assert verify(cumulative, PureDP(0.5), [SHORT]).verdict is Verdict.VIOLATION  # log(1.75) is the truth without it
    assert verify(cumulative, ApproxDP(0.6, 1e-9), [SHORT]).verified


@pytest.mark.parametrize(("probability", "verdict"), [(1e-3, "VIOLATION"), (1e-9, "VIOLATION"), (2e-12, "VIOLATION")])
def test_a_rare_release_of_the_data_is_a_violation(probability, verdict):
    def sometimes(data, rng):
        return float(data) if rng.random() < probability else data + rng.laplace()

    def chosen(data, rng):
        return data if rng.choice(2, p=[1.0 - probability, probability]) else None

    assert verify(sometimes, PureDP(1.0), [(0, 1)]).verdict.value == verdict
    assert verify(chosen, PureDP(1.0), [(0, 1)]).verdict.value == verdict


def test_an_interval_holds_on_every_pair_of_a_sum_of_money():
    """Rounded to cents, near a million: the cells of the release have ends with an error of 1e-8 of their width."""
    for data, neighbour in ((1_000_000.005, 1_000_000.375), (999_999.99, 1_000_000.49)):
        truth = float(abs(Fraction(data) - Fraction(neighbour)) / 5)
        verdict, (low, high) = interval(
            lambda d, rng: round(d + rng.laplace(scale=5.0), 2), PureDP(0.1), (data, neighbour)
        )
        assert verdict is Verdict.NO_VIOLATION_FOUND
        assert low <= truth <= high < 1.0001 * truth


@pytest.mark.parametrize("level", [1e-4, 5.0])
def test_a_claim_that_is_exactly_reached_is_verified_at_any_level(level):
    laplace, geometric = 1.0 / level, -math.expm1(-level)
    for function in (
        lambda data, rng: data + rng.laplace(scale=laplace),
        lambda data, rng: round(data + rng.laplace(scale=laplace)),
        lambda data, rng: [data + rng.laplace(scale=laplace), 7.0 + rng.laplace()],
        lambda data, rng: data + int(rng.geometric(geometric)) - int(rng.geometric(geometric)),
    ):
        assert verify(function, PureDP(level), [(0, 1)]).verified
        assert verify(function, PureDP(0.99 * level), [(0, 1)]).verdict is Verdict.VIOLATION
