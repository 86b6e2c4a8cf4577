"""Opacus' current release: one step of its optimizer, in the white box, with the noise it should have and with half of it.

A sampled example moves the sum of clipped gradients by at most the clipping norm, so a step of noise multiplier z on all
examples is 1/z-Gaussian private when one is added or removed; the divisor is fixed. Without the library there is nothing to
collect. Its accountants are checked by ``dpaudit.check_accountant`` (docs/accountants.md).
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from dpaudit import Audit, GaussianDP, Relation, Verdict, neighbours
from dpaudit.adapters import opacus
from dpaudit.adapters._loading import load

INSTALLED = importlib.util.find_spec("opacus") is not None
EXAMPLES = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, 1.0], [1.0, 0.0, 1.0]])
PAIR = EXAMPLES, np.vstack([EXAMPLES, [[3.0, 4.0, 50.0]]])


def linear_regression(noise_multiplier: float) -> tuple[Any, Any, Any]:
    torch, library = load("torch", extra="opacus"), load("opacus", extra="opacus")
    model = torch.nn.Linear(2, 1)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    optimizer = load("opacus.optimizers", extra="opacus").DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
        expected_batch_size=4,
    )
    return library.GradSampleModule(model), optimizer, functools.partial(squared_error, torch)


def squared_error(torch: Any, outputs: Any, targets: Any) -> Any:
    return torch.nn.functional.mse_loss(outputs[:, 0], targets)


def define(name: str, noise_multiplier: float, expect: Verdict) -> Audit:
    return Audit(
        name=f"opacus-{name}",
        mechanism=opacus.step(functools.partial(linear_regression, noise_multiplier)),
        claim=GaussianDP(1.0, Relation.ADD_REMOVE),
        neighbours=functools.partial(neighbours.fixed, [PAIR], relation=Relation.ADD_REMOVE),
        options={"samples": 20_000},
        expect=expect,
    )


def steps() -> list[Audit]:
    return [
        define("step", 1.0, Verdict.NO_VIOLATION_FOUND),
        define("step-with-half-the-noise", 0.5, Verdict.VIOLATION),
    ]


AUDITS = steps() if INSTALLED else []
