"""The sensitivity check: true sensitivities are found, exceeded claims are refuted, and bad queries are refused."""

import itertools
import math
import pickle
import random
import statistics
import warnings
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from dpaudit import neighbours
from dpaudit.claims import Verdict
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.neighbours import Pair, Secret
from dpaudit.sensitivity import check_sensitivity, distance, estimate_sensitivity

ADD = neighbours.add_remove(st.integers(0, 10), max_size=5)
SWAP = neighbours.substitute(st.integers(0, 10), max_size=5)
UNIT = neighbours.substitute(st.integers(0, 1), min_size=1, max_size=6)
INF, NAN = math.inf, math.nan
with warnings.catch_warnings():  # numpy's, unless another module has imported scipy.sparse, which ignores it
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    MATRICES = (np.asmatrix([[1, 2]]), np.asmatrix([[1, 4]]))


def check(query, bound, close=ADD, **options):
    return check_sensitivity(query, bound, close, **{"examples": 30, **options})


def estimate(query, close=ADD, **options):
    return estimate_sensitivity(query, close, **{"examples": 30, **options}).sensitivity


def histogram(data):
    return {row: data.count(row) for row in set(data)}


# --- known sensitivities ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "close", "norm", "truth"),
    [
        (len, ADD, "l1", 1.0),
        (len, SWAP, "l1", 0.0),
        (sum, ADD, "l1", 10.0),
        (sum, SWAP, "l1", 10.0),
        (max, SWAP, "l1", 10.0),
        # docs/theory.md R1: the histogram has sensitivity 1 under add-remove and 2 under substitution.
        (histogram, ADD, "l1", 1.0),
        (histogram, SWAP, "l1", 2.0),
        (histogram, SWAP, "l2", math.sqrt(2.0)),
        (histogram, SWAP, "linf", 1.0),
        (histogram, SWAP, "hamming", 2.0),
        (lambda data: np.bincount(data, minlength=11), SWAP, "l1", 2.0),
        (lambda data: np.array([sum(data), len(data)]) / 2, ADD, "l1", 5.5),
        (lambda data: pd.Series(data, dtype="int64").value_counts(), SWAP, "l1", 2.0),
        (lambda data: pd.DataFrame({"n": [len(data)], "sum": [sum(data)]}), ADD, "l2", math.sqrt(101.0)),
        (set, SWAP, "l1", 2.0),
        # The variance of numbers in [0, 1] moves most from one row to two: 0 against 1/4.
        (lambda data: float(np.var(data)) if data else 0.0, neighbours.add_remove(st.floats(0, 1)), "l1", 0.25),
        (lambda data: sorted(data), SWAP, "linf", 10.0),
    ],
    ids=itertools.count(),
)
def test_the_search_reaches_the_true_sensitivity_and_not_more(query, close, norm, truth):
    assert check(query, truth, close, norm=norm).verdict is Verdict.NO_VIOLATION_FOUND
    assert estimate(query, close, norm=norm) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize(("size", "truth"), [(1, 1.0), (2, 0.5), (3, 1.0), (4, 0.5), (5, 1.0), (6, 0.5)])
def test_the_median_moves_by_one_for_odd_sizes_and_half_for_even(size, truth):
    # docs/theory.md R24: brute force for n = 1..6 gives 1, .5, 1, .5, 1, .5.
    close = neighbours.substitute(st.integers(0, 1), min_size=size, max_size=size)
    assert estimate(statistics.median, close) == truth


@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=3, max_size=3))
def test_against_brute_force_over_all_pairs(weights):
    def query(data):
        return abs(sum(weight * row for weight, row in zip(weights, data, strict=True)) - 1)

    rows = range(3)
    truth = max(
        abs(query(data) - query((*data[:place], row, *data[place + 1 :])))
        for data in itertools.product(rows, repeat=3)
        for place in range(3)
        for row in rows
    )
    close = neighbours.substitute(st.integers(0, 2), min_size=3, max_size=3)
    assert estimate_sensitivity(query, close, examples=200).sensitivity == truth


# --- the witness ------------------------------------------------------------------------------------------------------


def test_the_witness_is_small():
    found = check(sum, 4)
    assert found.verdict is Verdict.VIOLATION
    assert found.witness == Pair([], [5])
    assert found.witness_change == 5.0
    assert found.answers == (0, 5)
    assert found.largest == 10.0
    assert found.bound == 4.0
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_mean_bounded_by_the_largest_size_is_refuted():
    # A mean over n rows has sensitivity 10 / n for the actual n, not for the largest one.
    found = check(lambda data: sum(data) / len(data), 10 / 5, SWAP)
    assert found.witness == Pair([0], [3]) or found.witness == Pair([3], [0])


