"""opendp.measurements.make_base_laplace at answers 0 and 1: values keep the claim, bits do not."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, Verdict, neighbours


def define(channel: str, expect: Verdict) -> Audit:
    return Audit(
        name=f"opendp-base-laplace-{channel}",
        mechanism=released("opendp_early.py:laplace", calls="data"),
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.ANSWERS),
        neighbours=neighbours.fixed([(0.0, 1.0)], relation=Relation.ANSWERS),
        options={"samples": 30_000, "channel": channel},
        expect=expect,
    )


AUDITS = [define("value", Verdict.NO_VIOLATION_FOUND), define("representation", Verdict.VIOLATION)]
