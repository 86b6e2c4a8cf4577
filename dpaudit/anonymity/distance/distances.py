r"""Distances between two distributions over the values of a sensitive attribute.

A distribution is a mapping from value to weight, or a sequence of weights by position. Whole numbers are counts, and
are divided by their total; other numbers are probabilities, and must sum to one. Every distance is a value that can be
called (``variational(p, q)``), handed to a measure (``t_closeness(table, distance=variational)``) or named
(``distance="tv"``). Where a distance is rational, ``exact=True`` returns a :class:`fractions.Fraction`.

=======================  ====================================  ==================================================
name                     value                                 remarks
=======================  ====================================  ==================================================
``tv``                   sum |p - q| / 2                       metric, in [0, 1]; the lecture notes' choice
``l1``, ``l2``, Norm(n)  (sum |p - q|^n)^(1/n)                 metric
``max``                  max |p - q|                           metric
``kl``, ``kl-reverse``   sum p log2(p / q), or p and q swapped infinite where q = 0 < p
``js``                   (KL(p, m) + KL(q, m)) / 2, m middle   at most 1 bit; its square root is a metric
``hellinger``            sqrt(sum (sqrt p - sqrt q)^2 / 2)     metric, in [0, 1]
``chi2``                 sum (p - q)^2 / q                     infinite where q = 0 < p
``emd``                  least cost to move p onto q           :mod:`dpaudit.anonymity.distance.emd`
=======================  ====================================  ==================================================

All sums have non-negative terms, so nothing cancels between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_finite, shorten
from dpaudit.errors import InvalidArgument

Number: TypeAlias = int | float | Fraction
Weights: TypeAlias = Mapping[Any, Any] | Sequence[Any] | NDArray[Any]
AnyArray: TypeAlias = NDArray[Any]

_DENSE_CELLS = 1 << 22
"""Largest number of cells of a dense block of probabilities."""
_fraction = np.frompyfunc(Fraction, 2, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Distributions ``p``, one per row, and one reference ``q`` over the same values: the argument of every distance.

    Rows are sparse: entry ``i`` is the weight ``weight[i]`` of value number ``value[i]`` in row ``row[i]``, whose total weight
    is ``size[row[i]]``. Entries are sorted by row and then by value, and every row has at least one. Counts stay integers:
    their sums are exact, and equal ratios become equal floats.
    """

    row: NDArray[np.intp]
    value: NDArray[np.intp]
    weight: AnyArray
    reference: AnyArray
    domain: Sequence[Any]
    exact: bool = False
    order: tuple[Any, ...] | None = None  # the declared order of the values, if the attribute has one

    @property
    def starts(self) -> NDArray[np.intp]:
        """The index of the first entry of each row."""
        return np.flatnonzero(np.r_[True, self.row[1:] != self.row[:-1]])

    @property
    def size(self) -> AnyArray:
        """The total weight of each row."""
        if self.weight.dtype.kind in "iu":
            return self.sums(self.weight)
        return np.ones(len(self.starts), dtype=self.weight.dtype)  # probabilities: checked to sum to one

    @property
    def total(self) -> Any:
        """The total weight of the reference."""
        return self.reference.sum() if self.reference.dtype.kind in "iu" else 1

    @property
    def p(self) -> AnyArray:
        """The probability of each entry in its row."""
        return divide(self.weight, self.size[self.row], self.exact)

    @property
    def q(self) -> AnyArray:
        """The reference's probability of each value."""
        return divide(self.reference, self.total, self.exact)

    @property
    def absent(self) -> AnyArray:
        """The mass that the reference has on values without an entry in the row."""
        rest = self.reference.sum() - self.sums(self.reference[self.value])
        everywhere = np.diff(np.append(self.starts, len(self.row))) == len(self.reference)
        rest = np.where(everywhere, rest * 0, np.maximum(rest, rest * 0))  # remove rounding errors
        return divide(rest, self.total, self.exact)

    @property
    def rows(self) -> int:
        """The number of distributions compared with the reference."""
        return len(self.starts)

    def sums(self, terms: AnyArray) -> AnyArray:
        """Sum the entries of each row."""
        return np.add.reduceat(terms, self.starts)

    def blocks(self) -> Iterator[tuple[slice, AnyArray]]:
        """Yield the rows of probabilities as dense blocks of a bounded number of cells."""
        height = max(1, _DENSE_CELLS // max(1, len(self.reference)))
        p, starts = self.p, np.append(self.starts, len(self.row))
        for first in range(0, self.rows, height):
            last = min(first + height, self.rows)
            entries = slice(starts[first], starts[last])
            block = np.zeros((last - first, len(self.reference)), dtype=p.dtype)
            block[self.row[entries] - first, self.value[entries]] = p[entries]
            yield slice(first, last), block


@runtime_checkable
class Distance(Protocol):
    """A distance of a distribution from a reference."""

    @property
    def name(self) -> str:
        """The name in reports."""

    @property
    def rational(self) -> bool:
        """True if it is rational (or infinite) for rational distributions, so that ``exact=True`` works."""

    def per_row(self, comparison: Comparison) -> AnyArray:
        """Return the distance of each row from the reference."""


Term: TypeAlias = Callable[[AnyArray, AnyArray], AnyArray]


@dataclass(frozen=True, slots=True)
class Divergence:
    """A sum over the values of ``term(p, q)``, which is convex, zero where p = q, and homogeneous of degree one.

    By homogeneity ``term(0, q)`` is linear in q, so for the values that a row does not contain only their total mass matters.
    The cost is proportional to the entries, not to rows times values.

    >>> variational({"a": 1, "b": 1}, {"a": 1, "b": 3}, exact=True)
    Fraction(1, 4)
    >>> chi_square({"a": 1}, {"b": 1})
    inf
    """

    name: str
    term: Term = field(repr=False)
    rational: bool = False
    root: bool = field(default=False, repr=False)
    unit: float = field(default=1.0, repr=False)

    def __call__(self, p: Weights, q: Weights, *, exact: bool = False) -> Any:
        """Return the distance of ``p`` from ``q``."""
        return between(self, p, q, exact=exact)

    def per_row(self, comparison: Comparison) -> AnyArray:
        """Return the distance of each row from the reference."""
        absent = comparison.absent
        entries = self.term(comparison.p, comparison.q[comparison.value])
        total = comparison.sums(entries) + self.term(absent * 0, absent)
        if self.unit != 1.0:
            total = total / self.unit
        return np.sqrt(total) if self.root else total


@dataclass(frozen=True, slots=True)
class Norm:
    """The ``order``-norm of p - q, for any order of at least one, and ``math.inf`` for the maximum.

    >>> Norm(math.inf)({"a": 2, "b": 1}, {"a": 1, "b": 2}, exact=True)
    Fraction(1, 3)
    """

    order: float

    def __post_init__(self) -> None:
        if self.order != math.inf:
            check_finite(order=self.order)
        if not self.order >= 1:
            raise InvalidArgument(f"order={self.order!r} must be at least 1; below it the triangle inequality fails.")

    @property
    def name(self) -> str:
        """``l2``, ``l3``, ``max``."""
        return "max" if self.order == math.inf else f"l{self.order:g}"

    @property
    def rational(self) -> bool:
        """True for the sum and the maximum; roots are irrational."""
        return self.order in (1, math.inf)

    def __call__(self, p: Weights, q: Weights, *, exact: bool = False) -> Any:
        """Return the norm of the difference."""
        return between(self, p, q, exact=exact)

    def per_row(self, comparison: Comparison) -> AnyArray:
        """Return the norm of each row's difference from the reference."""
        q = comparison.q
        result = np.empty(comparison.rows, dtype=q.dtype)
        for rows, block in comparison.blocks():
            gaps = abs(block - q)
            largest = gaps.max(axis=1)
            if self.order == math.inf:
                result[rows] = largest
            elif self.order == 1:
                result[rows] = gaps.sum(axis=1)
            else:  # scaled by the largest, so that high orders do not underflow
                safe = np.where(largest > 0, largest, 1.0)
                result[rows] = largest * ((gaps / safe[:, None]) ** self.order).sum(axis=1) ** (1.0 / self.order)
        return result


@dataclass(frozen=True, slots=True)
class KullbackLeibler:
    """Relative entropy: sum p log(p / q), in bits by default; ``reverse`` swaps p and q.

    It is infinite where the second distribution has no mass on a value of the first. The order matters: in the lecture
    notes' example KL(class, table) is finite and KL(table, class) infinite for every class (docs/theory.md R22).

    >>> kullback_leibler({"a": 1}, {"a": 1, "b": 1}), KullbackLeibler(reverse=True)({"a": 1}, {"a": 1, "b": 1})
    (1.0, inf)
    """

    base: float = 2.0
    reverse: bool = False

    def __post_init__(self) -> None:
        check_finite(base=self.base)
        if not self.base > 1:
            raise InvalidArgument(f"base={self.base!r} of the logarithm must be above 1; 2 gives bits, math.e nats.")

    @property
    def name(self) -> str:
        """``kl`` or ``kl-reverse``, with the base where it is not 2."""
        base = "" if self.base == 2 else f" (base {self.base:g})"
        return ("kl-reverse" if self.reverse else "kl") + base

    @property
    def rational(self) -> bool:
        """False: logarithms are irrational."""
        return False

    @property
    def unit(self) -> float:
        """The size of one unit in nats."""
        return math.log(self.base)

    @property
    def term(self) -> Term:
        """Relative entropy in nats as a sum of non-negative terms."""
        return _entropy_reversed if self.reverse else _entropy

    def __call__(self, p: Weights, q: Weights, *, exact: bool = False) -> Any:
        """Return the relative entropy of ``p`` with respect to ``q``."""
        return between(self, p, q, exact=exact)

    def per_row(self, comparison: Comparison) -> AnyArray:
        """Return the relative entropy of each row with respect to the reference."""
        return Divergence(self.name, self.term, unit=self.unit).per_row(comparison)


def _half_absolute(p: AnyArray, q: AnyArray) -> AnyArray:
    return cast(AnyArray, abs(p - q) / 2)


def _absolute(p: AnyArray, q: AnyArray) -> AnyArray:
    return cast(AnyArray, abs(p - q))


def _entropy(p: AnyArray, q: AnyArray) -> AnyArray:
    """``p log(p/q) - p + q``: the extra terms sum to zero and make every term non-negative, without loss of accuracy."""
    result = np.asarray(q, dtype=np.float64).copy()  # p = 0
    some = p > 0
    first, second = p[some], q[some]
    with np.errstate(divide="ignore", over="ignore"):
        change = (second - first) / first
        far = first * np.log(first / second) - first + second
    near = np.abs(change) < 0.3
    r = np.where(near, change, 0.0)
    u = r / (2.0 + r)  # log(1 + r) = 2 atanh(u), and r - 2 u = r u: the difference without cancellation
    square = u * u
    series = np.zeros_like(u)
    for odd in range(25, 1, -2):
        series = series * square + 1.0 / odd
    result[some] = np.where(near, first * (r * u - 2.0 * u * square * series), far)
    return result


def _entropy_reversed(p: AnyArray, q: AnyArray) -> AnyArray:
    return _entropy(q, p)


def _jensen_shannon(p: AnyArray, q: AnyArray) -> AnyArray:
    middle = (p + q) / 2.0
    return 0.5 * (_entropy(p, middle) + _entropy(q, middle))


def _hellinger(p: AnyArray, q: AnyArray) -> AnyArray:
    roots = np.sqrt(p) + np.sqrt(q)
    gap = np.divide(p - q, roots, out=np.zeros_like(roots), where=roots > 0)  # sqrt p - sqrt q without cancellation
    return np.asarray(0.5 * gap * gap)


def _chi_square(p: AnyArray, q: AnyArray) -> AnyArray:
    result = np.full(p.shape, math.inf, dtype=p.dtype)
    result[p == 0] = 0
    some = q > 0
    result[some] = (p[some] - q[some]) ** 2 / q[some]
    return result


variational = Divergence("tv", _half_absolute, rational=True)
l1 = Divergence("l1", _absolute, rational=True)
l2 = Norm(2)
maximum = Norm(math.inf)
kullback_leibler = KullbackLeibler()
jensen_shannon = Divergence("js", _jensen_shannon, unit=math.log(2.0))
hellinger = Divergence("hellinger", _hellinger, root=True)
chi_square = Divergence("chi2", _chi_square, rational=True)


def power_sum(p: Weights, q: Weights, order: int, *, exact: bool = False) -> Any:
    """Return sum |p - q|^order: the power of the norm, which is rational even if the norm is not.

    Parameters
    ----------
    p, q
        Distributions, as for every distance.
    order : int
        The power.
    exact : bool
        Return a Fraction.

    Examples
    --------
    >>> power_sum({"a": 1}, {"a": 1, "b": 1, "c": 1}, 2, exact=True)
    Fraction(2, 3)
    """
    Norm(order)
    if exact and order != int(order):
        raise InvalidArgument(f"order={order!r} must be whole with exact=True; other powers are irrational.")
    comparison = compare(p, q, exact=exact)
    gaps = abs(comparison.p - comparison.q)  # every value has an entry
    return _scalar((gaps ** (int(order) if order == int(order) else order)).sum())


def between(distance: Distance, p: Weights, q: Weights, *, exact: bool = False) -> Any:
    """Return the distance of ``p`` from ``q``: a float, or with ``exact`` a Fraction (or infinity)."""
    check_exact(distance, exact)
    return _scalar(distance.per_row(compare(p, q, exact=exact))[0])


def check_exact(distance: Distance, exact: bool) -> None:
    """Raise InvalidArgument if ``exact=True`` is asked of an irrational distance."""
    if exact and not distance.rational:
        hint = " power_sum(p, q, order, exact=True) gives its power." if isinstance(distance, Norm) else ""
        raise InvalidArgument(
            f"exact=True: {distance.name} is irrational in general; tv, l1, max, chi2 and emd are rational.{hint}"
        )


def compare(p: Weights, q: Weights, *, exact: bool = False) -> Comparison:
    """Return two distributions as a comparison over the union of their values, each with an entry."""
    if isinstance(p, Mapping) != isinstance(q, Mapping):
        raise InvalidArgument("p and q must both be mappings from value to weight, or both sequences of weights.")
    for name, weights in (("p", p), ("q", q)):
        if not len(weights):
            raise InvalidArgument(f"{name} is empty; a distribution needs at least one value.")
    if isinstance(p, Mapping) and isinstance(q, Mapping):
        domain: list[Any] = list(dict.fromkeys((*p, *q)))
        left, right = [p.get(value, 0) for value in domain], [q.get(value, 0) for value in domain]
    else:
        left, right = list(cast(Sequence[Any], p)), list(cast(Sequence[Any], q))
        if len(left) != len(right):
            raise InvalidArgument(f"p has {len(left)} weights and q {len(right)}; by position they must be as many.")
        domain = list(range(len(left)))
    first, second = checked_weights("p", left, exact=exact), checked_weights("q", right, exact=exact)
    return Comparison(np.zeros(len(domain), dtype=np.intp), np.arange(len(domain)), first, second, domain, exact)


def checked_weights(name: str, weights: Sequence[Any], *, exact: bool = False) -> AnyArray:
    """Return valid weights: counts as int64 with a positive total, other numbers as probabilities that sum to one."""
    numbers: list[Number] = []
    for weight in weights:
        plain = weight.item() if isinstance(weight, np.generic) else weight
        if isinstance(plain, bool) or not isinstance(plain, int | float | Fraction):
            raise InvalidArgument(f"{name} holds the weight {weight!r}; weights are numbers: counts or probabilities.")
        if not (plain >= 0 and plain < math.inf):
            raise InvalidArgument(f"{name} holds the weight {weight!r}; weights must be zero or positive, and finite.")
        if exact and isinstance(plain, float):
            raise InvalidArgument(
                f"{name} holds the float {weight!r}, and exact=True was asked; give counts (int) or fractions.Fraction."
            )
        numbers.append(plain)
    counts = all(isinstance(number, int) for number in numbers)
    floats = any(isinstance(number, float) for number in numbers)
    total: Number = math.fsum(numbers) if floats else sum((Fraction(number) for number in numbers), Fraction(0))
    if counts and total == 0:
        raise InvalidArgument(f"{name}={shorten(list(weights))} has no mass; at least one count must be positive.")
    if not counts and (total != 1 if exact else abs(float(total) - 1.0) > 1e-9):
        raise InvalidArgument(
            f"{name}={shorten(list(weights))} sums to {total}, not to 1. Probabilities must; counts are whole numbers."
        )
    if counts and total < 1 << 53:
        return np.array(numbers, dtype=np.int64)
    shares = [Fraction(number) / Fraction(total) for number in numbers]
    return np.array(shares, dtype=object) if exact else np.array([float(share) for share in shares])


def divide(numerators: AnyArray, denominators: Any, exact: bool) -> AnyArray:
    """Divide elementwise, into floats or into Fractions."""
    if not exact:
        return cast(AnyArray, numerators / denominators)
    return cast(AnyArray, _fraction(numerators.astype(object), np.asarray(denominators).astype(object)))


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
