"""OpenDP's Laplace mechanism on integers, of scale 3: the answers 0 and 1."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, Verdict, neighbours


def define(expect: Verdict) -> Audit:
    return Audit(
        name="opendp-integers-laplace",
        mechanism=released("opendp_integers.py:laplace", calls="data"),
        mechanism_is_factory=True,
        claim=PureDP(1.0 / 3.0 + 1e-9, Relation.ANSWERS),
        neighbours=neighbours.fixed([(0, 1)], relation=Relation.ANSWERS),
        options={"samples": 300_000},
        expect=expect,
    )


AUDIT = define(Verdict.VIOLATION)
