"""Divergences against mpmath, brute force, closed forms and the values of the reference tables.

Nothing here uses the code under test to make its reference: densities are written again in mpmath with 40 digits, sign
changes are found by its root finder, and integrals are closed form or its quadrature.
"""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from dpaudit import exact
from dpaudit.exact import (
    Clipped,
    Density,
    Discrete,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    LaplaceGaussian,
    Mixture,
    PiecewiseConstant,
    PiecewiseExponential,
    Product,
    Rounded,
    Truncated,
    WithAtoms,
)

RELATIVE = 1e-10


@pytest.fixture(autouse=True)
def _forty_digits():
    with mp.workdps(40):
        yield


def agrees(value, reference, rel=RELATIVE):
    return abs(mp.mpf(value) - reference) <= rel * abs(reference)


def gaussian(x, m, s):
    return mp.exp(-(((x - m) / s) ** 2) / 2) / (s * mp.sqrt(2 * mp.pi))


def laplace(x, m, b):
    return mp.exp(-abs(x - m) / b) / (2 * b)


def laplace_gaussian(x, m, b, s):
    t, half = x - m, s * s / (2 * b * b)
    return (mp.exp(half - t / b) * mp.ncdf(t / s - s / b) + mp.exp(half + t / b) * mp.ncdf(-t / s - s / b)) / (2 * b)


def hockey_stick(p, q, epsilon, brackets, ends):
    """Integral of p - e^epsilon q between roots: each bracket holds one, ends says which pieces are positive."""
    level = mp.mpf(epsilon)
    found = [mp.findroot(lambda x: mp.log(p(x) / q(x)) - level, b, solver="anderson", tol=1e-35) for b in brackets]
    points = [*found] if ends == "inside" else [-mp.inf, *found] if ends == "left" else [*found, mp.inf]
    return mp.quad(lambda x: p(x) - mp.exp(level) * q(x), points)


# ----------------------------------------------------------------------------------------------- the reference tables


def test_gaussian_calibration_of_the_notes():
    # docs/theory.md R19, reference values gauss_*: sigma classical, its true delta, true delta of the sampler with sigma/sqrt(2)
    for epsilon, sigma, true_delta, buggy_delta in (
        (0.5, "9.689610525210778842517284", "1.607853993087429216291802e-8", "0.0000146517169057440475328281"),
        (0.9, "5.38311695845043269028738", "3.525084723415834837267245e-8", "0.00003204210327972938674291063"),
        (0.1, "48.44805262605389421258642", "2.635940600317434639714912e-9", "0.000002404611414785661988360844"),
    ):
        scale = float(sigma)
        assert agrees(exact.delta(Gaussian(0.0, scale), Gaussian(1.0, scale), epsilon), mp.mpf(true_delta))
        scale /= math.sqrt(2.0)
        assert agrees(exact.delta(Gaussian(0.0, scale), Gaussian(1.0, scale), epsilon), mp.mpf(buggy_delta))
    value = exact.delta(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0), 1.0)
    assert agrees(value, mp.mpf("0.1269367375066439458008296"))  # gauss_delta_sigma1_eps1


def gaussian_mixture(shift, tau=0.0, laplace_scale=None):
    """The two priors of example A (docs/mechanisms.md section 2), behind Gaussian or Laplace noise."""
    means = (0.0, 4.0) if not shift else (1.0, 4.5)
    if laplace_scale is not None:
        return Mixture([0.3, 0.7], [LaplaceGaussian(m, laplace_scale, s) for m, s in zip(means, (1, 1.5), strict=True)])
    return Mixture([0.3, 0.7], [Gaussian(m, math.hypot(s, tau)) for m, s in zip(means, (1.0, 1.5), strict=True)])


@pytest.mark.parametrize(
    ("tau", "table"), [(0.0, 0.0726653), (0.5, 0.0601294), (1.0, 0.0383372), (2.0, 0.0115784), (4.823933, 1e-4)]
)
def test_example_a_gaussian_masking(tau, table):
    assert exact.delta(gaussian_mixture(0, tau), gaussian_mixture(1, tau), 0.5) == pytest.approx(table, rel=1e-5)


