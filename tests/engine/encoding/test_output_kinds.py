"""Outputs of every kind: their numbers are encoded exactly, and parts that cannot be seen are reported.

A kind of output is a function of one number; a leak in that number must be visible, and the event must mean the same to the
engine and to the script of a witness.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import fractions
import json
import math
import time
import types
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpaudit
from dpaudit import replay
from dpaudit.engine.encoding.batch import encode, record, record_keys, stack, structure
from dpaudit.engine.encoding.remainders import numeric
from dpaudit.engine.encoding.single_output import read
from dpaudit.engine.encoding.structure import explained, fill, opaque_types, plain
from dpaudit.engine.evidence.e_process import Points
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.scores import NaiveBayes
from dpaudit.engine.views.view import ScoreView
from dpaudit.engine.witness.event import Event, simplest
from dpaudit.mechanism import Raised, kept

START = datetime.datetime(2020, 1, 1)
EASTERN = datetime.timezone(datetime.timedelta(hours=-5))


class Tensor:
    """Like those of machine learning: to be detached first, and printed in short."""

    def __init__(self, values: Any, *, attached: bool = True) -> None:
        self._hidden = (values,)
        self.attached = attached

    def __repr__(self) -> str:
        return "tensor(...)"

    def detach(self) -> Tensor:
        return Tensor(self._hidden[0], attached=False)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.attached:
            raise RuntimeError("detach me first")
        return np.asarray(self._hidden[0], dtype=dtype)


class KeyTable:
    def __init__(self, values: Any) -> None:
        self._values = values

    def __repr__(self) -> str:
        return "a table"

    def to_numpy(self) -> Any:
        return np.asarray(self._values)


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


class Model:
    """Prints its settings and hides what it learned, as estimators do."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def __repr__(self) -> str:
        return "Model(epsilon=1.0)"


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Measured:
    """A number by ``float`` alone."""

    __slots__ = ("_read",)

    def __init__(self, value: float) -> None:
        self._read = lambda: value

    def __float__(self) -> float:
        return self._read()


class Printed:
    """All that can be seen is what it prints."""

    __slots__ = ("_read",)

    def __init__(self, value: float) -> None:
        self._read = lambda: value

    def __getstate__(self) -> Any:
        raise TypeError("no state")

    def __repr__(self) -> str:
        return f"<about {self._read()!r} at 0x7f0123456789>"


@dataclasses.dataclass(slots=True)
class Point:
    x: float
    name: str = "p"


def deep(value: Any, levels: int = 60) -> Any:
    for _ in range(levels):
        value = [value]
    return value


def cyclic(value: Any) -> Any:
    loop = [value]
    loop.append(loop)
    return loop


def structured(value: float) -> Any:
    return np.array([(value, 1)], dtype=[("a", "f8"), ("b", "i4")])


