"""The document on a terminal: a line for each audit, the full result of a violation, and the totals."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from dataclasses import dataclass

from dpaudit._util.terminal.console import Console
from dpaudit._util.terminal.escape import one_line
from dpaudit.claims import Verdict
from dpaudit.report.document import AccuracyEntry, Document, Entry, Failure
from dpaudit.report.escape import clean_accuracy, clean_entry, clean_failure
from dpaudit.result.text import headline, render
from dpaudit.utility.result import headline as accuracy_headline

VERDICT_COLOURS = {Verdict.VIOLATION: "31", Verdict.NO_VIOLATION_FOUND: "32", Verdict.INCONCLUSIVE: "33"}


@dataclass(frozen=True, slots=True)
class Style:
    """The way of printing: with or without colours."""

    colour: bool = False

    @classmethod
    def for_stream(cls, stream: Console) -> Style:
        """Colours on a terminal; NO_COLOR turns them off, FORCE_COLOR on."""
        if os.environ.get("NO_COLOR"):
            return cls(False)
        if os.environ.get("FORCE_COLOR"):
            return cls(True)
        return cls(stream.isatty() and os.environ.get("TERM") != "dumb")

    def of(self, verdict: Verdict) -> dict[str, str]:
        """Return the keywords with which a console shows the verdict."""
        return {"highlight": str(verdict), "colour": VERDICT_COLOURS[verdict]} if self.colour else {}


def show_line(console: Console, entry: Entry | AccuracyEntry, style: Style, *, after: str = "") -> None:
    """Write the line of an audit, and below it the notes of one that found nothing.

    Other results print their notes with the full result.
    """
    text = accuracy_line(entry) if isinstance(entry, AccuracyEntry) else line(entry)
    console.line(text + after, **style.of(entry.result.verdict))
    for note in green_notes(entry):
        console.line(note)


def show_story(console: Console, entry: Entry | AccuracyEntry, style: Style, *, after_line: bool = False) -> None:
    """Write the full result; if its line, which has the numbers, was printed before, begin with verdict and name alone."""
    text = accuracy_story(entry) if isinstance(entry, AccuracyEntry) else story(entry)
    if after_line:
        text = f"{entry.result.verdict}  {one_line(entry.result.name)}\n" + text.partition("\n")[2]
    console.block(text, **style.of(entry.result.verdict))


def show_failure(console: Console, failure: Failure) -> None:
    """Write why an audit could not be run: one line, and further ones indented."""
    failure = clean_failure(failure)
    console.block(textwrap.indent(f"ERROR  {failure.name}: {failure.reason}", "    ").removeprefix("    "))


def green_notes(entry: Entry | AccuracyEntry) -> list[str]:
    """Return the notes of an audit that found nothing, one line each: they say what was not examined."""
    if isinstance(entry, AccuracyEntry) or entry.result.verdict is not Verdict.NO_VIOLATION_FOUND:
        return []
    return [f"    Note: {message}" for message in clean_entry(entry).result.messages]


def line(entry: Entry) -> str:
    """One line for an audit."""
    entry = clean_entry(entry)
    verdict = entry.result.verdict
    text = headline(entry.result, with_power=True).replace(str(verdict), f"{verdict!s:<18}", 1)
    return _with_expectation(text, entry)


def story(entry: Entry) -> str:
    """The whole result, with where it is defined."""
    entry = clean_entry(entry)
    places = (("mechanism", entry.mechanism_path, entry.mechanism_line), ("audit", entry.path, entry.line))
    where = "".join(f"\nThe {what} is defined at {path}:{number}." for what, path, number in places if path)
    return render(entry.result) + where


def accuracy_line(entry: AccuracyEntry) -> str:
    """One line for an accuracy check."""
    entry = clean_accuracy(entry)
    verdict = entry.result.verdict
    return _with_expectation(accuracy_headline(entry.result).replace(str(verdict), f"{verdict!s:<18}", 1), entry)


def accuracy_story(entry: AccuracyEntry) -> str:
    """The whole result of an accuracy check, with where it is defined."""
    entry = clean_accuracy(entry)
    where = f"\nThe audit is defined at {entry.path}:{entry.line}." if entry.path else ""
    return str(entry.result) + where


def _with_expectation(text: str, entry: Entry | AccuracyEntry) -> str:
    if entry.expect is None:
        return text
    return f"{text} [as expected]" if entry.met else f"{text} [UNEXPECTED: expected {entry.expect}]"


def totals(document: Document) -> str:
    """Return the counts of a run, in a line."""
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


def could_not_run(document: Document) -> str:
    """Return how many audits, or files of audits, could not be run; empty if all could."""
    if not document.failures:
        return ""
    return f"{len(document.failures)} of {len(document.failures) + len(document.all_entries)} audits could not be run."


def show_summary(console: Console, document: Document) -> None:
    """Write all lines and the totals, without colours."""
    for failure in document.failures:
        show_failure(console, failure)
    for entry in document.all_entries:
        show_line(console, entry, Style())
    for regression in document.regressions:
        console.line(f"REGRESSION  {regression}")
    console.block(f"\n{totals(document)}")
    for text in (could_not_run(document), "Interrupted: these are the results so far." * document.interrupted):
        if text:
            console.line(text)
