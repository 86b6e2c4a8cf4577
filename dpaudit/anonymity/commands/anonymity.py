"""The command ``dpaudit anonymity TABLE``: measure a published table, and name the deciding class and records.

Exit codes: 0, everything required is met (or nothing was required); 1, something is not, or with ``--original`` a
published cell does not contain its original; 2, invalid arguments or an unreadable file.
"""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpaudit._util.terminal.console import Console
from dpaudit._util.terminal.escape import one_line
from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit._util.validation import check_choice
from dpaudit.anonymity.commands.options import (
    DISTANCES_BY_NAME,
    add_columns,
    load_json,
    read,
    read_hierarchies,
    split_names,
)
from dpaudit.errors import DPAuditError, InvalidArgument

if TYPE_CHECKING:
    from dpaudit.anonymity.distance.distances import Distance
    from dpaudit.anonymity.measure import Measure
    from dpaudit.anonymity.release import ReleaseAudit
    from dpaudit.anonymity.tables.hierarchy import Hierarchy
    from dpaudit.anonymity.tables.table import Table

_REQUIREMENTS = (
    "k", "alpha", "l", "entropy-l", "c", "recursive-l", "t", "beta", "enhanced-beta", "delta", "epsilon", "partition-epsilon",
    "natural-t",
)  # fmt: skip
_NEEDS = {
    "epsilon": "--n",
    "partition-epsilon": "--n and --partition",
    "natural-t": "--n and --natural",
    "enhanced-beta": "--enhanced",
    "recursive-l": "--c",
}
_SENSIBLE: dict[str, tuple[int, bool, int | None]] = {
    "k": (1, False, None),
    "l": (1, False, None),
    "entropy-l": (1, False, None),
    "recursive-l": (1, False, None),
    "alpha": (0, True, 1),
    "c": (0, True, None),
    "delta": (0, True, None),
}
"""For each requirement: the least sensible value, True if that value itself is excluded, and the largest; otherwise >= 0."""
_EXACT_RECORDS = 10_000
"""Largest number of records for which values are computed as fractions."""
_LISTED = 1000
"""Largest number of deciding records in the JSON report."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dpaudit anonymity``."""
    parser.add_argument("table", metavar="TABLE", help="the published table: a CSV file, or Parquet")
    add_columns(parser)
    measures = parser.add_argument_group("measures")
    measures.add_argument(
        "--distance", choices=(*DISTANCES_BY_NAME, "emd"), default="tv", help="for t-closeness (%(default)s)"
    )
    measures.add_argument(
        "--ground", choices=("ranks", "values", "equal", "taxonomy"), help="of the earth mover's distance"
    )
    measures.add_argument("--order", metavar="LOW,...,HIGH", help="the order of the sensitive values, for emd")
    measures.add_argument("--taxonomy", metavar="FILE.json", help="nested objects of sensitive values, for emd")
    measures.add_argument("--level", type=int, default=2, help="the l of recursive (c, l)-diversity (%(default)s)")
    measures.add_argument("--c", type=float, help="also the largest l of recursive (c, l)-diversity for this c")
    measures.add_argument("--enhanced", action="store_true", help="also enhanced beta-likeness")
    measures.add_argument(
        "--others-known", action="store_true", help="the observer knows the other sensitive columns (for l, c and t)"
    )
    measures.add_argument(
        "--prior", metavar="uniform|FILE.json", help="compare classes with this, not the table (for t)"
    )
    measures.add_argument("--cost", action="store_true", help="also discernibility, class size, classification metric")
    measures.add_argument("--n", type=int, help="also (n, epsilon)-closeness, each class with its own reference set")
    measures.add_argument("--partition", action="store_true", help="with --n: also one common reference set")
    measures.add_argument(
        "--natural", action="store_true", help="with --n: also (n, t)-closeness over supersets by --hierarchies"
    )
    measures.add_argument("--hierarchies", metavar="FILE.json", help="how columns generalise (see docs/anonymity.md)")
    checks = parser.add_argument_group("checks")
    checks.add_argument(
        "--require", action="append", default=[], metavar="k=3,l=2,t=0.2", help=f"any of {', '.join(_REQUIREMENTS)}"
    )
    checks.add_argument("--original", metavar="FILE", help="the raw table, in the same order: every cell must fit")
    checks.add_argument(
        "--id", metavar="COLUMN", help="which record is which in both files, where records are withheld"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--worst", type=int, default=5, metavar="N", help="how many classes to list (%(default)s)")
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--plot", metavar="FILE.svg", help="draw the worst classes' distributions against the table's")


def run(args: argparse.Namespace, out: Console, err: Console) -> int:
    """Write the report to ``out``, and return the exit code."""
    try:
        report, decisive = _report(args)
        if args.plot:
            from dpaudit.anonymity.plot import save_plot

            save_plot(decisive, args.plot)
    except DPAuditError as error:
        err.block(f"dpaudit: {error}")
        return ExitCode.ERROR
    if args.json:
        out.json(json.dumps(report, indent=2, allow_nan=False) + "\n")
    else:
        out.write(_text(_on_lines(report)))
    return ExitCode.OK if report["met"] else ExitCode.FAILED


def _on_lines(value: Any) -> Any:
    """Return the report with every text in it on one line: names and cells come from the file.

    The ``text`` of a release has lines of its own, and is clean.
    """
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {_on_lines(key): item if key == "text" else _on_lines(item) for key, item in value.items()}
    return [_on_lines(item) for item in value] if isinstance(value, list) else value


def _report(args: argparse.Namespace) -> tuple[dict[str, Any], Measure]:
    from dpaudit.anonymity.release import audit_release
    from dpaudit.anonymity.tables.table import Table

    known, secret = split_names(args.quasi_identifiers), split_names(args.sensitive)
    required = _requirements(args.require)
    if args.worst < 0:
        raise InvalidArgument(f"--worst={args.worst} must be zero or positive.")
    hierarchies = read_hierarchies(args.hierarchies)
    named = [args.id] if args.id else []
    released = read(args, args.table, [*known, *secret, *named])
    table = Table.from_frame(released, quasi_identifiers=known, sensitive=secret, missing=args.missing)
    measured = _measures(args, table, hierarchies)
    unused = [name for name in required if name not in {symbol for symbol, _ in measured}]
    if unused:
        hint = _NEEDS.get(unused[0], "--sensitive")
        raise InvalidArgument(f"--require {unused[0]}={required[unused[0]]}: this measure needs {hint}.")
    measures = [_described(symbol, measure, required.get(symbol)) for symbol, measure in measured]
    decisive = next((measure for symbol, measure in measured if symbol == "t"), measured[0][1])
    report: dict[str, Any] = {
        "schema": "dpaudit.anonymity/1",
        "table": str(args.table),
        "records": table.records,
        "classes": len(table.classes),
        "quasi_identifiers": known,
        "sensitive": secret,
        "measures": measures,
        "worst_classes": {
            "by": decisive.name,
            "attribute": decisive.attribute,
            "classes": [_class(decisive, index) for index in decisive.worst(args.worst)],
        },
        "met": all(measure["met"] is not False for measure in measures),
    }
    if args.original:
        original = read(args, args.original, [*known, *secret, *named])
        if args.id:
            original, released = original.set_index(args.id), released.set_index(args.id)
        audit = audit_release(
            original,
            released,
            quasi_identifiers=known,
            sensitive=secret,
            hierarchies=hierarchies,
            match="index" if args.id else "position",
            missing=args.missing,
        )
        report["release"] = _release(audit)
        report["met"] = report["met"] and bool(audit)
    if args.cost:
        report["cost"] = _cost(table)
    return report, decisive


def _cost(table: Table) -> dict[str, Any]:
    from dpaudit.anonymity.measures import average_class_size, discernibility
    from dpaudit.anonymity.utility import classification_metric

    return {
        "discernibility": discernibility(table),
        "average_class_size": average_class_size(table, 1),
        "classification_metric": {str(c.name): classification_metric(table, c.name) for c in table.sensitive},
    }


def _prior(args: argparse.Namespace, values: tuple[Any, ...]) -> Any:
    from dpaudit.anonymity.tables.table import uniform_prior

    if args.prior in (None, "uniform"):
        return None if args.prior is None else uniform_prior(values)
    weights = load_json("--prior", args.prior)
    if not isinstance(weights, dict):
        raise InvalidArgument(f"--prior={args.prior!r} must hold an object: a weight for each sensitive value.")
    return weights


def _measures(args: argparse.Namespace, table: Table, hierarchies: dict[Any, Hierarchy]) -> list[tuple[str, Measure]]:
    from dpaudit.anonymity import closeness, measures

    found = [("k", measures.k_anonymity(table))]
    if not table.sensitive:
        return found
    distance = _distance(args, table)
    exact = table.records <= _EXACT_RECORDS
    rational = exact and distance.rational
    known = {"others_known": args.others_known}
    for name, values in ((column.name, column.values) for column in table.sensitive):
        prior = _prior(args, values)
        found += [
            ("alpha", measures.alpha_k_anonymity(table, name, exact=exact).alpha),
            ("l", measures.l_diversity(table, name, **known)),
            ("entropy-l", measures.l_diversity(table, name, kind="entropy", **known)),
            ("c", measures.recursive_diversity(table, name, level=args.level, exact=exact, **known)),
            ("t", measures.t_closeness(table, name, distance=distance, reference=prior, exact=rational, **known)),
            ("beta", measures.beta_likeness(table, name, exact=exact)),
            ("delta", measures.delta_disclosure(table, name)),
        ]
        if args.enhanced:
            found.append(("enhanced-beta", measures.beta_likeness(table, name, enhanced=True, exact=exact)))
        if args.c is not None:
            found.append(("recursive-l", measures.recursive_level(table, name, c=args.c, **known)))
        if args.n is not None:
            options: dict[str, Any] = {"distance": distance, "exact": rational}
            found.append(("epsilon", closeness.n_epsilon_closeness(table, args.n, name, **options)))
            if args.partition:
                found.append(("partition-epsilon", closeness.partition_closeness(table, args.n, name, **options)))
            if args.natural:
                natural = closeness.n_t_closeness(table, args.n, name, hierarchies=hierarchies, **options)
                found.append(("natural-t", natural))
    return found


def _distance(args: argparse.Namespace, table: Table) -> Distance:
    from dpaudit.anonymity.distance.emd import EarthMovers, Equal, Ordered
    from dpaudit.anonymity.measures import as_distance
    from dpaudit.anonymity.tables.hierarchy import Taxonomy

    given = [f"--{name}" for name in ("ground", "order", "taxonomy") if getattr(args, name)]
    if args.distance != "emd":
        if given:
            raise InvalidArgument(f"{given[0]} belongs to --distance emd; {args.distance} uses no distance of values.")
        return as_distance(args.distance)
    if len(table.sensitive) > 1 and (args.order or args.taxonomy):
        raise InvalidArgument(f"{given[-1]} fits one sensitive attribute; ask for each of them separately.")
    if args.taxonomy or args.ground == "taxonomy":
        if not args.taxonomy:
            raise InvalidArgument("--ground taxonomy needs --taxonomy FILE.json.")
        return EarthMovers(Taxonomy(load_json("--taxonomy", args.taxonomy)))
    if args.ground == "equal":
        return EarthMovers(Equal())
    order = tuple(split_names([args.order])) if args.order else None
    return EarthMovers(Ordered(order=order, by=args.ground or "ranks"))


def _requirements(listed: list[str]) -> dict[str, str]:
    required: dict[str, str] = {}
    for part in (part.strip() for text in listed for part in text.split(",") if part.strip()):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or _bound(value) is None:
            raise InvalidArgument(f"--require {part!r} must look like name=number, as in k=3 or t=5/9.")
        check_choice(_REQUIREMENTS, require=name)
        if name in required:
            raise InvalidArgument(f"--require names {name!r} twice.")
        check_requirement(name, value)
        required[name] = value
    return required


def check_requirement(name: str, value: str) -> None:
    """Refuse a requirement that every table meets, or none can meet: it is a mistake, not a check."""
    least, strict, largest = _SENSIBLE.get(name, (0, False, None))
    bound = Fraction(value)
    if bound < least or (strict and bound == least) or (largest is not None and bound > largest):
        allowed = f"above {least}" if strict else f"at least {least}"
        allowed += "" if largest is None else f" and at most {largest}"
        raise InvalidArgument(f"--require {name}={value} must be {allowed}: otherwise every table meets it, or none.")


def _bound(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _described(symbol: str, measure: Measure, required: str | None) -> dict[str, Any]:
    bound = None if required is None else _bound(required)
    return {
        "symbol": symbol,
        "name": measure.name,
        "attribute": measure.attribute,
        "value": _number(measure.value),
        "exact": None if isinstance(measure.value, float) else str(measure.value),
        "sense": measure.sense.value,
        "required": required,
        "met": None if bound is None else measure.meets(bound),
        "deciding_class": _class(measure, measure.deciding_class),
        "deciding_value": None if measure.deciding_value is None else str(measure.deciding_value),
        "records": [int(record) + 1 for record in measure.records[:_LISTED]],  # the first row below the header is 1
        "records_total": len(measure.records),
        "reference": None if measure.reference is None else {str(v): n for v, n in measure.reference.items()},
    }


def _class(measure: Measure, index: int) -> dict[str, Any]:
    from dpaudit.anonymity.tables.cells import as_text

    table = measure.table
    described: dict[str, Any] = {
        "class": index + 1,
        "size": int(table.classes.sizes[index]),
        "value": _number(measure.per_class[index]),
        "key": {str(name): as_text(value) for name, value in table.key(index).items()},
    }
    if measure.attribute is not None:
        shares = table.class_distribution(index, measure.attribute)
        described["distribution"] = {
            as_text(value): float(share) for value, share in sorted(shares.items(), key=lambda item: -item[1])[:_LISTED]
        }
    return described


def _release(audit: ReleaseAudit) -> dict[str, Any]:
    from dpaudit.anonymity.tables.cells import as_text

    return {
        "cells": audit.cells,
        "mismatches": len(audit.mismatches),
        "first": [
            {
                "record": mismatch.record + 1,
                "column": str(mismatch.column),
                "original": as_text(mismatch.original),
                "released": as_text(mismatch.released),
                "span": mismatch.span,
            }
            for mismatch in audit.mismatches[:_LISTED]
        ],
        "text": str(audit),
    }


def _number(value: Any) -> int | float | str:
    number = float(value)
    if number in (float("inf"), float("-inf")):
        return "inf" if number > 0 else "-inf"  # JSON has no infinity
    return int(value) if number == value and not isinstance(value, float) and number.is_integer() else number


def _text(report: dict[str, Any]) -> str:
    names = f"quasi-identifiers {', '.join(report['quasi_identifiers'])}"
    names += f"; sensitive {', '.join(report['sensitive'])}" if report["sensitive"] else ""
    lines = [f"{report['table']}: {report['records']} records, {report['classes']} classes ({names})", ""]
    rows = [("measure", "value", "required", "decided by")]
    for measure in report["measures"]:
        on = f" of {measure['attribute']}" if measure["attribute"] is not None else ""
        rows.append((measure["name"] + on, _value(measure), _verdict(measure), _decided(measure)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines += [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()
        for row in rows
    ]
    worst = report["worst_classes"]
    if worst["classes"]:
        on = f" of {worst['attribute']}" if worst["attribute"] is not None else ""
        lines += ["", f"worst classes by {worst['by']}{on}"]
        lines += [f"  {_shown(entry['value']):>10}  {_named(entry)}{_shares(entry)}" for entry in worst["classes"]]
    if "cost" in report:
        cost = report["cost"]
        lines += [
            "",
            f"discernibility {cost['discernibility']}, records per class {_shown(cost['average_class_size'])}",
        ]
        lines += [f"classification metric of {n}: {_shown(v)}" for n, v in cost["classification_metric"].items()]
    if "release" in report:
        lines += ["", f"against the original: {report['release']['text']}"]
    if any(measure["required"] is not None for measure in report["measures"]) or "release" in report:
        lines += ["", "everything required is met" if report["met"] else "NOT everything required is met"]
    return "\n".join(lines) + "\n"


def _value(measure: dict[str, Any]) -> str:
    shown = _shown(measure["value"])
    return f"{measure['exact']} ({shown})" if "/" in (measure["exact"] or "") else shown


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _verdict(measure: dict[str, Any]) -> str:
    if measure["required"] is None:
        return ""
    return f"{measure['sense']} {measure['required']} {'met' if measure['met'] else 'NOT met'}"


def _decided(measure: dict[str, Any]) -> str:
    records, total = measure["records"][:5], measure["records_total"]
    more = f" and {total - 5} more" if total > 5 else ""
    held = f" holding {measure['deciding_value']}" if measure["deciding_value"] is not None else ""
    noun = "record" if total == 1 else "records"
    return f"{_named(measure['deciding_class'])}, {noun} {', '.join(map(str, records))}{more}{held}"


def _named(entry: dict[str, Any]) -> str:
    key = ", ".join(f"{name}={value}" for name, value in entry["key"].items())
    return f"class {entry['class']} ({key})"


def _shares(entry: dict[str, Any]) -> str:
    shares = list(entry.get("distribution", {}).items())
    listed = ", ".join(f"{value} {share:.3g}" for value, share in shares[:4])
    return f": {listed}{', ...' if len(shares) > 4 else ''} [{entry['size']} records]" if shares else ""
