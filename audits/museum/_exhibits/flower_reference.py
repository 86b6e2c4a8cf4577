"""Flower's formulas as mechanisms/ has them: where clients are weighted, and where the clipping norm adapts.

The same clients, all of them beyond the clipping norm, and the same noise of the norm that was just updated: with the rule
of Andrew et al. the norm grows and nothing is found; with Flower's sign it shrinks, and so does the noise.
"""

from __future__ import annotations

import numpy as np

from dpaudit import Audit, Relation, Verdict, neighbours
from mechanisms.broken.federated import NoiseOfUpdatedNorm, WeightedAverage
from mechanisms.federated import AdaptiveClipping, AdaptiveRound

CROWD = np.full((19, 1), 3.0)
TURNED = np.vstack([[3.0], CROWD]), np.vstack([[-3.0], CROWD])
OPPOSITE = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])


def adapted(rule: str) -> NoiseOfUpdatedNorm:
    clipping = AdaptiveClipping(count_std=1.0, learning_rate=1.0, rule=rule)
    return NoiseOfUpdatedNorm(right=AdaptiveRound(clipping_norm=1.0, noise_multiplier=1.0, adaptive=clipping))


weighted = WeightedAverage(
    clipping_norm=1.0, noise_multiplier=1.0, weights=(5.0, 1.0, 1.0, 1.0), relation=Relation.SUBSTITUTE
)
WEIGHTED = Audit(
    name="flower-reference-weighted",
    mechanism=weighted,
    claim=weighted.claim,
    neighbours=neighbours.fixed([(OPPOSITE, OPPOSITE * [[-1.0], [1.0], [1.0], [1.0]])], relation=Relation.SUBSTITUTE),
    options={"samples": 100_000},
    expect=Verdict.VIOLATION,
)
SIGN, RIGHT_SIGN = (
    Audit(
        name=f"flower-reference-adaptive-{rule}",
        mechanism=adapted(rule),
        claim=adapted(rule).claim,
        neighbours=neighbours.fixed([TURNED], relation=Relation.SUBSTITUTE),
        options={"samples": 100_000},
        expect=expect,
    )
    for rule, expect in (("flower", Verdict.VIOLATION), ("andrew", Verdict.NO_VIOLATION_FOUND))
)
