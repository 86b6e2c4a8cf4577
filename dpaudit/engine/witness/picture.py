"""A small summary of outputs on one pair, as plain data: for pictures, and for comparing with a later run.

The event is written without code (``dpaudit.baseline`` says how it is read), so that a file from anywhere can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.encoding.structure import plain
from dpaudit.engine.views.float_bits import BitsView
from dpaudit.engine.views.learner import Sides
from dpaudit.engine.views.partition import LOWEST, Line, quantiles
from dpaudit.engine.views.scores import Coordinate, Linear
from dpaudit.engine.views.view import RecordView, ScoreView, ShapeView, ValueView
from dpaudit.engine.witness.event import Event

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

CELLS = 40
MOST_WHOLE_NUMBERS = 60  # that get a cell each
LARGEST_DRAWN = 1e300
MOST_CATEGORIES = 24
LONGEST_CATEGORY = 120
TAILS = 0.001  # left out at each end


def picture(event: Event, sides: Sides) -> dict[str, Any]:
    """Counts of both sides over cells of the value (or score), or over the parts that the event is made of."""
    made: dict[str, Any] = {}
    match event.view:
        case ScoreView(score=score, line=line):
            name = score.describe()
            made = _histogram([score(batch) for batch in sides], _intervals(line, event.cells))
            if made:
                made["label"] = name if name.startswith("output[") else "score"
        case ValueView(lines=(Line() as line,)):
            made = _histogram([_numbers(batch) for batch in sides], _intervals(line, event.cells[: line.cells]))
        case RecordView(floats=True, table=table) if not event.cells[-1]:
            chosen = [(float(key), float(key)) for key in table.keys[event.cells[:-1]]]
            made = _histogram([_numbers(batch) for batch in sides], chosen)
    return {**(made or _categories(event, sides)), "trials": [len(batch) for batch in sides]}


def _numbers(batch: Encoded) -> Floats:
    return batch.values[:, 0] if batch.width else np.full(len(batch), np.nan)


def _histogram(columns: list[Floats], event: list[tuple[float, float]]) -> dict[str, Any]:
    columns = [np.sort(column[np.abs(column) < LARGEST_DRAWN]) for column in columns]  # drops NaN too
    ends = [quantiles(column, np.array([TAILS, 1.0 - TAILS])) for column in columns if column.size]
    if not ends:
        return {}
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    whole = high - low <= MOST_WHOLE_NUMBERS and all((column == np.round(column)).all() for column in columns)
    if whole:
        edges = np.arange(np.round(low) - 0.5, np.round(high) + 1.0)
        # A cell of a whole number is in the event or not, so the shading goes to its borders.
        event = [
            (np.ceil(start) - 0.5, np.floor(stop) + 0.5 if start == stop else np.ceil(stop) - 0.5)
            for start, stop in event
        ]
    elif low < high:
        edges = np.linspace(low, high, CELLS + 1)
    else:
        edges = np.array([low - 0.5, low + 0.5])
    if edges.size < 2 or not (np.diff(edges) > 0.0).all():
        return {}
    # The last cell holds its upper edge too.
    below = [(*np.searchsorted(column, edges[:-1]), np.searchsorted(column, edges[-1], "right")) for column in columns]
    counts = [np.diff(each).tolist() for each in below]
    intervals = [[float(start), float(stop)] for start, stop in event if start < stop or not whole]
    return {"edges": edges.tolist(), "data": counts[0], "neighbour": counts[1], "event": intervals}


def _categories(event: Event, sides: Sides) -> dict[str, Any]:
    """The cells of the view; where a structure has many of them, those in the event together, and the others together."""
    view = event.view
    counts = np.stack([np.bincount(view.locate(batch), minlength=view.cells) for batch in sides])
    # A cell for NaN that nothing fell into would only make names longer.
    named = counts.any(axis=0) | ~_nan_cells(event)
    groups = [group & named for group in _groups(event) if counts[:, group].any()]
    if not isinstance(view, BitsView):  # those are in the order of their values
        groups.sort(key=lambda group: -int(counts[:, group].sum(axis=1).max()))
    kept = groups[:MOST_CATEGORIES]
    return {
        "categories": [_category(event, group) for group in kept],
        "data": [int(counts[0][group].sum()) for group in kept],
        "neighbour": [int(counts[1][group].sum()) for group in kept],
        "event": [place for place, group in enumerate(kept) if (group & event.cells).any()],
    }


def _nan_cells(event: Event) -> Mask:
    found = np.zeros(event.view.cells, dtype=bool)
    if isinstance(event.view, ValueView):
        ends = np.cumsum([1 if line is None else line.cells for line in event.view.lines])
        found[[end - 1 for end, line in zip(ends, event.view.lines, strict=True) if line is not None]] = True
    return found


def _groups(event: Event) -> Iterator[Mask]:
    """Cells that a person would name together, each group inside the event or outside it."""
    cells = np.arange(event.view.cells)
    match event.view:
        case ValueView(lines=lines):
            widths = [*(1 if line is None else line.cells for line in lines), 1]
            parts = np.repeat(np.arange(len(widths)), widths)
        case BitsView(cuts=cuts):
            parts = cells % (cuts.size + 1)
        case ScoreView():
            parts = np.zeros_like(cells)
        case _:
            parts = cells
    for part in np.unique(parts):
        yield from (group for group in ((parts == part) & event.cells, (parts == part) & ~event.cells) if group.any())


def _category(event: Event, group: Mask) -> str:
    if isinstance(event.view, RecordView) and group[-1]:
        return "any other output"
    if isinstance(event.view, BitsView):
        place = int(np.flatnonzero(group)[0]) % (event.view.cuts.size + 1)
        low, high = np.concatenate(([-np.inf], event.view.cuts, [np.inf]))[place : place + 2]
        return f"{low:.2g} to {high:.2g}{'' if (group & event.cells).any() else ': other bits'}"
    text = event.view.describe(group, event.labels).removeprefix("output is ").removeprefix("output == ")
    return text if len(text) <= LONGEST_CATEGORY else f"{text[: LONGEST_CATEGORY - 3]}..."


def _intervals(line: Line, cells: Mask) -> list[tuple[float, float]]:
    """The chosen cells of a line as half-open intervals, joined where they touch."""
    bounds = [-np.inf, *line.cuts.tolist(), np.inf]
    found: list[tuple[float, float]] = []
    for cell in np.flatnonzero(cells[:-1]):
        low, high = bounds[cell], bounds[cell + 1]
        low = -np.inf if low == LOWEST else low
        if found and found[-1][1] >= low:
            found[-1] = (found[-1][0], high)
        elif low < high:
            found.append((low, high))
    return found


def plain_event(event: Event) -> dict[str, Any] | None:
    """The event without code, or None where it has no such form."""
    view, cells = event.view, event.cells
    match view:
        case ShapeView():
            parts: list[dict[str, Any]] = [_structure(event, code) for code in view.table.keys[cells[:-1]]]
            if cells[-1]:
                parts.append({"other_than": [_hexadecimal(code) for code in view.table.keys]})
            return {"any": parts, "not": False}
        case ScoreView(score=Coordinate() as column):
            return {"any": [{"column": column.index, **_condition(view.line, cells)}], "not": False}
        case ScoreView(score=Linear() as linear):
            weights = [[place, weight] for place, weight in zip(linear.index, linear.weights.tolist(), strict=True)]
            part = {"linear": weights, "offset": linear.offset, **_condition(view.line, cells)}
            return {"any": [part], "not": False}
        case RecordView(floats=True):
            chosen = view.table.keys[cells[:-1] == (not cells[-1])].tolist()
            return {"any": [{"column": 0, "equals": chosen}], "not": bool(cells[-1])}
        case RecordView():
            chosen = [_hexadecimal(key) for key in view.table.keys[cells[:-1] == (not cells[-1])]]
            return {"any": [{"records": chosen}], "not": bool(cells[-1])}
        case ValueView():
            return {"any": _value_parts(event, view), "not": False}
        case BitsView():
            return {"any": _bit_parts(event, view), "not": False}
    return None


def _value_parts(event: Event, view: ValueView) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    offset = 0
    for code, line in zip(view.codes.keys, view.lines, strict=True):
        width = 1 if line is None else line.cells
        chosen = event.cells[offset : offset + width]
        offset += width
        if chosen.any():
            condition = {} if line is None or chosen.all() else {"column": 0, **_condition(line, chosen)}
            parts.append({**_structure(event, code), **condition})
    if event.cells[-1]:
        parts.append({"other_than": [_hexadecimal(code) for code in view.codes.keys]})
    return parts


def _bit_parts(event: Event, view: BitsView) -> list[dict[str, Any]]:
    """By bin of the value: its lowest bits. NaN, and a number that is not there, are located in the last bin."""
    grid = event.cells.reshape(view.bits.cells, view.cuts.size + 1)
    bounds: list[Any] = ["-inf", *view.cuts.tolist(), None]
    parts: list[dict[str, Any]] = []
    for place in np.flatnonzero(grid.any(axis=0)):
        chosen = grid[:, place]
        part: dict[str, Any] = {"column": view.column, "within": [[bounds[place], bounds[place + 1]]]}
        if bounds[place + 1] is None:
            part["nan"] = True
        if not chosen.all():
            part["lowest_bit"] = view.bits.keys[chosen[:-1] == (not chosen[-1])].tolist()
            if chosen[-1]:
                part["other_bits"] = True
        parts.append(part)
    return parts


def _structure(event: Event, code: np.uint64) -> dict[str, Any]:
    return {"structure": plain(event.labels.get(int(code), "?")), "code": _hexadecimal(code)}


def _condition(line: Line, cells: Mask) -> dict[str, Any]:
    within = [[low, None if high == np.inf and bool(cells[-2]) else high] for low, high in _intervals(line, cells)]
    condition: dict[str, Any] = {"within": [["-inf" if low == -np.inf else low, high] for low, high in within]}
    if cells[-1]:
        condition["nan"] = True
    return condition


def _hexadecimal(code: Any) -> str:
    return f"{int(code):016x}"


def leading(event: Event, data: str, neighbour: str, counts: list[int], trials: int) -> dict[str, Any]:
    """What a baseline keeps: the pair, the event, and how often it happened on each side."""
    return {
        "data": data,
        "neighbour": neighbour,
        "text": str(event),
        "event": plain_event(event),
        "on_data": [counts[0], trials],
        "on_neighbour": [counts[1], trials],
    }


def summary(event: Event, sides: tuple[Encoded, Encoded], lead: dict[str, Any]) -> dict[str, Any]:
    """All of it."""
    return {**picture(event, sides), "leading": lead, "pair": [lead["data"], lead["neighbour"]]}
