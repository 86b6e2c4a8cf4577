"""Outputs of mechanisms: exceptions as outputs, checks of their number, and copies that stay as they were released."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import shorten
from dpaudit.errors import MechanismError

Outputs: TypeAlias = NDArray[Any] | Sequence[Any]

MOST_ITEMS = 100_000
"""Number of items that are read from an iterator that a mechanism returns. The iterator may be endless."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The output of a release that raised an exception: its type, and its message with numbers and quoted text blanked.

    The caller of a release sees whether it raises, and which exception, so exceptions must be private like other outputs.

    >>> Raised.from_exception(ValueError("row 17 has age 212.5"))
    Raised(type='ValueError', template='row # has age #')
    """

    type: str
    template: str = ""

    @classmethod
    def from_exception(cls, error: Exception) -> Raised:
        """Summarise an exception so that equal causes compare equal."""
        if isinstance(error, ReleaseFailed):
            return cls(error.kind, _template(error.message))
        kind = type(error)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        try:
            message = str(error)
        except Exception:  # the user's exception class has a broken __str__
            message = "(a message that cannot be read)"
        return cls(name, _template(message))

    def __str__(self) -> str:
        return f"raises {self.type}" + (f": {self.template}" if self.template else "")


class ReleaseFailed(Exception):
    """A release that failed outside of Python, in a program or a service.

    As an output it is ``Raised(kind, message)``. Numbers in ``kind`` are kept (``exit code 3``), those in the message blanked.
    """

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\b(?:nan|inf)\b")


def _template(message: str, limit: int = 120) -> str:
    return _NUMBER.sub("#", _QUOTED.sub("'...'", message))[:limit]


def checked_outputs(outputs: Outputs, size: int) -> Outputs:
    """Return ``outputs`` if there are exactly ``size`` of them."""
    if type(outputs) is np.ndarray and outputs.shape[:1] == (size,):
        return outputs
    try:
        if isinstance(outputs, str | bytes | Mapping | Set):  # one output with a length, not a sequence of outputs
            raise TypeError
        count = len(outputs)
    except TypeError:
        raise MechanismError(
            f"The mechanism returned {shorten(outputs)} for size={size}; it must return {size} outputs, as an array "
            "whose first axis has that length or as a sequence. Wrap a function of one release in dpaudit.per_release."
        ) from None
    if count != size:
        raise MechanismError(f"The mechanism returned {count} outputs for size={size}; it must return exactly {size}.")
    return outputs


def exited(stop: SystemExit) -> MechanismError:
    """Return the error for a mechanism that called ``sys.exit``: the call would end the program and its other audits."""
    code = "" if stop.code is None else shorten(stop.code)
    return MechanismError(
        f"The mechanism called sys.exit({code}), which ends the program instead of answering. Let it raise an exception, "
        "which is an output like any other, or return a value."
    )


UNCHANGING = frozenset({float, int, bool, str, bytes, complex, type(None), np.float64, np.int64, np.bool_, Raised})


def kept(output: Any) -> Any:
    """Return a copy of an output, because a mechanism may write its next output into the same array, list or dict.

    Without the copy all outputs of a block could equal the last one, and would not be independent.
    """
    kind = type(output)
    if kind is np.ndarray and not output.dtype.hasobject:
        return output.copy()
    if kind in (tuple, list) and UNCHANGING.issuperset(map(type, output)):
        return output if kind is tuple else output.copy()
    if kind is dict and UNCHANGING.issuperset(map(type, output.values())):
        return output.copy()
    if isinstance(output, Iterator):
        try:
            return list(itertools.islice(output, MOST_ITEMS))  # an iterator can be read only once
        except SystemExit as stop:
            raise exited(stop) from stop
        except Exception as error:
            return Raised.from_exception(error)
    try:
        return copy.deepcopy(output)
    except Exception:  # a lock or an open connection: it has no contents to encode
        return output