KINDS: dict[str, Callable[[float], Any]] = {
    "large int": lambda x: 10**17 + int(1e6 * x),
    "larger int": lambda x: 10**40 + int(1e6 * x),
    "largest int": lambda x: 10**400 + int(1e6 * (x + 100.0)),
    "int64": lambda x: np.int64(10**17 + int(1e6 * x)),
    "uint64": lambda x: np.uint64(2**63 + int(1e6 * (x + 100.0))),
    "int array": lambda x: np.array([3, 2**60 + int(1e6 * x)]),
    "longdouble": lambda x: np.longdouble(x) / 3,
    "clongdouble": lambda x: np.clongdouble(x) / 3,
    "decimal": lambda x: decimal.Decimal(x),
    "short decimal": lambda x: decimal.Decimal(f"{x:.3f}"),
    "long decimal": lambda x: decimal.Decimal(repr(x) + "0123456789" * 3),
    "fraction": lambda x: fractions.Fraction(x) / 3,
    "date": lambda x: START.date() + datetime.timedelta(days=round(10 * x)),
    "datetime": lambda x: START + datetime.timedelta(seconds=x),
    "aware datetime": lambda x: START.replace(tzinfo=EASTERN) + datetime.timedelta(seconds=x),
    "timedelta": lambda x: datetime.timedelta(seconds=x),
    "datetime64 in ns": lambda x: np.datetime64(START, "ns") + np.timedelta64(int(1e9 * x), "ns"),
    "datetime64 in s": lambda x: np.datetime64(START, "s") + np.timedelta64(round(10 * x), "s"),
    "timedelta64": lambda x: np.timedelta64(int(1e9 * x), "ns"),
    "times": lambda x: np.array([START, START + datetime.timedelta(seconds=x)], dtype="datetime64[ns]"),
    "timestamp": lambda x: pd.Timestamp(START) + pd.Timedelta(seconds=x),
    "aware timestamp": lambda x: pd.Timestamp(START, tz="UTC") + pd.Timedelta(seconds=x),
    "pandas timedelta": lambda x: pd.Timedelta(seconds=x),
    "series of timestamps": lambda x: pd.Series([pd.Timestamp(START) + pd.Timedelta(seconds=x)]),
    "index": lambda x: pd.Index([x]),
    "interval": lambda x: pd.Interval(0.0, 100.0 + x),
    "frame": lambda x: pd.DataFrame({"a": [x], "b": ["u"]}),
    "structured array": structured,
    "record": lambda x: structured(x)[0],
    "masked array": lambda x: np.ma.masked_array([x, 2.0], [False, True]),
    "memoryview": lambda x: memoryview(np.array([x])),
    "array module": lambda x: array.array("d", [x]),
    "deque": lambda x: collections.deque([x]),
    "iterator": lambda x: kept(iter([x])),
    "generator": lambda x: kept(y for y in [x]),
    "set": lambda x: {x, -1000.0},
    "frozenset": lambda x: frozenset({("a", x)}),
    "float key": lambda x: {x: 1},
    "decimal key": lambda x: {decimal.Decimal(x): 1},
    "tensor": lambda x: Tensor([x, 1.0]),
    "table": lambda x: KeyTable([x, 1.0]),
    "namespace": lambda x: types.SimpleNamespace(values=np.array([x] * 1200)),
    "plain object": Plain,
    "nested objects": lambda x: Plain({"inner": Plain((None, x))}),
    "model": lambda x: Model(np.array([x])),
    "slots": Slotted,
    "dataclass with slots": Point,
    "float": Measured,
    "printed": Printed,
    "deep": deep,
    "cyclic": cyclic,
    "text": lambda x: f"about {x:.6f} apples",
    "json": lambda x: json.dumps({"count": x}),
    "bytes": lambda x: f"{x:.6f}".encode(),
}
by_kind = pytest.mark.parametrize("name", KINDS)
NUMBERS = np.sort(np.random.default_rng(0).normal(scale=3.0, size=400))


@by_kind
def test_a_number_shows_in_every_kind(name: str) -> None:
    """Some coordinate grows with it, and the rest of the output does not change."""
    batch = encode([KINDS[name](x) for x in NUMBERS.tolist()])
    columns = list(batch.values.T)
    if len(columns) > 2:  # an integer so large that it is encoded in words of 32 bits
        columns.append(batch.values[:, -2] * 2.0**32 + batch.values[:, -1])
    with np.errstate(invalid="ignore"):
        assert any((np.diff(column) >= 0.0).all() and np.unique(column).size > 40 for column in columns)
    assert np.unique(batch.codes).size <= 2  # with what a float leaves over, or with nothing left over
    hidden = {kind for label in batch.labels.values() for kind in opaque_types(label)}
    assert hidden == ({"function"} if name in ("float", "printed") else set())


def event_on(sides: tuple[Any, Any]) -> Event:
    width = max(side.values.shape[1] for side in sides)
    together = (stack([sides[0]], width=width), stack([sides[1]], width=width))
    labels = {**sides[0].labels, **sides[1].labels}
    event = simplest(together, [view for view, _ in build_views(together)], Points.of([(0.1, 0.0)]), labels)
    assert event is not None
    return event


