"""Audits of training: what is trained on, what is reported, and that alpha holds over all ways together.

Audits of sound trainings run at alpha 1e-6, their declared false alarm probability.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import dpaudit
from dpaudit import ApproxDP, GaussianDP, PureDP, Relation, Verdict, training
from dpaudit.errors import InvalidArgument
from dpaudit.training import audit_training
from mechanisms.broken import dp_sgd as broken
from mechanisms.dp_sgd import DPSGD
from mechanisms.dp_sgd.models import LinearModel

FEATURES = 80
MODEL = LinearModel(FEATURES)
EXAMPLES = np.hstack(
    [np.random.default_rng(7).normal(size=(10, FEATURES)) / 8, np.random.default_rng(8).choice([0.0, 1.0], (10, 1))]
)
# The learning rate is small: the canaries' gradients are the same in both steps, and so is the score's direction.
SOUND = DPSGD(
    model=MODEL,
    noise_multiplier=2.0,
    steps=2,
    sampling_rate=0.9,
    learning_rate=1e-4,
    release="steps",
    delta=1e-3,
    divisor=10.0,
)


def gradients(rows):
    return MODEL.gradients(np.zeros((1, MODEL.dimension)), rows[:, :-1], rows[:, -1])[0]


CANARIES = training.gradient(EXAMPLES, gradients, FEATURES, clipping_norm=1.0, rng=np.random.default_rng(0))


def along(release, canary):
    """Scalar product of the noisy gradients of all steps with the canary's."""
    return float(release.reshape(MODEL.dimension, -1).sum(axis=1) @ gradients(canary[None])[0])


class Sum:
    """The sum of the rows, with Gaussian noise of the given size; it remembers what it was given."""

    def __init__(self, noise: float = 1.0) -> None:
        self.noise, self.seen = noise, []

    def sample(self, data, size, rng):
        self.seen += [np.array(data)] * size
        return np.sum(data, axis=0) + self.noise * rng.standard_normal((size, np.shape(data)[1]))


def product(release, canary):
    return float(release @ canary)


def test_a_sound_training_keeps_its_claim():
    one_step = replace(SOUND, steps=1)
    found = audit_training(
        SOUND,
        SOUND.claim,
        EXAMPLES,
        CANARIES,
        along,
        runs=500,
        step=one_step,
        step_claim=one_step.claim,
        step_samples=20_000,
        direction=gradients(CANARIES[:1])[0],
        alpha=1e-6,
    )
    assert found.verdict is not Verdict.VIOLATION
    assert found.epsilon_lower <= SOUND.claim.epsilon
    assert found.trainings == 1001
    assert [part.alpha for part in (found.step, found.runs, found.one_run)] == pytest.approx([1e-6 / 3] * 3)


@pytest.mark.parametrize("make", [broken.clipped_per_batch, broken.noise_by_root_of_batch])
def test_broken_trainings_are_found_by_step_and_runs(make):
    wrong = make(SOUND)
    found = audit_training(
        wrong,
        wrong.claim,
        EXAMPLES,
        CANARIES,
        along,
        runs=1500,
        one_run=False,
        step=replace(wrong.wrong, steps=1),
        step_claim=replace(SOUND, steps=1).claim,
        direction=gradients(CANARIES[:1])[0],
    )
    assert found.verdict is found.step.verdict is found.runs.verdict is Verdict.VIOLATION
    assert found.epsilon_lower > wrong.claim.epsilon
    assert str(found).splitlines()[0].startswith("VIOLATION  training: claimed ApproxDP(")
    assert len(str(found).splitlines()) == 3


def test_one_run_finds_a_training_with_too_little_noise():
    right = replace(SOUND, sampling_rate=1.0, clipping_norm=60.0, noise_multiplier=8.0, delta=1e-6)
    wrong = broken.noise_without_norm(right)
    canaries = training.gradient(EXAMPLES, gradients, FEATURES, clipping_norm=60.0, rng=np.random.default_rng(0))
    found = audit_training(wrong, wrong.claim, EXAMPLES, canaries, along, runs=None, alpha=0.01)
    assert found.verdict is found.one_run.verdict is Verdict.VIOLATION
    assert found.trainings == 1
    assert (found.step, found.runs) == (None, None)
    assert wrong.claim.epsilon < found.epsilon_lower == found.one_run.epsilon_lower


