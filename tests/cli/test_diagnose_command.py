"""``dpaudit sensitivity``, ``diagnose`` and ``completion``."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from dpaudit.cli.commands.completion import completion_script
from dpaudit.cli.grammar import all_parsers

DATA = ("--rows", "integers(0, 240)", "--relation", "add-remove", "--max-size", "3")
CODE = """
def total(visits):
    print("looking")
    return sum(min(minutes, 60) for minutes in visits)

def release(visits, rng):
    return total(visits) + rng.laplace(scale=60)
"""


@pytest.mark.parametrize(
    ("bound", "code", "words"), [("60", 0, "largest change found: 60"), ("59", 1, "changes by 60")]
)
def test_sensitivity_ends_with_its_verdict(project: Any, bound: str, code: int, words: str) -> None:
    project.write("shop.py", CODE)
    done, text = project.run("sensitivity", "shop.py:total", "--bound", bound, *DATA, "--examples", "30")
    assert done == code
    assert words in text
    assert "looking" not in text


def test_diagnose_names_the_part_that_is_wrong(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("shop.py", CODE)
    stages = ("--query", "shop.py:total", "--epsilon", "1", "--samples", "5e3", *DATA)
    done, text = project.run("diagnose", "shop.py:release", *stages, "--noise", "laplace(30)", "--sensitivity", "30")
    assert done == 1
    assert "the sensitivity is larger than declared; the noise is not the declared one" in text
    for noise, reason in (("laplac(30)", "Did you mean 'laplace'?"), ("laplace(x)", "'x' is not a number")):
        assert project.run("diagnose", "shop.py:release", *stages, "--noise", noise, "--sensitivity", "60")[0] == 2
        assert reason in capsys.readouterr().err


def completed(*words: str) -> list[str]:
    line = (
        f"{completion_script('bash', all_parsers())}\n"
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _dpaudit; echo ${{COMPREPLY[@]}}"
    )
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_options_choices_and_subcommands() -> None:
    assert completed("dpaudit", "sens") == ["sensitivity"]
    assert completed("dpaudit", "check", "--rel") == ["--relation"]
    assert completed("dpaudit", "check", "--relation", "''") == ["add-remove", "substitute", "zero-out"]
    assert completed("dpaudit", "accuracy", "sh") == ["show"]
    assert completed("dpaudit", "check", "unknown") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_the_scripts(shell: str, project: Any) -> None:
    code, script = project.run("completion", shell)
    assert code == 0
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=script, text=True, check=True, capture_output=True)
