"""Checks of arguments: number types, ends of ranges, hints, and messages."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import errors
from dpaudit._util.validation import (
    array_within,
    check_choice,
    check_count,
    check_finite,
    check_generator,
    check_interval,
    check_non_negative,
    check_open_unit,
    check_positive,
    check_unit,
    did_you_mean,
    finite_array,
    shorten,
)
from dpaudit.errors import InvalidArgument

NUMBERS = [3, 0.5, np.float32(0.5), np.int64(2), np.float64(1e-300)]
NOT_NUMBERS = [True, np.True_, "1", None, [1], 1j, Fraction(1, 2), np.array([1.0])]
HUGE = 10**400


@pytest.mark.parametrize("check", [check_finite, check_positive, check_non_negative])
def test_all_number_types_are_accepted(check):
    for value in NUMBERS:
        check(x=value, y=value)


@pytest.mark.parametrize("check", [check_finite, check_positive, check_non_negative, check_unit, check_open_unit])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=itertools.count())
def test_the_error_for_a_non_number_names_its_type(check, value):
    with pytest.raises(InvalidArgument, match=rf"(?s)epsilon=.* must be a number, not {type(value).__name__}\."):
        check(epsilon=value)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (check_finite, [0.0, -5, 1e308], [math.inf, -math.inf, math.nan, HUGE, -HUGE]),
        (check_positive, [5e-324, 1e308], [0, -0.0, -1, math.inf, math.nan, HUGE, -HUGE]),
        (check_non_negative, [0, -0.0, 1], [-5e-324, math.inf, math.nan, HUGE]),
        (check_unit, [0, 1, 0.5], [-5e-324, 1.0000000000000002, math.nan, math.inf, HUGE]),
        (check_open_unit, [5e-324, 0.5, 1 - 2**-53], [0, 1, math.nan, -1, HUGE]),
        (check_count, [1, np.int8(1), 10**30], [0, -1, 1.0, "1", None, True, math.nan, np.float64(1.0)]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_ends_of_ranges_are_checked_exactly(check, good, bad):
    for value in good:
        check(value=value)
    for value in bad:
        with pytest.raises(InvalidArgument, match="value="):
            check(value=value)
        with pytest.raises(InvalidArgument, match="second="):
            check(first=good[0], second=value)


def test_counts_have_a_minimum():
    check_count(minimum=0, n=0)
    check_count(minimum=-3, n=-3)
    with pytest.raises(InvalidArgument, match="n=4 must be a whole number of at least 5"):
        check_count(minimum=5, n=4)


def test_hints_are_appended():
    for check, value in [(check_positive, -1), (check_non_negative, -1), (check_unit, 2), (check_open_unit, 2)]:
        with pytest.raises(InvalidArgument, match=r"\. Try this\.$"):
            check(x=value, hint="Try this.")


def test_intervals():
    check_interval(low=0, high=1)
    with pytest.raises(InvalidArgument, match="a=2 must be below b=1"):
        check_interval(low=2, high=1, names=("a", "b"))
    for low, high in [(1, 1), (0, math.inf), (math.nan, 1), ("0", 1)]:
        with pytest.raises(InvalidArgument, match=r"(low|high)="):
            check_interval(low=low, high=high)


def test_an_unknown_choice_gets_a_suggestion():
    check_choice(["l1", "l2"], norm="l1")
    check_choice([None, 1], x=None)
    with pytest.raises(
        InvalidArgument, match=r"norm='haming' must be one of 'l1', 'hamming'\. Did you mean 'hamming'\?"
    ):
        check_choice(iter(["l1", "hamming"]), norm="haming")
    with pytest.raises(InvalidArgument, match="one of 'l1'"):
        check_choice(["l1"], norm=np.zeros(2))
    with pytest.raises(InvalidArgument, match="one of 'l1'"):
        check_choice(["l1"], norm=["l1"])


def test_did_you_mean():
    assert did_you_mean("substitue", ["substitute", "add"]) == " Did you mean 'substitute'?"
    assert did_you_mean("xyz", ["substitute"]) == ""
    assert did_you_mean(300, [301, 4]) == " Did you mean '301'?"


def test_generators():
    check_generator(rng=np.random.default_rng(0))
    for value in (np.random, np.random.RandomState(0), 0, None):
        with pytest.raises(InvalidArgument, match=r"rng=.*default_rng\(seed\)"):
            check_generator(rng=value)


@given(st.lists(st.floats(-1e9, 1e9)))
def test_finite_arrays_are_returned(values):
    array = finite_array("values", values, ndim=1)
    assert array.dtype == np.float64
    assert array.tolist() == values


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1.0, math.nan], {}, "values holds .*nan.* at position 1"),
        ([[1.0, 2.0], [math.inf, 3.0]], {}, "at position 2"),
        ([None], {}, "values"),
        (["1.5"], {}, "must be numbers"),
        ([1j], {}, "must be numbers"),
        (np.array([1 + 0j]), {}, "must be numbers"),
        ([[1], [1, 2]], {}, "must be numbers"),
        ([HUGE], {}, "must be numbers"),
        ({"a": 1}, {}, "must be numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), {}, "must be numbers"),
        (3.0, {"ndim": 1}, r"1 dimension\(s\); its shape is \(\)"),
        ([[1.0]], {"ndim": 1}, r"shape is \(1, 1\)"),
        ([], {"empty": False}, "is empty"),
    ],
    ids=itertools.count(),
)
def test_invalid_arrays_are_refused(values, options, message):
    with pytest.raises(InvalidArgument, match=message):
        finite_array("values", values, **options)


def test_finite_arrays_from_other_numbers():
    assert finite_array("x", np.array([True, False])).tolist() == [1.0, 0.0]
    assert finite_array("x", [Fraction(1, 2), 3]).tolist() == [0.5, 3.0]
    assert finite_array("x", np.float32(2)).shape == ()


def test_arrays_within_a_range():
    assert array_within("x", [0, 1], 0, 1).tolist() == [0.0, 1.0]
    with pytest.raises(InvalidArgument, match=r"x holds 1\.5, outside \[0, 1\]\. Clip"):
        array_within("x", [0.5, 1.5, 7.0], 0, 1)
    with pytest.raises(InvalidArgument, match="dimension"):
        array_within("x", 0.5, 0, 1)


def test_shorten():
    assert shorten([1, 2]) == "[1, 2]"
    assert len(shorten("x" * 500)) == 80
    assert shorten("x" * 500, 10) == "'xxxxxx..."


def test_errors_pickle_and_can_be_caught_by_kind():
    for kind in (
        errors.InvalidArgument,
        errors.RelationMismatch,
        errors.MechanismError,
        errors.LawError,
        errors.MissingDependency,
    ):
        again = pickle.loads(pickle.dumps(kind("why")))
        assert type(again) is kind
        assert str(again) == "why"
        assert isinstance(again, errors.DPAuditError)
    assert issubclass(errors.InvalidArgument, ValueError)
    assert issubclass(errors.RelationMismatch, InvalidArgument)
    assert issubclass(errors.MissingDependency, ImportError)


@pytest.mark.parametrize("kind", [errors.PrivacyViolation, errors.Inconclusive])
def test_assertions_keep_their_result(kind):
    again = pickle.loads(pickle.dumps(kind("epsilon is 3", {"epsilon_lower": 3.0})))
    assert type(again) is kind
    assert isinstance(again, AssertionError)
    assert str(again) == "epsilon is 3"
    assert again.result == {"epsilon_lower": 3.0}
    assert kind("alone").result is None
