"""Membership scores: never above the truth beyond alpha, and useful, against the exact Gaussian mechanism.

Among n independent audits the number of bounds above the truth is at most binomial (n, alpha), so each test of validity
allows its quantile of level 1 - 1e-6: that is its declared false alarm probability.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.sparse import lil_matrix
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PureDP, Relation, Verdict
from dpaudit.claims import gaussian_delta
from dpaudit.engine.membership import audit_scores, one_run_bound, one_run_p_value
from dpaudit.engine.result import Result
from dpaudit.errors import InvalidArgument

ALPHA = 0.1
DECLARED = 1e-6
DELTA = 1e-5


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """The epsilon of N(0, 1) against N(mu, 1) at delta: the zero of the exact profile (Balle and Wang 2018)."""
    return float(brentq(lambda e: float(gaussian_delta(np.array(e), mu)) - delta, 0.0, 60.0, xtol=1e-12))


def allowed(audits: int) -> int:
    return int(binom.isf(DECLARED, audits, ALPHA))


# Many runs.


def gaussian_scores(mu: float, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([7, seed])
    return rng.normal(mu, size=size), rng.normal(size=size)


@pytest.mark.parametrize("claim", [ApproxDP(2.0, 0.05), GaussianDP(1.0)], ids=["approximate", "Gaussian"])
def test_many_runs_stay_below_the_truth(claim):
    # The Gaussian mechanism at mu = 1 is exactly 1-GDP, and (epsilon, 0.05)-DP with the epsilon of its profile.
    truth = gaussian_epsilon(1.0, 0.05) if isinstance(claim, ApproxDP) else 1.0
    audits = 80
    above = sum(
        audit_scores(*gaussian_scores(1.0, 200, seed), claim, alpha=ALPHA).parameter_lower > truth
        for seed in range(audits)
    )
    assert above <= allowed(audits)


def test_the_order_of_the_scores_does_not_matter():
    claim = ApproxDP(1.0, DELTA)
    for seed in range(3):
        inside, outside = gaussian_scores(2.0, 400, seed)
        sorted_too = audit_scores(np.sort(inside), np.sort(outside)[::-1], claim)
        assert sorted_too.trajectory == audit_scores(inside, outside, claim).trajectory
        assert sorted_too.trajectory != audit_scores(inside, outside, claim, seed=1).trajectory


def test_many_runs_have_power():
    # mu = 2: epsilon 10.0 at delta 1e-5, of which 2,000 scores of each side show more than 3 at alpha 1e-3.
    found = [audit_scores(*gaussian_scores(2.0, 2000, seed), ApproxDP(1.0, DELTA), alpha=1e-3) for seed in range(5)]
    assert all(result.verdict is Verdict.VIOLATION for result in found)
    assert np.median([result.epsilon_lower for result in found]) > 3.0
    few = [audit_scores(*gaussian_scores(3.0, 60, seed), PureDP(0.5), alpha=0.01) for seed in range(5)]
    assert sum(result.verdict is Verdict.VIOLATION for result in few) >= 4


def test_the_result_reads_back_and_prints():
    result = audit_scores(*gaussian_scores(1.0, 100, 0), PureDP(5.0, Relation.ADD_REMOVE))
    assert result.verdict is not Verdict.VIOLATION
    assert result.relation is Relation.ADD_REMOVE
    assert Result.from_dict(result.to_dict()).epsilon_lower == result.epsilon_lower
    assert "membership scores" in str(result)


def test_infinite_scores_are_scores():
    rng = np.random.default_rng(0)
    leaking = np.where(rng.random(400) < 0.5, np.inf, rng.normal(size=400))
    assert audit_scores(leaking, rng.normal(size=400), PureDP(1.0)).verdict is Verdict.VIOLATION


@pytest.mark.parametrize(
    ("inside", "outside", "message"),
    [
        ([1.0] * 20, [1.0] * 21, "as many runs"),
        ([1.0, math.nan] * 10, [1.0] * 20, "NaN at position 1"),
        (["a"] * 20, [1.0] * 20, "list of numbers"),
        ([1.0] * 3, [1.0] * 3, "at least 10"),
    ],
    ids=["unequal", "nan", "text", "few"],
)
def test_bad_scores_are_refused(inside, outside, message):
    with pytest.raises(InvalidArgument, match=message):
        audit_scores(inside, outside, PureDP(1.0))


# One run.


def worst_tail(m: int, v: int, epsilon: float, delta: float) -> float:
    """Largest P(N >= v) of any (epsilon, delta)-DP mechanism that guesses m coins, by linear programming.

    Variables: the law of the guesses for each of the 2^m data sets, and the excess of each neighbouring pair at each output.
    """
    words = list(itertools.product((0, 1), repeat=m))
    count = len(words)
    pairs = [(s, s ^ (1 << i)) for s in range(count) for i in range(m)]
    width = count * count + len(pairs) * count
    objective = np.zeros(width)
    for s, t in itertools.product(range(count), repeat=2):
        if sum(a == b for a, b in zip(words[s], words[t], strict=True)) >= v:
            objective[s * count + t] = -1.0 / count
    upper = lil_matrix((len(pairs) * (count + 1), width))
    limit = np.zeros(upper.shape[0])
    for k, (s, other) in enumerate(pairs):
        for t in range(count):
            row, excess = k * count + t, count * count + k * count + t
            upper[row, s * count + t] = 1.0
            upper[row, other * count + t] = -math.exp(epsilon)
            upper[row, excess] = -1.0
            upper[len(pairs) * count + k, excess] = 1.0
        limit[len(pairs) * count + k] = delta
    equal = lil_matrix((count, width))
    for s in range(count):
        equal[s, s * count : (s + 1) * count] = 1.0
    solved = linprog(objective, upper.tocsr(), limit, equal.tocsr(), np.ones(count), method="highs")
    return -float(solved.fun)


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1, 0.4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
@pytest.mark.parametrize(("m", "v"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_no_mechanism_beats_the_one_run_bound(m, v, epsilon, delta):
    worst = worst_tail(m, v, epsilon, delta)
    bound = one_run_p_value(m, m, v, epsilon, delta)
    assert worst <= bound + 1e-7
    if delta == 0.0 or m == 1:  # then it is exact: randomised response, with a leak of mass delta
        assert worst == pytest.approx(bound, abs=1e-7)


@pytest.mark.parametrize(("r", "v", "epsilon"), [(100, 60, 0.5), (1000, 900, 2.0), (500, 500, 4.0)])
def test_without_delta_it_is_the_binomial_tail(r, v, epsilon):
    expected = binom.sf(v - 1, r, 1.0 / (1.0 + math.exp(-epsilon)))
    assert one_run_p_value(r, r, v, epsilon, 0.0) == pytest.approx(expected, rel=2e-9)


def test_the_knapsack_is_solved():
    m, r, v, epsilon, delta = 40, 20, 15, 0.7, 0.01
    q = 1.0 / (1.0 + math.exp(-epsilon))
    mass = binom.pmf(np.arange(v), r, q)
    cost = (v - np.arange(v))[None].astype(float)
    solved = linprog(-np.ones(v), cost, [m * delta * (1.0 - q)], bounds=list(zip(np.zeros(v), mass, strict=True)))
    expected = binom.sf(v - 1, r, q) - float(solved.fun)
    assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(expected, rel=1e-8)


def one_gaussian_run(mu: float, canaries: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal canaries of norm mu in Gaussian noise: flipping one coin is mu-GDP, exactly."""
    rng = np.random.default_rng([11, seed])
    members = rng.random(canaries) < 0.5
    return mu * members + rng.normal(size=canaries), members


