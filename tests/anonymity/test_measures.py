"""Measures of published tables: worked examples, classes that decide, requirements, and refusals."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.anonymity import (
    EarthMovers,
    KullbackLeibler,
    Norm,
    Ordered,
    Table,
    Taxonomy,
    alpha_k_anonymity,
    average_class_size,
    beta_likeness,
    delta_disclosure,
    discernibility,
    k_anonymity,
    l_diversity,
    lecture_notes,
    n_epsilon_closeness,
    n_t_closeness,
    partition_closeness,
    recursive_diversity,
    recursive_level,
    t_closeness,
    uniform_prior,
    variational,
)
from dpaudit.anonymity.measures import DISTANCES
from dpaudit.errors import InvalidArgument

rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd")), min_size=1, max_size=20)
ORDERED = EarthMovers(Ordered(order=tuple("abcd")))
TREE = EarthMovers(Taxonomy({"ab": ["a", "b"], "cd": ["c", "d"]}))
EVERY_DISTANCE = [
    *(d for name, d in DISTANCES.items() if name != "ordered"),
    Norm(3),
    ORDERED,
    TREE,
]  # values are letters


def table_of(rows, index=None):
    frame = pd.DataFrame(rows, columns=["q", "s"], index=index)
    return Table.from_frame(frame, quasi_identifiers="q", sensitive="s")


def one_class(counts):
    values = [value for value, count in enumerate(counts) for _ in range(count)]
    return table_of([(0, value) for value in values])


# The lecture notes' worked example (docs/theory.md R22)


def test_the_worked_four_ninths_is_class_1_and_t_is_five_ninths():
    t = t_closeness(lecture_notes().table, exact=True)
    assert list(t.per_class) == [Fraction(4, 9), Fraction(5, 9), Fraction(2, 9)]
    assert (t.value, t.deciding_class, t.records.tolist()) == (Fraction(5, 9), 1, [3, 4, 5])
    assert t.meets(Fraction(5, 9))
    assert not t.meets(Fraction(4, 9))
    assert t.worst(3) == [1, 0, 2]
    assert str(t) == (
        "t-closeness (tv) of system = 5/9 (0.555556): class 2 (plz=2600-3199, points=35-45), records 4, 5, 6"
    )


def test_explain_names_the_classes_with_a_stated_value():
    t = t_closeness(lecture_notes().table, exact=True)
    assert t.explain(Fraction(4, 9)).startswith("4/9 (0.444444) is the value of class 1, not of the table")
    assert t.explain(Fraction(5, 9)).startswith("5/9 (0.555556) is right")
    assert t.explain(0.3).startswith("0.3 is the value of no class")
    rounded = t_closeness(lecture_notes().table, distance="kl")
    assert "of class 3, not" in rounded.explain(2 / 3 * (math.log2(3) - 1))
    delta = delta_disclosure(lecture_notes().table)
    assert delta.explain(1).startswith("1 is the value of no class")
    assert "classes 1, 3" in l_diversity(lecture_notes().table).explain(3)


def test_prior_table_and_class_distributions():
    table = lecture_notes().table
    prior = uniform_prior(["iOS", "Android", "MacOS", "Windows", "Linux"])
    whole = table.distribution()
    assert list(whole.values()) == [Fraction(n, 9) for n in (1, 2, 2, 3, 1)]
    assert variational(whole, prior, exact=True) == Fraction(8, 45)
    assert table.class_distribution(1) == {"Windows": Fraction(2, 3), "Linux": Fraction(1, 3)}
    against_prior = t_closeness(table, reference=prior, exact=True)
    assert list(against_prior.per_class) == [Fraction(2, 5), Fraction(3, 5), Fraction(2, 5)]
    counted = t_closeness(table, reference=dict.fromkeys(prior, 1), exact=True)
    assert list(counted.per_class) == list(against_prior.per_class)


def test_a_prior_may_rule_values_out_or_allow_more():
    table = table_of([(0, "a"), (1, "b")])
    assert t_closeness(table, reference={"a": 1}, distance="kl").per_class.tolist() == [0.0, math.inf]
    wide = t_closeness(table, reference={"a": 1, "b": 1, "never": 2}, exact=True)
    assert list(wide.per_class) == [Fraction(3, 4), Fraction(3, 4)]
    with pytest.raises(InvalidArgument, match="sums to"):
        t_closeness(table, reference={"a": 0.5, "b": 0.6})


# Mistakes of pycanon 1.3.6 that are not repeated (docs/mechanisms.md section 7)


@pytest.mark.parametrize("index", [[5, 3, 1, 4, 2, 0], [100, 7, -3, 9, 0, 55], list("fedcba"), [1, 1, 1, 2, 2, 2]])
def test_index_labels_are_never_positions(index):
    data = [(0, "a"), (0, "a"), (1, "a"), (1, "b"), (1, "b"), (0, "a")]
    plain, labelled = table_of(data), table_of(data, index=index)
    for measure in (l_diversity, k_anonymity, t_closeness):
        assert measure(labelled).value == measure(plain).value
        assert measure(labelled).records.tolist() == measure(plain).records.tolist()
    assert l_diversity(labelled).value == 1


def test_missing_quasi_identifiers_make_a_class():
    frame = pd.DataFrame({"q": ["x"] * 5 + [None], "s": list("abcabc")})
    with pytest.raises(InvalidArgument, match="1 missing cells, the first in record 6"):
        Table.from_frame(frame, quasi_identifiers="q", sensitive="s")
    for policy in ("value", "suppressed"):
        table = Table.from_frame(frame, quasi_identifiers="q", sensitive="s", missing=policy)
        assert table.records == 6
        assert k_anonymity(table).value == 1


def test_recursive_diversity_sorts_descending():
    table = one_class([5, 1])
    c = recursive_diversity(table, level=2, exact=True)
    assert c.value == 5
    assert not c.meets(5)  # the inequality is strict
    assert c.meets(Fraction(51, 10))
    assert recursive_diversity(table, level=3).value == math.inf


@pytest.mark.parametrize("values", [1, 2, 3, 4, 6, 7, 8, 10, 97])
def test_entropy_of_even_classes_is_their_number(values):
    l = l_diversity(one_class([3] * values), kind="entropy")
    assert l.value == values
    assert l.meets(values)


def test_entropy_is_compared_exactly_with_whole_numbers():
    assert l_diversity(one_class([4, 1, 1, 1, 1]), kind="entropy").value == 4.0  # 1/2 + 4 * 1/8: two bits exactly
    nearly = l_diversity(one_class([5001, 4999]), kind="entropy")
    assert 2 - 1e-7 < nearly.value < 2
    assert not nearly.meets(2)
    assert l_diversity(one_class([5, 1]), kind="entropy").value == pytest.approx(1.5691925832, abs=1e-10)


def test_constant_numeric_attribute_is_close():
    table = table_of([(0, 7), (1, 7), (1, 7)])
    for distance in (*DISTANCES, EarthMovers(Ordered()), EarthMovers(Ordered(by="values"))):
        assert t_closeness(table, distance=distance).value == 0
    assert t_closeness(table, distance=EarthMovers(Ordered()), exact=True).value == 0


def test_delta_disclosure_of_an_absent_value_is_infinite():
    table = table_of([(0, "a"), (0, "a"), (1, "a"), (1, "b")])
    delta = delta_disclosure(table)
    assert delta.value == math.inf
    assert delta.per_class.tolist() == [math.inf, pytest.approx(math.log(2))]
    assert not delta.meets(1e300)


def test_missing_sensitive_cells_keep_their_mass():
    frame = pd.DataFrame({"q": [0, 0, 1, 1], "s": [1.0, np.nan, 1.0, 1.0]})
    table = Table.from_frame(frame, quasi_identifiers="q", sensitive="s", missing="value")
    assert sum(table.distribution().values()) == 1
    assert t_closeness(table, exact=True).value == Fraction(1, 4)
    with pytest.raises(InvalidArgument, match="not a number"):  # missing has no place in an order
        t_closeness(table, distance=EarthMovers(Ordered()))


def test_ordinal_texts_take_a_declared_order():
    table = table_of([(0, "low"), (0, "mid"), (1, "mid"), (1, "high")])
    ordered = EarthMovers(Ordered(order=("low", "mid", "high")))
    assert t_closeness(table, distance=ordered, exact=True).value == Fraction(1, 4)
    assert t_closeness(table, exact=True).value == Fraction(1, 4)
    frame = pd.DataFrame({"q": [0, 0, 1, 1], "s": pd.Categorical(["low", "mid", "mid", "high"])})
    frame["s"] = frame["s"].cat.set_categories(["low", "mid", "high", "extreme"], ordered=True)
    declared = Table.from_frame(frame, quasi_identifiers="q", sensitive="s")
    assert t_closeness(declared, distance=EarthMovers(Ordered()), exact=True).value == Fraction(1, 6)


# Properties


@settings(max_examples=30, deadline=None)
@given(rows=rows, seed=st.integers(0, 2**32 - 1))
def test_row_order_and_index_labels_do_not_matter(rows, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    table = table_of(rows)
    shuffled = table_of([rows[i] for i in order], index=rng.permutation(len(rows)) * 3 - 7)
    for measure in _all_measures(len(rows)):
        assert measure(table).value == pytest.approx(measure(shuffled).value, rel=1e-12, abs=1e-15)


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.sampled_from("abcd"), min_size=1, max_size=15))
def test_one_class_is_the_table(values):
    table = table_of([(0, value) for value in values])
    for distance in EVERY_DISTANCE:
        assert t_closeness(table, distance=distance).value == 0.0  # exactly
    assert beta_likeness(table).value == 0
    assert delta_disclosure(table).value == 0
    assert n_epsilon_closeness(table, len(values)).value == 0
    assert partition_closeness(table, 1).value == 0
    assert k_anonymity(table).value == len(values)


@settings(max_examples=25, deadline=None)
@given(rows=rows)
def test_merging_classes_never_makes_a_measure_worse(rows):
    """Merging all classes q into q // 2: sizes add up, and distributions mix, so convex measures cannot grow."""
    fine, coarse = table_of(rows), table_of([(q // 2, s) for q, s in rows])
    for larger in (
        k_anonymity,
        l_diversity,
        lambda t: l_diversity(t, kind="entropy"),
        lambda t: recursive_level(t, c=2),
    ):
        assert larger(coarse).value >= larger(fine).value - 1e-12
    smaller = [
        lambda t: alpha_k_anonymity(t).alpha,
        lambda t: recursive_diversity(t, level=2),
        lambda t: recursive_diversity(t, level=3),
        beta_likeness,
        lambda t: beta_likeness(t, enhanced=True),
        delta_disclosure,
        *(lambda t, d=distance: t_closeness(t, distance=d) for distance in EVERY_DISTANCE),
    ]
    for measure in smaller:
        assert measure(coarse).value <= measure(fine).value + 1e-9
    assert discernibility(coarse) >= discernibility(fine)
    assert average_class_size(coarse, 2) >= average_class_size(fine, 2)


@settings(max_examples=8, deadline=None)
@given(rows=rows)
def test_merging_classes_keeps_a_common_reference_set(rows):
    fine, coarse = table_of(rows), table_of([(q // 2, s) for q, s in rows])
    n = max(1, len(rows) // 2)
    assert partition_closeness(coarse, n).value <= partition_closeness(fine, n).value + 1e-9


@settings(max_examples=20, deadline=None)
@given(rows=rows)
def test_larger_reference_sets_are_harder(rows):
    table = table_of(rows)
    values = [n_epsilon_closeness(table, n).value for n in range(1, len(rows) + 1)]
    assert values == sorted(values)
    with_class = [n_epsilon_closeness(table, n, require_superset=True).value for n in range(1, len(rows) + 1)]
    assert all(free <= bound + 1e-12 for free, bound in zip(values, with_class, strict=True))
    assert with_class[-1] == pytest.approx(t_closeness(table).value, rel=1e-12)


def _all_measures(records):
    yield from (k_anonymity, l_diversity, beta_likeness, delta_disclosure)
    yield lambda t: l_diversity(t, kind="entropy")
    yield lambda t: recursive_diversity(t, level=2)
    yield lambda t: recursive_level(t, c=2)
    yield lambda t: alpha_k_anonymity(t).alpha
    yield lambda t: n_epsilon_closeness(t, max(1, records // 2))
    for distance in EVERY_DISTANCE:
        yield lambda t, d=distance: t_closeness(t, distance=d)


# Several sensitive attributes


def test_the_worst_attribute_decides_unless_one_is_named():
    frame = pd.DataFrame({"q": [0, 0, 1, 1], "s": list("abab"), "u": list("aabb")})
    table = Table.from_frame(frame, quasi_identifiers="q", sensitive=["s", "u"])
    assert (l_diversity(table).value, l_diversity(table).attribute) == (1, "u")
    assert l_diversity(table, "s").value == 2
    assert (t_closeness(table, exact=True).value, t_closeness(table).attribute) == (Fraction(1, 2), "u")
    assert t_closeness(table, "s").value == 0
    assert alpha_k_anonymity(table).alpha.attribute == "u"
    with pytest.raises(InvalidArgument, match="'v' is not one of"):
        l_diversity(table, "v")
    with pytest.raises(InvalidArgument, match="choose one"):
        table.distribution()


def test_other_sensitive_attributes_may_be_known():
    frame = pd.DataFrame({"q": [0, 0], "s": list("ab"), "u": list("xy")})
    table = Table.from_frame(frame, quasi_identifiers="q", sensitive=["s", "u"])
    assert l_diversity(table, "s").value == 2
    assert l_diversity(table, "s", others_known=True).value == 1  # u determines s


# Single measures


def test_beta_likeness_names_the_value():
    table = table_of([(0, "a"), (0, "a"), (0, "b"), (1, "b"), (1, "b"), (1, "b")])
    beta = beta_likeness(table, exact=True)
    assert (beta.value, beta.deciding_value, beta.records.tolist()) == (1, "a", [0, 1])
    assert beta_likeness(table, enhanced=True).value == math.inf  # b grows by 1/2, more than -ln(2/3) = 0.405
    assert beta_likeness(table_of([(0, "a"), (1, "a")])).value == 0


def test_alpha_and_k_are_met_together():
    found = alpha_k_anonymity(lecture_notes().table, exact=True)
    assert found.meets(alpha=Fraction(2, 3), k=3)
    assert not found.meets(alpha=0.66, k=3)
    assert not found.meets(alpha=1, k=4)
    assert found.alpha.deciding_value == "Windows"


def test_requirements_are_decided_exactly():
    table = table_of([(0, "a")] * 3 + [(0, "b")] * 2 + [(1, "a")] * 2 + [(1, "b")] * 3)
    t = t_closeness(table, exact=True)
    assert t.value == Fraction(1, 10)
    assert t.meets(0.1)  # a float is read as the decimal it prints as
    assert not t.meets(0.1 - 1e-15)
    rounded = t_closeness(table)
    assert rounded.meets(0.1)
    assert not rounded.meets(0.0999999)
    assert t_closeness(table, distance=KullbackLeibler(base=math.e)).meets(math.inf)
    with pytest.raises(InvalidArgument, match="required='much'"):
        t.meets("much")


def test_results_pickle():
    t = pickle.loads(pickle.dumps(t_closeness(lecture_notes().table, exact=True)))
    assert t.value == Fraction(5, 9)
    assert "class 2" in str(t)


def test_information_loss():
    table = lecture_notes().table
    assert average_class_size(table, 3) == 1.0
    assert discernibility(table) == 27


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: n_epsilon_closeness(t, 10), "at most the number of records, 9"),
        (lambda t: n_epsilon_closeness(t, 0), "at least 1"),
        (lambda t: n_epsilon_closeness(t, 2.5), "whole number"),
        (lambda t: partition_closeness(t, 3, distance="kl", exact=True), "irrational"),
        (lambda t: n_t_closeness(t, 3), "Suppression"),
        (lambda t: n_t_closeness(t, 3, supersets="all"), "unions"),
        (lambda t: l_diversity(t, kind="shannon"), "kind='shannon'"),
        (lambda t: recursive_diversity(t, level=0), "level=0"),
        (lambda t: recursive_level(t, c=0), "c=0 must be positive"),
        (lambda t: t_closeness(t, distance="tvv"), "distance='tvv'"),
        (lambda t: t.key(3), "class number from 0 to 2"),
        (lambda t: t.class_distribution(True), "index=True"),
    ],
)
def test_bad_arguments_are_explained(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call(lecture_notes().table)


def test_without_a_sensitive_attribute_only_k_is_known():
    table = Table.from_frame({"q": [1, 1, 2]}, quasi_identifiers="q")
    assert k_anonymity(table).value == 1
    with pytest.raises(InvalidArgument, match="without sensitive attributes"):
        t_closeness(table)


def test_problems_too_large_for_the_exact_search_are_refused():
    rng = np.random.default_rng(0)
    wide = table_of([(int(q), int(s)) for q, s in zip(rng.integers(0, 5, 4000), rng.permutation(4000), strict=True)])
    with pytest.raises(InvalidArgument, match="4000 sensitive values are too many"):
        n_epsilon_closeness(wide, 2000, distance=EarthMovers(Ordered()))
    assert 0 < n_epsilon_closeness(wide, 2000).value < 1  # sums of terms have no such limit
    tall = table_of([(int(q), int(s)) for q, s in zip(np.arange(2000) // 3, rng.integers(0, 9, 2000), strict=True)])
    with pytest.raises(InvalidArgument, match="are too many for an exact common reference set"):
        partition_closeness(tall, 100, distance="kl")
    assert partition_closeness(tall, 100).value <= t_closeness(tall).value

    class Mine:
        name, rational = "mine", False

        def per_row(self, comparison):
            return np.zeros(comparison.rows)

    assert t_closeness(wide, distance=Mine()).value == 0  # a distance of the user
    with pytest.raises(InvalidArgument, match="'mine': the best reference set is not known"):
        n_epsilon_closeness(wide, 2000, distance=Mine())
    with pytest.raises(InvalidArgument, match="'mine'"):
        partition_closeness(wide, 2000, distance=Mine())


def test_many_classes_for_the_superset_search_are_refused():
    table = table_of([(i, "a") for i in range(17)])
    with pytest.raises(InvalidArgument, match="17 classes"):
        n_t_closeness(table, 2, supersets="unions")
