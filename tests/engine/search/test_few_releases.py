"""Few releases: how many outputs it takes to find a leak, on the pair given and on one of many. Seeds are fixed."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.random import Generator

import dpaudit
from dpaudit import Claim, PureDP, Verdict, neighbours
from dpaudit.mechanism.code_constants import code_constants
from mechanisms.broken.gaussian import HalvedVariance

PAIR = [([0.0], [1.0])]


def samples_to_detect(release: Callable[..., Any], claim: Claim, where: Any, budget: int, seeds: int) -> float:
    results = [
        dpaudit.audit(dpaudit.per_release(release), claim, where, samples=budget, alpha=1e-6, seed=seed, shrink=False)
        for seed in range(seeds)
    ]
    return statistics.median(
        result.samples if result.verdict is Verdict.VIOLATION else 10 * budget for result in results
    )


def test_disjoint_outputs_take_less_than_100_outputs() -> None:
    """The fewest that any test needs are 44."""
    assert samples_to_detect(lambda data, rng: 5.0 * data[0] + rng.random(), PureDP(1.0), PAIR, 10_000, 5) <= 100


def test_half_the_scale_takes_less_than_620_outputs() -> None:
    """The fewest that any test needs are 310."""
    assert samples_to_detect(lambda data, rng: data[0] + rng.laplace(scale=0.5), PureDP(1.0), PAIR, 10_000, 9) <= 620


def test_half_the_variance_takes_less_than_14_000_outputs() -> None:
    """The fewest that any test needs are 6,411; the median of more seeds is below 10,000."""
    halved = HalvedVariance(1.0, 1e-2)
    scale = halved.scale

    def release(data: Any, rng: Generator) -> float:
        return float(data[0] + scale * rng.normal())

    assert samples_to_detect(release, halved.claim, PAIR, 40_000, 5) <= 14_000


def test_one_pair_of_a_pool_takes_less_than_600_outputs() -> None:
    pool = [([10.0 * k], [10.0 * k + 1.0]) for k in range(31, -1, -1)]
    found = samples_to_detect(lambda data, rng: 5.0 * (data[0] == 1.0) + rng.random(), PureDP(1.0), pool, 40_000, 3)
    assert found <= 600


@pytest.mark.parametrize(
    ("leaks", "rows"),
    [
        (lambda data: any(400 <= row <= 420 for row in data), st.integers(0, 1000)),
        (lambda data: any(row == 100 for row in data), st.integers(0, 1000)),
        (lambda data: 65 in data, st.integers(0, 110)),
        (lambda data: "c137" in data, st.sampled_from([f"c{number}" for number in range(200)])),
        (lambda data: "admin" in data, st.text()),
        (lambda data: len(set(data)) < len(data), st.integers(0, 1000)),
    ],
    ids=["range", "edge", "age", "category", "text", "equal rows"],
)
def test_leaks_on_few_pairs_are_found(leaks: Callable[[Any], bool], rows: Any) -> None:
    def release(data: Any, size: int, rng: Generator) -> Any:
        return len(data) + 50 * leaks(data) + rng.laplace(size=size)

    result = dpaudit.audit(
        dpaudit.batched(release), PureDP(1.0), neighbours.add_remove(rows), alpha=1e-6, seed=1, shrink=False
    )
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None
    assert result.samples < 100_000


def test_a_witness_of_a_slow_mechanism_costs_less_than_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpaudit.engine import conclude

    monkeypatch.setattr(conclude, "SHRINK", conclude.SHRINK.__class__(slow=-1.0))  # every mechanism counts as slow
    mechanism = dpaudit.per_release(lambda data, rng: len(data) + rng.laplace(scale=0.5))
    result = dpaudit.audit(mechanism, PureDP(1.0), neighbours.add_remove(st.integers(0, 9)), alpha=1e-6, seed=0)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None
    assert result.samples_after <= 0.5 * result.samples + 200


def test_constants_of_nested_and_named_functions_are_read() -> None:
    found = code_constants(dpaudit.per_release(outer))
    assert {65, 64, 66, "admin", 0.25} <= set(found)
    assert True not in {type(value) is bool for value in found}


def outer(data: Any, rng: Generator) -> float:
    return float(inner(data) + rng.laplace())


def inner(data: Any) -> float:
    return 0.25 * sum(row == 65 for row in data) + ("admin" in data)


def test_a_sweep_draws_constants_where_the_strategy_allows_them() -> None:
    close = neighbours.add_remove(st.integers(0, 10**6), max_size=3)
    pairs = list(close.sweep(400, seed=0, constants=(123_456, -5)))
    rows = {row for pair in pairs for data in pair for row in data}
    assert 123_456 in rows
    assert min(rows) >= 0
    assert list(neighbours.fixed([([], [1])]).sweep(10)) == []


def test_a_sweep_of_data_that_are_mapped_or_arrays_of_answers() -> None:
    mapped = neighbours.add_remove(st.integers(0, 9), max_size=2).map_data(np.array)
    assert all(isinstance(data, np.ndarray) for pair in mapped.sweep(20) for data in pair)
    assert len(list(neighbours.answers(2, 0, 10).sweep(20))) > 5
