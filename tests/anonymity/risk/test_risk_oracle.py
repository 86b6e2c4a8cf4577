"""Risk measures and attacks against brute force on small tables, and against published values."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.anonymity import (
    Table,
    covers,
    delta_presence,
    differencing,
    k_map,
    link_records,
    m_invariance,
    match_people,
    reidentification_risk,
    unicity,
    uniqueness,
    uniqueness_by_columns,
)
from dpaudit.anonymity.tables.containment import containment
from dpaudit.errors import InvalidArgument

LABELS = ["20-29", "30-39", "20-39", "*", "25", ">=30"]
releases = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from(["f", "m", "*"]), st.sampled_from("abc")), min_size=1, max_size=8
)
persons = st.lists(st.tuples(st.sampled_from([22, 25, 31, 45]), st.sampled_from("fm")), min_size=1, max_size=7)


def table_of(rows):
    frame = pd.DataFrame(rows, columns=["age", "sex", "ill"])
    return Table.from_frame(frame, quasi_identifiers=["age", "sex"], sensitive="ill")


def frame_of(people):
    return pd.DataFrame(people, columns=["age", "sex"])


def candidates_of(rows, person):
    return [i for i, row in enumerate(rows) if all(covers(row[c], person[c]) for c in range(2))]


@settings(max_examples=60, deadline=None)
@given(rows=releases, people=persons)
def test_matching_and_linkage_equal_brute_force(rows, people):
    table, fits = table_of(rows), [candidates_of(rows, person) for person in people]
    matches = match_people(table, frame_of(people))
    assert matches.records_per_person.tolist() == list(map(len, fits))
    for index in range(len(table.classes)):
        record = int(table.classes.records(index)[0])
        assert matches.people_per_class[index] == sum(record in found for found in fits)
    truth = [found[0] if found and i % 2 else None for i, found in enumerate(fits)]
    attack = link_records(table, frame_of(people), truth=truth)
    assert attack.linked == sum(map(bool, fits))
    assert attack.singled_out == sum(len(found) == 1 for found in fits)
    assert attack.right == sum(found == [true] for found, true in zip(fits, truth, strict=True))
    assert attack.present == sum(true is not None for true in truth)
    assert attack.missed == 0
    expected = sum(1 / len(found) for found, true in zip(fits, truth, strict=True) if true is not None)
    assert attack.expected == pytest.approx(expected)
    values = [{rows[i][2] for i in found} for found in fits]
    (disclosure,) = attack.disclosures
    assert disclosure.disclosed == sum(len(held) == 1 for held in values)
    assert disclosure.right == sum(
        len(held) == 1 and true is not None and rows[true][2] in held for held, true in zip(values, truth, strict=True)
    )
    assert disclosure.baseline == max(Counter(row[2] for row in rows).values()) / len(rows)


@settings(max_examples=80, deadline=None)
@given(rows=releases, people=st.lists(persons.map(lambda p: p[0]), min_size=1, max_size=5))
def test_linkage_of_everyone_equals_all_assignments(rows, people):
    """Candidates are the records that a person has in some assignment of different records to all people."""
    fits = [candidates_of(rows, person) for person in people]
    possible = [set() for _ in people]
    for assignment in itertools.product(*fits):
        if len(set(assignment)) == len(people):
            for found, record in zip(possible, assignment, strict=True):
                found.add(record)
    if not all(possible):
        with pytest.raises(InvalidArgument, match="so they are not all in it"):
            link_records(table_of(rows), frame_of(people), everyone=True)
    else:
        attack = link_records(table_of(rows), frame_of(people), everyone=True)
        assert attack.candidates.tolist() == list(map(len, possible))


def test_matching_in_small_steps(monkeypatch):
    """The bits of groups and classes are compared in blocks; small blocks give the same pairs."""
    rng = np.random.default_rng(0)
    rows = [(LABELS[rng.integers(6)], ["f", "m", "*"][rng.integers(3)], "a") for _ in range(40)]
    people = frame_of([(int(rng.integers(15, 50)), "fm"[rng.integers(2)]) for _ in range(90)])
    whole = match_people(table_of(rows), people)
    monkeypatch.setattr("dpaudit.anonymity.risk.matching._BYTES", 4)
    parts = match_people(table_of(rows), people)
    assert sorted(zip(whole.class_, whole.group, strict=True)) == sorted(zip(parts.class_, parts.group, strict=True))
    assert (np.diff(parts.class_) >= 0).all()


CELLS = [
    *LABELS,
    "10 < Age <= 30",
    "(20, 31]",
    "<22",
    "x",
    "[2024-01-01, 2024-02-01]",
    "{22, x}",
    "2*",
    25,
    "25.0",
    "20-29 ",
]
VALUES = [22, 25, "25", 31, 31.5, "x", "20-29", None, "2024-01-05", True, "{22, x}", pd.Timestamp("2024-01-05")]


def test_the_truth_table_of_a_column_equals_covers():
    found = containment(CELLS, VALUES)
    for (row, label), (column, value) in itertools.product(enumerate(CELLS), enumerate(VALUES)):
        assert found[row, column] == covers(label, value), (label, value)


def test_a_record_that_others_need_is_no_candidate():
    release = table_of([("20-29", "f", "a"), ("20-29", "f", "b"), ("20-39", "f", "c")])
    people = frame_of([(22, "f"), (25, "f"), (31, "f")])
    assert link_records(release, people).candidates.tolist() == [3, 3, 1]
    known = link_records(release, people, everyone=True)
    assert known.candidates.tolist() == [2, 2, 1]
    assert known.disclosures[0].disclosed == 1


@settings(max_examples=60, deadline=None)
@given(people=st.lists(st.tuples(st.sampled_from([20, 25, 31, 38]), st.sampled_from("fm"), st.booleans()), min_size=1))
def test_risks_presence_and_k_map_equal_brute_force(people):
    """The release holds some of the population, with ages in tens."""
    rows = [("20-29" if age < 30 else "30-39", sex, "a") for age, sex, released in people if released]
    if not rows:
        return
    table, everybody = table_of(rows), pd.DataFrame(people, columns=["age", "sex", "in"])
    f = Counter(row[:2] for row in rows)
    population = Counter(("20-29" if age < 30 else "30-39", sex) for age, sex, _ in people)
    risk = reidentification_risk(table, everybody, threshold=0.3)
    n = len(rows)
    assert risk.prosecutor.average == pytest.approx(sum(1 / f[row[:2]] for row in rows) / n)
    assert risk.prosecutor.maximum.value == pytest.approx(max(1 / size for size in f.values()))
    assert risk.prosecutor.above == pytest.approx(sum(1 / f[row[:2]] > 0.3 for row in rows) / n)
    by_records = sum(1 / population[row[:2]] for row in rows) / n
    in_reach = [key for key in population if key in f]
    by_people = sum(population[key] * (1 / population[key]) for key in in_reach) / sum(population[k] for k in in_reach)
    assert risk.marketer.average == pytest.approx(by_records)
    assert risk.journalist.average == pytest.approx(max(by_records, by_people))
    assert risk.journalist.maximum.value == pytest.approx(max(1 / population[key] for key in f))
    assert risk.journalist.above == pytest.approx(sum(1 / population[row[:2]] > 0.3 for row in rows) / n)
    assert k_map(table, everybody).value == min(population[key] for key in f)
    presence = delta_presence(table, everybody)
    shares = [f[key] / population[key] for key in population for _ in range(population[key])]
    assert presence.lower == pytest.approx(min(shares))
    assert presence.upper.value == pytest.approx(max(shares))
    assert presence.absent == sum(population[key] for key in population if key not in f)
    assert presence.meets(min(shares), max(shares))
    alone = reidentification_risk(table)
    assert alone.prosecutor.average == pytest.approx(alone.marketer.average) == pytest.approx(alone.journalist.average)


def test_uniqueness_of_every_combination():
    """Table and values of ARX's TestRiskQuasiIdentifiers.java ("calculated by hand"): distinction and separation."""
    rows = [("20", "F", "CA"), ("30", "F", "CA"), ("40", "F", "TX"), ("20", "M", "NY"), ("40", "M", "CA")]
    names = ["age", "sex", "state"]
    table = Table.from_frame(pd.DataFrame(rows, columns=names), quasi_identifiers=names)
    published = {
        ("sex",): (0.4, 0.6),
        ("state",): (0.6, 0.7),
        ("age",): (0.6, 0.8),
        ("sex", "state"): (0.8, 0.9),
        ("age", "sex"): (1.0, 1.0),
        ("age", "state"): (1.0, 1.0),
        ("age", "sex", "state"): (1.0, 1.0),
    }
    found = uniqueness_by_columns(table)
    assert {entry.columns: (entry.distinction, entry.separation) for entry in found} == published
    assert found[0].columns == ("age", "sex")
    assert [len(entry.columns) for entry in uniqueness_by_columns(table, largest=1)] == [1, 1, 1]
    for entry in found:
        keys = Counter(tuple(row[names.index(name)] for name in entry.columns) for row in rows)
        assert entry.unique == sum(count == 1 for count in keys.values())
    assert uniqueness(table).share == 1.0


