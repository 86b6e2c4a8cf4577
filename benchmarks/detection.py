"""How many samples it takes to find what is wrong: medians over seeds, at alpha = 1e-6, with the pair given and searched.

Six bugs have a promise: so many samples with the pair given, ten times as many with the pair searched among those that
Hypothesis proposes. Then every broken mechanism of the registry: searched among its registered neighbours, and given the
pair on which a search with a seed of its own found most evidence.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpaudit
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import Verdict, neighbours
from dpaudit.engine.options import Options
from dpaudit.engine.request import Request
from dpaudit.engine.run import Run
from mechanisms import registry
from mechanisms.broken.gaussian import HalvedVariance
from mechanisms.broken.laplace import MisscaledLaplace, OccasionallyRaw
from mechanisms.broken.noisy_max import NoisyMaxValue
from mechanisms.broken.sparse_vector import svt5

ALPHA = 1e-6
SEARCHING = 10  # times the samples for the search of the pair
PAIR_SEED = 1_000  # finds the pair that is then given: none of the measured ones
QUICK_BUDGET = 1_000_000  # mechanisms registered with more samples are left out in quick mode


@dataclass(frozen=True, slots=True)
class Promise:
    """A bug, the pair that shows it, and the samples within which it is found there."""

    mechanism: Any
    pair: tuple[Any, Any]
    limit: int


ONE = (np.array([0.0]), np.array([1.0]))
PROMISES = {
    "Laplace at half scale": Promise(MisscaledLaplace(1.0, 0.5), ONE, 1_500),
    "Laplace at 0.9 of its scale": Promise(MisscaledLaplace(1.0, 0.9), ONE, 40_000),
    "noisy max by value": Promise(NoisyMaxValue(1.0), (np.zeros(5), np.ones(5)), 100_000),
    "SVT without query noise": Promise(
        svt5(epsilon=1.0, threshold=1.0), (np.array([0.0, 1.0] * 2), np.array([1.0, 0.0] * 2)), 1_500
    ),
    "Gaussian with half its variance": Promise(HalvedVariance(1.0, 1e-2), ONE, 15_000),
    "a raw release once in 1,000": Promise(OccasionallyRaw(1.0), ONE, 100_000),
}


def broken(most: float = math.inf) -> list[registry.Entry]:
    """All registered mechanisms that an audit must find wrong, with budgets up to ``most``."""
    return [entry for entry in registry.entries() if entry.expect is Verdict.VIOLATION and entry.samples <= most]


def samples_to_detect(mechanism: Any, claim: Any, where: Any, budget: int, seed: int) -> float:
    """Samples at the violation; infinite where the budget ended first."""
    result = dpaudit.audit(mechanism, claim, where, samples=budget, alpha=ALPHA, seed=seed, shrink=False)
    return result.samples if result.verdict is Verdict.VIOLATION else math.inf


def promised(task: tuple[str, int]) -> Row:
    """One promise, over that many seeds."""
    name, seeds = task
    promise = PROMISES[name]
    mechanism, limit = promise.mechanism, promise.limit
    searched = neighbours.answers(len(promise.pair[0]), -10, 10)
    row: Row = {"bug": name, "limit": limit}
    for key, where, most in (("given", [promise.pair], limit), ("searched", searched, SEARCHING * limit)):
        each = [samples_to_detect(mechanism, mechanism.claim, where, 2 * most, seed) for seed in range(seeds)]
        row |= {key: statistics.median(each), f"{key}_each": each}
        if row[key] > most:
            row["fault"] = f"{name}, pair {key}: median {row[key]:,} samples, {most:,} promised"
    return row


def registered(task: tuple[str, int]) -> Row:
    """One entry of the registry, over that many seeds, within its budget."""
    name, seeds = task
    entry = registry.find(name)
    mechanism, budget = entry.make(), entry.samples
    row: Row = {"mechanism": name, "claim": entry.claim.parameter, "truth": entry.bracket[0], "budget": budget}
    options = Options(samples=budget, alpha=ALPHA, seed=PAIR_SEED, shrink=False)
    search = Run(Request.of(mechanism, entry.claim, entry.neighbours(), options, name))
    row["pairs"] = search.result().pairs
    given = [tuple(search.phase.campaign.leader().pair)]
    for key, where in (("given", given), ("searched", entry.neighbours())):
        if key == "searched" and row["pairs"] == 1 and len(entry.neighbours().pool(2)) == 1:
            continue  # there is nothing to search
        each = [samples_to_detect(mechanism, entry.claim, where, budget, seed) for seed in range(seeds)]
        row |= {key: statistics.median(each), f"{key}_each": each}
    worst = max(row[key] for key in ("given", "searched") if key in row)
    if math.isinf(worst):
        row["fault"] = f"{name}: not found in half of the runs with its budget of {budget:,} samples"
    return row


def run(
    *,
    quick: bool,
    seeds: int | None = None,
    promises: Sequence[str] = tuple(PROMISES),
    names: Sequence[str] | None = None,
    workers: int = WORKERS,
) -> Iterator[Table]:
    """Nine seeds of the promises, five of the registry; in quick mode one of those with small budgets."""
    if names is None:
        names = [entry.name for entry in broken(QUICK_BUDGET if quick else math.inf)]
    often, seldom = seeds or 9, seeds or (1 if quick else 5)

    def rows_of(function: Any, tasks: list[Any]) -> Iterator[Row]:
        with mapper(workers) as spread:
            yield from spread(function, tasks)

    yield Table(
        title="Samples to detect: what is promised, at alpha = 1e-6 and claimed epsilon 1",
        note=f"Medians over {often} seeds. With the pair searched, {SEARCHING} times the limit is allowed.",
        columns=(
            Column("bug", "bug", "<31"),
            Column("given", "pair given", ">11,"),
            Column("limit", "limit", ">9,"),
            Column("searched", "pair searched", ">11,"),
        ),
        rows=rows_of(promised, [(name, often) for name in promises]),
    )
    yield Table(
        title="Samples to detect: every broken mechanism of the registry, at alpha = 1e-6",
        note=f"Medians over {seldom} seed(s); infinite where the budget was not enough. Pairs: how many the search tried.",
        columns=(
            Column("mechanism", "mechanism", "<43"),
            Column("claim", "claimed", ">7.3g"),
            Column("truth", "true", ">8.3g"),
            Column("given", "pair given", ">11,"),
            Column("searched", "pair searched", ">11,"),
            Column("pairs", "pairs", ">5"),
            Column("budget", "budget", ">10,"),
        ),
        rows=rows_of(registered, [(name, seldom) for name in names]),
    )
