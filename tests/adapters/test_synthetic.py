"""Synthesisers as mechanisms: what is summarised, and what an audit of it finds.

Audits of sound synthesisers run at alpha 1e-6, their declared false alarm probability.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit import PureDP, Verdict
from dpaudit.adapters import synthetic
from dpaudit.errors import InvalidArgument, MechanismError
from mechanisms.broken.synthesis import CategoriesFromData
from mechanisms.synthesis import MarginalSynthesis

COLUMNS = ("a", "b"), ("x", "y", "z")
RIGHT = MarginalSynthesis(1.0, COLUMNS, rows=3)
DOMAIN = {0: COLUMNS[0], 1: COLUMNS[1]}


class Synthesiser:
    """A mechanism of ours with the interface of a synthesiser."""

    def __init__(self, mechanism=RIGHT, rng=None):
        self.mechanism, self.rng = mechanism, rng

    def fit(self, table):
        self.seen_ = sorted({row[1] for row in table})
        self.release = self.mechanism.sample(table, 1, self.rng)[0]

    def sample(self, n):
        return RIGHT.table(self.release)[:n]


class Copy:
    def fit(self, table):
        self.table = table
        table_was = list(table)
        if isinstance(table, list):
            table.append("spoilt")
        self.table = table_was

    def sample(self, n):
        return self.table[:n]


def release(made, data, **options):
    return synthetic.mechanism(made, **options).sample(data, 1, np.random.default_rng(0))[0]


def test_summary_of_a_frame():
    frame = pd.DataFrame({"age": [3, 7, 7], "sex": ["f", "m", "f"]})
    assert synthetic.summarise(frame, domain={"age": [7], "town": ["Rome"]}, records=[(7, "m"), (8, "m")]) == {
        "rows": 3,
        "schema": f"age: int64, sex: {frame['sex'].dtype}",
        "age = 7": 2,
        "age other": 1,
        "age min": 3.0,
        "age max": 7.0,
        "sex categories": "f, m",
        "town = Rome": 0,
        "town other": 0,
        "record (7, 'm')": 1,
        "record (8, 'm')": 0,
    }


def test_summary_of_arrays_and_lists():
    made = synthetic.summarise(np.array([[1.0, 2.0], [5.0, 2.0]]), records=[(5.0, 2.0)])
    assert made["0 max"] == 5.0
    assert made["record (5.0, 2.0)"] == 1
    assert synthetic.summarise([("a", 1), ("b",)])["schema"] == "0: str, 1: NoneType/int"
    assert synthetic.summarise([]) == {"rows": 0, "schema": ""}
    assert synthetic.summarise([True, False])["0 categories"] == "False, True"  # no numbers
    many = [(str(number),) for number in range(60)]
    assert synthetic.summarise(many)["0 categories"] == 60


def test_a_release_is_a_sorted_summary():
    data = [("a", "x"), ("b", "z")]
    made = release(Copy, data, records=[("b", "z")], suspect=len)
    assert made["record ('b', 'z')"] == 1
    assert made["suspect table"] == 2
    assert list(made) == sorted(made)
    assert data == [("a", "x"), ("b", "z")]  # what is fitted is a copy
    assert release(Copy, data, rows=1)["rows"] == 1
    assert release(Copy, data, suspect={"first": lambda table: table[0][0]})["suspect first"] == "a"
    made = release(lambda rng: Synthesiser(rng=rng), data, metadata="seen_", rows=3)
    assert made["metadata seen_"] == ["x", "z"]


def test_generators_are_seeded():
    class Legacy(Copy):
        def sample(self, n):
            return [(float(np.random.random()),)]  # noqa: NPY002

    one, other = (synthetic.mechanism(Legacy).sample([], 2, np.random.default_rng(seed)) for seed in (1, 1))
    assert one == other
    assert one[0] != one[1]


def test_audits():
    pairs = [([("a", "x")], [("a", "x"), ("b", "z")])]
    sound = synthetic.mechanism(lambda rng: Synthesiser(rng=rng), rows=3, domain=DOMAIN)
    assert dpaudit.audit(sound, PureDP(1.0), pairs, samples=600).verdict is not Verdict.VIOLATION
    options = {"samples": 1_500, "shrink": False}
    from_data = synthetic.mechanism(lambda rng: Synthesiser(CategoriesFromData(RIGHT), rng), rows=3, domain=DOMAIN)
    assert dpaudit.audit(from_data, PureDP(1.0), pairs, **options).verdict is Verdict.VIOLATION
    copied = synthetic.mechanism(Copy, rows=3, records=[("b", "z")])
    assert dpaudit.audit(copied, PureDP(1.0), pairs, **options).verdict is Verdict.VIOLATION


def test_misuse_is_refused():
    for changes, message in (
        ({"make": Copy()}, "A fitted one would carry state"),
        ({"rows": 0}, "rows=0"),
        ({"domain": ["a"]}, "domain="),
        ({"suspect": {"x": 3}}, r"suspect\['x'\]=3"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            synthetic.mechanism(**({"make": Copy} | changes))
    with pytest.raises(MechanismError, match="no methods fit and sample"):
        release(lambda: 3, [])
    with pytest.raises(MechanismError, match="no fitted attribute absent_"):
        release(Copy, [], metadata="absent_")
