"""Make all text of a document safe to show: names, data and errors come from user code.

:func:`clean` makes hidden characters visible once, before any report is written; quoting for the format (HTML, XML, Markdown)
comes on top.
"""

from __future__ import annotations

from dataclasses import replace

from dpaudit._util.terminal.escape import one_line, visible
from dpaudit.report.document import AccuracyEntry, Document, Entry, Failure
from dpaudit.report.origin import Origin
from dpaudit.result.model import Result, Witness


def clean(document: Document) -> Document:
    """The document with all its text safe to show."""
    return replace(
        document,
        entries=tuple(clean_entry(entry) for entry in document.entries),
        failures=tuple(clean_failure(failure) for failure in document.failures),
        regressions=tuple(one_line(text) for text in document.regressions),
        accuracy=tuple(clean_accuracy(entry) for entry in document.accuracy),
        origin=Origin(date=one_line(document.origin.date), commit=one_line(document.origin.commit)),
    )


def clean_accuracy(entry: AccuracyEntry) -> AccuracyEntry:
    """The accuracy check with all its text safe to show."""
    result = entry.result
    shown = replace(
        result,
        name=one_line(result.name),
        data=one_line(result.data),
        truth=one_line(result.truth),
        messages=tuple(one_line(message) for message in result.messages),
    )
    return replace(entry, result=shown, path=one_line(entry.path))


def clean_failure(failure: Failure) -> Failure:
    """The failure with all its text safe to show."""
    return replace(failure, name=one_line(failure.name), reason=visible(failure.reason), path=one_line(failure.path))


def clean_entry(entry: Entry) -> Entry:
    """The entry with all its text safe to show."""
    return replace(
        entry,
        result=_clean_result(entry.result),
        path=one_line(entry.path),
        mechanism_path=one_line(entry.mechanism_path),
    )


def _clean_result(result: Result) -> Result:
    return replace(
        result,
        name=one_line(result.name),
        messages=tuple(one_line(message) for message in result.messages),
        witness=None if result.witness is None else _clean_witness(result.witness),
        versions={one_line(name): one_line(version) for name, version in result.versions.items()},
    )


def _clean_witness(witness: Witness) -> Witness:
    return replace(
        witness,
        data=visible(witness.data),
        neighbour=visible(witness.neighbour),
        event=one_line(witness.event),
        event_code=visible(witness.event_code),
        mechanism=one_line(witness.mechanism),
        script_text=visible(witness.script_text),
    )
