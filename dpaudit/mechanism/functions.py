"""Functions as mechanisms: the protocol, and wrappers for every way in which a function may be called."""

from __future__ import annotations

import functools
import importlib
import inspect
import random
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpaudit._util.validation import check_count, check_generator, did_you_mean, shorten
from dpaudit.errors import DPAuditError, InvalidArgument, MechanismError
from dpaudit.mechanism.outputs import UNCHANGING, Outputs, Raised, checked_outputs, exited, kept


@runtime_checkable
class Mechanism(Protocol):
    """Something random that turns a data set into outputs."""

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return independent outputs on one data set.

        Parameters
        ----------
        data
            The data set.
        size : int
            Number of outputs.
        rng : numpy.random.Generator
            Source of all randomness.
        """


@dataclass(frozen=True, slots=True)
class Then:
    """Call one function, and another one on its output."""

    first: Callable[..., Any]
    second: Callable[[Any], Any]

    def __call__(self, *arguments: Any) -> Any:
        """Return the output of the second function; what either raises passes through."""
        return self.second(self.first(*arguments))

    @property
    def __name__(self) -> str:
        """The names of both."""
        return f"{_name(self.first)}, then {_name(self.second)}"


@dataclass(frozen=True, slots=True)
class ThenEach(Then):
    """Call a function that returns several outputs, and another one on each of them."""

    def __call__(self, *arguments: Any) -> Any:
        """Return a list; an exception of the second function is the output of its release."""
        outputs = self.first(*arguments)
        outputs = (
            outputs.to_numpy() if hasattr(outputs, "to_numpy") else outputs
        )  # data frames iterate over their columns
        return [output if isinstance(output, Raised) else one_release(self.second, output) for output in outputs]


@dataclass(frozen=True, slots=True)
class ThenMake(Then):
    """Make a mechanism, whose outputs another function is called on."""

    def __call__(self, *arguments: Any) -> Any:
        """Return the mechanism with its post-processing."""
        return after(self.first(*arguments), self.second)


@dataclass(frozen=True, slots=True)
class Batched:
    """A function ``f(data, size, rng)`` that returns ``size`` outputs at once."""

    function: Callable[[Any, int, np.random.Generator], Outputs]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return the function's outputs, after checking that there are ``size`` of them."""
        check_generator(rng=rng)
        return checked_outputs(self.function(data, size, rng), size)

    def after(self, function: Callable[[Any], Any]) -> Batched:
        """Return the mechanism that releases ``function(output)`` instead of each output; see :func:`after`."""
        return Batched(ThenEach(self.function, _callable(function)))

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function


@dataclass(frozen=True, slots=True)
class PerRelease:
    """A function ``f(data, rng)`` that returns one output; each call is one release."""

    function: Callable[[Any, np.random.Generator], Any]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Return one output per call; an exception is the output of its release."""
        return list(self.releases(data, size, rng))

    def releases(self, data: Any, size: int, rng: np.random.Generator) -> Generator[Any]:
        """Yield the outputs one by one."""
        check_count(minimum=0, size=size)
        check_generator(rng=rng)
        for _ in range(size):
            yield one_release(self.function, data, rng)

    def after(self, function: Callable[[Any], Any]) -> PerRelease:
        """Return the mechanism that releases ``function(output)`` instead of each output; see :func:`after`."""
        return PerRelease(Then(self.function, _callable(function)))

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function


@dataclass(frozen=True, slots=True)
class Plain:
    """A function ``f(data)`` that draws its own randomness.

    ``random`` and legacy ``numpy.random`` are seeded from ``rng`` during one call to ``sample`` and restored afterwards, so
    a function that uses them is reproducible, and its outputs on the two data sets are independent. An audit of a function
    with other sources of randomness (``secrets``, a native library) is valid, but cannot be replayed.
    """

    function: Callable[[Any], Any]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Return one output per call; an exception is the output of its release."""
        return list(self.releases(data, size, rng))

    def releases(self, data: Any, size: int, rng: np.random.Generator) -> Generator[Any]:
        """Yield the outputs one by one; the global generators are restored when the iterator ends or is closed."""
        check_count(minimum=0, size=size)
        check_generator(rng=rng)
        with seeded_globals(rng):
            for _ in range(size):
                yield one_release(self.function, data)

    def after(self, function: Callable[[Any], Any]) -> Plain:
        """Return the mechanism that releases ``function(output)`` instead of each output; see :func:`after`."""
        return Plain(Then(self.function, _callable(function)))

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function


