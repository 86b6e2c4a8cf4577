"""The command ``dpaudit accuracy``: list, show, verify and compare accuracy theorems.

Exit codes: 0, 1 if a form that is expected to hold is violated, 2 for parameters that the theorem does not allow.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dpaudit._util.terminal.console import Console
from dpaudit.errors import InvalidArgument, MissingDependency

EXIT_OK, EXIT_VIOLATED, EXIT_BAD = 0, 1, 2
# Every parameter of a theorem in the registry; a test checks that none is missing.
PARAMETERS = (
    "n", "steps", "queries", "i", "gamma", "beta", "epsilon", "delta", "alpha", "rho", "length", "rank", "truth_rate",
    "p", "median", "sensitivity", "scale", "x", "records", "dimension", "regularisation", "power", "offsets",
    "quantile", "releases",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands; slow imports are delayed until one of them runs."""
    commands = parser.add_subparsers(dest="accuracy_command", metavar="COMMAND", required=True)

    listing = commands.add_parser("list", help="list all theorems and what is expected of each form")
    listing.add_argument("--json", action="store_true", help="print JSON")

    show = commands.add_parser("show", help="evaluate all forms of a theorem at one point")
    show.add_argument("theorem", metavar="THEOREM")
    _add_parameters(show, "a number")
    show.add_argument("--no-truth", action="store_true", help="leave out the exact value, which may take seconds")
    show.add_argument("--over", metavar="NAME=LOW:HIGH", help="parameter along which --plot draws the forms")
    _add_output(show)

    verify = commands.add_parser("verify", help="compare theorems with the truth, and search for counterexamples")
    verify.add_argument("theorem", metavar="THEOREM", nargs="?", help="all theorems if left out")
    _add_parameters(verify, "a number, a list a,b,c, or a region low:high to search")
    verify.add_argument("--variant", action="append", help="only this form (may be repeated)")
    verify.add_argument("--points", type=int, default=60, help="points that a search draws for each form (60)")
    verify.add_argument("--seconds", type=float, default=60.0, help="time for each form (60)")
    verify.add_argument(
        "--error-probability",
        type=float,
        default=1e-6,
        help="largest probability of a false violation caused by Monte Carlo error (1e-6)",
    )
    verify.add_argument("--seed", type=int, default=0)
    _add_output(verify)

    compare = commands.add_parser("compare", help="compare the mechanisms for private quantiles")
    compare.add_argument("--n", default="100,300,1000,3000", help="numbers of records, a,b,c")
    compare.add_argument("--epsilon", default="1,10", help="budgets of all quantiles together, a,b,c")
    compare.add_argument("--releases", default="9", help="number of quantiles that share epsilon (9)")
    compare.add_argument("--quantile", default="0.5", help="levels, a,b,c")
    compare.add_argument(
        "--law", default="uniform", help="laws of the data, a,b,c (uniform, normal, exponential, beta-2-5)"
    )
    compare.add_argument("--mechanism", default="", help="only these, a,b,c")
    compare.add_argument("--seed", type=int, default=0)
    _add_output(compare)


def _add_parameters(parser: argparse.ArgumentParser, meaning: str) -> None:
    group = parser.add_argument_group("parameters of the theorem", f"each {meaning}; see `dpaudit accuracy list`")
    for name in PARAMETERS:
        group.add_argument(f"--{name.replace('_', '-')}", dest=f"parameter_{name}", metavar="VALUE")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", metavar="FILE.svg", help="write a plot")


def run(args: argparse.Namespace, out: Console, err: Console) -> int:
    """Run the subcommand that ``args`` names; results go to ``out``, errors to ``err``, progress to standard error."""
    commands: dict[str, Callable[[argparse.Namespace, Console], int]] = {
        "list": _list,
        "show": _show,
        "verify": _verify,
        "compare": _compare,
    }
    try:
        return commands[args.accuracy_command](args, out)
    except (InvalidArgument, MissingDependency) as error:
        err.block(f"error: {error}")
        return EXIT_BAD


