"""Put functions that accept symbols in the place of the usual ones while the user's code runs.

``math.log`` and the like everywhere; ``float``, ``int``, ``min`` and ``max`` in the user's modules only; numpy's functions that
make arrays when they are called from the user's code, because a symbol may be written into one later. Replays with plain
numbers run without all this, so a difference that it makes is found there.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.symbolic.running.loops.places import is_called
from dpaudit.symbolic.running.reach import Reach
from dpaudit.symbolic.running.undo import Undo
from dpaudit.symbolic.values import arithmetic, comparing, transforming
from dpaudit.symbolic.values.array_functions import FUNCTIONS, MOVING, asarray_of
from dpaudit.symbolic.values.arrays import SymbolicArray, has_symbols
from dpaudit.symbolic.values.paths import is_user_code
from dpaudit.symbolic.values.symbols import is_symbol

_DISPATCHED = type(np.sum)  # functions that let an array of another kind answer
_MATH = {
    "log": "log",
    "log1p": "log1p",
    "log2": "log2",
    "log10": "log10",
    "exp": "exp",
    "expm1": "expm1",
    "sqrt": "sqrt",
    "fabs": "absolute",
    "isnan": "isnan",
    "isfinite": "isfinite",
    "isinf": "isinf",
}


_OF_LISTS = sorted(
    name
    for name in FUNCTIONS.keys() - MOVING
    if isinstance(getattr(np, name, None), _DISPATCHED) and not name.endswith("_like")
)
"""Functions of numpy that are followed for arrays: numpy asks a list for plain numbers before it looks at what is in it."""


@contextlib.contextmanager
def symbolic_functions(reach: Reach) -> Iterator[None]:
    """Replace functions that would ask a symbol for a plain number."""
    undo = Undo()
    try:
        for name, method in _MATH.items():
            undo.attribute(math, name, _math_function(getattr(math, name), method))
        undo.attribute(math, "copysign", _math_pair(math.copysign, "copysign"))
        for name in ("floor", "ceil"):
            undo.attribute(math, name, _math_function(getattr(math, name), name))
        for name in ("zeros", "ones", "empty", "full"):
            undo.attribute(np, name, _maker(getattr(np, name)))
        for name in ("zeros_like", "ones_like", "empty_like", "full_like"):
            undo.attribute(np, name, _maker(getattr(np, name)))
        for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
            undo.attribute(np, name, _converter(getattr(np, name)))
        for name in _OF_LISTS:
            undo.attribute(np, name, _of_lists(getattr(np, name)))
        for namespace in reach.namespaces:
            if not isinstance(namespace.get("__name__"), str):
                continue
            for name, value in (("float", Float), ("int", Int), ("min", _extreme(min)), ("max", _extreme(max))):
                if name not in namespace:
                    undo.item(namespace, name, value)
        yield
    finally:
        undo.all()


@functools.lru_cache(maxsize=64)
def _math_function(plain: Callable[..., Any], method: str) -> Callable[..., Any]:
    def function(x: Any, *rest: Any) -> Any:
        if type(x) is SymbolicArray and x.size == 1:
            x = x.item()
        if not is_symbol(x):
            return plain(x, *rest)
        value = arithmetic.unary(method, x)
        return value / plain(rest[0]) if rest else value

    return function


@functools.lru_cache(maxsize=64)
def _math_pair(plain: Callable[..., Any], method: str) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        return arithmetic.binary(method, x, y) if is_symbol(x) or is_symbol(y) else plain(x, y)

    return function


def _called_by_user(function: Any) -> bool:
    """Return True if the user's code calls a replaced function itself.

    Compiled code has no frame, and calls numpy too: a generator with a seed makes its arrays by ``numpy.empty``, and would read
    an array of symbols as one of floats.
    """
    frame = sys._getframe(2)
    return is_user_code(frame.f_code.co_filename) and is_called(function, frame)


@functools.lru_cache(maxsize=64)
def _maker(plain: Callable[..., Any]) -> Callable[..., Any]:
    """numpy.zeros and the like: from the user's code, an array into which symbols can be written."""

    @functools.wraps(plain)
    def function(*args: Any, **options: Any) -> Any:
        args = tuple(getattr(arg, "symbolic_dtype", arg) for arg in args)
        options = {key: getattr(value, "symbolic_dtype", value) for key, value in options.items()}
        if has_symbols(args) or has_symbols(tuple(options.values())):
            fill = args[1] if len(args) > 1 else options.get("fill_value", 0)
            if plain.__name__ == "full" and is_symbol(fill):
                dtype = options.get("dtype", args[2] if len(args) > 2 else None)
                made = SymbolicArray(
                    np.ndarray(args[0] if args else options["shape"], dtype=object), dtype or fill.dtype
                )
                made[...] = fill
                return made
            return plain(*args, **options)
        array = plain(*args, **options)
        if array.dtype.kind not in "fiub" or array.size > 10_000 or not _called_by_user(function):
            return array
        return SymbolicArray(array.astype(object), array.dtype)

    return function


