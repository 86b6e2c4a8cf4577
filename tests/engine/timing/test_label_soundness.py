"""Bets on labels keep alpha where draws drift and remember: simulated durations of exactly tight mechanisms.

Each test declares its false-alarm probability: that of more than ``limit`` rejections in ``RUNS`` runs if each had
probability ``ALPHA``, which is what is promised.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.engine.evidence.e_process import Points, bet_sizes
from dpaudit.engine.timing.label_bets import LabelWealth
from dpaudit.engine.timing.pairs import LabelledCalls

RUNS = 80
ALPHA = 0.05
LIMIT = int(binom.isf(1e-6, RUNS, ALPHA))
BLOCKS = [100, 50, 50, 60, 80, *range(100, 300, 40)]


def drifting(tight, rng):
    """Durations: a tight mechanism's cell times 1000, scaled by a machine that drifts, throttles and remembers labels."""
    speed, previous = 1000.0, 0
    for size in BLOCKS:
        labels = rng.integers(0, 2, size)
        times = np.empty(size, dtype=np.int64)
        for call, label in enumerate(labels):
            speed *= math.exp(0.02 * rng.normal() - 0.001 * (speed > 4000.0) + 0.01 * previous)
            times[call] = int((1 + tight(label, rng)) * speed)
            previous = int(label)
        yield labels, times


def randomised_response(epsilon):
    keep = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    return lambda label, rng: int(label) if rng.random() < keep else 1 - int(label)


def leaking_response(epsilon, delta):
    plain = randomised_response(epsilon)
    return lambda label, rng: 4 + int(label) if rng.random() < delta else plain(label, rng)


def rejections(tight, points, runs=RUNS):
    bets = bet_sizes(sum(BLOCKS))
    found = 0
    for run in range(runs):
        stream = LabelledCalls(LabelWealth(points, bets))
        best = 0.0
        for labels, times in drifting(tight, np.random.default_rng([run, 17])):
            stream.settle(labels, times)
            best = max(best, stream.log_wealth)
        found += best >= math.log(1.0 / ALPHA)
    return found


@pytest.mark.parametrize(
    ("tight", "point"),
    [
        (randomised_response(1.0), (1.0, 0.0)),
        (lambda label, rng: int(rng.random() < 0.3), (0.0, 0.0)),  # the control: no difference at all
        (leaking_response(0.5, 0.05), (0.5, 0.05)),
    ],
    ids=["pure", "control", "approximate"],
)
def test_the_false_alarm_rate_is_kept_on_a_drifting_machine(tight, point):
    assert rejections(tight, Points.of([point])) <= LIMIT


def test_a_wrong_claim_is_refuted_on_the_same_machine():
    assert rejections(randomised_response(2.0), Points.of([(1.0, 0.0)]), runs=20) == 20