@settings(max_examples=50, deadline=None)
@given(
    visits=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=25), points=st.integers(1, 4)
)
def test_unicity_equals_brute_force(visits, points):
    traces = defaultdict(set)
    for who, where in visits:
        traces[who].add(where)
    shares = []
    for trace in traces.values():
        sets = [set(known) for known in itertools.combinations(trace, min(points, len(trace)))]
        shares.append(sum(sum(known <= other for other in traces.values()) == 1 for known in sets) / len(sets))
    frame = pd.DataFrame(visits, columns=["who", "where"])
    found = unicity(frame, person="who", point="where", points=points)
    assert found.share == pytest.approx(sum(shares) / len(shares))


def test_sampled_unicity_contains_the_exact_one():
    """False-alarm probability 1e-3 for the interval, on one fixed seed."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"who": rng.integers(0, 60, 900), "cell": rng.integers(0, 12, 900), "hour": rng.integers(0, 4, 900)}
    )
    exact = unicity(frame, person="who", point=["cell", "hour"], points=2)
    sampled = unicity(frame, person="who", point=["cell", "hour"], points=2, draws=4000, rng=np.random.default_rng(1))
    assert exact.draws is None
    assert 0 < exact.share < 1
    assert sampled.lower <= exact.share <= sampled.upper
    assert sampled.upper - sampled.lower < 0.06
    assert "4000 draws" in str(sampled)


two_releases = st.lists(
    st.tuples(st.sampled_from(["p", "q", None]), st.sampled_from(["r", "s", None]), st.sampled_from("abc")),
    min_size=1,
    max_size=6,
)


def tables_of(people):
    """Each person's class in two releases (None: absent), and value."""
    tables = []
    for number in (0, 1):
        present = [i for i, person in enumerate(people) if person[number] is not None]
        if present:
            frame = pd.DataFrame(
                {"q": [people[i][number] for i in present], "s": [people[i][2] for i in present]}, present
            )
            tables.append(Table.from_frame(frame, quasi_identifiers="q", sensitive="s"))
    return tables


