"""Flower's strategies as mechanisms: on small objects with its interface, and on the library where it is installed.

Audits of sound rounds run at alpha 1e-6, their declared false alarm probability.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import GaussianDP, Relation, Verdict
from dpaudit.adapters import flower
from dpaudit.errors import InvalidArgument, MissingDependency
from mechanisms.federated import clip_updates
from mechanisms.federated.accounting import exact_mu, update_noise_multiplier

INSTALLED = importlib.util.find_spec("flwr") is not None
TURNED = np.array([[3.0], [3.0]]), np.array([[-3.0], [3.0]])


class ArrayRecord(dict):
    def to_numpy_ndarrays(self) -> list[Any]:
        return [np.array(value) for value in self.values()]


@pytest.fixture
def flwr(monkeypatch):
    """The part of ``flwr.app`` that the adapter needs."""
    app = ModuleType("flwr.app")
    app.Array, app.ArrayRecord, app.RecordDict, app.MetricRecord = np.asarray, ArrayRecord, dict, dict
    monkeypatch.setitem(sys.modules, "flwr", ModuleType("flwr"))
    monkeypatch.setitem(sys.modules, "flwr.app", app)


class Strategy:
    """Clip to norm 1, average by examples, add noise for equal weights; the norm halves where ``adapts``."""

    def __init__(self, multiplier: float = 1.0, *, adapts: bool = False, fails: bool = False) -> None:
        self.noise_multiplier, self.clipping_norm, self.fails = multiplier, 1.0, fails
        self.current_arrays = ArrayRecord()
        self.strategy = SimpleNamespace(weighted_by_key="examples")
        if adapts:
            self.clipped_count_stddev = 1.0

    def aggregate_train(self, server_round: int, replies: list[Any]) -> tuple[Any, None]:
        logging.getLogger("flwr").warning("clipped")
        if self.fails or any(reply.has_error() for reply in replies):
            return None, None
        (start,) = self.current_arrays.to_numpy_ndarrays()
        updates = np.array([reply.content["arrays"].to_numpy_ndarrays()[0] - start for reply in replies])
        examples = np.array([reply.content["metrics"]["examples"] for reply in replies], dtype=float)
        mean = examples / examples.sum() @ clip_updates(updates, self.clipping_norm)
        noise = np.random.normal(scale=self.noise_multiplier / len(replies), size=mean.shape)  # noqa: NPY002
        self.clipping_norm /= 2.0
        return ArrayRecord(update=start + mean + noise), None


def test_a_round_is_a_mechanism(flwr, caplog):
    rng = np.random.default_rng(0)
    updates = np.array([[3.0, 4.0], [0.0, 0.5]])
    (average,) = flower.mechanism(lambda: Strategy(1e-9)).sample(updates, 1, rng)
    assert average == pytest.approx([0.3, 0.65])
    (weighted,) = flower.mechanism(lambda: Strategy(1e-9), examples=[3, 1]).sample(updates, 1, rng)
    assert weighted == pytest.approx([0.45, 0.725])
    # Every round has a new strategy, and where the norm adapts it is released too.
    adapted = flower.mechanism(lambda: Strategy(1e-9, adapts=True)).sample(updates, 2, rng)
    assert np.array(adapted) == pytest.approx(np.array([[0.3, 0.65, 0.5]] * 2))
    assert flower.mechanism(lambda: Strategy(fails=True)).sample(updates, 1, rng) == [None]
    assert updates.tolist() == [[3.0, 4.0], [0.0, 0.5]]
    assert not caplog.records


def test_weights_are_found(flwr):
    where = dpaudit.neighbours.fixed([TURNED], relation=Relation.SUBSTITUTE)
    claim = flower.claim(Strategy())
    weighted = flower.mechanism(Strategy, examples=(3, 1))
    assert dpaudit.audit(weighted, claim, where, samples=10_000, shrink=False).verdict is Verdict.VIOLATION
    equal = dpaudit.audit(flower.mechanism(Strategy), claim, where, samples=10_000, shrink=False)
    assert equal.verdict is Verdict.NO_VIOLATION_FOUND


@pytest.mark.parametrize("relation", [Relation.SUBSTITUTE, Relation.ZERO_OUT])
@pytest.mark.parametrize("multiplier", [0.5, 1.0, 1.9])
def test_claims(multiplier, relation):
    fixed = SimpleNamespace(noise_multiplier=multiplier)
    assert flower.claim(fixed, relation) == GaussianDP(exact_mu(multiplier, relation=relation), relation)
    count_std = 1.0
    adaptive = SimpleNamespace(
        noise_multiplier=update_noise_multiplier(multiplier, count_std), clipped_count_stddev=count_std
    )
    # Under substitution the share of the count is exactly what the updates gave up; zeroing out costs a little more.
    excess = 0.0 if relation is Relation.SUBSTITUTE else math.sqrt(0.75) / count_std
    mu = math.hypot(exact_mu(multiplier, relation=relation), excess)
    assert flower.claim(adaptive, relation).mu == pytest.approx(mu, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flower.claim(object()), "states no noise_multiplier"),
        (lambda: flower.claim(Strategy(0.0)), "promises nothing"),
        (lambda: flower.claim(Strategy(), Relation.ADD_REMOVE), "relation="),
        (lambda: flower.mechanism(Strategy()), "must be a function that makes"),
        (lambda: flower.mechanism(Strategy, examples=[1, 0]), "examples=0"),
    ],
    ids=["claim", "no-noise", "relation", "instance", "examples"],
)
def test_wrong_arguments_have_messages(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()


def test_rounds_that_cannot_be(flwr):
    table = np.ones((2, 1))
    with pytest.raises(InvalidArgument, match="clips on the server"):
        flower.TrainingRound(object)(table)
    with pytest.raises(InvalidArgument, match="has 2 clients, but examples="):
        flower.TrainingRound(Strategy, (1, 1, 1))(table)
    with pytest.raises(InvalidArgument, match="data"):
        flower.TrainingRound(Strategy)(np.full((2, 1), np.nan))


@pytest.mark.skipif(INSTALLED, reason="flwr is installed")
def test_a_missing_library_is_named():
    with pytest.raises(MissingDependency, match=r"pip install 'dpaudit\[libraries\]'"):
        flower.TrainingRound(Strategy)(np.ones((2, 1)))


@pytest.mark.skipif(not INSTALLED, reason="flwr is not installed: pip install 'dpaudit[libraries]'")
@pytest.mark.filterwarnings("ignore")
def test_the_library_itself():
    strategies = importlib.import_module("flwr.serverapp.strategy")

    def make() -> Any:
        return strategies.DifferentialPrivacyServerSideFixedClipping(strategies.FedAvg(), 1.0, 1.0, 2)

    def adaptive() -> Any:
        return strategies.DifferentialPrivacyServerSideAdaptiveClipping(strategies.FedAvg(), 1.0, 20, 1.0)

    assert flower.claim(make()) == GaussianDP(2.0, Relation.SUBSTITUTE)
    assert flower.claim(adaptive()).mu == pytest.approx(2.0)
    rng = np.random.default_rng(0)
    rounds = np.array(flower.mechanism(make, examples=(3, 1)).sample(np.array([[3.0, 4.0], [0.0, 0.5]]), 400, rng))
    assert rounds.mean(axis=0) == pytest.approx([0.45, 0.725], abs=6 * 0.5 / 20)
    assert np.shape(flower.mechanism(adaptive).sample(np.ones((20, 2)), 1, rng)) == (1, 3)
