"""Several releases of one table: m-invariance, and what they disclose together.

People are recognised across releases by the index of their tables: the observer knows who is in which class, because they know
everybody's quasi-identifiers, but not who has which sensitive value.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from dpaudit._util.validation import shorten
from dpaudit.anonymity.tables.cells import as_text, kind
from dpaudit.anonymity.tables.table import Table
from dpaudit.errors import InvalidArgument

_LARGEST = 20_000
"""Largest number of unknowns of an integer programme; people in larger ones are left undecided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MInvariance:
    """The result of :func:`m_invariance`.

    ``m`` is 0 if some class holds a sensitive value twice, or if the set of values around a person changes between releases.
    ``repeated`` counts the classes of the first kind, ``changed`` the people of the second, ``example`` being one of them.
    """

    m: int
    smallest_class: int
    repeated: int
    changed: int
    example: Hashable | None = None

    def __str__(self) -> str:
        if self.m:
            return f"the releases are {self.m}-invariant"
        return (
            f"the releases are not m-invariant for any m: {self.repeated} classes hold a sensitive value twice, and the values "
            f"in the class of {self.changed} people change between releases"
        )


def m_invariance(releases: Sequence[Table], attribute: Hashable | None = None) -> MInvariance:
    """Return the largest m for which several releases are m-invariant (Xiao and Tao 2007).

    Every class has at least m records, all with different sensitive values, and the set of these values is the same around a
    person in all releases that contain the person. Then all releases together leave everybody at least m values.

    Parameters
    ----------
    releases : sequence of Table
        The releases, in order; their index says which record is whose.
    attribute
        The sensitive attribute; may be left out if there is only one.

    Examples
    --------
    >>> import pandas as pd
    >>> def release(people, ages, ills):
    ...     frame = pd.DataFrame({"age": ages, "ill": ills}, index=people)
    ...     return Table.from_frame(frame, quasi_identifiers="age", sensitive="ill")
    >>> first = release(["Ann", "Bob"], ["20-29", "20-29"], ["flu", "ulcer"])
    >>> second = release(["Ann", "Eve"], ["20-39", "20-39"], ["flu", "cold"])
    >>> m_invariance([first]).m, m_invariance([first, second]).m, m_invariance([first, second]).changed
    (2, 0, 1)
    """
    _check(releases, attribute)
    smallest, repeated = min(int(table.classes.sizes.min()) for table in releases), 0
    signatures: dict[Hashable, frozenset[Any]] = {}
    changed: dict[Hashable, None] = {}
    for table in releases:
        held = _held(table, attribute)
        sets = [frozenset(values) for values in held]
        repeated += sum(len(values) < len(listed) for values, listed in zip(sets, held, strict=True))
        for person, index in zip(table.index, table.classes.of_record.tolist(), strict=True):
            if signatures.setdefault(person, sets[index]) != sets[index]:
                changed[person] = None
    return MInvariance(
        m=0 if repeated or changed else smallest,
        smallest_class=smallest,
        repeated=repeated,
        changed=len(changed),
        example=next(iter(changed), None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Differencing:
    """The result of :func:`differencing`.

    ``alone[i]`` people are disclosed by release ``i`` alone. ``disclosed`` are the people whose value follows from all releases
    together, with the value. ``undecided`` people belong to a problem that was too large.
    """

    people: int
    alone: tuple[int, ...]
    disclosed: tuple[tuple[Hashable, Any], ...]
    undecided: int = 0

    def __str__(self) -> str:
        shown = ", ".join(f"{as_text(person)}: {as_text(value)}" for person, value in self.disclosed[:5])
        more = f" and {len(self.disclosed) - 5} more" if len(self.disclosed) > 5 else ""
        single = ", ".join(map(str, self.alone))
        text = f"{len(self.disclosed)} of {self.people} people are disclosed by all releases together"
        text += f" ({shown}{more})" if shown else ""
        text += f"; by each release alone: {single}"
        return text + (f"; {self.undecided} people were not decided" if self.undecided else "")


def differencing(releases: Sequence[Table], attribute: Hashable | None = None) -> Differencing:
    """Run the differencing attack: which values follow from all releases together?

    A value follows if no assignment of values to people that agrees with every published class gives the person another one.
    That is decided exactly. People who are in the same class of each release are exchangeable and form a cell; with x(cell, v)
    people of value v, each class of each release says what the x of its cells add up to. A person of a cell can have v if
    there is a solution in whole numbers with x(cell, v) >= 1. The true values are one solution, so only cells in which all
    have one value are in question.

    Parameters
    ----------
    releases, attribute
        As for :func:`m_invariance`. A person's value must be the same in all releases.

    Examples
    --------
    >>> import pandas as pd
    >>> def release(people, ills):
    ...     frame = pd.DataFrame({"age": ["20-29"] * len(ills), "ill": ills}, index=people)
    ...     return Table.from_frame(frame, quasi_identifiers="age", sensitive="ill")
    >>> monday, tuesday = release(["Ann", "Bob"], ["flu", "ulcer"]), release(["Ann", "Bob", "Eve"], ["flu", "ulcer", "cold"])
    >>> print(differencing([monday, tuesday]))
    1 of 3 people are disclosed by all releases together (Eve: cold); by each release alone: 0, 0
    """
    _check(releases, attribute)
    problem = _Problem.of(releases, attribute)
    disclosed, undecided = problem.disclosed()
    alone = tuple(sum(len(listed) for listed in _held(table, attribute) if len(set(listed)) == 1) for table in releases)
    named = tuple(
        (person, problem.value_of[person][1]) for person in problem.people if problem.cell_of[person] in disclosed
    )
    unknown = sum(problem.cell_of[person] in undecided for person in problem.people)
    return Differencing(people=len(problem.people), alone=alone, disclosed=named, undecided=unknown)


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """The people as cells, the classes as sets of cells, and the true values."""

    people: list[Hashable]
    value_of: dict[Hashable, tuple[str, Any]]  # with the kind: 1, True and "1" are three values
    cell_of: dict[Hashable, int]
    cells: list[tuple[int, ...]]  # for each cell the numbers of its classes, counted over all releases
    held: list[dict[tuple[str, Any], int]]  # for each cell how many people have each value

    @classmethod
    def of(cls, releases: Sequence[Table], attribute: Hashable | None) -> _Problem:
        value_of: dict[Hashable, tuple[str, Any]] = {}
        classes_of: dict[Hashable, list[int]] = {}
        offset = 0
        for number, table in enumerate(releases, start=1):
            column = table.attribute(attribute)
            rows = zip(table.index, table.classes.of_record.tolist(), column.codes.tolist(), strict=True)
            for person, index, code in rows:
                value = (kind(column.values[code]), column.values[code])
                if value_of.setdefault(person, value) != value:
                    raise InvalidArgument(
                        f"releases: {column.name!r} of person {person!r} is {shorten(value_of[person][1])} first and "
                        f"{shorten(value[1])} in release {number}; a value must not change."
                    )
                classes_of.setdefault(person, []).append(offset + index)
            offset += len(table.classes)
        numbers: dict[tuple[int, ...], int] = {}
        cell_of = {person: numbers.setdefault(tuple(known), len(numbers)) for person, known in classes_of.items()}
        held: list[dict[tuple[str, Any], int]] = [{} for _ in numbers]
        for person, cell in cell_of.items():
            held[cell][value_of[person]] = held[cell].get(value_of[person], 0) + 1
        return cls(list(value_of), value_of, cell_of, list(numbers), held)

    def disclosed(self) -> tuple[set[int], set[int]]:
        """Return the cells whose people all have one value for certain, and those that are not decided."""
        certain: set[int] = set()
        undecided: set[int] = set()
        for members in self._components():
            questions = [cell for cell in members if len(self.held[cell]) == 1]
            possible = self._candidates(members)
            for cell in list(questions):
                if len(possible[cell]) == 1:
                    certain.add(cell)
                    questions.remove(cell)
            if not questions:
                continue
            if sum(len(possible[cell]) for cell in members) > _LARGEST:
                undecided.update(questions)
                continue
            programme = _Programme.of(self, members, possible)
            for cell in questions:
                (true,) = self.held[cell]
                if not any(programme.allows(cell, value) for value in possible[cell] if value != true):
                    certain.add(cell)
        return certain, undecided

    def _components(self) -> list[list[int]]:
        """Return the cells in groups that share no class with each other."""
        cell = np.repeat(np.arange(len(self.cells)), [len(known) for known in self.cells])
        class_ = np.concatenate([np.array(known) for known in self.cells])
        size = len(self.cells) + int(class_.max()) + 1
        graph = scipy.sparse.coo_array((np.ones(len(cell)), (cell, class_ + len(self.cells))), shape=(size, size))
        label = connected_components(graph, directed=False)[1][: len(self.cells)]
        order = np.argsort(label, kind="stable")
        return [part.tolist() for part in np.split(order, np.flatnonzero(np.diff(label[order])) + 1)]

    def _candidates(self, members: list[int]) -> dict[int, list[tuple[str, Any]]]:
        """Return for each cell the values that occur in all its classes: the intersection attack."""
        present: dict[int, dict[tuple[str, Any], None]] = {}
        for cell in members:
            for known in self.cells[cell]:
                present.setdefault(known, {}).update(dict.fromkeys(self.held[cell]))
        return {
            cell: [
                value
                for value in present[self.cells[cell][0]]
                if all(value in present[known] for known in self.cells[cell][1:])
            ]
            for cell in members
        }


@dataclass(frozen=True, slots=True, eq=False)
class _Programme:
    """The integer programme of one component: how many people of each cell have each value."""

    place: dict[tuple[int, tuple[str, Any]], int]
    matrix: scipy.sparse.csr_array
    total: NDArray[np.float64]

    @classmethod
    def of(cls, problem: _Problem, members: list[int], possible: dict[int, list[tuple[str, Any]]]) -> _Programme:
        place = {(cell, value): i for i, (cell, value) in enumerate((c, v) for c in members for v in possible[c])}
        equations: dict[tuple[int, Any], int] = {}
        rows: list[int] = []
        columns: list[int] = []
        total: list[float] = []
        for cell in members:
            for known in (-1 - cell, *problem.cells[cell]):  # a negative number stands for the size of the cell
                for value in possible[cell]:
                    key = (known, None if known < 0 else value)
                    row = equations.setdefault(key, len(equations))
                    if row == len(total):
                        total.append(0.0)
                    rows.append(row)
                    columns.append(place[cell, value])
                    total[row] += problem.held[cell].get(value, 0)
        shape = (len(equations), len(place))
        # Before SciPy 1.15 milp refuses indices of 64 bits.
        places = (np.array(rows, dtype=np.int32), np.array(columns, dtype=np.int32))
        return cls(place, scipy.sparse.csr_array((np.ones(len(rows)), places), shape=shape), np.array(total))

    def allows(self, cell: int, value: tuple[str, Any]) -> bool:
        """Return True if some person of the cell can have the value."""
        least = np.zeros(len(self.place))
        least[self.place[cell, value]] = 1.0
        found = scipy.optimize.milp(
            np.zeros(len(self.place)),
            integrality=np.ones(len(self.place), dtype=np.int64),
            bounds=scipy.optimize.Bounds(least, np.inf),
            constraints=scipy.optimize.LinearConstraint(self.matrix, self.total, self.total),
        )
        if found.status not in (0, 2):  # solved, or infeasible
            raise InvalidArgument(f"releases: the integer programme was not solved ({found.message}).")
        return bool(found.status == 0)


def _held(table: Table, attribute: Hashable | None) -> list[list[tuple[str, Any]]]:
    """Return the sensitive values of the records of each class."""
    column = table.attribute(attribute)
    values = [(kind(value), value) for value in column.values]
    codes = column.codes[table.classes.sorted_records].tolist()
    ends = [*table.classes.starts.tolist(), len(codes)]
    return [[values[code] for code in codes[low:high]] for low, high in itertools.pairwise(ends)]


def _check(releases: Sequence[Table], attribute: Hashable | None) -> None:
    if not isinstance(releases, list | tuple) or not releases:
        raise InvalidArgument(f"releases={shorten(releases)} must be a list of tables.")
    for number, table in enumerate(releases, start=1):
        table.attribute(attribute)
        if table.index.has_duplicates:
            repeated = table.index[table.index.duplicated()][0]
            raise InvalidArgument(
                f"release {number}: the index label {as_text(repeated)} occurs twice; the index must name a person once."
            )
