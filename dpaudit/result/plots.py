"""Pictures of a result: as SVG inside an HTML page, with the colours of the page, or on axes of matplotlib.

Three of them: the evidence against the number of samples with the threshold; the outputs under both data sets with the
event shaded; and the claimed privacy profile delta(epsilon) with the certified lower bounds over it.

The second needs ``Result.outputs``, a small summary that the engine makes of outputs on one pair (of the witness where there is
one, otherwise of the pair that leads). All values are plain JSON; without it, or where it is not of this form, the picture
is left out.

- outputs that are numbers (or a number that is computed from each output, such as one coordinate)::

    {"edges": [e0, ..., ek],           # finite, ascending, evenly spaced where possible; e.g. 40 cells over the 0.1 % to
                                       # 99.9 % quantiles of both sides together
     "data": [c1, ..., ck],            # outputs on the data in [e0, e1), ..., [e(k-1), ek]
     "neighbour": [c1, ..., ck],
     "event": [[low, high], ...]}      # intervals that make up the event; ends may be infinite; low == high is one exact value

- all other outputs::

    {"categories": ["None", ...],      # readable, at most a few dozen
     "data": [c1, ..., ck],
     "neighbour": [c1, ..., ck],
     "event": [0, 3]}                  # which of the categories are in the event

- with both, optionally: ``"trials": [on_data, on_neighbour]``, how many outputs were summarised (default: the sums of the
  counts; larger where some outputs are outside the edges, or of other categories), ``"label": "output[2]"``, what the
  axis shows (default ``"output"``), and ``"pair": [data, neighbour]``, the two data sets as text where there is no witness.

The order of the sides is that of the witness: ``data`` is the side on which the event is likelier.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.terminal.escape import one_line
from dpaudit._util.validation import check_choice
from dpaudit.claims import MetricDP, ProfileDP, PureDP, TradeOffDP, Verdict, claimed_epsilon
from dpaudit.errors import InvalidArgument, MissingDependency
from dpaudit.result.model import Frequency, Result
from dpaudit.result.svg import COLOURS, LABELLED, WIDE, Box, check_matplotlib, draw_svg
from dpaudit.result.text import parameter_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats: TypeAlias = NDArray[np.float64]

MOST_DRAWN = 400  # points of a trajectory that are drawn
MOST_BARS = 12
SMALLEST_SHARE = 0.01  # a rarer category joins the others, unless it is one of the first few of the event
FEWEST_BARS = 3
PROFILE_POINTS = 121
LONGEST_LABEL = 26
SMALLEST_DELTA = 1e-12
LARGEST_SHOWN = 1e18  # larger numbers make the labels of an axis imprecise
LARGEST_EDGE = 1e150
LARGEST_DRAWN = 500.0  # exp() of it is still a number


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG element with what it shows."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture: its description, and the function that draws it on axes."""

    title: str
    caption: str
    draw: Callable[[Axes], None]
    box: Box = WIDE

    def picture(self, prefix: str) -> Picture:
        """Draw it as SVG."""
        return Picture(self.title, self.caption, draw_svg(self.draw, prefix, self.title, self.box))


def pictures(result: Result, *, prefix: str = "") -> tuple[Picture, ...]:
    """Return all pictures that can be drawn from the result. ``prefix`` keeps ids apart where many SVGs share a page.

    A result may come from a file whose summary of outputs is damaged: then that picture is left out.
    """
    made = (picture(result, kind, prefix=f"{prefix}{kind}-") for kind in DRAWINGS)
    return tuple(found for found in made if found is not None)


def picture(result: Result, kind: str, *, prefix: str = "") -> Picture | None:
    """Return one picture, or None if the result lacks the numbers for it."""
    try:
        drawing = DRAWINGS[kind](result)
        return None if drawing is None else drawing.picture(prefix)
    except MissingDependency:
        raise
    except Exception:  # numpy and matplotlib may raise anything for numbers that no audit produces
        return None


