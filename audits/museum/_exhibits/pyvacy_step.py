"""pyvacy's DPSGD: one step on a batch of 16 rows. The noise multiplier 8 means mu = 2/8 where a row is replaced."""

from __future__ import annotations

from audits.museum._exhibits._environment import released
from dpaudit import Audit, GaussianDP, Relation, neighbours

BATCH = 16
PAIR = [100.0] + [0.0] * (BATCH - 1), [-100.0] + [0.0] * (BATCH - 1)
AUDIT = Audit(
    name="pyvacy-step",
    mechanism=released("pyvacy_step.py:step"),
    mechanism_is_factory=True,
    claim=GaussianDP(2.0 / 8.0, Relation.SUBSTITUTE),
    neighbours=neighbours.fixed([PAIR], relation=Relation.SUBSTITUTE),
    options={"samples": 30_000},
    expect="VIOLATION",
)
