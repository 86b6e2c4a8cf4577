"""The promise of ``detectable_epsilon``: nine audits of ten find a leak at exactly that epsilon; three of four are asked for.

Over words, integers, numbers and vectors, and with the leak on one of 1 to 50 pairs. ``python -m benchmarks promises`` counts
more audits of each. Seeds are fixed; with a chance of 0.95, at which the calibration aims, one count in a hundred would fall
short on other seeds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpaudit
from benchmarks.promises import NOTHING_PROMISED, Promise
from dpaudit import PureDP, Verdict
from dpaudit.engine.conclude import Conclusion
from dpaudit.engine.search.detectable import Extent, SearchCost, detectable_epsilon, search_cost
from dpaudit.engine.views.learner import Learner


@pytest.fixture(autouse=True)
def _no_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conclusion, "_witness", lambda *_: (None, {}))  # of no interest here


def found(promise: Promise, epsilon: float, audits: int) -> int:
    """The number of audits that find a leak of ``epsilon``."""
    return sum(promise.audit(epsilon, seed).verdict is Verdict.VIOLATION for seed in range(1, 1 + audits))


@pytest.mark.parametrize(
    "promise",
    [
        Promise("words", 10, samples=10_000),
        Promise("words", 100, samples=20_000),
        Promise("words", 1000),
        Promise("words by frequency", 3000),
        Promise("integers", 30, samples=20_000),
        Promise("integers", 1000, samples=20_000),
        Promise("numbers", mass=0.5, samples=6_000),
        Promise("numbers", samples=6_000),
        Promise("numbers", mass=0.01, claimed=0.2),
        Promise("vectors", 10, samples=20_000),
        *(Promise("words", 10, pairs) for pairs in (5, 20, 50)),
        Promise("integers", 1000, 5, samples=20_000),
        *(Promise("numbers", pairs=pairs) for pairs in (5, 20, 50)),
        Promise("numbers", pairs=20, tight=True),
        Promise("vectors", 10, 5),
        Promise("words", 10, 20, until="budget"),
    ],
    ids=str,
)
def test_promised_leaks_are_detected(promise: Promise) -> None:
    epsilon = promise.promised()
    assert promise.claimed < epsilon < math.inf
    first = found(promise, epsilon, 3)
    assert first >= 2
    assert first == 3 or promise.audit(epsilon, 4).verdict is Verdict.VIOLATION


@pytest.mark.parametrize("promise", NOTHING_PROMISED, ids=str)
def test_nothing_is_promised_about_words_that_have_no_cell(promise: Promise) -> None:
    """3,000 words, equally frequent, of which 1,024 have a cell: those that leak are rarer and have none."""
    result = promise.audit(0.0, 0)
    assert result.detectable[promise.mass] == math.inf
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("of the outputs could be looked at" in message for message in result.messages)


def test_promises_are_not_too_cautious() -> None:
    """Half way from the claim to what is promised, an event is found in few audits; seeds are fixed."""
    for promise in (Promise("words", 2, samples=20_000), Promise("words", 1000)):
        audits = 9 if promise.samples < 100_000 else 3
        assert found(promise, 0.5 * (promise.claimed + promise.promised()), audits) <= audits // 3


def test_more_pairs_and_more_words_promise_less() -> None:
    def promised(pairs: int = 1, values: int = 0) -> float:
        cost = SearchCost(3, 20.0, math.inf, values=values)
        extent = Extent(per_side=50_000, log_threshold=13.8, log_share=-0.7, samples=100_000, cost=cost, pairs=pairs)
        return detectable_epsilon(PureDP(1.0), extent)[0.1]

    by_pairs = [promised(pairs=pairs) for pairs in (1, 2, 5, 20, 50, 1000)]
    assert by_pairs == sorted(by_pairs)
    by_values = [promised(values=values) for values in (0, 10, 100, 1000, 1_000_000)]
    assert by_values == sorted(by_values)
    assert by_pairs[-1] == by_values[-1] == math.inf


def test_rare_words_beside_frequent_ones_cost_nothing() -> None:
    """20 words that make up 99 % of the outputs: a thousand rare ones do not count, and a table that is full leaves them out."""

    class Counted(Learner):
        views = ()

        def past_counts(self) -> list[tuple[Any, bool]]:
            return [(np.tile(np.array([*[5000] * 20, *[1] * 1100, 300]), (2, 1)), False)]

    cost = search_cost(Counted(lambda _: []))
    assert cost.values <= 20
    assert 0.98 < cost.covered < 1.0


@pytest.mark.parametrize(
    ("samples", "verdict", "reason"),
    [
        (
            20_000,
            Verdict.INCONCLUSIVE,
            "Too few samples for the 40 given pairs",
        ),  # nothing would be caught on one of them
        (60_000, Verdict.NO_VIOLATION_FOUND, "on one of the 40 pairs"),
    ],
)
def test_the_verdict_asks_for_power_on_the_pair_sampled_most_and_for_some_on_any(
    samples: int, verdict: Verdict, reason: str
) -> None:
    pairs = [((number, 0), (number, 1)) for number in range(40)]
    mechanism = dpaudit.batched(lambda data, size, rng: rng.integers(0, 10, size))
    result = dpaudit.audit(mechanism, PureDP(1.0), pairs, pairs=40, samples=samples, seed=0)
    assert result.verdict is verdict
    assert result.detectable_epsilon > 2.0
    assert math.isfinite(result.detectable_epsilon) is (verdict is Verdict.NO_VIOLATION_FOUND)
    assert reason in " ".join(str(result).split())
    if verdict is Verdict.INCONCLUSIVE:
        assert result.samples_needed is not None
        assert samples < result.samples_needed < 60_000
