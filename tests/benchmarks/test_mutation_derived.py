"""Laws that were derived for the mutation benchmark: against samples, closed forms and the registry."""

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks.mutation import branches, judging
from benchmarks.mutation.best_event import cells
from benchmarks.mutation.branches import Branches
from benchmarks.mutation.derived import CALLED, LEFT_OUT, PUBLIC, REGULARISATION, FreshValues, derived
from benchmarks.mutation.judging import judge
from benchmarks.mutation.mutants import Litter, litter, pool_of
from benchmarks.mutation.subjects import subjects
from dpaudit import exact
from mechanisms import registry
from mechanisms.importance_weighting import ImportanceWeighting
from mechanisms.sparse_vector import numerical_svt

NAMES = [subject.name for subject in derived()]


@functools.cache
def made(name: str) -> Litter:
    return litter(next(subject for subject in subjects() if subject.name == name))


def judged_epsilon(name: str, mutation: str) -> float:
    """Climbing by epsilon alone: the samples that events need are not asked for here, and take most of the time."""
    known = made(name)
    one = next(one for one in known.mutants if one.name == mutation)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "_rough", lambda *_: 1.0)
        return judge(one, known.claim, known.subject, pool_of(known.subject)).epsilon


def test_every_sound_mechanism_is_mutated_or_left_out_for_a_reason() -> None:
    names = {subject.name for subject in subjects()}
    sound = {entry.name for entry in registry.entries() if entry.bug is None}
    sound = {name for name in sound if not name.startswith("catalogue-")}
    mutated = {name for name in sound if CALLED.get(name, name) in names}
    assert mutated | set(LEFT_OUT) == sound
    assert not mutated & set(LEFT_OUT)


@pytest.mark.parametrize("name", NAMES)
def test_ten_mutants_each_and_the_reference_keeps_its_claim(name: str) -> None:
    known = made(name)
    assert len(known.mutants) >= 10
    assert known.claim.parameter == 1.0
    delta = getattr(known.claim, "delta_claimed", 0.0)
    right = known.subject.scaled(1.0)
    for pair in pool_of(known.subject)[:3]:
        laws = [right.law(data) for data in pair]
        if delta:
            first, second = cells(*laws)
            assert max(np.maximum(p - math.e * q, 0.0).sum() for p, q in ((first, second), (second, first))) <= (
                delta * (1.0 + 1e-9)
            )
        else:
            assert branches.epsilon(*laws) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("name", "mutation", "truth"),
    [
        ("laplace-dyadic", "noise x 0.5", 2.0),
        ("laplace-dyadic", "answers x 1.1", 1.125),  # nine steps of an eighth in place of eight
        ("numerical-svt", "value noise x 0.1", 2 / 3 + 10 / 3),
        ("pufferfish-wasserstein", "noise x 0.5", 2.0),
        ("pufferfish-wasserstein", "no noise", math.inf),
        # Without noise the counts themselves come out, whose probabilities differ by two at most.
        ("pufferfish-wasserstein-counts", "no noise", math.log(2.0)),
        ("importance-weighting", "raw once in 10", math.inf),
        ("federated-average", "last coordinate raw", math.inf),
    ],
)
def test_exact_epsilon(name: str, mutation: str, truth: float) -> None:
    assert judged_epsilon(name, mutation) == pytest.approx(truth, rel=1e-3)  # suprema are approached


@pytest.mark.parametrize("name", [name for name in NAMES if name != "numerical-svt"])
def test_samplers_follow_their_laws(name: str) -> None:
    """The reference and its first mutants; false alarm below 1e-9 each."""
    size, subject = 2000, made(name).subject
    data = pool_of(subject)[0].data
    for mechanism in (subject.scaled(1.0), subject.scaled(0.5), *(make() for _, make in subject.others)):
        rng = np.random.default_rng(5)
        drawn, expected = (
            np.asarray(outputs, dtype=float).reshape(size, -1).T
            for outputs in (mechanism.sample(data, size, rng), mechanism.law(data).sample(size, rng))
        )
        for one, other in zip(drawn, expected, strict=True):
            assert stats.ks_2samp(one, other).pvalue > 1e-9


