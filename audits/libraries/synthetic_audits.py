"""Synthesisers by ``fit`` and ``sample``: noisy marginals, refuted where categories of the data leave with the rows.

They need no library.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dpaudit import Audit, Verdict, neighbours
from dpaudit.adapters import synthetic
from mechanisms.synthesis import MarginalSynthesis

INSTALLED = True
COLUMNS = ("a", "b"), ("x", "y", "z")
MARGINALS = MarginalSynthesis(1.0, COLUMNS, rows=3)
PAIR = [("a", "x")], [("a", "x"), ("b", "z")]


class Synthesiser:
    """Noisy marginals with the interface of a synthesiser; it keeps the categories that it has seen."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def fit(self, table: Any) -> None:
        self.seen_ = sorted({row[1] for row in table})
        self.release = MARGINALS.sample(table, 1, self.rng)[0]

    def sample(self, n: int) -> Any:
        return MARGINALS.table(self.release)[:n]


def define(name: str, expect: Verdict, **options: Any) -> Audit:
    return Audit(
        name=f"synthetic-{name}",
        mechanism=synthetic.mechanism(Synthesiser, rows=3, domain=dict(enumerate(COLUMNS)), **options),
        claim=MARGINALS.claim,
        neighbours=functools.partial(neighbours.fixed, [PAIR], relation=MARGINALS.relation),
        options={"samples": 20_000},
        expect=expect,
    )


AUDITS = [
    define("marginals", Verdict.NO_VIOLATION_FOUND),
    define("marginals-with-categories", Verdict.VIOLATION, metadata=["seen_"]),
]
