"""Registry entries of importance weighting: the mechanism near its worst case, and four broken ones."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dpaudit import neighbours
from dpaudit.claims import Relation

from ..broken.importance_weighting import (
    ForgottenRegularisation,
    PerCoordinateNoise,
    PublicFromPrivate,
    WeightsWithoutNoise,
)
from ..importance_weighting import ImportanceWeighting, worst_case
from . import Entry, Truth, entry


def entries() -> list[Entry]:
    """Return the sound one, then the broken ones. Of a bracket, the pair reaches the first number; no data pass the second."""
    public, data, neighbour = worst_case(dimension=8, private_size=200)
    right = ImportanceWeighting(public, epsilon=1.0, regularisation=0.05)
    per_coordinate, forgotten = PerCoordinateNoise(right), ForgottenRegularisation(right)
    tied = np.array([[0.5, 0.5]] * 3), np.array([[0.5, 0.5]] * 2 + [[1.0, 0.0]])

    def made(name: str, mechanism: Any, pair: Any, truth: Truth, bug: str | None = None) -> Entry:
        where = functools.partial(neighbours.fixed, [pair], relation=Relation.SUBSTITUTE)
        source = "after Ji and Elkan 2013; reconstructed"
        return entry(f"importance-weighting{name}", lambda: mechanism, where, truth, source, bug)

    worst = data, neighbour
    return [
        made("", right, worst, (right.pair_epsilon(*worst), 1.0)),
        made(
            "-per-coordinate",
            per_coordinate,
            worst,
            (per_coordinate.pair_epsilon(*worst), math.sqrt(8.0)),
            "Independent Laplace noise on the coordinates is scaled by the l2 sensitivity.",
        ),
        made(
            "-without-lambda",
            forgotten,
            worst,
            (forgotten.pair_epsilon(*worst), 1.0 / 0.05),
            "The sensitivity lacks the factor 1 / lambda.",
        ),
        made(
            "-public-from-private",
            PublicFromPrivate(1.0, 0.1),
            tied,
            math.inf,
            "The public records are the private ones, and equal records get equal weights.",
        ),
        made("-without-noise", WeightsWithoutNoise(right), worst, math.inf, "The weights are published without noise."),
    ]
