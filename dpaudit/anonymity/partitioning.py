"""Mondrian: make a table k-anonymous by repeatedly cutting the space of the quasi-identifiers.

Strict multidimensional partitioning (LeFevre, DeWitt and Ramakrishnan 2006): a group of records is cut across its
widest quasi-identifier, at the value nearest to the median, if all parts meet the requirements. Otherwise the next widest
is tried, and if none is left the group becomes a class.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit._util.validation import check_choice, check_count, check_non_negative, check_positive
from dpaudit.anonymity.distance.distances import Comparison, Distance
from dpaudit.anonymity.measures import _distinct, _effective, as_distance, average_class_size, discernibility
from dpaudit.anonymity.tables.cells import MISSING, as_moment, as_number, sort_key
from dpaudit.anonymity.tables.hierarchy import Hierarchy, interval_label
from dpaudit.anonymity.tables.regions import set_label
from dpaudit.anonymity.tables.table import Column, Table
from dpaudit.errors import InvalidArgument

Records = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Anonymised:
    """A table made k-anonymous. ``frame`` may be published: generalised quasi-identifiers and sensitive values."""

    frame: pd.DataFrame
    table: Table
    k: int
    withheld: int = 0  # records that are not in the frame
    levels: Mapping[Hashable, int] | None = None  # of each quasi-identifier, if each has one level

    @property
    def average_class_size(self) -> float:
        """Records per class over k; one is the best possible."""
        return average_class_size(self.table, self.k)

    @property
    def discernibility(self) -> int:
        """The sum of the squared class sizes."""
        return discernibility(self.table)


def mondrian(
    table: Table,
    *,
    k: int,
    l: float | None = None,  # noqa: E741 - the literature's name
    diversity: Literal["distinct", "entropy"] = "distinct",
    t: float | None = None,
    distance: str | Distance = "tv",
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
) -> Anonymised:
    """Generalise the quasi-identifiers of a table until it is k-anonymous, and optionally l-diverse and t-close.

    Numbers and dates become the range of their class, other values a set, and a quasi-identifier with a hierarchy the
    lowest label that contains its class.

    Parameters
    ----------
    table : Table
        The original table.
    k : int
        Smallest number of records of a class.
    l : float, optional
        Smallest diversity of every sensitive attribute in a class.
    diversity : {"distinct", "entropy"}
        The kind of l-diversity.
    t : float, optional
        Largest distance of every sensitive attribute's distribution in a class from that in the table.
    distance
        The distance of ``t``, as for :func:`~dpaudit.anonymity.t_closeness`.
    hierarchies : mapping, optional
        A hierarchy for each quasi-identifier that has one.

    Examples
    --------
    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> notes = lecture_notes()
    >>> raw = Table.from_frame(notes.original, quasi_identifiers=["plz", "points"], sensitive="system")
    >>> mondrian(raw, k=3).frame["plz"].unique().tolist()
    ['2608-3270', '3294-3860']
    """
    check_count(k=k)
    check_choice(("distinct", "entropy"), diversity=diversity)
    if k > table.records:
        raise InvalidArgument(f"k={k!r} is more than the table's {table.records} records.")
    checks = _requirements(table, l, diversity, t, distance)
    axes = [_axis(column, (hierarchies or {}).get(column.name)) for column in table.quasi_identifiers]
    groups = list(_partition(axes, table.records, k, checks))

    published: list[Any] = []
    order, sizes = np.concatenate(groups), [len(group) for group in groups]
    for axis in axes:
        cells = np.empty(table.records, dtype=object)
        cells[order] = np.repeat(np.array([*axis.labels(groups), None], dtype=object)[:-1], sizes)
        published.append(pd.Series(cells, dtype=object))
    for column in table.sensitive:
        values = pd.Series([None if value is MISSING else value for value in column.values], dtype=object)
        published.append(values.infer_objects().take(column.codes).reset_index(drop=True))
    frame = pd.DataFrame(dict(enumerate(published)))
    columns = table.quasi_identifiers + table.sensitive
    frame.columns = pd.Index([column.name for column in columns], tupleize_cols=False)
    frame.index = table.index
    names = [column.name for column in table.quasi_identifiers]
    result = Table.from_frame(
        frame, quasi_identifiers=names, sensitive=[column.name for column in table.sensitive], missing="value"
    )
    return Anonymised(frame, result, k)


class _Axis(Protocol):
    """One quasi-identifier as a direction in which records can be cut."""

    def width(self, group: Records) -> float:
        """Return the share of the axis that the group spans, from 0 (one value) to 1."""

    def cut(self, group: Records) -> list[Records]:
        """Return the parts of the best cut."""

    def labels(self, groups: Sequence[Records]) -> list[Any]:
        """Return the published label of each group."""


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Ordered values: ``rank`` by record; ``place`` by rank, for widths; ``cells`` by rank."""

    rank: NDArray[np.int64]
    place: NDArray[np.float64]
    cells: tuple[Any, ...]
    ranges: bool

    def width(self, group: Records) -> float:
        ranks = self.rank[group]
        return float(self.place[ranks.max()] - self.place[ranks.min()])

    def cut(self, group: Records) -> list[Records]:
        ranks = self.rank[group]
        half = len(ranks) // 2
        middle = np.partition(ranks, half)[half]
        below = ranks < middle
        upto = ranks <= middle
        # The records with the middle value go left or right, whichever makes the smaller part larger.
        uneven = abs(2 * int(below.sum()) - len(ranks)), abs(2 * int(upto.sum()) - len(ranks))
        left = below if uneven[0] <= uneven[1] else upto
        return [group[left], group[~left]]

    def labels(self, groups: Sequence[Records]) -> list[Any]:
        if not self.ranges:
            return [set_label([self.cells[rank] for rank in np.unique(self.rank[group])]) for group in groups]
        ranks = self.rank[np.concatenate(groups)]
        starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
        ends = zip(
            np.minimum.reduceat(ranks, starts).tolist(), np.maximum.reduceat(ranks, starts).tolist(), strict=True
        )
        return [interval_label(self.cells[low], self.cells[high]) for low, high in ends]


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """Values below a hierarchy: ``path[depth, code]`` numbers the label from the top down to the value."""

    codes: NDArray[np.int64]
    path: NDArray[np.int64]
    names: tuple[Any, ...]

    def width(self, group: Records) -> float:
        values = len(np.unique(self.codes[group]))
        return float((values - 1) / max(self.path.shape[1] - 1, 1))

    def cut(self, group: Records) -> list[Records]:
        codes = self.codes[group]
        depth = self._shared(codes)
        if depth + 1 == len(self.path):
            return [group]
        branch = self.path[depth + 1][codes]
        return [group[branch == label] for label in np.unique(branch)]

    def labels(self, groups: Sequence[Records]) -> list[Any]:
        members = (self.codes[group] for group in groups)
        return [self.names[self.path[self._shared(codes), codes[0]]] for codes in members]

    def _shared(self, codes: NDArray[np.int64]) -> int:
        branches = self.path[:, np.unique(codes)]
        return int(np.flatnonzero((branches == branches[:, :1]).all(axis=1))[-1])


