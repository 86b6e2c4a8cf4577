"""Audits of current releases: one file an adapter, and the extras ``libraries`` and ``opacus`` install what they audit.

Nothing is run.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import dpaudit
from dpaudit import Audit, Verdict

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = sorted((REPOSITORY / "audits" / "libraries").glob("[!_]*.py"))


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


def test_the_scoreboard_names_functions_that_are_there():
    entries = importlib.import_module("audits.libraries._entries")
    files = set()
    for library in entries.LIBRARIES:
        own = not library.file.startswith("..")
        file = REPOSITORY / "audits" / "libraries" / ("_functions" if own else "") / library.file
        files |= {file.name} if own else set()
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (dpaudit|audits|mechanisms)\b", text, re.MULTILINE), file
        for call in library.calls:
            assert re.search(rf"^(def {call.function}\(|.*\b{call.function}\b.*=)", text, re.MULTILINE), call.function
            assert call.claim.relation is not None
    assert files == {path.name for path in (REPOSITORY / "audits" / "libraries" / "_functions").glob("*.py")}
    assert not {library.name for library in entries.LIBRARIES} & entries.NOT_RUN.keys()


def test_a_row_of_the_scoreboard():
    scoreboard = importlib.import_module("audits.libraries._scoreboard")
    entries = importlib.import_module("audits.libraries._entries")
    library = entries.LIBRARIES[0]
    call = library.calls[0]
    half = dpaudit.batched(lambda data, size, rng: data + rng.laplace(scale=0.4, size=size))
    plain = dpaudit.audit(half, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=5_000, shrink=False).to_dict()
    row = scoreboard._row(library, "1.2", call, plain)
    assert row[:6] == [library.name, "1.2", f"`{call.function}`", "epsilon 1", "answers", "VIOLATION"]
    assert row[-1] == "not yet reported"
    assert len(row) == scoreboard.TITLE.splitlines()[-2].count("|") - 1
    assert len(scoreboard._row(library, "1.2", call, {"error": "no | such function"})) == len(row)


def check(audit: Audit) -> None:
    where = audit.neighbours() if callable(audit.neighbours) else audit.neighbours
    assert audit.expect is not None
    assert audit.claim.relation is where.relation is not None