def said_by(event: Event, outputs: list[Any]) -> list[bool]:
    """The counts that the script of a witness would print."""
    code = event.code()
    names: dict[str, Any] = {"np": np, **{name: getattr(replay, name) for name in code.helpers}}
    exec(code.definitions, names)
    compiled = compile(code.expression, "event", "eval")
    return [bool(eval(compiled, names, {"output": output})) for output in outputs]


@by_kind
def test_the_script_counts_a_shift_as_the_audit_does(name: str) -> None:
    rng = np.random.default_rng(1)
    first, second = ([KINDS[name](x) for x in (shift + rng.laplace(size=250)).tolist()] for shift in (0.0, 5.0))
    sides = (encode(first), encode(second))
    event = event_on(sides)
    inside = [event.contains(side) for side in sides]
    assert abs(inside[0].mean() - inside[1].mean()) > 0.4, str(event)  # half-lines distinguish them by 0.83
    assert said_by(event, first + second) == [*inside[0].tolist(), *inside[1].tolist()]
    assert [event.count(side) for side in sides] == [found.sum() for found in inside]


CHOICES: dict[str, tuple[Any, Any]] = {
    "1 and True": (1, True),
    "inside": ((1, 2), (True, 2)),
    "missing in pandas": (pd.NA, 1.0),
    "missing time": (np.datetime64("NaT", "s"), np.datetime64("2020-01-01")),
    "masked": (np.ma.masked, 1.0),
    "masked and a numpy number": (np.ma.masked, np.float64(1.0)),
    "masked entry": (np.ma.masked_array([1.0, 2.0], [True, False]), np.ma.masked_array([1.0, 2.0], [False, False])),
    "ends of long strings": ("x" * 5000 + "a", "x" * 5000 + "b"),
    "middles of long strings": ("x" * 5000 + "a" + "x" * 5000, "x" * 5000 + "b" + "x" * 5000),
    "columns": (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})),
    "empty frames": (pd.DataFrame({"a": []}), pd.DataFrame()),
    "cyclic": (cyclic(0), cyclic(1)),
    "order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "order of many keys": (dict.fromkeys("abcdefg", 1), dict.fromkeys("gfedcba", 1)),
    "order of numbers": ({1.5: 1, 2.5: 2}, {2.5: 2, 1.5: 1}),
    "categories": (pd.Categorical(["a"]), pd.Categorical(["a"], ["a", "b"])),
    "sets": ({1, 2}, {2, 3}),
    "dates": (START.date(), START.date() + datetime.timedelta(days=1)),
    "paths": (Path("a"), Path("b")),
    "identifiers": (uuid.UUID(int=0), uuid.UUID(int=1)),
    "empty": (set(), {}),
    "nan and None": (math.nan, None),
    "text that reads like a structure": ("[float]", [1.5]),
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("complement", [False, True])
def test_the_script_counts_a_choice_as_the_audit_does(name: str, complement: bool) -> None:
    rng = np.random.default_rng(2)
    choice = CHOICES[name]
    first, second = ([choice[bit] for bit in (rng.random(300) < p).astype(int)] for p in (0.1, 0.9))
    sides = (encode(first), encode(second))
    event = event_on(sides)
    if complement:
        event = Event(event.view, ~event.cells, event.labels)
    assert said_by(event, first + second) == [flag for side in sides for flag in event.contains(side).tolist()]
    assert abs(event.contains(sides[0]).mean() - event.contains(sides[1]).mean()) > 0.5
    assert [event.count(side) for side in sides] == [event.contains(side).sum() for side in sides]
    assert str(event)


