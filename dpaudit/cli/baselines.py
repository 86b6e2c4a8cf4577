"""Compare a run with its baseline, and save a new one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit import baseline
from dpaudit._util.terminal.console import Console
from dpaudit.baseline import Baseline, Leading, Stored
from dpaudit.cli.plan import RunPlan
from dpaudit.engine.audit import Audit
from dpaudit.errors import DPAuditError
from dpaudit.report.document import Document


def find_regressions(
    stored: Baseline, plan: RunPlan, document: Document, selected: bool, console: Console
) -> tuple[str, ...]:
    """Return the regressions against the baseline, after printing them."""
    leadings = {name: audit.leading for name, audit in stored.audits.items() if audit.leading is not None}
    comparable = {name: leading for name, leading in leadings.items() if leading.on_data is not None}
    ran = Baseline.of(document)
    known = {item.audit.name for item in plan.items}

    def expected(audit: Stored) -> bool:
        """Return True if this run should contain the audit: it was not deselected, and it did not fail to run."""
        if selected or audit.name in known:
            return False
        paths = [_relative(plan.here / target, plan.root) for target in plan.targets]
        return not paths or any(audit.path == path or audit.path.startswith(f"{path}/") for path in paths)

    found = baseline.regressions(
        stored, ran, measured=_measured(plan, comparable, document, console, again=True), expected=expected
    )
    texts = tuple(map(str, found))
    for text in texts:
        console.line(f"REGRESSION  {text}")
    if not texts:
        console.line("No regression against the baseline.")
    return texts


def _relative(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _measured(
    plan: RunPlan, leadings: Mapping[str, Leading], document: Document, console: Console, *, again: bool
) -> dict[str, Leading]:
    """The leading events that can be counted on fresh outputs of today's mechanisms; ``again``, as often as before."""
    samples = {entry.result.name: entry.result.samples for entry in document.entries}
    seeds = {entry.result.name: entry.result.seed for entry in document.entries}
    found: dict[str, Leading] = {}
    for item in plan.items:
        name = item.audit.name
        leading = leadings.get(name)
        if leading is None or name not in samples:
            continue
        trials = leading.on_data[1] if again and leading.on_data else baseline.trials_for(samples[name])
        try:
            found[name] = baseline.measure(mechanism_of(item.audit), leading, seed=seeds[name], trials=trials)
        except DPAuditError as error:
            console.line(f"Note: the leading event of {name!r} was not counted again: {error}")
    return found


def mechanism_of(audit: Audit) -> Any:
    """Return the mechanism of an audit, made by its factory if it has one."""
    return audit.mechanism() if audit.mechanism_is_factory else audit.mechanism


def save_baseline(path: Path, plan: RunPlan, document: Document, console: Console) -> None:
    """Write a baseline of the run, unless audits of it have no result."""
    if not document.complete:
        console.line(f"{path} was not written, because the run is not complete.")
        return
    found = {entry.result.name: baseline.leading_of(entry.result) for entry in document.entries}
    leadings = {name: leading for name, leading in found.items() if leading is not None}
    baseline.save(path, Baseline.of(document, _measured(plan, leadings, document, console, again=False)))
    console.line(f"wrote {path}")
