"""Check whether a function of a data set is sample-monotone (report, definition 3.2.0.1; Asi and Duchi 2020).

f is sample-monotone if for all data x and all values s between f(x) and t it takes no more changes to reach s than to reach t:
len_f(x, s) <= len_f(x, t). The length is computed by brute force over all data sets of the given size and points, so size and
number of points must be small; s and t range over the values that f takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.hypothesis_bridge import smallest
from dpaudit._util.validation import check_count
from dpaudit.errors import InvalidArgument

LARGEST = 100_000
"""Largest number of data sets that are enumerated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMonotoneCheck:
    """The smallest data set found on which the function is not sample-monotone, or None, and how many were examined."""

    data: tuple[Any, ...] | None
    value: float | None = None
    nearer: float | None = None
    nearer_length: int | None = None
    farther: float | None = None
    farther_length: int | None = None
    examined: int = 0

    @property
    def counterexample_found(self) -> bool:
        """True if a nearer value needs more changes than a farther one."""
        return self.data is not None

    def __str__(self) -> str:
        if self.data is None:
            return f"no counterexample among {self.examined} data sets"
        return (
            f"f{self.data!r} = {self.value:g}; to make it {self.nearer:g} takes {self.nearer_length} changes, to make"
            f" it {self.farther:g}, which is farther, takes {self.farther_length}"
        )


def check_sample_monotone(
    function: Callable[[Sequence[Any]], float],
    points: Sequence[Any],
    size: int,
    *,
    examples: int = 200,
    seed: int = 0,
) -> SampleMonotoneCheck:
    """Search for a data set on which ``function`` is not sample-monotone; Hypothesis searches, and shrinks what it finds.

    Parameters
    ----------
    function : callable
        Takes a data set (a tuple of points) and returns a number.
    points : sequence
        The possible records.
    size : int
        Number of records.
    examples, seed : int
        Number of data sets to examine, and the seed of the search.

    Examples
    --------
    >>> check_sample_monotone(lambda x: sorted(x)[1], [0, 1, 2, 3], 3).counterexample_found
    False
    >>> print(check_sample_monotone(lambda x: max(set(x), key=lambda v: (x.count(v), -v)), [0, 1, 2], 3))
    f(0, 0, 2) = 0; to make it 1 takes 2 changes, to make it 2, which is farther, takes 1
    """
    from hypothesis import strategies as st

    check_count(size=size, examples=examples)
    choices = list(points)
    if not choices or len(choices) ** size > LARGEST:
        raise InvalidArgument(
            f"points={points!r}, size={size}: there are {len(choices)}^{size} data sets; between 1 and {LARGEST} can"
            " be enumerated."
        )
    places = np.array(list(itertools.product(range(len(choices)), repeat=size)))
    values = np.array([float(function(tuple(choices[i] for i in row))) for row in places])
    levels, owner = np.unique(values, return_inverse=True)
    examined = 0

    def lengths(row: Sequence[int]) -> Any:
        changes = (places != np.array(row)).sum(axis=1)
        least = np.full(levels.size, size)
        np.minimum.at(least, owner, changes)
        return least

    def violation(row: Sequence[int]) -> tuple[int, int] | None:
        """Return places of a nearer and a farther value of which the nearer one takes more changes."""
        least = lengths(row)
        start = int(np.flatnonzero(least == 0)[0])
        for side in (range(start, levels.size), range(start, -1, -1)):
            for near, far in itertools.pairwise(side):
                if least[near] > least[far]:
                    return near, far
        return None

    def condition(row: list[int]) -> bool:
        nonlocal examined
        examined += 1
        return violation(row) is not None

    rows = st.lists(st.integers(0, len(choices) - 1), min_size=size, max_size=size)
    found = smallest(rows, condition, examples=examples, seed=seed)
    if found is None:
        return SampleMonotoneCheck(data=None, examined=examined)
    pair = violation(found)
    assert pair is not None
    least = lengths(found)
    return SampleMonotoneCheck(
        data=tuple(choices[i] for i in found),
        value=float(levels[int(np.flatnonzero(least == 0)[0])]),
        nearer=float(levels[pair[0]]),
        nearer_length=int(least[pair[0]]),
        farther=float(levels[pair[1]]),
        farther_length=int(least[pair[1]]),
        examined=examined,
    )
