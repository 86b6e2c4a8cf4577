"""Importance weights: the solver, the sensitivity, exact pair epsilon and delta curve, accuracy, refusals, broken ones.

Reference numbers: computed beforehand and independently for E of five points and D of four, with a constant column.
"""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpaudit import exact
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument, MechanismError
from mechanisms.broken.importance_weighting import (
    ForgottenRegularisation,
    PerCoordinateNoise,
    PublicFromPrivate,
    WeightsWithoutNoise,
)
from mechanisms.importance_weighting import (
    ImportanceWeighting,
    SphericalLaplace,
    delta_method_variance,
    effective_sample_size,
    estimate,
    fit_coefficients,
    spherical_laplace_delta,
    weighted_covariance,
    worst_case,
)
from mechanisms.registry.importance_weighting import entries


def with_constant(rows):
    return np.hstack([np.array(rows, dtype=float), np.ones((len(rows), 1))])


PUBLIC = with_constant([(0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5)])
PRIVATE = with_constant([(1, 1), (1, 1), (1, 0), (0, 1)])
NEIGHBOUR = with_constant([(0, 0), (1, 1), (1, 0), (0, 1)])
FIRST = PUBLIC[:, 0]
EXAMPLE = ImportanceWeighting(PUBLIC, epsilon=1.0, regularisation=0.1)


@pytest.fixture
def rng():
    return np.random.default_rng(93)


def test_worked_example():
    beta = EXAMPLE.coefficients(PRIVATE)
    weights = EXAMPLE.weights(beta)
    assert beta == pytest.approx([0.48072149, 0.48072149, -0.49924522], abs=5e-9)
    assert weights == pytest.approx([0.59051466, 0.95500441, 0.95500441, 1.5444721, 0.95500441], abs=5e-8)
    assert weights.sum() == pytest.approx(5.0, rel=1e-14)
    assert estimate(FIRST, weights) == pytest.approx(0.5953957441, abs=1e-10)


def test_worked_example_privacy():
    assert EXAMPLE.coefficients(NEIGHBOUR) == pytest.approx([0.0, 0.0, 0.0], abs=1e-11)
    moved = EXAMPLE.coefficients(PRIVATE) - EXAMPLE.coefficients(NEIGHBOUR)
    assert np.linalg.norm(moved) == pytest.approx(0.8434643440, abs=1e-9)
    assert EXAMPLE.sensitivity(4) == pytest.approx(4.3301270189, abs=1e-9)
    assert EXAMPLE.pair_epsilon(PRIVATE, NEIGHBOUR) == pytest.approx(0.1947897464, abs=1e-9)
    assert EXAMPLE.claim == PureDP(1.0, Relation.SUBSTITUTE)


def test_worked_example_accuracy():
    weights = EXAMPLE.weights(EXAMPLE.coefficients(PRIVATE))
    assert weighted_covariance(FIRST, PUBLIC, weights) == pytest.approx([0.19314943, 0.00214855, 0.0], abs=5e-9)
    assert delta_method_variance(FIRST, PUBLIC, weights, 0.05) == pytest.approx(3.7311e-4, abs=5e-9)
    scale = EXAMPLE.sensitivity(4)
    assert EXAMPLE.estimate_variance(FIRST, PRIVATE) == pytest.approx(
        delta_method_variance(FIRST, PUBLIC, weights, scale)
    )


def test_a_constant_column_is_invisible():
    """Only the span of the differences of E shows: the first two coordinates here."""
    assert not EXAMPLE.lossless
    visible = np.linalg.norm((EXAMPLE.coefficients(PRIVATE) - EXAMPLE.coefficients(NEIGHBOUR))[:2])
    assert EXAMPLE.visible_epsilon(PRIVATE, NEIGHBOUR) == pytest.approx(visible / EXAMPLE.sensitivity(4), rel=1e-9)
    assert EXAMPLE.weights([0.3, -0.2, 5.0]) == pytest.approx(EXAMPLE.weights([0.3, -0.2, -7.0]), rel=1e-12)
    without = ImportanceWeighting(PUBLIC[:, :2], epsilon=1.0, regularisation=0.1)
    assert without.lossless
    assert without.visible_epsilon(PRIVATE[:, :2], NEIGHBOUR[:, :2]) == pytest.approx(
        without.pair_epsilon(PRIVATE[:, :2], NEIGHBOUR[:, :2])
    )


