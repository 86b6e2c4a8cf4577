"""SVG picture of the risk: how many records are in classes of which size, and what each attacker finds."""

from __future__ import annotations

import html
from typing import Any

_BINS = ((1, 1), (2, 2), (3, 4), (5, 10), (11, 20), (21, 100), (101, None))
_HIGH, _LOW, _GREY, _INK = "#b0413e", "#4a7a8c", "#c8ccd4", "#222222"
_WIDTH, _MIDDLE, _HEIGHT, _BASE = 760, 446, 300, 230


def picture(document: dict[str, Any]) -> str:
    """Return the picture of an assessment as SVG; the same document gives the same bytes.

    Left: the share of the records in classes of each size, red where the risk of a record exceeds the threshold. Right: for
    each attacker the average risk (bar) and that of the worst record (line), with the threshold.
    """
    return _drawn(0, _WIDTH, [*_sizes(document), *_attackers(document)])


def halves(document: dict[str, Any]) -> tuple[str, str]:
    """Return the left and the right half of the picture, which a page can place one below the other."""
    return _drawn(0, _MIDDLE, _sizes(document)), _drawn(_MIDDLE, _WIDTH, _attackers(document))


def _drawn(left: int, right: int, parts: list[str]) -> str:
    size = f'viewBox="{left} 0 {right - left} {_HEIGHT}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="12">'
    ground = f'<rect x="{left}" width="{right - left}" height="{_HEIGHT}" fill="white"/>'
    return "\n".join([opening, ground, *parts, "</svg>"]) + "\n"


def _sizes(document: dict[str, Any]) -> list[str]:
    records, threshold = document["records"], document["threshold"]
    parts = [_label(20, 24, "Share of the records by the size of their class", size=14)]
    for place, (low, high) in enumerate(_BINS):
        inside = [
            (size, count) for size, count in document["class_sizes"] if low <= size and (high is None or size <= high)
        ]
        share = sum(size * count for size, count in inside) / records
        above = sum(size * count for size, count in inside if 1 / size > threshold + 1e-12) / records
        x, unit = 24 + 58 * place, 170
        parts += [
            _bar(x, _BASE - unit * share, 44, unit * (share - above), _LOW),
            _bar(x, _BASE - unit * above, 44, unit * above, _HIGH),
            _label(x + 22, _BASE - unit * share - 5, _percent(share), middle=True),
            _label(
                x + 22,
                _BASE + 16,
                f"{low}" if low == high else f"{low}+" if high is None else f"{low}-{high}",
                middle=True,
            ),
        ]
    parts.append(f'<line x1="20" y1="{_BASE}" x2="430" y2="{_BASE}" stroke="{_INK}"/>')
    parts.append(_label(20, _BASE + 36, "records in the class"))
    parts += [_bar(20, _BASE + 48, 12, 12, _HIGH), _label(36, _BASE + 58, f"risk of a record above {threshold:.3g}")]
    parts += [_bar(230, _BASE + 48, 12, 12, _LOW), _label(246, _BASE + 58, "at most that")]
    return parts


def _attackers(document: dict[str, Any]) -> list[str]:
    left, unit = 480, 170
    limit = _BASE - unit * document["threshold"]
    parts = [_label(left, 24, "Risk by attacker", size=14)]
    for tick in (0.0, 0.5, 1.0):
        y = _BASE - unit * tick
        parts.append(f'<line x1="{left}" y1="{y:g}" x2="{_WIDTH - 20}" y2="{y:g}" stroke="{_GREY}"/>')
        parts.append(_label(left - 6, y + 4, f"{tick:g}", end=True))
    for place, entry in enumerate(document["attackers"]):
        x = left + 14 + 84 * place
        worst = _BASE - unit * entry["maximum"]
        colour = _HIGH if entry["maximum"] > document["threshold"] + 1e-12 else _LOW
        parts += [
            _bar(x, _BASE - unit * entry["average"], 60, unit * entry["average"], _GREY),
            f'<line x1="{x}" y1="{worst:.1f}" x2="{x + 60}" y2="{worst:.1f}" stroke="{colour}" stroke-width="4"/>',
            _label(x + 30, worst - 6, f"{entry['maximum']:.2g}", middle=True),
            _label(x + 30, _BASE + 16, entry["attacker"], middle=True),
        ]
    parts.append(
        f'<line x1="{left}" y1="{limit:.1f}" x2="{_WIDTH - 20}" y2="{limit:.1f}" stroke="{_INK}" stroke-dasharray="4 3"/>'
    )
    parts.append(_label(left, _BASE + 36, "bar: average, thick line: worst record,"))
    parts.append(_label(left, _BASE + 52, f"dashed: threshold {document['threshold']:.3g}"))
    return parts


def _bar(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}" fill="{fill}"/>'


def _label(x: float, y: float, text: str, *, size: int = 12, middle: bool = False, end: bool = False) -> str:
    anchor = "middle" if middle else "end" if end else "start"
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{_INK}">{html.escape(text)}</text>'


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.01 else f"{100 * share:.1g} %"
