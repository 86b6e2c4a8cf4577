"""Uniqueness of records: the share that no other record looks like, for each combination of attributes."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from dpaudit._util.validation import check_count
from dpaudit.anonymity.tables.table import Classes, Table
from dpaudit.errors import InvalidArgument

_COMBINATIONS = 1 << 14
"""Largest number of combinations of attributes that are examined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """The degree to which a combination of attributes distinguishes the records of a table.

    ``unique`` records have values that no other record has; ``distinct`` is the number of different combinations of values,
    and ``separated`` the number of pairs of records that differ.
    """

    columns: tuple[Hashable, ...]
    records: int
    unique: int
    distinct: int
    separated: int

    @property
    def share(self) -> float:
        """The share of unique records (Sweeney 2000)."""
        return self.unique / self.records

    @property
    def distinction(self) -> float:
        """Different combinations per record; one if all records are unique (Motwani and Xu 2007)."""
        return self.distinct / self.records

    @property
    def separation(self) -> float:
        """The share of the pairs of records that differ (Motwani and Xu 2007); 0 for a single record."""
        return self.separated / max(self.records * (self.records - 1) // 2, 1)

    def __str__(self) -> str:
        names = ", ".join(map(str, self.columns))
        return f"{self.unique} of {self.records} records ({100 * self.share:.4g} %) are unique in {names}"


def uniqueness(table: Table) -> Uniqueness:
    """Return how many records are unique in the quasi-identifiers (Sweeney 2000).

    Parameters
    ----------
    table : Table
        The table.

    Examples
    --------
    >>> table = Table.from_frame({"plz": [3270, 3270, 3294], "sex": ["f", "m", "m"]}, quasi_identifiers=["plz", "sex"])
    >>> print(uniqueness(table))
    3 of 3 records (100 %) are unique in plz, sex
    """
    return _uniqueness(tuple(column.name for column in table.quasi_identifiers), table.classes)


def uniqueness_by_columns(table: Table, *, largest: int | None = None) -> list[Uniqueness]:
    """Return the uniqueness of every combination of quasi-identifiers, the most identifying first.

    Parameters
    ----------
    table : Table
        The table.
    largest : int, optional
        Largest number of attributes of a combination; by default there is no limit.

    Examples
    --------
    >>> table = Table.from_frame({"plz": [3270, 3270, 3294], "sex": ["f", "m", "m"]}, quasi_identifiers=["plz", "sex"])
    >>> for found in uniqueness_by_columns(table):
    ...     print(found)
    3 of 3 records (100 %) are unique in plz, sex
    1 of 3 records (33.33 %) are unique in plz
    1 of 3 records (33.33 %) are unique in sex
    """
    columns = table.quasi_identifiers
    if largest is not None:
        check_count(largest=largest)
    upto = len(columns) if largest is None else min(largest, len(columns))
    chosen = itertools.chain.from_iterable(itertools.combinations(columns, size) for size in range(1, upto + 1))
    listed = list(itertools.islice(chosen, _COMBINATIONS + 1))
    if len(listed) > _COMBINATIONS:
        raise InvalidArgument(
            f"largest={largest!r} gives more than {_COMBINATIONS} combinations; choose a smaller one."
        )
    found = [
        _uniqueness(
            tuple(column.name for column in combination),
            Classes.from_codes([column.codes for column in combination], table.records),
        )
        for combination in listed
    ]
    # Of equally identifying combinations the one with fewer attributes comes first: sorting is stable.
    return sorted(found, key=lambda entry: (-entry.unique, -entry.distinct, -entry.separated))


def _uniqueness(names: tuple[Hashable, ...], classes: Classes) -> Uniqueness:
    sizes = classes.sizes.astype(np.int64)
    records = int(sizes.sum())
    together = int((sizes * (sizes - 1) // 2).sum())
    return Uniqueness(
        columns=names,
        records=records,
        unique=int((sizes == 1).sum()),
        distinct=len(sizes),
        separated=records * (records - 1) // 2 - together,
    )
