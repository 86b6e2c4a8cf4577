"""What an accuracy theorem says at one choice of parameters, and what is true there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Variant(StrEnum):
    """Which form of a theorem: as printed, as its proof has it, as a reader would repair it, as it is true."""

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
    """How the quantity is claimed to stand to the value of the bound."""

    AT_LEAST = ">="
    AT_MOST = "<="
    EQUAL = "="


class Status(StrEnum):
    """What a comparison of bound and truth shows at one point."""

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
        What the theorem says. It may exceed one or fall below zero: then the theorem says nothing there.
    trivial
        What is known without the theorem: 0 for a lower bound on a probability, the diameter for an error.
    unmet
        Hypotheses that these parameters break, in the theorem's own words. The value is then no claim of the theorem
        (and NaN where it cannot even be formed).
    terms
        The pieces of which the value is made (alpha, eta, mu, ranks, ...).

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
        """Whether the hypotheses of the theorem are met."""
        return not self.unmet

    @property
    def vacuous(self) -> bool:
        """Whether the theorem says no more than what is known without it."""
        if math.isnan(self.value) or self.sense is Sense.EQUAL:
            return False
        if self.sense is Sense.AT_LEAST:
            return self.value <= (0.0 if self.trivial is None else self.trivial)
        return self.value >= (1.0 if self.trivial is None else self.trivial)

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``; a value that cannot be formed is ``None``."""
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
    """The quantity that a theorem bounds: an interval that holds it.

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
        """Best guess: the estimate where there is one, otherwise the midpoint."""
        return 0.5 * (self.low + self.high) if self.estimate is None else self.estimate

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {
            "low": finite_or_none(self.low),
            "high": finite_or_none(self.high),
            "estimate": finite_or_none(self.middle),
            "method": self.method,
            "error_probability": self.error_probability,
        }


def judge(bound: Bound, truth: Truth) -> Status:
    """Compare a bound with the truth; only an enclosure that lies wholly on the wrong side is a violation.

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
    """Return by how much the truth surely breaks the bound; positive exactly where ``judge`` may say VIOLATED."""
    below, above = bound.value - truth.high, truth.low - bound.value
    return {Sense.AT_LEAST: below, Sense.AT_MOST: above, Sense.EQUAL: max(below, above)}[bound.sense]


def finite_or_none(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None