def test_every_structure_and_score_has_an_expression() -> None:
    """Structures without a name, and scores of outputs of several structures, with numbers that are missing."""
    rng = np.random.default_rng(3)

    def draw(shift: float) -> list[Any]:
        rows = (shift + rng.normal(size=(1500, 3))).round(1)
        rows[rng.random(rows.shape) < 0.05] = np.nan
        return [tuple(row.tolist()) if rng.random() < 0.7 else row[:2] for row in rows]

    first, second = draw(0.0), draw(0.5)
    sides = (encode(first), encode(second))
    labels = {**sides[0].labels, **sides[1].labels}
    seen = set()
    for view, _ in build_views(sides):
        seen.add(view.name)
        chosen = rng.random(view.cells) < 0.5
        for cells in (chosen, ~chosen):
            event = Event(view, cells, labels)
            assert said_by(event, first[:300]) == event.contains(encode(first[:300])).tolist(), view.name
            assert event.count(sides[0]) == event.contains(sides[0]).sum(), view.name
    assert {"shape", "linear", "naive Bayes"} <= seen


def test_a_score_of_structures_has_them_in_its_script() -> None:
    rng = np.random.default_rng(4)
    first, second = ([(x, y) if z < p else [x, y] for x, y, z in rng.random((800, 3)).tolist()] for p in (0.2, 0.8))
    sides = (encode(first), encode(second))
    view = next(v for v, _ in build_views(sides) if isinstance(v, ScoreView) and isinstance(v.score, NaiveBayes))
    cells = np.arange(view.cells) < view.cells // 2
    event = Event(view, cells, {**sides[0].labels, **sides[1].labels})
    assert said_by(event, first) == event.contains(sides[0]).tolist()


# Exactness


@given(st.integers(-(2**105), 2**105))
def test_integers_are_the_sum_of_their_numbers(value: int) -> None:
    _, numbers = read(value)
    assert sum(map(int, numbers)) == value
    assert numbers[0] == float(value)


@given(st.integers(2**106, 2**2000), st.sampled_from([1, -1]))
def test_huge_integers_have_distinct_encodings(value: int, sign: int) -> None:
    label, (near, *words) = read(sign * value)
    assert int("".join(f"{int(word):08x}" for word in words), 16) == value
    assert near < 0 if sign < 0 else near > 0
    assert read(value + 1)[1] != words
    assert str(value) in fill(label, [float(value) if value < 2**1000 else math.inf, *words]) or words


wide = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(2**63 - 2000, 2**63 - 1), st.integers(-(2**63), 2000 - 2**63)
)


@given(st.lists(wide, min_size=1, max_size=6))
def test_arrays_of_wide_integers_lose_nothing(values: list[int]) -> None:
    found = numeric(np.array(values, dtype=np.int64))
    assert found is not None
    rest = np.zeros(len(values)) if found.rest is None else found.rest[:, 0]
    assert [int(a) + int(b) for a, b in zip(found.near[:, 0], rest, strict=True)] == values
    as_list, as_array = encode([*values, None]), encode(values)
    assert [read(value)[1] for value in values] == [[x for x in row if x == x] for row in as_array.values.tolist()]
    assert (record_keys(as_list)[:-1] == record_keys(as_array)).all()


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6))
def test_arrays_of_unsigned_integers_lose_nothing(values: list[int]) -> None:
    found = numeric(np.array(values, dtype=np.uint64))
    assert found is not None
    rest = np.zeros(len(values)) if found.rest is None else found.rest[:, 0]
    assert [int(a) + int(b) for a, b in zip(found.near[:, 0], rest, strict=True)] == values


@given(st.fractions(), st.floats(allow_nan=False, allow_infinity=False))
def test_fractions_and_decimals_keep_what_floats_lose(fraction: fractions.Fraction, value: float) -> None:
    numbers = read(fraction)[1]
    error = sum(map(fractions.Fraction, numbers)) - fraction
    assert abs(error) <= abs(fraction) * fractions.Fraction(1, 2**104)
    assert read(fractions.Fraction(value))[1] == [value]
    assert read(decimal.Decimal(repr(value)))[1] == [value]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1E+5000", "1E-5000", "-0", "sNaN"])
