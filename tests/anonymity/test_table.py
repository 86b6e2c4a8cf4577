"""Tables with unusual indexes, kinds, names and cells: no record is dropped, and different values are not merged."""

import datetime
import decimal
import pickle

import numpy as np
import pandas as pd
import pytest

from dpaudit.anonymity import (
    MISSING,
    EarthMovers,
    Ordered,
    Table,
    audit_release,
    delta_disclosure,
    k_anonymity,
    l_diversity,
    mondrian,
    t_closeness,
)
from dpaudit.anonymity.tables.cells import as_moment, as_number, as_text, kind, sort_key
from dpaudit.errors import InvalidArgument


def table_of(cells, sensitive=None, **options):
    frame = pd.DataFrame({"q": cells, "s": sensitive if sensitive is not None else list(range(len(cells)))})
    return Table.from_frame(frame, quasi_identifiers="q", sensitive="s", **options)


def sizes(cells, **options):
    return table_of(cells, **options).classes.sizes.tolist()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        pytest.param(pd.Series([1, True, "1", 1.0], dtype=object), [2, 1, 1], id="kinds"),
        pytest.param(pd.Series([True, 1.5, False], dtype=object), [1, 1, 1], id="boolean and float"),
        pytest.param(pd.Series([1, decimal.Decimal(1), np.int64(1)], dtype=object), [3], id="one number"),
        pytest.param([True, False, True], [2, 1], id="booleans"),
        pytest.param(pd.array([True, None, True], dtype="boolean"), [2, 1], id="nullable booleans"),
        pytest.param(pd.array([1, None, 1], dtype="Int64"), [2, 1], id="nullable integers"),
        pytest.param([10**30, 10**30 + 1, 10**30], [2, 1], id="huge integers"),
        pytest.param(np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64), [1, 1], id="unsigned"),
        pytest.param([2**53, 2**53 + 1], [1, 1], id="integers beyond doubles"),
        pytest.param([0.0, -0.0, 1e-320], [2, 1], id="zeros"),
        pytest.param([np.inf, -np.inf, np.inf], [2, 1], id="infinities"),
        pytest.param([np.nan, 1.0, np.nan], [2, 1], id="not a number"),
        pytest.param(["\u00e9", "e\u0301", "\u00e9"], [2, 1], id="unicode"),
        pytest.param(["a", "a ", "A"], [1, 1, 1], id="spaces and case"),
        pytest.param(["", "a", ""], [2, 1], id="empty text is a value"),
        pytest.param(pd.Series([None, np.nan, pd.NaT, pd.NA], dtype=object), [4], id="all missing"),
        pytest.param(pd.Categorical(["b", "a", "b"], categories=["a", "b", "c"]), [2, 1], id="categorical"),
        pytest.param(pd.Categorical(["b", None, "b"]), [2, 1], id="categorical with missing"),
        pytest.param(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"]), [2, 1], id="datetimes"),
        pytest.param(pd.to_datetime(["2024-01-01", None]), [1, 1], id="missing datetime"),
        pytest.param(pd.to_timedelta([1, 2, 1], unit="s"), [2, 1], id="durations"),
        pytest.param([datetime.date(2024, 1, 1), datetime.date(2024, 1, 1)], [2], id="dates"),
        pytest.param(pd.Series([datetime.date(2024, 1, 1), "2024-01-01"], dtype=object), [1, 1], id="date and text"),
        pytest.param([(1, 2), (1, 2), (2, 1)], [2, 1], id="tuples"),
        pytest.param([b"a", b"a", b"b"], [2, 1], id="bytes"),
        pytest.param(pd.Series([b"a", "a"], dtype=object), [1, 1], id="bytes and text"),
        pytest.param(pd.cut([1, 2, 9], [0, 5, 10]), [2, 1], id="intervals"),
        pytest.param(pd.period_range("2024-01", periods=2, freq="M"), [1, 1], id="periods"),
        pytest.param([1 + 2j, 1 + 2j], [2], id="complex"),
        pytest.param(pd.arrays.SparseArray([0, 0, 1]), [2, 1], id="sparse"),
    ],
)
def test_cells_of_every_kind(cells, expected):
    assert sizes(cells, missing="value") == expected


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(pd.Index([3, 3, 3, 3]), id="duplicates"),
        pytest.param(pd.Index([np.nan, "a", 1, None], dtype=object), id="mixed"),
        pytest.param(pd.MultiIndex.from_product([[0, 1], ["x", "y"]]), id="levels"),
        pytest.param(pd.to_datetime(["2024-01-01"] * 4), id="dates"),
        pytest.param(pd.RangeIndex(10, 2, -2), id="backwards"),
    ],
)
def test_any_index(index):
    frame = pd.DataFrame({"q": list("xxyy"), "s": list("abaa")}, index=index)
    table = Table.from_frame(frame, quasi_identifiers="q", sensitive="s")
    assert k_anonymity(table).value == 2
    assert l_diversity(table).records.tolist() == [2, 3]
    anonymised = mondrian(table, k=2).frame
    assert anonymised.index.equals(index)
    assert audit_release(frame, anonymised, quasi_identifiers="q", sensitive="s")


