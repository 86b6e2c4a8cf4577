"""Laws of outputs that say which branch was taken, and some numbers on it, such as the value of the query that was above.

Such an output has a density on parts of different dimension. Branches do not overlap, so log-ratios and masses are those
of each branch, weighted with its probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpaudit import exact
from dpaudit.errors import LawError

Branch: TypeAlias = tuple[str, float, tuple[exact.Laplace, ...]]


@dataclass(frozen=True, slots=True)
class Branches:
    """Branches by name, each with its log-probability and the laws of its numbers, which are independent of each other."""

    branches: tuple[Branch, ...]

    def together(self, other: Branches) -> list[tuple[Branch, Branch]]:
        """The branches of both laws, side by side; one that a law never takes has probability 0 there."""
        first, second = ({branch[0]: branch for branch in law.branches} for law in (self, other))
        names = {**first, **second}
        return [
            (first.get(name, (name, -math.inf, known[2])), second.get(name, (name, -math.inf, known[2])))
            for name, known in names.items()
        ]


def epsilon(P: Any, Q: Any) -> float:
    """The exact epsilon of two laws, both orders.

    On a branch with Laplace noise of one scale the log-ratio of the numbers reaches the sum of the distances over the
    scale with either sign, so that it adds to that of the probabilities.
    """
    if not isinstance(P, Branches) or not isinstance(Q, Branches):
        return exact.epsilon(P, Q)
    worst = 0.0
    for (_, log_p, numbers), (_, log_q, others) in P.together(Q):
        if log_p == log_q == -math.inf:
            continue
        if [one.scale for one in numbers] != [one.scale for one in others]:
            raise LawError("Laplace noise of different scales on one branch: its log-ratio has no bound of this kind.")
        moved = sum(abs(one.location - two.location) / one.scale for one, two in zip(numbers, others, strict=True))
        worst = max(worst, abs(log_p - log_q) + moved)
    return worst
