"""Encoding batches: structure and numbers of an output do not depend on the other outputs of its batch.

Batch invariance is part of the proof, not a nicety: evidence assumes that the cell of an output is a function of that output.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit.engine.encoding.batch import (
    FEWEST_COUNTED,
    FEWEST_OF_A_TYPE,
    Encoded,
    digest,
    encode,
    numbers,
    record_keys,
    stack,
    structure,
)
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.mechanism import Raised


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=300), st.sampled_from([np.int8, np.int64, np.float64]))
@settings(max_examples=50)
def test_integers_are_counted_as_they_would_be_sorted(values: list[int], dtype: Any) -> None:
    array = np.resize(np.array(values, dtype=dtype), FEWEST_COUNTED)
    batch, few = encode(array), encode(array[:100])
    assert (batch.counted is None) == (dtype is np.float64)
    assert few.counted is None
    check_counted(batch, batch.values[:, 0])
    for selected in (batch.first(100), batch.rows(slice(100))):
        assert selected.values.dtype == np.float64
        np.testing.assert_array_equal(selected.values, few.values)
        np.testing.assert_array_equal(record_keys(selected), record_keys(few))
    np.testing.assert_array_equal(record_keys(batch)[:100], record_keys(few))


@given(st.lists(st.text(max_size=12), min_size=1, max_size=12), st.integers(0, 9), st.sampled_from([1, 50, 9000]))
@settings(max_examples=25)
def test_words_are_counted_as_they_would_be_sorted(words: list[str], seed: int, size: int) -> None:
    array = np.random.default_rng(seed).choice(np.array(words), size=size)
    batch = encode(array)
    check_counted(batch, batch.codes)
    np.testing.assert_array_equal(batch.codes, encode(array.tolist()).codes)


@pytest.mark.parametrize("rare", ["\u0161", "\u4e2d\u6587 beyond one byte", "c", "longer than the others"])
def test_strings_that_first_occur_late_have_their_own_code(rare: str) -> None:
    """The lower byte of the first is the letter a: it must not pass for it."""
    array = np.random.default_rng(0).choice(np.array(["a", "b"], dtype="U24"), size=30_000)
    array[[20_000, 20_007, 29_999]] = rare
    batch = encode(array)
    check_counted(batch, batch.codes)
    np.testing.assert_array_equal(batch.codes, encode(array.tolist()).codes)
    np.testing.assert_array_equal(batch.rows(slice(19_990, 20_010)).codes, batch.codes[19_990:20_010])
    np.testing.assert_array_equal(batch.first(20_001).codes, batch.codes[:20_001])


def check_counted(batch: Encoded, values: np.ndarray[Any, Any]) -> None:
    counted, plain = batch.counted, SortedSample(np.sort(values))
    if counted is None:
        return
    distinct = np.unique(values)
    assert counted.size == plain.size
    for side in ("left", "right"):
        np.testing.assert_array_equal(counted.below(distinct, side), plain.below(distinct, side))
    for limit in (1, 3, 1000):
        assert sorted(counted.repeated(limit)[1].tolist()) == sorted(plain.repeated(limit)[1].tolist())
    np.testing.assert_array_equal(counted.repeated(1000)[0], plain.repeated(1000)[0])


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Release:
    count: int
    mean: float | None


class Boxed:
    """A plain object around something."""

    def __init__(self, content: Any) -> None:
        self.content = content


class Silent:
    """A class with the default repr, which names a memory address."""


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr for you")


class Twin:
    """Equal reprs, no order: sorting keys of this type by anything but text fails."""

    def __repr__(self) -> str:
        return "Twin"


def cyclic() -> list[Any]:
    loop: list[Any] = [1]
    loop.append(loop)
    return loop


def deep(levels: int) -> Any:
    value: Any = 1.5
    for _ in range(levels):
        value = [value]
    return value


ZOO: dict[str, Any] = {
    "float": 1.5,
    "zero": 0.0,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "int": 3,
    "big int": 2**53 + 1,
    "bigger int": 10**400,
    "bool": True,
    "str": "x",
    "empty str": "",
    "str that reads as a placeholder": "float",
    "surrogate": "\ud800",
    "bytes": b"x",
    "bytearray": bytearray(b"x"),
    "None": None,
    "ellipsis": ...,
    "complex": 1 + 2j,
    "enum": Colour.RED,
    "int enum": Level.LOW,
    "tuple": (1, 2.5),
    "empty tuple": (),
    "list": [1, 2],
    "float list": [1.0, 2.0, 3.0],
    "empty list": [],
    "nested": [[1, {"a": [None, (2, 3.0)]}], "b"],
    "dict": {"count": 3, "mean": 1.5},
    "empty dict": {},
    "dict of mixed keys": {1: "a", "b": 2, None: 3, (1, 2): 4},
    "dict of equal reprs": {Twin(): 1, Twin(): 2},
    "dict with a key named int": {"int": math.nan, "float": 1.0},
    "set": {1, "a", None},
    "frozenset": frozenset({1.5}),
    "dataclass": Release(3, None),
    "dataclass type": Release,
    "raised": Raised("ValueError", "row # has int #"),
    "exception": ValueError("x"),
    "array": np.array([1.0, 2.0]),
    "int array": np.array([3, 4]),
    "bool array": np.array([True, False]),
    "2d array": np.zeros((2, 3)),
    "0d array": np.array(9.25),
    "empty array": np.empty((0, 3)),
    "wide int array": np.array([1, 2**60]),
    "longdouble array": np.array([1, 2], dtype=np.longdouble),
    "complex array": np.array([1j, 2]),
    "string array": np.array(["a", "bc"]),
    "object array": np.array([1, None, "a"], dtype=object),
    "0d object array": np.array(None, dtype=object),
    "structured array": np.zeros(2, dtype=[("a", int), ("b", "U3")]),
    "record": np.zeros(1, dtype=[("a", int), ("b", float)])[0],
    "datetime array": np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "masked array": np.ma.masked_array([5.0, 6.0], [True, False]),
    "float64": np.float64(1.75),
    "float32": np.float32(0.1),
    "float16": np.float16(0.1),
    "longdouble": np.longdouble(1) / 3,
    "clongdouble": np.clongdouble(1j),
    "int8": np.int8(3),
    "uint64": np.uint64(2**64 - 1),
    "bool_": np.True_,
    "str_": np.str_("x"),
    "complex64": np.complex64(1j),
    "datetime64": np.datetime64("2020-01-01"),
    "datetime64 ns": np.datetime64("2020-01-01T00:00:00.123456789"),
    "NaT": np.datetime64("NaT", "s"),
    "timedelta64": np.timedelta64(3, "s"),
    "datetime": datetime.datetime(2020, 1, 1),
    "decimal": decimal.Decimal("1.5"),
    "fraction": fractions.Fraction(1, 3),
    "range": range(3),
    "frame": pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
    "empty frame": pd.DataFrame({"a": []}),
    "series": pd.Series([1.0, 2.0], index=["p", "q"]),
    "pandas index": pd.Index([1, 2]),
    "timestamp": pd.Timestamp("2020-01-01"),
    "pd.NA": pd.NA,
    "pd.NaT": pd.NaT,
    "categorical": pd.Categorical(["a", "b"]),
    "default repr": Silent(),
    "hostile repr": Hostile(),
    "function": len,
    "lambda": lambda x: x,
    "generator": (n for n in range(3)),
    "cyclic": cyclic(),
    "deep": deep(200),
    "long": list(range(600)),
    "long floats": tuple(float(n) for n in range(600)),
}
COMPANIONS: list[Any] = [None, 1.5, 7, "x", [1.0], (1, 2, 3), {"a": 1}, np.zeros(4), np.float32(1), [0.5] * 700]


def fingerprint_of(batch: Encoded, row: int) -> tuple[Any, ...]:
    """The part of one output that the engine can see; absent numbers at the end do not count."""
    values = batch.values[row].tolist()
    while values and math.isnan(values[-1]):
        values.pop()
    return (
        int(batch.codes[row]),
        tuple("nan" if value != value else value for value in values),
        int(record_keys(batch)[row]),
    )


@pytest.mark.parametrize("name", ZOO)
def test_encoding_of_an_output_does_not_depend_on_its_batch(name: str) -> None:
    output = ZOO[name]
    alone = encode([output])
    assert len(alone) == 1
    expected = fingerprint_of(alone, 0)
    many = [output, *COMPANIONS * (2 * FEWEST_OF_A_TYPE)]  # enough to be encoded type by type
    batches = [[output, output], *([output, other] for other in COMPANIONS), [*COMPANIONS, output], many]
    for batch in batches:
        place = len(batch) - 1 if batch[0] is not output else 0
        assert fingerprint_of(encode(batch), place) == expected, batch
    assert isinstance(structure(output), str)
    assert len(numbers(output)) >= len(expected[1])
    assert all(isinstance(number, float) for number in numbers(output))


@pytest.mark.parametrize("name", [name for name in ZOO if name != "None"])
def test_every_kind_of_output_has_its_own_encoding(name: str) -> None:
    """From the mechanism to the printed witness and back from JSON: one side shows the output, the other does not."""
    output, other = ZOO[name], None if len(name) % 2 else 0.125
    mechanism = dpaudit.per_release(lambda data, rng: output if data and rng.random() < 0.9 else other)
    result = dpaudit.audit(mechanism, dpaudit.PureDP(1.0), [([], [1])], samples=900, seed=0)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.witness is not None
    compile(result.witness.script(), "script", "exec")
    assert dpaudit.Result.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False))) == result
    assert str(result)


def test_different_outputs_differ() -> None:
    # A type says nothing about a number.
    alike = [
        {"str", "str_"}, {"array", "longdouble array"}, {"clongdouble", "complex64"}, {"int", "int8"}, {"bool", "bool_"},
    ]  # fmt: skip
    seen: dict[tuple[Any, ...], str] = {}
    for name, output in ZOO.items():
        twin = seen.setdefault(fingerprint_of(encode([output]), 0), name)
        assert twin == name or {twin, name} in alike


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.complex_numbers(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.sampled_from([*Colour, *Level]),
    st.builds(Raised, st.sampled_from(["ValueError", "KeyError"]), st.text(max_size=4)),
    st.floats(allow_nan=True).map(np.float64),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.floats(width=32).map(np.float32),
    st.lists(st.floats(), max_size=3).map(np.array),
    st.lists(st.integers(-(2**62), 2**62), max_size=3).map(lambda row: np.array(row, dtype=np.int64)),
    st.decimals(),
    st.fractions(),
    st.dates(),
    st.datetimes(),
    st.timedeltas(datetime.timedelta(-(10**6)), datetime.timedelta(10**6)),
    st.integers(-(2**62), 2**62).map(lambda count: np.datetime64(count, "ns")),
    st.floats(width=64).map(lambda value: np.longdouble(value) / 3),
    st.floats().map(lambda value: f"about {value!r}"),
    st.frozensets(st.floats(), max_size=3),
    st.lists(st.floats(), max_size=3).map(lambda row: np.ma.masked_array(row, [value < 0.0 for value in row])),
)
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=2), st.integers(0, 3)), inner, max_size=3),
        st.dictionaries(st.one_of(st.floats(), st.text(max_size=1)), inner, max_size=6),
        inner.map(Boxed),
    ),
    max_leaves=6,
)


@given(first=nested, others=st.lists(nested, max_size=4), times=st.sampled_from([1, 1, FEWEST_OF_A_TYPE]))
@settings(max_examples=250, deadline=None, derandomize=True)
def test_encoding_does_not_depend_on_the_batch(first: Any, others: list[Any], times: int) -> None:
    together = encode([first, *others] * times)
    assert fingerprint_of(encode([first]), 0) == fingerprint_of(together, 0)
    apart = stack([encode([output]) for output in (first, *others)])
    for row in range(len(apart)):
        assert fingerprint_of(apart, row) == fingerprint_of(together, row)


def test_a_batch_may_be_empty() -> None:
    assert [len(encode(outputs)) for outputs in ([], np.empty(0), np.empty(0, object))] == [0, 0, 0]


def test_the_dtype_of_an_array_says_nothing_about_its_entries() -> None:
    """Numpy chooses one dtype for all: an int64 array turns to float64 because of one NaN elsewhere in it."""
    plain, with_nan = encode(np.array([1, 2])), encode(np.array([1, np.nan]))
    assert fingerprint_of(plain, 0) == fingerprint_of(with_nan, 0)
    rows, rows_with_nan = encode(np.array([[1, 2], [3, 4]])), encode(np.array([[1, 2], [3, np.nan]]))
    assert fingerprint_of(rows, 0) == fingerprint_of(rows_with_nan, 0)
    days, with_nat = (np.array(["2020-01-01", last], dtype="datetime64[D]") for last in ("2020-01-02", "NaT"))
    assert fingerprint_of(encode(days), 0) == fingerprint_of(encode(with_nat), 0)


@pytest.mark.parametrize(
    "outputs",
    [[1, None], [1.0, None], np.array([1.0, 2.0]), np.array([1, 2]), np.array([1, None], object), [np.float32(1), "x"],
     [1, 2], [1.0, 2.5], pd.Series([1, None]), pd.Series([1, 2]), np.array([1, 2], np.uint8)],
)  # fmt: skip
def test_a_number_is_encoded_the_same_in_every_container(outputs: Any) -> None:
    assert fingerprint_of(encode(outputs), 0) == fingerprint_of(encode([1.0]), 0)


@pytest.mark.parametrize("outputs", [[True], np.array([True]), np.array([True, None], object), [np.True_, 1.0]])
def test_a_boolean_is_no_number(outputs: Any) -> None:
    assert fingerprint_of(encode(outputs), 0) == fingerprint_of(encode([True]), 0) != fingerprint_of(encode([1]), 0)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, np.nan, np.inf, -0.0]),
        np.array([1, -2, 3]),
        np.array([1, 2**60]),
        np.array([True, False]),
        np.array([1.5, 2.5], dtype=np.float32),
        np.array([1j, 2.0]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]"),
        np.array([1, 2], dtype="timedelta64[s]"),
        np.array(["a", "b"]),
        np.array([1, None, "a"], dtype=object),
        np.arange(12.0).reshape(3, 4),
        np.arange(24).reshape(2, 3, 4),
        np.array([[1, 2**60], [3, 4]]),
        np.zeros((3, 0)),
        np.zeros((2, 600)),
        np.array([1, 2], dtype=np.longdouble),
    ],
    ids=lambda array: f"{array.dtype}-{array.shape}",
)
def test_an_array_and_its_blocks_and_its_list_are_the_same(array: Any) -> None:
    """A batched mechanism hands over arrays; blocks are joined, cut, and where dtypes differ turned into lists."""
    whole = [fingerprint_of(encode(array), row) for row in range(len(array))]
    pieces = [fingerprint_of(encode(array[row : row + 1]), 0) for row in range(len(array))]
    assert whole == pieces
    if array.dtype.kind in "fbiu":
        as_list = encode([*array, None])
        assert whole == [fingerprint_of(as_list, row) for row in range(len(array))]


def test_numbers_are_kept_exactly() -> None:
    values = [0.1, -1e300, 5e-324, float(2**53), math.inf]
    assert encode(np.array(values)).values[:, 0].tolist() == values
    assert encode(values).values[:, 0].tolist() == values
    assert encode([(value, value) for value in values]).values[:, 1].tolist() == values
    # Integers whose nearest floats are equal stay different.
    assert len(set(record_keys(encode([2**53 + 1, 2**53 + 2, 2**53 + 3])).tolist())) == 3
    assert len(set(record_keys(encode(np.array([2**60, 2**60 + 1]))).tolist())) == 2


def test_keys_of_equal_outputs_are_equal_and_signed_zeros_are_one_value() -> None:
    keys = record_keys(encode([(0.0, 1.0), (-0.0, 1.0), (1.0, 0.0), (0.0, math.nan), (math.nan, 0.0), (0.0,)]))
    assert keys[0] == keys[1]
    assert len(set(keys[1:].tolist())) == 5


def test_keys_hardly_collide() -> None:
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.arange(16.0)] * 4), axis=-1).reshape(-1, 4)
    assert np.unique(record_keys(encode(grid))).size == 16**4
    assert np.unique(record_keys(encode(rng.normal(size=200_000)))).size == 200_000


def test_codes_do_not_depend_on_the_process() -> None:
    """Python's ``hash`` is salted per process (13.10); another process, with another salt, must agree."""
    program = "from dpaudit.engine.encoding.batch import encode; print(encode(['a', None, 2.5]).codes.tolist())"
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    there = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == str(encode(["a", None, 2.5]).codes.tolist())
    assert digest("a") != digest("b")