def test_missing_policies():
    cells = pd.Series(["x", None, "*", None], dtype=object)
    with pytest.raises(InvalidArgument, match="'q' has 2 missing cells, the first in record 2"):
        table_of(cells)
    own = table_of(cells, missing="value")
    assert own.classes.sizes.tolist() == [1, 2, 1]
    assert own.key(1) == {"q": MISSING}
    assert table_of(cells, missing="suppressed").classes.sizes.tolist() == [1, 3]
    assert sizes(pd.Series(["<missing>", None], dtype=object), missing="value") == [1, 1]  # no text is MISSING
    with pytest.raises(InvalidArgument, match="missing='drop' must be one of 'error', 'value', 'suppressed'"):
        table_of(cells, missing="drop")


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        ({"q": [1], "s": [1]}, {"quasi_identifiers": "plz"}, "column='plz' is not in the table"),
        ({"postcode": [1]}, {"quasi_identifiers": "postcod"}, "Did you mean 'postcode'"),
        ({"q": [1], "s": [1]}, {"quasi_identifiers": "q", "sensitive": "q"}, "both a quasi-identifier and sensitive"),
        ({"q": [1]}, {"quasi_identifiers": ()}, "quasi_identifiers is empty"),
        ({"q": [1]}, {"quasi_identifiers": ["q", "q"]}, "names 'q' twice"),
        ({"q": [1]}, {"quasi_identifiers": [["q"]]}, "cannot be a column name"),
        ({"q": []}, {"quasi_identifiers": "q"}, "no records"),
        ({}, {"quasi_identifiers": "q"}, "not in the table, which has"),
        ({"q": [[1], [2]]}, {"quasi_identifiers": "q"}, r"holds \[1\] in record 1; a list cannot be compared"),
        ({"q": ["a", {"b": 1}]}, {"quasi_identifiers": "q"}, "in record 2; a dict"),
        ({"q": [(1, [2])]}, {"quasi_identifiers": "q"}, "in record 1; a tuple"),
        ({"q": [1, 2], "s": [1]}, {"quasi_identifiers": "q"}, "different lengths"),
        ([1, 2], {"quasi_identifiers": "q"}, "must be a pandas DataFrame"),
        ("table.csv", {"quasi_identifiers": "q"}, "from_file"),
        ({"q": 5}, {"quasi_identifiers": "q"}, "'q' is 5; it must be a sequence"),
    ],
    ids=range(15),
)
def test_bad_tables_are_explained(frame, options, message):
    with pytest.raises(InvalidArgument, match=message):
        Table.from_frame(frame, **options)


def test_duplicate_column_names():
    frame = pd.DataFrame([[1, 2, 3]], columns=["q", "q", "s"])
    with pytest.raises(InvalidArgument, match="'q' occurs 2 times"):
        Table.from_frame(frame, quasi_identifiers="q", sensitive="s")
    assert Table.from_frame(frame, quasi_identifiers="s").records == 1  # unused columns may have duplicate names


