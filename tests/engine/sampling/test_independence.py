"""Detection of stateful mechanisms, whose answers end or drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.engine.encoding.batch import encode
from dpaudit.engine.sampling.independence import OutputMonitor, token_in
from dpaudit.mechanism import Raised

SPENT = Raised("RuntimeError", "privacy budget exhausted")


def watched(calls: int, rounds: list[int]) -> OutputMonitor:
    """An accountant that answers ``calls`` times, seen in rounds of so many releases on each side."""
    watch, left = OutputMonitor(), calls
    for size in rounds:
        answers = min(left, 2 * size)
        left -= answers
        outputs = [1.5] * answers + [SPENT] * (2 * size - answers)
        watch.see(0, (encode(outputs[:size]), encode(outputs[size:])))
    return watch


@pytest.mark.parametrize("calls", [60, 200, 260, 300, 420])
def test_answers_that_end_in_the_middle_of_any_round_are_noticed(calls: int) -> None:
    rounds = [100, 50, 50, 60, 72]
    assert not watched(calls, rounds[:1]).exhausted
    assert watched(calls, [*rounds, 400, 800]).exhausted


def test_rare_answers_are_no_end() -> None:
    rng = np.random.default_rng(0)
    watch = OutputMonitor()
    for size in [100, 50, 60, 70, 100, 200, 400, 800, 1600]:
        sides = [[1.5 if rng.random() < 0.005 else SPENT for _ in range(size)] for _ in range(2)]
        watch.see(0, (encode(sides[0]), encode(sides[1])))
    assert not watch.exhausted


def test_numbers_in_messages_are_named_as_a_blind_spot() -> None:
    def leak(data: int, rng: np.random.Generator) -> int:
        if rng.random() < 0.5:
            raise ValueError(f"true sum is {data}")
        return 0

    result = dpaudit.audit(dpaudit.per_release(leak), dpaudit.PureDP(1.0), [(17, 18)], samples=6_000, seed=0)
    assert any("true sum is #" in message and "not audited" in message for message in result.messages)


def test_nothing_found_beside_a_random_seed_is_inconclusive_without_a_suspect() -> None:
    """Local hashing releases (seed, hash of the value): no event of the two numbers shows what they give away together."""

    def hashed(data: Any, size: int, rng: np.random.Generator) -> Any:
        return np.stack([rng.integers(0, 2**32, size), rng.integers(0, 4, size)], axis=1)

    def audit(**options: Any) -> dpaudit.Result:
        pair = [([0], [1])]
        return dpaudit.audit(dpaudit.batched(hashed), dpaudit.PureDP(1.0), pair, samples=40_000, seed=0, **options)

    result = audit()
    assert result.verdict is dpaudit.Verdict.INCONCLUSIVE
    assert any("looks like a random seed" in message for message in result.messages)
    assert audit(suspect=lambda output: int(output[0]) % 4 == output[1]).verdict is dpaudit.Verdict.NO_VIOLATION_FOUND


def test_noise_and_counts_are_no_random_seeds() -> None:
    rng = np.random.default_rng(0)
    wide = np.stack([rng.normal(scale=1e9, size=500), rng.integers(0, 100, 500)], axis=1)
    assert token_in(encode(wide)) == ""
    assert token_in(encode(np.round(wide))) == ""  # fixed-point numbers do not repeat either, but are not uniform
    assert token_in(encode(np.round(wide[:, 0]))) == ""  # alone, there is nothing that could be computed from it
