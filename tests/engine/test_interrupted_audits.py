"""Audits that are interrupted at any moment keep the evidence they have, and claim no more than that."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import nullcontext, suppress
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import Verdict, neighbours
from dpaudit.engine import conclude as conclusion
from dpaudit.engine import run as engine_run
from dpaudit.engine.request import Request
from dpaudit.engine.sampling import blocks as sampling
from dpaudit.engine.views import learner
from dpaudit.result.model import Result, StoppedBy

PAIR = [([], [1])]


def audit(mechanism: Any, claim: Any = None, where: Any = PAIR, **options: Any) -> Result:
    return dpaudit.audit(mechanism, claim or dpaudit.PureDP(1.0), where, **{"seed": 1, **options})


@dpaudit.batched
def half_scale(data: list[int], size: int, rng: np.random.Generator) -> Any:
    return len(data) + rng.laplace(scale=0.5, size=size)


class At:
    """Interrupts a run at the n-th line that it executes, as Ctrl-C would."""

    def __init__(self, line: int) -> None:
        self.line, self.lines = line, 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._inside if "dpaudit/" in frame.f_code.co_filename else None

    def _inside(self, frame: FrameType, event: str, argument: object) -> Any:
        self.lines += event == "line"
        if self.lines == self.line and event == "line":
            raise KeyboardInterrupt
        return self._inside


def interrupted(line: int, options: engine_run.Options, claim: Any) -> tuple[Result, int]:
    """Run an audit and interrupt it at that line, counted from when there is something to keep."""
    run, before, at = (
        engine_run.Run(Request.of(half_scale, claim, neighbours.fixed(PAIR), options, "half")),
        sys.gettrace(),
        At(line),
    )
    draw = run._draw

    def draw_and_count(*arguments: Any) -> StoppedBy:
        sys.settrace(at)
        return draw(*arguments)

    run._draw = draw_and_count  # type: ignore[method-assign]
    try:
        return run.result(), at.lines
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("until", ["violation", "budget"])
@pytest.mark.parametrize("claim", [dpaudit.PureDP(1.0), dpaudit.GaussianDP(1.0)], ids=repr)
def test_an_interrupt_at_any_line_gives_a_result_whose_verdict_and_bound_agree(until: Any, claim: Any) -> None:
    options = engine_run.Options(samples=3000, seed=1, until=until, shrink=False)
    whole, lines = interrupted(0, options, claim)
    assert whole.verdict is Verdict.VIOLATION
    cut_short = 0
    for line in range(1, lines, lines // 20):
        result, _ = interrupted(line, options, claim)
        assert (result.verdict is Verdict.VIOLATION) == (result.parameter_lower >= claim.parameter)
        assert result.parameter_lower <= whole.parameter_lower
        assert result.stopped_by in (whole.stopped_by, StoppedBy.INTERRUPT)
        assert len(set(result.messages)) == len(result.messages)
        cut_short += result.stopped_by is StoppedBy.INTERRUPT
    assert cut_short > 10


@pytest.mark.parametrize("times", [1, 2, 3])
def test_interrupts_while_bounds_are_worked_out(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left = times

    def impatient(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise KeyboardInterrupt
        return power(*arguments, **named)

    power = conclusion.detectable_epsilon
    monkeypatch.setattr(conclusion, "detectable_epsilon", impatient)
    result = audit(half_scale, samples=3000)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower >= 1.0
    assert result.stopped_by is StoppedBy.INTERRUPT
    assert result.messages == ("Interrupted; this is the result so far.",)
    assert result.witness is not None


@pytest.mark.parametrize("claim", [dpaudit.PureDP(1.0), dpaudit.GaussianDP(1.0)], ids=repr)
def test_an_interrupt_while_shrinking_loses_the_witness_alone(claim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = audit(half_scale, claim, samples=3000)

    def impatient(*arguments: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpaudit.engine.witness.shrink.measure", impatient)
    result = audit(half_scale, claim, samples=3000)
    assert (whole.stopped_by, result.stopped_by) == (StoppedBy.VIOLATION, StoppedBy.INTERRUPT)
    assert result.witness is not None
    for name in ("verdict", "epsilon_lower", "parameter_lower", "samples", "trajectory"):
        assert getattr(result, name) == getattr(whole, name)
    assert result.epsilon_lower > 0.0


@pytest.mark.parametrize("claim", [dpaudit.PureDP(1.0), dpaudit.GaussianDP(1.0)], ids=repr)
def test_evidence_from_before_a_batched_call_raised_still_counts(claim: Any) -> None:
    calls = 0

    @dpaudit.batched
    def raises_late(data: list[int], size: int, rng: np.random.Generator) -> Any:
        nonlocal calls
        calls += size
        if size > 1 and calls > 18_000:
            raise ValueError("too many")
        return len(data) + rng.laplace(scale=0.5, size=size)

    result = audit(raises_late, claim, samples=20_000, until="budget")
    assert any("ended after the violation" in message for message in result.messages)
    assert result.verdict is Verdict.VIOLATION
    assert result.parameter_lower >= claim.parameter
    assert result.epsilon_lower > 1.0
    assert max(wealth for _, wealth in result.trajectory) >= result.log_threshold


def test_a_batched_call_that_times_out_is_taken_apart_where_a_time_out_is_an_output() -> None:
    @dpaudit.batched
    def hangs_on_some(data: list[int], size: int, rng: np.random.Generator) -> Any:
        if data and (rng.random(size) < 0.5).any():
            time.sleep(60.0)
        return np.ones(size)

    begin = time.monotonic()
    result = audit(hangs_on_some, timeout=0.002, timeout_is_output=True, samples=900, shrink=False)
    assert time.monotonic() - begin < 30.0
    assert result.verdict is Verdict.VIOLATION
    assert any("one release at a time" in message for message in result.messages)
    ended = audit(hangs_on_some, timeout=0.002, samples=900)
    assert (ended.verdict, ended.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.TIMEOUT)


class LosesOne(Executor):
    """Runs every task here but one, which is lost with its worker; later executors start afresh."""

    def __init__(self, lost: int) -> None:
        self.count, self.lost, self.tasks = 2, lost, 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks += 1
        future: Future[Any] = Future()
        if self.tasks == self.lost:
            sampling._SIGNATURES.clear()
            future.set_exception(BrokenExecutor("it died"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


@pytest.mark.parametrize("lost", [1, 6, 12])
def test_a_worker_that_is_lost_on_any_pair_changes_nothing(lost: int) -> None:
    @dpaudit.batched
    def slow(data: list[int], size: int, rng: np.random.Generator) -> Any:
        time.sleep(1e-5 * size)
        return len(data) + rng.laplace(size=size)

    pairs = [([], [1]), ([1], [1, 2]), ([1, 2, 3], [1, 2])]
    options = {"samples": 20_000, "until": "budget"}
    there = LosesOne(lost)
    disturbed = audit(slow, where=pairs, executor=there, **options).to_dict()
    assert there.tasks > lost
    undisturbed = audit(slow, where=pairs, **options).to_dict()
    assert disturbed | {"seconds": 0.0} == undisturbed | {"seconds": 0.0}


def slow_rows(seconds: float, also: Callable[[], object] = lambda: None) -> Any:
    def slow(row: int) -> int:
        time.sleep(seconds)
        also()
        return row

    return neighbours.substitute(st.integers(0, 100).map(slow), max_size=4)


@pytest.mark.parametrize("channel", ["value", "timing"])
def test_the_seconds_are_for_making_pairs_too(channel: str) -> None:
    """All pairs would take 10 s; the limit leaves a busy machine a second."""
    begin = time.monotonic()
    result = audit(half_scale, where=slow_rows(0.05), seconds=1.0, channel=channel)
    assert time.monotonic() - begin < 2.0
    assert result.samples > 0
    assert any("Generating pairs used its whole share of the time" in message for message in result.messages)


def test_incomplete_searches_are_not_cached() -> None:
    where = slow_rows(0.001)
    few = where.pool(32, deadline=time.monotonic())
    assert 1 <= len(few) < 32
    assert where.pool(32) == slow_rows(0.0).pool(32)


@pytest.mark.parametrize("channel", ["value", "timing"])
@pytest.mark.parametrize("swallowed", [False, True])
def test_an_interrupt_while_pairs_are_made_is_a_result(channel: str, swallowed: bool) -> None:
    """Hypothesis has a callback in which Python drops every exception."""
    pressed = 0

    def press() -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 5:
            with suppress(KeyboardInterrupt) if swallowed else nullcontext():
                signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = audit(half_scale, where=slow_rows(0.0, press), channel=channel)
    assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.INTERRUPT)
    assert (result.samples, result.pairs, result.trajectory) == (0, 0, ())
    assert result.messages[-1] == "Interrupted; this is the result so far."
    assert Result.from_dict(result.to_dict()) == result
    assert "interrupted" in str(result)
    assert signal.getsignal(signal.SIGINT) is before


def test_views_are_not_built_for_a_pair_when_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair's first views take 0.35 s: those of the third would be done at 1.05 s, and the deadline is at 0.95 s."""
    built = 0

    def slow(*arguments: Any, **named: Any) -> Any:
        nonlocal built
        built += 1
        time.sleep(0.35)
        return build(*arguments, **named)

    build = learner.build_views
    monkeypatch.setattr(learner, "build_views", slow)
    result = audit(half_scale, dpaudit.PureDP(9.0), [([], [k]) for k in range(12)], seconds=1.0)
    assert built <= 2
    assert result.stopped_by in (StoppedBy.SECONDS, StoppedBy.SAMPLES)  # draws that nothing is counted in are quick
    assert result.pairs == 12
