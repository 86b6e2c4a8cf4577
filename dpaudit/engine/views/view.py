"""Views partition the outputs into cells. Each is fixed before the outputs that it counts are drawn.

=========  ===========================================================================================================
view       cells
=========  ===========================================================================================================
value      structure, and within it the value of a single number: atoms, quantile bins, tails, NaN and infinities
record     exactly repeated whole outputs, one cell each, everything else together (finds a rare raw release)
shape      structure alone: type, length, keys, strings, None, exceptions
score      a learned number per output: naive Bayes over coordinates or their differences, linear, boosted trees
=========  ===========================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded, record_keys
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.encoding.structure import fill, plain
from dpaudit.engine.views import small_integers
from dpaudit.engine.views.condition import (
    LOWEST,
    AnyOf,
    Condition,
    Names,
    Number,
    OtherStructure,
    Quantity,
    Records,
    Structure,
    Values,
)
from dpaudit.engine.views.feature import Feature, FeatureScore
from dpaudit.engine.views.partition import KeyTable, Line, readable_line
from dpaudit.engine.views.scores import Coordinate, LinearScore, NaiveBayes, study_tables, sum_tables

Counts: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

MOST_RECORDS = 1024  # exact outputs that have a cell of their own
NEW_KEYS_PER_BLOCK = 64  # exact outputs that one block may add
EMPTY_SAMPLE = SortedSample(np.empty(0))


class Block:
    """One batch of outputs, with the sorted and grouped forms that several views need, each computed once."""

    def __init__(self, batch: Encoded) -> None:
        self.batch = batch

    @cached_property
    def ascending(self) -> SortedSample:
        """The single number of each output, sorted; NaN if there is none."""
        if self.batch.width == 0:
            return SortedSample(np.full(len(self.batch), np.nan))
        return self.batch.counted or SortedSample(np.sort(self.batch.values[:, 0]))

    def tally(self, line: Line) -> Counts:
        """Count the single numbers in the cells of a line: by a histogram, unless they are sorted or counted already."""
        if (
            line.raster is None
            or "ascending" in self.__dict__
            or self.batch.counted is not None
            or not self.batch.width
        ):
            return line.count(self.ascending)
        return line.tally(self.batch.values[:, 0])

    @cached_property
    def codes(self) -> SortedSample:
        """Structure codes, sorted."""
        return self.batch.structures

    @cached_property
    def keys(self) -> SortedSample:
        """Keys of whole outputs, sorted."""
        if not self.batch.width:
            return self.codes
        if self.distinct is not None:
            return SortedSample.counted(record_keys(self.distinct.batch), self.distinct.counts)
        if self.groups is None:
            return SortedSample(np.sort(record_keys(self.batch)))
        first = self.groups[0]
        begun = record_keys(first.patterns.batch).take(first.number)
        return SortedSample(np.sort(record_keys(self.batch, begun, len(first.columns))))

    @cached_property
    def distinct(self) -> small_integers.Distinct | None:
        """The distinct outputs and their frequencies, if only few are possible."""
        return small_integers.distinct(self.batch)

    @cached_property
    def groups(self) -> tuple[small_integers.Group, ...] | None:
        """The coordinates in groups with few possible values each, if there are such groups."""
        return small_integers.groups(self.batch)


@dataclass(frozen=True, slots=True)
class Groups:
    """Cells that belong together in words: the group of each cell, and whether groups have an order of their own."""

    of_cell: NDArray[np.intp]
    ascending: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """The numbers that a view cuts into cells, and the part of their line that the selected cells cover."""

    of: Quantity
    selected: tuple[tuple[float, float], ...]
    label: str = ""


class View(Protocol):
    """A partition of all possible outputs into cells."""

    @property
    def name(self) -> str:
        """Name of the view, under which evidence is kept across rounds."""

    @property
    def ordered(self) -> bool:
        """True if neighbouring cells are neighbours in value."""

    @property
    def cells(self) -> int:
        """Number of cells."""

    def count(self, block: Block) -> Counts:
        """Count the outputs of the block in each cell."""

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each output."""

    def study(self, block: Block) -> Counts:
        """Count, and append the counts from which a later view is fitted, if there are any."""

    def condition(self, cells: Mask, labels: Mapping[int, str]) -> AnyOf:
        """Return the union of the selected cells as conditions on an output."""

    def readable(self, sides: tuple[Encoded, Encoded]) -> View:
        """Return the view with readable cuts, of few digits."""

    @property
    def reading_cost(self) -> int:
        """The effort of reading a condition on the view: 0 on the output itself, 1 on a coordinate, 21 on a learned score."""

    @property
    def number_lines(self) -> tuple[Line | None, ...]:
        """The lines that consecutive cells belong to, None for a cell without numbers; empty if there are none at all."""

    @property
    def needs_features(self) -> bool:
        """True if the cells are those of features, which have to be computed for the outputs."""

    @property
    def groups(self) -> Groups:
        """The cells that belong together in words."""

    def axis(self, cells: Mask) -> Axis | None:
        """Return the numbers that are cut, if the cells are intervals of a single quantity."""

    def category(self, group: Mask, chosen: Mask, names: Names, labels: Mapping[int, str]) -> str:
        """Name a group of cells; ``chosen`` are the cells of the event."""


