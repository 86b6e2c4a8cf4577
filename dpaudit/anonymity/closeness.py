"""(n, epsilon)-closeness of the lecture notes, and (n, t)-closeness of Li, Li and Venkatasubramanian (2010).

A class C is (n, epsilon)-close if some set M of at least n records of the table has D(P_C, P_M) <= epsilon. A partition is
(n, epsilon)-close if one common M does so for all its classes (docs/theory.md R23). The best M is found exactly, by
:mod:`dpaudit.anonymity.distance.reference_set`. In (n, t)-closeness M is a natural superset of the class: the class widened along
its quasi-identifiers.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_choice, check_count
from dpaudit.anonymity.distance.distances import AnyArray, Comparison, Distance, check_exact
from dpaudit.anonymity.distance.reference_set import Counts, best_common_reference, best_reference, is_homogeneous
from dpaudit.anonymity.measure import Measure, MeasureSense, compare_classes, decided, worst_of
from dpaudit.anonymity.measures import as_distance
from dpaudit.anonymity.tables.hierarchy import Hierarchy
from dpaudit.anonymity.tables.table import Column, Table, by_value
from dpaudit.errors import InvalidArgument

_UNIONS_AT_MOST = 16
"""Largest number of classes whose unions are all tried as supersets."""
_CELLS_AT_MOST = 10**7
"""Largest number of classes times sensitive values for one common reference set."""


def n_epsilon_closeness(
    table: Table,
    n: int,
    attribute: Hashable | None = None,
    *,
    distance: str | Distance = "tv",
    require_superset: bool = False,
    exact: bool = False,
) -> Measure:
    """Return the smallest epsilon for which every class, each with its own reference set, is (n, epsilon)-close.

    ``reference`` of the result contains the counts of the best set for the deciding class.

    Parameters
    ----------
    table : Table
        The published table.
    n : int
        Smallest number of records of a reference set.
    attribute
        The sensitive attribute; by default the worst of all.
    distance
        As for :func:`~dpaudit.anonymity.t_closeness`.
    require_superset : bool
        The reference set must contain the class. Otherwise a class of n or more records is its own, at distance zero.
    exact : bool
        Return Fractions; for rational distances.

    Examples
    --------
    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> closeness = n_epsilon_closeness(lecture_notes().table, 5, exact=True)
    >>> [str(epsilon) for epsilon in closeness.per_class]
    ['2/15', '1/5', '0']
    """
    metric = _checked(table, n, distance, exact)

    def closeness(seen: Table, column: Column) -> Measure:
        per_class, best = _by_class(compare_classes(seen, column), n, metric, require_superset, exact)
        name = f"({n}, epsilon)-closeness ({metric.name})" + (", containing the class" if require_superset else "")
        return decided(name, MeasureSense.AT_MOST, seen, per_class, column=column, reference=_named(column, best))

    return worst_of(table, attribute, False, closeness)


def partition_closeness(
    table: Table,
    n: int,
    attribute: Hashable | None = None,
    *,
    distance: str | Distance = "tv",
    require_superset: bool = False,
    exact: bool = False,
) -> Measure:
    """Return the smallest epsilon for which one reference set of at least n records is close to all classes.

    The set is found by mixed-integer programming, so epsilon may exceed the minimum by the solver's gap, 1e-6 over the size
    of the set. It is always the exact value for the set returned.

    Parameters
    ----------
    table, n, attribute, distance, exact
        As for :func:`n_epsilon_closeness`.
    require_superset : bool
        The set must contain every class: then it is the table, and the result is t-closeness.

    Examples
    --------
    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> partition_closeness(lecture_notes().table, 8, exact=True).value
    Fraction(1, 2)
    """
    metric = _checked(table, n, distance, exact)

    def closeness(seen: Table, column: Column) -> Measure:
        classes = compare_classes(seen, column)
        counts = column.counts
        best = counts  # the only set that contains every class
        if not require_superset:
            best = best_common_reference(_distinct_rows(classes), counts, n, metric, classes)
        per_class = metric.per_row(replace(classes, reference=best, exact=exact))
        name = f"({n}, epsilon)-closeness of the partition ({metric.name})"
        return decided(name, MeasureSense.AT_MOST, seen, per_class, column=column, reference=_named(column, best))

    return worst_of(table, attribute, False, closeness)


def n_t_closeness(
    table: Table,
    n: int,
    attribute: Hashable | None = None,
    *,
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
    supersets: Literal["hierarchies", "unions"] = "hierarchies",
    distance: str | Distance = "tv",
    exact: bool = False,
) -> Measure:
    """Return the smallest t for which the table is (n, t)-close: each class lies near a natural superset of n records.

    A natural superset widens the class along its quasi-identifiers.

    Parameters
    ----------
    hierarchies
        One for each quasi-identifier, whose labels the published cells are. The supersets of a class are the records
        below each combination of ancestors of its labels.
    supersets
        ``"unions"`` takes all unions of classes instead, for tables of at most 16 classes.

    >>> from dpaudit.anonymity.tables.hierarchy import Suppression
    >>> frame = {"q": list("aaabbb"), "s": [1, 1, 2, 1, 2, 3]}
    >>> table = Table.from_frame(frame, quasi_identifiers="q", sensitive="s")
    >>> n_t_closeness(table, 6, hierarchies={"q": Suppression()}, exact=True).value
    Fraction(1, 6)
    """
    metric = _checked(table, n, distance, exact)
    check_choice(("hierarchies", "unions"), supersets=supersets)
    sizes = table.classes.sizes
    widened = _all_unions(table) if supersets == "unions" else _widenings(table, hierarchies)

    def closeness(seen: Table, column: Column) -> Measure:
        classes = compare_classes(seen, column)
        per_class = np.full(classes.rows, math.inf, dtype=object if exact else np.float64)

        @functools.lru_cache(maxsize=1 << 14)
        def counts(members: bytes) -> Counts:
            inside = np.frombuffer(members, dtype=bool)[seen.classes.of_record]
            return np.bincount(column.codes[inside], minlength=len(column.values))

        for index, value, weight in _rows(classes):
            for members in widened(index):
                if sizes[members].sum() >= n:
                    one = _one(classes, value, weight, counts(members.tobytes()), exact)
                    per_class[index] = min(per_class[index], metric.per_row(one)[0])
        return decided(f"({n}, t)-closeness ({metric.name})", MeasureSense.AT_MOST, seen, per_class, column=column)

    return worst_of(table, attribute, False, closeness)


def _checked(table: Table, n: int, distance: str | Distance, exact: bool) -> Distance:
    check_count(n=n)
    if n > table.records:
        raise InvalidArgument(f"n={n!r} must be at most the number of records, {table.records}.")
    metric = as_distance(distance)
    check_exact(metric, exact)
    return metric


def _rows(classes: Comparison) -> Iterator[tuple[int, NDArray[np.intp], Counts]]:
    """Yield each class with its sensitive values and their counts."""
    ends = np.append(classes.starts, len(classes.row))
    for index, (start, end) in enumerate(itertools.pairwise(ends.tolist())):
        yield index, classes.value[start:end], classes.weight[start:end]


def _one(classes: Comparison, value: NDArray[np.intp], weight: Counts, reference: Counts, exact: bool) -> Comparison:
    row = np.zeros(len(value), dtype=np.intp)
    return Comparison(row, value, weight, reference, classes.domain, exact, classes.order)


def _by_class(classes: Comparison, n: int, metric: Distance, superset: bool, exact: bool) -> tuple[AnyArray, Counts]:
    """Return each class's smallest epsilon, and the counts of a best reference set of the worst."""
    counts, merged = classes.reference, is_homogeneous(metric)
    per_class = np.empty(classes.rows, dtype=object if exact else np.float64)
    known: dict[tuple[bytes, bytes], Any] = {}
    for index, value, weight in _rows(classes):
        unit = weight // np.gcd.reduce(weight)
        own, other = (weight if superset else unit), (counts[value] if merged else value)
        if merged:  # only the counts matter, so classes with equal counts have the same solution
            order = np.lexsort((other, own))
            own, other = own[order], other[order]
        key = own.tobytes(), other.tobytes()
        if key not in known:
            if _copies(counts, value, unit).sum() >= n:
                known[key] = Fraction(0) if exact else 0.0
            else:
                problem, best = _nearest(classes, value, weight, n, metric, superset, merged)
                known[key] = metric.per_row(replace(problem, reference=best, exact=exact))[0]
        per_class[index] = known[key]
    worst = int(np.argmax(per_class))
    _, value, weight = next(itertools.islice(_rows(classes), worst, None))
    reference = np.zeros_like(counts)
    if per_class[worst] == 0:
        reference[value] = _copies(counts, value, weight // np.gcd.reduce(weight))
        if reference.sum() >= n:
            return per_class, reference
    _, best = _nearest(classes, value, weight, n, metric, superset, merged)
    return per_class, _spread(best, value, counts) if merged else best


def _copies(counts: Counts, value: NDArray[np.intp], unit: Counts) -> Counts:
    """Return the largest set with exactly the proportions of the class: it is at distance zero."""
    return np.asarray(unit * (counts[value] // unit).min())


def _nearest(
    classes: Comparison, value: NDArray[np.intp], weight: Counts, n: int, metric: Distance, superset: bool, merged: bool
) -> tuple[Comparison, Counts]:
    """Return the class's problem, over its own values and one for all others if ``merged``, and the best counts."""
    problem = _one(classes, value, weight, classes.reference, False)
    if merged:
        own = classes.reference[value]
        available = np.append(own, classes.reference.sum() - own.sum())
        problem = Comparison(problem.row, np.arange(len(value)), weight, available, range(len(available)))
    held = np.zeros_like(problem.reference)
    held[problem.value] = weight
    return problem, best_reference(held, problem.reference, n, metric, problem, superset=superset)


def _spread(best: Counts, value: NDArray[np.intp], counts: Counts) -> Counts:
    """Return counts over all values: the count of the merged value is taken from the first values that have records."""
    others = counts.copy()
    others[value] = 0
    full = np.asarray(np.clip(best[-1] - (np.cumsum(others) - others), 0, others))
    full[value] = best[:-1]
    return full


def _distinct_rows(classes: Comparison) -> Counts:
    if classes.rows * len(classes.domain) > _CELLS_AT_MOST:
        raise InvalidArgument(
            f"{classes.rows} classes and {len(classes.domain)} sensitive values are too many for one common reference "
            f"set (their product is limited to {_CELLS_AT_MOST})."
        )
    dense = np.zeros((classes.rows, len(classes.domain)), dtype=np.int64)
    dense[classes.row, classes.value] = classes.weight
    dense //= np.gcd.reduce(dense, axis=1)[:, None]
    return np.unique(dense, axis=0)


def _named(column: Column, counts: Counts) -> dict[Any, int]:
    codes = np.flatnonzero(counts)
    return by_value((column.values[code] for code in codes), counts[codes].tolist())


# Natural supersets of a class, as boolean rows over the classes

Supersets: TypeAlias = Callable[[int], Iterator[NDArray[np.bool_]]]


def _all_unions(table: Table) -> Supersets:
    classes = len(table.classes)
    if classes > _UNIONS_AT_MOST:
        raise InvalidArgument(
            f"supersets='unions' tries all unions of the table's {classes} classes; at most {_UNIONS_AT_MOST} are "
            "feasible. Pass hierarchies."
        )
    subsets = np.array(list(itertools.product((False, True), repeat=classes)))
    return lambda index: iter(subsets[subsets[:, index]])


def _widenings(table: Table, hierarchies: Mapping[Hashable, Hierarchy] | None) -> Supersets:
    missing = [column.name for column in table.quasi_identifiers if column.name not in (hierarchies or {})]
    if hierarchies is None or missing:
        raise InvalidArgument(
            f"hierarchies has none for {missing!r}; natural supersets widen every quasi-identifier along its own. "
            "Suppression() is the simplest; supersets='unions' needs none."
        )
    firsts = table.classes.sorted_records[table.classes.starts]
    chains: list[list[tuple[Any, ...]]] = []
    members: list[dict[Any, list[int]]] = []
    for column in table.quasi_identifiers:
        ancestors = [hierarchies[column.name].ancestors(value) for value in column.values]
        chains.append([ancestors[code] for code in column.codes[firsts]])
        below: dict[Any, list[int]] = {}
        for code, chain in enumerate(ancestors):
            for label in chain:
                below.setdefault(label, []).append(code)
        members.append(below)

    @functools.lru_cache(maxsize=1 << 12)
    def under(axis: int, label: Any) -> NDArray[np.bool_]:
        column = table.quasi_identifiers[axis]
        inside = np.zeros(len(column.values), dtype=bool)
        inside[members[axis][label]] = True
        return inside[column.codes[firsts]]

    def widened(index: int) -> Iterator[NDArray[np.bool_]]:
        for box in itertools.product(*(chain[index] for chain in chains)):
            yield np.logical_and.reduce([under(axis, label) for axis, label in enumerate(box)])

    return widened