def _list(args: argparse.Namespace, out: Console) -> int:
    from dpaudit.accuracy.theorems import THEOREMS

    if args.json:
        _print_json([_describe(theorem) for theorem in THEOREMS], out)
        return EXIT_OK
    for theorem in THEOREMS:
        out.block(f"{theorem.name}  ({theorem.source})")
        out.block(f"  {theorem.title}")
        defaults = ", ".join(
            name if default is None else f"{name}={_short(default)}"
            for name, (_, default) in theorem.parameters.items()
        )
        out.block(f"  parameters: {defaults}")
        for form in theorem.forms:
            out.block(f"    {form.variant:<24}{form.expected:<10}{form.note}")
    return EXIT_OK


def _describe(theorem: Any) -> dict[str, Any]:
    return {
        "name": theorem.name,
        "title": theorem.title,
        "source": theorem.source,
        "statement": theorem.statement,
        "parameters": {name: default for name, (_, default) in theorem.parameters.items()},
        "forms": [
            {"variant": str(form.variant), "expected": str(form.expected), "note": form.note} for form in theorem.forms
        ],
    }


def _show(args: argparse.Namespace, out: Console) -> int:
    import numpy as np

    from dpaudit.accuracy.bound import judge
    from dpaudit.accuracy.theorems import Effort, find_theorem

    theorem = find_theorem(args.theorem)
    point = theorem.complete(_single_values(args, theorem))
    entries, undefined = [], []
    for number, form in enumerate(theorem.forms):
        try:
            bound = form.bound(**point)
        except InvalidArgument as error:  # this form is undefined at the point; the others may not be
            undefined.append((form, str(error)))
            continue
        silent = args.no_truth or not bound.applies or math.isnan(bound.value)
        effort = Effort(alpha=1e-6, rng=np.random.default_rng([0, number]))
        truth = None if silent else form.truth(bound, effort, **point)
        status = None if truth is None else judge(bound, truth)
        entries.append((form, bound, truth, status))
    if args.plot:
        _plot_forms(theorem, point, args.over, args.plot)
    if args.json:
        payload = _describe(theorem) | {
            "point": point,
            "forms": [
                bound.as_json()
                | {
                    "note": form.note,
                    "expected": str(form.expected),
                    "truth": None if truth is None else truth.as_json(),
                    "status": None if status is None else str(status),
                }
                for form, bound, truth, status in entries
            ],
            "undefined": [{"variant": str(form.variant), "reason": reason} for form, reason in undefined],
        }
        _print_json(payload, out)
        return EXIT_OK
    out.block(f"{theorem.title}  ({theorem.source})\n{theorem.statement}")
    out.block(f"at {_point(point)}")
    for form, bound, truth, status in entries:
        out.block(f"\n{form.variant}: {form.note}")
        out.block(
            f"  {bound.quantity} {bound.sense} {_number(bound.value)}{'  (vacuous)' if bound.vacuous else ''}",
        )
        if bound.terms:
            out.block("  with " + ", ".join(f"{name}={_number(value)}" for name, value in bound.terms.items()))
        for condition in bound.unmet:
            out.block(f"  hypothesis not met: {condition}")
        if truth is not None:
            out.block(f"  truth {_interval(truth)}: {status}")
    for form, reason in undefined:
        out.block(f"\n{form.variant}: {form.note}\n  undefined here: {reason}")
    return EXIT_OK


