"""Audits of releases: which published cells contain their original values, and which do not."""

import datetime

import numpy as np
import pandas as pd
import pytest

from dpaudit.anonymity import Taxonomy, audit_release, covers, lecture_notes
from dpaudit.anonymity.tables.regions import same, set_label, split_set
from dpaudit.errors import InvalidArgument


def test_record_3_of_the_lecture_notes_and_nothing_else():
    notes = lecture_notes()
    audit = audit_release(
        notes.original, notes.released, quasi_identifiers=notes.quasi_identifiers, sensitive=notes.sensitive
    )
    assert not audit
    (mismatch,) = audit.mismatches
    assert (mismatch.record, mismatch.column) == (2, "plz")
    assert (mismatch.original, mismatch.released, mismatch.span) == (3400, "3200-3299", "3270-3400")
    assert audit.cells == 27
    repaired = notes.released.replace("3200-3299", "3200-3499")
    assert audit_release(notes.original, repaired, quasi_identifiers=["plz", "points"], sensitive="system")


def test_the_row_of_emilie():
    """The lecture notes' example of a generalised row: Emilie, 24, Femme becomes *, 10 < Age <= 30, Femme."""
    original = pd.DataFrame({"name": ["Emilie"], "age": [24], "sex": ["Femme"]})
    released = pd.DataFrame({"name": ["*"], "age": ["10 < Age <= 30"], "sex": ["Femme"]})
    audit = audit_release(original, released, quasi_identifiers=["name", "age", "sex"])
    assert audit
    assert str(audit) == "none of 3 published cells is wrong"


@pytest.mark.parametrize(
    ("released", "inside", "outside"),
    [
        ("*", [1, "x", None], []),
        ("3200-3299", [3200, "3250", 3299.0], [3199, 3300, 3299.5, "x", True, None, "3200-3298"]),
        ("20..29", [20, 29], [30]),
        ("20 to 29", [20, 29], [30]),
        ("20 \u2013 29", [20, 29], [30]),
        ("-5--1", [-5, -1], [0, -6]),
        ("0.3-0.4", [0.3, "0.30", 0.4], [0.29999, 0.41]),
        ("[20, 30)", [20, 29.999], [30]),
        ("(20, 30]", [20.001, 30], [20]),
        ("]20; 30[", [25], [20, 30]),
        ("[-1e3, 1e3]", [-1000, 1000], [1001]),
        ("[2024-01-01, 2024-02-01]", ["2024-01-31", datetime.date(2024, 2, 1)], ["2024-02-02", 5]),
        ("<18", [17.9], [18]),
        ("<=18", [18], [18.1]),
        (">65", [66], [65]),
        ("\u226565", [65], [64]),
        ("65+", [65, 90], [64]),
        ("10 < Age <= 30", [11, "24", 30], [10, 31, "x", None]),  # the lecture notes' own cell
        ("10\u2264Age<30", [10, 29.5], [9, 30]),
        ("30 >= age group (years) > 10", [30, 10.5], [10, 30.5]),
        ("Age <= 30", [30, -1], [31]),
        ("\u00c2ge > 65", [66], [65]),
        ("-5 < x < 5", [-4], [-5, 5]),
        ("{iOS, Linux}", ["iOS", "Linux"], ["Windows", "iOS, Linux", "{iOS"]),
        ("{1, 2.5}", [1, 2.5, "1"], [2]),
        ("32**", [3270, "3299", "32ab", 3200.0], [3300, 32701, 320]),
        ("32*", ["32", "3270", "327"], ["33"]),
        ("**70", [3270], [3271]),
        ("3270", [3270, "3270", 3270.0], [3271, "03270"]),
        ("True", [True], [False, 1]),
        ("2024-01", ["2024-01"], [2024]),
        (pd.Interval(0, 10, closed="right"), [10, 5], [0]),
        (pd.Interval(0, 10, closed="left"), [0], [10]),
        (7, [7, 7.0, "7"], [8, True]),
        (pd.Timestamp("2024-01-01"), [datetime.date(2024, 1, 1), "2024-01-01"], ["2024-01-02"]),
        ((1, 2), [(1, 2)], [(2, 1)]),
        ("", [""], ["x"]),
    ],
    ids=str,
)
def test_regions(released, inside, outside):
    for value in inside:
        assert covers(released, value), value
    for value in outside:
        assert not covers(released, value), value


