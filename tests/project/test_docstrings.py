"""Docstrings of the package: how they begin, and what those of the public functions say."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import dpaudit

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("dpaudit", "mechanisms", "benchmarks", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
PACKAGES = (
    "accountant",
    "accuracy",
    "anonymity",
    "baseline",
    "exact",
    "neighbours",
    "replay",
    "statements",
    "symbolic",
    "training",
)
QUESTIONS = re.compile(r'^\s*r?"""(?:What|Whether|Where|Who)\b.*', re.MULTILINE)


def test_a_docstring_begins_with_a_verb_or_a_noun():
    found = {str(path.relative_to(ROOT)): QUESTIONS.findall(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_a_module_begins_with_a_docstring():
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    assert [str(path) for path, text in texts.items() if text and not text.startswith(('"""', 'r"""'))] == []


def public_functions():
    """Return the functions that ``dpaudit`` or one of its public packages exports, and the methods of its classes, by name."""
    packages = [dpaudit, *(importlib.import_module(f"dpaudit.{name}") for name in PACKAGES)]
    exported = {
        f"{package.__name__}.{name}": getattr(package, name) for package in packages for name in package.__all__
    }
    functions = {name: value for name, value in exported.items() if inspect.isfunction(value)}
    for name, value in exported.items():
        if inspect.isclass(value):
            functions |= {
                f"{name}.{method}": function
                for method, function in vars(value).items()
                if inspect.isfunction(function) and not method.startswith("_")
            }
    return functions


def documents_parameters(function):
    text = inspect.getdoc(function) or ""
    return "Parameters\n---" in text or re.search(
        r"(arguments as for|keywords of|parameters are those of) :func:", text
    )


def test_a_public_function_of_more_than_two_parameters_documents_them():
    functions = public_functions()
    assert len(functions) > 100
    many = {
        name: value
        for name, value in functions.items()
        if len(inspect.signature(value).parameters) - ("self" in inspect.signature(value).parameters) > 2
    }
    assert [name for name, value in many.items() if not documents_parameters(value)] == []