def test_example_a_gaussian_masking_to_ten_digits():
    def density(means):
        return lambda x: (
            mp.mpf("0.3") * gaussian(x, means[0], mp.sqrt(2))
            + mp.mpf("0.7") * gaussian(x, means[1], mp.sqrt(mp.mpf("3.25")))
        )

    p, q = density((0, 4)), density((1, mp.mpf("4.5")))
    reference = hockey_stick(p, q, 0.5, [(-1, 1)], "left")
    found = exact.delta(gaussian_mixture(0, 1.0), gaussian_mixture(1, 1.0), 0.5, order="forward")
    assert agrees(found, reference)


def test_example_a_laplace_noise():
    P, Q = gaussian_mixture(0, laplace_scale=1.0), gaussian_mixture(1, laplace_scale=1.0)
    assert exact.epsilon(P, Q, order="forward") == pytest.approx(0.95315, abs=5e-6)
    assert exact.epsilon(Q, P, order="forward") == pytest.approx(0.50271, abs=5e-6)
    assert exact.delta(P, Q, 0.5, order="forward") == pytest.approx(0.026908, abs=5e-7)
    assert exact.delta(Q, P, 0.5, order="forward") == pytest.approx(5.66e-6, rel=1e-3)

    def density(means):
        return lambda x: (
            mp.mpf("0.3") * laplace_gaussian(x, means[0], 1, 1)
            + mp.mpf("0.7") * laplace_gaussian(x, means[1], 1, mp.mpf("1.5"))
        )

    p, q = density((0, 4)), density((1, mp.mpf("4.5")))
    assert agrees(exact.delta(P, Q, 0.5, order="forward"), hockey_stick(p, q, 0.5, [(-1, 2)], "left"))
    # Towards minus infinity the ratio is that of sum_c w_c exp(s_c^2 / 2 + m_c ...): the supremum in this order.
    left = [
        mp.mpf("0.3") * mp.exp(mp.mpf("0.5") - a) + mp.mpf("0.7") * mp.exp(mp.mpf("1.125") - b)
        for a, b in ((0, 4), (1, mp.mpf("4.5")))
    ]
    assert agrees(exact.epsilon(P, Q, order="forward"), mp.log(left[0] / left[1]))


def test_example_b():
    P, Q = Gaussian(0.0, 1.0), Gaussian(1.0, 1.5)
    # log q/p > 1 outside the roots of a quadratic; log p/q has its maximum 0.8055 at x = -0.8, so the other order is 0
    wide, e = mp.mpf("1.5"), mp.mpf(1)
    a, b, c = 1 / mp.mpf(2) - 1 / (2 * wide**2), 1 / wide**2, -1 / (2 * wide**2) - mp.log(wide) - e
    low, high = ((-b + sign * mp.sqrt(b * b - 4 * a * c)) / (2 * a) for sign in (-1, 1))
    outside = [(mp.ncdf((low - 1) / wide), mp.ncdf(low)), (mp.ncdf((1 - high) / wide), mp.ncdf(-high))]
    reference = mp.fsum(q - mp.exp(e) * p for q, p in outside)
    assert agrees(exact.delta(Q, P, 1.0, order="forward"), reference)
    assert exact.delta(P, Q, 1.0, order="forward") == 0.0
    assert agrees(exact.epsilon(P, Q, order="forward"), mp.log(wide) + mp.mpf(2) / 9 + mp.mpf(8) / 45)
    assert exact.epsilon(Q, P, order="forward") == math.inf
    assert exact.delta(P, Q, 1.0) == pytest.approx(0.200413, abs=5e-7)
    b = 2.645263
    noisy = LaplaceGaussian(0.0, b, 1.0), LaplaceGaussian(1.0, b, 1.5)
    assert exact.epsilon(*noisy, order="forward") == pytest.approx(0.3041, abs=5e-5)
    assert exact.epsilon(*noisy[::-1], order="forward") == pytest.approx(0.4674, abs=5e-5)
    assert exact.delta(*noisy, 1.0) == 0.0
    tau = 3.488738
    assert exact.delta(Gaussian(0.0, math.hypot(1.0, tau)), Gaussian(1.0, math.hypot(1.5, tau)), 1.0) == pytest.approx(
        1e-3, rel=1e-6
    )


def test_equal_variances_renyi_and_kullback_leibler():
    s = math.sqrt(5.0)
    assert exact.delta(Gaussian(0.0, s), Gaussian(1.0, s), 0.5) == pytest.approx(0.0373987783, abs=5e-11)
    assert exact.renyi(Gaussian(0.0, s), Gaussian(1.0, 2.5), 2.0) == pytest.approx(0.1537443306, abs=5e-11)
    assert exact.renyi(Gaussian(0.0, 1.0), Gaussian(0.0, s), 1.0) == pytest.approx(0.4047189562, abs=5e-11)


