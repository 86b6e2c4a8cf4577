"""Random small changes to a pair of data sets of rows, for hill climbing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from hypothesis.strategies import SearchStrategy

from dpaudit._util.values import fingerprint, rows_of
from dpaudit.neighbours._containers import Array, Frame, MakeContainer
from dpaudit.neighbours._core import Pair
from dpaudit.neighbours._corner_rows import corner_rows, ordinary_rows

Edit: TypeAlias = Callable[[Pair, np.random.Generator], Pair | None]


def readable(build: MakeContainer) -> bool:
    """Return True if rows can be read back from the data sets that this container makes."""
    return build in (list, tuple) or isinstance(build, Array | Frame)


def row_edits(
    build: MakeContainer, rows: SearchStrategy[Any], *, fewest: int, most: int, kept: tuple[Any, ...] = ()
) -> Edit | None:
    """Return a function that makes one random change to a pair, or None if its rows cannot be read back.

    The change removes a shared row, repeats a row, makes all shared rows equal, replaces a row by a corner row, a row
    between the corners or a row that the strategy draws, or moves the difference to another place.

    Parameters
    ----------
    build : callable
        The container, which makes a data set of a list of rows.
    rows : strategy
        Yields one row.
    fewest, most : int
        Bounds on the number of rows that both data sets share; a change that leaves them gives None.
    kept : tuple
        Rows that, where the two data sets differ, are neither changed nor copied into the shared rows.
    """
    if not readable(build):
        return None

    def edit(pair: Pair, rng: np.random.Generator) -> Pair | None:
        shared, sides, place = _taken_apart(rows_of(pair.data), rows_of(pair.neighbour))
        fixed = {fingerprint(rows_of(build([row]))[0]) for row in kept}
        free = [(side, 0) for side in sides if side and fingerprint(side[0]) not in fixed]
        known = [*shared, *(side[at] for side, at in free)]
        ends = corner_rows(rows)
        corners = rows_of(build([*ends.all, *ends.between]))
        fresh = rows_of(build(list(ordinary_rows(rows)))) or corners

        def one_of(options: list[Any]) -> Any:
            return options[int(rng.integers(len(options)))]

        match int(rng.integers(5)):
            case 0 if shared:
                del shared[int(rng.integers(len(shared)))]
            case 1 if known:
                shared.insert(int(rng.integers(len(shared) + 1)), one_of(known))
            case 2:
                shared[:] = [one_of(one_of([known or corners, corners, fresh]))] * len(shared)
            case 3 if known:
                target, at = one_of([*((shared, at) for at in range(len(shared))), *free])
                target[at] = one_of(one_of([corners, fresh]))
            case 4:
                place = int(rng.integers(len(shared) + 1))
        if not fewest <= len(shared) <= most:
            return None
        place = min(place, len(shared))
        # Copies, so that code that changes one data set in place does not change the other.
        data, neighbour = (copy.deepcopy([*shared[:place], *side, *shared[place:]]) for side in sides)
        return Pair(build(data), build(neighbour))

    return edit


def _taken_apart(first: list[Any], second: list[Any]) -> tuple[list[Any], tuple[list[Any], list[Any]], int]:
    """Return the rows that both share, the differing row of each (or none), and the place of the difference."""
    both = zip(first, second, strict=False)
    place = next(
        (at for at, (a, b) in enumerate(both) if fingerprint(a) != fingerprint(b)), min(len(first), len(second))
    )
    longest = max(len(first), len(second))
    sides = tuple(rows[place : place + 1] if len(rows) == longest else [] for rows in (first, second))
    shared = first[:place] + first[place + len(sides[0]) :]
    return shared, (sides[0], sides[1]), place
