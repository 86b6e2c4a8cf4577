"""Put symbolic randomness, and functions that accept symbols, in the place of the usual ones while the user's code runs.

Randomness: ``random``, ``secrets``, ``numpy.random`` and generators that the user's modules, closures and objects hold.
Functions: ``math.log`` and the like everywhere; ``float``, ``int``, ``min`` and ``max`` in the user's modules only; numpy's
functions that make arrays when they are called from the user's code, because a symbol may be written into one later.

All of this is undone after each run. Replays with plain numbers run with the randomness alone, so a difference that the
other replacements make is found there.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
import inspect
import math
import os
import random
import secrets
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.symbolic.running.generator import LegacyDraws, PythonDraws, SymbolicGenerator
from dpaudit.symbolic.values import arithmetic
from dpaudit.symbolic.values.array_functions import asarray_of
from dpaudit.symbolic.values.arrays import SymbolicArray, has_symbols
from dpaudit.symbolic.values.paths import is_user_code, stop
from dpaudit.symbolic.values.symbols import is_symbol

_RANDOM = [
    "random",
    "uniform",
    "gauss",
    "normalvariate",
    "expovariate",
    "randrange",
    "randint",
    "getrandbits",
    "choice",
    "choices",
    "shuffle",
    "sample",
    "betavariate",
    "gammavariate",
    "lognormvariate",
    "paretovariate",
    "triangular",
    "vonmisesvariate",
    "weibullvariate",
    "randbytes",
    "seed",
]
_LEGACY = [name for name in dir(np.random.RandomState) if not name.startswith("_") and hasattr(np.random, name)]
_CLOCKS = (
    "time",
    "time_ns",
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "process_time",
    "process_time_ns",
)
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


def _is_generator(item: Any) -> bool:
    kinds = (np.random.Generator, np.random.RandomState, _CLASSES[0])
    return issubclass(type(item), kinds) and not issubclass(type(item), (SymbolicGenerator, _CLASSES[1]))


def _all_generators() -> list[Any]:
    return [item for item in gc.get_objects() if _is_generator(item)]


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
        if _is_generator(item):
            found.append(item)
        elif gc.is_tracked(item):
            waiting.extend(gc.get_referents(item))
    return found


def _state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return repr(generator.bit_generator.state)
    if isinstance(generator, _CLASSES[0]):
        return hash(generator.getstate())
    return repr(generator.get_state(legacy=False))


class _Undo:
    """Attributes and items that were replaced, with what they were before."""

    def __init__(self) -> None:
        self.steps: list[Callable[[], None]] = []

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        before = getattr(owner, name)
        setattr(owner, name, value)
        self.steps.append(lambda: setattr(owner, name, before))

    def item(self, mapping: Any, key: Any, value: Any) -> None:
        if key in mapping:
            before = mapping[key]
            self.steps.append(lambda: mapping.__setitem__(key, before))
        else:
            self.steps.append(lambda: mapping.pop(key, None))
        mapping[key] = value

    def cell(self, cell: Any, value: Any) -> None:
        before = cell.cell_contents
        cell.cell_contents = value
        self.steps.append(lambda: setattr(cell, "cell_contents", before))

    def all(self) -> None:
        for step in reversed(self.steps):
            step()


@contextlib.contextmanager
def symbolic_randomness(reach: Reach) -> Iterator[None]:
    """Replace every source of randomness that the function can reach."""
    undo = _Undo()
    python, legacy = PythonDraws(), LegacyDraws()
    known: dict[int, Any] = {}

    def replace(module: Any, name: str, value: Any) -> None:
        known[id(getattr(module, name))] = value
        undo.attribute(module, name, value)

    try:
        for name in _RANDOM:
            if hasattr(random, name):
                replace(random, name, _function_of(python, name))
        for name, method in (("randbelow", "randbelow"), ("choice", "choice"), ("randbits", "getrandbits")):
            replace(secrets, name, getattr(python, method))
        for name in ("token_bytes", "token_hex", "token_urlsafe"):
            replace(secrets, name, _refused(f"secrets.{name}"))
        replace(secrets, "SystemRandom", lambda *_: python)
        replace(random, "SystemRandom", lambda *_: python)
        replace(random, "Random", _unless_seeded(random.Random, python))
        replace(os, "urandom", _refused("os.urandom"))
        for name in _LEGACY:
            replace(np.random, name, _function_of(legacy, name))
        replace(np.random, "default_rng", _unless_seeded(np.random.default_rng, SymbolicGenerator()))
        replace(np.random, "RandomState", _unless_seeded(np.random.RandomState, legacy))
        for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "SeedSequence"):
            replace(np.random, name, _only_seeded(getattr(np.random, name), name))
        for name in _CLOCKS:
            replace(time, name, _not_from_user(getattr(time, name), f"time.{name}"))
        _swap_held(reach, undo, lambda value: known.get(id(value), _generator_for(value, python, legacy)))
        yield
    finally:
        undo.all()


def _swap_held(reach: Reach, undo: _Undo, swapped: Callable[[Any], Any]) -> None:
    """Replace generators and their functions in default arguments, global names, attributes and closures."""
    for function in reach.functions:
        defaults = function.__defaults__ or ()
        swaps = [swapped(value) for value in defaults]
        if any(swap is not None for swap in swaps):
            new = tuple(value if swap is None else swap for value, swap in zip(defaults, swaps, strict=True))
            undo.attribute(function, "__defaults__", new)
    for namespace in reach.namespaces:
        for name, value in list(namespace.items()):
            swap = swapped(value)
            if swap is not None and not name.startswith("__"):
                undo.item(namespace, name, swap)
    for cell in reach.cells:
        swap = swapped(cell.cell_contents)
        if swap is not None:
            undo.cell(cell, swap)


@contextlib.contextmanager
def symbolic_functions(reach: Reach) -> Iterator[None]:
    """Replace functions that would ask a symbol for a plain number."""
    undo = _Undo()
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
        for namespace in reach.namespaces:
            if not isinstance(namespace.get("__name__"), str):
                continue
            for name, value in (("float", Float), ("int", Int), ("min", _extreme(min)), ("max", _extreme(max))):
                if name not in namespace:
                    undo.item(namespace, name, value)
        yield
    finally:
        undo.all()


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


def _generator_for(value: Any, python: PythonDraws, legacy: LegacyDraws) -> Any:
    kind = type(value)
    if kind is np.random.Generator:
        return SymbolicGenerator()
    if issubclass(kind, np.random.mtrand.RandomState):
        return legacy
    if issubclass(kind, _CLASSES[0]):
        return python
    return None


# In a tuple, because what a namespace holds by name may be replaced while a function runs.
_CLASSES = (random.Random, random.SystemRandom)
_MOST_VISITED = 20_000


def _function_of(owner: Any, name: str) -> Callable[..., Any]:
    if name in ("seed", "set_state", "setstate"):
        return _refused(f"{name} of a global generator (it makes the draws predictable)")

    def function(*args: Any, **options: Any) -> Any:
        return getattr(owner, name)(*args, **options)

    function.__name__ = name
    return function


@functools.lru_cache(maxsize=64)
def _refused(name: str) -> Callable[..., Any]:
    def function(*_args: Any, **_options: Any) -> Any:
        raise stop(f"{name} is not followed")

    return function


def _unless_seeded(real: Any, symbolic: Any) -> Any:
    """Make a symbolic generator, or with a seed the real one: its draws are no random numbers but constants."""

    def make(seed: Any = None, *args: Any, **options: Any) -> Any:
        if type(seed) is SymbolicGenerator:
            return seed
        if seed is None and not args and not options:
            return symbolic() if isinstance(symbolic, types.FunctionType) else symbolic
        return real(seed, *args, **options)

    return (
        make
        if not isinstance(real, type)
        else _ClassLike(real.__name__, (), {"real": real, "make": staticmethod(make)})
    )


@functools.lru_cache(maxsize=64)
def _only_seeded(real: Any, name: str) -> Any:
    return _unless_seeded(real, _refused(f"numpy.random.{name} without a seed"))


class _ClassLike(type):
    """Metaclass of stand-ins for classes of generators: calls go to ``make``, everything else to the real class."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return cls.make(*args, **options)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.real)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, cls.real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(type.__getattribute__(cls, "real"), name)


