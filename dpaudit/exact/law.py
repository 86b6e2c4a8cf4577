"""Protocols of exact output laws, and of mechanisms that declare theirs."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


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
