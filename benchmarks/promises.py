"""How often a leak is found at exactly the epsilon that ``detectable_epsilon`` says: nine audits of ten are promised.

A first audit, of a mechanism that does not leak, says what would have been detected. Then the leak is put on one of the pairs,
at that epsilon, and audits with other seeds look for it. The other pairs do not differ at all, or keep the claim with equality,
which makes the pair that leaks harder to find.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import dpaudit
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import PureDP, Verdict
from dpaudit._util.intervals import clopper_pearson

ALPHA = 1e-6
PROMISED = 0.9
WORDS = np.array([f"w{number}" for number in range(3000)])


@cache
def by_frequency(distinct: int, mass: float) -> tuple[Any, Any]:
    """Words of frequency 1 / rank: distribution functions inside and outside of a random set of the given probability."""
    frequency = 1.0 / np.arange(1, distinct + 1)
    frequency /= frequency.sum()
    order = np.random.default_rng(0).permutation(np.flatnonzero(frequency <= mass))
    chosen = np.zeros(distinct, dtype=bool)
    chosen[order[frequency[order].cumsum() <= mass]] = True
    inner, outer = (np.cumsum(frequency * words) for words in (chosen, ~chosen))
    return inner / inner[-1], outer / outer[-1]


@dataclass(frozen=True, slots=True)
class Promise:
    """Outputs of some kind, an event of probability ``mass`` among them, and the audit that is to find it."""

    kind: str
    """words, words by frequency, integers, numbers or vectors."""
    distinct: int = 0
    """Distinct words or integers, or coordinates of a vector."""
    pairs: int = 1
    claimed: float = 1.0
    mass: float = 0.1
    samples: int = 100_000
    tight: bool = False
    """True if the other pairs keep the claim with equality; otherwise their two laws are equal."""
    until: str = "violation"

    @property
    def name(self) -> str:
        """The outputs in words."""
        if self.kind == "numbers":
            return self.kind
        return f"vectors of {self.distinct}" if self.kind == "vectors" else f"{self.distinct} {self.kind}"

    def outputs(self, event: Any, rng: np.random.Generator) -> Any:
        """Return one output for each entry of ``event``: inside the event where it is true."""
        size, mass = event.size, self.mass
        inside = max(1, round(mass * self.distinct))
        if self.kind == "words by frequency":
            inner, outer = by_frequency(self.distinct, mass)
            uniform = rng.random(size)
            return WORDS[np.where(event, inner.searchsorted(uniform, "right"), outer.searchsorted(uniform, "right"))]
        if self.kind in ("words", "integers"):
            number = np.where(event, rng.integers(0, inside, size), rng.integers(inside, self.distinct, size))
            return WORDS[number] if self.kind == "words" else number
        numbers = np.where(event, mass * rng.random(size), mass + (1.0 - mass) * rng.random(size))
        if self.kind == "numbers":
            return numbers
        vectors = rng.random((size, self.distinct))
        vectors[:, self.distinct // 3] = numbers
        return vectors

    def audit(self, epsilon: float, seed: int) -> dpaudit.Result:
        """Audit with a leak of ``epsilon`` on one pair, another one for each seed."""
        leaky, others = seed % self.pairs, self.claimed if self.tight else 0.0

        def mechanism(data: tuple[int, int], size: int, rng: np.random.Generator) -> Any:
            pair, side = data
            loss = side * (epsilon if pair == leaky else others)
            return self.outputs(rng.random(size) < self.mass * math.exp(-loss), rng)

        pairs = [((number, 0), (number, 1)) for number in range(self.pairs)]
        return dpaudit.audit(
            dpaudit.batched(mechanism), PureDP(self.claimed), pairs, samples=self.samples, alpha=ALPHA, seed=seed,
            pairs=self.pairs, shrink=False, detect_factor=1e9, until=self.until,
        )  # fmt: skip

    def promised(self) -> float:
        """Return the epsilon that an audit without a leak says would have been detected."""
        return self.audit(self.claimed if self.tight else 0.0, 0).detectable[self.mass]


NOTHING_PROMISED = (Promise("words", 3000), Promise("words", 3000, pairs=20))
PROMISES = (
    *(Promise("words", distinct, pairs) for distinct in (10, 100, 1000) for pairs in (1, 5, 20, 50)),
    *NOTHING_PROMISED,
    Promise("words by frequency", 1000),
    Promise("words by frequency", 3000),
    Promise("words by frequency", 3000, pairs=5),
    *(Promise("integers", distinct, pairs) for distinct in (30, 1000) for pairs in (1, 5, 20, 50)),
    *(Promise("numbers", pairs=pairs) for pairs in (1, 5, 20, 50)),
    *(Promise("vectors", 10, pairs) for pairs in (1, 5, 20, 50)),
    *(Promise("words", 10, pairs, tight=True) for pairs in (5, 20, 50)),
    *(Promise("numbers", pairs=pairs, tight=True) for pairs in (5, 20, 50)),
    *(Promise("words", distinct, samples=10_000) for distinct in (10, 60, 100)),
    *(Promise("numbers", pairs=pairs, samples=20_000) for pairs in (1, 5)),
    *(Promise("words", 100, mass=mass) for mass in (0.5, 0.01)),
    *(Promise("numbers", mass=mass) for mass in (0.5, 0.01)),
    *(Promise(kind, 100, claimed=claimed) for kind in ("words", "numbers") for claimed in (0.1, 3.0)),
    *(Promise(kind, 10, pairs, until="budget") for kind in ("words", "numbers") for pairs in (1, 20)),
)  # fmt: skip


def found(task: tuple[Promise, float, int]) -> bool:
    """Return whether one audit finds a leak of the epsilon in its task."""
    promise, epsilon, seed = task
    return promise.audit(epsilon, seed).verdict is Verdict.VIOLATION


def rows(audits: int, samples: int | None, workers: int) -> Iterator[Row]:
    """One row a promise; a fault where fewer were found than promised, beyond chance at 1e-3."""
    with mapper(workers) as spread:
        for listed in PROMISES:
            promise = listed if samples is None else replace(listed, samples=samples)
            epsilon = promise.promised()
            row: Row = {
                "kind": promise.name,
                "pairs": promise.pairs,
                "others": "keep the claim" if promise.tight else "",
                "until": promise.until,
                "samples": promise.samples,
                "claimed": promise.claimed,
                "mass": promise.mass,
                "epsilon": epsilon,
            }
            if math.isfinite(epsilon):
                row["found"] = sum(spread(found, [(promise, epsilon, seed) for seed in range(1, audits + 1)]))
                row["audits"] = audits
                if clopper_pearson(row["found"], audits, alpha=1e-3)[1] < PROMISED:
                    row["fault"] = (
                        f"{row['kind']}, {promise.pairs} pairs: {row['found']} of {audits} found at {epsilon:.3g}"
                    )
            yield row


def run(
    *, quick: bool, audits: int | None = None, samples: int | None = None, workers: int = WORKERS
) -> Iterator[Table]:
    """20 audits of each promise; in quick mode 1."""
    audits = audits or (1 if quick else 20)
    yield Table(
        title=f"Promises: {audits} audits at exactly the detectable epsilon, alpha {ALPHA:g}",
        note="An event of probability m on one side of one pair. Infinite: nothing is promised.",
        columns=(
            Column("kind", "outputs", "<24"),
            Column("pairs", "pairs", ">5"),
            Column("others", "other pairs", "<14"),
            Column("until", "until", "<9"),
            Column("samples", "samples", ">7,"),
            Column("claimed", "claim", ">5g"),
            Column("mass", "m", ">5g"),
            Column("epsilon", "detectable", ">8.3f"),
            Column("found", "found", ">5"),
            Column("audits", "of", ">3"),
        ),
        rows=rows(audits, samples, workers),
    )