class BaseView:
    """Defaults of a view: cells that are named one by one, without cuts."""

    __slots__ = ()

    def study(self: View, block: Block) -> Counts:
        """Count; nothing is fitted later."""
        return self.count(block)

    def readable(self: Self, sides: tuple[Encoded, Encoded]) -> Self:
        """Return the view itself."""
        del sides
        return self

    @property
    def reading_cost(self) -> int:
        """Conditions are on the output itself."""
        return 0

    @property
    def number_lines(self) -> tuple[Line | None, ...]:
        """There are none."""
        return ()

    @property
    def needs_features(self) -> bool:
        """Cells are those of structures and numbers."""
        return False

    @property
    def groups(self: View) -> Groups:
        """Each cell by itself."""
        return Groups(np.arange(self.cells))

    def axis(self, cells: Mask) -> Axis | None:
        """Cells are not intervals."""
        del cells
        return None

    def category(self: View, group: Mask, chosen: Mask, names: Names, labels: Mapping[int, str]) -> str:
        """Return the condition without "output is"."""
        del chosen
        text = self.condition(group, labels).text(names)
        return text.removeprefix("output is ").removeprefix("output == ")


@dataclass(frozen=True, slots=True)
class ValueView(BaseView):
    """Outputs with at most one number: by structure, then by value."""

    codes: KeyTable
    lines: tuple[Line | None, ...]  # None: that structure holds no number
    name: str = "value"
    ordered: bool = True

    @property
    def cells(self) -> int:
        """One cell for unknown structures, and those of every known one."""
        return sum(1 if line is None else line.cells for line in self.lines) + 1

    def count(self, block: Block) -> Counts:
        """Count by structure, and within each structure by value."""
        batch = block.batch
        if len(self.lines) == 1 and self.lines[0] is not None and batch.is_all(self.codes.keys[0]):
            counts = np.zeros(self.cells, np.int64)  # the usual case
            counts[:-1] = block.tally(self.lines[0])
            return counts
        if not batch.width:
            counts = self.codes.count(block.codes)
            if not any(self.lines):
                return counts
            parts = [
                np.array([count]) if line is None else line.count(SortedSample(np.full(count, np.nan)))
                for count, line in zip(counts[:-1], self.lines, strict=True)
            ]
        elif batch.uniform and len(batch):
            only = batch.codes[0]
            parts = [
                self._all_or_none(block, line, present=bool(code == only))
                for code, line in zip(self.codes.keys, self.lines, strict=True)
            ]
        else:
            column, codes = batch.values[:, 0], batch.codes
            chosen = [column[codes == code] for code in self.codes.keys]
            parts = [
                np.array([values.size]) if line is None else line.tally(values)
                for values, line in zip(chosen, self.lines, strict=True)
            ]
        known = sum(int(part.sum()) for part in parts)
        return np.concatenate([*parts, [len(batch) - known]]).astype(np.int64)

    def _all_or_none(self, block: Block, line: Line | None, *, present: bool) -> Counts:
        """Count a block of a single structure in the cells of one structure: all of its outputs, or none."""
        if line is None:
            return np.array([len(block.batch) if present else 0])
        return block.tally(line) if present else line.count(EMPTY_SAMPLE)

    def lie_in_exact_cells(self, counts: Counts) -> bool:
        """Return whether outputs with these counts all lie in cells that hold one value each."""
        exact = [np.ones(1, np.bool_) if line is None else line.exact for line in self.lines]
        return not counts[~np.concatenate([*exact, [False]])].any()

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each output."""
        cell = np.full(len(batch), self.cells - 1)
        column = batch.values[:, 0] if batch.width else np.full(len(batch), np.nan)
        offset = 0
        for code, line in zip(self.codes.keys, self.lines, strict=True):
            inside = batch.codes == code
            if line is None:
                cell[inside] = offset
                offset += 1
                continue
            place = np.searchsorted(line.cuts, column, side="right")
            place = np.where(np.isnan(column), line.cells - 1, place)
            cell[inside] = offset + place[inside]
            offset += line.cells
        return cell

    def _slices(self) -> Iterator[tuple[int, Line | None, slice]]:
        """Yield the code, the line and the cells of every known structure."""
        start = 0
        for code, line in zip(self.codes.keys, self.lines, strict=True):
            stop = start + (1 if line is None else line.cells)
            yield int(code), line, slice(start, stop)
            start = stop

    def condition(self, cells: Mask, labels: Mapping[int, str]) -> AnyOf:
        """Return the structures, and the intervals of the number in each."""
        alone = len(self.lines) == 1
        parts: list[Condition] = []
        for code, line, place in self._slices():
            chosen = cells[place]
            if not chosen.any():
                continue
            label, number = label_of(code, labels), None
            if line is not None and not chosen.all():
                name = "output" if alone else f"{label} output"
                number = Number(Coordinate(0), line.intervals(chosen), bool(chosen[-1]), name)
            parts.append(Structure(code, label, number, alone))
        return AnyOf((*parts, *_unknown(self.codes, cells)))

    def readable(self, sides: tuple[Encoded, Encoded]) -> ValueView:
        """Cut each structure's numbers anew."""
        columns = [[batch.of_kind(code) if batch.width else np.empty(0) for batch in sides] for code in self.codes.keys]
        lines = [
            None if line is None else readable_line(values) for line, values in zip(self.lines, columns, strict=True)
        ]
        return ValueView(self.codes, tuple(lines))

    @property
    def number_lines(self) -> tuple[Line | None, ...]:
        """One for each structure with a number."""
        return self.lines

    @property
    def groups(self) -> Groups:
        """Group the cells by structure."""
        widths = [*(1 if line is None else line.cells for line in self.lines), 1]
        return Groups(np.repeat(np.arange(len(widths)), widths))

    def axis(self, cells: Mask) -> Axis | None:
        """Return the number itself, if there is one structure and it has a number."""
        if len(self.lines) > 1 or (line := self.lines[0]) is None:
            return None
        return Axis(Coordinate(0), _spans(line, cells[: line.cells]))


