"""Laws on a grid of countably many points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_finite, check_positive
from dpaudit.errors import InvalidArgument
from dpaudit.exact.form import Array, Form, FormLaw, Integers, Lattice, Tail


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(FormLaw):
    """The two-sided geometric law on the integers: ``P(k) = tanh(1 / (2 scale)) exp(-|k - location| / scale)``.

    Noise for counts (Ghosh, Roughgarden and Sundararajan 2009): with ``scale = sensitivity / epsilon`` it is exactly
    epsilon-private for integer queries, and free of the floating-point leaks of Laplace noise.

    >>> DiscreteLaplace(0, 1.0).log_prob([0, 3, 0.5]).round(6).tolist()
    [-0.771937, -3.771937, -inf]
    """

    location: int
    scale: float

    def __post_init__(self) -> None:
        check_finite(location=self.location)
        check_positive(scale=self.scale)
        if self.location != int(self.location):
            raise InvalidArgument(
                f"location={self.location!r} must be a whole number; Rounded(law, step) makes other grids."
            )
        object.__setattr__(self, "location", int(self.location))

    def form(self) -> Form:
        """Geometric on both sides of the location."""
        peak = math.log(math.tanh(0.5 / self.scale))
        tails = tuple(
            Tail(0.0, 1.0 / self.scale, 0.0, peak + sign * self.location / self.scale) for sign in (-1.0, 1.0)
        )
        marks = (self.location,)
        return Form(
            lattice=Lattice(1.0, self._log_mass, self._log_range, None, None, marks, marks, (tails[0], tails[1]), True)
        )

    def _draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return ``size`` independent draws: the difference of two geometric ones."""
        success = -math.expm1(-1.0 / self.scale)
        return self.location + rng.geometric(success, size) - rng.geometric(success, size)

    def _log_mass(self, k: Integers) -> Array:
        return math.log(math.tanh(0.5 / self.scale)) - np.abs(k - self.location) / self.scale

    def _log_range(self, first: float, last: float) -> float:
        """``P(first <= K <= last)``; either may be infinite."""
        below = self._one_side(self.location - min(last, self.location - 1), self.location - first)
        above = self._one_side(max(first, self.location) - self.location, last - self.location)
        return float(np.logaddexp(below, above))

    def _one_side(self, start: float, stop: float) -> float:
        """Log-mass of the points at distances ``start .. stop`` on one side."""
        if stop < start:
            return -math.inf
        peak = math.log(math.tanh(0.5 / self.scale)) - math.log(-math.expm1(-1.0 / self.scale))
        return peak - start / self.scale + math.log(-math.expm1(-(stop - start + 1.0) / self.scale))