def test_discrete_secret_behind_laplace_noise():
    P, Q = (Mixture(w, [Laplace(k, 1.0) for k in range(4)]) for w in ((0.2, 0.3, 0.3, 0.2), (0.1, 0.2, 0.4, 0.3)))
    weights = [[mp.mpf(w) / 10 for w in row] for row in ((2, 3, 3, 2), (1, 2, 4, 3))]
    left, right = ([mp.log(mp.fsum(w * mp.exp(s * k) for k, w in enumerate(row))) for row in weights] for s in (-1, 1))
    assert exact.epsilon(P, Q, order="forward") == pytest.approx(0.3970573062, abs=5e-11)
    assert exact.epsilon(Q, P, order="forward") == pytest.approx(0.2834515129, abs=5e-11)
    assert agrees(exact.epsilon(P, Q, order="forward"), left[0] - left[1])
    assert agrees(exact.epsilon(Q, P, order="forward"), right[1] - right[0])


def inverse_sensitivity(data, rho):
    """Quantile of rank 3 on [0, 1], epsilon 1 (docs/mechanisms.md section 5): gaps shifted by rho away from the median."""
    x, r = sorted(data), 3
    edges = [0.0, *(max(0.0, v - rho) for v in x[: r - 1])]
    lengths = [r - i for i in range(r)]
    edges += [x[r - 1] - rho, x[r - 1] + rho] if rho else [x[r - 1]]
    lengths += [0] * bool(rho)
    edges += [*(min(1.0, v + rho) for v in x[r:]), 1.0]
    lengths += [i + 1 for i in range(len(x) - r + 1)]
    keep = [j for j in range(len(lengths)) if edges[j + 1] > edges[j]]
    borders = [edges[keep[0]], *(edges[j + 1] for j in keep)]
    return PiecewiseConstant(borders, [-0.5 * lengths[j] for j in keep])


@pytest.mark.parametrize(
    ("rho", "normaliser", "table"), [(0.0, 0.410524950529, 0.2767264503), (0.05, 0.488211934514, 0.6909139250)]
)
def test_inverse_sensitivity_pair(rho, normaliser, table):
    x, neighbour = (0.1, 0.2, 0.35, 0.5, 0.9), (0.1, 0.2, 0.95, 0.5, 0.9)
    law = inverse_sensitivity(x, rho)
    assert math.exp(law.log_normaliser) == pytest.approx(normaliser, abs=1e-12)
    assert exact.epsilon(law, inverse_sensitivity(neighbour, rho)) == pytest.approx(table, abs=5e-11)


def test_inverse_sensitivity_on_a_finite_range():
    laws = []
    for lengths in ((2, 1, 0, 1, 1), (2, 2, 1, 1, 0)):
        weights = -0.5 * np.array(lengths)
        laws.append(Discrete.from_log(range(5), weights - np.log(np.exp(weights).sum())))
    assert exact.epsilon(*laws) == pytest.approx(0.5778227855, abs=5e-11)


def bounded_noise(location, radius):
    def log_density(x):
        with np.errstate(divide="ignore", over="ignore"):
            return -np.exp(1.0 / (1.0 - ((x - location) / radius) ** 2)) - math.log(radius * 0.054966054709)

    return Density.normalised(log_density, [location], (location - radius, location + radius))


def test_bounded_noise_profile():
    # docs/mechanisms.md section 1: double exponential noise, delta_1 at epsilon 1; f(0) and the shift table for R = 64
    law = bounded_noise(0.0, 1.0)
    assert math.exp(law.log_prob([0.0])[0]) == pytest.approx(1.20052341749, abs=1e-11)
    for shift, table in ((0.5, 8.57e-8), (0.8, 2.58e-6), (0.9, 5.37e-6), (1.0, 9.99979e-6)):
        found = exact.delta(bounded_noise(0.0, 64.0), bounded_noise(shift, 64.0), 1.0)
        assert found == pytest.approx(table, rel=2e-3 if shift < 1.0 else 5e-6)
    assert exact.epsilon(bounded_noise(0.0, 64.0), bounded_noise(1.0, 64.0)) == math.inf


