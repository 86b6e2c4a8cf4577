"""diffprivlib's LinearRegression: noise on the squares of a feature is scaled by its lower bound alone.

With bounds (0, 1) that is no noise at all; with bounds (-1, 1) the lower bound is as large as the upper one, and nothing
is found. Rows keep away from 0, where the fit has no minimum and does not end.
"""

from __future__ import annotations

from hypothesis import strategies as st

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, neighbours

ONE_SIDED, SYMMETRIC = (
    Audit(
        name=f"diffprivlib-regression-{name.replace('_', '-')}",
        mechanism=released(f"diffprivlib_regression.py:{name}", calls="data"),
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.SUBSTITUTE),
        neighbours=neighbours.substitute(st.tuples(st.floats(0.25, 1.0), st.floats(0.0, 1.0)), max_size=3),
        options={"samples": 30_000, "shrink": False},
        expect=expect,
    )
    for name, expect in (("one_sided", "VIOLATION"), ("symmetric", "NO_VIOLATION_FOUND"))
)
