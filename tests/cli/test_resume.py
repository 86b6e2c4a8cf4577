"""A run that is killed, and taken up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

COUNTED = (
    "from pathlib import Path\n"
    "def counted(data, size, rng):\n"
    "    Path('called').touch()\n"
    "    return noisy(data, size, rng)\n"
)


def results(path: str) -> list[Any]:
    document = json.loads(Path(path).read_text())
    for audit in document["audits"]:
        del audit["result"]["seconds"]
    return [document["complete"], document["audits"]]


def test_a_killed_run_that_is_resumed_gives_the_same_result(project: Any) -> None:
    project.audits(*(project.audit(f"audit{k}", samples=100_000) for k in range(4)))
    project.run("run", "--output", "whole.json")

    command = [sys.executable, "-u", "-m", "dpaudit", "run"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    first = run.stdout.readline()
    assert first.startswith("NO_VIOLATION_FOUND  audit0")
    time.sleep(0.05)  # somewhere in the second audit
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    journal = max(Path(".dpaudit").glob("run-*.jsonl"))
    with journal.open("a") as file:
        file.write('{"kind": "resul')

    again = subprocess.run([*command, "--resume", "--output", "resumed.json"], capture_output=True, text=True)
    assert again.returncode == 0
    assert "the last line is incomplete, as after a kill, and ignored." in again.stdout
    assert "audit0" in again.stdout.split("[from the journal]")[0]
    assert 1 <= again.stdout.count("[from the journal]") < 4
    assert results("resumed.json") == results("whole.json")


def test_rounds_are_written_as_they_are_settled(project: Any) -> None:
    project.audits(project.audit("good"))
    project.run("run")
    lines = [json.loads(line) for line in max(Path(".dpaudit").glob("*.jsonl")).read_text().splitlines()]
    rounds = [line for line in lines if line["kind"] == "round"]
    assert len(rounds) > 5
    assert [line["samples"] for line in rounds] == sorted(line["samples"] for line in rounds)
    assert [line["kind"] for line in lines if line["kind"] != "round"] == ["run", "began", "result", "end"]
    assert len({line["key"] for line in lines if "key" in line}) == 1


def interrupted(project: Any, definition: str) -> None:
    """A journal of a run that has one audit done and did not end."""
    project.audits(COUNTED, definition)
    project.run("run")
    journal = max(Path(".dpaudit").glob("*.jsonl"))
    journal.write_text(journal.read_text().replace('{"kind": "end"}\n', ""))
    Path("called").unlink()


def test_only_exact_matches_are_reused(project: Any) -> None:
    definition = project.audit("one", "counted")
    interrupted(project, definition)
    code, out = project.run("run", "--resume")
    assert code == 0
    assert "[from the journal]" in out
    assert not Path("called").exists()


@pytest.mark.parametrize("change", ["option", "seed", "claim", "source"])
def test_a_changed_audit_is_run_again(project: Any, change: str) -> None:
    definition = project.audit("one", "counted")
    interrupted(project, definition)
    words = {"option": ("--samples", "20_002"), "seed": ("--seed", "1")}.get(change, ())
    if change == "claim":
        definition = definition.replace("PureDP(1.0)", "PureDP(1.1)")
    if change in ("claim", "source"):
        project.audits(COUNTED, definition, "# a remark\n")
        project.fresh()
    _, out = project.run("run", "--resume", *words)
    assert "[from the journal]" not in out
    assert Path("called").exists()


def test_a_resumed_run_can_be_resumed(project: Any) -> None:
    interrupted(project, project.audit("one", "counted"))
    project.run("run", "--resume")
    journal = max(Path(".dpaudit").glob("*.jsonl"))
    journal.write_text(journal.read_text().replace('{"kind": "end"}\n', ""))
    assert "[from the journal]" in project.run("run", "--resume")[1]


def test_a_damaged_result_is_run_again(project: Any) -> None:
    interrupted(project, project.audit("one", "counted"))
    journal = max(Path(".dpaudit").glob("*.jsonl"))
    journal.write_text(journal.read_text().replace('"verdict": "NO_VIOLATION_FOUND"', '"verdict": "FINE"'))
    code, out = project.run("run", "--resume")
    assert code == 0
    assert "A result in the journal is damaged and ignored" in out
    assert Path("called").exists()


def test_a_reused_violation_is_still_a_violation(project: Any) -> None:
    interrupted(project, project.audit("one", "counted").replace("PureDP(1.0)", "PureDP(0.3)"))
    code, out = project.run("run", "--resume")
    assert "[from the journal]" in out
    assert code == 1
