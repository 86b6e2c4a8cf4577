"""The frame in which notebooks show a result: a verdict, a headline, a table of facts, a picture, and the full text folded away.

Plain HTML without scripts. It takes its text colour from the notebook, so it can be read in light and in dark themes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from dpaudit._util.terminal.escape import visible

# Each pair has a contrast of at least 4.5 to 1, whatever the colour of the notebook behind it.
_BADGES = {
    "VIOLATION": "color:#fff;background:#b2251d",
    "NO_VIOLATION_FOUND": "color:#fff;background:#1a6b3a",
    "INCONCLUSIVE": "color:#1b2431;background:#f0c365",
}
# Pictures take their colours from these (see ``dpaudit.result.svg``); blue and orange are visible on white and on black.
_FRAME = (
    "border:1px solid rgba(128,128,128,.5);border-radius:6px;padding:.6em .9em;max-width:62em;"
    "--ink:currentColor;--muted:currentColor;--grid:rgba(128,128,128,.35);--data:#2f86d1;--neighbour:#d9772b;--alarm:#d9483f"
)
_CELL = "text-align:left;vertical-align:top;padding:.1em .8em .1em 0;background:none"


def card(verdict: object, title: str, facts: Iterable[tuple[str, str]], *, text: str, svg: str = "") -> str:
    """Return the HTML of one result. Everything but ``svg`` is escaped.

    >>> "&lt;b&gt;" in card("VIOLATION", "claimed <b>", [("data", "[]")], text="all of it")
    True
    """
    badge = (
        f'<span style="{_BADGES.get(str(verdict), "")};font-weight:bold;padding:.1em .5em;border-radius:4px">'
        f"{_safe(str(verdict))}</span>"
    )
    rows = "".join(
        f'<tr style="background:none"><th style="{_CELL};font-weight:normal;opacity:.75">{_safe(name)}</th>'
        f'<td style="{_CELL}"><code style="background:none;white-space:pre-wrap;overflow-wrap:anywhere">{_safe(value)}'
        "</code></td></tr>"
        for name, value in facts
    )
    picture = f'<div style="max-width:30em">{svg}</div>' if svg else ""
    return (
        f'<div style="{_FRAME}"><p style="margin:.2em 0 .6em">{badge} {_safe(title)}</p>'
        f'<table style="border:none;margin:0">{rows}</table>{picture}'
        f'<details><summary>All of it as text</summary><pre style="white-space:pre-wrap">{_safe(text)}</pre></details></div>'
    )


def _safe(text: str) -> str:
    return html.escape(visible(text))
