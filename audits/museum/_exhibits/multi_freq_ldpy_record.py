"""multi-freq-ldpy's RS+FD[GRR] on two bits: epsilon for each attribute, and more for the record."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, neighbours

RECORD, ATTRIBUTE = (
    Audit(
        name=f"multi-freq-ldpy-{name}",
        mechanism=released("multi_freq_ldpy_record.py:report"),
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.SUBSTITUTE),
        neighbours=neighbours.fixed([pair], relation=Relation.SUBSTITUTE),
        options={"samples": 60_000},
        expect=expect,
    )
    for name, pair, expect in (
        ("record", (0, 3), "VIOLATION"),
        ("attribute", (0, 2), "NO_VIOLATION_FOUND"),
    )
)
