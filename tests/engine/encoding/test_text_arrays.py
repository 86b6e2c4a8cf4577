"""Encoding arrays of strings gives what encoding each string alone gives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.engine.encoding import batch as batches
from dpaudit.engine.encoding.batch import Encoded, encode
from dpaudit.engine.encoding.text_arrays import TABLE, has_one_byte_characters, row_keys

MANY = TABLE.fewest_rows


def summary(batch: Encoded) -> tuple[list[int], dict[int, str], dict[int, int]]:
    assert batch.counted is not None
    frequencies = np.diff(batch.counted.upto, prepend=0).tolist()
    counts = dict(zip(batch.counted.values.tolist(), frequencies, strict=True))
    return batch.codes.tolist(), dict(batch.labels), counts


def one_by_one(array: np.ndarray[Any, Any]) -> tuple[list[int], dict[int, str], dict[int, int]]:
    """The same summary from encoding every string alone."""
    walked = batches._walk_all(list(array))
    return walked.codes.tolist(), dict(walked.labels), dict(Counter(walked.codes.tolist()))


def block(rng: np.random.Generator, vocabulary: list[str], size: int = MANY, **kind: Any) -> np.ndarray[Any, Any]:
    return np.array(vocabulary, **kind)[rng.integers(0, len(vocabulary), size)]


word = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12).filter(
    lambda text: batches._encode_row_of_strings(np.str_(text)) is not None  # "0.0" is read as a number
)


@settings(max_examples=25, deadline=None)
@given(
    vocabulary=st.lists(word, min_size=1, max_size=30),
    size=st.sampled_from([MANY, TABLE.slots - 1, TABLE.slots + 1000]),
    seed=st.integers(0, 2**32),
)
def test_encoding_a_batch_equals_encoding_each_string(vocabulary: list[str], size: int, seed: int) -> None:
    array = block(np.random.default_rng(seed), vocabulary, size, dtype="U12")
    assert summary(encode(array)) == one_by_one(array)


@pytest.mark.parametrize("rare", [0.0, 0.05, 1.0])
def test_strings_that_miss_the_table_are_sorted(rare: float) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.permutation(TABLE.rows_in_cache + 5000)
    array = np.where(rng.random(numbers.size) < rare, numbers, numbers % 10).astype("U8")
    assert summary(encode(array)) == one_by_one(array)


def test_strings_that_hold_numbers_are_read_one_by_one() -> None:
    array = block(np.random.default_rng(0), ["yes", "0.0", "1.5"])
    batch, walked = encode(array), batches._walk_all(list(array))
    assert batch.counted is None
    assert batch.codes.tolist() == walked.codes.tolist()
    np.testing.assert_array_equal(batch.values, walked.values)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("length", range(1, 18))
def test_keys_depend_on_the_whole_string_and_not_on_the_next(length: int, wide: bool) -> None:
    letters = ["\u00e9", "\u65e5" if wide else "e"]
    vocabulary = [
        "".join("a" if place != at else letter for place in range(length)) for at in range(length) for letter in letters
    ]
    array = block(np.random.default_rng(length), vocabulary, 500)
    assert has_one_byte_characters(array) is not wide
    keys = row_keys(array.reshape(-1, 1), one_byte=not wide).tolist()
    distinct = set(array.tolist())
    assert len(set(zip(array.tolist(), keys, strict=True))) == len(distinct) == len(set(keys))


@pytest.mark.parametrize("late", ["nay", "\u65e5\u672c"])  # with characters of one byte, and of more
def test_a_string_that_first_occurs_at_the_end_has_its_own_code(late: str) -> None:
    array = block(np.random.default_rng(0), ["yes", "no"], size=TABLE.slots + 1, dtype="U7")
    array[-1] = late
    assert summary(encode(array)) == one_by_one(array)


@pytest.mark.parametrize("dtype", ["U1", "S1"])
@pytest.mark.parametrize("columns", [1, 2])
def test_rows_and_bytes_are_encoded_as_when_alone(dtype: str, columns: int) -> None:
    array = block(np.random.default_rng(0), ["a", "b"], size=columns * MANY, dtype=dtype).reshape(MANY, columns)
    assert summary(encode(array)) == one_by_one(array)
