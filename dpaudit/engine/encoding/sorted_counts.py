"""A sorted sample of numbers or keys with their frequencies, which is counted between cuts by binary search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SortedSample:
    """A sorted sample (NaNs last, as numpy sorts them). With ``upto`` each value is stored once, with a cumulative count."""

    values: NDArray[Any]
    upto: Counts | None = None  # None: every value stands for one output

    @classmethod
    def counted(cls, values: NDArray[Any], counts: Counts) -> SortedSample:
        """Build from values in any order and their frequencies."""
        order = np.argsort(values)
        return cls(values[order], np.cumsum(counts[order]))

    @property
    def size(self) -> int:
        """Number of outputs."""
        return int(self.values.size if self.upto is None else self.upto[-1] if self.upto.size else 0)

    def below(self, cuts: NDArray[Any], side: Literal["left", "right"] = "left") -> Counts:
        """Count the outputs below each cut; with side ``right``, those not above it."""
        place = np.searchsorted(self.values, cuts, side=side)
        return place if self.upto is None else np.concatenate(([0], self.upto))[place]

    def equal(self, keys: NDArray[Any]) -> Counts:
        """Count the outputs that equal each of some sorted keys."""
        if self.upto is None or self.values.shape != keys.shape or (self.values != keys).any():
            return self.below(keys, "right") - self.below(keys)
        counts = self.upto.copy()  # every value is a key: the usual case, block after block
        counts[1:] -= self.upto[:-1]
        return counts

    def repeated(self, limit: int) -> tuple[NDArray[Any], Counts]:
        """Return the ``limit`` most frequent of the values that occur more than once, sorted, and their frequencies."""
        if self.upto is None:
            same = self.values[1:] == self.values[:-1]
            if not same.any():
                return self.values[:0], np.empty(0, np.int64)
            edge = np.diff(np.concatenate(([0], same.view(np.int8), [0])))
            starts = np.flatnonzero(edge == 1)
            values, lengths = self.values[starts], np.flatnonzero(edge == -1) - starts + 1
        else:
            lengths = np.diff(self.upto, prepend=0)
            values, lengths = self.values[lengths > 1], lengths[lengths > 1]
        return most_frequent(values, lengths, limit)


def most_frequent(values: NDArray[Any], lengths: Counts, limit: int) -> tuple[NDArray[Any], Counts]:
    """Return the ``limit`` most frequent of some sorted values, sorted, and their frequencies."""
    if values.size > limit:
        chosen = np.sort(np.argpartition(lengths, -limit)[-limit:])
        values, lengths = values[chosen], lengths[chosen]
    return values, lengths.astype(np.int64)