def test_weights_give_the_visible_coefficients_back(rng):
    coefficients = rng.normal(0.0, 3.0, (7, 3))
    recovered = EXAMPLE.recover(EXAMPLE.weights(coefficients))
    assert recovered[:, :2] == pytest.approx(coefficients[:, :2], abs=1e-10)
    assert recovered[:, 2] == pytest.approx(np.zeros(7), abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float64, (6, 3), elements=st.floats(0.0, 1.0)),
    hnp.arrays(np.float64, (4, 3), elements=st.floats(0.0, 1.0)),
    hnp.arrays(np.float64, (3,), elements=st.floats(0.0, 1.0)),
    st.sampled_from([1e-3, 0.1, 10.0]),
)
def test_no_pair_moves_further_than_the_sensitivity(private, public, record, regularisation):
    mechanism = ImportanceWeighting(public, epsilon=1.0, regularisation=regularisation)
    neighbour = private.copy()
    neighbour[0] = record
    assert mechanism.pair_epsilon(private, neighbour) <= 1.0
    assert (
        mechanism.visible_epsilon(private, neighbour) <= mechanism.pair_epsilon(private, neighbour) * (1 + 1e-9) + 1e-9
    )


@pytest.mark.parametrize(
    ("dimension", "private_size", "regularisation", "ratio"), [(4, 1000, 0.01, 0.680), (42, 20_000, 0.001, 0.962)]
)
def test_the_worst_case_approaches_the_sensitivity(dimension, private_size, regularisation, ratio):
    """E = {e2} alone, the pair that comes near the bound: eps_pair is not half of epsilon in general."""
    _, data, neighbour = worst_case(dimension=dimension, private_size=private_size)
    mechanism = ImportanceWeighting(np.eye(dimension)[1:2], epsilon=1.0, regularisation=regularisation)
    assert mechanism.pair_epsilon(data, neighbour) == pytest.approx(ratio, abs=5e-4)


def test_the_worst_case_of_the_registry_is_visible():
    public, data, neighbour = worst_case(dimension=8, private_size=200)
    mechanism = ImportanceWeighting(public, epsilon=1.0, regularisation=0.05)
    assert mechanism.lossless
    assert mechanism.visible_epsilon(data, neighbour) > 0.7
    assert (data != neighbour).any(axis=1).sum() == 1


@pytest.mark.parametrize(
    ("dimension", "total_variation", "at_half"),
    [(1, 0.393469, 0.221199), (2, 0.2959601, 0.1227054), (3, 0.2418367, 0.0751741), (5, 0.1849744, 0.0341045)],
)
def test_delta_curve(dimension, total_variation, at_half):
    assert spherical_laplace_delta(0.0, shift=1.0, dimension=dimension) == pytest.approx(total_variation, abs=6e-7)
    assert spherical_laplace_delta(0.5, shift=1.0, dimension=dimension) == pytest.approx(at_half, abs=6e-7)
    assert spherical_laplace_delta(1.0, shift=1.0, dimension=dimension) == 0.0


def test_delta_curve_of_three_dimensions_in_closed_form():
    """TV of spherical Laplace in R^3 at shift 1 is 1 - 1.25 exp(-1/2)."""
    assert spherical_laplace_delta(0.0, shift=1.0, dimension=3) == pytest.approx(1 - 1.25 * math.exp(-0.5), rel=1e-13)


