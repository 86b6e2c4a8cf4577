"""Opacus: on small objects with its interface, and on the library where it is installed.

Audits of sound steps run at alpha 1e-6, their declared false alarm probability.
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
from dpaudit import ApproxDP, GaussianDP, Relation, Verdict
from dpaudit.adapters import opacus
from dpaudit.errors import InvalidArgument, MechanismError, MissingDependency

INSTALLED = importlib.util.find_spec("opacus") is not None
ROWS = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]])
WITH_CANARY = np.vstack([ROWS, [[3.0, 4.0, 50.0]]])


class Tensor(np.ndarray):
    """An array with the few methods of a tensor that the adapter uses."""

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def numpy(self) -> Any:
        return np.asarray(self)


def tensor(values: Any, dtype: Any = None) -> Tensor:
    return np.array(values, dtype=dtype).view(Tensor)


class Generator:
    """Torch's global generator."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def seed(self, number: int) -> None:
        self.rng = np.random.default_rng(number)


class Module:
    """Linear regression without intercept."""

    def __init__(self) -> None:
        self.weight = SimpleNamespace(grad=None, value=np.zeros(2), grad_sample=None)
        self.weight.detach = lambda: tensor(self.weight.value)

    def __call__(self, features: Any) -> Any:
        self.features = np.asarray(features)
        return self.features @ self.weight.value

    def parameters(self) -> list[Any]:
        return [self.weight]


class Optimizer:
    """Clip the gradient of every example to norm 1, add noise, divide by the expected batch; then descend."""

    def __init__(self, module: Module, torch: Any, *, multiplier: float = 1.0, expected: int = 2, skips=False) -> None:
        self.params, self.torch = module.parameters(), torch
        self.multiplier, self.expected, self.skips = multiplier, expected, skips

    def zero_grad(self) -> None:
        self.params[0].grad = None

    def pre_step(self) -> bool:
        if self.skips:
            return False
        gradients = self.params[0].grad_sample
        norms = np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), 1.0)
        noise = self.multiplier * self.torch.generator.rng.standard_normal(2)
        self.params[0].grad = tensor(((gradients / norms).sum(axis=0) + noise) / self.expected)
        return True

    def step(self) -> None:
        logging.getLogger("opacus").warning("First batch is empty.")
        self.pre_step()
        self.params[0].value = self.params[0].value - 0.1 * np.asarray(self.params[0].grad)


@pytest.fixture
def torch(monkeypatch):
    """The part of torch that the adapter needs."""
    module = ModuleType("torch")
    module.generator = Generator()
    module.manual_seed = module.generator.seed
    module.as_tensor, module.long, module.get_default_dtype = tensor, np.int64, lambda: np.float64
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def maker(torch: Any, **options: Any):
    def make():
        module = Module()

        def criterion(outputs, targets):
            residuals = outputs - np.asarray(targets)

            def backward() -> None:
                module.weight.grad_sample = residuals[:, None] * module.features

            return SimpleNamespace(backward=backward)

        return module, Optimizer(module, torch, **options), criterion

    return make


def test_a_step_is_a_mechanism(torch):
    exact = opacus.step(maker(torch, multiplier=0.0))
    (gradient,) = exact.sample(WITH_CANARY, 1, np.random.default_rng(0))
    assert gradient == pytest.approx(np.array([-0.5 - 0.6, 0.5 - 0.8]) / 2.0)
    (paired,) = exact.sample((WITH_CANARY[:, :2], WITH_CANARY[:, 2]), 1, np.random.default_rng(0))
    assert paired.tolist() == gradient.tolist()
    # A Poisson batch: every subset of the two rows, the empty one too.
    batches = opacus.step(maker(torch, multiplier=0.0), sampling_rate=0.5).sample(ROWS, 60, np.random.default_rng(1))
    assert {tuple(2.0 * batch) for batch in batches} == {(0.0, 0.0), (-0.5, 0.0), (0.0, 0.5), (-0.5, 0.5)}


