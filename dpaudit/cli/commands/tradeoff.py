"""The command ``dpaudit tradeoff``: error against shown epsilon for one mechanism over its parameter."""

from __future__ import annotations

import argparse
import contextlib
import json
from pathlib import Path

from dpaudit._util.terminal.console import Console, Unbroken
from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit.cli.collect import load_target
from dpaudit.errors import InvalidArgument
from dpaudit.utility.tradeoff import Tradeoff, plot_tradeoff


def tradeoff_command(args: argparse.Namespace, root: Path, out: Console, err: Console) -> int:
    """Run the trade-off that the target names, print it, and draw it if asked for."""
    with contextlib.redirect_stdout(Unbroken(err.stream)):  # what the file and its mechanism print
        curve = load_target(args.target, root=root)
        if not issubclass(type(curve), Tradeoff):
            raise InvalidArgument(f"{args.target} is {type(curve).__name__}, not a dpaudit.Tradeoff.")
        given = {"samples": args.samples, "alpha": args.alpha, "seed": args.seed}
        points = curve.run(**{name: value for name, value in given.items() if value is not None})
    if args.plot is not None:
        plot_tradeoff(curve, points, args.plot)
    if args.json:
        plain = {"name": curve.name, "points": [point.as_json() for point in points]}
        out.json(json.dumps(plain, indent=1, allow_nan=False) + "\n")
        return ExitCode.OK
    out.line(curve.name)
    out.line(f"{curve.parameter:>12}  {'epsilon':>12}  {'mean error':>12}  {'standard error':>14}")
    for point in points:
        epsilon = f"{point.epsilon:.4g}" if point.exact else f">= {point.epsilon:.4g}"
        out.line(f"{point.value:>12g}  {epsilon:>12}  {point.mean_error:>12.4g}  {point.standard_error:>14.2g}")
    return ExitCode.OK
