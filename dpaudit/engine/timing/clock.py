"""Timing single calls: fresh copies of the data, a fair coin for every call, and nothing else inside the clock.

Before every call both data sets are copied, in an order that a coin of its own decides; only then the label says which of
the copies the call gets. So what happens before the clock starts (allocations, warm caches) is the same in law for both
labels, and the label is the only difference. Cyclic garbage collection waits until the block is over. No call is dropped,
however long it took: conditioning on speed would be selection.
"""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismError
from dpaudit.mechanism import Fresh, Mechanism, Named, PerRelease, Plain, as_mechanism, exited, seeded_globals

Times: TypeAlias = NDArray[np.int64]
Call: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Timed:
    """Calls in the order in which they were made, one column per pair of data sets; a contiguous prefix of what was asked."""

    labels: NDArray[np.int64]  # 0: ran on the first of the pair, 1: on the second
    nanoseconds: Times
    raised: int
    cause: BaseException | None = None  # what cut it short

    def __len__(self) -> int:
        return int(self.labels.shape[0])


class Stopwatch:
    """Times calls of one mechanism; draws for the mechanism and coins for the labels come from separate generators."""

    def __init__(self, mechanism: Any, noise: np.random.Generator, coins: np.random.Generator) -> None:
        self._prepare = preparer(as_mechanism(mechanism), noise)
        self._noise = noise
        self._coins = coins

    def run(self, pairs: Sequence[tuple[Any, Any]], calls: int, deadline: float | None = None) -> Timed:
        """Time ``calls`` calls on each pair, the pairs taking turns call by call.

        Labels are independent fair coins. A block ends early at the deadline (``time.monotonic``) or by Ctrl-C, always
        after a complete turn.
        """
        shape = (calls, len(pairs))
        labels, orders = (self._coins.integers(0, 2, size=shape) for _ in range(2))
        nanoseconds = np.zeros(shape, dtype=np.int64)
        done, raised, cause = 0, 0, None
        collecting = gc.isenabled()
        gc.disable()
        try:
            with seeded_globals(self._noise):
                for turn, firsts in zip(labels.tolist(), orders.tolist(), strict=True):
                    for column, (pair, label, first) in enumerate(zip(pairs, turn, firsts, strict=True)):
                        elapsed, failed = _time_one(self._prepare(), pair, label, first)
                        nanoseconds[done, column] = elapsed
                        raised += failed
                    done += 1
                    if deadline is not None and time.monotonic() > deadline:
                        break
        except KeyboardInterrupt as error:
            cause = error.with_traceback(None)
        finally:
            if collecting:
                gc.enable()
        return Timed(labels[:done], nanoseconds[:done], raised, cause)


def _time_one(call: Call, pair: tuple[Any, Any], label: int, first: int) -> tuple[int, bool]:
    copies = [None, None]
    copies[first] = copy.deepcopy(pair[first])
    copies[1 - first] = copy.deepcopy(pair[1 - first])
    data = copies[label]
    output = None  # bound here, so that whatever a call returned is freed outside the clock
    start = time.perf_counter_ns()
    try:
        output = call(data)
        elapsed = time.perf_counter_ns() - start
    except MechanismError:  # a broken protocol says nothing about the data
        raise
    except SystemExit as stop:
        raise exited(stop) from stop
    except Exception:
        return time.perf_counter_ns() - start, True
    del output
    return elapsed, False


def preparer(mechanism: Mechanism, rng: np.random.Generator) -> Callable[[], Call]:
    """A function that makes ready for one release, outside the clock, and returns the call that is timed."""
    match mechanism:
        case Named():
            return preparer(mechanism.resolve(), rng)
        case Plain():
            plain = mechanism.function
            return lambda: plain
        case PerRelease():
            function = mechanism.function
            return lambda: lambda data: function(data, rng)
        case Fresh():
            return lambda: _fresh_call(mechanism, rng)
    return lambda: lambda data: mechanism.sample(data, 1, rng)


def _fresh_call(mechanism: Fresh, rng: np.random.Generator) -> Call:
    """The instance is made before the clock starts: making it cannot depend on the data."""
    instance = mechanism.make()
    if isinstance(instance, Mechanism):
        return lambda data: instance.sample(data, 1, rng)
    if not callable(instance):
        raise MechanismError(f"make={mechanism.make!r} made {instance!r}, which is neither a mechanism nor callable.")
    return instance  # type: ignore[no-any-return]  # checked to be callable


def microseconds(
    mechanism: Any, data: Any, neighbour: Any, *, calls: int, seed: int
) -> tuple[list[float], list[float]]:
    """Return the durations of calls in microseconds, those on the data and those on the neighbour.

    A fair coin decides for each call which data set it gets. Before them, up to 100 calls warm up and are not counted.

    Parameters
    ----------
    mechanism : Mechanism or callable
        The mechanism to time.
    data, neighbour : object
        The two data sets; every call gets a fresh copy of one of them.
    calls : int
        Number of calls that are timed.
    seed : int
        Seed of the coins and of the noise.

    Examples
    --------
    >>> on_data, on_neighbour = microseconds(sorted, [3, 1, 2], [2, 1, 3], calls=20, seed=0)
    >>> len(on_data) + len(on_neighbour)
    20
    """
    noise, coins = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    watch = Stopwatch(mechanism, noise, coins)
    pairs = [(data, neighbour)]
    watch.run(pairs, min(calls, 100))
    timed = watch.run(pairs, calls)
    labels, times = timed.labels[:, 0], timed.nanoseconds[:, 0] / 1000.0
    return times[labels == 0].tolist(), times[labels == 1].tolist()
