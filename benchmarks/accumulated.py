"""Evidence that grows over many runs: false alarms on mechanisms that keep their claim with equality, and power on leaks.

The exit of a run is the stress here: every file has many short runs, so there are many explorations, nominees and ends.
"""
# ruff: noqa: ARG001  # a mechanism is called with its data, also one that does not look at them

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import PureDP, Verdict
from dpaudit._util.intervals import clopper_pearson

Generator = np.random.Generator
ALPHA = 0.1
SAMPLES, MORE = 400, 8_000  # of a run


def laplace(data: Any, rng: Generator) -> Any:
    return len(data) + float(rng.laplace())


def response(data: Any, rng: Generator) -> Any:
    truth = len(data) > 0
    return truth if rng.random() < math.e / (1.0 + math.e) else not truth


def own_entropy(data: Any, rng: Generator) -> Any:
    return len(data) + float(np.random.default_rng().laplace())  # what a mechanism of others may do


def weak_laplace(data: Any, rng: Generator) -> Any:
    return len(data) + float(rng.laplace(scale=0.9))


def weak_response(data: Any, rng: Generator) -> Any:
    truth = len(data) > 0
    return truth if rng.random() < 0.75 else not truth


SOUND: tuple[Callable[..., Any], ...] = (laplace, response, own_entropy)
BROKEN: tuple[Callable[..., Any], ...] = (weak_laplace, weak_response)


def one_file(task: tuple[int, int, int, int, float]) -> int:
    """Return the number of the run that refuted the claim; 0 if none did."""
    number, seed, runs, samples, alpha = task
    mechanism = dpaudit.per_release((*SOUND, *BROKEN)[number])
    with tempfile.TemporaryDirectory() as folder:
        for place in range(1, runs + 1):
            result = dpaudit.audit(
                mechanism, PureDP(1.0), [([], [1])], name="audit", accumulate=Path(folder, "evidence"),
                samples=samples, alpha=alpha, seed=seed, shrink=False, detect_factor=1e9,
            )  # fmt: skip
            if result.verdict is Verdict.VIOLATION:
                return place
    return 0


def rows(files: int, runs: int, workers: int) -> Iterator[Row]:
    """One row a mechanism; more false alarms than alpha allows, with confidence 0.999, are a fault."""
    with mapper(workers) as spread:
        for number, mechanism in enumerate((*SOUND, *BROKEN)):
            broken = mechanism in BROKEN
            count, samples, alpha = (files // 5, MORE, 1e-6) if broken else (files, SAMPLES, ALPHA)
            ended = list(spread(one_file, [(number, seed, runs, samples, alpha) for seed in range(count)]))
            found = [place for place in ended if place]
            row: Row = {
                "mechanism": mechanism.__name__,
                "files": count,
                "alpha": alpha,
                "violations": len(found),
                "samples": float(np.median(found)) * samples if broken and 2 * len(found) > count else None,
            }
            if not broken and clopper_pearson(len(found), files, alpha=1e-3)[0] > ALPHA:
                row["fault"] = f"more than {ALPHA:g} of the files accuse it"
            yield row


def run(*, quick: bool) -> Iterator[Table]:
    """Many files of many short runs each."""
    files, runs = (6, 5) if quick else (100, 10)
    yield Table(
        title=f"Evidence that grows: {runs} runs of {SAMPLES:,} samples a file, of weak leaks {runs} of {MORE:,}",
        columns=(
            Column("mechanism", "mechanism", "<16"),
            Column("files", "files", ">6,d"),
            Column("alpha", "alpha", ">6g"),
            Column("violations", "violations", ">10,d"),
            Column("samples", "samples until found, median", ">12,.0f"),
        ),
        rows=rows(files, runs, WORKERS),
    )
