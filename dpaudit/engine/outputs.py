"""Anything a mechanism returns, as something events can be learned on.

An output is split into its *structure*, kept as a stable 64-bit code with a readable label, and its *numbers*, kept as a row
of floats (see ``dpaudit.engine.reading``). Numpy arrays are never walked in Python.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.numerals import EXACT_INTEGER, NUMERIC, Numerals, numeric
from dpaudit.engine.partition import Ascending
from dpaudit.engine.reading import Reader, as_array, entries, read
from dpaudit.engine.structures import CUT, array_label, placeholder, plain, with_rest
from dpaudit.engine.words import tell

Codes: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]

LABEL_LENGTH = 1000
INTEGERS, FLOATS = "integers", "floats"
NEAR = (FLOATS, "integers beyond 2^53")
NO_CODES: Codes = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch of outputs: a structure code each, and their numbers (absent ones are NaN; the code tells them apart)."""

    kinds: Codes  # the structure of each output, or, with ``kind_of``, the structures there are
    numbers: NDArray[Any]  # floats, integers that encoding counted, or rows of integers of one byte
    labels: Mapping[int, str]
    counted: Ascending | None = None  # the numbers, or where there are none the codes, if encoding counted them
    kind_of: NDArray[np.intp] | None = None  # which of the kinds each output has

    def __len__(self) -> int:
        return int((self.kinds if self.kind_of is None else self.kind_of).shape[0])

    @property
    def codes(self) -> Codes:
        """The structure of each output."""
        return self.kinds if self.kind_of is None else self.kinds.take(self.kind_of)

    def head(self, count: int) -> Encoded:
        """The first ``count`` outputs, copied so that the rest can be freed."""
        if not count:
            return Encoded(NO_CODES, np.empty((0, self.width)), self.labels)
        first = self.rows(slice(count))
        kinds = first.kinds if self.alone else first.kinds.copy()
        return Encoded(kinds, np.array(first.numbers, order="K"), self.labels)

    def rows(self, index: Any) -> Encoded:
        """A selection of the outputs."""
        codes = self.kinds[index] if self.kind_of is None else self.kinds.take(self.kind_of[index])
        return Encoded(codes, self.numbers[index].astype(np.float64, order="K", copy=False), self.labels)

    @property
    def values(self) -> Floats:
        """The numbers as floats; :attr:`width` is known without them."""
        return self.numbers.astype(np.float64, order="K", copy=False)

    @property
    def width(self) -> int:
        """How many numbers an output has at most."""
        return int(self.numbers.shape[1])

    @property
    def uniform(self) -> bool:
        """Whether all outputs have one structure."""
        return self.alone or bool((self.codes == self.codes[:1]).all())

    def is_all(self, code: np.uint64) -> bool:
        """Whether the batch is known, without looking at each output, to have this structure alone."""
        return self.alone and len(self) > 0 and bool(self.kinds[0] == code)

    def of_kind(self, code: np.uint64) -> Floats:
        """The first number of each output that has this structure."""
        return self.values[slice(None) if self.is_all(code) else self.codes == code, 0]

    @property
    def alone(self) -> bool:
        """Whether one stored code stands for all outputs."""
        return self.kind_of is None and self.kinds.strides == (0,)

    @property
    def structures(self) -> Ascending:
        """The codes, sorted."""
        if self.counted is not None and not self.width:
            return self.counted
        if self.alone and len(self):
            return Ascending(self.kinds[:1], np.array([len(self)]))
        return Ascending(np.sort(self.codes))


def stack(batches: Sequence[Encoded], *, width: int = 0) -> Encoded:
    """Join batches, widening the narrower ones to the widest (and to ``width`` at least)."""
    width = max([width, *(batch.width for batch in batches)])
    if len(batches) == 1 and batches[0].width == width:
        return batches[0]
    labels: dict[int, str] = {}
    for batch in batches:
        labels.update(batch.labels)
    values = np.concatenate([_widened(batch.values, width) for batch in batches])
    if all(batch.alone and len(batch) for batch in batches) and len({int(batch.kinds[0]) for batch in batches}) == 1:
        return Encoded(_repeated(int(batches[0].kinds[0]), len(values)), values, labels)
    return Encoded(np.concatenate([batch.codes for batch in batches]), values, labels)


