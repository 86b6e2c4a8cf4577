"""Measures of small tables against brute force, and distances against linear programmes, scipy and mpmath."""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.anonymity import (
    EarthMovers,
    Equal,
    Intervals,
    KullbackLeibler,
    Norm,
    Ordered,
    Suppression,
    Table,
    Taxonomy,
    alpha_k_anonymity,
    beta_likeness,
    chi_square,
    delta_disclosure,
    discernibility,
    hellinger,
    jensen_shannon,
    k_anonymity,
    l_diversity,
    lecture_notes,
    n_epsilon_closeness,
    n_t_closeness,
    partition_closeness,
    recursive_diversity,
    recursive_level,
    t_closeness,
    variational,
)
from dpaudit.anonymity.distance.reference_set import _by_size
from dpaudit.anonymity.measures import as_distance

DEEP = Taxonomy({"a": {"b": ["v0", "v1", "v2"], "c": ["v3"]}, "d": ["v4"], "e": {"f": {"g": ["v5", "v6"]}}})
LEAVES = [f"v{i}" for i in range(7)]


def transport(p, q, cost):
    """The optimal transport problem as a linear programme."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    m = len(p)
    rows = [np.kron(np.eye(m)[i], np.ones(m)) for i in range(m)] + [np.kron(np.ones(m), np.eye(m)[j]) for j in range(m)]
    found = scipy.optimize.linprog(np.ravel(cost), A_eq=np.array(rows), b_eq=np.r_[p / p.sum(), q / q.sum()])
    assert found.success
    return found.fun


@pytest.mark.parametrize("seed", range(8))
def test_earth_movers_against_a_linear_programme(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.integers(0, 5, 7) + np.eye(7, dtype=int)[seed % 7], rng.integers(0, 5, 7) + np.eye(7, dtype=int)[3]
    named_p, named_q = (dict(zip(LEAVES, c.tolist(), strict=True)) for c in (p, q))
    tree = [[float(DEEP.distance(x, y)) for y in LEAVES] for x in LEAVES]
    assert EarthMovers(DEEP)(named_p, named_q) == pytest.approx(transport(p, q, tree), abs=1e-9)
    ranks = [[abs(i - j) / 6 for j in range(7)] for i in range(7)]
    assert EarthMovers(Ordered(order=LEAVES))(named_p, named_q) == pytest.approx(transport(p, q, ranks), abs=1e-9)
    equal = [[float(i != j) for j in range(7)] for i in range(7)]
    assert EarthMovers(Equal())(named_p, named_q) == pytest.approx(transport(p, q, equal), abs=1e-9)


def test_earth_movers_against_scipy():
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = np.sort(rng.choice(1000, 40, replace=False))
        p, q = rng.integers(0, 6, 40), rng.integers(1, 6, 40)
        p[rng.integers(40)] += 1
        theirs = scipy.stats.wasserstein_distance(values, values, p, q) / (values[-1] - values[0])
        named = [dict(zip(values.tolist(), c.tolist(), strict=True)) for c in (p, q)]
        assert EarthMovers(Ordered(by="values"))(*named) == pytest.approx(theirs, rel=1e-12)
        assert EarthMovers(Ordered(by="values"))(*named, exact=True) == pytest.approx(theirs, rel=1e-12)
        ranks = np.arange(40)
        theirs = scipy.stats.wasserstein_distance(ranks, ranks, p, q) / 39
        assert EarthMovers(Ordered())(*named) == pytest.approx(theirs, rel=1e-12)


def test_entropies_against_mpmath():
    rng = np.random.default_rng(2)
    with mpmath.workdps(40):
        for _ in range(30):
            p, q = rng.integers(0, 50, 6), rng.integers(1, 50, 6)
            p[0] += 1
            exact_p, exact_q = ([mpmath.mpf(int(c)) / int(w.sum()) for c in w] for w in (p, q))

            def kl(x, y):
                return sum(a * mpmath.log(a / b) for a, b in zip(x, y, strict=True) if a)

            middle = [(a + b) / 2 for a, b in zip(exact_p, exact_q, strict=True)]
            pairs = list(zip(exact_p, exact_q, strict=True))
            expected = {
                KullbackLeibler(base=math.e): kl(exact_p, exact_q),
                KullbackLeibler(): kl(exact_p, exact_q) / mpmath.log(2),
                jensen_shannon: (kl(exact_p, middle) + kl(exact_q, middle)) / 2 / mpmath.log(2),
                hellinger: mpmath.sqrt(sum((mpmath.sqrt(a) - mpmath.sqrt(b)) ** 2 for a, b in pairs) / 2),
                chi_square: sum((a - b) ** 2 / b for a, b in pairs),
                Norm(3): sum(abs(a - b) ** 3 for a, b in pairs) ** (mpmath.mpf(1) / 3),
            }
            for distance, value in expected.items():
                assert distance(p.tolist(), q.tolist()) == pytest.approx(float(value), rel=1e-14)


# Brute force on small tables: plain loops over dictionaries, with Fractions.

small = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from("pq"), st.sampled_from("abcd")), min_size=1, max_size=12
)


def by_class(rows):
    groups = defaultdict(list)
    for x, y, s in rows:
        groups[x, y].append(s)
    return {key: Counter(values) for key, values in groups.items()}


def table_of(rows):
    frame = pd.DataFrame(rows, columns=["x", "y", "s"])
    return Table.from_frame(frame, quasi_identifiers=["x", "y"], sensitive="s")


@settings(max_examples=60, deadline=None)
@given(rows=small)
def test_measures_equal_brute_force(rows):
    table, groups = table_of(rows), by_class(rows)
    whole = Counter(s for *_, s in rows)
    sizes = {key: sum(c.values()) for key, c in groups.items()}
    p = {key: {s: Fraction(c[s], sizes[key]) for s in whole} for key, c in groups.items()}
    q = {s: Fraction(n, len(rows)) for s, n in whole.items()}

    def check(measure, expected):
        assert [tuple(table.key(c).values()) for c in range(len(groups))] == list(groups)
        assert list(measure.per_class) == pytest.approx(list(expected), rel=1e-12)
        worst = min(expected) if measure.sense.value == ">=" else max(expected)
        assert measure.value == pytest.approx(worst, rel=1e-12)
        assert measure.per_class[measure.deciding_class] == measure.value
        assert {rows[r][:2] for r in measure.records} == {tuple(table.key(measure.deciding_class).values())}

    check(k_anonymity(table), list(sizes.values()))
    alpha = alpha_k_anonymity(table, exact=True)
    check(alpha.alpha, [max(d.values()) for d in p.values()])
    assert {rows[r][2] for r in alpha.alpha.records} == {alpha.alpha.deciding_value}
    check(l_diversity(table), [len(c) for c in groups.values()])
    entropy = [math.exp(-sum(v * math.log(v) for v in map(float, d.values()) if v)) for d in p.values()]
    check(l_diversity(table, kind="entropy"), entropy)
    for level in (1, 2, 3):
        tails = [sorted(c.values(), reverse=True)[level - 1 :] for c in groups.values()]
        ratios = [
            Fraction(max(c.values()), sum(t)) if t else math.inf for c, t in zip(groups.values(), tails, strict=True)
        ]
        check(recursive_diversity(table, level=level, exact=True), ratios)
        for c in (Fraction(1, 2), 1, 1.5, 3):
            kept = [
                sum(max(g.values()) < c * sum(sorted(g.values(), reverse=True)[i:]) for i in range(len(g)))
                for g in groups.values()
            ]
            check(recursive_level(table, c=c), kept)
    check(t_closeness(table, exact=True), [sum(abs(d[s] - q[s]) for s in q) / 2 for d in p.values()])
    check(
        t_closeness(table, distance="chi2", exact=True), [sum((d[s] - q[s]) ** 2 / q[s] for s in q) for d in p.values()]
    )
    check(beta_likeness(table, exact=True), [max(max(d[s] - q[s], 0) / q[s] for s in q) for d in p.values()])
    enhanced = [
        max(g if (g := max(d[s] - q[s], 0) / q[s]) <= -math.log(q[s]) + 1e-12 else math.inf for s in q)
        for d in p.values()
    ]
    check(beta_likeness(table, enhanced=True, exact=True), enhanced)
    delta = [max(abs(math.log(d[s] / q[s])) if d[s] else math.inf for s in q) for d in p.values()]
    check(delta_disclosure(table), delta)
    assert discernibility(table) == sum(n * n for n in sizes.values())


@settings(max_examples=40, deadline=None)
@given(rows=small)
def test_ordered_closeness_equals_brute_force(rows):
    table, groups = table_of(rows), by_class(rows)
    whole = Counter(s for *_, s in rows)
    expected = []
    for group in groups.values():
        gap, total = Fraction(0), Fraction(0)
        for s in "abcd"[:-1]:
            gap += Fraction(group[s], sum(group.values())) - Fraction(whole[s], len(rows))
            total += abs(gap) / 3
        expected.append(total)
    measure = t_closeness(table, distance=EarthMovers(Ordered(order="abcd")), exact=True)
    assert list(measure.per_class) == expected


def subsets(counts, least):
    for picked in itertools.product(*(range(n + 1) for n in counts.values())):
        if sum(picked) >= max(least, 1):
            yield dict(zip(counts, picked, strict=True))


def brute_force_epsilon(held, counts, n, metric, superset):
    return min(metric(held, m) for m in subsets(counts, n) if not superset or all(m[s] >= c for s, c in held.items()))


tiny = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("p"), st.sampled_from("abc")), min_size=2, max_size=8)
METRICS = {
    "tv": as_distance("tv"),
    "l1": as_distance("l1"),
    "l2": as_distance("l2"),
    "l3": Norm(3),
    "max": as_distance("max"),
    "kl": as_distance("kl"),
    "kl-reverse": as_distance("kl-reverse"),
    "js": as_distance("js"),
    "hellinger": as_distance("hellinger"),
    "chi2": as_distance("chi2"),
    "ordered": EarthMovers(Ordered(order="abc")),
    "tree": EarthMovers(Taxonomy({"v": ["a", "b"], "c": None})),
    "equal": EarthMovers(Equal()),
}


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=6, deadline=None)
@given(rows=tiny, data=st.data())
def test_n_epsilon_closeness_equals_brute_force(name, rows, data):
    metric, table = METRICS[name], table_of(rows)
    n = data.draw(st.integers(1, len(rows)))
    counts = Counter(s for *_, s in rows)
    held = list(by_class(rows).values())
    for superset in (False, True):
        found = n_epsilon_closeness(table, n, distance=metric, require_superset=superset)
        expected = [brute_force_epsilon(c, counts, n, metric, superset) for c in held]
        assert list(found.per_class) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert sum(found.reference.values()) >= n
        assert metric(held[found.deciding_class], found.reference) == pytest.approx(found.value, rel=1e-12, abs=1e-15)
    common = partition_closeness(table, n, distance=metric)
    expected = min(max(metric(c, m) for c in held) for m in subsets(counts, n))
    assert common.value == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert sum(common.reference.values()) >= n
    whole = partition_closeness(table, n, distance=metric, require_superset=True)
    assert whole.value == pytest.approx(t_closeness(table, distance=metric).value, rel=1e-12, abs=1e-15)


def test_n_epsilon_closeness_of_the_lecture_notes():
    """Values of docs/theory.md R23, each equal to brute force over all subsets."""
    table = lecture_notes().table
    per_class = [
        [0, 0, 0, Fraction(2, 15), Fraction(2, 15), Fraction(1, 6), Fraction(2, 7), Fraction(3, 8), Fraction(4, 9)],
        [0, 0, 0, Fraction(1, 12), Fraction(1, 5), Fraction(1, 3), Fraction(3, 7), Fraction(1, 2), Fraction(5, 9)],
        [0, 0, 0, 0, 0, 0, Fraction(2, 21), Fraction(1, 6), Fraction(2, 9)],
    ]
    for n in range(1, 10):
        for superset in (False, True):
            found = n_epsilon_closeness(table, n, exact=True, require_superset=superset)
            assert list(found.per_class) == [row[n - 1] for row in per_class]
        assert partition_closeness(table, n, exact=True).value == (Fraction(1, 2) if n <= 8 else Fraction(5, 9))
        bits = partition_closeness(table, n, distance="kl").value
        expected = 1.0 if n <= 6 else 1.081704166 if n <= 8 else 2 / 3 + math.log2(3) / 3
        assert bits == pytest.approx(expected, abs=1e-9)


def test_the_scan_and_the_integer_programme_agree_on_a_larger_table():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"q": rng.integers(0, 12, 240), "s": rng.choice(list("abcdef"), 240, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])}
    )
    table = Table.from_frame(frame, quasi_identifiers="q", sensitive="s")
    for n in (30, 77, 150):
        scan = n_epsilon_closeness(table, n, distance="tv").per_class
        programme = n_epsilon_closeness(table, n, distance=_ThroughTheProgramme()).per_class
        assert scan == pytest.approx(programme, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_one_programme_for_all_sizes_agrees_with_one_for_each(seed):
    """Dinkelbach's iteration over all sizes against the chords at every size (docs/theory.md R23)."""
    rng = np.random.default_rng(seed)
    held = rng.integers(0, 4, (6, 4)) + np.eye(6, 4, dtype=np.int64)
    counts = held.sum(axis=0)
    named = {s: int(c) for s, c in zip("abcd", counts, strict=True)}
    table = Table.from_frame(
        pd.DataFrame(
            [(q, s) for q, row in enumerate(held) for s, c in zip("abcd", row, strict=True) for _ in range(c)],
            columns=["q", "s"],
        ),
        quasi_identifiers="q",
        sensitive="s",
    )
    for n in (1, int(counts.sum()) // 2, int(counts.sum()) - 2):
        best = _by_size(held, variational, counts, n)
        rows = [{s: int(c) for s, c in zip("abcd", row, strict=True)} for row in held]
        chosen = {s: int(c) for s, c in zip("abcd", best, strict=True)}
        expected = max(variational(row, chosen, exact=True) for row in rows)
        assert partition_closeness(table, n, exact=True).value == expected
        assert all(chosen[s] <= named[s] for s in named)


class _ThroughTheProgramme:
    """The variational distance, but not declared as a sum of terms."""

    name, rational = "tv", True

    def per_row(self, comparison):
        return variational.per_row(comparison)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from("wxyz"), st.just("p"), st.sampled_from("abc")), min_size=2, max_size=9),
    data=st.data(),
)
def test_n_t_closeness_equals_brute_force(rows, data):
    table, held = table_of(rows), list(by_class(rows).values())
    n = data.draw(st.integers(1, len(rows)))
    expected = []
    for index, mine in enumerate(held):
        others = held[:index] + held[index + 1 :]
        unions = (sum(chosen, mine) for size in range(len(held)) for chosen in itertools.combinations(others, size))
        expected.append(min(variational(mine, u, exact=True) for u in unions if sum(u.values()) >= n))
    found = n_t_closeness(table, n, supersets="unions", exact=True)
    assert list(found.per_class) == expected
    whole = n_t_closeness(table, len(rows), hierarchies={"x": Suppression(), "y": Suppression()}, exact=True)
    assert list(whole.per_class) == list(t_closeness(table, exact=True).per_class)


def test_n_t_closeness_widens_along_intervals():
    """The natural supersets of 20-29 are 20-29, 20-39 and everything; of 40-49 they are 40-49, 40-59 and everything."""
    ages = Intervals([[20, 30, 40, 50, 60], [20, 40, 60]])
    rows = [("20-29", "a"), ("20-29", "b"), ("30-39", "b"), ("30-39", "b"), ("40-49", "c"), ("50-59", "a")]
    table = Table.from_frame(pd.DataFrame(rows, columns=["age", "s"]), quasi_identifiers="age", sensitive="s")
    assert [str(t) for t in n_t_closeness(table, 3, hierarchies={"age": ages}, exact=True).per_class] == [
        "1/6",  # {a, b} in {a, a, b, b, b, c}; in {a, b, b, b} it would be 1/4
        "1/4",  # {b} in {a, b, b, b}
        "5/6",  # 40-59 holds two records only, so all six are needed
        "2/3",
    ]
    at_two = n_t_closeness(table, 2, hierarchies={"age": ages}, exact=True).per_class
    assert list(at_two) == [0, 0, Fraction(1, 2), Fraction(1, 2)]
