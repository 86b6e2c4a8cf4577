"""A mechanism that changes its process changes no result, and the process is as before."""

from __future__ import annotations

import locale
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit

PAIR = [([], [1])]


def audited(disturb: Callable[[], Any]) -> dpaudit.Result:
    def mechanism(data: Any, size: int, rng: np.random.Generator) -> Any:
        disturb()
        return len(data) + rng.laplace(size=size)

    return dpaudit.audit(dpaudit.batched(mechanism), dpaudit.PureDP(1.0), PAIR, samples=20_000, name="m")


@pytest.mark.parametrize(
    "disturb",
    [
        lambda: np.seterr(all="raise"),
        lambda: warnings.simplefilter("error"),
        lambda: os.chdir("/"),
        lambda: sys.setrecursionlimit(200),
        lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        lambda: setattr(time, "monotonic", lambda: 0.0),
        lambda: setattr(sys, "stderr", None),
        lambda: locale.setlocale(locale.LC_ALL, "C"),
    ],
    ids=["seterr", "warnings", "chdir", "recursion", "signals", "clock", "streams", "locale"],
)
def test_the_result_and_the_process_are_as_before(
    disturb: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def state() -> list[Any]:
        return [
            np.geterr(), list(warnings.filters), Path.cwd(), sys.getrecursionlimit(), signal.getsignal(signal.SIGINT),
            time.monotonic, sys.stdout, sys.stderr, locale.setlocale(locale.LC_ALL),
        ]  # fmt: skip

    calm = audited(lambda: None)  # first: imports add filters of warnings
    before = state()
    result = audited(disturb)
    assert state() == before
    assert (result.verdict, result.samples, result.epsilon_lower, result.trajectory) == (
        calm.verdict, calm.samples, calm.epsilon_lower, calm.trajectory
    )  # fmt: skip


def test_a_mechanism_runs_with_the_error_handling_of_its_program() -> None:
    seen = set()

    def mechanism(data: Any, size: int, rng: np.random.Generator) -> Any:
        seen.add(np.geterr()["under"])
        return len(data) + rng.laplace(size=size)

    with np.errstate(all="raise"):
        result = dpaudit.audit(dpaudit.batched(mechanism), dpaudit.PureDP(1.0), PAIR, samples=20_000)
    assert seen == {"raise"}
    assert result.verdict is dpaudit.Verdict.NO_VIOLATION_FOUND
