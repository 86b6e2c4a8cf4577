"""Calls that go wrong only on the smaller pairs to which a witness is shrunk: the witness is kept, and is true."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import PureDP, Result, Verdict, neighbours
from dpaudit.engine.sampling.seeds import SeedKey
from dpaudit.engine.witness import shrink
from dpaudit.neighbours import Pair
from dpaudit.result.model import Witness

LARGE = Pair([0, 0, 0], [0, 0, 0, 0])  # the only pair that the audit itself looks at
WHERE = replace(neighbours.add_remove(st.just(0), max_size=4), find_corners=lambda: [LARGE])


def leaks(data: list[int], size: int, rng: np.random.Generator) -> Any:
    return len(data) + rng.laplace(scale=0.5, size=size)


def audit(mechanism: Any, **options: Any) -> Result:
    return dpaudit.audit(mechanism, PureDP(1.0), WHERE, **{"samples": 20_000, "seed": 1, "pairs": 1, **options})


def witness_of(result: Result) -> Witness:
    assert result.verdict is Verdict.VIOLATION
    assert not any("one release at a time" in message for message in result.messages)  # the audit went on with calls
    assert result.witness is not None, result.messages
    return result.witness


def raises_seldom(data: list[int], size: int, rng: np.random.Generator) -> Any:
    if len(data) <= 1 and (rng.random(size) < 1e-3).any():
        raise ValueError("one of the releases failed")
    return leaks(data, size, rng)


def raises_on_nothing(data: list[int], size: int, rng: np.random.Generator) -> Any:
    if not data:
        raise ValueError("no data")
    return leaks(data, size, rng)


def raises_below_three(data: list[int], size: int, rng: np.random.Generator) -> Any:
    if len(data) < 3:
        raise ValueError("too few data")
    return leaks(data, size, rng)


def tells_below_three(data: list[int], size: int, rng: np.random.Generator) -> Any:
    """Below three rows 1-DP for each release; but one large output makes all that come with it complex."""
    if len(data) >= 3:
        return leaks(data, size, rng)
    outputs = len(data) + rng.laplace(size=size)
    return outputs.astype(complex) if (outputs > 6.5).any() else outputs


@pytest.mark.parametrize(
    ("mechanism", "sizes", "event", "alone"),
    [
        (raises_seldom, {0, 1}, "output", True),
        (raises_on_nothing, {0, 1}, "raises ValueError", True),
        (raises_below_three, {2, 3}, "raises ValueError", True),
        (tells_below_three, {2, 3}, "output", None),
        (leaks, {0, 1}, "output", False),
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_pairs_are_looked_at_one_release_at_a_time(
    mechanism: Callable[..., Any], sizes: set[int], event: str, alone: bool | None, seed: int
) -> None:
    result = audit(dpaudit.batched(mechanism), seed=seed)
    witness = witness_of(result)
    assert {len(eval(witness.data)), len(eval(witness.neighbour))} == sizes
    assert event in witness.event
    assert witness.confirmed
    assert witness.shrunk
    assert witness.observed_log_ratio > 1.0
    if alone is not None:
        assert ("for _ in range(trials)" in witness.script_text) is alone
    if seed == 1:  # and the clock decides nothing
        again = audit(dpaudit.batched(mechanism), seed=seed)
        assert replace(again, seconds=0.0) == replace(result, seconds=0.0)


def test_the_script_repeats_what_was_measured_one_release_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    witness = witness_of(audit(dpaudit.batched(raises_seldom)))
    shown = subprocess.run([sys.executable, "-c", witness.script_text], capture_output=True, text=True, check=True)
    assert f"of {witness.on_data.trials}" in shown.stdout


def test_a_measurement_that_raises_is_made_again_from_other_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing raised until then, and the call for all outputs at once does."""
    seeds: list[Any] = []
    draw = shrink.seed_child

    def noted(entropy: int, *key: int) -> Any:
        seeds.append(key)
        return draw(entropy, *key)

    def limited(data: list[int], size: int, rng: np.random.Generator) -> Any:
        if size > 900:
            raise MemoryError("too many at once")
        return leaks(data, size, rng)

    monkeypatch.setattr(shrink, "seed_child", noted)
    witness = witness_of(audit(dpaudit.batched(limited)))
    assert witness.on_data.trials == 1000
    assert witness.confirmed
    assert "for _ in range(trials)" in witness.script_text
    assert [key[-2:] for key in seeds] == [(0, 0), (1, 0), (1, 1)]


def test_each_look_at_a_pair_is_an_attempt_with_a_share_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    thresholds: list[tuple[int, float]] = []
    refutes = shrink.PairAuditor.refutes

    def noted(auditor: Any, pair: Pair, *, log_threshold: float, samples: int, base: int) -> Any:
        if base == SeedKey.CONFIRM:
            thresholds.append((len(pair.data), float(np.exp(-log_threshold))))
            return refutes(auditor, pair, log_threshold=1e9, samples=samples, base=base)  # nothing is confirmed
        return refutes(auditor, pair, log_threshold=log_threshold, samples=samples, base=base)

    monkeypatch.setattr(shrink.PairAuditor, "refutes", noted)
    result = audit(dpaudit.batched(raises_seldom), alpha=1e-3)
    assert witness_of(result).confirmed is False
    sizes, shares = zip(*thresholds, strict=True)
    assert sizes == (0, 0, 3)
    assert shares == pytest.approx([1e-3 / 2, 1e-3 / 6, 1e-3 / 12])


def test_pairs_that_hang_or_break_the_protocol_do_not_lose_the_witness() -> None:
    def hangs(data: list[int], size: int, rng: np.random.Generator) -> Any:
        if len(data) < 3:
            time.sleep(60.0)
        return leaks(data, size, rng)

    def breaks(data: list[int], size: int, rng: np.random.Generator) -> Any:
        return leaks(data, size, rng)[: None if len(data) >= 3 else 1]

    for mechanism, options in ((hangs, {"timeout": 0.02}), (breaks, {})):
        witness = witness_of(audit(dpaudit.batched(mechanism), **options))
        assert {len(eval(witness.data)), len(eval(witness.neighbour))} == {3, 4}
        assert witness.confirmed
        assert not witness.shrunk


@pytest.mark.parametrize(
    ("error", "suggested"),
    [
        (ValueError("age 212 is out of bounds"), True),
        (ValueError("x must be at most 10"), True),
        (KeyError("Paris"), True),
        (AssertionError(), True),
        (TypeError("expected a number"), True),
        (RuntimeError("budget must be positive"), False),
        (ValueError("cannot convert"), False),
    ],
    ids=repr,
)
def test_an_error_that_reads_like_a_limit_suggests_to_narrow_the_rows(error: Exception, suggested: bool) -> None:
    def release(data: list[int], rng: np.random.Generator) -> float:
        if data:
            raise error
        return rng.laplace()

    result = dpaudit.audit(dpaudit.per_release(release), PureDP(1.0), [([], [1])], samples=4000, seed=0)
    assert result.witness is not None
    assert result.witness.event.startswith(f"raises {type(error).__name__}")
    assert any("narrow the rows" in message for message in result.messages) == suggested
