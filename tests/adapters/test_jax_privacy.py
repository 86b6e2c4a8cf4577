"""JAX Privacy: on small objects with its interface, and on the library where it is installed.

Audits of sound steps run at alpha 1e-6, their declared false alarm probability.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import ApproxDP, GaussianDP, Relation, Verdict
from dpaudit.adapters import jax_privacy as adapter
from dpaudit.errors import InvalidArgument, MechanismError, MissingDependency

INSTALLED = importlib.util.find_spec("jax_privacy") is not None
ROWS = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]])
WITH_CANARY = np.vstack([ROWS, [[3.0, 4.0, 50.0]]])
PAIR = dpaudit.neighbours.fixed([(ROWS, WITH_CANARY)], relation=Relation.ADD_REMOVE)


@pytest.fixture
def jax(monkeypatch):
    """The part of JAX that the adapter needs: keys are numbers, nothing is compiled, and ``vmap`` is a loop."""

    def vmap(function: Any, in_axes: Any) -> Any:
        assert in_axes == (0, 0, None, None)
        return lambda keys, masks, *rest: np.stack(
            [function(key, mask, *rest) for key, mask in zip(keys, masks, strict=True)]
        )

    module, numpy = ModuleType("jax"), ModuleType("jax.numpy")
    module.random = SimpleNamespace(
        key=lambda seed: seed, split=lambda key, number: np.random.default_rng(key).integers(2**31, size=number)
    )
    module.jit, module.vmap, module.numpy = (lambda function: function), vmap, numpy
    module.tree = SimpleNamespace(leaves=lambda tree: [tree[name] for name in sorted(tree)])
    numpy.concatenate, numpy.ravel = np.concatenate, np.ravel
    monkeypatch.setitem(sys.modules, "jax", module)
    monkeypatch.setitem(sys.modules, "jax.numpy", numpy)
    adapter._compiled.cache_clear()
    yield module
    adapter._compiled.cache_clear()


def clipped_grad(parameters, features, targets, *, is_padding_example):
    """Linear regression; every gradient has norm at most 1, and padding none."""
    residuals = features @ parameters["weight"] + parameters["bias"] - targets
    gradients = residuals[:, None] * np.column_stack([features, np.ones(len(features))])
    gradients /= np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), 1.0)
    total = gradients[~np.asarray(is_padding_example)].sum(axis=0)
    return {"weight": total[:2], "bias": total[2]}


def make(key, *, noise=1.0):
    def update(clipped, state):
        rng = np.random.default_rng(int(state))
        noisy = {name: value + noise * rng.standard_normal(np.shape(value)) for name, value in clipped.items()}
        return noisy, state + 1

    privatizer = SimpleNamespace(init=lambda parameters: key, update=update)
    return {"weight": np.zeros(2), "bias": np.zeros(())}, clipped_grad, privatizer


def make_exact(key):
    return make(key, noise=0.0)


def make_half(key):
    return make(key, noise=0.5)


def test_a_step_is_a_mechanism(jax):
    exact = adapter.step(make_exact)
    released = exact.sample(ROWS, 3, np.random.default_rng(0))
    assert released.shape == (3, 3)  # bias, then weight
    assert released == pytest.approx(np.tile([0.0, -0.5, 0.5], (3, 1)))
    assert np.array_equal(exact.sample((ROWS[:, :2], ROWS[:, 2]), 3, np.random.default_rng(0)), released)
    # A Poisson batch: every subset of the two rows, the empty one too.
    batches = adapter.step(make_exact, sampling_rate=0.5).sample(ROWS, 60, np.random.default_rng(1))
    assert {tuple(batch + 0.0) for batch in batches} == {(0, 0, 0), (-0.5, -0.5, 0), (0.5, 0, 0.5), (0, -0.5, 0.5)}


def test_outputs_are_independent_and_repeat(jax):
    one, other, third = (adapter.step(make).sample(ROWS, 2, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, third)
    assert not np.array_equal(one[0], one[1])


def test_audits_of_a_step(jax):
    claim = GaussianDP(1.0, Relation.ADD_REMOVE)
    sound = dpaudit.audit(adapter.step(make), claim, PAIR, samples=4_000, seed=0)
    assert sound.verdict is not Verdict.VIOLATION
    broken = dpaudit.audit(adapter.step(make_half), claim, PAIR, samples=4_000, shrink=False, seed=0)
    assert broken.verdict is Verdict.VIOLATION


def test_wrong_arguments_are_refused(jax):
    with pytest.raises(InvalidArgument, match="function of a key"):
        adapter.step(3)
    with pytest.raises(InvalidArgument, match="sampling_rate"):
        adapter.step(make, sampling_rate=0.0)
    with pytest.raises(MechanismError, match="clipped_grad, privatizer"):
        adapter.step(lambda key: (1, 2)).sample(ROWS, 1, np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match="target"):
        adapter.step(make).sample((ROWS,), 1, np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match="dp_event"):
        adapter.claim(object())
    with pytest.raises(InvalidArgument, match="pld"):
        adapter.accountant("gdp")


def test_the_claim_of_a_plan_is_that_of_its_event():
    library = pytest.importorskip("dp_accounting")
    event = library.SelfComposedDpEvent(library.PoissonSampledDpEvent(0.1, library.GaussianDpEvent(1.0)), 10)
    claim = adapter.claim(SimpleNamespace(dp_event=event), 1e-5, relation=Relation.ADD_REMOVE)
    assert isinstance(claim, ApproxDP)
    assert claim.epsilon == pytest.approx(2.85, abs=0.01)


def test_the_accountant_asks_for_the_given_sampling_rate(monkeypatch):
    class Accountant:
        def __init__(self, config):
            assert config == "pld"

        def compute_epsilon(self, steps, parameters):
            assert steps == 7
            return parameters.batch_size / parameters.num_samples / parameters.noise_multipliers

    library = ModuleType("jax_privacy.accounting")
    library.PldAccountantConfig, library.DpParams = (lambda: "pld"), SimpleNamespace
    library.DpsgdTrainingAccountant = Accountant
    monkeypatch.setitem(sys.modules, "jax_privacy", ModuleType("jax_privacy"))
    monkeypatch.setitem(sys.modules, "jax_privacy.accounting", library)
    epsilon = adapter.accountant()(noise_multiplier=2.0, sampling_rate=0.3, steps=7, delta=1e-5)
    assert epsilon == pytest.approx(0.15, rel=1e-9)


@pytest.mark.skipif(INSTALLED, reason="JAX Privacy is installed")
def test_a_missing_library_is_named():
    with pytest.raises(MissingDependency, match=r"dpaudit\[jax\]"):
        adapter.accountant("rdp")(noise_multiplier=2.0, sampling_rate=0.3, steps=7, delta=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library's own
@pytest.mark.skipif(not INSTALLED, reason="needs JAX Privacy")
@pytest.mark.parametrize(("noise", "verdict"), [(1.0, Verdict.NO_VIOLATION_FOUND), (0.5, Verdict.VIOLATION)])
def test_a_step_of_the_library(noise, verdict):
    audits = importlib.import_module("audits.libraries.jax_privacy_audits")
    (audit,) = [audit for audit in audits.steps() if audit.expect is verdict]
    result = dpaudit.audit(audit.mechanism, audit.claim, audit.neighbours(), **audit.options, seed=0)
    assert result.verdict is verdict
