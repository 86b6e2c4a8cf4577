"""False alarms, and lower bounds above the truth, among many audits of mechanisms that keep their claim with equality.

Audits are run in both ways, all looks included: until a violation, and to the end of the budget, where wealth that once
passed the threshold counts and so does the best bound of all looks. In the latter what is drawn does not depend on alpha,
and neither does the wealth; the threshold rises as alpha falls. So an audit that raises no alarm at the largest alpha
raises none at a smaller one, and its bound at a smaller alpha is no larger: only the audits in which either happened are
run again at the smaller ones. Every hundredth is run at all of them anyway, and must agree. An audit that tried to confirm
a violation on single releases may go on otherwise after that, so it is not compared.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import dpaudit
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import Verdict
from dpaudit._util.intervals import clopper_pearson
from mechanisms.registry.tight import Tight, tight_mechanisms

ALPHAS = (0.1, 0.05, 0.01)
CONFIDENCE = 0.999
AT_A_TIME = 20
CHECK_EVERY = 100
WAYS = (("given", "violation"), ("given", "budget"), ("searched", "budget"))  # pairs, and until when
KINDS = ("alarms", "epsilon above", "parameter above")


def events(tight: Tight, way: tuple[str, str], seed: int, samples: int, alpha: float) -> tuple[frozenset[str], Any]:
    """The errors of one audit that must be rare, and the course of its wealth; None if a confirmation was tried."""
    result = dpaudit.audit(
        tight.mechanism,
        tight.claim,
        tight.everywhere() if tight.everywhere and way[0] == "searched" else tight.pairs,
        samples=samples, alpha=alpha, seed=seed, until=way[1], shrink=False,
    )  # fmt: skip
    happened = {
        "alarms": result.verdict is Verdict.VIOLATION,
        "epsilon above": result.epsilon_lower > tight.epsilon * (1.0 + 1e-12),
        "parameter above": result.parameter_lower > tight.claim.parameter * (1.0 + 1e-12),
    }
    course = None if result.samples_confirming else result.trajectory
    return frozenset(kind for kind, true in happened.items() if true), course


def one_audit(tight: Tight, way: tuple[str, str], seed: int, samples: int) -> list[tuple[str, float]]:
    """The rare events of one seed, each with the alpha at which it happened."""
    if way[1] == "violation":  # rounds are finer where the threshold is near
        return [(kind, alpha) for alpha in ALPHAS for kind in events(tight, way, seed, samples, alpha)[0]]
    first, course = events(tight, way, seed, samples, ALPHAS[0])
    seen = [(kind, ALPHAS[0]) for kind in first]
    if first or course is None or seed % CHECK_EVERY == 0:
        for alpha in ALPHAS[1:]:
            now, again = events(tight, way, seed, samples, alpha)
            if None not in (again, course) and (again != course or not now <= first):
                raise AssertionError(f"{tight.name}, seed {seed}: the course of an audit depends on alpha={alpha}")
            seen += [(kind, alpha) for kind in now]
    return seen


def several(task: tuple[int, tuple[str, str], Sequence[int], int]) -> Counter[tuple[str, float]]:
    """Counts over the seeds of one task."""
    number, way, seeds, samples = task
    tight = tight_mechanisms()[number]
    return Counter(itertools.chain.from_iterable(one_audit(tight, way, seed, samples) for seed in seeds))


def interval(count: int, trials: int) -> tuple[float, float]:
    """Exact (Clopper-Pearson) two-sided interval for a probability."""
    return clopper_pearson(count, trials, alpha=1.0 - CONFIDENCE)


def judged(name: str, way: tuple[str, str], alpha: float, audits: int, counts: Counter[tuple[str, float]]) -> Row:
    """One row: shares, the interval of the largest, and whether it is compatible with alpha."""
    row: Row = {"mechanism": name, "pairs": way[0], "until": way[1], "alpha": alpha, "audits": audits}
    row |= {kind: counts[kind, alpha] for kind in KINDS}
    largest = max(counts[kind, alpha] for kind in KINDS)
    low, high = interval(largest, audits)
    row |= {"share": largest / audits, "low": low, "high": high}
    row["verdict"] = "ok" if largest <= alpha * audits else "within error" if low <= alpha else "ABOVE ALPHA"
    if low > alpha:
        row["fault"] = (
            f"{name}, {' until '.join(way)}: {largest} of {audits} audits at alpha={alpha}, more than chance allows"
        )
    return row


def rows(*, audits: int, samples: int, ways: Sequence[tuple[str, str]], workers: int) -> Iterator[Row]:
    """Every mechanism, in every way, at every alpha."""
    with mapper(workers) as spread:
        for number, tight in enumerate(tight_mechanisms()):
            for way in ways:
                if way[0] == "searched" and tight.everywhere is None:
                    continue
                batches = [range(first, min(first + AT_A_TIME, audits)) for first in range(0, audits, AT_A_TIME)]
                tasks = [(number, way, seeds, samples) for seeds in batches]
                counts: Counter[tuple[str, float]] = sum(spread(several, tasks), Counter())
                for alpha in ALPHAS:
                    yield judged(tight.name, way, alpha, audits, counts)


def run(
    *, quick: bool, audits: int | None = None, samples: int | None = None, workers: int = WORKERS
) -> Iterator[Table]:
    """2,000 audits of 5,000 samples each; in quick mode 120 of 700, on the pairs given."""
    audits = audits or (120 if quick else 2000)
    samples = samples or (700 if quick else 5000)
    yield Table(
        title=f"Soundness: {audits:,} audits of {samples:,} samples of each tight mechanism",
        note=f"Share: the most frequent of the three, with its exact {CONFIDENCE:.1%} interval; it may not exceed alpha.",
        columns=(
            Column("mechanism", "mechanism", "<28"),
            Column("pairs", "pairs", "<8"),
            Column("until", "until", "<9"),
            Column("alpha", "alpha", ">5g"),
            Column("alarms", "false alarms"),
            Column("epsilon above", "epsilon_lower > truth"),
            Column("parameter above", "parameter_lower > truth"),
            Column("share", "share", ">7.4f"),
            Column("low", "from", ">7.4f"),
            Column("high", "to", ">7.4f"),
            Column("verdict", "verdict", "<11"),
        ),
        rows=rows(audits=audits, samples=samples, ways=WAYS[:2] if quick else WAYS, workers=workers),
    )
