"""The command ``dpaudit anonymise TABLE``: make a table k-anonymous, and write the release.

Exit codes: 0, the release was written; 2, invalid arguments, an unreadable file, or requirements that cannot be met.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit._util.files import write_whole
from dpaudit._util.terminal.console import Console
from dpaudit._util.terminal.escape import inert, visible
from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit.anonymity.commands.options import (
    DISTANCES_BY_NAME,
    add_columns,
    add_hierarchies,
    read,
    read_hierarchies,
    split_names,
)
from dpaudit.errors import DPAuditError, InvalidArgument

if TYPE_CHECKING:
    import pandas as pd

    from dpaudit.anonymity.partitioning import Anonymised


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dpaudit anonymise``."""
    parser.add_argument("table", metavar="TABLE", help="the original table: a CSV file, or Parquet")
    columns = add_columns(parser)
    add_hierarchies(columns)
    columns.add_argument(
        "--text", action="append", default=[], metavar="A,B", help="columns of digits that are no numbers"
    )
    columns.add_argument("--keep", action="append", default=[], metavar="C", help="columns to copy as they are")
    wanted = parser.add_argument_group("requirements")
    wanted.add_argument("--k", type=int, required=True, help="smallest number of records of a class")
    wanted.add_argument("--l", type=float, help="smallest diversity of each sensitive column in a class")
    wanted.add_argument(
        "--diversity", choices=("distinct", "entropy"), default="distinct", help="kind of --l (%(default)s)"
    )
    wanted.add_argument("--t", type=float, help="largest distance of a class from the table")
    wanted.add_argument("--distance", choices=DISTANCES_BY_NAME, default="tv", help="for --t (%(default)s)")
    method = parser.add_argument_group("method")
    method.add_argument(
        "--method",
        choices=("mondrian", "full-domain"),
        default="mondrian",
        help="mondrian cuts classes of its own; full-domain generalises each column to one level (%(default)s)",
    )
    method.add_argument(
        "--suppression",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="of the records that may be withheld (full-domain)",
    )
    parser.add_argument("--output", "-o", metavar="FILE.csv", help="write the release there; stdout by default")


def run(args: argparse.Namespace, out: Console, err: Console) -> int:
    """Write the release, and what it cost to ``err``; return the exit code."""
    try:
        text, summary = _release(args)
        if args.output:
            write_whole(Path(args.output), text)
    except DPAuditError as error:
        err.line(f"dpaudit: {error}")
        return ExitCode.ERROR
    if not args.output:
        out.write(text)
        if inert(visible(text)) != text:
            err.line(
                "Note: characters that act on a terminal are shown as escapes; --output FILE writes the cells as they are."
            )
    (out if args.output else err).line(summary)
    return ExitCode.OK


def _release(args: argparse.Namespace) -> tuple[str, str]:
    from dpaudit.anonymity.tables.table import Table
    from dpaudit.anonymity.utility import information_loss

    known, secret, kept = (split_names(listed) for listed in (args.quasi_identifiers, args.sensitive, args.keep))
    original = read(args, args.table, [*known, *secret, *kept])
    hierarchies = read_hierarchies(args.hierarchies)
    as_text = {*split_names(args.text), *hierarchies}
    typed = original.copy()
    for name in known:
        if name not in as_text:
            typed[name] = _typed(original[name])
    table = Table.from_frame(typed, quasi_identifiers=known, sensitive=secret, missing=args.missing)
    made = _anonymised(args, table, hierarchies)
    loss = information_loss(
        typed, made.frame, quasi_identifiers=known, hierarchies=hierarchies, match="index", missing="value"
    )
    released = made.frame.join(original[kept]) if kept else made.frame
    text = released.to_csv(index=False, lineterminator="\n", na_rep=args.missing_mark[0])
    sizes = made.table.classes.sizes
    summary = f"{len(released)} records in {len(sizes)} classes of at least {int(sizes.min())}"
    summary += f", {made.withheld} withheld" if made.withheld else ""
    return text, f"{summary}; {loss}; discernibility {made.discernibility}"


def _anonymised(args: argparse.Namespace, table: Any, hierarchies: Any) -> Anonymised:
    from dpaudit.anonymity.level_search import full_domain
    from dpaudit.anonymity.partitioning import mondrian

    if args.method == "full-domain":
        if args.t is not None:
            raise InvalidArgument(
                "--t belongs to --method mondrian: withholding records changes what a class is compared with."
            )
        options = {"k": args.k, "l": args.l, "diversity": args.diversity}
        return full_domain(table, hierarchies=hierarchies, suppression=args.suppression, **options)
    if args.suppression:
        raise InvalidArgument(
            f"--suppression={args.suppression} belongs to --method full-domain; mondrian withholds nothing."
        )
    return mondrian(
        table, k=args.k, l=args.l, diversity=args.diversity, t=args.t, distance=args.distance, hierarchies=hierarchies
    )


def _typed(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of a file as numbers or dates if every cell is one; a number that begins with 0 is text."""
    import pandas as pd

    from dpaudit.anonymity.tables.cells import as_moment, as_number

    present = [cell for cell in cells.unique().tolist() if isinstance(cell, str)]
    for convert in (_number, as_moment):
        found = {cell: convert(cell) for cell in present}
        if present and all(value is not None for value in found.values()):
            if convert is as_moment and any(as_number(cell) is not None for cell in present):
                break
            return pd.Series([found.get(cell) for cell in cells], index=cells.index, dtype=object)
    return cells


def _number(cell: str) -> int | float | None:
    from dpaudit.anonymity.tables.cells import as_number

    number, digits = as_number(cell), cell.strip().lstrip("+-")
    if number is None or (len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()):
        return None
    return int(number) if number.denominator == 1 else float(number)
