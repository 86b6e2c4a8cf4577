"""Which mechanisms of the registry can be followed from their code: epsilon extracted, declared and true, and milliseconds.

Every mechanism is run as it is, with its own vectorised sampler for one release. Both columns of epsilon are on the same
pairs: the first corner pairs of its neighbours. A mechanism that declares a law must agree with what is extracted.
"""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.tables import Column, Row, Table
from dpaudit import exact, neighbours
from dpaudit.errors import CannotFollow, DPAuditError
from dpaudit.symbolic.running.extraction import Limits
from dpaudit.symbolic.verification import CodeVerification, verify_code
from mechanisms.registry import Entry, entries

PAIRS = 2
GOAL = 0.6
AGREE = 1e-9
COLUMNS = (
    Column("name", "mechanism", "<40"),
    Column("followed", "followed", "<8"),
    Column("extracted", "epsilon extracted", ">22"),
    Column("declared", "declared", ">12"),
    Column("truth", "true, all pairs", ">15"),
    Column("milliseconds", "ms", ">7.0f"),
    Column("reason", "why not, and where", "<30"),
)


class _TooLong(BaseException):
    """Not an Exception: the code under extraction may catch those."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def run(*, quick: bool) -> Iterator[Table]:
    """One row a mechanism, then the share that is followed."""
    rows: list[Row] = []

    def measured() -> Iterator[Row]:
        for entry in entries():
            rows.append(_row(entry, seconds=2.0 if quick else 8.0))
            yield rows[-1]

    yield Table(
        title="Mechanisms of the registry, followed from their code",
        columns=COLUMNS,
        rows=measured(),
        note=f"On the first {PAIRS} corner pairs. `cut`: too many paths; the interval is not decided.",
    )
    followed = sum(row["followed"] == "yes" for row in rows)
    share = followed / len(rows)
    summary: Row = {"followed": followed, "of": len(rows), "share": share}
    if not quick and share < GOAL:
        summary["fault"] = f"only {share:.0%} of the mechanisms are followed, {GOAL:.0%} are wanted."
    yield Table(
        title="Share that is followed",
        columns=(Column("followed", "followed"), Column("of", "of"), Column("share", "share", ">6.0%")),
        rows=[summary],
    )


def _row(entry: Entry, seconds: float) -> Row:
    mechanism, known = entry.make(), entry.neighbours()
    row: Row = {"name": entry.name, "truth": _shown(entry.bracket)}
    pairs = list(known.corners())[:PAIRS] or [known.strategy.example()]
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings(), _at_most(5.0 * seconds):
            warnings.simplefilter("ignore")
            found = verify_code(
                mechanism,
                entry.claim,
                neighbours.fixed(pairs, relation=known.relation),
                examples=1,
                limits=Limits(seconds=seconds, paths=3000),
            )
    except CannotFollow as error:
        where = "" if error.filename is None else f" ({error.filename.rpartition('/')[2]}:{error.line})"
        return {**row, "followed": "no", "reason": error.reason[:90] + where}
    except _TooLong:
        return {**row, "followed": "cut", "reason": "too many paths for the time"}
    row["milliseconds"] = 1000.0 * (time.perf_counter() - begin)
    row["extracted"] = _shown(found.epsilon)
    if found.law.rest > 0.0 or found.neighbour_law.rest > 0.0:
        return {**row, "followed": "cut", "reason": "too many paths for the time"}
    if found.unfollowed is not None:
        return {**row, "followed": "partly", "reason": found.unfollowed.reason[:90]}
    declared = _declared(mechanism, pairs)
    row |= {"followed": "yes", "declared": "" if declared is None else _shown((declared, declared))}
    return row | _disagreement(entry, found, declared)


def _declared(mechanism: Any, pairs: list[Any]) -> float | None:
    """Largest epsilon of the declared laws over the pairs; None if there are none."""
    try:
        return max(exact.epsilon(mechanism.law(pair.data), mechanism.law(pair.neighbour)) for pair in pairs)
    except (AttributeError, DPAuditError):
        return None


def _disagreement(entry: Entry, found: CodeVerification, declared: float | None) -> Row:
    low, high = found.epsilon
    if declared is None or low * (1.0 - AGREE) - AGREE <= declared <= high * (1.0 + AGREE) + AGREE:
        return {}
    return {"reason": "differs from the declared law", "name": entry.name}


def _shown(interval: tuple[float, float]) -> str:
    low, high = interval
    if low == high or (high < math.inf and high - low <= 1e-7 * max(1.0, high)):
        return "infinite" if math.isinf(low) else f"{0.5 * (low + high):.6g}"
    return f"{low:.6g} to {'infinite' if math.isinf(high) else f'{high:.6g}'}"
