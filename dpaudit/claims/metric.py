"""Metric privacy: the epsilon of a pair is proportional to the distance of its two data sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_choice, check_positive, shorten
from dpaudit.claims.claim import Claim, Profile, Relation, as_relation
from dpaudit.claims.standard import PureDP, randomised_response_profile
from dpaudit.errors import InvalidArgument

EARTH_RADIUS = 6371.0088  # kilometres, mean


def _difference(data: Any, neighbour: Any) -> NDArray[np.float64]:
    return np.asarray(data, dtype=np.float64) - np.asarray(neighbour, dtype=np.float64)


def _great_circle(data: Any, neighbour: Any) -> float:
    (first, east), (second, west) = np.radians(np.asarray([data, neighbour], dtype=np.float64))
    half = np.sin((second - first) / 2.0) ** 2 + np.cos(first) * np.cos(second) * np.sin((west - east) / 2.0) ** 2
    return float(2.0 * EARTH_RADIUS * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))))


def _hamming(data: Any, neighbour: Any) -> float:
    if len(data) != len(neighbour):
        return math.inf
    return float(sum(a != b for a, b in zip(data, neighbour, strict=True)))


NAMED_DISTANCES: dict[str, Callable[[Any, Any], float]] = {
    "euclidean": lambda data, neighbour: float(np.sqrt((_difference(data, neighbour) ** 2).sum())),
    "manhattan": lambda data, neighbour: float(np.abs(_difference(data, neighbour)).sum()),
    "maximum": lambda data, neighbour: float(np.abs(_difference(data, neighbour)).max(initial=0.0)),
    "hamming": _hamming,
    "great-circle": _great_circle,  # kilometres between two (latitude, longitude) in degrees
}
"""The distances that can be named. Numbers and arrays of them; ``hamming`` takes sequences, infinite if their lengths differ."""


@dataclass(frozen=True, slots=True, init=False)
class MetricDP(Profile):
    """Metric privacy: ``P(S) <= exp(epsilon d(D, D')) Q(S)`` for every event and all pairs D, D', at any distance d.

    Geo-indistinguishability is this with the distance of two places. Every pair is tested against its own epsilon, so the
    neighbours of the audit should be pairs at many distances.

    Parameters
    ----------
    epsilon : float
        Per unit of distance. Lower bounds are per unit of distance too.
    distance : str or callable
        "euclidean", "manhattan", "maximum", "hamming", "great-circle" (kilometres between two pairs of latitude and longitude),
        or a function of the two data sets; infinite where nothing is claimed.
    relation : Relation, optional
        If the claim is for some pairs only.

    Examples
    --------
    >>> claim = MetricDP(0.5, "euclidean")
    >>> claim
    MetricDP(epsilon=0.5, distance='euclidean')
    >>> claim.between((0, 0), (3, 4)), claim.on((0, 0), (3, 4))
    (5.0, PureDP(epsilon=2.5))
    """

    epsilon: float
    distance: str  # its name: one of ``NAMED_DISTANCES``, or "module:function"
    relation: Relation | None = None
    function: Callable[[Any, Any], float] | None = field(default=None, compare=False, repr=False)

    def __init__(
        self, epsilon: float, distance: str | Callable[[Any, Any], float], relation: Relation | None = None
    ) -> None:
        check_positive(epsilon=epsilon)
        if not callable(distance) and ":" not in str(distance):
            check_choice(NAMED_DISTANCES, distance=distance)
        named = f"{distance.__module__}:{distance.__qualname__}" if hasattr(distance, "__qualname__") else str(distance)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "distance", named if callable(distance) else distance)
        object.__setattr__(self, "relation", as_relation(relation))
        object.__setattr__(self, "function", distance if callable(distance) else NAMED_DISTANCES.get(distance))

    def at(self, parameter: float) -> Self:
        """Return the claim with the same distance and another epsilon."""
        made = type(self)(parameter, self.distance, self.relation)
        object.__setattr__(made, "function", self.function)
        return made

    def between(self, data: Any, neighbour: Any) -> float:
        """Return the distance of two data sets."""
        if self.function is None:
            raise InvalidArgument(
                f"distance={self.distance!r} names a function, but only its name is known, as after reading a "
                "result from a file; make the claim again with the function itself."
            )
        try:
            found = float(self.function(data, neighbour))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(
                f"distance={self.distance!r} failed ({error}) on data={shorten(data)}, neighbour={shorten(neighbour)}."
            ) from error
        if not found >= 0.0:
            raise InvalidArgument(
                f"distance={self.distance!r} is {found!r} for data={shorten(data)}, neighbour={shorten(neighbour)}; it must be "
                "zero or positive."
            )
        return found

    def on(self, data: Any, neighbour: Any) -> Claim:
        """Return what is claimed for one pair."""
        return PureDP(self.epsilon * self.between(data, neighbour), self.relation)

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return randomised_response_profile(self.epsilon, epsilon)

    def __repr__(self) -> str:
        shown = repr(self.distance) if self.distance in NAMED_DISTANCES else self.distance.rpartition(":")[2]
        relation = "" if self.relation is None else f", relation={self.relation.value!r}"
        return f"MetricDP(epsilon={self.epsilon!r}, distance={shown}{relation})"


def distance_between(claim: Claim, data: Any, neighbour: Any) -> float:
    """Return by how much the epsilons of a claim are multiplied on one pair: 1 for every claim but :class:`MetricDP`.

    Parameters
    ----------
    claim : Claim
        The claim.
    data, neighbour : object
        The pair.

    Examples
    --------
    >>> distance_between(MetricDP(1.0, "manhattan"), [1, 2], [3, 1]), distance_between(PureDP(1.0), 0, 5)
    (3.0, 1.0)
    """
    return claim.between(data, neighbour) if isinstance(claim, MetricDP) else 1.0
