"""Federated averaging: rounds, exact accounting, adaptive clipping and its sign error, LocalDpMod, the broken ones.

Reference numbers: computed beforehand and independently (closed form, equal to dp-accounting 0.6.0 to six digits).
"""

import math
import pickle
import sys

import numpy as np
import pytest

from dpaudit import exact
from dpaudit.claims import GaussianDP, Relation, gaussian_delta
from dpaudit.errors import InvalidArgument, MissingDependency
from dpaudit.mechanism import Raised
from mechanisms._common import gaussian_epsilon
from mechanisms.broken.federated import (
    LocalDpMod,
    NoiseForConfiguredClients,
    NoiseOfUpdatedNorm,
    TruncatedNoise,
    WeightedAverage,
    ZeroNormRaises,
)
from mechanisms.federated import (
    AdaptiveClipping,
    AdaptiveRound,
    FederatedAveraging,
    clip_updates,
    clipping_norm_path,
    one_round,
)
from mechanisms.federated.accounting import (
    exact_mu,
    local_dp_delta,
    local_dp_std,
    poisson_epsilon,
    update_noise_multiplier,
)
from mechanisms.registry.federated import entries

ZERO_OUT, SUBSTITUTE = Relation.ZERO_OUT, Relation.SUBSTITUTE
UPDATES = np.array([[3.0, 4.0], [0.3, -0.4], [0.0, 0.0]])
HEAVY = (1000.0, *[100.0] * 9)


@pytest.fixture
def rng():
    return np.random.default_rng(1128)


def test_clipping_scales_long_updates_and_leaves_short_and_zero_ones():
    clipped = clip_updates(UPDATES, 1.0)
    assert clipped == pytest.approx(np.array([[0.6, 0.8], [0.3, -0.4], [0.0, 0.0]]))
    assert np.linalg.norm(clip_updates([[1e200, 1e200]], 2.0)) == pytest.approx(2.0)


def test_one_round_averages_clipped_updates_with_the_noise_it_says(rng):
    outcomes = [one_round(UPDATES, 1.0, 0.5, rng=rng) for _ in range(4000)]
    aggregates = np.array([outcome.aggregate for outcome in outcomes])
    assert outcomes[0].noise_std == pytest.approx(0.5 / 3)
    assert aggregates.mean(axis=0) == pytest.approx([0.3, 0.4 / 3], abs=0.015)
    assert aggregates.std(axis=0) == pytest.approx([0.5 / 3] * 2, rel=0.06)
    assert {(outcome.mu, outcome.clipping_norm, outcome.noisy_count) for outcome in outcomes} == {(2.0, 1.0, None)}


def test_one_round_with_weights_reports_the_exact_mu(rng):
    updates = np.zeros((10, 2))
    assert one_round(updates, 1.0, 1.0, rng=rng, weights=HEAVY).mu == pytest.approx(1 / 0.19)
    assert one_round(updates, 1.0, 1.0, rng=rng, weights=HEAVY, relation=SUBSTITUTE).mu == pytest.approx(2 / 0.19)
    assert one_round(updates, 1.0, 0.0, rng=rng).mu == math.inf


def test_the_mean_of_one_round_without_noise_is_weighted(rng):
    outcome = one_round([[1.0], [0.0]], 1.0, 0.0, rng=rng, weights=[3.0, 1.0])
    assert outcome.aggregate == pytest.approx([0.75])


@pytest.mark.parametrize(("order", "factor"), [("fixed", 1.0), ("flower", math.exp(-0.1))])
def test_order_of_noise_and_update(rng, order, factor):
    """All clients clipped, hardly any noise on the count: Flower's bit shrinks the norm by exp(-0.2 * 0.5) = 0.904837."""
    clients = 10_000
    adaptive = AdaptiveClipping(rule="flower", count_std=5.0)
    outcome = one_round(np.full((clients, 1), 9.0), 2.0, 1.0, rng=rng, order=order, adaptive=adaptive)
    z_delta = update_noise_multiplier(1.0, 5.0)
    assert outcome.clipping_norm == pytest.approx(2.0 * math.exp(-0.1), rel=1e-3)
    assert outcome.noise_std == pytest.approx(z_delta * 2.0 * factor / clients, rel=1e-3)
    assert outcome.mu == pytest.approx(math.hypot(1 / (z_delta * factor), 1 / 5.0), rel=1e-3)
    assert outcome.noisy_count == pytest.approx(clients, abs=40)


