"""Every addition is named where users look for it: report formats, commands, adapters, public names, fields.

CONTRIBUTING.md, "Where to add something", lists the places; a forgotten one fails here.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import types
from pathlib import Path

import pytest

import dpaudit
from dpaudit import adapters, report
from dpaudit.cli import commands
from dpaudit.cli.grammar import PACKAGE_COMMANDS, build_parser
from dpaudit.cli.main import COMMAND_FUNCTIONS
from dpaudit.report import FORMATS
from dpaudit.result.model import Frequency, Result, Witness

ROOT = Path(__file__).parents[2]
ADAPTERS = {module.name for module in pkgutil.iter_modules(adapters.__path__) if not module.name.startswith("_")}


def text_of(*path: str) -> str:
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


def test_every_report_is_a_format():
    modules = [module.name for module in pkgutil.iter_modules(report.__path__)]
    with_render = {
        name for name in modules if "\ndef render(document: Document" in text_of("dpaudit", "report", f"{name}.py")
    }
    assert with_render == set(FORMATS), "FORMATS in dpaudit/report/__init__.py"


@pytest.mark.parametrize("name", FORMATS)
def test_a_report_format_is_documented(name):
    assert f"| `--{name} FILE` |" in text_of("docs", "report.md")
    (row,) = (
        line for line in text_of("docs", "pytest.md").splitlines() if line.startswith("| `--dpaudit-report FILE`")
    )
    assert FORMATS[name][1] in row


def test_every_command_runs_and_is_documented():
    parsers = build_parser()[1]
    assert set(parsers) == set(COMMAND_FUNCTIONS), "COMMAND_FUNCTIONS in dpaudit/cli/main.py"
    page = text_of("docs", "command_line.md")
    assert [name for name in {*parsers, *PACKAGE_COMMANDS} if f"\ndpaudit {name}" not in page] == []


def test_every_module_of_a_command_is_used():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "dpaudit" / "cli").glob("*.py"))
    unused = [
        module.name for module in pkgutil.iter_modules(commands.__path__) if f"commands.{module.name} " not in sources
    ]
    assert unused == []


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_an_adapter_is_documented(name):
    assert f":mod:`dpaudit.adapters.{name}`" in (importlib.import_module("dpaudit.adapters").__doc__ or "")
    assert f"automodule:: dpaudit.adapters.{name}\n" in text_of("docs", "reference", "adapters.md")
    assert f"| `adapters.{name}` |" in text_of("docs", "libraries.md")


def test_every_public_name_is_in_the_reference():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    whole_modules = set(re.findall(r"automodule:: (\S+)", text))
    names = {name: getattr(dpaudit, name) for name in dpaudit.__all__}
    missing = {
        name
        for name, value in names.items()
        if not isinstance(value, types.ModuleType)
        and f":: dpaudit.{name}\n" not in text
        and value.__module__.rpartition(".")[0] not in whole_modules
        and value.__module__ not in whole_modules
    }
    assert missing == set()
    assert {
        name for name, value in names.items() if isinstance(value, types.ModuleType) and f"dpaudit.{name}" not in text
    } == set()


@pytest.mark.parametrize("kind", [Result, Witness, Frequency], ids=lambda kind: kind.__name__)
def test_every_field_of_a_result_is_described(kind):
    (declared,) = ast.parse(inspect.getsource(kind)).body
    fields = [place for place, part in enumerate(declared.body) if isinstance(part, ast.AnnAssign)]
    assert len(fields) >= 4
    bare = [declared.body[place].target.id for place in fields if not isinstance(declared.body[place + 1], ast.Expr)]
    assert bare == []