def _axis(column: Column, hierarchy: Hierarchy | None) -> _Axis:
    if hierarchy is not None:
        chains = [tuple(reversed(hierarchy.ancestors(value))) for value in column.values]
        if len({chain[0] for chain in chains}) > 1:
            raise InvalidArgument(f"hierarchies[{column.name!r}] has several tops; all values need one in common.")
        depth = max(map(len, chains))
        numbers: dict[tuple[int, Any], int] = {}
        path = np.empty((depth, len(chains)), dtype=np.int64)
        for code, chain in enumerate(chains):
            for step in range(depth):  # a short chain stays at its value
                at = min(step, len(chain) - 1)
                path[step, code] = numbers.setdefault((at, chain[at]), len(numbers))
        return _Tree(column.codes, path, tuple(label for _, label in numbers))
    if column.order is not None:
        order: Sequence[Any] = column.order
        number_of = {value: rank for rank, value in enumerate(order)}
        rank = np.array([number_of[value] for value in column.values], dtype=np.int64)
    else:
        plain = all(type(value) in (int, float) for value in column.values)
        sequence = sorted(range(len(column.values)), key=lambda i: _sorted_by(column.values[i], plain))
        order = [column.values[i] for i in sequence]
        rank = np.empty(len(order), dtype=np.int64)
        rank[sequence] = np.arange(len(order))
    place, ranges = _places(order)
    return _Line(rank[column.codes], place, tuple(order), ranges)


def _sorted_by(value: Any, plain: bool) -> Any:
    return value if plain else sort_key(value)


