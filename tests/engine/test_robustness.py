"""Mechanisms that misbehave: each way has one defined outcome and a message that says what to do."""

from __future__ import annotations

import array
import collections
import json
import math
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import MechanismError, Result, Verdict, neighbours
from dpaudit.result.model import StoppedBy
from tests.engine.short_audits import audit, laplace, noisy_count, same

BUSY = 0.4  # seconds that a loaded machine may take from us


# Outputs that the mechanism writes over


class Workspace:
    """Randomised response, exactly 1-DP, that writes each answer into the object that held the last one on such data."""

    def __init__(self, kind: str) -> None:
        self.outputs: dict[int, Any] = {}
        self.make = {"array": lambda: np.empty(1), "list": lambda: [None], "dict": dict, "nested": lambda: [[None]]}[
            kind
        ]

    def __call__(self, data: list[int], rng: np.random.Generator) -> Any:
        output = self.outputs.setdefault(len(data), self.make())
        inner = output[0] if isinstance(output, list) and output[0] is not None else output
        inner = inner if isinstance(inner, list | dict | np.ndarray) else output
        inner[0] = (len(data) + (rng.random() > math.e / (1.0 + math.e))) % 2
        return output


@pytest.mark.parametrize("kind", ["array", "list", "dict", "nested"])
@pytest.mark.parametrize("samples", [900, 20_000])
def test_outputs_that_are_written_over_are_taken_as_they_were(kind: str, samples: int) -> None:
    for seed in range(3):
        result = audit(dpaudit.per_release(Workspace(kind)), samples=samples, seed=seed, detect_factor=10.0)
        assert result.verdict is not Verdict.VIOLATION
        assert samples < 20_000 or result.epsilon_lower > 0.7  # and nothing is hidden either


@pytest.mark.parametrize("samples", [900, 20_000])
def test_batches_that_are_written_over_are_taken_as_they_were(samples: int) -> None:
    outputs: dict[tuple[int, int], Any] = {}

    def rare(data: list[int], size: int, rng: np.random.Generator) -> Any:
        output = outputs.setdefault((len(data), size), np.empty(size))
        output[:] = rng.random(size) < 0.05 * math.exp(-len(data))
        return output

    for seed in range(5):
        result = audit(dpaudit.batched(rare), samples=samples, seed=seed, alpha=0.01)
        assert result.verdict is not Verdict.VIOLATION


# Deterministic, constant, stateful


def test_deterministic() -> None:
    result = audit(len)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower > 1.0
    assert result.reproducible
    assert result.witness is not None
    assert math.isinf(result.witness.observed_log_ratio)
    assert any("deterministic" in message and "fresh" in message for message in result.messages)


def test_constant() -> None:
    result = audit(lambda data: 3)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.epsilon_lower == 0.0
    assert "allow_constant=True" in result.messages[0]
    assert audit(lambda data: 3, allow_constant=True).verdict is Verdict.NO_VIOLATION_FOUND


