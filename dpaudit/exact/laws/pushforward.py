"""Laws of outputs that are rounded, clipped, or conditioned on an interval."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.validation import check_positive
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.form import Array, Continuous, Form, FormLaw, Integers, Lattice, Tail, form_of, is_real, log_total
from dpaudit.exact.law import Law
from dpaudit.exact.laws.sampling import sample_form


@dataclass(frozen=True, slots=True)
class Truncated(FormLaw):
    """A law conditioned on ``low <= x <= high``; either end may be infinite.

    Conditioning is not post-processing: truncating to an interval that depends on the data is a classical leak.

    >>> from dpaudit.exact import Laplace
    >>> Truncated(Laplace(0.0, 1.0), -1.0, 1.0).log_prob([0.0, 2.0]).round(6).tolist()
    [-0.234472, -inf]
    """

    law: Law
    low: float
    high: float

    def __post_init__(self) -> None:
        _check_ends(self.low, self.high)
        if self._log_kept() == -math.inf:
            raise LawError(f"{self.law!r} has no mass between low={self.low!r} and high={self.high!r}.")

    def _log_kept(self) -> float:
        return log_total(_restricted(form_of(self.law), self.low, self.high))

    def form(self) -> Form:
        """The part inside the interval, divided by its mass."""
        inside = _restricted(form_of(self.law), self.low, self.high)
        return inside.scaled(-log_total(inside))

    def _draw(self, size: int, rng: np.random.Generator) -> Any:
        """Return ``size`` independent draws: by rejection where that is quick, otherwise by inversion."""
        kept = math.exp(self._log_kept())
        if kept < 0.05:
            return sample_form(self.form(), size, rng)
        drawn: list[Array] = []
        missing = size
        while missing > 0:
            batch = np.asarray(self.law.sample(int(missing / kept * 1.1) + 16, rng))
            batch = batch[(batch >= self.low) & (batch <= self.high)][:missing]
            drawn.append(batch)
            missing -= batch.size
        return np.concatenate(drawn) if drawn else np.empty(0)


@dataclass(frozen=True, slots=True)
class Clipped(FormLaw):
    """The law of ``min(max(x, low), high)``: the mass outside becomes an atom at each end.

    >>> from dpaudit.exact import Laplace
    >>> np.exp(Clipped(Laplace(0.0, 1.0), -1.0, 1.0).log_prob([1.0])).round(6).tolist()
    [0.18394]
    """

    law: Law
    low: float
    high: float

    def __post_init__(self) -> None:
        _check_ends(self.low, self.high)
        form_of(self.law)

    def form(self) -> Form:
        """The inside as it was, and an atom at each end."""
        form = form_of(self.law)
        inside = _restricted(form, self.low, self.high)
        atoms = dict(inside.atoms)
        for end, low, high in ((self.low, -math.inf, self.low), (self.high, self.high, math.inf)):
            # An infinite end has no atom.
            mass = -math.inf if math.isinf(end) else log_total(_restricted(form, low, high, closed=False))
            if mass > -math.inf:
                atoms[end] = float(np.logaddexp(atoms.get(end, -math.inf), mass))
        return Form(atoms, inside.lattice, inside.continuous)

    def _draw(self, size: int, rng: np.random.Generator) -> Any:
        return np.clip(self.law.sample(size, rng), self.low, self.high)


@dataclass(frozen=True, slots=True)
class Rounded(FormLaw):
    """The law of ``x`` rounded to the nearest multiple of ``step`` (ties to the even one, as ``numpy.round``).

    >>> from dpaudit.exact import Laplace
    >>> np.exp(Rounded(Laplace(0.0, 1.0), 1.0).log_prob([0.0, 1.0, 0.5])).round(6).tolist()
    [0.393469, 0.1917, 0.0]
    """

    law: Law
    step: float

    def __post_init__(self) -> None:
        check_positive(step=self.step)
        form = form_of(self.law)
        if form.lattice is not None:
            raise LawError(
                f"{self.law!r} is on a grid already; Rounded takes laws with a density or finitely many atoms."
            )
        _check_real(form)

    def form(self) -> Form:
        """A lattice from the density, atoms from the atoms."""
        form = form_of(self.law)
        atoms: dict[Hashable, float] = {}
        for outcome, value in form.atoms.items():
            grid_point = float(np.round(outcome / self.step) * self.step)  # type: ignore[operator]  # real, as checked
            atoms[grid_point] = float(np.logaddexp(atoms.get(grid_point, -math.inf), value))
        return Form(atoms, _rounded(form.continuous, self.step) if form.continuous else None)

    def _draw(self, size: int, rng: np.random.Generator) -> Any:
        return np.round(np.asarray(self.law.sample(size, rng)) / self.step) * self.step


def _rounded(part: Continuous, step: float) -> Lattice:
    def log_mass(k: Integers) -> Array:
        centres = k.astype(np.float64)
        return part.log_mass((centres - 0.5) * step, (centres + 0.5) * step)

    def log_range(first: float, last: float) -> float:
        return float(part.log_mass(np.array((first - 0.5) * step), np.array((last + 0.5) * step)))

    def nearest(x: float) -> int:
        return round(x / step)

    low, high = part.support
    first = None if low == -math.inf else math.floor(low / step + 0.5)
    last = None if high == math.inf else math.ceil(high / step - 0.5)
    # A kink inside a cell, or on its border, bends the masses of the cells that touch it.
    kinks = sorted({nearest(x) + shift for x in part.kinks for shift in (-1, 0, 1)})
    left, right = (_rounded_tail(tail, step) if tail else None for tail in part.tails)
    return Lattice(
        step,
        log_mass,
        log_range,
        first,
        last,
        tuple(kinks),
        tuple(sorted({nearest(x) for x in part.landmarks})),
        (left, right),
        part.log_linear,
    )


def _rounded_tail(tail: Tail, step: float) -> Tail:
    """The tail of ``integral of f over (x - step/2, x + step/2)`` as a function of the grid point ``x``.

    Exponential decay keeps its rate and gains the factor ``2 sinh(l h / 2) / l``. Under Gaussian decay the near border of
    the cell dominates: ``f(x - h/2) / (2 q x)``. Slower decay is constant over the cell.
    """
    q, linear, h = tail.quadratic, tail.linear, step
    if q > 0.0:
        constant = tail.constant + 0.5 * linear * h - 0.25 * q * h * h - math.log(2.0 * q)
        return Tail(q, linear - q * h, tail.power + 1.0, constant)
    if linear > 0.0:
        gain = 0.5 * linear * h + math.log(-math.expm1(-linear * h) / linear)
        return Tail(0.0, linear, tail.power, tail.constant + gain)
    return Tail(0.0, 0.0, tail.power, tail.constant + math.log(h))


def _restricted(form: Form, low: float, high: float, *, closed: bool = True) -> Form:
    """The part of a law between ``low`` and ``high``, with the ends if ``closed``."""
    _check_real(form)

    def inside(x: float) -> bool:
        return low <= x <= high if closed else low < x < high

    lattice = form.lattice
    if lattice is not None:
        first = None if low == -math.inf else math.ceil(low / lattice.step)
        last = None if high == math.inf else math.floor(high / lattice.step)
        if first is not None and not inside(first * lattice.step):
            first += 1
        if last is not None and not inside(last * lattice.step):
            last -= 1
        lattice = lattice.restricted(first, last)
    return Form(
        {outcome: value for outcome, value in form.atoms.items() if inside(outcome)},  # type: ignore[arg-type]  # real
        lattice,
        form.continuous.restricted(low, high) if form.continuous and low < high else None,
    )


def _check_real(form: Form) -> None:
    for outcome in form.atoms:
        if not is_real(outcome) or outcome != outcome:
            raise LawError(f"The law has the outcome {outcome!r}; only numbers can be rounded, clipped or truncated.")


def _check_ends(low: float, high: float) -> None:
    if not (is_real(low) and is_real(high) and low < high):
        raise InvalidArgument(f"low={low!r} must be below high={high!r}; infinite ends are allowed.")
