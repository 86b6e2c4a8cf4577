r"""Lower bounds of epsilon beside the best that a test of one event shows, at equal samples and equal confidence.

Other auditors learn an event on part of their outputs, count it on the rest, and take two Clopper-Pearson limits. The figure
they are compared with here is larger than any of theirs can be in a typical run: the event is chosen by the true laws, among
all ``{log p(x)/q(x) > t}``, all outputs are counted on it, and half of alpha goes to each limit. It is the
bound at the expected counts. "Best possible" is what any audit shows that knows both laws (``best_possible.best_epsilon``; for
pure DP alone); it may be smaller, because it is a limit of evidence that holds at every moment.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv

import dpaudit
from benchmarks.best_possible import Cells, best_epsilon, cells_of
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import ApproxDP, Claim, PureDP, exact
from mechanisms.broken.gaussian import HalvedVariance
from mechanisms.broken.laplace import MisscaledLaplace
from mechanisms.broken.noisy_max import NoisyMaxValue
from mechanisms.laplace import LaplaceMechanism
from mechanisms.sparse_vector import svt1

SETTINGS = ((160_000, 0.1), (2_000_000, 1e-3))  # samples of both sides, and alpha
GOAL = 0.995


@dataclass(frozen=True, slots=True)
class Discrete:
    """A law on a few outcomes for each of two data sets, [0] and [1]."""

    laws: tuple[dict[Any, float], dict[Any, float]]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        law = self.laws[int(data[0])]
        outcomes = np.array(list(law), dtype=object)
        return outcomes[rng.choice(len(law), size, p=list(law.values()))].tolist()

    def law(self, data: Any) -> exact.Law:
        return exact.Discrete(self.laws[int(data[0])])


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism with its law, a claim, and a pair."""

    mechanism: Any
    claim: Claim
    pair: tuple[Any, Any]


def _line(*, width: int = 1, changed: int = 1) -> tuple[Any, Any]:
    """Answers of zero, and the same with the first ones raised by one."""
    return np.zeros(width), (np.arange(width) < changed).astype(float)


def cases() -> dict[str, Case]:
    """The ten mechanisms."""
    one, tenth = PureDP(1.0), PureDP(0.1)
    return {
        "Laplace of scale 10": Case(LaplaceMechanism(0.1), tenth, _line()),
        "Laplace of scale 0.5": Case(MisscaledLaplace(1.0, 0.5), one, _line()),
        "Laplace of scale 0.9": Case(MisscaledLaplace(1.0, 0.9), one, _line()),
        "noisy max by value": Case(NoisyMaxValue(1.0), one, _line(width=5, changed=5)),
        "randomised response": Case(Discrete(({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75})), one, ([0], [1])),
        "Gaussian of half the variance": Case(HalvedVariance(1.0, 1e-2), ApproxDP(1.0, 1e-2), _line()),
        "histogram of ten bins": Case(LaplaceMechanism(1.0), one, _line(width=10)),
        "sparse vector": Case(
            svt1(epsilon=1.0, threshold=1.0), one, (np.array([0.0, 1.0] * 2), np.array([1.0, 0.0] * 2))
        ),
        "None on empty data": Case(Discrete(({None: 1.0}, {"a": 0.5, "b": 0.5})), one, ([0], [1])),
        "two point masses": Case(Discrete(({0: 0.9, 1: 0.1}, {0: 0.1, 1: 0.9})), one, ([0], [1])),
    }


def best_event_bound(cells: Cells, delta: float, samples: int, alpha: float) -> float:
    """Bound of the best event at its expected counts, with half of the samples on each side and half of alpha at each end."""
    order = np.argsort(-cells.log_ratio)
    n, found = samples / 2.0, 0.0
    for heavy, light in ((cells.P, cells.Q), (cells.Q[::-1], cells.P[::-1])):
        p, q = (np.clip(np.cumsum(side[order]), 0.0, 1.0) for side in (heavy, light))
        low = np.where(p > 0.0, betaincinv(np.maximum(n * p, 1e-9), n * (1.0 - p) + 1.0, alpha / 2.0), 0.0)
        high = np.where(q < 1.0, betainccinv(n * q + 1.0, np.maximum(n * (1.0 - q), 1e-9), alpha / 2.0), 1.0)
        found = max(found, float(np.log(np.maximum(low - delta, 1e-300) / high).max()))
    return found


def measured(task: tuple[str, int, float, int]) -> Row:
    """One mechanism at one number of samples."""
    name, samples, alpha, seeds = task
    case = cases()[name]
    delta = case.claim.delta_claimed if isinstance(case.claim, ApproxDP) else 0.0
    cells = cells_of(case.mechanism, *case.pair, np.random.default_rng(0))
    options: dict[str, Any] = {"samples": samples, "alpha": alpha, "until": "budget", "shrink": False}
    shown = [
        dpaudit.audit(case.mechanism, case.claim, [case.pair], seed=seed, **options).epsilon_lower
        for seed in range(seeds)
    ]
    row: Row = {"mechanism": name, "samples": samples, "alpha": alpha, "each": shown, "ours": statistics.median(shown)}
    row["event"] = best_event_bound(cells, delta, samples, alpha)
    row["best"] = best_epsilon(cells, samples, alpha) if delta == 0.0 else None
    row["ratio"] = row["ours"] / row["event"]
    return row


def run(*, quick: bool, seeds: int | None = None, workers: int = WORKERS) -> Iterator[Table]:
    """Eleven seeds of each mechanism; in quick mode three of the smaller number of samples."""
    often = seeds or (3 if quick else 11)
    tasks = [(name, samples, alpha, often) for samples, alpha in SETTINGS[: 1 if quick else 2] for name in cases()]

    def rows() -> Iterator[Row]:
        with mapper(workers) as spread:
            yield from spread(measured, tasks)

    yield Table(
        title="Lower bounds beside the best event, the pair given",
        note=f"Medians over {often} seeds. Goal: a ratio of {GOAL}.",
        columns=(
            Column("mechanism", "mechanism", "<29"),
            Column("samples", "samples", ">9,"),
            Column("alpha", "alpha", ">6g"),
            Column("ours", "ours", ">8.4f"),
            Column("event", "best event", ">10.4f"),
            Column("ratio", "ratio", ">6.3f"),
            Column("best", "best possible", ">13.4f"),
        ),
        rows=rows(),
    )
