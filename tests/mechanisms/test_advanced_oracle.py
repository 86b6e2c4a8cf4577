"""Bounded noise, Pufferfish, importance weighting and federated averaging against independent computations.

Oracles: mpmath quadrature and root finding, brute-force sums and grids, scipy's optimisers and quadrature, dp-accounting. None
of them shares code with what it checks.
"""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, optimize, special

from dpaudit.claims import gaussian_delta
from mechanisms._common import gaussian_epsilon
from mechanisms.bounded_noise import composed_delta, truncated_laplace_half_width
from mechanisms.bounded_noise.density import FAMILIES, one_query_delta, potential, shape, unit_cdf
from mechanisms.broken.federated import NoiseOfUpdatedNorm, TruncatedNoise
from mechanisms.federated import (
    AdaptiveClipping,
    AdaptiveRound,
)
from mechanisms.federated.accounting import poisson_epsilon, update_noise_multiplier
from mechanisms.importance_weighting import fit_coefficients, spherical_laplace_delta
from mechanisms.pufferfish import Secret, masking_delta
from mechanisms.pufferfish.masking_formulas import gaussian_renyi
from mechanisms.pufferfish.wasserstein import GaussianMixture, wasserstein_infinity


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(24):
        yield


def mp_weight(family, x):
    """exp(-g(x)); zero where mpmath would try to evaluate exp(exp(1e6))."""
    inside = 1 - mp.mpf(x) ** 2
    if (inside < mp.mpf("0.01") and family == "DE") or inside <= mp.mpf("1e-6"):
        return mp.mpf(0)
    return mp.exp(-{"DE": lambda q: mp.exp(1 / q), "p1": lambda q: 1 / q, "p2": lambda q: q**-2}[family](inside))


