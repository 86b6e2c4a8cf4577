"""dp-accounting's current release: what it says of an event must hold for the mechanism that the event describes.

The mechanisms are written out here, independently of the accountant. Without the library there is nothing to collect.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import Audit, Relation, Verdict, batched, neighbours
from dpaudit.adapters import accounting
from dpaudit.adapters._loading import load

INSTALLED = importlib.util.find_spec("dp_accounting") is not None
Sampler = Callable[[Any, int, np.random.Generator], NDArray[Any]]
ROUNDS, RATE, DELTA = 4, 0.25, 1e-3


def gaussian(data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
    """The sum of values in [-1, 1]; noise multiplier 1."""
    return float(np.sum(data)) + rng.standard_normal(size)


def laplace(data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
    return float(np.sum(data)) + rng.laplace(size=size)


def discrete_laplace(data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Mass proportional to exp(-|k| / 2): the difference of two geometric variables."""
    success = -np.expm1(-0.5)
    return int(np.sum(data)) + rng.geometric(success, size) - rng.geometric(success, size)


def response(data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Four buckets; with probability 0.5 any of them, the true one included."""
    return np.where(rng.random(size) < 0.5, rng.integers(4, size=size), int(data[0]))


def sampled_rounds(data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Noisy sums, each of rows that were chosen by independent coins."""
    table = np.asarray(data, dtype=np.float64)
    chosen = rng.random((size, ROUNDS, table.size)) < RATE
    return chosen @ table + rng.standard_normal((size, ROUNDS))


def event(name: str) -> tuple[Any, float | None]:
    """The event that describes the sampler of this name, and the delta at which its claim is read."""
    events = load("dp_accounting.dp_event", extra="libraries")
    match name:
        case "gaussian":
            return events.GaussianDpEvent(1.0), None
        case "laplace":
            return events.LaplaceDpEvent(1.0), None
        case "discrete-laplace":
            return events.DiscreteLaplaceDpEvent(0.5, 1), None
        case "randomised-response":
            return events.RandomizedResponseDpEvent(0.5, 4), None
        case "gaussian-at-delta":
            return events.GaussianDpEvent(1.0), DELTA
    step = events.PoissonSampledDpEvent(RATE, events.GaussianDpEvent(1.0))
    return events.SelfComposedDpEvent(step, ROUNDS), DELTA


ADDED = [([], [1]), ([1], [1, 1])]
REPLACED = [([0], [1])]
# Name, sampler, relation, pairs.
SAMPLERS: list[tuple[str, Sampler, Relation, list[tuple[Any, Any]]]] = [
    ("gaussian", gaussian, Relation.ADD_REMOVE, ADDED),
    ("gaussian", gaussian, Relation.SUBSTITUTE, [([-1], [1])]),
    ("gaussian-at-delta", gaussian, Relation.ADD_REMOVE, ADDED),
    ("laplace", laplace, Relation.ADD_REMOVE, ADDED),
    ("laplace", laplace, Relation.SUBSTITUTE, [([-1], [1])]),
    ("discrete-laplace", discrete_laplace, Relation.ADD_REMOVE, ADDED),
    ("randomised-response", response, Relation.SUBSTITUTE, REPLACED),
    ("sampled-rounds", sampled_rounds, Relation.ADD_REMOVE, ADDED),
]


def define(name: str, sampler: Sampler, relation: Relation, pairs: list[tuple[Any, Any]]) -> Audit:
    described, delta = event(name)
    return Audit(
        name=f"dp-accounting-{name}-{relation.value}",
        mechanism=batched(sampler),
        claim=accounting.claim(described, relation, delta=delta),
        neighbours=functools.partial(neighbours.fixed, pairs, relation=relation),
        options={"samples": 200_000},
        expect=Verdict.NO_VIOLATION_FOUND,
    )


AUDITS = [define(*row) for row in SAMPLERS] if INSTALLED else []
