r"""f-differential privacy: a trade-off function f, as the corners of a piecewise linear one.

A trade-off function f bounds how well the two outputs may be distinguished: a test that errs with probability alpha on one
side errs with at least f(alpha) on the other. It is convex, falls, and is at most 1 - alpha. The profile is its conjugate,

    delta(epsilon) = sup over alpha of  1 - f(alpha) - exp(epsilon) alpha,

which for a piecewise linear f is a maximum over its corners. Lowering f makes the claim weaker, and so does moving a
corner towards the origin, because f falls.

A function is replaced by a piecewise linear one below it before anything else happens, in two steps.

1. Sample f at x_0 < x_1 < ... As f is convex, between x_i and x_(i+1) it lies above the line through the two samples before, and
   above the line through the two samples after. The point where these lines meet is the corner for that interval; where they are
   nearly parallel it is the chord, lowered. So f lies above the hull of these corners everywhere.
2. Take some slopes. For each the highest line of that slope below all corners is lowered by more than rounding can matter. These
   lines, whose heights are values of the conjugate, lie below f. The corners where consecutive ones meet are the claim.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpaudit._util.validation import check_positive, shorten
from dpaudit.claims.claim import Profile, Relation, as_relation, readable
from dpaudit.claims.profile import UPWARDS
from dpaudit.errors import InvalidArgument

SAMPLES, EVERY = 1401, 50
"""Number of samples of a function, between the probabilities Phi(-7) and Phi(7), evenly spaced as normal quantiles;
every fiftieth slope is used."""
TOLERANCE = 1e-9
"""Largest amount by which rounding may break convexity, monotonicity or the limits of a function; corners are moved by
this amount."""
CONJUGATE_ROUNDING = 1e-15
"""Added to the conjugate; larger than the rounding error of its computation."""

Corner: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, init=False)
class TradeOffDP(Profile):
    """f-differential privacy (Dong, Roth and Su 2022), for both orders of every pair.

    Parameters
    ----------
    vertices : callable or iterable of (alpha, beta)
        The trade-off function f, or the corners of a piecewise linear one. A function is replaced by corners below it (see the
        module), so the claim is a little weaker than f, never stronger. Corners claim their lower convex hull and what is above
        and to the right of it.
    relation : Relation, optional
        Which data sets are neighbours.
    factor : float
        As for :class:`ProfileDP`: the profile is multiplied by it.

    Examples
    --------
    >>> response = TradeOffDP([(0.0, 1.0), (0.25, 0.25), (1.0, 0.0)])       # randomised response, log(3)-DP
    >>> response
    TradeOffDP(vertices=((0.0, 1.0), (0.25, 0.25), (1.0, 0.0)))
    >>> round(response.delta(0.0), 9), round(response.f(0.5), 9)
    (0.5, 0.166666667)
    >>> from scipy.special import ndtr, ndtri
    >>> gaussian = TradeOffDP(lambda alpha: ndtr(ndtri(1.0 - alpha) - 1.0))
    >>> [round(gaussian.delta(epsilon), 4) for epsilon in (0.0, 1.0)]      # 0.3829 and 0.1269 in closed form
    [0.3834, 0.1273]
    """

    vertices: tuple[Corner, ...]
    relation: Relation | None = None
    factor: float = 1.0
    parameter_name = "factor"

    def __init__(
        self,
        vertices: Callable[[float], float] | Iterable[Sequence[float]],
        relation: Relation | None = None,
        factor: float = 1.0,
    ) -> None:
        check_positive(factor=factor)
        object.__setattr__(self, "vertices", _corners_below(vertices) if callable(vertices) else _checked(vertices))
        object.__setattr__(self, "relation", as_relation(relation))
        object.__setattr__(self, "factor", factor)

    def f(self, alpha: float) -> float:
        """Return the smallest error of the second kind that the corners allow at an error ``alpha`` of the first kind."""
        at, errors = np.array(_hull(self.vertices)).T
        return float(np.interp(alpha, at, errors))

    @property
    def levels(self) -> NDArray[np.float64]:
        """The epsilons at which the profile bends: logarithms of the slopes of f and of its inverse, from 0 on."""
        slopes = {0.0}
        for hull in (_hull(self.vertices), _hull([(beta, alpha) for alpha, beta in self.vertices])):
            for (left, upper), (right, lower) in itertools.pairwise(hull):
                if upper - lower > right - left > 0.0:
                    slopes.add(math.log((upper - lower) / (right - left)))
        return np.array(sorted(slopes))

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        ratio = np.exp(np.minimum(epsilon, 700.0))[:, None]
        best = np.full(epsilon.shape, math.inf)
        for corners in (np.array(self.vertices), np.array(self.vertices)[:, ::-1]):
            excess = (1.0 - corners[:, 1]) - ratio * corners[:, 0]
            # Where only the corner (0, 1) is left, nothing was rounded: the claim is pure DP there.
            pure = (excess < -TOLERANCE) | ((corners[:, 0] == 0.0) & (corners[:, 1] == 1.0))
            conjugate = np.maximum(excess.max(axis=1), 0.0) + np.where(pure.all(axis=1), 0.0, CONJUGATE_ROUNDING)
            best = np.minimum(best, conjugate)
        return np.asarray(self.factor * best)

    def __repr__(self) -> str:
        return readable(self)


def _checked(vertices: Iterable[Sequence[float]]) -> tuple[Corner, ...]:
    try:
        corners = sorted({(float(alpha), float(beta)) for alpha, beta in vertices})
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"vertices={shorten(vertices)} must be a trade-off function, or its corners as pairs (alpha, beta)."
        ) from None
    if not corners:
        raise InvalidArgument("vertices is empty; give a trade-off function, or its corners as pairs (alpha, beta).")
    for alpha, beta in corners:
        if not (0.0 <= alpha <= 1.0 and 0.0 <= beta <= 1.0 and alpha + beta <= 1.0 + TOLERANCE):
            raise InvalidArgument(
                f"vertices={shorten(corners)} holds {(alpha, beta)!r}: both must be between 0 and 1, and their sum at most 1, "
                "because a test that ignores the output reaches 1."
            )
    # What the first and the last corner leave open: convexity, f(0) <= 1 and f(1) = 0 keep f above lines through the corners.
    (first, upper), (last, lower) = corners[0], corners[-1]
    if first >= 1.0 or lower >= 1.0 or corners == [(0.0, 0.0)]:
        raise InvalidArgument(f"vertices={shorten(corners)} claim nothing; give a corner with alpha and beta below 1.")
    if first > 0.0:
        corners.insert(0, (0.0, upper / (1.0 - first) * (1.0 - CONJUGATE_ROUNDING)))
    if lower > 0.0:
        corners.append((last / (1.0 - lower) * (1.0 - CONJUGATE_ROUNDING), 0.0))
    return tuple(corners)


def _hull(vertices: Iterable[Corner]) -> list[Corner]:
    """Lower convex hull of the corners, from left to right, up to the alpha from which on nothing is claimed."""
    hull: list[Corner] = []
    for corner in sorted(vertices):
        if hull and corner[0] == hull[-1][0]:
            continue  # the lower one came first
        while len(hull) > 1 and _turns_left(hull[-2], hull[-1], corner):
            hull.pop()
        if not hull or corner[1] < hull[-1][1]:
            hull.append(corner)
    return hull


def _turns_left(first: Corner, second: Corner, third: Corner) -> bool:
    """Return whether the second corner is on or above the line from the first to the third."""
    return (second[1] - first[1]) * (third[0] - first[0]) >= (third[1] - first[1]) * (second[0] - first[0])


def _corners_below(f: Callable[[float], float]) -> tuple[Corner, ...]:
    """Return corners of a piecewise linear function below ``f`` (see the module)."""
    x: NDArray[np.float64] = ndtr(np.linspace(-7.0, 7.0, SAMPLES))
    y = np.array([_sample(f, alpha) for alpha in x.tolist()])
    slopes = np.diff(y) / np.diff(x)
    # A slope between two samples is off by the rounding of the samples over their distance.
    noise = TOLERANCE * 1e-3 / np.diff(x)
    if (slopes > noise).any() or (np.diff(slopes) < -(noise[1:] + noise[:-1])).any():
        raise InvalidArgument(
            "vertices must be a trade-off function: falling and convex in alpha. This one is not, between two of the values of "
            "alpha at which it was read."
        )
    below = [(0.0, min(y[0] - slopes[0] * x[0], 1.0))]
    for i in range(x.size - 1):
        left = (slopes[i - 1], y[i]) if i else (-math.inf, y[i])
        right = (slopes[i + 1], y[i + 1]) if i + 2 < x.size else (0.0, 0.0)
        below += _meeting(x[i], x[i + 1], *left, *right)
    below.append((1.0, 0.0))
    return _checked(_towards_the_origin(alpha, beta) for alpha, beta in _envelope(np.array(below), slopes[::EVERY]))


def _envelope(below: NDArray[np.float64], slopes: NDArray[np.float64]) -> list[Corner]:
    """Return the corners of the highest lines with these slopes below all points."""
    steepest = sorted({float(slope) for slope in slopes if slope < 0.0})
    used = [
        slope for slope, later in zip(steepest, [*steepest, 0.0][1:], strict=False) if later - slope > -1e-6 * slope
    ]
    if not used:
        return [(0.0, 0.0)]
    heights = [float((below[:, 1] - slope * below[:, 0]).min()) for slope in used]
    heights = [1.0 - ((1.0 - height) * (1.0 + TOLERANCE) + CONJUGATE_ROUNDING) for height in heights]
    corners = [(0.0, max(heights[0], 0.0))]
    for k in range(len(used) - 1):
        alpha = (heights[k] - heights[k + 1]) / (used[k + 1] - used[k])
        beta = heights[k] + used[k] * alpha
        if beta <= 0.0:  # this line reaches 0 before it meets the next one
            return [*corners, (max(heights[k], 0.0) / -used[k], 0.0)]
        if alpha > 0.0:
            corners.append((alpha, beta))
    return [*corners, (max(heights[-1], 0.0) / -used[-1], 0.0)]


def _meeting(
    low: float, high: float, slope: float, value: float, later_slope: float, later_value: float
) -> list[Corner]:
    """Return where the line through (low, value) meets the line through (high, later_value), if that is inside [low, high].

    Otherwise the lines are nearly parallel, and the chord is above a convex f by at most the width times the difference of the
    slopes, and the rounding of the samples: return its ends, lowered by as much.
    """
    width = high - low
    if not math.isfinite(slope):
        return [(low, later_value)]
    turn = later_slope - slope
    if turn > 1e-3 * abs(slope):
        step = (value - later_value + later_slope * width) / turn
        if 0.0 <= step <= width:
            return [(low + step, value + slope * step)]
    lowered = width * abs(turn) + TOLERANCE * 1e-3
    return [(low, value - lowered), (high, later_value - lowered)]


def _towards_the_origin(alpha: float, beta: float) -> Corner:
    """Move a corner by more than rounding can matter; six digits of alpha, and of beta or 1 - beta, are kept."""
    lower = -float(UPWARDS.create_decimal(-max(alpha * (1.0 - TOLERANCE), 0.0)))
    power = 1.0 - beta
    if power < 0.5:
        return lower, max(1.0 - float(UPWARDS.create_decimal(power * (1.0 + TOLERANCE) + CONJUGATE_ROUNDING)), 0.0)
    return lower, -float(UPWARDS.create_decimal(-max(beta * (1.0 - TOLERANCE), 0.0)))


def _sample(f: Callable[[float], float], alpha: float) -> float:
    found = float(f(alpha))
    if not -TOLERANCE <= found <= 1.0 - alpha + TOLERANCE:
        raise InvalidArgument(
            f"vertices must be a trade-off function, between 0 and 1 - alpha; this one is {found!r} at alpha={alpha!r}."
        )
    return min(max(found, 0.0), 1.0 - alpha)
