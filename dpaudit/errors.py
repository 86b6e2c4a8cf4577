"""Exceptions, one class for each kind of action that the reader can take.

All of them pickle (they cross executors), and every message says what is wrong, ``name=value``, what is allowed, and
what to do.
"""

from __future__ import annotations

from typing import Any


class DPAuditError(Exception):
    """Base of all errors that dpaudit raises itself, except the two assertion errors below."""


class InvalidArgument(DPAuditError, ValueError):
    """An argument is outside what is allowed; the message names it and its value."""


class RelationMismatch(InvalidArgument):
    """A claim made for one neighbouring relation was paired with neighbours of another."""


class MechanismError(DPAuditError):
    """The mechanism broke the protocol: wrong number of outputs, changed its input, shares random state."""


class LawError(DPAuditError):
    """An output law is not a probability law, or two laws cannot be compared."""


class CannotFollow(DPAuditError):
    """The function does something that extraction of its output law cannot follow, at ``filename``, ``line``."""

    def __init__(
        self, reason: str, *, filename: str | None = None, line: int | None = None, function: str | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.filename = filename
        self.line = line
        self.function = function

    def __str__(self) -> str:
        where = "" if self.filename is None else f'\n  File "{self.filename}", line {self.line}, in {self.function}'
        return f"{self.reason}.{where}"

    def __reduce__(self) -> Any:
        return _cannot_follow, (self.reason, self.filename, self.line, self.function)


def _cannot_follow(reason: str, filename: str | None, line: int | None, function: str | None) -> CannotFollow:
    return CannotFollow(reason, filename=filename, line=line, function=function)


class MissingDependency(DPAuditError, ImportError):
    """An optional library is needed; the message names the extra that installs it."""


class _CarriesResult(AssertionError):
    """An assertion error that carries its result, also through pickling."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message, result)
        self.result = result

    def __str__(self) -> str:
        return str(self.args[0])


class PrivacyViolation(_CarriesResult):
    """The mechanism leaks more than its claim allows. Prints the witness; ``.result`` has everything."""


class AccuracyViolation(_CarriesResult):
    """The mechanism is less accurate than it claims. Prints the data set; ``.result`` has everything."""


class Inconclusive(_CarriesResult):
    """The budget ended with less power than was required."""
