"""The objects that a function can reach: namespaces of the user's modules and objects, closures, functions, classes."""

from __future__ import annotations

import functools
import gc
import inspect
import random
import sys
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.symbolic.running.generator import SymbolicGenerator
from dpaudit.symbolic.values.paths import is_user_code
from dpaudit.symbolic.values.symbols import is_symbol

PYTHON_GENERATORS = (random.Random, random.SystemRandom)
"""Here, because the names in ``random`` may be replaced while a function runs."""
_MOST_VISITED = 20_000


@dataclass(frozen=True, slots=True)
class Reach:
    """The names that a function can reach: namespaces of the user's modules and objects, and closure cells."""

    namespaces: list[dict[str, Any]]
    cells: list[Any]
    functions: list[types.FunctionType]
    classes: list[type]
    hidden: list[Any]

    @classmethod
    def of(cls, function: Any) -> Reach:
        """Look for everything once; ``hidden`` are all generators that exist, wherever they are held."""
        names = _namespaces(function)
        own = {id(value): value for space in names for value in space.values() if type(value) is types.FunctionType}
        code = getattr(inspect.unwrap(function) if callable(function) else function, "__func__", function)
        if isinstance(code, types.FunctionType):
            own[id(code)] = code
        users = [each for each in own.values() if is_user_code(each.__code__.co_filename)]
        names = [*names, *(vars(each) for each in users)]  # attributes of functions
        cells = _cells(function, *users)
        roots = [*(value for space in names for value in space.values()), *(cell.cell_contents for cell in cells)]
        hidden = {id(item): item for item in (*_all_generators(), *_generators_within(roots))}
        kinds = {value for value in roots if issubclass(type(value), type)} | {type(function)}
        classes = [kind for kind in kinds if _namespace(kind) is not None]
        return cls(names, cells, list(own.values()), classes, list(hidden.values()))

    def states(self) -> list[Any]:
        """The states of all hidden generators: one that changes was drawn from."""
        return [_state_of(generator) for generator in self.hidden]


def _makes_draws(kind: type) -> bool:
    kinds = (np.random.Generator, np.random.RandomState, PYTHON_GENERATORS[0])
    return issubclass(kind, kinds) and not issubclass(kind, (SymbolicGenerator, PYTHON_GENERATORS[1]))


def _all_generators() -> list[Any]:
    """All generators that exist: by the few types of the many objects, because asking each object takes long."""
    objects = gc.get_objects()
    kinds = {kind for kind in set(map(type, objects)) if _makes_draws(kind)}
    return [item for item in objects if type(item) in kinds]


def _generators_within(roots: list[Any]) -> list[Any]:
    """Generators inside containers and objects, also those that the garbage collector was asked to ignore."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = list(roots)
    while waiting and len(seen) < _MOST_VISITED:
        item = waiting.pop()
        # isinstance() would ask a weak proxy for the class of its object, which may be gone.
        if id(item) in seen or issubclass(type(item), types.ModuleType | type | types.FunctionType | types.CodeType):
            continue
        seen.add(id(item))
        if _makes_draws(type(item)):
            found.append(item)
        elif gc.is_tracked(item):
            waiting.extend(gc.get_referents(item))
    return found


def _state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return _written(generator.bit_generator.state)
    if isinstance(generator, PYTHON_GENERATORS[0]):
        return hash(generator.getstate())
    return _written(generator.get_state(legacy=False))


def _written(state: Any) -> Any:
    """The state of one of numpy's generators as something that can be compared."""
    if isinstance(state, dict):
        return tuple((key, _written(value)) for key, value in state.items())
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _namespaces(function: Any) -> list[dict[str, Any]]:
    """The global names of the user's modules that a function can reach, and the attributes of the objects it belongs to."""
    found: dict[int, dict[str, Any]] = {}
    waiting: list[tuple[Any, int]] = [(function, 0)]
    seen: set[int] = set()
    while waiting:
        value, depth = waiting.pop()
        if id(value) in seen or depth > 5 or len(found) > 400:
            continue
        seen.add(id(value))
        value = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value
        waiting.extend((part, depth + 1) for part in _parts(value))
        namespace = _namespace(value)
        if namespace is None or id(namespace) in found:
            continue
        found[id(namespace)] = namespace
        waiting.extend(
            (other, depth + 1)
            for other in namespace.values()
            if issubclass(type(other), types.ModuleType | types.FunctionType | type)
            or _own_attributes(other) is not None
        )
    return list(found.values())


def _parts(value: Any) -> list[Any]:
    """Functions and objects that a callable is made of."""
    parts = []
    if isinstance(value, functools.partial):
        parts += [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.MethodType):
        parts += [value.__func__, value.__self__]
    if isinstance(value, types.FunctionType):
        parts += [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
    if not isinstance(value, type | types.ModuleType | types.FunctionType):
        parts.append(type(value))
        parts += [getattr(value, name, None) for name in getattr(type(value), "__slots__", ()) if isinstance(name, str)]
    if isinstance(value, type):
        parts += [item for item in vars(value).values() if isinstance(item, types.FunctionType)]
    return parts


def _namespace(value: Any) -> dict[str, Any] | None:
    if isinstance(value, types.ModuleType):
        return _if_users(vars(value))
    if isinstance(value, types.FunctionType):
        typed_in = value.__code__.co_filename.startswith("<") and value.__code__.co_filename != "<string>"
        return value.__globals__ if typed_in else _if_users(value.__globals__)
    if isinstance(value, type):
        module = sys.modules.get(value.__module__)
        return None if module is None else _if_users(vars(module))
    return _own_attributes(value)


def _if_users(names: dict[str, Any]) -> dict[str, Any] | None:
    """The global names of a module if it is the user's; a main program without a file (a prompt) is."""
    filename = names.get("__file__")
    own = names.get("__name__") == "__main__" if filename is None else is_user_code(filename)
    return names if own else None


def _own_attributes(value: Any) -> dict[str, Any] | None:
    """The attributes of an instance of a class of the user's."""
    # Nothing is asked of the value itself before its class is known to be the user's: it may be a proxy of what is gone.
    if issubclass(type(value), types.ModuleType | types.FunctionType | type) or is_symbol(value):
        return None
    module = sys.modules.get(type(value).__module__)
    if module is None or _if_users(vars(module)) is None or not hasattr(value, "__dict__"):
        return None
    attributes: dict[str, Any] = vars(value)
    return attributes


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _cells(*functions: Any) -> list[Any]:
    """The closure cells of functions and of the functions in them."""
    found: list[Any] = []
    waiting = list(functions)
    while waiting:
        value = waiting.pop()
        if isinstance(value, functools.partial):
            waiting.append(value.func)
        value = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value
        value = getattr(value, "__func__", value)
        for cell in getattr(value, "__closure__", None) or ():
            if _filled(cell) and not any(cell is other for other in found):
                found.append(cell)
                waiting.append(cell.cell_contents)
    return found
