"""Throughput over workers, and what travels: bytes per task, and the coordinator's processor time per round and per task.

Throughput is by the clock, since it is about idle workers; it needs as many idle cores as workers. Runs with one worker and
with several take turns, in warm processes, and the ratio is the median over the turns. What a sample costs is set by
measuring the work on this machine first.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import dpaudit
from benchmarks.tables import Column, Row, Table
from dpaudit.engine.events import Event, RoundSettled
from dpaudit.engine.sampling.processes import Workers
from mechanisms.randomised_response import RandomisedResponse

PAIR = [(0.0, 1.0)]
WANTED = 1.7  # times the throughput of one worker, with two
COST = 5e-6  # seconds that a sample should take
NEAR = 0.05  # share by which the cost of a sample may differ from that
MEASURED = 8192  # samples on which the cost is measured
IDLE = 0.5  # largest load per core of other processes at which the requirement is checked


@dataclass(frozen=True, slots=True)
class Busy:
    """Laplace noise, and so many standard normals a sample that are of no use but take their time."""

    normals: int

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        outputs = answer + rng.laplace(size=size)
        for _ in range(self.normals):
            outputs += 0.0 * rng.standard_normal(size)
        return outputs

    @property
    def cost(self) -> float:
        """Seconds of processor time a sample: the least of several runs, which other programs slowed down least."""
        rng = np.random.default_rng(0)
        spent = []
        for _ in range(12):
            begin = time.process_time()
            self.sample(0.0, MEASURED, rng)
            spent.append(time.process_time() - begin)
        return min(spent) / MEASURED

    @classmethod
    def calibrated(cls) -> tuple[Busy, float]:
        """One that costs ``COST`` on this machine, and what it costs: the nearest of a few tries."""
        tried: dict[Busy, float] = {}
        normals = 500
        for _ in range(6):
            made = cls(normals)
            tried[made] = made.cost
            if abs(tried[made] / COST - 1.0) <= NEAR:
                break
            normals = max(1, round(normals * COST / tried[made]))
        return min(tried.items(), key=lambda found: abs(found[1] - COST))


class Waiting:
    """Laplace noise that waits five microseconds a sample, as for a device: busy cores count less."""

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        time.sleep(COST * size)
        return answer + rng.laplace(size=size)


def audit(mechanism: Any, executor: Executor | None, samples: int, seed: int) -> float:
    """Seconds by the clock."""
    begin = time.perf_counter()
    dpaudit.audit(mechanism, dpaudit.PureDP(1.0), PAIR, samples=samples, seed=seed, executor=executor)
    return time.perf_counter() - begin


def executors(counts: Sequence[int], stack: ExitStack) -> Iterator[tuple[str, int, Executor]]:
    """Warm executors, the one with a single worker first."""
    for count in counts:
        yield "processes", count, stack.enter_context(Workers(count))
    if importlib.util.find_spec("distributed") is not None:
        distributed, dask = importlib.import_module("distributed"), importlib.import_module("dask")
        # With Dask's own value of 64 KB every numpy array beyond it is a fresh piece of memory (docs/scaling.md).
        memory = {"MALLOC_TRIM_THRESHOLD_": 2**27, "MALLOC_MMAP_THRESHOLD_": 2**25}
        stack.enter_context(
            dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in memory.items()})
        )
        cluster = distributed.LocalCluster(
            n_workers=counts[-1], threads_per_worker=1, processes=True, dashboard_address=None, silence_logs="ERROR"
        )
        client = stack.enter_context(distributed.Client(stack.enter_context(cluster)))
        yield "Dask", counts[-1], client.get_executor(pure=False)


def throughput(samples: int, times: int, counts: Sequence[int], busy: Busy) -> Iterator[Row]:
    """One worker against several, in turns."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    with ExitStack() as stack:
        kinds = list(executors(counts, stack))
        for mechanism in (busy, Waiting()):
            for _, _, executor in kinds:
                audit(mechanism, executor, 20_000, 0)
            taken = [[audit(mechanism, executor, samples, seed) for *_, executor in kinds] for seed in range(times)]
            for place, (kind, count, _) in enumerate(kinds):
                ratio = statistics.median(row[0] / row[place] for row in taken)
                row: Row = {
                    "mechanism": type(mechanism).__name__.lower(),
                    "kind": kind,
                    "workers": count,
                    "rate": samples / statistics.median(row[place] for row in taken),
                    "ratio": ratio,
                    "limit": WANTED if count == 2 and kind == "processes" else None,
                    "load": load,
                }
                if row["limit"] is not None and ratio < WANTED and load <= IDLE:
                    row["fault"] = f"{row['mechanism']}: two workers are {ratio:.2f} times as fast, {WANTED} wanted"
                yield row


