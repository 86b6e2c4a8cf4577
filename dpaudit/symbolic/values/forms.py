"""Operations on the normal forms of laws: restriction to a region, affine maps, rounding, clipping, absolute values.

Forms here may have a total mass below one: they are the part of a law on one path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit import exact
from dpaudit.errors import LawError
from dpaudit.exact.form import Array, Continuous, Form, Integers, Lattice, Tail, log_total
from dpaudit.exact.laws.mixture import add
from dpaudit.exact.laws.piecewise import Pieces
from dpaudit.exact.laws.sampling import sample_form
from dpaudit.symbolic.values.regions import Region


@dataclass(frozen=True, eq=False)
class PartLaw:
    """A form as a law, with total mass at most one."""

    inner: Form

    def form(self) -> Form:
        """The form itself."""
        return self.inner

    def log_prob(self, outputs: Any) -> Array:
        """Log-mass or log-density of each output."""
        return self.inner.log_prob(outputs)

    def sample(self, size: int, rng: np.random.Generator) -> Any:
        """Return ``size`` draws from the part, as if its mass were one."""
        return sample_form(self.inner, size, rng)


def exact_step(step: float) -> Fraction:
    """The step of a grid as the fraction that it stands for: 0.1 is one tenth."""
    return Fraction(step).limit_denominator(1 << 40)


def restricted(form: Form, region: Region) -> Form:
    """The part of a law in a region, not renormalised."""
    pieces = []
    for low, high in region.parts:
        single = Region(((low, high),))
        lattice = None
        if form.lattice is not None:
            scaled = single if form.lattice.step == 1.0 else single.affine(1 / exact_step(form.lattice.step), 0)
            for first, last in scaled.whole_numbers():
                lattice = form.lattice.restricted(
                    None if math.isinf(first) else int(first), None if math.isinf(last) else int(last)
                )
        start, stop = float(low[0]), float(high[0])
        continuous = form.continuous.restricted(start, stop) if form.continuous and start < stop else None
        atoms = {value: mass for value, mass in form.atoms.items() if value in single}  # type: ignore[operator]
        pieces.append(Form(atoms, lattice, continuous))
    return add(pieces)


def affine(form: Form, factor: float, shift: float) -> Form:
    """The law of ``factor * x + shift``; a grid must be moved onto itself."""
    if factor == 1.0 and shift == 0.0:
        return form
    return Form(
        {factor * value + shift: mass for value, mass in form.atoms.items()},  # type: ignore[operator]
        None if form.lattice is None else _affine_lattice(form.lattice, factor, shift),
        None if form.continuous is None else _affine_density(form.continuous, factor, shift),
    )


def is_constant(part: Continuous) -> bool:
    """Return True if a density is constant between its kinks."""
    edges = sorted({*part.kinks, *part.support})
    if not part.log_linear or not all(map(math.isfinite, edges)):
        return False
    low, high = np.array(edges[:-1]), np.array(edges[1:])
    third = (high - low) / 3.0
    return bool((part.log_density(low + third, 1) == part.log_density(high - third, 1)).all())


def _affine_constant(part: Continuous, factor: float, shift: float) -> Continuous:
    """A density that is constant between kinks, moved: without going back to ``(x - shift) / factor``, whose rounding loses
    the place of numbers near an edge.
    """
    edges = np.array(sorted({*part.kinks, *part.support}))
    heights = part.log_density(edges[:-1] + (edges[1:] - edges[:-1]) / 3.0, 1) - math.log(abs(factor))
    moved = factor * edges + shift
    if factor < 0.0:
        moved, heights = moved[::-1], heights[::-1]
    return Pieces(moved, moved[:-1], heights, np.zeros(heights.size)).continuous()


def _affine_density(part: Continuous, factor: float, shift: float) -> Continuous:
    if is_constant(part):
        return _affine_constant(part, factor, shift)
    sign = 1 if factor > 0.0 else -1
    log_factor = math.log(abs(factor))

    def moved(x: float) -> float:
        return sign * x if math.isinf(x) else factor * x + shift

    def log_density(x: Array, side: int) -> Array:
        return part.log_density((x - shift) / factor, side * sign) - log_factor

    def log_mass(low: Array, high: Array) -> Array:
        a, b = (np.asarray(low) - shift) / factor, (np.asarray(high) - shift) / factor
        return part.log_mass(a, b) if sign > 0 else part.log_mass(b, a)

    ends = sorted(map(moved, part.support))
    tails = part.tails[::sign]
    left = None if tails[0] is None else _affine_tail(tails[0], factor, shift, -1.0)
    right = None if tails[1] is None else _affine_tail(tails[1], factor, shift, 1.0)
    return Continuous(
        log_density,
        log_mass,
        (ends[0], ends[1]),
        tuple(sorted(map(moved, part.kinks))),
        tuple(sorted(map(moved, part.landmarks))),
        (left, right),
        part.log_linear,
    )


def _affine_tail(tail: Tail, factor: float, shift: float, end: float) -> Tail:
    """The tail of the density of ``y = factor x + shift``: with ``s = end``, ``|x| = (s y - s shift) / |factor|``."""
    size = abs(factor)
    quadratic = tail.quadratic / size**2
    constant = tail.constant - math.log(size)
    constant += tail.linear * end * shift / size - quadratic * shift**2 + tail.power * math.log(size)
    return Tail(quadratic, tail.linear / size - 2.0 * quadratic * end * shift, tail.power, constant)


def _affine_lattice(part: Lattice, factor: float, shift: float) -> Lattice:
    step = abs(factor) * part.step
    moves = shift / step
    if moves != round(moves):
        raise LawError("A grid can only be moved by multiples of its step.")
    sign, offset = (1 if factor > 0.0 else -1), round(moves)

    def back(k: Integers) -> Integers:
        return sign * (k - offset)

    def log_range(first: float, last: float) -> float:
        a, b = sorted((sign * (first - offset), sign * (last - offset)))
        return part.log_range(a, b)

    ends = [None if k is None else sign * k + offset for k in (part.first, part.last)][::sign]
    tails = part.tails[::sign]
    left = None if tails[0] is None else _affine_tail(tails[0], factor, shift, -1.0)
    right = None if tails[1] is None else _affine_tail(tails[1], factor, shift, 1.0)
    log_factor = math.log(abs(factor))  # masses of points do not change with the scale, unlike densities
    return Lattice(
        step,
        lambda k: part.log_mass(back(np.asarray(k))),
        log_range,
        ends[0],
        ends[1],
        tuple(sorted(sign * k + offset for k in part.kinks)),
        tuple(sorted(sign * k + offset for k in part.landmarks)),
        (left and left.shifted(log_factor), right and right.shifted(log_factor)),
        part.geometric,
    )


def rounded(form: Form, step: float) -> Form:
    """The law rounded to the nearest multiple of a step; ties have no mass in a density."""
    return exact.Rounded(PartLaw(form), step).form()


def floored(form: Form) -> Form:
    """The law of the largest whole number that is not above ``x``."""
    if form.lattice is not None:
        raise LawError("Only densities and atoms can be rounded down.")
    whole: dict[Any, float] = {}
    for value, mass in form.atoms.items():
        key = float(math.floor(value))  # type: ignore[call-overload]
        whole[key] = float(np.logaddexp(whole.get(key, -math.inf), mass))
    atoms = Form(whole)
    if form.continuous is None:
        return atoms
    moved = rounded(Form(continuous=_affine_density(form.continuous, 1.0, -0.5)), 1.0)
    return add([atoms, moved])


def clipped(form: Form, low: float, high: float) -> Form:
    """The law of ``min(max(x, low), high)``."""
    return exact.Clipped(PartLaw(form), low, high).form()


def absolute(form: Form) -> Form:
    """The law of ``|x|``."""
    upper = restricted(form, Region.above(0.0, closed=True))
    lower = restricted(form, Region.below(0.0))
    return add([upper, affine(lower, -1.0, 0.0)])


def truncated_towards_zero(form: Form) -> Form:
    """The law of ``x`` without its fraction, as ``int`` does."""
    upper = floored(restricted(form, Region.above(0.0, closed=True)))
    lower = floored(affine(restricted(form, Region.below(0.0)), -1.0, 0.0))
    return add([upper, affine(lower, -1.0, 0.0)])


def scaled(form: Form, weight: float) -> Form:
    """The form times a weight."""
    return form if weight == 1.0 else form.scaled(math.log(weight))


def mass(form: Form) -> float:
    """Total mass of a form."""
    total = log_total(form)
    return math.exp(total) if total > -math.inf else 0.0
