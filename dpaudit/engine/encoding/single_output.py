"""Encode one output: its structure as text, and its numbers.

The structure is everything that is not a number: type, length, keys, strings, None, exceptions. A marked place stands for
each number. Objects are encoded by their fields or their repr; a type that shows neither is marked, so that an audit can
report it.
"""

from __future__ import annotations

import array
import datetime
import decimal
import enum
import fractions
import itertools
import math
import operator
import re
import sys
import types
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.remainders import EXACT_INTEGER, NUMERIC, numeric
from dpaudit.engine.encoding.structure import OPAQUE, array_label, placeholder, printable, with_rest
from dpaudit.mechanism import MOST_ITEMS, Raised

DEEPEST_READ = 20  # levels of nesting that are read; deeper parts are encoded by their repr
FEW_KEYS = 4  # a mapping with so many keys has its order in the structure, a larger one in numbers
TWO_FLOATS = 2**106  # smaller integers are the sum of two floats
NUMBER = placeholder("number")
NAME_TYPES = (str, bytes, int, np.integer, np.bool_, types.NoneType, enum.Enum)  # keys that are part of the structure

_STRING = frozenset({str})
_NUMBER = r"(?P<number>(?<![\w.])[-+]?(?:(?!0\d)\d+{}(?:[eE][-+]?\d+)?|nan|inf)(?![\w.]))"
_IN_WORDS = re.compile(_NUMBER.format(r"\.\d+"))
_IN_REPR = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|" + _NUMBER.format(r"(?:\.\d*)?"))
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")


def read(output: Any) -> tuple[str, list[float]]:
    """Return the structure of an output, with the places of its numbers marked, and the numbers.

    >>> read([None, "a"]), read({"count": 3, "mean": (1.5, None)})[1]
    (("[None, 'a']", []), [3.0, 1.5])
    """
    return Reader().read(output)


