"""Heavy verification of the accuracy theorems: thousands of points, known counterexamples, and the exact law's speed.

A check fails where a corrected form is violated, a counterexample is not found, or the exact law over random data takes
longer than it may. Quick mode thins the grids, and leaves out the largest laws and the searches.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias
from unittest.mock import patch

from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit.accuracy.bound import Status, Variant
from dpaudit.accuracy.regions import grid_points
from dpaudit.accuracy.theorems import THEOREMS, find_theorem
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import histogram_law
from dpaudit.accuracy.verification import verify

Check: TypeAlias = tuple[str, bool, str]  # name, whether it is met, detail
HALF = Fraction(1, 2)

# Laws are shared between points that differ only in gamma and beta, so many points cost little. Vacuous points decide
# nothing, and do not count: epsilon and n are large enough for the corrected bounds to say something.
DECILES = {
    "n": [60, 200, 500],
    "steps": [1, 5, 17, 60],
    "i": [1, 3, 5, 9],
    "gamma": [0.02, 0.04, 0.06, 0.08, 0.1],
    "beta": [0.005, 0.02, 0.05, 0.1, 0.2],
    "epsilon": [10.0, 40.0, 150.0, 600.0],
}
MEANS = {
    "n": [3, 7, 20, 50, 120, 300],
    "i": list(range(1, 10)),
    "epsilon": [3.0 * 1.6**power for power in range(1, 23)] + [1e6, 1e7],
}
GRIDS: dict[str, Any] = {
    "histogram-uniform": DECILES,
    "histogram-normal": {**DECILES, "gamma": [0.1, 0.3, 0.6, 1.0, 1.4]},
    "mean-error": {**MEANS, "beta": [0.001, 0.01, 0.1]},
    "mean-error-corollary": MEANS,
    "mean-error-closed": {**MEANS, "n": [50, 100, 150, 200, 250, 300, 400]},
    "mean-error-monotone": MEANS,
}
# docs/theory.md R10, epsilon rounded as printed: n, steps, beta, epsilon, exact P(0.4 <= A <= 0.6), and with the width of a bin
# allowed for.
VIOLATIONS = [
    (4000, 4000, 0.03, 0.587941, 0.938332, 0.939258),
    (5000, 5000, 0.02, 0.525, 0.966427710, 0.966892080),
    (3000, 12000, 0.03, 0.9062, 0.937503425, 0.937862697),
    (4000, 16000, 0.03, 0.6532, 0.896354, 0.896768),
]


def corrected(*, quick: bool, workers: int) -> Iterator[Check]:
    """Every form that is expected to hold; the forms of a theorem share laws, and therefore a process."""
    # Processes that each start a thread a core wait for one another, the more so where others use the cores too.
    with patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"), mapper(workers) as spread:
        for checks in spread(holding, [(theorem.name, quick) for theorem in THEOREMS]):
            yield from checks


def holding(task: tuple[str, bool]) -> list[Check]:
    """The forms of a theorem that should hold, at a thousand points at least where they say something; in quick mode 50."""
    name, quick = task
    theorem, checks = find_theorem(name), []
    least, points, seeds = (50, 200, 1) if quick else (1000, 400, 12)
    if name == "normal-deciles":  # all there are
        least, seeds = 9, 1
    for form in theorem.forms:
        if form.expected is not Status.HOLDS:
            continue
        tally: Counter[Status] = Counter()
        started = time.perf_counter()
        grid = GRIDS.get(name)
        # Hypothesis draws no point twice and small regions run out, so several seeds are joined.
        runs: list[dict[str, Any]] = [{"seed": seed, "points": points} for seed in range(seeds)]
        for options in [{"where": grid_points(thinned(grid) if quick else grid)}] if grid else runs:
            (result,) = verify(theorem, variants=[form.variant], seconds=1200.0, **options)
            tally.update(result.counts)
            if tally[Status.HOLDS] >= least:
                break
        counts = ", ".join(f"{count} {status}" for status, count in tally.items())
        passed = tally[Status.HOLDS] >= least and not tally[Status.VIOLATED]
        checks.append((f"{name}, {form.variant}", passed, f"{counts}, {time.perf_counter() - started:.1f} s"))
    return checks


def thinned(grid: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Every other value, but all steps and deciles, and few epsilons as they are."""
    keep = [axis for axis, values in grid.items() if axis in ("steps", "i") or (axis == "epsilon" and len(values) < 5)]
    return {axis: values if axis in keep else values[::2] for axis, values in grid.items()}