def test_the_printed_report_names_pair_value_and_seed():
    text = str(check(sum, 4))
    assert text.startswith("VIOLATION: l1 sensitivity 4 of sum\n  the answer changes by 5, on\n    data      = []\n")
    assert "neighbour = [5]" in text
    assert "answers   : 0 and 5" in text
    assert "largest change over all pairs tried: 10" in text
    assert "seed=0" in text
    assert str(check(sum, 10)).startswith(
        "NO_VIOLATION_FOUND: l1 sensitivity 10 of sum\n  largest change found: 10, on"
    )
    assert str(estimate_sensitivity(len, ADD, examples=20)).startswith("The l1 sensitivity of len is at least 1, on")


def test_tolerance_is_relative_to_the_bound():
    def query(data):
        return len(data) * (1 + 5e-10)

    assert check(query, 1).verdict is Verdict.NO_VIOLATION_FOUND
    assert check(query, 1, tolerance=1e-10).verdict is Verdict.VIOLATION
    assert check(query, 1, tolerance=0.0).verdict is Verdict.VIOLATION
    assert check(lambda data: 0, 0).verdict is Verdict.NO_VIOLATION_FOUND
    assert check(lambda data: 1e-300 * len(data), 0).verdict is Verdict.VIOLATION


def test_the_same_seed_gives_the_same_result():
    assert check(sum, 4, seed=3) == check(sum, 4, seed=3)


@settings(max_examples=2, deadline=None)
@given(st.integers(2, 5))
def test_works_inside_a_test_under_given(bound):
    assert check(sum, bound).witness == Pair([], [bound + 1])


# --- exceptions, NaN, hidden state ------------------------------------------------------------------------------------


def test_an_exception_on_one_side_only_is_an_infinite_change():
    found = check(max, 100)  # max([]) raises ValueError
    assert found.largest == INF
    assert found.witness == Pair([], [0])
    assert "raises ValueError" in str(found)


def test_the_same_exception_on_both_sides_is_no_change():
    def query(data):
        if len(data) < 3:
            raise ValueError(f"only {len(data)} rows")
        return 0

    assert check(query, 1, neighbours.fixed([([], [1]), ([1] * 3, [1] * 4)])).largest == 0.0
    assert check(query, 1).largest == INF  # two rows against three

    def other(data):
        raise (KeyError if data else ValueError)("no")

    with pytest.raises(MechanismError, match="raised on every data set"):
        check(other, 1)


def test_a_query_that_always_raises_is_an_error():
    with pytest.raises(MechanismError, match=r"raised on every data set.*raises AttributeError"):
        check(lambda data: data.columns, 1)


def test_nan_is_an_infinite_change():
    found = check(lambda data: np.float64(sum(data)) / len(data) if data else NAN, 100)
    assert found.largest == INF
    assert check(lambda data: NAN, 0).largest == 0.0


def test_randomness_is_refused():
    rng = np.random.default_rng(0)
    for query in (lambda data: rng.normal(), lambda data: random.random(), lambda data: sum(data) + np.random.normal()):  # noqa: NPY002
        with pytest.raises(MechanismError, match=r"not deterministic.*dpaudit\.audit"):
            check(query, 1)


def test_hidden_state_is_refused():
    calls = itertools.count()
    with pytest.raises(MechanismError, match="not deterministic"):
        check(lambda data: next(calls), 1)


