"""The ladder of budgets on which other auditors are compared, with drivers made up for the purpose."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.peers import __main__ as peers

ladder = sys.modules.get("ladder") or __import__("ladder")
FIRST = next(iter(peers.MECHANISMS))


def climbed(monkeypatch: pytest.MonkeyPatch, driver: Any, most: int = 10_000) -> dict[str, Any]:
    monkeypatch.setitem(ladder.TOOLS, "made up", peers.TOOLS["dpaudit"].__class__(driver, most=most))
    return ladder.climb("made up", FIRST, 60.0)


def test_the_fewest_outputs_are_the_median_of_those_that_sufficed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = climbed(monkeypatch, lambda sample, budget, seed: budget - seed if budget >= 1000 and seed < 3 else None)
    assert found == {"outputs": 999, "why": ""}


def test_a_tool_that_refutes_nothing_reports_the_largest_number_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert climbed(monkeypatch, lambda *_: None) == {"outputs": None, "why": "not with 10,000"}
    assert climbed(monkeypatch, lambda *_: None, most=2000) == {"outputs": None, "why": "not with 1,000"}


def test_outputs_that_a_tool_cannot_read_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def driver(sample: Any, budget: int, seed: int) -> int | None:
        raise ladder.CannotRead("one number only")

    assert climbed(monkeypatch, driver)["why"] == "one number only"


def test_the_table_has_a_row_for_each_mechanism() -> None:
    rows = [{"tool": "made up", "mechanism": FIRST, "outputs": 1000, "why": ""}]
    lines = peers.table(rows).splitlines()
    assert len(lines) == 2 + len(peers.MECHANISMS) == 12
    assert lines[2] == f"| {FIRST} | 1,000 |"


@pytest.mark.parametrize("name", peers.MECHANISMS)
def test_the_mechanisms_give_one_output_for_each_release(name: str) -> None:
    outputs = peers.MECHANISMS[name](1, 7, np.random.default_rng(0))
    assert len(outputs) == 7
    assert outputs.dtype == np.float64
