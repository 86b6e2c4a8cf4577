r"""Find exactly the reference set of at least a given size that is closest to one distribution, or to several at once.

Only the counts of the set matter: m_s of the N_s records with sensitive value s, and for the set to contain a class,
at least its c_s.

* One class, D a sum of convex terms (all but the maximum and the earth mover's distance): for each size m the counts
  that minimise ``sum_s term(p_s, m_s / m)`` are reached by moving records from one value to another while the sum falls. A
  separable convex sum has no local optima under such moves. Sizes are tried upwards, and the search ends when a lower
  bound that grows with m (the real-valued problem, whose feasible set shrinks) exceeds the best sum found.
* Distances of the form ``sum_k w_k |a_k (p - q)|`` (variational, l1, maximum, earth mover's), one class or all: m D is
  linear in the counts, so the smallest ratio max_c (m D_c) / m is found by Dinkelbach's iteration, of which each step is
  one mixed-integer programme over all sizes at once.
* Other sums for several classes: one mixed-integer programme per size. A convex term is the maximum of its chords between
  neighbouring integers, which is exact at the integers.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.anonymity.distance.distances import (
    AnyArray,
    Comparison,
    Distance,
    Divergence,
    KullbackLeibler,
    Norm,
    Term,
    variational,
)
from dpaudit.anonymity.distance.emd import EarthMovers, Equal
from dpaudit.errors import DPAuditError, InvalidArgument

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_CHORDS_AT_MOST = 200_000
"""Largest number of classes times records of a programme with chords."""
_VALUES_AT_MOST = 2000
"""Largest number of sensitive values of a programme for a linear distance."""


def best_reference(
    held: Counts, counts: Counts, n: int, metric: Distance, classes: Comparison, *, superset: bool = False
) -> Counts:
    """Return the counts of the reference set that is nearest to a class.

    Parameters
    ----------
    held, counts : array of int
        Counts of the sensitive values in the class, and in the table.
    n : int
        Smallest size of the set.
    metric : Distance
        The distance to minimise.
    classes : Comparison
        The values that the counts belong to.
    superset : bool
        The set must contain the class.
    """
    low = held if superset else np.zeros_like(held)
    term = separable_term(metric)
    if term is not None:
        return _scan(term, held / held.sum(), low, counts, max(n, int(low.sum())))
    return _dinkelbach(held[None, :], _linear_form(metric, classes), low, counts, n)


def best_common_reference(held: Counts, counts: Counts, n: int, metric: Distance, classes: Comparison) -> Counts:
    """Return the counts of the set of at least ``n`` records whose largest distance from the rows of ``held`` is smallest.

    The parameters are those of :func:`best_reference`.
    """
    if _is_linear(metric):
        return _dinkelbach(held, _linear_form(metric, classes), np.zeros_like(counts), counts, n)
    return _by_size(held, metric, counts, n)


# One class


def _scan(term: Term, p: Floats, low: Counts, high: Counts, n: int) -> Counts:
    """Return the best counts over all sizes from ``n`` up."""
    best_value, best = math.inf, high.copy()
    for size in range(n, int(high.sum()) + 1):
        if _lower_bound(term, p, high / size) >= best_value - 1e-13:
            break
        counts = _allocate(term, p, low, high, size)
        if counts is None:
            continue
        value = float(term(p, counts / size).sum())
        if value < best_value - 1e-15:
            best_value, best = value, counts
    return best


def _lower_bound(term: Term, p: Floats, cap: Floats) -> float:
    """Bound the distance of p from any distribution below ``cap``; it grows as the cap shrinks.

    Where cap < p the best is cap itself (the marginal cost is smallest there); the remaining mass goes to the other values.
    Merging them cannot increase a homogeneous divergence. Powers of |p - q| are not homogeneous; for them an equal split is
    the cheapest.
    """
    short = cap < p
    if not short.any():
        return 0.0
    first = float(term(p[short], cap[short]).sum())
    rest = np.array([p[~short].sum()])
    left = np.array([max(1.0 - cap[short].sum(), 0.0)])
    if isinstance(term, _Power):
        others = max(int((~short).sum()), 1)
        return first + others * float(term(rest / others, left / others)[0])
    return first + float(term(rest, left)[0])


def _allocate(term: Term, p: Floats, low: Counts, high: Counts, size: int) -> Counts | None:
    """Return the counts of that size, within the bounds, with the smallest sum of terms; None if it is infinite."""
    with np.errstate(all="ignore"):
        low = np.where(np.isinf(term(p, np.zeros_like(p))), np.maximum(low, 1), low)  # a count of 0 has infinite cost
        high = np.where(np.isinf(term(p, np.full_like(p, 1.0 / size))), np.minimum(high, low), high)
    if low.sum() > size or high.sum() < size or (low > high).any():
        return None
    counts = np.clip(np.floor(p * size).astype(np.int64), low, high)
    short = size - int(counts.sum())
    for index in np.argsort(counts - p * size) if short > 0 else np.argsort(p * size - counts):
        slack = int(high[index] - counts[index] if short > 0 else low[index] - counts[index])
        moved = min(short, slack) if short > 0 else max(short, slack)
        counts[index] += moved
        short -= moved
        if not short:
            break
    step = 1 << max(int(counts.max()).bit_length() - 1, 0)
    while step:
        here = term(p, counts / size)
        with np.errstate(invalid="ignore"):
            more = np.where(counts + step <= high, term(p, np.minimum(counts + step, high) / size) - here, math.inf)
            less = np.where(counts - step >= low, term(p, np.maximum(counts - step, low) / size) - here, math.inf)
        gain, loss = int(np.argmin(more)), int(np.argmin(less))
        if more[gain] + less[loss] < -1e-15:
            counts[gain] += step
            counts[loss] -= step
        else:
            step >>= 1
    return counts


# All classes at once


@dataclass(frozen=True, slots=True)
class _Linear:
    """D(p, q) = sum_k weights_k |rows_k (p - q)|, or the maximum of them."""

    rows: Floats
    weights: Floats
    largest: bool = False

    def values(self, p: Floats, q: Floats) -> Floats:
        parts = np.abs((p - q) @ self.rows.T) * self.weights
        return np.asarray(parts.max(axis=1) if self.largest else parts.sum(axis=1))


def _dinkelbach(classes: Counts, form: _Linear, low: Counts, high: Counts, n: int) -> Counts:
    """Return the counts of at least ``n`` records with the smallest worst distance of the classes.

    ``best`` always attains ``epsilon``. A step minimises max_c m D_c - epsilon m over all counts. If the minimum is below
    zero the minimiser has a smaller ratio, otherwise no counts have. Few classes ever are the worst, so a step uses only some
    of them: that can only lower the minimum, and a class that is worse for the minimiser is added.
    """
    p = classes / classes.sum(axis=1, keepdims=True)
    best = high
    ratios = form.values(p, best / best.sum())
    active = [int(ratios.argmax())]
    epsilon = float(ratios.max())
    while epsilon > 0:
        counts = _milp_ratio(p[active], form, low, high, n, epsilon)
        ratios = form.values(p, counts / counts.sum())
        if ratios[active].max() >= epsilon - 1e-12:
            return best
        worst = int(ratios.argmax())
        if worst not in active:
            active.append(worst)
        if ratios[worst] < epsilon - 1e-12:
            best, epsilon = counts, float(ratios[worst])
    return best


def _milp_ratio(p: Floats, form: _Linear, low: Counts, high: Counts, n: int, epsilon: float) -> Counts:
    from scipy import sparse

    values, cells = len(high), len(p) * len(form.weights)
    # Variables: the counts, the absolute values by class and part, and the worst class's m D.
    gaps = np.concatenate([(form.rows @ row)[:, None] - form.rows for row in p])  # times the counts: m a_k (p - q)
    identity = sparse.identity(cells)
    parts = identity if form.largest else sparse.kron(sparse.identity(len(p)), form.weights[None, :])
    blocks: list[list[Any]] = [
        [gaps, -identity, None],
        [-gaps, -identity, None],
        [None, parts, -np.ones((parts.shape[0], 1))],
        [np.ones((1, values)), None, None],
    ]
    matrix = sparse.csr_array(sparse.bmat(blocks))
    upper = np.zeros(matrix.shape[0])
    lower = np.full(matrix.shape[0], -np.inf)
    lower[-1], upper[-1] = n, np.inf
    objective = np.r_[np.full(values, -epsilon), np.zeros(cells), 1.0]
    bounds = (np.r_[low, np.zeros(cells + 1)], np.r_[high, np.full(cells + 1, np.inf)])
    solution = _solve(objective, matrix, lower, upper, bounds, values)
    return np.rint(solution[:values]).astype(np.int64)


def _by_size(classes: Counts, metric: Distance, counts: Counts, n: int) -> Counts:
    """Return the best common counts, one programme for each size, until the lower bound passes the best found."""
    term = separable_term(metric)
    if term is None:
        raise InvalidArgument(f"distance={metric.name!r}: closeness is not known for this distance.")
    if len(classes) * int(counts.sum()) > _CHORDS_AT_MOST:
        raise InvalidArgument(
            f"distance={metric.name!r}: {len(classes)} different classes and {int(counts.sum())} records are too many "
            f"for an exact common reference set (their product is limited to {_CHORDS_AT_MOST}); 'tv', 'l1', 'max' and "
            "the earth mover's distance scale further."
        )
    p = classes / classes.sum(axis=1, keepdims=True)
    best_value, best = math.inf, counts
    for size in range(n, int(counts.sum()) + 1):
        if max(_lower_bound(term, row, counts / size) for row in p) >= best_value - 1e-13:
            break
        found = _milp_size(p, term, counts, size)
        if found is None:
            continue
        value = max(float(term(row, found / size).sum()) for row in p)
        if value < best_value - 1e-12:
            best_value, best = value, found
    return best


def _milp_size(p: Floats, term: Term, counts: Counts, size: int) -> Counts | None:
    rows, values = p.shape
    lines: list[tuple[int, int, float, float]] = []  # class, value, slope, intercept of each chord
    low, high = np.zeros(values), counts.astype(np.float64)
    costs = {}
    for index, value in itertools.product(range(rows), range(values)):
        levels = np.arange(counts[value] + 1) / size
        with np.errstate(all="ignore"):
            cost = term(np.full_like(levels, p[index, value]), levels)
        finite = np.flatnonzero(np.isfinite(cost))
        low[value], high[value] = max(low[value], finite[0]), min(high[value], finite[-1])
        costs[index, value] = cost
    if (low > high).any() or not low.sum() <= size <= high.sum():
        return None
    for (index, value), cost in costs.items():
        start, end = int(low[value]), int(high[value])
        if start == end:
            lines.append((index, value, 0.0, float(cost[start])))
        for at in range(start, end):
            slope = float(cost[at + 1] - cost[at])
            lines.append((index, value, slope, float(cost[at]) - slope * at))
    # Variables: the counts, the cost by class and value, and the worst class's total.
    width = values + rows * values + 1
    matrix = np.zeros((len(lines) + rows + 1, width))
    lower, upper = np.full(len(matrix), -np.inf), np.zeros(len(matrix))
    for line, (index, value, slope, intercept) in enumerate(lines):
        matrix[line, value], matrix[line, values + index * values + value], upper[line] = slope, -1.0, -intercept
    for index in range(rows):
        matrix[len(lines) + index, values + index * values : values + (index + 1) * values] = 1.0
        matrix[len(lines) + index, -1] = -1.0
    matrix[-1, :values] = 1.0
    lower[-1] = upper[-1] = size
    objective = np.r_[np.zeros(width - 1), 1.0]
    # Terms are non-negative, so their costs are too.
    bounds = (np.r_[low, np.zeros(rows * values + 1)], np.r_[high, np.full(rows * values + 1, np.inf)])
    solution = _solve(objective, matrix, lower, upper, bounds, values)
    return np.rint(solution[:values]).astype(np.int64)


def _solve(
    objective: AnyArray,
    matrix: Any,
    lower: AnyArray,
    upper: AnyArray,
    bounds: tuple[AnyArray, AnyArray],
    whole: int,
) -> AnyArray:
    from scipy.optimize import Bounds, LinearConstraint, milp

    outcome = milp(
        objective,
        integrality=np.r_[np.ones(whole), np.zeros(len(objective) - whole)],
        bounds=Bounds(*bounds),
        constraints=LinearConstraint(matrix, lower, upper),
        options={"mip_rel_gap": 0.0},
    )
    if outcome.x is None:
        raise DPAuditError(f"The mixed-integer programme ended without a solution: {outcome.message}")
    return np.asarray(outcome.x)


# Properties of distances that the algorithms use


@dataclass(frozen=True, slots=True)
class _Power:
    order: float

    def __call__(self, p: AnyArray, q: AnyArray) -> AnyArray:
        return np.asarray(np.abs(p - q) ** self.order)


def separable_term(metric: Distance) -> Term | None:
    """Return the convex term whose sum over the values is the distance, or increases with it; None if there is none."""
    if isinstance(metric, Divergence | KullbackLeibler):
        return metric.term
    if isinstance(metric, EarthMovers) and isinstance(metric.ground, Equal):
        return variational.term
    return _Power(metric.order) if isinstance(metric, Norm) and metric.order < math.inf else None


def is_homogeneous(metric: Distance) -> bool:
    """Return True if only the total mass of the values that a class lacks matters, so that they can be merged."""
    return separable_term(metric) is not None and not isinstance(metric, Norm)


def _is_linear(metric: Distance) -> bool:
    return isinstance(metric, EarthMovers) or metric.name in ("tv", "l1", "max")


def _linear_form(metric: Distance, classes: Comparison) -> _Linear:
    values = len(classes.domain)
    if not _is_linear(metric):
        raise InvalidArgument(f"distance={metric.name!r}: the best reference set is not known for this distance.")
    if values > _VALUES_AT_MOST:
        raise InvalidArgument(
            f"distance={metric.name!r}: {values} sensitive values are too many for an exact reference set "
            f"(at most {_VALUES_AT_MOST}); group them first."
        )
    if isinstance(metric, EarthMovers):
        rows, weights = metric.functionals(classes.domain, classes.order)
        matrix = np.array(rows, dtype=np.float64).reshape(len(weights), values)
        return _Linear(matrix, np.array([float(weight) for weight in weights]))
    return _Linear(np.identity(values), np.full(values, 0.5 if metric.name == "tv" else 1.0), metric.name == "max")
