"""Audits side by side: one line of progress each on a terminal, and what an interrupt does to them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from multiprocessing import resource_tracker
from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit.cli import jobs
from dpaudit.engine.progress import Board, Progress, Seeking, relay_to
from dpaudit.engine.sampling import executor as task_runner
from dpaudit.engine.sampling import rounds

termios = pytest.importorskip("termios", reason="there are no terminals here")
pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

SLOW = "import time\n\ndef slow(data, size, rng):\n    time.sleep(size * 4e-5)\n    return noisy(data, size, rng)\n\n"


def run_watched(project: Any, *words: str, **environ: str) -> tuple[int, str, str]:
    """Exit code, stdout, and what a terminal at stderr, ours and that of the other processes, got to show."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    shown = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):  # how a terminal ends
            while piece := os.read(ours, 4096):
                shown.extend(piece)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    resource_tracker.ensure_running()  # it outlives the run, and would keep the terminal open
    before = os.dup(2)
    with pytest.MonkeyPatch.context() as patch, open(theirs, "w", encoding="utf-8") as terminal:
        patch.delenv("CI", raising=False)
        for name, value in {"TERM": "xterm", **environ}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stderr", terminal)
        os.dup2(theirs, 2)
        try:
            code, out = project.run(*words)
        finally:
            os.dup2(before, 2)
            os.close(before)
    reader.join(timeout=60.0)
    os.close(ours)
    return code, out, shown.decode()


def test_one_line_for_each_running_audit(project: Any) -> None:
    project.audits(SLOW, project.audit("first", "slow"), project.audit("second", "slow"))
    code, out, shown = run_watched(project, "run", "-j", "2", "--json")
    assert code == 0, out + shown
    document = json.loads(out)  # nothing but JSON
    assert [audit["result"]["name"] for audit in document["audits"]] == ["first", "second"]
    for name in ("first", "second"):
        assert f"{name}:" in shown
    assert "evidence" in shown
    assert "20.0k" in shown
    assert "\x1b[A" in shown  # from the lower line back to the upper one


SLOW_HALF = SLOW.replace("slow", "slow_half").replace("noisy", "half").replace("4e-5", "1e-5") + (
    "from hypothesis import strategies as st\n"
    "PAIR = dpaudit.neighbours.add_remove(st.integers(0, 5), min_size=1, max_size=4)\n"
)


