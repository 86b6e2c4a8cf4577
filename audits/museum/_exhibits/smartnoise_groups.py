"""smartnoise-sql's noisy counts by city, of which one has a single inhabitant."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import ApproxDP, Audit, Relation, neighbours

OPEN, CENSORED = (
    Audit(
        name=f"smartnoise-groups-{name}",
        mechanism=released(f"smartnoise_queries.py:{name}_groups", calls="data"),
        mechanism_is_factory=True,
        claim=ApproxDP(1.0, 1e-6, Relation.ADD_REMOVE),
        neighbours=neighbours.fixed([(["Bern"] * 40, [*["Bern"] * 40, "Chur"])], relation=Relation.ADD_REMOVE),
        options={"samples": 6_000, "detect_factor": 4.0},  # a release takes some 10 ms
        expect=expect,
    )
    for name, expect in (("open", "VIOLATION"), ("censored", "NO_VIOLATION_FOUND"))
)