def test_a_query_may_change_its_argument():
    def median(data):
        data.sort()
        return data[len(data) // 2] if data else 0

    found = check(median, 5)
    assert found.verdict is Verdict.VIOLATION
    assert found.witness == Pair([], [6])


# --- distance ---------------------------------------------------------------------------------------------------------

_FLOATS = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(_FLOATS, _FLOATS), max_size=6))
def test_norms_agree_with_numpy_in_every_form(pairs):
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    gaps = np.array(first) - np.array(second)
    truth = {
        "l1": np.abs(gaps).sum(),
        "l2": math.hypot(*gaps),
        "linf": np.abs(gaps).max(initial=0.0),
        "hamming": np.count_nonzero(gaps),
    }
    forms = [
        (first, second),
        (np.array(first), np.array(second)),
        (tuple(first), tuple(second)),
        (dict(enumerate(first)), dict(enumerate(second))),
        (pd.Series(first, dtype=float), pd.Series(second, dtype=float)),
        ({"nested": [first]}, {"nested": [second]}),
    ]
    for norm, value in truth.items():
        for one, other in forms:
            assert distance(one, other, norm) == pytest.approx(value, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("first", "second", "truth"),
    [
        (2**60, 2**60 + 1, 1.0),
        (np.uint8(3), np.uint8(5), 2.0),
        (np.array([3], dtype=np.uint8), np.array([5], dtype=np.uint8), 2.0),
        (np.array([2**62, 0]), np.array([2**62 + 1, 0]), 1.0),
        (True, False, 1.0),
        (np.array([True, False]), np.array([False, False]), 1.0),
        (Fraction(1, 3), Fraction(1, 2), 1 / 6),
        (Decimal("0.1"), Decimal("0.3"), 0.2),
        (1 + 1j, 1 + 4j, 3.0),
        (np.float32(1.5), 1, 0.5),
        (1, 1.0, 0.0),
        (0.0, -0.0, 0.0),
        (NAN, NAN, 0.0),
        (NAN, np.float64(NAN), 0.0),
        (INF, np.float64(INF), 0.0),
        (INF, -INF, INF),
        (1.0, NAN, INF),
        (np.array([NAN, 1.0]), np.array([NAN, 2.0]), 1.0),
        (np.array([INF, 1.0]), np.array([INF, 1.0]), 0.0),
        (np.array([INF]), np.array([-INF]), INF),
        (np.array([1.0]), np.array([NAN]), INF),
        (10**400, 0, INF),
        (1e308, -1e308, INF),
        (None, None, 0.0),
        (None, 0, INF),
        ("a", "a", 0.0),
        ("a", "b", INF),
        ([1, 2], [1, 2, 0], INF),
        ([[]], [], INF),
        (np.zeros(2), np.zeros((2, 1)), INF),
        (np.array(3.0), 5.0, 2.0),
        ([1.0], 1.0, INF),
        ({}, {"a": 2, "b": -1}, 3.0),
        ({"a": [1]}, {}, 1.0),
        ({"a": [1, -2], "b": [3]}, {"b": [3]}, 3.0),
        ({"a": [1, 2]}, {"a": [1]}, INF),
        ({"a": {"x": [4]}}, {"b": 1}, 5.0),
        ({"a": "text"}, {}, INF),
        ({"a": 1}, 1, INF),
        (pd.DataFrame({"a": [[1, 2]]}), pd.DataFrame({"a": [[1, 5]]}), 3.0),
        (pd.Series({"x": [1.0, 2.0]}), pd.Series({"x": [1.0, 2.0], "y": [3.0]}), 3.0),
        ({"a": {"x": 1}}, {"a": {"x": 3, "y": 1}}, 3.0),
        ({1, 2}, {2, 3, 4}, 3.0),
        (pd.Series({"x": 1}), pd.Series({"x": 1, "y": 4}), 4.0),
        (pd.Series([1, 2], index=["x", "x"]), pd.Series([1, 5], index=["x", "x"]), 3.0),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1]}), 2.0),
        (pd.DataFrame({"a": ["u"]}), pd.DataFrame({"a": ["v"]}), INF),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), 2.0),
        (csr_matrix([[1.0, 2.0]]), csr_matrix([[1.0, 3.0]]), 1.0),
        (csr_matrix([[1.0, 2.0]]), np.array([[1.0, 2.0]]), 0.0),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 2.0], mask=[0, 0]), INF),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 5], mask=[0, 1]), 0.0),
        (np.array([(1, 2.0)], dtype="i4,f8"), np.array([(1, 3.5)], dtype="i4,f8"), 1.5),
        (*MATRICES, 2.0),
        (range(3), range(1, 4), 3.0),
        (deque([1, 2]), deque([1, 5]), 3.0),
        ({float("nan"): 1}, {float("nan"): 3}, 2.0),
        (pd.Series([1, 2], index=[NAN, 1.0]), pd.Series([1, 2], index=[NAN, 1.0]), 0.0),
        ({(1, float("nan")): 1}, {(1, np.float32("nan")): 1}, 0.0),
        (Decimal("snan"), Decimal(1), INF),
        (b"a", b"b", INF),
    ],
    ids=itertools.count(),
)
def test_distance_in_l1(first, second, truth):
    assert distance(first, second) == pytest.approx(truth, rel=1e-15)
    assert distance(second, first) == pytest.approx(truth, rel=1e-15)


