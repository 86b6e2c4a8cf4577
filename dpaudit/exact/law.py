"""Protocols of exact output laws, and of mechanisms that declare theirs."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import shorten
from dpaudit.errors import LawError


@runtime_checkable
class Law(Protocol):
    """An exact output distribution.

    ``log_prob`` is the log-probability of discrete outcomes, and the log-density (or, at an atom, the log-mass) of real
    ones; minus infinity outside the support, never NaN.
    """

    def log_prob(self, outputs: Any) -> NDArray[np.float64]:
        """Log-probability or log-density of each output."""

    def sample(self, size: int, rng: np.random.Generator) -> Any:
        """Return ``size`` independent draws."""


@runtime_checkable
class HasLaw(Protocol):
    """A mechanism that declares its exact output law for given data."""

    def law(self, data: Any) -> Law:
        """Return the law of one output on ``data``."""


def checked_law(law: Any, origin: str = "the argument", where: str = "") -> Any:
    """Return ``law`` if it is a law of this package or has the methods of one; raise LawError otherwise.

    Otherwise two equal values that are not laws would be called perfectly private.
    """
    if isinstance(law, type) or not (hasattr(law, "form") or isinstance(law, Law)):
        raise LawError(
            f"{origin} is {shorten(law)} of type {type(law).__name__}, which is no law. Use a law of dpaudit.exact, such as "
            f"exact.Laplace(0.0, 1.0) or exact.Discrete({{'yes': 0.5, 'no': 0.5}}).{where}"
        )
    return law
