"""Functions of one real number that extraction can follow: their values, preimages of regions, and images of laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from scipy.special import erf, erfinv

from dpaudit.exact.form import Array, Continuous, Form, Tail
from dpaudit.exact.laws.mixture import add
from dpaudit.symbolic.values import forms
from dpaudit.symbolic.values.regions import End, RealNumber, Region, is_infinite


class Operation(Protocol):
    """A function of one real number."""

    def value(self, x: float) -> float:
        """The function at one number."""

    def preimage(self, region: Region) -> Region:
        """The numbers whose value lies in a region."""

    def image(self, form: Form) -> Form:
        """The law of the function of a draw from a law."""


@dataclass(frozen=True, slots=True)
class Affine:
    """``factor * x + shift``."""

    factor: Fraction
    shift: Fraction

    def value(self, x: float) -> float:
        """The function at one number."""
        return float(self.factor) * x + float(self.shift)

    def preimage(self, region: Region) -> Region:
        """The numbers whose value lies in a region."""
        return region.affine(1 / self.factor, -self.shift / self.factor)

    def image(self, form: Form) -> Form:
        """The law of the function of a draw from a law."""
        return forms.affine(form, float(self.factor), float(self.shift))


NEGATION = Affine(Fraction(-1), Fraction(0))


@dataclass(frozen=True, slots=True)
class RoundTo:
    """The nearest multiple of ``step``; ties have no probability under a density."""

    step: Fraction

    def value(self, x: float) -> float:
        """The function at one number."""
        return float(round(x / float(self.step)) * self.step)

    def preimage(self, region: Region) -> Region:
        """The numbers whose value lies in a region."""
        half = Fraction(1, 2)
        return Region.of(
            (
                ((Fraction(first) - half) * self.step if math.isfinite(first) else first, 0),
                ((Fraction(last) + half) * self.step if math.isfinite(last) else last, 1),
            )
            for first, last in map(self._multiples, region.parts)
            if first <= last
        )

    def _multiples(self, part: tuple[End, End]) -> tuple[float, float]:
        """Number the first and last multiple whose float lies in an interval: 3 / 10 is the float 0.3, not a little more."""
        low, high = part

        def near(end: RealNumber) -> range:
            middle = round(Fraction(end) / self.step)
            return range(middle - 1, middle + 2)

        first = (
            [k for k in near(low[0]) if low <= (float(k * self.step), 0)] if not is_infinite(low[0]) else [-math.inf]
        )
        last = (
            [k for k in near(high[0]) if (float(k * self.step), 1) <= high] if not is_infinite(high[0]) else [math.inf]
        )
        return min(first), max(last)

    def image(self, form: Form) -> Form:
        """The law of the function of a draw from a law."""
        return forms.rounded(form, float(self.step))


@dataclass(frozen=True, slots=True)
class Floor:
    """The largest whole number that is not above ``x``."""

    def value(self, x: float) -> float:
        """The function at one number."""
        return float(math.floor(x))

    def preimage(self, region: Region) -> Region:
        """The numbers whose value lies in a region."""
        return Region.of(
            ((first, 0), (last + 1.0, 0 if math.isfinite(last) else 1)) for first, last in region.whole_numbers()
        )

    def image(self, form: Form) -> Form:
        """The law of the function of a draw from a law."""
        return forms.floored(form)


@dataclass(frozen=True, slots=True)
class Truncate:
    """``x`` without its fraction, as ``int`` does."""

    def value(self, x: float) -> float:
        """The function at one number."""
        return float(math.trunc(x))

    def preimage(self, region: Region) -> Region:
        """The numbers whose value lies in a region."""
        upper = Floor().preimage(region.meet(Region.above(0.0, closed=True))).meet(Region.above(0.0, closed=True))
        mirrored = region.affine(-1.0, 0.0).meet(Region.above(0.0, closed=True))
        lower = Floor().preimage(mirrored).meet(Region.above(0.0, closed=True)).affine(-1.0, 0.0)
        return upper.join(lower)

    def image(self, form: Form) -> Form:
        """The law of the function of a draw from a law."""
        return forms.truncated_towards_zero(form)


@dataclass(frozen=True, slots=True)
class Clip:
    """``min(max(x, low), high)``."""

    low: RealNumber
    high: RealNumber

    def value(self, x: float) -> float:
        """The function at one number."""
        return min(max(x, float(self.low)), float(self.high))

    def preimage(self, region: Region) -> Region:
        """The numbers whose value lies in a region."""
        inside = region.meet(Region.above(self.low).meet(Region.below(self.high)))
        if not is_infinite(self.low) and self.low in region:
            inside = inside.join(Region.below(self.low, closed=True))
        if not is_infinite(self.high) and self.high in region:
            inside = inside.join(Region.above(self.high, closed=True))
        return inside

    def image(self, form: Form) -> Form:
        """The law of the function of a draw from a law."""
        return forms.clipped(form, float(self.low), float(self.high))


@dataclass(frozen=True, slots=True)
class Absolute:
    """``|x|``."""

    def value(self, x: float) -> float:
        """The function at one number."""
        return abs(x)

    def preimage(self, region: Region) -> Region:
        """The numbers whose value lies in a region."""
        upper = region.meet(Region.above(0.0, closed=True))
        return upper.join(upper.affine(-1.0, 0.0))

    def image(self, form: Form) -> Form:
        """The law of the function of a draw from a law."""
        return forms.absolute(form)


@dataclass(frozen=True, slots=True)
class Increasing:
    """A smooth increasing function, given with its inverse and the log of the inverse's derivative.

    ``domain`` is where it is defined; a draw outside makes the run stop. ``safe`` says that the inverse keeps its relative
    accuracy towards both ends, so that tails of densities can be compared.
    """

    name: str
    function: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    log_slope: Callable[[Any], Any]
    domain: tuple[float, float]
    target: tuple[float, float]
    safe: bool = False

    def value(self, x: float) -> float:
        """The function at one number."""
        with np.errstate(divide="ignore"):
            return float(self.function(x))

    def preimage(self, region: Region) -> Region:
        """The numbers whose value lies in a region."""
        inside = region.meet(Region.above(self.target[0], closed=True).meet(Region.below(self.target[1], closed=True)))
        with np.errstate(divide="ignore", over="ignore"):
            return Region.of(
                ((float(self.inverse(float(low[0]))), low[1]), (float(self.inverse(float(high[0]))), high[1]))
                for low, high in inside.parts
            )

    def image(self, form: Form) -> Form:
        """The law of the function of a draw from a law."""
        with np.errstate(divide="ignore", over="ignore"):
            atoms = Form({float(self.function(x)): mass for x, mass in form.atoms.items()})
        return atoms if form.continuous is None else add([atoms, Form(continuous=self._density(form.continuous))])

    def _density(self, part: Continuous) -> Continuous:
        def log_density(y: Array, side: int) -> Array:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                # Near the edge of the domain the inverse may round to the edge itself, where the density is a limit.
                x = np.clip(
                    self.inverse(y), np.nextafter(self.domain[0], np.inf), np.nextafter(self.domain[1], -np.inf)
                )
                value = part.log_density(x, side) + self.log_slope(y)
            return np.where((y < self.target[0]) | (y > self.target[1]), -np.inf, value)

        def log_mass(low: Array, high: Array) -> Array:
            with np.errstate(over="ignore", divide="ignore"):
                a = self.inverse(np.maximum(low, self.target[0]))
                return part.log_mass(a, self.inverse(np.minimum(high, self.target[1])))

        with np.errstate(divide="ignore", over="ignore"):
            ends = [float(self.function(x)) for x in part.support]
            marks = [float(self.function(x)) for x in (*part.kinks, *part.landmarks)]
        kinks = [float(self.function(x)) for x in part.kinks if self.domain[0] < x < self.domain[1]]
        finite = sorted({y for y in marks if math.isfinite(y)} | {y for y in ends if math.isfinite(y)})
        if not finite or (len(finite) == 1 and math.isinf(ends[0]) != math.isinf(ends[1])):
            start = finite[0] if finite else 0.0
            finite = sorted({*finite, start - 1.0 if math.isinf(ends[0]) else start + 1.0})
        tails = [self._tail(part, end) if math.isinf(ends[end]) else None for end in (0, 1)]
        flat = part.log_linear and self.name in ("log", "log1p") and forms.is_constant(part)
        return Continuous(
            log_density,
            log_mass,
            (ends[0], ends[1]),
            tuple(sorted({*(y for y in kinks if math.isfinite(y)), *(y for y in ends if math.isfinite(y))})),
            tuple(finite),
            (tails[0], tails[1]),
            flat,
        )

    def _tail(self, part: Continuous, end: int) -> Tail | None:
        """The logarithm near the edge of its domain: the density there times ``exp(y)``."""
        if self.name in ("log", "log1p") and end == 0:
            height = float(part.log_density(np.array([self.domain[0]]), 1)[0])
            return Tail(linear=1.0, constant=height) if math.isfinite(height) else None
        return None


LOG = Increasing("log", np.log, np.exp, lambda y: y, (0.0, math.inf), (-math.inf, math.inf))
LOG1P = Increasing("log1p", np.log1p, np.expm1, lambda y: y, (-1.0, math.inf), (-math.inf, math.inf))
EXP = Increasing("exp", np.exp, np.log, lambda y: -np.log(y), (-math.inf, math.inf), (0.0, math.inf), True)
EXPM1 = Increasing("expm1", np.expm1, np.log1p, lambda y: -np.log1p(y), (-math.inf, math.inf), (-1.0, math.inf))
ERFINV = Increasing(
    "erfinv",
    erfinv,
    erf,
    lambda y: math.log(2.0 / math.sqrt(math.pi)) - np.square(y),
    (-1.0, 1.0),
    (-math.inf, math.inf),
)
SQRT = Increasing("sqrt", np.sqrt, np.square, lambda y: np.log(2.0 * y), (0.0, math.inf), (0.0, math.inf), True)