@dataclass(frozen=True, slots=True)
class Fresh:
    """A mechanism that is constructed again for every release, because it keeps state (budgets, caches, stored answers)."""

    make: Callable[[], Any]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Make an instance per release and return the outputs."""
        return list(self.releases(data, size, rng))

    def releases(self, data: Any, size: int, rng: np.random.Generator) -> Generator[Any]:
        """Yield the outputs one by one; the global generators are restored when the iterator ends or is closed."""
        check_count(minimum=0, size=size)
        check_generator(rng=rng)
        with seeded_globals(rng):
            for _ in range(size):
                yield one_release(self.release, data, rng)

    def release(self, data: Any, rng: np.random.Generator) -> Any:
        """Make an instance and return its output."""
        instance = self.make()
        if isinstance(instance, Mechanism):
            outputs = checked_outputs(instance.sample(data, 1, rng), 1)
            return (outputs.to_numpy() if hasattr(outputs, "to_numpy") else outputs)[0]  # data frames have no row 0
        if not callable(instance):
            raise MechanismError(
                f"make={self.make!r} made {shorten(instance)}, which is neither a mechanism nor callable."
            )
        return instance(data)

    def after(self, function: Callable[[Any], Any]) -> Fresh:
        """Return the mechanism that releases ``function(output)`` instead of each output; see :func:`after`."""
        return Fresh(ThenMake(self.make, _callable(function)))

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.make


@dataclass(frozen=True, slots=True)
class Named:
    """A mechanism named ``"pkg.mod:make"``: each process calls ``make()`` itself, so only the name is sent to workers."""

    name: str

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Make the mechanism, once per process, and sample it."""
        return _made(self.name).sample(data, size, rng)

    def resolve(self) -> Mechanism:
        """Return the mechanism that the name stands for."""
        return _made(self.name)


def batched(function: Callable[[Any, int, np.random.Generator], Outputs]) -> Batched:
    """Wrap ``f(data, size, rng) -> outputs``, the fast way: ``size`` releases in one call.

    >>> import numpy as np
    >>> noisy_count = batched(lambda data, size, rng: len(data) + rng.laplace(size=size))
    >>> noisy_count.sample([1, 2, 3], 4, np.random.default_rng(0)).shape
    (4,)
    """
    return Batched(_callable(_no_generator(_no_class(function, "batched"))))


def per_release(function: Callable[[Any, np.random.Generator], Any]) -> PerRelease:
    """Wrap ``f(data, rng) -> output``: one release per call.

    >>> import numpy as np
    >>> coin = per_release(lambda data, rng: bool(rng.random() < 0.5))
    >>> len(coin.sample([], 3, np.random.default_rng(0)))
    3
    """
    return PerRelease(_callable(_no_generator(_no_class(function, "per_release"))))


def fresh(make: Callable[[], Any]) -> Fresh:
    """Wrap ``make() -> mechanism or f(data)``: a new instance is made for every release."""
    return Fresh(_callable(make))


def after(mechanism: Any, function: Callable[[Any], Any]) -> Batched | PerRelease | Plain | Fresh:
    """Return the mechanism that releases ``function(output)`` where ``mechanism`` releases ``output``.

    Post-processing cannot add to a leak, so a violation found after it is one of the mechanism itself; it can make a leak
    easier to see, where the function keeps what leaks and drops the rest. What :func:`batched`, :func:`per_release` and
    :func:`fresh` return has this as a method, ``mechanism.after(function)``.

    Parameters
    ----------
    mechanism : object
        As for :func:`dpaudit.audit`: an object with ``sample``, a function of the data, or a name.
    function : callable
        A function of one output. An exception that it raises is an output.

    Examples
    --------
    >>> import numpy as np
    >>> rounded = batched(lambda data, size, rng: len(data) + rng.laplace(size=size)).after(round)
    >>> rounded.sample([1, 2, 3], 4, np.random.default_rng(0))
    [3, 2, 0, 0]
    """
    inner = as_mechanism(mechanism)
    if isinstance(inner, Batched | PerRelease | Plain | Fresh):
        return inner.after(function)
    return Batched(ThenEach(inner.sample, _callable(function)))


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__


def as_mechanism(source: Any) -> Mechanism:
    """Return the mechanism for an object with ``sample``, a function of the data, or a name ``"pkg.mod:make"``.

    >>> as_mechanism(len).sample([1, 2], 2, __import__("numpy").random.default_rng(0))
    [2, 2]
    """
    if isinstance(source, str):
        _made(source)
        return Named(source)
    if isinstance(source, type):
        raise InvalidArgument(
            f"mechanism={source!r} is a class; pass an instance, or dpaudit.fresh({source.__name__}) for one each time."
        )
    if isinstance(source, Mechanism):
        return source
    if callable(source):
        return Plain(_callable(_no_generator(source)))
    raise InvalidArgument(
        f"mechanism={shorten(source)} must have a method sample(data, size, rng), be a function of the data, "
        "or a name 'package.module:factory'."
    )


_CALLS = {
    1: ("f(data)", "pass it as it is"),
    2: ("f(data, rng)", "wrap it: dpaudit.per_release({name})"),
    3: ("f(data, size, rng)", "wrap it: dpaudit.batched({name})"),
}


