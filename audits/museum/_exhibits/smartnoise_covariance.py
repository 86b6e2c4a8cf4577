"""SmartNoise's covariance of two columns with bounds (0, 1), on rows that lie outside.

The one module is imported alone: the package wants PyTorch, and its models a scikit-learn of 2019.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from audits.museum._exhibits._released import module_alone
from dpaudit import Audit, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters import frames
from dpaudit.adapters._loading import load

COLUMNS = ("age", "income")
ROWS = 2  # public; a release takes milliseconds, most of them in pandas


def make() -> Any:
    covariance = module_alone("snsynth.models.dp_covariance", "smartnoise-synth").DPcovariance
    pandas = load("pandas", extra="libraries")

    def release(frame: Any) -> list[float]:
        bounds = pandas.DataFrame({column: [0.0, 1.0] for column in COLUMNS})
        found: list[float] = covariance(len(frame), list(COLUMNS), bounds, 1.0).release(frame)
        return found

    return frames.mechanism(release, columns=COLUMNS, dtypes=["float64"] * len(COLUMNS))


def define(expect: Verdict) -> Audit:
    row = st.tuples(*[st.floats(-10.0, 10.0)] * len(COLUMNS))
    return Audit(
        name="smartnoise-covariance",
        mechanism=make,
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.SUBSTITUTE),
        neighbours=neighbours.substitute(row, min_size=ROWS, max_size=ROWS),
        options={"samples": 24_000, "detect_factor": 3.0, "shrink": False},
        expect=expect,
    )


AUDIT = define(Verdict.VIOLATION)
