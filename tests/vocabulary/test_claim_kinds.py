"""All claims are known wherever claims are named. A new claim fails here until it is, with a list of the places."""

import importlib
import pkgutil
from pathlib import Path

import pytest

import dpaudit
from dpaudit import claims, replay
from dpaudit.claims import CLAIM_KINDS
from dpaudit.claims.claim import Profile
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.exact import Discrete
from dpaudit.report.words import claim_in_words
from dpaudit.result.model import claim_from_dict, claim_to_dict
from dpaudit.result.text import claim_text

ROOT = Path(__file__).parents[2]
ONE_OF_EACH = [
    dpaudit.PureDP(1.0),
    dpaudit.ApproxDP(1.0, 1e-5),
    dpaudit.GaussianDP(1.0),
    dpaudit.ZeroConcentratedDP(0.1),
    dpaudit.RenyiDP(8.0, 0.5),
    dpaudit.ProfileDP([(0.0, 0.3), (1.0, 0.1)]),
    dpaudit.TradeOffDP([(0.0, 1.0), (0.25, 0.25), (1.0, 0.0)]),
    dpaudit.MetricDP(1.0, "euclidean"),
    dpaudit.BoundedRange(1.0),
]


def test_every_claim_is_listed_and_has_an_example_here():
    for module in pkgutil.iter_modules(claims.__path__):
        importlib.import_module(f"dpaudit.claims.{module.name}")
    own = {kind.__name__ for kind in Profile.__subclasses__() if kind.__module__.startswith("dpaudit.")}
    assert own == set(CLAIM_KINDS), "dpaudit/claims/__init__.py: the import, and CLAIM_KINDS"
    assert own == {type(claim).__name__ for claim in ONE_OF_EACH}, "ONE_OF_EACH of this file"


@pytest.mark.parametrize("claim", ONE_OF_EACH, ids=lambda claim: type(claim).__name__)
def test_a_claim_is_known_wherever_claims_are_named(claim):
    name = type(claim).__name__
    known = {
        "dpaudit/__init__.pyi": name in dpaudit.__all__,
        "dpaudit/replay.py (scripts of witnesses name claims)": name in replay.__all__,
        "dpaudit/report/words.py": claim_in_words(claim) != repr(claim),
        "docs/claims.md": name in (ROOT / "docs" / "claims.md").read_text(encoding="utf-8"),
        "docs/reference/claims.md": name in (ROOT / "docs" / "reference" / "claims.md").read_text(encoding="utf-8"),
    }
    assert [place for place, there in known.items() if not there] == []


@pytest.mark.parametrize("claim", ONE_OF_EACH, ids=lambda claim: type(claim).__name__)
def test_a_claim_can_be_weakened_stored_and_bet_against(claim):
    assert isinstance(claim, dpaudit.Claim)
    assert hasattr(claim, claim.parameter_name), "parameter_name must be the name of a field"
    assert claim.at(2.0 * claim.parameter).parameter == 2.0 * claim.parameter
    assert claim_from_dict(claim_to_dict(claim)) == claim
    points = points_of(claim)
    assert (claim.delta(points.epsilon) <= points.delta + 1e-12).all(), "points are where the claim promises something"


class MostlyTheTruth:
    """A bit that is released as it is with probability 0.99: the log-ratio of both outputs is 4.6."""

    def law(self, data):
        return Discrete({0: 0.01, 1: 0.99} if data else {0: 0.99, 1: 0.01})

    def sample(self, data, size, rng):
        return (rng.random(size) < (0.99 if data else 0.01)).astype(int)


@pytest.mark.parametrize("claim", ONE_OF_EACH, ids=lambda claim: type(claim).__name__)
def test_an_audit_and_the_exact_check_refute_a_claim_that_is_broken(claim):
    assert dpaudit.verify(MostlyTheTruth(), claim, [(0, 1)]).verdict is dpaudit.Verdict.VIOLATION
    audited = dpaudit.audit(MostlyTheTruth(), claim, [(0, 1)], samples=4000, seed=0)
    assert audited.verdict is dpaudit.Verdict.VIOLATION, audited
    assert claim_text(claim) in str(audited)
