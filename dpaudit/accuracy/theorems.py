"""The registry of all accuracy statements of the sources, in the order in which they appear."""

from __future__ import annotations

from dpaudit._util.validation import did_you_mean
from dpaudit.accuracy.statements import deciles, derived, inverse, others, slides, threshold
from dpaudit.accuracy.theorem import Effort, Theorem, TheoremForm
from dpaudit.errors import InvalidArgument

__all__ = ["THEOREMS", "Effort", "Theorem", "TheoremForm", "find_theorem", "names"]

THEOREMS: tuple[Theorem, ...] = (
    *threshold.THEOREMS,
    *deciles.THEOREMS,
    *derived.THEOREMS,
    *slides.THEOREMS,
    *inverse.THEOREMS,
    *others.THEOREMS,
)


def names() -> tuple[str, ...]:
    """Names of all theorems."""
    return tuple(theorem.name for theorem in THEOREMS)


def find_theorem(name: str) -> Theorem:
    """Return the theorem of that name.

    >>> find_theorem("mean-error-closed").source
    'slides, closed form 5/5'
    """
    for theorem in THEOREMS:
        if theorem.name == name:
            return theorem
    raise InvalidArgument(
        f"theorem={name!r} is not known; choose from {', '.join(names())}.{did_you_mean(name, names())}"
    )
