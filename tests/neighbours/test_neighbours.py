"""Neighbouring data sets: pairs differ as their relation says, shrink, and start from extreme rows."""

import copy
import itertools
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dpaudit import neighbours
from dpaudit._util.hypothesis_bridge import explore, smallest
from dpaudit._util.values import fingerprint, rows_of, source
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument, RelationMismatch
from dpaudit.neighbours import Pair, Secret, check_relation
from dpaudit.neighbours._corner_rows import corner_rows

ROWS = st.integers(-3, 9)
RECORDS = st.tuples(st.integers(0, 120), st.floats(0, 1))


def drawn(close, count=80, seed=1):
    found = []
    explore(close.strategy, found.append, examples=count, seed=seed)
    assert len(found) > count / 3
    return found


def minimal(close, condition):
    return smallest(close.strategy, condition, examples=2000, seed=0)


def differing_places(first, second):
    return [place for place, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]


def with_one_deleted(rows):
    return [rows[:place] + rows[place + 1 :] for place in range(len(rows))]


# --- the relations, against their definitions -------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [ROWS, RECORDS, st.booleans(), st.text("ab", max_size=2)])
def test_substitute_replaces_exactly_one_row(rows):
    close = neighbours.substitute(rows, min_size=2, max_size=4)
    assert close.relation is Relation.SUBSTITUTE
    for data, neighbour in [*drawn(close), *close.corners()]:
        assert 2 <= len(data) == len(neighbour) <= 4
        assert len(differing_places(data, neighbour)) == 1
        assert close.satisfies(data, neighbour)


@pytest.mark.parametrize("rows", [ROWS, RECORDS, st.booleans(), st.text("ab", max_size=2)])
def test_add_remove_has_one_row_more_or_less(rows):
    close = neighbours.add_remove(rows, min_size=1, max_size=4)
    assert close.relation is Relation.ADD_REMOVE
    for data, neighbour in [*drawn(close), *close.corners()]:
        short, long = sorted((data, neighbour), key=len)
        assert 1 <= len(short) == len(long) - 1 <= 3
        assert short in with_one_deleted(long)
        assert close.satisfies(data, neighbour)
        assert close.satisfies(neighbour, data)


def test_zero_out_replaces_one_row_by_the_null_row():
    close = neighbours.zero_out(ROWS, null=0, max_size=3)
    assert close.relation is Relation.ZERO_OUT
    for data, neighbour in [*drawn(close), *close.corners()]:
        (place,) = differing_places(data, neighbour)
        assert 0 in (data[place], neighbour[place])
        assert close.satisfies(data, neighbour)
    assert not close.satisfies([1, 2], [1, 3])
    assert not close.satisfies([1, 2], [0, 0])


@pytest.mark.parametrize("layout", ["pairs", "lists"])
@pytest.mark.parametrize("relation", [Relation.USERS_ADD_REMOVE, Relation.USERS_SUBSTITUTE])
def test_users_change_one_person_with_all_rows(relation, layout):
    close = neighbours.users(ROWS, relation=relation, layout=layout, max_users=3, rows_per_user=2)
    assert close.relation is relation
    sizes = set()
    for data, neighbour in [*drawn(close), *close.corners()]:
        assert close.satisfies(data, neighbour)
        if layout == "pairs":
            people = [dict.fromkeys(user for user, _ in side) for side in (data, neighbour)]
            held = [
                {user: [row for who, row in side if who == user] for user in people[0] | people[1]}
                for side in (data, neighbour)
            ]
            changed = [user for user in held[0] if held[0][user] != held[1][user]]
            assert len(changed) == 1
            sizes.add(len(held[0][changed[0]]) + len(held[1][changed[0]]))
            assert all(len(rows) <= 2 for side in held for rows in side.values())
            assert (not all(side[changed[0]] for side in held)) == (relation is Relation.USERS_ADD_REMOVE)
        else:
            assert abs(len(data) - len(neighbour)) == (relation is Relation.USERS_ADD_REMOVE)
            sizes.add(abs(sum(map(len, data)) - sum(map(len, neighbour))))
            assert all(1 <= len(person) <= 2 for person in data + neighbour)
    assert len(sizes) > 1  # one person changes one row in some pairs and several in others


