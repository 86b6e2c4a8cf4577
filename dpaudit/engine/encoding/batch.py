"""Encode a batch of outputs of any kind, so that events can be learned on it.

An output is split into its *structure*, a stable 64-bit code with a readable label, and its *numbers*, a row of floats (see
``dpaudit.engine.encoding.single_output``). Numpy arrays are encoded without a Python loop over the outputs; the result must
equal that of encoding each output alone.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.feature_table import FeatureTable, joined
from dpaudit.engine.encoding.remainders import EXACT_INTEGER, NUMERIC, ExactFloats, numeric
from dpaudit.engine.encoding.single_output import NUMBER, Reader, as_array, entries, read
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.encoding.structure import CUT, array_label, placeholder, plain, with_rest
from dpaudit.engine.encoding.text_arrays import FIBONACCI_MULTIPLIER, group_rows

Codes: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]

LABEL_LENGTH = 1000  # characters of a structure's label that are kept
FEWEST_COUNTED = 1024  # integers that are worth counting without a sort,
COUNTED_RANGE = 4096  # if they span fewer values than this
FEWEST_OF_A_TYPE = 16  # outputs for each type in a list, on average, that are worth encoding type by type
ONE_BYTE_INTEGERS = "?bB"  # dtype characters
KEYS_IN_CACHE = 16_384  # keys that are computed at a time
BOOLEANS, INTEGERS, FLOATS, WIDE_INTEGERS = (
    "booleans",
    "integers",
    "floats",
    "integers beyond 2^53",
)  # kinds of containers
NO_CODES: Codes = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch of outputs: the structure code of each, and their numbers (NaN if absent, which the code shows)."""

    kinds: Codes  # the code of each output, or, with ``kind_of``, the list of codes
    numbers: NDArray[Any]  # floats, integers that were counted already, or rows of one-byte integers
    labels: Mapping[int, str]
    counted: SortedSample | None = None  # the numbers (or the codes, if there are none), if encoding counted them
    kind_of: NDArray[np.intp] | None = None  # for each output, its place in ``kinds``
    suspects: tuple[Encoded, ...] = ()  # the values of the user's functions on the same outputs
    features: FeatureTable | None = None  # None if there are none, or if they were not computed

    def __len__(self) -> int:
        return int((self.kinds if self.kind_of is None else self.kind_of).shape[0])

    @property
    def codes(self) -> Codes:
        """Structure code of each output."""
        return self.kinds if self.kind_of is None else self.kinds.take(self.kind_of)

    def first(self, count: int) -> Encoded:
        """Return the first ``count`` outputs, copied so that the rest can be freed."""
        suspects = tuple(values.first(count) for values in self.suspects)
        if not count:
            return Encoded(NO_CODES, np.empty((0, self.width)), self.labels, suspects=suspects)
        chosen = self.rows(slice(count))
        kinds = chosen.kinds if self.one_code else chosen.kinds.copy()
        return replace(chosen, kinds=kinds, numbers=np.array(chosen.numbers, order="K"), suspects=suspects)

    def rows(self, index: Any) -> Encoded:
        """Return a selection of the outputs."""
        codes = self.kinds[index] if self.kind_of is None else self.kinds.take(self.kind_of[index])
        numbers = self.numbers[index].astype(np.float64, order="K", copy=False)
        chosen = Encoded(codes, numbers, self.labels)
        if not self.suspects and self.features is None:
            return chosen
        features = None if self.features is None else self.features.rows(index)
        return replace(chosen, suspects=tuple(values.rows(index) for values in self.suspects), features=features)

    def with_suspects(self, suspects: tuple[Encoded, ...]) -> Encoded:
        """Return the outputs with values of the user's functions on them."""
        return replace(self, suspects=suspects)

    def with_features(self, features: FeatureTable | None) -> Encoded:
        """Return the outputs with these features."""
        return self if features is self.features else replace(self, features=features)

    @property
    def values(self) -> Floats:
        """The numbers as floats; :attr:`width` is known without them."""
        return self.numbers.astype(np.float64, order="K", copy=False)

    @property
    def width(self) -> int:
        """The largest number of numbers in an output."""
        return int(self.numbers.shape[1])

    @property
    def uniform(self) -> bool:
        """True if all outputs have the same structure."""
        return self.one_code or bool((self.codes == self.codes[:1]).all())

    def is_all(self, code: np.uint64) -> bool:
        """Return whether one stored code stands for all outputs and equals ``code``; outputs are not compared."""
        return self.one_code and len(self) > 0 and bool(self.kinds[0] == code)

    def of_kind(self, code: np.uint64) -> Floats:
        """Return the first number of each output that has this structure."""
        return self.values[slice(None) if self.is_all(code) else self.codes == code, 0]

    @property
    def one_code(self) -> bool:
        """True if one stored code stands for all outputs."""
        return self.kind_of is None and self.kinds.strides == (0,)

    @property
    def structures(self) -> SortedSample:
        """The structure codes, sorted."""
        if self.counted is not None and not self.width:
            return self.counted
        if self.one_code and len(self):
            return SortedSample(self.kinds[:1], np.array([len(self)]))
        return SortedSample(np.sort(self.codes))


