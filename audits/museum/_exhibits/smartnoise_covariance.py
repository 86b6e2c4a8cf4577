"""SmartNoise's covariance of two columns with bounds (0, 1), on rows that lie outside."""

from __future__ import annotations

from hypothesis import strategies as st

from audits.museum._exhibits._environment import released
from dpaudit import Audit, PureDP, Relation, Verdict, neighbours

ROWS = 2  # public; a release takes milliseconds, most of them in pandas


def define(expect: Verdict) -> Audit:
    row = st.tuples(st.floats(-10.0, 10.0), st.floats(-10.0, 10.0))
    return Audit(
        name="smartnoise-covariance",
        mechanism=released("smartnoise_covariance.py:release"),
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.SUBSTITUTE),
        neighbours=neighbours.substitute(row, min_size=ROWS, max_size=ROWS),
        options={"samples": 48_000, "detect_factor": 3.0, "shrink": False},
        expect=expect,
    )


AUDIT = define(Verdict.VIOLATION)