def plot(result: Result, kind: str, axes: Axes | None) -> Axes:
    """Draw one picture on the axes, or on those of a new figure, and return them; see :meth:`dpaudit.Result.plot`."""
    check_choice(DRAWINGS, kind=kind)
    check_matplotlib()
    drawing = DRAWINGS[kind](result)
    if drawing is None:
        raise InvalidArgument(
            f"kind={kind!r}: this result lacks the numbers for that picture. An audit that drew no outputs has none."
        )
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(6.0, 4.0), layout="constrained")[1]
    drawing.draw(axes)
    axes.set_title(drawing.title)
    return axes


def evidence(result: Result) -> Drawing | None:
    """Evidence against the claim over the samples, with the threshold at which the claim is refuted."""
    drawable = [(n, w) for n, w in result.trajectory if 0 <= n <= LARGEST_SHOWN and abs(w) <= LARGEST_SHOWN]
    if not drawable or not abs(result.log_threshold) <= LARGEST_SHOWN:
        return None
    seen = np.array(drawable, dtype=np.float64)
    samples, tens = _thinned(seen[:, 0], seen[:, 1] / math.log(10.0))
    threshold = result.log_threshold / math.log(10.0)

    def draw(axes: Axes) -> None:
        axes.plot([0.0, *samples], [0.0, *tens], color=COLOURS["data"], label="evidence")
        axes.axhline(threshold, color=COLOURS["alarm"], linestyle="--", linewidth=1.2, label="threshold")
        axes.set(xlabel="samples", ylabel="evidence, powers of ten")
        axes.set_ylim(min(-1.0, float(tens.min()) - 0.5), max(threshold, float(tens.max())) * 1.12)
        axes.set_xlim(0.0, max(float(samples[-1]), 1.0))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.locator_params(axis="x", nbins=5)
        axes.legend(loc="best")

    crossed = float(tens.max()) >= threshold
    caption = (
        "The bettor against the claim starts with 1 and, if the claim holds, ever reaches the threshold of "
        f"10^{threshold:.1f} with probability at most {result.alpha:g}"
    )
    caption += "; it did." if crossed and result.verdict is Verdict.VIOLATION else "."
    caption += (
        " The line is flat while events are learned: nothing is bet on samples that are used to choose what to bet on."
    )
    return Drawing("Evidence against the claim", caption, draw)


def runs(result: Result) -> Drawing | None:
    """Evidence and lower bound at the end of each run whose evidence was kept; None if it was not."""
    ends = [(int(run["run"]), float(run["log_wealth"]), float(run["epsilon_lower"])) for run in result.accumulated]
    if not ends:
        return None
    numbers, log_wealth, epsilon = np.array(ends, dtype=np.float64).T
    threshold = result.log_threshold / math.log(10.0)

    def draw(axes: Axes) -> None:
        tens = log_wealth / math.log(10.0)
        axes.plot(numbers, tens, color=COLOURS["data"], marker="o", markersize=3.0, label="evidence")
        axes.axhline(threshold, color=COLOURS["alarm"], linestyle="--", linewidth=1.2, label="threshold")
        axes.set(xlabel="run", ylabel="evidence, powers of ten")
        axes.set_ylim(min(-1.0, float(tens.min()) - 0.5), max(threshold, float(tens.max())) * 1.12)
        axes.set_xticks(range(1, len(ends) + 1, max(1, math.ceil(len(ends) / 8))))
        bound = axes.twinx()
        bound.plot(numbers, epsilon, color=COLOURS["neighbour"], marker="s", markersize=3.0, label="epsilon shown")
        bound.set(ylabel="epsilon shown", ylim=(0.0, max(float(epsilon.max()), result.claim.parameter) * 1.12))
        axes.legend(handles=[*axes.get_lines(), *bound.get_lines()], loc="best")

    caption = f"{len(ends)} runs share one alpha of {result.alpha:g}: each goes on with the evidence that the one before it left."
    return Drawing("Evidence over the runs", caption, draw)


def outputs(result: Result) -> Drawing | None:
    """Outputs under both data sets with the event shaded; None where the result has no summary of outputs."""
    found = Summary.read(result.outputs)
    if found is None:
        return None
    draw = partial(_histogram if found.edges else _categories, summary=found)
    box = WIDE if found.edges else LABELLED
    caption = "Share of the outputs on the data and on the neighbour"
    caption += ", with the event shaded." if found.intervals or found.members else "."
    missing = max(1.0 - sum(counts) / trials for counts, trials in zip(found.counts, found.trials, strict=True))
    if found.edges and missing > 1e-9:
        caption += f" Up to {100.0 * missing:.2g} % of a side lie outside the picture."
    if result.witness is None and found.pair:
        caption += f" Data: {found.pair[0]}; neighbour: {found.pair[1]}."
    return Drawing("Outputs under both data sets", caption, draw, box)