# ------------------------------------------------------------------------------------------------- densities in mpmath


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize(("shift", "scale"), [(1.0, 1.0), (1e-3, 1.0), (2.0, 0.25)])
def test_laplace_profile(epsilon, shift, scale):
    p, q, e = (
        (lambda x: laplace(x, 0, mp.mpf(scale))),
        (lambda x: laplace(x, mp.mpf(shift), mp.mpf(scale))),
        mp.mpf(epsilon),
    )
    distance = mp.mpf(shift) / mp.mpf(scale)
    crossing = mp.mpf(scale) * (distance - e) / 2
    reference = mp.quad(lambda x: p(x) - mp.exp(e) * q(x), [-mp.inf, 0, crossing]) if e < distance else mp.mpf(0)
    closed = exact.delta(Laplace(0.0, scale), Laplace(shift, scale), epsilon)
    # A mixture of one component is computed as a general density.
    general = exact.delta(*(Mixture([1.0], [Laplace(m, scale)]) for m in (0.0, shift)), epsilon)
    assert agrees(closed, reference)
    assert agrees(general, reference)


@pytest.mark.parametrize("epsilon", [0.1, 5.0, 20.0, 300.0])
def test_delta_of_laplace_laws_of_unequal_scale_far_in_the_tail(epsilon):
    # log p/q = -log 2 + |x|/2 for scales 2 and 1: delta = exp(-x0 / 2) - exp(epsilon - x0), x0 = 2 (epsilon + log 2)
    x0 = 2 * (mp.mpf(epsilon) + mp.log(2))
    reference = mp.exp(-x0 / 2) - mp.exp(mp.mpf(epsilon) - x0)
    assert agrees(exact.delta(Laplace(0.0, 2.0), Laplace(0.0, 1.0), epsilon, order="forward"), reference)


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(1.0, 1.0), (1.0, 10.0), (0.1, 1.0), (2.0, 30.0), (8.0, 100.0), (3.0, 0.0)]
)
def test_gaussian_profile_by_closed_form_and_by_quadrature(mu, epsilon):
    m, e = mp.mpf(mu), mp.mpf(epsilon)
    reference = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
    assert agrees(exact.delta(Gaussian(0.0, 1.0), Gaussian(mu, 1.0), epsilon), reference)
    mixtures = [Mixture([1.0], [Gaussian(location, 1.0)]) for location in (0.0, mu)]
    assert agrees(exact.delta(*mixtures, epsilon), reference)


