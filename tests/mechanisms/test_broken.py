"""The broken mechanisms are as broken as they say: exact epsilon against the stated one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import trapezoid

from dpaudit import exact, neighbours
from dpaudit.claims import Verdict, gaussian_delta
from dpaudit.errors import InvalidArgument
from dpaudit.exact.verification import verify
from mechanisms._common import gaussian_epsilon
from mechanisms.broken.exponential import missing_factor_two, printed_film_recommendation
from mechanisms.broken.gaussian import HalvedVariance, NotesGaussian, printed_cdf
from mechanisms.broken.geometric import NaturalLogGeometric
from mechanisms.broken.laplace import MisscaledLaplace, OccasionallyRaw, PrefixSum, SensitivityFromData
from mechanisms.broken.noisy_max import MaximumLaw, NoisyMaxValue
from mechanisms.broken.randomised_response import RangesFromData, RepeatedResponse
from mechanisms.broken.sparse_vector import svt34_parallel
from mechanisms.gaussian import analytic_scale
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.registry.catalogue import pattern, patterns


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("factor", [0.5, 0.9, 0.01])
def test_misscaled_laplace(factor):
    mechanism = MisscaledLaplace(1.0, factor)
    assert exact.epsilon(mechanism.law(0.0), mechanism.law(1.0)) == pytest.approx(mechanism.epsilon_exact, rel=1e-12)
    assert mechanism.epsilon_exact == pytest.approx(1.0 / factor)


def test_raw_releases():
    mechanism = OccasionallyRaw(1.0, 1e-3)
    assert exact.epsilon(mechanism.law(0.0), mechanism.law(1.0)) == math.inf
    # away from the atom nothing is wrong: delta at the claimed epsilon is the share of raw releases
    assert exact.delta(mechanism.law(0.0), mechanism.law(1.0), 1.0) == pytest.approx(1e-3, rel=1e-6)
    outputs = mechanism.sample(0.0, 100_000, rng())
    assert 50 < (outputs == 0.0).sum() < 160


def test_sensitivity_from_data():
    mechanism = SensitivityFromData(1.0, 0.0, 1.0)
    assert exact.epsilon(mechanism.law([0.5, 0.5]), mechanism.law([0.5, 0.6])) == math.inf
    # two scales: the wider tail wins without bound
    assert exact.epsilon(mechanism.law([0.0, 0.5, 1.0]), mechanism.law([0.0, 0.5, 0.9])) == math.inf
    assert (mechanism.sample([0.5, 0.5], 3, rng()) == 0.5).all()


def test_prefix_sum():
    mechanism = PrefixSum(0.1)
    a, b = np.ones(10), np.full(10, 2.0)
    assert exact.epsilon(mechanism.law_of_answers(a), mechanism.law_of_answers(b)) == pytest.approx(1.0, rel=1e-12)
    with pytest.raises(InvalidArgument, match="10 answers"):
        mechanism.sample([1.0], 1, rng())


def test_halved_variance():
    mechanism = HalvedVariance(1.0, 1e-2)
    assert mechanism.scale == pytest.approx(analytic_scale(1.0, 1e-2) / math.sqrt(2))
    law, shifted = mechanism.law(0.0), mechanism.law(1.0)
    assert exact.delta(law, shifted, mechanism.epsilon_exact) == pytest.approx(1e-2, rel=1e-9)
    assert exact.delta(law, shifted, 1.0) > 3e-2


def test_notes_gaussian():
    # docs/theory.md R19 / reference value gauss_eps0.5_delta1e-5: buggy delta 1.46517169e-5, epsilon .51436; scale 6.85158930943
    mechanism = NotesGaussian(0.5, 1e-5)
    assert mechanism.delta_exact == pytest.approx(1.46517169057440475e-5, rel=1e-9)
    assert mechanism.epsilon_exact == pytest.approx(0.51436, abs=5e-6)
    assert mechanism.scale == pytest.approx(6.85158930943, rel=1e-11)
    pairs = neighbours.fixed([(0.0, 1.0)], relation=mechanism.relation)
    assert verify(mechanism, mechanism.claim, pairs, examples=5).verdict is Verdict.VIOLATION
    hidden = NotesGaussian(0.1, 1e-5)
    assert verify(hidden, hidden.claim, pairs, examples=5).verdict is Verdict.NO_VIOLATION_FOUND
    outputs = mechanism.sample(0.0, 200_000, rng())
    assert outputs.var() / mechanism.rho**2 == pytest.approx(0.5, abs=0.01)  # the variance test that finds it


def test_notes_gaussian_is_broken_in_203_of_285_cells():
    # docs/theory.md R19: epsilon in {.05, ..., .95} x delta in {1e-1, ..., 1e-15}: 203 of 285 broken, the worst 7.7e4 times
    ratios = [
        float(gaussian_delta(e, math.sqrt(2.0) * e / math.sqrt(2.0 * math.log(1.25 / d)))) / d
        for e, d in itertools.product(np.arange(1, 20) / 20.0, 10.0 ** -np.arange(1.0, 16.0))
    ]
    assert len(ratios) == 285
    assert sum(ratio > 1.0 for ratio in ratios) == 203
    assert max(ratios) == pytest.approx(7.7e4, rel=0.01)


def test_printed_distribution_function_is_none():  # reference value erf_nonstandard_limits, docs/theory.md R19
    limits = [printed_cdf(-math.inf), printed_cdf(math.inf)]
    assert limits == pytest.approx([0.05688653727362099318, 0.9431134627263790068], rel=1e-14)
    integral = trapezoid(np.exp(-(np.linspace(0.0, 0.7, 10_001) ** 2)), dx=0.7 / 10_000)
    assert printed_cdf(0.7) == pytest.approx(0.5 * (1.0 + integral), abs=1e-9)


def test_gaussian_epsilon_inverts_the_profile():
    for mu, epsilon in ((0.1, 0.05), (1.0, 2.0), (3.0, 9.0)):
        assert gaussian_epsilon(mu, float(gaussian_delta(epsilon, mu))) == pytest.approx(epsilon, rel=1e-9)
    assert gaussian_epsilon(0.01, 0.5) == 0.0


def test_natural_log_geometric():
    mechanism = NaturalLogGeometric(0.1, 5)
    worst = max(exact.epsilon(mechanism.law(c), mechanism.law(c + 1)) for c in range(5))
    assert worst == pytest.approx(math.log1p(1 / 8), rel=1e-12)
    assert worst > 0.1


def test_exponential_variants():
    mechanism = missing_factor_two(1.0, 3)
    far, farther = np.array([-40.0, 0.0, 0.0]), np.array([-39.0, -1.0, -1.0])
    assert exact.epsilon(mechanism.law(far), mechanism.law(farther)) == pytest.approx(2.0, abs=1e-9)
    film = printed_film_recommendation()
    # reference value expmech_film, stated sign
    want = [0.2201433731475876, 0.2257163291714731, 0.2494551227351020, 0.3046851749458373]
    assert np.exp(film.law([1.0, 2.0]).log_prob([1.5, 3.0, 5.0, 9.0])) == pytest.approx(want, rel=1e-12)


def test_noisy_max_value_law_and_epsilon():
    mechanism = NoisyMaxValue(0.1)
    assert exact.epsilon(mechanism.law(np.ones(5)), mechanism.law(np.zeros(5))) == pytest.approx(0.25, rel=1e-9)
    law = MaximumLaw((0.0, 1.0, 4.0), "laplace", 2.0)
    grid = np.linspace(-60.0, 80.0, 400_001)
    density = np.exp(law.log_prob(grid))
    assert trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
    assert np.exp(law.log_cdf(np.array([3.0])))[0] == pytest.approx(
        trapezoid(density[grid <= 3.0], grid[grid <= 3.0]), abs=1e-4
    )
    one_sided = NoisyMaxValue(0.1, noise="exponential")
    assert exact.epsilon(one_sided.law([1.0, 0.0]), one_sided.law([2.0, 0.0])) == math.inf


@pytest.mark.parametrize("pair", range(8))
def test_noisy_max_value_stays_below_the_bound(pair):
    mechanism = NoisyMaxValue(1.0)
    a, b = patterns(5).corners()[pair]
    assert exact.epsilon(mechanism.law(a), mechanism.law(b)) <= mechanism.epsilon_exact(5) * (1 + 1e-9)


def test_randomised_response_variants():
    repeated = RepeatedResponse(RandomisedResponse.k_ary(0.5, (0, 1)), 10)
    assert exact.epsilon(repeated.law(0), repeated.law(1)) == pytest.approx(5.0, rel=1e-12)
    assert repeated.sample(1, 4, rng()).shape == (4, 10)
    ranges = RangesFromData(1.0, 4, 0.0, 1.0)
    assert exact.epsilon(ranges.law([0.0, 0.5]), ranges.law([0.0, 0.6])) == math.inf
    assert ranges.sample([0.0, 0.5, 1.0], 5, rng()).shape == (5, 3)
    assert set(np.unique(ranges.sample([0.0, 1.0], 500, rng()))) == {0.125, 0.375, 0.625, 0.875}
    assert (ranges.sample([0.5, 0.5], 3, rng()) == 0.5).all()


def test_parallel_svt_lower_end_of_its_bracket():
    """The SVT4 half of the bracket, on the exact law; the SVT3 half by its density where the threshold's weight is."""
    both = svt34_parallel(epsilon=0.1, threshold=1.0)
    first, second = both.mechanisms
    assert first.epsilon_exact(10) + second.epsilon_exact(10) == pytest.approx(0.575)
    far = 20_000.0
    direction = np.array([1.0] * 7 + [-1.0, 1.0, -1.0])
    answers = far * np.where(direction > 0, 1.0, -7.0)
    assert exact.epsilon(second.law(answers), second.law(answers + direction)) == pytest.approx(0.325, abs=1e-4)
    # SVT3: misses at the seven, a hit far above on the eighth, which moves down, a hit far below on the ninth: in the limit
    # every one of the nine contributes its full 1/query_scale.
    assert 9.0 / first.query_scale == pytest.approx(0.225)
    assert both.sample(np.ones(10), 3, rng()).shape == (3, 20)


def test_patterns():
    assert pattern(4, 4).corners()[0].neighbour.tolist() == [2.0, 2.0, 0.0, 0.0]
    assert pattern(4, 7).corners()[0].neighbour.tolist() == [2.0, 0.0, 2.0, 0.0]
    assert len(patterns(5).corners()) == 8
    assert len(patterns(5, "one").corners()) == 2
