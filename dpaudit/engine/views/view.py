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

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded, record_keys
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.encoding.structure import fill, plain
from dpaudit.engine.views import small_integers
from dpaudit.engine.views.partition import KeyTable, Line
from dpaudit.engine.views.scores import Linear, NaiveBayes, Score, study_tables, sum_tables

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

    def describe(self, cells: Mask, labels: Mapping[int, str]) -> str:
        """Describe the union of the selected cells for a person."""


@dataclass(frozen=True, slots=True)
class ValueView:
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

    def describe(self, cells: Mask, labels: Mapping[int, str]) -> str:
        """Name structures only where there are several."""
        several = len(self.lines) > 1
        parts: list[str] = []
        offset = 0
        for code, line in zip(self.codes.keys, self.lines, strict=True):
            label = plain(labels.get(int(code), f"structure {int(code):016x}"))
            width = 1 if line is None else line.cells
            chosen = cells[offset : offset + width]
            offset += width
            if line is None:
                parts.extend([says(label)] if chosen[0] else [])
            elif chosen.all() or (several and chosen[:-1].all()):
                parts.append(f"output is {label}")
            else:
                parts.extend(line.describe(chosen) if not several else line.describe(chosen, f"{label} output"))
        if cells[-1]:
            parts.append("output has a structure not seen while learning")
        return " or ".join(parts) if parts else "no output"


@dataclass(frozen=True, slots=True)
class RecordView:
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

    def describe(self, cells: Mask, labels: Mapping[int, str]) -> str:
        """List the outputs, or their complement where that is shorter."""
        del labels
        wanted = not cells[-1]
        keys = self.table.keys[cells[:-1] == wanted]
        texts = [self.texts.get(key.item(), f"record {key!r}") for key in keys]
        shown = " or ".join(texts[:8]) + (f" or {len(texts) - 8} more exact outputs" if len(texts) > 8 else "")
        return shown if wanted else f"not ({shown})"


@dataclass(frozen=True, slots=True)
class ShapeView:
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

    def describe(self, cells: Mask, labels: Mapping[int, str]) -> str:
        """List the structures."""
        parts = [says(labels.get(int(code), "?")) for code in self.table.keys[cells[:-1]]]
        if cells[-1]:
            parts.append("output has a structure not seen while learning")
        return " or ".join(parts)


@dataclass(frozen=True, slots=True)
class ScoreView:
    """A learned number per output."""

    name: str
    score: Score
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
        if isinstance(self.score, NaiveBayes | Linear) and self.score.exact and block.groups is not None:
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

    def describe(self, cells: Mask, labels: Mapping[int, str]) -> str:
        """Conditions on the score."""
        del labels
        name = self.score.describe()
        simple = name if name.startswith("output[") else "score"
        text = " or ".join(self.line.describe(cells, simple))
        return text if simple == name else f"{text}, where score = {name}"


def says(label: str) -> str:
    """Return a structure as a sentence: exceptions as ``raises ...``, the rest as ``output is ...``."""
    return label if label.startswith("raises ") else f"output is {plain(label)}"


def text_of(batch: Encoded, row: int) -> str:
    """Return one output as text: its structure with the numbers filled in."""
    label = batch.labels.get(int(batch.codes[row]), "?")
    return fill(label, batch.values[row].tolist())
