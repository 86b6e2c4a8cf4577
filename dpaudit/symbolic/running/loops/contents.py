"""Everything that code can reach, by its contents: two equal descriptions mean that nothing has changed.

The walk starts at variables and at the global names that code uses, and goes on through containers, objects, functions (their
closures, defaults, attributes and the global names that they use), classes and modules. It knows a list of kinds. Whatever
is not on the list raises NotComparable: an iterator, a generator, an open file, an object of a library, ``globals()``.

A mutable object is described by its identity and its contents, so that an equal object in its place is a difference: others
may hold the first one. Symbols are described up to the names of their draws, which are collected.
"""

from __future__ import annotations

import collections
import dis
import enum
import functools
import re
import sys
import types
import typing
from abc import ABC, ABCMeta
from collections.abc import Hashable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.values.arrays import SymbolicArray
from dpaudit.symbolic.values.paths import Draw, is_user_code
from dpaudit.symbolic.values.symbols import Image, Linear, PendingComparison, Steps, is_symbol

_MOST_ITEMS = 1000
_MOST_OBJECTS = 20_000
IMMUTABLE = (bool, int, str, bytes, type(None), type(...), type(NotImplemented), range, Fraction, Decimal)
_SAME = (
    np.ufunc,
    np.dtype,
    re.Pattern,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.DynamicClassAttribute,
)
"""Kinds without a state of their own."""
_PURE_PACKAGES = {
    *("builtins", "math", "cmath", "statistics", "operator", "numpy", "scipy", "pandas", "random", "secrets", "copy"),
    *(
        "itertools",
        "functools",
        "collections",
        "typing",
        "dataclasses",
        "abc",
        "enum",
        "fractions",
        "decimal",
        "bisect",
    ),
    *("heapq", "string", "numbers", "types", "re", "reprlib", "__future__"),
}
"""Packages whose functions keep no state, apart from what they return."""
_REFUSED_NAMES = {
    *("globals", "locals", "vars", "eval", "exec", "compile", "__import__", "open", "input", "breakpoint", "dir"),
    *("__dict__", "__globals__", "__closure__", "__code__", "__builtins__", "f_locals", "f_globals", "f_back"),
}
"""Names with which code reaches what its own names do not show."""
_BY_TEXT = {"getattr", "setattr", "delattr"}
_GENERATORS = "dpaudit.symbolic.running.generator"
_CLASS_NOISE = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__slots__", "_abc_impl"),
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__abstractmethods__", "__parameters__"),
    *("__orig_bases__", "__firstlineno__", "__static_attributes__", "__annotations_cache__", "__annotate_func__"),
}
_METACLASSES = (type, ABCMeta, type(typing.Protocol), enum.EnumMeta)
_BASES = (object, ABC, typing.Generic, typing.Protocol, enum.Enum)


class NotComparable(Exception):
    """Something that can be reached is of a kind whose contents are not known here."""