def random_piecewise(rng, *, bounded):
    inner = np.sort(rng.uniform(-4.0, 4.0, rng.integers(1, 5)))
    edges = np.concatenate([[-6.0 if bounded else -np.inf], inner, [6.0 if bounded else np.inf]])
    slopes = rng.normal(0.0, 1.5, edges.size - 1)
    slopes[0], slopes[-1] = rng.choice([0.5, 1.0, 2.0]), -rng.choice([0.5, 1.0, 2.0])
    if rng.random() < 0.3:
        slopes[rng.integers(slopes.size) if bounded else slopes.size // 2] = 0.0 if slopes.size > 2 or bounded else 1.0
    if not bounded:
        slopes[0], slopes[-1] = abs(slopes[0]) or 1.0, -abs(slopes[-1]) or -1.0
    intercepts = rng.normal(0.0, 1.0, slopes.size)
    return PiecewiseExponential.normalised(edges, intercepts, slopes)


def exponential_integral(a, b, low, high):
    """Integral of exp(a + b x) over (low, high), either end maybe infinite."""
    if b == 0:
        return mp.exp(a) * (high - low)
    upper = mp.mpf(0) if high == mp.inf else mp.exp(a + b * high)
    lower = mp.mpf(0) if low == -mp.inf else mp.exp(a + b * low)
    return (upper - lower) / b


def brute_piecewise(P, Q, epsilon):
    """(supremum of the log-ratio, hockey-stick divergence), from lines on the common refinement, in 40 digits."""
    level, worst, total = mp.mpf(epsilon), -mp.inf, mp.mpf(0)
    for low, high in itertools.pairwise(sorted({*P.edges, *Q.edges})):
        inside = (low + high) / 2 if math.isfinite(low + high) else (high - 1 if math.isfinite(high) else low + 1)
        lines = []
        for law in (P, Q):
            piece = np.searchsorted(law.edges, inside) - 1
            known = 0 <= piece < len(law.slopes)
            lines.append((mp.mpf(law.intercepts[piece]), mp.mpf(law.slopes[piece])) if known else None)
        if lines[0] is None:
            continue
        (a, b), left, right = lines[0], mp.mpf(low), mp.mpf(high)
        if lines[1] is None:
            worst = mp.inf
            total += exponential_integral(a, b, left, right)
            continue
        c, d = lines[1]
        for end in (left, right):
            if mp.isinf(end):
                worst = max(worst, mp.inf if (b - d) * end > 0 else a - c if b == d else -mp.inf)
            else:
                worst = max(worst, a - c + (b - d) * end)
        cuts = [left, right]
        if b != d and left < (root := (level + c - a) / (b - d)) < right:
            cuts.insert(1, root)
        for start, stop in itertools.pairwise(cuts):
            middle = (start + stop) / 2 if mp.isfinite(start + stop) else (stop - 1 if mp.isfinite(stop) else start + 1)
            if a - c + (b - d) * middle > level:
                total += exponential_integral(a, b, start, stop) - mp.exp(level) * exponential_integral(
                    c, d, start, stop
                )
    return worst, total


@pytest.mark.parametrize("bounded", [False, True])
def test_piecewise_exponential_pairs_against_their_lines(bounded):
    rng = np.random.default_rng(20240607)
    finite = 0
    for _ in range(25):
        P, Q = random_piecewise(rng, bounded=bounded), random_piecewise(rng, bounded=bounded)
        for epsilon in (0.0, 0.4, 2.0):
            worst, total = brute_piecewise(P, Q, epsilon)
            assert agrees(exact.delta(P, Q, epsilon, order="forward"), total) or total < 1e-300
        found = exact.epsilon(P, Q, order="forward")
        assert found == math.inf if worst == mp.inf else agrees(found, worst, 1e-12)
        finite += worst < mp.inf
    assert finite >= 5  # both kinds occurred


def convolution(x, b, s):
    return mp.quad(lambda t: laplace(t, 0, b) * gaussian(x - t, 0, s), [-mp.inf, min(0, x), max(0, x) + 1, mp.inf])


def test_laplace_gaussian_density_is_the_convolution():
    for b, s, x in ((1, 1, 0.3), (2, "0.5", -3), ("0.3", 2, 5)):
        b, s, x = mp.mpf(b), mp.mpf(s), mp.mpf(x)
        reference = convolution(x, b, s)
        law = LaplaceGaussian(0.0, float(b), float(s))
        assert law.log_prob([float(x)])[0] == pytest.approx(float(mp.log(reference)), abs=1e-13)
    # Where the Gaussian is much wider, s^2 / 2 b^2 would overflow if it were exponentiated.
    assert LaplaceGaussian(0.0, 1e-3, 1.0).log_prob([0.5])[0] == pytest.approx(
        float(mp.log(laplace_gaussian(mp.mpf("0.5"), 0, mp.mpf("0.001"), mp.mpf(1)))), rel=1e-12
    )


# -------------------------------------------------------------------------------------------------- grids and push-forwards


def discrete_laplace(k, m, b):
    ratio = mp.exp(-1 / mp.mpf(b))
    return (1 - ratio) / (1 + ratio) * ratio ** abs(k - m)


@pytest.mark.parametrize(
    ("first", "second", "epsilon"),
    [((0, 1.0), (1, 1.0), 0.5), ((0, 2.0), (3, 2.0), 0.7), ((0, 5.0), (2, 4.0), 0.1), ((3, 1.5), (3, 0.5), 0.2)],
)
def test_discrete_laplace(first, second, epsilon):
    masses = [(discrete_laplace(k, *first), discrete_laplace(k, *second)) for k in range(-500, 500)]
    reference = mp.fsum(max(p - mp.exp(mp.mpf(epsilon)) * q, 0) for p, q in masses)
    P, Q = DiscreteLaplace(*first), DiscreteLaplace(*second)
    assert agrees(exact.delta(P, Q, epsilon, order="forward"), reference)
    for order in (0.5, 1.0, 1.2):
        a = mp.mpf(order)
        if order == 1.0:
            divergence = mp.fsum(p * mp.log(p / q) for p, q in masses)
        else:
            divergence = mp.log(mp.fsum(p**a * q ** (1 - a) for p, q in masses)) / (a - 1)
        assert agrees(exact.renyi(P, Q, order), divergence)


def test_discrete_laplace_of_large_scale_is_a_closed_form():
    # Sum of the left flank (constant ratio) and of the points between the locations, as geometric series.
    shift, scale, e = 100_000, 1e6, mp.mpf("0.05")
    ratio, gain = mp.exp(-1 / mp.mpf(scale)), mp.exp(mp.mpf(shift) / mp.mpf(scale))
    top = (1 - ratio) / (1 + ratio)
    left = top / (1 - ratio) * (1 - mp.exp(e) / gain)
    last = 24_999  # log-ratio (shift - 2k) / scale exceeds e while k < 25,000
    between = mp.fsum(top * (ratio**k - mp.exp(e) * ratio ** (shift - k)) for k in range(1, last + 1))
    found = exact.delta(DiscreteLaplace(0, scale), DiscreteLaplace(shift, scale), 0.05, order="forward")
    assert agrees(found, left + between)


def cell(m, s, low, high):
    low, high = (low - m) / s, (high - m) / s
    return mp.ncdf(high) - mp.ncdf(low) if high <= 0 else mp.ncdf(-low) - mp.ncdf(-high)


@pytest.mark.parametrize(
    ("first", "second", "step", "epsilon"),
    [
        ((0, 1), (1, 1), 0.5, 1.0),
        ((0, 1), (1, 1), 0.5, 8.0),
        ((0, 1), (1, 1), 0.5, 30.0),
        ((0, 1), (1, 2), 1.0, 0.1),
        ((0, 3), (0.125, 3), 0.25, 0.01),
    ],
)
def test_rounded_gaussian(first, second, step, epsilon):
    h = mp.mpf(step)
    masses = []
    for k in range(-int(60 / step), int(60 / step) + 1):
        ends = (k - mp.mpf(1) / 2) * h, (k + mp.mpf(1) / 2) * h
        masses.append(tuple(cell(mp.mpf(m), mp.mpf(s), *ends) for m, s in (first, second)))
    reference = mp.fsum(max(p - mp.exp(mp.mpf(epsilon)) * q, 0) for p, q in masses)
    P, Q = (Rounded(Gaussian(*law), step) for law in (first, second))
    assert agrees(exact.delta(P, Q, epsilon, order="forward"), reference)
    if second[1] > first[1]:
        worst = max(mp.log(p / q) for p, q in masses)
        assert agrees(exact.epsilon(P, Q, order="forward"), worst)
    else:
        assert exact.epsilon(P, Q, order="forward") == math.inf


def test_clipped_gaussian():
    P, Q = Clipped(Gaussian(0.0, 1.0), -1.0, 2.0), Clipped(Gaussian(0.3, 1.0), -1.0, 2.0)
    upper = [mp.ncdf(-2), mp.ncdf(mp.mpf(0.3) - 2)]
    lower = [mp.ncdf(-1), mp.ncdf(-1 - mp.mpf(0.3))]
    assert agrees(exact.epsilon(Q, P, order="forward"), mp.log(upper[1] / upper[0]))
    # The ratio of P to Q falls through 0.05 at x = 0.15 - 0.05 / 0.3; left of it is the atom at -1 and an interval.
    crossing = mp.mpf(0.3) / 2 - mp.mpf(0.05) / mp.mpf(0.3)
    reference = mp.ncdf(crossing) - mp.exp(mp.mpf(0.05)) * mp.ncdf(crossing - mp.mpf(0.3))
    assert lower[0] < mp.ncdf(crossing)
    assert agrees(exact.delta(P, Q, 0.05, order="forward"), reference)


def test_truncated_laplace_is_the_optimal_bounded_mechanism():
    # docs/mechanisms.md section 1: half-width A = (M / eps) ln(1 + (e^eps - 1) / (2 delta)) = 11.361 at eps=1, delta=1e-5
    width = math.log1p(math.expm1(1.0) / 2e-5)
    assert width == pytest.approx(11.361, abs=5e-4)
    P, Q = (Truncated(Laplace(m, 1.0), m - width, m + width) for m in (0.0, 1.0))
    assert exact.delta(P, Q, 1.0) == pytest.approx(1e-5, rel=1e-10)
    assert exact.epsilon(P, Q) == math.inf


# ------------------------------------------------------------------------------------------------------------------- Renyi


@pytest.mark.parametrize("order", [0.05, 0.5, 0.999999, 1.0, 1.0000001, 1.5, 2.0, 10.0, 200.0])
def test_renyi_of_gaussians(order):
    a = mp.mpf(order)
    assert agrees(exact.renyi(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0), order), a / 2)
    assert agrees(exact.renyi(Gaussian(0.0, 1.0), Gaussian(1e-3, 1.0), order), a * mp.mpf(1e-3) ** 2 / 2)
    v1, v2 = mp.mpf(1), mp.mpf("2.25")
    if order == 1.0:
        reference = (v1 / v2 + 1 / v2 - 1 + mp.log(v2 / v1)) / 2
    else:
        v = (1 - a) * v1 + a * v2
        reference = a / (2 * v) + mp.log(v / (v1 ** (1 - a) * v2**a)) / (2 * (1 - a))
    assert agrees(exact.renyi(Gaussian(0.0, 1.0), Gaussian(1.0, 1.5), order), reference)


