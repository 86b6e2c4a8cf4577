"""The report for a data protection officer: one HTML file with the questions, the answers and the picture."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from dpaudit.anonymity.risk.picture import halves
from dpaudit.anonymity.risk.wording import SECTIONS, one_in, percent, requirements

_STYLE = """
body { font: 16px/1.5 sans-serif; color: #222; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } .question { color: #555; margin: 0; }
table { border-collapse: collapse; } td, th { border: 1px solid #c8ccd4; padding: .25rem .6rem; text-align: left; }
.high { color: #b0413e; font-weight: bold; } .low { color: #4a7a8c; font-weight: bold; } .small { color: #555; font-size: .9rem; }
.picture { display: flex; flex-wrap: wrap; } .picture svg { flex: 446 1 19rem; } .picture svg + svg { flex: 314 1 13.4rem; }
"""
_LIMITS = (
    "These numbers describe this table and what was given beside it. An attacker who knows more columns than the named "
    "quasi-identifiers, or another table, may find more. None of them bounds what is learned about a person from their presence "
    "in the data; differential privacy does, and it is a property of the way in which a table is made, not of the table."
)
_WORDS = (
    "A class is a set of records that agree on everything the attacker knows. The threshold of 1 in 11 (often written 0.09) is "
    "that of the European Medicines Agency (Policy 0070) and of Health Canada for clinical data made public."
)


def html_report(document: dict[str, Any], shown: Callable[[str], str]) -> str:
    """Return the report of an assessment.

    Parameters
    ----------
    document : dict
        The result of :func:`~dpaudit.anonymity.assess`.
    shown : callable
        Makes characters visible that could act on the reader's program; quoting for HTML comes on top.
    """

    def escape(text: Any) -> str:
        return html.escape(shown(str(text)))

    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Risk of re-identification: {escape(document['table'])}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Risk of re-identification: {escape(document['table'])}</h1>",
        f"<p>{_summary(document)}</p>",
        f"<p>{document['records']} records in {document['classes']} classes.</p>",
        f"<p>An attacker is taken to know: {escape(', '.join(document['quasi_identifiers']))}.</p>",
        f"<p>To be protected: {escape(', '.join(document['sensitive']) or 'not named')}.</p>",
        f'<div class="picture">{"".join(halves(document))}</div>',
    ]
    if document["requirements"]:
        lines = "".join(f"<li>{escape(line)}</li>" for line in requirements(document))
        parts.append(f"<h2>Requirements</h2><ul>{lines}</ul>")
    for title, question, sentences in SECTIONS:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences(document))
        parts.append(f'<h2>{title}</h2><p class="question">{escape(question)}</p><ul>{items}</ul>')
    rows = "".join(
        f"<tr><td>{escape(', '.join(entry['columns']))}</td><td>{entry['unique']}</td><td>{percent(entry['share'])}</td></tr>"
        for entry in document["uniqueness"]["combinations"]
    )
    parts += [
        "<h2>Columns that identify people together</h2>",
        f"<table><tr><th>columns</th><th>unique records</th><th>share</th></tr>{rows}</table>",
        f'<h2>Limits</h2><p class="small">{_LIMITS}</p>',
        f'<p class="small">{_WORDS}</p>',
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _summary(document: dict[str, Any]) -> str:
    worst = max(document["attackers"], key=lambda entry: entry["maximum"])
    high = worst["maximum"] > document["threshold"] + 1e-12
    verdict = "above" if high else "not above"
    text = (
        f'The largest risk that a record is found is <span class="{"high" if high else "low"}">{worst["maximum"]:.3g} '
        f"({one_in(worst['maximum'])})</span>, {verdict} the threshold {document['threshold']:.3g}."
    )
    if document["requirements"]:
        met = document["met"]
        text += f' <span class="{"low" if met else "high"}">{"Everything" if met else "Not everything"} required is met.</span>'
    return text
