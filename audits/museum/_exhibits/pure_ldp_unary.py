"""pure-LDP's unary encoding: the true entry is set with probability p, and where it is not, keeps the noise it already had."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, Verdict, neighbours


def define(expect: Verdict) -> list[Audit]:
    return [
        Audit(
            name=f"pure-ldp-unary-{name}",
            mechanism=released(f"pure_ldp_unary.py:{name}"),
            mechanism_is_factory=True,
            claim=PureDP(1.0, Relation.SUBSTITUTE),
            neighbours=neighbours.fixed([(0, 1), (1, 3)], relation=Relation.SUBSTITUTE),
            options={"samples": 100_000},
            expect=expect,
        )
        for name in ("symmetric", "optimised")
    ]


AUDITS = define(Verdict.VIOLATION)
