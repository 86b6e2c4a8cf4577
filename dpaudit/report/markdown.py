"""The document as Markdown (GitHub's dialect), for pull requests and job summaries.

Names, data and events are code, in spans and blocks whose fences are longer than any run of backticks inside, so that nothing
in them is markup.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from dpaudit._util.terminal.escape import one_line
from dpaudit.claims import Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.report.document import Document, Entry, Failure
from dpaudit.report.escape import clean
from dpaudit.report.terminal import could_not_run, totals
from dpaudit.report.words import by_urgency, needs_attention, outcome, verdict_in_words
from dpaudit.result.model import Result
from dpaudit.result.text import STOPPED, detectable_in_words, shown

LARGEST_SUMMARY = 1_000_000  # bytes; GitHub refuses a step summary above 1 MiB
LARGEST_DATA = 4_000  # characters of one data set
LARGEST_REASON = 500  # characters of the reason why an audit could not be run


def render(document: Document, *, stories: bool = True) -> str:
    """Return a table of all audits, then the full result of each that needs attention."""
    document = clean(document)
    lines = ["# dpaudit", "", totals(document), ""]
    if document.interrupted:
        lines += ["**Interrupted: these are the results so far.**", ""]
    if document.failures:
        lines += [f"**{could_not_run(document)}**", "", "| could not be run | reason |", "|---|---|"]
        lines += [_cells([code(failure.name), code(_short_reason(failure))]) for failure in document.failures]
        lines.append("")
    if document.regressions:
        lines += ["**Worse than the baseline:**", "", *(f"- {prose(text)}" for text in document.regressions), ""]
    entries = by_urgency(document)
    if entries:
        lines += ["| verdict | audit | claim | shown | samples | expectation |", "|---|---|---|---|---:|---|"]
        lines += [_row(entry) for entry in entries]
    for entry in entries:
        if stories and (needs_attention(entry) or entry.result.verdict is Verdict.VIOLATION):
            lines += ["", *_story(entry)]
    if document.accuracy:
        lines += ["", "## Accuracy", "", "| verdict | audit | claim | samples |", "|---|---|---|---:|"]
    for check in document.accuracy:
        result = check.result
        lines.append(f"| {result.verdict} | {prose(result.name)} | {prose(repr(result.claim))} | {result.samples:,} |")
    for check in document.accuracy:
        if stories and (not check.met or check.result.verdict is not Verdict.NO_VIOLATION_FOUND):
            lines += ["", *block(str(check.result), "text")]
    return "\n".join(lines) + "\n"


def github_summary(document: Document, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Append the report to the job summary where ``GITHUB_STEP_SUMMARY`` names one; return its path, or None.

    GitHub drops a summary that is too large as a whole, so a long report leaves out the full results, and a longer one
    is cut.
    """
    name = environ.get("GITHUB_STEP_SUMMARY", "")
    if not name:
        return None
    path = Path(name)
    try:
        space = LARGEST_SUMMARY - (path.stat().st_size if path.exists() else 0)
        text = render(document)
        if len(text.encode()) > space:
            text = render(document, stories=False)
        if len(text.encode()) > space:
            text = (
                f"# dpaudit\n\n{totals(document)} {could_not_run(document)} The table is too long for a job summary.\n"
            )
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InvalidArgument(f"GITHUB_STEP_SUMMARY={name!r} cannot be written: {error.strerror or error}.") from None
    return path


def _row(entry: Entry) -> str:
    result = entry.result
    verdict = f"**{result.verdict}**" if needs_attention(entry) else str(result.verdict)
    cells = [
        verdict,
        code(result.name),
        code(repr(result.claim)),
        _bound(result),
        f"{result.samples:,}",
        outcome(entry),
    ]
    return _cells(cells)


def _cells(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _short_reason(failure: Failure) -> str:
    """The reason on one line of the table; the whole of it is in the other reports."""
    text = one_line(failure.reason)
    return text if len(text) <= LARGEST_REASON else f"{text[:LARGEST_REASON]} ..."


def _bound(result: Result) -> str:
    return shown(result).replace(">=", "&ge;").replace(">", "&gt;")


def _story(entry: Entry) -> list[str]:
    result = entry.result
    lines = [
        f"## {result.verdict}: {code(result.name)}",
        "",
        f"Claimed {code(repr(result.claim))}; shown {_bound(result)}. {prose(verdict_in_words(result))}",
    ]
    places = [("The mechanism", entry.mechanism_path, entry.mechanism_line), ("The audit", entry.path, entry.line)]
    for what, path, number in places:
        if path:
            lines += ["", f"{what} is defined at {code(f'{path}:{number}')}."]
    witness = result.witness
    if witness is not None:
        ratio = "infinite" if math.isinf(witness.observed_log_ratio) else f"{witness.observed_log_ratio:.3f}"
        unconfirmed = "" if witness.confirmed else ", not confirmed on fresh outputs"
        pair = "The smallest pair found" if witness.shrunk else "The pair"
        lines += ["", f"{pair}{unconfirmed}:", "", *block(_pair(witness.data, witness.neighbour), "python")]
        lines += ["", f"Event: {code(witness.event)}", ""]
        lines += ["| | event | outputs | share | 99 % interval |", "|---|---:|---:|---:|---|"]
        for side, counted in (("data", witness.on_data), ("neighbour", witness.on_neighbour)):
            interval = f"{counted.low:.4g} to {counted.high:.4g}"
            lines.append(f"| {side} | {counted.count:,} | {counted.trials:,} | {counted.estimate:.4g} | {interval} |")
        lines += ["", f"Log-ratio of the shares: {ratio}."]
        if witness.script_text:
            lines += ["", "<details><summary>A program that repeats this measurement</summary>", ""]
            lines += [*block(witness.script_text.rstrip("\n"), "python"), "", "</details>"]
    elif result.verdict is not Verdict.VIOLATION:
        lines += ["", prose(detectable_in_words(result))]
    for message in result.messages:
        lines += ["", f"Note: {prose(message)}"]
    return [*lines, "", f"Seed {result.seed}; {STOPPED[result.stopped_by]}; {result.pairs} pair(s) tried."]


def _pair(data: str, neighbour: str) -> str:
    return "\n".join(
        f"{name} = {text if len(text) <= LARGEST_DATA else text[:LARGEST_DATA] + ' ...'}"
        for name, text in (("data", data), ("neighbour", neighbour))
    )


def code(text: str) -> str:
    """The text as a code span.

    >>> print(code("a `quoted` name"))
    ``a `quoted` name``
    """
    fence = "`" * (_longest_run(text) + 1)
    # One space on each side is dropped by the reader; it is needed next to a backtick, and where spaces are the text's own.
    space = " " if text[:1] in ("`", " ", "") or text[-1:] in ("`", " ") else ""
    return f"{fence}{space}{text}{space}{fence}"


def block(text: str, language: str = "") -> list[str]:
    """The text as lines of a fenced block."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return [f"{fence}{language}", *text.split("\n"), fence]


def prose(text: str) -> str:
    r"""Return text from user code with all markup escaped.

    >>> print(prose("raised <b>: see [x](y)"))
    raised \<b\>: see \[x\](y)
    """
    return re.sub(r"([\\`*_{}\[\]<>#|~&!$])", r"\\\1", text)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
