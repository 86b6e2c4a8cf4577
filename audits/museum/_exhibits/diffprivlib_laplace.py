"""diffprivlib.mechanisms.Laplace at answers 0 and 1: values keep the claim, bits do not."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, neighbours

VALUE, BITS = (
    Audit(
        name=f"diffprivlib-laplace-{channel}",
        mechanism=released("diffprivlib_laplace.py:laplace"),
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.ANSWERS),
        neighbours=neighbours.fixed([(0.0, 1.0)], relation=Relation.ANSWERS),
        options={"samples": 30_000, "channel": channel},
        expect=expect,
    )
    for channel, expect in (("value", "NO_VIOLATION_FOUND"), ("representation", "VIOLATION"))
)
