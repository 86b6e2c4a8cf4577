"""Releases that depend on earlier ones are found before an accusation, and independent ones are not suspected."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dpaudit
from dpaudit import PureDP, Verdict
from dpaudit.engine.encoding.batch import Encoded, encode
from dpaudit.engine.sampling.serial_dependence import ERROR_PROBABILITY, Timeline, dependence

Generator = np.random.Generator


def timeline_of(first: Any, second: Any, block: int = 20) -> Timeline:
    timeline = Timeline()
    size = len(first)
    timeline.add([block] * math.ceil(size / block), size, (encode(first), encode(second)))
    return timeline


def above_zero(batch: Encoded) -> Any:
    return batch.values[:, 0] > 0.0


def found(first: Any, second: Any) -> str | None:
    return dependence(timeline_of(first, second), above_zero, np.random.default_rng(1))


def test_a_timeline_is_in_the_order_of_the_calls() -> None:
    timeline = timeline_of(np.arange(5.0), np.arange(5.0), block=2)
    assert timeline.side_of().tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 0, 1]
    timeline.add([2, 2], 3, (encode(np.arange(3.0)), encode(np.arange(3.0))))
    assert timeline.side_of().tolist()[10:] == [0, 0, 1, 1, 0, 1]
    timeline.add([2], 2, (encode(np.arange(1.0)), encode(np.arange(1.0))))  # one of two was kept: not in the sequence
    assert timeline.size == 8
    order = timeline.side_of().tolist()
    sides = timeline.sides()
    assert [side.values[:, 0].tolist() for side in sides] == [[0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 2.0]] * 2
    assert timeline.side_of().tolist() == order
    # Releases may be large: they are held once.
    assert all(again.numbers is side.numbers for again, side in zip(timeline.sides(), sides, strict=True))


def test_a_timeline_knows_which_side_was_drawn_first() -> None:
    timeline = Timeline()
    sides = encode(np.arange(5.0)), encode(np.arange(5.0))
    timeline.add([2, 2, 2], 5, sides, [1, 0, 1])
    timeline.add([1], 1, (sides[0].first(1), sides[1].first(1)), [1])
    expected = [1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0]
    assert timeline.side_of().tolist() == expected
    timeline.sides()  # joins the rounds
    assert timeline.side_of().tolist() == expected


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["signs", "noisy parity", "parity"])
def test_what_alternates_from_call_to_call_is_not_accused(kind: str, seed: int) -> None:
    """Calls on D and D' that took turns would make it look as if the mechanism knew its data."""
    calls = itertools.count()

    def alternating(data: int, rng: np.random.Generator) -> float:
        odd = next(calls) % 2
        if kind == "signs":
            return (-1 + 2 * odd) * abs(rng.laplace())
        return float(odd if kind == "parity" or rng.random() < 0.9 else rng.integers(2))

    try:
        result = dpaudit.audit(
            dpaudit.per_release(alternating), dpaudit.PureDP(1.0), [(0, 1)], samples=4_000, seed=seed
        )
    except dpaudit.MechanismError:
        return  # the parity alone is seen to have nothing to do with the seed
    assert result.verdict is not dpaudit.Verdict.VIOLATION


def test_independent_releases_are_suspected_as_rarely_as_stated() -> None:
    """The number of suspicions among 150 is compared with its quantile of level 1 - 1e-6."""
    rng = np.random.default_rng(7)
    kinds: list[Callable[[], Any]] = [
        lambda: rng.laplace(size=60),
        lambda: rng.integers(3, size=60).astype(float),
        lambda: (rng.random(60) < 0.03).astype(float),
    ]
    suspected = sum(found(kinds[i % 3](), kinds[i % 3]()) is not None for i in range(150))
    assert suspected <= binom.ppf(1.0 - 1e-6, 150, ERROR_PROBABILITY)


def repeated(noise: Any, times: int) -> Any:
    return np.repeat(noise, times)


@pytest.mark.parametrize(
    ("make", "meaning"),
    [
        (lambda rng: repeated(rng.laplace(size=20), 10), "equals the one before"),
        (lambda rng: np.cumsum(rng.normal(size=200)) / 5.0, "depends on earlier"),
        (lambda rng: np.sin(np.arange(200) / 3.0) + rng.normal(scale=0.1, size=200), "depends on earlier"),
    ],
    ids=["cached", "random walk", "periodic"],
)
def test_dependence_is_found(make: Callable[[Generator], Any], meaning: str) -> None:
    rng = np.random.default_rng(3)
    assert meaning in (found(make(rng), make(rng)) or "")