def test_column_names_of_every_kind():
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=pd.Index([0, True, ("a", "b"), "0"], tupleize_cols=False))
    table = Table.from_frame(frame, quasi_identifiers=[0, ("a", "b")], sensitive=["0", True])
    assert table.key(0) == {0: 1, ("a", "b"): 3}
    assert table.distribution("0") == {4: 1}
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    assert Table.from_frame(levels, quasi_identifiers=[("a", "x")]).records == 1
    with pytest.raises(InvalidArgument, match="column='a' is not in the table"):
        Table.from_frame(levels, quasi_identifiers="a")


def test_one_and_true_are_different_values():
    table = table_of(["x"] * 4, pd.Series([1, True, "1", 1.0], dtype=object))
    assert l_diversity(table).value == 3
    assert sum(table.distribution().values()) == 1
    assert sum(table.class_distribution(0).values()) == 1


def test_one_row():
    table = table_of(["x"], ["a"])
    assert k_anonymity(table).value == 1
    assert t_closeness(table).value == 0
    assert delta_disclosure(table).value == 0
    assert len(mondrian(table, k=1).table.classes) == 1


def test_many_quasi_identifiers_do_not_overflow():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"q{i}": rng.permutation(500) for i in range(12)})  # 500^12 combinations, above 2^63
    table = Table.from_frame(frame, quasi_identifiers=list(frame))
    assert len(table.classes) == 500
    assert len(frame.drop_duplicates()) == 500


def test_the_frame_is_not_changed():
    frame = pd.DataFrame({"q": [1, None, 2], "s": list("abc")})
    before = frame.copy(deep=True)
    table = Table.from_frame(frame, quasi_identifiers="q", sensitive="s", missing="suppressed")
    mondrian(table, k=1)
    pd.testing.assert_frame_equal(frame, before)


def test_tables_pickle():
    table = table_of(pd.Series(["a", None], dtype=object), missing="value")
    assert pickle.loads(pickle.dumps(table)).key(1) == {"q": MISSING}


def test_ten_million_cells():
    """A million records of ten columns: defined, and linear."""
    rng = np.random.default_rng(0)
    records = 1_000_000
    frame = pd.DataFrame({f"q{i}": rng.integers(0, 3, records, dtype=np.int8) for i in range(9)})
    frame["s"] = rng.integers(0, 50, records)
    table = Table.from_frame(frame, quasi_identifiers=[f"q{i}" for i in range(9)], sensitive="s")
    assert k_anonymity(table).value == frame.groupby([f"q{i}" for i in range(9)]).size().min()
    t = t_closeness(table, distance=EarthMovers(Ordered()))
    assert 0 < t.value < 0.2


# Cells


def test_numbers_in_cells():
    assert [as_number(c) for c in ("1e3", " 7 ", "+.5", "1_000", "\u0663", "", "0x10", np.float32(0.1), np.inf)] == [
        1000,
        7,
        decimal.Decimal("0.5"),
        None,
        None,
        None,
        None,
        decimal.Decimal("0.1"),
        None,
    ]
    assert as_number(decimal.Decimal("NaN")) is None
    assert as_number(10**40) == 10**40


def test_moments_in_cells():
    noon = datetime.datetime(2024, 5, 1, 12)
    assert as_moment(pd.Timestamp("2024-05-01 12:00")) == noon
    assert as_moment(np.datetime64("2024-05-01T12:00")) == noon
    assert as_moment(datetime.date(2024, 5, 1)) == noon.replace(hour=0)
    assert as_moment("12 May") is None
    assert as_moment(pd.NaT) is None
    assert as_moment(pd.Timestamp("2024-05-01 12:00:00.000000123")) == noon
    assert as_moment(pd.Timestamp("2024-05-01 14:00", tz="Europe/Zurich")) == noon.replace(tzinfo=datetime.UTC)


def test_cells_are_shown_and_sorted():
    assert as_text(pd.Timestamp("2024-05-01")) == "2024-05-01"
    assert as_text(1e22) == "1e+22"
    mixed = ["b", 10, 2.5, "a", True, MISSING, datetime.date(2024, 1, 1), (1,)]
    assert sorted(mixed, key=sort_key) == [True, 2.5, 10, datetime.date(2024, 1, 1), "a", "b", MISSING, (1,)]
    assert kind(np.float64(1)) == kind(1)
