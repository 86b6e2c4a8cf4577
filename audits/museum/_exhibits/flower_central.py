"""Flower's central differential privacy, one round of two clients, in the release in which the formulas were read."""

from __future__ import annotations

from audits.libraries.flower_audits import CLAIM, PAIR
from audits.museum._exhibits._environment import released
from dpaudit import Audit, Relation, Verdict, neighbours

AUDITS = [
    Audit(
        name=f"flower-{name}",
        mechanism=released(f"flower_rounds.py:{name.replace('-', '_')}", calls="data"),
        mechanism_is_factory=True,
        claim=CLAIM,
        neighbours=neighbours.fixed([PAIR], relation=Relation.SUBSTITUTE),
        options={"samples": 10_000},
        expect=expect,
    )
    for name, expect in (
        ("equal-weights", Verdict.NO_VIOLATION_FOUND),
        ("weighted", Verdict.VIOLATION),
        ("adaptive", Verdict.VIOLATION),
    )
]