class Weighing(Executor):
    """Runs every task at once, here, and weighs it and its answer as they would travel."""

    def __init__(self) -> None:
        self._max_workers = 2
        self.out: list[int] = []
        self.back: list[int] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.out.append(len(pickle.dumps((fn, args, kwargs))))
        answer = fn(*args, **kwargs)
        self.back.append(len(pickle.dumps(answer)))
        future.set_result(answer)
        return future


class Slowed:
    """Any mechanism at five microseconds a sample, waited for."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        time.sleep(COST * size)
        return self.inner.sample(data, size, rng)


def _vector(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(scale=10.0, size=(size, 10))


def _scalar(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(size=size)


TRAVELLERS = {
    "Laplace": (dpaudit.batched(_scalar), PAIR),
    "Laplace, 10 coordinates": (dpaudit.batched(_vector), PAIR),
    "10 categories": (RandomisedResponse.k_ary(1.0, tuple(range(10))), [(0, 1)]),
}


def _note_round(ends: list[float], event: Event) -> None:
    if isinstance(event, RoundSettled):
        ends.append(time.process_time())


def traffic(samples: int) -> Iterator[Row]:
    """Weight of tasks and answers, and what a round costs the coordinator."""
    for name, (mechanism, pairs) in TRAVELLERS.items():
        scales = Weighing()
        dpaudit.audit(Slowed(mechanism), dpaudit.PureDP(1.0), pairs, samples=samples, seed=0, executor=scales)
        ends: list[float] = []
        with Workers(2) as workers:
            dpaudit.audit(
                Slowed(mechanism), dpaudit.PureDP(1.0), pairs, samples=samples, seed=0, executor=workers,
                on_event=partial(_note_round, ends),
            )  # fmt: skip
        spent = np.diff(ends)
        yield {
            "case": name,
            "tasks": len(scales.out),
            "out": statistics.median(scales.out) / 1024,
            "back_early": max(scales.back) / 1024,
            "back_late": scales.back[-1] / 1024,
            "per_round": float(np.median(spent[len(spent) // 2 :])) * 1e3,
        }


def per_task(count: int = 2000, size: int = 8192) -> float:
    """Milliseconds of the coordinator's processor time for sending one task of that size and receiving its answer."""
    payload = b"x" * size
    with Workers(2) as workers:
        workers.submit(bytes, payload).result()
        begin = time.process_time()
        for _ in range(count // 4):
            for future in [workers.submit(bytes, payload) for _ in range(4)]:
                future.result()
        return (time.process_time() - begin) / count * 1e3


def run(*, quick: bool, samples: int | None = None, times: int | None = None) -> Iterator[Table]:
    """Two workers against one; with more cores also four and eight."""
    samples = samples or (400_000 if quick else 2_000_000)
    times = times or (2 if quick else 5)
    cores = os.cpu_count() or 1
    counts = [count for count in (1, 2, 4, 8) if count <= max(cores, 2)]
    busy, cost = Busy.calibrated()
    yield Table(
        title=f"Scaling: samples a second over workers, {samples:,} samples at five microseconds each",
        note=(
            f"By the clock; the requirement is stated where the load of others is at most {IDLE} per core before the run. "
            f"Measured alone, a sample of the busy mechanism cost {cost * 1e6:.2f} us of processor time ({busy.normals} normals)."
        ),
        columns=(
            Column("mechanism", "mechanism", "<9"),
            Column("kind", "workers are", "<11"),
            Column("workers", "workers", ">7"),
            Column("rate", "samples/s", ">9,.0f"),
            Column("ratio", "against one", ">6.2f"),
            Column("limit", "wanted", ">6.1f"),
            Column("load", "load of others per core", ">6.2f"),
        ),
        rows=throughput(samples, times, counts, busy),
    )
    yield Table(
        title="Scaling: what travels, and what a round costs the coordinator",
        note=f"Sending and receiving one task costs the coordinator {per_task():.2f} ms of processor time.",
        columns=(
            Column("case", "case", "<24"),
            Column("tasks", "tasks", ">6"),
            Column("out", "task, KB", ">8.1f"),
            Column("back_early", "largest answer, KB", ">8.1f"),
            Column("back_late", "last answer, KB", ">8.1f"),
            Column("per_round", "coordinator, ms/round", ">8.1f"),
        ),
        # Answers are small only after 65,536 outputs of each side, which must be reached.
        rows=traffic(samples // 2 if quick else samples // 4),
    )
