"""Claims: their profiles, the implications between kinds, and their behaviour as values."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.claims import (
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    Relation,
    RenyiDP,
    Verdict,
    ZeroConcentratedDP,
    gaussian_delta,
)
from dpaudit.errors import InvalidArgument

GRID = np.concatenate([[0.0], np.geomspace(1e-3, 30.0, 25)])
POSITIVE = st.floats(1e-3, 20.0)
CLAIMS = st.one_of(
    POSITIVE.map(PureDP),
    st.builds(ApproxDP, POSITIVE, st.floats(1e-12, 0.5)),
    st.floats(1e-3, 5.0).map(GaussianDP),
    st.floats(1e-5, 10.0).map(ZeroConcentratedDP),
    st.builds(RenyiDP, st.floats(1.01, 100.0), POSITIVE),
)
EXAMPLES = [PureDP(1.0), ApproxDP(1.0, 1e-5), GaussianDP(1.0), ZeroConcentratedDP(0.5), RenyiDP(8.0, 0.5)]


@settings(max_examples=60, deadline=None)
@given(CLAIMS)
def test_profiles_lie_in_the_unit_interval_and_fall(claim):
    # A supremum of P(S) - exp(e) Q(S): within [0, 1], and falling in e.
    values = claim.delta(GRID)
    assert values.shape == GRID.shape
    assert ((values >= 0.0) & (values <= 1.0)).all()
    assert (np.diff(values) <= 1e-12).all()
    assert claim.delta(0.7) == claim.delta(np.array([0.7]))[0]
    assert claim.delta(math.inf) <= (claim.delta_claimed if isinstance(claim, ApproxDP) else 0.0)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        POSITIVE.map(PureDP), st.floats(1e-3, 5.0).map(GaussianDP), st.builds(ApproxDP, POSITIVE, st.floats(1e-9, 0.5))
    )
)
def test_exact_profiles_are_convex_in_the_exponential(claim):
    ratios = np.linspace(1.0, 12.0, 60)
    values = claim.delta(np.log(ratios))
    assert (np.diff(values, 2) >= -1e-12).all()


@settings(max_examples=60, deadline=None)
@given(CLAIMS, st.floats(1.0, 3.0))
def test_a_larger_parameter_allows_more(claim, factor):
    weaker = claim.at(claim.parameter * factor)
    assert type(weaker) is type(claim)
    assert weaker.parameter == claim.parameter * factor
    assert (weaker.delta(GRID) >= claim.delta(GRID) * (1 - 1e-9) - 1e-15).all()
    assert claim.is_at_least_as_strong_as(weaker)
    assert factor == 1.0 or not weaker.is_at_least_as_strong_as(claim)


@settings(max_examples=200, deadline=None)
@given(CLAIMS, CLAIMS)
def test_a_stronger_claim_allows_nothing_that_the_weaker_forbids(strong, weak):
    # Profiles of moment claims are upper bounds, so they may lie above what they imply.
    exact = not isinstance(strong, RenyiDP | ZeroConcentratedDP) or type(strong) is type(weak)
    if exact and strong.is_at_least_as_strong_as(weak):
        assert (strong.delta(GRID) <= weak.delta(GRID) * (1 + 1e-9) + 1e-14).all()


def test_implications_occur_between_different_kinds():
    # So that the property above is not vacuous.
    for strong, weak in [
        (PureDP(1.0), ApproxDP(1.0, 1e-9)),
        (PureDP(1.0), ApproxDP(0.5, PureDP(1.0).delta(0.5))),
        (PureDP(1.0), ZeroConcentratedDP(0.5)),
        (PureDP(1.0), GaussianDP(2.0)),
        (PureDP(1.0), RenyiDP(4.0, 1.0)),
        (GaussianDP(1.0), ZeroConcentratedDP(0.5)),
        (GaussianDP(1.0), RenyiDP(3.0, 1.5)),
        (GaussianDP(1.0), ApproxDP(1.0, 0.12693674)),
        (ZeroConcentratedDP(0.5), RenyiDP(3.0, 1.5)),
        (ZeroConcentratedDP(0.01), ApproxDP(1.0, 1e-5)),
        (RenyiDP(8.0, 0.5), RenyiDP(4.0, 0.6)),
        (RenyiDP(50.0, 0.1), ApproxDP(1.0, 1e-5)),
    ]:
        assert strong.is_at_least_as_strong_as(weak), (strong, weak)
        assert (strong.delta(GRID) <= weak.delta(GRID) * (1 + 1e-9) + 1e-14).all()


@pytest.mark.parametrize(
    ("strong", "weak"),
    [
        (ApproxDP(1.0, 1e-9), PureDP(1.0)),
        (ApproxDP(0.1, 1e-9), GaussianDP(5.0)),
        (GaussianDP(1.0), PureDP(100.0)),
        (GaussianDP(1.0), ZeroConcentratedDP(0.49)),
        (GaussianDP(1.0), ApproxDP(1.0, 0.1269)),
        (ZeroConcentratedDP(0.5), GaussianDP(1.0)),
        (ZeroConcentratedDP(0.5), RenyiDP(3.0, 1.49)),
        (RenyiDP(4.0, 0.5), RenyiDP(8.0, 0.5)),
        (RenyiDP(4.0, 0.5), ZeroConcentratedDP(10.0)),
        (PureDP(1.0), ZeroConcentratedDP(0.4)),
        (PureDP(1.0), ApproxDP(0.5, PureDP(1.0).delta(0.5) * 0.999)),
        (PureDP(1.0, Relation.ADD_REMOVE), PureDP(2.0, Relation.SUBSTITUTE)),
        (PureDP(1.0), PureDP(2.0, Relation.SUBSTITUTE)),
    ],
    ids=itertools.count(),
)
def test_claims_that_are_not_implied(strong, weak):
    assert not strong.is_at_least_as_strong_as(weak)


def test_a_claim_for_a_relation_implies_the_one_without():
    assert PureDP(1.0, Relation.SUBSTITUTE).is_at_least_as_strong_as(PureDP(1.0))
    assert PureDP(1.0, Relation.SUBSTITUTE).is_at_least_as_strong_as(PureDP(1.0, Relation.SUBSTITUTE))


def test_pure_below_gaussian_exactly_at_the_vertex():
    # Randomised response at epsilon is mu-Gaussian private iff 1/(1+e^epsilon) >= Phi(-mu/2): mu = 1.2318 for epsilon 1.
    from scipy.special import ndtri

    mu = -2.0 * ndtri(1.0 / (1.0 + math.e))
    assert PureDP(1.0).is_at_least_as_strong_as(GaussianDP(mu * (1 + 1e-9)))
    assert not PureDP(1.0).is_at_least_as_strong_as(GaussianDP(mu * (1 - 1e-9)))
    # Just above the vertex the profiles still cross nowhere, just below they do.
    fine = np.linspace(0.0, 1.0, 4001)
    assert (PureDP(1.0).delta(fine) <= GaussianDP(mu * 1.0001).delta(fine)).all()
    assert (PureDP(1.0).delta(fine) > GaussianDP(mu * 0.999).delta(fine)).any()


@pytest.mark.parametrize("claim", EXAMPLES, ids=lambda claim: type(claim).__name__)
def test_claims_are_values(claim):
    assert isinstance(claim, Claim)
    assert pickle.loads(pickle.dumps(claim)) == claim == copy.deepcopy(claim)
    assert len({claim, copy.copy(claim)}) == 1
    named = claim.at(2.5)
    assert named.parameter == 2.5
    assert getattr(named, named.parameter_name) == 2.5
    assert eval(repr(claim)) == claim
    with pytest.raises(AttributeError):
        claim.relation = Relation.ANSWERS


def test_at_keeps_the_rest():
    assert ApproxDP(1.0, 0.1, Relation.ANSWERS).at(2.0) == ApproxDP(2.0, 0.1, Relation.ANSWERS)
    assert RenyiDP(8.0, 0.5, Relation.ZERO_OUT).at(0.7) == RenyiDP(8.0, 0.7, Relation.ZERO_OUT)
    assert PureDP(1.0) != ApproxDP(1.0, 0.1)
    assert PureDP(1.0) != PureDP(1.0, Relation.SUBSTITUTE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PureDP(-1.0), r"epsilon=-1\.0 must be positive.*did you mean PureDP\(1\.0\)"),
        (lambda: PureDP(0), "epsilon=0 must be positive"),
        (lambda: PureDP(math.inf), "epsilon=inf"),
        (lambda: PureDP(math.nan), "epsilon=nan"),
        (lambda: PureDP("1"), "must be a number, not str"),
        (lambda: PureDP(True), "not bool"),
        (lambda: PureDP(10**400), "must be positive and finite"),
        (
            lambda: PureDP(1.0, relation="substitut"),
            r"relation='substitut'.*Relation\.SUBSTITUTE.*Did you mean 'substitute'",
        ),
        (lambda: ApproxDP(1.0, 0), "delta=0 .*Use PureDP"),
        (lambda: ApproxDP(1.0, 1.0), r"delta=1\.0"),
        (lambda: ApproxDP(-0.1, 0.1), r"epsilon=-0\.1"),
        (lambda: ApproxDP(1.0, 0.1, relation=3), "relation=3"),
        (lambda: GaussianDP(0.0), r"mu=0\.0"),
        (lambda: GaussianDP(1.0, relation="a"), "relation='a'"),
        (lambda: ZeroConcentratedDP(-2), "rho=-2"),
        (lambda: ZeroConcentratedDP(1.0, relation="b"), "relation='b'"),
        (lambda: RenyiDP(1.0, 0.5), r"order=1\.0 must be above 1"),
        (lambda: RenyiDP(math.inf, 0.5), "order=inf"),
        (lambda: RenyiDP(2.0, 0.0), r"epsilon=0\.0 must be positive and finite"),
        (lambda: RenyiDP(2.0, 1.0, relation="c"), "relation='c'"),
        (lambda: PureDP(1.0).delta(-0.5), r"epsilon=-0\.5"),
        (lambda: GaussianDP(1.0).delta(np.array([0.0, math.nan])), "zero or positive"),
    ],
    ids=itertools.count(),
)
def test_invalid_claims_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_delta_keeps_the_shape():
    grid = np.array([[0.0, 1.0], [2.0, 3.0]])
    for claim in EXAMPLES:
        assert claim.delta(grid).shape == (2, 2)
        assert claim.delta(np.array([])).shape == (0,)
        assert isinstance(claim.delta(1), float)


@pytest.mark.parametrize(
    "claim",
    [
        *EXAMPLES,
        RenyiDP(1 + 1e-10, 1.0),
        RenyiDP(1e12, 1.0),
        ZeroConcentratedDP(1e300),
        ZeroConcentratedDP(1e-300),
        GaussianDP(1e-300),
        GaussianDP(1e300),
        PureDP(1e-300),
        PureDP(1e5),
    ],
    ids=repr,
)
def test_extreme_parameters_give_numbers(claim):
    values = claim.delta(np.array([0.0, 1e-12, 1.0, 1e3, 1e300, math.inf]))
    assert np.isfinite(values).all()
    assert ((values >= 0.0) & (values <= 1.0)).all()


def test_gaussian_delta_of_arrays():
    grid = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert gaussian_delta(grid, 0.3).shape == (2, 2)
    assert gaussian_delta(grid, 3.0)[1, 0] == pytest.approx(float(gaussian_delta(2.0, 3.0)), rel=1e-15)


def test_names_of_relations_and_verdicts():
    assert str(Verdict.NO_VIOLATION_FOUND) == "NO_VIOLATION_FOUND"
    assert repr(Relation.ADD_REMOVE) == "Relation.ADD_REMOVE"
    assert "PASS" not in "".join(verdict.value for verdict in Verdict)
