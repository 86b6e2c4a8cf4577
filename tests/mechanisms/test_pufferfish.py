"""Pufferfish: distances, the three mechanisms and their exact laws, what is refused, and the broken ones.

Reference numbers: computed beforehand and independently, by quadrature with scipy (examples A and B below).
"""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import exact, neighbours
from dpaudit.claims import ApproxDP, PureDP, Relation, gaussian_delta
from dpaudit.errors import InvalidArgument
from mechanisms.broken.pufferfish import ReusedDraw, ignored_spread, mean_distance, one_prior_only
from mechanisms.pufferfish import (
    GaussianMasking,
    Secret,
    UnequalSpreadLaplace,
    WassersteinMechanism,
    masking_delta,
)
from mechanisms.pufferfish.masking_formulas import covariance_mu, gaussian_renyi, masking_information, masking_kl
from mechanisms.pufferfish.wasserstein import (
    GaussianMixture,
    component_bound,
    wasserstein_infinity,
    wasserstein_one,
)
from mechanisms.registry.pufferfish import entries

normal = GaussianMixture.single
P_A = GaussianMixture((0.3, 0.7), (0.0, 4.0), (1.0, 1.5))
Q_A = GaussianMixture((0.3, 0.7), (1.0, 4.5), (1.0, 1.5))
COUNTS_P = exact.Discrete({0: 0.2, 1: 0.3, 2: 0.3, 3: 0.2})
COUNTS_Q = exact.Discrete({0: 0.1, 1: 0.2, 2: 0.4, 3: 0.3})


def pairs(first, second, prior="theta"):
    return ((Secret("a", first, prior), Secret("b", second, prior)),)


EXAMPLE_A, EXAMPLE_B = pairs(P_A, Q_A), pairs(normal(0.0, 1.0), normal(1.0, 1.5))


@pytest.fixture
def rng():
    return np.random.default_rng(2401)


def test_w_infinity_of_gaussians():
    assert wasserstein_infinity(normal(0.0, 2.0), normal(-3.0, 2.0)) == 3.0
    assert wasserstein_infinity(normal(0.0, 2.0), normal(0.0, 2.1)) == math.inf
    assert wasserstein_infinity(P_A, P_A) == 0.0


def test_w_infinity_of_mixtures():
    assert wasserstein_infinity(P_A, Q_A) == pytest.approx(0.99696, abs=5e-6)
    assert component_bound(P_A, Q_A) == 1.0
    assert wasserstein_infinity(P_A, normal(4.0, 1.0)) == math.inf  # largest standard deviations differ


def test_w_infinity_sees_the_limits_in_the_tails():
    """The widest components are 3 apart although almost all mass is in a common narrow one."""
    P = GaussianMixture((1 - 1e-9, 1e-9), (0.0, 0.0), (1.0, 2.0))
    Q = GaussianMixture((1 - 1e-9, 1e-9), (0.0, 3.0), (1.0, 2.0))
    assert wasserstein_infinity(P, Q) >= 3.0


def test_w_infinity_and_w_one_of_counts():
    assert wasserstein_infinity(COUNTS_P, COUNTS_Q) == 1.0
    assert wasserstein_one(COUNTS_P, COUNTS_Q) == pytest.approx(0.4)
    assert wasserstein_infinity(COUNTS_P, normal(0.0, 1.0)) == math.inf
    point = exact.Discrete({7: 1.0})
    assert wasserstein_infinity(point, point) == 0.0
    assert wasserstein_infinity(exact.Discrete({0: 0.5, -4: 0.0, 2: 0.5}), exact.Discrete({0: 0.5, 2: 0.5})) == 0.0


def test_levels_that_differ_by_rounding_are_one_level():
    tenths = exact.Discrete(dict.fromkeys(range(10), 0.1))
    moved = exact.Discrete.from_log([k + 1 for k in range(10)], np.log([0.1] * 10))
    assert wasserstein_infinity(tenths, moved) == 1.0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.lists(st.integers(-5, 5), min_size=12, max_size=12))
def test_w_infinity_of_samples_is_the_largest_gap_of_sorted_values(first, moves):
    """For two samples of equal size the quantile coupling pairs the sorted values."""
    second = [value + move for value, move in zip(first, moves, strict=False)]

    def empirical(values):
        return exact.Discrete({value: values.count(value) / len(values) for value in set(values)})

    expected = max(abs(a - b) for a, b in zip(sorted(first), sorted(second), strict=True))
    assert wasserstein_infinity(empirical(first), empirical(second)) == expected


