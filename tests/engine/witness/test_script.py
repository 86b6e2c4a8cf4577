"""Scripts of witnesses: they run, count what was counted, and need as little of this package as they can."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import Witness
from tests.engine.witness import scripted

WITHOUT_US = "import sys\nsys.modules['dpaudit'] = None\n"  # an import of it raises


class Sampling:
    """A mechanism with the method ``sample``, whose repr makes it again."""

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return scripted.interval(data, size, rng)

    def __repr__(self) -> str:
        return "Sampling()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sampling)

    __hash__ = None  # type: ignore[assignment]


def witness_of(mechanism: Any, **options: Any) -> Witness:
    result = dpaudit.audit(mechanism, dpaudit.PureDP(0.1), [([], [1])], samples=40_000, **options)
    assert result.witness is not None, result
    return result.witness


def imported(script: str) -> set[str]:
    """Return the modules of this package that a script imports."""
    nodes = list(ast.walk(ast.parse(script)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name for name in names if name.split(".")[0] == "dpaudit"}


def counts(script: str) -> list[int]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])}
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return [int(count) for count in re.findall(r": +(\d+) of", shown.stdout)]


def check_counts(witness: Witness, script: str) -> None:
    """Compare with the counts of the witness: both are binomial, so six standard deviations of a difference are allowed."""
    trials = witness.on_data.trials
    for counted, measured in zip(counts(script), (witness.on_data, witness.on_neighbour), strict=True):
        share = (counted + measured.count + 1) / (2 * trials)
        assert abs(counted - measured.count) <= 6.0 * (2.0 * trials * share * (1.0 - share)) ** 0.5 + 6


@pytest.mark.parametrize(
    ("mechanism", "expression"),
    [
        (dpaudit.batched(scripted.interval), r"output (<|>=) -?[\d.]+"),
        (Sampling(), r"output (<|>=) -?[\d.]+"),
        (dpaudit.per_release(scripted.coordinate), r"output\[2\] .*"),
        (dpaudit.per_release(scripted.entry), r"output\['mean'\] .*"),
        (dpaudit.batched(scripted.row), r"output\[2\] .*"),
        (dpaudit.per_release(scripted.flag), r"output (<|>=) 1.0"),
        (dpaudit.per_release(scripted.nothing), r"output is None|isinstance\(output, .*\)"),
        (dpaudit.per_release(scripted.key), r"hasattr\(output, 'keys'\) and sorted\(output.keys\(\)\) == .*"),
        (scripted.category, r"output == '(yes|no)'"),
        (scripted.failure, r"type\(output\).__name__ == 'ValueError'|isinstance\(output, .*\)"),
        (dpaudit.batched(scripted.failing_batch), r"type\(output\).__name__ == 'ValueError'|isinstance\(output, .*\)"),
    ],
    ids=lambda value: getattr(getattr(value, "__wrapped__", value), "__name__", "") or None,
)
def test_a_simple_event_needs_numpy_and_the_function_alone(mechanism: Any, expression: str) -> None:
    witness = witness_of(mechanism)
    assert re.fullmatch(expression, witness.event_code), witness.event_code
    assert not imported(witness.script_text)
    # The mechanism itself is in this test's package, which may import ours; nothing else does.
    body = witness.script_text
    if not isinstance(mechanism, Sampling):
        body = WITHOUT_US + body
    check_counts(witness, body)


@pytest.mark.parametrize(
    "mechanism",
    [
        dpaudit.per_release(scripted.lists),
        dpaudit.per_release(scripted.kinds_of_number),
        dpaudit.batched(scripted.shared_noise),
        dpaudit.fresh(scripted.make),
        "tests.engine.witness.scripted:make",
    ],
    ids=["lists", "kinds_of_number", "score", "fresh", "named"],
)
def test_any_other_script_imports_replay_alone(mechanism: Any) -> None:
    witness = witness_of(mechanism)
    assert imported(witness.script_text) == {"dpaudit.replay"}
    check_counts(witness, witness.script_text)


def test_bits_are_read_by_replay() -> None:
    witness = witness_of(dpaudit.batched(scripted.added_noise), channel="representation")
    assert "lowest_bit" in witness.event_code
    assert imported(witness.script_text) == {"dpaudit.replay"}
    check_counts(witness, witness.script_text)
