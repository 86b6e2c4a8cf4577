"""OpenDP's randomised response on bit vectors: one byte, one bit of it replaced.

The claim is what the measurement's own map states for two people whose bit vectors differ as these do.
"""

from __future__ import annotations

import math

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, Verdict, neighbours

FLIP, BITS = 0.9, 2
EPSILON = 2 * BITS * math.log((2.0 - FLIP) / FLIP) * (1.0 + 1e-9)  # the library rounds up


def define(expect: Verdict) -> Audit:
    return Audit(
        name="opendp-randomized-response-bitvec",
        mechanism=released("opendp_bitvec.py:bits", calls="data"),
        mechanism_is_factory=True,
        claim=PureDP(EPSILON, Relation.SUBSTITUTE),
        neighbours=neighbours.fixed(
            [(bytes([1 << bit]), bytes([0])) for bit in range(8)], relation=Relation.SUBSTITUTE
        ),
        options={"samples": 200_000},
        expect=expect,
    )


AUDIT = define(Verdict.VIOLATION)
