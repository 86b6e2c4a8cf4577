"""The command ``dpaudit tradeoff``: error against shown epsilon for one mechanism over its parameter."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import IO

from dpaudit.cli.collect import load_target
from dpaudit.errors import InvalidArgument
from dpaudit.utility.tradeoff import Tradeoff, plot_tradeoff


def tradeoff_command(args: argparse.Namespace, root: Path, out: IO[str]) -> int:
    """Run the trade-off that the target names, print it, and draw it if asked for."""
    curve = load_target(args.target, root=root)
    if not isinstance(curve, Tradeoff):
        raise InvalidArgument(f"{args.target} is {type(curve).__name__}, not a dpaudit.Tradeoff.")
    given = {"samples": args.samples, "alpha": args.alpha, "seed": args.seed}
    points = curve.run(**{name: value for name, value in given.items() if value is not None})
    if args.plot is not None:
        plot_tradeoff(curve, points, args.plot)
    if args.json:
        print(json.dumps({"name": curve.name, "points": [point.as_json() for point in points]}, indent=1), file=out)
        return 0
    print(f"{curve.name}", file=out)
    print(f"{curve.parameter:>12}  {'epsilon':>12}  {'mean error':>12}  {'standard error':>14}", file=out)
    for point in points:
        epsilon = f"{point.epsilon:.4g}" if point.exact else f">= {point.epsilon:.4g}"
        print(f"{point.value:>12g}  {epsilon:>12}  {point.mean_error:>12.4g}  {point.standard_error:>14.2g}", file=out)
    return 0
