"""Audits and exact verification of claims that are curves, ranges or metrics; one run against many points by a linear program."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import lil_matrix
from scipy.special import ndtr, ndtri

import dpaudit
from dpaudit import BoundedRange, GaussianDP, MetricDP, ProfileDP, PureDP, TradeOffDP, Verdict, exact, neighbours
from dpaudit.engine.evidence.claim_points import MOST_BETS, curve_points, points_of
from dpaudit.engine.evidence.one_run_tail import one_run_tail
from dpaudit.errors import InvalidArgument
from dpaudit.report.words import claim_in_words
from dpaudit.result.plots import profile
from mechanisms.registry.tight import RoundedLaplace, ShiftedGaussian, tight_mechanisms

TIGHT = {tight.name: tight for tight in tight_mechanisms()[6:]}
GAUSSIAN = TradeOffDP(lambda alpha: ndtr(-ndtri(alpha) - 1.0))


@pytest.mark.parametrize(
    ("claim", "mechanism", "pairs", "name"),
    [
        (ProfileDP.of(GaussianDP(1.0)), ShiftedGaussian(1.6), [(0, 1)], "factor of the curve"),
        (GAUSSIAN, ShiftedGaussian(1.6), [(0, 1)], "factor of the curve"),
        (BoundedRange(1.0), RoundedLaplace(1.0), [(0, 1)], "range"),
        (MetricDP(1.0, "euclidean"), RoundedLaplace(1.5), [(0, 1), (0, 3), (0, 0.25)], "per unit of distance"),
    ],
    ids=["profile", "trade-off", "range", "metric"],
)
def test_a_violation_is_found_and_stated_in_the_terms_of_the_claim(claim, mechanism, pairs, name):
    result = dpaudit.audit(mechanism, claim, pairs, samples=40_000, seed=1)
    assert result.verdict is Verdict.VIOLATION
    assert result.parameter_lower >= claim.parameter
    assert name in str(result)
    again = dpaudit.Result.from_dict(result.to_dict())
    assert again.claim == claim
    drawing = profile(result)
    assert drawing is not None
    assert ("points of the claim" in drawing.picture("p").svg) == isinstance(claim, ProfileDP | TradeOffDP)
    assert "privacy" in claim_in_words(claim) or "data set" in claim_in_words(claim)


def test_each_pair_has_the_epsilon_of_its_distance():
    far = [(0, 3)]
    pure = dpaudit.audit(RoundedLaplace(1.0), PureDP(1.0), far, samples=20_000, seed=2)
    metric = dpaudit.audit(
        RoundedLaplace(1.0), MetricDP(1.0, "euclidean"), far, samples=100_000, seed=2, until="budget"
    )
    assert pure.verdict is Verdict.VIOLATION
    assert metric.verdict is Verdict.NO_VIOLATION_FOUND
    assert 0.9 < metric.epsilon_lower <= 1.0
    assert "m exp(-epsilon distance)" in str(metric)
    assert any("apart, so the claim allows" in note for note in dpaudit.audit(
        RoundedLaplace(3.0), MetricDP(1.0, "euclidean"), far, samples=20_000, seed=2).messages)  # fmt: skip


@pytest.mark.parametrize("name", TIGHT)
def test_the_exact_law_keeps_the_claim_with_equality(name: str) -> None:
    tight = TIGHT[name]
    found = dpaudit.verify(tight.mechanism, tight.claim, tight.pairs)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.largest == pytest.approx(found.allowed, rel=1e-6, abs=1e-9)
    assert dpaudit.verify(tight.mechanism, tight.claim.at(0.98 * tight.claim.parameter), tight.pairs).verdict is (
        Verdict.VIOLATION
    )
    if math.isfinite(tight.epsilon):
        for data, neighbour in tight.pairs:
            laws = tight.mechanism.law(data), tight.mechanism.law(neighbour)
            unit = tight.claim.between(data, neighbour) if isinstance(tight.claim, MetricDP) else 1.0
            delta = 0.0 if isinstance(tight.claim, MetricDP) else 1e-5
            assert max(exact.delta(*laws, tight.epsilon * unit), 0.0) == pytest.approx(delta, rel=1e-6, abs=1e-12)


def laplace(data: int, rng: np.random.Generator) -> float:
    return float(data + rng.laplace())


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (MetricDP(1.0, "euclidean"), Verdict.NO_VIOLATION_FOUND),
        (MetricDP(0.9, "euclidean"), Verdict.VIOLATION),
        (BoundedRange(8.0), Verdict.NO_VIOLATION_FOUND),
        (BoundedRange(7.0), Verdict.VIOLATION),
        (ProfileDP([(4.0, 0.0), (1.0, 0.8)]), Verdict.NO_VIOLATION_FOUND),
        (ProfileDP([(3.0, 0.3), (1.0, 0.7)]), Verdict.VIOLATION),
    ],
    ids=repr,
)
def test_code_is_verified_against_them(claim, verdict):
    # Laplace noise of scale 1 on numbers up to 4 apart: epsilon 4, range 8, delta(1) = 1 - exp(-3/2) = 0.777.
    found = dpaudit.verify(dpaudit.per_release(laplace), claim, [(0, 4), (2, 3)])
    assert found.verdict is verdict


def test_metric_privacy_is_searched_over_pairs_of_all_distances():
    class Flagged:
        """Laplace noise, and a flag whether the number is above 10: private for near pairs below 10 only."""

        def law(self, data: float) -> Any:
            return exact.Product((exact.Laplace(data, 1.0), exact.Discrete({data > 10: 1.0})))

    pairs = neighbours.fixed(itertools.product([0, 5], [2, 9, 20]))
    found = dpaudit.verify(Flagged(), MetricDP(1.0, "euclidean"), pairs)
    assert found.verdict is Verdict.VIOLATION
    assert found.quantity == "epsilon per distance"
    assert 20 in found.witness
    same = dpaudit.verify(RoundedLaplace(1.0), MetricDP(1.0, "euclidean"), [(1.0, 1.0)])
    assert (same.verdict, same.largest) == (Verdict.NO_VIOLATION_FOUND, 0.0)
    assert dpaudit.verify(RoundedLaplace(1.0), MetricDP(1.0, lambda a, b: 0.0), [(1.0, 2.0)]).largest == math.inf


def test_few_points_are_bet_against():
    assert len(points_of(GAUSSIAN)) <= MOST_BETS
    assert set(points_of(GAUSSIAN).epsilon) <= set(GAUSSIAN.levels)
    assert points_of(ProfileDP([(0.5, 0.1), (2.0, 0.0)])).delta.tolist() == [0.1, 0.0]
    assert points_of(BoundedRange(2.0)).delta[-1] == 0.0
    assert points_of(GAUSSIAN.at(2.0)).delta == pytest.approx(2.0 * points_of(GAUSSIAN).delta)
    assert points_of(MetricDP(2.0, "hamming")).stretched(3.0).epsilon.tolist() == [6.0]


def test_metric_privacy_is_refused_where_it_has_no_meaning():
    claim = MetricDP(1.0, "euclidean")
    with pytest.raises(InvalidArgument, match="which scores do not have"):
        dpaudit.audit_scores(np.zeros(20), np.zeros(20), claim)
    with pytest.raises(InvalidArgument, match="which scores do not have"):
        dpaudit.one_run_bound(np.zeros(20), np.zeros(20, bool), claim)
    with pytest.raises(InvalidArgument, match="cannot be used with channel='timing'"):
        dpaudit.audit(laplace, claim, neighbours.substitute(st.booleans()), channel="timing")


def worst_tail(m: int, r: int, v: int, points: list[tuple[float, float]]) -> float:
    """Largest P(N >= v) of any mechanism that keeps all points and guesses r of m coins, by linear programming."""
    coins = list(itertools.product((0, 1), repeat=m))
    guesses = [word for word in itertools.product((0, 1, None), repeat=m) if word.count(None) == m - r]
    count, width = len(coins), len(guesses)
    limits = [(s, s ^ (1 << i), *point) for s in range(count) for i in range(m) for point in points]
    variables = (count + len(limits)) * width
    objective = np.zeros(variables)
    for (s, coin), (t, guess) in itertools.product(enumerate(coins), enumerate(guesses)):
        if sum(a == b for a, b in zip(coin, guess, strict=True)) >= v:
            objective[s * width + t] = -1.0 / count
    upper = lil_matrix((len(limits) * (width + 1), variables))
    limit = np.zeros(upper.shape[0])
    for k, (s, other, epsilon, delta) in enumerate(limits):
        for t in range(width):
            row, excess = k * width + t, (count + k) * width + t
            upper[row, s * width + t], upper[row, other * width + t] = 1.0, -math.exp(epsilon)
            upper[row, excess] = -1.0
            upper[len(limits) * width + k, excess] = 1.0
        limit[len(limits) * width + k] = delta
    equal = lil_matrix((count, variables))
    for s in range(count):
        equal[s, s * width : (s + 1) * width] = 1.0
    return -float(linprog(objective, upper.tocsr(), limit, equal.tocsr(), np.ones(count), method="highs").fun)


@pytest.mark.parametrize(
    "claim", [ProfileDP.of(GaussianDP(1.0), epsilons=[0, 0.5, 1, 2]), ProfileDP([(0.2, 0.2), (1.5, 0.0)])]
)
@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2), (3, 3, 3)])
def test_no_mechanism_beats_the_one_run_bound_by_a_curve(claim, m, r, v):
    points = list(zip(curve_points(claim).epsilon, curve_points(claim).delta, strict=True))
    best, bound = worst_tail(m, r, v, points), one_run_tail(m, r, v, claim)
    assert best <= bound * (1.0 + 1e-8)
    if m == 1:
        assert bound == pytest.approx(best, rel=1e-4)
