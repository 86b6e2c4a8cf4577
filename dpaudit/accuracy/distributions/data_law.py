"""Continuous distributions of one record, for which the decile theorems are evaluated (docs/theory.md R11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from dpaudit.accuracy.conditions import Real
from dpaudit.accuracy.distributions.order_statistics import as_fraction
from dpaudit.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class DataLaw:
    """A continuous law given by its distribution function.

    ``inverse`` may be left out: quantiles are then found by bisection between ``low`` and ``high``, which must contain all
    but a negligible part of the law. ``low`` and ``high`` are also the default range [a, b] of the mechanisms.

    >>> triangular = DataLaw("triangular", lambda x: np.clip(x, 0.0, 1.0) ** 2, 0.0, 1.0)
    >>> round(triangular.quantile(0.25), 12)
    0.5
    """

    name: str
    cdf: Callable[[Real], Any]
    low: float
    high: float
    inverse: Callable[[Real], Any] | None = None

    def probability_below(self, x: ArrayLike) -> Real:
        """F(x), checked to be a probability."""
        values = np.asarray(self.cdf(np.asarray(x, dtype=np.float64)), dtype=np.float64)
        if not np.all((values >= 0.0) & (values <= 1.0)):
            raise InvalidArgument(f"cdf of {self.name!r} returned a value outside [0, 1].")
        return values

    def quantile(self, level: float | Fraction) -> float:
        """Return d with F(d) = level."""
        target = float(as_fraction(level))
        if self.inverse is not None:
            return float(self.inverse(np.asarray(target)))
        below, above = (float(self.probability_below(end)) for end in (self.low, self.high))
        if not below <= target <= above:
            raise InvalidArgument(
                f"quantile={target!r} of {self.name!r} lies outside [low={self.low!r}, high={self.high!r}]; widen them."
            )
        root = optimize.brentq(lambda x: float(self.probability_below(x)) - target, self.low, self.high, xtol=1e-14)
        return float(root)

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent records, by inversion."""
        if self.inverse is None:
            raise InvalidArgument(f"law {self.name!r} has no inverse distribution function to sample with.")
        return np.asarray(self.inverse(rng.random(size)), dtype=np.float64)


UNIFORM = DataLaw("uniform", lambda x: np.clip(x, 0.0, 1.0), 0.0, 1.0, lambda u: u)
NORMAL = DataLaw("normal", special.ndtr, -4.0, 4.0, special.ndtri)
EXPONENTIAL = DataLaw(
    "exponential", lambda x: -np.expm1(-np.maximum(x, 0.0)), 0.0, 8.0, lambda u: -np.log1p(-np.asarray(u))
)
BETA_2_5 = DataLaw(
    "beta-2-5",
    lambda x: special.betainc(2.0, 5.0, np.clip(x, 0.0, 1.0)),
    0.0,
    1.0,
    lambda u: special.betaincinv(2.0, 5.0, u),
)
LAWS = {law.name: law for law in (UNIFORM, NORMAL, EXPONENTIAL, BETA_2_5)}
