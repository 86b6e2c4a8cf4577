"""Audits of current releases: one file an adapter, and the extras ``libraries``, ``opacus`` and ``jax`` install what they audit.

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
    wanted = [*extras["libraries"], *extras["opacus"], *extras["jax"]]
    installed = {re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in wanted} - {"torch"}  # opacus' own
    packages = {"sklearn": "scikit-learn", "dp_accounting": "dp-accounting", "jax_privacy": "jax-privacy"}
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
    ("name", "made"),
    [
        ("diffprivlib_audits", "_all"),
        ("flower_audits", "rounds"),
        ("opacus_audits", "steps"),
        ("jax_privacy_audits", "steps"),
    ],
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
        file = library.path
        files |= {file.name} if file.parent.name == "_functions" else set()
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (dpaudit|audits|mechanisms)\b", text, re.MULTILINE), file
        for call in library.calls:
            assert re.search(rf"^(def {call.function}\(|.*\b{call.function}\b.*=)", text, re.MULTILINE), call.function
            assert call.claim.relation is not None
        for account in library.accounts:
            assert re.search(rf"^(def {account.function}\(|.*\b{account.function}\b.*=)", text, re.MULTILINE), account
    assert files == {path.name for path in (REPOSITORY / "audits" / "libraries" / "_functions").glob("*.py")}
    assert not {library.name for library in entries.LIBRARIES} & entries.NOT_RUN.keys()


def test_a_row_of_the_scoreboard():
    scoreboard = importlib.import_module("audits.libraries._scoreboard")
    entries = importlib.import_module("audits.libraries._entries")
    library = entries.LIBRARIES[0]
    call = library.calls[0]
    half = dpaudit.batched(lambda data, size, rng: data + rng.laplace(scale=0.4, size=size))
    plain = dpaudit.audit(half, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=5_000, shrink=False).to_dict()
    pages = {}
    row = scoreboard._row(library, "1.2", call, plain, pages)
    assert row[:6] == [library.name, "1.2", f"`{call.function}`", "epsilon 1", "answers", "VIOLATION"]
    ((name, page),) = pages.items()
    assert row[-1] == f"not yet reported; [witness](witnesses/{name})"
    assert len(row) == scoreboard.COLUMNS == scoreboard.TITLE.splitlines()[-2].count("|") - 1
    again = scoreboard._rows_of(f"{scoreboard.TITLE}| {' | '.join(row)} |\n")
    assert again == {scoreboard._identity(row): [row]}
    assert len(scoreboard._row(library, "1.2", call, {"error": "no | such function"}, {})) == len(row)
    assert f"pip install {library.name}==1.2" in page
    script = page.partition("```python\n")[2].partition("```")[0]
    compile(script, name, "exec")
    assert f'dpaudit.isolated(sys.argv[1], "audits/libraries/_functions/{library.file}:{call.function}"' in script
    assert "Isolated(" not in script


def test_an_inconclusive_row_says_how_many_samples_would_decide():
    scoreboard = importlib.import_module("audits.libraries._scoreboard")
    entries = importlib.import_module("audits.libraries._entries")
    library = entries.LIBRARIES[0]
    whole = dpaudit.batched(lambda data, size, rng: data + rng.laplace(size=size))
    plain = dpaudit.audit(whole, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=1_000, shrink=False).to_dict()
    row = scoreboard._row(library, "1.2", library.calls[0], plain, {})
    assert row[5] == "INCONCLUSIVE"
    assert re.match(r"Too few samples: .*\. About [\d,]+ samples would decide\.$", row[-1])


def test_a_row_of_an_accountant():
    scoreboard = importlib.import_module("audits.libraries._scoreboard")
    entries = importlib.import_module("audits.libraries._entries")
    library = next(library for library in entries.LIBRARIES if library.accounts)
    stored = {
        "verdict": "VIOLATION",
        "flaws": ["understates"],
        "reported": 1.0,
        "truth": 2.0,
        "checked": 7,
        "refusal": None,
        "seed": 0,
        "seconds": 1.0,
        "text": "VIOLATION",
    }
    pages = {}
    row = scoreboard._account_row(library, "1.2", library.accounts[0], stored, pages)
    assert len(row) == scoreboard.COLUMNS
    assert row[5:8] == ["VIOLATION", "2 (reports 1)", "7"]
    assert all(page.count("```") == 4 for page in pages.values())


def test_witnesses_belong_to_rows_and_name_no_machine():
    folder = REPOSITORY / "audits" / "libraries"
    table = (folder / "SCOREBOARD.md").read_text(encoding="utf-8")
    pages = {path.name: path.read_text(encoding="utf-8") for path in (folder / "witnesses").glob("*.md")}
    assert set(re.findall(r"\(witnesses/([^)]+)\)", table)) == set(pages)
    for page in pages.values():
        assert not re.search(r"/(home|root|tmp|usr|work)/", page)
        compile(page.partition("```python\n")[2].partition("```")[0], "witness", "exec")


def check(audit: Audit) -> None:
    where = audit.neighbours() if callable(audit.neighbours) else audit.neighbours
    assert audit.expect is not None
    assert audit.claim.relation is where.relation is not None