class Reader:
    """Read outputs one after the other."""

    __slots__ = ("_inside", "_met", "leaves")

    def __init__(self) -> None:
        self.leaves: list[float] = []
        self._inside: list[int] = []  # ids of the containers around the current part
        self._met: dict[int, Any] = {}  # objects that were read: each only once, even in a cycle

    def read(self, output: Any) -> tuple[str, list[float]]:
        """See :func:`read`."""
        self.leaves = []
        self._met.clear()
        return self.walk(output), self.leaves

    def walk(self, output: Any) -> str:
        """Append the numbers of ``output`` to the leaves and return the text of everything else."""
        if output is None:
            return "None"
        if isinstance(output, Raised):
            return printable(str(output))
        if isinstance(output, enum.Enum):
            return f"{type(output).__name__}.{output.name or repr(output.value)}"
        if isinstance(output, np.generic | np.ndarray) and not isinstance(output, np.str_ | np.bytes_):
            return self._array(output)
        if isinstance(output, float):
            self.leaves.append(float(output))
            return NUMBER
        if isinstance(output, int):
            return self._integer(output)
        if isinstance(output, complex):
            self.leaves.extend((output.real, output.imag))
            return placeholder("complex")
        if isinstance(output, str | bytes):
            text = repr(str(output) if isinstance(output, str) else bytes(output))
            return self._numbers_in(text, _IN_WORDS) if "." in text else text
        if id(output) in self._inside:
            return "..."
        self._inside.append(id(output))
        before = len(self.leaves)
        try:
            return self._container(output) if len(self._inside) <= DEEPEST_READ else self._read_repr(output)
        except Exception as error:  # a user's class may raise anything
            del self.leaves[before:]
            return f"{OPAQUE}{type(output).__name__} that raises {type(error).__name__}"
        finally:
            self._inside.pop()

    def _integer(self, output: int) -> str:
        if isinstance(output, bool):
            self.leaves.append(float(output))
            return placeholder("bool")
        if abs(output) < TWO_FLOATS:
            return self._real(output, "number", output - int(float(output)) if abs(output) > EXACT_INTEGER else 0)
        size = -(-output.bit_length() // 32)
        words = np.frombuffer(abs(output).to_bytes(4 * size, "big"), ">u4").astype(np.float64)
        self.leaves.extend([_nearest(output), *words.tolist()])
        return f"{NUMBER} as integer of words [{', '.join([NUMBER] * size)}]"

    def _real(self, number: Any, kind: str, rest: Any = 0) -> str:
        self.leaves.append(_nearest(number))
        if not rest:
            return placeholder(kind)
        self.leaves.append(float(rest))
        return with_rest(placeholder(kind))

    def _array(self, output: Any) -> str:
        if output.dtype.kind == "O" and output.ndim:
            output = _row(output)
        if output.dtype.kind not in NUMERIC:
            items = self.walk(_nested_entries(output) if output.dtype.kind == "O" else output.tolist())
            record = output.dtype.kind == "V" and output.ndim == 0
            return items if record else f"array of shape {output.shape}: {items}"
        masked = isinstance(output, np.ma.MaskedArray)
        found = numeric((output if masked else np.asarray(output)).reshape(1, -1))
        if found is None:
            raise AssertionError(f"an array of {output.dtype} holds numbers")
        label = array_label(output.dtype, output.shape)
        self.leaves.extend(found.near[0].tolist())
        if found.rest is None:
            return label
        self.leaves.extend(found.rest[0].tolist())
        return with_rest(label)

    def _container(self, output: Any) -> str:
        if isinstance(output, Mapping):
            return self._mapping(output, ordered=True)
        if isinstance(output, tuple):
            return f"({', '.join([self.walk(item) for item in output])}{',' if len(output) == 1 else ''})"
        if isinstance(output, list):
            return f"[{', '.join([self.walk(item) for item in output])}]"
        if isinstance(output, Set):
            parts = sorted(map(self._read_separately, output), key=_by_text)
            self.leaves.extend(leaf for _, leaves in parts for leaf in leaves)
            return "{" + ", ".join([text for text, _ in parts]) + "}" if parts else "set()"
        name = type(output).__name__
        if isinstance(output, memoryview | array.array):
            return f"{name} of {self._array(np.asarray(output))}"
        if isinstance(output, Sequence) and not isinstance(output, range | bytearray):
            return f"{name} [{', '.join([self.walk(item) for item in itertools.islice(output, MOST_ITEMS)])}]"
        return self._object(output, name)

    def _read_separately(self, item: Any) -> tuple[str, list[float]]:
        """Read a part that is sorted later, such as an element of a set, without adding its numbers to the leaves."""
        before = len(self.leaves)
        text = self.walk(item)
        leaves = self.leaves[before:]
        del self.leaves[before:]
        return text, leaves

    def _mapping(self, mapping: Mapping[Any, Any], *, ordered: bool) -> str:
        keys, values = tuple(mapping.keys()), list(mapping.values())
        if _STRING.issuperset(map(type, keys)):
            layout = _layout_of_words(keys)
        else:
            layout = _layout(
                keys, [(safe_repr(key), []) if _is_name(key) else self._read_separately(key) for key in keys]
            )
        parts = []
        for entry, text, leaves in layout.entries:
            self.leaves.extend(leaves)
            parts.append(f"{text}: {self.walk(values[entry])}")
        label = "{" + ", ".join(parts) + "}"
        if not (ordered and layout.order):
            return label
        self.leaves.extend(layout.places)
        return label + layout.order

    def _object(self, output: Any, name: str) -> str:
        kind = type(output)
        if hasattr(kind, "to_numpy"):
            return self._frame(output, name)
        if isinstance(output, datetime.date | datetime.timedelta):
            return f"{name} {self.walk(_numpy_time(output))}{_zone(output)}"
        if isinstance(output, decimal.Decimal | fractions.Fraction):
            return self._real(output, name, _remainder(output))
        if hasattr(kind, "__array__"):
            return f"{name} of {self.walk(as_array(output))}"
        number, fields = _as_float(output), _fields(output)
        if number is None and not fields:
            return self._read_repr(output)
        if id(output) in self._met:
            return f"{name} met before"
        self._met[id(output)] = output
        prefix = name if number is None else f"{name} {self._real(number, 'number')}"
        label = f"{prefix} {self._mapping(fields, ordered=False)}" if fields else prefix
        # Its repr may show what its fields do not.
        return f"{label}, {self._read_repr(output)}" if OPAQUE in label and _has_own_repr(kind) else label

    def _frame(self, output: Any, name: str) -> str:
        """Read a data frame, series or index of pandas or a similar library, without importing it."""
        values = output.to_numpy()
        index, columns = getattr(output, "index", None), getattr(output, "columns", None)
        categories = getattr(getattr(output, "dtype", None), "categories", None)
        head = name if columns is None else f"{name} with columns {list(columns)!r}"
        head += "" if categories is None else f" with categories {list(categories)!r}"
        head = printable(f"{head}{_zone(output)}")
        if index is None or callable(index):
            return f"{head} {self.walk(values)}"
        return f"{head}, index {self.walk(list(index))}, values {self.walk(values)}"

    def _read_repr(self, output: Any) -> str:
        """Read the repr of an object: its text without the address, and the numbers in it."""
        text, addresses = _ADDRESS.subn("0x", printable(repr(output)))
        shown = self._numbers_in(text, _IN_REPR)
        return f"{OPAQUE if addresses and shown == text else ''}{type(output).__name__} {shown}"

    def _numbers_in(self, text: str, pattern: re.Pattern[str]) -> str:
        def take(match: re.Match[str]) -> str:
            if match["number"] is None:
                return match[0]
            number = decimal.Decimal(match[0])
            return self._real(number, "number", _remainder(number))

        return pattern.sub(take, text)


_SEQUENCES = frozenset({list, tuple, np.ndarray})


def entries(array: NDArray[Any]) -> list[Any]:
    """Return the outputs of an array of objects, each as it would be in an array of its own.

    One entry such as None makes the whole array one of objects, and the other entries must not show that: sequences become
    the arrays that numpy would have made of them.
    """
    items: list[Any] = array.tolist() if array.ndim == 1 else list(array)
    return items if _SEQUENCES.isdisjoint(map(type, items)) else [_entry(item) for item in items]


def rows_as_arrays(outputs: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | Sequence[Any]:
    """Return the outputs of one call with lists as arrays.

    A table without gaps is an array, and one with a gap may be a list of lists: a row must look the same in both.
    """
    if not isinstance(outputs, list) or list not in set(map(type, outputs)):
        return outputs
    return [_row(item) if type(item) is list else item for item in outputs]


def _entry(item: Any) -> Any:
    return _row(item) if type(item) in _SEQUENCES else item


def _row(items: Any) -> NDArray[Any]:
    """Return a sequence as an array: of numbers if all items are numbers, otherwise of objects."""
    if isinstance(items, np.ndarray) and items.dtype.kind != "O":
        return items
    try:
        row = np.array(items, dtype=object)
    except ValueError:  # arrays whose shapes agree only in part
        row = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            row[place] = item
    if all(type(item) in (bool, int, float) or isinstance(item, np.number | np.bool_) for item in row.ravel().tolist()):
        with suppress(OverflowError):
            numbers = np.array(row.tolist())
            return numbers if numbers.dtype.kind in NUMERIC else row
    return row


def _nested_entries(array: NDArray[Any]) -> Any:
    if not array.ndim:
        return _entry(array.item())
    return [_nested_entries(row) if array.ndim > 1 else _entry(row) for row in array]


def as_array(output: Any) -> NDArray[Any]:
    """Return an object that has ``__array__`` as an array."""
    for step in ("detach", "cpu"):  # needed before a tensor can be converted
        output = getattr(output, step)() if hasattr(type(output), step) else output
    return np.asarray(output)


def safe_repr(value: Any) -> str:
    """Return the repr of a value, or the name of the exception that it raises."""
    try:
        return printable(repr(value))
    except Exception as error:  # a user's __repr__ may raise anything
        return f"{type(value).__name__} whose repr raises {type(error).__name__}"


def _by_text(part: tuple[str, list[float]]) -> tuple[str, list[tuple[bool, float]]]:
    text, leaves = part
    return text, [(math.isnan(leaf), leaf) for leaf in leaves] if leaves else []


def _is_name(key: Any) -> bool:
    return isinstance(key, NAME_TYPES) or (isinstance(key, tuple) and all(map(_is_name, key)))


class Layout(NamedTuple):
    """Entries of a mapping sorted by key (place, text and numbers of the key), and their original order."""

    entries: list[tuple[int, str, list[float]]]
    order: str = ""  # empty if the entries were in the order of the keys
    places: Sequence[float] = ()


def _layout(keys: Sequence[Any], read_keys: Sequence[tuple[str, list[float]]]) -> Layout:
    places = sorted(range(len(keys)), key=lambda entry: _by_text(read_keys[entry]))
    entries = [(entry, *read_keys[entry]) for entry in places]
    if _in_order(keys, places):
        return Layout(entries)
    if len(keys) <= FEW_KEYS and not any(leaves for _, leaves in read_keys):
        return Layout(entries, f" in the order {', '.join([text for text, _ in read_keys])}")
    # With many keys no order might ever repeat, so the order is given by numbers.
    order = f" from the places {', '.join([NUMBER] * len(places))}"
    return Layout(entries, order, list(map(float, places)))


@lru_cache(maxsize=256)
def _layout_of_words(keys: tuple[str, ...]) -> Layout:
    return _layout(keys, [(repr(key), []) for key in keys])


def _in_order(keys: Sequence[Any], places: Sequence[int]) -> bool:
    """Return whether the keys ascend, or their texts if the keys cannot be compared."""
    try:
        return all(map(operator.le, keys, keys[1:]))
    except Exception:
        return all(map(operator.le, places, places[1:]))


def _nearest(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _remainder(number: decimal.Decimal | fractions.Fraction) -> Any:
    """Return the number minus the nearest float; zero if that float prints like the decimal itself."""
    near = _nearest(number)
    if not math.isfinite(near):
        return 0
    if isinstance(number, decimal.Decimal):
        return 0 if decimal.Decimal(repr(near)) == number else number - decimal.Decimal(near)
    return number - fractions.Fraction(near)


def _as_float(output: Any) -> float | None:
    if not hasattr(type(output), "__float__"):
        return None
    try:
        return float(output)
    except Exception:  # such as a formula without a value
        return None


def _fields(output: Any) -> Mapping[str, Any]:
    """Return the attributes of an object; none for a standard type whose repr shows its value, such as a path."""
    if isinstance(output, type | types.ModuleType | types.FunctionType | BaseException | Iterator):
        return {}
    state = object.__getstate__(output)
    own, slots = state if isinstance(state, tuple) else (state, None)
    kind = type(output)
    standard = _has_own_repr(kind) and kind.__module__.partition(".")[0] in sys.stdlib_module_names
    fields = {**(slots or {}), **(own or {})} if own or not standard else {}
    seen = {name: value for name, value in fields.items() if not name.startswith("__")}
    return seen if seen or _has_own_repr(kind) else _pickled(output)


def _pickled(output: Any) -> Mapping[str, Any]:
    """Return the pickled state of a compiled type, such as a decision tree of scikit-learn, which has no attributes."""
    try:
        _, arguments, state = output.__reduce_ex__(2)[:3]
    except Exception:  # it cannot be pickled or has no state
        return {}
    return {} if state is None else {"made of": arguments, "state": state}


def _has_own_repr(kind: type) -> bool:
    return getattr(kind, "__repr__", None) is not object.__repr__


def _numpy_time(output: datetime.date | datetime.timedelta) -> Any:
    if isinstance(output, datetime.timedelta):
        return np.timedelta64(output, "us")
    if not isinstance(output, datetime.datetime):
        return np.datetime64(output, "D")
    if output.tzinfo is not None:
        output = output.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(output, "us")


def _zone(output: Any) -> str:
    zone = output.tzinfo if isinstance(output, datetime.datetime) else None
    return "" if zone is None else f" in {safe_repr(zone)}"