def called_otherwise(mechanism: Any) -> str:
    """Return a hint if the wrapped function takes other arguments than it is called with, else the empty string.

    >>> called_otherwise(as_mechanism(lambda data, rng: rng.random()))
    'f was called as f(data). Is it f(data, rng)? Then wrap it: dpaudit.per_release(f).'
    """
    match mechanism:
        case Plain():
            arguments = 1
        case PerRelease():
            arguments = 2
        case Batched():
            arguments = 3
        case _:
            return ""
    function = mechanism.__wrapped__
    name = getattr(function, "__name__", "")
    name = name if name.isidentifier() else "f"
    if isinstance(function, FunctionType) and next(iter(inspect.signature(function).parameters), "") == "self":
        return f"{function.__qualname__} is a method without its object: make one, and pass that object's {name}."
    fitting = [count for count in range(4) if _takes(function, count)]
    if not fitting or arguments in fitting:
        return ""
    called = f"{name} was called as {_CALLS[arguments][0]}. "
    if fitting == [0]:
        return called + f"It takes no arguments: if it makes the mechanism, wrap it: dpaudit.fresh({name})."
    call, remedy = _CALLS[max(fitting)]
    return called + f"Is it {call}? Then {remedy.format(name=name)}."


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


# Held while the global generators are seeded: without it one thread could restore them while another draws.
_GLOBALS = threading.RLock()


@contextmanager
def seeded_globals(rng: np.random.Generator) -> Iterator[None]:
    """Seed ``random`` and legacy ``numpy.random`` from ``rng`` inside the block, and restore them after it."""
    with _GLOBALS:
        python_state = random.getstate()
        numpy_state = np.random.get_state()  # noqa: NPY002 - saved because the user's function may use it
        seeds = rng.integers(0, 2**32, size=4, dtype=np.uint32)
        try:
            random.seed(int.from_bytes(seeds.tobytes(), "little"))
            np.random.seed(seeds)  # noqa: NPY002
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002


def one_release(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a copy of what the function returns, or its exception as an output.

    An Exception is what the caller of the release would see; KeyboardInterrupt and SystemExit are not outputs.
    """
    try:
        output = function(*arguments)
    except MechanismError:  # misuse of the protocol, not an output
        raise
    except SystemExit as stop:
        raise exited(stop) from stop
    except Exception as error:
        return Raised.from_exception(error)
    return output if type(output) in UNCHANGING else kept(output)


def _callable(function: Any) -> Any:
    if not callable(function):
        raise InvalidArgument(f"function={shorten(function)} must be callable.")
    _refuse_async(function)
    return function


def _no_class(function: Any, wrapper: str) -> Any:
    """Return what is called for a release, unless it is a class, whose calls only make instances."""
    if isinstance(function, type):
        raise InvalidArgument(
            f"function={function!r} is a class: a call makes an instance, of which only the type would be seen. Pass a function "
            f"that releases something, such as dpaudit.{wrapper}({function.__name__}(...).method), or "
            f"dpaudit.fresh({function.__name__}) for a new instance each time."
        )
    return function


def _no_generator(function: Any) -> Any:
    """Return what is called for releases, unless it is a generator function, whose calls run nothing."""
    if callable(function) and inspect.isgeneratorfunction(_code(function)):
        raise InvalidArgument(
            f"function={shorten(function)} is a generator function: a call returns a generator, and nothing of it has run. If "
            "its items are one release, pass lambda data: list(f(data)); if each item is a release, return a list of them from a "
            "function of (data, size, rng), wrapped with dpaudit.batched."
        )
    return function


def _code(function: Any) -> Any:
    """Return the function that a call runs."""
    plain = inspect.isroutine(function) or isinstance(function, functools.partial)
    return function if plain else type(function).__call__


def _refuse_async(function: Any) -> None:
    """Raise InvalidArgument for functions whose calls return before they have run: all coroutines look the same."""
    code = _code(function)
    if inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code):
        raise InvalidArgument(
            f"function={shorten(function)} is async: a call returns a coroutine, not an output. Pass a function that runs it, "
            "such as lambda data: asyncio.run(f(data))."
        )


def _from_factory(name: str, attribute: str, factory: Callable[[], Any]) -> Any:
    try:
        return factory()
    except DPAuditError:  # its message already says what to do
        raise
    except (Exception, SystemExit) as error:
        raise InvalidArgument(
            f"mechanism={name!r}: {attribute}() raised {type(error).__name__}: {error}. The name must be that of a function "
            f"without arguments that makes the mechanism, e.g. def make(): return {attribute}"
        ) from error


@functools.cache
def _made(name: str) -> Mechanism:
    """Import ``"pkg.mod:make"``, call it, and return the result as a mechanism."""
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise InvalidArgument(f"mechanism={name!r} must look like 'package.module:factory'.")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InvalidArgument(f"mechanism={name!r}: cannot import {module_name!r} ({error}).") from error
    factory = getattr(module, attribute, None)
    if factory is None:
        known = [word for word in vars(module) if not word.startswith("_")]
        raise InvalidArgument(
            f"mechanism={name!r}: {module_name} has no {attribute!r}.{did_you_mean(attribute, known)}"
        )
    ready = isinstance(factory, Mechanism) and not isinstance(factory, type)
    if not ready and not callable(factory):
        raise InvalidArgument(f"mechanism={name!r} is {shorten(factory)}, which is neither a mechanism nor makes one.")
    made = factory if ready else _from_factory(name, attribute, factory)
    if isinstance(made, str):
        raise InvalidArgument(f"mechanism={name!r} must make a mechanism, not the string {made!r}.")
    return as_mechanism(made)