def test_renyi_is_infinite_exactly_for_the_orders_given_by_the_variances():
    # (1 - a) v1 + a v2 > 0 with v1 = 2.25, v2 = 1 means a < 1.8
    P, Q = Gaussian(0.0, 1.5), Gaussian(0.0, 1.0)
    assert exact.renyi(P, Q, 1.79) < math.inf
    assert exact.renyi(P, Q, 1.8) == math.inf
    assert exact.renyi(P, Q, 5.0) == math.inf


@pytest.mark.parametrize("order", [0.25, 1.0, 2.0, 64.0])
def test_renyi_of_laplace_laws(order):
    # Mironov 2017, proposition 6
    a, t = mp.mpf(order), mp.mpf(0.7)
    reference = (
        t + mp.exp(-t) - 1
        if order == 1.0
        else mp.log(a / (2 * a - 1) * mp.exp((a - 1) * t) + (a - 1) / (2 * a - 1) * mp.exp(-a * t)) / (a - 1)
    )
    assert agrees(exact.renyi(Laplace(0.0, 1.0), Laplace(0.7, 1.0), order), reference)


def test_renyi_of_nearly_disjoint_laws():
    reference = mp.mpf("0.5") * 60**2 / 2
    assert agrees(exact.renyi(Gaussian(0.0, 1.0), Gaussian(60.0, 1.0), 0.5), reference)


