"""Events a person can read: chosen on the past, the simplest that still shows the leak, and testable one output at a time."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.evidence import Points, choose_events, natural_order, sorted_order
from dpaudit.engine.learning import Sides
from dpaudit.engine.outputs import CUT, Encoded, plain
from dpaudit.engine.partition import Line, line_from
from dpaudit.engine.representation import BitsView
from dpaudit.engine.scores import BINS, Column, Linear, Lookup, NaiveBayes
from dpaudit.engine.views import Block, RecordView, ScoreView, ShapeView, ValueView, View

Mask: TypeAlias = NDArray[np.bool_]

SIMPLE_ENOUGH = 0.6  # a simpler event wins if it keeps this share of the best advantage in standard errors
CLEAR = 6.0  # so many standard errors are enough for any event
MOST_COORDINATES = 64
MOST_LISTED = 64
READABLE_CELLS = 24
DIGITS = 3
_INFINITY = re.compile(r"(?<![\w.])(-?)inf(?!\w)")
NUMBERS = ("number", "float", "int", "bool")


@dataclass(frozen=True, slots=True)
class Event:
    """A union of cells of one view."""

    view: View
    cells: Mask
    labels: Mapping[int, str]
    swapped: bool = False  # likelier on the neighbour than on the data

    def contains(self, batch: Encoded) -> Mask:
        """Which outputs are in the event."""
        return np.asarray(self.cells[self.view.locate(batch)])

    def __str__(self) -> str:
        return self.view.describe(self.cells, self.labels)

    def code(self) -> tuple[str, str]:
        """Python source for it: definitions, and an expression in ``output`` (both empty where there is none)."""
        return _code(self)


@dataclass(frozen=True, slots=True)
class Offer:
    """An event with its advantage in standard errors, and how hard it is to read."""

    event: Event
    score: float
    complexity: float


def simplest(sides: Sides, views: Sequence[View], points: Points, labels: Mapping[int, str]) -> Event | None:
    """The simplest event that keeps most of the best advantage on these outputs."""
    offers = [offer for view in _with_coordinates(sides, views) for offer in _offers(view, sides, points, labels)]
    if not offers:
        return None
    best = max(offer.score for offer in offers)
    enough = min(SIMPLE_ENOUGH * best, CLEAR) if best > 0.0 else best
    good = [offer for offer in offers if offer.score >= enough]
    return min(good, key=lambda offer: (offer.complexity, -offer.score)).event


def _with_coordinates(sides: Sides, views: Sequence[View]) -> Iterator[View]:
    """The views with cuts that a person can read, and every coordinate by itself."""
    for view in views:
        match view:
            case ValueView():
                lines = tuple(
                    None if line is None else _readable(_column(sides, code))
                    for code, line in zip(view.codes.keys, view.lines, strict=True)
                )
                yield ValueView(view.codes, lines)
            case ScoreView():
                yield ScoreView(view.name, view.score, _readable([view.score(batch) for batch in sides]))
            case _:
                yield view
    width = sides[0].values.shape[1]
    if width > 1:
        for index in range(min(width, MOST_COORDINATES)):
            score = Column(index)
            yield ScoreView(f"output[{index}]", score, _readable([score(batch) for batch in sides]))


def _column(sides: Sides, code: np.uint64) -> list[NDArray[np.float64]]:
    return [batch.values[batch.codes == code, 0] if batch.values.shape[1] else np.empty(0) for batch in sides]


def _readable(values: Sequence[NDArray[np.float64]]) -> Line:
    """Cuts rounded to a few digits of the spread; exact values stay exact."""
    line = line_from(np.concatenate(values), resolution=READABLE_CELLS)
    inner = line.cuts[1:-1]
    exact = np.zeros(inner.size, dtype=bool)
    exact[:-1] |= np.nextafter(inner[:-1], np.inf) == inner[1:]
    exact[1:] |= exact[:-1].copy() & (np.nextafter(inner[:-1], np.inf) == inner[1:])
    with np.errstate(over="ignore"):
        spread = float(np.subtract(*np.quantile(inner, [0.9, 0.1]))) if inner.size > 1 else 1.0
    digits = DIGITS - 1 - math.floor(math.log10(spread)) if spread > 0.0 and math.isfinite(spread) else DIGITS
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(inner, min(max(digits, -300), 300))
    rounded = np.where(exact | ~np.isfinite(rounded), inner, rounded)
    return Line(np.unique(np.concatenate([line.cuts[:1], rounded, line.cuts[-1:]])))


def _offers(view: View, sides: Sides, points: Points, labels: Mapping[int, str]) -> Iterator[Offer]:
    counts = np.stack([view.count(Block(batch)) for batch in sides])
    if counts.shape[1] < 2 or counts.sum(axis=1).min() == 0:
        return
    orders = [natural_order(counts)] if view.ordered else []
    if not isinstance(view, ScoreView):  # a union of intervals of a score tells nobody anything
        orders.append(sorted_order(counts))
    choice = choose_events(counts[:, np.stack(orders)], points)
    for row, order in enumerate(orders):
        for swapped, sizes, scores in (
            (False, choice.right[row], choice.right_score[row]),
            (True, choice.left[row], choice.left_score[row]),
        ):
            point = int(np.argmax(scores))
            cells = np.zeros(counts.shape[1], dtype=bool)
            chosen = order[: sizes[point]] if swapped else order[order.size - sizes[point] :]
            cells[chosen] = True
            if view.ordered:
                _absorb_empty(view, cells, counts)
            cells[_unseen(view, counts)] = False
            event = Event(view, cells, labels, swapped)
            yield Offer(event, float(scores[point]), _complexity(view, str(event)))


def _absorb_empty(view: View, cells: Mask, counts: NDArray[np.int64]) -> None:
    """Cells in which nothing was seen go with their neighbour, so that intervals join and reach to the ends."""
    empty = counts.sum(axis=0) == 0
    lines = view.lines if isinstance(view, ValueView) else (view.line,) if isinstance(view, ScoreView) else ()
    offset = 0
    for line in lines:
        width = 1 if line is None else line.cells
        if line is not None:
            numbers = range(offset, offset + width - 1)  # the last cell is NaN
            for cell in [*numbers[1:], *reversed(numbers[:-1])]:
                towards = cell - 1 if cell - 1 in numbers and not empty[cell - 1] else cell + 1
                if empty[cell] and towards in numbers and not empty[towards]:
                    cells[cell], empty[cell] = cells[towards], False
        offset += width


def _unseen(view: View, counts: NDArray[np.int64]) -> Mask:
    """Cells in which nothing was seen, but for those of numbers: "or output is NaN" helps nobody where there was none."""
    unseen = np.asarray(counts.sum(axis=0) == 0)
    lines = view.lines if isinstance(view, ValueView) else (view.line,) if isinstance(view, ScoreView) else ()
    offset = 0
    for line in lines:
        width = 1 if line is None else line.cells
        if line is not None:
            unseen[offset : offset + width - 1] = False
        offset += width
    return unseen


def _complexity(view: View, text: str) -> float:
    pieces = text.count(" or ") + text.count(" <= ") + (3 if "not seen while learning" in text else 0)
    learned = 20 if isinstance(view, ScoreView) and not isinstance(view.score, Column) else 0
    return pieces + learned + (1 if isinstance(view, ScoreView) else 0) + len(text) / 1000.0


def _code(event: Event) -> tuple[str, str]:
    view, cells = event.view, event.cells
    match view:
        case ValueView():
            return "", _value_code(view, cells, event.labels)
        case ShapeView():
            chosen = [plain(event.labels.get(int(code), "")) for code in view.table.keys[cells[:-1]]]
            cut = any(label == "" or label.endswith(CUT) for label in chosen)
            return "", "" if cells[-1] or cut else f"structure(output) in {chosen!r}"
        case RecordView(floats=True):
            inside = [key.item() for key in view.table.keys[cells[:-1] == (not cells[-1])]]
            return "", f"output {'not in' if cells[-1] else 'in'} {inside!r}"
        case RecordView():
            return "", _record_code(view, cells)
        case ScoreView(score=Column() as column):
            return "", _line_code(view.line, cells, f"number(output, {column.index})")
        case ScoreView(score=Linear() as linear):
            weights = dict(zip(linear.index, linear.weights.tolist(), strict=True))
            body = (
                f"    return sum(WEIGHTS.get(i, 0.0) * x for i, x in enumerate(numbers(output))) - {linear.offset!r}\n"
            )
            return f"WEIGHTS = {weights!r}\n\n\ndef score(output):\n{body}", _line_code(
                view.line, cells, "score(output)"
            )
        case ScoreView(score=NaiveBayes() as bayes) if bayes.codes.keys.size == 1:
            return _naive_bayes_code(bayes), _line_code(view.line, cells, "score(output)")
        case BitsView():
            return _bits_code(view, cells), f"has_bits(number(output, {view.column}))"
    return "", ""


def _record_code(view: RecordView, cells: Mask) -> str:
    """Equality with the outputs listed, where each has a literal form."""
    keys = view.table.keys[cells[:-1] == (not cells[-1])]
    if keys.size > MOST_LISTED:
        return ""
    parts = []
    for key in keys:
        text = view.texts.get(key.item(), "").removeprefix("output == ")
        if text.startswith("array(["):
            parts.append(f"numbers(output) == {text[6:-1]}")
            continue
        try:
            ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return ""
        parts.append(f"output is {text}" if text in ("None", "True", "False") else f"output == {text}")
    joined = " or ".join(parts)
    return f"not ({joined})" if cells[-1] else joined


def _line_code(line: Line, cells: Mask, name: str) -> str:
    """The conditions of a line as Python."""
    parts = []
    for part in line.describe(cells, name):
        if part.endswith("is NaN"):
            parts.append(f"{name} != {name}")
        elif part.endswith("is a number"):
            parts.append(f"{name} == {name}")
        else:
            outside = part.split(name)
            parts.append(name.join(_INFINITY.sub(r"float('\1inf')", piece) for piece in outside))
    return " or ".join(parts)


def _value_code(view: ValueView, cells: Mask, labels: Mapping[int, str]) -> str:
    parts: list[str] = []
    offset = 0
    for code, line in zip(view.codes.keys, view.lines, strict=True):
        label = plain(labels.get(int(code), ""))
        width = 1 if line is None else line.cells
        chosen = cells[offset : offset + width]
        offset += width
        if not chosen.any():
            continue
        if line is None or chosen.all():
            parts.append(f"structure(output) == {label!r}")
        elif len(view.lines) == 1 and label in NUMBERS:
            parts.append(_line_code(line, chosen, "output"))
        else:
            inside = _line_code(line, chosen, "number(output, 0)")
            parts.append(f"structure(output) == {label!r} and ({inside})")
    return "" if cells[-1] or any(CUT in part for part in parts) else " or ".join(parts)


def _naive_bayes_code(score: NaiveBayes) -> str:
    tables = {place: _steps(lookup) for place, lookup in zip(score.index, score.columns, strict=True)}
    lines = ["import bisect", "", f"TABLES = {tables!r}", "", "def score(output):", "    values = numbers(output)"]
    if score.differences:
        lines.append("    values = [b - a for a, b in zip([0.0, *values], values)]")
    lines.append("    total = 0.0")
    lines.append("    for place, (cuts, heights, exact, at_nan) in TABLES.items():")
    lines.append("        x = values[place] if place < len(values) else float('nan')")
    lines.append("        total += at_nan if x != x else exact.get(x, heights[bisect.bisect_right(cuts, x)])")
    return "\n".join([*lines, "    return total", ""])


def _bits_code(view: BitsView, cells: Mask) -> str:
    grid = cells.reshape(view.bits.cells, view.cuts.size + 1)
    table = [(view.bits.keys[column[:-1] != column[-1]].tolist(), bool(column[-1])) for column in grid.T]
    return "\n".join(
        [
            "import bisect",
            "",
            "from dpaudit.engine.representation import lowest_bit",
            "",
            f"CUTS = {view.cuts.tolist()!r}",
            "# By the bin of the value: exponents of the lowest set bit, and whether it is all but these.",
            f"BITS = {table!r}",
            "",
            "",
            "def has_bits(x):",
            "    listed, others = BITS[bisect.bisect_right(CUTS, x)]",
            "    return (int(lowest_bit(np.array([x]))[0]) in listed) != others",
            "",
        ]
    )


def _steps(lookup: Lookup) -> tuple[list[float], list[float], dict[float, float], float]:
    """A lookup as cuts and heights, equal neighbours joined, and the heights of exact values."""
    table = lookup.heights[:BINS]
    change = np.flatnonzero(np.diff(table)) + 1
    cuts = lookup.low + change / lookup.inverse_width
    heights = table[np.concatenate(([0], change))]
    exact = dict(zip(lookup.atoms, lookup.heights[BINS + 1 :].round(9).tolist(), strict=False))
    return cuts.round(9).tolist(), heights.round(9).tolist(), exact, lookup.at_nan


def observed_epsilon(in_data: int, in_neighbour: int, trials: int, delta: float) -> float:
    """Log-ratio of the observed shares at ``delta``; infinite where the neighbour never showed the event."""
    share = in_data / trials - delta
    if share <= 0.0:
        return 0.0
    return math.inf if in_neighbour == 0 else math.log(share / (in_neighbour / trials))
