"""The cost of the mechanisms beyond the random numbers they need.

For every mechanism: time of ``sample`` over the time of the bare numpy draws behind it, measured in the same run, best
of several. Scalar additive noise must stay within 1.5 times the bare draw at ten million outputs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import Column, Row, Table
from mechanisms.above_threshold import AboveThreshold
from mechanisms.gaussian import GaussianMechanism
from mechanisms.geometric import DiscreteLaplaceMechanism
from mechanisms.histogram_method import HistogramMethod
from mechanisms.inverse_sensitivity import InverseSensitivityQuantile
from mechanisms.laplace import LaplaceMechanism
from mechanisms.noisy_max import ReportNoisyMax
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.sparse_vector import svt1

LIMIT = 1.5


class Case(NamedTuple):
    name: str
    mechanism: Any
    data: Any
    bare: Callable[[np.random.Generator, int], Any]
    share: float = 1.0  # of the outputs asked for: releases of many numbers are measured on fewer
    limited: bool = False


def _two_geometric(rng: np.random.Generator, size: int) -> tuple[Any, Any]:
    stop = -math.expm1(-1.0)
    return rng.geometric(stop, size), rng.geometric(stop, size)


CASES = (
    Case("Laplace", LaplaceMechanism(1.0), 3.0, lambda rng, n: rng.laplace(0.0, 1.0, n), limited=True),
    Case(
        "Laplace, inverse CDF",
        LaplaceMechanism(1.0, method="inverse-cdf"),
        3.0,
        lambda rng, n: rng.laplace(0.0, 1.0, n),
        limited=True,
    ),
    Case("Gaussian", GaussianMechanism(1.0, 1e-5), 3.0, lambda rng, n: rng.normal(0.0, 1.0, n), limited=True),
    Case("discrete Laplace", DiscreteLaplaceMechanism(1.0), 3, _two_geometric, limited=True),
    Case("randomised response", RandomisedResponse.warner(0.75), 1, lambda rng, n: rng.random(n)),
    Case("noisy max of 5", ReportNoisyMax(1.0), np.arange(5.0), lambda rng, n: rng.laplace(0.0, 1.0, (n, 5)), 0.1),
    Case(
        "AboveThreshold, 10 queries",
        AboveThreshold(1.0, 5.0),
        np.arange(10.0),
        lambda rng, n: rng.laplace(0.0, 1.0, (n, 11)),
        0.1,
    ),
    Case(
        "SVT, 10 queries",
        svt1(epsilon=1.0, threshold=5.0),
        np.arange(10.0),
        lambda rng, n: rng.laplace(0.0, 1.0, (n, 11)),
        0.1,
    ),
    Case(
        "HistogramMethod, 50 rows, 100 steps",
        HistogramMethod(1.0, 0.0, 1.0, steps=100),
        np.linspace(0.01, 0.99, 50),
        lambda rng, n: [rng.laplace(0.0, 1.0, (n, 101)) for _ in range(9)],
        0.001,
    ),
    Case(
        "inverse sensitivity, 101 rows",
        InverseSensitivityQuantile(1.0, 0.0, 1.0, smoothing=0.01),
        np.linspace(0.01, 0.99, 101),
        lambda rng, n: rng.random(n),
    ),
)


def processor_seconds(run: Callable[[], Any], bare: Callable[[], Any], repeats: int = 5) -> tuple[float, float]:
    """Best processor time of both, taken in turns: other programs on the machine then slow down both or neither."""
    best = [math.inf, math.inf]
    for _ in range(repeats):
        for place, work in enumerate((run, bare)):
            start = time.process_time()
            work()
            best[place] = min(best[place], time.process_time() - start)
    return best[0], best[1]


def rows(size: int) -> Iterator[Row]:
    """All cases at that number of outputs."""
    rng = np.random.default_rng(0)
    for case in CASES:
        outputs = max(1, int(size * case.share))
        taken, bare = processor_seconds(
            lambda: case.mechanism.sample(case.data, outputs, rng),  # noqa: B023 - called at once
            lambda: case.bare(rng, outputs),  # noqa: B023
        )
        row: Row = {
            "mechanism": case.name,
            "outputs": outputs,
            "ns": taken / outputs * 1e9,
            "bare_ns": bare / outputs * 1e9,
            "ratio": taken / bare,
            "limit": LIMIT if case.limited else None,
        }
        if case.limited and row["ratio"] > LIMIT:
            row["fault"] = f"{case.name}: {row['ratio']:.2f} times the bare draws, {LIMIT} allowed"
        yield row


def run(*, quick: bool, size: int | None = None) -> Iterator[Table]:
    """Ten million outputs, a million in quick mode."""
    yield Table(
        title="Samplers of the reference mechanisms against the bare draws, in CPU time",
        columns=(
            Column("mechanism", "mechanism", "<36"),
            Column("outputs", "outputs", ">11,"),
            Column("ns", "ns/output", ">10.1f"),
            Column("bare_ns", "bare", ">10.1f"),
            Column("ratio", "ratio", ">6.2f"),
            Column("limit", "limit", ">5.1f"),
        ),
        rows=rows(size or (1_000_000 if quick else 10_000_000)),
    )