@settings(max_examples=150, deadline=None)
@given(people=two_releases)
def test_differencing_equals_all_assignments(people):
    tables = tables_of(people)
    if not tables:
        return
    present = [i for i, person in enumerate(people) if person[0] is not None or person[1] is not None]

    def published(values):
        return Counter(
            (number, people[i][number], values[i]) for number in (0, 1) for i in present if people[i][number]
        )

    target = published({i: people[i][2] for i in present})
    possible = defaultdict(set)
    for assignment in itertools.product("abc", repeat=len(present)):
        values = dict(zip(present, assignment, strict=True))
        if published(values) == target:
            for i, value in values.items():
                possible[i].add(value)
    found = differencing(tables)
    assert dict(found.disclosed) == {i: next(iter(held)) for i, held in possible.items() if len(held) == 1}
    assert (found.people, found.undecided) == (len(present), 0)
    invariance = m_invariance(tables)
    if invariance.m:
        assert min(map(len, possible.values())) >= invariance.m


def test_m_invariance_of_the_definition():
    """Two classes of two with different values each; a newcomer changes the values around the person who stays."""
    first = [("x", "r", "a"), ("x", "r", "b"), ("y", "s", "c"), ("y", "s", "d")]
    assert m_invariance(tables_of(first)).m == 2
    moved = [("x", "r", "a"), ("x", None, "b"), (None, "r", "c")]
    found = m_invariance(tables_of(moved))
    assert (found.m, found.changed, found.repeated, found.example) == (0, 1, 0, 0)
    twice = m_invariance(tables_of([("x", None, "a"), ("x", None, "a")]))
    assert (twice.m, twice.repeated) == (0, 1)
    assert "hold a sensitive value twice" in str(twice)