def encode(outputs: NDArray[Any] | Sequence[Any]) -> Encoded:
    """Encode a batch of outputs.

    >>> batch = encode([1.5, None, float("nan")])
    >>> batch.values[:, 0].tolist(), [plain(batch.labels[int(code)]) for code in batch.codes]
    ([1.5, nan, nan], ['float', 'None', 'float'])
    """
    outputs = unwrapped(outputs)
    if isinstance(outputs, np.ndarray):
        counted = _counted(outputs)
        if counted is not None:
            return _uniform(array_label(outputs.dtype, ()), outputs[:, None], counted)
        if outputs.dtype.char in SMALL and outputs.ndim > 1 and outputs.size:
            rows = np.asfortranarray(outputs.reshape(len(outputs), -1))
            return _uniform(array_label(outputs.dtype, outputs.shape[1:]), rows)
        found = numeric(outputs)
        if found is not None:
            return _exact(found, array_label(outputs.dtype, outputs.shape[1:]))
        words = _words(outputs)
        if words is not None:
            return words
        outputs = list(outputs)
    kinds = set(map(type, outputs))
    if len(kinds) == 1:
        fast = _homogeneous(outputs, kinds.pop())
        if fast is not None:
            return fast
    return _walk_all(outputs)


def container(outputs: NDArray[Any] | Sequence[Any], *, near: bool = False) -> tuple[str, tuple[int, ...]] | None:
    """What an array is said to hold, and the shape of one entry: what all its entries share, whichever of them calls for it.

    None for lists and arrays of objects, whose entries are read one by one. ``near`` says that integers are known to be floats.
    """
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind not in f"{NUMERIC}US":
        return None
    kind, size = outputs.dtype.kind, outputs.dtype.itemsize
    if kind in "biu":
        near = near or size < 8 or not outputs.size
        near = near or max(abs(int(outputs.max())), abs(int(outputs.min()))) <= EXACT_INTEGER
        said = INTEGERS if near else "integers beyond 2^53"
    elif kind in "US":
        said = "words"
    else:
        said = FLOATS if kind == "f" and size <= 8 else outputs.dtype.name
    return said, outputs.shape[1:]


def same_to_each(containers: Collection[tuple[str, tuple[int, ...]]]) -> bool:
    """Whether an entry looks alike in all of these containers."""
    kinds, shapes = {kind for kind, _ in containers}, {shape for _, shape in containers}
    # Integers that are floats too look alike among both, and among larger ones.
    return len(shapes) <= 1 and (
        len(kinds) <= 1 or (len(kinds) == 2 and INTEGERS in kinds and not kinds.isdisjoint(NEAR))
    )