def test_odd_decimals(text: str) -> None:
    label, numbers = read(decimal.Decimal(text))
    assert isinstance(plain(label), str)
    assert len(numbers) <= 2


def test_long_doubles_keep_what_floats_lose() -> None:
    values = np.arange(1, 50, dtype=np.longdouble) / 7
    found = numeric(values)
    assert found is not None
    assert found.rest is not None
    assert (found.near[:, 0].astype(np.longdouble) + found.rest[:, 0] == values).all()
    odd = numeric(np.array([np.inf, -np.inf, np.nan, np.longdouble("1e400"), 0.5], dtype=np.longdouble))
    assert odd is not None
    assert odd.rest is None
    assert odd.near[:, 0].tolist()[:2] == [math.inf, -math.inf]


ARRAYS = [
    np.arange(1, 5, dtype=np.longdouble) / 3,
    np.array([0.5, 1 / np.longdouble(3)]),
    np.array([1, 2**63 - 1, -(2**63)]),
    np.array([1, 2**64 - 1], dtype=np.uint64),
    np.array([[1, 2**60 + 1], [3, 4]]),
    np.array([1j, 2.0]),
    np.array(["2020-01-01", "NaT", "2020-01-01T00:00:00.123456789"], dtype="datetime64[ns]"),
    np.array([1, 2**62 + 1], dtype="timedelta64[ns]"),
    np.array(["a 1.5", "b 2.5", "a"]),
    np.array([["a 1.5", "b"], ["a", "b"]]),
]


@pytest.mark.parametrize("batch", ARRAYS, ids=str)
def test_an_array_and_a_list_of_its_entries_have_one_encoding(batch: Any) -> None:
    whole, listed, mixed = encode(batch), encode(list(batch)), encode([*batch, None])
    assert whole.codes.tolist() == listed.codes.tolist() == mixed.codes[:-1].tolist()
    keys = record_keys(whole).tolist()
    assert keys == record_keys(listed).tolist() == record_keys(mixed)[:-1].tolist()
    assert keys == [int(record(entry), 16) for entry in batch]


MASKED = [
    np.ma.masked_array([1.5, 2.5, 3.5], [False, True, False]),
    np.ma.masked_array([1, 2, 3], [False, True, False]),
    np.ma.masked_array([1, 2, 2**60 + 1], [False, True, False]),
    np.ma.masked_array([True, False], [True, False]),
    np.ma.masked_array([[1.5, 2.5], [3.5, 4.5]], [[True, False], [False, False]]),
    np.ma.masked_array([[1, 2**60 + 1], [3, 4]], [[True, False], [False, False]]),
]


@pytest.mark.parametrize("batch", MASKED, ids=str)
def test_masks_hide_in_a_batch_what_they_hide_in_a_release(batch: Any) -> None:
    each = [int(record(entry), 16) for entry in batch]
    assert record_keys(encode(batch)).tolist() == each
    beneath = batch.copy()
    beneath.data[np.ma.getmaskarray(batch)] = 7
    assert [int(record(entry), 16) for entry in beneath] == each
    assert record_keys(encode(beneath)).tolist() == each


@pytest.mark.parametrize("dtype", ["complex128", "datetime64[s]", "U1", "object"])
def test_other_masks(dtype: str) -> None:
    values = np.array(["1", "2"]).astype(dtype) if dtype != "datetime64[s]" else np.array([1, 2], dtype)
    first, second = (encode(np.ma.masked_array(values, mask)) for mask in ([False, False], [False, True]))
    assert record_keys(first)[0] == record_keys(second)[0]
    assert record_keys(first)[1] != record_keys(second)[1]
    assert str(values[1]) not in str(
        [plain(label) for label in encode(np.ma.masked_array(values, True)).labels.values()]
    )


# Structure


