"""Registry entries of DP-SGD: five sound trainings, and seven broken ones."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dpaudit import neighbours

from ..broken import dp_sgd as broken
from ..dp_sgd import DPSGD, epsilon_bracket
from ..dp_sgd.models import LinearModel, LogisticModel, NetworkModel
from . import Entry, Truth, entry


def entries() -> list[Entry]:
    """Return the sound trainings, then the broken ones."""

    def made(name: str, training: Any, pair: Any, truth: Truth, bug: str | None = None) -> Entry:
        where = functools.partial(neighbours.fixed, [pair], relation=training.relation)
        source = "Abadi et al. 2016; claims by dp-accounting's privacy loss distributions"
        return entry(f"dp-sgd-{name}", lambda: training, where, truth, source, bug, samples=200_000)

    def wrong(name: str, training: broken.WrongDPSGD, pair: Any, bug: str) -> Entry:
        return made(name, training, pair, training.truth, bug)

    def kept(training: DPSGD) -> tuple[float, float]:
        return 0.0, training.claim.parameter

    linear, logistic, network = LinearModel(2), LogisticModel(2), NetworkModel(2, 2)
    rest = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, 1.0], [1.0, 0.0, 1.0]])
    # A target far away: in linear regression the clipped gradient of this example is the same in all steps.
    canary, opposite = np.array([[3.0, 4.0, 100.0]]), np.array([[3.0, 4.0, -100.0]])
    added = rest, np.vstack([rest, canary])
    alone = np.empty((0, 3)), canary
    turned = np.vstack([rest[:1], canary]), np.vstack([rest[:1], opposite])
    relabelled = np.vstack([rest, [[3.0, 4.0, 0.0]]]), np.vstack([rest, [[3.0, 4.0, 1.0]]])
    steps = functools.partial(DPSGD, model=linear, noise_multiplier=4.0, release="steps", delta=1e-3)
    last = functools.partial(DPSGD, noise_multiplier=2.0, steps=8, sampling_rate=0.5, learning_rate=1.0, delta=1e-3)
    white_box = steps(noise_multiplier=1.0, steps=4, sampling_rate=0.25)
    shuffled = steps(steps=4, sampling_rate=None)
    two_batches = steps(model=logistic, steps=4, sampling_rate=None, batches=2)
    logistic_last = last(model=logistic)
    network_last = last(model=network, start=tuple(np.linspace(-1.0, 1.0, network.dimension).tolist()))

    return [
        made("linear-steps", white_box, alone, epsilon_bracket(1.0, 0.25, 4, white_box.delta)),
        made("logistic-last", logistic_last, added, kept(logistic_last)),
        made("network-last", network_last, added, kept(network_last)),
        made("shuffled-full-batch", shuffled, turned, shuffled.claim.parameter),
        made("shuffled-two-batches", two_batches, relabelled, kept(two_batches)),
        wrong(
            "clipped-per-batch",
            broken.clipped_per_batch(steps(divisor=4.0)),
            added,
            "The mean gradient of the batch is clipped, not that of every example.",
        ),
        wrong(
            "noise-by-root-of-batch",
            broken.noise_by_root_of_batch(steps(divisor=4.0, sampling_rate=0.5, noise_multiplier=2.0, steps=2)),
            added,
            "The noise on the sum is divided by the square root of the batch.",
        ),
        wrong(
            "noise-without-norm",
            broken.noise_without_norm(steps(clipping_norm=3.0)),
            added,
            "The noise is not scaled with the clipping norm.",
        ),
        wrong("bias-not-clipped", broken.bias_not_clipped(steps()), added, "The gradient of the bias is not clipped."),
        wrong(
            "smaller-rate-accounted",
            broken.smaller_rate_accounted(steps(sampling_rate=0.8, noise_multiplier=1.0)),
            alone,
            "The accountant is given a quarter of the sampling rate.",
        ),
        wrong(
            "fixed-batches",
            broken.fixed_batches(steps(sampling_rate=0.1, noise_multiplier=1.0, steps=10)),
            added,
            "Batches are fixed, but accounted for as random.",
        ),
        wrong(
            "one-seed-per-epoch",
            broken.one_seed_per_epoch(steps(sampling_rate=0.5, noise_multiplier=1.0, steps=4), epoch=1),
            alone,
            "Every epoch draws the same noise.",
        ),
    ]
