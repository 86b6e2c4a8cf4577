"""Laws given by a log-density function of the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit._util.validation import finite_array, shorten
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.form import Array, Continuous, Form, FormLaw, Tail, check_mass
from dpaudit.exact.laws.sampling import sample_density
from dpaudit.exact.quadrature import log_integrals, resolved


@dataclass(frozen=True, slots=True, init=False)
class Density(FormLaw):
    """A law given by its log-density, a vectorised function on ``support``, smooth between ``kinks``.

    The mass is integrated and must be one; ``Density.normalised`` divides by it. If the support is unbounded, the largest
    log-ratio of two laws depends on their ``tails`` (see ``Tail``): without them ``epsilon``, and ``renyi`` at order 1 and
    above, raise LawError; ``delta`` does not need them.

    >>> triangle = Density(lambda x: np.log1p(-np.abs(x)), kinks=[0.0], support=(-1.0, 1.0))
    >>> triangle.log_prob([0.5, 2.0]).round(6).tolist()
    [-0.693147, -inf]
    """

    log_density: Callable[[Array], Any]
    kinks: tuple[float, ...]
    support: tuple[float, float]
    tails: tuple[Tail | None, Tail | None]
    log_normaliser: float
    _landmarks: tuple[float, ...] = field(repr=False, compare=False)

    def __init__(
        self,
        log_density: Callable[[Array], Any],
        kinks: Iterable[float] = (),
        support: tuple[float, float] = (-math.inf, math.inf),
        tails: tuple[Tail | None, Tail | None] = (None, None),
    ) -> None:
        check_mass("Density", self._set(log_density, kinks, support, tails))

    @classmethod
    def normalised(
        cls,
        log_density: Callable[[Array], Any],
        kinks: Iterable[float] = (),
        support: tuple[float, float] = (-math.inf, math.inf),
        tails: tuple[Tail | None, Tail | None] = (None, None),
    ) -> Density:
        """Return the law proportional to ``exp(log_density)``.

        Parameters
        ----------
        log_density, kinks, support
            As for :class:`Density`.
        tails : pair of Tail, optional
            The tails of ``log_density`` before it is normalised.

        Examples
        --------
        >>> law = Density.normalised(lambda x: -np.exp(1 / (1 - x * x)), support=(-1.0, 1.0))
        >>> round(float(np.exp(law.log_prob([0.0])[0])), 10)
        1.2005234175
        """
        law = cls.__new__(cls)
        total = law._set(log_density, kinks, support, tails)
        if not math.isfinite(total):
            raise LawError(f"Density has total mass exp({total}); it must be positive and finite.")
        object.__setattr__(law, "log_normaliser", total)
        object.__setattr__(law, "tails", tuple(tail.shifted(-total) if tail else None for tail in tails))
        return law

    def _set(
        self,
        log_density: Callable[[Array], Any],
        kinks: Iterable[float],
        support: tuple[float, float],
        tails: tuple[Tail | None, Tail | None],
    ) -> float:
        """Check and store the arguments; return the log of the total mass."""
        if not callable(log_density):
            raise InvalidArgument(f"log_density={shorten(log_density)} must be a function of an array.")
        low, high = (float(end) for end in support)
        if not low < high:
            raise InvalidArgument(f"support={support!r} must be (low, high) with low < high.")
        inner = [x for x in finite_array("kinks", list(kinks), ndim=1).tolist() if low < x < high]
        ends = [x for x in (low, high) if math.isfinite(x)]
        for name, value in (
            ("log_density", log_density),
            ("kinks", tuple(sorted({*ends, *inner}))),
            ("support", (low, high)),
            ("tails", tuple(tails)),
            ("log_normaliser", 0.0),
        ):
            object.__setattr__(self, name, value)
        start = inner or [0.0 if low < 0.0 < high else low + 1.0 if math.isfinite(low) else high - 1.0]
        points = [low, *(sorted(set(start)) if len(ends) < 2 or inner else []), high]
        total, edges = resolved(self._inside, points)
        # The panels of the integration become landmarks: they show where the mass is.
        object.__setattr__(self, "_landmarks", tuple(edges))
        return total

    def form(self) -> Form:
        """A density known by its values only."""
        return Form(
            continuous=Continuous(
                self._limit,
                lambda low, high: log_integrals(
                    self._inside,
                    np.maximum(low, self.support[0]),
                    np.minimum(high, self.support[1]),
                    self.kinks,
                    self._landmarks,
                ),
                self.support,
                self.kinks,
                self._landmarks,
                self.tails,
            )
        )

    def _draw(self, size: int, rng: np.random.Generator) -> Array:
        """Return ``size`` independent draws, by inverting the distribution function."""
        part = self.form().continuous
        assert part is not None
        return sample_density(part, size, rng)

    def _inside(self, x: Array) -> Array:
        """The user's function, called on the support only."""
        values = np.full(x.shape, -np.inf)
        inside = (x >= self.support[0]) & (x <= self.support[1])
        with np.errstate(all="ignore"):
            values[inside] = np.asarray(self.log_density(x[inside])) - self.log_normaliser
        return values

    def _limit(self, x: Array, side: int) -> Array:
        """One-sided limits: the value itself where the function is continuous, the neighbouring float's at a jump."""
        values = self._inside(x)
        at_kink = np.isin(x, self.kinks)
        if at_kink.any():
            beside = self._inside(np.nextafter(x, side * np.inf))
            with np.errstate(invalid="ignore"):
                jump = at_kink & ~(np.abs(values - beside) <= 1e-6 * (1.0 + np.abs(beside)))
            values = np.where(jump, beside, values)
        if np.isnan(values).any():
            raise LawError(
                f"The log-density at {float(x[np.isnan(values)][0])!r} is NaN; it must be a number or minus infinity."
            )
        return values
