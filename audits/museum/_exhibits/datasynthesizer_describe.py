"""DataSynthesizer's noisy histogram of one column, with its default arguments: its seed is 0, and its bounds are exact."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, neighbours

AUDIT = Audit(
    name="datasynthesizer-describe",
    mechanism=released("datasynthesizer_describe.py:describe"),
    mechanism_is_factory=True,
    claim=PureDP(1.0, Relation.SUBSTITUTE),
    neighbours=neighbours.fixed([([20, 30, 40, 50], [20, 30, 40, 60])], relation=Relation.SUBSTITUTE),
    options={"samples": 400, "shrink": False},
    expect="VIOLATION",
)
