"""The cost of the engine on top of the sampling: CPU seconds of an audit against those of the bare draws, taken in turns.

Audit and draws alternate in one process, and the least of each over the repeats is what counts: whatever else the machine
does can only add to it. The draws are made twice in each turn, so that both take about as long: of shorter stretches more
would be undisturbed. Every case has a process of its own, whose peak memory is read after each size.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dpaudit
from benchmarks.tables import Column, Row, Table, mapper
from mechanisms.randomised_response import RandomisedResponse

CHUNK = 65_536
AT = 10_000_000  # the size at which the requirements are stated
MEMORY = 250.0  # MB, of which scikit-learn takes 60 where models are fitted to vectors
MOST_REPEATS = 15
PAIR = [(0.0, 1.0)]
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")
FIRST_AUDIT = """
import numpy, dpaudit
laplace = dpaudit.batched(lambda data, size, rng: data + rng.laplace(size=size))
dpaudit.audit(laplace, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=10_000)
"""


def laplace(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(size=size)


def gaussian(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.normal(scale=4.0, size=size)


def laplace_10(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(scale=10.0, size=(size, 10))


def one_laplace(answer: float, rng: np.random.Generator) -> float:
    return answer + float(rng.laplace())


def one_gauss(answer: float) -> float:
    return answer + random.gauss(0.0, 4.0)


class Case(NamedTuple):
    """A vectorised sampler, and how many times its own cost the engine may add at ten million samples."""

    name: str
    sample: Callable[[Any, int, np.random.Generator], Any]
    claim: dpaudit.claims.Claim
    limit: float
    pairs: Sequence[tuple[Any, Any]] = PAIR


CASES = (
    Case("Laplace", laplace, dpaudit.PureDP(1.0), 0.6),
    Case("Gaussian", gaussian, dpaudit.ApproxDP(1.0, 1e-5), 0.8),
    Case("Laplace, 10 coordinates", laplace_10, dpaudit.PureDP(1.0), 2.0),
    Case("10 categories", RandomisedResponse.k_ary(1.0, tuple(range(10))).sample, dpaudit.PureDP(1.0), 1.0, [(0, 1)]),
    Case("10 words", RandomisedResponse.k_ary(1.0, WORDS).sample, dpaudit.PureDP(1.0), 1.0, [("alpha", "beta")]),
)


def seconds(work: Callable[[], Any]) -> float:
    """Processor time of one call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def peak_memory() -> float:
    """MB this process has needed at most; unlike ``ru_maxrss`` the high-water mark of Linux forgets the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == "darwin" else 1024) / 1024


def in_turns(draw: Callable[[], Any], audit: Callable[[], Any], *, enough: float) -> list[tuple[float, float]]:
    """CPU seconds of both, taken in turns until these are ``enough``."""
    times: list[tuple[float, float]] = []
    while not times or (len(times) < MOST_REPEATS and np.sum(times) < enough):
        times.append(((seconds(draw) + seconds(draw)) / 2.0, seconds(audit)))
    return times


def growth(task: tuple[int, Sequence[int], bool]) -> list[Row]:
    """One case at every size."""
    number, sizes, quick = task
    case = CASES[number]
    rng = np.random.default_rng(0)
    mechanism = dpaudit.batched(case.sample)
    rows: list[Row] = []

    def draw(size: int) -> None:
        for first in range(0, size, CHUNK):
            case.sample(case.pairs[0][0], min(CHUNK, size - first), rng)

    def audit(size: int) -> None:
        dpaudit.audit(mechanism, case.claim, case.pairs, samples=size, seed=0)

    audit(5_000)  # imports
    for size in sizes:
        # In quick mode the turns go where a requirement is stated.
        enough = 30.0 if not quick else 4.0 if size == AT else 0.3
        times = in_turns(partial(draw, size), partial(audit, size), enough=enough)
        bare, whole = (min(column) for column in zip(*times, strict=True))
        ratio = (whole - bare) / bare
        memory = peak_memory()
        row: Row = {
            "case": case.name,
            "samples": size,
            "draws_ns": bare / size * 1e9,
            "engine_ns": (whole - bare) / size * 1e9,
            "ratio": ratio,
            "memory": memory,
            "limit": case.limit if size == AT else None,
        }
        if size == AT and ratio > case.limit:
            row["fault"] = f"{case.name}: the engine costs {ratio:.2f} of the draws, {case.limit} allowed"
        if memory > MEMORY:
            row["fault"] = f"{case.name}: {memory:.0f} MB, {MEMORY:.0f} allowed"
        rows.append(row)
    return rows


def _limited(name: str, value: float, unit: str, limit: float | None) -> Row:
    row: Row = {"what": name, "value": value, "unit": unit, "limit": limit}
    if limit is not None and value > limit:
        row["fault"] = f"{name}: {value:.1f} {unit}, {limit:g} allowed"
    return row


def per_release(size: int, times: int) -> Iterator[Row]:
    """Mechanisms called once for every output: microseconds on top of the call."""
    rng = np.random.default_rng(0)
    wrapped = dpaudit.per_release(one_laplace)
    cases = (
        ("per_release(f)", lambda: [one_laplace(0.0, rng) for _ in range(size)], wrapped, dpaudit.PureDP(1.0)),
        ("f(data)", lambda: [one_gauss(0.0) for _ in range(size)], one_gauss, dpaudit.ApproxDP(1.0, 1e-5)),
    )
    for name, bare, mechanism, claim in cases:
        measured = [
            seconds(lambda: dpaudit.audit(mechanism, claim, PAIR, samples=size, seed=0)) - seconds(bare)  # noqa: B023
            for _ in range(times)
        ]
        yield _limited(f"{name}, {size:,} samples", statistics.median(measured) / size * 1e6, "us/sample", 2.0)


def small_audits(times: int) -> Iterator[Row]:
    """The cost that does not depend on the number of samples."""
    mechanism = dpaudit.batched(laplace)
    for size, limit in ((1_000, 30.0), (10_000, None), (100_000, None)):
        taken = [
            seconds(lambda: dpaudit.audit(mechanism, dpaudit.PureDP(1.0), PAIR, samples=size, seed=seed))  # noqa: B023
            for seed in range(times)
        ]
        yield _limited(f"audit of {size:,} samples of a fixed pair", statistics.median(taken) * 1e3, "ms", limit)


def first_audit() -> Row:
    """A new interpreter: imports and one small audit."""
    before = os.times()
    subprocess.run([sys.executable, "-c", FIRST_AUDIT], check=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return _limited("import and first audit", spent, "s", 3.0)


def run(
    *,
    quick: bool,
    sizes: Sequence[int] | None = None,
    releases: int | None = None,
    times: int | None = None,
    workers: int = 1,
) -> Iterator[Table]:
    """1e5 to 1e8 samples; in quick mode to 1e7."""
    sizes = sizes or [10**power for power in range(5, 8 if quick else 9)]
    releases = releases or (200_000 if quick else 1_000_000)
    times = times or (3 if quick else 7)

    def rows() -> Iterator[Row]:
        with mapper(workers, fresh=True) as spread:
            for case in spread(growth, [(number, sizes, quick) for number in range(len(CASES))]):
                yield from case

    yield Table(
        title="Overhead: the engine against the draws, in CPU time",
        note="Ratio: what the audit costs on top of the bare draws, over the draws (the quickest of each, taken in turns).",
        columns=(
            Column("case", "case", "<24"),
            Column("samples", "samples", ">11,"),
            Column("draws_ns", "draws, ns/sample", ">8.1f"),
            Column("engine_ns", "engine, ns/sample", ">8.1f"),
            Column("ratio", "ratio", ">6.2f"),
            Column("limit", "limit", ">6.1f"),
            Column("memory", "peak MB", ">7.0f"),
        ),
        rows=rows(),
    )

    def fixed() -> Iterator[Row]:
        yield from per_release(releases, times)
        yield from small_audits(3 * times)
        yield first_audit()

    yield Table(
        title="Overhead: per release, and fixed costs, in CPU time",
        columns=(
            Column("what", "what", "<42"),
            Column("value", "median", ">8.2f"),
            Column("unit", "unit", "<9"),
            Column("limit", "limit", ">6.0f"),
        ),
        rows=fixed(),
    )
