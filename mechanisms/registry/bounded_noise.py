"""Registry entries of bounded noise: two calibrations that are met with equality, and three broken ones."""

from __future__ import annotations

import functools
import math

import numpy as np

from dpaudit import neighbours
from dpaudit.claims import Relation

from ..bounded_noise import BoundedNoise
from ..broken.bounded_noise import ClippedNoise, RadiusForLess
from . import Entry, entry

SOURCE = "Dagan and Kur 2022 (density); calibration reconstructed"
# Epsilon at delta = 1e-3 of a hundred queries with the radius of one at (1, 1e-3): composed_epsilon, which a test repeats.
# A number, because the registry must not need dp-accounting.
ONE_QUERY_FOR_HUNDRED = 7.8086


def entries() -> list[Entry]:
    """Return the sound ones, then the broken ones."""
    right = functools.partial(BoundedNoise, 1.0, 1e-3)
    wrong = functools.partial(RadiusForLess, 1.0, 1e-3)
    one, ten = functools.partial(neighbours.answers, 1, 0, 2), functools.partial(neighbours.answers, 10, 0, 2)
    far_apart = functools.partial(neighbours.answers, 1, 0, 20, sensitivity=10.0)
    hundred = functools.partial(neighbours.fixed, [(np.zeros(100), np.ones(100))], relation=Relation.ANSWERS)
    return [
        entry("bounded-noise-one-query", right, one, 1.0, SOURCE),
        entry(
            "bounded-noise-ten-queries",
            functools.partial(right, queries=10, family="p2"),
            ten,
            1.0,
            SOURCE,
            samples=200_000,
        ),
        entry(
            "bounded-noise-radius-for-one-query",
            functools.partial(wrong, queries=100),
            hundred,
            ONE_QUERY_FOR_HUNDRED,
            SOURCE,
            "The radius is that of a single query, but a hundred are answered.",
            samples=100_000,
        ),
        entry(
            "bounded-noise-without-sensitivity",
            functools.partial(wrong, sensitivity=10.0),
            far_apart,
            wrong(sensitivity=10.0).epsilon_exact,
            SOURCE,
            "The radius is that of sensitivity 1, but answers move by 10.",
            samples=400_000,
        ),
        entry(
            "bounded-noise-clipped",
            functools.partial(ClippedNoise, 1.0, 1e-3),
            one,
            math.inf,
            SOURCE,
            "The noise is clipped to half its radius, which leaves atoms that name the answer.",
            samples=400_000,
        ),
    ]