def _not_from_user(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A clock: it is not random, but differs from run to run, so the user's code may not look at it."""

    def function(*args: Any, **options: Any) -> Any:
        if is_user_code(sys._getframe(1).f_code.co_filename):
            raise stop(f"{name}() is not followed: the output may depend on it")
        return plain(*args, **options)

    return function


def _math_function(plain: Callable[..., Any], method: str) -> Callable[..., Any]:
    def function(x: Any, *rest: Any) -> Any:
        if type(x) is SymbolicArray and x.size == 1:
            x = x.item()
        if not is_symbol(x):
            return plain(x, *rest)
        value = arithmetic.unary(method, x)
        return value / plain(rest[0]) if rest else value

    return function


def _math_pair(plain: Callable[..., Any], method: str) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        return arithmetic.binary(method, x, y) if is_symbol(x) or is_symbol(y) else plain(x, y)

    return function


def _called_by_user() -> bool:
    return is_user_code(sys._getframe(2).f_code.co_filename)


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
        if array.dtype.kind not in "fiub" or array.size > 10_000 or not _called_by_user():
            return array
        return SymbolicArray(array.astype(object), array.dtype)

    return function


def _converter(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def function(value: Any, *args: Any, **options: Any) -> Any:
        args = tuple(getattr(arg, "symbolic_dtype", arg) for arg in args)
        options = {key: getattr(other, "symbolic_dtype", other) for key, other in options.items()}
        if not has_symbols(value) or not _called_by_user():
            return plain(value, *args, **options)
        dtype = args[0] if args else options.get("dtype")
        result = asarray_of(value, dtype)
        return result.copy() if result is value and plain.__name__ == "array" else result

    return function


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
        return values[arithmetic.largest(keys, smallest=plain is min)]

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
    convert = staticmethod(arithmetic.as_float)
    symbolic_dtype = dtype = np.dtype(builtins.float)


class Int(metaclass=_Numeric):
    """``int`` in the user's modules."""

    real = builtins.int
    convert = staticmethod(arithmetic.as_integer)
    symbolic_dtype = dtype = np.dtype(builtins.int)
