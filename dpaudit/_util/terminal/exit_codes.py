"""The exit codes of a command, and which of several is reported."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of a command."""

    OK = 0  # nothing found and every expectation met
    FAILED = 1  # violation, regression or unmet expectation
    ERROR = 2  # usage, configuration, unreadable file, or an audit that could not be run
    UNDECIDED = 3  # inconclusive
    INTERRUPTED = 130


_FROM_WEAK_TO_STRONG = (ExitCode.OK, ExitCode.UNDECIDED, ExitCode.FAILED, ExitCode.ERROR, ExitCode.INTERRUPTED)


def strongest(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that a run with all of these ends with.

    >>> strongest([ExitCode.UNDECIDED, ExitCode.FAILED, ExitCode.OK]).name
    'FAILED'
    """
    return max(codes, key=_FROM_WEAK_TO_STRONG.index, default=ExitCode.OK)
