"""Integrals, suprema and sign changes on the line, in logs.

Integrals are adaptive Gauss-Legendre over panels that the caller splits at every kink. All values stay logarithms, and
a panel is refined until it agrees with its two halves relative to the whole integral, so an integral of 1e-200 is as
accurate as one of 1. Ranges are never cut at a fixed width: a tail is followed until the rest is below 1e-20 of the
integral so far (a narrow range invents violations: docs/theory.md R2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import LawError
from dpaudit.exact.form import Array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_NEGLIGIBLE = 46.0
"""A tail ends where a panel holds less than exp(-46) = 1e-20 of the integral."""
_MOST_PANELS = 20_000
"""Largest number of panels of one refinement."""
_MOST_HALVINGS = 200
"""Largest number of rounds of refinement."""
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0

LogFunction = Callable[[Array], Array]


def log_integral(log_f: LogFunction, points: Sequence[float]) -> float:
    """Log of the integral of ``exp(log_f)`` from the first to the last of ``points``, split at all of them.

    The first may be minus infinity and the last infinity; at least one point is finite.

    >>> bool(np.isclose(log_integral(lambda x: -x * x / 2, [-np.inf, 0.0, np.inf]), np.log(2 * np.pi) / 2, rtol=1e-14))
    True
    """
    low, high = panels(log_f, points)
    return log_panel_sum(log_f, low, high)


def resolved(log_f: LogFunction, points: Sequence[float]) -> tuple[float, list[float]]:
    """Return :func:`log_integral`, and the edges of the panels on which one Gauss-Legendre rule was accurate."""
    low, high = panels(log_f, points)
    kept: list[Array] = [low[:1], high[-1:]]
    value = _refined(log_f, low, high, np.zeros(low.size, dtype=np.intp), 1, kept)
    edges = np.unique(np.concatenate(kept))
    return float(value[0]), edges[:: 1 + edges.size // 256].tolist()


def log_panel_sum(log_f: LogFunction, low: Array, high: Array) -> float:
    """Log of the integral over the union of disjoint finite panels."""
    return float(_refined(log_f, low, high, np.zeros(low.size, dtype=np.intp), 1)[0])


def panels(log_f: LogFunction, points: Sequence[float]) -> tuple[Array, Array]:
    """Return panels from the first to the last of ``points``; an infinite one is cut where its tail is negligible."""
    finite = [x for x in points if math.isfinite(x)]
    edges = list(finite)
    if points[0] == -math.inf:
        edges = _tail(log_f, finite[0], _first_width(finite[0], finite[1:]), -1.0)[:0:-1] + edges
    if points[-1] == math.inf:
        edges += _tail(log_f, finite[-1], _first_width(finite[-1], finite[-2::-1]), 1.0)[1:]
    array = np.array(edges)
    return array[:-1], array[1:]


def log_integrals(
    log_f: LogFunction, low: Array, high: Array, kinks: Sequence[float], landmarks: Sequence[float]
) -> Array:
    """Log of the integral over each of the intervals (low, high), elementwise, each accurate relative to itself."""
    left, right = np.broadcast_arrays(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
    shape = left.shape
    left, right = left.ravel(), right.ravel()
    marks = np.array(sorted({*kinks, *landmarks}))
    simple = np.searchsorted(marks, left, side="right") == np.searchsorted(marks, right, side="left")
    simple &= np.isfinite(left) & np.isfinite(right)
    empty = ~(left < right)
    lows, highs, owners = [left[simple & ~empty]], [right[simple & ~empty]], [np.flatnonzero(simple & ~empty)]
    for i in np.flatnonzero(~simple & ~empty):
        inner = marks[(marks > left[i]) & (marks < right[i])].tolist()
        if not inner and not math.isfinite(left[i]) and not math.isfinite(right[i]):
            inner = [0.0]
        starts, stops = panels(log_f, [float(left[i]), *inner, float(right[i])])
        lows.append(starts)
        highs.append(stops)
        owners.append(np.full(starts.size, i, dtype=np.intp))
    values = _refined(log_f, np.concatenate(lows), np.concatenate(highs), np.concatenate(owners), left.size)
    return values.reshape(shape)


def _first_width(start: float, others: Sequence[float]) -> float:
    """Width of the first panel of a tail: the last gap between known points, or a guess that the doubling corrects."""
    return abs(others[0] - start) if others else max(1.0, abs(start)) / 16.0


def _tail(log_f: LogFunction, start: float, width: float, direction: float) -> list[float]:
    """Edges from ``start`` outwards, widths doubling, until a panel holds less than 1e-20 of all and is shrinking."""
    edges, total, previous = [start], -math.inf, math.inf
    reach = width
    while math.isfinite(start + direction * reach):
        edge = start + direction * reach
        ends = sorted((edges[-1], edge))
        value = float(gauss_legendre(log_f, np.array(ends[:1]), np.array(ends[1:]))[0])
        edges.append(edge)
        total = float(np.logaddexp(total, value))
        if (value == -math.inf and previous == -math.inf) or (value < total - _NEGLIGIBLE and value < previous):
            break
        previous = value
        reach = 2.0 * reach + width
    return edges


def gauss_legendre(log_f: LogFunction, low: Array, high: Array) -> Array:
    """Log-integral of each panel by one Gauss-Legendre rule."""
    half = 0.5 * (high - low)
    x = (low + half)[:, None] + half[:, None] * _NODES
    values = log_f(x.ravel()).reshape(x.shape)
    peak = values.max(axis=1)
    if np.isnan(peak).any():
        bad = x.ravel()[np.isnan(values).ravel()][0]
        raise LawError(f"The log-density at {float(bad)!r} is NaN; it must be a number or minus infinity.")
    shift = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(np.exp(values - shift[:, None]) @ _WEIGHTS) + shift + np.log(half))


def _refined(
    log_f: LogFunction,
    low: Array,
    high: Array,
    owner: NDArray[np.intp],
    count: int,
    kept: list[Array] | None = None,
) -> Array:
    """Log-integral of each owner's panels, halving those that do not yet agree with their halves."""
    done = np.full(count, -np.inf)
    if low.size == 0:
        return done
    coarse = gauss_legendre(log_f, low, high)
    for halvings in itertools.count():
        if not low.size:
            break
        middle = low + 0.5 * (high - low)
        left, right = gauss_legendre(log_f, low, middle), gauss_legendre(log_f, middle, high)
        fine = np.logaddexp(left, right)
        total = done.copy()
        np.logaddexp.at(total, owner, fine)
        scale = total[owner]
        known = np.isfinite(scale)
        with np.errstate(invalid="ignore"):
            larger = np.maximum(fine, coarse) - scale
            gap = np.where(fine == coarse, 0.0, -np.expm1(-np.abs(fine - coarse)))
            error = np.where(known, np.exp(np.minimum(larger, 700.0)) * gap, 0.0)
        # The values carry their own rounding, about 1e-16 of their size; below it halving cannot help.
        tolerance = 1e-14 * (10.0 + np.where(known, np.abs(scale), 0.0))
        tiny = (high - low) <= 1e-13 * np.maximum(np.abs(low), np.abs(high))
        good = ((error <= tolerance) & ~_hides(log_f, low, high, fine, scale)) | tiny
        if low.size > _MOST_PANELS + count or halvings == _MOST_HALVINGS:
            good[:] = True
        np.logaddexp.at(done, owner[good], fine[good])
        if kept is not None:
            kept.append(low[good])
        bad = ~good
        low, high = np.concatenate([low[bad], middle[bad]]), np.concatenate([middle[bad], high[bad]])
        coarse = np.concatenate([left[bad], right[bad]])
        owner = np.concatenate([owner[bad], owner[bad]])
    return done