def test_the_order_of_unsorted_keys_is_encoded() -> None:
    assert structure({"a": 1, "b": 2}) == "{'a': number, 'b': number}"
    assert structure({1: 1, 2: 2, 10: 3}) == "{1: number, 10: number, 2: number}"  # numbers in their own order
    assert structure({1: 1, 10: 3, 2: 2}) != structure({1: 1, 2: 2, 10: 3})
    assert structure({"b": 2, "a": 1}) == "{'a': number, 'b': number} in the order 'b', 'a'"
    assert read({"b": 2, "a": 1})[1] == read({"a": 1, "b": 2})[1]
    words = ["the", "quick", "brown", "fox", "jumps"]
    label, numbers = read(dict.fromkeys(words, 1))
    assert label == read(dict.fromkeys(words[::-1], 1))[0]  # many orders have one structure,
    assert numbers != read(dict.fromkeys(words[::-1], 1))[1]  # and differ in their numbers
    assert structure({"a": 1, None: 2}) != structure({None: 2, "a": 1})
    assert structure(Plain({"a": 1})) == "Plain {'value': {'a': number}}"


def test_fields_have_no_order() -> None:
    one, other = types.SimpleNamespace(a=1, b=2), types.SimpleNamespace(b=2, a=1)
    assert record(one) == record(other)


def test_keys_that_are_words_stay_words() -> None:
    assert (
        structure({"a": None, 1: 2, (1, "b"): 3})
        == "{'a': None, (1, 'b'): number, 1: number} in the order 'a', 1, (1, 'b')"
    )
    assert structure({0.5: 1}) == "{number: number}"


def test_numbers_in_text_are_decimals_only() -> None:
    assert structure("about 1.5 of 17") == "'about number of 17'"
    for word in ("17", "version 1.2.3", "x1.5", "0x12.5", "word 3", "1.", "007.5", "10.0.0.1"):
        assert structure(word) == repr(word)
    assert read("-1.5e-3")[1] == [-1.5e-3]
    assert fill(*read("about 1.5 of 17")) == "'about 1.5 of 17'"


def test_objects_in_a_cycle_are_read_once() -> None:
    """A hundred nodes that all know each other have more paths than there is time."""
    nodes = [Plain(float(number)) for number in range(100)]
    for node in nodes:
        node.others = nodes  # type: ignore[attr-defined]
    begin = time.perf_counter()
    assert set(range(100)) <= set(read(nodes[0])[1])
    assert time.perf_counter() - begin < 5.0


def test_equal_parts_are_equal_wherever_they_are() -> None:
    part = [1.5]
    assert record([part, part]) == record([[1.5], [1.5]])


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class RudeList(collections.UserList[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield 1.5
        raise RuntimeError("no more")


def test_opaque_objects_are_encoded_by_their_type() -> None:
    for output in (Rude(), RudeList([1, 2]), [1.0, Rude()], {"a": RudeList([1])}):
        label, numbers = read(output)
        assert numbers in ([], [1.0])
        assert opaque_types(label)[0].startswith("Rude")


def test_iterators_are_encoded_by_their_items() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("row 17")

    assert kept(iter([1, 2])) == [1, 2]
    assert kept(failing()) == Raised("ValueError", "row #")
    endless = (number for number in iter(int, 1))
    assert len(kept(endless)) > 1000
    waiting = iter([1.5])
    assert read(waiting)[1] == []  # reading does not change what is read
    assert next(waiting) == 1.5


def test_long_labels_keep_both_ends_and_a_digest() -> None:
    words = ["x" * 3000 + middle + "y" * 3000 for middle in "ab"]
    batch = encode(words)
    labels = {plain(label) for label in batch.labels.values()}
    assert len(labels) == 2
    assert all(label.startswith("'xx") and label.endswith("yy'") and len(label) < 1200 for label in labels)


@pytest.mark.parametrize(
    ("output", "note"),
    [
        (1.5, ""),
        ([1.5, 2.5], ""),
        (np.zeros((2, 2)), ""),
        ({"a": 1.5}, ", the number in {'a': number}"),
        ({"a": 1.5, "b": [2, None]}, ", where output is {'a': output[0], 'b': [output[1], None]}"),
        ({"a": np.zeros(3), "b": 1}, ", where output is {'a': array(output[0] to output[2]), 'b': output[3]}"),
        (
            {"when": START, "n": 1},
            ", where output is {'n': output[0], 'when': datetime output[1]} in the order 'when', 'n'",
        ),
        (2**53 + 1, ", where output is output[0] + output[1]"),
        (START.date(), " (in days since 1970)"),
        (datetime.timedelta(1), " (in microseconds)"),
        ("word", ""),
        ({"a" * 300: 1.5}, ""),
    ],
)
def test_events_explain_their_numbers(output: Any, note: str) -> None:
    assert explained(encode([output]).labels) == note
    assert explained(encode([output, None, "b"]).labels) == ""


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"n": 3, "x": (1.5, True)}, "{'n': 3, 'x': (1.5, True)}"),
        (2**60 + 1, "1152921504606846977"),
        (np.array([2**60 + 1, 3]), "array([1152921504606846977, 3])"),
        (np.arange(4.0).reshape(2, 2), "array([[0, 1], [2, 3]])"),
        ([np.zeros(2), 1.5], "[array([0, 0]), 1.5]"),
        (START.date(), "date 2020-01-01"),
        (np.datetime64("2020-01-01T00:00:00.123456789"), "2020-01-01T00:00:00.123456789"),
        (np.array([1j, 2.0]), "array([complex(0, 1), complex(2, 0)])"),
        (math.nan, "nan"),
        (np.zeros((0, 2)), "array([])"),
        ({1, 2}, "{1, 2}"),
    ],
)
def test_an_output_is_written_down_again(output: Any, text: str) -> None:
    assert fill(*read(output)) == text


