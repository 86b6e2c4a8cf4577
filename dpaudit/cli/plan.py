"""Plan a run: its audits, the options and the share of alpha of each, and their results from an interrupted run."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit._util.terminal.console import Console
from dpaudit._util.validation import check_open_unit, did_you_mean
from dpaudit.baseline import VERDICT_SHARE
from dpaudit.cli.collect import BrokenFiles, Collected, collect
from dpaudit.cli.config import Settings
from dpaudit.cli.journal import FOLDER, Journal, audit_key, sources_digest
from dpaudit.errors import InvalidArgument
from dpaudit.report.document import AccuracyEntry, AnyEntry, Entry, Failure
from dpaudit.utility.definition import AccuracyAudit

MOST_NAMED = 10  # audits that a message names


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Audits to run, each with the options of this run and the key under which the journal keeps it."""

    items: tuple[Collected, ...]
    options: Mapping[str, dict[str, Any]]
    keys: Mapping[str, str]
    targets: tuple[str, ...]  # as given on the command line
    here: Path
    root: Path
    journal: Journal
    earlier: Mapping[str, AnyEntry]  # results in the journals of interrupted runs, by key
    broken: tuple[Failure, ...] = ()  # files that could not be imported

    def todo(self) -> list[Collected]:
        """Return the audits whose results no journal has."""
        return [item for item in self.items if self.keys[item.audit.name] not in self.earlier]


def collected(
    targets: Sequence[str], settings: Settings, here: Path, *, broken: BrokenFiles | None = None
) -> list[Collected]:
    """Return the audits that the targets name; without targets those of the configuration, or of the folder ``audits``.

    Files that cannot be imported are added to ``broken``, if that is given and there are other audits; otherwise the first of
    them raises.
    """
    wanted = list(targets) or list(settings.audits) or ["audits"]
    nowhere = not targets and not settings.audits and not (settings.root / "audits").is_dir()
    items = (
        [] if nowhere else collect(wanted, root=settings.root, here=here if targets else settings.root, broken=broken)
    )
    if not items and broken is not None and broken.files:
        raise broken.files[0].error
    if not items:
        missing = "There is no folder audits/ here" if nowhere else f"No audits found in {', '.join(wanted)}"
        raise InvalidArgument(
            f"{missing}. An audit file defines dpaudit.Audit objects at its top level; `dpaudit init` writes a first one."
        )
    return items


def make_plan(
    args: argparse.Namespace, settings: Settings, here: Path, console: Console, interrupted: Callable[[], bool]
) -> RunPlan:
    """Give every audit its options, and its part of the run's alpha.

    A KeyboardInterrupt in an audit file is an error of that file unless ``interrupted()``.
    """
    broken = BrokenFiles(interrupted)
    items = _selected(collected(args.targets, settings, here, broken=broken), args.select, bool(broken.files))
    options: dict[str, dict[str, Any]] = {}
    compared = args.baseline or args.save_baseline or settings.baseline
    alpha_each = settings.alpha_each * (VERDICT_SHARE if compared else 1.0)
    for item in items:
        alpha = item.audit.options.get("alpha", alpha_each)
        check_open_unit(hint=f"It is an option of the audit {item.audit.name!r}.", alpha=alpha)
        options[item.audit.name] = {**settings.overrides(), "alpha": alpha}
    asked = math.fsum(chosen["alpha"] for chosen in options.values())
    if asked > settings.alpha * (1.0 + 1e-9):
        raise InvalidArgument(
            f"{len(items)} audits ask for a false-alarm probability of {asked:.3g}, but the run has alpha={settings.alpha:g}. "
            f"Leave alpha out of their options (each then gets alpha / max_audits = {settings.alpha_each:.3g}), or raise "
            "alpha or max_audits."
        )
    sources = sources_digest(settings.root)
    keys = {item.audit.name: audit_key(item.audit, options[item.audit.name], sources) for item in items}
    journal = Journal.start(settings.root / FOLDER, resume=args.resume, say=console.line)
    found = {key: _earlier(item, journal, key, console) for item in items if (key := keys[item.audit.name])}
    earlier = {key: entry for key, entry in found.items() if entry is not None}
    failures = tuple(Failure(name=file.path, reason=str(file.error), path=file.path, line=1) for file in broken.files)
    targets = tuple(args.targets)
    return RunPlan(tuple(items), options, keys, targets, here, settings.root, journal, earlier, failures)


def _earlier(item: Collected, journal: Journal, key: str, console: Console) -> AnyEntry | None:
    plain = journal.earlier.get(key)
    kind = AccuracyEntry if isinstance(item.audit, AccuracyAudit) else Entry
    try:
        return None if plain is None else kind.from_dict(plain)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        console.line(f"A result in the journal is damaged and ignored ({type(error).__name__}: {error}).")
        return None


def _selected(items: list[Collected], names: Sequence[str] | None, broken: bool) -> list[Collected]:
    if not names:
        return items
    chosen = [item for item in items if any(name in item.audit.name for name in names)]
    if not chosen and not broken:
        known = [item.audit.name for item in items]
        hint = (
            did_you_mean(names[0], known)
            or f" There are: {', '.join(map(repr, known[:MOST_NAMED]))}{', ...' * (len(known) > MOST_NAMED)}."
        )
        raise InvalidArgument(f"No audit is called {' or '.join(map(repr, names))}.{hint}")
    return chosen
