"""The command ``dpaudit risk TABLE``: the risk of re-identification of a release, with the attacks that were run.

Exit codes: 0, everything required is met (or nothing was required); 1, something is not; 2, invalid arguments or an
unreadable file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit._util.files import check_writable, write_whole
from dpaudit._util.terminal.console import Console
from dpaudit._util.terminal.escape import one_line
from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit.anonymity.commands.options import (
    add_columns,
    add_hierarchies,
    read,
    read_hierarchies,
    read_requirements,
    split_names,
)
from dpaudit.errors import DPAuditError, InvalidArgument

if TYPE_CHECKING:
    import pandas as pd

    from dpaudit.anonymity.risk.assessment import Sources
    from dpaudit.anonymity.tables.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dpaudit risk``."""
    parser.add_argument("table", metavar="TABLE", help="the published table, or with --points a table of traces")
    columns = add_columns(parser)
    add_hierarchies(columns)
    columns.add_argument(
        "--id", metavar="COLUMN", help="the column that identifies people in all files; the attacker does not use it"
    )
    attack = parser.add_argument_group("what the attacker has")
    attack.add_argument(
        "--population", metavar="FILE", help="everybody who could be in the table: journalist, k-map, presence"
    )
    attack.add_argument("--population-size", type=int, metavar="N", help="or only how many: estimated uniqueness")
    attack.add_argument(
        "--external", metavar="FILE", help="people known by name: run the linkage attack (--id checks it)"
    )
    attack.add_argument("--everyone", action="store_true", help="all people of --external are in the table")
    attack.add_argument(
        "--earlier", action="append", default=[], metavar="FILE", help="an earlier release (needs --id)"
    )
    traces = parser.add_argument_group("traces (the quasi-identifiers make a point, --id says whose)")
    traces.add_argument("--points", type=int, metavar="P", help="unicity: number of points of a trace that are known")
    traces.add_argument("--draws", type=int, metavar="N", help="number of sets of points to sample")
    traces.add_argument("--seed", type=int, default=0, metavar="S", help="of --draws (%(default)s)")
    checks = parser.add_argument_group("checks")
    checks.add_argument(
        "--original", metavar="FILE", help="the raw table: information loss (in the same order, or --id)"
    )
    checks.add_argument(
        "--threshold", type=float, default=1 / 11, metavar="R", help="acceptable risk of a record (1 in 11)"
    )
    checks.add_argument(
        "--require", action="append", default=[], metavar="max-risk=0.09,unique=0", help="see docs/anonymity.md"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--html", metavar="FILE", help="write the report for a data protection officer")
    output.add_argument("--plot", metavar="FILE.svg", help="draw the risk")


def run(args: argparse.Namespace, out: Console, err: Console) -> int:
    """Write the assessment to ``out``, and return the exit code."""
    try:
        if args.points is not None:
            return _unicity(args, out)
        for path in (args.html, args.plot):
            if path:
                check_writable(Path(path))
        document = _document(args)
        _write(args, document)
    except DPAuditError as error:
        err.line(f"dpaudit: {error}")
        return ExitCode.ERROR
    if args.json:
        out.json(json.dumps(document, indent=2, allow_nan=False) + "\n")
    else:
        from dpaudit.anonymity.risk.wording import text

        for line in text(document):
            out.line(line)
    return ExitCode.OK if document["met"] else ExitCode.FAILED


def _write(args: argparse.Namespace, document: dict[str, Any]) -> None:
    if args.html:
        from dpaudit.anonymity.risk.report import html_report

        write_whole(Path(args.html), html_report(document, one_line))
    if args.plot:
        from dpaudit.anonymity.risk.picture import picture

        write_whole(Path(args.plot), picture(document))


def _document(args: argparse.Namespace) -> dict[str, Any]:
    from dpaudit.anonymity.risk.assessment import REQUIREMENTS, assess

    known, secret = split_names(args.quasi_identifiers), split_names(args.sensitive)
    required = read_requirements(args.require, REQUIREMENTS)
    if args.earlier and not (args.id and secret):
        raise InvalidArgument("--earlier needs --id, which says whose records are whose, and --sensitive.")
    if args.everyone and not args.external:
        raise InvalidArgument("--everyone says something about --external; name that file too.")
    frame = _frame(args, args.table, [*known, *secret])
    table = _table(args, frame, known, secret)
    sources = _sources(args, frame, known, secret)
    return assess(table, name=args.table, sources=sources, threshold=args.threshold, require=required)


def _sources(args: argparse.Namespace, frame: pd.DataFrame, known: list[str], secret: list[str]) -> Sources:
    from dpaudit.anonymity.risk.assessment import Sources

    external, truth = None, None
    if args.external:
        external = read(args, args.external, known + ([args.id] if args.id else []))
        if args.id:
            position = {label: place for place, label in enumerate(frame.index)}
            truth = [position.get(label) for label in external[args.id]]
    return Sources(
        population=read(args, args.population, known) if args.population else None,
        population_size=args.population_size,
        external=external,
        truth=truth,
        everyone=args.everyone,
        earlier=[_table(args, _frame(args, path, [*known, *secret]), known, secret) for path in args.earlier],
        original=_frame(args, args.original, known) if args.original else None,
        released=frame,
        hierarchies=read_hierarchies(args.hierarchies),
        match="index" if args.id else "position",
        missing=args.missing,
    )


def _frame(args: argparse.Namespace, path: str, columns: list[str]) -> pd.DataFrame:
    """Read a table; with ``--id`` its index says whose record is whose."""
    if not args.id:
        return read(args, path, columns)
    frame = read(args, path, [*columns, args.id])
    if frame[args.id].duplicated().any() or frame[args.id].isna().any():
        raise InvalidArgument(
            f"--id={args.id!r} must name every record of {path!r} once; some are empty or occur twice."
        )
    return frame.set_index(args.id)


def _table(args: argparse.Namespace, frame: pd.DataFrame, known: list[str], secret: list[str]) -> Table:
    from dpaudit.anonymity.tables.table import Table

    return Table.from_frame(frame, quasi_identifiers=known, sensitive=secret, missing=args.missing)


def _unicity(args: argparse.Namespace, out: Console) -> int:
    import dataclasses

    import numpy as np

    from dpaudit.anonymity.risk.traces import unicity

    if not args.id:
        raise InvalidArgument("--points needs --id, the column that says whose point it is.")
    required = read_requirements(args.require, ("unique",))
    point = split_names(args.quasi_identifiers)
    rng = np.random.default_rng(args.seed) if args.draws is not None else None
    frame = read(args, args.table, [*point, args.id])
    found = unicity(frame, person=args.id, point=point, points=args.points, draws=args.draws, rng=rng)
    # The requirement is compared with the upper end, so that a sample that is too small does not pass.
    met = "unique" not in required or found.upper <= float(required["unique"]) + 1e-12
    if args.json:
        plain = {"schema": "dpaudit.unicity/1", **dataclasses.asdict(found), "met": met}
        out.json(json.dumps(plain, indent=2, allow_nan=False) + "\n")
    else:
        verdict = (
            ""
            if "unique" not in required
            else f"\nunique <= {float(required['unique']):g}: {'met' if met else 'NOT met'}"
        )
        out.block(f"{found}{verdict}")
    return ExitCode.OK if met else ExitCode.FAILED
