"""The command ``dpaudit statements``: list the ledger, show (run) a row, verify (run) all rows.

Exit codes: 0, 1 if a row's computation contradicts the ledger, 2 for rows or parameters that do not exist.
"""

from __future__ import annotations

import argparse
import json
import textwrap
import time
from collections.abc import Sequence
from typing import Any

from dpaudit._util.terminal.console import Console
from dpaudit.errors import InvalidArgument, MissingDependency
from dpaudit.result.text import LINE_WIDTH

EXIT_OK, EXIT_CONTRADICTED, EXIT_BAD = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands; without one the ledger is listed."""
    commands = parser.add_subparsers(dest="statements_command", metavar="COMMAND")

    listing = commands.add_parser("list", help="list all statements with their verdicts (the default)")
    listing.add_argument("--verdict", help="only rows with this verdict, such as false")
    listing.add_argument(
        "--source", help="only rows of this document: report, slides, course notes, lecture notes, notes"
    )
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.add_argument("--markdown", action="store_true", help="print the table of docs/statements.md")

    show = commands.add_parser("show", help="run a row: compute its verdict, and print the numbers")
    show.add_argument("row", metavar="ROW", help="key or number of the row")
    show.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the row")
    show.add_argument("--plot", metavar="FILE.svg", help="write the picture of the row, if it has one")
    show.add_argument("--json", action="store_true", help="print JSON")

    verify = commands.add_parser("verify", help="run every row, and compare its verdict with the ledger")
    verify.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace, out: Console, err: Console) -> int:
    """Run the subcommand that ``args`` names."""
    try:
        if args.statements_command == "show":
            return _show(args, out)
        if args.statements_command == "verify":
            return _verify(args, out)
        return _list(args, out)
    except (InvalidArgument, MissingDependency) as error:
        err.block(f"error: {error}")
        return EXIT_BAD


def _list(args: argparse.Namespace, out: Console) -> int:
    from dpaudit._util.validation import check_choice
    from dpaudit.statements.ledger import STATEMENTS, markdown_table
    from dpaudit.statements.statement import Standing

    if getattr(args, "markdown", False):
        out.write(markdown_table())
        return EXIT_OK
    verdict, source = getattr(args, "verdict", None), getattr(args, "source", None)
    if verdict is not None:
        check_choice([str(standing) for standing in Standing], verdict=verdict)
    chosen = [
        (number, row)
        for number, row in enumerate(STATEMENTS, start=1)
        if verdict in (None, str(row.standing)) and source in (None, *row.source.split("; "))
    ]
    if getattr(args, "json", False):
        out.json(
            json.dumps([{"number": number} | row.as_json() for number, row in chosen], indent=2, allow_nan=False) + "\n"
        )
        return EXIT_OK
    for number, row in chosen:
        out.block(f"{number:>3}  {row.key:<28}{row.standing:<16}{row.source}, {row.place}")
        _indented("", row.says, out)
        _indented("corrected: ", row.corrected, out)
        _indented("counterexample: ", row.counterexample, out)
        out.block(f"     {row.command}")
    counts = ", ".join(
        f"{sum(row.standing is standing for _, row in chosen)} {standing}" for standing in Standing
    )  # in the order of the enum
    out.block(f"\n{len(chosen)} statements: {counts}.")
    return EXIT_OK


def _indented(label: str, text: str, out: Console) -> None:
    if text:
        out.block(textwrap.fill(label + text, LINE_WIDTH, initial_indent="     ", subsequent_indent="       "))


def _parameters(statement: Any, given: Sequence[str]) -> dict[str, Any]:
    """Read NAME=VALUE with the type of the parameter's default."""
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidArgument(f"--set {text!r} must read NAME=VALUE.")
        default = statement.parameters.get(name)
        kind = type(default) if isinstance(default, int | float) else str
        try:
            values[name] = kind(value)
        except ValueError:
            raise InvalidArgument(f"{name}={value!r} must be a number, as its default {default!r} is.") from None
    return values


def _show(args: argparse.Namespace, out: Console) -> int:
    from dpaudit.statements.ledger import find_statement

    row = find_statement(args.row)
    parameters = _parameters(row, args.set)
    finding = row.run(**parameters)
    expected = finding.as_expected or bool(parameters)  # the ledger speaks about the defaults
    if args.plot:
        _plot(row, {**row.parameters, **parameters}, args.plot)
    if args.json:
        payload = row.as_json() | {
            "found": str(finding.standing),
            "lines": list(finding.lines),
            "as_expected": expected,
        }
        out.json(json.dumps(payload, indent=2, allow_nan=False) + "\n")
        return EXIT_OK if expected else EXIT_CONTRADICTED
    out.block(f"{row.source}, {row.place} ({row.kind})")
    _indented("", row.says, out)
    out.block(f"verdict: {finding.standing}")
    _indented("corrected: ", row.corrected, out)
    _indented("counterexample: ", row.counterexample, out)
    for line in finding.lines:
        out.block(textwrap.fill(line, LINE_WIDTH, initial_indent="  - ", subsequent_indent="    "))
    for picture in finding.pictures:
        out.block(f"\n{picture}")
    if row.parameters:
        out.line("parameters: " + ", ".join(f"{k}={v}" for k, v in (row.parameters | parameters).items()))
    if not expected:
        out.block(f"CONTRADICTS the ledger, which says: {row.standing}.")
    return EXIT_OK if expected else EXIT_CONTRADICTED


def _plot(row: Any, parameters: dict[str, Any], path: str) -> None:
    from dpaudit.statements import figures

    draw = figures.OF_ROW.get(row.key)
    if draw is None:
        raise InvalidArgument(f"row={row.key!r} has no picture; those with one are {', '.join(figures.OF_ROW)}.")
    draw(path, **parameters)


def _verify(args: argparse.Namespace, out: Console) -> int:
    from dpaudit.statements.ledger import STATEMENTS

    contradicted = 0
    found = []
    for number, row in enumerate(STATEMENTS, start=1):
        started = time.monotonic()
        finding = row.run()
        contradicted += not finding.as_expected
        found.append(row.as_json() | {"found": str(finding.standing), "as_expected": finding.as_expected})
        if not args.json:
            mark = "" if finding.as_expected else f"  CONTRADICTS the ledger: {row.standing}"
            out.block(
                f"{number:>3}  {row.key:<28}{finding.standing:<16}{time.monotonic() - started:5.1f} s{mark}",
            )
    if args.json:
        out.json(json.dumps(found, indent=2, allow_nan=False) + "\n")
    else:
        out.block(f"\n{len(STATEMENTS)} statements were run; {contradicted} contradict the ledger.")
    return EXIT_CONTRADICTED if contradicted else EXIT_OK
