"""OpenDP's randomised response on bit vectors: one byte, one bit of it replaced.

The claim is what the measurement's own map states for two people whose bit vectors differ as these do.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from dpaudit import Audit, PureDP, Relation, neighbours
from dpaudit.adapters import opendp

FLIP = 0.9
BITS = 2
FIXED = tuple(map(int, version("opendp").split(".")[:2])) >= (0, 15)


def measurement() -> Any:
    dp = opendp.prelude("contrib")
    space = dp.bitvector_domain(max_weight=BITS), dp.discrete_distance()
    return dp.m.make_randomized_response_bitvec(*space, f=FLIP)


MEASUREMENT = measurement()
CLAIM = PureDP(float(MEASUREMENT.map(1)), Relation.SUBSTITUTE)
AUDIT = Audit(
    name="opendp-randomized-response-bitvec",
    mechanism=opendp.mechanism(MEASUREMENT),
    claim=CLAIM,
    neighbours=neighbours.fixed([(bytes([1 << bit]), bytes([0])) for bit in range(8)], relation=Relation.SUBSTITUTE),
    options={"samples": 200_000},
    expect="NO_VIOLATION_FOUND" if FIXED else "VIOLATION",
)
