"""Options that the commands on tables share: columns, files, hierarchies, requirements."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Collection
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpaudit._util.validation import check_choice, shorten
from dpaudit.errors import InvalidArgument

if TYPE_CHECKING:
    import pandas as pd

    from dpaudit.anonymity.tables.hierarchy import Hierarchy

DISTANCES_BY_NAME = ("tv", "l1", "l2", "max", "kl", "kl-reverse", "js", "hellinger", "chi2", "equal", "ordered")
"""The keys of :data:`dpaudit.anonymity.measures.DISTANCES`, which are not loaded to print a help text."""


def add_columns(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare the options that assign the columns of a table their roles, and those for reading it."""
    columns = parser.add_argument_group("columns")
    columns.add_argument(
        "--quasi-identifiers", "-q", required=True, action="append", metavar="A,B", help="what an observer may know"
    )
    columns.add_argument("--sensitive", "-s", action="append", default=[], metavar="S", help="what they must not learn")
    columns.add_argument(
        "--missing",
        choices=("error", "value", "suppressed"),
        default="error",
        help="what an empty cell is (%(default)s)",
    )
    columns.add_argument(
        "--missing-mark", action="append", default=[""], metavar="TEXT", help="a cell that counts as empty"
    )
    columns.add_argument("--delimiter", help="between cells; detected by default")
    columns.add_argument("--encoding", help="UTF-8 by default")
    return columns


def add_hierarchies(columns: argparse._ArgumentGroup) -> None:
    """Declare ``--hierarchies``."""
    columns.add_argument(
        "--hierarchies",
        metavar="FILE.json",
        help='how columns generalise: {"plz": {"prefixes": 4}, "age": {"intervals": [[0, 20, 40], [0, 40]]}, '
        '"job": {"taxonomy": {"health": ["nurse"]}}}',
    )


def read(args: argparse.Namespace, path: str, columns: Collection[str] | None) -> pd.DataFrame:
    """Read a table with the options of the command."""
    from dpaudit.anonymity.tables.reading import read_frame

    marks = tuple(args.missing_mark)
    chosen = None if columns is None else list(dict.fromkeys(columns))
    return read_frame(path, columns=chosen, delimiter=args.delimiter, encoding=args.encoding, missing_marks=marks)


def split_names(listed: list[str]) -> list[str]:
    """Return the names of options that may be repeated and hold commas; as in CSV, a name with a comma can be quoted."""
    return [name for row in csv.reader(listed, skipinitialspace=True) for name in row if name]


def load_json(option: str, path: str) -> Any:
    """Read the JSON file that an option names."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"{option}={path!r} cannot be read as JSON: {error}.") from error


def read_hierarchies(path: str | None) -> dict[Any, Hierarchy]:
    """Read ``--hierarchies``: for each column a kind with its arguments."""
    from dpaudit.anonymity.tables.hierarchy import Intervals, Prefixes, Suppression, Taxonomy

    if path is None:
        return {}
    listed = load_json("--hierarchies", path)
    if not isinstance(listed, dict):
        raise InvalidArgument(f"--hierarchies={path!r} must hold an object with an entry for each column.")
    kinds: dict[str, Callable[[Any], Hierarchy]] = {
        "prefixes": Prefixes,
        "intervals": lambda levels: Intervals(levels),
        "taxonomy": lambda tree: Taxonomy(tree),
        "suppression": lambda _: Suppression(),
    }
    found: dict[Any, Hierarchy] = {}
    for column, entry in listed.items():
        if not isinstance(entry, dict) or len(entry) != 1:
            raise InvalidArgument(
                f"--hierarchies: {column!r} is {shorten(entry)}; it must be an object with one of {', '.join(kinds)}."
            )
        ((name, argument),) = entry.items()
        check_choice(kinds, **{f"hierarchies[{column!r}]": name})
        try:
            found[column] = kinds[name](argument)
        except TypeError:
            raise InvalidArgument(
                f"--hierarchies: {shorten(argument)} of {column!r} does not fit {name!r}; see docs/anonymity.md."
            ) from None
    return found


def read_requirements(listed: list[str], allowed: Collection[str]) -> dict[str, Fraction]:
    """Read ``--require name=number,...``."""
    required: dict[str, Fraction] = {}
    for part in (part.strip() for text in listed for part in text.split(",") if part.strip()):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            bound = Fraction(value) if equals else None
        except (ValueError, ZeroDivisionError):
            bound = None
        if bound is None:
            raise InvalidArgument(f"--require {part!r} must look like name=number, as in max-risk=0.09.")
        check_choice(allowed, require=name)
        if name in required:
            raise InvalidArgument(f"--require names {name!r} twice.")
        required[name] = bound
    return required
