"""The bracket of the true epsilon, against closed forms and integrals of densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import laplace, norm

from dpaudit import Relation
from dpaudit._util.hypothesis_bridge import explore
from dpaudit.accountant import Part, true_epsilon, truth
from dpaudit.accountant.composition import CompositionLimits, cases
from dpaudit.claims import gaussian_delta
from dpaudit.errors import InvalidArgument

GRID = np.linspace(-40.0, 41.0, 400_001)


def step_delta(part: Part, relation: Relation, epsilon: float) -> float:
    """The larger hockey-stick divergence of one step, by integration of the densities."""
    law = norm if part.noise == "gaussian" else laplace
    z, q = part.noise_multiplier, part.sampling_rate
    plain = law.pdf(GRID, scale=z)
    first = (1.0 - q) * plain + q * law.pdf(GRID, loc=1.0, scale=z)
    second = plain if relation is Relation.ADD_REMOVE else (1.0 - q) * plain + q * law.pdf(GRID, loc=-1.0, scale=z)
    pairs = (first, second), (second, first)
    return max(trapezoid(np.maximum(p - math.exp(epsilon) * r, 0.0), GRID) for p, r in pairs)


@pytest.mark.parametrize(
    ("part", "relation"),
    [
        (Part(1.0, 0.3), Relation.ADD_REMOVE),
        (Part(0.7, 0.9), Relation.SUBSTITUTE),
        (Part(2.0, 0.05), Relation.SUBSTITUTE),
        (Part(1.0, 0.4, 1, "laplace"), Relation.ADD_REMOVE),
        (Part(2.0, 1.0, 1, "laplace"), Relation.SUBSTITUTE),
    ],
)
def test_one_step_against_integrals(part, relation):
    delta = 1e-3
    bracket = true_epsilon((part,), delta, relation=relation)
    assert step_delta(part, relation, bracket.low) >= delta * (1 - 1e-4)
    assert step_delta(part, relation, bracket.high) <= delta * (1 + 1e-4)
    assert bracket.high - bracket.low < 0.04


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.SUBSTITUTE, Relation.ZERO_OUT])
def test_compositions_of_gaussians_against_the_closed_form(relation):
    composition = Part(4.0, 1.0, 5), Part(3.0, 1.0, 2)
    exact = true_epsilon(composition, 1e-5, relation=relation)
    assert exact.low == exact.high
    moved = 2.0 if relation is Relation.SUBSTITUTE else 1.0
    mu = moved * math.sqrt(5 / 16 + 2 / 9)
    assert float(gaussian_delta(exact.low, mu)) == pytest.approx(1e-5, rel=1e-6)
    # The same through the losses on a grid.
    low, high = (truth._epsilon(composition, 1e-5, relation, 0.03, upwards=upwards) for upwards in (False, True))
    assert exact.low - 0.03 < low <= exact.low <= high < exact.low + 1e-3


def test_two_steps_of_laplace_noise_against_integration():
    """Losses of a Laplace step at scale 2 lie in [-1/2, 1/2]; two of them by a grid over both outputs."""
    outputs = np.linspace(-30.0, 31.0, 1501)
    weights = np.gradient(outputs)
    first, second = (laplace.pdf(outputs, loc=place, scale=2.0) * weights for place in (0.0, 1.0))
    both, other = np.outer(first, first).ravel(), np.outer(second, second).ravel()
    bracket = true_epsilon((Part(2.0, 1.0, 2, "laplace"),), 0.05)
    for epsilon, above in ((bracket.low, True), (bracket.high, False)):
        delta = np.maximum(both - math.exp(epsilon) * other, 0.0).sum()
        assert (delta >= 0.05 * (1 - 1e-2)) if above else (delta <= 0.05 * (1 + 1e-2))


def test_named_numbers():
    bracket = true_epsilon((Part(0.5, 0.01, 50),), 1e-5)
    assert 5.57 < bracket.low < 5.602 < bracket.high < 5.603
    assert true_epsilon((Part(1.0),), 1e-5, relation=Relation.SUBSTITUTE).low == pytest.approx(9.997, abs=5e-4)


def test_the_weaker_side_of_a_case_has_no_smaller_epsilon():
    """Every generated case, in brackets: the upper bound of the weaker one is not below the lower bound of the other."""
    limits = CompositionLimits((1.0, 10.0), (0.01, 1.0), (1, 10), (1e-6, 0.01))
    strategy = cases(limits, noises=("gaussian", "laplace"), parts=2, relation=Relation.ADD_REMOVE)
    seen = []

    def visit(case):
        stronger = true_epsilon(case.composition, case.delta, precision=0.1)
        weaker = true_epsilon(case.weaker, case.smaller_delta, precision=0.1)
        assert weaker.high >= stronger.low - 1e-9
        seen.append(case)

    explore(strategy, visit, examples=12, seed=1)
    assert len(seen) >= 8


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidArgument, match="must be a tuple of dpaudit"):
        true_epsilon((), 1e-5)
    with pytest.raises(InvalidArgument, match="not known under substitution"):
        true_epsilon((Part(1.0, 0.5, 1, "laplace"),), 1e-5, relation=Relation.SUBSTITUTE)
    with pytest.raises(InvalidArgument, match="relation="):
        true_epsilon((Part(1.0),), 1e-5, relation=Relation.ANSWERS)
    with pytest.raises(InvalidArgument, match="sampling_rate=2"):
        Part(1.0, 2)
    with pytest.raises(InvalidArgument, match="noise='cauchy'"):
        Part(1.0, noise="cauchy")
    with pytest.raises(InvalidArgument, match="increasing pair"):
        CompositionLimits(deltas=(0.1, 0.01))
