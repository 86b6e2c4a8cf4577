"""Do the samplers draw from the laws they declare? Bounded noise, Pufferfish, importance weighting, federated averaging.

Every test has a fixed seed and a false-alarm probability of at most 1e-6: goodness of fit is decided by the
Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant, P(sup |F_n - F| > x) <= 2 exp(-2 n x^2), which holds for every n,
and counts by Hoeffding's or Bernstein's inequality. Each goodness-of-fit test is also shown a noise scale that is off by
ten per cent in either direction and must reject it.
"""

import math

import numpy as np
import pytest
from scipy import special

from mechanisms.bounded_noise import BoundedNoise, composed_delta
from mechanisms.bounded_noise.density import FAMILIES, potential, shape, unit_cdf, unit_noise
from mechanisms.broken.federated import NoiseOfUpdatedNorm, TruncatedNoise
from mechanisms.broken.importance_weighting import PerCoordinateNoise
from mechanisms.federated import AdaptiveClipping, AdaptiveRound, FederatedAveraging, one_round
from mechanisms.importance_weighting import ImportanceWeighting, SphericalLaplace, delta_method_variance, estimate
from mechanisms.pufferfish import GaussianMasking, Secret, UnequalSpreadLaplace, WassersteinMechanism
from mechanisms.pufferfish.wasserstein import GaussianMixture

FALSE_ALARM = 1e-6
WRONG_SCALES = (0.9, 1.1)


def rejects(draws, cdf):
    """Return True if the draws leave the DKW band of level FALSE_ALARM around ``cdf``, a continuous distribution function."""
    n = len(draws)
    values = cdf(np.sort(draws))
    distance = max((np.arange(1, n + 1) / n - values).max(), (values - np.arange(n) / n).max())
    return 2.0 * math.exp(-2.0 * n * distance**2) <= FALSE_ALARM


def assert_fits(draws, cdf_of_scale):
    """The declared law is kept and noise of a tenth more or less is rejected; ``cdf_of_scale(factor)`` scales the noise."""
    assert not rejects(draws, cdf_of_scale(1.0))
    for factor in WRONG_SCALES:
        assert rejects(draws, cdf_of_scale(factor)), f"noise scaled by {factor} was not noticed"


def interpolated(low, high, cdf):
    """A distribution function of one number at a time, or of few, made fast by a fine table."""
    grid = np.linspace(low, high, 20_001)
    values = cdf(grid)
    return lambda x: np.interp(x, grid, values)


def laplace_gaussian_cdf(location, scale, std):
    """P(Laplace + Gaussian <= x): Phi(z) plus the two exponential corrections, in logs."""

    def cdf(x):
        t = (x - location) / std
        ratio = std / scale
        up = np.exp(ratio**2 / 2 - ratio * t + special.log_ndtr(t - ratio))
        down = np.exp(ratio**2 / 2 + ratio * t + special.log_ndtr(-t - ratio))
        return special.ndtr(t) - up / 2 + down / 2

    return cdf


