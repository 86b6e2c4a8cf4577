"""Find which people of an external table fit which classes of a release.

A person fits a class if each published cell contains the person's value (:func:`~dpaudit.anonymity.covers`): ``20-29``
contains 23, ``32**`` contains 3270, ``*`` contains everything. Classes of a release may overlap, so a person may fit several.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit.anonymity.tables.containment import containment
from dpaudit.anonymity.tables.hierarchy import Hierarchy
from dpaudit.anonymity.tables.table import Classes, MissingPolicy, Table

_BYTES = 1 << 25
"""Size of the largest array of bits that a step of the comparison makes."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The classes of a release, and the people of an external table who fit them.

    People who agree on all quasi-identifiers form a ``group``. Pair ``i`` says that the people of group ``group[i]`` fit
    class ``class_[i]``; pairs are ordered by class.
    """

    table: Table
    people: Table
    class_: NDArray[np.int64]
    group: NDArray[np.int64]

    @property
    def people_per_class(self) -> NDArray[np.int64]:
        """The number of people who fit each class of the release."""
        weights = self.people.classes.sizes[self.group]
        return np.bincount(self.class_, weights, minlength=len(self.table.classes)).astype(np.int64)

    @property
    def classes_per_group(self) -> NDArray[np.int64]:
        """The number of classes that the people of each group fit."""
        return np.bincount(self.group, minlength=len(self.people.classes))

    @property
    def records_per_person(self) -> NDArray[np.int64]:
        """The number of released records that may belong to each person."""
        weights = self.table.classes.sizes[self.class_]
        per_group = np.bincount(self.group, weights, minlength=len(self.people.classes)).astype(np.int64)
        return per_group[self.people.classes.of_record]


def match_people(
    table: Table,
    people: pd.DataFrame,
    *,
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
    missing: MissingPolicy = "error",
) -> Matches:
    """Return the people who fit each class of a release.

    Parameters
    ----------
    table : Table
        The release.
    people : pandas.DataFrame
        The external table: a row per person, with a column for each quasi-identifier of the release. Its cells may be
        original values, or generalised with the labels of the release.
    hierarchies : mapping, optional
        For quasi-identifiers whose published labels are those of a taxonomy.
    missing
        Meaning of empty cells of ``people``, as for ``Table.from_frame``.

    Examples
    --------
    >>> release = Table.from_frame({"age": ["20-29", "20-29", "30-39"]}, quasi_identifiers="age")
    >>> match_people(release, pd.DataFrame({"age": [21, 25, 29, 33, 40]})).people_per_class.tolist()
    [3, 1]
    """
    names = [column.name for column in table.quasi_identifiers]
    known = Table.from_frame(people, quasi_identifiers=names, missing=missing)
    first_record, first_person = (_first_of_each(classes) for classes in (table.classes, known.classes))
    contained = [
        containment(shown.values, true.values, (hierarchies or {}).get(shown.name))
        for shown, true in zip(table.quasi_identifiers, known.quasi_identifiers, strict=True)
    ]
    labels = [column.codes[first_record] for column in table.quasi_identifiers]
    values = [column.codes[first_person] for column in known.quasi_identifiers]
    block = max(8, _BYTES // max(map(len, contained)) // 8 * 8)
    found = [
        (class_, group + start)
        for start in range(0, len(known.classes), block)
        for class_, group in _fitting(contained, labels, [codes[start : start + block] for codes in values])
    ]
    classes, groups = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(classes, kind="stable")
    return Matches(table, known, classes[order], groups[order])


def _fitting(
    contained: list[NDArray[np.bool_]], labels: list[NDArray[np.int64]], values: list[NDArray[np.int64]]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the pairs (class, group) that agree in every column, some classes at a time.

    For each label of a column one bit per group says whether it contains the group's value; the bits of a class are the
    conjunction over its labels.
    """
    packed = [np.packbits(inside.take(codes, axis=1), axis=1) for inside, codes in zip(contained, values, strict=True)]
    step = max(1, _BYTES // packed[0].shape[1])
    for start in range(0, len(labels[0]), step):
        bits = packed[0][labels[0][start : start + step]]
        for column, codes in zip(packed[1:], labels[1:], strict=True):
            bits &= column[codes[start : start + step]]
        rows, places = np.nonzero(bits)
        which, bit = np.nonzero(np.unpackbits(bits[rows, places][:, None], axis=1))
        yield rows[which] + start, places[which] * 8 + bit


def _first_of_each(classes: Classes) -> NDArray[np.int64]:
    return classes.sorted_records[classes.starts]
