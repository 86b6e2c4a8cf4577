"""The registry: complete, consistent with itself, and true where a law exists."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import exact
from dpaudit.claims import ApproxDP, PureDP, Relation, Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Mechanism, checked_outputs
from dpaudit.neighbours import check_relation
from mechanisms import registry
from mechanisms.registry import Entry, broken, catalogue, reference

MINE = [*catalogue.entries(), *reference.entries(), *broken.entries()]
NAMES = [entry.name for entry in MINE]
# Releases of values query by query; their epsilon is proved in mechanisms.sparse_vector.
WITHOUT_LAW = {"catalogue-svt-3", "catalogue-svt-34-parallel", "catalogue-numerical-svt", "numerical-svt"}


def test_the_catalogue_is_complete():
    assert [entry.catalogue for entry in catalogue.entries()] == list(range(1, 21))
    assert all(entry.published is not None for entry in catalogue.entries())


def test_power_targets_are_listed():
    targets = {
        "laplace-half-scale",
        "laplace-nine-tenths",
        "noisy-max-value",
        "svt-without-query-noise",
        "gaussian-variance-halved",
        "laplace-raw-once-in-1000",
    }
    assert targets <= {entry.name for entry in MINE if entry.expect is Verdict.VIOLATION}


def test_names_are_unique_and_readable():
    assert len(set(NAMES)) == len(NAMES)
    assert all(name == name.lower() and " " not in name for name in NAMES)


@pytest.mark.parametrize("entry", MINE, ids=NAMES)
def test_entry_is_consistent(entry):
    mechanism, pairs = entry.make(), entry.neighbours()
    assert isinstance(mechanism, Mechanism)
    assert entry.claim.relation is not None
    check_relation(entry.claim, pairs)
    assert entry.breaks_claim or entry.expect is Verdict.NO_VIOLATION_FOUND
    assert (entry.bug is None) <= (not entry.breaks_claim)
    assert entry.source
    for pair in pairs.corners()[:2]:
        for data in pair:
            outputs = mechanism.sample(data, 5, np.random.default_rng(0))
            checked_outputs(outputs, 5)
            again = mechanism.sample(data, 5, np.random.default_rng(0))
            assert np.array_equal(
                np.asarray(outputs), np.asarray(again), equal_nan=np.asarray(outputs).dtype.kind == "f"
            )


def exact_value(entry: Entry, data, neighbour) -> float | None:
    """The claim's quantity on one pair: epsilon, or delta at the claimed epsilon; None where there is no law."""
    mechanism = entry.make()
    law = getattr(mechanism, "law", None) or getattr(mechanism, "law_of_answers", None)
    if law is None:
        return None
    if entry.name in WITHOUT_LAW:
        with pytest.raises(InvalidArgument, match="no law object"):
            law(data)
        return None
    P, Q = law(data), law(neighbour)
    if isinstance(entry.claim, ApproxDP):
        return exact.delta(P, Q, entry.claim.epsilon)
    return exact.epsilon(P, Q)


@pytest.mark.parametrize("entry", MINE, ids=NAMES)
def test_no_pair_exceeds_the_truth(entry):
    """Over the neighbours of the entry, exactly; and a broken one shows itself on them, not in a limit only."""
    pairs = entry.neighbours().pool(8)
    values = [value for pair in pairs if (value := exact_value(entry, *pair)) is not None]
    if not values:
        return
    worst = max(values)
    if isinstance(entry.claim, PureDP):
        assert worst <= entry.bracket[1] * (1 + 1e-9)
        if entry.breaks_claim:
            assert worst > entry.claim.epsilon
        else:
            assert worst <= entry.claim.epsilon * (1 + 1e-9)
    elif isinstance(entry.claim, ApproxDP):
        assert (worst > entry.claim.delta_claimed * (1 + 1e-9)) == entry.breaks_claim


def test_all_mechanisms_with_a_finite_truth_reach_it_where_they_say_so():
    reached = {
        "catalogue-laplace": 0.1,
        "catalogue-noisy-hist-2": 10.0,
        "catalogue-noisy-max-3": 0.25,
        "catalogue-rappor": 0.4001,
        "catalogue-prefix-sum": 1.0,
        "laplace-half-scale": 2.0,
        "randomised-response-repeated": 5.0,
        "noisy-histogram-charged-once": 2.0,
    }
    for entry in MINE:
        if entry.name in reached:
            values = [exact_value(entry, *pair) for pair in entry.neighbours().corners()]
            assert max(values) == pytest.approx(entry.truth, rel=1e-6)
            assert entry.truth == pytest.approx(reached[entry.name], abs=5e-5)


def valid(**changes):
    base = {
        "name": "x",
        "make": object,
        "claim": PureDP(1.0, Relation.ANSWERS),
        "neighbours": object,
        "truth": 2.0,
        "samples": 10,
        "expect": Verdict.VIOLATION,
        "bug": "b",
        "source": "s",
    }
    return Entry(**(base | changes))


def test_entries_that_contradict_themselves_are_refused():
    assert valid().breaks_claim
    assert valid(truth=(1.5, math.inf)).bracket == (1.5, math.inf)
    with pytest.raises(InvalidArgument, match="keeps its claim"):
        valid(truth=1.0)
    with pytest.raises(InvalidArgument, match="truth="):
        valid(truth=(3.0, 2.0))
    with pytest.raises(InvalidArgument, match="samples=0"):
        valid(samples=0)


def test_find_suggests(monkeypatch):
    monkeypatch.setattr(registry, "MODULES", ("broken",))
    registry.entries.cache_clear()
    try:
        assert registry.find("laplace-half-scale").truth == 2.0
        with pytest.raises(InvalidArgument, match="Did you mean 'laplace-half-scale'"):
            registry.find("laplace-halfscale")
    finally:
        registry.entries.cache_clear()
