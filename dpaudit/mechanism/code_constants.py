"""Constants in the code of a mechanism: the numbers and words at which it may behave differently."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator
from typing import Any

MOST_CONSTANTS = 64
"""Constants that are returned at most, in the order of the code."""
MOST_FUNCTIONS = 16
"""Functions that are read at most: the mechanism's own, and those of its module that it names."""
LONGEST_WORD = 40
"""Longer text is a message."""


def code_constants(mechanism: Any) -> tuple[int | float | str | bytes, ...]:
    """Return numbers and short words in the code of a mechanism and of the functions of its module that it names.

    Whole numbers come with the two numbers beside them, because a comparison changes its answer there.

    >>> def nosy(data, rng):
    ...     return len(data) + rng.laplace() + (100 in data)
    >>> code_constants(nosy)
    (100, 99, 101)
    """
    found: dict[tuple[type, Any], int | float | str | bytes] = {}
    for code in _codes(mechanism):
        for value in code.co_consts:
            for constant in _with_neighbours(value):
                found.setdefault((type(constant), constant), constant)
    return tuple(found.values())[:MOST_CONSTANTS]


def _with_neighbours(value: Any) -> Iterator[int | float | str | bytes]:
    if isinstance(value, tuple | frozenset):
        for part in sorted(value, key=repr):
            yield from _with_neighbours(part)
    elif isinstance(value, bool):
        return
    elif isinstance(value, int):
        yield from (value, value - 1, value + 1)
    elif (isinstance(value, float) and math.isfinite(value)) or (
        isinstance(value, str | bytes) and len(value) <= LONGEST_WORD
    ):
        yield value


def _codes(mechanism: Any) -> Iterator[types.CodeType]:
    """Yield the code of a mechanism's function, of its methods, and of functions of the same module that they name."""
    waiting: list[Any] = [mechanism]
    seen: set[int] = set()
    functions = 0
    while waiting and functions < MOST_FUNCTIONS:
        item = waiting.pop(0)
        if id(item) in seen:
            continue
        seen.add(id(item))
        inner = getattr(item, "__wrapped__", None) or getattr(item, "__func__", None) or getattr(item, "func", None)
        if inner is not None:
            waiting.append(inner)
        elif isinstance(item, types.FunctionType):
            functions += 1
            yield from _nested(item.__code__)
            cells = [cell.cell_contents for cell in item.__closure__ or () if _filled(cell)]
            named = [item.__globals__.get(name) for name in item.__code__.co_names]
            waiting += [
                other
                for other in (*cells, *named)
                if isinstance(other, types.FunctionType) and other.__module__ == item.__module__
            ]
        elif not isinstance(item, type | types.ModuleType):
            methods = [vars(kind).get(name) for kind in type(item).__mro__ for name in ("sample", "__call__")]
            waiting += [method for method in methods if isinstance(method, types.FunctionType)][:1]


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _nested(value)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