def unwrapped(outputs: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | Sequence[Any]:
    """Containers of outputs as a plain array or list: data frames by row, records as tuples, what is masked as missing."""
    inside = _unwrapped(outputs)
    return entries(inside) if isinstance(inside, np.ndarray) and inside.dtype.kind == "O" else inside


def _unwrapped(outputs: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | Sequence[Any]:
    if type(outputs) is np.ndarray and outputs.dtype.names is None:
        return outputs
    if hasattr(outputs, "to_numpy"):
        return np.asarray(outputs.to_numpy())
    if isinstance(outputs, np.ma.MaskedArray) and outputs.dtype.names is None:
        return _without_mask(outputs)
    if isinstance(outputs, np.ndarray) and outputs.dtype.names is not None:
        return [tuple(row) for row in outputs.tolist()]
    if hasattr(type(outputs), "__array__"):
        try:
            return as_array(outputs)
        except Exception:  # whatever a user's class raises
            return outputs
    return outputs


def _without_mask(outputs: np.ma.MaskedArray[Any, Any]) -> NDArray[Any] | Sequence[Any]:
    """What is masked is missing, whatever lies beneath."""
    if outputs.dtype.kind in "biu":
        found = numeric(outputs)
        # Integers that floats do not hold are looked at one by one.
        return list(outputs) if found is None or found.rest is not None else found.near.reshape(outputs.shape)
    if outputs.dtype.kind in NUMERIC:
        filled = np.array(outputs.data)
        filled[np.ma.getmaskarray(outputs)] = "NaT" if outputs.dtype.kind in "mM" else np.nan
        return filled
    objects = np.array(outputs.data, dtype=object)
    objects[np.ma.getmaskarray(outputs)] = None
    return objects


def _words(array: NDArray[Any]) -> Encoded | None:
    """Arrays of strings, without a walk per output."""
    if array.dtype.kind not in "US" or not array.size:
        return None
    told = tell(array, _look)
    if told is None:
        return None  # words with numbers in them
    return Encoded(told.kinds, np.empty((len(array), 0)), told.labels, told.counted, told.kind_of)


def _look(words: Any) -> tuple[int, str] | None:
    label, leaves = read(words)
    return None if leaves else (digest(label), shortened(label))


def _counted(array: NDArray[Any]) -> Ascending | None:
    """Many integers of a small range, counted without a sort."""
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size < WORTH_A_TABLE:
        return None
    low, high = int(array.min()), int(array.max())
    if high - low >= SLOTS or max(high, -low) > EXACT_INTEGER:
        return None
    integers = array.astype(np.intp, copy=False)
    shift = low if low < 0 or high >= SLOTS else 0
    counts = np.bincount(integers - shift if shift else integers)
    values = np.flatnonzero(counts)
    return Ascending((values + shift).astype(np.float64), np.cumsum(counts[values]))


def shortened(label: str) -> str:
    """A structure of bearable length. A mark, the digest in it and both ends tell what was cut from what was not."""
    if len(label) <= LABEL_LENGTH:
        return label
    half = LABEL_LENGTH // 2
    return f"{label[:half]}... {len(label)} characters in all, digest {digest(label):016x} ...{label[-half:]}{CUT}"


def _homogeneous(outputs: Sequence[Any], kind: type) -> Encoded | None:
    """Lists of plain numbers, of equal arrays, or of equal-length tuples of floats, without a walk per output."""
    if kind in (float, bool):
        return _uniform(placeholder(kind.__name__), np.array(outputs, dtype=np.float64)[:, None])
    if kind is int:
        try:
            integers = numeric(np.array(outputs, dtype=np.int64))
        except OverflowError:
            return None
        return None if integers is None else _exact(integers, placeholder("int"))
    if kind is str:
        seen = {word: read(word) for word in set(outputs)}
        if any(leaves for _, leaves in seen.values()):
            return None
        codes = {word: digest(label) for word, (label, _) in seen.items()}
        named = {codes[word]: shortened(label) for word, (label, _) in seen.items()}
        each = np.fromiter(map(codes.__getitem__, outputs), np.uint64, len(outputs))
        return Encoded(each, np.empty((len(outputs), 0)), named)
    if kind is np.ndarray or issubclass(kind, np.number | np.bool_ | np.datetime64):
        if len({(item.shape, item.dtype) for item in outputs}) != 1 or outputs[0].dtype.kind not in NUMERIC:
            return None
        return encode(np.stack(list(outputs)))
    if kind in (tuple, list) and outputs[0]:
        if len(set(map(len, outputs))) != 1 or set(map(type, itertools.chain.from_iterable(outputs))) != {float}:
            return None
        leaves = ", ".join([placeholder("float")] * len(outputs[0]))
        label = f"({leaves}{',' if len(outputs[0]) == 1 else ''})" if kind is tuple else f"[{leaves}]"
        return _uniform(label, np.array(outputs, dtype=np.float64, order="F"))
    return None


def _uniform(label: str, values: NDArray[Any], counted: Ascending | None = None) -> Encoded:
    code = digest(label)
    return Encoded(_repeated(code, len(values)), values, {code: label}, counted)


def _repeated(code: int, count: int) -> Codes:
    """One stored code, seen as many (what numpy.broadcast_to makes, at a fifth of its cost)."""
    return np.ndarray((count,), np.uint64, np.array([code], np.uint64), 0, (0,))


def _exact(found: Numerals, label: str) -> Encoded:
    """Rows of numbers; those that floats do not hold have another structure, with what is left over in more columns."""
    if found.rest is None:
        return _uniform(label, found.near)
    more = np.asarray(found.rest.any(axis=1))
    codes = np.array([digest(label), digest(with_rest(label))], np.uint64)[more.astype(np.intp)]
    values = np.concatenate([found.near, np.where(more[:, None], found.rest, np.nan)], axis=1)
    return Encoded(codes, np.asfortranarray(values), {digest(text): text for text in (label, with_rest(label))})


def _walk_all(outputs: Sequence[Any]) -> Encoded:
    codes = np.empty(len(outputs), dtype=np.uint64)
    rows: list[list[float]] = []
    labels: dict[int, str] = {}
    known: dict[str, int] = {}
    reader = Reader()
    for index, output in enumerate(outputs):
        label, leaves = reader.read(output)
        code = known.get(label)
        if code is None:
            code = known[label] = digest(label)
            labels[code] = shortened(label)
        codes[index] = code
        rows.append(leaves)
    width = max(map(len, rows), default=0)
    values = np.full((len(outputs), width), np.nan, order="F")
    for index, leaves in enumerate(rows):
        values[index, : len(leaves)] = leaves
    return Encoded(codes, values, labels)


@lru_cache(maxsize=4096)
def digest(text: str) -> int:
    """Stable 64-bit digest (Python's ``hash`` is salted per process)."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


WORTH_A_TABLE = 1024  # integers; fewer are sorted
SLOTS = 4096
SMALL = "?bB"  # integers of one byte
AT_ONCE = 16384
_ODD = np.uint64(0x9E3779B97F4A7C15)


def record_keys(batch: Encoded, begun: Codes | None = None, first: int = 0) -> Codes:
    """A 64-bit key of each whole output: equal outputs get equal keys (all NaNs are equal, and so are 0.0 and -0.0).

    Where it is known what the keys are after the ``first`` coordinates, the others are added to these.
    """
    keys = np.array(batch.codes) if begun is None else begun
    for start in range(0, len(batch), AT_ONCE):  # pieces that stay in the cache
        rows = slice(start, start + AT_ONCE)
        for index in range(first, batch.width):
            _mix(keys[rows], batch.numbers[rows, index], index)
    return keys


def _mix(keys: Codes, column: NDArray[Any], index: int) -> None:
    """Mix numbers into keys. NaN leaves a key alone: an absent number is the same in a narrow and in a wide batch."""
    chosen: slice | NDArray[np.intp] = slice(None)
    if column.dtype.kind == "f":
        present = column == column
        if np.count_nonzero(present) < len(keys):
            chosen = present.nonzero()[0]
    mixed = np.add(column[chosen], 0.0, dtype=np.float64).view(np.uint64)  # minus zero plus zero is zero
    mixed += np.uint64(index)
    mixed ^= keys[chosen]
    mixed *= _ODD
    mixed ^= mixed >> np.uint64(29)
    keys[chosen] = mixed


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
    return read(output)[1]


def number(output: Any, index: int) -> float:
    """One number of an output; NaN where it has fewer."""
    leaves = numbers(output)
    return leaves[index] if index < len(leaves) else float("nan")


def structure(output: Any) -> str:
    """Everything of one output but its numbers.

    >>> structure({"count": 3, "mean": (1.5, None)})
    "{'count': int, 'mean': (float, None)}"
    """
    return plain(read(output)[0])


def code(output: Any) -> str:
    """The structure of one output as 16 hexadecimal digits."""
    return f"{digest(read(output)[0]):016x}"


def record(output: Any) -> str:
    """The whole of one output as 16 hexadecimal digits.

    >>> record((1, 2.5)) == record((1, 2.5)) != record((1.0, 2.5))
    True
    """
    return f"{int(record_keys(encode([output]))[0]):016x}"
