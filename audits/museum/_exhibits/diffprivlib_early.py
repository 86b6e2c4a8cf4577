"""diffprivlib 0.2.1: the bits of its Laplace noise, and its Wishart mechanism, which is not private at all.

Only ``diffprivlib.mechanisms`` is imported: the models of that time need a scikit-learn that no longer installs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from audits.museum._exhibits._released import module_alone
from dpaudit import Audit, PureDP, Relation, neighbours
from dpaudit.adapters import diffprivlib


def laplace() -> Any:
    mechanisms = module_alone("diffprivlib.mechanisms", "diffprivlib")
    return diffprivlib.mechanism(mechanisms.Laplace().set_epsilon(1.0).set_sensitivity(1.0))


def second_moment(rows: Any) -> Any:
    table = np.asarray(rows, dtype=np.float64).reshape(-1, 1)
    return table.T @ table


def wishart() -> Any:
    mechanisms = module_alone("diffprivlib.mechanisms", "diffprivlib")
    perturb = mechanisms.Wishart().set_epsilon(1.0).set_sensitivity(1.0)  # the largest norm of a row
    return diffprivlib.mechanism(perturb, query=second_moment)


VALUE, BITS = (
    Audit(
        name=f"diffprivlib-early-laplace-{channel}",
        mechanism=laplace,
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
    mechanism=wishart,
    mechanism_is_factory=True,
    claim=PureDP(1.0, Relation.SUBSTITUTE),
    neighbours=neighbours.substitute(st.floats(-1.0, 1.0), max_size=3),
    options={"samples": 30_000},
    expect="VIOLATION",
)
