"""OpenDP's randomised response on a bit that is kept with probability 0.75: epsilon log 3."""

from __future__ import annotations

import math
from typing import Any

from dpaudit import Audit, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters._loading import load
from dpaudit.errors import InvalidArgument

KEPT = 0.75
EPSILON = math.log(KEPT / (1.0 - KEPT)) * (1.0 + 1e-9)  # the library rounds up


def make() -> Any:
    load("opendp.mod", extra="libraries").enable_features("contrib", "floating-point")
    measurement = load("opendp.meas", extra="libraries").make_randomized_response_bool(prob=KEPT)
    if not measurement.check(1, EPSILON):
        raise InvalidArgument(f"OpenDP does not claim epsilon={EPSILON!r} for two people whose bits differ.")
    return measurement


def define(expect: Verdict) -> Audit:
    return Audit(
        name="opendp-randomized-response",
        mechanism=make,
        mechanism_is_factory=True,
        claim=PureDP(EPSILON, Relation.SUBSTITUTE),
        neighbours=neighbours.fixed([(True, False)], relation=Relation.SUBSTITUTE),
        options={"samples": 50_000},
        expect=expect,
    )


AUDIT = define(Verdict.VIOLATION)