def test_times_in_different_zones_have_distinct_encodings() -> None:
    there = START.replace(tzinfo=EASTERN)
    same = there.astimezone(datetime.UTC)
    assert read(there)[1] == read(same)[1]
    assert structure(there) != structure(same) != structure(START)


# What an audit says about what it does not see


def audited(function: Callable[[Any, Any], Any], **options: Any) -> dpaudit.Result:
    options = {"samples": 4000, "seed": 1, "detect_factor": 5.0, **options}
    return dpaudit.audit(dpaudit.per_release(function), dpaudit.PureDP(1.0), [([], [1])], **options)


def test_types_that_hide_everything_are_named() -> None:
    result = audited(lambda data, rng: (object(), lambda: data) if rng.random() < 0.4 else None)
    assert result.verdict is dpaudit.Verdict.NO_VIOLATION_FOUND
    assert sum("seen only by their type" in message for message in result.messages) == 2
    assert {"object", "function"} == {word for message in result.messages for word in message.split()[3:4]}


def test_words_that_never_repeat_are_mentioned() -> None:
    result = audited(lambda data, rng: rng.bytes(8).hex())
    assert any("occurred only once" in message for message in result.messages)
    assert not audited(lambda data, rng: f"word {rng.integers(20)}").messages


def test_the_length_of_words_that_never_repeat_is_seen() -> None:
    result = audited(lambda data, rng: rng.bytes(8).hex() + ("" if data else "0"), shrink=False)
    assert result.verdict is dpaudit.Verdict.VIOLATION


@pytest.mark.parametrize("kind", ["plain object", "datetime", "json", "large int"])
def test_a_leak_in_any_wrapping_is_found(kind: str) -> None:
    result = audited(lambda data, rng: KINDS[kind](5.0 * len(data) + rng.laplace()), shrink=False)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert not result.messages


def test_raising_always_by_name_shows_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "always_raising.py").write_text(
        "import dpaudit\n\n\ndef release(data, rng):\n    raise KeyError('here')\n\n\n"
        "def make():\n    return dpaudit.per_release(release)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(dpaudit.MechanismError, match=r"always_raising\.py[\s\S]*KeyError: 'here'"):
        dpaudit.audit("always_raising:make", dpaudit.PureDP(1.0), [([], [1])], samples=2000, seed=0)
