"""The interface that all privacy claims share, neighbouring relations, and verdicts."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable
from dataclasses import MISSING, replace
from typing import Protocol, Self, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import did_you_mean
from dpaudit.errors import InvalidArgument


class Relation(enum.Enum):
    """The neighbouring relation: which pairs of data sets a claim is about."""

    SUBSTITUTE = "substitute"
    """Same size, one row replaced; the size is public."""
    ADD_REMOVE = "add-remove"
    """One row more or less."""
    ZERO_OUT = "zero-out"
    """One row replaced by a fixed null row; size and denominators are public."""
    ANSWERS = "answers"
    """Vectors of query answers; each entry moves by at most the sensitivity."""
    USERS_SUBSTITUTE = "users-substitute"
    """All rows of one person replaced."""
    USERS_ADD_REMOVE = "users-add-remove"
    """All rows of one person added or removed."""
    SECRETS = "secrets"
    """Pufferfish: two secrets; the data are drawn again in every trial."""

    def __repr__(self) -> str:
        return f"Relation.{self.name}"


class Verdict(enum.Enum):
    """The outcome of a check. It is never called "passed" or "is private"."""

    VIOLATION = "VIOLATION"
    """The claim is false, up to the stated probability of a false alarm."""
    NO_VIOLATION_FOUND = "NO_VIOLATION_FOUND"
    """Nothing was found, and a leak of the stated size would have been. This is no proof of privacy."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """The audit could not decide; this is no sign of privacy."""

    def __str__(self) -> str:
        return self.value


@runtime_checkable
class Claim(Protocol):
    """A privacy statement: the interface that all claims share."""

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation that the claim is made for, or None if it names none."""

    @property
    def parameter(self) -> float:
        """The number that grows as the claim weakens: epsilon, rho or mu."""

    @property
    def parameter_name(self) -> str:
        """The name of that parameter."""

    def at(self, parameter: float) -> Self:
        """Return the same kind of claim with another value of its parameter."""

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def delta(self, epsilon: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """Return the largest hockey-stick divergence that the claim allows at ``epsilon >= 0``."""

    def is_at_least_as_strong_as(self, other: Claim) -> bool:
        """Return True if keeping this claim is known to imply keeping the other one."""


class Profile:
    """The part that all claims share. Subclasses define ``_delta`` for an array of non-negative epsilons."""

    __slots__ = ()

    relation: Relation | None
    parameter_name: str = "epsilon"

    @property
    def parameter(self) -> float:
        """The number that grows as the claim weakens."""
        return float(getattr(self, self.parameter_name))

    def at(self, parameter: float) -> Self:
        """Return the same kind of claim with another value of its parameter."""
        return replace(self, **{self.parameter_name: parameter})  # type: ignore[type-var]

    _delta: Callable[[NDArray[np.float64]], NDArray[np.float64]]

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def delta(self, epsilon: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """Return the largest hockey-stick divergence that the claim allows at ``epsilon >= 0`` (a number or an array)."""
        grid = np.asarray(epsilon, dtype=np.float64)
        if not (grid >= 0.0).all():  # also catches NaN
            raise InvalidArgument(f"epsilon={epsilon!r} must be zero or positive; a privacy profile starts at 0.")
        values = np.clip(self._delta(grid.reshape(-1)), 0.0, 1.0)
        return float(values[0]) if grid.ndim == 0 else values.reshape(grid.shape)

    def is_at_least_as_strong_as(self, other: Claim) -> bool:
        """Return True if keeping this claim is known to imply keeping ``other``.

        The relation must be the same one, or not be named by ``other``. Claims of one kind compare by their
        parameters; an (epsilon, delta) claim follows from any profile that is at most delta at epsilon, and pure DP
        implies the moment claims through the known conversions. ``False`` means "not implied, as far as is known".

        >>> from dpaudit import PureDP, ZeroConcentratedDP
        >>> PureDP(1.0).is_at_least_as_strong_as(ZeroConcentratedDP(0.5))
        True
        >>> ZeroConcentratedDP(0.5).is_at_least_as_strong_as(PureDP(1.0))
        False
        """
        if other.relation is not None and other.relation is not self.relation:
            return False
        from dpaudit.claims.implications import implies  # here, because that module imports this one

        return implies(self, other)


def as_relation(relation: object) -> Relation | None:
    """Return the relation of a claim, which may be given by its value, as ``repr`` shows it."""
    if relation is None or isinstance(relation, Relation):
        return relation
    with contextlib.suppress(ValueError):
        return Relation(relation)
    if isinstance(relation, float | int) and not isinstance(relation, bool):
        raise InvalidArgument(
            f"relation={relation!r} must be None or a Relation. Is it a delta? That is another claim: "
            f"ApproxDP(epsilon, {relation!r})."
        )
    known = ", ".join(map(repr, Relation))
    hint = did_you_mean(relation, [member.value for member in Relation])
    raise InvalidArgument(f"relation={relation!r} must be None or one of {known}, or the value of one.{hint}")


def readable(claim: object) -> str:
    """Return a claim as the call that makes it; fields with their default value are left out after the first."""
    fields = claim.__dataclass_fields__  # type: ignore[attr-defined]
    shown = [
        f"{name}={getattr(claim, name)!r}"
        for name, field in fields.items()
        if name != "relation" and (field.default is MISSING or getattr(claim, name) != field.default)
    ]
    relation = getattr(claim, "relation", None)
    if relation is not None:
        shown.append(f"relation={relation.value!r}")
    return f"{type(claim).__name__}({', '.join(shown)})"
