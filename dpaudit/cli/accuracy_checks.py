"""Run the accuracy checks of audit files, one after the other, before the privacy audits of a run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpaudit.claims import Verdict
from dpaudit.cli.collect import Collected
from dpaudit.errors import DPAuditError
from dpaudit.report.document import AccuracyEntry, Document
from dpaudit.report.terminal import Style, accuracy_line, accuracy_story


def run_accuracy(
    items: Sequence[Collected], options: Mapping[str, dict[str, Any]], say: Callable[[str], None], style: Style
) -> tuple[tuple[AccuracyEntry, ...], int]:
    """Run accuracy checks and print a line for each; return them with the number of those that could not be run.

    Parameters
    ----------
    items : sequence of Collected
        The checks.
    options : mapping
        Options of the run for each name, its share of alpha included.
    say : callable
        Prints a line.
    style : Style
        Colours.
    """
    entries: list[AccuracyEntry] = []
    troubles = 0
    for item in items:
        try:
            result = item.audit.run(**options[item.audit.name])
        except Exception as error:  # a user's code may raise anything
            troubles += 1
            if not isinstance(error, DPAuditError):
                traceback.print_exception(error)
            say(f"ERROR  {item.audit.name}: {type(error).__name__}: {error}")
            continue
        expect = item.audit.expect if isinstance(item.audit.expect, Verdict) else None
        entries.append(AccuracyEntry(result=result, expect=expect, path=item.path, line=item.line))
        say(accuracy_line(entries[-1], style))
    return tuple(sorted(entries, key=lambda entry: entry.result.name)), troubles


def tell_accuracy(document: Document, say: Callable[[str], None], style: Style) -> None:
    """Print the story of every accuracy check that was not met or could not decide.

    Parameters
    ----------
    document : Document
        The results of the run.
    say : callable
        Prints a line.
    style : Style
        Colours.
    """
    for entry in document.accuracy:
        if not entry.met or (entry.expect is None and entry.result.verdict is Verdict.INCONCLUSIVE):
            say(f"\n{accuracy_story(entry, style)}")
