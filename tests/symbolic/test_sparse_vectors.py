"""Sparse vectors: paths of one shared draw against many, with proved errors, against closed forms and mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP, Verdict
from dpaudit.symbolic import Limits, law_of
from dpaudit.symbolic.laws import shared_draw
from mechanisms.sparse_vector import svt1


def sparse_vector(answers: Any, rng: np.random.Generator, hits: int = 1) -> list[bool]:
    threshold = 1.0 + rng.laplace(scale=2.0)
    above: list[bool] = []
    for answer in answers:
        above.append(bool(answer + rng.laplace(scale=4.0 * hits) > threshold))
        if sum(above) == hits:
            break
    return above


def two_hits(answers: Any, rng: np.random.Generator) -> list[bool]:
    return sparse_vector(answers, rng, hits=2)


def never_stops(answers: Any, rng: np.random.Generator) -> list[bool]:
    return sparse_vector(answers, rng, hits=len(answers) + 1)


@pytest.mark.parametrize(("function", "hits", "queries"), [(sparse_vector, 1, 24), (two_hits, 2, 9)])
def test_a_sparse_vector_has_the_declared_law(function: Any, hits: int, queries: int) -> None:
    answers = np.resize([0.0, 1.5, 0.5, -1.0], queries)
    declared = svt1(epsilon=1.0, threshold=1.0, hits=hits).law(answers)
    found = law_of(function, answers)
    outcomes = found.outcomes()
    assert outcomes is not None
    padded = [(*map(int, outcome), *[-1] * (queries - len(outcome))) for outcome in outcomes]
    assert found.rest == 0.0
    assert found.extraction.error < 5e-12
    assert np.log(list(outcomes.values())) == pytest.approx(declared.log_prob(padded), abs=1e-10)


def test_forty_queries_are_verified() -> None:
    data, neighbour = np.resize([0.0, 1.0, 2.0], 40), np.resize([1.0, 0.0, 3.0], 40)
    found = dpaudit.verify(sparse_vector, PureDP(1.0), [(data, neighbour)])
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    expected = dpaudit.exact.epsilon(*(svt1(epsilon=1.0, threshold=1.0).law(answers) for answers in (data, neighbour)))
    assert found.epsilon == pytest.approx((expected, expected), rel=1e-9)


def test_what_is_not_followed_is_what_the_paths_leave_of_one() -> None:
    answers = np.resize([0.0, 1.0], 12)
    part = law_of(never_stops, answers, limits=Limits(paths=40))
    known = sum(leaf.weight for leaf in part.extraction.leaves)
    assert part.rest == pytest.approx(1.0 - known, abs=1e-10)
    assert part.rest >= 1.0 - known


def exact_integral(factors: list[shared_draw.Factor]) -> Any:
    def below(u: Any) -> Any:
        return mpmath.exp(u) / 2 if u < 0 else 1 - mpmath.exp(-u) / 2

    def density(x: Any) -> Any:
        value = mpmath.exp(-abs(x)) / 2
        for slope, shift, above in factors:
            u = mpmath.mpf(slope) * x + mpmath.mpf(shift)
            value *= below(-u) if above else below(u)
        return value

    kinks = sorted({0.0, *(-shift / slope for slope, shift, _ in factors)})
    points = [kinks[0] - 60, *np.arange(kinks[0] - 12, kinks[-1] + 12, 2.0).tolist(), *kinks, kinks[-1] + 60]
    return mpmath.quad(density, sorted(points))


@pytest.mark.parametrize("seed", range(3))
def test_the_error_of_an_integral_is_within_its_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors = [
        (float(rng.choice([0.25, 0.5, 1.0, -0.5])), float(rng.normal(scale=3.0)), bool(rng.random() < 0.5))
        for _ in range(2 + 2 * seed)
    ]
    with mpmath.workdps(22):
        value, error = shared_draw.log_integral(factors) or (0.0, 0.0)
        truth = exact_integral(factors)
        assert 0.0 < error < 1e-11
        assert abs(mpmath.exp(mpmath.mpf(value)) / truth - 1) <= error


def test_slopes_that_differ_too_much_are_left_to_adaptive_integration() -> None:
    assert shared_draw.log_integral([(1e6, 0.0, True), (1.0, 0.0, False)]) is None


def test_two_outputs_that_are_not_a_number_are_one_outcome() -> None:
    def function(data: float, rng: np.random.Generator) -> list[float]:
        return [data + rng.laplace(), float("nan")]

    found = dpaudit.verify(function, dpaudit.ApproxDP(1.0, 1e-6), [(0.0, 1.0)])
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.epsilon == pytest.approx((1.0, 1.0))
