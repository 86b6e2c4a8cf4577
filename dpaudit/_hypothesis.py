"""Hypothesis as a search engine: seeded, silent, off the disk, usable inside a test under ``@given``.

Three questions are asked of a strategy: show me values (:func:`explore`), show me the smallest value with a property
(:func:`smallest`), and which pair of neighbours scores highest (:func:`maximise`).
"""

from __future__ import annotations

import math
import signal
import threading
import time
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
"""Hypothesis climbs towards finite scores only; an infinite one is shown to it as this."""


class _Stop(Exception):
    """Ends a run from inside: the value sought was seen."""


class _OutOfTime(BaseException):
    """Ends a run from inside, at once: an Exception would be replayed and shrunk."""


_deadline: ContextVar[float | None] = ContextVar("_deadline", default=None)


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Let every run in here end at the first value after ``deadline`` (of ``time.monotonic``), with what was seen."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def passed(deadline: float | None) -> bool:
    """Whether that time (of ``time.monotonic``) is over."""
    return deadline is not None and time.monotonic() >= deadline


def cut_short() -> bool:
    """Whether runs end early here, so that what they saw is not all."""
    return passed(_deadline.get())


@contextmanager
def noticed_interrupts() -> Iterator[None]:
    """Raise at the end the Ctrl-C that Hypothesis swallowed: raised in its callback of the garbage collector, it is lost."""
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
    """What :func:`maximise` saw."""

    largest: float
    worst: Pair
    witness: Pair | None
    pairs: int


def explore(
    strategy: SearchStrategy[T], visit: Callable[[T], bool | None], *, examples: int, seed: int, guided: bool = False
) -> None:
    """Call ``visit`` on up to ``examples`` values; stop early once it returns True.

    The same seed gives the same values, in any process. Guided runs climb the scores that ``visit`` gives to
    ``hypothesis.target``.
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
    """Return the smallest value that Hypothesis finds and shrinks to under ``condition``, or None if it finds none."""
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
    """Search the pair with the largest score, and shrink a pair whose score ``exceeds`` what is allowed.

    The corner pairs are scored first, then ``examples`` generated ones, towards larger scores. The witness is the
    smallest exceeding pair that Hypothesis shrinks to; it often scores less than the worst pair seen. Where only
    corners exceed, the witness is the first of them. If ``score`` raises, so does this, with the smallest such pair.
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
        except Exception:  # shrinking may step on pairs that the search never saw
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
        # The same seed walks the same path, so what the first run found is found again, and then shrunk.
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
    deadline = _deadline.get()  # read here: the run may be in another thread
    seen = False

    def run() -> None:
        # Every setting is given: a profile of the user's must change neither the values nor what is printed.
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

        with _values_from_the_seed_alone():
            one()

    try:
        if currently_in_test_context():
            # @given inside @given is refused, by settings of the outer test that are not ours to change; the test
            # context belongs to its thread, so another thread is outside of it.
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
            "The same data gave different answers when looked at again. A query, a law and a strategy of rows must be "
            "deterministic: remove hidden state and randomness, or audit the code as a mechanism with dpaudit.audit."
        ) from error
    except hypothesis_errors.InvalidArgument as error:
        raise InvalidArgument(f"strategy={strategy!r} is not valid: {error}") from error


_patch_lock = threading.Lock()
_patch_depth = 0
_patch_saved: dict[str, Any] = {}


@contextmanager
def _values_from_the_seed_alone() -> Iterator[None]:
    """Keep Hypothesis from mixing in constants that it reads from the source of the local modules loaded so far.

    With them, one seed means different pairs in pytest, in a script and after an edit, and ``.hypothesis/constants`` is
    written to the working directory. There is no public switch; where the internals have another shape, nothing is
    changed and runs are reproducible within one programme only.
    """
    global _patch_depth
    try:
        from hypothesis.internal.conjecture import providers

        replacements: dict[str, Any] = {
            "CONSTANTS_CACHE": type(providers.CONSTANTS_CACHE)(1024),
            "_get_local_constants": type(providers.GLOBAL_CONSTANTS),
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
