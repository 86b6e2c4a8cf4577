"""Views: ways of cutting outputs into cells. Each is fixed before the outputs it counts are drawn.

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

from dpaudit.engine import digits
from dpaudit.engine.outputs import Encoded, record_keys
from dpaudit.engine.partition import Ascending, Line, Table
from dpaudit.engine.scores import Linear, NaiveBayes, Score, study_tables, sum_tables
from dpaudit.engine.structures import fill, plain

Counts: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

MOST_RECORDS = 1024  # exact outputs with a cell of their own,
NEW_KEYS_PER_BLOCK = 64  # of which so many come from one block
NOTHING = Ascending(np.empty(0))


class Block:
    """One batch of outputs with what several views need of it, computed once."""

    def __init__(self, batch: Encoded) -> None:
        self.batch = batch

    @cached_property
    def ascending(self) -> Ascending:
        """The single number of each output, sorted. NaN where there is none."""
        if self.batch.width == 0:
            return Ascending(np.full(len(self.batch), np.nan))
        return self.batch.counted or Ascending(np.sort(self.batch.values[:, 0]))

    def tally(self, line: Line) -> Counts:
        """Count the single numbers in the cells of a line, by a histogram unless they have been sorted or counted anyway."""
        if (
            line.raster is None
            or "ascending" in self.__dict__
            or self.batch.counted is not None
            or not self.batch.width
        ):
            return line.count(self.ascending)
        return line.tally(self.batch.values[:, 0])

    @cached_property
    def codes(self) -> Ascending:
        """Structures, sorted."""
        return self.batch.structures

    @cached_property
    def keys(self) -> Ascending:
        """Keys of whole outputs, sorted."""
        if not self.batch.width:
            return self.codes
        if self.distinct is not None:
            return Ascending.counted(record_keys(self.distinct.batch), self.distinct.counts)
        if self.groups is None:
            return Ascending(np.sort(record_keys(self.batch)))
        first = self.groups[0]
        begun = record_keys(first.patterns.batch).take(first.number)
        return Ascending(np.sort(record_keys(self.batch, begun, len(first.columns))))

    @cached_property
    def distinct(self) -> digits.Distinct | None:
        """The different outputs and how often each occurs, where there can only be few."""
        return digits.distinct(self.batch)

    @cached_property
    def groups(self) -> tuple[digits.Group, ...] | None:
        """The coordinates in groups that can only be few things each, where there are such."""
        return digits.groups(self.batch)


class View(Protocol):
    """A partition of all possible outputs into cells."""

    @property
    def name(self) -> str:
        """Which view it is; evidence is kept under this name across rounds."""

    @property
    def ordered(self) -> bool:
        """Whether neighbouring cells are neighbours in value."""

    @property
    def cells(self) -> int:
        """Number of cells."""

    def count(self, block: Block) -> Counts:
        """How many outputs of the block fall in each cell."""

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """The cell of each output."""

    def describe(self, cells: Mask, labels: Mapping[int, str]) -> str:
        """The union of the selected cells, for a person."""


@dataclass(frozen=True, slots=True)
class ValueView:
    """Outputs with at most one number: by structure, then by value."""

    codes: Table
    lines: tuple[Line | None, ...]  # None: that structure holds no number
    name: str = "value"
    ordered: bool = True

    @property
    def cells(self) -> int:
        """One cell for unknown structures, and those of every known one."""
        return sum(1 if line is None else line.cells for line in self.lines) + 1

    def count(self, block: Block) -> Counts:
        """Count by structure; one structure, the usual case, needs a single sort."""
        batch = block.batch
        if len(self.lines) == 1 and self.lines[0] is not None and batch.is_all(self.codes.keys[0]):
            counts = np.zeros(self.cells, np.int64)
            counts[:-1] = block.tally(self.lines[0])
            return counts
        parts: list[Counts] = []
        known = 0
        if not batch.width:
            counts = self.codes.count(block.codes)
            if not any(self.lines):
                return counts
            known = len(batch) - int(counts[-1])
            for count, line in zip(counts[:-1], self.lines, strict=True):
                parts.append(np.array([count]) if line is None else line.count(Ascending(np.full(count, np.nan))))
        elif batch.uniform and len(batch):
            for code, line in zip(self.codes.keys, self.lines, strict=True):
                inside = batch.codes[0] == code
                known += len(batch) if inside else 0
                if line is None:
                    parts.append(np.array([len(batch) if inside else 0]))
                else:
                    parts.append(block.tally(line) if inside else line.count(NOTHING))
        else:
            column = batch.values[:, 0]
            for code, line in zip(self.codes.keys, self.lines, strict=True):
                chosen = column[batch.codes == code]
                known += chosen.size
                parts.append(np.array([chosen.size]) if line is None else line.tally(chosen))
        return np.concatenate([*parts, [len(batch) - known]]).astype(np.int64)

    def tells_apart(self, counts: Counts) -> bool:
        """Whether outputs with these counts all lie in cells that hold one output each."""
        exact = [np.ones(1, np.bool_) if line is None else line.exact for line in self.lines]
        return not counts[~np.concatenate([*exact, [False]])].any()

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """The cell of each output."""
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

    table: Table
    texts: Mapping[Any, str]
    floats: bool
    name: str = "record"
    ordered: bool = False

    @property
    def cells(self) -> int:
        """One per known output, and one for all others."""
        return self.table.cells

    def _sorted(self, block: Block) -> Ascending:
        return block.ascending if self.floats else block.keys

    def count(self, block: Block) -> Counts:
        """Count known outputs."""
        if not self.table.keys.size:
            return np.array([len(block.batch)])
        return self.table.count(self._sorted(block))

    def unknown(self, block: Block) -> list[tuple[Any, int, str]]:
        """Repeated outputs of the block that have no cell yet and may get one: (key, count, text)."""
        room = MOST_RECORDS - int(self.table.keys.size)
        if room <= 0:
            return []
        keys, lengths = self.table.unknown(self._sorted(block), min(room, NEW_KEYS_PER_BLOCK))
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
        """The cell of each output."""
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

    table: Table
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
        """The cell of each output."""
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
    studies: bool = False  # counts what a later score can be fitted on

    @property
    def cells(self) -> int:
        """The cells of the score."""
        return self.line.cells

    def count(self, block: Block) -> Counts:
        """Score and count."""
        if block.distinct is not None:
            return self.line.count(Ascending.counted(self.score(block.distinct.batch), block.distinct.counts))
        if isinstance(self.score, NaiveBayes | Linear) and self.score.exact and block.groups is not None:
            return self.line.tally(sum_tables(self.score, block.batch, block.groups))
        return self.line.tally(self.score(block.batch))

    def study(self, block: Block) -> Counts:
        """Count, and append the counts from which a later score can be fitted."""
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
        """The cell of each output."""
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
    """A structure as a sentence: exceptions read as ``raises ...``, the rest as ``output is ...``."""
    return label if label.startswith("raises ") else f"output is {plain(label)}"


def text_of(batch: Encoded, row: int) -> str:
    """One output as text: its structure with the numbers filled in."""
    label = batch.labels.get(int(batch.codes[row]), "?")
    return fill(label, batch.values[row].tolist())
