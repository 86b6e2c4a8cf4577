"""Neighbouring data sets of rows that differ in one row, or in all rows of one person.

The strategies draw first the rows that both data sets share, as a list, then the row that differs, then its place. So
Hypothesis can delete shared rows one by one without changing the difference, and shrinks to short data and one small
change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dpaudit._util.validation import check_choice, check_count, shorten
from dpaudit._util.values import fingerprint, rows_of
from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours._containers import Array, Frame, MakeContainer, resolve
from dpaudit.neighbours._core import Neighbours, Pair
from dpaudit.neighbours._corner_rows import CornerRows, corner_rows
from dpaudit.neighbours._edits import readable, row_edits

_STEPS = 8
"""Number of sizes, starting from the smallest, that have a corner pair of their own."""


def substitute(rows: SearchStrategy[Any], *, min_size: int = 1, max_size: int = 6, container: Any = list) -> Neighbours:
    """Data sets of the same size, one row replaced by a different one; the size is public.

    Parameters
    ----------
    rows : strategy
        Yields one row.
    min_size, max_size : int
        Bounds on the number of rows of both data sets.
    container : callable
        ``list``, ``numpy.ndarray``, :func:`frame`, :func:`array`, or a function from a list of rows to a data set.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> substitute(st.booleans(), max_size=3).corners()[0]
    Pair(data=[False], neighbour=[True])
    """
    _check(rows, min_size, max_size, smallest=1, spare=0)
    build = resolve(container, rows)
    tables = st.lists(rows, min_size=min_size - 1, max_size=max_size - 1)

    @st.composite
    def pairs(draw: st.DrawFn) -> Pair:
        shared = draw(tables)
        old = draw(rows)
        new = _draw_other(draw, rows, old)
        return _replaced(build, shared, draw(st.integers(0, len(shared))), old, new)

    def corners() -> Iterator[Pair]:
        known = corner_rows(rows)
        for shared in _shared_rows(known, min_size - 1, max_size - 1):
            yield _replaced(build, shared, len(shared) // 2, known.low, known.high)
        shared = [known.minimal] * (min_size - 1)
        for row in known.all[1:]:
            yield _replaced(build, shared, 0, known.minimal, row)
        shared = _halves(known, max_size - 1)
        for place in (0, max_size - 1):  # code may handle the first or the last row differently
            yield _replaced(build, shared, place, known.low, known.high)
        for row in known.between:
            for size in sorted({min(max(min_size - 1, 1), max_size - 1), max_size - 1}):
                yield _replaced(build, [row] * size, 0, known.low, known.high)
        for row in known.between:
            for end, other in ((known.high, known.low), (known.low, known.high)):
                yield _replaced(build, [end] * (max_size - 1), max_size - 1, row, other)

    def vary(row: Any) -> Iterator[Pair]:
        minimal = corner_rows(rows).minimal
        yield _replaced(build, [minimal] * (min_size - 1), 0, minimal, row)
        if max_size > 1:  # a row equal to another
            yield _replaced(build, [row] * max(min_size - 1, 1), 0, minimal, row)

    return Neighbours(
        pairs(),
        Relation.SUBSTITUTE,
        _described("substitute", rows, min_size, max_size, container),
        lambda: _that_differ(corners()),
        _adjacency(build, one_replaced),
        row_edits(build, rows, fewest=min_size - 1, most=max_size - 1),
        rows=rows,
        vary=vary,
    )


def add_remove(rows: SearchStrategy[Any], *, min_size: int = 0, max_size: int = 6, container: Any = list) -> Neighbours:
    """Data sets of which one has one row more; which of the two comes first varies.

    Parameters
    ----------
    rows, min_size, max_size, container
        As for :func:`substitute`; the bounds hold for both data sets.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> add_remove(st.booleans(), max_size=3).corners()[0]
    Pair(data=[], neighbour=[False])
    """
    _check(rows, min_size, max_size, smallest=0, spare=1)
    build = resolve(container, rows)
    tables = st.lists(rows, min_size=min_size, max_size=max_size - 1)

    @st.composite
    def pairs(draw: st.DrawFn) -> Pair:
        shared = draw(tables)
        extra = draw(rows)
        pair = _added(build, shared, draw(st.integers(0, len(shared))), extra)
        return _maybe_swapped(draw, pair)

    def corners() -> Iterator[Pair]:
        known = corner_rows(rows)
        for row in known.all:
            yield _added(build, [known.minimal] * min_size, 0, row)
        for shared in _shared_rows(known, min_size, max_size - 1):
            for row in (known.high, known.low):
                yield _added(build, shared, len(shared) // 2, row)
        for size in range(min_size, min(max_size, min_size + _STEPS)):  # code often handles small sizes differently
            yield _added(build, [known.minimal] * size, 0, known.minimal)
        shared = _halves(known, max_size - 1)
        yield _added(build, shared, 0, known.high)  # code may handle the first or the last row differently
        yield _added(build, shared, max_size - 1, known.low)
        for place, row in enumerate(known.between):
            # The middle row is paired with both extremes, each other row with the extreme that is farther away.
            for end in ((known.high, known.low), (known.high,), (known.low,))[place]:
                yield _added(build, [row] * (max_size - 1), 0, end)
                yield _added(build, [end] * (max_size - 1), max_size - 1, row)

    def vary(row: Any) -> Iterator[Pair]:
        yield _added(build, [corner_rows(rows).minimal] * min_size, 0, row)
        if max_size > 1:  # a row equal to another
            yield _added(build, [row] * max(min_size, 1), 0, row)

    return Neighbours(
        pairs(),
        Relation.ADD_REMOVE,
        _described("add_remove", rows, min_size, max_size, container),
        corners,
        _adjacency(build, one_added),
        row_edits(build, rows, fewest=min_size, most=max_size - 1),
        rows=rows,
        vary=vary,
    )


def zero_out(
    rows: SearchStrategy[Any], *, null: Any, min_size: int = 1, max_size: int = 6, container: Any = list
) -> Neighbours:
    """Data sets of the same size, one row replaced by the fixed row ``null``; which of the two comes first varies.

    Parameters
    ----------
    null
        The row that stands for no data.
    rows, min_size, max_size, container
        As for :func:`substitute`.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> zero_out(st.integers(0, 9), null=0, max_size=3).corners()[0]
    Pair(data=[9], neighbour=[0])
    """
    _check(rows, min_size, max_size, smallest=1, spare=0)
    build = resolve(container, rows)
    tables = st.lists(rows, min_size=min_size - 1, max_size=max_size - 1)

    @st.composite
    def pairs(draw: st.DrawFn) -> Pair:
        shared = draw(tables)
        row = _draw_other(draw, rows, null)
        pair = _replaced(build, shared, draw(st.integers(0, len(shared))), row, null)
        return _maybe_swapped(draw, pair)

    def corners() -> Iterator[Pair]:
        known = corner_rows(rows)
        for row in known.all:
            yield _replaced(build, [known.minimal] * (min_size - 1), 0, row, null)
        for shared in _shared_rows(known, min_size - 1, max_size - 1):
            for row in (known.high, known.low):
                yield _replaced(build, shared, len(shared) // 2, row, null)

    def nulled(data: list[Any], neighbour: list[Any]) -> bool:
        blank = fingerprint(rows_of(build([null]))[0])
        changes = [
            blank in (fingerprint(old), fingerprint(new))
            for old, new in zip(data, neighbour, strict=False)
            if fingerprint(old) != fingerprint(new)
        ]
        return len(data) == len(neighbour) and len(changes) <= 1 and all(changes)

    return Neighbours(
        pairs(),
        Relation.ZERO_OUT,
        _described("zero_out", rows, min_size, max_size, container),
        lambda: _that_differ(corners()),
        _adjacency(build, nulled),
        row_edits(build, rows, fewest=min_size - 1, most=max_size - 1, kept=(null,)),
        rows=rows,
        vary=lambda row: [_replaced(build, [corner_rows(rows).minimal] * (min_size - 1), 0, row, null)],
    )


def users(
    rows: SearchStrategy[Any],
    *,
    relation: Relation = Relation.USERS_ADD_REMOVE,
    min_users: int | None = None,
    max_users: int = 4,
    rows_per_user: int = 3,
    layout: Literal["pairs", "lists"] = "pairs",
    container: Any = list,
) -> Neighbours:
    """Data sets in which each person has one or more rows, and all rows of one person change together.

    Parameters
    ----------
    rows : strategy
        Yields one row.
    relation : Relation
        ``USERS_ADD_REMOVE``: one person is added or removed. ``USERS_SUBSTITUTE``: one person's rows are replaced by
        others, perhaps by more or fewer of them.
    min_users, max_users : int
        Bounds on the number of people in both data sets.
    rows_per_user : int
        Largest number of rows of one person.
    layout : {"pairs", "lists"}
        ``"pairs"``: one row of data is ``(user, row)``. Users are numbered from 0, and those in both data sets keep their
        numbers.
        ``"lists"``: one entry of data is the list of one person's rows.
    container : callable
        As for :func:`substitute`; under :func:`frame` the first column is the user and a tuple row fills the others.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> users(st.booleans()).corners()[:2]
    [Pair(data=[], neighbour=[(0, False)]), Pair(data=[], neighbour=[(0, True), (0, True), (0, True)])]
    """
    check_choice((Relation.USERS_ADD_REMOVE, Relation.USERS_SUBSTITUTE), relation=relation)
    check_choice(("pairs", "lists"), layout=layout)
    check_count(rows_per_user=rows_per_user)
    adding = relation is Relation.USERS_ADD_REMOVE
    min_users = (0 if adding else 1) if min_users is None else min_users
    _check(rows, min_users, max_users, smallest=0 if adding else 1, spare=int(adding), unit="users")
    if container is np.ndarray or isinstance(container, Array):
        raise InvalidArgument(
            f"container={container!r} cannot hold users; use list, neighbours.frame or a function of a list of rows."
        )
    build = resolve(container, rows)
    people = st.lists(rows, min_size=1, max_size=rows_per_user)
    groups = st.lists(people, min_size=min_users - (not adding), max_size=max_users - 1)

    def published(members: list[list[Any] | None]) -> Any:
        """Build the data. None stands for an absent person, whose number is not used again."""
        if layout == "lists":
            return build([person for person in members if person is not None])
        flat = isinstance(container, Frame)
        return build(
            [
                (user, *row) if flat and isinstance(row, tuple) else (user, row)
                for user, person in enumerate(members)
                for row in person or ()
            ]
        )

    def pair(shared: list[Any], position: int, old: list[Any] | None, new: list[Any]) -> Pair:
        return _replaced(published, shared, position, old, new)

    @st.composite
    def pairs(draw: st.DrawFn) -> Pair:
        shared = draw(groups)
        old = None if adding else draw(people)
        new = draw(people) if adding else _draw_other(draw, people, old)
        position = draw(st.integers(0, len(shared)))
        both = pair(shared, position, old, new)
        return _maybe_swapped(draw, both) if adding else both

    def corners() -> Iterator[Pair]:
        known = corner_rows(rows)
        single = [known.minimal]
        most = [[row] * rows_per_user for row in (known.high, known.low)]
        for size in sorted({min_users - (not adding), max_users - 1}):
            for shared in ([single] * size, [most[0]] * size):
                for new in (single, *most):
                    yield pair(shared, 0, None if adding else single, new)
                if not adding:
                    yield pair(shared, 0, most[1], most[0])

    def adjacent(data: Any, neighbour: Any) -> bool:
        first, second = _people(data, layout), _people(neighbour, layout)
        if layout == "lists":
            rule = one_added if adding else one_replaced
            return rule(list(first.values()), list(second.values()))
        changed = [user for user in first.keys() | second.keys() if first.get(user) != second.get(user)]
        present = [user in first and user in second for user in changed]
        return len(changed) <= 1 and (not any(present) if adding else all(present))

    return Neighbours(
        pairs(),
        relation,
        f"users({rows!r}, relation={relation!r}, min_users={min_users}, max_users={max_users}, "
        f"rows_per_user={rows_per_user})",
        lambda: _that_differ(corners()),
        adjacent if container in (list, tuple) or isinstance(container, Frame) else None,
    )


def one_replaced(data: list[Any], neighbour: list[Any]) -> bool:
    """Return True if the lists have the same length and differ in one place at most."""
    changed = sum(fingerprint(old) != fingerprint(new) for old, new in zip(data, neighbour, strict=False))
    return len(data) == len(neighbour) and changed <= 1


def one_added(data: list[Any], neighbour: list[Any]) -> bool:
    """Return True if the lists are equal, or one is the other with one entry inserted."""
    short, long = sorted((list(map(fingerprint, data)), list(map(fingerprint, neighbour))), key=len)
    if len(short) == len(long):
        return short == long
    first = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return len(long) == len(short) + 1 and short[first:] == long[first + 1 :]


def _people(data: Any, layout: str) -> dict[Any, Any]:
    if layout == "lists":
        return dict(enumerate(rows_of(data)))
    people: dict[Any, list[Any]] = {}
    for user, *row in rows_of(data):
        people.setdefault(user, []).append(fingerprint(row))
    return people


def _shared_rows(known: CornerRows, fewest: int, most: int) -> Iterator[list[Any]]:
    """Yield rows that both data sets share: all low, all high, and half of each, so that one row decides the median.

    The sizes are the smallest one, one more, and the largest: means and variances change most in small data sets.
    """
    for size in sorted({fewest, min(fewest + 1, most), most}):
        yield [known.low] * size
        if size:
            yield [known.high] * size
        if size > 1:
            yield _halves(known, size)


def _halves(known: CornerRows, size: int) -> list[Any]:
    return [known.low] * (size // 2) + [known.high] * (size - size // 2)


def _replaced(build: MakeContainer, shared: list[Any], position: int, old: Any, new: Any) -> Pair:
    # Copies, so that code that changes one data set in place does not change the other.
    data, neighbour = (copy.deepcopy([*shared[:position], row, *shared[position:]]) for row in (old, new))
    return Pair(build(data), build(neighbour))


def _added(build: MakeContainer, shared: list[Any], position: int, row: Any) -> Pair:
    more = copy.deepcopy([*shared[:position], row, *shared[position:]])
    return Pair(build(copy.deepcopy(shared)), build(more))


def _maybe_swapped(draw: st.DrawFn, pair: Pair) -> Pair:
    return Pair(pair.neighbour, pair.data) if draw(st.booleans()) else pair


def _draw_other(draw: st.DrawFn, rows: SearchStrategy[Any], row: Any) -> Any:
    known = fingerprint(row)
    for _ in range(4):
        other = draw(rows)
        if fingerprint(other) != known:
            return other
    return reject()


def _that_differ(pairs: Iterator[Pair]) -> Iterator[Pair]:
    return (pair for pair in pairs if fingerprint(pair.data) != fingerprint(pair.neighbour))


def _adjacency(build: MakeContainer, rule: Callable[[list[Any], list[Any]], bool]) -> Callable[[Any, Any], bool] | None:
    """Return the rule as a function of data sets, or None if rows cannot be read back from the container."""
    if readable(build):
        return lambda data, neighbour: rule(rows_of(data), rows_of(neighbour))
    return None


def _check(rows: Any, low: Any, high: Any, *, smallest: int, spare: int, unit: str = "size") -> None:
    if not isinstance(rows, SearchStrategy):
        raise InvalidArgument(
            f"rows={shorten(rows)} must be a Hypothesis strategy of one row, such as strategies.integers(0, 10)."
        )
    check_count(minimum=smallest, **{f"min_{unit}": low})
    check_count(minimum=max(1, smallest), **{f"max_{unit}": high})
    if high < low + spare:
        reason = " so that one can be added" if spare else ""
        raise InvalidArgument(f"max_{unit}={high!r} must be at least min_{unit}={low!r}{' + 1' * spare}{reason}.")


def _described(name: str, rows: SearchStrategy[Any], low: int, high: int, container: Any) -> str:
    holder = "" if container is list else f", container={getattr(container, '__name__', container)!s}"
    return f"{name}({rows!r}, min_size={low}, max_size={high}{holder})"
