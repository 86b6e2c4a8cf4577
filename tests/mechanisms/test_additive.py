"""Laplace, geometric, Gaussian, histogram, median, composition: laws, claims, calibration and refusals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import exact, neighbours
from dpaudit.claims import ApproxDP, GaussianDP, PureDP, Relation, Verdict, gaussian_delta
from dpaudit.errors import InvalidArgument, RelationMismatch
from dpaudit.exact.verification import verify
from mechanisms.composition import Composition, add_claims
from mechanisms.gaussian import GaussianMechanism, analytic_scale, classical_scale
from mechanisms.geometric import DiscreteLaplaceMechanism, TruncatedGeometric, truncated_geometric_steps
from mechanisms.laplace import LaplaceMechanism, inverse_cdf_laplace
from mechanisms.median import LaplaceMedian
from mechanisms.noisy_histogram import NoisyHistogram


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ------------------------------------------------------------------------------------------------------------- Laplace


def test_laplace_epsilon_is_the_claim_exactly():
    mechanism = LaplaceMechanism(0.7, sensitivity=2.0)
    assert exact.epsilon(mechanism.law(5.0), mechanism.law(7.0)) == pytest.approx(0.7, rel=1e-14)
    found = verify(mechanism, mechanism.claim, neighbours.answers(1, -5, 5, sensitivity=2))
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.largest == pytest.approx(0.7, rel=1e-12)


def test_laplace_vector_epsilon_adds_over_the_entries_that_move():
    mechanism = LaplaceMechanism(1.0)
    assert exact.epsilon(mechanism.law([0.0, 0.0, 3.0]), mechanism.law([0.5, -0.25, 3.0])) == pytest.approx(
        0.75, rel=1e-14
    )


def test_inverse_cdf_is_the_quantile_function_and_guards_zero():
    u = np.array([1e-300, 1e-9, 0.1, 0.5, 0.9, 1 - 2.0**-53])
    from scipy.stats import laplace

    got = inverse_cdf_laplace(u.copy(), 3.0)
    assert got[1:] == pytest.approx(laplace.ppf(u[1:], scale=3.0), rel=1e-12)
    assert np.isfinite(inverse_cdf_laplace(np.zeros(1), 1.0)).all()
    assert got[0] == pytest.approx(3.0 * math.log(2.0**-53))


def test_both_methods_have_shape_and_reproducibility():
    for method in ("numpy", "inverse-cdf"):
        mechanism = LaplaceMechanism(1.0, query=np.mean, relation=Relation.SUBSTITUTE, method=method)
        first, second = (mechanism.sample([0.0, 1.0], 5, rng(3)) for _ in range(2))
        assert first.shape == (5,)
        assert (first == second).all()
        assert LaplaceMechanism(1.0, method=method).sample([1.0, 2.0], 5, rng()).shape == (5, 2)
        assert LaplaceMechanism(1.0, method=method).sample(1.0, 0, rng()).shape == (0,)


REFUSED = [
    (lambda: LaplaceMechanism(0.0), "epsilon=0.0 must be positive"),
    (lambda: LaplaceMechanism(-1.0), "epsilon=-1.0"),
    (lambda: LaplaceMechanism(1.0, sensitivity=math.inf), "sensitivity=inf"),
    (lambda: LaplaceMechanism(1.0, method="numpi"), "Did you mean 'numpy'"),
    (lambda: LaplaceMechanism(1.0).sample(math.nan, 1, rng()), "nan"),
    (lambda: LaplaceMechanism(1.0).sample([], 1, rng()), "empty"),
    (lambda: LaplaceMechanism(1.0).sample([[1.0]], 1, rng()), r"shape is \(1, 1\)"),
    (lambda: LaplaceMechanism(1.0).sample("many", 1, rng()), "must be numbers"),
    (lambda: LaplaceMechanism(1.0).sample(0.0, -1, rng()), "size=-1"),
    (lambda: LaplaceMechanism(1.0).sample(0.0, 1, np.random), "default_rng"),
    (lambda: DiscreteLaplaceMechanism(1.0).sample(0.5, 1, rng()), "whole numbers"),
    (lambda: DiscreteLaplaceMechanism(1.0, sensitivity=1.5), "sensitivity=1.5"),
    (lambda: DiscreteLaplaceMechanism(1e-15), "64 bits"),
    (lambda: TruncatedGeometric(0.1, 5).sample(6, 1, rng()), "between 0 and 5"),
    (lambda: TruncatedGeometric(0.1, 5).sample([1, 2], 1, rng()), "one count"),
    (lambda: TruncatedGeometric(0.001, 60), "64 bits"),
    (lambda: GaussianMechanism(1.0, 0.0), "delta=0.0"),
    (lambda: GaussianMechanism(1.0, 1.5), "delta=1.5"),
    (lambda: GaussianMechanism(0.0, 1e-5), "epsilon=0.0"),
    (lambda: GaussianMechanism(1.0, 1e-5, calibration="classical"), "below 1 for the classical"),
    (lambda: GaussianMechanism(1.0, 1e-5).sample(math.inf, 1, rng()), "finite"),
    (lambda: LaplaceMedian(1.0, 1.0, 0.0), "low=1.0 must be below"),
    (lambda: LaplaceMedian(1.0, 0.0, 1.0).sample([], 1, rng()), "empty"),
    (lambda: LaplaceMedian(1.0, 0.0, 1.0).sample([0.5, 1.5], 1, rng()), "outside"),
    (lambda: NoisyHistogram(1.0, ()), "at least one"),
    (lambda: NoisyHistogram(1.0, ("red", "blue")).sample(["rad"], 1, rng()), "Did you mean 'red'"),
    (lambda: NoisyHistogram(1.0, ("a",), relation=Relation.ANSWERS), "relation"),
    (lambda: Composition(()), "empty"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_refused_with_its_name(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


# ----------------------------------------------------------------------------------------------------------- geometric


def test_discrete_laplace_epsilon_and_mass():
    mechanism = DiscreteLaplaceMechanism(0.3, sensitivity=2)
    assert exact.epsilon(mechanism.law(4), mechanism.law(6)) == pytest.approx(0.3, rel=1e-12)
    ratio = math.exp(-0.15)
    assert np.exp(mechanism.law(4).log_prob([4, 5])) == pytest.approx(
        [(1 - ratio) / (1 + ratio), ratio * (1 - ratio) / (1 + ratio)]
    )


@pytest.mark.parametrize(("bits", "largest"), [(0, 1), (0, 4), (3, 5), (5, 5), (2, 9)])
def test_truncated_geometric_is_the_clamped_two_sided_geometric(bits, largest):
    # Independent: mass (1 - a)/(1 + a) a^|k| in fractions, tails summed up at the ends.
    a = Fraction(2**bits, 2**bits + 1)
    for count in range(largest + 1):
        mass = [(1 - a) / (1 + a) * a ** abs(z - count) for z in range(largest + 1)]
        mass[0] = a**count / (1 + a)
        mass[-1] = a ** (largest - count) / (1 + a)
        steps = truncated_geometric_steps(bits, largest, count)
        assert [Fraction(s, steps[-1]) for s in steps] == list(itertools.accumulate(mass))


def test_truncated_geometric_epsilon():
    mechanism = TruncatedGeometric(0.1, 5)
    worst = max(exact.epsilon(mechanism.law(c), mechanism.law(c + 1)) for c in range(5))
    assert worst == pytest.approx(mechanism.epsilon_exact, rel=1e-12)
    assert worst <= 0.05


@given(epsilon=st.floats(1e-3, 20.0))
def test_truncated_geometric_keeps_its_claim(epsilon):
    assert TruncatedGeometric(epsilon, 1).epsilon_exact <= epsilon


# ------------------------------------------------------------------------------------------------------------ Gaussian

# docs/theory.md R19: sigma classical, true delta of classical, analytic sigma (mpmath, 25 digits)
GAUSSIAN = [
    (0.5, 9.689610525210778842, 1.607853993087429216e-8, 7.03182667558249144),
    (0.9, 5.383116958450432690, 3.525084723415834837e-8, 4.10662433172385248),
    (0.1, 48.44805262605389421, 2.635940600317434640e-9, 30.7495661319774502),
]


@pytest.mark.parametrize(("epsilon", "classical", "delta", "analytic"), GAUSSIAN)
def test_gaussian_calibrations(epsilon, classical, delta, analytic):
    assert classical_scale(epsilon, 1e-5) == pytest.approx(classical, rel=1e-14)
    assert float(gaussian_delta(epsilon, 1 / classical)) == pytest.approx(delta, rel=1e-9)
    assert analytic_scale(epsilon, 1e-5) == pytest.approx(analytic, rel=2e-12)


@settings(max_examples=30, deadline=None)
@given(epsilon=st.floats(1e-2, 20.0), log_delta=st.floats(-25.0, -0.5), sensitivity=st.floats(1e-3, 1e3))
def test_analytic_scale_is_the_smallest(epsilon, log_delta, sensitivity):
    delta = math.exp(log_delta)
    scale = analytic_scale(epsilon, delta, sensitivity)
    assert float(gaussian_delta(epsilon, sensitivity / scale)) <= delta
    assert float(gaussian_delta(epsilon, sensitivity / (scale * (1 - 1e-9)))) > delta


def test_analytic_scale_agrees_with_dp_accounting():
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    assert GaussianPrivacyLoss(analytic_scale(1.0, 1e-6)).get_delta_for_epsilon(1.0) == pytest.approx(1e-6, rel=1e-6)


def test_gaussian_claims():
    mechanism = GaussianMechanism(1.0, 1e-5, sensitivity=3.0)
    law, shifted = mechanism.law(0.0), mechanism.law(3.0)
    assert exact.delta(law, shifted, 1.0) == pytest.approx(1e-5, rel=1e-8)
    assert mechanism.claim == ApproxDP(1.0, 1e-5, Relation.ANSWERS)
    assert mechanism.gaussian_claim.mu == pytest.approx(3.0 / mechanism.scale)
    assert exact.epsilon(law, shifted) == math.inf


# ---------------------------------------------------------------------------------------------- histogram and median


@pytest.mark.parametrize(
    ("relation", "pairs"),
    [(Relation.ADD_REMOVE, neighbours.add_remove), (Relation.SUBSTITUTE, neighbours.substitute)],
)
def test_histogram_epsilon_follows_the_relation(relation, pairs):
    mechanism = NoisyHistogram(0.4, ("a", "b", "c"), relation=relation)
    pool = pairs(st.sampled_from("abc"), max_size=3).pool(40)
    assert max(exact.epsilon(mechanism.law(a), mechanism.law(b)) for a, b in pool) == pytest.approx(0.4, rel=1e-12)


def test_histogram_counted_for_removal_is_worth_half_under_substitution():  # docs/theory.md R1
    mechanism = NoisyHistogram(0.4, ("a", "b"))
    assert exact.epsilon(mechanism.law(["a"]), mechanism.law(["b"])) == pytest.approx(0.8, rel=1e-12)


@pytest.mark.parametrize("rows", range(1, 7))
def test_median_sensitivity_by_brute_force(rows):  # docs/theory.md R24: 1, .5, 1, .5, ...
    average, lower = LaplaceMedian(1.0, 0.0, 1.0), LaplaceMedian(1.0, 0.0, 1.0, even="lower")
    ends = list(itertools.product((0.0, 1.0), repeat=rows))
    for mechanism in (average, lower):
        moves = [
            abs(mechanism._median(x)[0] - mechanism._median(y)[0])
            for x, y in itertools.product(ends, ends)
            if sum(a != b for a, b in zip(x, y, strict=True)) == 1
        ]
        assert max(moves) == mechanism.sensitivity(rows)
    assert average.sensitivity(rows) == (0.5 if rows % 2 == 0 else 1.0)


@settings(max_examples=25, deadline=None)
@given(clip=st.booleans(), even=st.sampled_from(["average", "lower"]))
def test_median_keeps_its_claim_and_reaches_it(clip, even):
    mechanism = LaplaceMedian(0.8, 0.0, 1.0, even=even, clip=clip)
    found = verify(mechanism, mechanism.claim, neighbours.substitute(st.floats(0.0, 1.0), max_size=4), examples=60)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.largest == pytest.approx(0.8, rel=1e-9)


def test_median_error():
    # docs/theory.md R24: m = .5, eps = 1: .39347 clipped, 1 unclipped
    assert LaplaceMedian(1.0, 0.0, 1.0, clip=True).expected_error([0.5]) == pytest.approx(1 - math.exp(-0.5), rel=1e-14)
    assert LaplaceMedian(1.0, 0.0, 1.0).expected_error([0.5]) == 1.0
    from scipy.integrate import quad

    mechanism = LaplaceMedian(0.7, 0.0, 2.0, clip=True)
    data, scale = [0.3, 0.3, 1.9], 2.0 / 0.7

    def error(x: float) -> float:
        return abs(min(max(0.3 + x, 0.0), 2.0) - 0.3) * math.exp(-abs(x) / scale) / (2 * scale)

    numeric = sum(quad(error, a, b)[0] for a, b in ((-np.inf, -0.3), (-0.3, 0.0), (0.0, 1.7), (1.7, np.inf)))
    assert mechanism.expected_error(data) == pytest.approx(numeric, rel=1e-8)


# --------------------------------------------------------------------------------------------------------- composition


def test_composition_adds_epsilons_exactly():
    both = Composition((LaplaceMechanism(0.5), LaplaceMechanism(0.25), DiscreteLaplaceMechanism(0.1)))
    assert both.claim.parameter == pytest.approx(0.85)
    assert exact.epsilon(both.law(0), both.law(1)) == pytest.approx(0.85, rel=1e-12)
    assert both.sample(0, 7, rng()).shape == (7, 3)


def test_composition_of_vectors_lies_side_by_side():
    both = Composition((LaplaceMechanism(1.0), LaplaceMechanism(1.0)))
    assert both.sample([1.0, 100.0], 6, rng()).shape == (6, 4)
    assert len(both.law([1.0, 100.0]).laws) == 4


def test_claims_add_in_their_own_way():
    assert add_claims([PureDP(1.0), PureDP(0.5)]) == PureDP(1.5)
    assert add_claims([ApproxDP(1.0, 1e-6), ApproxDP(1.0, 2e-6)]).delta_claimed == pytest.approx(3e-6)
    assert add_claims([GaussianDP(0.6), GaussianDP(0.8)]).parameter == pytest.approx(1.0)
    with pytest.raises(InvalidArgument, match="do not add up"):
        add_claims([PureDP(1.0), GaussianDP(1.0)])
    with pytest.raises(RelationMismatch, match="different neighbours"):
        add_claims([PureDP(1.0, Relation.SUBSTITUTE), PureDP(1.0, Relation.ADD_REMOVE)])
