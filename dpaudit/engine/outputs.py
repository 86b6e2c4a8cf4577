"""Anything a mechanism returns, as something events can be learned on.

An output is split into its *structure* (type, length, keys, strings, None, exceptions: all that is not a number),
kept as a stable 64-bit code with a readable label, and its *numbers*, kept as a row of floats. Numpy arrays are never
walked in Python.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import itertools
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.partition import Ascending
from dpaudit.mechanism import Raised

Codes: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]

EXACT_INTEGER = 2**53  # beyond it a float cannot tell neighbouring integers apart
LABEL_LENGTH = 1000
CUT = "..."
OPEN, CLOSE = "\x01", "\x02"  # around the place of a number in a structure


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch of outputs: a structure code each, and their numbers (absent ones are NaN; the code tells them apart)."""

    codes: Codes
    values: Floats
    labels: Mapping[int, str]
    counted: Ascending | None = None  # the numbers, or where there are none the codes, if encoding counted them

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def head(self, count: int) -> Encoded:
        """The first ``count`` outputs, copied so that the rest can be freed."""
        return Encoded(self.codes[:count].copy(), self.values[:count].copy(order="K"), self.labels)

    def rows(self, index: Any) -> Encoded:
        """A selection of the outputs."""
        return Encoded(self.codes[index], self.values[index], self.labels)

    @property
    def uniform(self) -> bool:
        """Whether all outputs have one structure."""
        return self.codes.strides == (0,) or bool((self.codes == self.codes[:1]).all())

    def is_all(self, code: np.uint64) -> bool:
        """Whether the batch is known, without looking at each output, to have this structure alone."""
        return self.codes.strides == (0,) and len(self) > 0 and bool(self.codes[0] == code)

    @property
    def structures(self) -> Ascending:
        """The codes, sorted."""
        if self.counted is not None and not self.values.shape[1]:
            return self.counted
        if self.codes.strides == (0,) and len(self):
            return Ascending(self.codes[:1], np.array([len(self)]))
        return Ascending(np.sort(self.codes))


def stack(batches: Sequence[Encoded], *, width: int = 0) -> Encoded:
    """Join batches, widening the narrower ones to the widest (and to ``width`` at least)."""
    width = max([width, *(batch.values.shape[1] for batch in batches)])
    if len(batches) == 1 and batches[0].values.shape[1] == width:
        return batches[0]
    labels: dict[int, str] = {}
    for batch in batches:
        labels.update(batch.labels)
    return Encoded(
        np.concatenate([batch.codes for batch in batches]),
        np.concatenate([_widened(batch.values, width) for batch in batches]),
        labels,
    )


def encode(outputs: NDArray[Any] | Sequence[Any]) -> Encoded:
    """Encode a batch of outputs.

    >>> batch = encode([1.5, None, float("nan")])
    >>> batch.values[:, 0].tolist(), [plain(batch.labels[int(code)]) for code in batch.codes]
    ([1.5, nan, nan], ['float', 'None', 'float'])
    """
    outputs = unwrapped(outputs)
    if isinstance(outputs, np.ndarray):
        numbers = _numeric(outputs)
        if numbers is not None:
            return _uniform(_array_label(outputs.dtype, outputs.shape[1:]), numbers, _counted(outputs))
        words = _words(outputs)
        if words is not None:
            return words
        outputs = outputs.tolist() if outputs.ndim == 1 and outputs.dtype.kind == "O" else list(outputs)
    kinds = set(map(type, outputs))
    if len(kinds) == 1:
        fast = _homogeneous(outputs, kinds.pop())
        if fast is not None:
            return fast
    return _walk_all(outputs)


