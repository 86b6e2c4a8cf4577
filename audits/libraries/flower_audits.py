"""Flower's central differential privacy, one round of two clients; the claim is what its noise multiplier means.

Equal weights keep it. Two things do not:

- weighted averaging, its default: the noise is that of equal weights, whatever the number of examples (an accountant, which
  newer releases have, refuses unequal weights; nothing does without one)
- adaptive clipping: the norm shrinks where clients are clipped, and the noise is that of the norm that has just shrunk

Without the library there is nothing to collect.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from dpaudit import Audit, GaussianDP, Relation, Verdict, neighbours
from dpaudit.adapters import flower
from dpaudit.adapters._loading import load
from dpaudit.errors import InvalidArgument

INSTALLED = importlib.util.find_spec("flwr") is not None
CLIENTS = 2
CLAIM = GaussianDP(2.0, Relation.SUBSTITUTE)
# Both clients are beyond the clipping norm, 1; the first turns round.
PAIR = np.array([[3.0], [3.0]]), np.array([[-3.0], [3.0]])
FIXED = {"clipping_norm": 1.0}
ADAPTIVE = {"initial_clipping_norm": 1.0, "clip_norm_lr": 1.0, "clipped_count_stddev": 1.0}


def central(kind: str, arguments: dict[str, Any], examples: tuple[int, ...] | None = None) -> Any:
    """The round as a mechanism, once the strategy has stated the claim."""
    strategies = load("flwr.serverapp.strategy", extra="libraries")

    def make() -> Any:
        wrapper = getattr(strategies, f"DifferentialPrivacyServerSide{kind}Clipping")
        return wrapper(strategies.FedAvg(), noise_multiplier=1.0, num_sampled_clients=CLIENTS, **arguments)

    stated = flower.claim(make(), Relation.SUBSTITUTE)
    if not stated.is_at_least_as_strong_as(CLAIM.at(CLAIM.mu * (1.0 + 1e-9))):
        raise InvalidArgument(f"the strategy states {stated!r}, weaker than the {CLAIM!r} that is audited.")
    flower.TrainingRound(make, examples)(PAIR[0])  # an error of ours must not pass for what the library releases
    return flower.mechanism(make, examples=examples)


def define(name: str, expect: Verdict, *arguments: Any) -> Audit:
    return Audit(
        name=f"flower-{name}",
        mechanism=functools.partial(central, *arguments),
        mechanism_is_factory=True,
        claim=CLAIM,
        neighbours=functools.partial(neighbours.fixed, [PAIR], relation=Relation.SUBSTITUTE),
        options={"samples": 10_000},
        expect=expect,
    )


def rounds() -> list[Audit]:
    return [
        define("equal-weights", Verdict.NO_VIOLATION_FOUND, "Fixed", FIXED),
        define("weighted", Verdict.VIOLATION, "Fixed", FIXED, (3, 1)),
        define("adaptive", Verdict.VIOLATION, "Adaptive", ADAPTIVE),
    ]


AUDITS = rounds() if INSTALLED else []