def stack(batches: Sequence[Encoded], *, width: int = 0) -> Encoded:
    """Join batches, widening the narrower ones to the widest (and to ``width`` at least)."""
    width = max([width, *(batch.width for batch in batches)])
    if len(batches) == 1 and batches[0].width == width:
        return batches[0]
    labels: dict[int, str] = {}
    for batch in batches:
        labels.update(batch.labels)
    values = np.concatenate([_widened(batch.values, width) for batch in batches])
    suspects = tuple(stack(parts) for parts in zip(*(batch.suspects for batch in batches), strict=True))
    features = joined([(batch.features, len(batch)) for batch in batches])
    if all(batch.one_code and len(batch) for batch in batches) and len({int(batch.kinds[0]) for batch in batches}) == 1:
        codes = np.broadcast_to(batches[0].kinds[0], len(values))
    else:
        codes = np.concatenate([batch.codes for batch in batches])
    return Encoded(codes, values, labels, suspects=suspects, features=features)


def encode(outputs: NDArray[Any] | Sequence[Any]) -> Encoded:
    """Encode a batch of outputs.

    >>> batch = encode([1.5, None, float("nan")])
    >>> batch.values[:, 0].tolist(), [plain(batch.labels[int(code)]) for code in batch.codes]
    ([1.5, nan, nan], ['number', 'None', 'number'])
    """
    outputs = unwrapped(outputs)
    if isinstance(outputs, np.ndarray):
        counted = _counted(outputs)
        if counted is not None:
            return _uniform(array_label(outputs.dtype, ()), outputs[:, None], counted)
        if outputs.dtype.char in ONE_BYTE_INTEGERS and outputs.ndim > 1 and outputs.size:
            rows = np.asfortranarray(outputs.reshape(len(outputs), -1))
            return _uniform(array_label(outputs.dtype, outputs.shape[1:]), rows)
        found = numeric(outputs)
        if found is not None:
            return _exact(found, array_label(outputs.dtype, outputs.shape[1:]))
        strings = _encode_strings(outputs)
        if strings is not None:
            return strings
        outputs = list(outputs)
    kinds = set(map(type, outputs))
    return _of_one_type(outputs, kinds.pop()) if len(kinds) == 1 else _of_several_types(outputs, kinds)


def container(outputs: NDArray[Any] | Sequence[Any], *, near: bool = False) -> tuple[str, tuple[int, ...]] | None:
    """Return the kind of an array and the shape of one entry, which one entry can change for all others.

    None for lists and arrays of objects, whose entries are read one by one. ``near`` says that floats hold the integers exactly.
    """
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind not in f"{NUMERIC}US":
        return None
    kind, size = outputs.dtype.kind, outputs.dtype.itemsize
    if kind == "b":
        kind_name = BOOLEANS
    elif kind in "iu":
        near = near or size < 8 or not outputs.size
        near = near or max(abs(int(outputs.max())), abs(int(outputs.min()))) <= EXACT_INTEGER
        kind_name = INTEGERS if near else WIDE_INTEGERS
    elif kind in "US":
        kind_name = "words"
    else:
        kind_name = FLOATS if kind == "f" and size <= 8 else outputs.dtype.name
    return kind_name, outputs.shape[1:]


