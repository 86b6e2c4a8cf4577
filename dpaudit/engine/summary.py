"""A small summary of outputs on one pair, as plain data: for pictures, and for comparing with a later run.

The event is written without code (``dpaudit.baseline`` says how it is read), so that a file from anywhere can be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.engine.events import Event
from dpaudit.engine.learning import Sides
from dpaudit.engine.outputs import Encoded, plain, record_keys, stack
from dpaudit.engine.partition import LOWEST, Line
from dpaudit.engine.scores import Column, Linear
from dpaudit.engine.views import RecordView, ScoreView, ShapeView, ValueView, text_of

CELLS = 40
LARGEST_DRAWN = 1e300
MOST_CATEGORIES = 24


def picture(event: Event, sides: Sides) -> dict[str, Any]:
    """Counts of both sides over cells of the value (or score), or over the most frequent outputs, with the event."""
    trials = [len(batch) for batch in sides]
    view = event.view
    if isinstance(view, ScoreView):
        name = view.score.describe()
        label = name if name.startswith("output[") else "score"
        return {
            **_histogram(event, [view.score(batch) for batch in sides], view.line),
            "trials": trials,
            "label": label,
        }
    if isinstance(view, ValueView) and len(view.lines) == 1 and view.lines[0] is not None:
        columns = [batch.values[:, 0] if batch.values.shape[1] else np.full(len(batch), np.nan) for batch in sides]
        return {**_histogram(event, columns, view.lines[0]), "trials": trials}
    return {**_categories(event, sides), "trials": trials}


def _histogram(event: Event, columns: list[np.ndarray[Any, Any]], line: Line) -> dict[str, Any]:
    columns = [column[np.abs(column) < LARGEST_DRAWN] for column in columns]  # drops NaN too
    pooled = np.concatenate(columns)
    if not pooled.size:
        return {}
    low, high = np.quantile(pooled, [0.001, 0.999])
    if not low < high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, CELLS + 1)
    if not (np.diff(edges) > 0.0).all():
        return {}
    counts = [np.histogram(column, edges)[0].tolist() for column in columns]
    intervals = [list(interval) for interval in _intervals(line, event.cells[: line.cells])]
    return {"edges": edges.tolist(), "data": counts[0], "neighbour": counts[1], "event": intervals}


def _intervals(line: Line, cells: np.ndarray[Any, Any]) -> list[tuple[float, float]]:
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


def _categories(event: Event, sides: Sides) -> dict[str, Any]:
    both = stack(sides, width=max(batch.values.shape[1] for batch in sides))
    keys = record_keys(both)
    known, first, frequency = np.unique(keys, return_index=True, return_counts=True)
    top = np.argsort(-frequency, kind="stable")[:MOST_CATEGORIES]
    own = [record_keys(batch) for batch in sides]
    counts = [[int((side == known[place]).sum()) for place in top] for side in own]
    examples = both.rows(first[top])
    inside = event.contains(examples)
    texts = [text_of(both, int(first[place])) for place in top]
    return {
        "categories": texts,
        "data": counts[0],
        "neighbour": counts[1],
        "event": np.flatnonzero(inside).tolist(),
    }


def plain_event(event: Event) -> dict[str, Any] | None:
    """The event without code, or None where it has no such form."""
    view, cells = event.view, event.cells
    match view:
        case ShapeView():
            parts: list[dict[str, Any]] = [_structure(event, code) for code in view.table.keys[cells[:-1]]]
            if cells[-1]:
                parts.append({"other_than": [_hexadecimal(code) for code in view.table.keys]})
            return {"any": parts, "not": False}
        case ScoreView(score=Column() as column):
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


def _structure(event: Event, code: np.uint64) -> dict[str, Any]:
    return {"structure": plain(event.labels.get(int(code), "?")), "code": _hexadecimal(code)}


def _condition(line: Line, cells: np.ndarray[Any, Any]) -> dict[str, Any]:
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
