"""Grouped small integers give the same counts as single outputs, for any dtype and any batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.engine.encoding.batch import encode, record_keys
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.small_integers import distinct, groups
from dpaudit.engine.views.view import Block, RecordView, ScoreView

CASES = {
    "bits, too many outputs to count": (20, (0, 1)),
    "indicators with an end": (10, (-1, 1)),
    "constant": (6, (3, 3)),
    "digits": (40, (-5, 4)),
    "bytes": (3, (-128, 127)),
}


def drawn(case: str, seed: int, size: int = 20_000) -> np.ndarray[Any, Any]:
    width, (low, high) = CASES[case]
    rng = np.random.default_rng(seed)
    skewed = rng.random((size, width)) ** (1.0 + 0.1 * seed)
    return np.asarray(low + np.floor(skewed * (high - low + 1)), dtype=np.int8)


@pytest.mark.parametrize("case", CASES)
def test_views_count_bytes_as_they_count_floats(case: str) -> None:
    sides = encode(drawn(case, 1)), encode(drawn(case, 2))
    outputs = drawn(case, 3)
    small, wide = Block(encode(outputs)), Block(encode(outputs.astype(np.float64)))
    assert wide.distinct is None
    assert wide.groups is None
    np.testing.assert_array_equal(record_keys(small.batch), record_keys(wide.batch))
    for view, _ in build_views((sides[0].first(20_000), sides[1].first(20_000))):
        np.testing.assert_array_equal(view.count(small), view.count(wide))
        if isinstance(view, ScoreView):
            studying = ScoreView(view.name, view.score, view.line, studies=True)
            np.testing.assert_array_equal(studying.study(small), studying.study(wide))
        if isinstance(view, RecordView):
            assert sorted(view.unknown(small)) == sorted(view.unknown(wide))


@pytest.mark.parametrize("case", CASES)
def test_scores_do_not_depend_on_the_digits_of_the_batch(case: str) -> None:
    """A batch in which more digits occur has other tables."""
    sides = encode(drawn(case, 1)), encode(drawn(case, 2))
    outputs = drawn(case, 3)
    other = outputs.copy()
    other[0, 0] = 5
    for view, _ in build_views((sides[0].first(20_000), sides[1].first(20_000))):
        both = [view.count(Block(encode(batch))) for batch in (outputs, other)]
        single = [view.count(Block(encode(batch[:1]))) for batch in (outputs, other)]
        np.testing.assert_array_equal(both[0] - single[0], both[1] - single[1])


def test_distinct_rows_are_counted() -> None:
    outputs = drawn("indicators with an end", 4)
    found = distinct(encode(outputs))
    assert found is not None
    rows, counts = np.unique(outputs, axis=0, return_counts=True)
    np.testing.assert_array_equal(found.batch.values, rows)
    np.testing.assert_array_equal(found.counts, counts)


def test_groups_hold_every_coordinate_once_and_the_one_before() -> None:
    outputs = drawn("bits, too many outputs to count", 5)
    assert distinct(encode(outputs)) is None
    made = groups(encode(outputs))
    assert made is not None
    assert [column for group in made for column in group.columns] == list(range(20))
    for group in made:
        assert group.shift == max(group.columns.start - 1, 0)
        rows = group.patterns.batch.values[group.number]
        np.testing.assert_array_equal(rows, outputs[:, group.shift : group.columns.stop])


@pytest.mark.parametrize("outputs", [np.zeros((100, 4), np.int8), np.zeros(9000, np.int8)])
def test_few_outputs_and_single_numbers_have_no_tables(outputs: np.ndarray[Any, Any]) -> None:
    assert distinct(encode(outputs)) is None
    assert groups(encode(outputs)) is None
