"""``dpaudit sensitivity`` and ``dpaudit diagnose``: the query alone, and query plus noise stage by stage."""

from __future__ import annotations

import argparse
import contextlib
import re
from pathlib import Path
from typing import Any

from dpaudit._util.terminal.console import Console, Unbroken
from dpaudit._util.validation import did_you_mean
from dpaudit.cli.collect import load_target
from dpaudit.cli.commands.check import audit_of, exit_code_of, neighbours_of
from dpaudit.cli.config import Settings
from dpaudit.errors import InvalidArgument

NOISES = ("laplace", "gaussian", "discrete-laplace")


def sensitivity_command(args: argparse.Namespace, settings: Settings, here: Path, out: Console, err: Console) -> int:
    """``dpaudit sensitivity``: search for neighbours on which the query changes by more than ``--bound``."""
    from dpaudit.sensitivity import check_sensitivity

    with contextlib.redirect_stdout(Unbroken(err.stream)):  # what the query prints
        query = load_target(args.target, root=settings.root, here=here)
        found = check_sensitivity(
            query, args.bound, neighbours_of(args), args.norm, examples=args.examples, seed=args.seed
        )
    out.block(str(found))
    return exit_code_of(found.verdict)


def diagnose_command(args: argparse.Namespace, settings: Settings, here: Path, out: Console, err: Console) -> int:
    """``dpaudit diagnose``: sensitivity, noise, calibration, end to end."""
    from dpaudit.diagnosis.staged import diagnose

    noise = parse_noise(args.noise)
    with contextlib.redirect_stdout(Unbroken(err.stream)):
        audit = audit_of(args, settings, here)
        found = diagnose(
            audit.mechanism,
            audit.claim,
            audit.neighbours,
            query=load_target(args.query, root=settings.root, here=here),
            noise=noise,
            sensitivity=args.sensitivity,
            norm=args.norm,
            alpha=args.alpha,
            samples=args.samples,
            seed=args.seed,
        )
    out.block(str(found))
    return exit_code_of(found.verdict)


def parse_noise(text: str) -> Any:
    """Return the law that ``--noise`` names, around 0.

    >>> parse_noise("laplace(2)")
    Laplace(location=0, scale=2.0)
    """
    from dpaudit.exact import DiscreteLaplace, Gaussian, Laplace

    found = re.fullmatch(r"\s*([\w-]+)\s*\(\s*([^()]+?)\s*\)\s*", text)
    laws: dict[str, Any] = dict(zip(NOISES, (Laplace, Gaussian, DiscreteLaplace), strict=True))
    if found is None or found[1] not in laws:
        raise InvalidArgument(
            f"--noise={text!r} must be one of {', '.join(f'{name}(SCALE)' for name in NOISES)}."
            + did_you_mean(found[1] if found else text, NOISES)
        )
    try:
        scale = float(found[2])
    except ValueError:
        raise InvalidArgument(f"--noise={text!r}: {found[2]!r} is not a number.") from None
    return laws[found[1]](0, scale)
