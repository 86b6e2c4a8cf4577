"""Theorems of the registry: statement, parameters, forms, and the expected result of each form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.validation import did_you_mean
from dpaudit.accuracy.bound import Bound, Status, Truth, Variant
from dpaudit.accuracy.conditions import SYMBOLS, check
from dpaudit.accuracy.regions import Axis, Point
from dpaudit.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Effort:
    """The budget of a Monte Carlo truth: an error probability, a generator, and a number of draws."""

    alpha: float
    rng: np.random.Generator
    draws: int = 6000


def _never(point: Mapping[str, Any]) -> bool:
    del point
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoremForm:
    """One form of a theorem.

    ``bound(**point)`` is its value, and ``truth(bound, effort, **point)`` the true one. ``expected`` is the expected result of
    the verification, ``region`` its default region, and ``hopeless(point)`` a cheap test that no violation is near.
    """

    variant: Variant
    bound: Callable[..., Bound]
    truth: Callable[..., Truth]
    expected: Status
    region: Mapping[str, Axis]
    note: str
    monte_carlo: bool = False
    hopeless: Callable[[Mapping[str, Any]], bool] = _never


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """A statement with all its forms; ``parameters`` maps each name to its symbol and default (None: may be left out)."""

    name: str
    title: str
    source: str
    statement: str
    parameters: Mapping[str, tuple[str, Any]]
    forms: tuple[TheoremForm, ...]

    def complete(self, point: Mapping[str, Any], *, checked: bool = True) -> Point:
        """Return the point with defaults filled in; raise for unknown parameters and values outside their range."""
        for name in point:
            if name not in self.parameters:
                known = ", ".join(self.parameters)
                raise InvalidArgument(
                    f"{name}={point[name]!r} is not a parameter of {self.name}; it has {known}."
                    f"{did_you_mean(name, self.parameters)}"
                )
        merged = {name: point.get(name, default) for name, (_, default) in self.parameters.items()}
        if not checked:
            return merged
        for name, (symbol, _) in self.parameters.items():
            value = merged[name]
            if symbol not in SYMBOLS or value is None:
                continue
            try:
                check(**{symbol: value})
            except InvalidArgument as error:
                raise InvalidArgument(f"{error} ({self.source})") from None
            merged[name] = int(value) if SYMBOLS[symbol].whole else float(value)
        return merged

    def form(self, variant: Variant | str) -> TheoremForm:
        """Return the form of that variant."""
        for form in self.forms:
            if form.variant == variant:
                return form
        listed = [str(form.variant) for form in self.forms]
        raise InvalidArgument(
            f"variant={str(variant)!r} must be one of {', '.join(listed)} for {self.name}.{did_you_mean(variant, listed)}"
        )

    def select(self, variants: Sequence[Variant | str] | None) -> tuple[TheoremForm, ...]:
        """Return the forms of these variants, all of them by default."""
        return self.forms if variants is None else tuple(self.form(variant) for variant in variants)

    def bound(self, variant: Variant | str, **point: Any) -> Bound:
        """Evaluate one form at one point."""
        return self.form(variant).bound(**self.complete(point))
