"""Bounded noise: constants, exact and composed deltas, calibration, the interactive session, and what it refuses.

Reference numbers: computed beforehand and independently, with scipy and dp-accounting 0.6.0 (rounded as printed).
"""

import math
import pickle
import sys

import numpy as np
import pytest

from dpaudit import exact
from dpaudit.claims import ApproxDP, Relation
from dpaudit.errors import InvalidArgument, MissingDependency
from mechanisms.bounded_noise import (
    BoundedNoise,
    calibrate_radius,
    composed_delta,
    composed_epsilon,
    gaussian_std,
    truncated_laplace_half_width,
)
from mechanisms.bounded_noise.density import (
    FAMILIES,
    noise_law,
    one_query_delta,
    potential,
    shape,
    unit_cdf,
    unit_noise,
)
from mechanisms.broken.bounded_noise import ClippedNoise, RadiusForLess
from mechanisms.registry.bounded_noise import ONE_QUERY_FOR_HUNDRED, entries

# family: Z, std, E|x|, f(0), acceptance, Fisher information
CONSTANTS = {
    "DE": (0.054966054709, 0.286274658999, 0.238300452918, 1.20052341749, 0.41648500372, 17.144462),
    "p1": (0.443993816168030, 0.397635054118, 0.33445399771, 0.82856883987, 0.603450161219, 12.576977),
    "p2": (0.340294238275088, 0.313428424760, 0.261755404212, 1.08106279741, 0.462507822116, 15.114733),
}
# queries, delta: minimal radius of DE, p1, p2 at epsilon = 1 and sensitivity 1, and the analytic Gaussian sigma
SMALLEST = {
    (1, 1e-5): (63.9998, 85.947, 61.141, 3.7306),
    (10, 1e-5): (97.658, 137.636, 92.747, 11.797),
    (100, 1e-6): (214.877, 295.293, 203.113, 42.247),
    (1000, 1e-6): (564.73, 529.22, 531.22, 133.596),
}


@pytest.fixture
def rng():
    return np.random.default_rng(20_220_712)


