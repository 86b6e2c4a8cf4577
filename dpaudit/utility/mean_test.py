"""An anytime-valid test of "the mean score is at most the limit", and bounds on the mean, for non-negative scores.

**Test.** For scores X_1, X_2, ... >= 0 that are independent with mean at most m, and stakes c in (0, 1),

    K_t = average over c of prod_{s <= t} (1 - c + c X_s/m)

is a non-negative supermartingale that starts at 1: every factor is at least 1 - c > 0 and has mean at most 1. By Ville's
inequality P(some t has K_t >= 1/alpha) <= alpha. No upper bound on the scores is needed. For m = 0 any positive score refutes.

**Bounds.** The same wealth against every m gives a lower confidence bound on the mean; for scores of at most L the scores L - X
give an upper one (:mod:`dpaudit.accuracy.truths.sequential`). Where no L is known, scores are cut at ``LARGEST_SCORE``
times the limit, and the probability of a larger one is bounded too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dpaudit.accuracy.conditions import Real
from dpaudit.accuracy.truths.sequential import STAKES, MeanConfidence, log_wealth

LARGEST_SCORE = 50.0
"""Scores beyond this multiple of the limit are cut for an upper bound if no largest score is known."""


@dataclass(slots=True)
class MeanTest:
    """The evidence that the mean of the scores exceeds ``limit``; feed it with :meth:`add`.

    >>> test = MeanTest(limit=0.1, alpha=1e-6)
    >>> test.add(np.ones(20))
    >>> test.refuted
    True
    """

    limit: float
    alpha: float
    scores: list[Real] = field(default_factory=list)
    _log_wealth: Real = field(default_factory=lambda: np.zeros(STAKES.size))
    count: int = 0
    highest: float = -math.inf

    def add(self, scores: Real) -> None:
        """Add scores of new, independent releases."""
        self.scores.append(scores)
        self.count += scores.size
        if self.limit == 0.0:
            self.highest = math.inf if (scores > 0.0).any() else self.highest
            return
        with np.errstate(over="ignore"):
            gain = scores / self.limit - 1.0
            # The maximum over all t is allowed: the wealth is read after every single score.
            path = self._log_wealth[:, None] + np.cumsum(np.log1p(np.multiply.outer(STAKES, gain)), axis=1)
        self._log_wealth = path[:, -1]
        total = np.logaddexp.reduce(path, axis=0) - math.log(STAKES.size)
        self.highest = max(self.highest, float(np.nanmax(total)))

    @property
    def refuted(self) -> bool:
        """True if the wealth has reached 1/alpha."""
        return self.highest >= -math.log(self.alpha)

    @property
    def mean(self) -> float:
        """Average score."""
        return float(np.concatenate(self.scores).mean()) if self.count else math.nan

    def lower(self, alpha: float) -> float:
        """Lower confidence bound on the mean, at level 1 - alpha."""
        x = np.concatenate(self.scores)
        if np.isinf(x).any():
            return math.inf
        level, low, high = -math.log(alpha), 0.0, float(x.mean())
        if high <= 0.0:
            return 0.0
        for _ in range(40):  # wealth falls in m, and is at most 1 at the sample mean
            middle = 0.5 * (low + high)
            low, high = (middle, high) if log_wealth(x, middle) >= level else (low, middle)
        return low

    def upper(self, alpha: float, largest: float) -> float:
        """Upper confidence bound on the mean of the scores cut at ``largest``, at level 1 - alpha."""
        x = np.minimum(np.concatenate(self.scores), largest)
        confidence = MeanConfidence(
            alpha=min(2.0 * alpha, 0.999), low=0.0, high=largest
        )  # it splits alpha over both ends
        confidence.update(x)
        return confidence.upper
