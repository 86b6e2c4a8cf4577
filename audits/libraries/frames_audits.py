"""Functions of pandas data frames, as data scientists write them: a noisy table of counts by group.

Noise on the counts is not enough where the groups themselves are read off the data.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd

from dpaudit import Audit, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters import frames

GROUPS = pd.Index(["north", "south", "west"])


def people(*regions: str) -> pd.DataFrame:
    return pd.DataFrame({"region": list(regions)})


PAIRS = [(people("north"), people("north", "north")), (people("north"), people("north", "west"))]


def counts_of_present(frame: Any, rng: np.random.Generator) -> Any:
    counts = frame.groupby("region").size()
    return counts + rng.laplace(size=len(counts))


def counts_of_all(frame: Any, rng: np.random.Generator) -> Any:
    counts = frame["region"].value_counts().reindex(GROUPS, fill_value=0)
    return counts + rng.laplace(size=len(counts))


def define(name: str, function: Any, expect: Verdict) -> Audit:
    return Audit(
        name=f"frames-{name}",
        mechanism=frames.mechanism(function, uses_rng=True),
        claim=PureDP(1.0, Relation.ADD_REMOVE),
        neighbours=functools.partial(neighbours.fixed, PAIRS, relation=Relation.ADD_REMOVE),
        options={"samples": 40_000, "shrink": False},
        expect=expect,
    )


AUDITS = [
    define("groups-present", counts_of_present, Verdict.VIOLATION),
    define("groups-known", counts_of_all, Verdict.NO_VIOLATION_FOUND),
]
