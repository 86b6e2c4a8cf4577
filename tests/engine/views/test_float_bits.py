"""The bits of floats: textbook noise in doubles is refuted within few outputs, noise on a grid is not.

Sound mechanisms are audited at alpha 1e-6: that is the declared false alarm probability of each such test. The limits on
the outputs needed are medians over seeds.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from scipy.stats import kstest

import dpaudit
from dpaudit import Verdict, exact
from dpaudit.engine.conclude import TYPES_LOOKED_AT
from dpaudit.engine.views.float_bits import MEANING, NO_FLOATS
from dpaudit.errors import InvalidArgument
from mechanisms.dyadic import DyadicLaplaceMechanism
from mechanisms.registry import float_bits
from mechanisms.snapping import ERROR, SnappingMechanism, full_precision_exponential

ALPHA = 1e-6
SOUND = {entry.name: entry for entry in float_bits.entries()}
LEAKING = {entry.name: entry for entry in float_bits.leaking()}
LIMIT = {"laplace-bits": 2000, "laplace-inverse-cdf-bits": 2000, "gaussian-bits": 5000}


@pytest.mark.parametrize("name", LEAKING)
def test_textbook_noise_in_doubles_is_refuted(name):
    entry = LEAKING[name]
    needed = []
    for seed in range(5):
        result = dpaudit.audit(
            entry.make(),
            entry.claim,
            entry.neighbours(),
            samples=entry.samples,
            alpha=ALPHA,
            channel="representation",
            seed=seed,
            shrink=False,
        )
        needed.append(result.samples if result.verdict is Verdict.VIOLATION else math.inf)
    assert np.median(needed) < LIMIT[name]
    assert MEANING in result.messages or result.verdict is not Verdict.VIOLATION


def rounded_noise(data, size, rng):
    """Noise in cents, added to an answer that is not."""
    return data + np.round(rng.laplace(scale=1e5, size=size), 2)


def signed_zeros(data, size, rng):
    """Rounded to whole numbers in doubles, where a small negative answer becomes -0.0."""
    return np.round(np.clip(0.1 * rng.random(size) - 0.2 * data, -0.4, 0.4))


def one_of_many(data, size, rng):
    noisy = rng.laplace(size=(size, 40))
    noisy[:, 33] += data
    return noisy


@pytest.mark.parametrize(
    ("mechanism", "answers", "text"),
    [
        (rounded_noise, (0.0, 0.005), "10^-2"),
        (signed_zeros, (0.0, 1.0), "-0.0)"),
        (one_of_many, (0.0, 1.0), "output[33]"),
    ],
    ids=["decimals", "zeros", "coordinate"],
)
def test_other_leaks_in_the_bits_are_found(mechanism, answers, text):
    result = dpaudit.audit(
        dpaudit.batched(mechanism),
        dpaudit.PureDP(1.0),
        [answers],
        channel="representation",
        samples=10_000,
        alpha=ALPHA,
    )
    assert result.verdict is Verdict.VIOLATION
    assert text in result.witness.event
    assert result.witness.confirmed


def watched(mechanism):
    options = {"samples": 5000, "detect_factor": 10.0, "seed": 0}
    return dpaudit.audit(mechanism, dpaudit.PureDP(1.0), [(0, 1)], channel="representation", **options)


@pytest.mark.parametrize(
    "mechanism",
    [
        dpaudit.batched(lambda data, size, rng: rng.integers(9, size=size)),
        dpaudit.batched(lambda data, size, rng: rng.integers(2, size=(size, 3)).astype(bool)),
        dpaudit.per_release(lambda data, rng: int(rng.integers(9))),
        dpaudit.per_release(lambda data, rng: "yes" if rng.random() < 0.5 else "no"),
        dpaudit.per_release(lambda data, rng: {"red": 1, "blue": (rng.integers(9), True)}),
        dpaudit.per_release(lambda data, rng: None if rng.random() < 0.5 else rng.integers(9, size=2)),
    ],
    ids=["integers", "booleans", "ints", "words", "nested", "arrays"],
)
def test_outputs_without_floats_leave_nothing_to_audit(mechanism):
    result = watched(mechanism)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.messages == (NO_FLOATS,)


@pytest.mark.parametrize(
    "release",
    [
        lambda data, rng: float(rng.integers(9)),
        lambda data, rng: np.float32(rng.integers(9)),
        lambda data, rng: (1, {"mean": float(rng.integers(9))}),
        lambda data, rng: None if rng.random() < 0.99 else 2.0,
        lambda data, rng: Decimal(int(rng.integers(9))),
    ],
    ids=["floats", "short floats", "nested", "rare", "decimals"],
)
def test_floats_with_integer_values_are_audited(release):
    result = watched(dpaudit.per_release(release))
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert NO_FLOATS not in result.messages


def test_a_leak_of_integers_is_not_one_of_their_bits():
    result = watched(dpaudit.batched(lambda data, size, rng: 100 * data + rng.integers(9, size=size)))
    assert result.verdict is Verdict.VIOLATION
    assert NO_FLOATS in result.messages
    assert MEANING not in result.messages


def test_a_mechanism_that_fails_after_the_first_look_keeps_its_kind():
    drawn = 0

    @dpaudit.batched
    def tired(data, size, rng):
        nonlocal drawn
        drawn += size
        if size == TYPES_LOOKED_AT and drawn > 1000:
            raise ValueError("no more")
        return rng.integers(9, size=size)

    assert watched(tired).verdict is Verdict.NO_VIOLATION_FOUND


@pytest.mark.parametrize("name", LEAKING)
def test_it_is_not_refuted_on_the_value_channel(name):
    entry = LEAKING[name]
    result = dpaudit.audit(entry.make(), entry.claim, entry.neighbours(), samples=50_000, alpha=ALPHA, seed=0)
    assert result.verdict is not Verdict.VIOLATION


@pytest.mark.parametrize("channel", ["value", "representation"])
@pytest.mark.parametrize("name", SOUND)
def test_noise_on_a_grid_is_not_refuted(name, channel):
    entry = SOUND[name]
    result = dpaudit.audit(
        entry.make(), entry.claim, entry.neighbours(), samples=entry.samples, alpha=ALPHA, channel=channel, seed=0
    )
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert 0.9 < result.epsilon_lower < 1.0  # tight, and seen to be


@pytest.mark.parametrize("answers", [(0.0, 1.0), (0.3, 1.3), (-1.7, -0.7), (1023.4, 1024.0), (-5000.0, -4999.5)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_exact_law_of_snapping_keeps_the_claim(epsilon, answers):
    mechanism = SnappingMechanism(epsilon)
    shown = exact.epsilon(*map(mechanism.law, answers))
    assert shown <= epsilon
    if answers == (0.0, 1.0):  # reached at the clamped ends, up to what rounding is granted
        assert shown == pytest.approx(1.0 / mechanism.scale, rel=1e-9)


def test_the_scale_of_snapping_solves_the_proven_bound():
    mechanism = SnappingMechanism(0.7, bound=300.0, sensitivity=2.5)
    proven = 2.5 / mechanism.scale + ERROR * (300.0 / mechanism.scale + 3.0)
    assert 0.7 * (1.0 - 1e-14) <= proven <= 0.7
    # Mironov's theorem, with a logarithm that is rounded correctly, asks for less.
    eta = 2.0**-53
    assert (1.0 + 12.0 * 300.0 / 2.5 * eta) * 2.5 / mechanism.scale + 2.0 * eta <= proven
    assert mechanism.step / 2.0 < mechanism.scale <= mechanism.step


def test_snapping_releases_one_zero():
    zeros = SnappingMechanism(epsilon=1.0, bound=10.0).sample(0.3, 20_000, np.random.default_rng(0))
    zeros = zeros[zeros == 0.0]
    assert zeros.size > 1000
    assert not np.signbit(zeros).any()


@pytest.mark.parametrize("answer", [0.3, -7.9, 1e6])
def test_snapping_samples_its_law(answer):
    mechanism = SnappingMechanism(1.0, bound=16.0)
    outputs = mechanism.sample(answer, 40_000, np.random.default_rng(3))
    assert set(np.unique(outputs)) <= set(np.arange(-16.0, 17.0, 2.0))
    values, counts = np.unique(outputs, return_counts=True)
    expected = 40_000 * np.exp(mechanism.law(answer).log_prob(values))
    # A Poisson deviation of 6.5 standard errors, or few counts, at each of at most 17 values: below 1e-7.
    assert (np.abs(counts - expected) <= 6.5 * np.sqrt(expected) + 12.0).all()


def test_the_uniform_has_full_precision_at_every_magnitude():
    draws = full_precision_exponential((200_000,), np.random.default_rng(0))
    assert kstest(draws, "expon").pvalue > 1e-7
    assert draws.max() > 9.0
    # Near zero a 53-bit uniform on a fixed grid would show its 2^-53 steps in the low bits of exp(-draw).
    small = np.exp(-draws[draws > 5.0]) * 2.0**53
    assert (small % 1.0 != 0.0).mean() > 0.8


@pytest.mark.parametrize(
    ("sensitivity", "answers", "expected"),
    [(1.0, (0.0, 1.0), 1.0), (1.0, (0.3, 1.3), 1.0), (0.1, (0.0, 0.1), 102 / 103), (0.5, (0.25, 0.5), 0.5)],
)
def test_dyadic_noise_is_as_private_as_proved(sensitivity, answers, expected):
    mechanism = DyadicLaplaceMechanism(1.0, bits=10, sensitivity=sensitivity)
    assert exact.epsilon(*map(mechanism.law, answers)) == pytest.approx(expected, rel=1e-12)


def test_rounding_half_up_keeps_the_sensitivity():
    mechanism = DyadicLaplaceMechanism(1.0, bits=0)
    # numpy.round goes to the even neighbour: 0.5 to 0 but 1.5 to 2, which are two steps apart.
    centres = [int(mechanism.law(x).location) for x in (-1.5, -0.5, 0.5, 1.5, 0.49999999999999994, -1e-300)]
    assert centres == [-1, 0, 1, 2, 0, 0]


def test_dyadic_samples_its_law():
    mechanism = DyadicLaplaceMechanism(2.0, bits=2)
    outputs = mechanism.sample(0.3, 50_000, np.random.default_rng(0))
    values, counts = np.unique(outputs, return_counts=True)
    expected = 50_000 * np.exp(mechanism.law(0.3).log_prob(values))
    assert (np.abs(counts - expected) <= 6.5 * np.sqrt(expected) + 12.0).all()
    total = np.exp(mechanism.law(0.3).log_prob(np.arange(-200, 200) / 4.0)).sum()
    assert total == pytest.approx(1.0, abs=1e-12)


def test_vectors_are_not_rounded_silently():
    mechanism = DyadicLaplaceMechanism(1.0, bits=2)
    assert mechanism.sample([0.25, 1.5], 3, np.random.default_rng(0)).shape == (3, 2)
    with pytest.raises(InvalidArgument, match="multiples of 2"):
        mechanism.sample([0.3, 1.5], 3, np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match="one number"):
        SnappingMechanism(1.0).sample([0.3, 1.5], 3, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (SnappingMechanism, {"epsilon": 1.0, "bound": 0.5}),
        (SnappingMechanism, {"epsilon": 1.0, "bound": 2.0**31}),
        (SnappingMechanism, {"epsilon": 1e-10}),
        (DyadicLaplaceMechanism, {"epsilon": 1.0, "bits": 60}),
        (DyadicLaplaceMechanism, {"epsilon": 1.0, "bits": -1}),
    ],
    ids=["bound below the scale", "bound too large", "epsilon too small", "too many bits", "negative bits"],
)
def test_parameters_that_cannot_be_kept_are_refused(kind, arguments):
    with pytest.raises(InvalidArgument):
        kind(**arguments)
