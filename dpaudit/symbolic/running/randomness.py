"""Put symbolic generators in the place of every source of randomness while the user's code runs.

These are ``random``, ``secrets``, ``numpy.random``, and generators that the user's modules, closures and objects hold. Clocks and
seeds are refused. Everything is put back after each run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import secrets
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.symbolic.running.generator import LegacyDraws, PythonDraws, SymbolicGenerator
from dpaudit.symbolic.running.reach import PYTHON_GENERATORS, Reach
from dpaudit.symbolic.running.undo import Undo
from dpaudit.symbolic.values.paths import is_user_code, stop

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


_PYTHON, _LEGACY_DRAWS = PythonDraws(), LegacyDraws()


@contextlib.contextmanager
def symbolic_randomness(reach: Reach) -> Iterator[None]:
    """Replace every source of randomness that the function can reach."""
    undo = Undo()
    python, legacy = _PYTHON, _LEGACY_DRAWS
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
        replace(secrets, "SystemRandom", _python_draws)
        replace(random, "SystemRandom", _python_draws)
        replace(random, "Random", _unless_seeded(random.Random, python))
        replace(os, "urandom", _refused("os.urandom"))
        for name in _LEGACY:
            replace(np.random, name, _function_of(legacy, name))
        replace(np.random, "default_rng", _unless_seeded(np.random.default_rng, SymbolicGenerator))
        replace(np.random, "RandomState", _unless_seeded(np.random.RandomState, legacy))
        for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "SeedSequence"):
            replace(np.random, name, _only_seeded(getattr(np.random, name), name))
        for name in _CLOCKS:
            replace(time, name, _not_from_user(getattr(time, name), f"time.{name}"))
        _swap_held(reach, undo, lambda value: known.get(id(value), _generator_for(value, python, legacy)))
        yield
    finally:
        undo.all()


def _swap_held(reach: Reach, undo: Undo, swapped: Callable[[Any], Any]) -> None:
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


def _python_draws(*_: Any) -> PythonDraws:
    return _PYTHON


def _generator_for(value: Any, python: PythonDraws, legacy: LegacyDraws) -> Any:
    kind = type(value)
    if kind is np.random.Generator:
        return SymbolicGenerator()
    if issubclass(kind, np.random.mtrand.RandomState):
        return legacy
    if issubclass(kind, PYTHON_GENERATORS[0]):
        return python
    return None


@functools.lru_cache(maxsize=256)
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


@functools.lru_cache(maxsize=256)
def _unless_seeded(real: Any, symbolic: Any) -> Any:
    """Make a symbolic generator, or with a seed the real one: its draws are no random numbers but constants."""

    def make(seed: Any = None, *args: Any, **options: Any) -> Any:
        if type(seed) is SymbolicGenerator:
            return seed
        if seed is None and not args and not options:
            return symbolic() if isinstance(symbolic, types.FunctionType | type) else symbolic
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


@functools.lru_cache(maxsize=256)
def _not_from_user(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A clock: it is not random, but differs from run to run, so the user's code may not look at it."""

    def function(*args: Any, **options: Any) -> Any:
        if is_user_code(sys._getframe(1).f_code.co_filename):
            raise stop(f"{name}() is not followed: the output may depend on it")
        return plain(*args, **options)

    return function
