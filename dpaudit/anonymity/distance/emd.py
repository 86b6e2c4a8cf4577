"""The earth mover's distance: the smallest sum of mass times ground distance that turns p into q.

Three ground distances have closed forms, all scaled into [0, 1] (Li, Li and Venkatasubramanian 2007):

* :class:`Equal`: every two values are at distance one, and the result is the variational distance;
* :class:`Ordered`: values on a line. The mass |P(left of it) - Q(left of it)| must cross each gap, so the cost is the sum over
  the gaps of their width times this mass;
* a :class:`~dpaudit.anonymity.tables.hierarchy.Taxonomy`: the same on a tree; each edge is crossed by |P(below) - Q(below)|.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from dpaudit._util.validation import check_choice, did_you_mean, shorten
from dpaudit.anonymity.distance.distances import AnyArray, Comparison, Weights, between, divide, variational
from dpaudit.anonymity.tables.cells import as_moment, as_number
from dpaudit.anonymity.tables.hierarchy import Taxonomy
from dpaudit.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Equal:
    """Every two different values are at distance one."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Values on a line, from 0 (the first) to 1 (the last).

    Parameters
    ----------
    order
        The values from first to last; values that do not occur count too. Without it the values must be numbers (or
        texts that spell numbers), dates, or an ordered pandas Categorical.
    by
        ``"ranks"``: neighbours in the order are equally far apart, as in Li et al.; ``"values"``: as the numbers.

    >>> EarthMovers(Ordered())({3: 1, 4: 1, 5: 1}, {salary: 1 for salary in range(3, 12)}, exact=True)
    Fraction(3, 8)
    """

    order: tuple[Any, ...] | None = None
    by: Literal["ranks", "values"] = "ranks"

    def __post_init__(self) -> None:
        check_choice(("ranks", "values"), by=self.by)
        if self.order is not None:
            object.__setattr__(self, "order", tuple(self.order))
            if len(set(self.order)) != len(self.order) or not self.order:
                raise InvalidArgument(f"order={self.order!r} must name each value once, and at least one.")

    def places(self, domain: Sequence[Any], declared: tuple[Any, ...] | None = None) -> tuple[list[int], int]:
        """Return the position of each value in whole steps from the first, and the position of the last."""
        order = self.order if self.order is not None else declared
        if order is None:
            numbers = _whole(_numbers(domain))
            if self.by == "ranks":
                rank = {number: index for index, number in enumerate(sorted(set(numbers)))}
                numbers = [rank[number] for number in numbers]
            return _from_first(numbers, numbers)
        number_of = {value: index for index, value in enumerate(order)}
        for value in domain:
            if value not in number_of:
                raise InvalidArgument(
                    f"value={value!r} is not in order={shorten(order)}, which must name every value."
                    f"{did_you_mean(value, order)}"
                )
        steps = list(range(len(order))) if self.by == "ranks" else _whole(_numbers(order))
        return _from_first([steps[number_of[value]] for value in domain], steps)


Ground: TypeAlias = Equal | Ordered | Taxonomy


@dataclass(frozen=True, slots=True)
class EarthMovers:
    """The earth mover's distance over a declared ground distance.

    >>> sizes = EarthMovers(Ordered(order=("small", "medium", "large")))
    >>> sizes({"small": 1}, {"large": 1}), sizes({"small": 1}, {"medium": 1}, exact=True)
    (1.0, Fraction(1, 2))
    """

    ground: Ground
    rational: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.ground, Equal | Ordered | Taxonomy):
            raise InvalidArgument(f"ground={self.ground!r} must be Equal(), Ordered(...) or a Taxonomy.")

    @property
    def name(self) -> str:
        """``emd`` with its ground distance."""
        if isinstance(self.ground, Equal):
            return "emd (equal)"
        return f"emd (ordered, {self.ground.by})" if isinstance(self.ground, Ordered) else "emd (taxonomy)"

    def __call__(self, p: Weights, q: Weights, *, exact: bool = False) -> Any:
        """Return the least cost of turning ``p`` into ``q``."""
        return between(self, p, q, exact=exact)

    def per_row(self, comparison: Comparison) -> AnyArray:
        """Return the cost of turning each row into the reference."""
        if isinstance(self.ground, Equal):
            return variational.per_row(comparison)
        if isinstance(self.ground, Taxonomy):
            return _on_tree(comparison, self.ground)
        return _on_line(comparison, *self.ground.places(comparison.domain, comparison.order))

    def functionals(
        self, domain: Sequence[Any], declared: tuple[Any, ...] | None = None
    ) -> tuple[list[list[int]], list[Fraction]]:
        """Return 0/1 rows ``a`` and weights ``w`` with distance = sum_k w_k |a_k (p - q)|."""
        if isinstance(self.ground, Equal):
            return [[int(i == j) for j in range(len(domain))] for i in range(len(domain))], [Fraction(1, 2)] * len(
                domain
            )
        if isinstance(self.ground, Ordered):
            places, span = self.ground.places(domain, declared)
            stops = sorted(set(places))
            left = [[int(place <= stop) for place in places] for stop in stops[:-1]]
            return left, [Fraction(after - before, span) for before, after in itertools.pairwise(stops)]
        chains = [set(self.ground.ancestors(value)) for value in _leaves(self.ground, domain)]
        kept = [(label, length) for label, length in self.ground.edges if any(label in chain for chain in chains)]
        return [[int(label in chain) for chain in chains] for label, _ in kept], [length for _, length in kept]


def _on_line(comparison: Comparison, places: Sequence[int], span: int) -> AnyArray:
    """Sum |P - Q| over the gaps, in time proportional to the entries.

    Between two neighbouring entries of a row P is constant and Q grows, so the sum of width * |P - Q| over the gaps
    between them splits where Q passes P, and each half is a difference of prefix sums of width and of width * Q. Counts
    and places are whole numbers, so those sums are exact, and a row equal to the reference is at distance zero.
    """
    exact, starts = comparison.exact, comparison.starts
    line = sorted(range(len(places)), key=places.__getitem__)
    place = np.empty(len(line), dtype=np.intp)
    place[line] = np.arange(len(line))
    kind = np.dtype(object if exact else np.float64)
    spots = np.array([places[i] for i in line], dtype=object).astype(kind)
    below = np.cumsum(comparison.reference.astype(kind)[line])  # the reference's weight up to each place
    zero = below[:1] * 0
    across = np.concatenate([zero, np.cumsum((spots[1:] - spots[:-1]) * below[:-1])])

    spot = place[comparison.value]
    entries = np.lexsort((spot, comparison.row))
    spot, row = spot[entries], comparison.row[entries]
    running = np.cumsum(comparison.weight.astype(kind)[entries])
    level = (
        running - np.concatenate([zero, running[starts[1:] - 1]])[row]
    )  # the row's weight from here to the next entry
    size = comparison.size.astype(kind)[row]
    last = np.append(starts[1:], len(row)) - 1
    level[last] = size[last]
    until = np.append(spot[1:], len(line) - 1)
    until[last] = len(line) - 1
    total = np.asarray(comparison.total).astype(kind)
    passes = np.searchsorted(divide(below, total, exact), divide(level, size, exact), side="left")
    passes = np.clip(passes, spot, until)
    widths = level * (2 * spots[passes] - spots[spot] - spots[until])
    masses = 2 * across[passes] - across[spot] - across[until]
    cost = divide(widths, size, exact) - divide(masses, total, exact)
    # Left of its first entry a row has no mass.
    cost = comparison.sums(cost) + divide(across[spot[starts]], total, exact)
    return cost / span if exact else np.maximum(cost, 0.0) / span


def _on_tree(comparison: Comparison, taxonomy: Taxonomy) -> AnyArray:
    inside, lengths = EarthMovers(taxonomy).functionals(comparison.domain, None)
    kind = object if comparison.exact else np.float64
    membership = np.array(inside, dtype=kind).reshape(len(lengths), len(comparison.domain)).T
    weights = np.array([length if comparison.exact else float(length) for length in lengths], dtype=kind)
    q = comparison.q
    result = np.empty(comparison.rows, dtype=kind)
    for rows, block in comparison.blocks():
        result[rows] = abs((block - q) @ membership) @ weights
    return result


def _leaves(taxonomy: Taxonomy, domain: Sequence[Any]) -> Sequence[Any]:
    leaves = set(taxonomy.leaves)
    for value in domain:
        if not isinstance(value, Hashable) or value not in leaves:
            taxonomy.ancestors(value)  # raises for an unknown value
            raise InvalidArgument(
                f"value={value!r} is an inner label of the taxonomy; sensitive values must be leaves."
            )
    return domain


def _numbers(values: Sequence[Any]) -> Sequence[int | Fraction]:
    if all(type(value) is int for value in values):
        return values
    numbers = [Fraction(int(value)) if isinstance(value, bool | np.bool_) else as_number(value) for value in values]
    if all(number is not None for number in numbers):
        return [number for number in numbers if number is not None]
    moments = [as_moment(value) for value in values]
    known = [moment for moment in moments if moment is not None]
    if len(known) == len(values) and len({moment.tzinfo is None for moment in known}) == 1:
        start = min(known)
        return [(moment - start) // datetime.timedelta(microseconds=1) for moment in known]
    odd = next(value for value, number in zip(values, numbers, strict=True) if number is None)
    raise InvalidArgument(
        f"value={odd!r} is not a number, so the values have no order of their own. "
        "Pass Ordered(order=[...]), or use the ground distance Equal() or a Taxonomy."
    )


def _whole(numbers: Sequence[int | Fraction]) -> list[int]:
    """Scale to whole numbers: differences are then exact, whatever the decimals were."""
    unit = math.lcm(*(number.denominator for number in numbers))
    return [int(number * unit) for number in numbers]


def _from_first(places: Sequence[int], steps: Sequence[int]) -> tuple[list[int], int]:
    first = min(steps)
    return [place - first for place in places], (
        max(steps) - first
    ) or 1  # with a single position all distances are zero
