"""Waiting for something outside of Python, a process or a server: for how long, and what to close at the end of an audit.

The engine sets the time around every call (:func:`waiting_until`). What waits asks :func:`seconds_left`, and raises
:class:`DeadlinePassed` when there are none. A call that computes in Python cannot be cut short this way, and does not look.
What stays open from call to call is closed by the functions that are registered with :func:`at_end_of_audit`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

WORTH_A_MESSAGE = 1.0  # seconds that a release was waited for when the time was up, for the result to mention it

_deadline: ContextVar[float | None] = ContextVar("_deadline", default=None)

_closers: list[Callable[[], None]] = []


class DeadlinePassed(BaseException):
    """The audit's time was up before an answer came. Not an Exception, so that it is never taken for an output."""


@contextmanager
def waiting_until(deadline: float | None) -> Iterator[None]:
    """Let calls inside the block wait until ``deadline`` (of ``time.monotonic``); None: for ever."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float | None:
    """Return the seconds until the deadline, at least 0; None if there is no deadline.

    >>> seconds_left() is None
    True
    >>> with waiting_until(time.monotonic() - 1.0):
    ...     seconds_left()
    0.0
    """
    deadline = _deadline.get()
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


def at_end_of_audit(close: Callable[[], None]) -> Callable[[], None]:
    """Register a function that closes what this thread has opened; use as a decorator."""
    _closers.append(close)
    return close


def close_all() -> None:
    """Close what mechanisms have opened in this thread."""
    for close in _closers:
        close()


def deadline_passed(what: str, since: float) -> DeadlinePassed:
    """Return the exception for an answer that had not come; its text is empty where the wait was short."""
    waited = time.monotonic() - since
    if waited < WORTH_A_MESSAGE:
        return DeadlinePassed()
    return DeadlinePassed(
        f"{what} had not answered after {waited:.1f} s when the time was up. Whether it hangs may depend on the data: timeout= "
        "ends the audit there, timeout_is_output=True makes it an output."
    )