@functools.lru_cache(maxsize=64)
def _converter(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def function(value: Any, *args: Any, **options: Any) -> Any:
        args = tuple(getattr(arg, "symbolic_dtype", arg) for arg in args)
        options = {key: getattr(other, "symbolic_dtype", other) for key, other in options.items()}
        if not has_symbols(value) or not _called_by_user(function):
            return plain(value, *args, **options)
        dtype = args[0] if args else options.get("dtype")
        result = asarray_of(value, dtype)
        return result.copy() if result is value and plain.__name__ == "array" else result

    return function


@functools.lru_cache(maxsize=64)
def _of_lists(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays that is called with a list of symbols: as numpy does, of an array made of it."""

    @functools.wraps(plain)
    def function(*args: Any, **options: Any) -> Any:
        if not is_user_code(sys._getframe(1).f_code.co_filename):
            return plain(*args, **options)
        made = [asarray_of(arg, None) if isinstance(arg, list | tuple) and has_symbols(arg) else arg for arg in args]
        return plain(*made, **options)

    return function


@functools.lru_cache(maxsize=64)
def _extreme(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return min or max: of one symbol and numbers a clipped symbol; of several symbols, one choice of the run."""

    def function(*args: Any, **options: Any) -> Any:
        values = list(args) if len(args) > 1 else list(args[0])
        key = options.get("key")
        keys = [key(value) for value in values] if key is not None else values
        symbols = sum(map(is_symbol, keys))
        if symbols == 0 or not all(is_symbol(item) or arithmetic.constant(item) for item in keys):
            return plain(values, **options) if values or "default" not in options else options["default"]
        if key is None and symbols == 1:
            symbol = next(value for value in values if is_symbol(value))
            bound = plain(value for value in values if not is_symbol(value)) if len(values) > 1 else None
            return (
                symbol if bound is None else arithmetic.binary("maximum" if plain is max else "minimum", symbol, bound)
            )
        return values[comparing.largest(keys, smallest=plain is min)]

    return function


class _Numeric(type):
    """Metaclass of the stand-ins for ``float`` and ``int``: calls accept symbols, everything else is the real type's."""

    real: type
    convert: Callable[[Any], Any]

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if len(args) == 1 and not options:
            value = args[0].item() if type(args[0]) is SymbolicArray and args[0].size == 1 else args[0]
            if is_symbol(value):
                return cls.convert(value)
            return cls.real(value)
        return cls.real(*args, **options)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.real)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, cls.real)

    def __eq__(cls, other: Any) -> bool:
        return other is cls or other is cls.real

    def __hash__(cls) -> int:
        return hash(cls.real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real, name)

    def __or__(cls, other: Any) -> Any:
        return cls.real | other

    def __ror__(cls, other: Any) -> Any:
        return other | cls.real


class Float(metaclass=_Numeric):
    """``float`` in the user's modules."""

    real = builtins.float
    convert = staticmethod(transforming.as_float)
    symbolic_dtype = dtype = np.dtype(builtins.float)


class Int(metaclass=_Numeric):
    """``int`` in the user's modules."""

    real = builtins.int
    convert = staticmethod(transforming.as_integer)
    symbolic_dtype = dtype = np.dtype(builtins.int)
