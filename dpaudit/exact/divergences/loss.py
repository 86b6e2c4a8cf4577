"""Privacy loss distributions of pairs of discrete laws, and their composition."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.errors import LawError
from dpaudit.exact.divergences.grid import GridPair
from dpaudit.exact.divergences.pair import atom_pairs, log_ratio
from dpaudit.exact.form import Array, Form, log_sum

_MOST_LOSSES = 1 << 22
"""Largest number of distinct losses of a composition."""
_MOST_GRID_POINTS = 1 << 16
"""Largest number of grid points whose losses are listed."""
_EQUAL = 1e-12
"""Losses with at most this difference are equal up to rounding, and merged."""


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """The law of ``log p(X) / q(X)`` for ``X`` from P: finite losses, their log-masses, and that of infinite loss."""

    losses: Array
    log_masses: Array
    log_infinite: float

    def delta(self, epsilon: float) -> float:
        """``E (1 - exp(epsilon - loss))_+``."""
        excess = self.losses - epsilon
        above = excess > _EQUAL
        terms = np.exp(self.log_masses[above]) * -np.expm1(-excess[above])
        return min(1.0, math.fsum([*np.sort(terms), math.exp(self.log_infinite)]))


def loss_distribution(P: Form, Q: Form) -> LossDistribution | None:
    """Return the loss distribution of a pair without densities, or None if there are infinitely many losses.

    On a grid there are finitely many if both laws decay at the same rate, as two discrete Laplace laws of one scale do:
    then the loss is constant towards both infinities.
    """
    if P.continuous is not None or Q.continuous is not None:
        return None
    p, q = atom_pairs(P, Q)
    grid = GridPair.of(P, Q)
    if grid is not None:
        points = grid.finite_losses(_MOST_GRID_POINTS)
        if points is None:
            return None
        p, q = np.concatenate([p, points[0]]), np.concatenate([q, points[1]])
    seen = p > -np.inf
    return _merged(log_ratio(p[seen], q[seen]), p[seen], -math.inf)


def compose(first: LossDistribution, second: LossDistribution) -> LossDistribution:
    """The loss of two independent coordinates: losses add up, probabilities multiply; equal sums are merged."""
    if first.losses.size * second.losses.size > _MOST_LOSSES:
        raise LawError(
            f"The product has up to {first.losses.size * second.losses.size} distinct privacy losses; for exact "
            f"composition at most {_MOST_LOSSES} are kept. Use dp-accounting's PLD, which brackets the value."
        )
    # An output has infinite loss if one of its coordinates has.
    finite_first, finite_second = (log_sum(part.log_masses) for part in (first, second))
    infinite = np.logaddexp.reduce(
        [
            first.log_infinite + finite_second,
            finite_first + second.log_infinite,
            first.log_infinite + second.log_infinite,
        ]
    )
    losses = np.add.outer(first.losses, second.losses).ravel()
    return _merged(losses, np.add.outer(first.log_masses, second.log_masses).ravel(), float(infinite))


def _merged(losses: Array, log_masses: Array, log_infinite: float) -> LossDistribution:
    infinite = losses == np.inf
    log_infinite = float(np.logaddexp(log_infinite, log_sum(log_masses[infinite])))
    losses, log_masses = losses[~infinite], log_masses[~infinite]
    order = np.argsort(losses)
    losses, log_masses = losses[order], log_masses[order]
    if losses.size == 0:
        return LossDistribution(losses, log_masses, log_infinite)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(losses) > _EQUAL * (1.0 + np.abs(losses[1:]))]))
    return LossDistribution(losses[starts], np.logaddexp.reduceat(log_masses, starts), log_infinite)