def test_users_rules_refuse_two_people():
    close = neighbours.users(ROWS)
    assert not close.satisfies([(0, 1), (1, 1)], [])
    assert not close.satisfies([(0, 1)], [(0, 2)])
    assert close.satisfies([(0, 1), (0, 2), (1, 1)], [(1, 1)])
    swap = neighbours.users(ROWS, relation=Relation.USERS_SUBSTITUTE)
    assert swap.satisfies([(0, 1), (0, 2)], [(0, 5)])
    assert not swap.satisfies([(0, 1)], [])
    assert not swap.satisfies([(0, 1), (1, 1)], [(0, 5), (1, 5)])


def test_users_fill_frames():
    columns = neighbours.frame(["user", "age", "sex"], ["int64", "int64", "str"])
    close = neighbours.users(st.tuples(st.integers(0, 9), st.sampled_from("MF")), container=columns)
    for data, neighbour in close.pool(20):
        assert list(data.columns) == ["user", "age", "sex"]
        assert close.satisfies(data, neighbour)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), max_size=4), st.lists(st.integers(0, 2), max_size=4))
def test_rules_agree_with_brute_force(first, second):
    removal = neighbours.add_remove(st.integers())
    swap = neighbours.substitute(st.integers())
    one_more = second in with_one_deleted(first) or first in with_one_deleted(second)
    assert removal.satisfies(first, second) == (one_more or first == second)
    assert swap.satisfies(first, second) == (len(first) == len(second) and len(differing_places(first, second)) <= 1)


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("entries", ["all", "one"])
@pytest.mark.parametrize(("low", "high", "sensitivity"), [(0, 10, 1), (0, 1, 5), (-0.7, 2.3, 0.1)])
def test_answers_move_by_at_most_the_sensitivity(monotone, entries, low, high, sensitivity):
    close = neighbours.answers(4, low, high, sensitivity=sensitivity, monotone=monotone, entries=entries)
    assert close.relation is Relation.ANSWERS
    for data, neighbour in [*drawn(close, 40), *close.corners()]:
        assert data.dtype == neighbour.dtype == np.float64
        assert data.shape == neighbour.shape == (4,)
        change = neighbour - data
        assert ((low <= data) & (data <= high) & (low <= neighbour) & (neighbour <= high)).all()
        assert np.any(change)
        # Rounding may not add more than an ulp of the larger answer, in exact arithmetic.
        exact = [abs(Fraction(b) - Fraction(a)) for a, b in zip(data, neighbour, strict=True)]
        assert all(gap <= Fraction(float(sensitivity)) * (1 + Fraction(1, 10**15)) for gap in exact)
        assert not monotone or (change >= 0).all() or (change <= 0).all()
        assert entries == "all" or np.count_nonzero(change) == 1
        assert close.satisfies(data, neighbour)


def test_answers_start_with_the_published_patterns():
    # The published candidate pairs: all ones against one entry 0; one entry 2; one up rest down; one down rest up; half
    # up half down; all up; all down; alternating.
    found = neighbours.answers(5, 0, 10).corners()[:8]
    assert all((pair.data == 1).all() for pair in found)
    assert [pair.neighbour.tolist() for pair in found] == [
        [0, 1, 1, 1, 1],
        [2, 1, 1, 1, 1],
        [2, 0, 0, 0, 0],
        [0, 2, 2, 2, 2],
        [2, 2, 2, 0, 0],
        [2, 2, 2, 2, 2],
        [0, 0, 0, 0, 0],
        [2, 0, 2, 0, 2],
    ]


def test_answers_reach_both_ends_of_the_range_in_opposite_moves():
    # AboveThreshold is worst where the last answer is far below the others and moves against them (docs/theory.md R3).
    corners = [{tuple(side) for side in pair} for pair in neighbours.answers(4, 0, 50).corners()]
    assert {(49, 49, 49, 1), (50, 50, 50, 0)} in corners
    assert {(1, 1, 1, 49), (0, 0, 0, 50)} in corners


def test_monotone_answers_include_the_worst_pair_with_one_answer_unchanged():
    # All answers but the last move up (docs/theory.md R3), or all but the first.
    corners = [{tuple(side) for side in pair} for pair in neighbours.answers(4, 0, 50, monotone=True).corners()]
    assert {(1, 1, 1, 1), (2, 2, 2, 1)} in corners
    assert {(1, 1, 1, 1), (1, 2, 2, 2)} in corners
    assert {(49, 49, 49, 50), (50, 50, 50, 50)} in corners
    assert {(49, 49, 49, 0), (50, 50, 50, 0)} in corners


