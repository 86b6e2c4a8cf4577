"""Features of one output: their values, and that a batch of outputs has those of each output alone."""

from __future__ import annotations

import math
import struct
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.engine.encoding.batch import encode, stack
from dpaudit.engine.encoding.feature_table import feature_table, joined, may_have_features, table_of_blocks
from dpaudit.engine.encoding.features import default, feature, features, is_test
from dpaudit.mechanism import Raised


@dataclass
class Release:
    words: Any
    count: int


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"a", 3}, {"size of output": 2, "count of 'a' in output": 1, "count of 3 in output": 1}),
        (Counter("abb"), {"size of output": 2, "output['a']": 1, "output['b']": 2}),
        ({"k": "v"}, {"count of 'k' in output": 1, "output['k'] == 'v'": 1, "length of output['k']": 1}),
        ({(1, 2): 2.5}, {"output[(1, 2)]": 2.5}),
        (
            ["x", "y", "x", 7.5],
            {"count of 'x' in output": 2, "place of 'y' in output": 1, "output[3]": 7.5, "size of output": 4},
        ),
        (np.array(["x", 2.5], dtype=object), {"count of 'x' in output": 1, "output[1]": 2.5}),
        (([{"a": 1}],), {"output[0][0]['a']": 1}),
        (Release({"flu"}, 3), {"count of 'flu' in output.words": 1, "output.count": 3}),
        ('{"a": [1, 2]}', {"json.loads(output)['a'][1]": 2, "length of output": 13}),
        ("[broken", {"length of output": 7, "count of 'broken' in output": 1}),
        ("12,-3.5e2,x7,0x", {"number 0 in output": 12, "number 1 in output": -350, "count of 'x7' in output": 1}),
        ("ab-Bob 1", {"output starts with 'ab'": 1, "output ends with 'b 1'": 1, "number of capitals in output": 1}),
        ("ab", {"ord(output[1])": 98, "number of letters in output": 2}),
        (struct.pack("<2d", 1.5, -2.0), {"number 1 of output packed as <d": -2.0, "byte 15 of output": 0xC0}),
        (struct.pack(">i", 7), {"number 0 of output packed as >i": 7, "length of output": 4}),
        (b"id 5", {"number 0 in output.decode()": 5}),
    ],
)
def test_features_of(output: Any, expected: dict[str, float]) -> None:
    found = features(output)
    assert expected.items() <= found.items()
    assert all(feature(output, name) == value for name, value in expected.items())


@pytest.mark.parametrize("output", [None, 3, 2.5, True, np.float64(1), np.arange(3.0), Raised("ValueError"), 1j])
def test_numbers_have_no_features(output: Any) -> None:
    assert features(output) == {}
    assert not may_have_features([output])


def test_features_of_absent_parts() -> None:
    assert feature({}, "count of 'a' in output") == 0.0
    assert feature("", "output ends with 'a'") == 0.0
    assert math.isnan(feature({}, "output['a']"))
    assert is_test("output['k'] == 'v'")
    assert not is_test("output['k']")


def test_large_outputs_have_a_limited_number_of_features() -> None:
    assert len(features({str(number): number for number in range(10_000)})) < 1000
    assert len(features([str(number) for number in range(10_000)])) < 1100
    assert len(features("a b c " * 10_000)) < 100
    assert features({"x" * 100})["size of output"] == 1.0
    assert len(features({"x" * 100})) == 1


def test_a_collection_that_holds_itself_is_read_to_a_limited_depth() -> None:
    endless: list[Any] = [1.0]
    endless.append(endless)
    assert features(endless)["output[1][1][0]"] == 1.0


OUTPUTS = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=9) | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.lists(OUTPUTS, min_size=1, max_size=6), st.data())
def test_a_table_has_the_features_of_each_output_alone(outputs: list[Any], data: st.DataObject) -> None:
    names = sorted({name for output in outputs for name in features(output)})
    defaults = [default(name) for name in names]
    expected = np.array([[feature(output, name) for name in names] for output in outputs]).reshape(len(outputs), -1)
    table = feature_table(outputs)
    if table is None:
        assert not names
        return
    assert np.array_equal(table.columns(names, defaults), expected, equal_nan=True)
    assert table.frequency == {name: sum(name in features(output) for output in outputs) for name in table.names}
    some = data.draw(st.lists(st.integers(0, len(outputs) - 1), max_size=5))
    assert np.array_equal(table.rows(some).columns(names, defaults), expected[some], equal_nan=True)
    parts = joined([(table_of_blocks([[output]]), 1) for output in outputs])
    assert parts is not None
    assert np.array_equal(parts.columns(names, defaults), expected, equal_nan=True)
    chosen = names[::2]
    having = [any(name in features(output) for name in chosen) for output in outputs]
    assert table.having(chosen).tolist() == having


def test_features_go_with_the_outputs() -> None:
    outputs = [{"a": 1}, "b", 3, {"a": 4}]
    batch = encode(outputs).with_features(table_of_blocks([outputs]))
    chosen = stack([batch.rows(slice(1, 4)), batch.first(1), encode([2.5])])
    assert chosen.features is not None
    found = chosen.features.columns(["output['a']"], [-1.0])
    assert found[:, 0].tolist() == [-1.0, -1.0, 4.0, 1.0, -1.0]
