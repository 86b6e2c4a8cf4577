"""How many samples it takes to find what is wrong: medians over seeds, at alpha = 1e-6, with the pair given and searched.

First seven bugs with one call a release, beside the fewest outputs that any test needs (``best_possible.fewest_samples``).
Six of them have a promise where a call makes many: so many samples with the pair given, ten times as many with the pair
searched among those that Hypothesis proposes. Then every broken mechanism of the registry: searched among its registered
neighbours, and given the pair on which a search with a seed of its own found most evidence. Where a call makes many releases,
the column "single" counts the releases drawn one call each, on which the violation was confirmed.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpaudit
from benchmarks.best_possible import cells_of, fewest_samples
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import ApproxDP, Claim, PureDP, Result, Verdict, exact, neighbours
from dpaudit.engine.options import Options
from dpaudit.engine.request import Request
from dpaudit.engine.run import Run
from mechanisms import registry
from mechanisms.broken.gaussian import HalvedVariance
from mechanisms.broken.laplace import MisscaledLaplace, OccasionallyRaw
from mechanisms.broken.noisy_max import NoisyMaxValue
from mechanisms.broken.sparse_vector import svt5

ALPHA = 1e-6
SEARCHING = 10  # times as many samples are allowed where the pair is searched
PAIR_SEED = 1_000  # finds the pair that is then given: none of the measured ones
QUICK_BUDGET = 1_000_000  # mechanisms registered with more samples are left out in quick mode


@dataclass(frozen=True, slots=True)
class Promise:
    """A bug, the pair that shows it, and the samples within which it is found there."""

    mechanism: Any
    pair: tuple[Any, Any]
    limit: int  # outputs came many to a call
    goal: int | None = None  # one call a release


@dataclass(frozen=True, slots=True)
class Disjoint:
    """A uniform number that is five times the answer at least, and less than one more."""

    @property
    def claim(self) -> PureDP:
        return PureDP(1.0)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return 5.0 * np.asarray(data) + rng.random((size, 1))

    def law(self, data: Any) -> exact.Law:
        low = 5.0 * float(np.asarray(data).item())
        return exact.PiecewiseConstant([low, low + 1.0], [0.0])


ONE = (np.array([0.0]), np.array([1.0]))
PROMISES = {
    "Laplace at half scale": Promise(MisscaledLaplace(1.0, 0.5), ONE, 1_500, 620),
    "Laplace at 0.9 of its scale": Promise(MisscaledLaplace(1.0, 0.9), ONE, 40_000, 25_000),
    "noisy max by value": Promise(NoisyMaxValue(1.0), (np.zeros(5), np.ones(5)), 100_000),
    "SVT without query noise": Promise(
        svt5(epsilon=1.0, threshold=1.0), (np.array([0.0, 1.0] * 2), np.array([1.0, 0.0] * 2)), 1_500
    ),
    "Gaussian with half its variance": Promise(HalvedVariance(1.0, 1e-2), ONE, 15_000, 10_000),
    "a raw release once in 1,000": Promise(OccasionallyRaw(1.0), ONE, 100_000, 68_000),
    "disjoint outputs": Promise(Disjoint(), ONE, 1_500, 100),
}


def broken(most: float = math.inf) -> list[registry.Entry]:
    """All registered mechanisms that an audit must find wrong, with budgets up to ``most``."""
    return [entry for entry in registry.entries() if entry.expect is Verdict.VIOLATION and entry.samples <= most]


def audits(mechanism: Any, claim: Claim, where: Any, budget: int, seeds: int) -> Iterator[Result]:
    """One audit for each seed."""
    for seed in range(seeds):
        yield dpaudit.audit(mechanism, claim, where, samples=budget, alpha=ALPHA, seed=seed, shrink=False)


def samples_to_detect(result: Result) -> float:
    """Samples at the violation; infinite where the budget ended first."""
    return result.samples if result.verdict is Verdict.VIOLATION else math.inf


def counts(key: str, audited: Iterator[Result]) -> Row:
    """The median of the samples to detect, those of each seed, and single releases where outputs came many to a call."""
    results = list(audited)
    each = [samples_to_detect(result) for result in results]
    single = statistics.median(result.samples_confirming for result in results)
    return {key: statistics.median(each), f"{key}_each": each, f"{key}_single": single or None}


def fewest(mechanism: Any, claim: Claim, pair: Any) -> float | None:
    """The fewest outputs that any test needs on the pair; None for claims that are curves, and where no law is known."""
    delta = claim.delta_claimed if isinstance(claim, ApproxDP) else 0.0
    if not isinstance(claim, PureDP | ApproxDP):
        return None
    try:
        return fewest_samples(cells_of(mechanism, *pair, np.random.default_rng(0)), claim.parameter, delta, ALPHA)
    except (AttributeError, MemoryError):  # no law, or one of too many cells
        return None


def single_release(mechanism: Any, data: Any, rng: np.random.Generator) -> Any:
    """The first and only release of a call."""
    return mechanism.sample(data, 1, rng)[0]


def one_call_each(task: tuple[str, int]) -> Row:
    """One bug with one call a release, over that many seeds."""
    name, seeds = task
    promise = PROMISES[name]
    mechanism, claim = promise.mechanism, promise.mechanism.claim
    limit = fewest(mechanism, claim, promise.pair)
    single = dpaudit.per_release(functools.partial(single_release, mechanism))
    row: Row = {"bug": name, "limit": limit, "goal": promise.goal}
    row |= counts("given", audits(single, claim, [promise.pair], 2 * promise.limit, seeds))
    row["ratio"] = row["given"] / limit if limit else None
    if promise.goal and row["given"] > promise.goal:
        row["fault"] = f"{name}, one call a release: median {row['given']:,} samples, {promise.goal:,} wanted"
    return row


def promised(task: tuple[str, int]) -> Row:
    """One promise, over that many seeds."""
    name, seeds = task
    promise = PROMISES[name]
    mechanism, limit = promise.mechanism, promise.limit
    searched = neighbours.answers(len(promise.pair[0]), -10, 10)
    row: Row = {"bug": name, "limit": limit}
    for key, where, most in (("given", [promise.pair], limit), ("searched", searched, SEARCHING * limit)):
        row |= counts(key, audits(mechanism, mechanism.claim, where, 2 * most, seeds))
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
        row |= counts(key, audits(mechanism, entry.claim, where, budget, seeds))
    row["limit"] = fewest(mechanism, entry.claim, given[0])
    row["ratio"] = row["given"] / row["limit"] if row["limit"] else None
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
    """Nine seeds of the promises, 21 with one call a release, five of the registry; in quick mode one of small budgets."""
    if names is None:
        names = [entry.name for entry in broken(QUICK_BUDGET if quick else math.inf)]
    often, seldom = seeds or 9, seeds or (1 if quick else 5)
    most_often = seeds or (9 if quick else 21)

    def rows_of(function: Any, tasks: list[Any]) -> Iterator[Row]:
        with mapper(workers) as spread:
            yield from spread(function, tasks)

    yield Table(
        title="Samples to detect: one call a release, the pair given, at alpha = 1e-6 and claimed epsilon 1",
        note=f"Medians over {most_often} seeds. Limit: the fewest that any test needs on average, knowing the two laws.",
        columns=(
            Column("bug", "bug", "<31"),
            Column("limit", "limit", ">9,.0f"),
            Column("given", "pair given", ">11,"),
            Column("ratio", "ratio", ">6.2f"),
            Column("goal", "goal", ">9,"),
        ),
        rows=rows_of(one_call_each, [(name, most_often) for name in promises]),
    )
    yield Table(
        title="Samples to detect: many releases a call, at alpha = 1e-6 and claimed epsilon 1",
        note=f"Medians over {often} seeds. With the pair searched, {SEARCHING} times the limit is allowed.",
        columns=(
            Column("bug", "bug", "<31"),
            Column("given", "pair given", ">11,"),
            Column("given_single", "single", ">9,"),
            Column("limit", "promised", ">9,"),
            Column("searched", "pair searched", ">11,"),
        ),
        rows=rows_of(promised, [(name, often) for name in promises]),
    )
    yield Table(
        title="Samples to detect: every broken mechanism of the registry, at alpha = 1e-6",
        note=f"Medians over {seldom} seed(s); infinite where the budget was not enough. Limit: the fewest that any test needs on "
        "the given pair, where the two laws are known. Pairs: how many the search tried.",
        columns=(
            Column("mechanism", "mechanism", "<43"),
            Column("claim", "claimed", ">7.3g"),
            Column("truth", "true", ">8.3g"),
            Column("limit", "limit", ">11,.0f"),
            Column("given", "pair given", ">11,"),
            Column("ratio", "ratio", ">6.2f"),
            Column("given_single", "single", ">9,"),
            Column("searched", "pair searched", ">11,"),
            Column("pairs", "pairs", ">5"),
            Column("budget", "budget", ">10,"),
        ),
        rows=rows_of(registered, [(name, seldom) for name in names]),
    )