@pytest.mark.parametrize(("low", "high", "monotone", "nearest"), [(0, 60, True, 3.75 / 2), (-30, 30, False, 7.5 / 2)])
def test_the_pool_of_an_audit_comes_near_every_threshold(low, high, monotone, nearest):
    # For every threshold there is a pair with all answers near it, in which all but the last move.
    rungs = []
    for data, neighbour in neighbours.answers(6, low, high, monotone=monotone).pool(32):
        move = neighbour - data
        if (data == data[0]).all() and (move[:-1] == -1).all() and move[-1] == (0 if monotone else 1):
            rungs.append(data[0])
    inside = np.linspace(low + nearest, high - nearest, 601)
    assert np.abs(np.subtract.outer(inside, rungs)).min(axis=1).max() <= nearest


def test_a_narrow_range_has_no_finer_levels():
    levels = {float(data[0]) for data, _ in neighbours.answers(2, 0, 4).corners()}
    assert levels == {0.0, 1.0, 2.0, 3.0, 4.0}


def test_answers_are_whole_numbers_on_request():
    close = neighbours.answers(3, 0, 5, integral=True)
    for data, neighbour in [*drawn(close, 100), *close.corners()]:
        assert data.dtype == neighbour.dtype == np.int64
        assert np.abs(data - neighbour).max() == 1


def test_the_relation_of_answers_refuses_vectors_outside_the_range():
    close = neighbours.answers(2, 0, 5, monotone=True)
    assert close.satisfies([1, 1], [2, 2])
    assert not close.satisfies([1, 1], [2, 0])
    assert not close.satisfies([1, 1], [2.5, 1])
    assert not close.satisfies([5, 5], [6, 5])
    assert not close.satisfies([1, 1, 1], [1, 1, 1])
    assert not neighbours.answers(2, 0, 5, entries="one").satisfies([1, 1], [2, 2])


# --- orders, corners, pools -------------------------------------------------------------------------------------------


def test_both_orders_occur():
    for close, sign in [
        (neighbours.add_remove(ROWS), lambda pair: len(pair.data) < len(pair.neighbour)),
        (neighbours.substitute(ROWS), lambda pair: pair.data < pair.neighbour),
        (neighbours.zero_out(st.integers(1, 9), null=0), lambda pair: sum(pair.data) < sum(pair.neighbour)),
        (neighbours.answers(3, 0, 9), lambda pair: pair.data.sum() < pair.neighbour.sum()),
        (neighbours.users(ROWS), lambda pair: len(pair.data) < len(pair.neighbour)),
    ]:
        first = sum(sign(pair) for pair in drawn(close, 60))
        assert 5 < first < 55


def test_corners_of_add_remove():
    assert neighbours.add_remove(st.integers(-5, 5), max_size=3).corners()[:15] == [
        Pair([], [0]),
        Pair([], [5]),
        Pair([], [-5]),
        Pair([-5], [5, -5]),
        Pair([-5], [-5, -5]),
        Pair([5], [5, 5]),
        Pair([5], [-5, 5]),
        Pair([-5, -5], [-5, 5, -5]),
        Pair([-5, -5], [-5, -5, -5]),
        Pair([5, 5], [5, 5, 5]),
        Pair([5, 5], [5, -5, 5]),
        Pair([-5, 5], [-5, 5, 5]),
        Pair([-5, 5], [-5, -5, 5]),
        Pair([0], [0, 0]),
        Pair([0, 0], [0, 0, 0]),
    ]


def test_corners_of_substitute_decide_the_median():
    corners = neighbours.substitute(st.integers(0, 10), max_size=5).corners()
    assert corners[0] == Pair([0], [10])
    assert Pair([0, 0, 0, 10, 10], [0, 0, 10, 10, 10]) in corners
    assert Pair([0] * 5, [0, 0, 10, 0, 0]) in corners


