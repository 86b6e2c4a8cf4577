"""Pictures of an audit over several runs: one for each audit that occurs in more than one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dpaudit.claims import Verdict, claimed_epsilon
from dpaudit.report.document import Document, Entry
from dpaudit.result.plots import LARGEST_SHOWN, Picture
from dpaudit.result.svg import COLOURS, draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TRENDS = 50  # audits; a page with more pictures is slow


def trends(runs: Sequence[Document]) -> tuple[Picture, ...]:
    """Return a picture for every audit of the last run that an earlier one has too."""
    by_name = [{entry.result.name: entry for entry in run.entries} for run in runs]
    names = [entry.result.name for entry in runs[-1].entries]
    found = [(name, [run.get(name) for run in by_name]) for name in names]
    several = [(name, entries) for name, entries in found if sum(entry is not None for entry in entries) > 1]
    return tuple(_picture(number, name, entries, runs) for number, (name, entries) in enumerate(several[:MOST_TRENDS]))


def _picture(number: int, name: str, entries: list[Entry | None], runs: Sequence[Document]) -> Picture:
    there = [(place, entry) for place, entry in enumerate(entries, start=1) if entry is not None]
    verdicts = [str(entry.result.verdict) for _, entry in there]
    first, last = (run.origin.date[:10] for run in (runs[0], runs[-1]))
    caption = f"{len(there)} runs" + (f", {first} to {last}" if first and last else "")
    if len(set(verdicts)) > 1:
        changed = next(place for place in range(len(verdicts) - 1, 0, -1) if verdicts[place] != verdicts[place - 1])
        caption += f"; {verdicts[changed - 1]} became {verdicts[changed]} in run {there[changed][0]}"
    svg = draw_svg(
        partial(_draw, there=there, runs=len(runs)), f"trend-{number}-", f"Epsilon shown of {name} over the runs"
    )
    return Picture(name, f"{caption}.", svg)


def _draw(axes: Axes, there: list[tuple[int, Entry]], runs: int) -> None:
    shown = [(place, min(entry.result.epsilon_lower, LARGEST_SHOWN)) for place, entry in there]
    axes.plot(*zip(*shown, strict=True), color=COLOURS["data"], marker="o", markerfacecolor="none", label="shown")
    bad = [at for at, (_, entry) in zip(shown, there, strict=True) if entry.result.verdict is Verdict.VIOLATION]
    if bad:
        axes.plot(*zip(*bad, strict=True), color=COLOURS["alarm"], marker="o", linestyle="none", label="violation")
    claimed = [
        (place, epsilon) for place, entry in there if (epsilon := claimed_epsilon(entry.result.claim)) is not None
    ]
    if claimed:
        axes.plot(*zip(*claimed, strict=True), color=COLOURS["ink"], linestyle="--", label="claimed")
    axes.set(xlabel="run", ylabel="epsilon", xlim=(0.5, runs + 0.5))
    axes.set_ylim(0.0, 1.1 * max(epsilon for _, epsilon in [*shown, *claimed]) or 1.0)
    axes.set_xticks(range(1, runs + 1, max(1, math.ceil(runs / 8))))
    axes.legend(loc="best")
