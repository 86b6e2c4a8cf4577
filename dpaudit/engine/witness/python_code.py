"""Events as Python: an expression in ``output`` that a script can evaluate, one output at a time.

It may use ``number``, ``numbers``, ``structure``, ``code`` and ``record`` of ``dpaudit.engine.encoding.batch``. Where words would
be ambiguous or too long, a structure is told by its code and an output by its record, which are digests.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import digest, encode, record_keys
from dpaudit.engine.encoding.single_output import read
from dpaudit.engine.encoding.structure import CUT, placeholder, plain
from dpaudit.engine.views.float_bits import BitsView
from dpaudit.engine.views.partition import Line
from dpaudit.engine.views.scores import BINS, Coordinate, Linear, Lookup, NaiveBayes
from dpaudit.engine.views.view import RecordView, ScoreView, ShapeView, ValueView, View

Mask: TypeAlias = NDArray[np.bool_]
Labels: TypeAlias = Mapping[int, str]

MOST_SPELLED = 64  # outputs; longer lists are lists of records
NUMBERS = ("number", "bool")
_INFINITY = re.compile(r"(?<![\w.])(-?)inf(?!\w)")


def expression(view: View, cells: Mask, labels: Labels) -> tuple[str, str]:
    """Definitions, and an expression that is true for outputs in the cells; both empty where there is none."""
    names = _names(labels)
    match view:
        case ValueView():
            return "", _of_values(view, cells, names)
        case ShapeView():
            known = [_has_structure(code, names) for code in view.table.keys[cells[:-1]]]
            return "", _any(known + _is_unknown(view.table.keys, cells))
        case RecordView(floats=True):
            chosen = view.table.keys[cells[:-1] == (not cells[-1])].tolist()
            return "", f"{_single_number(names)} {'not in' if cells[-1] else 'in'} {chosen!r}"
        case RecordView():
            return "", _of_records(view, cells, several=len(labels) > 1)
        case ScoreView(score=Coordinate() as column):
            return "", _of_line(view.line, cells, f"number(output, {column.index})")
        case ScoreView(score=Linear() as linear):
            return _linear(linear), _of_line(view.line, cells, "score(output)")
        case ScoreView(score=NaiveBayes() as bayes):
            return _naive_bayes(bayes), _of_line(view.line, cells, "score(output)")
        case BitsView():
            return _bits(view, cells), f"has_bits(number(output, {view.column}))"
    return "", ""


def _any(parts: Sequence[str]) -> str:
    return " or ".join(parts) or "False"


def _names(labels: Labels) -> Labels:
    """What structures are called; nothing where that is cut, or would be the name of several."""
    texts = {code: plain(label) for code, label in labels.items()}
    uses = Counter(texts.values())
    return {code: text if uses[text] == 1 and CUT not in labels[code] else "" for code, text in texts.items()}


def _has_structure(code: Any, names: Labels) -> str:
    name = names.get(int(code))
    return f"structure(output) == {name!r}" if name else f"code(output) == '{code:016x}'"


def _is_unknown(codes: NDArray[Any], cells: Mask) -> list[str]:
    return [f"code(output) not in {[f'{code:016x}' for code in codes]!r}"] if cells[-1] else []


def _single_number(names: Labels) -> str:
    """What to compare where there is one number: the output itself if it is nothing else."""
    return "output" if set(names.values()) <= set(NUMBERS) else "number(output, 0)"


def _of_values(view: ValueView, cells: Mask, names: Labels) -> str:
    parts: list[str] = []
    offset = 0
    for code, line in zip(view.codes.keys, view.lines, strict=True):
        width = 1 if line is None else line.cells
        chosen = cells[offset : offset + width]
        offset += width
        if not chosen.any():
            continue
        if line is None or chosen.all():
            parts.append(_has_structure(code, names))
        elif len(view.lines) == 1:
            # A masked number is not unequal to itself.
            parts.append(_of_line(line, chosen, "number(output, 0)" if chosen[-1] else _single_number(names)))
        else:
            parts.append(f"{_has_structure(code, names)} and ({_of_line(line, chosen, 'number(output, 0)')})")
    return _any(parts + _is_unknown(view.codes.keys, cells))


def _of_line(line: Line, cells: Mask, name: str) -> str:
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
    return _any(parts)


def _of_records(view: RecordView, cells: Mask, *, several: bool) -> str:
    parts, digests = [], []
    keys = view.table.keys[cells[:-1] == (not cells[-1])].tolist()
    for key in keys:
        part = _is_record(view.texts.get(key, ""), key, several=several) if len(keys) <= MOST_SPELLED else ""
        if part:
            parts.append(part)
        else:
            digests.append(f"{key:016x}")
    joined = _any([*parts, f"record(output) in {digests!r}"] if digests else parts)
    return f"not ({joined})" if cells[-1] else joined


def _is_record(text: str, key: int, *, several: bool) -> str:
    """That the output is the one with this key, where it can be written down; ``several`` structures were seen."""
    found = _literal(text, key)
    if found is None:
        return ""
    text, name, leaves = found
    if not several:
        return f"output == {text}" if name in NUMBERS else f"numbers(output) == {leaves!r}"
    structure = f"structure(output) == {name!r}"
    return f"{structure} and numbers(output) == {leaves!r}" if leaves else structure


def _literal(text: str, key: int) -> tuple[str, str, list[float]] | None:
    """Literal, structure and numbers of an output known by its text; the key tells whether they are right."""
    text = text.removeprefix("output == ")
    try:
        value = ast.literal_eval(text.removeprefix("array(").removesuffix(")") if text.startswith("array(") else text)
        for candidate in (value, np.array(value)):
            label, leaves = read(candidate)
            if int(record_keys(encode([candidate]))[0]) == key and all(map(math.isfinite, leaves)):
                return text, plain(label), leaves
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    return None


def told_apart(view: RecordView, labels: Labels) -> RecordView:
    """The same view with texts that say which type a number has, where numbers came in several."""
    if sum(digest(placeholder(kind)) in labels for kind in NUMBERS) < 2:
        return view
    found = {key: _literal(text, key) for key, text in view.texts.items()}
    kinds = {key: f" ({literal[1]})" for key, literal in found.items() if literal is not None and literal[1] in NUMBERS}
    return replace(view, texts={key: text + kinds.get(key, "") for key, text in view.texts.items()})


def _linear(score: Linear) -> str:
    """As the engine scores, in the same order, so that sums agree to the last bit."""
    weights = dict(zip(score.index, score.weights.tolist(), strict=True))
    return "\n".join(
        [
            f"WEIGHTS = {weights!r}",
            "",
            "",
            "def score(output):",
            "    values = [min(max(x, -1e150), 1e150) if x == x else 0.0 for x in numbers(output)]",
            f"    total = {-score.offset!r}",
            "    for place, weight in WEIGHTS.items():",
            "        total += values[place] * weight if place < len(values) else 0.0",
            "    return total",
            "",
        ]
    )


def _naive_bayes(score: NaiveBayes) -> str:
    tables = {place: _steps(lookup) for place, lookup in zip(score.index, score.columns, strict=True)}
    *ratios, other = score.code_ratio.tolist()
    codes = dict(zip([f"{code:016x}" for code in score.codes.keys], ratios, strict=True))
    difference = "    values = [b - a for a, b in zip([0.0, *values], values)]"
    return "\n".join(
        [
            "import bisect",
            "",
            "# By coordinate: where bins begin and how many there are to a unit, the bins at which heights change, the heights,",
            "# heights of exact values, and of NaN.",
            f"TABLES = {tables!r}",
            f"STRUCTURES = {codes!r}",
            "",
            "",
            "def score(output):",
            "    values = numbers(output)",
            *([difference] if score.differences else []),
            f"    total = STRUCTURES.get(code(output), {other!r})",
            "    for place, (low, per_unit, changes, heights, exact, at_nan) in TABLES.items():",
            "        x = values[place] if place < len(values) else float('nan')",
            f"        bin = 0 if x != x else int(min(max((x - low) * per_unit, 0.0), {BINS - 1}))",
            "        total += at_nan if x != x else exact.get(x, heights[bisect.bisect_right(changes, bin)])",
            "    return total",
            "",
        ]
    )


def _steps(lookup: Lookup) -> tuple[float, float, list[int], list[float], dict[float, float], float]:
    """A lookup with equal neighbours joined."""
    table = lookup.heights[:BINS]
    changes = np.flatnonzero(np.diff(table)) + 1
    heights = table[np.concatenate(([0], changes))]
    exact = dict(zip(lookup.atoms, lookup.heights[BINS:].tolist(), strict=False))
    return lookup.low, lookup.inverse_width, changes.tolist(), heights.tolist(), exact, lookup.at_nan


def _bits(view: BitsView, cells: Mask) -> str:
    grid = cells.reshape(view.bits.cells, view.cuts.size + 1)
    table = [(view.bits.keys[column[:-1] != column[-1]].tolist(), bool(column[-1])) for column in grid.T]
    return "\n".join(
        [
            "import bisect",
            "",
            "from dpaudit.engine.views.float_bits import lowest_bit",
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
