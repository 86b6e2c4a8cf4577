"""Search with Hypothesis: seeded, without output or files, and usable inside a test under ``@given``.

Three searches of a strategy: visit its values (:func:`explore`), find the smallest value with a property
(:func:`smallest`), and find the pair of neighbours with the highest score (:func:`maximise`).
"""

from __future__ import annotations

import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, currently_in_test_context, given, settings, target
from hypothesis import errors as hypothesis_errors
from hypothesis import seed as hypothesis_seed
from hypothesis.strategies import SearchStrategy

from dpaudit.errors import InvalidArgument, MechanismError

if TYPE_CHECKING:
    from dpaudit.neighbours import Neighbours, Pair

T = TypeVar("T")

LARGEST_TARGET = 1e300
"""Hypothesis accepts finite scores only; an infinite one is passed to it as this number."""


class _Stop(Exception):
    """Ends a run early, because the value that was searched for has been found."""


class _OutOfTime(BaseException):
    """Ends a run at the deadline. It is no Exception, because Hypothesis would replay and shrink one."""


_deadline: ContextVar[float | None] = ContextVar("_deadline", default=None)


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """End every run inside the block at its first value after ``deadline`` (of ``time.monotonic``), keeping its results."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def passed(deadline: float | None) -> bool:
    """Return True if ``deadline`` (of ``time.monotonic``) has passed."""
    return deadline is not None and time.monotonic() >= deadline


def cut_short() -> bool:
    """Return True if the deadline of the enclosing :func:`until` has passed, so that results may be incomplete."""
    return passed(_deadline.get())


_constants: tuple[Any, ...] = ()


@contextmanager
def with_constants(values: tuple[int | float | str | bytes, ...]) -> Iterator[None]:
    """Let strategies inside the block draw these values too, where they allow them, once in twenty draws or so."""
    global _constants
    before, _constants = _constants, values
    try:
        yield
    finally:
        _constants = before


@contextmanager
def noticed_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt after the block if Ctrl-C was pressed in it.

    Python discards a KeyboardInterrupt that is raised while Hypothesis' garbage collection callback runs.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    pressed = False

    def notice(number: int, frame: Any) -> None:
        nonlocal pressed
        pressed = True
        before(number, frame)

    signal.signal(signal.SIGINT, notice)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@dataclass(frozen=True, slots=True)
class Search:
    """The result of :func:`maximise`: the largest score, its pair, the smallest exceeding pair, and the pairs scored."""

    largest: float
    worst: Pair
    witness: Pair | None
    pairs: int


def explore(
    strategy: SearchStrategy[T], visit: Callable[[T], bool | None], *, examples: int, seed: int, guided: bool = False
) -> None:
    """Call ``visit`` on up to ``examples`` values; stop early once it returns True.

    Parameters
    ----------
    strategy : strategy
        The values to visit. The same seed gives the same values in any process.
    visit : callable
        Called with each value; returns True to stop.
    examples, seed : int
        Largest number of values, and the seed of the search.
    guided : bool
        Search towards high values of the scores that ``visit`` passes to ``hypothesis.target``.
    """

    def body(value: T) -> None:
        if visit(value):
            raise _Stop

    phases = [Phase.generate, Phase.target] if guided else [Phase.generate]
    try:
        _run(strategy, body, examples=examples, seed=seed, phases=phases)
    except (_Stop, _OutOfTime):
        return


def smallest(
    strategy: SearchStrategy[T], condition: Callable[[T], bool], *, examples: int, seed: int, guided: bool = False
) -> T | None:
    """Return the smallest value with ``condition`` that Hypothesis finds and shrinks to, or None if it finds none.

    The other parameters are those of :func:`explore`.
    """
    found: list[T] = []

    def body(value: T) -> None:
        if condition(value):
            found[:] = [value]  # Hypothesis replays the smallest one last
            raise _Stop

    phases = [Phase.generate, Phase.target, Phase.shrink] if guided else [Phase.generate, Phase.shrink]
    try:
        _run(strategy, body, examples=examples, seed=seed, phases=phases)
    except (_Stop, _OutOfTime):
        return found[0] if found else None
    return None


def maximise(
    neighbours: Neighbours,
    score: Callable[[Pair], float],
    *,
    exceeds: Callable[[float], bool],
    examples: int,
    seed: int,
) -> Search:
    """Search for the pair with the largest score, and shrink a pair whose score is too large.

    The corner pairs are scored first, then generated ones, towards larger scores. The witness is the smallest exceeding
    pair that Hypothesis shrinks to; its score is often below the largest. If only corner pairs exceed, the witness is the
    first of them. An exception in ``score`` is raised again from the smallest pair on which it occurs.

    Parameters
    ----------
    neighbours : Neighbours
        The pairs to search.
    score : callable
        The score of a pair; it must be deterministic.
    exceeds : callable
        Returns True for a score that is too large.
    examples, seed : int
        Number of generated pairs, and the seed of the search.
    """
    worst: Pair | None = None
    largest = -math.inf
    first_corner: Pair | None = None
    raised: list[Exception] = []
    pairs = 0

    def measure(pair: Pair) -> float:
        nonlocal worst, largest, pairs
        try:
            value = score(pair)
        except Exception as error:
            raised[:] = [error]
            raise
        pairs += 1
        if worst is None or value > largest:
            worst, largest = pair, value
        return value

    def visit(pair: Pair) -> None:
        _aim(measure(pair))

    def exceeding(pair: Pair) -> bool:
        try:
            value = score(pair)
        except Exception:  # shrinking also tries pairs that the search has not scored
            return False
        _aim(value)
        return exceeds(value)

    try:
        for pair in neighbours.corners():
            if exceeds(measure(pair)) and first_corner is None:
                first_corner = pair
        explore(neighbours.strategy, visit, examples=examples, seed=seed, guided=True)
    except Exception as error:
        if raised and error is raised[0]:
            _raise_smallest(neighbours, score, error, examples=examples, seed=seed)
        raise
    if worst is None:
        raise InvalidArgument(f"neighbours={neighbours!r} yields no pair; widen its strategy.")
    witness: Pair | None = None
    if exceeds(largest):
        # With the same seed the run repeats the first one, so it finds the exceeding pair again, and shrinks it.
        witness = smallest(neighbours.strategy, exceeding, examples=examples, seed=seed, guided=True)
        witness = witness or first_corner or worst
    return Search(largest, worst, witness, pairs)


def _aim(score: float) -> None:
    target(max(min(float(score), LARGEST_TARGET), -LARGEST_TARGET), label="dpaudit")


def _raise_smallest(
    neighbours: Neighbours, score: Callable[[Pair], float], error: Exception, *, examples: int, seed: int
) -> None:
    def raises(pair: Pair) -> bool:
        try:
            score(pair)
        except Exception as again:
            return type(again) is type(error) and type(again.__cause__) is type(error.__cause__)
        return False

    pair = smallest(neighbours.strategy, raises, examples=examples, seed=seed)
    if pair is not None:
        score(pair)


def _run(
    strategy: SearchStrategy[T], body: Callable[[T], None], *, examples: int, seed: int, phases: list[Phase]
) -> None:
    deadline = _deadline.get()  # read here, because the run may be in another thread
    seen = False

    def run() -> None:
        # Every setting is given, so that the user's Hypothesis profile changes neither the values nor the output.
        @hypothesis_seed(int(seed))
        @settings(
            max_examples=examples,
            phases=phases,
            database=None,
            deadline=None,
            derandomize=False,
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
            backend="hypothesis",
        )
        @given(strategy)
        def one(value: T) -> None:
            nonlocal seen
            if seen and passed(deadline):
                raise _OutOfTime
            seen = True
            body(value)

        with _values_from_the_seed_alone(), warnings.catch_warnings():
            # This warns about the size of a repr, which is never printed.
            warnings.simplefilter("ignore", hypothesis_errors.HypothesisWarning)
            one()

    try:
        if currently_in_test_context():
            # Hypothesis refuses @given inside @given, depending on the settings of the outer test. The test context is
            # per thread, so run in another thread.
            with ThreadPoolExecutor(max_workers=1) as executor:
                executor.submit(run).result()
        else:
            run()
    except hypothesis_errors.Unsatisfiable as error:
        raise InvalidArgument(
            f"strategy={strategy!r} yields no value: its filters reject everything, or all its rows are the same, so "
            "that nothing can differ between neighbours. Widen the strategy of the rows."
        ) from error
    except hypothesis_errors.Flaky as error:
        raise MechanismError(
            "The same data gave different answers when evaluated again. A query, a law and a strategy of rows must be "
            "deterministic: remove hidden state and randomness, or audit the code as a mechanism with dpaudit.audit."
        ) from error
    except hypothesis_errors.InvalidArgument as error:
        raise InvalidArgument(f"strategy={strategy!r} is not valid: {error}") from error


_patch_lock = threading.Lock()
_patch_depth = 0
_patch_saved: dict[str, Any] = {}


@contextmanager
def _values_from_the_seed_alone() -> Iterator[None]:
    """Keep Hypothesis from using other constants than ours, which it collects from the source of the local modules loaded so far.

    With them, one seed gives different pairs in pytest, in a script and after an edit, and Hypothesis writes
    ``.hypothesis/constants`` to the working directory. There is no public setting. If the internals of the installed version
    differ, nothing is changed, and runs are reproducible only within the same program.
    """
    global _patch_depth
    try:
        from hypothesis.internal.conjecture import providers

        given = type(providers.GLOBAL_CONSTANTS)()
        for value in _constants:
            given.add(value)
        replacements: dict[str, Any] = {
            "CONSTANTS_CACHE": type(providers.CONSTANTS_CACHE)(1024),
            "_get_local_constants": lambda: given,
        }
        replacements = {name: value for name, value in replacements.items() if hasattr(providers, name)}
    except (ImportError, AttributeError, TypeError):
        yield
        return
    with _patch_lock:
        if _patch_depth == 0:
            _patch_saved.update({name: getattr(providers, name) for name in replacements})
            for name, value in replacements.items():
                setattr(providers, name, value)
        _patch_depth += 1
    try:
        yield
    finally:
        with _patch_lock:
            _patch_depth -= 1
            if _patch_depth == 0:
                for name, value in _patch_saved.items():
                    setattr(providers, name, value)
                _patch_saved.clear()