def _plot_forms(theorem: Any, point: dict[str, Any], over: str | None, path: str) -> None:
    import numpy as np

    from dpaudit.accuracy.conditions import SYMBOLS
    from dpaudit.accuracy.plots import plot_forms
    from dpaudit.accuracy.regions import Range

    if over is None:
        name = next(n for n in ("epsilon", *theorem.parameters) if n in theorem.parameters)
        low, high = point[name] / 10.0, point[name] * 10.0
    else:
        name, _, region = over.partition("=")
        span = Range.parse(region)
        low, high = span.low, span.high
    values = np.geomspace(low, high, 60)
    symbol = SYMBOLS.get(theorem.parameters.get(name, ("", None))[0])
    if symbol is not None and symbol.whole:
        values = np.unique(values.round())
    if symbol is not None:
        values = values[symbol.test(values)]
    plot_forms(theorem, point, name, values.tolist(), path)


def _verify(args: argparse.Namespace, out: Console) -> int:
    from dpaudit.accuracy.theorems import THEOREMS, find_theorem
    from dpaudit.accuracy.verification import verify

    theorems = THEOREMS if args.theorem is None else (find_theorem(args.theorem),)
    results: list[Any] = []
    with _progress("points") as progress:
        for theorem in theorems:
            region = _region(args, theorem)
            variants = args.variant
            if args.theorem is None and variants is not None:
                variants = [v for v in variants if any(form.variant == v for form in theorem.forms)]
            for form in theorem.select(variants):
                where = None if not region else {**form.region, **region}
                results += verify(
                    theorem,
                    where,
                    variants=[form.variant],
                    points=args.points,
                    seconds=args.seconds,
                    error_probability=args.error_probability,
                    seed=args.seed,
                    progress=progress,
                )
    if args.plot:
        from dpaudit.accuracy.plots import plot_verifications

        plot_verifications(results, args.plot)
    if args.json:
        _print_json([result.as_json() for result in results], out)
    else:
        _print_verifications(results, out)
    return EXIT_VIOLATED if any(result.broken for result in results) else EXIT_OK


def _print_verifications(results: Sequence[Any], out: Console) -> None:
    rows = [("theorem", "form", "expected", "found", "points")]
    rows += [
        (
            result.theorem.name,
            str(result.form.variant),
            str(result.form.expected),
            str(result.status),
            ", ".join(f"{count} {status}" for status, count in result.counts.items()),
        )
        for result in results
    ]
    _print_table(rows, out)
    for result in results:
        shown = [("counterexample", result.counterexample), ("worst", result.worst)]
        for label, row in shown if result.counterexample is not result.worst else shown[:1]:
            if row is None:
                continue
            out.block(f"\n{result.theorem.name}, {result.form.variant}: {label}")
            out.block(f"  at {_point(row.point)}")
            out.block(f"  {row.bound.quantity} {row.bound.sense} {_number(row.bound.value)} is claimed")
            out.block(f"  truth {_interval(row.truth)}")
            if row.truth.error_probability:
                out.block(f"  (false with probability at most {result.error_probability:.1g})")
    for result in results:
        if result.missed:
            out.block(
                f"\n{result.theorem.name}, {result.form.variant}: a counterexample is expected, and none was found at these "
                f"{len(result.rows)} points; try more --points, or another region.",
            )
    broken = [result for result in results if result.broken]
    for result in broken:
        out.block(f"\nUNEXPECTED: {result.theorem.name}, {result.form.variant} is violated.")


def _compare(args: argparse.Namespace, out: Console) -> int:
    from dpaudit.accuracy.comparison import Contender, compare

    chosen = _words(args.mechanism) or [str(contender) for contender in Contender]
    sizes = _numbers("n", args.n, "n_slides")
    budgets, levels = _numbers("epsilon", args.epsilon), _numbers("quantile", args.quantile)
    laws = _words(args.law)
    with _progress("mechanisms", len(sizes) * len(budgets) * len(levels) * len(laws) * len(chosen)) as progress:
        rows = compare(
            n=[int(size) for size in sizes],
            epsilon=budgets,
            quantiles=levels,
            laws=laws,
            contenders=chosen,
            releases=int(_numbers("releases", args.releases)[0]),
            seed=args.seed,
            progress=progress,
        )
    if args.plot:
        from dpaudit.accuracy.plots import plot_comparison

        plot_comparison(rows, args.plot)
    if args.json:
        _print_json([row.as_json() for row in rows], out)
        return EXIT_OK
    table = [("law", "quantile", "epsilon", "n", "mechanism", "mean error", "rmse", "bound", "sampling error")]
    table += [
        (
            row.law,
            f"{row.quantile:g}",
            f"{row.epsilon:g}",
            str(row.n),
            str(row.contender),
            _interval(row.error),
            f"{row.root_mean_squared_error:.4g}",
            "-" if row.bound is None else f"{row.bound:.4g}",
            f"{row.sampling_error:.4g}",
        )
        for row in rows
    ]
    _print_table(table, out)
    return EXIT_OK


