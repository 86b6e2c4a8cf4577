"""Claims on the error of a mechanism: with high probability, on average, and in root mean square.

Each claim is a bound on the mean of a non-negative score of one release: the indicator of a large error, the error, or its
square. One test therefore checks all of them (:mod:`dpaudit.utility.mean_test`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpaudit._util.validation import check_non_negative, check_positive, check_unit
from dpaudit.accuracy.conditions import Real
from dpaudit.errors import InvalidArgument


class ErrorClaim(Protocol):
    """A claim on the error: ``score(errors)`` has a mean of at most ``limit`` if it is true."""

    @property
    def limit(self) -> float:
        """Largest mean of the scores that the claim allows."""

    @property
    def largest_score(self) -> float:
        """Largest possible score, infinite if unknown."""

    def score(self, errors: Real) -> Real:
        """Scores of releases with these errors."""

    def in_words(self, mean_score: float) -> str:
        """Describe a mean score in the units of the claim."""


@dataclass(frozen=True, slots=True)
class WithinError:
    """The error is at most ``error``, except with probability ``beta``.

    >>> WithinError(0.5, beta=0.05).score(np.array([0.4, 0.5, 0.6])).tolist()
    [0.0, 0.0, 1.0]
    """

    error: float
    beta: float

    def __post_init__(self) -> None:
        check_non_negative(error=self.error)
        check_unit(beta=self.beta)
        if self.beta == 1.0:
            raise InvalidArgument("beta=1.0 allows every error; it must be below 1.")

    @property
    def limit(self) -> float:
        """``beta``."""
        return self.beta

    @property
    def largest_score(self) -> float:
        """One."""
        return 1.0

    def score(self, errors: Real) -> Real:
        """One for an error that is too large, zero otherwise."""
        return np.asarray(errors > self.error, dtype=np.float64)

    def in_words(self, mean_score: float) -> str:
        """Return the probability of a larger error."""
        return f"error > {self.error:g} with probability {mean_score:.4g}"


@dataclass(frozen=True, slots=True)
class MeanError:
    """The mean error is at most ``error``; ``largest`` is the largest possible one, if it is known.

    >>> MeanError(1.0).limit
    1.0
    """

    error: float
    largest: float = math.inf

    def __post_init__(self) -> None:
        _check_mean(self.error, self.largest)

    @property
    def limit(self) -> float:
        """The claimed mean error."""
        return self.error

    @property
    def largest_score(self) -> float:
        """The largest error."""
        return self.largest

    def score(self, errors: Real) -> Real:
        """Return the errors."""
        return errors

    def in_words(self, mean_score: float) -> str:
        """Return the mean error."""
        return f"mean error {mean_score:.4g}"


@dataclass(frozen=True, slots=True)
class RootMeanSquaredError:
    """The root mean squared error is at most ``error``; ``largest`` is the largest possible error, if it is known.

    >>> RootMeanSquaredError(2.0).limit
    4.0
    """

    error: float
    largest: float = math.inf

    def __post_init__(self) -> None:
        _check_mean(self.error, self.largest)

    @property
    def limit(self) -> float:
        """The square of the claimed error."""
        return self.error**2

    @property
    def largest_score(self) -> float:
        """The square of the largest error."""
        return self.largest**2

    def score(self, errors: Real) -> Real:
        """Return the squared errors."""
        return errors**2

    def in_words(self, mean_score: float) -> str:
        """Return the root of the mean."""
        return f"root mean squared error {math.sqrt(max(mean_score, 0.0)):.4g}"


def _check_mean(error: float, largest: float) -> None:
    check_positive(error=error)
    if not largest > error:
        raise InvalidArgument(f"largest={largest!r} must be above error={error!r}: otherwise the claim says nothing.")


ERROR_CLAIMS: dict[str, Any] = {kind.__name__: kind for kind in (WithinError, MeanError, RootMeanSquaredError)}


def error_claim_to_dict(claim: ErrorClaim) -> dict[str, Any]:
    """Return a claim as its kind and parameters, with infinity as text."""
    fields: Any = getattr(claim, "__dataclass_fields__", {})
    values = {name: getattr(claim, name) for name in fields}
    return {"kind": type(claim).__name__} | {k: v if math.isfinite(v) else str(v) for k, v in values.items()}
