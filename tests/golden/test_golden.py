"""Pinned audits give the results that they gave: ``make golden`` pins them anew where a change is meant."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.golden.cases import CASES, Case
from tests.golden.digest import digests
from tests.golden.pinned import PARTS, difference, pinned

PINNED = pinned()
CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
PINNED_NUMPY = re.findall(r"^numpy==(.+)$", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)[0]


@pytest.mark.skipif(np.__version__ != PINNED_NUMPY, reason="results are pinned for the versions of constraints.txt")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_result_is_as_pinned(case: Case) -> None:
    changed = difference(case.name, PINNED.get(case.name), digests(case.run()))
    assert not changed, f"{changed}\n  If this is meant, run `make golden`."


def test_all_pinned_results_have_a_case() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert list(PINNED) == names


@pytest.mark.parametrize("name", [name for name in PINNED if name.endswith("workers 2")])
def test_workers_change_no_result(name: str) -> None:
    shared, alone = PINNED[name], PINNED[name.replace("workers 2", "workers 0")]
    assert [shared[part] for part in PARTS] == [alone[part] for part in PARTS]