def test_corners_have_the_difference_first_and_last_among_halves():
    # A row that is read twice, or not at all, is mostly the first or the last; with two rows there are no halves yet.
    corners = neighbours.substitute(st.integers(0, 10), max_size=5).corners()
    assert Pair([0, 0, 0, 10, 10], [10, 0, 0, 10, 10]) in corners
    assert Pair([0, 0, 10, 10, 0], [0, 0, 10, 10, 10]) in corners
    corners = neighbours.add_remove(st.integers(0, 10), max_size=5).corners()
    assert Pair([0, 0, 10, 10], [10, 0, 0, 10, 10]) in corners
    assert Pair([0, 0, 10, 10], [0, 0, 10, 10, 0]) in corners
    assert Pair([True, False], [True, True]) in neighbours.substitute(st.booleans(), max_size=2).corners()
    assert Pair([True], [True, False]) in neighbours.add_remove(st.booleans(), max_size=2).corners()


@pytest.mark.parametrize("rows", [st.booleans(), st.integers(0, 10), st.text(max_size=2)], ids=repr)
@pytest.mark.parametrize("relation", ["substitute", "add_remove", "zero_out"])
def test_corners_keep_the_sizes(relation, rows):
    more = {"null": corner_rows(rows).minimal} if relation == "zero_out" else {}
    for least, most in itertools.combinations_with_replacement(range(1, 5), 2):
        if relation == "add_remove" and least == most:
            continue
        close = getattr(neighbours, relation)(rows, min_size=least, max_size=most, **more)
        pairs = close.corners()
        assert pairs
        assert all(least <= len(data) <= most for pair in pairs for data in pair)
        assert all(close.satisfies(*pair) and pair.data != pair.neighbour for pair in pairs)


def test_corners_put_rows_between_the_extremes():
    # A quantile is decided by rows inside the range; the difference comes first, for code that treats the first row apart.
    known = corner_rows(st.integers(0, 100))
    assert [abs(row - rung) <= 5 for row, rung in zip(known.between, (50, 25, 75), strict=True)] == [True] * 3
    middle = known.between[0]
    assert (
        Pair([0, middle, middle], [100, middle, middle])
        in neighbours.substitute(st.integers(0, 100), max_size=3).corners()
    )
    assert Pair([100, 100, middle], [100, 100, 0]) in neighbours.substitute(st.integers(0, 100), max_size=3).corners()
    assert Pair([middle] * 2, [0, middle, middle]) in neighbours.add_remove(st.integers(0, 100), max_size=3).corners()
    assert corner_rows(st.booleans()).between == corner_rows(st.sampled_from("ab")).between == ()


@pytest.mark.parametrize(
    ("rows", "low", "high"),
    [
        (st.integers(0, 10), 0, 10),
        (st.integers(-(10**6), 10**6), -(10**6), 10**6),
        (st.floats(-2.5, 112.25), -2.5, 112.25),
        (st.integers(0, 50).map(lambda n: 2 * n), 0, 100),
        (st.integers(0, 50).filter(lambda n: n % 2), 1, 49),
        (st.booleans(), False, True),
        (st.sampled_from([3, 1, 2]), 1, 3),
        (RECORDS, (0, 0.0), (120, 1.0)),
        (
            st.fixed_dictionaries({"age": st.integers(0, 9), "sick": st.booleans()}),
            {"age": 0, "sick": False},
            {"age": 9, "sick": True},
        ),
        (st.floats(), float("-inf"), float("inf")),
    ],
)
def test_extreme_rows_are_found(rows, low, high):
    known = corner_rows(rows)
    assert known.low == low
    assert known.high == high


def test_a_row_with_nan_is_a_corner():
    assert any(row != row for row in corner_rows(st.floats()).all)


def test_rows_without_numbers_have_corners():
    assert len(corner_rows(st.sampled_from([None, "M", "F"])).all) >= 2
    assert len(corner_rows(st.just("x")).all) == 1
    assert corner_rows(st.none()).all == [None]


def test_pool_is_distinct_and_starts_with_the_corners():
    close = neighbours.add_remove(ROWS, max_size=5)
    pool = close.pool(60, seed=3)
    assert len(pool) == 60
    corners = close.corners()
    assert len(corners) > 12
    assert pool[:8] == corners[:8]
    free = [pair for place, pair in enumerate(pool) if place >= 8 and place % 4 == 3]
    assert not any(pair in corners for pair in free)  # the places of generated pairs are not taken by corners
    assert [pair for pair in pool if pair in corners] == corners
    assert len({frozenset(map(fingerprint, pair)) for pair in pool}) == 60
    assert close.pool(60, seed=3) == pool
    assert close.pool(60, seed=4) != pool
    assert close.pool(3, seed=3) == corners[:3]


