"""All claims are known wherever claims are named. A new claim fails here until it is."""

from pathlib import Path

import pytest

import dpaudit
from dpaudit import replay
from dpaudit.claims import CLAIM_KINDS
from dpaudit.claims.claim import Profile
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.report.words import claim_in_words
from dpaudit.result.model import claim_from_dict, claim_to_dict

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
    own = {kind.__name__ for kind in Profile.__subclasses__() if kind.__module__.startswith("dpaudit.")}
    assert own == set(CLAIM_KINDS) == {type(claim).__name__ for claim in ONE_OF_EACH}


@pytest.mark.parametrize("claim", ONE_OF_EACH, ids=lambda claim: type(claim).__name__)
def test_a_claim_is_exported_documented_stored_and_put_into_words(claim):
    name = type(claim).__name__
    assert name in dpaudit.__all__, "dpaudit/__init__.pyi"
    assert name in replay.__all__, "replay.py: scripts of witnesses name claims"
    for page in ("claims.md", "reference/claims.md"):
        assert name in (ROOT / "docs" / page).read_text(encoding="utf-8"), page
    assert claim_from_dict(claim_to_dict(claim)) == claim
    assert claim_in_words(claim) != repr(claim), "report/words.py"
    points = points_of(claim)
    assert (claim.delta(points.epsilon) <= points.delta + 1e-12).all(), (
        "a claim is bet against where it promises something"
    )
