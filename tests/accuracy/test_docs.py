"""The page on the printed theorems: its numbers are those that its commands print (test_docs checks that they parse)."""

from __future__ import annotations

import argparse
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from dpaudit._util.terminal.console import Console
from dpaudit.accuracy import command
from dpaudit.accuracy.theorems import names

PAGE = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text()
COMMANDS = re.findall(r"^\s*`dpaudit accuracy ([^`]+)`$", PAGE, flags=re.MULTILINE)


def parse(text: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dpaudit accuracy")
    command.add_arguments(parser)
    return parser.parse_args(shlex.split(text))


def output(start: str) -> str:
    (text,) = [text for text in COMMANDS if text.startswith(start)]
    stdout = io.StringIO()
    assert command.run(parse(text), Console(stdout), Console(sys.stderr)) == 0
    return stdout.getvalue()


def test_every_statement_has_its_command():
    assert len(COMMANDS) > 18
    assert all(text.split()[0] == "compare" or text.split()[1] in names() for text in COMMANDS)


@pytest.mark.parametrize(
    ("start", "shown"),
    [
        ("show above-threshold", ["84.773078", "37.99209"]),
        ("show threshold-in-histogram", ["0.774687: VIOLATED"]),
        ("show empirical-decile", [">= 0.38742049", "truth 0: VIOLATED"]),
        ("show histogram-uniform --n 1000", [">= 0.94847264", "truth 0: VIOLATED"]),
        ("show mean-error --n", ["<= 0.21300125", "in [0.22", "VIOLATED"]),
        ("show mean-error-corollary", ["<= 0.195", "in [0.20", "VIOLATED"]),
        ("show mean-error-closed", ["<= 0.13043822", "in [0.139", "VIOLATED"]),
        ("show naive-median", ["= 1\n", "= 0.5\n", "= 0.39346934"]),
        ("show randomised-response", ["0.22222222", "0.055555556", "0.0533333"]),
        ("show gaussian-variance", ["truth 0.5: VIOLATED", "truth 1: holds"]),
        ("show bounded-noise", ["VIOLATED"]),
    ],
)
def test_numbers_of_the_page(start, shown):
    text = output(start)
    for words in shown:
        assert words in text