def test_wasserstein_mechanism_on_example_a():
    mechanism = WassersteinMechanism(EXAMPLE_A, 1.0, bound=1.0)
    first, second = (mechanism.law(secret) for secret in EXAMPLE_A[0])
    assert mechanism.scale == 1.0
    assert exact.epsilon(first, second, order="forward") == pytest.approx(0.95315, abs=5e-6)
    assert exact.epsilon(second, first, order="forward") == pytest.approx(0.50271, abs=5e-6)
    assert exact.delta(first, second, 0.5, order="forward") == pytest.approx(0.026908, abs=5e-7)
    assert exact.delta(second, first, 0.5, order="forward") == pytest.approx(5.66e-6, abs=5e-9)
    assert mechanism.claim == PureDP(1.0, Relation.SECRETS)


def test_wasserstein_mechanism_on_counts():
    mechanism = WassersteinMechanism(pairs(COUNTS_P, COUNTS_Q), 1.0)
    first, second = (mechanism.law(secret) for secret in mechanism.pairs[0])
    assert mechanism.scale == 1.0
    assert exact.epsilon(first, second, order="forward") == pytest.approx(0.3970573062, abs=1e-9)
    assert exact.epsilon(second, first, order="forward") == pytest.approx(0.2834515129, abs=1e-9)


def test_wasserstein_mechanism_is_tight_for_equal_spread():
    mechanism = WassersteinMechanism(pairs(normal(0.0, 1.0), normal(2.0, 1.0)), 0.5)
    assert mechanism.scale == 4.0
    assert exact.epsilon(*(mechanism.law(secret) for secret in mechanism.pairs[0])) == pytest.approx(0.5, rel=1e-9)


def test_equal_laws_need_no_noise(rng):
    mechanism = WassersteinMechanism(pairs(COUNTS_P, COUNTS_P), 1.0)
    assert mechanism.scale == 0.0
    assert set(mechanism.sample(mechanism.pairs[0][0], 200, rng)) <= {0.0, 1.0, 2.0, 3.0}
    assert mechanism.law(mechanism.pairs[0][0]) is COUNTS_P


def test_unequal_spread_on_example_b():
    mechanism = UnequalSpreadLaplace(EXAMPLE_B, 1.0, 1e-3)
    first, second = (mechanism.law(secret) for secret in EXAMPLE_B[0])
    assert mechanism.scale == pytest.approx(2.645263, abs=5e-7)
    assert exact.delta(first, second, 1.0) == 0.0
    assert exact.epsilon(first, second, order="forward") == pytest.approx(0.3041, abs=5e-5)
    assert exact.epsilon(second, first, order="forward") == pytest.approx(0.4674, abs=5e-5)
    assert mechanism.claim == ApproxDP(1.0, 1e-3, Relation.SECRETS)


def test_unequal_spread_takes_the_worst_component():
    wide = GaussianMixture((0.5, 0.5), (0.0, 1.0), (1.0, 2.0)), GaussianMixture((0.5, 0.5), (0.5, 1.0), (1.0, 1.0))
    alone = UnequalSpreadLaplace(pairs(normal(1.0, 2.0), normal(1.0, 1.0)), 1.0, 1e-3)
    assert UnequalSpreadLaplace(pairs(*wide), 1.0, 1e-3).scale == alone.scale


@pytest.mark.parametrize(
    ("noise_std", "delta"), [(0.0, 0.0726653), (0.5, 0.0601294), (1.0, 0.0383372), (2.0, 0.0115784)]
)
def test_masking_delta_on_example_a(noise_std, delta):
    assert masking_delta(EXAMPLE_A, 0.5, noise_std) == pytest.approx(delta, abs=6e-8)


@pytest.mark.parametrize(
    ("example", "epsilon", "delta", "noise_std"), [(EXAMPLE_A, 0.5, 1e-4, 4.823933), (EXAMPLE_B, 1.0, 1e-3, 3.488738)]
)
def test_masking_calibration(example, epsilon, delta, noise_std):
    mechanism = GaussianMasking(example, epsilon, delta)
    assert mechanism.noise_std == pytest.approx(noise_std, abs=1e-6)
    assert masking_delta(example, epsilon, mechanism.noise_std) <= delta


