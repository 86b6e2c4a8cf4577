"""The document on a terminal: a line for each audit, the story of a violation, and what it adds up to."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import IO

from dpaudit.claims import Verdict
from dpaudit.report.document import AccuracyEntry, Document, Entry
from dpaudit.report.escape import clean_accuracy, clean_entry
from dpaudit.result.text import headline, render
from dpaudit.utility.result import headline as accuracy_headline

COLOURS = {Verdict.VIOLATION: "31", Verdict.NO_VIOLATION_FOUND: "32", Verdict.INCONCLUSIVE: "33"}


@dataclass(frozen=True, slots=True)
class Style:
    """Whether to use colours."""

    colour: bool = False

    @classmethod
    def for_stream(cls, stream: IO[str]) -> Style:
        """Colours on a terminal; NO_COLOR turns them off, FORCE_COLOR on."""
        if os.environ.get("NO_COLOR"):
            return cls(False)
        if os.environ.get("FORCE_COLOR"):
            return cls(True)
        return cls(stream.isatty() and os.environ.get("TERM") != "dumb")

    def paint(self, text: str, verdict: Verdict) -> str:
        """The text in the colour of the verdict."""
        return f"\x1b[{COLOURS[verdict]}m{text}\x1b[0m" if self.colour else text


def line(entry: Entry, style: Style) -> str:
    """One line for an audit."""
    entry = clean_entry(entry)
    verdict = entry.result.verdict
    text = headline(entry.result).replace(str(verdict), style.paint(f"{verdict!s:<18}", verdict), 1)
    if entry.expect is None:
        return text
    return f"{text} [as expected]" if entry.met else f"{text} [UNEXPECTED: expected {entry.expect}]"


def story(entry: Entry, style: Style) -> str:
    """The whole result, with where it is defined."""
    entry = clean_entry(entry)
    verdict = entry.result.verdict
    places = (("mechanism", entry.mechanism_path, entry.mechanism_line), ("audit", entry.path, entry.line))
    where = "".join(f"\nThe {what} is defined at {path}:{number}." for what, path, number in places if path)
    return render(entry.result).replace(str(verdict), style.paint(str(verdict), verdict), 1) + where


def accuracy_line(entry: AccuracyEntry, style: Style) -> str:
    """One line for an accuracy check."""
    entry = clean_accuracy(entry)
    verdict = entry.result.verdict
    text = accuracy_headline(entry.result).replace(str(verdict), style.paint(f"{verdict!s:<18}", verdict), 1)
    if entry.expect is None:
        return text
    return f"{text} [as expected]" if entry.met else f"{text} [UNEXPECTED: expected {entry.expect}]"


def accuracy_story(entry: AccuracyEntry, style: Style) -> str:
    """The whole result of an accuracy check, with where it is defined."""
    entry = clean_accuracy(entry)
    verdict = entry.result.verdict
    where = f"\nThe audit is defined at {entry.path}:{entry.line}." if entry.path else ""
    return str(entry.result).replace(str(verdict), style.paint(str(verdict), verdict), 1) + where


def totals(document: Document) -> str:
    """What a run adds up to."""
    both = document.all_entries
    counts = Counter(entry.result.verdict for entry in both)
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    unmet = sum(not entry.met for entry in both if entry.expect is not None)
    expected = sum(entry.expect is not None for entry in both)
    plural = "" if len(both) == 1 else "s"
    text = f"{len(both)} audit{plural}: {', '.join(parts) or 'none'}"
    if expected:
        text += f"; {expected - unmet} of {expected} expectations met"
    return f"{text}. False-alarm probability spent: {document.alpha_spent:.3g}."


def summary(document: Document) -> str:
    """All lines and the totals, without colours."""
    style = Style()
    accuracy = (accuracy_line(entry, style) for entry in document.accuracy)
    return "\n".join([*(line(entry, style) for entry in document.entries), *accuracy, "", totals(document)])
