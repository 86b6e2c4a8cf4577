"""Registry entries of federated averaging: three rounds with their exact mu, and six broken ones."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dpaudit import neighbours
from dpaudit.claims import Relation

from ..broken.federated import (
    LocalDpMod,
    NoiseForConfiguredClients,
    NoiseOfUpdatedNorm,
    TruncatedNoise,
    WeightedAverage,
    ZeroNormRaises,
)
from ..federated import AdaptiveClipping, AdaptiveRound, FederatedAveraging
from ..federated.accounting import RELATIONS
from . import Entry, Truth, entry


def entries() -> list[Entry]:
    """Return the sound rounds, then the broken ones."""

    def made(
        name: str, mechanism: Any, pair: Any, truth: Truth, bug: str | None, relation: Relation, samples: int = 400_000
    ) -> Entry:
        where = functools.partial(neighbours.fixed, [pair], relation=relation)
        source = "Flower 1.28.0 (development), read; accounting recomputed"
        return entry(f"federated-{name}", lambda: mechanism, where, truth, source, bug, samples=samples)

    zero_out, substitute = RELATIONS
    others = np.array([[0.5, -0.5], [0.0, 1.0], [-1.0, 0.25]])
    zeroed = np.vstack([[1.0, 0.0], others]), np.vstack([[0.0, 0.0], others])
    opposite = np.vstack([[1.0, 0.0], others]), np.vstack([[-1.0, 0.0], others])
    one_reply = np.array([[1.0, 0.0]]), np.array([[0.0, 0.0]])
    one_client = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])
    # A hundred clients above the clipping norm; one of them turns round (or stops just below the norm and turns round).
    crowd = np.full((99, 1), 2.0)
    clipped = np.vstack([[2.0], crowd]), np.vstack([[-2.0], crowd])
    edge = np.vstack([[2.0], crowd]), np.vstack([[-1.0], crowd])
    counting = AdaptiveClipping(count_std=5.0, rule="flower")
    adaptive = AdaptiveRound(clipping_norm=1.0, noise_multiplier=1.0, adaptive=counting)
    average = FederatedAveraging(clipping_norm=1.0, noise_multiplier=1.0)
    replaced = FederatedAveraging(clipping_norm=1.0, noise_multiplier=2.0, rounds=4, relation=substitute)
    weighted = WeightedAverage(clipping_norm=1.0, noise_multiplier=1.0, weights=(5.0, 1.0, 1.0, 1.0))
    configured = NoiseForConfiguredClients(clipping_norm=1.0, noise_multiplier=1.0, configured=2)
    local = LocalDpMod(epsilon=1.0, delta=1e-5, clipping_norm=1.0, sensitivity=1.0)
    truncated = TruncatedNoise(clipping_norm=1, noise_multiplier=1.0)
    return [
        made("average", average, zeroed, 1.0, None, zero_out),
        made("average-four-rounds", replaced, opposite, 2.0, None, substitute),
        made("adaptive", adaptive, edge, 2.0, None, substitute),
        made(
            "weighted",
            weighted,
            zeroed,
            weighted.mu_exact,
            "Clients are weighted by their examples, but the noise is that of equal weights.",
            zero_out,
        ),
        made(
            "configured-clients",
            configured,
            one_reply,
            configured.mu_for(1),
            "The noise is divided by the clients asked, the sum by those that replied.",
            zero_out,
        ),
        made(
            "updated-norm",
            NoiseOfUpdatedNorm(right=adaptive),
            clipped,
            math.inf,
            "The noise is scaled by the clipping norm of the next round.",
            substitute,
        ),
        made(
            "local-half-sensitivity",
            local,
            one_client,
            local.epsilon_exact,
            "The sensitivity is the clipping norm; two clipped updates are twice that apart.",
            substitute,
            samples=3_000_000,
        ),
        made(
            "truncated-noise",
            truncated,
            (np.array([1, 0, 0]), np.array([0, 0, 0])),
            truncated.mu_exact,
            "The noise is cast to integers, towards zero.",
            zero_out,
        ),
        made(
            "zero-norm-raises",
            ZeroNormRaises(right=average),
            zeroed,
            math.inf,
            "An update of zero norm raises ZeroDivisionError.",
            zero_out,
        ),
    ]
