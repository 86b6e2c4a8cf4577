"""diffprivlib.mechanisms.Laplace at answers 0 and 1: values keep the claim, bits do not."""

from __future__ import annotations

from typing import Any

from dpaudit import Audit, PureDP, Relation, neighbours
from dpaudit.adapters import diffprivlib
from dpaudit.adapters._loading import load


def make() -> Any:
    mechanisms = load("diffprivlib.mechanisms", extra="libraries")
    return diffprivlib.mechanism(mechanisms.Laplace(epsilon=1.0, sensitivity=1.0))


VALUE, BITS = (
    Audit(
        name=f"diffprivlib-laplace-{channel}",
        mechanism=make,
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.ANSWERS),
        neighbours=neighbours.fixed([(0.0, 1.0)], relation=Relation.ANSWERS),
        options={"samples": 30_000, "channel": channel},
        expect=expect,
    )
    for channel, expect in (("value", "NO_VIOLATION_FOUND"), ("representation", "VIOLATION"))
)