def test_data_hold_the_canaries_that_are_in():
    summing = Sum()
    examples, canaries = np.zeros((2, 3)), np.eye(3)
    found = audit_training(summing, GaussianDP(9.0), examples, canaries, product, runs=10)
    inside, outside, last = summing.seen[:10], summing.seen[10:20], summing.seen[20]
    assert all((data == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]).all() for data in inside)
    assert all((data == examples).all() for data in outside)
    assert len(summing.seen) == 21
    assert last.sum() == len(last) - 2  # the examples and those canaries whose coin said so
    assert (found.one_run.canaries, found.runs.samples) == (3, 20)
    # A list of anything, and what stands in the place of a canary that is left out.
    seen = []

    def train(data):
        seen.append(list(data))
        return 0.0

    claim = GaussianDP(9.0, Relation.SUBSTITUTE)
    audit_training(train, claim, ["a"], ["b", "c"], lambda release, canary: release, null="d", runs=10)
    assert seen[:20] == [["a", "b"]] * 10 + [["a", "d"]] * 10
    assert seen[20][0] == "a"
    assert set(seen[20][1:2]) <= {"b", "d"}
    assert set(seen[20][2:]) <= {"c", "d"}


def test_coins_depend_on_the_seed_and_not_on_the_training():
    canaries = np.eye(200)
    members = [
        audit_training(Sum(), GaussianDP(9.0), np.zeros((1, 200)), canaries, product, runs=None, seed=seed).one_run
        for seed in (0, 0, 1)
    ]
    assert members[0] == members[1] != members[2]


def test_runs_that_fail_have_a_score():
    def train(data, rng):
        if len(data) > 1:
            raise RuntimeError("diverged")
        return [math.nan]

    found = audit_training(
        dpaudit.per_release(train),
        PureDP(0.5),
        [1.0],
        [2.0],
        lambda release, canary: release[0],
        one_run=False,
        runs=50,
    )
    assert found.epsilon_lower == 0.0  # both sides have minus infinity
    with pytest.raises(InvalidArgument, match="returned None; it must be a number"):
        audit_training(lambda data: 0.0, PureDP(0.5), [1.0], [2.0], lambda release, canary: None)


def test_false_alarms_over_all_ways_together():
    """Sums of 1-GDP exactly, audited against it at alpha 0.3: at most a binomial number of alarms (probability 1e-6)."""
    audits, alarms = 40, 0
    for seed in range(audits):
        found = audit_training(
            Sum(1.0),
            GaussianDP(1.0),
            np.zeros((1, 20)),
            np.eye(20),
            product,
            runs=30,
            step=Sum(1.0),
            step_claim=GaussianDP(1.0),
            direction=np.eye(20)[0],
            step_samples=400,
            alpha=0.3,
            seed=seed,
        )
        alarms += found.verdict is Verdict.VIOLATION
    assert alarms <= binom.isf(1e-6, audits, 0.3)


def test_the_projection_reads_every_kind_of_release():
    rows = training.audit._Projected.of(dpaudit.mechanism.Plain(lambda data: [1.0, float(sum(data))]), [2.0, 3.0])
    assert rows.sample([4.0], 2, np.random.default_rng(0)) == [14.0, 14.0]
    arrays = training.audit._Projected.of(Sum(0.0), [1.0, -1.0])
    assert arrays.sample([[5.0, 2.0]], 2, np.random.default_rng(0)).tolist() == [3.0, 3.0]
    with pytest.raises(InvalidArgument, match="direction has 1 numbers, but a release of the step has 2"):
        training.audit._Projected.of(Sum(), [1.0]).sample([[5.0, 2.0]], 2, np.random.default_rng(0))


def test_misuse_is_refused():
    def call(**changes):
        arguments = {"claim": ApproxDP(1.0, 1e-5), "canaries": np.eye(2), **changes}
        return audit_training(Sum(), examples=np.zeros((1, 2)), score=product, **arguments)

    for changes, message in (
        ({"canaries": []}, "canaries is empty"),
        ({"runs": None, "one_run": False}, "leave nothing to do"),
        ({"step": Sum()}, "belong together"),
        ({"runs": 3}, "runs=3"),
        ({"claim": ApproxDP(1.0, 1e-5, Relation.SUBSTITUTE)}, "is about substitute, and null=None: give null="),
        ({"claim": ApproxDP(1.0, 1e-5, Relation.ADD_REMOVE), "null": np.zeros(2)}, "for these only"),
        ({"claim": PureDP(1.0, Relation.ANSWERS)}, "relation"),
        ({"claim": 1.0}, "claim=1.0 must be a claim"),
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"run": 3}, "Did you mean 'runs'"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            call(**changes)
