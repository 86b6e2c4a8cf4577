"""Generalisation hierarchies: ancestors, taxonomies, intervals, and generalisation by levels."""

import pickle
from fractions import Fraction

import pandas as pd
import pytest

from dpaudit.anonymity import Hierarchy, Intervals, Prefixes, Suppression, Taxonomy, covers, generalise, lecture_notes
from dpaudit.errors import InvalidArgument

DISEASE = Taxonomy({"respiratory": {"infection": ["flu", "cold"]}, "stomach": ["ulcer"]}, root="any disease")
AGES = Intervals.of_width([5, 10, 50], low=0, high=100)


@pytest.mark.parametrize("hierarchy", [AGES, Prefixes(2), Suppression()], ids=["intervals", "prefixes", "suppression"])
def test_every_label_is_an_ancestor_and_contains_its_value(hierarchy):
    assert isinstance(hierarchy, Hierarchy)
    for value in (10, 42, 99):
        labels = [hierarchy.generalise(value, level) for level in range(hierarchy.height + 1)]
        assert labels[-1] == "*"
        assert all(covers(label, value) for label in labels)
        for position, label in enumerate(labels):
            assert hierarchy.ancestors(label) == tuple(labels[position:])


def test_taxonomies():
    assert isinstance(DISEASE, Hierarchy)
    assert [DISEASE.generalise("flu", level) for level in range(4)] == [
        "flu",
        "infection",
        "respiratory",
        "any disease",
    ]
    assert [DISEASE.generalise("ulcer", level) for level in range(4)] == [
        "ulcer",
        "stomach",
        "any disease",
        "any disease",
    ]
    assert DISEASE.leaves == ("flu", "cold", "ulcer")
    assert DISEASE.distance("flu", "flu") == 0
    assert DISEASE.distance("flu", "cold") == Fraction(1, 3)
    assert DISEASE.distance("flu", "ulcer") == 1
    assert DISEASE.common(["flu", "cold"]) == "infection"
    assert DISEASE.ancestors("*") == ("*", "any disease")
    assert covers("respiratory", "cold", DISEASE)
    assert not covers("respiratory", "ulcer", DISEASE)
    assert not covers("respiratory", "unknown", DISEASE)


def test_taxonomies_from_parents_agree_with_nested_ones():
    parents = {"flu": "infection", "cold": "infection", "infection": "respiratory", "respiratory": "any disease"}
    other = Taxonomy.from_parents({**parents, "ulcer": "stomach", "stomach": "any disease"})
    for left in DISEASE.leaves:
        for right in DISEASE.leaves:
            assert other.distance(left, right) == DISEASE.distance(left, right)


def test_edges_measure_the_paths():
    lengths = dict(DISEASE.edges)
    for left in DISEASE.leaves:
        for right in DISEASE.leaves:
            apart = set(DISEASE.ancestors(left)) ^ set(DISEASE.ancestors(right))
            assert sum(lengths[label] for label in apart) == DISEASE.distance(left, right)


def test_generalisation_by_levels_keeps_index_order_and_other_columns():
    notes = lecture_notes()
    plz = Intervals([[2600, 3200, 3300, 3500, 3700, 3900]])
    points = Intervals([[25, 35, 75, 91]])
    done = generalise(notes.original, {"plz": plz, "points": points}, {"plz": 1, "points": 1})
    assert done.index.equals(notes.original.index)
    assert done["system"].equals(notes.original["system"])
    assert done["plz"].tolist()[:4] == ["3200-3299", "3200-3299", "3300-3499", "2600-3199"]
    assert done["points"].unique().tolist() == ["75-90", "35-74", "25-34"]
    assert generalise(notes.original, {"plz": plz}, {})["plz"].equals(notes.original["plz"])
    missing = generalise(pd.DataFrame({"plz": [3270, None]}), {"plz": plz}, {"plz": 1})
    assert missing["plz"].tolist() == ["3200-3299", "*"]


def test_real_intervals_are_half_open():
    weight = Intervals([[0, 0.5, 1], [0, 1]], whole=False)
    assert weight.generalise(0.5, 1) == "[0.5, 1)"
    assert covers("[0.5, 1)", 0.5)
    assert not covers("[0, 0.5)", 0.5)
    assert weight.ancestors("[0.5, 1)") == ("[0.5, 1)", "[0, 1)", "*")


def test_hierarchies_pickle():
    for hierarchy in (AGES, DISEASE, Prefixes(4), Suppression()):
        copy = pickle.loads(pickle.dumps(hierarchy))
        value = "flu" if hierarchy is DISEASE else 4200 if isinstance(hierarchy, Prefixes) else 42
        assert copy.generalise(value, 1) == hierarchy.generalise(value, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Intervals([]), "empty"),
        (lambda: Intervals([[1]]), "at least two increasing"),
        (lambda: Intervals([[1, 1]]), r"levels\[0\]=\[1, 1\]"),
        (lambda: Intervals([[0, 0.5]]), "whole=False"),
        (lambda: Intervals([[0, "10"]]), "must be a finite number"),
        (lambda: Intervals([[0, 10, 20], [0, 15, 20]]), "does not nest: 15"),
        (lambda: Intervals([[0, 10, 20], [0, 10]]), "first and last edge"),
        (lambda: Intervals.of_width([10, 15], low=0, high=30), "multiple"),
        (lambda: Intervals.of_width([10], low=30, high=0), "low=30"),
        (lambda: AGES.generalise(100, 1), r"in \[0, 100\)"),
        (lambda: generalise(pd.DataFrame({"a": [1]}), {"a": 1}, {"a": AGES}), r"swapped: call generalise\(frame, hier"),
        (lambda: generalise(pd.DataFrame({"a": [1]}), {"a": 1}, {"a": 1}), r"hierarchies\['a'\]=1 must be a hierarchy"),
        (lambda: generalise(pd.DataFrame({"a": [1]}), {"a": AGES}, 1), "levels=1 must be a mapping"),
        (lambda: AGES.generalise("young", 1), "value='young'"),
        (lambda: AGES.ancestors("1-99"), "neither an interval"),
        (lambda: AGES.generalise(1, 5), "above the top"),
        (lambda: AGES.generalise(1, -1), "level=-1"),
        (lambda: Prefixes(0), "length=0"),
        (lambda: Prefixes(4).generalise(327, 1), "has 3 characters"),
        (lambda: Prefixes(4).ancestors("32*"), "must have 4 characters"),
        (lambda: Taxonomy({}), "tree is empty"),
        (lambda: Taxonomy({"a": ["x"], "b": ["x"]}), "'x' stands in two places"),
        (lambda: Taxonomy({"a": 3}), "3 below 'a' must be"),
        (lambda: Taxonomy({"a": [["x"]]}), "cannot be a label"),
        (lambda: Taxonomy("abc"), "mapping, a list"),
        (lambda: Taxonomy.from_parents({"a": "b", "c": "d"}), r"the roots are \['b', 'd'\]"),
        (lambda: Taxonomy.from_parents({"a": "b", "b": "a"}), "circle"),
        (lambda: Taxonomy.from_parents({"a": "b", "b": "a", "c": "r"}), "its own ancestors"),
        (lambda: DISEASE.generalise("fly", 1), "Did you mean 'flu'"),
        (lambda: generalise(pd.DataFrame({"a": [1]}), {}, {"a": 1}), "has none"),
        (lambda: generalise(pd.DataFrame({"a": [1]}), {"b": Suppression()}, {"b": 1}), "column='b'"),
    ],
)
def test_bad_hierarchies_are_explained(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()
