"""DP-SGD: gradients against differences of losses, steps against a loop written out, claims against closed forms.

Statistical tests compare counts of fixed seeds with six standard deviations: a false alarm has probability below 1e-8.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpaudit.claims import ApproxDP, GaussianDP, Relation
from dpaudit.errors import InvalidArgument
from mechanisms.broken import dp_sgd as broken
from mechanisms.dp_sgd import DPSGD, clipped_sum, epsilon_bracket, epsilon_of, random_batches
from mechanisms.dp_sgd.models import LinearModel, LogisticModel, NetworkModel
from mechanisms.registry.dp_sgd import entries

MODELS = [LinearModel(2), LogisticModel(3), NetworkModel(2, 3)]
ROWS = np.array([[1.0, -2.0, 0.5], [0.3, 0.1, 1.0], [-4.0, 2.0, 0.0]])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_gradients_are_differences_of_losses(model):
    draws = rng(1)
    parameters = draws.normal(size=(2, model.dimension))
    features, targets = draws.normal(size=(4, model.features)), np.array([0.0, 1.0, 1.0, 0.0])
    found = model.gradients(parameters, features, targets)
    assert found.shape == (2, 4, model.dimension)
    step = 1e-6
    for place in range(model.dimension):
        shift = step * np.eye(model.dimension)[place]
        slope = (
            model.losses(parameters + shift, features, targets) - model.losses(parameters - shift, features, targets)
        ) / (2 * step)
        assert found[..., place] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def trained_by_hand(rows, *, steps, norm_bound, rate, divisor, start):
    """Linear regression by gradient descent on clipped gradients, one number after the other and without noise."""
    weights = list(start)
    for _ in range(steps):
        total = [0.0] * len(weights)
        for row in rows:
            *features, target = row
            residual = sum(w * x for w, x in zip(weights, [*features, 1.0], strict=True)) - target
            gradient = [residual * x for x in [*features, 1.0]]
            length = math.sqrt(sum(g * g for g in gradient))
            factor = min(1.0, norm_bound / length) if length else 1.0
            total = [t + factor * g for t, g in zip(total, gradient, strict=True)]
        weights = [w - rate * t / divisor for w, t in zip(weights, total, strict=True)]
    return weights


def test_training_is_that_of_a_loop():
    start = (0.3, -0.2, 0.1)
    training = DPSGD(
        model=LinearModel(2),
        noise_multiplier=1e-13,
        clipping_norm=1.5,
        steps=5,
        learning_rate=0.2,
        divisor=2.0,
        start=start,
    )
    wanted = trained_by_hand(ROWS.tolist(), steps=5, norm_bound=1.5, rate=0.2, divisor=2.0, start=start)
    assert training.sample(ROWS, 2, rng()) == pytest.approx(np.array([wanted] * 2), abs=1e-10)
    every = replace(training, release="steps").sample(ROWS, 1, rng())[0].reshape(3, 5)  # coordinate by coordinate
    assert np.array(start) - 0.2 * every.sum(axis=1) == pytest.approx(wanted, abs=1e-10)


@given(
    st.lists(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2, max_size=2), min_size=1, max_size=4),
    st.floats(1e-3, 1e3),
)
@settings(max_examples=200)
def test_no_example_moves_the_sum_by_more_than_the_norm(gradients, bound):
    training = DPSGD(model=LinearModel(1), noise_multiplier=1.0, clipping_norm=bound)
    with np.errstate(over="ignore", invalid="ignore"):
        table = np.array([gradients])
        everyone = np.ones((1, len(gradients)), dtype=bool)
        without = everyone.copy()
        without[0, 0] = False
        moved = clipped_sum(training, table, everyone) - clipped_sum(training, table, without)
    assert np.linalg.norm(moved) <= bound * (1 + 1e-9)


def subsampled_delta(epsilon: float, noise: float, rate: float) -> float:
    """The larger hockey-stick divergence of N(0, s^2) and (1-q) N(0, s^2) + q N(1, s^2), by its best threshold."""

    def threshold(ratio: float) -> float | None:
        if ratio <= 1.0 - rate:
            return None
        return 0.5 + noise**2 * math.log((ratio - (1.0 - rate)) / rate)

    def above(x: float) -> tuple[float, float]:
        plain = norm.sf(x / noise)
        return (1.0 - rate) * plain + rate * norm.sf((x - 1.0) / noise), plain

    mixed, plain = above(threshold(math.exp(epsilon)))
    best = mixed - math.exp(epsilon) * plain
    cut = threshold(math.exp(-epsilon))
    if cut is not None:
        mixed, plain = above(cut)
        best = max(best, (1.0 - plain) - math.exp(epsilon) * (1.0 - mixed))
    return best


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.25), (0.5, 0.01), (2.0, 0.9)])
def test_the_bracket_of_one_step_holds_the_closed_form(noise, rate):
    delta = 1e-4
    low, high = epsilon_bracket(noise, rate, 1, delta)
    assert subsampled_delta(low, noise, rate) >= delta * (1 - 1e-9)
    assert subsampled_delta(high, noise, rate) <= delta * (1 + 1e-9)
    assert high - low < 2e-3


def test_claims():
    poisson = DPSGD(model=LinearModel(1), noise_multiplier=2.0, steps=9, sampling_rate=1.0)
    assert poisson.claim == ApproxDP(epsilon_of(2.0, 1.0, 9, 1e-5), 1e-5, Relation.ADD_REMOVE)
    assert GaussianDP(1.5).delta(poisson.claim.epsilon) == pytest.approx(1e-5, rel=1e-6)
    shuffled = DPSGD(model=LinearModel(1), noise_multiplier=2.0, steps=12, sampling_rate=None, batches=3)
    assert shuffled.claim == GaussianDP(2.0, Relation.SUBSTITUTE)  # four epochs, a replaced example moves by 2 C


def test_batches():
    poisson = DPSGD(model=LinearModel(1), noise_multiplier=1.0, sampling_rate=0.3)
    masks = next(random_batches(poisson, (20_000, 5), rng()))
    assert abs(masks.sum() - 30_000) < 6 * math.sqrt(100_000 * 0.21)
    shuffled = DPSGD(model=LinearModel(1), noise_multiplier=1.0, sampling_rate=None, steps=6, batches=3)
    drawn = random_batches(shuffled, (3_000, 7), rng())
    for _ in range(2):
        epoch = np.array([next(drawn) for _ in range(3)])
        assert (epoch.sum(axis=0) == 1).all()  # everyone once
        assert (epoch.sum(axis=2) == np.array([[3], [2], [2]])).all()  # public sizes
        assert abs(epoch[0, :, 0].sum() - 3_000 * 3 / 7) < 6 * math.sqrt(3_000 * 12 / 49)


def test_a_step_has_the_law_of_the_accountant():
    """One canary alone: its coordinate of G is N(0, 1) plus a coin of rate q, so a threshold has known counts."""
    training = DPSGD(model=LinearModel(1), noise_multiplier=1.0, sampling_rate=0.25, steps=2, release="steps")
    outputs = training.sample([[0.0, -50.0]], 100_000, rng(3)).reshape(-1, 2, 2)[:, 1, :]  # the intercept's, both steps
    for threshold in (-1.0, 0.5, 2.0):
        wanted = 0.75 * norm.sf(threshold) + 0.25 * norm.sf(threshold - 1.0)
        for step in range(2):
            count = (outputs[:, step] > threshold).sum()
            assert abs(count - 100_000 * wanted) < 6 * math.sqrt(100_000 * wanted * (1 - wanted))
    both = ((outputs > 0.5).all(axis=1)).mean()
    alone = 0.75 * norm.sf(0.5) + 0.25 * norm.sf(-0.5)
    assert abs(both - alone**2) < 6 * math.sqrt(alone**2 / 100_000)


def test_empty_data_train_on_noise():
    training = DPSGD(model=NetworkModel(2, 2), noise_multiplier=1.0, sampling_rate=0.5, steps=3)
    assert np.isfinite(training.sample([], 4, rng())).all()


def test_the_bugs_of_the_broken_ones():
    right = DPSGD(model=LinearModel(1), noise_multiplier=1e-12, divisor=4.0, release="steps")
    rows = np.array([[0.0, 3.0]] * 3)
    turned = np.vstack([rows, [[0.0, -1e6]]])
    means = [broken.clipped_per_batch(right).sample(data, 1, rng())[0, 1] for data in (rows, turned)]
    assert means == pytest.approx([-1.0, 1.0])  # moves by 2 C, where C / L is accounted for
    assert broken.bias_not_clipped(right).sample(turned, 1, rng())[0, 1] == pytest.approx(1e6 / 4, rel=1e-4)
    noisy = replace(right, noise_multiplier=1.0, clipping_norm=3.0)
    assert broken.noise_by_root_of_batch(noisy).wrong.noise_multiplier == 0.5
    assert broken.noise_without_norm(noisy).wrong.noise_multiplier * 3.0 == pytest.approx(1.0)


def test_broken_randomness():
    right = DPSGD(model=LinearModel(1), noise_multiplier=1.0, steps=4, sampling_rate=0.5, release="steps")
    repeated = broken.one_seed_per_epoch(right).sample([], 5, rng()).reshape(5, 2, 4)
    assert (repeated[..., :2] == repeated[..., 2:]).all()
    assert (repeated[..., 0] != repeated[..., 1]).all()
    batches = broken.fixed_batches(right).wrong.parts.batches(right, (1, 3), rng())
    assert [next(batches).tolist() for _ in range(2)] == [[[True, False, True]], [[False, True, False]]]
    assert broken.smaller_rate_accounted(right).claim.epsilon < right.claim.epsilon


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_entries_are_consistent(entry):
    mechanism = entry.make()
    assert entry.breaks_claim == (entry.bug is not None)
    assert entry.claim == mechanism.claim
    assert mechanism.relation is entry.relation is entry.neighbours().relation
    (pair,) = entry.neighbours().corners()
    for data in pair:
        assert np.array_equal(mechanism.sample(data, 3, rng()), mechanism.sample(data, 3, rng()))


def test_bad_arguments_are_refused():
    good = {"model": LinearModel(1), "noise_multiplier": 1.0}
    for wrong, message in (
        ({"steps": 3, "batches": 2, "sampling_rate": None}, "whole epochs"),
        ({"sampling_rate": 0.0}, "sampling_rate=0.0"),
        ({"release": "all"}, "release='all'"),
        ({"start": (1.0,)}, "must hold 2 parameters"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            DPSGD(**good, **wrong)
    with pytest.raises(InvalidArgument, match="3 columns; the model needs 2"):
        DPSGD(**good).sample([[1.0, 2.0, 3.0]], 1, rng())
