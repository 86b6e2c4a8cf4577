"""Variables outside a function that a run may change: seen by their contents, and put back."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.values import fingerprint
from dpaudit.symbolic.running.reach import Reach
from dpaudit.symbolic.values.paths import Stop

_PLAIN = (bool, int, float, complex, str, bytes, list, dict, set, tuple, np.ndarray, type(None), np.generic)
_CONTAINERS = (list, dict, set, np.ndarray)
_MOST_ITEMS = 1000
"""Largest container whose contents are compared; of larger ones only the length is."""


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable: where it is, its value, a copy of a container's contents, and what they look like."""

    owner: Any
    name: str | None
    value: Any
    contents: Any
    print: Hashable

    @classmethod
    def of(cls, owner: Any, name: str | None, value: Any) -> _Variable:
        contents = copy.copy(value) if isinstance(value, _CONTAINERS) and _length(value) <= _MOST_ITEMS else None
        return cls(owner, name, value, contents, _print(value))

    def current(self) -> Any:
        return self.owner.cell_contents if self.name is None else self.owner.get(self.name, _GONE)

    def restore(self) -> bool:
        """Put the value and its contents back; return True if anything had changed."""
        changed = False
        if self.current() is not self.value:
            changed = True
            if self.name is None:
                self.owner.cell_contents = self.value
            else:
                self.owner[self.name] = self.value
        if _print(self.value) != self.print:
            changed = True
            if self.contents is None:
                return changed
            if isinstance(self.value, list):
                self.value[:] = self.contents
            elif isinstance(self.value, dict | set):
                self.value.clear()
                self.value.update(self.contents)
            else:
                self.value[...] = self.contents
        return changed


_GONE = object()


def _print(value: Any) -> Hashable:
    if isinstance(value, _CONTAINERS) and _length(value) > _MOST_ITEMS:
        return _length(value)
    try:
        return fingerprint(value)
    except (Exception, Stop):  # contents that cannot be read, a symbol among them
        return id(value), _length(value), "unreadable"


def _length(value: Any) -> int:
    return value.size if isinstance(value, np.ndarray) else len(value) if hasattr(value, "__len__") else 1


@dataclass(frozen=True, slots=True)
class _ClassAttributes:
    """The attributes of a class, by the interface of a dictionary."""

    kind: type

    def get(self, name: str, default: Any) -> Any:
        return vars(self.kind).get(name, default)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.kind, name, value)


class PlainVariables:
    """The plain variables that a function can reach, as they were when this was made."""

    def __init__(self, reach: Reach) -> None:
        self.names = [(namespace, set(namespace)) for namespace in reach.namespaces]
        self.variables = [
            _Variable.of(namespace, name, value)
            for namespace in reach.namespaces
            for name, value in namespace.items()
            if not name.startswith("__") and issubclass(type(value), _PLAIN)
        ]
        for function in reach.functions:
            held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
            self.variables += [
                _Variable.of({"": value}, "", value) for value in held if issubclass(type(value), _CONTAINERS)
            ]
        for kind in reach.classes:
            self.variables += [
                _Variable.of(_ClassAttributes(kind), name, value)
                for name, value in vars(kind).items()
                if not name.startswith("__") and issubclass(type(value), _PLAIN)
            ]
        self.variables += [
            _Variable.of(cell, None, cell.cell_contents)
            for cell in reach.cells
            if issubclass(type(cell.cell_contents), _PLAIN)
        ]

    def restore(self) -> bool:
        """Put everything back; return True if anything had changed."""
        changed = [variable.restore() for variable in self.variables]
        for namespace, names in self.names:
            for added in set(namespace) - names:
                if not added.startswith("__"):
                    del namespace[added]
                    changed.append(True)
        return any(changed)