@pytest.mark.parametrize("family", FAMILIES)
def test_shape_constants(family):
    points = mp.linspace(-1, 1, 17)
    normaliser = mp.quad(lambda x: mp_weight(family, x), points)
    second = mp.quad(lambda x: x**2 * mp_weight(family, x), points) / normaliser
    absolute = 2 * mp.quad(lambda x: x * mp_weight(family, x), mp.linspace(0, 1, 9)) / normaliser
    known = shape(family)
    assert known.log_normaliser == pytest.approx(float(mp.log(normaliser)), abs=1e-12)
    assert known.std == pytest.approx(float(mp.sqrt(second)), rel=1e-12)
    assert known.mean_absolute == pytest.approx(float(absolute), rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edge", [0.08, 0.3, 0.9, 1.4])
def test_unit_cdf_has_relative_accuracy(family, edge):
    normaliser = mp.quad(lambda x: mp_weight(family, x), mp.linspace(-1, 1, 17))
    mass = mp.quad(lambda x: mp_weight(family, x), mp.linspace(-1, -1 + mp.mpf(edge), 9)) / normaliser
    assert float(unit_cdf(family, edge)) == pytest.approx(float(mass), rel=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("epsilon", "shift"), [(1.0, 1 / 64), (0.3, 0.2), (4.0, 0.2), (0.0, 1.0)])
def test_one_query_delta(family, epsilon, shift):
    """The definition: the integral of (f(x) - e^eps f(x - s))_+, cut at the sign change that mpmath finds."""
    s, e = mp.mpf(shift), mp.mpf(epsilon)
    normaliser = mp.quad(lambda x: mp_weight(family, x), mp.linspace(-1, 1, 17))

    def difference(x):
        other = mp_weight(family, x - s) if x - s > -1 else mp.mpf(0)
        return mp_weight(family, x) - mp.exp(e) * other

    low, high = -1 + s, s / 2 + mp.mpf("1e-9")
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if difference(middle) > 0 or mp_weight(family, middle) == 0 else (low, middle)
    value = (
        mp.quad(difference, mp.linspace(-1, -1 + s, 5)) + mp.quad(difference, mp.linspace(-1 + s, low, 9))
    ) / normaliser
    assert float(one_query_delta(family, epsilon, shift)) == pytest.approx(float(value), rel=1e-9)


def two_query_delta(family, epsilon, first, second_shift):
    """E over the first answer of the second query's divergence at what is left of epsilon, by the trapezoidal rule."""
    edge = np.linspace(0.0, 2.0, 2001)[1:-1]
    density = np.exp(-potential(family, edge) - shape(family).log_normaliser)
    edge, density = edge[density > 1e-30], density[density > 1e-30]
    # Loss of the first answer; where the other side cannot answer, everything is lost.
    left = epsilon - np.where(edge > first, potential(family, edge - first) - potential(family, edge), np.inf)
    shifts = second_shift(edge)
    value = np.ones_like(left)
    for shift in np.unique(shifts):
        here = np.isfinite(left) & (shifts == shift)
        divergence = one_query_delta(family, np.abs(left[here]), float(shift))
        value[here] = np.where(left[here] >= 0.0, divergence, 1.0 - np.exp(left[here]) * (1.0 - divergence))
    return float(density @ value) * 1e-3


def test_two_adaptive_queries():
    """By direct quadrature fixed shifts give 0.00972381, adaptively shrunk ones less; the PLD bound is 0.00972384."""
    shift = 1 / 30
    fixed = two_query_delta("DE", 0.3, shift, lambda edge: np.full_like(edge, shift))
    shrunk = two_query_delta("DE", 0.3, shift, lambda edge: np.where(edge > 1.0, shift, shift / 2))
    bound = composed_delta(family="DE", radius=30.0, sensitivity=1.0, epsilon=0.3, queries=2, step=5e-4)
    assert fixed == pytest.approx(0.00972381, abs=6e-9)
    assert shrunk < fixed  # a sign changes nothing, by symmetry; a smaller move only helps
    assert fixed <= bound == pytest.approx(0.00972384, abs=3e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_composition_of_two_queries_is_a_tight_upper_bound(family):
    value = two_query_delta(family, 0.9, 1 / 12, lambda edge: np.full_like(edge, 1 / 12))
    bound = composed_delta(family=family, radius=12.0, sensitivity=1.0, epsilon=0.9, queries=2, step=0.002)
    assert value * (1 - 1e-9) <= bound == pytest.approx(value, rel=1e-4)


def test_truncated_laplace_half_width_meets_the_definition():
    """Noise on [-A, A]: delta is the mass of the strip that the neighbour cannot reach, (e^(1/b) - 1) / (2 (e^(A/b) - 1))."""
    width = truncated_laplace_half_width(epsilon=0.7, delta=1e-4, sensitivity=2.0)
    scale = 2.0 / 0.7
    strip = mp.quad(lambda x: mp.exp(-x / scale), [width - 2.0, width])
    total = 2 * mp.quad(lambda x: mp.exp(-x / scale), [0, width])
    assert float(strip / total) == pytest.approx(1e-4, rel=1e-12)


@pytest.mark.parametrize(
    ("dimension", "shift", "epsilon"), [(2, 1.0, 0.5), (2, 6.0, 1.0), (4, 2.5, 0.7), (7, 0.3, 0.0)]
)
def test_spherical_laplace_delta(dimension, shift, epsilon):
    """Polar coordinates about each centre: the length is Gamma(d), the cosine of the angle has a beta law."""

    def cosine_below(c):
        if c <= -1:
            return mp.mpf(0)
        return mp.betainc((dimension - 1) / 2, (dimension - 1) / 2, 0, min((1 + c) / 2, 1), regularized=True)

    def mass(threshold, kinks):
        def integrand(r):
            return r ** (dimension - 1) * mp.exp(-r) / mp.gamma(dimension) * cosine_below(threshold(r))

        return mp.quad(integrand, [0, *sorted(kinks), 12, 40, 90])

    t, e = mp.mpf(shift), mp.mpf(epsilon)
    with mp.workdps(18):
        # c <= c*(r) is the half-space-like region |x - te| - |x| >= e seen from either centre; kinks where |c*| = 1.
        first = mass(lambda r: (t**2 - e**2 - 2 * r * e) / (2 * r * t), [(t - e) / 2, *([(t + e) / 2] if e else [])])
        second = mass(lambda r: (e**2 - t**2 - 2 * r * e) / (2 * r * t), [(t + e) / 2])
        expected = float(first - mp.exp(e) * second)
    assert spherical_laplace_delta(epsilon, shift=shift, dimension=dimension) == pytest.approx(expected, rel=1e-8)


def test_spherical_laplace_delta_in_many_dimensions():
    """Brute force over the first coordinate and the distance to the axis, with the surface of the remaining sphere."""
    d, t, e = 12, 4.0, 0.5
    along, radius = np.meshgrid(np.linspace(-60, 64, 2481), np.linspace(0, 60, 1201)[1:], indexing="ij")
    near, far = np.hypot(along, radius), np.hypot(along - t, radius)
    log_surface = math.log(2) + (d - 1) / 2 * math.log(math.pi) - special.gammaln((d - 1) / 2)
    log_normaliser = math.log(2) + d / 2 * math.log(math.pi) - special.gammaln(d / 2) + special.gammaln(d)
    weight = np.exp(log_surface - log_normaliser + (d - 2) * np.log(radius))
    value = (weight * np.maximum(np.exp(-near) - np.exp(e - far), 0.0)).sum() * 0.05 * 0.05
    assert spherical_laplace_delta(e, shift=t, dimension=d) == pytest.approx(value, rel=1e-4)


def test_newton_reaches_the_minimum_to_the_last_digits():
    public = [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1), (0.5, 0.5, 1)]
    private = [(1, 1, 1), (1, 1, 1), (1, 0, 1), (0, 1, 1)]
    penalty = mp.mpf("0.1")

    def gradient(*b):
        def score(x):
            return sum(mp.mpf(v) * w for v, w in zip(x, b, strict=True))

        return [
            -sum(x[j] / (1 + mp.exp(score(x))) for x in private) / 4
            + sum(x[j] / (1 + mp.exp(-score(x))) for x in public) / 5
            + penalty * b[j]
            for j in range(3)
        ]

    expected = [float(value) for value in mp.findroot(gradient, [0.4, 0.4, -0.4])]
    assert fit_coefficients(private, public, regularisation=0.1) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("regularisation", [1e-4, 0.1, 100.0])
def test_newton_agrees_with_bfgs(regularisation):
    rng = np.random.default_rng(3)
    private, public = rng.random((30, 4)) ** 2, rng.random((50, 4))

    def objective(b):
        risks = np.logaddexp(0, -private @ b).mean() + np.logaddexp(0, public @ b).mean()
        return risks + regularisation / 2 * b @ b

    found = fit_coefficients(private, public, regularisation=regularisation)
    other = optimize.minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    assert objective(found) <= objective(other) + 1e-13
    assert found == pytest.approx(other, abs=1e-4 * max(1.0, float(np.abs(other).max())))


P_A = GaussianMixture((0.3, 0.7), (0.0, 4.0), (1.0, 1.5))
Q_A = GaussianMixture((0.3, 0.7), (1.0, 4.5), (1.0, 1.5))


def brute_quantiles(law, logits):
    x = np.linspace(-30.0, 40.0, 200_001)
    cdf, sf = (
        sum(w * special.ndtr(sign * (x - m) / s) for w, m, s in zip(law.weights, law.means, law.stds, strict=True))
        for sign in (1, -1)
    )
    with np.errstate(divide="ignore"):
        scale = np.log(cdf) - np.log(sf)
    inside = np.isfinite(scale) & (np.abs(scale) < 250)
    return np.interp(logits, scale[inside], x[inside])


@pytest.mark.parametrize(
    ("P", "Q"),
    [
        (P_A, Q_A),
        (P_A, GaussianMixture((0.6, 0.4), (0.0, 4.0), (1.0, 1.5))),
        (GaussianMixture((0.5, 0.5), (-3.0, 3.0), (0.2, 0.2)), GaussianMixture((0.4, 0.6), (-3.0, 3.0), (0.2, 0.2))),
    ],
)
def test_w_infinity_of_mixtures_against_dense_quantiles(P, Q):
    logits = np.linspace(-150.0, 150.0, 100_001)
    gap = np.abs(brute_quantiles(P, logits) - brute_quantiles(Q, logits)).max()
    assert wasserstein_infinity(P, Q) == pytest.approx(gap, abs=1e-5)
    assert wasserstein_infinity(P, Q) >= gap - 1e-6  # a distance that is too small would break the claim


@pytest.mark.parametrize("noise_std", [0.0, 2.0])
def test_masking_delta_by_scipy_quadrature(noise_std):
    def density(law, x):
        stds = np.hypot(law.stds, noise_std)
        z = (x - np.array(law.means)) / stds
        return float(np.dot(law.weights, np.exp(-(z**2) / 2) / (stds * math.sqrt(2 * math.pi))))

    def excess(first, second):
        grid = np.linspace(-40.0, 45.0, 8501)
        gap = np.array([density(first, x) - math.exp(0.5) * density(second, x) for x in grid])
        kinks = grid[:-1][np.sign(gap[:-1]) != np.sign(gap[1:])]
        roots = [
            optimize.brentq(lambda x: density(first, x) - math.exp(0.5) * density(second, x), k, k + 0.01, xtol=1e-14)
            for k in kinks
        ]
        ends = [-40.0, *roots, 45.0]
        return sum(
            integrate.quad(
                lambda x: max(density(first, x) - math.exp(0.5) * density(second, x), 0.0),
                a,
                b,
                limit=200,
                epsabs=1e-13,
            )[0]
            for a, b in itertools.pairwise(ends)
        )

    expected = max(excess(P_A, Q_A), excess(Q_A, P_A))
    assert masking_delta([(Secret("a", P_A), Secret("b", Q_A))], 0.5, noise_std) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("order", "other_variance"), [(2.0, 6.25), (0.5, 1.0), (3.0, 4.0)])