@pytest.mark.parametrize("count", [15, 40])
def test_a_larger_pool_starts_like_a_smaller_one(count):
    close = neighbours.add_remove(RECORDS)
    assert close.pool(80, seed=5)[:count] == close.pool(count, seed=5)


def test_the_pool_ends_when_there_are_no_more_pairs():
    assert len(neighbours.substitute(st.booleans(), max_size=2).pool(1000)) == 5  # 0|1 and, for two rows, four edges
    endless = neighbours.pairs(st.floats(allow_nan=False).map(lambda x: (x > 0, x <= 0)))
    assert len(endless.pool(10)) == 1


_INNER = neighbours.add_remove(st.integers(0, 5), max_size=3)
_EXPECTED_POOL = _INNER.pool(25, seed=9)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 3))
def test_works_inside_a_test_under_given(number):
    assert _INNER.pool(25, seed=9) == _EXPECTED_POOL
    # Also if the pairs are made inside the test, from rows that were not used before.
    fresh = neighbours.substitute(st.integers(number, number + 7).map(str), container=np.ndarray)
    assert len(fresh.pool(12)) == 12


def test_hypothesis_settings_of_the_user_do_not_change_the_pairs():
    before = settings.get_current_profile_name()
    settings.register_profile("dpaudit-test", max_examples=1, derandomize=True, database=None, phases=[Phase.explicit])
    settings.load_profile("dpaudit-test")
    try:
        assert _INNER.pool(25, seed=9) == _EXPECTED_POOL
    finally:
        settings.load_profile(before)