def _given(args: argparse.Namespace, theorem: Any) -> dict[str, str]:
    """Return the parameters given on the command line; raise for one that the theorem does not have."""
    given = {name: getattr(args, f"parameter_{name}") for name in PARAMETERS}
    given = {name: text for name, text in given.items() if text is not None}
    theorem.complete(given, checked=False)
    return given


def _single_values(args: argparse.Namespace, theorem: Any) -> dict[str, Any]:
    return {name: _value(theorem, name, text) for name, text in _given(args, theorem).items()}


def _value(theorem: Any, name: str, text: str) -> Any:
    from dpaudit.accuracy.conditions import SYMBOLS

    symbol = SYMBOLS.get(theorem.parameters[name][0])
    if symbol is None:
        try:
            return tuple(float(part) for part in text.split(","))
        except ValueError:
            raise InvalidArgument(f"{name}={text!r} must be numbers a,b,c, in units of alpha around T.") from None
    return symbol.parse(text)


def _region(args: argparse.Namespace, theorem: Any) -> dict[str, Any]:
    from dpaudit.accuracy.regions import Range

    if args.theorem is None:
        if any(getattr(args, f"parameter_{name}") is not None for name in PARAMETERS):
            raise InvalidArgument("parameters need a THEOREM: each theorem has its own; see `dpaudit accuracy list`.")
        return {}
    region: dict[str, Any] = {}
    for name, text in _given(args, theorem).items():
        if ":" in text:
            for end in text.split(":"):
                _value(theorem, name, end)
            region[name] = Range.parse(text)
        elif name == "offsets":
            region[name] = [_value(theorem, name, text)]
        else:
            region[name] = [_value(theorem, name, part) for part in text.split(",")]
    return region


def _numbers(name: str, text: str, symbol: str | None = None) -> list[float]:
    from dpaudit.accuracy.conditions import SYMBOLS

    return [SYMBOLS[symbol or name].parse(part) for part in _words(text)]


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@contextmanager
def _progress(unit: str, total: int | None = None) -> Iterator[Callable[[int], Any]]:
    """Show a progress bar on standard error, if that is a terminal."""
    from tqdm import tqdm

    with tqdm(total=total, unit=f" {unit}", file=sys.stderr, disable=None, leave=False) as bar:
        yield bar.update


def _print_json(payload: Any, out: Console) -> None:
    out.json(json.dumps(payload, indent=2, sort_keys=True, allow_nan=False) + "\n")


def _print_table(rows: Sequence[Sequence[str]], out: Console) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        out.block("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _interval(truth: Any) -> str:
    if truth.method == "exact":
        return f"{truth.middle:.6g}"
    guess = f"{truth.estimate:.4g} " if truth.estimate is not None else ""
    return f"{guess}in [{truth.low:.6g}, {truth.high:.6g}] ({truth.method})"


def _number(value: float) -> str:
    return f"{value:.8g}"


def _point(point: Mapping[str, Any]) -> str:
    """Name the parameters that have a value; a quantile that is left out is the decile i."""
    return ", ".join(f"{name}={_short(value)}" for name, value in point.items() if value is not None)


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(f"{part:g}" for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
