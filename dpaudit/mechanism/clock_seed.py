"""Detect programs whose seed is the time in seconds, as in ``srand(time(NULL))``.

Where every release is a process of its own, all that start in the same second then draw the same noise: they are not independent,
and without this check the audit would take that for evidence. A fast program is checked by releases of its own (:func:`check`), a
slow one, of which only a few fit into a second, by those of the audit (:func:`observe`).
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from dpaudit._util.validation import shorten
from dpaudit._util.values import fingerprint
from dpaudit.errors import MechanismError
from dpaudit.mechanism.outputs import ReleaseFailed
from dpaudit.mechanism.waiting import seconds_left

REPEATS_TO_CHECK = 8
"""Equal outputs in a row after which a program is suspected."""
OUTPUTS_OF_A_SECOND = 16
"""Outputs that are compared then, in each of two seconds."""
CHECK_SECONDS = 3.0
"""No check is made if less time than this is left for the call, or for the audit."""

MOST_REMEMBERED = 1000
"""Number of data sets whose last output is stored."""

ENOUGH_BITS = 30
"""Evidence, in powers of 1/2, from which on the releases of an audit are considered to depend on the second."""

_in_a_row: dict[Hashable, tuple[Hashable, int]] = {}  # per program and data: the last output, how often in a row
_checked: set[Hashable] = set()


@dataclass
class _Seconds:
    """Outputs of a program on one data set, second by second; kept only while all outputs of each second are equal."""

    second: int = -1
    output: Hashable = None
    count: int = 0  # of the present second
    waiting: tuple[Hashable, int] | None = None  # output and count of a second that has no partner yet
    bits: int = 0


_by_second: dict[Hashable, _Seconds | None] = {}  # per program and data; None: its outputs do not depend on the second


def observe(program: Hashable, data: Any, output: Any, start: float, end: float, command: str) -> None:
    """Note a release that ran from ``start`` to ``end`` (of ``time.time``); raise MechanismError if the second decides outputs.

    Only releases count that lie within one second, whatever part of it the program reads the clock in. Seconds with several
    releases are paired. If releases were independent, both seconds of a pair would have n equal outputs, but not the same,
    with probability at most 2^(1 - 2 n) for n >= 2 (see :func:`check`), and pairs are independent of each other.
    """
    if len(_by_second) >= MOST_REMEMBERED:
        _by_second.clear()
    key = (program, fingerprint(data))
    known = _by_second.setdefault(key, _Seconds())
    if known is None or int(start) != int(end):
        return
    seen = fingerprint(output)
    if int(start) == known.second:
        known.count += 1
        if seen != known.output:
            _by_second[key] = None
        return
    if known.count >= 2:
        if known.waiting is None:
            known.waiting = (known.output, known.count)
        elif known.waiting[0] == known.output:
            _by_second[key] = None
        else:
            known.bits += 2 * min(known.waiting[1], known.count) - 1
            known.waiting = None
    known.second, known.output, known.count = int(start), seen, 1
    if known.bits >= ENOUGH_BITS:
        raise _from_the_clock(command)


def suspected(program: Hashable, data: Any, output: Any) -> bool:
    """Return True if a program has to be checked: it gave the same output on the same data several times in a row.

    True at most once for each program, and not while the deadline of the audit or the time-out of a call would come in between.
    """
    if program in _checked:
        return False
    key, seen = (program, fingerprint(data)), fingerprint(output)
    before, times = _in_a_row.get(key, (None, 0))
    times = times + 1 if before == seen else 1
    if len(_in_a_row) >= MOST_REMEMBERED:
        _in_a_row.clear()
    _in_a_row[key] = (seen, times)
    if times < REPEATS_TO_CHECK or not _time_to_check():
        return False
    _checked.add(program)
    return True


def _time_to_check() -> bool:
    left = seconds_left()
    return min(math.inf if left is None else left, signal.getitimer(signal.ITIMER_REAL)[0] or math.inf) > CHECK_SECONDS


def check(release: Callable[[], Any], command: str) -> None:
    """Raise MechanismError if outputs depend on the second in which they are drawn.

    All n outputs of one second are equal, and so are those of another, but not to the former. If releases were independent, with
    p_a the probability of output a, that would have the probability sum over a != b of (p_a p_b)^n, which is at most 2^(1 - 2 n)
    (two outputs of probability 1/2 each): below 1e-9 for n = 16. The outputs drawn here are used for nothing else.
    """
    seconds: list[set[Hashable]] = []
    try:
        for _ in range(2):
            time.sleep(1.05 - time.time() % 1.0)  # a little later: C's time() is behind by some milliseconds
            seconds.append({fingerprint(release()) for _ in range(OUTPUTS_OF_A_SECOND)})
    except ReleaseFailed:
        return
    if len(seconds[0]) == len(seconds[1]) == 1 and seconds[0] != seconds[1]:
        raise _from_the_clock(command)


def _from_the_clock(command: str) -> MechanismError:
    return MechanismError(
        f"The program {shorten(command)} gives the same output in all processes that start in one second. The time is its seed, "
        "so its releases are not independent, and anyone who knows the time knows the noise. Seed it from the system's entropy, "
        "or from a word {seed} of the command."
    )