def test_gaussian_renyi(order, other_variance):
    p, q = (
        lambda x, m=m, v=v: mp.exp(-((x - m) ** 2) / (2 * v)) / mp.sqrt(2 * mp.pi * v)
        for m, v in ((0, mp.mpf(5)), (1, mp.mpf(other_variance)))
    )
    integral = mp.quad(lambda x: p(x) ** order * q(x) ** (1 - order), mp.linspace(-60, 60, 25))
    value = gaussian_renyi(mean=0.0, variance=5.0, other_mean=1.0, other_variance=other_variance, order=order)
    assert value == pytest.approx(float(mp.log(integral) / (order - 1)), rel=1e-10)


def test_gaussian_epsilon_against_mpmath_and_dp_accounting():
    for mu, delta in ((1.0, 1e-5), (0.2, 1e-9), (3.0, 0.01)):
        epsilon = mp.mpf(gaussian_epsilon(mu, delta))
        value, slope = (
            mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu),
            -mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu),
        )
        assert abs(float((value - mp.mpf(delta)) / slope)) < 1e-10 * float(
            epsilon
        )  # one Newton step moves it no further
    pld = poisson_epsilon(1.0, sampling_rate=1.0, rounds=10, delta=1e-5)
    assert gaussian_epsilon(math.sqrt(10.0), 1e-5) == pytest.approx(pld, abs=1e-4)