@dataclass(frozen=True, slots=True)
class RecordView(BaseView):
    """Whole outputs that repeat exactly. With ``floats`` the keys are the values of single numbers themselves."""

    table: KeyTable
    texts: Mapping[Any, str]
    floats: bool
    name: str = "record"
    ordered: bool = False

    @property
    def cells(self) -> int:
        """One per known output, and one for all others."""
        return self.table.cells

    def _sorted(self, block: Block) -> SortedSample:
        return block.ascending if self.floats else block.keys

    def count(self, block: Block) -> Counts:
        """Count known outputs."""
        if not self.table.keys.size:
            return np.array([len(block.batch)])
        return self.table.count(self._sorted(block))

    def unknown(self, block: Block) -> list[tuple[Any, int, str]]:
        """Return repeated outputs of the block that have no cell yet: (key, count, text)."""
        free = MOST_RECORDS - int(self.table.keys.size)
        if free <= 0:
            return []
        keys, lengths = self.table.unknown(self._sorted(block), min(free, NEW_KEYS_PER_BLOCK))
        if not keys.size:
            return []
        if self.floats:
            return [(float(k), int(n), f"output == {float(k)!r}") for k, n in zip(keys, lengths, strict=True)]
        batch = block.batch if block.distinct is None else block.distinct.batch
        unsorted = record_keys(batch)
        first = {int(key): int(np.flatnonzero(unsorted == key)[0]) for key in keys}
        return [
            (int(k), int(n), f"output == {text_of(batch, first[int(k)])}") for k, n in zip(keys, lengths, strict=True)
        ]

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each output."""
        if self.floats:
            keys: NDArray[Any] = batch.values[:, 0] if batch.width else np.full(len(batch), np.nan)
        else:
            keys = record_keys(batch)
        place = np.searchsorted(self.table.keys, keys)
        inside = np.minimum(place, self.table.keys.size - 1)
        known = self.table.keys[inside] == keys if self.table.keys.size else np.zeros(len(batch), bool)
        return np.where(known, place, self.table.keys.size)

    def condition(self, cells: Mask, labels: Mapping[int, str]) -> AnyOf:
        """List the outputs, or their complement where everything else is in the event."""
        del labels
        negated = bool(cells[-1])
        keys = self.table.keys[cells[:-1] != negated].tolist()
        if self.floats:
            return AnyOf((Values(Coordinate(0), tuple(keys)),), negated)
        return AnyOf((Records(tuple(keys), tuple(self.texts.get(key, "") for key in keys)),), negated)

    def axis(self, cells: Mask) -> Axis | None:
        """Return the number itself, if the event is a list of numbers."""
        if not self.floats or cells[-1]:
            return None
        return Axis(Coordinate(0), tuple((float(key), float(key)) for key in self.table.keys[cells[:-1]]))

    def category(self, group: Mask, chosen: Mask, names: Names, labels: Mapping[int, str]) -> str:
        """Name the output."""
        return "any other output" if group[-1] else super(RecordView, self).category(group, chosen, names, labels)


@dataclass(frozen=True, slots=True)
class ShapeView(BaseView):
    """Structure alone."""

    table: KeyTable
    name: str = "shape"
    ordered: bool = False

    @property
    def cells(self) -> int:
        """One per known structure, and one for all others."""
        return self.table.cells

    def count(self, block: Block) -> Counts:
        """Count structures."""
        return self.table.count(block.codes)

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each output."""
        place = np.searchsorted(self.table.keys, batch.codes)
        return np.where(np.isin(batch.codes, self.table.keys), place, self.table.keys.size)

    def condition(self, cells: Mask, labels: Mapping[int, str]) -> AnyOf:
        """List the structures."""
        known = [Structure(code, label_of(code, labels)) for code in self.table.keys[cells[:-1]].tolist()]
        return AnyOf((*known, *_unknown(self.table, cells)))