@pytest.mark.parametrize("claim", [ApproxDP(1.0, DELTA), GaussianDP(0.5)], ids=["approximate", "Gaussian"])
@pytest.mark.parametrize("guesses", [None, 100])
def test_one_run_stays_below_the_truth(claim, guesses):
    truth = gaussian_epsilon(1.0) if isinstance(claim, ApproxDP) else 1.0
    runs = 40
    above = sum(
        one_run_bound(*one_gaussian_run(1.0, 300, seed), claim, alpha=ALPHA, guesses=guesses).parameter_lower > truth
        for seed in range(runs)
    )
    assert above <= allowed(runs)


def test_one_run_is_valid_where_it_is_tight():
    # Randomised response of 500 coins is exactly 1-DP, and all its guesses are as good as each other.
    runs, above, shown = 300, 0, []
    for seed in range(runs):
        rng = np.random.default_rng([13, seed])
        members = rng.random(500) < 0.5
        honest = rng.random(500) < math.e / (1.0 + math.e)
        # Ties are broken by a coin of their own: half of the guesses are "in" whatever was released.
        scores = np.where(honest, members, ~members) + 0.1 * rng.random(500)
        bound = one_run_bound(scores, members, PureDP(1.0), alpha=ALPHA, guesses=250)
        above += bound.epsilon_lower > 1.0
        shown.append(bound.epsilon_lower)
    assert 0.03 * runs < above <= allowed(runs)  # valid, and not wasteful: alpha is nearly used
    assert np.median(shown) > 0.75


def test_one_run_has_power():
    bounds = [one_run_bound(*one_gaussian_run(2.0, 2000, seed), ApproxDP(1.0, DELTA), alpha=0.05) for seed in range(5)]
    assert all(bound.verdict is Verdict.VIOLATION for bound in bounds)
    assert np.median([bound.epsilon_lower for bound in bounds]) > 2.5  # of 10.0
    gaussian = [one_run_bound(*one_gaussian_run(2.0, 2000, seed), GaussianDP(1.0)) for seed in range(5)]
    assert np.median([bound.parameter_lower for bound in gaussian]) > 0.75  # of 2
    assert "one run" in str(bounds[0])
    assert "mu >=" in str(gaussian[0])


@pytest.mark.parametrize(
    ("members", "guesses", "message"),
    [([1, 0, 2], 2, "True or False"), ([1, 0], 2, "each of the 3"), ([1, 0, 1], 4, "exceed"), ([1, 0, 1], [], "empty")],
    ids=["not a coin", "too short", "too many guesses", "no guesses"],
)
def test_bad_members_are_refused(members, guesses, message):
    with pytest.raises(InvalidArgument, match=message):
        one_run_bound([0.1, 0.2, 0.3], members, PureDP(1.0), guesses=guesses)