class Accountant:
    """Raises once its budget of calls is spent."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, data: list[int]) -> float:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("privacy budget exhausted")
        return laplace(data)


@pytest.mark.parametrize("calls", [50, 300, 1000, 3000])
def test_budget_accountants_are_noticed(calls: int) -> None:
    result = audit(Accountant(calls))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("state" in message and "dpaudit.fresh" in message for message in result.messages)


def test_an_exhausted_accountant_is_an_error() -> None:
    with pytest.raises(MechanismError, match="privacy budget exhausted"):
        audit(Accountant(0))


def test_an_accountant_exhausted_at_once_is_noticed() -> None:
    try:
        said = str(audit(Accountant(1)))
    except MechanismError as error:  # where calls are quick the probe makes more of them, and all but the first raise
        said = f"INCONCLUSIVE, as {error}, see dpaudit.fresh"
    assert "INCONCLUSIVE" in said
    assert "dpaudit.fresh" in said


def test_fresh_instances_have_no_state() -> None:
    result = audit(dpaudit.fresh(lambda: Accountant(1)))
    assert result.verdict is Verdict.NO_VIOLATION_FOUND


def test_drifting_noise_is_noticed() -> None:
    calls = 0

    def warming_up(data: list[int]) -> float:
        nonlocal calls
        calls += 1
        return len(data) + (2.0 if calls < 3000 else 20.0) * float(np.random.laplace())  # noqa: NPY002

    result = audit(warming_up)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("state" in message for message in result.messages)


@pytest.mark.parametrize("words", [1000, 30_000])
def test_many_words_are_no_state(words: int) -> None:
    """The most frequent words were chosen on the past, where chance favoured them: that is not drift."""
    mechanism = dpaudit.batched(lambda data, size, rng: rng.integers(words, size=size).astype("U6"))
    result = audit(mechanism, samples=60_000, seed=1)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert not any("state" in message for message in result.messages)
    assert result.coverage > 0.9  # words that hardly repeat are looked at by their features


def test_drifting_words_are_noticed() -> None:
    calls = 0

    def other_words_later(data: list[int], size: int, rng: np.random.Generator) -> Any:
        nonlocal calls
        calls += size
        return (rng.integers(1000, size=size) + (500 if calls > 30_000 else 0)).astype("U6")

    result = audit(dpaudit.batched(other_words_later), samples=100_000, seed=0)
    assert result.verdict is not Verdict.VIOLATION
    assert any("state" in message for message in result.messages)


def test_a_cached_answer_is_described_as_possibly_cached() -> None:
    answers: dict[tuple[int, ...], float] = {}
    result = audit(lambda data: answers.setdefault(tuple(data), laplace(data)))
    assert result.verdict is Verdict.VIOLATION
    assert any("remembers" in message and "dpaudit.fresh" in message for message in result.messages)


# Slow, hanging, interrupted


@pytest.mark.parametrize(("call", "seconds"), [(0.02, 0.5), (0.3, 0.5), (0.001, 0.5)])
def test_seconds_are_kept_within_a_tenth_or_one_call(call: float, seconds: float) -> None:
    def slow(data: list[int]) -> float:
        time.sleep(call)
        return laplace(data)

    audit(len, samples=300)  # imports are not the mechanism's fault
    begin = time.monotonic()
    result = audit(slow, seconds=seconds)
    elapsed = time.monotonic() - begin
    assert result.stopped_by is StoppedBy.SECONDS
    assert elapsed <= seconds + max(0.1 * seconds, call) + BUSY


def test_seconds_are_kept_when_a_violation_leaves_little_time() -> None:
    def slow_leak(data: list[int]) -> float:
        time.sleep(0.001)
        return len(data)

    begin = time.monotonic()
    where = neighbours.add_remove(st.integers(0, 3), max_size=3)
    result = audit(slow_leak, where, pairs=1, seconds=2.0, samples=100_000)
    assert result.verdict is Verdict.VIOLATION
    assert time.monotonic() - begin <= 2.2 + BUSY


def test_a_fast_batched_mechanism_stops_in_time() -> None:
    begin = time.monotonic()
    result = audit(noisy_count(1.0), seconds=0.5, samples=10**9)
    assert result.stopped_by is StoppedBy.SECONDS
    assert time.monotonic() - begin <= 0.55 + BUSY
    assert result.samples > 10_000


@pytest.mark.parametrize("call", [1, 5, 700, 2000])
def test_a_hanging_call_ends_the_audit(call: int) -> None:
    calls = 0

    def hangs(data: list[int]) -> float:
        nonlocal calls
        calls += 1
        if calls == call:
            time.sleep(60.0)
        return laplace(data)

    begin = time.monotonic()
    result = audit(hangs, timeout=0.05)
    assert time.monotonic() - begin < 10.0
    assert result.stopped_by is StoppedBy.TIMEOUT
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("timeout=0.05" in message for message in result.messages)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_time_out_can_be_an_output() -> None:
    def hangs_on_some(data: list[int]) -> int:
        if data:
            time.sleep(1.0)
        return 1

    result = audit(hangs_on_some, timeout=0.002, timeout_is_output=True, samples=700, shrink=False)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None


def test_timeout_outside_the_main_thread_is_reported() -> None:
    seen: list[BaseException] = []

    def work() -> None:
        try:
            audit(laplace, timeout=1.0)
        except MechanismError as error:
            seen.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert re.search(r"main thread.*workers that are threads.*cannot be interrupted. Use processes", str(seen[0]))


@pytest.mark.parametrize("call", [1, 100, 400, 1500, 4000])
def test_control_c_returns_the_result_so_far(call: int) -> None:
    calls = 0

    def interrupted(data: list[int]) -> float:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return laplace(data)

    result = audit(interrupted)
    assert result.stopped_by is StoppedBy.INTERRUPT
    assert abs(result.samples - call) <= 0.25 * call + 300  # at most the round under way is lost
    assert any("Interrupted" in message for message in result.messages)


@pytest.mark.parametrize("call", [1000, 1500, 2500])
def test_control_c_after_the_violation_keeps_the_verdict(call: int) -> None:
    calls = 0

    def interrupted(data: list[int]) -> float:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return float(len(data))

    where = neighbours.add_remove(st.integers(0, 3), max_size=3)
    result = audit(interrupted, where, pairs=1, samples=900)
    assert calls >= call > result.samples  # while shrinking, confirming or measuring
    assert result.verdict is Verdict.VIOLATION
    assert result.stopped_by is StoppedBy.INTERRUPT  # which is what stops a suite
    assert result.witness is not None  # the pair as it was found
    assert any("Interrupted" in message for message in result.messages)
    assert str(result)


def test_a_real_interrupt_anywhere() -> None:
    """SIGINT arrives while the engine learns or counts, not only inside the mechanism."""
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        result = audit(noisy_count(1.0), samples=10**9, seconds=20.0)
    finally:
        timer.cancel()
    assert result.stopped_by is StoppedBy.INTERRUPT
    assert result.seconds < 10.0


# Exceptions


def test_raising_always_is_an_error_with_the_traceback() -> None:
    def broken(data: list[int]) -> float:
        raise ZeroDivisionError("my own mistake")

    for mechanism in (broken, dpaudit.batched(lambda data, size, rng: broken(data)), dpaudit.fresh(lambda: broken)):
        with pytest.raises(MechanismError, match="my own mistake") as caught:
            audit(mechanism)
        assert "Traceback" in str(caught.value)
        assert "in broken" in str(caught.value)


def test_equal_exceptions_on_both_sides_are_no_leak() -> None:
    def sometimes(data: list[int], rng: np.random.Generator) -> float:
        if rng.random() < 0.3:
            raise ValueError(f"invalid literal for int() with base 10: {rng.random()}")
        return len(data) + rng.laplace()

    result = audit(dpaudit.per_release(sometimes))
    assert result.verdict is Verdict.NO_VIOLATION_FOUND


def test_raising_on_one_side_is_a_leak() -> None:
    result = audit(lambda data: 1 / len(data) + 1000 * random.random(), samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None
    assert "raises ZeroDivisionError" in result.witness.event


def test_a_batched_call_that_raises_starts_again_one_by_one() -> None:
    def sometimes(data: list[int], size: int, rng: np.random.Generator) -> Any:
        if (rng.random(size) < 0.01).any():
            raise ValueError("one of the releases failed")
        return len(data) + rng.laplace(size=size)

    result = audit(dpaudit.batched(sometimes))
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert any(
        "one release at a time" in message and "one of the releases failed" in message for message in result.messages
    )

    def slowly(data: list[int], size: int, rng: np.random.Generator) -> Any:
        time.sleep(2e-3 if size == 8 else 0.0)  # in the probe
        return sometimes(data, size, rng)

    assert audit(dpaudit.batched(slowly)).trajectory == result.trajectory  # the clock decides nothing


def test_a_batched_mechanism_that_raises_on_one_side_only() -> None:
    def on_empty(data: list[int], size: int, rng: np.random.Generator) -> Any:
        return np.full(size, 1 // len(data)) + 1000.0 * rng.random(size)

    result = audit(dpaudit.batched(on_empty), samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None


# Outputs and inputs


def test_a_different_type_each_time() -> None:
    kinds = [1, 2.5, "x", None, (1, 2), [1.0], {"a": 1}, b"b", 1j, np.float32(2), np.zeros(2), {1}, math.nan, math.inf]
    result = audit(lambda data: random.choice(kinds), samples=10_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.epsilon_lower < 0.5
    leak = audit(lambda data: random.choice(kinds[7:] if data else kinds), samples=20_000)
    assert leak.verdict is Verdict.VIOLATION


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("scale", [1.7e308, 5e-324, math.inf, math.nan])
def test_numbers_at_the_ends_of_the_floats(scale: float, width: int) -> None:
    """Warnings are errors here: no overflow may reach the user, from learning to the summary of the outputs."""

    def extreme(data: list[int], size: int, rng: np.random.Generator) -> Any:
        signs = np.where(rng.random((size, width)) < (0.9 if data else 0.1), 1.0, -1.0)
        with np.errstate(invalid="ignore"):
            values = signs * scale * np.where(rng.random((size, width)) < 0.5, 1.0, rng.random((size, width)))
        # NaN has no sign, so there the other outputs are ordinary.
        return np.where((signs > 0) | math.isfinite(scale), values, rng.laplace(size=(size, width)))

    result = audit(dpaudit.batched(extreme), samples=3000)
    assert result.verdict is Verdict.VIOLATION
    assert Result.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False))) == result


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda values: values.tolist(),
    "tuple": lambda values: tuple(values.tolist()),
    "deque": lambda values: collections.deque(values.tolist()),
    "array.array": lambda values: array.array("d", values.tolist()),
    "memoryview": memoryview,
    "series": pd.Series,
    "series with an index": lambda values: pd.Series(values, index=np.arange(values.size)[::-1] + 5),
    "frame": lambda values: pd.DataFrame({"a": values, "b": 2.0 * values}),
    "index": pd.Index,
    "column vector": lambda values: values[:, None],
    "records": lambda values: np.rec.fromarrays([values, values], names="a,b"),
    "Fortran order": lambda values: np.asfortranarray(np.stack([values, values], axis=1)),
    "big endian": lambda values: values.astype(">f8"),
    "strided": lambda values: np.repeat(values, 2)[::2],
    "objects": lambda values: values.astype(object),
    "0d arrays": lambda values: [np.array(value) for value in values],
    "categories": lambda values: pd.Categorical(np.where(values > 0.5, "high", "low")),
    "strings": lambda values: np.where(values > 0.5, "high", "low"),
    "masked": lambda values: np.ma.masked_array(np.zeros(values.size), values > 0.5),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_outputs_may_come_in_any_container(name: str) -> None:
    wrap = CONTAINERS[name]
    leak = dpaudit.batched(lambda data, size, rng: wrap(len(data) + rng.laplace(scale=0.3, size=size)))
    result = audit(leak, samples=3000)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None
    assert "np.str_" not in result.witness.event


@pytest.mark.parametrize("extra", [-1, 1])
def test_the_wrong_number_of_outputs(extra: int) -> None:
    with pytest.raises(MechanismError, match=r"outputs for size=\d+; it must return exactly"):
        audit(dpaudit.batched(lambda data, size, rng: rng.laplace(size=size + extra)))
    with pytest.raises(MechanismError, match="per_release"):
        audit(dpaudit.batched(lambda data, size, rng: 1.0))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.append(1),
        lambda data: data.sort(),
        lambda data: data.clear(),
        lambda data: data.__setitem__(0, 99),
    ],
    ids=["append", "sort", "clear", "assign"],
)
def test_changing_the_input_is_refused(change: Callable[[list[int]], None]) -> None:
    def changes(data: list[int]) -> float:
        change(data)
        return laplace(data)

    with pytest.raises(MechanismError, match="changed its input"):
        audit(changes, [([3, 1, 2], [3, 1])])


def test_changing_the_input_late_is_refused() -> None:
    calls = 0

    def changes(data: list[int]) -> float:
        nonlocal calls
        calls += 1
        if calls == 3000:
            data.append(1)
        return laplace(data)

    with pytest.raises(MechanismError, match="changed its input"):
        audit(changes, [([3, 1, 2], [3, 1])])


# Random state


def test_global_random_state_is_seeded_and_restored() -> None:
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002 - the caller's state, which must survive
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    first = audit(lambda data: laplace(data) + random.random())
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002
    second = audit(lambda data: laplace(data) + random.random())
    assert first.reproducible
    assert same(first, second)


def test_reseeding_in_every_call_is_deterministic() -> None:
    def reseeds(data: list[int]) -> float:
        np.random.seed(0)  # noqa: NPY002
        return laplace(data)

    result = audit(reseeds)
    assert result.verdict is Verdict.VIOLATION
    assert any("deterministic" in message and "np.random.seed" in message for message in result.messages)


@pytest.mark.parametrize("pause", [0.0, 0.004])
def test_the_same_seed_in_every_batch_is_refused(pause: float) -> None:
    def reseeds(data: list[int], size: int, rng: np.random.Generator) -> Any:
        time.sleep(pause * size)
        return len(data) + np.random.default_rng(0).laplace(size=size)

    with pytest.raises(MechanismError, match="same sequence of outputs"):
        audit(dpaudit.batched(reseeds))


def test_a_generator_of_its_own_is_valid_but_not_replayable() -> None:
    own = np.random.default_rng(0)
    result = audit(lambda data: len(data) + own.laplace())
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert not result.reproducible
    assert "A rerun with this seed may draw other numbers" in str(result)


# Where only a corner leaks, the search finds it and the witness is small


CORNERS: dict[str, tuple[Callable[[list[int]], bool], Callable[[str, str], bool]]] = {
    "empty": (lambda data: not data, lambda data, neighbour: "[]" in (data, neighbour)),
    "all at the maximum": (
        lambda data: len(data) > 0 and min(data) == 10,
        lambda data, neighbour: "10" in data + neighbour,
    ),
    "one row": (lambda data: len(data) == 1, lambda data, neighbour: True),
}


@pytest.mark.parametrize("name", CORNERS)
def test_a_bug_on_a_corner_is_found(name: str) -> None:
    corner, small = CORNERS[name]

    def buggy(data: list[int], size: int, rng: np.random.Generator) -> Any:
        return sum(data) + (1000.0 if corner(data) else 0.0) + rng.laplace(scale=10.0, size=size)

    where = neighbours.add_remove(st.integers(0, 10), max_size=4)
    result = audit(dpaudit.batched(buggy), where, samples=100_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None
    assert result.witness.confirmed
    assert small(result.witness.data, result.witness.neighbour)
    assert len(result.witness.data) + len(result.witness.neighbour) <= 12


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_numbers_beside_identifiers_that_never_repeat_are_looked_at(noise: float) -> None:
    """Every output has a structure of its own, so cells by structure hold none of them."""

    def release(data: Any, rng: np.random.Generator) -> Any:
        return {"id": rng.bytes(16).hex(), "count": len(data) + noise * rng.laplace()}

    result = audit(dpaudit.per_release(release), samples=20_000)
    assert result.verdict is Verdict.VIOLATION, result


def test_generators_can_be_spawned() -> None:
    def release(data: Any, rng: np.random.Generator) -> float:
        first, second = rng.spawn(2)
        return len(data) + float(first.laplace() if rng.random() < 0.5 else second.laplace())

    result = audit(dpaudit.per_release(release), detect_factor=1e9)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND, result
    assert result.reproducible


def test_a_call_that_raises_after_a_confirmed_violation_ends_the_audit_for_a_bound() -> None:
    """Another attempt would need an alpha of its own: verdict and bound have all of it."""
    drawn = 0

    def late(data: list[int], size: int, rng: np.random.Generator) -> Any:
        nonlocal drawn
        drawn += size if size > 1 else 0
        if drawn > 60_000:
            raise RuntimeError("late")
        return len(data) + rng.laplace(scale=0.5, size=size)

    options = {"samples": 400_000, "until": "budget", "seed": 0, "shrink": False}
    result = dpaudit.audit(dpaudit.batched(late), dpaudit.PureDP(1.0), [([], [1])], **options)
    assert result.verdict is Verdict.VIOLATION
    assert result.stopped_by is StoppedBy.VIOLATION
    assert result.samples < 70_000
    assert any("ended after the violation" in message for message in result.messages)
