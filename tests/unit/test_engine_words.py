"""Words that were looked at in one batch are not looked at again, and nothing but the time tells."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.engine import outputs, words
from dpaudit.engine.outputs import Encoded, encode

MANY = words.WORTH_A_TABLE


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_REMEMBERED", {})


def told(batch: Encoded) -> tuple[list[int], dict[int, str], dict[int, int]]:
    assert batch.counted is not None
    counts = dict(
        zip(
            batch.counted.values.tolist(),
            np.diff(batch.counted.upto, prepend=0).tolist(),
            strict=True,
        )
    )
    return batch.codes.tolist(), dict(batch.labels), counts


def one_by_one(array: np.ndarray[Any, Any]) -> tuple[list[int], dict[int, str], dict[int, int]]:
    """The same by the walk over single outputs."""
    walked = outputs._walk_all(list(array))
    return walked.codes.tolist(), dict(walked.labels), dict(Counter(walked.codes.tolist()))


def block(rng: np.random.Generator, vocabulary: list[str], size: int = MANY, **kind: Any) -> np.ndarray[Any, Any]:
    return np.array(vocabulary, **kind)[rng.integers(0, len(vocabulary), size)]


word = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12).filter(
    lambda text: outputs._look(np.str_(text)) is not None  # a word that is a number, such as "0.0", is read as one
)


@settings(max_examples=25, deadline=None)
@given(
    vocabularies=st.lists(st.lists(word, min_size=1, max_size=30), min_size=1, max_size=4),
    size=st.sampled_from([MANY, words.SLOTS - 1, words.SLOTS + 1000]),
    seed=st.integers(0, 2**32),
)
def test_every_batch_is_told_as_by_a_walk(vocabularies: list[list[str]], size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    words._REMEMBERED.clear()
    for vocabulary in vocabularies:
        array = block(rng, vocabulary, size, dtype="U12")
        assert told(encode(array)) == one_by_one(array)


def test_words_with_numbers_among_them_are_left_to_the_walk() -> None:
    array = block(np.random.default_rng(0), ["yes", "0.0", "1.5"])
    batch, walked = encode(array), outputs._walk_all(list(array))
    assert batch.counted is None
    assert batch.codes.tolist() == walked.codes.tolist()
    np.testing.assert_array_equal(batch.values, walked.values)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("length", range(1, 18))
def test_keys_tell_all_of_a_word_and_nothing_of_the_next(length: int, wide: bool) -> None:
    letters = ["\u00e9", "\u65e5" if wide else "e"]
    vocabulary = [
        "".join("a" if place != at else letter for place in range(length)) for at in range(length) for letter in letters
    ]
    array = block(np.random.default_rng(length), vocabulary, 500)
    keys, narrow = words.row_keys(array.reshape(-1, 1))
    assert narrow is not wide
    assert (
        len(set(zip(array.tolist(), keys.tolist(), strict=True))) == len(set(array.tolist())) == len(set(keys.tolist()))
    )


def test_what_was_looked_at_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    seen: list[str] = []
    look = outputs._look
    monkeypatch.setattr(outputs, "_look", lambda words: seen.append(str(words)) or look(words))
    for _ in range(3):
        encode(block(rng, ["yes", "no", "perhaps"]))
    assert sorted(seen) == ["no", "perhaps", "yes"]


@pytest.mark.parametrize("late", ["nay", "\u65e5\u672c"])  # of one byte a letter, or not
def test_a_word_that_comes_late_has_its_own_kind(late: str) -> None:
    rng = np.random.default_rng(0)
    first = block(rng, ["yes", "no"], dtype="U7")
    encode(first)
    array = first.copy()
    array[-1] = late
    assert told(encode(array)) == one_by_one(array)
    assert told(encode(first)) == one_by_one(first)


def test_words_that_are_missing_leave_no_label() -> None:
    rng = np.random.default_rng(0)
    encode(block(rng, ["yes", "no", "perhaps"]))
    only = np.full(MANY, "no", dtype="U7")
    assert list(encode(only).labels.values()) == ["'no'"]


def test_words_of_other_arrays_are_not_taken_for_each_other() -> None:
    rng = np.random.default_rng(0)
    for array in (
        block(rng, ["a", "b"], dtype="U1"),
        block(rng, ["a", "b"], dtype="S1"),
        block(rng, ["a", "b"], size=2 * MANY, dtype="U1").reshape(MANY, 2),
    ):
        assert told(encode(array)) == one_by_one(array)


def test_few_kinds_of_arrays_are_remembered() -> None:
    rng = np.random.default_rng(0)
    for width in range(1, 2 * words.MOST_REMEMBERED):
        encode(block(rng, ["a", "b"], dtype=f"U{width}"))
    assert len(words._REMEMBERED) <= words.MOST_REMEMBERED
