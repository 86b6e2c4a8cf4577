"""How long the anonymity measures and Mondrian take on 100,000 records with four quasi-identifiers.

``python -m benchmarks.anonymity [RECORDS]`` prints seconds, and as a machine-independent ratio the multiple of one pandas
``groupby`` over the same columns. It fails where Mondrian takes 10 seconds or the measures together 2.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def main(records: int = 100_000) -> int:
    frame = data(records)
    unit, _ = timed(lambda: frame.groupby(QUASI_IDENTIFIERS).size())
    print(f"{records} records; one groupby takes {unit:.3f} s")

    def report(name: str, seconds: float, note: str = "") -> float:
        print(f"  {name:<44}{seconds:>8.3f} s  {seconds / unit:>8.1f} groupbys  {note}")
        return seconds

    seconds, table = timed(
        lambda: anonymity.Table.from_frame(frame, quasi_identifiers=QUASI_IDENTIFIERS, sensitive=SENSITIVE)
    )
    report("reading a data frame", seconds)
    slowest = 0.0
    for k in (2, 5, 10, 50):
        seconds, done = timed(lambda k=k: anonymity.mondrian(table, k=k))
        slowest = max(slowest, report(f"Mondrian k={k}", seconds, f"{len(done.table.classes)} classes"))
        if k == 5:
            published = done
    seconds, done = timed(lambda: anonymity.mondrian(table, k=5, l=3, t=0.7))
    slowest = max(slowest, report("Mondrian k=5, l=3, t=0.7", seconds, f"{len(done.table.classes)} classes"))

    measures: dict[str, Callable[[anonymity.Table], Any]] = {
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
    total = 0.0
    for name, measure in measures.items():
        seconds, result = timed(lambda measure=measure: measure(published.table))
        value = getattr(result, "value", None)
        total += report(name, seconds, "" if value is None else f"= {value:.6g}")
    report("all measures", total)
    for distance in ("tv", "kl"):
        seconds, result = timed(
            lambda d=distance: anonymity.n_epsilon_closeness(published.table, 1000, "disease", distance=d)
        )
        report(f"(1000, epsilon)-closeness, {distance}", seconds, f"= {result.value:.6g}")
    seconds, audit = timed(
        lambda: anonymity.audit_release(
            frame, published.frame, quasi_identifiers=QUASI_IDENTIFIERS, sensitive=SENSITIVE
        )
    )
    report("audit of the release", seconds, str(audit))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        published.frame.to_csv(path, index=False)
        seconds, _ = timed(
            lambda: anonymity.Table.from_file(path, quasi_identifiers=QUASI_IDENTIFIERS, sensitive=SENSITIVE)
        )
        report("reading the CSV file", seconds)
    met = slowest < 10.0 and total < 2.0
    print("requirements met" if met else "requirements NOT met")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
