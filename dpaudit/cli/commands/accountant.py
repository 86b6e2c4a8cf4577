"""The command ``dpaudit accountant TARGET``: check a privacy accountant, and print where it is wrong.

Exit codes: 0, nothing found; 1, the accountant is wrong; 2, invalid arguments; 3, the accountant refused every
composition.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from pathlib import Path
from typing import Any

from dpaudit._util.terminal.console import Console, Unbroken
from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit.accountant.check import AccountantCheck, WrongReport, check_accountant
from dpaudit.accountant.composition import Composition
from dpaudit.claims import Relation, Verdict
from dpaudit.cli.collect import load_target


def accountant_command(args: argparse.Namespace, root: Path, out: Console, err: Console) -> int:
    """Run the check, and print its result as text or JSON."""
    with contextlib.redirect_stdout(Unbroken(err.stream)):  # what the file prints
        accountant = load_target(args.target, root=root)
        found = check_accountant(
            accountant,
            relation=Relation(args.relation),
            noises=args.noise or ("gaussian",),
            parts=args.parts,
            sampling_rates=(1.0, 1.0) if args.unsampled else (0.001, 1.0),
            steps=(1, args.max_steps),
            examples=args.examples,
            seconds=args.seconds,
            seed=args.seed,
            name=args.target,
        )
    if args.json:
        out.json(json.dumps(_document(found), indent=1, allow_nan=False) + "\n")
    else:
        out.block(str(found))
    if found.findings:
        return ExitCode.FAILED
    return ExitCode.UNDECIDED if found.verdict is Verdict.INCONCLUSIVE else ExitCode.OK


def _document(found: AccountantCheck) -> dict[str, Any]:
    return {
        "accountant": found.accountant,
        "relation": found.relation.value,
        "verdict": str(found.verdict),
        "findings": [_finding(finding) for finding in found.findings],
        "worst": None if found.worst is None else _finding(found.worst),
        "checked": found.checked,
        "refused": found.refused,
        "refusal": found.refusal,
        "seed": found.seed,
    }


def _finding(finding: WrongReport) -> dict[str, Any]:
    return {
        "flaw": str(finding.flaw),
        "composition": _parts(finding.composition),
        "delta": finding.delta,
        "reported": _plain(finding.reported),
        "truth": None if finding.truth is None else [_plain(finding.truth.low), _plain(finding.truth.high)],
        "weaker": None if finding.weaker is None else _parts(finding.weaker),
        "weaker_delta": finding.weaker_delta,
        "weaker_reported": None if finding.weaker_reported is None else _plain(finding.weaker_reported),
    }


def _plain(number: float) -> float | str:
    """Return a number for JSON; infinities and NaN, which JSON lacks, as text."""
    return number if abs(number) < float("inf") else str(number)


def _parts(composition: Composition) -> list[dict[str, Any]]:
    names = ("noise", "noise_multiplier", "sampling_rate", "steps")
    return [{name: getattr(part, name) for name in names} for part in composition]
