"""Source of a function that the main program or a notebook defines, with everything that it needs.

A script cannot import from ``__main__``, so it repeats the function: its source, the imports behind the names that it uses, plain
constants, and other functions of the main program. If one of these names stands for anything else, there is no such source.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import textwrap
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class MainSource:
    """Import lines, and definitions in an order in which they can be run."""

    imports: tuple[str, ...]
    definitions: str


SCRIPT_NAMES = frozenset(
    (
        "mechanism",
        "data",
        "neighbour",
        "event",
        "outputs",
        "count",
        "trials",
        "on_data",
        "on_neighbour",
        "ratio",
        "placeholder",
    )
)
"""Global names of a script: what is repeated in it may not look up another meaning of these when it is called."""
SCRIPT_MODULES = {"math": "math", "np": "numpy", "random": "random"}


class _NoSource(Exception):
    """Something has no source that a script could contain."""


def main_source(function: Any) -> MainSource | None:
    """Return the source of a function of the main program, or None if it needs more than can be written down."""
    if not isinstance(function, FunctionType):
        return None
    found = _Collected()
    try:
        found.function(function)
    except (
        _NoSource,
        OSError,
        TypeError,
        SyntaxError,
        RecursionError,
    ):  # OSError: typed at a prompt, so there is no file
        return None
    return MainSource(tuple(sorted(found.imports - {"import math", "import numpy as np"})), "\n\n\n".join(found.parts))


@dataclass(slots=True)
class _Collected:
    imports: set[str] = field(default_factory=set)
    parts: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def function(self, function: FunctionType) -> None:
        if function.__closure__ or not function.__qualname__.isidentifier():  # a lambda, or inside of something
            raise _NoSource
        text = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(text).body[0]
        if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
            raise _NoSource
        names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        decorators = {
            node.id for part in definition.decorator_list for node in ast.walk(part) if isinstance(node, ast.Name)
        }
        own = set(inspect.signature(function).parameters) | set(function.__code__.co_varnames)
        for name in sorted(names - decorators - own - {definition.name}):
            if name in function.__globals__:
                self.name(name, function.__globals__[name])
            elif not hasattr(builtins, name) and name in function.__code__.co_names:
                raise _NoSource
        # Without its decorators: what they make of it is written as dpaudit's own wrapper, or is no plain function.
        self.parts.append("\n".join(text.splitlines()[definition.lineno - 1 :]).rstrip())

    def name(self, name: str, value: Any) -> None:
        if name in self.seen:
            return
        self.seen.add(name)
        if name in SCRIPT_NAMES or getattr(value, "__name__", None) != SCRIPT_MODULES.get(
            name, getattr(value, "__name__", None)
        ):
            raise _NoSource
        if isinstance(value, ModuleType):
            self.imports.add(f"import {value.__name__}" + ("" if name == value.__name__ else f" as {name}"))
        elif isinstance(value, FunctionType) and value.__module__ == "__main__":
            self.function(value)
        elif _importable(value):
            suffix = "" if name == value.__name__ else f" as {name}"
            self.imports.add(f"from {value.__module__} import {value.__name__}{suffix}")
        elif _literal(value):
            self.parts.append(f"{name} = {value!r}")
        else:
            raise _NoSource


def _importable(value: Any) -> bool:
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return False
    try:
        return getattr(importlib.import_module(module), name, None) is value
    except ImportError:
        return False


def _literal(value: Any) -> bool:
    try:
        return (
            type(value) in (bool, int, float, str, tuple, list, dict, type(None))
            and ast.literal_eval(repr(value)) == value
        )
    except (ValueError, SyntaxError):
        return False