@dataclass(frozen=True, slots=True)
class ScoreView(BaseView):
    """A learned number per output."""

    name: str
    score: Quantity
    line: Line
    ordered: bool = True
    studies: bool = False  # also counts what a later score is fitted on

    @property
    def cells(self) -> int:
        """The cells of the score."""
        return self.line.cells

    def count(self, block: Block) -> Counts:
        """Score and count."""
        if block.distinct is not None:
            return self.line.count(SortedSample.counted(self.score(block.distinct.batch), block.distinct.counts))
        if isinstance(self.score, NaiveBayes | LinearScore) and self.score.exact and block.groups is not None:
            return self.line.tally(sum_tables(self.score, block.batch, block.groups))
        return self.line.tally(self.score(block.batch))

    def study(self, block: Block) -> Counts:
        """Count, and append the counts from which a later score is fitted."""
        if not (self.studies and isinstance(self.score, NaiveBayes)):
            return self.count(block)
        if block.distinct is not None:
            _, statistics = self.score.study(block.distinct.batch, block.distinct.counts)
        elif block.groups is not None:
            statistics = study_tables(self.score, block.batch, block.groups)
        else:
            values, statistics = self.score.study(block.batch)
            return np.concatenate([self.line.tally(values), statistics])
        return np.concatenate([self.count(block), statistics])

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each output."""
        values = self.score(batch)
        place = np.searchsorted(self.line.cuts, values, side="right")
        return np.where(np.isnan(values), self.line.cells - 1, place)

    def condition(self, cells: Mask, labels: Mapping[int, str]) -> AnyOf:
        """Return intervals of the score."""
        del labels
        return AnyOf((Number(self.score, self.line.intervals(cells), bool(cells[-1]), self._label),))

    @property
    def _label(self) -> str:
        return self.score.describe() if isinstance(self.score, Coordinate | Feature) else "score"

    @property
    def needs_features(self) -> bool:
        """True for a feature, and for a score of features."""
        return isinstance(self.score, Feature | FeatureScore)

    def readable(self, sides: tuple[Encoded, Encoded]) -> ScoreView:
        """Cut the score anew."""
        return ScoreView(self.name, self.score, readable_line([self.score(batch) for batch in sides]))

    @property
    def reading_cost(self) -> int:
        """A learned score is hard to read."""
        if isinstance(self.score, Feature):
            return 2 if self.score.hard_to_read else 1
        return 21 if self._label == "score" else 1

    @property
    def number_lines(self) -> tuple[Line | None, ...]:
        """The line of the score."""
        return (self.line,)

    @property
    def groups(self) -> Groups:
        """All cells together."""
        return Groups(np.zeros(self.cells, np.intp))

    def axis(self, cells: Mask) -> Axis | None:
        """Return the score."""
        return Axis(self.score, _spans(self.line, cells), self._label)


def label_of(code: int, labels: Mapping[int, str]) -> str:
    """Return a structure as readable text."""
    return plain(labels.get(code, f"structure {code:016x}"))


def _unknown(table: KeyTable, cells: Mask) -> tuple[OtherStructure, ...]:
    """Return the condition of the last cell of a table of structures, if it is selected."""
    return (OtherStructure(tuple(table.keys.tolist())),) if cells[-1] else ()


def _spans(line: Line, cells: Mask) -> tuple[tuple[float, float], ...]:
    """Return the selected cells as (low, high), for a picture, in which infinities have no place of their own."""
    spans = [
        (-np.inf if low == LOWEST else low, np.inf if high is None else high)
        for low, high in ((interval.low, interval.high) for interval in line.intervals(cells))
    ]
    return tuple((low, high) for low, high in spans if low < high)


def text_of(batch: Encoded, row: int) -> str:
    """Return one output as text: its structure with the numbers filled in."""
    label = batch.labels.get(int(batch.codes[row]), "?")
    return fill(label, batch.values[row].tolist())