def test_set_labels_of_any_text_can_be_read_back():
    values = ["a, b", "{c}", "back\\slash", "plain", "*", " x", "y ", "", "two\nlines", "a b"]
    assert split_set(set_label(values)) == tuple(values)
    assert all(covers(set_label(values), value) for value in values)
    assert split_set("{a,  b}") == ("a", "b")
    assert set_label(["only"]) == "only"


def test_times_with_and_without_zone_do_not_compare():
    assert not covers("[2024-01-01, 2024-02-01]", pd.Timestamp("2024-01-05", tz="UTC"))
    assert covers("[2024-01-01T00:00+00:00, 2024-02-01T00:00+00:00]", pd.Timestamp("2024-01-05", tz="Asia/Tokyo"))
    assert not same(pd.Timestamp("2024-01-05"), np.nan)


def test_taxonomy_labels():
    tree = Taxonomy({"unix": ["Linux", "MacOS"], "mobile": ["iOS", "Android"]})
    original = pd.DataFrame({"system": ["Linux", "iOS", "Linux"], "s": [1, 2, 3]})
    released = pd.DataFrame({"system": ["unix", "unix", "*"], "s": [1, 2, 3]})
    audit = audit_release(original, released, quasi_identifiers="system", sensitive="s", hierarchies={"system": tree})
    assert [(m.record, m.original, m.released) for m in audit.mismatches] == [(1, "iOS", "unix")]
    assert "record 2: system iOS is not in unix" in str(audit)


def test_sensitive_values_must_not_change():
    original = pd.DataFrame({"q": [1, 2], "s": [10, 20]})
    released = pd.DataFrame({"q": ["1-2", "1-2"], "s": [10, 25]})
    audit = audit_release(original, released, quasi_identifiers="q", sensitive="s")
    assert [(m.record, m.column) for m in audit.mismatches] == [(1, "s")]
    blurred = released.assign(s=["0-100", "*"])
    audit = audit_release(original, blurred, quasi_identifiers="q", sensitive="s")
    assert [(m.record, m.column) for m in audit.mismatches] == [(0, "s")]


def test_matching_by_index():
    original = pd.DataFrame({"q": [1, 2, 3]}, index=["a", "b", "c"])
    released = pd.DataFrame({"q": ["3-4", "1"]}, index=["c", "a"])
    audit = audit_release(original, released, quasi_identifiers="q", match="index")
    assert audit
    assert audit.withheld == 1
    assert str(audit) == "none of 2 published cells is wrong, 1 record withheld"
    with pytest.raises(InvalidArgument, match="match='index'"):
        audit_release(original, released, quasi_identifiers="q")
    with pytest.raises(InvalidArgument, match="index label 'd'"):
        audit_release(original, released.rename(index={"a": "d"}), quasi_identifiers="q", match="index")
    with pytest.raises(InvalidArgument, match="duplicate index labels"):
        audit_release(original, released.rename(index={"a": "c"}), quasi_identifiers="q", match="index")


def test_missing_cells_follow_the_policy():
    original = pd.DataFrame({"q": [1.0, np.nan, 3.0]})
    released = pd.DataFrame({"q": ["1", None, None]})
    with pytest.raises(InvalidArgument, match="missing cells"):
        audit_release(original, released, quasi_identifiers="q")
    own = audit_release(original, released, quasi_identifiers="q", missing="value")
    assert [m.record for m in own.mismatches] == [2]
    assert audit_release(original, released, quasi_identifiers="q", missing="suppressed")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: audit_release("x.csv", f, quasi_identifiers="q"), "original='x.csv'"),
        (lambda f: audit_release(f, f, quasi_identifiers="q", match="name"), "match='name'"),
        (lambda f: audit_release(f.rename(columns={"q": "p"}), f, quasi_identifiers="q"), "column='q'"),
    ],
)
def test_bad_arguments_are_explained(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call(pd.DataFrame({"q": [1]}))


def test_many_mismatches_are_summarised():
    original = pd.DataFrame({"q": range(50)})
    released = pd.DataFrame({"q": ["100-200"] * 50})
    assert str(audit_release(original, released, quasi_identifiers="q")).endswith("and 30 more")
