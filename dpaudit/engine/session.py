"""The session around an assertion, such as a pytest run: it sets options of the audit, and receives its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Callbacks of a run for every ``assert_private`` inside it."""

    options: Callable[[str | None, dict[str, Any]], tuple[str, dict[str, Any]]]  # (name, options) to the ones that hold
    finished: Callable[[Any], None]  # sees each result
    allows_inconclusive: Callable[[], bool] = lambda: False


# Of the process, not of a thread: a test may audit in threads of its own.
_current: Surroundings | None = None


def current() -> Surroundings | None:
    """Return the callbacks of the surrounding run, if there is one."""
    return _current


@contextmanager
def using(surroundings: Surroundings) -> Iterator[None]:
    """Use these callbacks inside the block."""
    global _current
    before, _current = _current, surroundings
    try:
        yield
    finally:
        _current = before
