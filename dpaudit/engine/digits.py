"""Outputs of a few small integers (bits, indicators, categories), read together as the digits of one number.

There are few such numbers, so what is to be known of an output is worked out once for each of them and looked up. Lowest
digit and base are those of the batch, which must not show: whoever uses this forms sums that are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.outputs import Encoded

Counts: TypeAlias = NDArray[np.int64]

WORTH_A_TABLE = 4096  # outputs; for fewer a table costs more than it saves
MOST_OUTPUTS = 1 << 16  # different ones that are counted
MOST_PATTERNS = 1 << 11  # of one group: their tables stay in the cache
FEWEST_TOGETHER = 4  # coordinates of a group; with fewer little is saved


@dataclass(frozen=True, slots=True)
class Distinct:
    """The different outputs of a batch, and how often each occurs."""

    batch: Encoded
    counts: Counts


@dataclass(frozen=True, slots=True)
class Group:
    """Coordinates next to each other, what they can be, and which of it they are in each output.

    Patterns begin with coordinate ``shift``: the one before the group's own, if there is one, for differences.
    """

    columns: range
    shift: int
    patterns: Encoded
    number: NDArray[np.intp]


def distinct(batch: Encoded) -> Distinct | None:
    """Count the different outputs, where there can only be few."""
    digits = _digits(batch)
    if digits is None or digits[1] ** batch.width > MOST_OUTPUTS:
        return None
    low, base = digits
    counts = np.bincount(_number(batch, range(batch.width), low, base))
    used = np.flatnonzero(counts)
    return Distinct(_patterns(batch, used, batch.width, low, base), counts[used])


def groups(batch: Encoded) -> tuple[Group, ...] | None:
    """Cut the coordinates into groups that can only be a few things each."""
    digits = _digits(batch)
    if digits is None:
        return None
    low, base = digits
    most = next(width for width in range(12) if base ** (width + 1) > MOST_PATTERNS)
    if min(most, batch.width) < FEWEST_TOGETHER:
        return None
    made: list[Group] = []
    start = 0
    while start < batch.width:
        shift = max(start - 1, 0)
        stop = min(shift + most, batch.width)
        patterns = _patterns(batch, np.arange(base ** (stop - shift)), stop - shift, low, base)
        made.append(Group(range(start, stop), shift, patterns, _number(batch, range(shift, stop), low, base)))
        start = stop
    return tuple(made)


def _digits(batch: Encoded) -> tuple[int, int] | None:
    """The lowest digit, and how many there are (two at least)."""
    if batch.numbers.dtype.itemsize > 1 or len(batch) < WORTH_A_TABLE or batch.width < 2:
        return None
    low, high = int(batch.numbers.min()), int(batch.numbers.max())
    return low, max(high - low + 1, 2)


def _number(batch: Encoded, columns: range, low: int, base: int) -> NDArray[np.intp]:
    number = np.zeros(len(batch), np.int32)
    for column in columns:
        number *= base
        number += batch.numbers[:, column]
    number -= low * sum(base**place for place in range(len(columns)))
    return number.astype(np.intp)


def _patterns(batch: Encoded, number: NDArray[np.intp], width: int, low: int, base: int) -> Encoded:
    values = np.empty((number.size, width), order="F")
    for column in reversed(range(width)):
        number, values[:, column] = np.divmod(number, base)
    values += low
    return Encoded(np.broadcast_to(batch.codes[:1], values.shape[:1]), values, batch.labels)