@dataclass(frozen=True, slots=True)
class Summary:
    """``Result.outputs`` read: counts on both sides over cells of the line, or over categories."""

    counts: tuple[tuple[float, ...], tuple[float, ...]]
    trials: tuple[float, float]
    edges: tuple[float, ...]  # empty: categories
    categories: tuple[str, ...]
    intervals: tuple[tuple[float, float], ...]  # the event on the line
    members: tuple[int, ...]  # the categories in the event
    label: str
    pair: tuple[str, ...]

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Summary | None:
        """The summary, or None where there is none of the form that this module describes."""
        if "data" not in plain:
            return None
        try:
            return cls._read(plain)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            return None

    @classmethod
    def _read(cls, plain: Mapping[str, Any]) -> Summary | None:
        sides = [tuple(float(count) for count in plain[side]) for side in ("data", "neighbour")]
        sums = [math.fsum(side) for side in sides]
        trials = [float(number) for number in plain.get("trials", sums)]
        edges = tuple(float(edge) for edge in plain.get("edges", ()))
        categories = tuple(one_line(str(name)) for name in plain.get("categories", ()))
        cells = len(edges) - 1 if edges else len(categories)
        right = (
            cells >= 1
            and all(len(side) == cells for side in sides)
            and all(math.isfinite(count) and count >= 0.0 for side in sides for count in side)
            and all(abs(edge) <= LARGEST_EDGE for edge in edges)
            and all(low < high for low, high in itertools.pairwise(edges))
            and all(
                0.0 <= total <= number < math.inf and number > 0.0 for total, number in zip(sums, trials, strict=True)
            )
        )
        if not right:
            return None
        event = plain.get("event", ())
        return cls(
            counts=(sides[0], sides[1]),
            trials=(trials[0], trials[1]),
            edges=edges,
            categories=categories,
            intervals=tuple((float(low), float(high)) for low, high in event) if edges else (),
            members=() if edges else tuple(int(index) for index in event if 0 <= index < cells),
            label=_short(one_line(str(plain.get("label", "output"))), 60),
            pair=tuple(_short(one_line(str(text)), 200) for text in plain.get("pair", ())),
        )

    def shares(self) -> tuple[Floats, Floats]:
        """Counts over the trials, on both sides."""
        first, second = (np.array(side) / total for side, total in zip(self.counts, self.trials, strict=True))
        return first, second


def _histogram(axes: Axes, summary: Summary) -> None:
    edges = np.array(summary.edges)
    widths = np.diff(edges)
    even = bool(np.allclose(widths, widths[0], rtol=1e-6, atol=0.0))
    low, high = float(edges[0]), float(edges[-1])
    for index, (start, stop) in enumerate(summary.intervals):
        label = "event" if index == 0 else None
        if stop - start <= 1e-6 * (high - low):  # one exact value
            axes.axvline(start, color=COLOURS["event"], linewidth=3.0, alpha=0.5, label=label)
        elif stop > low and start < high:
            axes.axvspan(
                max(start, low), min(stop, high), color=COLOURS["event"], alpha=0.28, linewidth=0.0, label=label
            )
    for name, shares, style in zip(("data", "neighbour"), summary.shares(), ("-", "--"), strict=True):
        heights = shares if even else shares / widths
        axes.stairs(heights, edges, color=COLOURS[name], linestyle=style, linewidth=1.5, label=name)
        axes.stairs(heights, edges, color=COLOURS[name], fill=True, alpha=0.10)
    axes.set(xlabel=summary.label, ylabel="share of outputs" if even else "density of outputs", xlim=(low, high))
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="best")