def test_threads_are_independent_and_hypothesis_is_restored():
    from hypothesis.internal.conjecture import providers

    before = providers._get_local_constants, providers.CONSTANTS_CACHE
    with ThreadPoolExecutor(3) as executor:
        pools = list(executor.map(lambda _: _INNER.pool(25, seed=9), range(6)))
    assert pools == [_EXPECTED_POOL] * 6
    with pytest.raises(ZeroDivisionError):
        neighbours.add_remove(st.integers(0, 5).map(lambda n: 1 // n)).pool(20)
    assert (providers._get_local_constants, providers.CONSTANTS_CACHE) == before


_SCRIPT = """
import json
from hypothesis import strategies as st
import local_constants
from dpaudit import neighbours
from dpaudit.sensitivity import check_sensitivity
pool = neighbours.add_remove(st.integers(0, 10**6) | st.floats(0, 1e6), max_size=4).pool(60, seed=7)
found = check_sensitivity(sum, 70, neighbours.substitute(st.integers(0, 1000)), examples=60, seed=2)
print(json.dumps([pool, found.witness, found.worst]))
"""


def test_a_seed_gives_the_same_pairs_in_every_process_and_writes_no_file(tmp_path):
    answers = []
    for name, constants in [("a", "X = 1"), ("b", f"X = {list(range(100_000, 100_400))}")]:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "local_constants.py").write_text(constants)
        (folder / "script.py").write_text(_SCRIPT)
        environment = {**os.environ, "PYTHONHASHSEED": "1" if name == "a" else "2", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        answers.append(json.loads(done.stdout))
        assert sorted(path.name for path in folder.iterdir()) == ["local_constants.py", "script.py"]
    assert answers[0] == answers[1]


# --- shrinking --------------------------------------------------------------------------------------------------------


def test_shrinks_to_the_smallest_pair():
    close = neighbours.add_remove(st.integers(0, 100), max_size=6)
    assert minimal(close, lambda _: True) == Pair([], [0])
    assert minimal(close, lambda pair: len(pair.data) > len(pair.neighbour)) == Pair([0], [])
    assert minimal(close, lambda pair: abs(sum(pair.data) - sum(pair.neighbour)) > 7) == Pair([], [8])
    assert minimal(close, lambda pair: min(map(len, pair)) >= 3) == Pair([0, 0, 0], [0, 0, 0, 0])
    data, neighbour = minimal(close, lambda pair: 13 in pair.data and len(pair.data) == 3)
    assert sorted(data) == [0, 0, 13]
    assert sum(neighbour) in (0, 13)


def test_shrinks_away_shared_rows_and_large_changes():
    close = neighbours.substitute(st.integers(0, 100), max_size=6)
    assert minimal(close, lambda _: True) in (Pair([0], [1]), Pair([1], [0]))
    found = minimal(close, lambda pair: max(pair.data) - max(pair.neighbour) > 20)
    assert found == Pair([21], [0])
    # The maximum may only drop by much if the other rows are small: they shrink to zero, and to as few as allowed.
    longer = minimal(
        neighbours.substitute(st.integers(0, 100), min_size=3), lambda pair: max(pair.data) > 50 > max(pair.neighbour)
    )
    assert sorted(longer.data) == [0, 0, 51]
    assert longer.neighbour == [0, 0, 0]


def test_shrinks_records_entry_by_entry():
    close = neighbours.add_remove(st.tuples(st.integers(0, 120), st.integers(0, 50)), max_size=5)
    found = minimal(close, lambda pair: any(age > 64 for age, _ in pair.data + pair.neighbour))
    assert found == Pair([], [(65, 0)])


def test_shrinks_answers_to_one_small_move():
    close = neighbours.answers(3, 0, 10)
    data, neighbour = minimal(close, lambda _: True)
    assert (data.tolist(), neighbour.tolist()) == ([0, 0, 0], [1, 0, 0])
    data, neighbour = minimal(close, lambda pair: pair.data.sum() > pair.neighbour.sum())
    assert sorted([data.sum(), neighbour.sum()]) == [0, 1]


def test_shrinks_users_to_one_person_with_one_row():
    close = neighbours.users(st.integers(0, 9))
    assert minimal(close, lambda _: True) == Pair([], [(0, 0)])
    assert minimal(close, lambda pair: abs(len(pair.data) - len(pair.neighbour)) == 2) == Pair([], [(0, 0), (0, 0)])


# --- containers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "dtype", "shape"),
    [
        (st.integers(0, 5), np.int64, ()),
        (st.floats(0, 1), np.float64, ()),
        (RECORDS, np.float64, (2,)),
        (st.booleans(), np.bool_, ()),
    ],
)
def test_arrays_keep_dtype_and_shape_when_empty(rows, dtype, shape):
    close = neighbours.add_remove(rows, max_size=2, container=np.ndarray)
    sizes = set()
    for pair in close.pool(20):
        for data in pair:
            assert data.dtype == dtype
            assert data.shape[1:] == shape
            sizes.add(len(data))
        assert close.satisfies(*pair)
    assert sizes == {0, 1, 2}


def test_array_of_a_stated_dtype():
    close = neighbours.substitute(st.integers(0, 5), container=neighbours.array("float32"))
    assert close.corners()[0].data.dtype == np.float32
    with pytest.raises(InvalidArgument, match="do not fit an array"):
        neighbours.array("int64", (2,))([(1, 2, 3)])
    with pytest.raises(InvalidArgument, match="no common shape"):
        neighbours.add_remove(st.lists(st.integers(), min_size=0, max_size=3), container=np.ndarray)


def test_frames_keep_columns_and_dtypes_when_empty():
    table = neighbours.frame(["age", "name"], {"age": "int64", "name": "object"})
    close = neighbours.add_remove(st.tuples(st.integers(0, 9), st.text("ab", max_size=2)), max_size=2, container=table)
    for pair in close.pool(20):
        for data in pair:
            assert list(data.columns) == ["age", "name"]
            assert list(data.dtypes) == [np.dtype("int64"), np.dtype("object")]
            assert list(data.index) == list(range(len(data)))
        assert close.satisfies(*pair)
    assert close.corners()[0].data.empty


def test_frames_take_dicts_and_single_values():
    assert neighbours.frame(["x"], ["float64"])([1, 2])["x"].tolist() == [1.0, 2.0]
    assert neighbours.frame(["x", "y"], ["int64", "int64"])([{"y": 2, "x": 1}]).to_dict("list") == {"x": [1], "y": [2]}
    with pytest.raises(InvalidArgument, match="one entry for each of the columns"):
        neighbours.frame(["x", "y"], ["int64", "int64"])([{"y": 2}])


def test_any_function_is_a_container():
    close = neighbours.add_remove(st.integers(0, 5), container=lambda rows: {"rows": rows})
    assert close.corners()[0] == Pair({"rows": []}, {"rows": [0]})
    with pytest.raises(InvalidArgument, match="cannot decide its relation"):
        close.satisfies({"rows": []}, {"rows": [0]})
    assert neighbours.add_remove(st.integers(0, 5), container=tuple).satisfies((), (1,))


def test_changing_one_data_set_in_place_does_not_change_the_other():
    close = neighbours.substitute(st.lists(st.integers(0, 3), min_size=1, max_size=2), min_size=3)
    for data, neighbour in [*drawn(close, 50), *close.corners()]:
        before = copy.deepcopy(neighbour)
        for row in data:
            row.append("changed")
        data.append("more")
        assert neighbour == before
    assert not any("changed" in row for pair in close.corners() for side in pair for row in side)


# --- pairs of the user ------------------------------------------------------------------------------------------


def test_map_data_keeps_relation_and_corners():
    close = neighbours.add_remove(st.integers(0, 5)).map_data(len)
    assert close.relation is Relation.ADD_REMOVE
    assert close.corners()[0] == Pair(0, 1)
    assert all(abs(data - neighbour) == 1 for data, neighbour in drawn(close, 50))
    assert repr(close) == "add_remove(integers(min_value=0, max_value=5), min_size=0, max_size=6).map_data(len)"
    with pytest.raises(InvalidArgument, match="cannot decide"):
        close.satisfies(0, 1)
    with pytest.raises(InvalidArgument, match="callable"):
        close.map_data(3)


def test_fixed_pairs_are_returned_unchanged():
    pairs = [([1], [2]), ([1, 2], [1])]
    close = neighbours.fixed(pairs)
    assert close.corners() == close.pool(50) == [Pair(*pair) for pair in pairs]
    assert close.relation is None
    with pytest.raises(RelationMismatch, match=r"pairs\[1\]"):
        neighbours.fixed(pairs, relation=Relation.SUBSTITUTE)
    assert neighbours.fixed([(3, 4)], relation=Relation.ADD_REMOVE).corners() == [Pair(3, 4)]
    for bad in ([], 3, [1], [(1, 2, 3)], "ab"):
        with pytest.raises(InvalidArgument):
            neighbours.fixed(bad)


def test_pairs_of_a_strategy():
    close = neighbours.pairs(st.tuples(st.integers(0, 3), st.just(7)), relation=Relation.ANSWERS)
    assert close.corners() == [Pair(0, 7)]
    assert sorted(close.pool(50)) == [(n, 7) for n in range(4)]
    assert all(isinstance(pair, Pair) for pair in close.pool(50))
    with pytest.raises(InvalidArgument, match="must be a pair"):
        neighbours.pairs(st.just((1, 2, 3))).pool(3)
    with pytest.raises(InvalidArgument, match=r"neighbours\.fixed"):
        neighbours.pairs([(1, 2)])
    with pytest.raises(InvalidArgument, match=r"Relation\.SUBSTITUTE"):
        neighbours.pairs(st.just((1, 2)), relation="substitute")


def test_secrets_draw_new_data_for_every_release():
    ill = Secret("ill", lambda rng: [1, int(rng.integers(2))])
    well = Secret("well", lambda rng: [0], lambda size, rng: np.zeros((size, 1)))
    close = neighbours.secrets([(ill, well)])
    assert close.relation is Relation.SECRETS
    assert close.pool(10) == [Pair(ill, well)]
    assert close.satisfies(well, ill)
    drawn = ill.sample(40, np.random.default_rng(0))
    assert {tuple(data) for data in drawn} == {(1, 0), (1, 1)}
    assert well.sample(3, np.random.default_rng(0)).shape == (3, 1)
    with pytest.raises(InvalidArgument, match="returned 2 data sets"):
        Secret("bad", list, lambda size, rng: [1, 2]).sample(3, np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match="function of rng"):
        Secret("bad", 3)
    with pytest.raises(InvalidArgument, match="Secret"):
        neighbours.secrets([(1, 2)])


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: neighbours.substitute([1, 2]), r"rows=\[1, 2\] must be a Hypothesis strategy"),
        (lambda: neighbours.substitute(ROWS, min_size=0), "min_size=0"),
        (lambda: neighbours.substitute(ROWS, min_size=3, max_size=2), "max_size=2 must be at least min_size=3"),
        (lambda: neighbours.add_remove(ROWS, min_size=2, max_size=2), "so that one can be added"),
        (lambda: neighbours.add_remove(ROWS, max_size=2.5), r"max_size=2\.5"),
        (lambda: neighbours.add_remove(ROWS, container=3), "container=3"),
        (lambda: neighbours.users(ROWS, relation=Relation.ANSWERS), "relation="),
        (lambda: neighbours.users(ROWS, container=np.ndarray), "cannot hold users"),
        (lambda: neighbours.users(ROWS, layout="rows"), "layout='rows'"),
        (lambda: neighbours.answers(0, 0, 1), "length=0"),
        (lambda: neighbours.answers(3, 1, 1), "low=1 must be below high=1"),
        (lambda: neighbours.answers(3, 0, 1, sensitivity=0), "sensitivity=0"),
        (lambda: neighbours.answers(3, 0, 1.5, integral=True), "whole numbers"),
        (lambda: neighbours.answers(3, 0, 1, entries="two"), "entries='two'"),
        (lambda: neighbours.frame("age", ["int64"]), "columns='age'"),
        (lambda: neighbours.frame(["a", "a"], ["int64", "int64"]), "different"),
        (lambda: neighbours.frame(["a"], []), "one dtype for each"),
        (lambda: neighbours.frame(["a"], {"b": "int64"}), "as its keys"),
        (lambda: neighbours.frame(["a"], [None]), "None"),
        (lambda: neighbours.add_remove(ROWS).pool(0), "count=0"),
        (lambda: neighbours.add_remove(ROWS).pool(3, seed=-1), "seed=-1"),
        (lambda: neighbours.substitute(st.just(1)).pool(3), "yields no value"),
        (lambda: neighbours.add_remove(st.nothing()).pool(3), r"strategy=nothing\(\)"),
        (lambda: neighbours.add_remove(st.integers(5, 1)).pool(3), "is not valid"),
    ],
)
def test_errors_name_the_argument(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_claims_and_neighbours_of_different_relations_are_refused():
    close = neighbours.add_remove(ROWS)
    check_relation(PureDP(1.0), close)
    check_relation(PureDP(1.0, relation=Relation.ADD_REMOVE), close)
    check_relation(PureDP(1.0, relation=Relation.ANSWERS), neighbours.fixed([(1, 2)]))
    with pytest.raises(RelationMismatch, match="2 epsilon under substitute") as caught:
        check_relation(PureDP(1.0, relation=Relation.SUBSTITUTE), close)
    assert "'substitute'" in str(caught.value)
    assert "'add-remove'" in str(caught.value)
    assert "Relation.ADD_REMOVE" in str(caught.value)
    with pytest.raises(RelationMismatch):
        check_relation(PureDP(1.0, relation=Relation.ZERO_OUT), close)


# --- values -----------------------------------------------------------------------------------------------------------

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=50, deadline=None)
@given(_VALUES)
def test_source_recreates_the_value(value):
    assert fingerprint(eval(source(value))) == fingerprint(value)
    assert fingerprint(copy.deepcopy(value)) == fingerprint(value)
    assert fingerprint(pickle.loads(pickle.dumps(value))) == fingerprint(value)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.5, np.nan, np.inf]),
        np.zeros((0, 3), dtype=np.int32),
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
        np.array(["a", "bc"]),
        np.array([True, False]),
        np.array(3.0),
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pd.DataFrame({"a": pd.Series([], dtype="float32")}),
    ],
)
def test_source_recreates_arrays_and_frames(value):
    again = eval(source(value), {"np": np, "pd": pd})
    assert fingerprint(again) == fingerprint(value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ([1], (1,)),
        (np.array([1]), np.array([1.0])),
        (np.zeros(4), np.zeros((2, 2))),
        ({"a": 1}, {"a": 2}),
        ({1}, {2}),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1.0]})),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}, index=[5])),
        (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
    ],
)
def test_fingerprints_distinguish_values(first, second):
    assert fingerprint(first) != fingerprint(second)
    assert fingerprint(first) == fingerprint(copy.deepcopy(first))


def test_rows_of_containers():
    assert rows_of(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})) == [(1, "x"), (2, "y")]
    assert rows_of((1, 2)) == [1, 2]
