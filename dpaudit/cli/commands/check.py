"""``dpaudit check`` and ``dpaudit verify``: one function or program, without an audit file."""

from __future__ import annotations

import argparse
import contextlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit._util.terminal.console import Console, Unbroken
from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit.claims import Verdict
from dpaudit.cli.claim_options import claim_of
from dpaudit.cli.collect import Collected, load_target
from dpaudit.cli.config import Settings
from dpaudit.cli.jobs import Interrupts, Outcome, attempt, entry_of, executor_for
from dpaudit.cli.run import CANNOT_END, deliver
from dpaudit.engine.audit import Audit
from dpaudit.errors import CannotFollow, DPAuditError, InvalidArgument
from dpaudit.mechanism import batched, per_release
from dpaudit.mechanism.programs import program
from dpaudit.report import FORMATS, check_reports
from dpaudit.report.document import Document, Entry
from dpaudit.report.terminal import Style, show_story
from dpaudit.result.model import StoppedBy, with_note
from dpaudit.symbolic.first_look import Looked, look

if TYPE_CHECKING:
    from dpaudit.neighbours import Neighbours


def check_command(args: argparse.Namespace, settings: Settings, here: Path, out: Console, err: Console) -> int:
    """``dpaudit check``: the one audit has the alpha of the whole run."""
    console = err if args.json else out
    check_reports({name: getattr(args, name) for name in ("output", *FORMATS)})
    with contextlib.redirect_stdout(Unbroken(console.stream)):  # what files and mechanisms print
        item = Collected(audit_of(args, settings, here), "")
        with Interrupts() as interrupts, executor_for(settings) as executor:
            options = {**settings.overrides(), "alpha": settings.alpha, "executor": executor}
            looked = Looked() if args.samples_only else _look(item.audit, options)
            if looked.result is not None:
                outcome = Outcome(item.audit.name, entry_of(item, looked.result, settings.root))
            else:
                if options.get("seconds") is not None and options.get("timeout") is None:
                    err.line(f"{CANNOT_END}.")
                outcome = attempt(item, options, settings.root, interrupts)
    entry = outcome.entry if isinstance(outcome.entry, Entry) else None
    if entry is not None:
        entry = replace(entry, result=with_note(entry.result, looked.note))
    document = Document(
        entries=() if entry is None else (entry,),
        failures=() if outcome.failure is None else (outcome.failure,),
        interrupted=entry is not None and entry.result.stopped_by is StoppedBy.INTERRUPT,
        fail_on=settings.fail_on,
    )
    if entry is not None:
        show_story(console, entry, Style.for_stream(console))
    if outcome.failure is not None:
        err.block(f"dpaudit: {outcome.failure.reason}")
    deliver(args, document, console)
    if args.json:
        out.json(document.to_json())
    return document.exit_code()


def _look(audit: Audit, options: dict[str, Any]) -> Looked:
    """Check the exact law of the code; an exception is ignored here, because the audit reports it in more detail."""
    try:
        return look(audit.mechanism, audit.claim, audit.neighbours, name=audit.name, **options)
    except DPAuditError:
        return Looked()


def verify_command(args: argparse.Namespace, settings: Settings, here: Path, out: Console, err: Console) -> int:
    """``dpaudit verify``: the exact law of the code; inconclusive if it cannot be followed."""
    from dpaudit.symbolic.verification import verify_code

    with contextlib.redirect_stdout(Unbroken(err.stream)):
        audit = audit_of(args, settings, here)
        try:
            found = verify_code(
                audit.mechanism,
                audit.claim,
                audit.neighbours,
                examples=args.examples,
                seed=args.seed,
                seconds=args.seconds,
            )
        except CannotFollow as error:
            out.block(f"INCONCLUSIVE: the code cannot be followed. {error}")
            out.line(f"Audit it by samples: dpaudit check {args.target} ...")
            return ExitCode.UNDECIDED
    out.block(str(found))
    if args.law:
        out.block(f"law on the data:\n{found.law}\nlaw on the neighbour:\n{found.neighbour_law}")
    return exit_code_of(found.verdict)


def exit_code_of(verdict: Verdict) -> ExitCode:
    """Return the exit code of a command that ends with one verdict."""
    codes = {Verdict.VIOLATION: ExitCode.FAILED, Verdict.INCONCLUSIVE: ExitCode.UNDECIDED}
    return codes.get(verdict, ExitCode.OK)


def audit_of(args: argparse.Namespace, settings: Settings, here: Path) -> Audit:
    """Make the audit that the options of ``check``, ``verify`` and ``diagnose`` describe."""
    claim = claim_of(args)
    return Audit(
        name=getattr(args, "program", None) or args.target or "",
        mechanism=_mechanism(args, settings, here),
        claim=claim,
        neighbours=neighbours_of(args),
    )


def neighbours_of(args: argparse.Namespace) -> Neighbours:
    """Make the neighbours that ``--rows``, ``--relation``, ``--min-size`` and ``--max-size`` describe."""
    from dpaudit import neighbours
    from dpaudit.cli.rows import check_sizes, parse_rows

    rows = parse_rows(args.rows)
    smallest = args.min_size if args.min_size is not None else (0 if args.relation == "add-remove" else 1)
    check_sizes(smallest, args.max_size)
    make = neighbours.add_remove if args.relation == "add-remove" else neighbours.substitute
    return make(rows, min_size=smallest, max_size=args.max_size)


def _mechanism(args: argparse.Namespace, settings: Settings, here: Path) -> Any:
    """Return the function that ``dpaudit check`` or ``verify`` is about, or the program."""
    of_program = {name: getattr(args, name, None) for name in ("mode", "data_as", "output_as")}
    given = {name: value for name, value in of_program.items() if value is not None}
    if getattr(args, "program", None) is not None:
        if args.target is not None or args.calls is not None:
            raise InvalidArgument(
                f"--command={args.program!r} is the program that is audited: leave out TARGET and --calls."
            )
        return program(args.program, folder=here, **given)
    if given:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InvalidArgument(f"{named} is for programs: name one with --command.")
    if args.target is None:
        raise InvalidArgument("Name a function (file.py:name or pkg.mod:name), or a program with --command.")
    function = load_target(args.target, root=settings.root, here=here)
    if issubclass(type(function), Audit):
        raise InvalidArgument(f"{args.target} is an Audit, with a claim and neighbours: `dpaudit run {args.target}`.")
    wraps: dict[str, Callable[[Any], Any]] = {"data": lambda f: f, "data-rng": per_release, "batched": batched}
    return function if hasattr(function, "sample") else wraps[args.calls or calls_of(function)](function)


def calls_of(function: Any) -> str:
    """Return how a function is called, by its parameter names: ``(data, rng)``, ``(data, size, rng)`` or the data alone.

    >>> calls_of(lambda rows, size, rng: None), calls_of(lambda rows, rng: None), calls_of(lambda rows, scale=1.0: None)
    ('batched', 'data-rng', 'data')
    """
    try:
        _, *names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return "data"
    if names[:2] == ["size", "rng"]:
        return "batched"
    return "data-rng" if names[:1] == ["rng"] else "data"
