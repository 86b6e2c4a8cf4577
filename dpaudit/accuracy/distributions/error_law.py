"""The exact law of an estimate with finitely many values, and the mean and quantiles of its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit._util.validation import check_non_negative, check_unit
from dpaudit.accuracy.conditions import Real
from dpaudit.errors import LawError

_SLACK = 1e-12
"""Rounding allowance for comparing outputs such as 2/5 with interval ends such as 0.5 - 0.1."""


@dataclass(frozen=True, slots=True)
class ErrorLaw:
    """An estimate with finitely many values, and its target.

    >>> law = ErrorLaw(np.array([0.0, 0.5, 1.0]), np.array([0.25, 0.5, 0.25]), target=0.5)
    >>> law.mean_error(), law.within(0.1), law.error_quantile(0.9)
    (0.25, 0.5, 0.5)
    """

    values: Real
    probabilities: Real
    target: float

    def __post_init__(self) -> None:
        if self.values.shape != self.probabilities.shape or self.values.ndim != 1:
            raise LawError(f"values {self.values.shape} and probabilities {self.probabilities.shape} must match.")
        total = float(self.probabilities.sum())
        if not np.all(self.probabilities >= 0.0) or abs(total - 1.0) > 1e-6:
            raise LawError(f"probabilities must be non-negative and sum to 1; their sum is {total!r}.")

    def mean(self) -> float:
        """Mean of the estimate."""
        return float(self.probabilities @ self.values)

    def variance(self) -> float:
        """Variance of the estimate."""
        return float(self.probabilities @ (self.values - self.mean()) ** 2)

    def mean_error(self) -> float:
        """E|A - d|."""
        return float(self.probabilities @ np.abs(self.values - self.target))

    def root_mean_squared_error(self) -> float:
        """Square root of E(A - d)^2, the error that section 2.2.3 of the report announces."""
        return float(np.sqrt(self.probabilities @ (self.values - self.target) ** 2))

    def probability(self, low: float, high: float) -> float:
        """P(low <= A <= high), ends included; a value within rounding of an end counts as inside."""
        inside = (self.values >= low - _SLACK) & (self.values <= high + _SLACK)
        return float(self.probabilities[inside].sum())

    def within(self, gamma: float, below: float = 0.0) -> float:
        """P(d - gamma - below <= A <= d + gamma)."""
        check_non_negative(gamma=gamma, below=below)
        return self.probability(self.target - gamma - below, self.target + gamma)

    def error_quantile(self, level: float) -> float:
        """Return the smallest e with P(|A - d| <= e) >= level."""
        check_unit(level=level)
        errors = np.abs(self.values - self.target)
        order = np.argsort(errors, kind="stable")
        reached = np.cumsum(self.probabilities[order])
        return float(errors[order][min(int(np.searchsorted(reached, level - _SLACK)), errors.size - 1)])