def _categories(axes: Axes, summary: Summary) -> None:
    first, second = summary.shares()
    largest = np.argsort(-np.maximum(first, second), kind="stable")[:MOST_BARS].tolist()
    seen = [index for index in largest if max(first[index], second[index]) >= SMALLEST_SHARE] or largest[:FEWEST_BARS]
    kept = sorted({*seen, *summary.members[:FEWEST_BARS]})
    names = [_short(summary.categories[index]) for index in kept]
    bars = [first[kept], second[kept]]
    others = [max(1.0 - float(bar.sum()), 0.0) for bar in bars]
    if max(others) > 1e-9:
        names.append("others")
        bars = [np.append(bar, other) for bar, other in zip(bars, others, strict=True)]
    places = np.arange(len(names), dtype=np.float64)
    for number, index in enumerate(index for index in kept if index in summary.members):
        place = kept.index(index)
        axes.axhspan(
            place - 0.5, place + 0.5, color=COLOURS["event"], alpha=0.28, linewidth=0.0,
            label="event" if number == 0 else None,
        )  # fmt: skip
    axes.barh(places - 0.18, bars[0], height=0.32, color=COLOURS["data"], label="data")
    axes.barh(
        places + 0.18, bars[1], height=0.32, color=COLOURS["neighbour"], label="neighbour", hatch="///", alpha=0.75
    )
    axes.set_yticks(places, names)
    axes.set(xlabel=f"share of outputs ({summary.label})", ylim=(len(names) - 0.5, -0.5))
    axes.grid(axis="y", visible=False)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, columnspacing=1.2, handlelength=1.4)


def profile(result: Result) -> Drawing | None:
    """The largest delta that the claim allows at each epsilon, and what was shown about the mechanism.

    Let ``[a, A]`` and ``[b, B]`` be the exact intervals of an event's probability on the two sides. Whatever the epsilon, the
    true profile is at least ``P(S) - exp(epsilon) Q(S) >= a - exp(epsilon) B``, and the same with the sides exchanged and
    for the complement of the event; all four hold together wherever both intervals do.
    """
    if not math.isfinite(result.epsilon_lower):
        return None
    widest = _widest(result)
    grid = np.linspace(0.0, widest, PROFILE_POINTS)
    claimed = result.claim.delta(grid)
    counted = None
    if result.witness is not None:
        counted = partial(delta_lower, on_data=result.witness.on_data, on_neighbour=result.witness.on_neighbour)
    refuted = None
    if claimed_epsilon(result.claim) is None and 0.0 < result.parameter_lower < math.inf:
        refuted = result.claim.at(result.parameter_lower).delta(grid)
    logarithmic = not isinstance(result.claim, PureDP | MetricDP)
    floor = max(min(result.delta, 1e-3) / 10.0, SMALLEST_DELTA) if logarithmic else 0.0

    defining = _defining_points(result, widest, floor)

    def draw(axes: Axes) -> None:
        axes.plot(grid, np.maximum(claimed, floor / 10.0), color=COLOURS["ink"], label="claimed")
        if defining is not None:
            axes.plot(
                *defining, marker="s", markersize=3, linestyle="none", color=COLOURS["ink"], label="points of the claim"
            )  # fmt: skip
        if counted is not None and counted(0.0 * grid)[0] > floor:
            fine = np.linspace(0.0, widest, 8 * PROFILE_POINTS)  # on a logarithmic axis it would fall without bound
            axes.plot(
                fine, np.maximum(counted(fine), floor / 10.0), color=COLOURS["alarm"], linestyle="--",
                label="at least (witness)",
            )  # fmt: skip
            axes.fill_between(
                grid, claimed, np.maximum(counted(grid), claimed), color=COLOURS["alarm"], alpha=0.15, linewidth=0.0
            )
        if refuted is not None:
            name = parameter_words(result.claim)
            axes.plot(
                grid, np.maximum(refuted, floor / 10.0), color=COLOURS["muted"], linestyle=":",
                label=f"{name} = {result.parameter_lower:.4g}",
            )  # fmt: skip
        if result.epsilon_lower > 0.0:
            shown = min(result.epsilon_lower, widest)
            beyond = shown < result.epsilon_lower
            axes.plot(
                [shown], [max(result.delta, floor)], marker=">" if beyond else "o", markersize=7, clip_on=False, zorder=5,
                color=COLOURS["alarm" if result.verdict is Verdict.VIOLATION else "data"], linestyle="none",
                label=f"epsilon >= {result.epsilon_lower:.4g}{', off the picture' if beyond else ''}",
            )  # fmt: skip
        axes.set(xlabel="epsilon", ylabel="delta(epsilon)", xlim=(0.0, widest))
        if logarithmic:
            axes.set_yscale("log")
            axes.set_ylim(floor, 1.0)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}" if value < 0.01 else f"{value:g}")
        else:
            highest = max(float(claimed[0]), 1e-9 if counted is None else float(counted(grid)[0]))
            axes.set_ylim(0.0, 1.08 * highest)
        axes.legend(loc="best")

    at = f" at delta {result.delta:g}" if result.delta else ""
    caption = (
        "A mechanism that keeps its claim stays on or below the solid line. "
        f"The dot is the certified bound, epsilon >= {result.epsilon_lower:.4g}{at}, wrong with probability at most "
        f"{result.alpha:g}."
    )
    if refuted is not None:
        caption += (
            f" The mechanism is not below the dotted line everywhere: {parameter_words(result.claim)} is at least that."
        )
    if counted is not None:
        caption += (
            " The dashed line is what the counts of the witness show (98 % confidence); where it is above the solid one, "
            "more leaks than was claimed."
        )
    return Drawing("Claimed profile and lower bounds", caption, draw)


