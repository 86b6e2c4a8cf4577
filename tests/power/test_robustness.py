"""Mechanisms that misbehave: each way has one defined outcome and a message that says what to do."""

from __future__ import annotations

import array
import collections
import json
import math
import multiprocessing
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import MechanismError, PureDP, Result, Verdict, neighbours
from dpaudit.engine.result import StoppedBy
from mechanisms.broken.laplace import MisscaledLaplace

PAIR = [([], [1])]
CLAIM = PureDP(1.0)
BUSY = 0.4  # seconds that a loaded machine may take from us


def audit(mechanism: Any, where: Any = PAIR, **options: Any) -> Result:
    return dpaudit.audit(mechanism, CLAIM, where, **{"samples": 6000, "seed": 1, "power": 3.0, **options})


def laplace(data: list[int]) -> float:
    """A correct plain function, with the noise of the global generator."""
    return len(data) + float(np.random.laplace())  # noqa: NPY002 - that is what users write


def noisy_count(scale: float) -> Any:
    return dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(scale=scale, size=size))


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
        result = audit(dpaudit.per_release(Workspace(kind)), samples=samples, seed=seed, power=10.0)
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
    assert math.isinf(result.witness.epsilon)
    assert any("deterministic" in message and "fresh" in message for message in result.messages)


def test_constant() -> None:
    result = audit(lambda data: 3)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.epsilon_lower == 0.0
    assert not result.messages


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
    assert audit(mechanism, samples=200_000, seed=1).verdict is Verdict.NO_VIOLATION_FOUND


def test_drifting_words_are_noticed() -> None:
    calls = 0

    def other_words_later(data: list[int], size: int, rng: np.random.Generator) -> Any:
        nonlocal calls
        calls += size
        return (rng.integers(1000, size=size) + (500 if calls > 30_000 else 0)).astype("U6")

    result = audit(dpaudit.batched(other_words_later), samples=100_000)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("state" in message for message in result.messages)


def test_a_cached_answer_is_told_as_what_it_may_be() -> None:
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


def test_timeout_outside_the_main_thread_says_so() -> None:
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
    assert result.witness is None
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


def test_raising_alike_on_both_sides_is_no_leak() -> None:
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
    assert "raises ZeroDivisionError" in result.witness.event or "float" in result.witness.event


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


# Results travel


def same(first: Result, second: Result) -> bool:
    one, other = first.to_dict(), second.to_dict()
    for plain in (one, other):
        plain.pop("seconds")
    return one == other


RESULTS: dict[str, Callable[[], Result]] = {
    "violation": lambda: audit(noisy_count(0.3)),
    "infinite": lambda: audit(len),
    "nothing": lambda: audit(noisy_count(1.0)),
    "inconclusive": lambda: audit(noisy_count(1.0), samples=300),
    "zero-concentrated": lambda: dpaudit.audit(noisy_count(1.0), dpaudit.ZeroConcentratedDP(0.5), PAIR, samples=3000),
    "approximate": lambda: dpaudit.audit(len, dpaudit.ApproxDP(1.0, 1e-5), PAIR, samples=3000, name="inf"),
    "Renyi": lambda: dpaudit.audit(noisy_count(1.0), dpaudit.RenyiDP(4.0, 0.5), PAIR, samples=3000),
    "related": lambda: dpaudit.audit(
        noisy_count(1.0),
        PureDP(1.0, dpaudit.Relation.ADD_REMOVE),
        neighbours.add_remove(st.integers(0, 3), max_size=2),
        samples=3000,
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_pickle_and_convert(name: str) -> None:
    result = RESULTS[name]()
    assert pickle.loads(pickle.dumps(result)) == result
    text = json.dumps(result.to_dict(), allow_nan=False)
    again = Result.from_dict(json.loads(text))
    assert again == result
    assert str(again) == str(result)
    assert json.dumps(again.to_dict(), allow_nan=False) == text


def test_the_same_seed_gives_the_same_result() -> None:
    for mechanism in (noisy_count(0.5), noisy_count(1.0), laplace):
        assert same(audit(mechanism, seed=7), audit(mechanism, seed=7))
    assert not same(audit(noisy_count(1.0), seed=7), audit(noisy_count(1.0), seed=8))
    first = audit(noisy_count(1.0), seed=None)
    assert same(first, audit(noisy_count(1.0), seed=first.seed))


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], str]]:
    """Write a module that workers and scripts can import."""
    made: list[str] = []

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        made.append(name)
        return str(tmp_path)

    monkeypatch.syspath_prepend(str(tmp_path))
    yield write
    for name in made:
        sys.modules.pop(name, None)


WHERE = [(np.array([0.0]), np.array([1.0])), (np.array([5.0]), np.array([4.0]))]


