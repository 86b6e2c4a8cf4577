"""Link a release with an external table that has names: run the attack, and count what it finds.

The attacker knows the quasi-identifiers of the people of the external table. A record is a *candidate* for a person if each
of its cells contains the person's value. One candidate left means that the person is singled out; candidates that all hold one
sensitive value disclose it, however many they are. With the truth (which record belongs to whom) the links are also checked.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, maximum_flow

from dpaudit.anonymity.risk.matching import Matches, match_people
from dpaudit.anonymity.tables.hierarchy import Hierarchy
from dpaudit.anonymity.tables.table import Column, MissingPolicy, Table
from dpaudit.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """Findings of the attack about one sensitive attribute.

    ``disclosed`` people have candidates with one value only; ``right`` of them have that value (None without the truth).
    ``baseline`` is the share of the release that has the most frequent value, as often as a guess of it would be right.
    """

    attribute: Hashable
    disclosed: int
    right: int | None
    baseline: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linkage:
    """The result of :func:`link_records`.

    ``candidates[i]`` is the number of records that may belong to person ``i``; ``linked`` people have at least one, and
    ``singled_out`` people exactly one. ``expected`` is the expected number of right links if everybody guesses among the
    candidates. With the truth: ``present`` people have a record in the release, ``right`` of the singled out are linked to
    their own record, and ``missed`` people have a record that is no candidate.
    """

    people: int
    candidates: NDArray[np.int64]
    linked: int
    singled_out: int
    expected: float
    disclosures: tuple[Disclosure, ...] = ()
    present: int | None = None
    right: int | None = None
    missed: int | None = None

    def __str__(self) -> str:
        counts = (
            f"{self.linked} of {self.people} people fit a record of the release, {self.singled_out} fit exactly one"
        )
        lines = [f"{counts}; guessing links {self.expected:.4g} people"]
        if self.present is not None:
            lines.append(
                f"{self.present} of them are in the release: {self.right} of {self.singled_out} single links are right, "
                f"{self.missed} people are missed"
            )
        for found in self.disclosures:
            checked = "" if found.right is None else f", {found.right} of them rightly"
            lines.append(
                f"{found.attribute} of {found.disclosed} people is disclosed{checked} "
                f"(the most frequent value is right for {100 * found.baseline:.3g} % of the release)"
            )
        return "\n".join(lines)


def link_records(
    table: Table,
    people: pd.DataFrame,
    *,
    truth: Sequence[int | None] | None = None,
    everyone: bool = False,
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
    missing: MissingPolicy = "error",
) -> Linkage:
    """Link every person of an external table with the release, and count.

    Parameters
    ----------
    table : Table
        The release.
    people : pandas.DataFrame
        The external table, with the columns of the quasi-identifiers.
    truth : sequence, optional
        For each person the position (from 0) of their record in the release; None for people who are not in it.
    everyone : bool
        The attacker knows that everybody of the external table is in the release, with one record each. Then records that
        others need are no candidates: if two people fit only the two records of one class, a third person who fits these
        and one more record has that one.
    hierarchies, missing
        As for :func:`~dpaudit.anonymity.match_people`.

    Examples
    --------
    >>> release = Table.from_frame(
    ...     {"age": ["20-29", "20-29", "30-39"], "illness": ["flu", "flu", "ulcer"]}, quasi_identifiers="age", sensitive="illness"
    ... )
    >>> print(link_records(release, pd.DataFrame({"name": ["Ann", "Bob"], "age": [23, 35]}), truth=[0, 2]))
    2 of 2 people fit a record of the release, 1 fit exactly one; guessing links 1.5 people
    2 of them are in the release: 1 of 1 single links are right, 0 people are missed
    illness of 2 people is disclosed, 2 of them rightly (the most frequent value is right for 66.7 % of the release)
    """
    matches = match_people(table, people, hierarchies=hierarchies, missing=missing)
    if everyone:
        matches = _only_possible(matches)
    candidates = matches.records_per_person
    own = None if truth is None else _truth(truth, matches)
    linked, single = candidates > 0, candidates == 1
    fits = None if own is None else _fits(matches, own)
    chances = np.divide(1.0, candidates, out=np.zeros(len(candidates)), where=linked if fits is None else linked & fits)
    checked: dict[str, int] = {}
    if own is not None and fits is not None:
        checked = {
            "present": int((own >= 0).sum()),
            "right": int((single & fits).sum()),
            "missed": int(((own >= 0) & ~fits).sum()),
        }
    return Linkage(
        people=len(candidates),
        candidates=candidates,
        linked=int(linked.sum()),
        singled_out=int(single.sum()),
        expected=math.fsum(chances),
        disclosures=tuple(_disclosure(matches, column, own) for column in table.sensitive),
        **checked,
    )


def _truth(truth: Sequence[int | None], matches: Matches) -> NDArray[np.int64]:
    if len(truth) != matches.people.records:
        raise InvalidArgument(
            f"truth has {len(truth)} entries for {matches.people.records} people; one each is needed."
        )
    own = np.array([-1 if place is None else int(place) for place in truth], dtype=np.int64)
    wrong = (own < -1) | (own >= matches.table.records)
    if wrong.any():
        raise InvalidArgument(
            f"truth holds {own[wrong][0]} for person {int(wrong.argmax()) + 1}; the release has the records 0 to "
            f"{matches.table.records - 1}."
        )
    return own


def _fits(matches: Matches, own: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each person True if their own record is among the candidates."""
    groups = len(matches.people.classes)
    pairs = matches.class_ * groups + matches.group
    present = own >= 0
    mine = matches.table.classes.of_record[own] * groups + matches.people.classes.of_record
    return present & np.isin(mine, pairs)