def unwrapped(outputs: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | Sequence[Any]:
    """Containers of outputs as a plain array or list: data frames by row, records as tuples, what is masked as missing."""
    if type(outputs) is np.ndarray and outputs.dtype.names is None:
        return outputs
    if hasattr(outputs, "to_numpy"):
        return np.asarray(outputs.to_numpy())
    if isinstance(outputs, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(outputs)
        floats = outputs.dtype.kind in "fbiu"
        plain_array = np.array(outputs.data, dtype=np.float64 if floats else object)
        plain_array[missing] = np.nan if floats else None  # not released, whatever lies beneath
        return plain_array
    if isinstance(outputs, np.ndarray) and outputs.dtype.names is not None:
        return [tuple(row) for row in outputs.tolist()]
    return outputs


def _words(array: NDArray[Any]) -> Encoded | None:
    """Arrays of strings, without a walk per output: every distinct row is looked at once."""
    flat = array.reshape(array.shape[0], -1)
    if array.dtype.kind not in "US" or not flat.size:
        return None
    place, first = _alike(flat)
    labels = [_walk(array[index], [], 0) for index in first]
    codes = np.array([digest(label) for label in labels], dtype=np.uint64)
    named = {int(code): _shortened(label) for code, label in zip(codes, labels, strict=True)}
    counts = np.bincount(place, minlength=codes.size)
    return Encoded(codes[place], np.empty((len(flat), 0)), named, Ascending.counted(codes, counts))


def _counted(array: NDArray[Any]) -> Ascending | None:
    """Integers of a small range, counted without a sort."""
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        return None
    low, high = int(array.min()), int(array.max())
    if high - low >= SLOTS:
        return None
    integers = array.astype(np.intp, copy=False)
    shift = low if low < 0 or high >= SLOTS else 0
    counts = np.bincount(integers - shift if shift else integers)
    values = np.flatnonzero(counts)
    return Ascending((values + shift).astype(np.float64), np.cumsum(counts[values]))


def _alike(words: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the distinct rows of words: the number of each row, and one row for each number."""
    words = np.ascontiguousarray(words)
    keys = _row_keys(words.view(np.uint8).reshape(len(words), -1))
    # Few words differ in some bits of their keys, so that a table finds them without sorting.
    for shift in (52, 40, 28) if len(words) >= WORTH_A_TABLE else ():
        slot = (keys >> np.uint64(shift)).astype(np.intp)
        if shift < 52:
            slot &= SLOTS - 1
        row = np.full(SLOTS, -1)
        row[slot] = np.arange(len(words))
        if (keys == np.take(keys[row], slot)).all():
            used = row >= 0
            return np.take(np.cumsum(used) - 1, slot), row[used]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return place.reshape(-1), first


def _row_keys(rows: NDArray[np.uint8]) -> Codes:
    """A 64-bit key of each row of bytes: a polynomial in its words of eight bytes, mixed at the end."""
    count, width = rows.shape
    if width < 8:
        rows = np.concatenate([rows, np.zeros((count, 8 - width), np.uint8)], axis=1)
        width = 8
    keys = np.zeros(count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for start in range(0, width, 8):
            keys *= _ODD
            # The last word begins early, so that it ends with the row.
            keys += np.ndarray((count,), np.uint64, rows, min(start, width - 8), (width,))
        keys ^= keys >> np.uint64(32)
        keys *= _ODD
        keys ^= keys >> np.uint64(29)
    return keys


def _shortened(label: str) -> str:
    return label if len(label) <= LABEL_LENGTH else label[:LABEL_LENGTH] + CUT


def _homogeneous(outputs: Sequence[Any], kind: type) -> Encoded | None:
    """Lists of plain numbers, of equal arrays, or of equal-length tuples of floats, without a walk per output."""
    if kind in (float, bool):
        return _uniform(_placeholder(kind.__name__), np.array(outputs, dtype=np.float64)[:, None])
    if kind is int:
        try:
            integers = _numeric(np.array(outputs, dtype=np.int64))
        except OverflowError:
            return None
        return None if integers is None else _uniform(_placeholder("int"), integers)
    if kind is str:
        labels = {word: repr(word) for word in set(outputs)}
        codes = {word: digest(label) for word, label in labels.items()}
        named = {codes[word]: _shortened(label) for word, label in labels.items()}
        each = np.fromiter(map(codes.__getitem__, outputs), np.uint64, len(outputs))
        return Encoded(each, np.empty((len(outputs), 0)), named)
    if kind is np.ndarray or issubclass(kind, np.number | np.bool_):
        if len({(item.shape, item.dtype) for item in outputs}) != 1:
            return None
        joined = np.stack(list(outputs))
        numbers = _numeric(joined)
        return None if numbers is None else _uniform(_array_label(joined.dtype, joined.shape[1:]), numbers)
    if kind in (tuple, list) and outputs[0]:
        if len(set(map(len, outputs))) != 1 or set(map(type, itertools.chain.from_iterable(outputs))) != {float}:
            return None
        leaves = ", ".join([_placeholder("float")] * len(outputs[0]))
        label = f"({leaves})" if kind is tuple else f"[{leaves}]"
        return _uniform(label, np.array(outputs, dtype=np.float64, order="F"))
    return None


def _numeric(array: NDArray[Any]) -> Floats | None:
    """Rows of floats for a numeric array, or None where floats would lose something. Columns are contiguous."""
    rows = array.reshape(array.shape[0], -1) if array.ndim != 1 else array[:, None]
    if array.dtype.kind in "fb":
        return np.asfortranarray(rows, dtype=np.float64) if array.dtype.itemsize <= 8 else None
    if array.dtype.kind in "iu":
        wide = array.dtype.itemsize == 8 and rows.size and max(abs(int(rows.max())), abs(int(rows.min())))
        return None if wide and wide > EXACT_INTEGER else rows.astype(np.float64, order="F")
    if array.dtype.kind == "c" and array.dtype.itemsize <= 16:
        return np.ascontiguousarray(np.concatenate([rows.real, rows.imag], axis=1), dtype=np.float64)
    if array.dtype.kind in "mM":
        # A missing time is a missing number; the unit is in the label.
        whole = np.where(np.isnat(rows), 0, rows.astype(np.int64))
        numbers = _numeric(whole)
        return None if numbers is None else np.where(np.isnat(rows), np.nan, numbers)
    return None


def _array_label(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """Structure of one output out of an array.

    The kind of number is left out: a batch with a NaN is an array of floats where one without is an array of integers, so
    the dtype says something about the other outputs of the batch, not about this one.
    """
    if dtype.kind == "c":
        number = _placeholder("complex")
    elif dtype.kind in "mM":
        number = _placeholder(dtype.name)
    else:
        number = _placeholder("number")
    return number if shape == () else f"array of {number} with shape {shape}"


def _placeholder(kind: str) -> str:
    """Where a number stands in a structure. The marks keep it apart from text that happens to read the same."""
    return f"{OPEN}{kind}{CLOSE}"


def plain(label: str) -> str:
    """A structure for a person.

    >>> plain(structure_label([1.5, "float"]))
    "[float, 'float']"
    """
    return label.replace(OPEN, "").replace(CLOSE, "")


def _uniform(label: str, values: Floats, counted: Ascending | None = None) -> Encoded:
    code = digest(label)
    # One stored code, seen as many (what numpy.broadcast_to makes, at a fifth of its cost).
    codes = np.ndarray((values.shape[0],), np.uint64, np.array([code], np.uint64), 0, (0,))
    return Encoded(codes, values, {code: label}, counted)


def _walk_all(outputs: Sequence[Any]) -> Encoded:
    codes = np.empty(len(outputs), dtype=np.uint64)
    rows: list[list[float]] = []
    labels: dict[int, str] = {}
    known: dict[str, int] = {}
    for index, output in enumerate(outputs):
        leaves: list[float] = []
        label = _walk(output, leaves, 0)
        code = known.get(label)
        if code is None:
            code = known[label] = digest(label)
            labels[code] = _shortened(label)
        codes[index] = code
        rows.append(leaves)
    width = max(map(len, rows), default=0)
    values = np.full((len(outputs), width), np.nan, order="F")
    for index, leaves in enumerate(rows):
        values[index, : len(leaves)] = leaves
    return Encoded(codes, values, labels)


def _walk(output: Any, leaves: list[float], depth: int) -> str:
    """Append the numbers of ``output`` to ``leaves`` and return the text of everything else."""
    if output is None:
        return "None"
    if isinstance(output, Raised):
        return _printable(str(output))
    if isinstance(output, enum.Enum):
        return str(output)
    if isinstance(output, np.generic | np.ndarray) and not isinstance(output, np.str_ | np.bytes_):
        return _walk_array(np.asarray(output), leaves, depth)
    if isinstance(output, bool | float | int):
        if isinstance(output, int) and abs(output) > EXACT_INTEGER:
            return f"int {output}"
        leaves.append(float(output))
        kind = "bool" if isinstance(output, bool) else "int" if isinstance(output, int) else "float"
        return _placeholder(kind)
    if isinstance(output, complex):
        leaves.extend((output.real, output.imag))
        return _placeholder("complex")
    if isinstance(output, str | bytes):
        return repr(str(output) if isinstance(output, str) else bytes(output))
    if depth > 20:
        return f"deeper {type(output).__name__}"
    if isinstance(output, Mapping):
        parts = sorted(((_safe_repr(key), value) for key, value in output.items()), key=lambda part: part[0])
        return "{" + ", ".join([f"{text}: {_walk(value, leaves, depth + 1)}" for text, value in parts]) + "}"
    if isinstance(output, list | tuple):
        inside = ", ".join([_walk(item, leaves, depth + 1) for item in output])
        return f"({inside})" if isinstance(output, tuple) else f"[{inside}]"
    if isinstance(output, Set):
        return "set of " + ", ".join(sorted(_safe_repr(item) for item in output))
    return _walk_object(output, leaves, depth)


def _walk_array(output: NDArray[Any], leaves: list[float], depth: int) -> str:
    numbers = _numeric(output.reshape(1, -1)) if output.size else np.empty((1, 0))
    if numbers is not None and output.dtype.kind in "fbiucmM":
        leaves.extend(numbers[0].tolist())
        return _array_label(output.dtype, output.shape)
    if output.ndim == 0 and output.dtype.kind != "O":
        return f"{output.dtype} {_safe_repr(output[()])}"
    return f"array of shape {output.shape}: " + _walk(output.tolist(), leaves, depth + 1)


def _walk_object(output: Any, leaves: list[float], depth: int) -> str:
    name = type(output).__name__
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
        return f"{name} {_walk(fields, leaves, depth + 1)}"
    if hasattr(output, "to_numpy") and hasattr(output, "index"):  # pandas, without importing it
        columns = getattr(output, "columns", None)
        head = f"{name} with columns {list(columns)!r}" if columns is not None else name
        index = _walk(list(output.index), leaves, depth + 1)
        return f"{_printable(head)}, index {index}, values {_walk(output.to_numpy(), leaves, depth + 1)}"
    text = _safe_repr(output)
    # The default repr names a memory address, which says nothing about the output.
    return f"{name} object" if " at 0x" in text else f"{name} {text}"


def _safe_repr(value: Any) -> str:
    try:
        return _printable(repr(value))
    except Exception as error:  # whatever a user's __repr__ raises
        return f"{type(value).__name__} whose repr raises {type(error).__name__}"


def _printable(text: str) -> str:
    return text.replace(OPEN, "?").replace(CLOSE, "?")


@lru_cache(maxsize=4096)
def digest(text: str) -> int:
    """Stable 64-bit digest (Python's ``hash`` is salted per process)."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


WORTH_A_TABLE = 8192
SLOTS = 4096
_ODD = np.uint64(0x9E3779B97F4A7C15)


def record_keys(batch: Encoded) -> Codes:
    """A 64-bit key of each whole output: equal outputs get equal keys (all NaNs are equal, and so are 0.0 and -0.0)."""
    with np.errstate(over="ignore"):
        keys = np.array(batch.codes)
        for index, column in enumerate(batch.values.T):
            bits = (column + 0.0).view(np.uint64) + np.uint64(index)
            mixed = (keys ^ bits) * _ODD
            mixed = mixed ^ (mixed >> np.uint64(29))
            # NaN leaves the key alone, so that an absent number is the same in a narrow and in a wide batch.
            keys = np.where(np.isnan(column), keys, mixed)
    return np.asarray(keys, dtype=np.uint64)


def _widened(values: Floats, width: int) -> Floats:
    if values.shape[1] == width:
        return values
    wide = np.full((values.shape[0], width), np.nan, order="F")
    wide[:, : min(width, values.shape[1])] = values[:, :width]
    return wide


def numbers(output: Any) -> list[float]:
    """The numbers of one output, in the order in which coordinates are counted.

    >>> numbers({"count": 3, "mean": (1.5, None)})
    [3.0, 1.5]
    """
    leaves: list[float] = []
    _walk(output, leaves, 0)
    return leaves


def number(output: Any, index: int) -> float:
    """One number of an output; NaN where it has fewer."""
    leaves = numbers(output)
    return leaves[index] if index < len(leaves) else float("nan")


def structure(output: Any) -> str:
    """Everything of one output but its numbers.

    >>> structure({"count": 3, "mean": (1.5, None)})
    "{'count': int, 'mean': (float, None)}"
    """
    return plain(structure_label(output))


def structure_label(output: Any) -> str:
    """The structure with its places for numbers marked."""
    return _walk(output, [], 0)