@pytest.mark.parametrize("dimension", [2, 3, 10, 51])
def test_delta_curve_is_a_privacy_profile(dimension):
    epsilons = np.linspace(0.0, 3.0, 61)
    deltas = np.array([spherical_laplace_delta(e, shift=3.0, dimension=dimension) for e in epsilons])
    assert (np.diff(deltas) < 0).all()
    assert (np.diff(np.diff(deltas) / np.diff(np.exp(epsilons))) >= -1e-13).all()


def test_pair_delta_uses_the_distance_of_the_coefficients():
    expected = spherical_laplace_delta(0.05, shift=EXAMPLE.pair_epsilon(PRIVATE, NEIGHBOUR), dimension=3)
    assert EXAMPLE.pair_delta(PRIVATE, NEIGHBOUR, 0.05) == expected
    assert EXAMPLE.pair_delta(PRIVATE, NEIGHBOUR, 0.2) == 0.0


def test_samples_are_weights(rng):
    weights = EXAMPLE.sample(PRIVATE, 500, rng)
    assert weights.shape == (500, 5)
    assert weights.sum(axis=1) == pytest.approx(np.full(500, 5.0), rel=1e-12)
    assert (weights >= 0).all()
    assert np.isfinite(EXAMPLE.weights([800.0, -900.0, 0.0])).all()  # log-sum-exp
    assert EXAMPLE.sample(PRIVATE, 0, rng).shape == (0, 5)


def test_spherical_laplace_density():
    """Two dimensions: exp(-r/s) / (2 pi s^2)."""
    law = SphericalLaplace((1.0, -1.0), 2.0)
    assert law.log_prob([[4.0, 3.0]]) == pytest.approx([-2.5 - math.log(2 * math.pi * 4.0)], rel=1e-13)
    line = SphericalLaplace((1.0,), 2.0)
    assert line.log_prob([[4.0]]) == pytest.approx(exact.Laplace(1.0, 2.0).log_prob([4.0]), rel=1e-13)


def test_effective_sample_size_and_its_warning():
    assert effective_sample_size([2.0, 2.0, 2.0]) == pytest.approx(3.0)
    assert effective_sample_size([1e-300, 3e300]) == pytest.approx(1.0)
    with pytest.warns(UserWarning, match="worth 1.00 records of 2"):
        estimate([0.0, 1.0], [0.0, 2.0])


def test_tiny_regularisation_makes_weights_degenerate(rng):
    mechanism = ImportanceWeighting(PUBLIC, epsilon=1.0, regularisation=1e-4)
    worth = [effective_sample_size(row) for row in mechanism.sample(PRIVATE, 200, rng)]
    assert np.median(worth) < 1.5