def _disclosure(matches: Matches, column: Column, own: NDArray[np.int64] | None) -> Disclosure:
    classes = matches.table.classes
    least, most = (
        ufunc.reduceat(column.codes[classes.sorted_records], classes.starts) for ufunc in (np.minimum, np.maximum)
    )
    low = np.full(len(matches.people.classes), len(column.values), dtype=np.int64)
    high = np.full(len(matches.people.classes), -1, dtype=np.int64)
    np.minimum.at(low, matches.group, least[matches.class_])
    np.maximum.at(high, matches.group, most[matches.class_])
    # -1 for people whose candidates have several values, or who have no candidate.
    guessed = np.where(low == high, low, -1)[matches.people.classes.of_record]
    right = None
    if own is not None:
        right = int(((guessed >= 0) & (own >= 0) & (column.codes[own] == guessed)).sum())
    baseline = int(column.counts.max()) / matches.table.records
    return Disclosure(attribute=column.name, disclosed=int((guessed >= 0).sum()), right=right, baseline=baseline)


def _only_possible(matches: Matches) -> Matches:
    """Keep the pairs (class, group) that occur in an assignment of one record to every person.

    An assignment is a flow from groups (as many units as people) to classes (at most as many units as records). Given one, a pair
    occurs in some other one if and only if it lies on a cycle of the residual graph, that is, if its two ends are in one strongly
    connected component; the sink belongs to the graph, because a class with a record to spare can take a unit from another.
    """
    groups, classes = len(matches.people.classes), len(matches.table.classes)
    source, sink = groups + classes, groups + classes + 1
    sizes, records = matches.people.classes.sizes, matches.table.classes.sizes
    tail = np.concatenate([np.full(groups, source), matches.group, groups + np.arange(classes)])
    head = np.concatenate([np.arange(groups), groups + matches.class_, np.full(classes, sink)])
    capacity = np.concatenate([sizes, sizes[matches.group], records]).astype(np.int32)
    shape = (sink + 1, sink + 1)
    # Before SciPy 1.15 maximum_flow refuses indices of 64 bits.
    edges = (np.asarray(tail, dtype=np.int32), np.asarray(head, dtype=np.int32))
    flow = maximum_flow(scipy.sparse.csr_array((capacity, edges), shape=shape), source, sink)
    if flow.flow_value < matches.people.records:
        raise InvalidArgument(
            f"everyone=True: at most {flow.flow_value} of {matches.people.records} people can have a record of their own in the "
            "release, so they are not all in it."
        )
    used = np.asarray(flow.flow[tail, head]).ravel()
    forward, backward = used < capacity, used > 0
    residual = scipy.sparse.csr_array(
        (
            np.ones(int(forward.sum() + backward.sum()), dtype=np.int8),
            (np.concatenate([tail[forward], head[backward]]), np.concatenate([head[forward], tail[backward]])),
        ),
        shape=shape,
    )
    component = connected_components(residual, directed=True, connection="strong")[1]
    pairs = slice(groups, groups + len(matches.group))
    kept = (used[pairs] > 0) | (component[matches.group] == component[groups + matches.class_])
    return Matches(matches.table, matches.people, matches.class_[kept], matches.group[kept])