def test_update_noise_multiplier_against_mpmath():
    for z, count_std in ((1.0, 5.0), (1.9999, 1.0), (1e-8, 50.0)):
        expected = (mp.mpf(z) ** -2 - (2 * mp.mpf(count_std)) ** -2) ** mp.mpf("-0.5")
        assert update_noise_multiplier(z, count_std) == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 3.0])
def test_truncated_noise_law(multiplier):
    broken = TruncatedNoise(noise_multiplier=multiplier)
    std = mp.mpf(multiplier)

    def mass(k):
        if k == 0:
            return mp.ncdf(1 / std) - mp.ncdf(-1 / std)
        return mp.ncdf(-abs(k) / std) - mp.ncdf(-(abs(k) + 1) / std)

    outcomes = list(range(-12, 13))
    assert broken.law([0]).log_prob(outcomes) == pytest.approx([float(mp.log(mass(k))) for k in outcomes], rel=1e-9)
    for epsilon in (0.0, 0.5, 2.0):
        total = sum(max(mass(k) - mp.exp(epsilon) * mass(k - 1), 0) for k in range(-60, 61))
        assert broken.delta_exact(epsilon) == pytest.approx(float(total), rel=1e-9)


def test_truncated_noise_mu_is_the_largest_over_the_profile():
    """The smallest mu that covers the profile at each epsilon; its supremum is the mu."""
    broken = TruncatedNoise(noise_multiplier=1.0)
    needed = [
        optimize.brentq(lambda mu, e=e: float(gaussian_delta(e, mu)) - broken.delta_exact(e), 0.01, 10.0)
        for e in np.linspace(0.0, 3.0, 61)
    ]
    assert max(needed) == pytest.approx(broken.mu_exact, rel=1e-6)


def test_noise_of_updated_norm_by_brute_force():
    """The joint density of count and average on a grid, one coordinate."""
    adaptive = AdaptiveClipping(rule="flower", count_std=5.0)
    broken = NoiseOfUpdatedNorm(right=AdaptiveRound(clipping_norm=1.0, noise_multiplier=1.0, adaptive=adaptive))
    crowd = np.full((99, 1), 2.0)
    data, neighbour = np.vstack([[2.0], crowd]), np.vstack([[-2.0], crowd])
    counts = np.linspace(100 - 40.0, 100 + 40.0, 401)
    std = update_noise_multiplier(1.0, 5.0) / 100 * np.exp(-0.2 * (counts / 100 - 0.5))[:, None]
    averages = np.linspace(0.99 - 0.12, 0.99 + 0.12, 6_001)[None, :]
    weight = np.exp(-(((counts - 100) / 5.0) ** 2) / 2)[:, None] / (5.0 * math.sqrt(2 * math.pi))
    p, q = (
        weight * np.exp(-(((averages - mean) / std) ** 2) / 2) / (std * math.sqrt(2 * math.pi)) for mean in (1.0, 0.98)
    )
    for epsilon in (0.0, 1.0):
        value = np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * (counts[1] - counts[0]) * 4e-5
        assert broken.pair_delta(data, neighbour, epsilon) == pytest.approx(value, rel=1e-5)
