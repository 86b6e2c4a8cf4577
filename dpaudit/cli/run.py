"""``dpaudit run``: run the audits of a plan, print a line for each and every finding in full, write the reports."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dpaudit import baseline
from dpaudit._util.files import write_whole
from dpaudit._util.terminal.console import Console, Unbroken
from dpaudit._util.validation import check_count
from dpaudit.claims import Verdict
from dpaudit.cli.baselines import find_regressions, save_baseline
from dpaudit.cli.config import Settings
from dpaudit.cli.jobs import Interrupts, Outcome, in_turn, side_by_side
from dpaudit.cli.plan import RunPlan, make_plan
from dpaudit.errors import DPAuditError, InvalidArgument
from dpaudit.report import FORMATS, check_reports, github_summary, write_reports
from dpaudit.report.document import AccuracyEntry, AnyEntry, Document, Entry, Failure, sorted_entries
from dpaudit.report.origin import origin_of
from dpaudit.report.terminal import Style, could_not_run, show_failure, show_line, show_story, totals

CANNOT_END = (
    "Note: calls run in this process, where --seconds cannot end one that never returns. --timeout limits each call"
)


def run_command(args: argparse.Namespace, settings: Settings, here: Path, out: Console, err: Console) -> int:
    """``dpaudit run``."""
    console = err if args.json else out
    jobs = 1 if args.jobs is None else args.jobs
    check_count(jobs=jobs)
    if jobs > 1 and (settings.workers > 1 or settings.executor):
        raise InvalidArgument("--jobs runs audits side by side, --workers and --executor spread out each: choose one.")
    stored_at = args.baseline or (settings.root / settings.baseline if settings.baseline else None)
    stored = None if stored_at is None else baseline.read(stored_at)
    check_reports({name: getattr(args, name) for name in ("output", "save_baseline", *FORMATS)})
    with contextlib.redirect_stdout(Unbroken(console.stream)), Interrupts() as interrupts:
        plan = make_plan(args, settings, here, console, lambda: interrupts.possible)
        if jobs > 1 or (settings.workers > 1 and not settings.executor):
            results = side_by_side(plan, jobs, workers=settings.workers, err=err)
        else:
            _warn_about_seconds(plan, err)
            results = in_turn(plan, settings, interrupts)
        document = _run_all(plan, results, interrupts, console, err)
        document = replace(document, fail_on=settings.fail_on)
        if stored is not None and not document.interrupted:
            worse = find_regressions(stored, plan, document, bool(args.select), console)
            document = replace(document, regressions=worse)
        if args.save_baseline is not None:
            save_baseline(args.save_baseline, plan, document, console)
    deliver(args, document, console)
    if args.html is None and any(entry.result.witness and not entry.met for entry in document.entries):
        console.line("With --html FILE there is a report that holds a program to repeat each measurement.")
    if not document.interrupted:
        plan.journal.end()
    if args.json:
        out.json(document.to_json())
    return document.exit_code()


def _warn_about_seconds(plan: RunPlan, err: Console) -> None:
    chosen = [{**item.audit.options, **plan.options[item.audit.name]} for item in plan.todo()]
    if any(options.get("seconds") is not None and options.get("timeout") is None for options in chosen):
        err.line(f"{CANNOT_END}, and with -j 2 or --workers 2 an audit that is overdue is ended.")


def _run_all(
    plan: RunPlan, results: Iterator[Outcome], interrupts: Interrupts, console: Console, err: Console
) -> Document:
    """Run all audits, and print each result when it is known."""
    style = Style.for_stream(console)
    entries: list[AnyEntry] = []
    failures: list[Failure] = []
    interrupted = False
    for failure in plan.broken:
        failures.append(failure)
        show_failure(console, failure)
    try:
        for outcome in _with_earlier(plan, results):
            if outcome.failure is not None:
                failures.append(outcome.failure)
                show_failure(console, outcome.failure)
            if outcome.entry is not None:
                entries.append(outcome.entry)
                show_line(console, outcome.entry, style, after=" [from the journal]" * outcome.reused)
            if interrupts.asked and not outcome.closing:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True
        err.line(_after_interrupt(len(entries), len(plan.items)))
    document = Document(
        entries=sorted_entries([entry for entry in entries if isinstance(entry, Entry)]),
        failures=tuple(failures),
        interrupted=interrupted,
        accuracy=sorted_entries([entry for entry in entries if isinstance(entry, AccuracyEntry)]),
    )
    for entry in document.all_entries:
        if not entry.met or (entry.expect is None and entry.result.verdict is Verdict.INCONCLUSIVE):
            console.line("")
            show_story(console, entry, style, after_line=True)
    console.block(f"\n{totals(document)}")
    if document.failures:
        console.line(could_not_run(document))
    return document


def _after_interrupt(results: int, audits: int) -> str:
    if not results:
        return f"Interrupted before any of {audits} audits had a result." if audits > 1 else "Interrupted: no result."
    kept = f"Interrupted: {results} of {audits} audits have results, which are kept"
    return f"{kept}." if results == audits else f"{kept}; `dpaudit run --resume` runs those that were not finished."


def _with_earlier(plan: RunPlan, results: Iterator[Outcome]) -> Iterator[Outcome]:
    for item in plan.items:
        key = plan.keys[item.audit.name]
        entry = plan.earlier.get(key)
        if entry is not None:
            plan.journal.finished(key, entry.to_dict())  # so that this run can be resumed too
            yield Outcome(item.audit.name, entry, reused=True)
    yield from results


def deliver(args: argparse.Namespace, document: Document, console: Console) -> None:
    """Write the requested files, the JSON results first, so that a failing report does not lose them."""
    document = replace(document, origin=origin_of(Path.cwd()))
    if args.output is not None:
        write_whole(args.output, document.to_json())
        console.line(f"wrote {args.output}")
    for path in write_reports(document, {kind: getattr(args, kind) for kind in FORMATS}):
        console.line(f"wrote {path}")
    try:
        github_summary(document)
    except DPAuditError as error:  # it was not requested, so it does not change the exit code
        console.line(f"Note: {error}")