def mixed(weights, parts):
    return lambda x: sum(weight * part(x) for weight, part in zip(weights, parts, strict=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_bounded_noise(family):
    draws = unit_noise(family, 100_000, np.random.default_rng(1))
    table = interpolated(0.0, 2.0, lambda edge: unit_cdf(family, edge))
    assert_fits(draws, lambda factor: lambda x: table(1.0 + x / factor))


def test_bounded_noise_mechanism_scales_and_shifts():
    mechanism = BoundedNoise(1.0, 1e-5, queries=2, radius=100.0)
    draws = mechanism.sample([3.0, -40.0], 60_000, np.random.default_rng(2))
    table = interpolated(0.0, 2.0, lambda edge: unit_cdf("DE", edge))
    for column, answer in enumerate((3.0, -40.0)):
        assert_fits(
            draws[:, column], lambda factor, answer=answer: lambda x: table(1.0 + (x - answer) / (100.0 * factor))
        )


def test_law_of_bounded_noise_samples_itself():
    draws = BoundedNoise(1.0, 1e-5).law(0.0).sample(60_000, np.random.default_rng(3)) / BoundedNoise(1.0, 1e-5).radius
    table = interpolated(0.0, 2.0, lambda edge: unit_cdf("DE", edge))
    assert_fits(draws, lambda factor: lambda x: table(1.0 + x / factor))


def test_session_noise():
    mechanism = BoundedNoise(1.0, 1e-5)
    rng = np.random.default_rng(4)
    draws = np.array([mechanism.session(5.0, rng).ask(float) for _ in range(25_000)])
    table = interpolated(0.0, 2.0, lambda edge: unit_cdf("DE", edge))
    assert_fits(draws, lambda factor: lambda x: table(1.0 + (x - 5.0) / (mechanism.radius * factor)))


@pytest.mark.parametrize(("family", "delta"), [("DE", 9.306e-4), ("p1", 1.3737e-3), ("p2", 6.904e-4)])
def test_composed_delta_by_simulation(family, delta):
    """delta = E (1 - exp(epsilon - loss))_+ over 20 queries; an earlier run of 4e5 gave 9.08e-4, 1.334e-3, 6.70e-4.

    Values lie in [0, 1], so by Bernstein with variance at most delta: P(|mean - delta| > x) <= 2 exp(-n x^2 / (2 delta + 2x/3)).
    """
    trials, queries, shift = 300_000, 20, 1 / 60
    rng = np.random.default_rng(5)
    loss = np.zeros(trials)
    for _ in range(queries):
        edge = 1.0 + unit_noise(family, trials, rng)
        with np.errstate(invalid="ignore"):
            loss += np.where(edge > shift, potential(family, edge - shift) - potential(family, edge), np.inf)
    mean = float(-np.expm1(np.minimum(1.0 - loss, 0.0)).mean())
    exact_value = composed_delta(family=family, radius=60.0, sensitivity=1.0, epsilon=1.0, queries=queries, step=0.002)
    assert exact_value == pytest.approx(delta, rel=1e-3)
    log_alarm = math.log(2 / FALSE_ALARM)
    band = log_alarm / (3 * trials) + math.sqrt((log_alarm / (3 * trials)) ** 2 + 2 * exact_value * log_alarm / trials)
    assert abs(mean - exact_value) <= band < exact_value / 2
    assert shape(family).acceptance > 0.4


MIXTURE = GaussianMixture((0.3, 0.7), (0.0, 4.0), (1.0, 1.5))
OTHER = GaussianMixture((0.3, 0.7), (1.0, 4.5), (1.0, 1.5))
PAIR = ((Secret("a", MIXTURE), Secret("b", OTHER)),)


def test_gaussian_mixture():
    draws = MIXTURE.sample(100_000, np.random.default_rng(6))

    def cdf_of_scale(factor):
        return mixed(
            (0.3, 0.7), [lambda x, m=m, s=s: special.ndtr((x - m) / (s * factor)) for m, s in ((0, 1), (4, 1.5))]
        )

    assert_fits(draws, cdf_of_scale)


@pytest.mark.parametrize("secret", [0, 1])
def test_wasserstein_mechanism(secret):
    mechanism = WassersteinMechanism(PAIR, 0.1, bound=1.0)  # scale 10: the noise dominates the prior
    draws = mechanism.sample(PAIR[0][secret], 100_000, np.random.default_rng(7 + secret))
    law = PAIR[0][secret].law
    assert_fits(
        draws,
        lambda factor: mixed(
            law.weights,
            [laplace_gaussian_cdf(m, 10.0 * factor, s) for m, s in zip(law.means, law.stds, strict=True)],
        ),
    )


def test_unequal_spread_laplace():
    pair = ((Secret("a", GaussianMixture.single(0.0, 1.0)), Secret("b", GaussianMixture.single(1.0, 1.5))),)
    mechanism = UnequalSpreadLaplace(pair, 0.2, 1e-3)
    draws = mechanism.sample(pair[0][1], 100_000, np.random.default_rng(9))
    assert_fits(draws, lambda factor: laplace_gaussian_cdf(1.0, mechanism.scale * factor, 1.5))


def test_gaussian_masking():
    mechanism = GaussianMasking(PAIR, 0.5, 1e-3)
    draws = mechanism.sample(PAIR[0][0], 100_000, np.random.default_rng(10))

    def cdf_of_scale(factor):
        stds = np.hypot(MIXTURE.stds, mechanism.noise_std * factor)
        parts = [lambda x, m=m, s=s: special.ndtr((x - m) / s) for m, s in zip(MIXTURE.means, stds, strict=True)]
        return mixed(MIXTURE.weights, parts)

    assert_fits(draws, cdf_of_scale)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_spherical_laplace(dimension):
    """The length is Gamma(d), and the cosine with any axis has a symmetric beta law: nothing else is left but rotation."""
    location = tuple(float(k) for k in range(dimension))
    draws = SphericalLaplace(location, 3.0).sample(60_000, np.random.default_rng(11)) - np.array(location)
    length = np.linalg.norm(draws, axis=1)
    assert_fits(length, lambda factor: lambda x: special.gammainc(dimension, x / (3.0 * factor)))
    if dimension > 1:
        for axis in (np.eye(dimension)[0], np.full(dimension, dimension**-0.5)):
            half = (dimension - 1) / 2
            cosine = np.clip(draws @ axis / length, -1.0, 1.0)
            assert not rejects(cosine, lambda c, half=half: special.betainc(half, half, (1 + c) / 2))


PUBLIC = np.array([(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.5)])
PRIVATE = np.array([(1.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])


def test_importance_weights_carry_the_noise_they_declare():
    """Lossless weights give the noisy coefficients back; their noise is spherical Laplace of the declared scale.

    Two dimensions and a lambda for which no weight underflows.
    """
    mechanism = ImportanceWeighting(PUBLIC, epsilon=1.0, regularisation=5.0)
    law = mechanism.coefficient_law(PRIVATE)
    recovered = mechanism.recover(mechanism.sample(PRIVATE, 60_000, np.random.default_rng(12)))
    length = np.linalg.norm(recovered - np.array(law.location), axis=1)
    assert_fits(length, lambda factor: lambda x: special.gammainc(2, x / (law.scale * factor)))


def test_per_coordinate_noise_is_laplace():
    mechanism = ImportanceWeighting(PUBLIC, epsilon=1.0, regularisation=5.0)
    law = mechanism.coefficient_law(PRIVATE)
    recovered = mechanism.recover(PerCoordinateNoise(mechanism).sample(PRIVATE, 60_000, np.random.default_rng(13)))
    for column in (0, 1):
        assert_fits(
            np.abs(recovered[:, column] - law.location[column]),
            lambda factor: lambda x: -np.expm1(-x / (law.scale * factor)),
        )


def test_delta_method_variance():
    """Noise scale 0.05 on the worked example: 3.7311e-4 to first order, simulated before as 3.7214e-4.

    The estimates lie in [0, 1]; the sample variance of n = 400 000 has a relative standard error of sqrt((kurtosis - 1) / n),
    below 0.5 per cent for these laws, and the second-order bias is about 0.3 per cent: 5 per cent is beyond ten standard errors.
    """
    with_constant = [np.hstack([rows, np.ones((len(rows), 1))]) for rows in (PUBLIC, PRIVATE)]
    mechanism = ImportanceWeighting(with_constant[0], epsilon=1.0, regularisation=0.1)
    beta = mechanism.coefficients(with_constant[1])
    draws = SphericalLaplace(tuple(beta.tolist()), 0.05).sample(400_000, np.random.default_rng(14))
    estimates = mechanism.weights(draws) @ PUBLIC[:, 0] / 5
    predicted = delta_method_variance(PUBLIC[:, 0], with_constant[0], mechanism.weights(beta), 0.05)
    assert estimates.var() == pytest.approx(predicted, rel=0.05)
    assert estimates.var() == pytest.approx(3.7214e-4, rel=0.05)
    assert estimate(PUBLIC[:, 0], mechanism.weights(beta)) == pytest.approx(estimates.mean(), abs=0.01)


UPDATES = np.array([[3.0, 4.0], [0.3, -0.4], [0.0, 0.0]])


def normal_cdf(mean, std):
    return lambda factor: lambda x: special.ndtr((x - mean) / (std * factor))


def test_federated_averaging():
    mechanism = FederatedAveraging(clipping_norm=1.0, noise_multiplier=0.6, rounds=2)
    draws = mechanism.sample(UPDATES, 60_000, np.random.default_rng(15))
    for column, mean in enumerate((0.3, 0.4 / 3, 0.3, 0.4 / 3)):
        assert_fits(draws[:, column], normal_cdf(mean, 0.2))
    # Rounds and coordinates are independent: the sum of four has twice the standard deviation of one.
    assert_fits(draws.sum(axis=1), normal_cdf(0.6 + 0.8 / 3, 0.4))


def test_one_round():
    rng = np.random.default_rng(16)
    draws = np.array([one_round(UPDATES, 1.0, 0.6, rng=rng).aggregate[0] for _ in range(25_000)])
    assert_fits(draws, normal_cdf(0.3, 0.2))


ADAPTIVE = AdaptiveRound(
    clipping_norm=1.0, noise_multiplier=0.5, adaptive=AdaptiveClipping(rule="flower", count_std=2.0, learning_rate=2.0)
)


def test_adaptive_round():
    draws = ADAPTIVE.sample(UPDATES, 60_000, np.random.default_rng(17))
    assert_fits(draws[:, 0], normal_cdf(1.0, 2.0))
    assert_fits(draws[:, 1], normal_cdf(0.3, ADAPTIVE.update_std(3)))
    assert_fits(
        (draws[:, 0] - 1.0) / 2.0 + (draws[:, 2] - 0.4 / 3) / ADAPTIVE.update_std(3), normal_cdf(0.0, math.sqrt(2.0))
    )


def test_noise_of_updated_norm_follows_the_count():
    draws = NoiseOfUpdatedNorm(right=ADAPTIVE).sample(UPDATES, 60_000, np.random.default_rng(18))
    std = ADAPTIVE.update_std(3) * np.exp(-2.0 * (draws[:, 0] / 3 - 0.5))
    assert_fits(draws[:, 0], normal_cdf(1.0, 2.0))
    assert_fits((draws[:, 1] - 0.3) / std, normal_cdf(0.0, 1.0))
    assert rejects((draws[:, 1] - 0.3) / ADAPTIVE.update_std(3), normal_cdf(0.0, 1.0)(1.0))


@pytest.mark.parametrize("multiplier", [1.0, 3.0])
def test_truncated_noise_frequencies(multiplier):
    """Each of 21 frequencies within Hoeffding's band of level 1e-6 / 21; a scale off by a tenth leaves it somewhere."""
    n = 200_000
    broken = TruncatedNoise(noise_multiplier=multiplier)
    draws = broken.sample([1, 0], n, np.random.default_rng(19))
    outcomes = np.arange(-9, 12)
    frequency = (draws[:, None] == outcomes).mean(axis=0)
    band = math.sqrt(math.log(2 * outcomes.size / FALSE_ALARM) / (2 * n))
    assert np.abs(frequency - np.exp(broken.law([1, 0]).log_prob(outcomes.tolist()))).max() <= band
    for factor in WRONG_SCALES:
        wrong = TruncatedNoise(noise_multiplier=multiplier * factor).law([1, 0]).log_prob(outcomes.tolist())
        assert np.abs(frequency - np.exp(wrong)).max() > band
