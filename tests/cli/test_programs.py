"""``dpaudit check --command``, and programs in audit files."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

import pytest

COUNT = """
import json, random
for line in open(0):
    asked = json.loads(line)
    draw = random.Random(asked["seed"])
    noise = [draw.expovariate(2.0) - draw.expovariate(2.0) for _ in range(asked["size"])]
    print(json.dumps({"outputs": [len(asked["data"]) + x for x in noise]}), flush=True)
"""
ROWS = ("--epsilon", "1", "--rows", "integers(0, 1)", "--relation", "add-remove", "--max-size", "1")
COMMAND = shlex.join([sys.executable, "-I", "-S", "count.py"])


def test_a_program_is_checked_in_the_current_folder(project: Any) -> None:
    project.write("count.py", COUNT)
    code, out = project.run("check", "--command", COMMAND, "--mode", "stream", *ROWS)
    assert code == 1
    assert out.startswith(f"VIOLATION  {COMMAND}: claimed PureDP(epsilon=1.0)")
    code, _ = project.run("check", "--command", COMMAND, "--mode", "stream", "--workers", "2", *ROWS)
    assert code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--command", "./missing"], "cannot be started in folder="),
        (["--command", "true"], "unreadable answer: nothing, instead of JSON"),
        (["--command", "true", "mech.py:f"], "leave out TARGET and --calls"),
        (["--command", "true", "--calls", "data"], "leave out TARGET and --calls"),
        (["--command", "true", "--mode", "stream", "--data-as", "csv"], "is for mode='once'"),
        (["--mode", "stream", "mech.py:f"], "--mode is for programs: name one with --command"),
        ([], "Name a function .*, or a program with --command"),
    ],
)
def test_wrong_options_are_named(
    project: Any, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert project.run("check", *words, "--samples", "1000", *ROWS)[0] == 2
    assert re.search(message, capsys.readouterr().err)


def test_programs_in_audit_files_run(project: Any) -> None:
    project.write("count.py", COUNT)
    project.audits(
        f'a = dpaudit.Audit(name="a", mechanism=dpaudit.program({COMMAND!r}, "stream", folder={str(project.root)!r}), '
        'claim=dpaudit.PureDP(1.0), neighbours=PAIR, expect="VIOLATION")\n'
    )
    code, out = project.run("run", "audits")
    assert code == 0, out
    assert "1 of 1 expectations met" in out
