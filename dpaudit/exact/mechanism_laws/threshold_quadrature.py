"""Log-probabilities of the outcomes of AboveThreshold by quadrature, each accurate relative to itself.

The unit of length is the query scale, so F(x) = exp(x)/2 for x < 0 and 1 - exp(-x)/2 above. How the range is cut into cells,
and why the result is accurate, is in :func:`dpaudit.exact.mechanism_laws.above_threshold.above_threshold_log_pmf`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.exact.form import Array

_LOG_2 = math.log(2.0)
_REACH = 45.0
"""Distance from a breakpoint, in query scales, beyond which F is 0 or 1 up to 1.5e-20 and the log-integrand is linear."""
_CELL = 4.0
"""Largest width of a cell near a breakpoint, in query scales."""
_NEGLIGIBLE = 48.0
"""A cell whose log-integrand stays this far below the largest value of an outcome is left out for that outcome."""
_CHUNK = 1 << 15
"""Number of integrand values that are computed at once."""


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


def log_outcomes(breakpoints: Array, scale_ratio: float) -> Array:
    """Return the log-probabilities of the outcomes 0, ..., m-1 and, last, of -1.

    Parameters
    ----------
    breakpoints : array of shape (m,)
        ``(answers - threshold) / b2`` in the order in which the queries are asked, with b2 the scale of the query noise.
    scale_ratio : float
        b2 over the scale of the threshold noise.
    """
    return _integrate(_Integrand(breakpoints, scale_ratio))


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
