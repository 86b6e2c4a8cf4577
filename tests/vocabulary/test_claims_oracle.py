"""Privacy profiles against mpmath, closed forms, brute force and dp-accounting."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP, gaussian_delta
from dpaudit.claims.implications import _pure_renyi as pure_renyi

EPSILONS = [0.0, 0.01, 0.3, 1.0, 2.5, 6.0]


def gaussian_reference(epsilon, mu):
    with mpmath.workdps(80):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-12, 1e-6, 1e-3, 0.03, 0.3, 0.5, 0.5000001, 1.0, 3.0, 10.0, 40.0])
def test_gaussian_profile_to_twelve_digits_far_into_the_tail(mu):
    # epsilon = x mu + mu^2 / 2 puts the threshold x standard deviations out: delta falls to 1e-280 at x = 35.
    for x in [-mu / 2, -0.3 * mu, 0.0, 1e-4, 0.1, 1.0, 3.0, 8.0, 20.0, 35.0]:
        epsilon = max(0.0, x * mu + mu * mu / 2)
        reference = gaussian_reference(epsilon, mu)
        assert float(abs(mpmath.mpf(float(gaussian_delta(epsilon, mu))) / reference - 1)) < 2e-12, (epsilon, mu)


def test_gaussian_profile_at_published_points():
    # docs/theory.md R19: sigma = sqrt(2 ln(1.25/delta)) / epsilon, sensitivity 1; true delta, and that of the sampler with
    # sigma / sqrt 2.
    for epsilon, sigma, true, buggy in [
        (0.5, 9.68961053, 1.607854e-8, 1.4651717e-5),
        (0.9, 5.38311696, 3.525085e-8, 3.2042103e-5),
        (0.5, 12.9449324, 7.066179e-13, 6.6620534e-8),
    ]:
        assert GaussianDP(1 / sigma).delta(epsilon) == pytest.approx(true, rel=3e-6)
        assert GaussianDP(math.sqrt(2) / sigma).delta(epsilon) == pytest.approx(buggy, rel=3e-6)
    # docs/theory.md R19: the analytic sigma for (.5, 1e-5).
    assert GaussianDP(1 / 7.03182667558).delta(0.5) == pytest.approx(1e-5, rel=1e-9)


def hockey_stick(P, Q, epsilon):
    return mpmath.fsum(max(p - mpmath.exp(epsilon) * q, 0) for p, q in zip(P, Q, strict=True))


@pytest.mark.parametrize("claimed", [1e-9, 0.1, 1.0, 5.0, 50.0])
def test_pure_and_approximate_profiles_are_those_of_the_worst_pair(claimed):
    with mpmath.workdps(50):
        e = mpmath.exp(mpmath.mpf(claimed))
        heads, tails = e / (1 + e), 1 / (1 + e)
        for factor in [0.0, 0.5, 0.999, 1.0, 1.5]:
            epsilon = mpmath.mpf(claimed * factor)
            reference = hockey_stick([heads, tails], [tails, heads], epsilon)
            assert PureDP(claimed).delta(claimed * factor) == pytest.approx(float(reference), rel=1e-12, abs=1e-26)
            for leak in [mpmath.mpf(1e-15), mpmath.mpf(0.2)]:
                P = [leak, (1 - leak) * heads, (1 - leak) * tails, mpmath.mpf(0)]
                reference = hockey_stick(P, [P[3], P[2], P[1], P[0]], epsilon)
                claim = ApproxDP(claimed, float(leak))
                assert claim.delta(claimed * factor) == pytest.approx(float(reference), rel=1e-12)


def test_no_approximately_private_pair_exceeds_the_profile():
    rng = np.random.default_rng(7)
    closest = math.inf
    for _ in range(3000):
        P, Q = rng.dirichlet([0.4] * 4), rng.dirichlet([0.4] * 4)
        claimed = rng.uniform(0.0, 2.0)

        def worst(epsilon, P=P, Q=Q):
            return max(np.maximum(A - math.exp(epsilon) * B, 0.0).sum() for A, B in ((P, Q), (Q, P)))

        leak = worst(claimed)
        if not 1e-6 < leak < 1 - 1e-6:
            continue
        claim = ApproxDP(claimed, leak)
        for epsilon in rng.uniform(0.0, 3.0, 4):
            assert worst(epsilon) <= claim.delta(epsilon) + 1e-12
            closest = min(closest, claim.delta(epsilon) - worst(epsilon))
    assert closest < 1e-3  # the bound is nearly met, so the comparison is not trivial


def best_order_reference(epsilon, divergence, largest):
    """Canonne, Kamath and Steinke 2020, proposition 12, minimised in extended precision."""
    with mpmath.workdps(40):

        def log_delta(t):
            a = 1 + mpmath.exp(t)
            return (a - 1) * (divergence(a) - epsilon) - mpmath.log(a - 1) + a * mpmath.log(1 - 1 / a)

        top = mpmath.log(largest - 1) if largest < mpmath.inf else mpmath.mpf(40)
        ratio = (mpmath.sqrt(5) - 1) / 2
        grid = [mpmath.mpf(-20) + (top + 20) * i / 200 for i in range(201)]
        best = min(range(201), key=lambda i: log_delta(grid[i]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 200)]
        for _ in range(80):
            left, right = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
        value = min(log_delta(low), log_delta(high), log_delta(grid[best]))
        kullback = mpmath.sqrt(1 - mpmath.exp(-divergence(mpmath.mpf(1))))
        return min(mpmath.exp(value), kullback, mpmath.mpf(1))


@pytest.mark.parametrize("rho", [1e-20, 1e-4, 0.1, 0.5, 3.0])
def test_zcdp_profile_is_the_best_order(rho):
    scale = math.sqrt(rho)
    for x in [0.0, 0.5, 2.0, 8.0]:
        epsilon = rho + x * scale
        reference = best_order_reference(epsilon, lambda a: rho * a, mpmath.inf)
        assert ZeroConcentratedDP(rho).delta(epsilon) == pytest.approx(float(reference), rel=1e-9)


@pytest.mark.parametrize(
    ("order", "claimed"), [(1.001, 0.5), (1.5, 0.2), (2.0, 1.0), (8.0, 0.5), (64.0, 3.0), (1e6, 0.1)]
)
def test_renyi_profile_is_the_best_order_up_to_the_claimed_one(order, claimed):
    for epsilon in EPSILONS:
        reference = best_order_reference(epsilon, lambda _: mpmath.mpf(claimed), mpmath.mpf(order))
        assert RenyiDP(order, claimed).delta(epsilon) == pytest.approx(float(reference), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 2.0])
def test_zcdp_is_never_worse_than_dp_accounting_and_never_better_than_the_gaussian(rho):
    orders = np.concatenate([1 + np.geomspace(0.011, 1e4, 400)])
    for x in [0.1, 1.0, 3.0, 6.0]:
        epsilon = rho + x * math.sqrt(2 * rho)
        ours = ZeroConcentratedDP(rho).delta(epsilon)
        theirs, _ = rdp_privacy_accountant.compute_delta(orders, rho * orders, epsilon)
        assert ours <= theirs * (1 + 1e-12)
        assert ours == pytest.approx(theirs, rel=2e-3)  # their orders are a grid
        # N(0, 1) against N(sqrt(2 rho), 1) is rho-zCDP with equality at every order, and has this profile.
        truth = float(gaussian_reference(epsilon, math.sqrt(2 * rho)))
        assert truth < ours


@pytest.mark.parametrize(("order", "claimed"), [(2.0, 0.3), (10.0, 1.0), (100.0, 2.0)])
def test_renyi_is_never_worse_than_dp_accounting(order, claimed):
    for epsilon in EPSILONS:
        ours = RenyiDP(order, claimed).delta(epsilon)
        theirs, _ = rdp_privacy_accountant.compute_delta([order], [claimed], epsilon)
        assert ours <= theirs * (1 + 1e-12)


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 7.0, 100.0])
@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_moment_profiles_bound_the_laplace_mechanism(order, scale):
    # Mironov 2017, proposition 6: exp((a - 1) R) = a/(2a-1) exp((a-1)/b) + (a-1)/(2a-1) exp(-a/b); and the profile of
    # Lap(b) at distance 1 is 1 - exp(-(1/b - e)/2).
    with mpmath.workdps(40):
        a, b = mpmath.mpf(order), mpmath.mpf(scale)
        moment = a / (2 * a - 1) * mpmath.exp((a - 1) / b) + (a - 1) / (2 * a - 1) * mpmath.exp(-a / b)
        divergence = float(mpmath.log(moment) / (a - 1))
    claim = RenyiDP(order, divergence)
    for epsilon in np.linspace(0.0, 1.0 / scale, 9):
        truth = -math.expm1(-(1.0 / scale - epsilon) / 2.0)
        assert truth <= claim.delta(float(epsilon)) * (1 + 1e-9)
        assert truth <= ZeroConcentratedDP(1.0 / (2.0 * scale**2)).delta(float(epsilon)) * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.01, 2.0, 30.0])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0])
def test_renyi_divergence_of_pure_dp_is_that_of_randomised_response(epsilon, order):
    with mpmath.workdps(50):
        e, a = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(order)
        p, q = e / (1 + e), 1 / (1 + e)
        reference = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
    assert pure_renyi(epsilon, order) == pytest.approx(float(reference), rel=1e-8)
