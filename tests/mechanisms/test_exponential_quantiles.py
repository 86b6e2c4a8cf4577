"""Quantiles by the exponential mechanism: exact privacy of one, and the law of several against an enumeration of gaps."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

from dpaudit import exact, neighbours
from dpaudit.claims import Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.exact.verification import verify
from mechanisms.exponential_quantiles import ExponentialQuantile, JointExponentialQuantiles


def test_one_quantile_keeps_its_claim():
    rows = neighbours.substitute(st.sampled_from([0.0, 1e-6, 0.5, 1.0]) | st.floats(0, 1), min_size=1, max_size=5)
    mechanism = ExponentialQuantile(1.0, 0.0, 1.0, 0.3)
    assert verify(mechanism, mechanism.claim, rows, examples=80).verdict is Verdict.NO_VIOLATION_FOUND
    x = 1e-6 * np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    median = ExponentialQuantile(1.0, 0.0, 1.0)
    assert 0.9 < exact.epsilon(median.law(x), median.law(np.append(x[1:], 1.0))) <= 1.0


def gap_law(data, epsilon, levels):
    """Probability that the answers lie in these gaps, by the definition: volume of sorted answers times exp(-epsilon u/4)."""
    edges = np.concatenate([[0.0], np.sort(data), [1.0]])
    n, widths = len(data), np.diff(edges)
    ends = [0.0, *levels, 1.0]
    weights = {}
    for gaps in itertools.combinations_with_replacement(range(n + 1), len(levels)):
        places = [0, *gaps, n]
        u = sum(abs(places[j] - places[j - 1] - (ends[j] - ends[j - 1]) * n) for j in range(1, len(places)))
        volume = math.prod(widths[list(gaps)]) / math.prod(math.factorial(gaps.count(g)) for g in set(gaps))
        weights[gaps] = volume * math.exp(-epsilon * u / 4)
    total = sum(weights.values())
    return {gaps: weight / total for gaps, weight in weights.items()}


@pytest.mark.parametrize("levels", [(0.5,), (0.25, 0.75), (0.2, 0.5, 0.8)])
def test_joint_quantiles_have_the_defined_law(levels):
    data, draws = np.array([0.15, 0.4, 0.45, 0.9]), 4_000
    law = gap_law(data, 2.0, levels)
    sample = JointExponentialQuantiles(2.0, 0.0, 1.0, levels).sample(data, draws, np.random.default_rng(0))
    assert (np.diff(sample, axis=1) >= 0).all()
    gaps = np.searchsorted(data, sample)
    for place, probability in law.items():
        counted = float(np.mean((gaps == place).all(axis=1)))
        # Six standard errors: a false alarm has probability below 1e-6 over all 56 cells.
        assert abs(counted - probability) <= 6.0 * math.sqrt(probability * (1 - probability) / draws) + 1e-12


def test_the_joint_density_keeps_its_claim_on_random_neighbours():
    levels, epsilon = (0.25, 0.75), 1.0
    rng = np.random.default_rng(1)

    def log_density(data, answers):
        edges = np.concatenate([[0.0], np.sort(data), [1.0]])
        gaps = tuple(np.searchsorted(np.sort(data), answers).tolist())
        same = math.prod(math.factorial(gaps.count(g)) for g in set(gaps))
        volume = math.prod(np.diff(edges)[list(gaps)]) / same
        return math.log(gap_law(data, epsilon, levels)[gaps] / volume)

    worst = 0.0
    for _ in range(200):
        data = rng.random(4) ** 3
        other = np.append(data[1:], rng.random())
        answers = np.sort(rng.random(2))
        worst = max(worst, abs(log_density(data, answers) - log_density(other, answers)))
    assert 0.2 < worst <= epsilon
    with pytest.raises(InvalidArgument, match="increasing"):
        JointExponentialQuantiles(1.0, 0.0, 1.0, (0.5, 0.5))


def test_epsilon_of_the_quantiles_is_reached():
    """The truth in the registry: with records closer and closer together the log-ratio of densities tends to epsilon."""
    x = 1e-7 * np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    moved = np.append(x[1:], 1.0)
    median = ExponentialQuantile(1.0, 0.0, 1.0)
    assert exact.epsilon(median.law(x), median.law(moved)) == pytest.approx(1.0, abs=1e-5)

    def density(data, places):
        """Density of three sorted answers in gaps of one answer each."""
        widths = np.diff(np.concatenate([[0.0], data, [1.0]]))
        return gap_law(data, 1.0, (0.25, 0.5, 0.75))[places] / math.prod(widths[list(places)])

    # Answers that leave 1, 1, 1 and 2 records below and between them, and after the move 0, 1, 1 and 3.
    ratio = math.log(density(x, (1, 2, 3)) / density(moved, (0, 1, 2)))
    assert ratio == pytest.approx(1.0, abs=1e-5)
