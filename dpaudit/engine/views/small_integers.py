"""Group rows of small integers (bits, indicators, categories): read several coordinates as the digits of one number.

Few such numbers are possible, so the score of a group is computed once for each of them and looked up, which saves 29 % of
an audit of int8 vectors. The lowest digit and the base are those of the batch, and results must not depend on them: callers
form only sums that are exact in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded

Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """Limits within which looking up groups of coordinates is faster than computing each output."""

    fewest_outputs: int = 4096
    """Batches with fewer outputs are not grouped."""
    most_distinct: int = 1 << 16
    """The largest number of possible outputs that are counted as a whole."""
    most_patterns: int = 1 << 11
    """The largest number of possible values of a group, so that its tables stay in the cache."""
    outputs_per_pattern: int = 16
    """The smallest number of outputs in the batch for each possible value of a group."""
    fewest_coordinates: int = 4
    """The smallest number of coordinates of a group."""


SIZES = GroupSizes()


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct outputs of a batch, and their frequencies."""

    batch: Encoded
    counts: Counts


@dataclass(frozen=True, slots=True)
class Patterns:
    """All rows of ``width`` digits."""

    width: int
    low: int  # the lowest digit
    base: int  # the number of digits
    code: int

    @property
    def batch(self) -> Encoded:
        """The rows as outputs of one structure, in the order of their numbers."""
        return _rows(self, np.arange(self.base**self.width))


@dataclass(frozen=True, slots=True)
class Group:
    """Adjacent coordinates, their possible values, and the number of the value in each output.

    Patterns begin with coordinate ``shift``, the one before the group's own if there is one, for differences.
    """

    columns: range
    shift: int
    patterns: Patterns
    number: NDArray[np.intp]


def distinct(batch: Encoded) -> Distinct | None:
    """Count the distinct outputs; None if too many are possible."""
    digits = _digits(batch)
    if digits is None or digits[1] ** batch.width > SIZES.most_distinct:
        return None
    patterns = Patterns(batch.width, *digits, int(batch.codes[0]))
    counts = np.bincount(_number(batch, 0, patterns))
    used = np.flatnonzero(counts)
    return Distinct(replace(_rows(patterns, used), labels=batch.labels), counts[used])


def groups(batch: Encoded) -> tuple[Group, ...] | None:
    """Divide the coordinates into groups with few possible values each; None if that would save nothing."""
    digits = _digits(batch)
    if digits is None:
        return None
    largest = min(SIZES.most_patterns, len(batch) // SIZES.outputs_per_pattern)
    most = int(math.log(largest + 0.5, digits[1]))
    if min(most, batch.width) < SIZES.fewest_coordinates:
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
    """Return the lowest digit and the number of digits (at least two); None if the batch is not suited."""
    if batch.numbers.dtype.itemsize > 1 or len(batch) < SIZES.fewest_outputs or batch.width < 2:
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