def published(largest: int) -> Iterator[Check]:
    """The counterexamples of docs/theory.md R10, by the exact law over random data."""
    for n, steps, beta, epsilon, plain, widened in VIOLATIONS:
        if n * steps > largest:
            continue
        started = time.perf_counter()
        law = histogram_law(HistogramSetting(n=n, steps=steps, quantile=HALF, epsilon=epsilon))
        near = abs(law.within(0.1) - plain) < 1e-6 and abs(law.within(0.1, below=1 / steps) - widened) < 1e-6
        point = {"n": n, "steps": steps, "i": 5, "gamma": 0.1, "beta": beta, "epsilon": epsilon}
        results = verify("histogram-uniform", [point], variants=[Variant.SEMI_REPAIRED, Variant.SEMI_WIDENED])
        refuted = all(result.status is Status.VIOLATED for result in results)
        seconds = time.perf_counter() - started
        claimed = results[0].rows[0].bound.value
        detail = f"claimed {claimed:.6f}, true {law.within(0.1):.6f}, {seconds:.1f} s"
        yield f"semi-repaired at n={n}, steps={steps}", near and refuted, detail


def searches() -> Iterator[Check]:
    """Check that the search refutes every form that is expected to be false, without knowing where it fails."""
    for theorem in THEOREMS:
        for form in theorem.forms:
            if form.expected is Status.VIOLATED:
                (result,) = verify(theorem, variants=[form.variant], points=100, seconds=240.0)
                row = result.counterexample
                detail = "nothing found" if row is None else f"{dict(row.point)}, excess {row.excess:.3g}"
                found = result.status is Status.VIOLATED
                yield f"{theorem.name}, {form.variant} is refuted", found, f"{detail}, {result.seconds:.1f} s"


def speed(*, quick: bool) -> Iterator[Check]:
    """Time of the exact law over random data."""
    for n, steps, limit in [(1000, 217, 2.0)] + ([] if quick else [(5000, 20_000, 60.0)]):
        histogram_law.cache_clear()
        started = time.process_time()
        histogram_law(HistogramSetting(n=n, steps=steps, quantile=HALF, epsilon=1.0))
        seconds = time.process_time() - started
        yield f"exact law, n={n}, steps={steps}", seconds < limit, f"{seconds:.2f} of {limit:g} CPU seconds"


def rows(*, quick: bool, workers: int) -> Iterator[Row]:
    """Every check as a row."""
    parts = [speed(quick=quick), corrected(quick=quick, workers=workers), published(2 * 10**7 if quick else 10**8)]
    if not quick:
        parts.append(searches())
    for name, passed, detail in itertools.chain.from_iterable(parts):
        row: Row = {"check": name, "met": "ok" if passed else "FAIL", "detail": detail}
        yield row if passed else {**row, "fault": f"{name}: {detail}"}


def run(*, quick: bool, workers: int = WORKERS) -> Iterator[Table]:
    """All checks; in quick mode those of a minute."""
    yield Table(
        title="Accuracy theorems: corrected forms hold, printed ones are refuted, exact laws are fast",
        columns=(Column("met", "", "<4"), Column("check", "check", "<48"), Column("detail", "detail", "<60")),
        rows=rows(quick=quick, workers=workers),
    )
