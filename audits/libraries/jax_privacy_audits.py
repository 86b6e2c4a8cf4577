"""JAX Privacy's current release: one step of its clipping and noise, with the noise it should have and with half of it.

A sampled example moves the sum of clipped gradients by at most ``clipped_grad(...).sensitivity()``, so a step whose noise has
that standard deviation is 1-Gaussian private when one is added or removed. Without the library there is nothing to collect.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from dpaudit import Audit, GaussianDP, Relation, Verdict, neighbours
from dpaudit.adapters import jax_privacy
from dpaudit.adapters._loading import load

INSTALLED = importlib.util.find_spec("jax_privacy") is not None
EXAMPLES = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, 1.0], [1.0, 0.0, 1.0]])
PAIR = EXAMPLES, np.vstack([EXAMPLES, [[3.0, 4.0, 50.0]]])


def squared_error(parameters: Any, features: Any, targets: Any) -> Any:
    residuals = features @ parameters["weight"] + parameters["bias"] - targets
    return (residuals**2).mean()


def linear_regression(noise_multiplier: float, key: Any) -> tuple[Any, Any, Any]:
    library, numpy = load("jax_privacy", extra="jax"), load("jax.numpy", extra="jax")
    clipped_grad = library.clipped_grad(squared_error, l2_clip_norm=1.0, batch_argnums=(1, 2))
    privatizer = library.noise_addition.gaussian_privatizer(
        stddev=noise_multiplier * clipped_grad.sensitivity(), prng_key=key
    )
    return {"weight": numpy.zeros(2), "bias": numpy.zeros(())}, clipped_grad, privatizer


def define(name: str, noise_multiplier: float, expect: Verdict) -> Audit:
    return Audit(
        name=f"jax-privacy-{name}",
        mechanism=jax_privacy.step(functools.partial(linear_regression, noise_multiplier)),
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
