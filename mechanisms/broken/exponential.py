"""Broken exponential mechanisms: a wrong utility, or a wrong sensitivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.claims import Relation

from ..exponential import ExponentialMechanism, FilmRecommendation, answer_at


def farthest_film(data: Any, film: float) -> float:
    """The utility printed in the notes: the distance to the nearest film of the data, largest far away."""
    return float(np.min(np.abs(np.asarray(data, dtype=np.float64) - film)))


def printed_film_recommendation(
    epsilon: float = 1.0, films: tuple[float, ...] = (1.5, 3.0, 5.0, 9.0), low: float = 0.0, high: float = 10.0
) -> FilmRecommendation:
    """The notes' film example as printed: it recommends the film farthest from everything liked (docs/theory.md R20).

    The bug is in the utility, not in the privacy: its sensitivity is the same, and the mechanism keeps its claim.

    >>> np.exp(printed_film_recommendation().law([1.0, 2.0]).log_prob([1.5, 3.0, 5.0, 9.0])).round(4)
    array([0.2201, 0.2257, 0.2495, 0.3047])
    """
    return FilmRecommendation(epsilon, films, low, high, utility=farthest_film)


def missing_factor_two(epsilon: float = 1.0, candidates: int = 5) -> ExponentialMechanism:
    """Weights ``exp(epsilon u / sensitivity)`` for utilities that move both ways: the true epsilon is twice the claim.

    The weight of one candidate rises by epsilon while the others, which carry the normalisation, fall by as much; the
    supremum 2 epsilon is approached when the others outweigh it.
    """
    return ExponentialMechanism(epsilon, tuple(range(candidates)), answer_at, relation=Relation.ANSWERS, monotone=True)
