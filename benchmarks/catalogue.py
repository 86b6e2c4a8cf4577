"""The catalogue table: truth, the best published bound, ours, their ratio, CPU seconds, and where it falls short the limit.

Bounds hold with 99.9 % confidence (the published ones with 90 %); all samples are counted, the search of the pair included.
DP-Sniper's columns are its own implementation run on two cores like ours, with a tenth or a hundredth of its samples.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import dpaudit
from benchmarks.best_possible import best_on_pairs
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from mechanisms.registry import catalogue

ALPHA = 1e-3
QUICK, FULL = 20_000_000, 200_000_000
# In this order rows are begun, so that no process idles at the end.
LONGEST_FIRST = (18, 20, 17, 19, 11, 15, 14, 16, 4, 3, 10, 9, 12, 7, 13, 2, 5, 8, 6, 1)


class Goal(NamedTuple):
    """The requirement: with so many samples, this share of the smaller of published and true, on so many rows."""

    share: float
    rows: int


class Measured(NamedTuple):
    """DP-Sniper on the same row, and whether the output is one number: there a tenth of its time must do."""

    bound: float
    cpu: float
    scalar: bool = False


SNIPER = {
    1: Measured(0.0918, 25, True),
    2: Measured(0.1107, 27, True),
    3: Measured(0.0923, 33),
    4: Measured(4.60, 33),
    5: Measured(0.0878, 67, True),
    6: Measured(0.0538, 17, True),
    7: Measured(0.2475, 65, True),
    8: Measured(0.320, 21, True),
    9: Measured(0.0629, 28),
    11: Measured(0.142, 30),
    12: Measured(0.0951, 27),
    13: Measured(1.751, 20),
    14: Measured(0.2658, 108),
    15: Measured(0.205, 24),
    16: Measured(0.5937, 75),
    19: Measured(0.484, 116),
}


def goal(samples: int) -> Goal:
    return Goal(0.97, 17) if samples >= FULL else Goal(0.90, 14)


def row(task: tuple[int, int, int]) -> Row:
    """Audit one mechanism of the catalogue for its best lower bound."""
    number, samples, seed = task
    entry = catalogue.entries()[number - 1]
    mechanism, where = entry.make(), entry.neighbours()
    dpaudit.audit(
        mechanism, entry.claim, where, samples=3_000, seed=seed, shrink=False
    )  # imports, and the pool of pairs
    begin = time.process_time()
    result = dpaudit.audit(
        mechanism, entry.claim, where,
        samples=samples, alpha=ALPHA, until="budget", seed=seed, shrink=False, name=entry.name,
    )  # fmt: skip
    cpu = time.process_time() - begin
    truth, published = entry.bracket[1], float(entry.published or 0.0)
    measured: Row = {
        "row": number,
        "mechanism": entry.name.removeprefix("catalogue-"),
        "truth": truth,
        "published": published,
        "bound": result.epsilon_lower,
        "ratio": result.epsilon_lower / min(truth, published),
        "cpu": cpu,
        "samples": result.samples,
    }
    if number in SNIPER:
        measured |= {"sniper": SNIPER[number].bound, "sniper_cpu": SNIPER[number].cpu}
    if measured["ratio"] < goal(samples).share or measured["bound"] < measured.get("sniper", 0.0):
        measured["best"] = best_on_pairs(mechanism, where.pool(24), samples, ALPHA)
        measured["of_best"] = result.epsilon_lower / measured["best"] if measured["best"] > 0.0 else None
    if result.epsilon_lower > truth * (1.0 + 1e-9):
        measured["fault"] = f"{entry.name}: the bound {result.epsilon_lower:.4f} lies above the truth {truth:.4f}"
    return measured


def summary(rows: Sequence[Row], samples: int) -> Iterator[Row]:
    """The requirements on the table as a whole."""
    share, wanted = goal(samples)
    yield _line(
        f"at least {share:.0%} of the smaller of published and truth", wanted, [r["ratio"] >= share for r in rows]
    )
    yield _line("above the published bound", None, [r["bound"] > r["published"] for r in rows])
    if samples > QUICK:  # DP-Sniper was run with about as many samples as quick mode
        return
    known = [(r, SNIPER[r["row"]]) for r in rows if r["row"] in SNIPER]
    # Where DP-Sniper had more samples, its bound can lie above all that so few could show.
    reachable = [(r, other) for r, other in known if r.get("best", math.inf) >= other.bound]
    yield _line(
        "at least DP-Sniper's bound here, where so many samples can show it",
        len(reachable), [r["bound"] >= other.bound for r, other in reachable],
    )  # fmt: skip
    faster = [r["cpu"] <= other.cpu * (0.1 if other.scalar else 1.0) for r, other in known]
    yield _line("in less CPU time (scalar rows: a tenth)", len(known), faster)


def _line(name: str, wanted: int | None, met: list[bool]) -> Row:
    line: Row = {"requirement": name, "rows": sum(met), "of": len(met), "wanted": wanted}
    if wanted is not None and sum(met) < min(wanted, len(met)):
        line["fault"] = f"{name}: {sum(met)} rows of {wanted}"
    return line


def run(
    *,
    quick: bool,
    samples: int | None = None,
    numbers: Sequence[int] = range(1, 21),
    workers: int = WORKERS,
    seed: int = 0,
) -> Iterator[Table]:
    """20 million samples a row in quick mode, 200 million in full."""
    samples = samples or (QUICK if quick else FULL)
    done: list[Row] = []

    def rows() -> Iterator[Row]:
        order = sorted(numbers, key=LONGEST_FIRST.index)
        with mapper(workers) as spread:
            found = dict(zip(order, spread(row, [(number, samples, seed) for number in order]), strict=True))
        done.extend(found[number] for number in numbers)
        yield from done

    yield Table(
        title=f"Catalogue: lower bounds on epsilon at 99.9 % confidence, {samples:,} samples in all",
        note=(
            "Ratio: ours over the smaller of published and truth. Best possible: what an audit that knows the laws and the best "
            "pair shows with as many samples (`benchmarks/best_possible.py`), computed where ours falls short of a figure."
        ),
        columns=(
            Column("row", "#", ">2"),
            Column("mechanism", "mechanism", "<19"),
            Column("truth", "truth", ">8.4f"),
            Column("published", "published", ">9.4f"),
            Column("bound", "ours", ">8.4f"),
            Column("ratio", "ratio", ">6.3f"),
            Column("cpu", "CPU s", ">6.1f"),
            Column("best", "best possible", ">8.4f"),
            Column("of_best", "ours / best", ">6.3f"),
            Column("sniper", "DP-Sniper", ">8.4f"),
            Column("sniper_cpu", "its CPU s", ">6.0f"),
        ),
        rows=rows(),
    )
    if len(done) < len(catalogue.entries()):  # the requirements are on the whole table
        return
    yield Table(
        title="Catalogue: requirements",
        columns=(
            Column("requirement", "requirement", "<66"),
            Column("rows", "rows"),
            Column("of", "of"),
            Column("wanted", "wanted"),
        ),
        rows=summary(done, samples),
    )
