"""Exact verification of declared laws: equality, witnesses, infinite values, both orders, and errors in laws."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import exact, neighbours
from dpaudit.claims import ApproxDP, GaussianDP, PureDP, Relation, RenyiDP, Verdict, ZeroConcentratedDP
from dpaudit.errors import InvalidArgument, LawError, MechanismError, RelationMismatch
from dpaudit.exact import Discrete, Gaussian, Laplace, Product
from dpaudit.exact.mechanism_laws.above_threshold import above_threshold_law
from dpaudit.exact.verification import verify
from dpaudit.neighbours import Pair

ROWS = neighbours.add_remove(st.integers(0, 10), max_size=5)


@dataclasses.dataclass(frozen=True)
class WithLaw:
    """A mechanism with a law and no sampler."""

    make: object

    def law(self, data):
        return self.make(data)

    def __repr__(self):
        return "WithLaw()"


NOISY_COUNT = WithLaw(lambda data: Laplace(float(len(data)), 1.0))
NOISY_SUM = WithLaw(lambda data: Laplace(float(sum(data)), 2.0))
GAUSSIAN_COUNT = WithLaw(lambda data: Gaussian(float(len(data)), 1.0))


def response(data):
    """Randomised response on the first bit, at epsilon log 3."""
    first = bool(data) and data[0] % 2 == 1
    return Discrete({"yes": 0.75 if first else 0.25, "no": 0.25 if first else 0.75})


def check(mechanism, claim, close=ROWS, **options):
    return verify(mechanism, claim, close, **{"examples": 40, **options})


def test_a_claim_that_is_met_with_equality_is_not_violated():
    found = check(NOISY_COUNT, PureDP(1.0))
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.epsilon == found.largest == 1.0
    assert found.witness is None
    assert found.witness_value is None
    assert found.delta == 0.0
    assert found.pairs >= 40
    assert (found.tolerance, found.seed, found.examples) == (1e-9, 0, 40)


def test_the_smallest_violating_pair_is_the_witness():
    # Lap(2) around a sum of rows up to 10 has epsilon row / 2 under add-remove: 5 in the worst case, above 1 from row 3 on.
    found = check(NOISY_SUM, PureDP(1.0))
    assert found.verdict is Verdict.VIOLATION
    assert found.witness == Pair([], [3])
    assert found.witness_value == 1.5
    assert found.epsilon == found.largest == 5.0
    assert abs(sum(found.worst.data) - sum(found.worst.neighbour)) == 10
    # delta of Lap at distance 5 scales and epsilon 1 is 1 - exp(-(5 - 1) / 2).
    assert found.delta == pytest.approx(-math.expm1(-2.0), rel=1e-12)
    assert found.at_epsilon == 1.0


def test_an_output_possible_on_one_side_only_is_an_infinite_epsilon():
    mechanism = WithLaw(lambda data: Discrete({len(data): 0.5, "silent": 0.5}))
    found = check(mechanism, PureDP(5.0))
    assert found.epsilon == math.inf
    assert found.witness == Pair([], [0])
    assert found.delta == 0.5
    assert check(mechanism, ApproxDP(0.1, 0.5)).verdict is Verdict.NO_VIOLATION_FOUND
    assert check(mechanism, ApproxDP(0.1, 0.49)).verdict is Verdict.VIOLATION


def test_both_orders_of_a_pair_are_compared():
    # P(no | empty) = 0.9 against 0.5: forward log 5, backward log 1.8. Only one of the orders breaks the claim of log 2.
    mechanism = WithLaw(lambda data: Discrete({1: 0.5, 0: 0.5}) if data else Discrete({1: 0.1, 0: 0.9}))
    for pair in [([], [0]), ([0], [])]:
        found = check(mechanism, PureDP(math.log(2.0)), neighbours.fixed([pair]))
        assert found.verdict is Verdict.VIOLATION
        assert found.epsilon == pytest.approx(math.log(5.0), rel=1e-12)


def test_a_list_of_pairs_is_accepted_as_by_audit():
    pairs = [([], [0]), ([0], [1])]
    found, same = (verify(WithLaw(response), PureDP(0.5), where) for where in (pairs, neighbours.fixed(pairs)))
    assert found.verdict is Verdict.VIOLATION
    assert found == same


def test_tolerance_is_relative_and_explicit():
    below, above = PureDP(math.log(3.0) * (1 - 5e-10)), PureDP(math.log(3.0) * (1 - 5e-9))
    assert check(WithLaw(response), below).verdict is Verdict.NO_VIOLATION_FOUND
    assert check(WithLaw(response), above).verdict is Verdict.VIOLATION
    assert check(WithLaw(response), above, tolerance=1e-8).verdict is Verdict.NO_VIOLATION_FOUND


# N(0,1) against N(1,1): delta at epsilon 1 is 0.126936737507 (Balle and Wang 2018), Renyi divergence order / 2, rho 1/2.
@pytest.mark.parametrize(
    ("kept", "broken"),
    [
        (ApproxDP(1.0, 0.12693673751), ApproxDP(1.0, 0.126936737)),
        (GaussianDP(1.0), GaussianDP(0.9999)),
        (RenyiDP(3.0, 1.5), RenyiDP(3.0, 1.4999)),
        (ZeroConcentratedDP(0.5), ZeroConcentratedDP(0.4999)),
    ],
)
def test_claims_about_a_gaussian_are_decided_at_their_edge(kept, broken):
    fine = check(GAUSSIAN_COUNT, kept)
    assert fine.verdict is Verdict.NO_VIOLATION_FOUND
    assert fine.largest == pytest.approx(fine.allowed, rel=1e-8)
    assert fine.epsilon == math.inf
    wrong = check(GAUSSIAN_COUNT, broken)
    assert wrong.verdict is Verdict.VIOLATION
    assert wrong.witness == Pair([], [0])
    assert wrong.witness_value > wrong.allowed


def test_moments_are_checked_themselves_not_through_their_profile():
    # Lap(1) has Renyi divergence 0.619123629998593 at order 2 (Mironov 2017, table II), but its profile lies below what
    # order 2 and 0.6 would allow at every epsilon.
    assert check(NOISY_COUNT, RenyiDP(2.0, 0.6191236301)).verdict is Verdict.NO_VIOLATION_FOUND
    found = check(NOISY_COUNT, RenyiDP(2.0, 0.6))
    assert found.verdict is Verdict.VIOLATION
    assert found.largest == pytest.approx(0.619123629998593, rel=1e-10)
    assert found.delta is None
    assert found.at_epsilon is None


def test_a_profile_is_reported_where_it_is_exceeded():
    found = check(NOISY_COUNT, GaussianDP(0.5))
    assert found.verdict is Verdict.VIOLATION
    assert found.witness_value == found.delta > found.allowed
    assert found.allowed == GaussianDP(0.5).delta(found.at_epsilon)


# docs/theory.md R3: AboveThreshold on m queries has epsilon min(m, 4)/4 in general, and 1/4, 1/2, 1/2, 3/4 where all answers move
# the same way; at a finite distance the suprema .995081, .495102 and .745081 are approached.
@pytest.mark.parametrize(
    ("queries", "monotone", "truth"),
    [
        (1, False, 0.25),
        (2, False, 0.5),
        (3, False, 0.75),
        (4, False, 0.995081),
        (5, False, 1.0),
        (1, True, 0.25),
        (2, True, 0.495102),
        (3, True, 0.5),
        (4, True, 0.745081),
        (5, True, 0.75),
    ],
)
def test_the_worst_case_of_above_threshold_is_found(queries, monotone, truth):
    mechanism = WithLaw(lambda answers: above_threshold_law(answers, 100.0, 1.0))
    found = check(mechanism, PureDP(1.0), neighbours.answers(queries, -100, 300, monotone=monotone), examples=20)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.epsilon == pytest.approx(truth, abs=1e-6)


def test_the_search_is_guided_towards_larger_values():
    # Only the pair of data sets that straddles a sum of 37 leaks; targeting must find it among many.
    mechanism = WithLaw(lambda data: Laplace(min(sum(data), 37) / 37.0, 1.0))
    close = neighbours.add_remove(st.integers(0, 10), max_size=6)
    assert check(mechanism, PureDP(1.0), close, examples=200).largest == pytest.approx(10 / 37)


def test_the_same_seed_gives_the_same_result():
    first, second = (check(NOISY_SUM, PureDP(1.0), seed=5) for _ in range(2))
    assert first == second
    assert pickle.loads(pickle.dumps(first)) == first


@settings(max_examples=2, deadline=None)
@given(st.floats(0.5, 2.0))
def test_works_inside_a_test_under_given(scale):
    found = check(WithLaw(lambda data: Laplace(float(sum(data)), scale)), PureDP(0.1))
    assert found.witness == Pair([], [1])


def test_the_printed_report_names_pair_value_and_seed():
    text = str(check(NOISY_SUM, PureDP(1.0)))
    assert text.splitlines()[0] == "VIOLATION: PureDP(epsilon=1.0), exact law of WithLaw()"
    for part in (
        "epsilon is 1.5, claimed 1,",
        "data      = []",
        "neighbour = [3]",
        "largest over all pairs tried: 5",
        "seed=0",
    ):
        assert part in text
    assert "Reproduce with dpaudit.exact.epsilon(mechanism.law(data), mechanism.law(neighbour))" in text
    quiet = str(check(NOISY_COUNT, PureDP(1.0)))
    assert quiet.startswith("NO_VIOLATION_FOUND")
    assert "private" not in quiet


def test_the_printed_numpy_data_are_python_source():
    close = neighbours.answers(2, 0, 5)
    text = str(check(WithLaw(lambda data: Laplace(float(data[0]), 0.5)), PureDP(1.0), close))
    assert "data      = np.array([" in text


def test_relations_must_agree():
    with pytest.raises(RelationMismatch, match="'substitute'"):
        check(NOISY_COUNT, PureDP(1.0, relation=Relation.SUBSTITUTE))
    assert check(NOISY_COUNT, PureDP(1.0, relation=Relation.ADD_REMOVE)).verdict is Verdict.NO_VIOLATION_FOUND


def test_an_error_in_the_law_shows_the_smallest_data():
    def law(data):
        if sum(data) > 6:
            raise KeyError("no table for this sum")
        return Laplace(float(len(data)), 1.0)

    with pytest.raises(MechanismError, match=r"(?s)law raised KeyError.*data = \[7\]") as caught:
        check(WithLaw(law), PureDP(1.0))
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_in_comparing_laws_shows_the_pair():
    def law(data):
        return Discrete({0: 1.0}) if len(data) < 2 else "nothing"

    with pytest.raises(LawError, match=r"(?s)law is 'nothing' of type str, which is no law.*\n  data = \[0, 0\]"):
        check(WithLaw(law), PureDP(1.0))


@pytest.mark.parametrize(
    "value", [None, 3.0, {"yes": 0.5, "no": 0.5}, Laplace], ids=["None", "number", "dict", "class"]
)
def test_a_value_that_is_no_law_is_refused(value):
    """Two values that are no laws are equal, and were called perfectly private."""
    with pytest.raises(LawError, match="which is no law"):
        check(WithLaw(lambda data: value), PureDP(1.0))
    with pytest.raises(LawError, match="which is no law"):
        exact.epsilon(value, value)
    with pytest.raises(LawError, match="which is no law"):
        exact.delta(value, value, 1.0)


def test_a_delta_that_is_not_known_is_left_out_of_the_report():
    # Of products whose coordinates both differ epsilon adds up, and delta would need all pairs of losses.
    both = WithLaw(lambda data: Product([Laplace(float(entry), 2.0) for entry in data]))
    found = check(both, PureDP(1.0), neighbours.answers(2, 0, 5), examples=20)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert (found.largest, found.delta, found.at_epsilon) == (1.0, None, 1.0)
    assert check(both, PureDP(0.9), neighbours.answers(2, 0, 5), examples=20).verdict is Verdict.VIOLATION


def test_a_law_that_is_not_deterministic_is_refused():
    rng = np.random.default_rng(0)
    mechanism = WithLaw(lambda data: Laplace(float(len(data) * rng.integers(0, 3)), 1.0))
    with pytest.raises(MechanismError, match="deterministic"):
        check(mechanism, PureDP(1.0))


def test_a_law_may_change_its_argument_in_place():
    def law(data):
        data.append(5)
        return Laplace(float(len(data)), 0.5)

    assert check(WithLaw(law), PureDP(1.0)).witness == Pair([], [0])


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        (object(), {}, "has no method law"),
        (WithLaw, {}, "has no method law"),
        (NOISY_COUNT, {"examples": 0}, "examples=0"),
        (NOISY_COUNT, {"seed": -1}, "seed=-1"),
        (NOISY_COUNT, {"tolerance": 0.0}, r"tolerance=0\.0"),
    ],
)
def test_arguments_are_checked(mechanism, options, message):
    with pytest.raises(InvalidArgument, match=message):
        check(mechanism, PureDP(1.0), **options)


def test_a_strategy_without_pairs_raises_an_error():
    with pytest.raises(InvalidArgument, match="yields no value"):
        check(NOISY_COUNT, PureDP(1.0), neighbours.substitute(st.just(1)))
