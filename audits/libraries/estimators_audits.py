"""Estimators in the style of scikit-learn: refuted without noise, and where an exact mean is kept beside the noisy one.

Without scikit-learn there is nothing to collect.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from dpaudit import Audit, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters import estimators
from dpaudit.adapters._loading import load

INSTALLED = importlib.util.find_spec("sklearn") is not None
PAIRS = [([(0.0, 0.0), (1.0, 1.0)], [(0.0, 0.0), (0.0, 0.0)]), ([(0.0, 0.0), (1.0, 1.0)], [(0.0, 0.0), (1.0, 0.0)])]


class NoisyMean:
    """The mean of features in [0, 1] with noise for one row replaced; ``leak`` also keeps the exact mean."""

    def __init__(self, epsilon: float, *, leak: bool = False) -> None:
        self.epsilon, self.leak = epsilon, leak

    def fit(self, X: Any) -> NoisyMean:
        exact = np.clip(X, 0.0, 1.0).mean(axis=0)
        scale = X.shape[1] / (len(X) * self.epsilon)
        self.coef_ = exact + np.random.laplace(scale=scale, size=exact.shape)  # noqa: NPY002
        self.intercept_ = exact[:1] if self.leak else np.zeros(1)
        return self


def ridge() -> Any:
    return load("sklearn.linear_model", extra="learn").Ridge(alpha=1.0)


def define(name: str, make: Any, expect: Verdict, *, target: bool) -> Audit:
    return Audit(
        name=f"estimators-{name}",
        mechanism=estimators.mechanism(make, target=target),
        claim=PureDP(1.0, Relation.SUBSTITUTE),
        neighbours=functools.partial(neighbours.fixed, PAIRS, relation=Relation.SUBSTITUTE),
        options={"samples": 40_000},
        expect=expect,
    )


AUDITS = (
    [
        define("noisy-mean", functools.partial(NoisyMean, 1.0), Verdict.NO_VIOLATION_FOUND, target=False),
        define("leaky-mean", functools.partial(NoisyMean, 1.0, leak=True), Verdict.VIOLATION, target=False),
        define("ridge", ridge, Verdict.VIOLATION, target=True),
    ]
    if INSTALLED
    else []
)