@pytest.mark.parametrize("factor", [0.8, 1.0])
def test_workers_change_nothing(factor: float, processes: Executor) -> None:
    mechanism = MisscaledLaplace(1.0, factor)
    options = {"samples": 300_000, "seed": 3}
    alone = dpaudit.audit(mechanism, mechanism.claim, WHERE, **options)
    with ThreadPoolExecutor(3) as threads:
        for executor in (threads, processes):
            assert same(alone, dpaudit.audit(mechanism, mechanism.claim, WHERE, executor=executor, **options))


def test_workers_change_nothing_for_plain_functions() -> None:
    """Global generators are seeded per block; threads must not seed them under each other's feet."""

    def slow(data: list[int]) -> float:
        time.sleep(1e-5)
        return laplace(data)

    alone = audit(slow, samples=10_000)
    with ThreadPoolExecutor(4) as threads:
        assert same(alone, audit(slow, samples=10_000, executor=threads))


def test_workers_that_share_random_state_are_refused(module: Callable[[str, str], str]) -> None:
    module(
        "shares_its_generator",
        "import time\nimport numpy as np\nRNG = np.random.default_rng(0)\n\n"
        "def release(data):\n    time.sleep(2e-5)\n    return len(data) + RNG.laplace()\n\n"
        "def make():\n    return release\n",
    )
    with (
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor,
        pytest.raises(MechanismError, match="share random state"),
    ):
        audit("shares_its_generator:make", samples=100_000, executor=executor)


def test_what_cannot_be_sent_to_a_worker_says_so(processes: Executor) -> None:
    def slow(data: list[int]) -> float:
        time.sleep(2e-5)
        return laplace(data)

    with pytest.raises(dpaudit.InvalidArgument, match=r"package\.module:factory"):
        audit(slow, executor=processes)


# The script at the end of a violation


