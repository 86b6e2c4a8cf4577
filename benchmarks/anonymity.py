"""The time that the anonymity measures and Mondrian take on 100,000 records with four quasi-identifiers.

Processor seconds, and as a machine-independent ratio the multiple of one pandas ``groupby`` over the same columns. Mondrian
may take 10 seconds, the measures together 2.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import Column, Row, Table
from dpaudit import anonymity

QUASI_IDENTIFIERS = ["age", "plz", "income", "job"]
SENSITIVE = ["disease", "salary"]


def data(records: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 90, records),
            "plz": rng.integers(1000, 9999, records),
            "income": rng.gamma(2.0, 20_000.0, records).round(2),
            "job": rng.choice([f"job {i}" for i in range(30)], records),
            "disease": rng.choice([f"disease {i}" for i in range(25)], records, p=np.arange(1, 26) / 325),
            "salary": rng.integers(20_000, 100_000, records),
        }
    )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


MEASURES: dict[str, Callable[[anonymity.Table], Any]] = {
    "k-anonymity": anonymity.k_anonymity,
    "(alpha, k)-anonymity": anonymity.alpha_k_anonymity,
    "distinct l-diversity": anonymity.l_diversity,
    "entropy l-diversity": lambda t: anonymity.l_diversity(t, kind="entropy"),
    "recursive (c, 2)-diversity": lambda t: anonymity.recursive_diversity(t, level=2),
    "t-closeness, tv": anonymity.t_closeness,
    "t-closeness, kl": lambda t: anonymity.t_closeness(t, distance="kl"),
    "t-closeness, emd over the order of salary": lambda t: anonymity.t_closeness(
        t, "salary", distance=anonymity.EarthMovers(anonymity.Ordered())
    ),
    "beta-likeness": anonymity.beta_likeness,
    "delta-disclosure": anonymity.delta_disclosure,
}


def rows(records: int) -> Iterator[Row]:
    """Everything on that many records."""
    frame = data(records)
    unit, _ = timed(lambda: frame.groupby(QUASI_IDENTIFIERS).size())

    def row(name: str, seconds: float, note: str = "", limit: float | None = None) -> Row:
        measured: Row = {"what": name, "seconds": seconds, "groupbys": seconds / unit, "limit": limit, "note": note}
        if limit is not None and seconds > limit:
            measured["fault"] = f"{name}: {seconds:.1f} CPU seconds, {limit:g} allowed"
        return measured

    yield row("one groupby", unit)
    seconds, table = timed(
        lambda: anonymity.Table.from_frame(frame, quasi_identifiers=QUASI_IDENTIFIERS, sensitive=SENSITIVE)
    )
    yield row("reading a data frame", seconds)
    for k in (2, 10, 50, 5):
        seconds, published = timed(partial(anonymity.mondrian, table, k=k))
        yield row(f"Mondrian k={k}", seconds, f"{len(published.table.classes)} classes", 10.0)
    seconds, done = timed(lambda: anonymity.mondrian(table, k=5, l=3, t=0.7))
    yield row("Mondrian k=5, l=3, t=0.7", seconds, f"{len(done.table.classes)} classes", 10.0)
    total = 0.0
    for name, measure in MEASURES.items():
        seconds, result = timed(partial(measure, published.table))
        total += seconds
        value = getattr(result, "value", None)
        yield row(name, seconds, "" if value is None else f"= {value:.6g}")
    yield row("all measures", total, limit=2.0)
    for distance in ("tv", "kl"):
        least = max(10, records // 100)
        closeness = partial(anonymity.n_epsilon_closeness, published.table, least, "disease", distance=distance)
        seconds, result = timed(closeness)
        yield row(f"(n/100, epsilon)-closeness, {distance}", seconds, f"= {result.value:.6g}")
    seconds, audit = timed(
        lambda: anonymity.audit_release(
            frame, published.frame, quasi_identifiers=QUASI_IDENTIFIERS, sensitive=SENSITIVE
        )
    )
    yield row("audit of the release", seconds, str(audit).splitlines()[0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        published.frame.to_csv(path, index=False)
        seconds, _ = timed(
            lambda: anonymity.Table.from_file(path, quasi_identifiers=QUASI_IDENTIFIERS, sensitive=SENSITIVE)
        )
        yield row("reading the CSV file", seconds)


def run(*, quick: bool, records: int | None = None) -> Iterator[Table]:
    """100,000 records, 20,000 in quick mode."""
    records = records or (20_000 if quick else 100_000)
    yield Table(
        title=f"Anonymity of {records:,} records with four quasi-identifiers",
        columns=(
            Column("what", "what", "<42"),
            Column("seconds", "CPU s", ">8.3f"),
            Column("groupbys", "groupbys", ">9.1f"),
            Column("limit", "limit", ">5.0f"),
            Column("note", "", "<30"),
        ),
        rows=rows(records),
    )