def test_effective_multiplier_of_the_wrong_order():
    assert math.exp(-0.1) == pytest.approx(0.904837, abs=5e-7)
    assert gaussian_epsilon(1.0, 1e-5) == pytest.approx(4.377178, abs=5e-7)
    assert gaussian_epsilon(1.0 / math.exp(-0.1), 1e-5) == pytest.approx(4.916484, abs=5e-7)


@pytest.mark.parametrize(
    ("multiplier", "rounds", "relation", "epsilon"),
    [
        (1.0, 1, ZERO_OUT, 4.377178),
        (1.0, 1, SUBSTITUTE, 9.997256),
        (1.0, 10, ZERO_OUT, 17.856587),
        (1.0, 10, SUBSTITUTE, 46.211210),
        (2.0, 10, ZERO_OUT, 7.511276),
        (0.5, 1, ZERO_OUT, 9.997256),
    ],
)
def test_exact_accounting(multiplier, rounds, relation, epsilon):
    assert gaussian_epsilon(exact_mu(multiplier, rounds=rounds, relation=relation), 1e-5) == pytest.approx(
        epsilon, abs=6e-7
    )


def test_weighted_accounting():
    assert exact_mu(1.0, weights=HEAVY) == pytest.approx(1 / 0.19)
    assert gaussian_epsilon(exact_mu(1.0, weights=HEAVY), 1e-5) == pytest.approx(35.567, abs=5e-4)


