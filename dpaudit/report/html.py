"""The document as one self-contained HTML file with pictures, for light and dark screens; it needs no network."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from dpaudit.claims import Verdict
from dpaudit.errors import MissingDependency
from dpaudit.report.document import Document, Entry
from dpaudit.report.escape import clean
from dpaudit.report.terminal import could_not_run, totals
from dpaudit.report.trend import trends
from dpaudit.report.words import (
    RELATIONS,
    by_urgency,
    claim_in_words,
    needs_attention,
    outcome,
    verdict_in_words,
)
from dpaudit.result.model import Result, StoppedBy
from dpaudit.result.plots import Picture, pictures
from dpaudit.result.svg import check_matplotlib
from dpaudit.result.text import STOPPED, detectable_note, detectable_rows, shown

MOST_WITH_PICTURES = 100  # audits; drawing takes a fraction of a second each, and the page has to stay readable
SHOWN_OPEN = 3  # a page with at most this many audits shows all of them unfolded


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One audit as the page shows it."""

    entry: Entry
    number: int
    open: bool
    bound: str
    outcome: str
    caught: str
    exact: bool
    pictures: tuple[Picture, ...]


def check_available() -> None:
    """Raise :class:`MissingDependency` if the libraries of the extra ``report`` are not installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingDependency(f"The HTML report needs Jinja2: pip install 'dpaudit[report]' ({error}).") from None
    check_matplotlib()


def render(document: Document, earlier: Sequence[Document] = ()) -> str:
    """The page. All text in it is escaped; its only script is allowed by its hash, and nothing else may run or load.

    With documents of ``earlier`` runs, oldest first, it also shows how each audit went over the runs.
    """
    check_available()
    import jinja2
    import markupsafe

    document = clean(document)
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["svg"] = markupsafe.Markup
    folder = resources.files("dpaudit.report")
    script = folder.joinpath("script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(f"\n{script}".encode()).digest()).decode()
    values: dict[str, Any] = {
        "document": document,
        "sections": _sections(document),
        "totals": totals(document),
        "about_run": _about_run(document),
        "trends": trends([*map(clean, earlier), document]) if earlier else (),
        "runs": len(earlier) + 1,
        "could_not_run": could_not_run(document),
        "script": markupsafe.Markup(script),
        "script_hash": f"sha256-{digest}",
        "claim_in_words": claim_in_words,
        "verdict_in_words": verdict_in_words,
        "detectable_rows": detectable_rows,
        "detectable_note": detectable_note,
        "relations": RELATIONS,
        "stopped": STOPPED,
        "most_with_pictures": MOST_WITH_PICTURES,
        "infinity": math.inf,
    }
    return environment.from_string(folder.joinpath("template.html").read_text(encoding="utf-8")).render(values)


def _about_run(document: Document) -> str:
    """Return date, commit and versions of a run, or nothing where none of them is known."""
    versions = {f"{name} {v}": None for entry in document.entries for name, v in sorted(entry.result.versions.items())}
    parts = [document.origin.date.replace("T", " ").replace("+00:00", " UTC")]
    parts.append(document.origin.commit and f"commit {document.origin.commit}")
    return "; ".join(part for part in [*parts, ", ".join(versions)] if part)


def _caught(result: Result) -> str:
    """Return the epsilon that would have been caught; a violation was caught."""
    if result.verdict is Verdict.VIOLATION:
        return "-"
    return f"{result.detectable_epsilon:.3g}" if math.isfinite(result.detectable_epsilon) else "nothing"


def _sections(document: Document) -> list[Section]:
    return [
        Section(
            entry=entry,
            number=number,
            open=needs_attention(entry) or len(document.entries) <= SHOWN_OPEN,
            bound=shown(entry.result),
            outcome=outcome(entry),
            caught=_caught(entry.result),
            exact=entry.result.stopped_by is StoppedBy.EXACT,
            pictures=pictures(entry.result, prefix=f"audit-{number}-") if number <= MOST_WITH_PICTURES else (),
        )
        for number, entry in enumerate(by_urgency(document), start=1)
    ]