def _places(order: Sequence[Any]) -> tuple[NDArray[np.float64], bool]:
    """Return the positions of the values between 0 and 1, and True if a range of them can be written by its ends."""
    if not any(isinstance(value, str) for value in order):
        for convert in (_number, _seconds):
            known = [place for value in order if (place := convert(value)) is not None]
            # The order of a Categorical may differ from that of its numbers; then ranges are not used.
            if len(known) == len(order) and known == sorted(known):
                places = np.array(known, dtype=np.float64)
                return (places - places[0]) / ((places[-1] - places[0]) or 1.0), True
    return np.linspace(0.0, 1.0, len(order)), False


def _number(value: Any) -> float | None:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e300 else None  # also NaN and infinities
    number = None if isinstance(value, Fraction) else as_number(value)  # 1/3 is not written as a decimal
    return None if number is None else float(number)


def _seconds(value: Any) -> float | None:
    moment = as_moment(value)
    return None if moment is None else (moment.replace(tzinfo=None) - datetime.datetime.min).total_seconds()


Check = Callable[[Sequence[Records]], NDArray[np.bool_]]


def _requirements(
    table: Table, level: float | None, diversity: str, t: float | None, distance: str | Distance
) -> list[Check]:
    checks: list[Check] = []
    if level is not None or t is not None:
        table.attribute(table.sensitive[0].name if table.sensitive else None)
    for column in table.sensitive:
        if level is not None:
            check_positive(l=level)
            count = _distinct if diversity == "distinct" else _effective
            held = count(_compare(column, [np.arange(table.records)]))[0]
            if held < level:
                raise InvalidArgument(
                    f"l={level!r} cannot be met: {column.name!r} has {diversity} diversity {held:g} in the whole table."
                )
            checks.append(functools.partial(_diverse, column, count, level))
        if t is not None:
            check_non_negative(t=t)
            checks.append(functools.partial(_close, column, as_distance(distance), t))
    return checks


def _diverse(
    column: Column, count: Callable[[Comparison], NDArray[Any]], level: float, groups: Sequence[Records]
) -> NDArray[np.bool_]:
    return count(_compare(column, groups)) >= level


def _close(column: Column, metric: Distance, t: float, groups: Sequence[Records]) -> NDArray[np.bool_]:
    return np.asarray(metric.per_row(_compare(column, groups)) <= t + 1e-12)


def _compare(column: Column, groups: Sequence[Records]) -> Comparison:
    width = len(column.values)
    part = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    keys, counts = np.unique(part * width + column.codes[np.concatenate(groups)], return_counts=True)
    row, value = np.divmod(keys, width)
    return Comparison(row, value, counts, column.counts, column.values, False, column.order)


def _partition(axes: Sequence[_Axis], records: int, k: int, checks: Sequence[Check]) -> Iterator[Records]:
    """Yield the classes. All groups are cut in rounds, so that each requirement is checked for many cuts in one call."""
    waiting: list[tuple[Records, Iterator[list[Records]]]] = []
    fresh = [np.arange(records)]
    while fresh or waiting:
        waiting += [(group, _cuts(axes, group, k)) for group in fresh]
        fresh = []
        proposed = []
        for group, cuts in waiting:
            parts = next(cuts, None)
            if parts is None:
                yield group
            else:
                proposed.append((group, cuts, parts))
        allowed = np.ones(len(proposed), dtype=bool)
        if proposed and checks:
            owner = np.repeat(np.arange(len(proposed)), [len(parts) for _, _, parts in proposed])
            flat = [part for _, _, parts in proposed for part in parts]
            for check in checks:
                np.logical_and.at(allowed, owner, check(flat))
        waiting = []
        for (group, cuts, parts), fine in zip(proposed, allowed, strict=True):
            if fine:
                fresh += parts
            else:
                waiting.append((group, cuts))


def _cuts(axes: Sequence[_Axis], group: Records, k: int) -> Iterator[list[Records]]:
    """Yield the cuts of a group that leave at least k records in each part, widest axis first."""
    if len(group) < 2 * k:
        return
    widths = [axis.width(group) for axis in axes]
    for index in sorted(range(len(axes)), key=lambda index: -widths[index]):
        if widths[index] <= 0:
            return
        parts = axes[index].cut(group)
        if len(parts) > 1 and min(map(len, parts)) >= k:
            yield parts
