"""Sums of laws: mixtures, and atoms added to a law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import array_within, check_unit, shorten
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.form import (
    Array,
    Continuous,
    Form,
    FormLaw,
    Integers,
    Lattice,
    Tail,
    canonical,
    check_mass,
    form_of,
    heaviest,
    is_real,
)
from dpaudit.exact.law import Law
from dpaudit.exact.laws.discrete import gather


@dataclass(frozen=True, slots=True, init=False)
class Mixture(FormLaw):
    """Draw one of ``laws`` with probabilities ``weights``, then an output from it.

    >>> from dpaudit.exact import Gaussian
    >>> Mixture([0.3, 0.7], [Gaussian(0.0, 1.0), Gaussian(4.0, 1.5)]).log_prob([0.0]).round(6).tolist()
    [-2.079435]
    """

    weights: tuple[float, ...]
    laws: tuple[Law, ...]

    def __init__(self, weights: ArrayLike, laws: Iterable[Law]) -> None:
        shares = array_within("weights", weights, 0.0, 1.0 + 1e-9, empty=False)
        components = tuple(laws)
        if len(components) != shares.size:
            raise InvalidArgument(f"There are {shares.size} weights but {len(components)} laws.")
        for position, law in enumerate(components):
            if not isinstance(law, Law):
                raise InvalidArgument(
                    f"laws[{position}]={shorten(law)} must be a law: log_prob(outputs), sample(size, rng)."
                )
        check_mass("Mixture", math.log(math.fsum(shares)) if shares.any() else -math.inf)
        object.__setattr__(self, "weights", tuple(shares.tolist()))
        object.__setattr__(self, "laws", components)

    def _parts(self) -> list[tuple[float, Law]]:
        return [(math.log(weight), law) for weight, law in zip(self.weights, self.laws, strict=True) if weight > 0.0]

    def form(self) -> Form:
        """The weighted sum of the components' forms."""
        return add([form_of(law).scaled(log_weight) for log_weight, law in self._parts()])

    def log_prob(self, outputs: Any) -> Array:
        """Log of the mixed probability, or density, of each output."""
        if all(hasattr(law, "form") for law in self.laws):
            return self.form().log_prob(outputs)
        total: Array = np.logaddexp.reduce([w + law.log_prob(outputs) for w, law in self._parts()], axis=0)
        return total

    def _draw(self, size: int, rng: np.random.Generator) -> Any:
        shares = np.array(self.weights)
        chosen = rng.choice(shares.size, size=size, p=shares / shares.sum())
        counts = np.bincount(chosen, minlength=shares.size)
        drawn = [law.sample(int(count), rng) for law, count in zip(self.laws, counts, strict=True)]
        return gather(chosen, drawn)


@dataclass(frozen=True, slots=True, init=False)
class WithAtoms(FormLaw):
    """With probability ``weight`` an output of ``law``; otherwise one of ``atoms``, a map from outcome to probability.

    The probabilities of the atoms and the weight sum to one. An atom may be any hashable outcome: a number, None, a
    string.

    >>> from dpaudit.exact import Laplace
    >>> law = WithAtoms({None: 0.25}, 0.75, Laplace(0.0, 1.0))
    >>> law.log_prob([None, 0.0]).round(6).tolist()
    [-1.386294, -0.980829]
    """

    atoms: tuple[tuple[Hashable, float], ...]
    weight: float
    law: Law

    def __init__(self, atoms: Mapping[Any, float], weight: float, law: Law) -> None:
        if not isinstance(atoms, Mapping):
            raise InvalidArgument(f"atoms={shorten(atoms)} must map each outcome to its probability, as a dict does.")
        check_unit(weight=weight)
        masses = array_within("atoms", list(atoms.values()), 0.0, 1.0)
        if not isinstance(law, Law):
            raise InvalidArgument(f"law={shorten(law)} must be a law: log_prob(outputs), sample(size, rng).")
        total = math.fsum([weight, *masses])
        check_mass("WithAtoms", math.log(total) if total > 0.0 else -math.inf)
        object.__setattr__(self, "atoms", tuple((canonical(o), float(p)) for o, p in atoms.items()))
        object.__setattr__(self, "weight", float(weight))
        object.__setattr__(self, "law", law)

    def form(self) -> Form:
        """The law scaled down, and the atoms."""
        points = Form({outcome: math.log(mass) for outcome, mass in self.atoms if mass > 0.0})
        return add([points, form_of(self.law).scaled(math.log(self.weight))]) if self.weight > 0.0 else points

    def _draw(self, size: int, rng: np.random.Generator) -> Any:
        shares = np.array([self.weight, *(mass for _, mass in self.atoms)])
        chosen = rng.choice(shares.size, size=size, p=shares / shares.sum())
        counts = np.bincount(chosen, minlength=shares.size)
        repeated = [
            np.full(count, float(outcome)) if is_real(outcome) else [outcome] * int(count)  # type: ignore[arg-type]
            for (outcome, _), count in zip(self.atoms, counts[1:], strict=True)
        ]
        return gather(chosen, [self.law.sample(int(counts[0]), rng), *repeated])