def test_masking_of_example_b_without_noise():
    assert masking_delta(EXAMPLE_B, 1.0, 0.0) == pytest.approx(0.200413, abs=5e-7)


def test_masking_of_equal_variances_is_the_gaussian_mechanism():
    value = masking_delta(pairs(normal(0.0, 1.0), normal(1.0, 1.0)), 0.5, 2.0)
    assert value == pytest.approx(0.0373987783, abs=1e-10)
    assert value == pytest.approx(float(gaussian_delta(0.5, 1 / math.sqrt(5.0))), rel=1e-12)


def test_masking_of_counts_is_a_mixture_and_refuses_too_little_noise():
    example = pairs(COUNTS_P, COUNTS_Q)
    mechanism = GaussianMasking(example, 0.2, 0.01)
    assert exact.delta(*(mechanism.law(secret) for secret in example[0]), 0.2) == pytest.approx(0.01, rel=1e-6)
    with pytest.raises(InvalidArgument, match="noise_std="):
        GaussianMasking(example, 0.2, 0.01, noise_std=mechanism.noise_std / 2)
    assert GaussianMasking(example, 0.2, 0.01, noise_std=mechanism.noise_std * 2).noise_std == mechanism.noise_std * 2


def test_gaussian_masking_never_reaches_pure_epsilon_where_tails_differ():
    mechanism = GaussianMasking(EXAMPLE_A, 0.5, 1e-4)
    assert exact.epsilon(*(mechanism.law(secret) for secret in EXAMPLE_A[0])) == math.inf


def test_closed_forms():
    value = gaussian_renyi(mean=0.0, variance=5.0, other_mean=1.0, other_variance=6.25, order=2.0)
    assert value == pytest.approx(0.1537443306, abs=1e-10)
    assert gaussian_renyi(mean=0.0, variance=5.0, other_mean=1.0, other_variance=1.0, order=2.0) == math.inf
    assert masking_kl(variance=1.0, noise_variance=4.0) == pytest.approx(0.4047189562, abs=1e-10)
    assert masking_information(variance=1.0, noise_variance=4.0) == pytest.approx(0.1115717757, abs=1e-10)
    assert covariance_mu([0.0], [1.0], [[1.0]], 2.0) == pytest.approx(1 / math.sqrt(5.0))


def test_renyi_closed_form_agrees_with_the_exact_package():
    value = gaussian_renyi(mean=0.0, variance=4.0, other_mean=1.0, other_variance=9.0, order=3.0)
    assert value == pytest.approx(exact.renyi(exact.Gaussian(0.0, 2.0), exact.Gaussian(1.0, 3.0), 3.0), rel=1e-8)


def test_data_are_drawn_anew_for_every_release(rng):
    """Without noise the outputs are draws of F(X): all different, and spread like the prior."""
    mechanism = GaussianMasking(pairs(normal(0.0, 1.0), normal(0.1, 1.0)), 1.0, 0.2)
    assert mechanism.noise_std == 0.0
    outputs = mechanism.sample(mechanism.pairs[0][0], 10_000, rng)
    assert len(np.unique(outputs)) == 10_000
    assert outputs.std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    "mechanism",
    [
        WassersteinMechanism(EXAMPLE_A, 1.0),
        UnequalSpreadLaplace(EXAMPLE_B, 1.0, 1e-3),
        GaussianMasking(EXAMPLE_B, 1.0, 1e-3),
    ],
    ids=["wasserstein", "unequal", "masking"],
)
def test_secrets_of_the_neighbours_package_work(mechanism):
    """Same seed, same outputs; the law is still known; a foreign secret can be sampled but declares no law."""
    secret = mechanism.pairs[0][1]
    listed = neighbours.secrets([(secret.as_neighbour(), mechanism.pairs[0][0].as_neighbour())])
    twin = listed.corners()[0].data
    assert listed.relation is mechanism.relation
    outputs = [mechanism.sample(one, 50, np.random.default_rng(3)) for one in (secret, twin)]
    assert (outputs[0] == outputs[1]).all()
    assert mechanism.law(twin).log_prob(np.array([0.3])) == pytest.approx(
        mechanism.law(secret).log_prob(np.array([0.3]))
    )
    foreign = neighbours.Secret("foreign", lambda rng: 2.0)
    assert mechanism.sample(foreign, 5, np.random.default_rng(0)).shape == (5,)
    with pytest.raises(InvalidArgument, match="does not declare its law"):
        mechanism.law(foreign)
    assert twin.draw(np.random.default_rng(1)) == secret.sample(1, np.random.default_rng(1))[0]


