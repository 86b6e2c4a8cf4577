"""Synthesis by noisy marginals: its law against sums written out and against the sampler, and what the broken ones do.

Statistical tests compare counts of fixed seeds with six standard deviations: a false alarm has probability below 1e-7.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st

from dpaudit import Verdict, exact, neighbours, verify
from dpaudit.errors import InvalidArgument
from mechanisms.broken import synthesis as broken
from mechanisms.registry.synthesis import entries
from mechanisms.synthesis import MarginalSynthesis

COLUMNS = ("a", "b"), ("x", "y", "z")
SMALL = MarginalSynthesis(1.5, COLUMNS, rows=2, largest=3)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_noisy_counts_have_the_law_of_two_geometric_variables():
    a = SMALL.ratio
    assert a == pytest.approx(math.exp(-0.75))
    for count in (0, 1, 3, 7):
        masses = np.zeros(SMALL.largest + 1)
        for first, second in itertools.product(range(120), repeat=2):
            value = min(max(count + first - second, 0), SMALL.largest)
            masses[value] += (1 - a) ** 2 * a ** (first + second)
        assert SMALL.clamped_masses(count) == pytest.approx(masses, rel=1e-9)


def test_the_sampler_follows_the_law():
    data = [("a", "x"), ("a", "z"), ("b", "x")]
    law, size = SMALL.law(data), 100_000
    seen = Counter(map(tuple, SMALL.sample(data, size, rng(1)).tolist()))
    assert len(law.outcomes) == 4 * 9
    for outcome, mass in zip(law.outcomes, np.exp(law.log_probabilities), strict=True):
        assert abs(seen[outcome] - size * mass) < 6 * math.sqrt(size * mass)


def test_no_pair_exceeds_the_claim():
    found = verify(
        SMALL, SMALL.claim, neighbours.add_remove(st.tuples(*map(st.sampled_from, COLUMNS)), max_size=3), examples=30
    )
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert 0.2 < found.epsilon < SMALL.epsilon
    # The noisy counts themselves reach it.
    reached = max(
        float(np.abs(np.log(SMALL.clamped_masses(count) / SMALL.clamped_masses(count + 1))).max()) for count in range(3)
    )
    assert len(COLUMNS) * reached == pytest.approx(SMALL.epsilon)


def test_a_release_is_a_table():
    assert SMALL.table(SMALL.sample([], 1, rng())[0])[0][0] in COLUMNS[0]
    assert SMALL.table([0, 1, 2, 0]) == [("a", "z"), ("b", "x")]


def test_the_bugs_of_the_broken_ones():
    one, two = [("a", "x")], [("a", "x"), ("b", "x")]
    names = broken.CategoriesFromData(SMALL)
    assert not names.sample(one, 500, rng()).any()  # never "b", "y" or "z"
    assert names.sample(two, 500, rng())[:, :2].any()
    assert broken.BoundsFromData(SMALL).sample(two, 1, rng())[0, :4].tolist() == [0, 1, 0, 0]
    assert broken.BoundsFromData(SMALL).sample([], 1, rng())[0, :4].tolist() == [-1] * 4
    fixed = broken.FixedSeed(SMALL)
    assert len(np.unique(fixed.sample(two, 50, rng())[:, :5], axis=0)) == 1
    assert len(np.unique(fixed.sample(two, 50, rng())[:, 5:], axis=0)) > 1
    scaled = broken.ScaleDividedByRows(SMALL)
    assert scaled.wrong.epsilon == 3.0
    low, high = scaled.bracket([], one)
    assert low == exact.epsilon(scaled.law([]), scaled.law(one)) < high == 3.0
    chosen = broken.StructureWithoutBudget(SMALL)
    assert [int(chosen.sample(data, 1, rng())[0, 0]) for data in ([], one)] == [0, 1]


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_entries_are_consistent(entry):
    mechanism = entry.make()
    assert entry.breaks_claim == (entry.bug is not None)
    assert entry.claim == mechanism.claim
    assert entry.relation is mechanism.relation is entry.neighbours().relation
    for data in entry.neighbours().corners()[0]:
        assert np.array_equal(mechanism.sample(data, 3, rng()), mechanism.sample(data, 3, rng()))


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidArgument, match="columns="):
        MarginalSynthesis(1.0, (("a", "a"),))
    with pytest.raises(InvalidArgument, match="a row has 2 categories"):
        SMALL.sample([("a",)], 1, rng())
    with pytest.raises(InvalidArgument, match="data holds 'q'"):
        SMALL.sample([("a", "q")], 1, rng())
    with pytest.raises(InvalidArgument, match="no law object"):
        MarginalSynthesis(1.0, COLUMNS, rows=9).law([])
