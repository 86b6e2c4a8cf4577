"""Distances between distributions: published examples, metric axioms, brute force, and refusals."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.anonymity import (
    EarthMovers,
    Equal,
    KullbackLeibler,
    Norm,
    Ordered,
    Taxonomy,
    chi_square,
    hellinger,
    jensen_shannon,
    kullback_leibler,
    l1,
    l2,
    maximum,
    power_sum,
    variational,
)
from dpaudit.anonymity.commands.options import DISTANCES_BY_NAME
from dpaudit.anonymity.measures import DISTANCES, as_distance
from dpaudit.errors import InvalidArgument

TREE = Taxonomy({"left": {"a": ["v0", "v1"], "v2": None}, "right": ["v3", "v4"]})
VALUES = ["v0", "v1", "v2", "v3", "v4"]
RANKED = EarthMovers(Ordered(order=VALUES))
METRICS = [variational, l1, l2, maximum, Norm(3), Norm(1.5), hellinger, RANKED, EarthMovers(Equal()), EarthMovers(TREE)]
DIVERGENCES = [kullback_leibler, KullbackLeibler(reverse=True), jensen_shannon, chi_square]

counts = (
    st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any).map(lambda c: dict(zip(VALUES, c, strict=True)))
)

# The lecture notes' example; values of docs/theory.md R22.
TABLE = {"iOS": 1, "Android": 2, "MacOS": 2, "Windows": 3, "Linux": 1}
CLASSES = [{"iOS": 1, "Android": 1, "MacOS": 1}, {"Windows": 2, "Linux": 1}, {"MacOS": 1, "Windows": 1, "Android": 1}]
LOG3 = math.log2(3)


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        (variational, [Fraction(4, 9), Fraction(5, 9), Fraction(2, 9)]),
        (l1, [Fraction(8, 9), Fraction(10, 9), Fraction(4, 9)]),
        (Norm(1), [Fraction(8, 9), Fraction(10, 9), Fraction(4, 9)]),
        (maximum, [Fraction(1, 3), Fraction(1, 3), Fraction(1, 9)]),
        (EarthMovers(Equal()), [Fraction(4, 9), Fraction(5, 9), Fraction(2, 9)]),
    ],
)
def test_lecture_notes_exact(distance, expected):
    assert [distance(c, TABLE, exact=True) for c in CLASSES] == expected
    assert [distance(c, TABLE) for c in CLASSES] == pytest.approx([float(e) for e in expected], rel=1e-15)


def test_lecture_notes_irrational():
    assert [l2(c, TABLE) for c in CLASSES] == pytest.approx([4 / 9, math.sqrt(22) / 9, 2 / 9], rel=1e-15)
    expected = [LOG3 - 2 / 3, 2 / 3 + LOG3 / 3, 2 / 3 * (LOG3 - 1)]
    assert [kullback_leibler(c, TABLE) for c in CLASSES] == pytest.approx(expected, rel=1e-14)
    assert [KullbackLeibler(reverse=True)(c, TABLE) for c in CLASSES] == [math.inf] * 3
    assert [KullbackLeibler(reverse=True)(TABLE, c) for c in CLASSES] == pytest.approx(expected, rel=1e-14)
    assert [power_sum(c, TABLE, 3, exact=True) for c in CLASSES] == [
        Fraction(38, 729),
        Fraction(52, 729),
        Fraction(4, 729),
    ]


def test_table_against_the_uniform_prior():
    assert variational(TABLE, dict.fromkeys(TABLE, Fraction(1, 5)), exact=True) == Fraction(8, 45)  # docs/theory.md R22


@pytest.mark.parametrize(
    ("salaries", "expected"),
    [
        ((3, 4, 5), Fraction(3, 8)),
        ((6, 8, 11), Fraction(1, 6)),
        ((3, 5, 9), Fraction(1, 6)),
        ((4, 7, 10), Fraction(1, 12)),
    ],
)
def test_salaries_of_li_et_al_2007(salaries, expected):
    whole = dict.fromkeys(range(3, 12), 1)
    assert EarthMovers(Ordered())(dict.fromkeys(salaries, 1), whole, exact=True) == expected
    assert EarthMovers(Ordered(by="values"))(dict.fromkeys(salaries, 1), whole, exact=True) == expected


def test_diseases_of_li_et_al_2007():
    # The printed 0.278 is reproduced neither by the formula nor by a linear programme; 8/27 is (docs/mechanisms.md section 7).
    tree = Taxonomy(
        {
            "respiratory": {"infection": ["flu", "pneumonia", "bronchitis"], "vascular": ["edema", "embolism"]},
            "digestive": {"stomach": ["ulcer", "cancer", "gastritis"], "colon": ["colitis", "colon cancer"]},
        }
    )
    whole = {"ulcer": 1, "cancer": 2, "pneumonia": 1, "gastritis": 2, "flu": 1, "bronchitis": 2}
    classes = [
        ("ulcer", "cancer", "pneumonia"),
        ("gastritis", "flu", "bronchitis"),
        ("gastritis", "bronchitis", "cancer"),
    ]
    found = [EarthMovers(tree)(dict.fromkeys(c, 1), whole, exact=True) for c in classes]
    assert found == [Fraction(7, 27), Fraction(8, 27), Fraction(5, 27)]
    assert [variational(dict.fromkeys(c, 1), whole, exact=True) for c in classes] == [
        Fraction(5, 9),
        Fraction(4, 9),
        Fraction(1, 3),
    ]


@pytest.mark.parametrize("distance", METRICS, ids=lambda d: d.name)
@settings(max_examples=25, deadline=None)
@given(p=counts, q=counts, r=counts)
def test_metric_axioms(distance, p, q, r):
    pq = distance(p, q)
    total_p, total_q = sum(p.values()), sum(q.values())
    equal = all(p[v] * total_q == q[v] * total_p for v in VALUES)
    assert pq == 0 if equal else pq > 0
    assert pq == pytest.approx(distance(q, p), rel=1e-12, abs=1e-15)
    assert pq <= distance(p, r) + distance(r, q) + 1e-12


@settings(max_examples=40, deadline=None)
@given(p=counts, q=counts, r=counts)
def test_root_of_jensen_shannon_is_a_metric(p, q, r):
    root = [math.sqrt(jensen_shannon(a, b)) for a, b in ((p, q), (p, r), (r, q))]
    assert root[0] <= root[1] + root[2] + 1e-12
    assert root[0] <= 1 + 1e-15


@pytest.mark.parametrize("distance", DIVERGENCES, ids=lambda d: d.name)
@settings(max_examples=25, deadline=None)
@given(p=counts, q=counts)
def test_divergences_are_positive_and_zero_only_at_equality(distance, p, q):
    equal = all(p[v] * sum(q.values()) == q[v] * sum(p.values()) for v in VALUES)
    value = distance(p, q)
    assert value == 0 if equal else value > 0


@settings(max_examples=40, deadline=None)
@given(p=counts, q=counts)
def test_known_inequalities(p, q):
    tv, kl = variational(p, q), KullbackLeibler(base=math.e)(p, q)
    assert 2 * tv**2 <= kl + 1e-12  # Pinsker
    assert kl <= math.log1p(chi_square(p, q)) + 1e-12
    assert hellinger(p, q) ** 2 - 1e-12 <= tv <= math.sqrt(2) * hellinger(p, q) + 1e-12
    for metric in (RANKED, EarthMovers(TREE)):
        assert -1e-15 <= metric(p, q) <= tv + 1e-12  # no two values are further apart than one


@pytest.mark.parametrize("distance", [d for d in (*METRICS, chi_square) if d.rational], ids=lambda d: d.name)
@settings(max_examples=20, deadline=None)
@given(p=counts, q=counts)
def test_exact_agrees_with_floats(distance, p, q):
    exact = distance(p, q, exact=True)
    assert isinstance(exact, Fraction) or exact == math.inf
    assert distance(p, q) == pytest.approx(float(exact), rel=1e-13, abs=1e-16)


@pytest.mark.parametrize("distance", [*METRICS, *DIVERGENCES], ids=lambda d: d.name)
def test_counts_probabilities_and_fractions_agree(distance):
    p, q = {"v0": 1, "v3": 3}, {"v0": 2, "v1": 1, "v3": 1}
    as_fractions = [{v: Fraction(c, 4) for v, c in d.items()} for d in (p, q)]
    as_floats = [{v: c / 4 for v, c in d.items()} for d in (p, q)]
    assert distance(*as_fractions) == pytest.approx(distance(p, q), rel=1e-14)
    assert distance(*as_floats) == pytest.approx(distance(p, q), rel=1e-14)


def test_divergences_are_infinite_where_the_reference_has_no_mass():
    p, q = {"a": 1, "b": 1}, {"a": 1}
    assert kullback_leibler(p, q) == math.inf
    assert kullback_leibler(q, p) == 1.0
    assert chi_square(p, q) == math.inf
    assert chi_square(p, q, exact=True) == math.inf
    assert jensen_shannon({"a": 1}, {"b": 1}) == pytest.approx(1.0, rel=1e-15)
    assert hellinger({"a": 1}, {"b": 1}) == 1.0


@pytest.mark.parametrize("base", [2.0, math.e, 10.0])
def test_relative_entropy_in_any_base(base):
    p, q = [1, 3], [2, 2]
    nats = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert KullbackLeibler(base=base)(p, q) == pytest.approx(nats / math.log(base), rel=1e-14)


def test_distances_of_nearly_equal_distributions_are_accurate():
    # KL(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q)) = 2 d^2 + O(d^4) in nats around one half.
    d = 1e-9
    value = KullbackLeibler(base=math.e)([0.5 + d, 0.5 - d], [0.5, 0.5])
    assert value == pytest.approx(2 * d * d, rel=1e-6)
    assert hellinger([0.5 + d, 0.5 - d], [0.5, 0.5]) == pytest.approx(d / math.sqrt(2), rel=1e-6)


def test_high_norms_do_not_underflow():
    assert Norm(500)([3, 1], [1, 3]) == pytest.approx(0.5 * 2 ** (1 / 500), rel=1e-13)


def test_order_by_values_depends_on_gaps_and_order_by_ranks_does_not():
    p, q = {1: 1}, {2: 1}
    far = {1: 0, 2: 0, 101: 1}
    assert EarthMovers(Ordered(order=(1, 2, 101)))(p, q, exact=True) == Fraction(1, 2)
    assert EarthMovers(Ordered(order=(1, 2, 101), by="values"))(p, q, exact=True) == Fraction(1, 100)
    assert EarthMovers(Ordered(by="values"))(p, far) == 1.0


def test_ordered_reads_text_dates_and_booleans():
    assert EarthMovers(Ordered())({"9": 1}, {"10": 1, "11": 1}, exact=True) == Fraction(
        3, 4
    )  # by number, not by letter
    dates = {"2024-01-01": 1, "2024-01-02": 0, "2024-01-11": 0}
    assert EarthMovers(Ordered(by="values"))(dates, {"2024-01-02": 1}, exact=True) == Fraction(1, 10)
    assert EarthMovers(Ordered())({True: 1}, {False: 1}) == 1.0


def test_one_value_is_at_distance_zero():
    for distance in (*METRICS[:7], *DIVERGENCES, EarthMovers(Ordered())):
        assert distance({7: 3}, {7: 5}) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: variational({}, {"a": 1}), "p is empty"),
        (lambda: variational({"a": 0}, {"a": 1}), "no mass"),
        (lambda: variational({"a": -1, "b": 2}, {"a": 1}), "weight -1; .* zero or positive"),
        (lambda: variational({"a": math.nan}, {"a": 1}), "weight nan; .* zero or positive"),
        (lambda: variational({"a": math.inf}, {"a": 1}), "weight inf; .* finite"),
        (lambda: variational({"a": 0.5}, {"a": 1}), "sums to 0.5"),
        (lambda: variational({"a": True}, {"a": 1}), "weight True; .* numbers"),
        (lambda: variational({"a": "x"}, {"a": 1}), "weight 'x'; .* numbers"),
        (lambda: variational([1, 2], [1, 2, 3]), "2 weights and q 3"),
        (lambda: variational([1, 2], {"a": 1}), "both"),
        (lambda: variational({"a": 0.5, "b": 0.5}, {"a": 1}, exact=True), "float"),
        (lambda: variational({"a": Fraction(1, 3)}, {"a": 1}, exact=True), "sums to 1/3"),
        (lambda: l2({"a": 1}, {"a": 1}, exact=True), "power_sum"),
        (lambda: kullback_leibler({"a": 1}, {"a": 1}, exact=True), "irrational"),
        (lambda: power_sum({"a": 1}, {"a": 1}, 1.5, exact=True), "whole"),
        (lambda: Norm(0.5), "at least 1"),
        (lambda: Norm(math.nan), "order=nan must be finite"),
        (lambda: KullbackLeibler(base=1.0), "above 1"),
        (lambda: EarthMovers("ordered"), "ground"),
        (lambda: Ordered(order=("a", "a")), "once"),
        (lambda: Ordered(by="size"), "ranks"),
        (lambda: EarthMovers(Ordered())({"low": 1}, {"high": 1}), "not a number"),
        (lambda: EarthMovers(Ordered(order=("low", "mid")))({"low": 1}, {"high": 1}), "'high' is not in order"),
        (lambda: EarthMovers(TREE)({"v0": 1}, {"v9": 1}), "not in the taxonomy"),
        (lambda: EarthMovers(TREE)({"v0": 1}, {"left": 1}), "inner label"),
        (lambda: as_distance("emd"), "Ordered"),
        (lambda: as_distance("kll"), "Did you mean 'kl'"),
        (lambda: as_distance(3), "distance=3"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()


def test_distances_pickle_and_are_named():
    for distance in (*DISTANCES.values(), EarthMovers(Ordered(order=(0, 1))), Norm(3)):
        copy = pickle.loads(pickle.dumps(distance))
        assert copy.name == distance.name
        assert copy([1, 1], [2, 0]) == distance([1, 1], [2, 0])
    short = {"equal": "emd (equal)", "ordered": "emd (ordered, ranks)"}  # both are earth mover's distances
    assert {name: distance.name for name, distance in DISTANCES.items()} == {
        name: short.get(name, name) for name in DISTANCES
    }
    assert tuple(DISTANCES) == DISTANCES_BY_NAME, "the options of the command line"


def test_sparse_and_dense_rows_agree():
    """Every distance gives the same whether or not a row lists the values that it lacks."""
    rng = np.random.default_rng(0)
    whole = dict(zip(VALUES, rng.integers(1, 9, 5).tolist(), strict=True))
    for distance, size in itertools.product((*METRICS, *DIVERGENCES), (1, 2, 4)):
        part = dict(zip(rng.choice(VALUES, size, replace=False).tolist(), [1, 2, 3, 4], strict=False))
        full = {value: part.get(value, 0) for value in VALUES}
        assert distance(part, whole) == pytest.approx(distance(full, whole), rel=1e-14)