def without_clock(document: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = [audit["result"] for audit in json.loads(document)["audits"]]
    for result in results:
        del result["seconds"]
    return results


def test_the_line_shows_the_search_for_a_small_example(project: Any) -> None:
    project.audits(SLOW_HALF, project.audit("first", "slow_half"), project.audit("second", "slow_half"))
    unwatched = without_clock(project.run("run", "--json")[1])
    for mode in ((), ("-j", "2")):
        project.fresh()
        code, out, shown = run_watched(project, "run", *mode, "--json")
        assert code == 1, out + shown
        for name in ("first", "second"):
            assert f"{name}: violation found, shrinking: 0 pairs tried, 0 s" in shown
            assert f"{name}: violation found, confirming, " in shown
            assert shown.index(f"{name}:   0%") < shown.index(f"{name}: violation")
        assert without_clock(out) == unwatched


def test_lines_of_results_stay_whole(project: Any) -> None:
    project.audits(
        SLOW,
        *(
            project.audit(name, "slow", samples=8000, options='"detect_factor": 3.0')
            for name in ("one", "two", "three")
        ),
    )
    code, out, shown = run_watched(project, "run", "-j", "2")
    assert code == 0, out + shown
    assert "\r" not in out.replace("\r\n", "\n")
    assert "\x1b" not in out
    lines = out.splitlines()
    for name in ("one", "two", "three"):
        assert any(name in line and "samples" in line for line in lines), out


@pytest.mark.parametrize("watched", [False, True])
def test_no_line_is_shown_without_a_terminal(project: Any, watched: bool, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither a bar nor words about a small example are shown."""
    project.audits(
        SLOW, *(project.audit(f"of_{m}", m, samples=8000, options='"detect_factor": 3.0') for m in ("slow", "half"))
    )
    if watched:  # by a machine
        code, out, shown = run_watched(project, "run", "-j", "2", CI="true")
    else:
        code, out = project.run("run", "-j", "2")
        shown = capfd.readouterr().err
    assert (code, shown) == (1, ""), out + shown


@pytest.mark.parametrize("interrupt", [os.killpg, os.kill])
def test_an_interrupt_keeps_the_evidence_of_every_audit(interrupt: Any, project: Any) -> None:
    """Ctrl-C in a terminal reaches all processes of the run, an interrupt by a program its parent alone."""
    project.audits(SLOW, *(project.audit(name, "slow", samples=10**7) for name in ("one", "two")))
    process = subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "run", "-j", "2", "--output", "results.json"],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until = time.monotonic() + 60.0
    under_way: set[str] = set()
    while len(under_way) < 2 and time.monotonic() < until:
        lines = [
            line
            for path in project.root.glob(".dpaudit/*.jsonl")
            for line in path.read_text().splitlines()
            if line.endswith("}")
        ]
        under_way = {record["key"] for record in map(json.loads, lines) if record["kind"] == "round"}
        time.sleep(0.05)
    interrupt(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Interrupted; waiting up to 5 s for 2 audits (Ctrl-C again to stop now).\n" in err
    assert b"Interrupted: 2 of 2 audits have results, which are kept.\n" in err
    document = json.loads((project.root / "results.json").read_text())
    assert [audit["result"]["stopped_by"] for audit in document["audits"]] == ["interrupt"] * 2


def test_an_early_interrupt_is_answered_at_once_and_a_second_one_ends_the_wait(project: Any) -> None:
    project.audits(
        "import pathlib\nimport time\n",
        "def stuck(data, size, rng):\n    pathlib.Path('begun').touch()\n"
        "    while True:\n        try:\n            time.sleep(60)\n        except KeyboardInterrupt:\n            pass\n",
        *(project.audit(name, "stuck") for name in ("one", "two")),
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "run", "-j", "2"],
        cwd=project.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until = time.monotonic() + 60.0
    while not (project.root / "begun").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == b"Interrupted; waiting up to 5 s for 2 audits (Ctrl-C again to stop now).\n"
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < 4.0
    assert process.returncode == 130
    assert b"Interrupted before any of 2 audits had a result.\n" in err


class Deserted(Executor):
    """A cluster that has lost all of its workers: nothing that is sent there is ever done."""

    _client = SimpleNamespace(get_events=lambda _: (), nthreads=dict)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return Future()


def test_a_cluster_without_workers_ends_the_run(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cloudpickle", reason="Dask is not installed: pip install 'dpaudit[dask]'")
    monkeypatch.setattr(rounds, "LIMITS", replace(rounds.LIMITS, check_every=0.01, without_workers=0.1))
    monkeypatch.setattr(jobs, "executor_for", lambda _: contextlib.nullcontext(Deserted()))
    monkeypatch.setattr(task_runner, "WORTH_SENDING_FAR", 1e-12)  # so that everything is sent
    project.audits(project.audit("one"), project.audit("two"))
    code, out = project.run("run")
    assert code == 2
    assert "the cluster has had no worker for 0 seconds; start workers and run the audit again" in " ".join(out.split())
    assert f"ERROR  two: {jobs.NO_WORKERS}" in out  # not another minute


def test_the_board_removes_ended_audits(capfd: pytest.CaptureFixture[str]) -> None:
    with Board(wanted=True) as board:
        relay_to(board.pipe)
        try:
            with Progress("late", 100, 10.0, wanted=None) as progress:
                progress.advance(10)
                board.ended("late")
                time.sleep(0.3)
                progress.advance(10)
            with Progress("x" * 300, 100, 10.0, wanted=None), Progress("silent", 100, 10.0, wanted=False):
                time.sleep(0.3)
                with board.aside():
                    print("a line")
        finally:
            relay_to(None)
    out, err = capfd.readouterr()
    assert out == "a line\n"
    assert "xxx..." in err
    assert "silent" not in err


@pytest.mark.parametrize("sent", [False, True])
def test_words_take_the_place_of_the_bar(sent: bool, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = None if sent else True
    with Board(wanted=True) as board:
        relay_to(board.pipe if sent else None)
        try:
            with Progress("above", 100, 10.0, wanted=wanted), Progress("below", 100, 10.0, wanted=wanted):
                time.sleep(0.3)
            with Seeking("above", wanted=wanted) as seeking:
                seeking.shrinking(0)
                time.sleep(0.3)
                seeking.shrinking(1)
                seeking.shrinking(2)  # so soon it is not shown
                time.sleep(0.3)
                seeking.refresh()
                seeking.confirming()  # a change is, at once
                time.sleep(0.3)
                board.ended("above")
                seeking.refresh()
            seeking.shrinking(9)
            with Seeking("silent", wanted=False) as seeking:
                seeking.confirming()
            with Seeking("x" * 3000, wanted=wanted) as seeking:
                seeking.confirming()
                time.sleep(0.3)
        finally:
            relay_to(None)
    shown = capfd.readouterr().err
    stages = re.findall(r"above: violation found, (.*?), \d s", shown)
    assert list(dict.fromkeys(stages)) == [
        "shrinking: 0 pairs tried",
        "shrinking: 1 pair tried",
        "shrinking: 2 pairs tried",
        "confirming",
    ]
    assert "silent" not in shown
    assert f"{'x' * 27}...: violation found, confirming, 0 s" in shown
    if sent:  # the bar of the other audit stays where it is, below
        assert shown.count("\n") == shown.count("\x1b[A") > 0
        assert not re.search(r"\n[^\x1b]*above", shown)


@pytest.mark.parametrize("sent", [False, True])
def test_time_left_is_never_more_than_the_budget_of_time(sent: bool, capfd: pytest.CaptureFixture[str]) -> None:
    with Board(wanted=True) as board:
        relay_to(board.pipe if sent else None)
        try:
            # Samples alone would take days; three of the second bar's take a second.
            for samples, seconds in ((10**9, 20.0), (1003, 3600.0)):
                until = time.monotonic() + seconds
                with Progress(
                    f"of {samples}", samples, 10.0, wanted=None if sent else True, deadline=until
                ) as progress:
                    for part in (500, 500):
                        time.sleep(0.3)
                        progress.advance(part)
                    time.sleep(0.3)
        finally:
            relay_to(None)
    lines = [line for line in capfd.readouterr().err.split("\r") if "<" in line]
    of = {samples: [line for line in lines if f"of {samples}" in line] for samples in (10**9, 1003)}
    assert re.search(r"<00:(1\d|20), ", of[10**9][-1]), of
    assert "<00:00, " in of[1003][-1], of


def test_a_full_pipe_does_not_block() -> None:
    with Board(wanted=True) as board:
        relay_to(board.pipe)
        try:
            with board._lock, Progress("busy", 10**6, 10.0, wanted=None) as progress:  # the reader is stuck
                sender: Any = progress._bar
                begin = time.monotonic()
                for _ in range(20_000):
                    sender._send()
                assert time.monotonic() - begin < 20.0
        finally:
            relay_to(None)
