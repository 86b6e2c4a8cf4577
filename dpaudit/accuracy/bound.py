"""The value of an accuracy theorem at one choice of parameters, the true value there, and their comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Variant(StrEnum):
    """The forms of a theorem: as printed, as in its proof, as a reader would repair it, as corrected."""

    LITERAL = "literal"
    PROOF = "proof"
    PRINTED = "printed"
    SEMI_REPAIRED = "semi-repaired"
    SEMI_WIDENED = "semi-repaired-widened"
    ALPHA_REPAIRED = "alpha-repaired"
    TIGHT = "tight"
    QUADRATIC = "quadratic"
    RANDOM_INDEX = "random-index"
    CORRECTED = "corrected"
    CORRECTED_72 = "corrected-72"
    CORRECTED_36 = "corrected-36"
    SHARP = "sharp"
    DERIVED = "derived"
    MONOTONE_NOISE = "monotone-noise"
    EXACT = "exact"


class Sense(StrEnum):
    """The claimed relation of the quantity to the value of the bound."""

    AT_LEAST = ">="
    AT_MOST = "<="
    EQUAL = "="


class Status(StrEnum):
    """The result of comparing bound and truth at one point."""

    HOLDS = "holds"
    VACUOUS = "vacuous"
    VIOLATED = "VIOLATED"
    UNDECIDED = "undecided"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One side of an accuracy theorem, evaluated.

    Attributes
    ----------
    value
        The value of the bound. It may exceed one or be negative: then the theorem says nothing there.
    trivial
        The bound that is known without the theorem: 0 for a lower bound on a probability, the diameter for an error.
    unmet
        Hypotheses that these parameters violate, in the words of the theorem. Then the theorem does not claim the value
        (which is NaN if it is undefined).
    terms
        Intermediate values (alpha, eta, mu, ranks, ...).

    >>> Bound(value=-0.2, variant=Variant.LITERAL, theorem="report, theorem 2.2.3.1", sense=Sense.AT_LEAST).vacuous
    True
    """

    value: float
    variant: Variant
    theorem: str
    sense: Sense
    quantity: str = ""
    trivial: float | None = None
    unmet: tuple[str, ...] = ()
    terms: Mapping[str, float] = field(default_factory=dict)

    @property
    def applies(self) -> bool:
        """True if the hypotheses of the theorem are met."""
        return not self.unmet

    @property
    def vacuous(self) -> bool:
        """True if the value is no better than the trivial bound."""
        if math.isnan(self.value) or self.sense is Sense.EQUAL:
            return False
        if self.sense is Sense.AT_LEAST:
            return self.value <= (0.0 if self.trivial is None else self.trivial)
        return self.value >= (1.0 if self.trivial is None else self.trivial)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``; an undefined value is ``None``."""
        return {
            "theorem": self.theorem,
            "variant": str(self.variant),
            "quantity": self.quantity,
            "sense": str(self.sense),
            "value": finite_or_none(self.value),
            "vacuous": self.vacuous,
            "unmet": list(self.unmet),
            "terms": {name: finite_or_none(value) for name, value in self.terms.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The quantity that a theorem bounds, as an interval that contains it.

    ``method`` is ``exact`` (computed; the width is the numerical tolerance), ``certified`` (a proven enclosure) or
    ``monte carlo`` (the interval misses the truth with probability at most ``error_probability``, at any stopping
    time).
    """

    low: float
    high: float
    method: str = "exact"
    error_probability: float = 0.0
    estimate: float | None = None

    @classmethod
    def exact(cls, value: float, tolerance: float = 1e-9) -> Truth:
        """Return a computed value with its numerical tolerance, relative above one and absolute below."""
        slack = tolerance * max(1.0, abs(value))
        return cls(low=value - slack, high=value + slack)

    @property
    def middle(self) -> float:
        """The estimate if there is one, otherwise the midpoint."""
        return 0.5 * (self.low + self.high) if self.estimate is None else self.estimate

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return {
            "low": finite_or_none(self.low),
            "high": finite_or_none(self.high),
            "estimate": finite_or_none(self.middle),
            "method": self.method,
            "error_probability": self.error_probability,
        }


def judge(bound: Bound, truth: Truth) -> Status:
    """Compare a bound with the truth; it is violated only if the whole interval lies on the wrong side.

    >>> bound = Bound(value=0.95, variant=Variant.SEMI_REPAIRED, theorem="t", sense=Sense.AT_LEAST)
    >>> judge(bound, Truth.exact(0.9))
    <Status.VIOLATED: 'VIOLATED'>
    >>> judge(bound, Truth(low=0.9, high=0.97, method="monte carlo"))
    <Status.UNDECIDED: 'undecided'>
    """
    if not bound.applies or math.isnan(bound.value):
        return Status.NOT_APPLICABLE
    too_low, too_high = truth.high < bound.value, truth.low > bound.value
    inside = truth.low <= bound.value <= truth.high
    exact = truth.method == "exact"
    if bound.sense is Sense.EQUAL:
        if too_low or too_high:
            return Status.VIOLATED
        return Status.HOLDS if exact else Status.UNDECIDED
    if bound.vacuous:
        return Status.VACUOUS
    if too_low if bound.sense is Sense.AT_LEAST else too_high:
        return Status.VIOLATED
    return Status.UNDECIDED if inside and not exact else Status.HOLDS


def excess(bound: Bound, truth: Truth) -> float:
    """Return the least amount by which the truth exceeds the bound; positive exactly if ``judge`` may return VIOLATED."""
    below, above = bound.value - truth.high, truth.low - bound.value
    return {Sense.AT_LEAST: below, Sense.AT_MOST: above, Sense.EQUAL: max(below, above)}[bound.sense]


def finite_or_none(value: float) -> float | None:
    """Return the value, or None for NaN and infinities, which JSON does not have."""
    return float(value) if math.isfinite(value) else None