def test_differencing_of_more_than_two_releases_and_its_limit(monkeypatch):
    """Three overlapping pairs of three people: with values a, a, b the sums decide everybody."""

    def release(people, values):
        frame = pd.DataFrame({"q": ["x"] * len(people), "s": values}, index=people)
        return Table.from_frame(frame, quasi_identifiers="q", sensitive="s")

    tables = [release([1, 2], ["a", "a"]), release([2, 3], ["a", "b"]), release([1, 3], ["a", "b"])]
    found = differencing(tables)
    assert dict(found.disclosed) == {1: "a", 2: "a", 3: "b"}
    assert found.alone == (2, 0, 0)
    # No class is homogeneous and no two classes are nested: only the programme sees that 1, 2 and 3 are determined.
    four = [release([1, 2], "ab"), release([2, 3], "ab"), release([1, 3], "ab"), release([1, 2, 3], "aab")]
    with pytest.raises(InvalidArgument, match="must not change"):
        differencing(four)
    odd = [release([1, 2], ["a", "b"]), release([1, 3], ["a", "b"]), release([2, 3, 4], ["b", "b", "a"])]
    assert dict(differencing(odd).disclosed) == {1: "a", 2: "b", 3: "b", 4: "a"}
    monkeypatch.setattr("dpaudit.anonymity.risk.releases._LARGEST", 1)
    limited = differencing(odd)
    assert (limited.disclosed, limited.undecided) == ((), 4)
    assert "4 people were not decided" in str(limited)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unicity(pd.DataFrame({"a": range(2000), "b": [0] * 2000}), person="b", point="a"), "sample them with draws"),
        (lambda: unicity(pd.DataFrame({"a": [1], "b": [0]}), person="b", point="a", draws=3), "rng=None"),
        (lambda: k_map(table_of([("20-29", "f", "a")]), frame_of([(31, "f")])), "but 0 people of the population fit it"),
        (
            lambda: delta_presence(table_of([("20-29", "f", "a"), ("*", "f", "a")]), frame_of([(22, "f"), (31, "f")])),
            "fit class 1 and class 2",
        ),
        (lambda: link_records(table_of([("*", "*", "a")]), frame_of([(22, "f")]), truth=[]), "truth has 0 entries for 1"),
        (lambda: link_records(table_of([("*", "*", "a")]), frame_of([(22, "f")]), truth=[5]), "truth holds 5 for person 1"),
        (lambda: reidentification_risk(table_of([("*", "*", "a")]), threshold=1.0), "threshold=1.0"),
        (lambda: differencing([]), "must be a list of tables"),
        (lambda: m_invariance(table_of([("*", "*", "a")])), "must be a list"),
        (lambda: uniqueness_by_columns(table_of([("*", "*", "a")]), largest=0), "largest=0"),
        (
            lambda: differencing([
                Table.from_frame(pd.DataFrame({"q": [1, 1], "s": [1, 2]}, [7, 7]), quasi_identifiers="q", sensitive="s")
            ]),
            "index label 7 occurs twice",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()


def test_a_release_of_a_taxonomy_is_matched_with_its_hierarchy():
    from dpaudit.anonymity import Taxonomy

    jobs = Taxonomy({"health": ["nurse", "doctor"], "school": ["teacher"]})
    release = Table.from_frame({"job": ["health", "health", "school"]}, quasi_identifiers="job")
    people = pd.DataFrame({"job": ["nurse", "doctor", "teacher", "teacher"]})
    assert match_people(release, people, hierarchies={"job": jobs}).people_per_class.tolist() == [2, 2]
    assert match_people(release, people).people_per_class.tolist() == [0, 0]
    assert math.isclose(
        reidentification_risk(release, people, hierarchies={"job": jobs}).marketer.average, (2 / 2 + 1 / 2) / 3
    )