def test_hamming_counts_entries():
    assert distance([1, 2, 3], [1, 5], "hamming") == 2.0
    assert distance("a", "b", "hamming") == 1.0
    assert distance(["a", "b"], ["a", "c"], "hamming") == 1.0
    assert distance({"a": 0}, {}, "hamming") == 0.0
    assert distance(np.zeros(7), np.zeros(0), "hamming") == distance([0.0] * 7, [], "hamming") == 7.0
    assert distance(np.zeros((2, 3)), np.zeros((2, 4)), "hamming") == 2.0


@pytest.mark.parametrize("kind", ["timedelta64[s]", "datetime64[s]"])
def test_time_differences_are_not_numbers(kind):
    assert distance(np.array([1], dtype=kind), np.array([2], dtype=kind)) == math.inf
    assert distance(np.array([1], dtype=kind), np.array([1], dtype=kind)) == 0.0


def test_long_doubles_keep_their_digits():
    far = np.longdouble(2) ** 60
    if far + 1 == far:
        pytest.skip("long doubles are floats here")
    assert distance(far + 1, far + 2) == 1.0


def test_pairs_may_come_as_a_tuple():
    assert check_sensitivity(sum, 1.0, (([1], []),)).largest == 1.0


def test_l2_does_not_overflow_or_underflow():
    assert distance([1e200, 0], [0, 1e200], "l2") == pytest.approx(math.sqrt(2) * 1e200, rel=1e-15)
    assert distance([3e-200, 0], [0, 4e-200], "l2") == pytest.approx(5e-200, rel=1e-15)


def test_a_metric_of_the_user_is_used():
    def levels(first, second):
        return abs(first.count("a") - second.count("a"))

    assert estimate(lambda data: "a" * sum(data), norm=levels) == 10.0
    assert distance(1, 2, lambda first, second: NAN) == INF
    assert distance(INF, INF, lambda first, second: abs(first - second)) == 0.0


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (lambda first, second: -abs(first - second), "never negative"),
        (lambda first, second: None, "gave no number for the answers .* TypeError"),
        (lambda first, second: first[0], "gave no number for the answers 0 and"),
    ],
    ids=["negative", "none", "raises"],
)
def test_a_metric_that_returns_no_distance_is_refused(metric, message):
    with pytest.raises(InvalidArgument, match=message):
        check(sum, 1, norm=metric)


@pytest.mark.parametrize(
    "query", [lambda data: map(float, [len(data)]), lambda data: {0: len(data)}.values()], ids=["map", "values"]
)
def test_iterators_are_read_once(query):
    assert estimate(query) == 1.0


def test_counts_of_missing_values_have_a_key():
    rows = st.sampled_from([NAN, 1.0]).map(lambda value: (value,))
    close = neighbours.add_remove(rows, max_size=3, container=neighbours.frame(["x"], ["float64"]))
    assert estimate(lambda frame: frame["x"].value_counts(dropna=False), close) == 1.0


def test_a_list_of_pairs_is_searched():
    assert check(sum, 1, [([0], [1]), ([0], [3])]).witness == Pair([0], [3])
    assert estimate(sum, [([0], [3])]) == 3.0
    with pytest.raises(InvalidArgument, match=r"must come from dpaudit\.neighbours"):
        estimate(sum, 3)


def test_an_estimate_shows_the_answers():
    found = estimate_sensitivity(lambda data: 1 / len(data), ADD, examples=30)
    assert found.sensitivity == INF
    assert "answers   : raises ZeroDivisionError: division by zero and 1.0\n" in str(found)
    table = estimate_sensitivity(lambda data: pd.DataFrame({"n": [len(data)], "m": [0]}), ADD, examples=30)
    assert len(str(table).splitlines()) == 5


@pytest.mark.parametrize(
    ("query", "bound", "close", "options", "message"),
    [
        (3, 1, ADD, {}, "query=3"),
        (len, -1, ADD, {}, "bound=-1"),
        (len, INF, ADD, {}, "bound=inf"),
        (len, 1, ADD, {"norm": "l3"}, "norm='l3' must be one of"),
        (len, 1, ADD, {"examples": 0}, "examples=0"),
        (len, 1, ADD, {"seed": 1.5}, r"seed=1\.5"),
        (len, 1, ADD, {"tolerance": -1.0}, r"tolerance=-1\.0"),
        (len, 1, ADD, {"tolerance": 1.0}, r"tolerance=1\.0 must be below 1"),
        (len, 1, neighbours.secrets([(Secret("a", list), Secret("b", list))]), {}, "drawn at random"),
    ],
    ids=itertools.count(),
)
def test_arguments_are_checked(query, bound, close, options, message):
    with pytest.raises(InvalidArgument, match=message):
        check(query, bound, close, **options)
