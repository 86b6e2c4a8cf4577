"""Lower bounds in the claim's own parameter and in epsilon, read from any evidence that can refute a set of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dpaudit.claims import Claim, claim_delta, claimed_epsilon
from dpaudit.engine.evidence.claim_points import LARGEST_EPSILON, points_of
from dpaudit.engine.evidence.e_process import Points

LARGEST_FACTOR = 100.0  # a bound in a parameter other than epsilon is read up to this multiple of the claim


class LowerBound(Protocol):
    """Read a grid upwards from zero, and return the largest value such that it and all values below are refuted."""

    def __call__(self, points_at: Callable[[float], Points], claimed: float, *, largest: float, tied: bool) -> float:
        """``points_at(value)`` are the points that ``value`` promises; with ``tied`` the bound agrees with the verdict."""
        ...


def parameter_lower(claim: Claim, lower_bound: LowerBound) -> float:
    """Return a lower bound of the claim's own parameter; it agrees with the verdict, and both hold together at alpha."""
    largest = LARGEST_EPSILON if claimed_epsilon(claim) is not None else LARGEST_FACTOR * claim.parameter
    return lower_bound(lambda value: points_of(claim.at(value)), claim.parameter, largest=largest, tied=True)


def epsilon_lower(claim: Claim, lower_bound: LowerBound) -> float:
    """Return a lower bound of epsilon at the delta of the claim, for claims whose own parameter is not epsilon."""
    delta = claim_delta(claim)
    return lower_bound(lambda value: Points.of([(value, delta)]), 1.0, largest=LARGEST_EPSILON, tied=False)
