"""Judge and audit every mutant, and say what was caught."""

from __future__ import annotations

import functools
import itertools
import math
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import dpaudit
from benchmarks.mutation.derived import LEFT_OUT, LIMITS
from benchmarks.mutation.judging import judge, with_code
from benchmarks.mutation.mutants import Litter, litter, pool_of
from benchmarks.mutation.subjects import subjects
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import Verdict
from dpaudit._util.validation import shorten
from dpaudit.errors import MechanismError

SAMPLES = 300_000
ALPHA = 1e-6
EXPOSED = 60_000  # samples with which the best event on the best pair would expose a mutant that has to be caught
SHARE = 0.95
QUICK = 3
PARTS = 8  # in which the mutants of a mechanism are run, so that their rows come soon and no worker waits long
REFUSED = "REFUSED"


def rows_of(task: tuple[int, int, int, int]) -> list[Row]:
    """Judge and audit one part of the mutants of one mechanism."""
    number, part, samples, seed = task
    made = _litter(number)
    first, last = (len(made.mutants) * end // PARTS for end in (part, part + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a mutant may divide by zero; that is its output
        return [row_of(made, place, samples, seed) for place in range(first, last)]


@functools.cache
def _litter(number: int) -> Litter:
    return litter(subjects()[number])


def row_of(made: Litter, place: int, samples: int, seed: int) -> Row:
    """The truth about one mutant, and the verdict of one audit."""
    mutant, subject = made.mutants[place], made.subject
    truth = with_code(judge(mutant, made.claim, subject, pool_of(subject)), mutant, made.claim)
    begin = time.process_time()
    row: Row = {
        "mechanism": subject.name,
        "mutation": mutant.name,
        "replays": mutant.refused,
        "epsilon": truth.epsilon,
        "epsilon from": "code" if truth.from_code else "law",
        "harmful": truth.harmful,
        "needs": truth.samples,
        "event": None if truth.event is None else [truth.event.p, truth.event.q],
        "pair": [shorten(side, 200) for side in truth.pair],
    }
    try:
        result = dpaudit.audit(
            mutant.mechanism, made.claim, subject.neighbours(),
            samples=samples, alpha=ALPHA, seed=seed, shrink=False, progress=False, name=f"{subject.name}: {mutant.name}",
        )  # fmt: skip
        row |= {"verdict": result.verdict.value, "used": result.samples, "pairs tried": result.pairs}
        row["log-wealth"] = max((wealth for _, wealth in result.trajectory), default=0.0)
        if result.witness is not None:
            row["witness"] = [shorten(side, 200) for side in (result.witness.data, result.witness.neighbour)]
    except MechanismError as error:
        row |= {"verdict": REFUSED, "used": 0, "said": str(error).splitlines()[0]}
    row["cpu"] = time.process_time() - begin
    row |= judged(row)
    if truth.contradicted is not None:
        row["fault"] = (
            f"{row['mechanism']}, {row['mutation']}: its law has epsilon {truth.contradicted:g}, its code another one"
        )
    return row


def judged(row: Row) -> Row:
    """Classify a row: caught, missed, out of reach, passed; false alarms are faults.

    So is a refusal of a mutant whose randomness is in order: the audit said nothing about it, and not for its bug.
    """
    if row["verdict"] == REFUSED and not row["replays"]:
        said = f"{row['mechanism']}, {row['mutation']}: refused, though it replays nothing: {row.get('said', '')}"
        return {"outcome": "REFUSED", "fault": said}
    caught = row["verdict"] in (Verdict.VIOLATION.value, REFUSED)
    if not row["harmful"]:
        fault = {"fault": f"{row['mechanism']}, {row['mutation']}: harmless, and flagged"} if caught else {}
        return {"outcome": "FALSE ALARM" if caught else "harmless"} | fault
    if caught:
        return {"outcome": "caught"}
    return {"outcome": "MISSED" if row["needs"] <= EXPOSED else "out of reach"}


def score(rows: list[Row]) -> Row:
    """The rule: of the harmful mutants that the best event would expose, the share that was caught."""
    exposable = [row for row in rows if row["harmful"] and row["needs"] <= EXPOSED]
    counts = Counter(row["outcome"] for row in rows)
    caught = sum(row["outcome"] == "caught" for row in exposable)
    total: Row = {
        "mutants": len(rows),
        "from code": sum(row.get("epsilon from") == "code" for row in rows),
        "harmful": sum(row["harmful"] for row in rows),
        "exposable": len(exposable),
        "caught": caught,
        "refused": sum(row["verdict"] == REFUSED and row["outcome"] == "caught" for row in exposable),
        "share": caught / len(exposable) if exposable else math.nan,
        "beyond": counts["caught"] - caught,
        "false alarms": counts["FALSE ALARM"],
    }
    if total["share"] < SHARE:
        total["fault"] = f"{total['share']:.1%} of the exposable mutants are caught; {SHARE:.0%} are required"
    return total


COLUMNS = (
    Column("mutation", "mutation", "<72"),
    Column("epsilon", "exact epsilon", ">.4f"),
    Column("epsilon from", "from", "<4"),
    Column("needs", "best event needs", ">,.0f"),
    Column("verdict", "verdict", "<18"),
    Column("used", "samples used", ">,d"),
    Column("outcome", "outcome", "<12"),
)


def run(
    *, quick: bool, samples: int | None = None, seed: int = 0, names: tuple[str, ...] = (), workers: int = WORKERS
) -> Iterator[Table]:
    """All mutants; in quick mode those of the first three mechanisms. ``names`` picks mechanisms by name."""
    budget = samples or SAMPLES
    chosen = [number for number, subject in enumerate(subjects()) if not names or subject.name in names]
    chosen = chosen[:QUICK] if quick else chosen
    rows: list[Row] = []
    with mapper(workers) as spread:
        tasks = [(number, part, budget, seed) for number in chosen for part in range(PARTS)]
        parts = spread(rows_of, tasks)
        for number in chosen:
            yield Table(
                title=f"Mutants of {subjects()[number].name}", columns=COLUMNS,
                rows=_noted(itertools.chain.from_iterable(itertools.islice(parts, PARTS)), rows),
                note=f"Claimed epsilon 1; audits of {budget:,} samples at alpha {ALPHA:g}, pairs searched.",
            )  # fmt: skip
    missed = [row for row in rows if row["outcome"] in ("MISSED", "REFUSED", "out of reach")]
    yield Table(
        title="Not caught", columns=(Column("mechanism", "mechanism", "<28"), *COLUMNS),
        rows=sorted(missed, key=lambda row: row["needs"]),
        note="With the samples, of both sides, that the best event on the best pair needs for power 0.99 at that alpha.",
    )  # fmt: skip
    yield _score_table([score(rows)])
    if not names:
        yield Table(
            title="Left out", columns=(Column("mechanism", "mechanism", "<36"), Column("why", "why", "<100")),
            rows=[{"mechanism": name, "why": why} for name, why in {**LEFT_OUT, **LIMITS}.items()],
            note="Sound mechanisms of the registry that are not mutated, and what is not mutated of others.",
        )  # fmt: skip


def _noted(measured: Iterable[Row], rows: list[Row]) -> Iterator[Row]:
    """Yield rows as they come, and keep them."""
    for row in measured:
        rows.append(row)
        yield row


def _score_table(rows: list[Any]) -> Table:
    headings = {
        "mutants": "mutants",
        "from code": "epsilon from code",
        "harmful": "harmful",
        "exposable": f"exposable with {EXPOSED:,}",
        "caught": "of these caught",
        "refused": "by refusal",
        "share": "share",
        "beyond": "caught beyond",
        "false alarms": "false alarms",
    }
    columns = tuple(Column(key, text, ">.1%" if key == "share" else ">,d") for key, text in headings.items())
    return Table(title="Score", columns=columns, rows=rows)
