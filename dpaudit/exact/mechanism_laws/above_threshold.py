"""The exact output law of AboveThreshold, and how private it is.

AboveThreshold (report, section 2.1, after Dwork and Roth 2014) draws one threshold noise Z ~ Lap(2/epsilon) and one
noise nu_j ~ Lap(4/epsilon) for each query, and returns the first j with ``answers[j] + nu_j > threshold + Z``, or -1.
Given Z the queries are independent, so with F the distribution function of nu and l the density of Z (docs/theory.md R2)

    P(A = j)  = int l(z) prod_{i<j} F(T + z - y_i) (1 - F(T + z - y_j)) dz,
    P(A = -1) = int l(z) prod_i     F(T + z - y_i) dz.

Two evaluations that share nothing: a quadrature in logs (fast, any number of queries), and the closed form of the
integral between breakpoints in decimal arithmetic (slow, few queries, as many digits as asked for).
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit._util.validation import check_count, check_finite, check_positive, finite_array
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.form import Array
from dpaudit.exact.laws.discrete import Discrete

NONE_ABOVE = -1
"""The output of AboveThreshold when no query is found above the threshold."""

_LOG_2 = math.log(2.0)
_REACH = 45.0
"""Distance from a breakpoint, in query scales, beyond which F is 0 or 1 up to 1.5e-20 and the log-integrand is linear."""
_CELL = 4.0
"""Largest width of a cell near a breakpoint, in query scales."""
_FARTHEST = 1e15
"""Largest distance of an answer from the threshold, in noise scales; floats farther out cannot resolve the noise."""
_NEGLIGIBLE = 48.0
"""A cell whose log-integrand stays this far below the largest value of an outcome is left out for that outcome."""
_CHUNK = 1 << 15
"""Number of integrand values that are computed at once."""
_MOST_CLOSED = 60
"""Largest number of queries of the closed form."""


@functools.cache
def gauss_rule(order: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(order)


def gauss_log_error(order: int) -> float:
    """Log of C, where the rule integrates exp(a x) on [-1, 1] with an error of at most C a^(2 order) times its peak."""
    q = order
    return (2 * q + 1) * _LOG_2 + 4 * math.lgamma(q + 1) - math.log(2 * q + 1) - 3 * math.lgamma(2 * q + 1)


_ORDERS = (3, 4, 5, 6, 8, 10, 12, 16)
# The largest a for which each order is good to 1e-15.
_LARGEST_SLOPES = np.array([math.exp((math.log(1e-15) - gauss_log_error(q)) / (2 * q)) for q in _ORDERS])


def noise_scales(
    epsilon: float, threshold_scale: float | None = None, query_scale: float | None = None
) -> tuple[float, float]:
    """Return the scales of threshold noise and query noise; the defaults are ``2/epsilon`` and ``4/epsilon``.

    >>> noise_scales(0.5)
    (4.0, 8.0)
    """
    check_positive(epsilon=epsilon)
    b1 = 2.0 / epsilon if threshold_scale is None else threshold_scale
    b2 = 4.0 / epsilon if query_scale is None else query_scale
    check_positive(threshold_scale=b1, query_scale=b2)
    return float(b1), float(b2)


def above_threshold_law(
    answers: ArrayLike,
    threshold: float,
    epsilon: float,
    *,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
) -> Discrete:
    """Exact law of the index that AboveThreshold returns; the outcomes are 0, ..., m-1 and, last, -1.

    Parameters
    ----------
    answers : array_like of shape (m,)
        True answers of the queries, in the order in which they are asked.
    threshold : float
        The threshold before noise.
    epsilon : float
        Sets the noise scales ``2/epsilon`` (threshold) and ``4/epsilon`` (queries).
    threshold_scale, query_scale : float, optional
        Other noise scales.

    Examples
    --------
    >>> law = above_threshold_law([0, 1, 3, 5, 8], threshold=4, epsilon=1.3)
    >>> law.outcomes
    (0, 1, 2, 3, 4, -1)
    >>> np.exp(law.log_probabilities).round(12).tolist()
    [0.16930893232, 0.168979745194, 0.22441413528, 0.222914384477, 0.154191930792, 0.060190871937]
    """
    log_probabilities = above_threshold_log_pmf(
        answers, threshold, epsilon, threshold_scale=threshold_scale, query_scale=query_scale
    )
    return Discrete.from_log([*range(log_probabilities.size - 1), NONE_ABOVE], np.minimum(log_probabilities, 0.0))


def above_threshold_log_pmf(
    answers: ArrayLike,
    threshold: float,
    epsilon: float,
    *,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
) -> Array:
    """Log-probabilities of the outcomes 0, ..., m-1 and -1, each accurate relative to itself.

    The integrand of every outcome is log-concave in z (l, F and 1 - F are), and analytic between the breakpoints 0 and
    ``answers - threshold``. Cells split at all of them, and again until no outcome's integrand varies by more than
    exp(18) on a cell that matters to it; Gauss-Legendre nodes inside; stretches farther than 45 query scales from every
    breakpoint are log-linear and integrated in closed form, so the tails are too. Everything is summed in logs: an
    outcome of probability 1e-200 is as accurate as one of probability 1/2 (1e-11 relative up to thousands of queries).

    The cost is the number of queries times the number of nodes, without those that cannot matter.

    Parameters
    ----------
    answers, threshold, epsilon, threshold_scale, query_scale
        As for :func:`above_threshold_law`.

    Examples
    --------
    >>> above_threshold_log_pmf([-200.0, 1000.0], threshold=0.0, epsilon=1.0)[[0, -1]].round(6).tolist()
    [-50.405465, -250.405465]
    """
    y = finite_array("answers", answers, ndim=1, empty=False)
    check_finite(threshold=threshold)
    b1, b2 = noise_scales(epsilon, threshold_scale, query_scale)
    with np.errstate(over="ignore"):
        u = (y - threshold) / b2
    if not (np.abs(u) < _FARTHEST).all():
        raise InvalidArgument(
            f"answers holds {float(y[np.argmax(np.abs(u))])!r}, more than {_FARTHEST:g} noise scales from "
            f"threshold={threshold!r}; floats that far cannot resolve the noise. Clip the answers."
        )
    log_probabilities = _integrate(_Integrand(u, b2 / b1))
    total = float(np.exp(log_probabilities).sum())
    if not abs(total - 1.0) < 1e-9:
        raise LawError(f"AboveThreshold with scales {b1} and {b2} on {y.size} answers adds up to {total!r}, not 1.")
    return log_probabilities


def worst_case_epsilon(
    queries: int,
    epsilon: float,
    *,
    monotone: bool = False,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
) -> float:
    """Exact privacy parameter of AboveThreshold: the supremum of the log-ratio over all neighbouring answers.

    Each answer moves by at most 1. With the scales 2/epsilon and 4/epsilon the parameter is ``epsilon min(m, 4) / 4``, and
    for monotone moves epsilon/4 (m=1), epsilon/2 (m=2, 3), 3 epsilon/4 (m>=4) (docs/theory.md R3).

    Proof in short. Shift z by s in P'(A = j): the density of Z pays s/b1, the j factors before pay (1-s)/b2 each, the
    last pays (1+s)/b2 (monotone: s/b2, or 1/b2 where the answers move down). The cost is linear in s, so the least is at
    an end: min((j+1)/b2, 1/b1 + 2/b2), monotone min(j/b2, 1/b1 + 1/b2); with j = 0 a shift the other way gives
    min(1/b1, 1/b2). The outcome -1 costs min(m/b2, 1/b1). Reached as the answers before j go to plus infinity and the
    j-th to minus infinity.

    Parameters
    ----------
    queries : int
        Number m of queries.
    epsilon : float
        Sets the noise scales, as for :func:`above_threshold_law`.
    monotone : bool
        All answers move in the same direction.
    threshold_scale, query_scale : float, optional
        Other noise scales.

    Examples
    --------
    >>> [worst_case_epsilon(m, 1.0) for m in (1, 2, 3, 4, 9)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    >>> [worst_case_epsilon(m, 1.0, monotone=True) for m in (1, 2, 3, 4, 9)]
    [0.25, 0.5, 0.5, 0.75, 0.75]
    """
    check_count(queries=queries)
    b1, b2 = noise_scales(epsilon, threshold_scale, query_scale)
    first = min(1.0 / b1, 1.0 / b2)
    none = min(queries / b2, 1.0 / b1)
    if queries == 1:
        return max(first, none)
    before = queries - 1
    if monotone:
        return max(1.0 / b2, min(before / b2, 1.0 / b1 + 1.0 / b2), none)
    return max(min(queries / b2, 1.0 / b1 + 2.0 / b2), none)


def above_threshold_closed_form(
    answers: ArrayLike,
    threshold: float,
    epsilon: float,
    *,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
    digits: int = 30,
) -> tuple[Decimal, ...]:
    """Probabilities of the outcomes 0, ..., m-1 and -1 to ``digits`` correct digits, for at most 60 queries.

    Between breakpoints the integrand is ``exp(-+z/b1)`` times a polynomial in ``exp(z/b2)`` and its inverse, integrated term
    by term (docs/theory.md R2). The terms alternate, and cancel ever more as queries are added, so the working precision grows
    until the sum of the terms' absolute values shows that enough digits are correct. The arguments are taken as exact binary
    numbers; only the noise scales are rounded, as they are in a running mechanism.

    Parameters
    ----------
    answers, threshold, epsilon, threshold_scale, query_scale
        As for :func:`above_threshold_law`.
    digits : int
        Number of correct digits.

    Examples
    --------
    >>> [str(p) for p in above_threshold_closed_form([-5.0], 0.0, 1.0, digits=20)]
    ['0.17732236480281026769', '0.82267763519718973231']
    """
    y = finite_array("answers", answers, ndim=1, empty=False)
    check_finite(threshold=threshold)
    check_count(digits=digits)
    scales = noise_scales(epsilon, threshold_scale, query_scale)
    if y.size > _MOST_CLOSED:
        raise InvalidArgument(
            f"answers has {y.size} entries; the closed form takes at most {_MOST_CLOSED}. "
            "Use above_threshold_law, which has no limit."
        )
    u = [Fraction(value) - Fraction(float(threshold)) for value in y.tolist()]
    rates = (1 / Fraction(scales[0]), 1 / Fraction(scales[1]))
    with decimal.localcontext() as context:
        context.prec = digits + 2 * y.size + 10
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        while True:
            sums, sizes = _closed_form(u, *rates)
            lost = max(
                size.adjusted() - total.adjusted() if total > 0 else context.prec
                for total, size in zip(sums, sizes, strict=True)
            )
            if context.prec >= digits + lost + 5:
                break
            context.prec = max(2 * context.prec, digits + lost + 10)
        context.prec = digits
        return tuple(+total for total in sums)


def _closed_form(u: list[Fraction], rate1: Fraction, rate2: Fraction) -> tuple[list[Decimal], list[Decimal]]:
    """Return the integrals of all outcomes, and for each the sum of the absolute values of its terms."""
    m = len(u)
    sums, sizes = [Decimal(0)] * (m + 1), [Decimal(0)] * (m + 1)
    points: list[Fraction | None] = [None, *sorted({Fraction(0), *u}), None]
    half = Decimal(1) / 2
    for left, right in itertools.pairwise(points):
        rising = right is not None and right <= 0
        # Integrals of exp(rate z) for the powers p = -(m+1), ..., m+1 of exp(z/b2), with the sizes of their two parts.
        integrals = [_exponential(left, right, (rate1 if rising else -rate1) + p * rate2) for p in range(-m - 1, m + 2)]
        # before[k] is the coefficient of power k - (m+1) in l(z) prod_{i<j} F(z - u_i).
        before = [Decimal(0)] * (2 * m + 3)
        before[m + 1] = _decimal(rate1) * half
        for j in range(m + 1):
            if j == m:
                product = before
            else:
                above = left is not None and u[j] <= left
                factor = half * _decimal(rate2 * (u[j] if above else -u[j])).exp()
                moved = _shift(before, factor, -1 if above else 1)
                kept = [a - b for a, b in zip(before, moved, strict=True)]
                product, before = (moved, kept) if above else (kept, moved)
            for coefficient, (value, size) in zip(product, integrals, strict=True):
                if coefficient:
                    sums[j] += coefficient * value
                    sizes[j] += abs(coefficient) * size
    return sums, sizes


def _exponential(left: Fraction | None, right: Fraction | None, rate: Fraction) -> tuple[Decimal, Decimal]:
    """Integral of exp(rate z) from left to right (None: infinite), and the size of its parts; 0 where it diverges.

    A divergent integral is never used: its coefficient is zero.
    """
    if rate == 0:
        length = Decimal(0) if left is None or right is None else _decimal(right - left)
        return length, length
    ends = [Decimal(0) if end is None else (_decimal(rate * end)).exp() / _decimal(rate) for end in (left, right)]
    if (left is None and rate < 0) or (right is None and rate > 0):
        return Decimal(0), Decimal(0)
    return ends[1] - ends[0], abs(ends[0]) + abs(ends[1])


def _shift(coefficients: list[Decimal], factor: Decimal, by: int) -> list[Decimal]:
    """Multiply a polynomial by factor times the variable to the power ``by``."""
    moved = [factor * c for c in coefficients]
    return [*moved[1:], Decimal(0)] if by < 0 else [Decimal(0), *moved[:-1]]


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


# ---------------------------------------------------------------------------------------------------------------------
# Quadrature. The unit of length is the query scale: F(x) = exp(x)/2 for x < 0 and 1 - exp(-x)/2 above.


class _Integrand(NamedTuple):
    """Breakpoints ``u = (answers - threshold) / b2`` in asking order, and ``beta = b2 / b1``; column m is the outcome -1."""

    u: Array
    beta: float

    @property
    def columns(self) -> int:
        """Number of outcomes."""
        return self.u.size + 1

    def parts(self, t: Array, first: int, last: int) -> tuple[Array, Array]:
        """Log of l(t) prod_{i<j} F(t - u_i), and of 1 - F(t - u_j), for rows t and columns first <= j < last.

        log F(x) = min(x, 0) + log(1 - exp(-max(x, 0)) / 2) needs no branch, and 1 - F(x) = F(-x).
        """
        asked = min(last, self.u.size) - first
        before, above = np.empty((t.size, last - first)), np.zeros((t.size, last - first))
        x = np.subtract.outer(t, self.u[first : first + asked])
        positive = np.maximum(x, 0.0)
        negative = np.minimum(x, 0.0, out=x)
        before[:, 0] = math.log(self.beta / 2.0) - self.beta * np.abs(t) + self._before(t, first)
        if last - first > 1:
            columns = slice(0, last - first - 1)
            np.add(_log_one_minus_half_exp(-positive[:, columns]), negative[:, columns], out=before[:, 1:])
            np.cumsum(before, axis=1, out=before)
        np.subtract(_log_one_minus_half_exp(negative), positive, out=above[:, :asked])
        return before, above

    def log(self, t: Array, first: int, last: int) -> Array:
        """Log-integrand, rows t and columns first <= j < last."""
        before, above = self.parts(t, first, last)
        before += above
        return before

    def _before(self, t: Array, first: int) -> Array:
        """Sum of log F(t - u_i) over i < first: zero for u_i far below t, linear far above it, the rest computed."""
        u = self.u[:first]
        low, high = float(t.min()), float(t.max())
        above = u > high
        total: Array = np.count_nonzero(above) * (t - _LOG_2) - u[above].sum()
        near = u[~above & (u > low - _REACH)]
        for columns in _slices(near.size, max(1, _CHUNK // t.size)):
            x = np.subtract.outer(t, near[columns])
            total += (_log_one_minus_half_exp(-np.maximum(x, 0.0)) + np.minimum(x, 0.0)).sum(axis=1)
        return total


def _log_one_minus_half_exp(x: Array) -> Array:
    """log(1 - exp(x)/2) for x <= 0; below -45 that is 0, and clipping keeps the exponential away from subnormals."""
    y = np.maximum(x, -_REACH)
    np.exp(y, out=y)
    y *= -0.5
    y += 1.0
    return np.log(y, out=y)


class _Cells(NamedTuple):
    """Intervals (low, high), and for each the range first <= j < last of the outcomes to which it may matter."""

    low: Array
    high: Array
    first: NDArray[np.intp]
    last: NDArray[np.intp]

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> _Cells:
        return _Cells(self.low[index], self.high[index], self.first[index], self.last[index])

    def batches(self, rows_per_cell: int) -> Iterator[tuple[slice, int, int]]:
        """Slices of neighbouring cells with the union of their ranges, each about ``_CHUNK`` numbers of work."""
        start = 0
        while start < self.low.size:
            most = max(1, _CHUNK // (rows_per_cell * max(1, int(self.last[start] - self.first[start]))))
            first = np.minimum.accumulate(self.first[start : start + most])
            last = np.maximum.accumulate(self.last[start : start + most])
            work = (last - first) * rows_per_cell * np.arange(1, first.size + 1)
            count = max(1, int(np.searchsorted(work, _CHUNK, side="right")))
            yield slice(start, start + count), int(first[count - 1]), int(last[count - 1])
            start += count


def _integrate(f: _Integrand) -> Array:
    edges, flat = _edges(np.unique(np.concatenate([[0.0], f.u])))
    best, plan = _plan(f, edges, flat)
    # Sums relative to ``best`` do not overflow: on a cell of the plan no integrand exceeds it by more than exp(18).
    total = np.zeros(f.columns)
    for order, cells in plan:
        nodes, weights = gauss_rule(order) if order else (np.array([-1.0, 1.0]), np.empty(0))
        for rows, a, b in cells.batches(nodes.size):
            half = (cells.high[rows] - cells.low[rows])[:, None] / 2.0
            t = (cells.low[rows][:, None] + half * (1.0 + nodes)).ravel()
            terms = f.log(t, a, b)
            terms -= best[a:b]
            if order:
                total[a:b] += (half * weights).ravel() @ np.exp(terms, out=terms)
            else:
                total[a:b] += 2.0 * half[:, 0] @ _mean_exponential(terms[::2], terms[1::2])
    # Beyond the outer edges the log-integrands are straight lines of these slopes.
    ends = f.log(edges[[0, -1]], 0, f.columns) - best
    rising = f.beta + np.arange(f.columns)
    falling = np.append(np.full(f.columns - 1, f.beta + 1.0), f.beta)
    total += np.exp(ends[0]) / rising + np.exp(ends[1]) / falling
    return best + np.log(total)


def _mean_exponential(left: Array, right: Array) -> Array:
    """Mean over an interval of exp(straight line) with these logs at its ends."""
    fall = np.maximum(np.abs(left - right), 1e-300)
    mean: Array = np.exp(np.maximum(left, right)) * (-np.expm1(-fall) / fall)
    return mean


def _edges(points: Array) -> tuple[Array, Array]:
    """Edges at all breakpoints and every ``_CELL`` within ``_REACH`` of them; and where the stretches beyond begin."""
    steps = np.linspace(0.0, _REACH, math.ceil(_REACH / _CELL) + 1)
    edges = [points, points[0] - steps, points[-1] + steps]
    flat = []
    gaps = np.diff(points)
    for k in np.flatnonzero(gaps > _CELL):
        left, right = points[k], points[k + 1]
        if gaps[k] > 2.0 * _REACH + _CELL:
            edges += [left + steps, right - steps]
            flat.append(left + _REACH)
        else:
            edges.append(np.linspace(left, right, math.ceil(gaps[k] / _CELL) + 1))
    return np.unique(np.concatenate(edges)), np.array(flat)


def _plan(f: _Integrand, edges: Array, flat: Array) -> tuple[Array, list[tuple[int, _Cells]]]:
    """A value that each integrand takes, near its peak; and the cells that matter, by order of their rule (0: flat).

    Groups of neighbouring cells are examined before single cells: an outcome for which a group is negligible is not examined
    inside it. Cells on which some integrand varies too much are cut.
    """
    best = np.full(f.columns, -np.inf)
    stride = 4 ** max(0, math.ceil(math.log(edges.size / 32.0, 4)))
    start = np.arange(0, edges.size - 1, stride)
    first, last = np.zeros(start.size, dtype=np.intp), np.full(start.size, f.columns, dtype=np.intp)
    while True:
        stop = np.minimum(start + stride, edges.size - 1)
        roughness, cells = _survey(f, _Cells(edges[start], edges[stop], first, last), best)
        if stride == 1:
            break
        stride //= 4
        children = (start[cells.first < cells.last, None] + stride * np.arange(4)).ravel()
        parent = np.repeat(np.flatnonzero(cells.first < cells.last), 4)
        exists = children < edges.size - 1
        start, parent = children[exists], parent[exists]
        first, last = cells.first[parent], cells.last[parent]

    plan = []
    straight = np.isin(cells.low, flat) & (cells.first < cells.last)
    plan.append((0, cells.take(straight)))
    roughness, cells = roughness[~straight], cells.take(~straight)
    while cells.low.size:
        rule = np.searchsorted(_LARGEST_SLOPES, roughness)
        rule[cells.first >= cells.last] = -1
        plan += [(order, cells.take(rule == k)) for k, order in enumerate(_ORDERS)]
        rough = rule == len(_ORDERS)
        roughness, cells = _survey(f, _cut(cells.take(rough), roughness[rough]), best)
    return best, plan


def _survey(f: _Integrand, cells: _Cells, best: Array) -> tuple[Array, _Cells]:
    """Return the largest roughness of the integrands on each cell, and the cells with the outcomes to which they matter.

    On (low, high) the product before j is at most its value at ``high`` and 1 - F(t - u_j) its value at ``low``, up to
    the factor l. A cell is negligible for an outcome whose bound stays exp(-48) below a value its integrand takes elsewhere:
    the outcome's mass is at least that value over 1 + beta, because no log-integrand falls faster than 1 + beta. ``best`` is
    updated with the values computed. Roughness is the rate a of the exponential exp(a x), x in [-1, 1], that is as hard to
    integrate: half of the total variation of the log-integrand plus half of the width.
    """
    variation = np.zeros(cells.low.size)
    first, last = cells.first.copy(), cells.last.copy()
    for rows, a, b in cells.batches(2):
        low, high = cells.low[rows], cells.high[rows]
        before_low, above_low = f.parts(low, a, b)
        before_high, above_high = f.parts(high, a, b)
        for value in (before_low + above_low, before_high + above_high):
            np.maximum(best[a:b], value.max(axis=0), out=best[a:b])
        # The fall of l from its largest value on the cell to each end.
        nearest = np.clip(0.0, low, high)
        lost_low, lost_high = f.beta * np.abs(low - nearest)[:, None], f.beta * np.abs(high - nearest)[:, None]
        matters = before_high + above_low + lost_high > best[a:b] - _NEGLIGIBLE
        change = (before_high + lost_high) - (before_low + lost_low) + (above_low - above_high)
        variation[rows] = np.where(matters, change, 0.0).max(axis=1) + f.beta * (high - low)
        found = matters.any(axis=1)
        first[rows] = np.where(found, a + matters.argmax(axis=1), a)
        last[rows] = np.where(found, b - matters[:, ::-1].argmax(axis=1), a)
    return (variation + cells.high - cells.low) / 2.0, _Cells(cells.low, cells.high, first, last)


def _cut(cells: _Cells, roughness: Array) -> _Cells:
    """Cut each cell into equal parts, as many as its roughness asks for."""
    parts = np.clip(np.ceil(roughness / _LARGEST_SLOPES[-1]), 2, 64).astype(np.intp)
    owner = np.repeat(np.arange(parts.size), parts)
    k = np.arange(owner.size) - np.repeat(np.cumsum(parts) - parts, parts)
    width = (cells.high - cells.low) / parts
    low = cells.low[owner] + k * width[owner]
    high = np.where(k + 1 == parts[owner], cells.high[owner], cells.low[owner] + (k + 1) * width[owner])
    return _Cells(low, high, cells.first[owner], cells.last[owner])


def _slices(size: int, step: int) -> Iterator[slice]:
    return (slice(start, start + step) for start in range(0, size, step))
