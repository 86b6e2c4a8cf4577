"""Detection of stateful mechanisms, whose answers end or drift."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.engine.encoding.batch import encode
from dpaudit.engine.encoding.feature_table import table_of_blocks
from dpaudit.engine.sampling.independence import OutputMonitor, token_in, token_in_text
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


def test_a_random_seed_in_a_text_is_seen_as_well() -> None:
    def hashed(data: Any, rng: np.random.Generator) -> str:
        return json.dumps({"seed": int(rng.integers(0, 2**32)), "hash": int(rng.integers(0, 4))})

    result = dpaudit.audit(dpaudit.per_release(hashed), dpaudit.PureDP(1.0), [(0, 1)], samples=4_000, seed=0)
    assert result.verdict is dpaudit.Verdict.INCONCLUSIVE
    assert any("looks like a random seed" in message for message in result.messages)
    assert not any("samples would decide" in message for message in result.messages)  # more of them would show no more


@pytest.mark.parametrize("text", ["{0},{1}", "{0}-{1}", "answer {1} with seed {0}"])
def test_a_random_seed_is_seen_in_texts_of_several_numbers(text: str) -> None:
    rng = np.random.default_rng(0)
    texts = [text.format(rng.integers(0, 2**32), rng.integers(0, 4)) for _ in range(500)]
    assert token_in_text(encode(texts).with_features(table_of_blocks([texts])))


def test_noisy_numbers_in_a_text_are_no_random_seeds() -> None:
    rng = np.random.default_rng(0)
    noise = np.round(rng.laplace(scale=1e9, size=(500, 2))).astype(int).tolist()
    texts = list(map(json.dumps, noise))
    assert token_in_text(encode(texts).with_features(table_of_blocks([texts]))) == ""


@pytest.mark.parametrize("seed", [0, 1])
def test_errors_on_most_calls_are_no_error_of_the_audit(seed: int) -> None:
    def mostly_refuses(data: int, rng: np.random.Generator) -> float:
        if rng.random() < 0.98:
            raise ValueError("refused")
        return data + rng.laplace()

    mechanism, claim = dpaudit.per_release(mostly_refuses), dpaudit.PureDP(1.0)
    assert dpaudit.audit(mechanism, claim, [(0, 1)], samples=10_000, seed=seed).samples >= 9_000


def test_errors_on_the_first_pair_do_not_hide_the_others() -> None:
    def of_two(rows: list[int], rng: np.random.Generator) -> float:
        if len(rows) < 2:
            raise ValueError("needs two rows")
        return sum(rows) + rng.laplace()

    pairs = [([], [1]), ([1, 2], [1, 2, 30])]
    found = dpaudit.audit(dpaudit.per_release(of_two), dpaudit.PureDP(1.0), pairs, samples=5_000, seed=0)
    assert found.witness is not None
    assert found.witness.data == "[1, 2]"


def test_noise_and_counts_are_no_random_seeds() -> None:
    rng = np.random.default_rng(0)
    wide = np.stack([rng.normal(scale=1e9, size=500), rng.integers(0, 100, 500)], axis=1)
    assert token_in(encode(wide)) == ""
    assert token_in(encode(np.round(wide))) == ""  # fixed-point numbers do not repeat either, but are not uniform
    assert token_in(encode(np.round(wide[:, 0]))) == ""  # alone, there is nothing that could be computed from it
