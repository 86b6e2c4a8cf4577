"""Claims that are curves: against linear programs, closed forms, exact laws and dp-accounting; rounding is to the safe side."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

from dpaudit import (
    ApproxDP,
    BoundedRange,
    GaussianDP,
    MetricDP,
    ProfileDP,
    PureDP,
    Relation,
    RenyiDP,
    TradeOffDP,
    ZeroConcentratedDP,
    exact,
)
from dpaudit.claims import Claim, claim_delta, claimed_epsilon, distance_between
from dpaudit.errors import InvalidArgument
from dpaudit.result.model import claim_from_dict, claim_to_dict
from dpaudit.result.text import claim_text, parameter_words
from mechanisms.registry.tight import OneSidedResponse

RESPONSE = [(0.0, 1.0), (0.25, 0.25), (1.0, 0.0)]
CLAIMS: list[Claim] = [
    ProfileDP([(0.5, 0.1), (2.0, 1e-3)], Relation.SUBSTITUTE),
    ProfileDP([(0.0, 0.3)], factor=1.5),
    TradeOffDP(RESPONSE, Relation.ADD_REMOVE),
    BoundedRange(0.7),
    MetricDP(0.5, "great-circle"),
]


def gaussian(mu: float):
    return lambda alpha: ndtr(-ndtri(alpha) - mu)


def laplace(epsilon: float):
    """Trade-off function of Laplace laws epsilon apart (Dong, Roth and Su 2022, proposition A.6)."""
    half = math.exp(-epsilon) / 2.0

    def f(alpha: float) -> float:
        if alpha < half:
            return 1.0 - math.exp(epsilon) * alpha
        return math.exp(-epsilon) / (4.0 * alpha) if alpha <= 0.5 else math.exp(-epsilon) * (1.0 - alpha)

    return f


def largest_delta(points: list[tuple[float, float]], level: float) -> float:
    """Largest delta at a level of any pair that has at most these deltas in both orders, by linear programming.

    Variables: the probability of each log-ratio of a grid on the first side; on the second it is exp(-loss) of that. And of an
    output that only one side has.
    """
    losses = np.unique(np.concatenate([np.linspace(-4.0, 4.0, 321), *([e, -e] for e, _ in points), [level, -level]]))
    ratio = np.exp(-losses)

    def row(epsilon: float, *, backward: bool) -> np.ndarray:
        if backward:
            return np.append(np.maximum(ratio - math.exp(epsilon), 0.0), [0.0, 1.0])
        return np.append(np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0), [1.0, 0.0])

    rows = [row(epsilon, backward=backward) for epsilon, _ in points for backward in (False, True)]
    limits = [delta for _, delta in points for _ in range(2)]
    sums = np.array([np.append(np.ones(losses.size), [1.0, 0.0]), np.append(ratio, [0.0, 1.0])])
    solved = linprog(-row(level, backward=False), np.array(rows), limits, sums, [1.0, 1.0], method="highs")
    return -float(solved.fun)


@pytest.mark.parametrize(
    "points", [[(0.5, 0.1), (2.0, 1e-3)], [(0.0, 0.4), (1.0, 0.2), (1.5, 0.19)], [(1.0, 0.0)], [(0.3, 0.2)]]
)
@pytest.mark.parametrize("level", [0.0, 0.25, 0.5, 0.8, 1.2, 2.0, 3.0])
def test_a_profile_is_the_largest_that_its_points_allow(points, level):
    claimed = ProfileDP(points).delta(level)
    assert largest_delta(points, level) == pytest.approx(claimed, abs=1e-6)


@given(epsilon=st.floats(0.0, 8.0), delta=st.floats(1e-9, 0.9), level=st.floats(0.0, 12.0))
def test_one_point_is_approximate_dp(epsilon, delta, level):
    assert ProfileDP([(epsilon, delta)]).delta(level) == pytest.approx(ApproxDP(epsilon, delta).delta(level), rel=1e-12)


@given(mu=st.floats(0.05, 4.0), level=st.floats(0.0, 10.0))
def test_points_of_a_curve_never_claim_more_than_the_curve(mu, level):
    claim = ProfileDP.of(GaussianDP(mu))
    assert claim.delta(level) >= GaussianDP(mu).delta(level)
    for epsilon, delta in claim.points:
        true = GaussianDP(mu).delta(epsilon)
        assert true < delta <= 1.00002 * true + 2e-12


def test_a_privacy_loss_distribution_of_dp_accounting_is_a_curve():
    loss = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pld = loss.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3)
    claim = ProfileDP.of(pld, epsilons=[0.0, 0.5, 1.0, 2.0], relation=Relation.ADD_REMOVE)
    for epsilon, delta in claim.points:
        assert GaussianDP(0.5).delta(epsilon) <= delta <= 1.01 * GaussianDP(0.5).delta(epsilon) + 1e-9
    assert claim.relation is Relation.ADD_REMOVE


def test_an_opendp_profile_is_an_object_with_a_method_delta():
    class PrivacyProfile:  # the interface of opendp's
        def delta(self, epsilon: float) -> float:
            return max(0.0, 0.5 - epsilon)

        def epsilon(self, delta: float) -> float:
            return max(0.0, 0.5 - delta)

    assert ProfileDP.of(PrivacyProfile(), epsilons=[0.25]).points[0][1] == pytest.approx(0.25, abs=1e-5)
    assert ProfileDP.of(lambda epsilon: 0.125, epsilons=[1]).points == ((1.0, 0.125001),)


FUNCTIONS = {
    "gaussian 0.3": gaussian(0.3), "gaussian 1": gaussian(1.0), "gaussian 3": gaussian(3.0), "laplace 1": laplace(1.0),
    "nothing": lambda alpha: 1.0 - alpha,
    "response": lambda alpha: max(1.0 - math.e * alpha, (1.0 - alpha) / math.e),
    "leak": lambda alpha: max(0.0, 0.9 - alpha),
    "one-sided": lambda alpha: (1.0 - math.sqrt(alpha)) ** 2,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_corners_of_a_trade_off_function_lie_below_it(name):
    f, claim = FUNCTIONS[name], TradeOffDP(FUNCTIONS[name])
    rng = np.random.default_rng(0)
    alphas = np.concatenate([rng.random(300), 10.0 ** rng.uniform(-13, 0, 300), 1.0 - 10.0 ** rng.uniform(-13, 0, 300)])
    for alpha in alphas.tolist():
        assert claim.f(alpha) <= f(alpha) + 1e-16
    # The conjugate, by search over a grid: never above the profile of the claim in at least one order.
    powers, grid = np.array([1.0 - f(alpha) for alpha in alphas.tolist()]), alphas
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        forward = (powers - math.exp(epsilon) * grid).max()
        backward = (1.0 - grid - math.exp(epsilon) * (1.0 - powers)).max()
        assert claim.delta(epsilon) >= min(forward, backward) - 1e-16
    if name.startswith(("gaussian", "laplace")):  # and close: the loss is about a percent between levels
        assert abs(claim.f(0.3) / f(0.3) - 1.0) < 0.02


def test_the_profile_of_a_gaussian_trade_off_function_is_tight_at_its_levels():
    claim = TradeOffDP(gaussian(1.0))
    levels = claim.levels[(claim.levels > 0.0) & (claim.levels < 3.0)]
    excess = claim.delta(levels) / GaussianDP(1.0).delta(levels) - 1.0
    assert levels.size >= 8
    assert (excess > 0.0).all()
    assert (excess < 2e-3).all()


def test_corners_are_the_trade_off_function_of_exact_laws():
    P, Q = exact.Discrete({0: 0.5, 1: 0.3, 2: 0.2}), exact.Discrete({0: 0.2, 1: 0.3, 2: 0.5})
    claim = TradeOffDP([(0.0, 1.0), (0.2, 0.5), (0.5, 0.2), (1.0, 0.0)])
    for epsilon in (0.0, 0.1, 0.5, math.log(2.5) - 1e-6, 1.0, 3.0):
        assert claim.delta(epsilon) == pytest.approx(exact.delta(P, Q, epsilon), abs=2e-15)
    assert claim.delta(1.0) == 0.0  # nothing was rounded there: pure DP, log 2.5


def test_a_corner_claims_only_what_convexity_implies():
    claim = TradeOffDP([(0.2, 0.2)])
    assert claim.vertices == pytest.approx(np.array([(0.0, 0.25), (0.2, 0.2), (0.25, 0.0)]))
    assert claim.delta(5.0) == pytest.approx(0.75)


@given(epsilon=st.floats(0.05, 5.0), share=st.floats(0.0, 1.0))
def test_bounded_range_allows_the_worst_of_all_two_point_laws(epsilon, share):
    level = share * epsilon
    worst = max(
        exact.delta(OneSidedResponse(epsilon, up).law(0), OneSidedResponse(epsilon, up).law(1), level, order="forward")
        for up in np.linspace(level, epsilon, 42)[1:-1].tolist()
    )
    claimed = BoundedRange(epsilon).delta(level)
    assert worst <= claimed * (1.0 + 1e-9) + 1e-15
    assert worst >= 0.99 * claimed - 1e-6


def test_distances():
    assert MetricDP(1.0, "euclidean").between(3, 4.5) == 1.5
    assert MetricDP(1.0, "maximum").between([1, 2], [4, 1]) == 3.0
    assert MetricDP(1.0, "hamming").between("karolin", "kathrin") == 3.0
    assert MetricDP(1.0, "hamming").between([1], [1, 2]) == math.inf
    # Berlin to Paris, by the haversine formula: 878 km
    assert MetricDP(1.0, "great-circle").between((52.52, 13.405), (48.8566, 2.3522)) == pytest.approx(877.5, abs=1.0)
    assert distance_between(ApproxDP(1.0, 0.1), [], [1]) == 1.0


def steps(data: int, neighbour: int) -> float:
    return float(abs(data - neighbour))


def test_a_distance_of_your_own_is_named_in_json_and_not_imported():
    claim = MetricDP(2.0, steps)
    assert repr(claim) == "MetricDP(epsilon=2.0, distance=steps)"
    assert claim.on(1, 4) == PureDP(6.0)
    assert claim.at(1.0).between(1, 4) == 3.0
    read = claim_from_dict(json.loads(json.dumps(claim_to_dict(claim))))
    assert read == claim
    with pytest.raises(InvalidArgument, match="names a function, but only its name is known"):
        read.between(1, 2)


@pytest.mark.parametrize("claim", CLAIMS, ids=repr)
def test_claims_travel(claim):
    assert claim_from_dict(json.loads(json.dumps(claim_to_dict(claim)))) == claim
    pasted = eval(
        repr(claim).replace("'substitute'", "Relation.SUBSTITUTE").replace("'add-remove'", "Relation.ADD_REMOVE")
    )
    assert pasted == claim
    assert pickle.loads(pickle.dumps(claim)) == claim
    assert hash(pasted) == hash(claim)
    assert isinstance(claim, Claim)
    assert claim.at(2.0).parameter == 2.0
    grid = np.linspace(0.0, 8.0, 50)
    assert (np.diff(claim.delta(grid)) <= 1e-15).all()
    assert (claim.at(1.1 * claim.parameter).delta(grid) >= claim.delta(grid)).all()


def test_implications():
    response = ProfileDP([(0.0, math.tanh(0.5)), (1.0, 0.0)])
    curve = ProfileDP.of(GaussianDP(1.0))
    assert PureDP(1.0).is_at_least_as_strong_as(response)
    assert response.is_at_least_as_strong_as(PureDP(1.0))
    assert not PureDP(1.01).is_at_least_as_strong_as(response)
    assert GaussianDP(1.0).is_at_least_as_strong_as(curve)
    assert not GaussianDP(1.01).is_at_least_as_strong_as(curve)
    assert not curve.is_at_least_as_strong_as(GaussianDP(1.0))
    assert curve.is_at_least_as_strong_as(ApproxDP(1.0, 0.14))
    assert GaussianDP(0.99).is_at_least_as_strong_as(TradeOffDP(gaussian(1.0)))
    assert not curve.at(1.01).is_at_least_as_strong_as(curve)
    assert not curve.is_at_least_as_strong_as(ZeroConcentratedDP(5.0))
    assert BoundedRange(1.0).is_at_least_as_strong_as(PureDP(1.0))
    assert BoundedRange(1.0).is_at_least_as_strong_as(ZeroConcentratedDP(0.125))
    assert BoundedRange(1.0).is_at_least_as_strong_as(RenyiDP(2.0, 0.25))
    assert PureDP(0.5).is_at_least_as_strong_as(BoundedRange(1.0))
    assert not PureDP(1.0).is_at_least_as_strong_as(BoundedRange(1.0))
    assert MetricDP(1.0, "hamming").is_at_least_as_strong_as(MetricDP(2.0, "hamming"))
    assert not MetricDP(1.0, "hamming").is_at_least_as_strong_as(MetricDP(2.0, "euclidean"))
    assert not MetricDP(1.0, "hamming").is_at_least_as_strong_as(ApproxDP(1.0, 0.1))
    assert not PureDP(1.0).is_at_least_as_strong_as(MetricDP(1.0, "hamming"))


def test_how_curves_are_reported():
    assert (claim_delta(CLAIMS[0]), claim_delta(CLAIMS[4])) == (1e-5, 0.0)
    assert (claimed_epsilon(CLAIMS[0]), claimed_epsilon(CLAIMS[4])) == (None, 0.5)
    assert claim_text(TradeOffDP(gaussian(1.0))) == "TradeOffDP of 26 corners"
    assert [parameter_words(claim) for claim in CLAIMS] == ["factor of the curve"] * 3 + ["range", "epsilon"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProfileDP([]), r"points=\[\] claim nothing"),
        (lambda: ProfileDP([(1.0, 1.0)]), "at least one delta must be below 1"),
        (lambda: ProfileDP([(1.0, 1.5)]), r"holds \(1.0, 1.5\); epsilon must be finite and not negative"),
        (lambda: ProfileDP([(-1.0, 0.5)]), "not negative"),
        (lambda: ProfileDP([1.0]), r"must be pairs \(epsilon, delta\)"),
        (lambda: ProfileDP([(k, 0.1) for k in range(65)]), "holds 65 epsilons, and at most 64"),
        (lambda: ProfileDP([(1.0, 0.1)], factor=0.0), "factor=0.0 must be positive"),
        (lambda: ProfileDP.of([(1.0, 0.1)]), "must be a function"),
        (lambda: ProfileDP.of(lambda epsilon: 2.0), "gives delta=2.0 at epsilon"),
        (lambda: TradeOffDP([]), "vertices is empty"),
        (lambda: TradeOffDP([(0.5, 0.6)]), "their sum at most 1"),
        (lambda: TradeOffDP([(0.0, 1.0)]), "claim nothing"),
        (lambda: TradeOffDP([0.5]), "must be a trade-off function"),
        (lambda: TradeOffDP(lambda alpha: 1.0), "between 0 and 1 - alpha"),
        (lambda: TradeOffDP(lambda alpha: 0.5 - 0.5 * alpha**2), "falling and convex"),
        (lambda: TradeOffDP(lambda alpha: 0.0), "give a corner with alpha and beta below 1"),
        (lambda: BoundedRange(0.0), "epsilon=0.0 must be positive"),
        (lambda: MetricDP(1.0, "euclidian"), "Did you mean 'euclidean'"),
        (lambda: MetricDP(1.0, lambda a, b: -1.0).between(0, 1), "must be zero or positive"),
        (lambda: MetricDP(1.0, "euclidean").between("a", "b"), "failed"),
    ],
)  # fmt: skip
def test_mistakes_are_named(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()