@pytest.mark.parametrize("family", FAMILIES)
def test_constants(family):
    normaliser, std, mean_absolute, peak, acceptance, fisher = CONSTANTS[family]
    known = shape(family)
    assert math.exp(known.log_normaliser) == pytest.approx(normaliser, rel=1e-11)
    assert known.std == pytest.approx(std, rel=1e-11)
    assert known.mean_absolute == pytest.approx(mean_absolute, rel=1e-10)
    assert math.exp(-float(potential(family, 1.0)) - known.log_normaliser) == pytest.approx(peak, rel=1e-10)
    assert known.acceptance == pytest.approx(acceptance, rel=1e-10)
    assert known.fisher == pytest.approx(fisher, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_potential_is_symmetric_infinite_outside_and_never_nan(family):
    edge = np.array([-1.0, 0.0, 5e-324, 1e-200, 1e-3, 0.3, 1.0, 1.7, 2.0, 3.0])
    values = potential(family, edge)
    assert not np.isnan(values).any()
    assert np.isinf(values[[0, 1, 8, 9]]).all()
    assert potential(family, 0.3) == pytest.approx(potential(family, 1.7), rel=1e-14)


@pytest.mark.parametrize(
    ("family", "radius", "delta"), [("DE", 64, 9.99979e-6), ("p1", 86, 9.97129e-6), ("p2", 61, 1.013562e-5)]
)
def test_one_query_delta(family, radius, delta):
    assert float(one_query_delta(family, 1.0, 1 / radius)) == pytest.approx(delta, rel=1e-6)


def test_one_query_delta_grows_with_the_shift():
    values = [float(one_query_delta("DE", 1.0, shift / 64)) for shift in (0.5, 0.8, 0.9, 1.0)]
    assert values == pytest.approx([8.57e-8, 2.58e-6, 5.37e-6, 1.00e-5], rel=2e-3)


def test_the_loss_crosses_epsilon_where_the_supremum_is_attained():
    """F(t) - e F(t - s) is largest at the root; the printed root is x* = -0.729986."""
    shift, root = 1 / 64, -0.729986 + 1.0

    def objective(edge):
        return float(unit_cdf("DE", edge) - math.e * unit_cdf("DE", edge - shift))

    assert objective(root) == pytest.approx(float(one_query_delta("DE", 1.0, shift)), rel=1e-8)
    assert objective(root) > max(objective(root - 0.01), objective(root + 0.01))


@pytest.mark.parametrize("family", FAMILIES)
def test_profile_is_a_privacy_profile(family):
    epsilons = np.linspace(0.0, 8.0, 81)
    deltas = one_query_delta(family, epsilons, 0.1)
    assert (np.diff(deltas) < 0).all()
    slopes = np.diff(deltas) / np.diff(np.exp(epsilons))
    assert (np.diff(slopes) >= -1e-12).all()  # convex in exp(epsilon)
    assert deltas[-1] >= float(unit_cdf(family, 0.1))  # the infinite losses never go away


def test_disjoint_supports_have_delta_one():
    assert composed_delta(family="DE", radius=0.5, sensitivity=1.0, epsilon=1.0, queries=1) == 1.0
    assert composed_delta(family="p1", radius=0.4, sensitivity=1.0, epsilon=1.0, queries=7) == 1.0
    assert composed_epsilon(family="DE", radius=0.4, sensitivity=1.0, delta=0.5, queries=2) == math.inf


@pytest.mark.parametrize(
    ("queries", "radius", "delta", "rel"),
    [(10, 100, 8.380e-6, 2e-4), (100, 220, 7.26e-7, 1e-3), (1000, 570, 8.32e-7, 1e-3)],
)
def test_composed_delta(queries, radius, delta, rel):
    value = composed_delta(family="DE", radius=radius, sensitivity=1.0, epsilon=1.0, queries=queries)
    assert value == pytest.approx(delta, rel=rel)


def test_composed_delta_is_an_upper_bound_that_falls_with_the_step():
    coarse, fine = (
        composed_delta(family="DE", radius=570, sensitivity=1.0, epsilon=1.0, queries=1000, step=step)
        for step in (1e-3, 5e-5)
    )
    assert coarse == pytest.approx(8.56e-7, rel=1e-3)
    assert fine == pytest.approx(8.32e-7, rel=1e-3)
    assert fine < coarse


@pytest.mark.parametrize(("family", "delta"), [("DE", 9.306e-4), ("p1", 1.3737e-3), ("p2", 6.904e-4)])
def test_twenty_queries(family, delta):
    assert composed_delta(family=family, radius=60, sensitivity=1.0, epsilon=1.0, queries=20) == pytest.approx(
        delta, rel=2e-4
    )


@pytest.mark.parametrize("queries_delta", SMALLEST, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_smallest_radius(queries_delta, family):
    """A thousandth above the printed minimum keeps the claim, a thousandth below does not: R is right to 1e-3."""
    queries, delta = queries_delta
    radius = SMALLEST[queries_delta][FAMILIES.index(family)]

    def reached(scale):
        return composed_delta(family=family, radius=scale * radius, sensitivity=1.0, epsilon=1.0, queries=queries)

    assert reached(1.001) <= delta < reached(0.999)


def test_calibration_meets_the_claim_and_is_linear_in_the_sensitivity():
    radius = calibrate_radius(epsilon=1.0, delta=1e-5, queries=10)
    assert radius == pytest.approx(97.658, rel=1e-4)
    assert composed_delta(family="DE", radius=radius, sensitivity=1.0, epsilon=1.0, queries=10) <= 1e-5
    assert calibrate_radius(epsilon=1.0, delta=1e-5, queries=10, sensitivity=0.25) == pytest.approx(
        radius / 4, rel=1e-12
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (0.5, 0.3), (8.0, 1e-6), (30.0, 1e-12)])
def test_one_query_calibration_is_sharp(family, epsilon, delta):
    radius = calibrate_radius(family=family, epsilon=epsilon, delta=delta)
    assert float(one_query_delta(family, epsilon, 1 / radius)) <= delta
    assert float(one_query_delta(family, epsilon, 1 / radius)) == pytest.approx(delta, rel=1e-8)


def test_composed_epsilon_inverts_composed_delta():
    epsilon = composed_epsilon(family="p2", radius=60.0, sensitivity=1.0, delta=6.904e-4, queries=20)
    assert epsilon == pytest.approx(1.0, abs=1e-4)


def test_gaussian_comparison_and_large_number_law():
    for (queries, delta), row in SMALLEST.items():
        assert gaussian_std(epsilon=1.0, delta=delta, queries=queries) == pytest.approx(row[3], abs=6e-4)
    ratios = [row[0] / (math.sqrt(shape("DE").fisher) * row[3]) for row in SMALLEST.values()]
    assert sorted(ratios, reverse=True) == ratios  # towards one
    assert ratios[-1] == pytest.approx(1.0, abs=0.03)


def test_truncated_laplace_is_narrower_for_one_query():
    half_width = truncated_laplace_half_width(epsilon=1.0, delta=1e-5)
    assert half_width == pytest.approx(11.361, abs=5e-4)
    assert calibrate_radius(epsilon=1.0, delta=1e-5) / half_width == pytest.approx(5.6, abs=0.05)
    assert truncated_laplace_half_width(epsilon=800.0, delta=1e-5) == pytest.approx(1 + math.log(5e4) / 800, rel=1e-12)


def test_outputs_stay_inside_the_radius_and_have_the_shape_of_the_data(rng):
    mechanism = BoundedNoise(1.0, 1e-5, queries=3, radius=100.0)
    vector = mechanism.sample([0.0, 5.0], 20_000, rng)
    assert vector.shape == (20_000, 2)
    assert (np.abs(vector - [0.0, 5.0]) < 100.0).all()
    assert mechanism.sample(5.0, 4, rng).shape == (4,)
    assert mechanism.sample([5.0], 0, rng).shape == (0, 1)
    assert mechanism.std == pytest.approx(28.6274658999)
    assert mechanism.claim == ApproxDP(1.0, 1e-5, Relation.ANSWERS)
    assert mechanism.claim.relation is mechanism.relation


def test_law_has_the_density_and_exactly_the_claimed_delta():
    mechanism = BoundedNoise(1.0, 1e-5)
    law = mechanism.law(2.0)
    outputs = np.array([2.0, 10.0, -50.0, 70.0])
    expected = [
        -float(potential("DE", 1.0 + (y - 2.0) / mechanism.radius))
        - shape("DE").log_normaliser
        - math.log(mechanism.radius)
        if abs(y - 2.0) < mechanism.radius
        else -math.inf
        for y in outputs
    ]
    assert law.log_prob(outputs) == pytest.approx(np.array(expected), rel=1e-12)
    assert exact.delta(law, mechanism.law(3.0), 1.0) == pytest.approx(1e-5, rel=1e-6)
    assert exact.epsilon(law, mechanism.law(3.0)) == math.inf
    assert mechanism.law([2.0]).log_prob(np.array([[10.0]])) == pytest.approx(law.log_prob(np.array([10.0])))


def test_law_pickles():
    law = noise_law("p2", 1.0, 3.0)
    assert pickle.loads(pickle.dumps(law)).log_prob(np.array([0.5])) == pytest.approx(law.log_prob(np.array([0.5])))


def test_session_refuses_the_query_after_the_last(rng):
    session = BoundedNoise(1.0, 1e-5, queries=2, radius=100.0).session([1, 2, 3], rng)
    first = session.ask(len)
    assert abs(first - 3) < 100
    assert session.remaining == 1
    session.ask(lambda data: sum(data) if first > 0 else max(data), sensitivity=0.5)  # adaptive, and less sensitive
    with pytest.raises(InvalidArgument, match="queries=2 are answered"):
        session.ask(len)
    assert session.remaining == 0


def test_session_refuses_too_sensitive_queries_without_charging(rng):
    session = BoundedNoise(1.0, 1e-5, queries=2, radius=100.0).session([1], rng)
    with pytest.raises(InvalidArgument, match=r"sensitivity=1\.5 exceeds 1\.0"):
        session.ask(sum, sensitivity=1.5)
    assert session.remaining == 2


@pytest.mark.parametrize("query", [lambda data: math.nan, lambda data: 1 / 0], ids=["nan", "raises"])
def test_a_query_that_fails_has_been_asked(rng, query):
    session = BoundedNoise(1.0, 1e-5, queries=2, radius=100.0).session([1], rng)
    with pytest.raises((InvalidArgument, ZeroDivisionError)):
        session.ask(query)
    assert session.remaining == 1


def test_without_dp_accounting_one_query_works_and_more_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    assert calibrate_radius(epsilon=0.77, delta=1e-5) > 60
    with pytest.raises(MissingDependency, match=r"pip install dpaudit\[accounting\]"):
        calibrate_radius(epsilon=0.77, delta=1e-5, queries=2)


def test_a_radius_that_breaks_the_claim_is_refused():
    with pytest.raises(InvalidArgument, match=r"radius=63\.0 gives delta="):
        BoundedNoise(1.0, 1e-5, radius=63.0)
    assert BoundedNoise(1.0, 1e-5, radius=65.0).radius == 65.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"queries": 0}, "queries=0"),
        ({"queries": 1.5}, "queries=1.5"),
        ({"sensitivity": 0.0}, "sensitivity=0.0"),
        ({"sensitivity": math.inf}, "sensitivity=inf"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": math.nan}, "epsilon=nan"),
        ({"delta": 0.0}, "supports differ"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"family": "p3"}, "family='p3'"),
        ({"radius": -1.0}, "radius=-1.0"),
        ({"radius": math.inf}, "radius=inf"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        BoundedNoise(**{"epsilon": 1.0, "delta": 1e-5, **arguments})


@pytest.mark.parametrize("data", [[1.0, 2.0, 3.0, 4.0], [], [[1.0]], [math.nan], "text"])
def test_bad_data(rng, data):
    with pytest.raises(InvalidArgument, match="data"):
        BoundedNoise(1.0, 1e-5, queries=3, radius=100.0).sample(data, 2, rng)


def test_unit_noise_needs_a_generator_and_a_family(rng):
    with pytest.raises(InvalidArgument, match="rng=7"):
        unit_noise("DE", 3, 7)
    with pytest.raises(InvalidArgument, match="must be one of"):
        unit_noise("de", 3, rng)
    with pytest.raises(InvalidArgument, match="epsilon"):
        one_query_delta("DE", -0.1, 0.1)


def test_radius_for_one_query_breaks_the_claim_for_a_hundred(rng):
    broken = RadiusForLess(1.0, 1e-3, queries=100)
    assert broken.claim == BoundedNoise(1.0, 1e-3).claim
    assert broken.delta_exact > 0.4
    assert broken.epsilon_exact == pytest.approx(ONE_QUERY_FOR_HUNDRED, rel=1e-4)
    again = composed_delta(
        family="DE", radius=broken.radius, sensitivity=1.0, epsilon=broken.epsilon_exact, queries=100
    )
    assert again == pytest.approx(1e-3, rel=1e-3)
    assert broken.sample(np.zeros(100), 3, rng).shape == (3, 100)
    with pytest.raises(InvalidArgument, match="100 answers"):
        broken.sample([0.0], 3, rng)


def test_radius_without_sensitivity_breaks_the_claim(rng):
    broken = RadiusForLess(1.0, 1e-5, sensitivity=10.0)
    assert broken.radius == calibrate_radius(epsilon=1.0, delta=1e-5)
    assert broken.delta_exact == pytest.approx(exact.delta(broken.law(0.0), broken.law(10.0), 1.0), rel=1e-7)
    assert broken.delta_exact > 0.01
    assert broken.epsilon_exact > 10
    assert (np.abs(broken.sample(3.0, 1000, rng) - 3.0) < broken.radius).all()


def test_clipped_noise_has_atoms_that_count_fully(rng):
    """Beyond the largest finite loss delta is F(-R') + F(-R' + M): two atoms and the strip that one side cannot reach."""
    broken = ClippedNoise(1.0, 1e-5, share=0.5)
    reach, shift = 1.0 - 0.5, 1.0 / broken.radius
    beyond = float(unit_cdf("DE", reach) + unit_cdf("DE", reach + shift))
    assert exact.delta(broken.law(0.0), broken.law(1.0), 5.0) == pytest.approx(beyond, rel=1e-7)
    assert broken.delta_exact >= beyond * (1 - 1e-12)
    assert broken.epsilon_exact == math.inf
    outputs = broken.sample(4.0, 50_000, rng)
    at_the_ends = np.isin(outputs, [4.0 - broken.radius / 2, 4.0 + broken.radius / 2])
    assert at_the_ends.mean() == pytest.approx(2 * float(unit_cdf("DE", reach)), abs=0.01)
    assert np.isfinite(broken.law(4.0).log_prob(outputs[at_the_ends][:5])).all()


def test_registry_entries_name_what_they_make():
    found = entries()
    assert len({entry.name for entry in found}) == len(found) == 5
    for entry in found:
        assert entry.make().claim == entry.claim
        assert entry.claim.relation is entry.neighbours().relation
        assert entry.breaks_claim is (entry.bug is not None)


def test_the_registry_does_not_need_dp_accounting(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    assert entries()
