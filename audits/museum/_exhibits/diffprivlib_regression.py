"""diffprivlib's LinearRegression: noise on the squares of a feature is scaled by its lower bound alone.

With bounds (0, 1) that is no noise at all; with bounds (-1, 1) the lower bound is as large as the upper one, and nothing
is found. Rows keep away from 0, where the fit has no minimum and does not end.
"""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import strategies as st

from dpaudit import Audit, PureDP, Relation, neighbours
from dpaudit.adapters import diffprivlib
from dpaudit.adapters._loading import load


def fit(lower: float) -> Any:
    library = load("diffprivlib", extra="libraries")

    def make() -> Any:
        return library.models.LinearRegression(
            epsilon=1.0,
            bounds_X=(lower, 1.0),
            bounds_y=(0.0, 1.0),
            fit_intercept=False,
            accountant=library.BudgetAccountant(),
        )

    return diffprivlib.model(make, attributes=["coef_"], target=True)


ONE_SIDED, SYMMETRIC = (
    Audit(
        name=f"diffprivlib-regression-{name}",
        mechanism=functools.partial(fit, lower),
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.SUBSTITUTE),
        neighbours=neighbours.substitute(st.tuples(st.floats(0.25, 1.0), st.floats(0.0, 1.0)), max_size=3),
        options={"samples": 30_000, "shrink": False},
        expect=expect,
    )
    for name, lower, expect in (("one-sided", 0.0, "VIOLATION"), ("symmetric", -1.0, "NO_VIOLATION_FOUND"))
)
