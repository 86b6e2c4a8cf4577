"""diffprivlib 0.2.1: the bits of its Laplace noise, and its Wishart mechanism, which is not private at all."""

from __future__ import annotations

from hypothesis import strategies as st

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, neighbours

VALUE, BITS = (
    Audit(
        name=f"diffprivlib-early-laplace-{channel}",
        mechanism=released("diffprivlib_early.py:laplace"),
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.ANSWERS),
        neighbours=neighbours.fixed([(0.0, 1.0)], relation=Relation.ANSWERS),
        options={"samples": 30_000, "channel": channel},
        expect=expect,
    )
    for channel, expect in (("value", "NO_VIOLATION_FOUND"), ("representation", "VIOLATION"))
)
WISHART = Audit(
    name="diffprivlib-early-wishart",
    mechanism=released("diffprivlib_early.py:wishart"),
    mechanism_is_factory=True,
    claim=PureDP(1.0, Relation.SUBSTITUTE),
    neighbours=neighbours.substitute(st.floats(-1.0, 1.0), max_size=3),
    options={"samples": 30_000},
    expect="VIOLATION",
)