def run_script(text: str, folder: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SCRIPTED = {
    "number": "return len(data) + rng.laplace(scale=0.3)",
    "category": "return 'even' if (len(data) + int(rng.laplace(scale=0.2))) % 2 == 0 else 'odd'",
    "long category": "return ('even' if (len(data) + int(rng.laplace(scale=0.2))) % 2 == 0 else 'odd') + 'x' * 300",
    "exception": "if not data and rng.random() < 0.5:\n        raise KeyError('empty')\n    return 1.5",
    "vector": "return (len(data) + rng.laplace(scale=0.3, size=3)).tolist()",
    "ragged": "return [1.5] * (1 + int(rng.random() < (0.9 if data else 0.1)))",
    "dict": "return {'n': 3, 'extra': 1} if data and rng.random() < 0.5 else {'n': 3}",
    "missing": "return None if data and rng.random() < 0.5 else float('nan') if rng.random() < 0.3 else 2.5",
    "exact": "return 0.25 if data and rng.random() < 0.4 else rng.random()",
    "type": "return 1 if rng.random() < (0.9 if data else 0.1) else 1.0",
    "end of a long string": "return 'x' * 3000 + ('a' if rng.random() < (0.9 if data else 0.1) else 'b')",
    "order of keys": "return {'a': 1, 'b': 2} if rng.random() < (0.9 if data else 0.1) else {'b': 2, 'a': 1}",
    "date": (
        "import datetime\n    return datetime.date(2020, 1, 1) + datetime.timedelta(round(5 * len(data) + rng.laplace()))"
    ),
    "masked": (
        "import numpy as np\n    return np.ma.masked_array([1.0, 2.0], [rng.random() < (0.9 if data else 0.1), False])"
    ),
    "missing in pandas": "import pandas\n    return pandas.NA if rng.random() < (0.9 if data else 0.1) else 1.0",
    "columns": (
        "import pandas\n    return pandas.DataFrame({'a' if rng.random() < (0.9 if data else 0.1) else 'b': [1.0]})"
    ),
    "cyclic": "loop = [int(rng.random() < (0.9 if data else 0.1))]\n    loop.append(loop)\n    return loop",
    "object": "import types\n    return types.SimpleNamespace(value=5 * len(data) + rng.laplace())",
    "large integer": "return 10**17 + int(1e6 * (5 * len(data) + rng.laplace()))",
}


@pytest.mark.parametrize("name", SCRIPTED)
def test_the_script_repeats_the_measurement(name: str, module: Callable[[str, str], str]) -> None:
    file = f"scripted_{name.replace(' ', '_')}"
    folder = module(file, f"def release(data, rng):\n    {SCRIPTED[name]}\n")
    function = getattr(__import__(file), "release")  # noqa: B009 - the module is made by the test
    result = audit(dpaudit.per_release(function), samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    witness = result.witness
    assert witness is not None
    script = witness.script()
    assert f"from {file} import release" in script
    compile(script, "script", "exec")
    assert "PLACEHOLDER" not in script
    printed = run_script(script, folder)
    on_data, on_neighbour = (int(line.split(":")[1].split()[0]) for line in printed.splitlines()[:2])
    trials = witness.on_data.trials
    for count, expected in ((on_data, witness.on_data), (on_neighbour, witness.on_neighbour)):
        # Fresh draws of the same event: within six standard errors of a difference (probability 2e-9 each).
        p = (count + expected.count + 1) / (2 * trials + 2)
        assert abs(count - expected.count) <= 6.0 * math.sqrt(2 * trials * p * (1 - p)) + 1
    assert on_data > on_neighbour


def test_what_cannot_be_written_down_is_a_marked_placeholder() -> None:
    class Table:
        def __init__(self, rows: int) -> None:
            self.rows = rows

        def __repr__(self) -> str:
            return f"<Table of {self.rows} rows>"

    result = audit(lambda data: data.rows, [(Table(0), Table(1))])
    assert result.witness is not None
    assert not result.witness.literal
    script = result.witness.script()
    compile(script, "script", "exec")
    assert script.count("PLACEHOLDER") >= 2
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr  # it says what is missing instead
    assert "Fill in the mechanism " in done.stderr
    assert "<lambda> cannot be imported by name: put it here" in script


def test_a_class_without_a_repr_is_told_to_have_one(module: Callable[[str, str], str]) -> None:
    module("audited_class", "class Tells:\n    def sample(self, data, size, rng):\n        return [len(data)] * size\n")
    mechanism = __import__("audited_class").Tells()
    result = audit(mechanism)
    assert result.witness is not None
    script = result.witness.script()
    compile(script, "script", "exec")
    assert "the mechanism is of audited_class.Tells, whose repr does not make it again" in script
    assert "give the class a repr that makes it again, e.g. a dataclass" in script
    assert "placeholder('the mechanism audited_class.Tells')" in script


def test_importable_objects_need_no_placeholder() -> None:
    mechanism = MisscaledLaplace(1.0, 0.4)
    result = dpaudit.audit(mechanism, mechanism.claim, WHERE, samples=20_000, seed=1)
    assert result.witness is not None
    script = result.witness.script()
    assert "PLACEHOLDER" not in script
    printed = run_script(script, ".")
    assert "log-ratio" in printed


# Front doors


def test_assert_private() -> None:
    with pytest.raises(dpaudit.PrivacyViolation, match="VIOLATION") as caught:
        dpaudit.assert_private(noisy_count(0.3), CLAIM, PAIR, samples=6000)
    assert caught.value.result.verdict is Verdict.VIOLATION
    assert pickle.loads(pickle.dumps(caught.value)).result == caught.value.result
    with pytest.raises(dpaudit.Inconclusive):
        dpaudit.assert_private(noisy_count(1.0), CLAIM, PAIR, samples=300)
    few = dpaudit.assert_private(noisy_count(1.0), CLAIM, PAIR, samples=300, allow_inconclusive=True)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert dpaudit.assert_private(noisy_count(1.0), CLAIM, PAIR, samples=20_000).verdict is Verdict.NO_VIOLATION_FOUND


def test_budgets_are_kept() -> None:
    for samples in (2, 3, 50, 100, 261, 500, 1999, 5000):
        calls = 0

        def counted(data: list[int]) -> float:
            nonlocal calls
            calls += 1
            return laplace(data)

        result = audit(counted, samples=samples)
        assert result.samples <= samples
        assert calls <= samples
        assert result.samples >= calls


def test_nothing_is_printed_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    audit(noisy_count(1.0))
    audit(noisy_count(0.5))
    assert capfd.readouterr() == ("", "")


def test_progress_shows_samples_and_evidence(capfd: pytest.CaptureFixture[str]) -> None:
    def slow(data: list[int], size: int, rng: np.random.Generator) -> Any:
        time.sleep(0.002)  # long enough for the bar to be drawn
        return len(data) + rng.laplace(size=size)

    audit(dpaudit.batched(slow), progress=True)
    shown = capfd.readouterr().err
    assert "evidence" in shown
    assert "6.00k" in shown


def test_progress_goes_on_while_a_small_example_is_sought_and_changes_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    where = neighbours.add_remove(st.integers(0, 5), min_size=1, max_size=4)
    silent, watched = (audit(noisy_count(0.5), where, samples=20_000, progress=wanted) for wanted in (False, True))
    shown = capfd.readouterr().err
    assert "violation found, shrinking: 0 pairs tried, 0 s" in shown
    assert "violation found, confirming, " in shown
    assert replace(watched, seconds=0.0) == replace(silent, seconds=0.0)
