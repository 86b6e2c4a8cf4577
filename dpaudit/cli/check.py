"""``dpaudit check``: audit one function, without an audit file."""

from __future__ import annotations

import argparse
import contextlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpaudit._util.console import Console, Unbroken
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.cli.collect import Collected, load_target
from dpaudit.cli.config import Settings
from dpaudit.cli.jobs import Interrupts, attempt, executor_for
from dpaudit.cli.run import deliver
from dpaudit.engine.audit import Audit
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import batched, per_release
from dpaudit.report import KINDS, check_reports
from dpaudit.report.document import Document
from dpaudit.report.terminal import Style, show_story
from dpaudit.result.model import StoppedBy


def check_command(args: argparse.Namespace, settings: Settings, here: Path, out: Console, err: Console) -> int:
    """``dpaudit check``: the one audit has the alpha of the whole run."""
    console = err if args.json else out
    check_reports({name: getattr(args, name) for name in ("output", *KINDS)})
    with contextlib.redirect_stdout(Unbroken(console.stream)):  # what files and mechanisms print
        item = Collected(_audit(args, settings, here), "")
        with Interrupts() as interrupts, executor_for(settings) as executor:
            options = {**settings.overrides(), "alpha": settings.alpha, "executor": executor}
            outcome = attempt(item, options, settings.root, interrupts)
    entry = outcome.entry
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


def _audit(args: argparse.Namespace, settings: Settings, here: Path) -> Audit:
    from dpaudit import neighbours
    from dpaudit.cli.rows import check_sizes, parse_rows

    claim: Claim = PureDP(args.epsilon) if args.delta == 0.0 else ApproxDP(args.epsilon, args.delta)
    rows = parse_rows(args.rows)
    smallest = args.min_size if args.min_size is not None else (0 if args.relation == "add-remove" else 1)
    check_sizes(smallest, args.max_size)
    make = neighbours.add_remove if args.relation == "add-remove" else neighbours.substitute
    wraps: dict[str, Callable[[Any], Any]] = {"data": lambda f: f, "data-rng": per_release, "batched": batched}
    function = load_target(args.target, root=settings.root, here=here)
    if issubclass(type(function), Audit):
        raise InvalidArgument(f"{args.target} is an Audit, with a claim and neighbours: `dpaudit run {args.target}`.")
    return Audit(
        name=args.target,
        mechanism=function if hasattr(function, "sample") else wraps[args.calls or calls_of(function)](function),
        claim=claim,
        neighbours=make(rows, min_size=smallest, max_size=args.max_size),
    )


def calls_of(function: Any) -> str:
    """How a function is called, by the names of its parameters: ``(data, rng)``, ``(data, size, rng)`` or the data alone.

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
