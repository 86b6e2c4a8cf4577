"""OpenDP's randomised response on a bit that is kept with probability 0.75: epsilon log 3."""

from __future__ import annotations

import math

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, Verdict, neighbours

EPSILON = math.log(3.0) * (1.0 + 1e-9)  # the library rounds up


def define(expect: Verdict) -> Audit:
    return Audit(
        name="opendp-randomized-response",
        mechanism=released("opendp_early.py:response", calls="data"),
        mechanism_is_factory=True,
        claim=PureDP(EPSILON, Relation.SUBSTITUTE),
        neighbours=neighbours.fixed([(True, False)], relation=Relation.SUBSTITUTE),
        options={"samples": 50_000},
        expect=expect,
    )


AUDIT = define(Verdict.VIOLATION)