def test_law_of_numerical_sparse_vector() -> None:
    """Branches by frequency, values on them by their law, epsilon and masses by integration of the densities."""
    mechanism, size = FreshValues(numerical_svt(epsilon=2.0, threshold=0.0)), 20_000
    data, neighbour = np.array([0.5, -1.0, 2.0]), np.array([-0.5, 0.0, 1.0])
    law, other = mechanism.law(data), mechanism.law(neighbour)
    assert sum(math.exp(log_p) for _, log_p, _ in law.branches) == pytest.approx(1.0)
    outputs = mechanism.sample(data, size, np.random.default_rng(0))
    words = Counter(int(np.flatnonzero(~np.isnan(row))[0]) if not np.isnan(row).all() else -1 for row in outputs)
    numbers = {}
    for word, log_p, values in law.branches:
        place = eval(word).index(1) if values else -1
        numbers[place] = values
        spread = math.sqrt(size * math.exp(log_p))
        assert abs(words[place] - size * math.exp(log_p)) < 6.5 * spread
    for place, values in numbers.items():
        if values:
            shown = outputs[:, place][~np.isnan(outputs[:, place])]
            (value,) = values
            assert stats.kstest(shown, stats.laplace(value.location, value.scale).cdf).pvalue > 1e-9

    grid = np.linspace(-60.0, 60.0, 1_200_001)

    def excess(epsilon: float) -> float:
        total = 0.0
        for (_, log_p, first), (_, log_q, second) in law.together(other):
            p, q = math.exp(log_p), math.exp(epsilon + log_q)
            if first:
                p, q = (
                    weight * np.exp(-np.abs(grid - value.location) / value.scale) / (2.0 * value.scale)
                    for weight, value in ((p, first[0]), (q, second[0]))
                )
                total += integrate.trapezoid(np.maximum(p - q, 0.0), grid)
            else:
                total += max(p - q, 0.0)
        return total

    p, q = cells(law, other)
    assert (p.sum(), q.sum()) == (pytest.approx(1.0), pytest.approx(1.0))
    for epsilon in (0.2, 1.0):
        assert np.maximum(p - math.exp(epsilon) * q, 0.0).sum() == pytest.approx(excess(epsilon), abs=2e-4)
    worst = branches.epsilon(law, other)
    assert excess(worst) == pytest.approx(0.0, abs=1e-9)
    assert max(excess(0.97 * worst), 0.0) + max(np.maximum(q - math.exp(0.97 * worst) * p, 0.0).sum(), 0.0) > 1e-6


def test_a_branch_of_one_law_alone_distinguishes_the_two() -> None:
    first, second = Branches((("a", 0.0, ()),)), Branches((("b", 0.0, ()),))
    assert branches.epsilon(first, second) == math.inf
    assert [side.tolist() for side in cells(first, second)] == [[1.0, 0.0], [0.0, 1.0]]
    assert branches.epsilon(exact.Laplace(0.0, 1.0), exact.Laplace(1.0, 1.0)) == pytest.approx(1.0)


def test_weights_determine_the_coefficient_and_are_audited() -> None:
    known = made("importance-weighting")
    weighting = ImportanceWeighting(PUBLIC, 1.0, REGULARISATION)
    data = [0.0, 1.0, 0.25]
    one = next(one for one in known.mutants if one.name == "noise x 0.1").mechanism
    weights: Any = one.sample(data, 2000, np.random.default_rng(2))
    assert weights.shape == (2000, 2)
    assert np.allclose(weights.sum(axis=1), 2.0)
    law = one.law(data)
    assert law.scale == pytest.approx(0.1 * weighting.sensitivity(3))
    coefficients = weighting.recover(weights)[:, 0]
    assert stats.kstest(coefficients, stats.laplace(law.location, law.scale).cdf).pvalue > 1e-9
