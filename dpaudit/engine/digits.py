"""Outputs of a few small integers (bits, indicators, categories), read together as the digits of one number.

There are few such numbers, so what is to be known of an output is worked out once for each of them and looked up. Lowest
digit and base are those of the batch, which must not show: whoever uses this forms sums that are exact in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.outputs import Encoded

Counts: TypeAlias = NDArray[np.int64]

WORTH_A_TABLE = 4096  # outputs; for fewer a table costs more than it saves
MOST_OUTPUTS = 1 << 16  # different ones that are counted
MOST_PATTERNS = 1 << 11  # of one group: their tables stay in the cache
OUTPUTS_PER_PATTERN = 16  # at least, in the batch
FEWEST_TOGETHER = 4  # coordinates of a group; with fewer little is saved


@dataclass(frozen=True, slots=True)
class Distinct:
    """The different outputs of a batch, and how often each occurs."""

    batch: Encoded
    counts: Counts


@dataclass(frozen=True, slots=True)
class Patterns:
    """All rows of so many digits."""

    width: int
    low: int  # the lowest digit
    base: int  # how many digits there are
    code: int

    @property
    def batch(self) -> Encoded:
        """As outputs of one structure, in the order of their numbers."""
        return _rows(self, np.arange(self.base**self.width))


@dataclass(frozen=True, slots=True)
class Group:
    """Coordinates next to each other, what they can be, and which of it they are in each output.

    Patterns begin with coordinate ``shift``: the one before the group's own, if there is one, for differences.
    """

    columns: range
    shift: int
    patterns: Patterns
    number: NDArray[np.intp]


def distinct(batch: Encoded) -> Distinct | None:
    """Count the different outputs, where there can only be few."""
    digits = _digits(batch)
    if digits is None or digits[1] ** batch.width > MOST_OUTPUTS:
        return None
    patterns = Patterns(batch.width, *digits, int(batch.codes[0]))
    counts = np.bincount(_number(batch, 0, patterns))
    used = np.flatnonzero(counts)
    return Distinct(replace(_rows(patterns, used), labels=batch.labels), counts[used])


def groups(batch: Encoded) -> tuple[Group, ...] | None:
    """Cut the coordinates into groups that can only be a few things each."""
    digits = _digits(batch)
    if digits is None:
        return None
    largest = min(MOST_PATTERNS, len(batch) // OUTPUTS_PER_PATTERN)
    most = int(math.log(largest + 0.5, digits[1]))
    if min(most, batch.width) < FEWEST_TOGETHER:
        return None
    made: list[Group] = []
    start = 0
    while start < batch.width:
        shift = max(start - 1, 0)
        stop = min(shift + most, batch.width)
        patterns = Patterns(stop - shift, *digits, int(batch.codes[0]))
        made.append(Group(range(start, stop), shift, patterns, _number(batch, shift, patterns)))
        start = stop
    return tuple(made)


def _digits(batch: Encoded) -> tuple[int, int] | None:
    """The lowest digit, and how many there are (two at least)."""
    if batch.numbers.dtype.itemsize > 1 or len(batch) < WORTH_A_TABLE or batch.width < 2:
        return None
    low, high = int(batch.numbers.min()), int(batch.numbers.max())
    return low, max(high - low + 1, 2)


def _number(batch: Encoded, first: int, patterns: Patterns) -> NDArray[np.intp]:
    number = np.zeros(len(batch), np.int32)
    for column in range(first, first + patterns.width):
        number *= patterns.base
        number += batch.numbers[:, column]
    number -= patterns.low * sum(patterns.base**place for place in range(patterns.width))
    return number.astype(np.intp)


def _rows(patterns: Patterns, number: NDArray[np.intp]) -> Encoded:
    values = np.empty((number.size, patterns.width), order="F")
    for column in reversed(range(patterns.width)):
        number, values[:, column] = np.divmod(number, patterns.base)
    values += patterns.low
    return Encoded(np.broadcast_to(np.uint64(patterns.code), values.shape[:1]), values, {})
