"""OpenDP's randomised response on bit vectors: one byte, one bit of it replaced.

The claim is what the measurement's own map states for two people whose bit vectors differ as these do.
"""

from __future__ import annotations

import math
from typing import Any

from dpaudit import Audit, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters import opendp
from dpaudit.errors import InvalidArgument

FLIP = 0.9
BITS = 2
EPSILON = 2 * BITS * math.log((2.0 - FLIP) / FLIP) * (1.0 + 1e-9)  # the library rounds up


def make() -> Any:
    dp = opendp.prelude("contrib")
    space = dp.bitvector_domain(max_weight=BITS), dp.discrete_distance()
    measurement = dp.m.make_randomized_response_bitvec(*space, f=FLIP)
    stated = opendp.claim(measurement, Relation.SUBSTITUTE)
    if not stated.is_at_least_as_strong_as(PureDP(EPSILON)):
        raise InvalidArgument(f"OpenDP states {stated!r}, weaker than the epsilon={EPSILON!r} that is audited.")
    return opendp.mechanism(measurement)


def define(expect: Verdict) -> Audit:
    return Audit(
        name="opendp-randomized-response-bitvec",
        mechanism=make,
        mechanism_is_factory=True,
        claim=PureDP(EPSILON, Relation.SUBSTITUTE),
        neighbours=neighbours.fixed(
            [(bytes([1 << bit]), bytes([0])) for bit in range(8)], relation=Relation.SUBSTITUTE
        ),
        options={"samples": 200_000},
        expect=expect,
    )


AUDIT = define(Verdict.VIOLATION)
