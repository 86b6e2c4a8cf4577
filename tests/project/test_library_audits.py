"""Audits of current releases: one file an adapter, and the extras ``libraries`` and ``opacus`` install what they audit.

Nothing is run.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from dpaudit import Audit, Verdict

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = sorted((REPOSITORY / "audits" / "libraries").glob("*.py"))


@pytest.fixture(autouse=True)
def repository_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def load(path: Path):
    return importlib.import_module(f"audits.libraries.{path.stem}")


def test_every_adapter_has_audits():
    adapters = {path.stem for path in (REPOSITORY / "dpaudit" / "adapters").glob("[!_]*.py")}
    assert {path.stem.removesuffix("_audits") for path in FILES} == adapters


def test_the_extra_installs_what_is_audited():
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    wanted = [*extras["libraries"], *extras["opacus"]]
    installed = {re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in wanted} - {"torch"}  # opacus' own
    packages = {"sklearn": "scikit-learn", "dp_accounting": "dp-accounting"}
    asked = {name for path in FILES for name in re.findall(r'find_spec\("(\w+)"\)', path.read_text(encoding="utf-8"))}
    assert {packages.get(name, name) for name in asked} == installed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_can_be_imported_without_its_library(path):
    module = load(path)
    assert isinstance(module.AUDITS, list)
    assert module.AUDITS or not module.INSTALLED
    for audit in module.AUDITS:
        check(audit)


@pytest.mark.parametrize(
    ("name", "made"), [("diffprivlib_audits", "_all"), ("flower_audits", "rounds"), ("opacus_audits", "steps")]
)
def test_definitions_need_no_library(name, made):
    found = getattr(importlib.import_module(f"audits.libraries.{name}"), made)()
    assert len({audit.name for audit in found}) == len(found)
    assert {audit.expect for audit in found} == {Verdict.VIOLATION, Verdict.NO_VIOLATION_FOUND}
    for audit in found:
        check(audit)


def check(audit: Audit) -> None:
    where = audit.neighbours() if callable(audit.neighbours) else audit.neighbours
    assert audit.expect is not None
    assert audit.claim.relation is where.relation is not None
