"""Functions of the main program: the script of a witness repeats their source, and runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit.engine.witness.main_source import main_source

AUDIT = """
import dpaudit
import statistics as st
from fractions import Fraction
from typing import Any

import numpy as np

SCALE, NAMES = 0.5, ["a"]


def centre(data):
    return len(data) + int(Fraction(1, 2)) + 0 * st.mean([0, len(NAMES)])


{decorator}
def noisy(data: list[Any], size: int, rng: np.random.Generator) -> np.ndarray:
    values = centre(data) + rng.laplace(scale=SCALE, size=size)
    return values


if __name__ == "__main__":
    result = dpaudit.audit({mechanism}, dpaudit.PureDP(1.0), [([], [1])], seed=0)
    print(result.witness.script())
"""


@pytest.mark.parametrize(("decorator", "mechanism"), [("", "dpaudit.batched(noisy)"), ("@dpaudit.batched", "noisy")])
def test_the_script_of_a_main_program_runs_without_it(tmp_path: Path, decorator: str, mechanism: str) -> None:
    (tmp_path / "main.py").write_text(AUDIT.format(decorator=decorator, mechanism=mechanism))
    script = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert "PLACEHOLDER" not in script
    (tmp_path / "main.py").unlink()
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "event on data" in done.stdout


def defined(tmp_path: Path, text: str) -> object:
    """The function `f` of a program, as the main program has it."""
    path = tmp_path / "program.py"
    path.write_text(text)
    names = {"__name__": "__main__"}
    exec(compile(text, str(path), "exec"), names)
    return names["f"]


@pytest.mark.parametrize(
    "text",
    [
        "f = lambda data: 1",
        "held = object()\ndef f(data): return held",
        "def make():\n    value = 1\n    def f(data): return value\n    return f\nf = make()",
        "def event(): return 1\ndef f(data): return event()",
        "import statistics as math\ndef f(data): return math.mean(data)",
        "def f(data): return undefined",
        "class Own:\n    def __call__(self, data): return 1\nf = Own()",
    ],
    ids=["lambda", "object", "closure", "name of the script", "another math", "undefined", "instance"],
)
def test_code_without_source_stays_a_placeholder(tmp_path: Path, text: str) -> None:
    assert main_source(defined(tmp_path, text)) is None


def test_local_names_need_no_definition(tmp_path: Path) -> None:
    found = main_source(defined(tmp_path, "count = object()\ndef f(data):\n    count = len(data)\n    return count\n"))
    assert found is not None
    assert found.definitions == "def f(data):\n    count = len(data)\n    return count"