DRAWINGS: Mapping[str, Callable[[Result], Drawing | None]] = {
    "evidence": evidence,
    "outputs": outputs,
    "profile": profile,
    "runs": runs,
}


def _defining_points(result: Result, widest: float, floor: float) -> tuple[Floats, Floats] | None:
    """Return the points that define a curve, as far as they are inside the picture; None for other claims."""
    if not isinstance(result.claim, ProfileDP | TradeOffDP):
        return None
    levels = result.claim.levels
    deltas = result.claim.delta(levels)
    seen = (levels <= widest) & (deltas >= floor)
    return levels[seen], deltas[seen]


def delta_lower(epsilon: Floats, on_data: Frequency, on_neighbour: Frequency) -> Floats:
    """Lower bound of the privacy profile that one event's exact intervals give at each epsilon; see :func:`profile`.

    >>> on_data = Frequency(count=90, trials=100, low=0.8, high=0.96)
    >>> on_neighbour = Frequency(count=10, trials=100, low=0.04, high=0.2)
    >>> delta_lower(np.array([0.0, 1.0]), on_data, on_neighbour).round(3).tolist()
    [0.6, 0.256]
    """
    factor = np.exp(epsilon)
    corners = [
        (on_data.low, on_neighbour.high),
        (on_neighbour.low, on_data.high),
        (1.0 - on_data.high, 1.0 - on_neighbour.low),
        (1.0 - on_neighbour.high, 1.0 - on_data.low),
    ]
    bounds = np.stack([low - factor * high for low, high in corners])
    return np.asarray(np.clip(bounds.max(axis=0), 0.0, 1.0))


def _widest(result: Result) -> float:
    """Return the end of the epsilon axis: past the claim, and past the bound unless that is much larger."""
    claimed = claimed_epsilon(result.claim)
    if claimed is None:
        claimed = 1.0
        while claimed < 100.0 and result.claim.delta(claimed) > max(result.delta, SMALLEST_DELTA):
            claimed *= 1.25
        claimed /= 1.25
    claimed = max(claimed, 0.05)
    return min(max(1.3 * claimed, min(1.15 * result.epsilon_lower, 5.0 * claimed)), LARGEST_DRAWN)


def _thinned(samples: Floats, values: Floats) -> tuple[Floats, Floats]:
    """At most ``MOST_DRAWN`` of them; the highest of each group, so that every crossing is kept, and the last."""
    if samples.size <= MOST_DRAWN:
        return samples, values
    stretches = np.array_split(np.arange(samples.size - 1), MOST_DRAWN - 1)
    kept = np.array([*(int(part[np.argmax(values[part])]) for part in stretches), samples.size - 1])
    return samples[kept], values[kept]


def _short(text: str, limit: int = LONGEST_LABEL) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
