"""Which mechanisms of the registry can be followed from their code: epsilon extracted, declared, shown and true.

Every mechanism is run as it is, with its own vectorised sampler for one release. Epsilon extracted, declared and shown by an
audit are on the same pairs: the first corner pairs of its neighbours. A mechanism that declares a law must agree with what
is extracted, and an audit may not show more than what is extracted.
"""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dpaudit
from benchmarks.tables import Column, Row, Table
from dpaudit import exact, neighbours
from dpaudit.errors import CannotFollow, DPAuditError
from dpaudit.symbolic.running.extraction import Limits
from dpaudit.symbolic.verification import CodeVerification, verify_code
from mechanisms.registry import Entry, entries

PAIRS = 2
GOAL = 0.6
AGREE = 1e-9
AUDIT_SAMPLES = 200_000
AUDIT_SECONDS = 20.0
COLUMNS = (
    Column("name", "mechanism", "<40"),
    Column("followed", "followed", "<8"),
    Column("extracted", "epsilon extracted", ">22"),
    Column("declared", "declared", ">12"),
    Column("shown", "audit shows", ">11.4f"),
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
            row = _row(entry, seconds=2.0 if quick else 8.0)
            rows.append(row if quick else _checked(row, _shown_by_audit(entry)))
            yield rows[-1]

    yield Table(
        title="Mechanisms of the registry, followed from their code",
        columns=COLUMNS,
        rows=measured(),
        note=(
            f"On the first {PAIRS} corner pairs. `cut`: too many paths; the interval is not decided. The audit has the budget "
            f"of the registry, at most {AUDIT_SAMPLES:,} samples and {AUDIT_SECONDS:g} s, alpha = 1e-6; for a claim with a "
            "delta it shows the epsilon at that delta, and the extracted epsilon is that of pure privacy."
        ),
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
    pairs = _pairs(known)
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
    row["upper"] = found.epsilon[1]
    if found.law.rest > 0.0 or found.neighbour_law.rest > 0.0:
        return {**row, "followed": "cut", "reason": "too many paths for the time"}
    if found.unfollowed is not None:
        return {**row, "followed": "partly", "reason": found.unfollowed.reason[:90]}
    declared = _declared(mechanism, pairs)
    row |= {"followed": "yes", "declared": "" if declared is None else _shown((declared, declared))}
    return row | _disagreement(entry, found, declared)


def _pairs(known: neighbours.Neighbours) -> list[Any]:
    return list(known.corners())[:PAIRS] or [known.strategy.example()]


def _shown_by_audit(entry: Entry) -> float | None:
    """Lower bound of epsilon that an audit of the running code shows on the same pairs; None if it cannot be run."""
    known = entry.neighbours()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dpaudit.audit(
                entry.make(),
                entry.claim,
                neighbours.fixed(_pairs(known), relation=known.relation),
                samples=min(entry.samples, AUDIT_SAMPLES),
                seconds=AUDIT_SECONDS,
                until="budget",
                shrink=False,
            ).epsilon_lower
    except DPAuditError:
        return None


def _checked(row: Row, shown: float | None) -> Row:
    """Add what the audit shows; more than the upper end of what was extracted is a wrong law."""
    row["shown"] = shown
    if shown is not None and shown > row.get("upper", math.inf) + 1e-9:
        row["fault"] = f"{row['name']}: the audit shows {shown:.6g}, more than the extracted {row['extracted']}"
    return row


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
    return {"reason": "differs from the declared law", "fault": f"{entry.name}: extracted and declared epsilon differ"}


def _shown(interval: tuple[float, float]) -> str:
    low, high = interval
    if low == high or (high < math.inf and high - low <= 1e-7 * max(1.0, high)):
        return "infinite" if math.isinf(low) else f"{0.5 * (low + high):.6g}"
    return f"{low:.6g} to {'infinite' if math.isinf(high) else f'{high:.6g}'}"