@pytest.mark.parametrize("mu", [1e-3, 0.3, 5.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_gaussian_epsilon_inverts_the_profile(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    if epsilon == 0.0:
        assert gaussian_delta(0.0, mu) <= delta
    else:
        assert float(gaussian_delta(epsilon, mu)) == pytest.approx(delta, rel=1e-7)


@pytest.mark.parametrize(
    ("rate", "multiplier", "rounds", "pld", "rdp"),
    [(0.01, 1.0, 1000, 1.828244, 2.101367), (0.1, 1.1, 100, 5.912652, 6.620769)],
)
def test_poisson_subsampling(rate, multiplier, rounds, pld, rdp):
    for accountant, epsilon in (("pld", pld), ("rdp", rdp)):
        value = poisson_epsilon(multiplier, sampling_rate=rate, rounds=rounds, delta=1e-5, accountant=accountant)
        assert value == pytest.approx(epsilon, abs=2e-5)


@pytest.mark.parametrize(("rounds", "epsilon"), [(1, 4.728507), (10, 19.0536)])
def test_full_participation_through_the_renyi_accountant(rounds, epsilon):
    value = poisson_epsilon(1.0, sampling_rate=1.0, rounds=rounds, delta=1e-5, accountant="rdp")
    assert value == pytest.approx(epsilon, abs=5e-5)


def test_without_dp_accounting_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingDependency, match=r"pip install dpaudit\[accounting\]"):
        poisson_epsilon(1.0, sampling_rate=0.1, rounds=1, delta=1e-5)


@pytest.mark.parametrize(
    ("multiplier", "clients", "value"),
    [(1.0, 100, 1.005037815259212), (1.0, 20, 1.154700538379252), (0.5, 10, 0.577350269189626)],
)
def test_update_noise_multiplier(multiplier, clients, value):
    count_std = AdaptiveClipping().std_for(clients)
    assert count_std == clients / 20
    assert update_noise_multiplier(multiplier, count_std) == pytest.approx(value, rel=1e-14)
    assert (value**-2 + (2 * count_std) ** -2) ** -0.5 == pytest.approx(multiplier, rel=1e-12)


def test_update_noise_multiplier_at_its_ends():
    assert update_noise_multiplier(0.0, 0.0) == 0.0
    with pytest.raises(InvalidArgument, match=r"must be below 2 \* count_std"):
        update_noise_multiplier(2.0, 1.0)


@pytest.mark.parametrize("spread", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("start", [0.1, 0.5, 2.0, 10.0])
def test_flowers_sign_runs_away_and_andrews_settles(spread, start):
    """Lognormal norms of median 1 (their quantiles), target 1/2, no noise, 200 rounds."""
    norms = np.exp(spread * np.sqrt(2.0) * np.array([math.erf(x) for x in np.linspace(-1.5, 1.5, 1001)]))
    settled = clipping_norm_path(norms, start, 200)
    assert settled[-1] == pytest.approx(1.0, abs=0.05)
    away = clipping_norm_path(norms, start, 200, AdaptiveClipping(rule="flower"))
    assert away[-1] < 1e-7 if start < 1 else away[-1] > 1e7
    steps = np.diff(np.log(away))
    assert (steps < 0).all() if start < 1 else (steps > 0).all()


def test_sign_switch_inside_a_round(rng):
    """With every norm above C Andrew's rule must raise C; Flower's lowers it."""
    updates = np.full((1000, 1), 5.0)
    raised = one_round(updates, 1.0, 0.1, rng=rng, adaptive=AdaptiveClipping(count_std=1.0)).clipping_norm
    lowered = one_round(
        updates, 1.0, 0.1, rng=rng, adaptive=AdaptiveClipping(count_std=1.0, rule="flower")
    ).clipping_norm
    assert raised == pytest.approx(math.exp(0.1), rel=1e-2)
    assert lowered == pytest.approx(math.exp(-0.1), rel=1e-2)


@pytest.mark.parametrize(("epsilon", "delta_true", "needed"), [(10.0, 2.265e-5, 10.394), (20.0, 1.527e-3, 25.443)])
def test_the_classical_formula_fails_for_large_epsilon(epsilon, delta_true, needed):
    assert local_dp_delta(epsilon=epsilon, delta=1e-5, sensitivity=1.0, distance=1.0) == pytest.approx(
        delta_true, rel=5e-4
    )
    std = local_dp_std(epsilon=epsilon, delta=1e-5, sensitivity=1.0)
    assert gaussian_epsilon(1.0 / std, 1e-5) == pytest.approx(needed, abs=5e-4)


def test_claim_and_law_of_the_average():
    mechanism = FederatedAveraging(clipping_norm=2.0, noise_multiplier=0.8)
    assert mechanism.claim == GaussianDP(1.25, ZERO_OUT)
    canary = np.array([[2.0, 0.0], [1.0, 1.0]])
    nulled = np.array([[0.0, 0.0], [1.0, 1.0]])
    for epsilon in (0.0, 0.7, 2.0):
        value = exact.delta(mechanism.law(canary), mechanism.law(nulled), epsilon)
        assert value == pytest.approx(mechanism.claim.delta(epsilon), rel=1e-6)


def test_substitution_and_rounds():
    mechanism = FederatedAveraging(clipping_norm=1.0, noise_multiplier=2.0, rounds=4, relation=SUBSTITUTE)
    assert mechanism.claim == GaussianDP(2.0, SUBSTITUTE)
    first, second = np.array([[0.6, 0.8], [0.0, 1.0]]), np.array([[-0.6, -0.8], [0.0, 1.0]])
    value = exact.delta(mechanism.law(first), mechanism.law(second), 1.0)
    assert value == pytest.approx(float(gaussian_delta(1.0, 2.0)), rel=1e-6)


def test_weighted_claim_is_exact():
    mechanism = FederatedAveraging(clipping_norm=1.0, noise_multiplier=1.0, weights=(3.0, 1.0))
    assert mechanism.claim == GaussianDP(1.5, ZERO_OUT)
    value = exact.delta(mechanism.law([[1.0], [0.0]]), mechanism.law([[0.0], [0.0]]), 0.5)
    assert value == pytest.approx(float(gaussian_delta(0.5, 1.5)), rel=1e-9)


def test_sample_shapes_and_pickling(rng):
    mechanism = pickle.loads(pickle.dumps(FederatedAveraging(clipping_norm=1.0, noise_multiplier=1.0, rounds=3)))
    assert mechanism.sample(UPDATES, 5, rng).shape == (5, 6)
    assert mechanism.sample(UPDATES, 0, rng).shape == (0, 6)


@pytest.mark.parametrize(
    ("relation", "pair", "mu"),
    [
        (SUBSTITUTE, ([[2.0], [0.5]], [[-1.0], [0.5]]), 2.0),
        (ZERO_OUT, ([[2.0], [0.5]], [[0.0], [0.5]]), math.sqrt(1 + 0.75 / 25)),
    ],
)
def test_adaptive_round_reaches_its_claim(relation, pair, mu):
    """Count and sum move together: 4/z_delta^2 + 1/sigma_b^2 = 4/z^2, and 1/z^2 + 3/(4 sigma_b^2) for a null client."""
    adaptive = AdaptiveClipping(rule="flower", count_std=5.0)
    mechanism = AdaptiveRound(clipping_norm=1.0, noise_multiplier=1.0, adaptive=adaptive, relation=relation)
    assert mechanism.claim.mu == pytest.approx(mu, rel=1e-14)
    value = exact.delta(*(mechanism.law(data) for data in pair), 0.8)
    assert value == pytest.approx(float(gaussian_delta(0.8, mu)), rel=1e-6)


def test_a_null_client_has_bit_zero_under_andrews_rule():
    mechanism = AdaptiveRound(
        clipping_norm=1.0, noise_multiplier=1.0, adaptive=AdaptiveClipping(count_std=5.0), relation=ZERO_OUT
    )
    assert mechanism.centre([[0.0], [0.5], [3.0]])[0] == 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rng: one_round(UPDATES, 0.0, 1.0, rng=rng), "clipping_norm=0.0"),
        (lambda rng: one_round(UPDATES, 1.0, -1.0, rng=rng), "noise_multiplier=-1.0"),
        (lambda rng: one_round([[math.inf]], 1.0, 1.0, rng=rng), "data holds"),
        (lambda rng: one_round(np.empty((0, 2)), 1.0, 1.0, rng=rng), "data is empty"),
        (lambda rng: one_round([1.0, 2.0], 1.0, 1.0, rng=rng), "2 dimension"),
        (lambda rng: one_round(UPDATES, 1.0, 1.0, rng=rng, order="flowers"), "Did you mean 'flower'"),
        (lambda rng: one_round(UPDATES, 1.0, 1.0, rng=rng, weights=[1.0, 1.0]), "3 numbers"),
        (lambda rng: one_round(UPDATES, 1.0, 1.0, rng=rng, weights=[1.0, -1.0, 1.0]), "zero or positive"),
        (lambda rng: one_round(UPDATES, 1.0, 1.0, rng=rng, weights=[0.0, 0.0, 0.0]), "not all zero"),
        (lambda rng: one_round(UPDATES, 1.0, 1.0, rng=rng, relation=Relation.ADD_REMOVE), "relation="),
        (lambda rng: one_round(UPDATES, 1.0, 1.0, rng=rng, adaptive=AdaptiveClipping()), "must be below 2"),
        (lambda rng: one_round(UPDATES, 1.0, 1.0, rng=5), "rng=5"),
        (lambda rng: FederatedAveraging(clipping_norm=1.0, noise_multiplier=0.0), "noise_multiplier=0.0"),
        (lambda rng: FederatedAveraging(clipping_norm=1.0, noise_multiplier=1.0, rounds=0), "rounds=0"),
        (
            lambda rng: FederatedAveraging(clipping_norm=1.0, noise_multiplier=1.0, weights=(1.0, 2.0)).law(UPDATES),
            "one per client",
        ),
        (
            lambda rng: AdaptiveRound(clipping_norm=1.0, noise_multiplier=1.0, adaptive=AdaptiveClipping()),
            "count_std=None",
        ),
        (lambda rng: AdaptiveClipping(target=1.5), "target=1.5"),
        (lambda rng: AdaptiveClipping(rule="andrews"), "Did you mean 'andrew'"),
        (lambda rng: AdaptiveClipping(count_std=-1.0), "count_std=-1.0"),
        (lambda rng: local_dp_std(epsilon=0.0, delta=1e-5, sensitivity=1.0), "epsilon=0.0"),
        (lambda rng: local_dp_std(epsilon=1.0, delta=0.0, sensitivity=1.0), "delta=0.0"),
        (lambda rng: poisson_epsilon(1.0, sampling_rate=1.5, rounds=1, delta=1e-5), "sampling_rate=1.5"),
        (lambda rng: LocalDpMod(epsilon=1.0, delta=1e-5, clipping_norm=1.0, sensitivity=1.0).law(UPDATES), "one row"),
        (lambda rng: TruncatedNoise().sample([0.5], 2, rng), "whole numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_inputs(rng, make, message):
    with pytest.raises(InvalidArgument, match=message):
        make(rng)


def test_weighted_average_is_broken(rng):
    broken = WeightedAverage(clipping_norm=1.0, noise_multiplier=1.0, weights=HEAVY)
    assert broken.claim == GaussianDP(1.0, ZERO_OUT)
    assert broken.mu_exact == pytest.approx(1 / 0.19)
    data, neighbour = np.zeros((10, 1)), np.zeros((10, 1))
    data[0] = 1.0
    value = exact.delta(broken.law(data), broken.law(neighbour), 3.0)
    assert value == pytest.approx(float(gaussian_delta(3.0, 1 / 0.19)), rel=1e-9)
    assert broken.sample(data, 4, rng).shape == (4, 1)


def test_noise_for_configured_clients_is_broken(rng):
    broken = NoiseForConfiguredClients(clipping_norm=1.0, noise_multiplier=1.0, configured=10)
    assert broken.claim.mu == 1.0
    data, neighbour = np.eye(5, 1), np.zeros((5, 1))
    value = exact.delta(broken.law(data), broken.law(neighbour), 1.0)
    assert value == pytest.approx(float(gaussian_delta(1.0, broken.mu_for(replies=5))), rel=1e-9)
    assert broken.sample(data, 4, rng).shape == (4, 1)


def test_noise_of_the_updated_norm_is_broken(rng):
    """All clipped, opposite canaries: about 2 / (z_delta exp(-0.1)) = 2.2 where 2 is claimed."""
    adaptive = AdaptiveClipping(rule="flower", count_std=5.0)
    right = AdaptiveRound(clipping_norm=1.0, noise_multiplier=1.0, adaptive=adaptive)
    broken = NoiseOfUpdatedNorm(right=right)
    crowd = np.full((99, 1), 2.0)
    data, neighbour = np.vstack([[2.0], crowd]), np.vstack([[-2.0], crowd])
    assert broken.pair_delta(data, neighbour, 0.0) > broken.claim.delta(0.0) + 0.04
    assert broken.pair_delta(data, neighbour, 0.0) == pytest.approx(
        float(gaussian_delta(0.0, 2 / (update_noise_multiplier(1.0, 5.0) * math.exp(-0.1)))), abs=1e-3
    )
    with pytest.raises(InvalidArgument, match="100 and 99 bits"):
        broken.pair_delta(data, np.vstack([[-1.0], crowd]), 0.0)
    assert broken.sample(data, 4, rng).shape == (4, 2)
    assert broken.claim == right.claim


def test_local_dp_mod_with_half_the_sensitivity_is_broken(rng):
    broken = LocalDpMod(epsilon=1.0, delta=1e-5, clipping_norm=1.0, sensitivity=1.0)
    assert broken.delta_exact == pytest.approx(1.700e-3, rel=5e-4)
    assert float(gaussian_delta(broken.epsilon_exact, broken.mu_exact)) == pytest.approx(1e-5, rel=1e-6)
    assert exact.delta(broken.law([[1.0, 0.0]]), broken.law([[-5.0, 0.0]]), 1.0) == pytest.approx(broken.delta_exact)
    assert broken.sample([[1.0, 0.0]], 4, rng).shape == (4, 2)
    right = LocalDpMod(epsilon=1.0, delta=1e-5, clipping_norm=1.0, sensitivity=2.0)
    assert right.delta_exact < 1e-5


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 3.0])
def test_truncated_noise_is_worth_two_steps(rng, multiplier):
    """For C = 1 the best test is at zero, where the cut moves a whole step: mu = 2/z in place of 1/z."""
    broken = TruncatedNoise(noise_multiplier=multiplier)
    assert broken.mu_exact == pytest.approx(2.0 / multiplier, rel=1e-9)
    outputs = broken.sample([1, 0, 1], 1000, rng)
    assert outputs.dtype == np.int64
    assert np.isfinite(broken.law([1, 0, 1]).log_prob(outputs.tolist())).all()
    for epsilon in (0.0, 0.5, 2.0):  # no test beats the exact mu
        assert broken.delta_exact(epsilon) <= float(gaussian_delta(epsilon, broken.mu_exact)) * (1 + 1e-9)
    assert broken.delta_exact(0.0) == pytest.approx(float(gaussian_delta(0.0, broken.mu_exact)), rel=1e-9)


def test_truncated_noise_with_a_larger_norm():
    """C = 3: a step of four where three were paid for."""
    assert TruncatedNoise(clipping_norm=3, noise_multiplier=1.0).mu_exact == pytest.approx(4 / 3, rel=1e-9)


def test_zero_norm_raises_is_an_output(rng):
    broken = ZeroNormRaises(right=FederatedAveraging(clipping_norm=1.0, noise_multiplier=1.0))
    assert broken.sample(UPDATES, 3, rng) == [Raised("ZeroDivisionError", "float division by zero")] * 3
    assert broken.sample(UPDATES[:2], 3, rng).shape == (3, 2)
    assert broken.mu_exact == math.inf


def test_registry_entries_name_what_they_make():
    found = entries()
    assert len({entry.name for entry in found}) == len(found) == 9
    for entry in found:
        assert entry.make().claim == entry.claim
        assert entry.claim.relation is entry.neighbours().relation
        assert entry.breaks_claim is (entry.bug is not None)


def test_sound_entries_reach_their_truth():
    """Each registry pair is a canary on which the claimed mu is attained."""
    for entry in entries():
        if entry.bug is None:
            pair = entry.neighbours().corners()[0]
            value = exact.delta(*(entry.make().law(data) for data in pair), 0.3)
            assert value == pytest.approx(float(gaussian_delta(0.3, entry.truth)), rel=1e-6)
