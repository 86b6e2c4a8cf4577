"""What a mechanism, its data and its errors are called is somebody else's text: reports show it, and never obey it.

A name may hold terminal escapes, line breaks that forge a log line, characters that reorder what is read, or ones that XML
and UTF-8 cannot hold. :func:`clean` makes all of them visible once, before any report is written; quoting for the format
(HTML, XML, Markdown) comes on top.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from dpaudit.report.document import AccuracyEntry, Document, Entry
from dpaudit.result.model import Result, Witness

# Control, surrogate, unassigned (with the code points that XML forbids) and line or paragraph separators.
_HIDDEN = ("Cc", "Cs", "Cn", "Zl", "Zp")


def visible(text: str) -> str:
    r"""The text with every character that is not there to be seen as its Python escape; line breaks and tabs stay.

    >>> visible("red \x1b[31m and reversed \u202e")
    'red \\x1b[31m and reversed \\u202e'
    """
    return "".join(char if char in "\n\t" or not _hidden(char) else _escaped(char) for char in text)


def one_line(text: str) -> str:
    r"""The same on one line.

    >>> one_line("count\n::error::forged")
    'count\\n::error::forged'
    """
    return "".join(_escaped(char) if _hidden(char) else char for char in text)


def _hidden(char: str) -> bool:
    if char.isascii():
        return not " " <= char <= "~"
    category = unicodedata.category(char)
    # Format characters reorder or hide text, except the joiners that some scripts and emoji need.
    return category in _HIDDEN or (category == "Cf" and char not in "\u200c\u200d")


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def clean(document: Document) -> Document:
    """The document with all its text safe to show."""
    return replace(
        document,
        entries=tuple(clean_entry(entry) for entry in document.entries),
        accuracy=tuple(clean_accuracy(entry) for entry in document.accuracy),
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