def test_mechanisms_pickle(rng):
    mechanism = pickle.loads(pickle.dumps(WassersteinMechanism(EXAMPLE_A, 1.0)))
    assert mechanism.sample(mechanism.pairs[0][0], 3, rng).shape == (3,)


def test_impossible_secrets_are_left_out_with_a_warning():
    never = Secret("never", normal(50.0, 1.0), probability=0.0)
    with pytest.warns(UserWarning, match="'never' has probability 0"):
        mechanism = WassersteinMechanism((*EXAMPLE_A, (EXAMPLE_A[0][0], never)), 1.0)
    assert mechanism.pairs == EXAMPLE_A
    with pytest.warns(UserWarning, match="left out"), pytest.raises(InvalidArgument, match="pairs is empty"):
        WassersteinMechanism(((never, EXAMPLE_A[0][0]),), 1.0)


def test_all_priors_count():
    near, far = pairs(normal(0.0, 1.0), normal(1.0, 1.0), "near"), pairs(normal(0.0, 2.0), normal(3.0, 2.0), "far")
    assert WassersteinMechanism((*near, *far), 1.0).scale == 3.0


@pytest.mark.parametrize(
    ("weights", "means", "stds", "message"),
    [
        ((0.5, 0.4), (0.0, 1.0), (1.0, 1.0), "sum to 1"),
        ((1.5, -0.5), (0.0, 1.0), (1.0, 1.0), "zero or positive"),
        ((1.0,), (0.0,), (0.0,), "stds"),
        ((1.0,), (0.0,), (-1.0,), "stds"),
        ((1.0,), (math.nan,), (1.0,), "means"),
        ((1.0,), (0.0, 1.0), (1.0,), "entries"),
        ((), (), (), "empty"),
    ],
)
def test_bad_mixtures(weights, means, stds, message):
    with pytest.raises(InvalidArgument, match=message):
        GaussianMixture(weights, means, stds)


