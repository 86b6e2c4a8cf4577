"""Describe exceptions of others, whose class or message may itself raise."""

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