def test_encoded_batches_pickle_and_select() -> None:
    batch = encode([1.5, None, "a", [1, 2]])
    again = pickle.loads(pickle.dumps(batch))
    assert [fingerprint_of(again, row) for row in range(4)] == [fingerprint_of(batch, row) for row in range(4)]
    assert fingerprint_of(batch.rows([3, 1]), 0) == fingerprint_of(batch, 3)
    assert fingerprint_of(batch.first(2), 1) == fingerprint_of(batch, 1)
    uniform = pickle.loads(pickle.dumps(encode(np.arange(5.0))))
    assert uniform.uniform
    assert len(uniform) == 5


def test_structure_reads_like_the_output() -> None:
    assert structure({"count": 3, "mean": (1.5, None)}) == "{'count': number, 'mean': (number, None)}"
    assert numbers({"count": 3, "mean": (1.5, None)}) == [3.0, 1.5]
    assert structure(Raised("ValueError", "bad")) == "raises ValueError: bad"
    assert structure(None) == "None"


@pytest.mark.parametrize("distinct", [1, 10, 3000])
@pytest.mark.parametrize("size", [50, 20_000])
def test_arrays_of_words_are_encoded_as_lists_of_words_are(size: int, distinct: int) -> None:
    rng = np.random.default_rng(size + distinct)
    words = np.array([f"word {k}" + "!" * (k % 7) for k in range(distinct)])
    drawn = words[rng.integers(distinct, size=size)]
    from_array, from_list = encode(drawn), encode(drawn.tolist())
    np.testing.assert_array_equal(from_array.codes, from_list.codes)
    assert {code: from_array.labels[code] for code in from_list.labels} == dict(from_list.labels)
    assert np.unique(from_array.codes).size == np.unique(drawn).size
    pairs = encode(np.stack([drawn, drawn[::-1]], axis=1))
    assert np.unique(pairs.codes).size == np.unique(np.stack([drawn, drawn[::-1]], axis=1), axis=0).shape[0]
    raw = encode(drawn.astype("S"))
    assert np.unique(raw.codes).size == np.unique(drawn).size
    assert not np.isin(raw.codes, from_array.codes).any()  # bytes are not strings


def test_objects_that_are_strings_keep_trailing_zeros_apart() -> None:
    batch = encode(np.array(["a", "a\0", "a"], dtype=object))
    assert batch.codes[0] == batch.codes[2] != batch.codes[1]


def test_no_outputs_at_all_are_an_empty_batch() -> None:
    """As the values of a suspect that returned truth values alone."""
    assert len(encode([])) == 0