def test_weights_within_the_tolerance_are_normalised():
    assert sum(GaussianMixture((0.5, 0.5 + 5e-10), (0.0, 1.0), (1.0, 1.0)).weights) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WassersteinMechanism(EXAMPLE_B, 1.0), "W_inf distance of a pair is infinite"),
        (lambda: WassersteinMechanism((), 1.0), "pairs is empty"),
        (lambda: WassersteinMechanism(((EXAMPLE_A[0][0],),), 1.0), "two Secret objects"),
        (lambda: WassersteinMechanism(EXAMPLE_A, 0.0), "epsilon=0.0"),
        (lambda: WassersteinMechanism(EXAMPLE_A, 1.0, bound=0.9), "bound=0.9"),
        (lambda: WassersteinMechanism(EXAMPLE_A, 1.0, bound=math.inf), "bound=inf"),
        (lambda: UnequalSpreadLaplace(pairs(COUNTS_P, COUNTS_Q), 1.0, 1e-3), "Gaussian-mixture laws"),
        (lambda: UnequalSpreadLaplace(pairs(P_A, normal(0.0, 1.0)), 1.0, 1e-3), "must be equal"),
        (lambda: UnequalSpreadLaplace(EXAMPLE_B, 1.0, 0.0), "delta=0.0"),
        (lambda: GaussianMasking(EXAMPLE_B, -1.0, 1e-3), "epsilon=-1.0"),
        (lambda: GaussianMasking(EXAMPLE_B, 1.0, 1e-3, noise_std=-1.0), "noise_std=-1.0"),
        (lambda: Secret("s", "N(0, 1)"), "law='N"),
        (lambda: Secret("s", exact.Discrete({"red": 1.0})), "outcomes"),
        (lambda: Secret("s", P_A, probability=1.5), "probability=1.5"),
        (lambda: component_bound(P_A, GaussianMixture((0.3, 0.7), (0.0, 4.0), (1.0, 2.0))), "stds"),
        (lambda: covariance_mu([0.0, 0.0], [1.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], 1.0), "positive semi-definite"),
        (lambda: covariance_mu([0.0, 0.0], [1.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], 1.0), "symmetric"),
        (lambda: covariance_mu([0.0], [1.0, 0.0], [[1.0]], 1.0), "shapes"),
        (lambda: gaussian_renyi(mean=0, variance=1, other_mean=0, other_variance=1, order=1.0), "order=1.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_inputs(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_secrets_of_different_priors_do_not_pair():
    with pytest.raises(InvalidArgument, match="'one' and 'two'"):
        WassersteinMechanism(((Secret("a", P_A, "one"), Secret("b", Q_A, "two")),), 1.0)


def test_mean_distance_is_broken():
    rare = pairs(exact.Discrete({0: 0.9, 10: 0.1}), exact.Discrete({0: 0.999, 10: 0.001}))
    broken, right = mean_distance(rare, 1.0), WassersteinMechanism(rare, 1.0)
    assert broken.scale == pytest.approx(0.99)
    assert right.scale == 10.0
    # Far to the right both laws are dominated by their masses at 10.
    tail = math.log((0.1 + 0.9 * math.exp(-10 / 0.99)) / (0.001 + 0.999 * math.exp(-10 / 0.99)))
    assert broken.epsilon_exact == pytest.approx(tail, rel=1e-9)
    assert exact.epsilon(*(right.law(secret) for secret in rare[0])) <= 1.0
    with pytest.raises(InvalidArgument, match="discrete laws"):
        mean_distance(EXAMPLE_A, 1.0)


def test_one_prior_only_is_broken():
    near, far = pairs(normal(0.0, 1.0), normal(1.0, 1.0), "near"), pairs(normal(0.0, 1.0), normal(3.0, 1.0), "far")
    broken = one_prior_only((*near, *far), 1.0)
    assert broken.scale == 1.0
    assert broken.epsilon_exact == pytest.approx(3.0, rel=1e-9)


def test_ignored_spread_is_broken():
    """The log-ratio tends to (s'^2 - s^2) / (2 b^2) + dm / b = 4 + 1 on the right."""
    broken = ignored_spread(pairs(normal(0.0, 1.0), normal(1.0, 3.0)), 1.0, 1e-3)
    laws = [broken.law(secret) for secret in broken.pairs[0]]
    assert broken.scale == 1.0
    assert exact.epsilon(*laws) == pytest.approx(5.0, rel=1e-9)
    assert broken.delta_exact == pytest.approx(exact.delta(*laws, 1.0))
    assert broken.delta_exact > 100 * 1e-3
    with pytest.raises(InvalidArgument, match="Gaussian-mixture laws"):
        ignored_spread(pairs(COUNTS_P, COUNTS_Q), 1.0, 1e-3)


@pytest.mark.parametrize(("kept", "epsilon"), [((-0.5, 2.0), 2.5), ((0.7, 0.7), 0.0)])
def test_a_reused_draw_overstates_or_misses_the_leak(rng, kept, epsilon):
    mechanism = WassersteinMechanism(pairs(normal(0.0, 1.0), normal(1.0, 1.0)), 1.0)
    broken = ReusedDraw(mechanism, tuple(zip("ab", kept, strict=True)))
    laws = [broken.law(secret) for secret in mechanism.pairs[0]]
    assert broken.epsilon_exact == pytest.approx(epsilon)
    assert exact.epsilon(*laws) == pytest.approx(epsilon)
    assert np.median(broken.sample(mechanism.pairs[0][1], 20_000, rng)) == pytest.approx(kept[1], abs=0.05)
    with pytest.raises(InvalidArgument, match="'b'"):
        ReusedDraw(mechanism, (("a", 0.0),))


def test_registry_values():
    """The constants of the registry, computed again from the entries' own mechanisms."""
    found = {entry.name: entry for entry in entries()}
    for name in ("unequal-spread", "ignored-spread", "masking"):
        entry = found[f"pufferfish-{name}"]
        pair = entry.neighbours().corners()[0]
        laws = [entry.make().law(secret) for secret in pair]
        assert exact.delta(*laws, entry.truth) == pytest.approx(entry.claim.delta_claimed, rel=1e-5)
    for name in (
        "wasserstein",
        "wasserstein-counts",
        "wasserstein-mixture",
        "one-prior",
        "reused-draw",
        "mean-distance",
    ):
        entry = found[f"pufferfish-{name}"]
        assert exact.epsilon(
            *(entry.make().law(secret) for secret in entry.neighbours().corners()[0])
        ) == pytest.approx(entry.truth, rel=1e-6)
    assert all(entry.make().claim == entry.claim for entry in found.values())
    assert all(entry.breaks_claim is (entry.bug is not None) for entry in found.values())