def test_a_pool_of_noise_shows_at_the_lag_of_its_length() -> None:
    pool = np.random.default_rng(4).laplace(size=130)
    noise = np.tile(pool, 5)[:600].reshape(-1, 2, 20)  # drawn in turns: blocks of 20 on each data set
    assert found(noise[:, 0].ravel(), 0.1 + noise[:, 1].ravel()) is not None


class Cached:
    """Laplace noise with its full scale that is kept for some calls on the same data."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.kept: dict[int, tuple[float, int]] = {}

    def __call__(self, data: list[int], rng: Generator) -> float:
        value, left = self.kept.get(len(data), (0.0, 0))
        if not left:
            value, left = len(data) + rng.laplace(), self.calls
        self.kept[len(data)] = (value, left - 1)
        return value


class Autocorrelated:
    """Noise with the law of Laplace noise, each value correlated with the one before."""

    def __init__(self) -> None:
        self.normal = 0.0

    def __call__(self, data: list[int], rng: Generator) -> float:
        self.normal = 0.9 * self.normal + math.sqrt(1.0 - 0.81) * rng.normal()
        uniform = 0.5 * math.erfc(-self.normal / math.sqrt(2.0)) - 0.5
        return len(data) - math.copysign(math.log(max(1.0 - 2.0 * abs(uniform), 1e-300)), uniform)


class Pooled:
    """Noise values that were drawn beforehand and are used in turn."""

    def __init__(self, size: int) -> None:
        self.pool = np.random.default_rng(size).laplace(size=size)
        self.place = 0

    def __call__(self, data: list[int], rng: Generator) -> float:
        self.place = (self.place + 1) % self.pool.size
        return len(data) + float(self.pool[self.place])


@pytest.mark.parametrize(
    "make",
    [lambda: Cached(20), lambda: Cached(200), lambda: Cached(5000), Autocorrelated, lambda: Pooled(1000)],
    ids=["cached 20", "cached 200", "cached 5000", "autocorrelated", "pooled"],
)
@pytest.mark.parametrize("batched", [False, True])
def test_mechanisms_that_remember_are_not_accused(make: Callable[[], Any], batched: bool) -> None:
    for seed in range(2):
        release = make()

        def many(data: list[int], size: int, rng: Generator, release: Any = release) -> Any:
            return np.array([release(data, rng) for _ in range(size)])

        mechanism = dpaudit.batched(many) if batched else dpaudit.per_release(release)
        result = dpaudit.audit(mechanism, PureDP(1.0), [([], [1])], samples=20_000, seed=seed, shrink=False)
        assert result.verdict is not Verdict.VIOLATION, result


def test_values_that_repeat_by_chance_are_no_dependence() -> None:
    """Noise of one of 1000 seeds is drawn independently, and an observer who tries all seeds knows it.

    Each audit ends INCONCLUSIVE with probability 0.002, so four of twelve do with probability below 1e-8.
    """
    table = np.array([np.random.default_rng(seed).laplace() for seed in range(1000)])
    mechanism = dpaudit.per_release(lambda data, rng: len(data) + float(table[rng.integers(1000)]))
    verdicts = [
        dpaudit.audit(mechanism, PureDP(1.0), [([], [1])], samples=8000, seed=seed, shrink=False).verdict
        for seed in range(12)
    ]
    assert verdicts.count(Verdict.VIOLATION) > 12 - 4


def test_releases_seeded_by_the_second_are_not_accused() -> None:
    mechanism = dpaudit.per_release(lambda data, rng: len(data) + np.random.default_rng(int(time.time())).laplace())
    time.sleep(1.0 - time.time() % 1.0)  # so that the second does not end during the audit
    result = dpaudit.audit(mechanism, PureDP(1.0), [([], [1])], samples=2000, seed=0, shrink=False)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("not independent" in message for message in result.messages)


def test_a_constant_answer_that_depends_on_the_data_is_a_violation() -> None:
    result = dpaudit.audit(len, PureDP(1.0), [([], [1])], samples=2000, seed=0)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None


def test_dependent_releases_give_no_bound() -> None:
    mechanism = dpaudit.per_release(Cached(200))
    result = dpaudit.audit(mechanism, PureDP(1.0), [([], [1])], samples=20_000, seed=0, shrink=False)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.epsilon_lower == 0.0
    assert any("dpaudit.fresh" in message for message in result.messages)
