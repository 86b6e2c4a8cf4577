"""The channel timing with a real clock: a rejection sampler shows its loop, a constant-time one is never refuted.

Differences are tens of microseconds, so that a busy machine does not hide them.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpaudit
from dpaudit import Verdict, neighbours

ALPHA = 1e-6
PAIRS = neighbours.fixed([([0, 0, 0], [0, 0, 1])], relation=dpaudit.Relation.SUBSTITUTE)


def work(rounds):
    total = 0.0
    for _ in range(rounds):
        total += 1.0
    return total


def rejection_sampler(data, rng):
    """Laplace noise drawn again until the answer lies in [0, 4]: at 0 every second draw fails, at 1 every fifth."""
    while True:
        work(1000)  # some 20 microseconds a draw
        answer = sum(data) + rng.laplace()
        if 0.0 <= answer <= 4.0:
            return answer


def constant_time(data, rng):
    """The same number of draws on all data; the first one that fits is taken, or else the nearest end."""
    draws = sum(data) + rng.laplace(size=16)
    work(1000)
    inside = (draws >= 0.0) & (draws <= 4.0)
    return float(draws[np.argmax(inside)]) if inside.any() else 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_rejection_sampler_is_refuted(seed):
    result = dpaudit.audit(
        dpaudit.per_release(rejection_sampler), dpaudit.PureDP(0.3), PAIRS, channel="timing", samples=40_000, alpha=ALPHA,
        seed=seed,
    )  # fmt: skip
    assert result.verdict is Verdict.VIOLATION
    assert result.samples < 10_000
    assert result.epsilon_lower >= 0.3
    assert result.witness.confirmed
    assert result.witness.event.startswith("call takes ")


def test_approximate_privacy_does_not_excuse_it():
    result = dpaudit.audit(
        dpaudit.per_release(rejection_sampler), dpaudit.ApproxDP(0.3, 0.01), PAIRS, channel="timing", samples=40_000
    )
    assert result.verdict is Verdict.VIOLATION


@pytest.mark.parametrize("seed", range(3))
def test_constant_time_is_not_refuted(seed):
    result = dpaudit.audit(
        dpaudit.per_release(constant_time), dpaudit.PureDP(0.5), PAIRS, channel="timing", samples=8_000, alpha=ALPHA,
        seed=seed, detect_factor=3.0,
    )  # fmt: skip
    assert result.verdict in (Verdict.NO_VIOLATION_FOUND, Verdict.INCONCLUSIVE)
    assert result.epsilon_lower < 0.5


def test_among_several_pairs_the_leaking_one_is_found():
    several = neighbours.fixed([([0, 0], [0, 0]), ([2, 2], [2, 2]), ([0, 0], [0, 1]), ([1, 1], [1, 1])])
    result = dpaudit.audit(
        dpaudit.per_release(rejection_sampler), dpaudit.PureDP(0.3), several, channel="timing", samples=60_000
    )
    assert result.verdict is Verdict.VIOLATION
    assert {result.witness.data, result.witness.neighbour} == {"[0, 0]", "[0, 1]"}
