"""One name, one meaning: a class or a constant of the package is found by its name alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "dpaudit").rglob("*.py"))

CLASSES_TWICE = {
    "Raised": "mechanism/interpreter.py is run by other interpreters, which have nothing of this package",
}
CONSTANTS_TWICE = {
    "CHAPTER": "every module of statements/rows names the chapter of its rows",
    "THEOREMS": "every module of accuracy/statements lists its theorems, and theorems.py lists all",
}


def classes() -> dict[str, set[str]]:
    """Return the places of every class, by its name."""
    found = defaultdict(set)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def constants() -> dict[str, set[str]]:
    """Return the definitions of every public name that a module assigns, by the name."""
    found = defaultdict(set)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in (part for target in targets for part in ast.walk(target)):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and not name.id.startswith("_"):
                        found[name.id].add(ast.unparse(node.value))
    return found


def test_a_class_name_occurs_once():
    assert {name: where for name, where in classes().items() if len(where) > 1 and name not in CLASSES_TWICE} == {}


def test_a_public_constant_has_one_value():
    """The same alias may stand in several modules (``Floats``), but a name with two values misleads a reader."""
    assert {name: all_ for name, all_ in constants().items() if len(all_) > 1 and name not in CONSTANTS_TWICE} == {}


def test_every_exception_is_needed():
    assert all(len(classes()[name]) > 1 for name in CLASSES_TWICE)
    assert all(len(constants()[name]) > 1 for name in CONSTANTS_TWICE)
