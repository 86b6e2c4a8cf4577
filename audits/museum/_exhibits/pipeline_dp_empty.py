"""PipelineDP's count of people in a public partition: of one person or nobody, and of two or one."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import ApproxDP, Audit, Relation, neighbours

EMPTY, ONE = (
    Audit(
        name=f"pipeline-dp-{name}",
        mechanism=released("pipeline_dp_count.py:count"),
        mechanism_is_factory=True,
        claim=ApproxDP(1.0, 1e-6, Relation.ADD_REMOVE),
        neighbours=neighbours.fixed([pair], relation=Relation.ADD_REMOVE),
        options={"samples": 6_000, "detect_factor": 4.0},
        expect=expect,
    )
    for name, pair, expect in (("empty", ([], [1]), "VIOLATION"), ("one", ([1], [1, 2]), "NO_VIOLATION_FOUND"))
)
