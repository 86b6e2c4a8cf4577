"""Bounded range: the privacy loss of every pair lies in an interval of length epsilon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_positive
from dpaudit.claims.claim import Profile, Relation, as_relation, readable


@dataclass(frozen=True, slots=True)
class BoundedRange(Profile):
    """epsilon-bounded range: ``P(S) Q(S') <= exp(epsilon) Q(S) P(S')`` for all events (Durfee and Rogers 2019).

    The exponential mechanism has it, and it is stronger than epsilon-DP: the loss log(P/Q) lies in [t - epsilon, t] for some t
    between 0 and epsilon, which may differ from pair to pair. For fixed t the profile is largest if the loss takes the two ends
    only (the positive part is convex in exp(-loss), whose mean is fixed): ``(e^epsilon - e^t)(1 - e^(x - t)) / (e^epsilon - 1)``
    at x. Over t that is largest at ``t = (epsilon + x) / 2``, so that

        delta(x) = (e^(epsilon/2) - e^(x/2))^2 / (e^epsilon - 1).

    A black-box audit tests this profile, not the range: a range that is exceeded on rare outputs alone hardly moves it.
    ``dpaudit.verify`` measures the range itself, and docs/claims.md shows how to audit it on pairs of releases.

    >>> BoundedRange(1.0)
    BoundedRange(epsilon=1.0)
    >>> round(BoundedRange(1.0).delta(0.0), 6)      # tanh(1/4), where 1-DP allows tanh(1/2)
    0.244919
    """

    epsilon: float
    relation: Relation | None = None

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        object.__setattr__(self, "relation", as_relation(self.relation))

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        gap = np.maximum(-np.expm1(np.minimum(epsilon - self.epsilon, 0.0) / 2.0), 0.0)
        return np.asarray(gap**2 / -np.expm1(-self.epsilon))

    def __repr__(self) -> str:
        return readable(self)
