"""Variations of a pair: inside the search space, different from it, the same for the same generator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import neighbours
from dpaudit._util.values import fingerprint, rows_of
from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours import Pair, Secret
from dpaudit.neighbours._corner_rows import corner_rows, ordinary_rows

WHOLE = st.integers(-3, 9)
POINTS = st.tuples(st.floats(0.0, 1.0), st.integers(0, 5))
CONTAINERS = [
    (list, WHOLE),
    (tuple, POINTS),
    (np.ndarray, WHOLE),
    (neighbours.array("float64", (2,)), POINTS),
    (neighbours.frame(["size", "count"], ["float64", "int64"]), POINTS),
]
TABLES = [
    *((neighbours.substitute(rows, min_size=2, max_size=4, container=holder), 2, 4) for holder, rows in CONTAINERS),
    *((neighbours.add_remove(rows, min_size=1, max_size=4, container=holder), 1, 4) for holder, rows in CONTAINERS),
    (neighbours.zero_out(st.integers(1, 9), null=0, min_size=2, max_size=4), 2, 4),
]
ANSWERS = [
    {"low": low, "high": high, "sensitivity": reach, "monotone": monotone, "entries": entries, "integral": integral}
    for low, high, reach, integral in [(0, 10, 3, True), (0, 1, 5, False), (-0.7, 2.3, 0.1, False)]
    for monotone in (False, True)
    for entries in ("all", "one")
]
seeds = st.integers(0, 2**32 - 1)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("close", "fewest", "most"), TABLES, ids=[repr(close) for close, *_ in TABLES])
@settings(max_examples=12, deadline=None)
@given(data=st.data(), seed=seeds)
def test_edits_of_rows_keep_the_relation_and_the_sizes(close, fewest, most, data, seed):
    pair = data.draw(close.strategy)
    for edited in close.edits(pair, rng(seed), 8):
        assert close.satisfies(*edited)
        assert {fingerprint(type(side)) for side in edited} == {fingerprint(type(side)) for side in pair}
        assert all(fewest <= len(side) <= most for side in edited)
        assert fingerprint(edited.data) != fingerprint(edited.neighbour)
        assert {fingerprint(side) for side in edited} != {fingerprint(side) for side in pair}


@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=seeds)
def test_every_row_of_an_edit_is_one_of_the_pair_a_corner_or_drawn(data, seed):
    close = neighbours.substitute(WHOLE, min_size=1, max_size=5)
    pair = data.draw(close.strategy)
    corners = corner_rows(WHOLE)
    known = {*pair.data, *pair.neighbour, *corners.all, *corners.between, *ordinary_rows(WHOLE)}
    for edited in close.edits(pair, rng(seed), 8):
        assert {*edited.data, *edited.neighbour} <= known


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=seeds)
def test_the_null_row_stays_and_is_not_copied(data, seed):
    close = neighbours.zero_out(st.integers(1, 9), null=0, max_size=4)
    pair = data.draw(close.strategy)
    for edited in close.edits(pair, rng(seed), 8):
        assert [*edited.data, *edited.neighbour].count(0) == 1


@pytest.mark.parametrize("options", ANSWERS, ids=[str(tuple(options.values())) for options in ANSWERS])
@settings(max_examples=12, deadline=None)
@given(data=st.data(), seed=seeds)
def test_edits_of_answers_keep_the_relation_and_the_range(options, data, seed):
    close = neighbours.answers(4, **options)
    pair = data.draw(close.strategy)
    edited = close.edits(pair, rng(seed), 8)
    assert edited
    for other in edited:
        change = other.neighbour - other.data
        assert other.data.dtype == other.neighbour.dtype == (np.int64 if options["integral"] else np.float64)
        assert all(((options["low"] <= side) & (side <= options["high"])).all() for side in other)
        assert (np.abs(change) <= options["sensitivity"]).all()
        assert change.any()
        assert not options["monotone"] or (change >= 0).all() or (change <= 0).all()
        assert options["entries"] == "all" or np.count_nonzero(change) == 1
        assert close.satisfies(*other)


def test_each_kind_of_edit_of_rows_occurs():
    close = neighbours.substitute(st.integers(0, 9), min_size=1, max_size=4)
    found = close.edits(Pair([3, 4, 5], [3, 4, 6]), rng(), 60)
    assert Pair([3, 5], [3, 6]) in found  # one less
    assert Pair([3, 4, 5, 4], [3, 4, 6, 4]) in found or Pair([3, 4, 4, 5], [3, 4, 4, 6]) in found  # one twice
    assert Pair([5, 5, 5], [5, 5, 6]) in found  # all shared rows like one of the pair
    assert Pair([9, 9, 5], [9, 9, 6]) in found  # all shared rows extreme
    assert Pair([3, 9, 5], [3, 9, 6]) in found  # one shared row extreme
    assert Pair([3, 4, 9], [3, 4, 6]) in found  # the row that differs extreme
    assert Pair([5, 3, 4], [6, 3, 4]) in found  # the difference elsewhere


def test_each_kind_of_edit_of_answers_occurs():
    close = neighbours.answers(2, 0, 10)
    edited = close.edits(Pair(np.array([3.0, 4.0]), np.array([4.0, 4.0])), rng(), 40)
    found = [tuple(map(tuple, pair)) for pair in edited]
    assert ((9.0, 4.0), (10.0, 4.0)) in found  # an entry at the end of the range, with its move
    assert ((3.0, 0.0), (4.0, 0.0)) in found
    assert ((9.0, 10.0), (10.0, 10.0)) in found  # all shifted: the first would leave the range, so it starts lower
    assert ((3.0, 4.0), (2.0, 4.0)) in found  # the other direction
    assert ((3.0, 4.0), (4.0, 3.0)) in found  # one more entry moves
    assert ((3.0, 4.0), (2.0, 3.0)) in found  # both, the other way
    steps = [pair.data[0] - 3.0 for pair in edited if pair.data[1] - pair.data[0] == pytest.approx(1.0)]
    assert any(0.0 < step < 1.0 for step in steps)  # all shifted by a little, and by more
    assert any(-1.0 < step < 0.0 for step in steps)
    assert any(1.0 < abs(step) < 3.0 for step in steps)


@pytest.mark.parametrize(
    "close",
    [
        neighbours.add_remove(WHOLE),
        neighbours.answers(3, 0, 5),
        neighbours.users(WHOLE),
        neighbours.pairs(st.integers(0, 99).map(lambda n: (n, n + 1))),
        neighbours.substitute(WHOLE).map_data(tuple),
    ],
    ids=repr,
)
def test_edits_depend_on_the_generator_only(close):
    pair = close.pool(12)[-1]
    found = [[tuple(map(fingerprint, edited)) for edited in close.edits(pair, rng(seed), 6)] for seed in (1, 1, 2)]
    assert len(found[0]) == 6
    assert found[0] == found[1] != found[2]


def test_spaces_without_edits_give_new_pairs():
    mapped = neighbours.substitute(WHOLE, max_size=3).map_data(lambda rows: {"rows": rows})
    found = mapped.edits(mapped.corners()[0], rng(), 5)
    assert len(found) == 5
    assert all(set(side) == {"rows"} for pair in found for side in pair)


def test_fixed_pairs_have_no_variations():
    pair = Pair([0], [1])
    assert neighbours.fixed([pair, ([1], [2])], relation=Relation.SUBSTITUTE).edits(pair, rng(), 3) == []
    ill, well = (Secret(name, lambda _: [0]) for name in ("ill", "well"))
    assert neighbours.secrets([(ill, well)]).edits(Pair(ill, well), rng(), 3) == []


def test_editing_does_not_change_the_pair_and_copies_its_rows():
    close = neighbours.substitute(st.lists(WHOLE, min_size=1, max_size=2), min_size=2, max_size=4)
    pair = Pair([[1], [2]], [[1], [3]])
    found = close.edits(pair, rng(), 10)
    for edited in found:
        edited.data[0].append(99)
        assert 99 not in [entry for row in rows_of(edited.neighbour) for entry in row]
    assert pair == Pair([[1], [2]], [[1], [3]])


def test_errors_of_edits_name_the_argument():
    close = neighbours.add_remove(WHOLE)
    with pytest.raises(InvalidArgument, match="not a pair of neighbours"):
        close.edits(Pair([1, 2], [3]), rng(), 2)
    with pytest.raises(InvalidArgument, match="count=0"):
        close.edits(Pair([1], []), rng(), 0)
    with pytest.raises(InvalidArgument, match="rng"):
        close.edits(Pair([1], []), 0, 2)
