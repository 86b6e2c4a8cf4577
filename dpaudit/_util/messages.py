"""Describe exceptions of user code, whose class or message may itself raise."""

from __future__ import annotations

import traceback
from pathlib import Path

PACKAGE = str(Path(__file__).resolve().parents[1])


def described(error: BaseException) -> str:
    """Return the type and the message of an exception.

    >>> described(ValueError("no")), described(KeyboardInterrupt())
    ('ValueError: no', 'KeyboardInterrupt')
    """
    try:
        message = str(error)
    except BaseException:  # a broken __str__
        message = "(a message that cannot be read)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def traceback_text(error: BaseException) -> str:
    """Return the traceback of an exception, without its last line, which :func:`described` gives."""
    try:
        lines = traceback.format_tb(error.__traceback__)
        notes = getattr(error, "__notes__", [])
        return "".join(lines).rstrip("\n") + "".join(f"\n{note}" for note in notes if isinstance(note, str)).rstrip(
            "\n"
        )
    except BaseException:  # a traceback whose source lines cannot be read
        return "(no traceback)"


def duration(seconds: float) -> str:
    """Return a time in a readable unit.

    >>> duration(0.017), duration(3.2), duration(720.0), duration(9000.0)
    ('17 ms', '3.2 s', '12 minutes', '2.5 hours')
    """
    for limit, unit, size in (
        (1.0, "ms", 1e-3),
        (120.0, "s", 1.0),
        (7200.0, "minutes", 60.0),
        (172_800.0, "hours", 3600.0),
    ):
        if seconds < limit:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds / 86_400.0:,.0f} days"