# ------------------------------------------------------------------------------------------------------------- products


def test_product_of_discrete_laws_against_enumeration():
    rng = np.random.default_rng(5)
    firsts, seconds = ([dict(enumerate(rng.dirichlet(np.ones(4)))) for _ in range(4)] for _ in range(2))
    P, Q = (Product([Discrete(row) for row in rows]) for rows in (firsts, seconds))
    for epsilon in (0.0, 0.5, 3.0):
        total = mp.mpf(0)
        for outcome in itertools.product(range(4), repeat=4):
            p, q = (
                mp.fprod(mp.mpf(row[o]) for row, o in zip(rows, outcome, strict=True)) for rows in (firsts, seconds)
            )
            total += max(p - mp.exp(mp.mpf(epsilon)) * q, 0)
        assert agrees(exact.delta(P, Q, epsilon, order="forward"), total)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 9.5])
def test_composed_randomised_response_is_binomial(epsilon):
    k, e = 20, mp.mpf(0.5)
    keep = mp.exp(e) / (1 + mp.exp(e))
    reference = mp.fsum(
        mp.binomial(k, j) * keep**j * (1 - keep) ** (k - j) * max(0, 1 - mp.exp(mp.mpf(epsilon) - e * (2 * j - k)))
        for j in range(k + 1)
    )
    p = math.exp(0.5) / (1.0 + math.exp(0.5))
    P, Q = Product([Discrete({0: p, 1: 1 - p})] * k), Product([Discrete({0: 1 - p, 1: p})] * k)
    assert agrees(exact.delta(P, Q, epsilon), reference)
    assert exact.epsilon(P, Q) == pytest.approx(10.0, rel=1e-12)  # docs/theory.md R25: tight


