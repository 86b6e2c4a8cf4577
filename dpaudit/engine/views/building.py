"""Build the views for one pair of data sets from some of its outputs, and count the outputs in their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded, record_keys
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.encoding.structure import OPEN
from dpaudit.engine.views import feature
from dpaudit.engine.views.condition import Quantity
from dpaudit.engine.views.late.models import fit_boosted
from dpaudit.engine.views.partition import KeyTable, line_from, line_from_sorted
from dpaudit.engine.views.scores import Coordinate, fit_linear, fit_naive_bayes
from dpaudit.engine.views.suspect_view import SuspectView
from dpaudit.engine.views.view import MOST_RECORDS, Block, RecordView, ScoreView, ShapeView, ValueView, View, text_of

Counts: TypeAlias = NDArray[np.int64]
Sides: TypeAlias = tuple[Encoded, Encoded]


@dataclass(frozen=True, slots=True)
class ViewLimits:
    """Limits of the choice of views."""

    few_outputs: int = 64
    """Up to this many distinct vectors, their table replaces scores, which would only divide the capital."""
    most_structures: int = 64
    """Structures that have cells of their own."""
    most_differences: int = 64
    """Coordinates up to which differences of successive coordinates are scored."""
    repeated_share: float = 0.002
    """Smallest share of repeated vectors for which they get a table."""
    give_up_features: int = 60
    """Outputs of each side from which features of outputs are given up where they are not needed."""
    keep_features: int = 8192
    """Outputs of each side from which they are kept for good where they are."""
    fewest_boosted: int = 1000
    """Outputs of each side from which boosted trees are fitted."""


VIEW_LIMITS = ViewLimits()


def build_views(sides: Sides, *, boosted: bool = False, suspects: Sequence[str] = ()) -> list[tuple[View, Counts]]:
    """Return views for these outputs, each with the counts of the outputs that it was not fitted on.

    ``suspects`` are the names of the user's functions, whose values come with the outputs; each has a view.
    """
    codes, table = _structures(sides)
    width = max(batch.width for batch in sides)
    blocks = [Block(batch) for batch in sides]
    views: list[View] = []
    built: list[tuple[View, Counts]] = []
    if width <= 1:
        values, numbers = _value_view(sides, table)
        alone = numbers[0] if len(numbers) == 1 and width == 1 else None
        records = _record_view(sides) if alone is None else _exact_numbers(alone)
        views.append(values)
        if not _has_cells_for_all(values, records, blocks):
            views.append(records)
        if width == 1 and codes.size > table.keys.size:  # numbers beside words that never repeat, such as identifiers
            later = slice(len(sides[0]) // 2, None)
            half: Sides = (sides[0].rows(later), sides[1].rows(later))
            built.append(score_view("number", Coordinate(0), half))
    else:
        if codes.size > 1:
            views.append(ShapeView(table))
        records = _record_view(sides)
        if records.table.keys.size:
            views.append(records)
        if not _few_outputs(records, blocks):
            built.extend(_score_views(sides, boosted=boosted))
    if any(batch.features is not None for batch in sides):
        built.extend(_feature_views(sides))
    views.extend(_suspect_view(sides, place, name) for place, name in enumerate(suspects))
    return [(view, count_cells(view, blocks)) for view in views] + built


def _structures(sides: Sides) -> tuple[NDArray[np.uint64], KeyTable]:
    """Return all structures of the outputs, and those that have cells of their own."""
    codes = np.unique(np.concatenate([batch.structures.values for batch in sides]))
    return codes, KeyTable(codes if codes.size <= VIEW_LIMITS.most_structures else _frequent_structures(sides))


def _value_view(sides: Sides, table: KeyTable) -> tuple[ValueView, list[NDArray[np.float64] | None]]:
    """Return the view of outputs with at most one number, and the numbers of each structure, sorted."""
    numbers = [_numbers(sides, code) for code in table.keys]
    resolution = _resolution(len(sides[0]))
    lines = (None if pooled is None else line_from_sorted(pooled, resolution=resolution) for pooled in numbers)
    return ValueView(table, tuple(lines)), numbers


def _suspect_view(sides: Sides, place: int, name: str) -> SuspectView:
    """Return the view of the values of one suspect."""
    values: Sides = (sides[0].suspects[place], sides[1].suspects[place])
    labels = {**values[0].labels, **values[1].labels}
    return SuspectView(place, name, _value_view(values, _structures(values)[1])[0], labels)


def _has_cells_for_all(values: ValueView, records: RecordView, blocks: Sequence[Block]) -> bool:
    """Return whether every output has its own cell among the values, so that a table of outputs would add nothing."""
    if not records.table.keys.size or count_cells(records, blocks)[:, -1].sum() > 0:
        return False
    line = values.lines[0]
    cells = line.cuts if records.floats and line is not None else values.codes.keys
    return bool(np.isin(records.table.keys, cells).all())


def _frequent_structures(sides: Sides) -> NDArray[np.uint64]:
    """Return the most frequent codes in the first half of the outputs; the second gives their frequency without bias."""
    first = np.concatenate([batch.codes[: len(batch) // 2] for batch in sides])
    codes, frequency = np.unique(first, return_counts=True)
    return np.sort(codes[np.argsort(-frequency)[: VIEW_LIMITS.most_structures]])


def _few_outputs(records: RecordView, blocks: Sequence[Block]) -> bool:
    """Return whether the distinct outputs are few, so that scores would only divide the capital."""
    if not 0 < records.table.keys.size <= VIEW_LIMITS.few_outputs:
        return False
    return bool(count_cells(records, blocks)[:, -1].sum() == 0)


def _numbers(sides: Sides, code: np.uint64) -> NDArray[np.float64] | None:
    """Return the single numbers of one structure, sorted; None if it holds none."""
    if not any(OPEN in batch.labels.get(int(code), "") for batch in sides):
        return None
    values = [batch.of_kind(code) for batch in sides if batch.width]
    return np.sort(np.concatenate(values)) if values else np.empty(0)


def _exact_numbers(ascending: NDArray[np.float64]) -> RecordView:
    table, _ = SortedSample(ascending).repeated(MOST_RECORDS)
    return RecordView(KeyTable(table), {float(key): f"output == {float(key)!r}" for key in table}, floats=True)


def _record_view(sides: Sides) -> RecordView:
    keys = [record_keys(batch) for batch in sides]
    pooled = np.sort(np.concatenate(keys))
    table, lengths = SortedSample(pooled).repeated(MOST_RECORDS)
    if sides[0].width > 1 and lengths.sum() < VIEW_LIMITS.repeated_share * pooled.size:
        table = table[:0]
    texts: dict[Any, str] = {}
    for batch, own in zip(sides, keys, strict=True) if table.size else ():
        order = np.argsort(own, kind="stable")
        place = np.searchsorted(own[order], table)
        for key, index in zip(table, place, strict=True):
            if index < own.size and own[order[index]] == key:
                texts.setdefault(int(key), f"output == {text_of(batch, int(order[index]))}")
    return RecordView(KeyTable(table), texts, floats=False)


def _score_views(sides: Sides, *, boosted: bool) -> Sequence[tuple[View, Counts]]:
    """Fit scores on the first half of the outputs; cells and counts come from the second."""
    half = len(sides[0]) // 2
    fit: Sides = (sides[0].rows(slice(half)), sides[1].rows(slice(half)))
    rest: Sides = (sides[0].rows(slice(half, None)), sides[1].rows(slice(half, None)))
    width = sides[0].width
    scores: list[tuple[str, Quantity | None]] = [
        ("naive Bayes", fit_naive_bayes(*fit)[0]),
        ("linear", fit_linear(*fit)),
    ]
    if width <= VIEW_LIMITS.most_differences:
        scores.append(("naive Bayes of differences", fit_naive_bayes(*fit, differences=True)[0]))
    if boosted and half >= VIEW_LIMITS.fewest_boosted:
        scores.append(("boosted", fit_boosted(*fit)))
    return [score_view(name, score, rest) for name, score in scores if score is not None]


def _feature_views(sides: Sides) -> Sequence[tuple[View, Counts]]:
    """Fit a score of features on the first half of the outputs, and choose features; cells and counts come from the second."""
    half = len(sides[0]) // 2
    fit: Sides = (sides[0].rows(slice(half)), sides[1].rows(slice(half)))
    rest: Sides = (sides[0].rows(slice(half, None)), sides[1].rows(slice(half, None)))
    score, alone = feature.fit_feature_scores(fit)
    if score is None:
        return []
    single = [score_view(f"feature {place}", quantity, rest) for place, quantity in enumerate(alone, 1)]
    return [score_view("features", score, rest), *single]


def score_view(name: str, score: Quantity, rest: Sides) -> tuple[ScoreView, Counts]:
    """Return a score with cells learned from outputs on which it was not fitted, and their counts."""
    scored = [score(side) for side in rest]
    line = line_from(np.concatenate(scored), resolution=_resolution(len(rest[0]) * 2))
    return ScoreView(name, score, line), np.stack([line.tally(values) for values in scored])


def _resolution(rows: int) -> int:
    return 16 if rows < 1500 else 32 if rows < 10_000 else 64


def count_cells(view: View, blocks: Sequence[Block]) -> Counts:
    """Return the cell counts of a view, a row for each block."""
    return np.array([view.count(block) for block in blocks])