def add(forms: Sequence[Form]) -> Form:
    """The sum of forms that are already weighted."""
    atoms: dict[Hashable, float] = {}
    for form in forms:
        for outcome, value in form.atoms.items():
            atoms[outcome] = float(np.logaddexp(atoms.get(outcome, -math.inf), value))
    lattices = [form.lattice for form in forms if form.lattice]
    continuous = [form.continuous for form in forms if form.continuous]
    return Form(atoms, _add_lattices(lattices), _add_continuous(continuous))


def _add_continuous(parts: list[Continuous]) -> Continuous | None:
    if len(parts) < 2:
        return parts[0] if parts else None

    def log_density(x: Array, side: int) -> Array:
        total: Array = np.logaddexp.reduce([part.log_density(x, side) for part in parts])
        return total

    def log_mass(low: Array, high: Array) -> Array:
        total: Array = np.logaddexp.reduce([part.log_mass(low, high) for part in parts])
        return total

    low, high = min(part.support[0] for part in parts), max(part.support[1] for part in parts)
    return Continuous(
        log_density,
        log_mass,
        (low, high),
        tuple(sorted({x for part in parts for x in part.kinks})),
        tuple(sorted({x for part in parts for x in part.landmarks})),
        (
            _sum_tail([part.tails[0] for part in parts if part.support[0] == -math.inf]),
            _sum_tail([part.tails[1] for part in parts if part.support[1] == math.inf]),
        ),
        # Where supports are disjoint, every piece is one component's.
        log_linear=all(part.log_linear for part in parts) and _disjoint([part.support for part in parts]),
    )


def _add_lattices(parts: list[Lattice]) -> Lattice | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    if len({part.step for part in parts}) > 1:
        steps = sorted({part.step for part in parts})
        raise LawError(f"Grids of different steps {steps} cannot be added; round to a common step first.")

    def log_mass(k: Integers) -> Array:
        total: Array = np.logaddexp.reduce([part.log_mass(k) for part in parts])
        return total

    def log_range(first: float, last: float) -> float:
        return float(np.logaddexp.reduce([part.log_range(first, last) for part in parts]))

    firsts, lasts = [part.first for part in parts], [part.last for part in parts]
    return Lattice(
        parts[0].step,
        log_mass,
        log_range,
        None if None in firsts else min(k for k in firsts if k is not None),
        None if None in lasts else max(k for k in lasts if k is not None),
        tuple(sorted({k for part in parts for k in part.kinks})),
        tuple(sorted({k for part in parts for k in part.landmarks})),
        (
            _sum_tail([part.tails[0] for part in parts if part.first is None]),
            _sum_tail([part.tails[1] for part in parts if part.last is None]),
        ),
        geometric=False,
    )


def _sum_tail(tails: list[Tail | None]) -> Tail | None:
    known = [tail for tail in tails if tail is not None]
    return heaviest(known) if known and len(known) == len(tails) else None


def _disjoint(supports: list[tuple[float, float]]) -> bool:
    ordered = sorted(supports)
    return all(first[1] <= second[0] for first, second in itertools.pairwise(ordered))