def same_to_each(containers: Collection[tuple[str, tuple[int, ...]]]) -> bool:
    """Return whether an entry is encoded in the same way in all of these containers."""
    kinds, shapes = {kind for kind, _ in containers}, {shape for _, shape in containers}
    # Integers that floats hold exactly are encoded alike in arrays of floats and in arrays with larger integers.
    return len(shapes) <= 1 and (
        len(kinds) <= 1 or (len(kinds) == 2 and INTEGERS in kinds and not kinds.isdisjoint((FLOATS, WIDE_INTEGERS)))
    )


def unwrapped(outputs: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | Sequence[Any]:
    """Return a container of outputs as an array or list: rows of a data frame, records as tuples, masked values as missing.

    Outputs must not show in which container they came, nor what else was in it.
    """
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
        except Exception:  # a user's class may raise anything
            return outputs
    return outputs


def _without_mask(outputs: np.ma.MaskedArray[Any, Any]) -> NDArray[Any] | Sequence[Any]:
    """Return the outputs with masked values as missing; the values under the mask are not released."""
    if outputs.dtype.kind == "b":
        return list(outputs) if np.ma.getmaskarray(outputs).any() else np.asarray(outputs.data)
    if outputs.dtype.kind in "iu":
        found = numeric(outputs)
        # Integers that floats do not hold exactly are encoded one by one.
        return list(outputs) if found is None or found.rest is not None else found.near.reshape(outputs.shape)
    if outputs.dtype.kind in NUMERIC:
        filled = np.array(outputs.data)
        filled[np.ma.getmaskarray(outputs)] = "NaT" if outputs.dtype.kind in "mM" else np.nan
        return filled
    objects = np.array(outputs.data, dtype=object)
    objects[np.ma.getmaskarray(outputs)] = None
    return objects


def _encode_strings(array: NDArray[Any]) -> Encoded | None:
    """Encode an array of strings without a Python loop over the outputs; None if a string holds a number."""
    if array.dtype.kind not in "US" or not array.size:
        return None
    grouped = group_rows(array, _encode_row_of_strings)
    if grouped is None:
        return None
    return Encoded(grouped.kinds, np.empty((len(array), 0)), grouped.labels, grouped.counted, grouped.kind_of)


def _encode_row_of_strings(strings: Any) -> tuple[int, str] | None:
    label, leaves = read(strings)
    return None if leaves else (digest(label), shortened(label))


def _counted(array: NDArray[Any]) -> SortedSample | None:
    """Count many integers of a small range without sorting them; None for other arrays."""
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size < FEWEST_COUNTED:
        return None
    low, high = int(array.min()), int(array.max())
    if high - low >= COUNTED_RANGE or max(high, -low) > EXACT_INTEGER:
        return None
    integers = array.astype(np.intp, copy=False)
    shift = low if low < 0 or high >= COUNTED_RANGE else 0
    counts = np.bincount(integers - shift if shift else integers)
    values = np.flatnonzero(counts)
    return SortedSample((values + shift).astype(np.float64), np.cumsum(counts[values]))


def shortened(label: str) -> str:
    """Return a label of limited length. A cut one ends with a mark and holds a digest, so it equals no other label."""
    if len(label) <= LABEL_LENGTH:
        return label
    half = LABEL_LENGTH // 2
    return f"{label[:half]}... {len(label)} characters in all, digest {digest(label):016x} ...{label[-half:]}{CUT}"


def _of_one_type(outputs: Sequence[Any], kind: type) -> Encoded:
    fast = _homogeneous(outputs, kind)
    return _walk_all(outputs) if fast is None else fast


def _of_several_types(outputs: Sequence[Any], kinds: Collection[type]) -> Encoded:
    """Encode a list with outputs of several types, such as numbers and None, one type after the other."""
    if not outputs or len(outputs) < FEWEST_OF_A_TYPE * len(kinds):
        return _walk_all(outputs)
    number_of = {kind: number for number, kind in enumerate(kinds)}
    types = np.fromiter(map(number_of.__getitem__, map(type, outputs)), np.intp, len(outputs))
    codes = np.empty(len(outputs), np.uint64)
    labels: dict[int, str] = {}
    parts = []
    for kind, number in number_of.items():
        places = np.flatnonzero(types == number)
        parts.append((places, _of_one_type([outputs[place] for place in places.tolist()], kind)))
    values = np.full((len(outputs), max(part.width for _, part in parts)), np.nan, order="F")
    for places, part in parts:
        codes[places] = part.codes
        values[places, : part.width] = part.values
        labels.update(part.labels)
    return Encoded(codes, values, labels)


def _homogeneous(outputs: Sequence[Any], kind: type) -> Encoded | None:
    """Encode a list of numbers, strings, None, equal arrays or equal-length tuples of floats at once; None for other lists."""
    if kind is NoneType:
        return _uniform(str(None), np.empty((len(outputs), 0)))
    if kind in (float, bool):
        return _uniform(placeholder("bool") if kind is bool else NUMBER, np.array(outputs, dtype=np.float64)[:, None])
    if kind is int:
        try:
            integers = numeric(np.array(outputs, dtype=np.int64))
        except OverflowError:
            return None
        return None if integers is None else _exact(integers, NUMBER)
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
        leaves = ", ".join([NUMBER] * len(outputs[0]))
        label = f"({leaves}{',' if len(outputs[0]) == 1 else ''})" if kind is tuple else f"[{leaves}]"
        return _uniform(label, np.array(outputs, dtype=np.float64, order="F"))
    return None


def _uniform(label: str, values: NDArray[Any], counted: SortedSample | None = None) -> Encoded:
    code = digest(label)
    return Encoded(np.broadcast_to(np.uint64(code), len(values)), values, {code: label}, counted)


def _exact(found: ExactFloats, label: str) -> Encoded:
    """Encode rows of numbers. A row that floats do not hold exactly has its own structure, and remainders in more columns."""
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
    """Return a stable 64-bit digest (Python's ``hash`` is salted per process)."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def record_keys(batch: Encoded, begun: Codes | None = None, first: int = 0) -> Codes:
    """Return a 64-bit key of each whole output: equal outputs get equal keys (all NaNs are equal, and 0.0 equals -0.0).

    ``begun`` holds the keys after the ``first`` coordinates, if they are known; the others are added to these.
    """
    keys = np.array(batch.codes) if begun is None else begun
    for start in range(0, len(batch), KEYS_IN_CACHE):  # in pieces that stay in the cache
        rows = slice(start, start + KEYS_IN_CACHE)
        for index in range(first, batch.width):
            _mix(keys[rows], batch.numbers[rows, index], index)
    return keys


def _mix(keys: Codes, column: NDArray[Any], index: int) -> None:
    """Mix numbers into keys. NaN does not change a key, so that an absent number gives the same key in any width."""
    chosen: slice | NDArray[np.intp] = slice(None)
    if column.dtype.kind == "f":
        present = column == column
        if np.count_nonzero(present) < len(keys):
            chosen = present.nonzero()[0]
    mixed = np.add(column[chosen], 0.0, dtype=np.float64).view(np.uint64)  # minus zero plus zero is zero
    mixed += np.uint64(index)
    mixed ^= keys[chosen]
    mixed *= np.uint64(FIBONACCI_MULTIPLIER)
    mixed ^= mixed >> np.uint64(29)
    keys[chosen] = mixed


def _widened(values: Floats, width: int) -> Floats:
    if values.shape[1] == width:
        return values
    wide = np.full((values.shape[0], width), np.nan, order="F")
    wide[:, : min(width, values.shape[1])] = values[:, :width]
    return wide


def numbers(output: Any) -> list[float]:
    """Return the numbers of one output, in the order of its coordinates.

    >>> numbers({"count": 3, "mean": (1.5, None)})
    [3.0, 1.5]
    """
    return read(output)[1]


def number(output: Any, index: int) -> float:
    """Return one number of an output; NaN if it has fewer."""
    leaves = numbers(output)
    return leaves[index] if index < len(leaves) else float("nan")


def structure(output: Any) -> str:
    """Return the structure of one output: everything but its numbers.

    >>> structure({"count": 3, "mean": (1.5, None)})
    "{'count': number, 'mean': (number, None)}"
    """
    return plain(read(output)[0])


def code(output: Any) -> str:
    """Return the structure code of one output as 16 hexadecimal digits."""
    return f"{digest(read(output)[0]):016x}"


def record(output: Any) -> str:
    """Return the key of one whole output as 16 hexadecimal digits.

    >>> record((1, 2.5)) == record((1.0, 2.5)) != record((True, 2.5))
    True
    """
    return f"{int(record_keys(encode([output]))[0]):016x}"