def test_mechanisms_pickle_and_keep_their_public_set_constant():
    mechanism = pickle.loads(pickle.dumps(EXAMPLE))
    assert mechanism.coefficients(PRIVATE) == pytest.approx(EXAMPLE.coefficients(PRIVATE))
    source = PUBLIC.copy()
    mechanism = ImportanceWeighting(source, epsilon=1.0, regularisation=0.1)
    source[:] = 0.0
    assert np.asarray(mechanism.public).any()
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(mechanism.public)[0] = 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ImportanceWeighting([[0.0, 1.2]], 1.0, 0.1), r"outside \[0.0, 1.0\]"),
        (lambda: ImportanceWeighting(np.empty((0, 2)), 1.0, 0.1), "public is empty"),
        (lambda: ImportanceWeighting([0.0, 1.0], 1.0, 0.1), "2 dimension"),
        (lambda: ImportanceWeighting([[math.nan]], 1.0, 0.1), "nan"),
        (lambda: ImportanceWeighting(PUBLIC, 0.0, 0.1), "epsilon=0.0"),
        (lambda: ImportanceWeighting(PUBLIC, 1.0, 0.0), "regularisation=0.0"),
        (lambda: ImportanceWeighting(PUBLIC, 1.0, 0.1, tolerance=0.0), "tolerance=0.0"),
        (lambda: EXAMPLE.coefficients(np.empty((0, 3))), "data is empty"),
        (lambda: EXAMPLE.coefficients([[0.0, 1.0]]), "same columns"),
        (lambda: EXAMPLE.coefficients([[0.0, -0.1, 1.0]]), "outside"),
        (lambda: EXAMPLE.pair_epsilon(PRIVATE, PRIVATE[1:]), "4 records and neighbour 3"),
        (lambda: EXAMPLE.sensitivity(0), "private_size=0"),
        (lambda: estimate([0.0], [0.5, 1.5]), "1 entries"),
        (lambda: estimate([0.0, 1.0], [-0.5, 1.5]), "weights hold -0.5"),
        (lambda: delta_method_variance([0.0], PUBLIC, np.ones(5), 1.0), "all must agree"),
        (lambda: spherical_laplace_delta(-1.0, shift=1.0, dimension=2), "epsilon=-1.0"),
        (lambda: spherical_laplace_delta(1.0, shift=1.0, dimension=0), "dimension=0"),
        (lambda: SphericalLaplace((0.0,), 0.0), "scale=0.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_inputs(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_a_tolerance_out_of_reach_is_an_error():
    with pytest.raises(MechanismError, match="tolerance=1e-30"):
        fit_coefficients(PRIVATE, PUBLIC, regularisation=0.1, tolerance=1e-30)


def test_per_coordinate_noise_pays_for_l1(rng):
    public, data, neighbour = worst_case(dimension=8, private_size=200)
    right = ImportanceWeighting(public, epsilon=1.0, regularisation=0.05)
    broken = PerCoordinateNoise(right)
    moved = np.abs(right.coefficients(data) - right.coefficients(neighbour)).sum()
    assert broken.pair_epsilon(data, neighbour) == pytest.approx(moved / right.sensitivity(200), rel=1e-9)
    assert 1.5 < broken.pair_epsilon(data, neighbour) <= math.sqrt(8.0)
    assert broken.sample(data, 3, rng).shape == (3, len(public))


def test_forgotten_regularisation_divides_by_lambda(rng):
    broken = ForgottenRegularisation(EXAMPLE)
    assert broken.pair_epsilon(PRIVATE, NEIGHBOUR) == pytest.approx(10 * EXAMPLE.visible_epsilon(PRIVATE, NEIGHBOUR))
    assert broken.coefficient_law(PRIVATE).scale == pytest.approx(math.sqrt(3) / 4, rel=1e-9)
    assert broken.sample(PRIVATE, 3, rng).shape == (3, 5)


def test_public_from_private_shows_ties(rng):
    broken = PublicFromPrivate(1.0, 0.1)
    tied = broken.sample([[0.5, 0.5]] * 2 + [[1.0, 0.0]], 200, rng)
    apart = broken.sample([[0.5, 0.5], [0.2, 0.9], [1.0, 0.0]], 200, rng)
    assert (tied[:, 0] == tied[:, 1]).all()
    assert (apart[:, 0] != apart[:, 1]).all()
    assert broken.epsilon_exact == math.inf


def test_weights_without_noise_are_constant(rng):
    broken = WeightsWithoutNoise(EXAMPLE)
    outputs = broken.sample(PRIVATE, 5, rng)
    assert (outputs == outputs[0]).all()
    assert exact.epsilon(broken.law(PRIVATE), broken.law(NEIGHBOUR)) == broken.epsilon_exact == math.inf
    assert broken.law(PRIVATE).log_prob([tuple(outputs[0])]) == pytest.approx([0.0])


def test_registry_entries_name_what_they_make():
    found = entries()
    assert len({entry.name for entry in found}) == len(found) == 5
    for entry in found:
        assert entry.make().claim == entry.claim
        assert entry.make().relation is entry.neighbours().relation
        assert entry.breaks_claim is (entry.bug is not None)