def test_product_of_discrete_laplace_laws():
    # Substitution moves two counts by one each: the loss takes finitely many values although the outputs do not.
    P = Product([DiscreteLaplace(3, 1.5), DiscreteLaplace(7, 1.5), DiscreteLaplace(0, 1.5)])
    Q = Product([DiscreteLaplace(4, 1.5), DiscreteLaplace(6, 1.5), DiscreteLaplace(0, 1.5)])
    for epsilon in (0.0, 0.6, 1.0):
        masses = [(discrete_laplace(k, 0, 1.5), discrete_laplace(k, 1, 1.5)) for k in range(-70, 70)]
        reference = mp.fsum(
            max(p * r - mp.exp(mp.mpf(epsilon)) * q * s, 0) for (p, q), (s, r) in itertools.product(masses, masses)
        )
        assert agrees(exact.delta(P, Q, epsilon), reference)
    assert exact.epsilon(P, Q) == pytest.approx(2.0 / 1.5, rel=1e-15)


def test_product_of_gaussians_and_one_discrete_coordinate():
    mu, e, p = mp.sqrt(mp.mpf(0.25) + 1), mp.mpf(0.8), mp.mpf(0.75)

    def gaussian_delta(level):
        return mp.ncdf(mu / 2 - level / mu) - mp.exp(level) * mp.ncdf(-mu / 2 - level / mu)

    reference = p * gaussian_delta(e - mp.log(3)) + (1 - p) * gaussian_delta(e + mp.log(3))
    P = Product([Gaussian(0.0, 2.0), Discrete({0: 0.75, 1: 0.25}), Gaussian(0.0, 1.0), Laplace(5.0, 1.0)])
    Q = Product([Gaussian(1.0, 2.0), Discrete({0: 0.25, 1: 0.75}), Gaussian(1.0, 1.0), Laplace(5.0, 1.0)])
    assert agrees(exact.delta(P, Q, 0.8), reference)


def test_product_of_one_laplace_and_one_discrete_coordinate():
    e, t, p = mp.mpf(0.2), mp.mpf(1), mp.mpf(0.75)

    def laplace_delta(level):
        return 1 - mp.exp(level) if level < -t else max(mp.mpf(0), 1 - mp.exp((level - t) / 2))

    reference = p * laplace_delta(e - mp.log(3)) + (1 - p) * laplace_delta(e + mp.log(3))
    P = Product([Laplace(0.0, 1.0), Discrete({0: 0.75, 1: 0.25})])
    Q = Product([Laplace(1.0, 1.0), Discrete({0: 0.25, 1: 0.75})])
    assert agrees(exact.delta(P, Q, 0.2, order="forward"), reference)


# ---------------------------------------------------------------------------------------------------------- rare events


def test_events_of_probability_1e_minus_24_are_integrated():
    # A narrow range of integration would miss them or report a false violation (docs/theory.md R2).
    weight = 1e-24
    P = WithAtoms({}, 1.0, Mixture([1.0 - weight, weight], [Laplace(0.0, 1.0), Laplace(500.0, 1.0)]))
    Q = Laplace(0.0, 1.0)
    # Near 500 the ratio is e^500 1e-24, and it stays at its peak beyond: log(1 - w + w e^500).
    assert agrees(exact.epsilon(P, Q, order="forward"), 500 + mp.log(mp.mpf(weight)))
    # delta(10): from where w e^(2x - 500) = e^10 the second component rules, and nothing of the first is left.
    e = mp.mpf(10)
    crossing = (500 + e - mp.log(mp.mpf(weight))) / 2

    def p(x):
        return (1 - mp.mpf(weight)) * laplace(x, 0, 1) + mp.mpf(weight) * laplace(x, 500, 1)

    crossing = mp.findroot(lambda x: mp.log(p(x) / laplace(x, 0, 1)) - e, crossing)
    reference = mp.quad(lambda x: p(x) - mp.exp(e) * laplace(x, 0, 1), [crossing, crossing + 20, 480, 500, 520, mp.inf])
    assert reference < 2e-24
    assert agrees(exact.delta(P, Q, 10.0, order="forward"), reference)


def test_exponential_against_laplace():
    # p = e^-x on x > 0, q = e^-|x| / 2: the ratio is 2 on the right, so epsilon = log 2 one way and infinite the other.
    P, Q = Exponential(0.0, 1.0), Laplace(0.0, 1.0)
    assert agrees(exact.epsilon(P, Q, order="forward"), mp.log(2))
    assert exact.epsilon(Q, P, order="forward") == math.inf
    assert agrees(exact.delta(P, Q, 0.25, order="forward"), 1 - mp.exp(mp.mpf(0.25)) / 2)
    assert agrees(exact.delta(Q, P, 3.0, order="forward"), mp.mpf("0.5"))