class Contents:
    """One walk: the draws that were met, and the mutable objects."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.objects: dict[int, Any] = {}
        self._modules: list[types.ModuleType] = []
        self._names: dict[str, None] = {}

    def of(self, value: Any) -> Hashable:
        """Describe a value with all that it leads to; modules follow in :meth:`of_modules`."""
        kind = type(value)
        if is_symbol(value):
            return self._of_symbol(value)
        if kind in IMMUTABLE:
            return kind, value
        if kind in (float, complex) or issubclass(kind, np.generic):
            return kind, np.asarray(value).tobytes()
        if kind in (tuple, frozenset):
            return kind, self._items(value)
        if issubclass(kind, _SAME) or kind.__module__ == "typing" or kind.__name__ == "_ArrayFunctionDispatcher":
            return "same", self._identity(value)
        if kind is slice:
            return kind, tuple(map(self.of, (value.start, value.stop, value.step)))
        if id(value) in self.objects:
            return "again", id(value)
        if len(self.objects) >= _MOST_OBJECTS:
            raise NotComparable
        self._identity(value)
        return kind, id(value), self._of_object(value, kind)

    def of_modules(self) -> Hashable:
        """Describe the attributes of the modules that were met, as far as code names them."""
        found: list[Hashable] = []
        done: set[tuple[int, str]] = set()
        grown = True
        while grown:
            grown = False
            for module in list(self._modules):
                users = is_user_code(getattr(module, "__file__", None) or "<")
                if users and not _BY_TEXT.isdisjoint(self._names):
                    raise NotComparable
                for name in list(self._names):
                    if (id(module), name) in done or name not in vars(module):
                        continue
                    done.add((id(module), name))
                    value = vars(module)[name]
                    if users or type(value) in (*IMMUTABLE, float, list, dict, set):  # state that was put on a library
                        found.append((module.__name__, name, self.of(value)))
                        grown = True
        return tuple(found)

    def of_code(self, code: types.CodeType, names: dict[str, Any]) -> Hashable:
        """Describe the global names that code uses."""
        found: list[Hashable] = []
        global_names, attributes, imports, changes = _names_in(code)
        if changes or not _REFUSED_NAMES.isdisjoint({*global_names, *attributes}):
            raise NotComparable
        self._names.update(dict.fromkeys([*attributes, *(name for name in global_names if name in _BY_TEXT)]))
        for name in global_names:
            if name in names:
                found.append((name, self.of(names[name])))
            elif name in _BUILTINS:
                found.append((name, self.of(_BUILTINS[name])))
        for name in imports:
            for place in range(name.count(".") + 1):
                module = sys.modules.get(name.rsplit(".", place)[0])
                if module is None:
                    raise NotComparable
                found.append(self.of(module))
        return tuple(found)

    def _identity(self, value: Any) -> int:
        self.objects[id(value)] = value  # held, so that no other object gets its number
        return id(value)

    def _items(self, values: Any) -> Hashable:
        if len(values) > _MOST_ITEMS:
            raise NotComparable
        return tuple(map(self.of, values))

    def _pairs(self, mapping: Any) -> Hashable:
        if len(mapping) > _MOST_ITEMS:
            raise NotComparable
        return tuple((self.of(key), self.of(item)) for key, item in dict.items(mapping))

    def _of_object(self, value: Any, kind: type) -> Hashable:
        if kind in (list, set):
            return self._items(value)
        if kind is collections.deque:
            return value.maxlen, self._items(value)
        if kind in (dict, collections.OrderedDict, collections.Counter):
            return self._pairs(value)
        if kind is collections.defaultdict:
            return self.of(value.default_factory), self._pairs(value)
        if kind is SymbolicArray:
            return value.dtype.str, value.shape, self._items(value.cells.ravel().tolist())
        if kind is np.ndarray:
            content = self._items(value.ravel().tolist()) if value.dtype.hasobject else value.tobytes()
            return value.dtype.str, value.shape, content
        if kind is types.FunctionType:
            return self._of_function(value)
        if kind in (
            types.BuiltinFunctionType,
            types.MethodType,
            functools.partial,
            property,
            staticmethod,
            classmethod,
        ):
            return self._of_callable(value, kind)
        if kind is types.ModuleType:
            return self._of_module(value)
        if issubclass(kind, type):
            return self._of_class(value)
        if kind is types.SimpleNamespace:
            return self._pairs(vars(value))
        if kind.__module__ == _GENERATORS:
            return "draws"  # the symbolic generators keep no state
        if is_user_code(_file_of(kind)):
            return self._of_instance(value, kind)
        raise NotComparable

    def _of_function(self, function: types.FunctionType) -> Hashable:
        code = function.__code__
        cells = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
        if (function.__module__ or "").startswith("dpaudit.symbolic."):  # a draw, or what stands in for a function
            return code, tuple(cell for cell in cells if isinstance(cell, str))
        if not is_user_code(code.co_filename):  # a decorator of a library may hold a function of the user's
            return self._pure(function.__globals__.get("__name__")), tuple(map(self.of, cells))
        return (
            code,
            tuple(map(self.of, cells)),
            tuple(map(self.of, function.__defaults__ or ())),
            self._pairs(function.__kwdefaults__ or {}),
            self._pairs(vars(function)),
            self.of_code(code, function.__globals__),
        )

    def _of_callable(self, value: Any, kind: type) -> Hashable:
        if kind is types.MethodType:
            return self.of(value.__func__), self.of(value.__self__)
        if kind is functools.partial:
            return self.of(value.func), self.of(value.args), self._pairs(value.keywords), self._pairs(vars(value))
        if kind is property:
            return tuple(map(self.of, (value.fget, value.fset, value.fdel)))
        if kind is not types.BuiltinFunctionType:
            return self.of(value.__func__)
        if value.__name__ in _REFUSED_NAMES:
            raise NotComparable
        if value.__self__ is None or isinstance(value.__self__, types.ModuleType):
            return self._pure((value.__module__ or "").lstrip("_"))
        return value.__name__, self.of(value.__self__)  # a bound method, such as ``pop`` of a list

    def _pure(self, module: str | None) -> Hashable:
        name = module or ""
        if name.partition(".")[0] not in _PURE_PACKAGES and not name.startswith("dpaudit.symbolic."):
            raise NotComparable
        return "same"

    def _of_module(self, module: types.ModuleType) -> Hashable:
        if not is_user_code(getattr(module, "__file__", None) or "<frozen"):
            self._pure(module.__name__)
        self._modules.append(module)
        return "module"

    def _of_class(self, kind: type) -> Hashable:
        if not is_user_code(_file_of(kind)):
            return self._pure(kind.__module__)
        if type(kind) not in _METACLASSES:
            raise NotComparable
        own = [(name, value) for name, value in vars(kind).items() if name not in _CLASS_NOISE]
        return self._items(kind.__bases__), tuple((name, self.of(value)) for name, value in own)

    def _of_instance(self, value: Any, kind: type) -> Hashable:
        content: Hashable = None
        for base in kind.__mro__:
            if is_user_code(_file_of(base)) or base in _BASES:
                continue
            if base not in (tuple, list, dict, int, float, str):
                raise NotComparable
            content = self._pairs(value) if base is dict else self._base_content(base, value)
        slots = [
            (name, self.of(_slot(member, value)))
            for base in kind.__mro__
            for name, member in vars(base).items()
            if type(member) is types.MemberDescriptorType
        ]
        attributes = vars(value) if hasattr(value, "__dict__") else {}
        return self.of(kind), content, tuple(slots), self._pairs(attributes)

    def _base_content(self, base: Any, value: Any) -> Hashable:
        if base in (tuple, list):
            return self._items(list(base.__iter__(value)))
        return str(base.__repr__(value))

    def _of_symbol(self, value: Any) -> Hashable:
        for drawn in value.draws():
            if drawn not in self.draws:
                self.draws.append(drawn)
        places = tuple(self.draws.index(drawn) for drawn in value.draws())
        match value:
            case Linear():
                return "linear", places, tuple(factor for _, factor in value.terms), value.constant, value.integer
            case Image():
                return "image", places, value.chain, value.integer
            case Steps():
                return "steps", places, tuple((region, self.of(item)) for region, item in value.cells)
            case PendingComparison():
                return "comparison", self._of_symbol(value.linear), value.strict
        raise NotComparable


_BUILTINS: dict[str, Any] = vars(sys.modules["builtins"])


def _file_of(kind: type) -> str:
    module = sys.modules.get(kind.__module__)
    if module is not None and module.__name__ == "__main__" and not hasattr(module, "__file__"):
        return "<stdin>"
    return getattr(module, "__file__", None) or "<frozen"


def _slot(member: types.MemberDescriptorType, value: Any) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:
        return None


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@functools.lru_cache(maxsize=1024)
def _names_in(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], bool]:
    """Return the global names, attributes and imports that code uses, functions inside of it too; and if it sets globals."""
    global_names: dict[str, None] = {}
    attributes: dict[str, None] = {}
    imports: dict[str, None] = {}
    changes = False
    for inner in _codes(code):
        for step in dis.get_instructions(inner):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
                global_names[step.argval] = None
            elif step.opname == "IMPORT_NAME":
                imports[step.argval] = None
            elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                changes = True
            elif isinstance(step.argval, str) and step.opcode in dis.hasname:
                attributes[step.argval] = None
    return tuple(global_names), tuple(attributes), tuple(imports), changes
