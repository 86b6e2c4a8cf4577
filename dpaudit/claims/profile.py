"""A privacy profile given by points, by a function, by a privacy loss distribution, or by a profile of OpenDP."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_positive, shorten
from dpaudit.claims.claim import Profile, Relation, as_relation, readable
from dpaudit.claims.standard import randomised_response_profile
from dpaudit.errors import InvalidArgument

MOST_POINTS = 64
SAMPLED = 17
"""Number of points that are taken from a function."""
SMALLEST_SAMPLED = 1e-9
"""Sampling of a function ends at the epsilon from which on its delta is below this."""
RELATIVE_ROUNDING, ABSOLUTE_ROUNDING = 1e-9, 1e-12
"""Added to the delta of a function; larger than its rounding error."""
UPWARDS = decimal.Context(prec=6, rounding=decimal.ROUND_CEILING)


@dataclass(frozen=True, slots=True, init=False)
class ProfileDP(Profile):
    """A privacy profile: (epsilon, delta)-DP at each of several points at once.

    The claim is the points, and everything that they imply for the profile of any pair in both orders. As a function of
    t = exp(epsilon) a profile H is convex, falls, and has ``H(1/t) = 1 - 1/t + H'(t)/t`` with H' the profile of the
    other order. So between two points it lies below their chord (in t), before the first point below the chord to the
    mirrored point, which is the profile of randomised response with a leak, and after the last one below its delta.
    ``delta(epsilon)`` is the smallest of these; some mechanism attains it. An audit bets against the points themselves,
    never against a value between them.

    Parameters
    ----------
    points : iterable of (epsilon, delta)
        At least one with delta below 1; points with delta 1 say nothing and are dropped.
    relation : Relation, optional
        Which data sets are neighbours.
    factor : float
        All deltas are multiplied by it. It is the parameter of the claim: ``parameter_lower`` of a result is the factor by which
        the curve is exceeded at some point (above 1), or how much of the curve is used (below 1).

    Examples
    --------
    >>> claim = ProfileDP([(0.5, 0.1), (2.0, 1e-3)])
    >>> claim
    ProfileDP(points=((0.5, 0.1), (2.0, 0.001)))
    >>> claim.delta(0.5), claim.delta(3.0), round(claim.delta(1.0), 6)
    (0.1, 0.001, 0.081554)
    >>> from dpaudit import ApproxDP
    >>> ProfileDP([(1.0, 0.05)]).delta(0.2) == ApproxDP(1.0, 0.05).delta(0.2)
    True
    """

    points: tuple[tuple[float, float], ...]
    relation: Relation | None = None
    factor: float = 1.0
    parameter_name = "factor"

    def __init__(
        self, points: Iterable[Sequence[float]], relation: Relation | None = None, factor: float = 1.0
    ) -> None:
        check_positive(factor=factor)
        object.__setattr__(self, "points", _checked(points))
        object.__setattr__(self, "relation", as_relation(relation))
        object.__setattr__(self, "factor", factor)

    @classmethod
    def of(cls, curve: Any, *, epsilons: Iterable[float] | None = None, relation: Relation | None = None) -> ProfileDP:
        """Return the claim that a curve makes at some epsilons; each delta is rounded up to six digits.

        Parameters
        ----------
        curve
            A function ``delta(epsilon)``; a privacy loss distribution of dp-accounting (``get_delta_for_epsilon``, which is
            pessimistic by default); or an object with a method ``delta``, such as a privacy profile of OpenDP or a claim.
        epsilons
            Where to read it. By default 17 values from 0 to where delta is below 1e-9 (at most 64), denser near 0.
        relation
            Which data sets are neighbours.

        Examples
        --------
        >>> from dpaudit import GaussianDP
        >>> ProfileDP.of(GaussianDP(1.0), epsilons=[0, 1, 2])
        ProfileDP(points=((0.0, 0.382925), (1.0, 0.126937), (2.0, 0.0209237)))
        """
        delta = _function(curve)
        chosen = _default_epsilons(delta) if epsilons is None else [float(epsilon) for epsilon in epsilons]
        return cls([(epsilon, _rounded_up(_value(delta, epsilon))) for epsilon in chosen], relation)

    @property
    def levels(self) -> NDArray[np.float64]:
        """The epsilons of the points, in ascending order."""
        return np.array([epsilon for epsilon, _ in self.points])

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        levels, deltas = np.array(self.points).T
        deltas = np.minimum(self.factor * deltas, 1.0)
        at = epsilon[:, None]
        # Each point alone: a leak, and randomised response before the point. Constant after it.
        leak = np.stack([randomised_response_profile(level, epsilon) for level in levels.tolist()], axis=1)
        best = (deltas + (1.0 - deltas) * leak).min(axis=1)
        for first in range(levels.size - 1):
            # The chords from one point to all later ones, as functions of exp(epsilon).
            low, high = levels[first], levels[first + 1 :]
            with np.errstate(over="ignore", invalid="ignore"):
                share = np.expm1(np.minimum(at - low, 700.0)) / np.expm1(np.minimum(high - low, 700.0))
            chord = deltas[first] + (deltas[first + 1 :] - deltas[first]) * share
            inside = (at >= low) & (at <= high)
            best = np.minimum(best, np.where(inside, chord, math.inf).min(axis=1))
        return np.asarray(best)

    def __repr__(self) -> str:
        return readable(self)


def _checked(points: Iterable[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    smallest: dict[float, float] = {}
    try:
        pairs = [(float(epsilon), float(delta)) for epsilon, delta in points]
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"points={shorten(points)} must be pairs (epsilon, delta); ProfileDP.of makes them of a function."
        ) from None
    for epsilon, delta in pairs:
        if not (0.0 <= epsilon < math.inf and 0.0 <= delta <= 1.0):
            raise InvalidArgument(
                f"points={shorten(pairs)} holds {(epsilon, delta)!r}; epsilon must be finite and not negative, delta between 0 "
                "and 1."
            )
        if delta < 1.0:
            smallest[epsilon] = min(delta, smallest.get(epsilon, 1.0))
    if not smallest:
        raise InvalidArgument(f"points={shorten(pairs)} claim nothing: at least one delta must be below 1.")
    if len(smallest) > MOST_POINTS:
        raise InvalidArgument(
            f"points holds {len(smallest)} epsilons, and at most {MOST_POINTS} are allowed; leave some out, which weakens the "
            "claim between them a little."
        )
    return tuple(sorted(smallest.items()))


def _function(curve: Any) -> Callable[[float], float]:
    for name in ("get_delta_for_epsilon", "delta"):
        found = getattr(curve, name, None)
        if callable(found) and not isinstance(curve, type):
            return found  # type: ignore[no-any-return]
    if callable(curve) and not isinstance(curve, type):
        return curve  # type: ignore[no-any-return]
    raise InvalidArgument(
        f"curve={shorten(curve)} must be a function delta(epsilon), or have a method get_delta_for_epsilon or delta. Points "
        "are for ProfileDP(points)."
    )


def _value(delta: Callable[[float], float], epsilon: float) -> float:
    found = float(delta(epsilon))
    if not -ABSOLUTE_ROUNDING <= found <= 1.0 + RELATIVE_ROUNDING:
        raise InvalidArgument(f"curve gives delta={found!r} at epsilon={epsilon!r}; it must be between 0 and 1.")
    return min(max(found, 0.0) * (1.0 + RELATIVE_ROUNDING) + ABSOLUTE_ROUNDING, 1.0)


def _default_epsilons(delta: Callable[[float], float]) -> list[float]:
    top = 1.0 / 64.0
    while top < 64.0 and _value(delta, top) > SMALLEST_SAMPLED:
        top *= 2.0
    return [top * (step / (SAMPLED - 1)) ** 2 for step in range(SAMPLED)]


def _rounded_up(value: float) -> float:
    """Round up to six digits. The nearest float to a decimal above a float is not below that float."""
    return float(UPWARDS.create_decimal(value))
