"""The museum's catalogue, its README and its scripts agree. No network: no exhibit is run, no library is needed."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import runpy
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from types import ModuleType

import pytest

from dpaudit import Audit, Verdict
from dpaudit.errors import MissingDependency
from dpaudit.mechanism.isolated import Isolated

REPOSITORY = Path(__file__).resolve().parents[2]
MUSEUM = REPOSITORY / "audits" / "museum"
EXHIBITS = tomllib.loads((MUSEUM / "exhibits.toml").read_text(encoding="utf-8"))
TEXTS = {"library", "version", "bug", "upstream", "claim", "script"}


@pytest.fixture(scope="module", autouse=True)
def repository_on_path():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY))
        yield


def script(exhibit: dict) -> ModuleType:
    return importlib.import_module(f"audits.museum._exhibits.{Path(exhibit['script']).stem}")


def audits(module: ModuleType) -> dict[str, Audit]:
    found: dict[str, Audit] = {}
    for value in vars(module).values():
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, Audit):
                assert found.setdefault(item.name, item) is item, f"two audits are called {item.name!r}"
    return found


@pytest.mark.parametrize("name", EXHIBITS)
def test_an_exhibit_says_everything(name):
    exhibit = EXHIBITS[name]
    assert exhibit.keys() - {"alone"} == TEXTS | {"requires", "expect"}
    assert all(isinstance(exhibit[key], str) and exhibit[key] for key in TEXTS)
    pinned = [*exhibit["requires"], *exhibit.get("alone", [])]
    if exhibit["library"].startswith("mechanisms."):
        assert not pinned  # nothing to install
    else:
        assert f"{exhibit['library']}=={exhibit['version']}" in pinned
    assert "https://github.com/" in exhibit["upstream"] or "no report known" in exhibit["upstream"]


@pytest.mark.parametrize("name", EXHIBITS)
def test_a_script_audits_what_the_catalogue_expects(name):
    exhibit = EXHIBITS[name]
    found = audits(script(exhibit))
    assert {audit: item.expect.value for audit, item in found.items()} == exhibit["expect"]
    if exhibit["bug"].startswith("none"):
        assert set(exhibit["expect"].values()) == {Verdict.NO_VIOLATION_FOUND.value}
    else:
        assert Verdict.VIOLATION.value in exhibit["expect"].values()
    for item in found.values():
        assert item.claim.relation is not None
        where = item.neighbours() if callable(item.neighbours) else item.neighbours
        assert where.relation is item.claim.relation


def test_fixes_make_the_same_calls():
    fixed = {name: exhibit for name, exhibit in EXHIBITS.items() if exhibit["bug"].startswith("none")}
    assert fixed
    for exhibit in fixed.values():
        after = audits(script(exhibit))
        before = next(
            found
            for other in EXHIBITS.values()
            if not other["bug"].startswith("none") and (found := audits(script(other))).keys() == after.keys()
        )
        for audit, item in after.items():
            assert (item.claim, item.options) == (before[audit].claim, before[audit].options)


def test_every_script_is_shown():
    files = {path.name for path in (MUSEUM / "_exhibits").glob("*.py") if not path.name.startswith("_")}
    assert files == {exhibit["script"] for exhibit in EXHIBITS.values()}


def test_functions_of_released_versions_are_there_and_need_nothing_of_dpaudit(monkeypatch):
    called = set()
    for exhibit in EXHIBITS.values():
        if exhibit["library"].startswith("mechanisms."):
            continue
        for audit in audits(script(exhibit)).values():
            monkeypatch.delenv("MUSEUM_PYTHON", raising=False)
            with pytest.raises(MissingDependency, match="audits/museum/run"):
                audit.mechanism()
            monkeypatch.setenv("MUSEUM_PYTHON", sys.executable)
            mechanism = audit.mechanism()
            assert isinstance(mechanism, Isolated)
            file, _, function = mechanism.function.rpartition(":")
            assert re.search(rf"\b{function}\b", Path(file).read_text(encoding="utf-8")), mechanism.function
            called.add(Path(file).name)
    files = list((MUSEUM / "_released").glob("*.py"))
    assert called == {file.name for file in files} - {"module_alone.py"}
    for file in files:
        assert not re.search(r"^\s*(import|from) (dpaudit|audits|mechanisms)\b", file.read_text(), re.MULTILINE), file


def test_the_readme_has_a_row_for_every_exhibit():
    rows = {}
    for line in (MUSEUM / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"`[a-z0-9-]+`", cells[0]):
            rows[cells[0].strip("`")] = cells[1:]
    assert list(rows) == list(EXHIBITS)
    for name, (library, _, upstream, claim, shown) in rows.items():
        exhibit = EXHIBITS[name]
        assert library == f"{exhibit['library']} {exhibit['version']}"
        assert claim == exhibit["claim"]
        assert re.findall(r"https://\S+/\d+", exhibit["upstream"]) == re.findall(r"\((https://\S+?)\)", upstream)

        assert ("VIOLATION" in shown.replace("NO_VIOLATION_FOUND", "")) == ("VIOLATION" in exhibit["expect"].values())


def listed(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, MUSEUM / "run", *arguments], capture_output=True, text=True, check=False)


def test_the_script_lists_the_exhibits():
    shown = listed()
    assert shown.returncode == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == list(EXHIBITS)
    explained = listed("--help")
    assert explained.returncode == 0
    assert "MUSEUM_HOME" in explained.stdout
    unknown = listed("no-such-exhibit")
    assert unknown.returncode == 2
    assert "'no-such-exhibit' is not an exhibit" in unknown.stderr
    assert "did you mean opendp-0-15-0-bitvec" in listed("opendp-0.15.0-bitvec").stderr


@pytest.mark.parametrize("cause", [subprocess.CalledProcessError(1, "pip"), KeyboardInterrupt()], ids=["pip", "Ctrl-C"])
def test_an_environment_that_cannot_be_finished_leaves_nothing_behind(cause, tmp_path, monkeypatch, capsys):
    run = runpy.run_path(str(MUSEUM / "run"))
    monkeypatch.setenv("MUSEUM_HOME", str(tmp_path))
    monkeypatch.setattr(venv, "create", lambda root, **options: root.mkdir())

    def fail(*arguments, **options):
        assert list(tmp_path.iterdir())
        raise cause

    monkeypatch.setattr(subprocess, "run", fail)
    if isinstance(cause, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            run["main"](["pure-ldp-1-2-0-unary"])
    else:
        assert run["main"](["pure-ldp-1-2-0-unary"]) == 2
        assert "is PyPI within reach?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_module_alone_runs_none_of_its_parents(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(MUSEUM / "_released"))
    released = importlib.import_module("module_alone")
    package = tmp_path / "old_release"
    (package / "part").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('no longer installs')")
    (package / "part" / "__init__.py").write_text("from ..sibling import VALUE")
    (package / "sibling.py").write_text("VALUE = 7")
    record = tmp_path / "old_release-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: old-release\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    try:
        assert released.module_alone("old_release.part", "old-release").VALUE == 7
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        released.module_alone("other.part", "no-such-distribution")