def _hides(log_f: LogFunction, low: Array, high: Array, value: Array, total: Array) -> NDArray[np.bool_]:
    """Return True for panels that may have a narrow peak at an end, before the first node: much higher than the average."""
    ends = np.fmax(log_f(np.nextafter(low, high)), log_f(np.nextafter(high, low)))
    with np.errstate(divide="ignore"):
        bound = ends + np.log(high - low)
    hidden: NDArray[np.bool_] = (bound > value + 5.0) & (bound > total - _NEGLIGIBLE)
    return hidden


def graded(points: Sequence[float]) -> list[float]:
    """Points between which widths change by no more than a factor of four or so, narrow ones near narrow ones."""
    gaps = np.diff(points)
    result = list(points)
    for i, gap in enumerate(gaps):
        for step, start, sign in (
            (gaps[i - 1] if i else gap, points[i], 1.0),
            (gaps[min(i + 1, gaps.size - 1)], points[i + 1], -1.0),
        ):
            reach = 2.0 * step
            while 2.0 * reach < gap:
                result.append(float(start + sign * reach))
                reach *= 3.0
    return sorted(set(result))


def peaks(f: LogFunction, low: Array, high: Array) -> Array:
    """Golden-section search for the place of a maximum of ``f`` in each bracket at once."""
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = f(inner), f(outer)
    for _ in range(38):
        left = at_inner >= at_outer
        low, high = np.where(left, low, inner), np.where(left, outer, high)
        kept, value = np.where(left, inner, outer), np.where(left, at_inner, at_outer)
        new = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        at_new = f(new)
        inner, outer = np.where(left, new, kept), np.where(left, kept, new)
        at_inner, at_outer = np.where(left, at_new, value), np.where(left, value, at_new)
    return np.where(at_inner >= at_outer, inner, outer)


def roots(f: LogFunction, low: Array, high: Array, at_low: Array, at_high: Array) -> Array:
    """A sign change of ``f`` in each bracket at once, from its values at the ends, by the Illinois rule.

    The Illinois rule is a secant method that keeps the bracket, and halves the value at an end that has stayed twice. If a
    value is infinite, the bracket is halved instead. The caller gives the values at kinks as limits from inside.
    """
    x = low
    for _ in range(100):
        with np.errstate(invalid="ignore", over="ignore"):
            secant = high - at_high * ((high - low) / (at_high - at_low))
        x = np.where((secant > low) & (secant < high), secant, low + 0.5 * (high - low))
        value = f(x)
        if not ((np.abs(value) > 1e-14) & (high - low > 1e-15 * np.abs(x))).any():
            break
        above = (value > 0.0) == (at_high > 0.0)
        at_low, at_high = np.where(above, 0.5 * at_low, value), np.where(above, value, 0.5 * at_high)
        low, high = np.where(above, low, x), np.where(above, x, high)
    return x
