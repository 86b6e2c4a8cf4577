"""OpenDP's Laplace and Gaussian mechanisms on integers, of scale 3: the answers 0 and 1."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, Verdict, ZeroConcentratedDP, neighbours
from dpaudit.claims import Claim

CLAIMS: dict[str, Claim] = {
    "laplace": PureDP(1.0 / 3.0 + 1e-9, Relation.ANSWERS),
    "gaussian": ZeroConcentratedDP(1.0 / 18.0 + 1e-9, Relation.ANSWERS),
}


def define(expect: Verdict) -> list[Audit]:
    return [
        Audit(
            name=f"opendp-integers-{name}",
            mechanism=released(f"opendp_integers.py:{name}", calls="data"),
            mechanism_is_factory=True,
            claim=claim,
            neighbours=neighbours.fixed([(0, 1)], relation=Relation.ANSWERS),
            options={"samples": 300_000},
            expect=expect,
        )
        for name, claim in CLAIMS.items()
    ]


AUDITS = define(Verdict.VIOLATION)
