"""The normal form in which laws are compared: atoms, a lattice, and a density.

A divergence needs three things about a law: the masses of its single points, the masses of the points of a grid, and a
density, with the points where it is not smooth and its behaviour towards both infinities. Every law of this package returns
its form, so the divergences are written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_count, check_generator
from dpaudit.errors import LawError

Array: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

MASS_TOLERANCE = 1e-9
"""Largest distance from 1 of the total mass of a law."""
_SAME = 1e-13
"""Tail coefficients with at most this relative difference are equal up to rounding."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of a log-density (or log-mass): ``constant - quadratic x^2 - linear |x| - power log|x| + o(1)``.

    The ratio of two laws at infinity is decided by the first coefficient in which they differ, and if none does, by the
    constants. Coefficients are relative to the origin, so a Gaussian's location shows in ``linear``.
    """

    quadratic: float = 0.0
    linear: float = 0.0
    power: float = 0.0
    constant: float = 0.0

    def shifted(self, log_weight: float) -> Tail:
        """The tail of the law times ``exp(log_weight)``."""
        return Tail(self.quadratic, self.linear, self.power, self.constant + log_weight)

    def rates(self) -> tuple[float, float, float]:
        """The coefficients in the order in which they decide a ratio."""
        return (self.quadratic, self.linear, self.power)

    def log_ratio_limit(self, other: Tail) -> float:
        """The limit of ``log f - log g`` at this infinity, possibly plus or minus infinity."""
        for mine, theirs in zip(self.rates(), other.rates(), strict=True):
            if not same(mine, theirs):
                return math.inf if mine < theirs else -math.inf
        return self.constant - other.constant

    def integrable_against(self, other: Tail, order: float) -> bool:
        """Return True if ``f^order g^(1 - order)``, at order 1 ``f log(f / g)``, has a finite integral at this infinity."""
        if order == 1.0:
            # Exponential decay outweighs the logarithm; for a power law its degree decides.
            degree = 2.0 if other.quadratic > 0.0 else 1.0 if other.linear > 0.0 else 0.0
            return self.quadratic > 0.0 or self.linear > 0.0 or self.power > 1.0 + degree
        for mine, theirs in zip(self.rates()[:2], other.rates()[:2], strict=True):
            if not same(order * mine, (order - 1.0) * theirs):
                return order * mine > (order - 1.0) * theirs
        return order * self.power - (order - 1.0) * other.power > 1.0


def same(first: float, second: float) -> bool:
    """Return True if two coefficients differ by no more than the rounding of their computation."""
    return abs(first - second) <= _SAME * max(abs(first), abs(second))


def heaviest(tails: Iterable[Tail]) -> Tail:
    """The tail of a sum of densities: the slowest decay decides, and for equal decays the constants add up."""
    ordered = sorted(tails, key=lambda tail: (*tail.rates(), -tail.constant))
    first = ordered[0]
    equal = [tail for tail in ordered if all(map(same, tail.rates(), first.rates()))]
    constant = float(np.logaddexp.reduce([tail.constant for tail in equal]))
    return Tail(first.quadratic, first.linear, first.power, constant)


@dataclass(frozen=True, slots=True)
class Continuous:
    """The part of a law that has a density; its mass may be below one.

    ``log_density(x, side)`` is the limit from the right (side 1) or from the left (side -1), which matters at jumps.
    ``kinks`` are all finite points where it is not smooth, the finite ends of the support among them; ``landmarks`` are
    points that show where the mass is and on what scale. ``log_linear`` says that between kinks the log-density is a
    straight line. ``log_mass(low, high)`` is the log-mass of intervals. A tail is None where the support is bounded,
    or where it is not known.
    """

    log_density: Callable[[Array, int], Array]
    log_mass: Callable[[Array, Array], Array]
    support: tuple[float, float]
    kinks: tuple[float, ...]
    landmarks: tuple[float, ...]
    tails: tuple[Tail | None, Tail | None] = (None, None)
    log_linear: bool = False

    def unbounded(self, end: int) -> bool:
        """Return True if the support reaches minus infinity (end 0) or infinity (end 1)."""
        return math.isinf(self.support[end])

    def scaled(self, log_weight: float) -> Continuous:
        """The part times ``exp(log_weight)``."""
        if log_weight == 0.0:
            return self
        left, right = (tail.shifted(log_weight) if tail else None for tail in self.tails)
        return replace(
            self,
            log_density=lambda x, side: self.log_density(x, side) + log_weight,
            log_mass=lambda low, high: self.log_mass(low, high) + log_weight,
            tails=(left, right),
        )

    def restricted(self, low: float, high: float) -> Continuous | None:
        """The part inside (low, high), not renormalised; None if it is empty."""
        start, stop = max(low, self.support[0]), min(high, self.support[1])
        if not start < stop:
            return None

        def log_density(x: Array, side: int) -> Array:
            inside = ((x >= start) & (x < stop)) if side > 0 else ((x > start) & (x <= stop))
            return np.where(inside, self.log_density(x, side), -np.inf)

        def log_mass(left: Array, right: Array) -> Array:
            return self.log_mass(np.maximum(left, start), np.minimum(right, stop))

        inner = tuple(x for x in self.landmarks if start < x < stop)
        ends = tuple(x for x in (start, stop) if math.isfinite(x))
        return Continuous(
            log_density,
            log_mass,
            (start, stop),
            tuple(sorted({*ends, *(x for x in self.kinks if start < x < stop)})),
            tuple(sorted({*ends, *inner})),
            (self.tails[0] if start == -math.inf else None, self.tails[1] if stop == math.inf else None),
            self.log_linear,
        )


@dataclass(frozen=True, slots=True)
class Lattice:
    """The part of a law on the points ``step * k`` for integers ``first <= k <= last`` (None: unbounded).

    ``log_mass(k)`` is the log-mass of grid points and ``log_range(first, last)`` that of a range, whose ends may be
    infinite. Between consecutive ``kinks`` (integers), and beyond them, the log-mass is smooth in ``k``, and where
    ``geometric`` it is a straight line. ``landmarks`` show where the mass is; ``tails`` are functions of ``step * k``.
    """

    step: float
    log_mass: Callable[[Integers], Array]
    log_range: Callable[[float, float], float]
    first: int | None
    last: int | None
    kinks: tuple[int, ...]
    landmarks: tuple[int, ...]
    tails: tuple[Tail | None, Tail | None] = (None, None)
    geometric: bool = False

    def unbounded(self, end: int) -> bool:
        """Return True if the grid reaches minus infinity (end 0) or infinity (end 1)."""
        return (self.first, self.last)[end] is None

    def scaled(self, log_weight: float) -> Lattice:
        """The part times ``exp(log_weight)``."""
        left, right = (tail.shifted(log_weight) if tail else None for tail in self.tails)
        return replace(
            self,
            log_mass=lambda k: self.log_mass(k) + log_weight,
            log_range=lambda first, last: self.log_range(first, last) + log_weight,
            tails=(left, right),
        )

    def restricted(self, first: int | None, last: int | None) -> Lattice | None:
        """The points from ``first`` to ``last``, not renormalised; None if there are none."""
        start = self.first if first is None else first if self.first is None else max(first, self.first)
        stop = self.last if last is None else last if self.last is None else min(last, self.last)
        if start is not None and stop is not None and start > stop:
            return None
        low, high = -math.inf if start is None else start, math.inf if stop is None else stop
        ends = {end for end in (start, stop) if end is not None}
        return replace(
            self,
            log_mass=lambda k: np.where((k >= low) & (k <= high), self.log_mass(k), -np.inf),
            log_range=lambda a, b: (
                self.log_range(max(a, low), min(b, high)) if max(a, low) <= min(b, high) else -math.inf
            ),
            first=start,
            last=stop,
            kinks=tuple(sorted(ends | {k for k in self.kinks if low <= k <= high})),
            landmarks=tuple(sorted(ends | {k for k in self.landmarks if low <= k <= high})),
            tails=(self.tails[0] if start is None else None, self.tails[1] if stop is None else None),
        )

    def log_total(self) -> float:
        """Log of the whole mass."""
        return self.log_range(-math.inf, math.inf)

    def log_mass_at(self, x: Array) -> Array:
        """Log-mass of real numbers; minus infinity off the grid."""
        k = np.round(np.where(np.isfinite(x), x, 0.0) / self.step)
        on_grid = k * self.step == x
        if self.first is not None:
            on_grid &= k >= self.first
        if self.last is not None:
            on_grid &= k <= self.last
        return np.where(on_grid, self.log_mass(k.astype(np.int64)), -np.inf)

    def index(self, outcome: Hashable) -> int | None:
        """The integer ``k`` with ``step * k == outcome``, or None."""
        if not is_real(outcome) or not math.isfinite(outcome):  # type: ignore[arg-type]  # is_real was checked
            return None
        k = round(outcome / self.step)  # type: ignore[operator]
        inside = (self.first is None or k >= self.first) and (self.last is None or k <= self.last)
        return k if inside and k * self.step == outcome else None


@dataclass(frozen=True, slots=True)
class Form:
    """A law as atoms (outcome to log-mass), a lattice part and a continuous part, each of which may be missing."""

    atoms: Mapping[Hashable, float] = field(default_factory=dict)
    lattice: Lattice | None = None
    continuous: Continuous | None = None

    def scaled(self, log_weight: float) -> Form:
        """The form times ``exp(log_weight)``."""
        return Form(
            {outcome: value + log_weight for outcome, value in self.atoms.items()},
            self.lattice.scaled(log_weight) if self.lattice else None,
            self.continuous.scaled(log_weight) if self.continuous else None,
        )

    def log_point_mass(self, outcome: Hashable) -> float:
        """Log-mass of the single point ``outcome``."""
        total = self.atoms.get(outcome, -math.inf)
        k = self.lattice.index(outcome) if self.lattice else None
        if self.lattice and k is not None:
            total = float(np.logaddexp(total, self.lattice.log_mass(np.array([k], dtype=np.int64))[0]))
        return total

    def log_prob(self, outputs: Any) -> Array:
        """Log-mass where an output is an atom or a grid point, log-density elsewhere; never NaN."""
        x = _reals(outputs)
        masses = np.full(x.shape, -np.inf)
        if self.lattice:
            masses = self.lattice.log_mass_at(x)
        if self.atoms:
            at_atoms = [self.atoms.get(outcome, -math.inf) for outcome in as_outcomes(outputs)]
            masses = np.logaddexp(masses, np.array(at_atoms, dtype=np.float64).reshape(x.shape))
        if self.continuous is None:
            return masses
        return np.where(masses > -np.inf, masses, _density_at(self.continuous, x))


class FormLaw:
    """Base of the laws of this package: subclasses define ``form`` and ``_draw``."""

    __slots__ = ()

    def form(self) -> Form:
        """Return the normal form of the law."""
        raise NotImplementedError

    def _draw(self, size: int, rng: np.random.Generator) -> Any:
        raise NotImplementedError

    def log_prob(self, outputs: Any) -> Array:
        """Return the log-mass (of atoms and grid points) or log-density of each output; minus infinity outside the support."""
        return self.form().log_prob(outputs)

    def sample(self, size: int, rng: np.random.Generator) -> Any:
        """Return ``size`` independent draws."""
        check_count(minimum=0, size=size)
        check_generator(rng=rng)
        return self._draw(size, rng)


def _reals(outputs: Any) -> Array:
    """The outputs as numbers, NaN where they are something else."""
    if not isinstance(outputs, np.ndarray) or outputs.dtype == object:
        outputs = list(outputs) if np.iterable(outputs) else outputs
        if isinstance(outputs, list):
            outputs = np.array([x if is_real(x) else math.nan for x in outputs], dtype=np.float64)
    array = np.asarray(outputs)
    return array.astype(np.float64) if array.dtype.kind in "iuf" else np.full(array.shape, np.nan)


def _density_at(part: Continuous, x: Array) -> Array:
    """Log-density, closed at the upper end of the support; minus infinity at NaN and at the infinities."""
    known = np.where(np.isfinite(x), x, 0.0)
    values = np.where(known >= part.support[1], part.log_density(known, -1), part.log_density(known, 1))
    return np.where(np.isfinite(x), values, -np.inf)


def log_total(form: Form) -> float:
    """Log of the whole mass of a form."""
    terms = list(form.atoms.values())
    if form.lattice:
        terms.append(form.lattice.log_total())
    if form.continuous:
        terms.append(float(form.continuous.log_mass(np.array(-np.inf), np.array(np.inf))))
    return float(np.logaddexp.reduce(terms)) if terms else -math.inf


def log_sum(values: Array) -> float:
    """``log(sum(exp(values)))``, minus infinity where there are none."""
    top = float(values.max(initial=-math.inf))
    return top + math.log(float(np.exp(values - top).sum())) if math.isfinite(top) else top


def is_real(outcome: Any) -> bool:
    """Return True if an outcome is a number on the real line."""
    return isinstance(outcome, int | float | np.integer | np.floating) and not isinstance(outcome, bool)


def as_outcomes(outputs: Any) -> list[Hashable]:
    """A list of hashable outcomes: rows of an array become tuples, all NaN are the same one."""
    if isinstance(outputs, np.ndarray):
        outputs = outputs.tolist() if outputs.ndim else [outputs.item()]
    return [canonical(outcome) for outcome in outputs]


def canonical(outcome: Any) -> Hashable:
    """An outcome as a dictionary key: lists become tuples, NaN equals NaN."""
    if isinstance(outcome, float) and outcome != outcome:
        return math.nan
    if isinstance(outcome, list | tuple):
        return tuple(canonical(item) for item in outcome)
    if isinstance(outcome, np.generic):
        return canonical(outcome.item())
    if isinstance(outcome, np.ndarray):
        return canonical(outcome.tolist())
    return outcome  # type: ignore[no-any-return]  # if it is not hashable, the dictionary raises


def check_mass(what: str, log_mass: float) -> None:
    """Raise LawError if the total mass of a law is not one."""
    mass = math.exp(log_mass) if log_mass < 700.0 else math.inf
    if not abs(mass - 1.0) <= MASS_TOLERANCE:
        raise LawError(
            f"{what} has total mass {mass:.12g}; a probability law has mass 1 (tolerance {MASS_TOLERANCE}). "
            "Normalise the weights, or look for outcomes that were left out."
        )


def form_of(law: Any) -> Form:
    """The normal form of a law of this package (or of any object with a method ``form()``)."""
    form = getattr(law, "form", None)
    if form is None:
        raise LawError(
            f"{type(law).__name__} has no normal form, so it cannot be compared; use the laws of dpaudit.exact, or "
            "give yours a method form() that returns dpaudit.exact.Form."
        )
    result = form()
    if not isinstance(result, Form):
        raise LawError(
            f"{type(law).__name__}.form() returned {type(result).__name__}; it must return dpaudit.exact.Form."
        )
    return result