def test_the_same_seed_gives_the_same_release(torch):
    one, other, third = (opacus.step(maker(torch)).sample(ROWS, 2, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, third)
    assert not np.array_equal(one[0], one[1])


def test_audits_of_a_step(torch):
    pairs, claim = [(ROWS, WITH_CANARY)], GaussianDP(1.0)
    sound = dpaudit.audit(opacus.step(maker(torch)), claim, pairs, samples=4_000, alpha=1e-6)
    assert sound.verdict is not Verdict.VIOLATION
    broken = dpaudit.audit(opacus.step(maker(torch, multiplier=0.3)), claim, pairs, samples=4_000, shrink=False)
    assert broken.verdict is Verdict.VIOLATION


def test_a_training_is_a_mechanism(torch, caplog):
    def make(features, targets):
        module, optimizer, criterion = maker(torch, multiplier=0.0)()
        return module, optimizer, criterion, [(features[:1], targets[:1]), (features[1:], targets[1:])]

    (weights,) = opacus.training(make, epochs=2).sample(ROWS, 1, np.random.default_rng(0))
    # Twice, one row after the other, each of which moves its own weight.
    wanted = [0.05 * 0.5 + 0.05 * (0.5 - 0.025), -(0.05 * 0.5 + 0.05 * (0.5 - 0.025))]
    assert weights == pytest.approx(wanted)
    assert not caplog.records


def test_labels_are_whole_numbers(torch):
    features, labels = opacus.tensors(torch, [[0.5, 1.0], [0.25, 0.0]], labels=True)
    assert (features.dtype, labels.dtype) == (np.float64, np.int64)
    with pytest.raises(InvalidArgument, match="last column is the target"):
        opacus.tensors(torch, ("a", "b", "c"), labels=False)


def test_claims():
    engine = SimpleNamespace(get_epsilon=lambda delta: 3.0)
    assert opacus.claim(engine, 1e-5) == ApproxDP(3.0, 1e-5, Relation.ADD_REMOVE)
    with pytest.raises(InvalidArgument, match="promises nothing"):
        opacus.claim(SimpleNamespace(get_epsilon=lambda delta: math.inf), 1e-5)


def test_accountants_are_given_the_history(monkeypatch):
    library = ModuleType("opacus.accountants")

    class Account:
        history: list[Any]

        def get_epsilon(self, delta: float) -> float:
            return sum(steps * rate / noise for noise, rate, steps in self.history) + delta

    library.create_accountant = lambda kind: Account()
    monkeypatch.setitem(sys.modules, "opacus", ModuleType("opacus"))
    monkeypatch.setitem(sys.modules, "opacus.accountants", library)
    parts = [SimpleNamespace(noise_multiplier=2.0, sampling_rate=0.5, steps=8)]
    assert opacus.accountant("rdp")(parts, 0.25) == 2.25
    assert opacus.accountant("rdp")(parts * 2, 0.25) == 4.25
    with pytest.raises(ValueError, match="last part"):
        opacus.accountant("gdp")(parts * 2, 0.25)


def test_misuse_is_refused(torch):
    with pytest.raises(InvalidArgument, match="make=3"):
        opacus.step(3)
    with pytest.raises(InvalidArgument, match="sampling_rate=0"):
        opacus.step(maker(torch), sampling_rate=0)
    rng = np.random.default_rng(0)
    for make, message in (
        (lambda: (1, 2), r"it must return \(module, optimizer, criterion\)"),
        (lambda: (1, object(), 2), "no DPOptimizer"),
        (maker(torch, skips=True), "skipped the step"),
    ):
        with pytest.raises(MechanismError, match=message):
            opacus.step(make).sample(ROWS, 1, rng)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_extra_is_named():
    with pytest.raises(MissingDependency, match=r"dpaudit\[opacus\]"):
        opacus.Step(lambda: None)(ROWS, np.random.default_rng(0))


@pytest.mark.skipif(not INSTALLED, reason="opacus is not installed")
@pytest.mark.filterwarnings("ignore")
def test_a_step_of_the_library():
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    def make(multiplier: float = 1.0):
        linear = torch.nn.Linear(2, 1)
        for parameter in linear.parameters():
            torch.nn.init.zeros_(parameter)
        optimizer = DPOptimizer(
            torch.optim.SGD(linear.parameters(), lr=0.1),
            noise_multiplier=multiplier,
            max_grad_norm=1.0,
            expected_batch_size=2,
        )
        module = GradSampleModule(linear, loss_reduction="mean")
        return module, optimizer, lambda outputs, targets: torch.nn.functional.mse_loss(outputs[:, 0], targets)

    pairs = [(ROWS, WITH_CANARY)]
    sound = dpaudit.audit(opacus.step(make), GaussianDP(1.0), pairs, samples=1_000, alpha=1e-6)
    assert sound.verdict is not Verdict.VIOLATION
    broken = dpaudit.audit(opacus.step(lambda: make(0.2)), GaussianDP(1.0), pairs, samples=2_000, shrink=False)
    assert broken.verdict is Verdict.VIOLATION
    assert opacus.accountant("gdp")([SimpleNamespace(noise_multiplier=0.5, sampling_rate=0.01, steps=50)], 1e-5) < 2.1
