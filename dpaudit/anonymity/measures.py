"""Measures of a published table: k-anonymity, (alpha, k), l-diversity, t-closeness, beta-likeness, delta-disclosure.

Each measure is the worst value over the equivalence classes; the result also has the value of each class. With several
sensitive attributes the worst attribute decides, unless one is named.
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_choice, check_count
from dpaudit.anonymity.distance.distances import (
    AnyArray,
    Comparison,
    Distance,
    KullbackLeibler,
    check_exact,
    chi_square,
    divide,
    hellinger,
    jensen_shannon,
    kullback_leibler,
    l1,
    l2,
    maximum,
    variational,
)
from dpaudit.anonymity.distance.emd import EarthMovers, Equal, Ordered
from dpaudit.anonymity.measure import Measure, MeasureSense, compare_classes, decided, worst_of
from dpaudit.anonymity.tables.cells import as_number
from dpaudit.anonymity.tables.table import Column, Table
from dpaudit.errors import InvalidArgument

DISTANCES: Mapping[str, Distance] = {
    "tv": variational,
    "l1": l1,
    "l2": l2,
    "max": maximum,
    "kl": kullback_leibler,
    "kl-reverse": KullbackLeibler(reverse=True),
    "js": jensen_shannon,
    "hellinger": hellinger,
    "chi2": chi_square,
    "equal": EarthMovers(Equal()),
    "ordered": EarthMovers(Ordered()),
}


def as_distance(distance: str | Distance) -> Distance:
    """Return the distance of that name, or the distance itself.

    >>> as_distance("tv").name
    'tv'
    """
    if isinstance(distance, str):
        if distance == "emd":
            raise InvalidArgument(
                "distance='emd' does not say how far two values are apart; pass 'ordered', 'equal', EarthMovers(Ordered(...)) "
                "or EarthMovers(taxonomy)."
            )
        check_choice(DISTANCES, distance=distance)
        return DISTANCES[distance]
    if not isinstance(distance, Distance):
        raise InvalidArgument(f"distance={distance!r} must be one of {', '.join(DISTANCES)} or a distance object.")
    return distance


def k_anonymity(table: Table) -> Measure:
    """Return the size of the smallest class (Sweeney 2002).

    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> k_anonymity(lecture_notes().table).value
    3
    """
    return decided("k-anonymity", MeasureSense.AT_LEAST, table, table.classes.sizes)


@dataclass(frozen=True, slots=True)
class AlphaK:
    """The two numbers of (alpha, k)-anonymity."""

    alpha: Measure
    k: Measure

    def meets(self, *, alpha: float | Fraction, k: int) -> bool:
        """Return True if no share is above ``alpha`` and no class has fewer than ``k`` records."""
        return self.alpha.meets(alpha) and self.k.meets(k)


def alpha_k_anonymity(table: Table, attribute: Hashable | None = None, *, exact: bool = False) -> AlphaK:
    """Return the largest share of a sensitive value in a class, with k (Wong, Li, Fu and Wang 2006).

    Parameters
    ----------
    table, attribute, exact
        As for :func:`t_closeness`.

    Examples
    --------
    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> alpha_k_anonymity(lecture_notes().table, exact=True).alpha.value
    Fraction(2, 3)
    """

    def alpha(seen: Table, column: Column) -> Measure:
        comparison = compare_classes(seen, column, exact=exact)
        return _largest_entry("alpha", MeasureSense.AT_MOST, seen, column, comparison, comparison.p)

    return AlphaK(worst_of(table, attribute, False, alpha), k_anonymity(table))


def l_diversity(
    table: Table,
    attribute: Hashable | None = None,
    *,
    kind: Literal["distinct", "entropy"] = "distinct",
    others_known: bool = False,
) -> Measure:
    """Return the l of distinct or of entropy l-diversity (Machanavajjhala et al. 2007).

    Parameters
    ----------
    table, attribute
        As for :func:`t_closeness`.
    kind : {"distinct", "entropy"}
        ``"distinct"``: the number of sensitive values in a class. ``"entropy"``: exp(H), their effective number, which is at
        most the number of values, and equal to it if they are equally frequent. exp(H) >= l is decided exactly for whole l.
    others_known : bool
        The observer knows the other sensitive attributes.

    Examples
    --------
    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> l_diversity(lecture_notes().table).value, round(l_diversity(lecture_notes().table, kind="entropy").value, 6)
    (2, 1.889882)
    """
    check_choice(("distinct", "entropy"), kind=kind)

    def diversity(seen: Table, column: Column) -> Measure:
        comparison = compare_classes(seen, column)
        per_class = _distinct(comparison) if kind == "distinct" else _effective(comparison)
        return decided(f"{kind} l-diversity", MeasureSense.AT_LEAST, seen, per_class, column=column, tolerance=0.0)

    return worst_of(table, attribute, others_known, diversity)


def recursive_diversity(
    table: Table, attribute: Hashable | None = None, *, level: int, exact: bool = False, others_known: bool = False
) -> Measure:
    """Return the c such that the table is recursively (c', level)-diverse exactly for c' > c.

    With the counts of a class in descending order, r_1 >= r_2 >= ..., the definition is r_1 < c (r_l + ... + r_m): the
    most frequent value does not dominate the rare ones. A class with fewer than l values has an infinite c.

    Parameters
    ----------
    table, attribute, exact, others_known
        As for :func:`t_closeness`.
    level : int
        The l of the definition.

    Examples
    --------
    >>> frame = {"q": [0] * 6, "s": list("aaaaab")}
    >>> recursive_diversity(Table.from_frame(frame, quasi_identifiers="q", sensitive="s"), level=2, exact=True).value
    Fraction(5, 1)
    """
    check_count(level=level)

    def recursion(seen: Table, column: Column) -> Measure:
        comparison = compare_classes(seen, column)
        largest, tails, rank = _tails(comparison)
        tail = np.zeros(comparison.rows, dtype=np.int64)
        at = rank == level - 1
        tail[comparison.row[at]] = tails[at]
        ratio = np.full(comparison.rows, math.inf, dtype=object if exact else np.float64)
        some = tail > 0
        ratio[some] = divide(largest[some], tail[some], exact)
        return decided(f"recursive (c, {level})-diversity", MeasureSense.BELOW, seen, ratio, column=column)

    return worst_of(table, attribute, others_known, recursion)


def recursive_level(
    table: Table, attribute: Hashable | None = None, *, c: float | Fraction, others_known: bool = False
) -> Measure:
    """Return the largest l such that the table is recursively (c, l)-diverse; 0 if it is not so even for l = 1.

    Parameters
    ----------
    table, attribute, others_known
        As for :func:`t_closeness`.
    c : number
        The c of the definition (see :func:`recursive_diversity`).

    Examples
    --------
    >>> frame = {"q": [0] * 6, "s": list("aaabbc")}
    >>> recursive_level(Table.from_frame(frame, quasi_identifiers="q", sensitive="s"), c=2).value
    2
    """
    factor = as_number(c)
    if factor is None or factor <= 0:
        raise InvalidArgument(f"c={c!r} must be positive and finite.")

    def levels(seen: Table, column: Column) -> Measure:
        comparison = compare_classes(seen, column)
        largest, tails, _ = _tails(comparison)
        left, right = largest.astype(object) * factor.denominator, tails.astype(object) * factor.numerator
        kept = (left[comparison.row] < right).astype(np.int64)  # tails shrink, so the levels kept are the first ones
        name = f"recursive ({float(factor):g}, l)-diversity"
        return decided(name, MeasureSense.AT_LEAST, seen, comparison.sums(kept), column=column)

    return worst_of(table, attribute, others_known, levels)


def t_closeness(
    table: Table,
    attribute: Hashable | None = None,
    *,
    distance: str | Distance = "tv",
    reference: Mapping[Any, Any] | None = None,
    exact: bool = False,
    others_known: bool = False,
) -> Measure:
    """Return the largest distance of a class's distribution from the table's (Li, Li and Venkatasubramanian 2007).

    Parameters
    ----------
    table : Table
        The published table.
    attribute
        The sensitive attribute; by default the worst of all.
    distance
        A name (``tv``, ``l1``, ``l2``, ``max``, ``kl``, ``kl-reverse``, ``js``, ``hellinger``, ``chi2``, and the earth mover's
        distances ``equal`` and ``ordered``) or a distance.
    reference
        A distribution to compare with in place of the table's, such as a prior assumption.
    exact
        Return Fractions; for rational distances.
    others_known
        The observer knows the other sensitive attributes, which then act as quasi-identifiers.

    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> t = t_closeness(lecture_notes().table, exact=True)
    >>> t.value, t.deciding_class, [str(value) for value in t.per_class]
    (Fraction(5, 9), 1, ['4/9', '5/9', '2/9'])
    """
    metric = as_distance(distance)
    check_exact(metric, exact)

    def closeness(seen: Table, column: Column) -> Measure:
        comparison = compare_classes(seen, column, reference=reference, exact=exact)
        return decided(
            f"t-closeness ({metric.name})", MeasureSense.AT_MOST, seen, metric.per_row(comparison), column=column
        )

    return worst_of(table, attribute, others_known, closeness)


def beta_likeness(
    table: Table, attribute: Hashable | None = None, *, enhanced: bool = False, exact: bool = False
) -> Measure:
    """Return the largest relative gain (p - q) / q of a sensitive value in a class (Cao and Karras 2012).

    Only gains count (p > q).

    Parameters
    ----------
    table, attribute, exact
        As for :func:`t_closeness`.
    enhanced : bool
        A gain must also be at most -ln q; if one is larger, the value is infinite.

    Examples
    --------
    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> beta_likeness(lecture_notes().table, exact=True).value
    Fraction(2, 1)
    """

    def likeness(seen: Table, column: Column) -> Measure:
        comparison = compare_classes(seen, column, exact=exact)
        q = comparison.q[comparison.value]
        gain = comparison.p - q
        gain[gain < 0] = 0
        gain = gain / q
        if enhanced:
            gain[gain.astype(np.float64) > -np.log(q.astype(np.float64)) + 1e-12] = math.inf
        name = "enhanced beta-likeness" if enhanced else "beta-likeness"
        return _largest_entry(name, MeasureSense.AT_MOST, seen, column, comparison, gain)

    return worst_of(table, attribute, False, likeness)


def delta_disclosure(table: Table, attribute: Hashable | None = None) -> Measure:
    """Return the largest |ln(p / q)| of a sensitive value in a class (Brickell and Shmatikov 2008).

    The definition requires less than delta for every value of the attribute. A class that lacks a value has infinite
    disclosure: it reveals that its records do not have that value.

    >>> table = Table.from_frame({"q": [0, 0, 1, 1], "s": list("abab")}, quasi_identifiers="q", sensitive="s")
    >>> delta_disclosure(table).value
    0.0
    """

    def disclosure(seen: Table, column: Column) -> Measure:
        comparison = compare_classes(seen, column)
        loss = np.abs(np.log(comparison.p / comparison.q[comparison.value]))
        result = _largest_entry("delta-disclosure", MeasureSense.BELOW, seen, column, comparison, loss)
        lacking = _distinct(comparison) < len(column.values)
        if not lacking.any():
            return result
        per_class = np.where(lacking, math.inf, result.per_class)
        return decided("delta-disclosure", MeasureSense.BELOW, seen, per_class, column=column)

    return worst_of(table, attribute, False, disclosure)


def average_class_size(table: Table, k: int) -> float:
    """Return records / (classes * k): one if every class has exactly k records (LeFevre et al. 2006)."""
    check_count(k=k)
    return table.records / (len(table.classes) * k)


def discernibility(table: Table) -> int:
    """Return the sum of squared class sizes: each record costs the size of its class (Bayardo and Agrawal 2005)."""
    return int((table.classes.sizes.astype(np.int64) ** 2).sum())


def _largest_entry(
    name: str, sense: MeasureSense, table: Table, column: Column, comparison: Comparison, entries: AnyArray
) -> Measure:
    per_class = np.maximum.reduceat(entries, comparison.starts)
    # The first entry of each row that attains the maximum decides.
    hits = np.flatnonzero(entries == per_class[comparison.row])
    rows, first = np.unique(comparison.row[hits], return_index=True)
    codes = np.full(comparison.rows, -1, dtype=np.intp)
    codes[rows] = comparison.value[hits[first]]
    return decided(name, sense, table, per_class, column=column, deciding_codes=codes)


def _distinct(comparison: Comparison) -> NDArray[np.int64]:
    return np.diff(np.append(comparison.starts, len(comparison.row)))


def _effective(comparison: Comparison) -> NDArray[np.float64]:
    """Return exp(H) of each row, rounded to the correct side of every whole number."""
    counts = comparison.weight
    size = comparison.size
    entropy = np.maximum(np.log(size) - comparison.sums(counts * np.log(counts)) / size, 0.0)
    effective = np.exp(entropy)
    distinct = _distinct(comparison)
    even = np.minimum.reduceat(counts, comparison.starts) * distinct == size
    effective[even] = distinct[even]
    close = ~even & (np.abs(effective - np.rint(effective)) < 1e-6)
    ends = np.append(comparison.starts, len(counts))
    for index in np.flatnonzero(close):
        whole = int(np.rint(effective[index]))
        side = _side(tuple(sorted(counts[ends[index] : ends[index + 1]].tolist())), whole)
        limit = whole if side == 0 else math.nextafter(whole, math.inf * side)
        effective[index] = limit if side * (effective[index] - limit) <= 0 else effective[index]
    return effective


@functools.lru_cache(maxsize=4096)
def _side(counts: tuple[int, ...], whole: int) -> int:
    """Return the sign of exp(H) minus a whole number: that of n ln n - sum c ln c - n ln l, with 60 digits."""
    with decimal.localcontext(prec=60):
        total = decimal.Decimal(sum(counts))
        logs = {count: decimal.Decimal(count).ln() for count in {*counts, whole}}
        form = (
            total * total.ln()
            - sum((count * logs[count] for count in counts), decimal.Decimal(0))
            - total * logs[whole]
        )
        return 0 if abs(form) < decimal.Decimal("1e-40") else int(math.copysign(1, form))


def _tails(comparison: Comparison) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Return each row's largest count; and, counts descending, the sum from each rank on, and the ranks."""
    order = np.lexsort((-comparison.weight, comparison.row))
    counts = comparison.weight[order]
    starts = comparison.starts
    running = np.cumsum(counts)
    before = running - counts
    upto = before[starts][comparison.row]
    tails = comparison.size[comparison.row] - (before - upto)
    rank = np.arange(len(counts)) - starts[comparison.row]
    return counts[starts], tails, rank
