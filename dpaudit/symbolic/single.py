"""Epsilon and delta between the laws of one number of an output (delta also of several), with ends rounded outwards.

If the computed log-densities of two laws are within ``r`` and ``s`` of the true ones, the log-ratio is within ``r + s`` at every
output, so epsilon is, and ``exp(-r) delta(e + r + s) <= true delta <= exp(r) delta(e - r - s)``. The laws state ``r`` and ``s``
(``OutputCoordinate.error``). On top comes what ``dpaudit.exact`` does with log-densities that are given: ``DIVERGENCE_ERROR``.

Both are exact sums for points, and closed forms for Laplace and normal laws of one scale; for densities whose logarithms
are straight between kinks epsilon is a maximum over kinks and tails. Two things are searched or adaptive, so the allowance for
them is stated and tested, but not proved: the largest ratio of two smooth densities that are none of these, and integrals for
delta.

A number that was rounded, clipped or otherwise made of a draw has no larger epsilon or delta than the draw itself
(post-processing). That is an upper end too, and often a sharper one: the cells of a sum of a million, rounded to cents, have
ends with an error of 1e-8 of their width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpaudit.errors import CannotFollow
from dpaudit.exact import Product
from dpaudit.exact.divergences import divergence
from dpaudit.exact.form import Continuous, canonical
from dpaudit.symbolic.laws.outputs import Located, OutputCoordinate

Interval = tuple[float, float]

DIVERGENCE_ERROR = 1e-11
"""Relative error allowed for an epsilon or delta that ``dpaudit.exact`` computes from log-densities."""


def epsilon(first: OutputCoordinate, second: OutputCoordinate) -> Interval:
    """Lower and upper end of epsilon, one way; LawError if the ratio cannot be bounded."""
    closed = _closed(first.located, second.located)
    if closed is not None:
        return closed * (1.0 - DIVERGENCE_ERROR), closed * (1.0 + DIVERGENCE_ERROR)
    first, second = _moved(first, second)
    if first.value is not None and second.value is not None:
        worst = 0.0 if same_value(first.value, second.value) else math.inf
        return worst, worst
    if first.law == second.law or (first.key is not None and first.key == second.key):
        return 0.0, 0.0
    _check_atoms(first, second)
    value = divergence.epsilon(first.law, second.law, order="forward")
    if math.isinf(value):
        return value, value
    slack = first.error + second.error + DIVERGENCE_ERROR * value
    return max(0.0, value - slack), min(value + slack, _before(first, second, epsilon))


def _closed(one: Located | None, other: Located | None) -> float | None:
    """Epsilon of a law and the same one moved, if it is proportional to the distance: of Laplace laws, and on a grid."""
    if one is None or other is None or one.source.name != other.source.name or one.factor != other.factor:
        return None
    distance = abs((one.shift - other.shift) / one.factor)
    if one.source.decay is None or (one.source.integer and distance.denominator > 1):
        return None
    return one.source.decay * float(distance)


def _moved(first: OutputCoordinate, second: OutputCoordinate) -> tuple[OutputCoordinate, OutputCoordinate]:
    """Move two laws of a location by the location of the first, exactly: the rounding of 1e15 + 0.1 would be most of 0.1."""
    one, other = first.located, second.located
    if one is None or other is None or one.shift == 0:
        return first, second
    _check_atoms(first, second)
    near, far = (Located(each.source, each.factor, each.shift - one.shift) for each in (one, other))
    return near.coordinate() or first, far.coordinate() or second


def _before(
    first: OutputCoordinate,
    second: OutputCoordinate,
    compare: Callable[[OutputCoordinate, OutputCoordinate], Interval],
) -> float:
    """Return the upper end for the draws of which both numbers are the same function; infinite if they are not."""
    if first.origin is None or second.origin is None or first.function != second.function:
        return math.inf
    return compare(first.origin, second.origin)[1]


def delta_curve(first: Sequence[OutputCoordinate], second: Sequence[OutputCoordinate]) -> Callable[[float], Interval]:
    """Return the ends of delta, one way, as a function of any real epsilon; LawError for several densities."""
    pairs = []
    for a, b in (_moved(*pair) for pair in zip(first, second, strict=True)):
        if a.value is not None and b.value is not None:
            if not same_value(a.value, b.value):
                return lambda _: (1.0, 1.0)
        else:
            _check_atoms(a, b)
            pairs.append((a, b))
    sides = [[pair[side].law for pair in pairs] for side in (0, 1)]
    P, Q = (Product(laws) if len(laws) > 1 else laws[0] for laws in sides) if pairs else (None, None)
    if not pairs or P == Q or all(a.key is not None and a.key == b.key for a, b in pairs):
        return lambda level: (_least(level), _least(level))
    curve = divergence._profile(P, Q)
    error, other = (math.fsum(pair[side].error for pair in pairs) for side in (0, 1))

    def ends(level: float) -> Interval:
        low = math.exp(-error) * curve(level + error + other) * (1.0 - DIVERGENCE_ERROR)
        high = math.exp(error) * curve(level - error - other) * (1.0 + DIVERGENCE_ERROR)
        if len(pairs) == 1:
            high = min(high, _before(*pairs[0], lambda a, b: delta_curve((a,), (b,))(level)))
        least = _least(level)
        return min(1.0, max(least, low)), min(1.0, max(least, high))

    return ends


def _least(level: float) -> float:
    """Delta of two equal laws, and the least of any two: above zero for negative levels."""
    return max(0.0, -math.expm1(min(level, 0.0)))


def same_value(first: float, second: float) -> bool:
    """Return True for one outcome; two NaN are."""
    return canonical(first) == canonical(second) or (first != first and second != second)


def _check_atoms(first: OutputCoordinate, second: OutputCoordinate) -> None:
    """Refuse atoms that differ by rounding only: whether they are one outcome decides between zero and infinity."""
    _check_jumps(first.form().continuous, second.form().continuous)
    a, b = (
        np.array([x for x in law.form().atoms if isinstance(x, float | int)], dtype=float) for law in (first, second)
    )
    if a.size and b.size and a.size * b.size < 1 << 20:
        gap = np.abs(a[:, None] - b)
        close = (gap > 0.0) & (gap <= 1e-11 * np.maximum(np.abs(a[:, None]), np.abs(b)))
        if close.any():
            raise CannotFollow(
                "Two outcomes differ by rounding only, so the law over the reals is not decided by floats"
            )


def _check_jumps(P: Continuous | None, Q: Continuous | None) -> None:
    """Refuse densities that jump at places which differ by rounding only: between them the ratio would be infinite."""
    if P is None or Q is None:
        return
    jumps = []
    for part in (P, Q):
        x = np.array(part.kinks, dtype=float)
        with np.errstate(invalid="ignore"):
            jump = np.abs(part.log_density(x, 1) - part.log_density(x, -1)) if x.size else x
        jumps.append(x[~(jump < 1e-6)] if x.size else x)  # NaN: zero on both sides
    a, b = jumps
    if a.size and b.size and a.size * b.size < 1 << 20:
        gap = np.abs(a[:, None] - b)
        if ((gap > 0.0) & (gap <= 1e-11 * np.maximum(np.abs(a[:, None]), np.abs(b)))).any():
            raise CannotFollow("Two densities end at places that differ by rounding only")
