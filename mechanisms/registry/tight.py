"""Mechanisms that keep their claim with equality, so that any larger leak would be a violation.

On them an auditor has nothing to find and everything to be tempted by, so they measure its false alarms: among many
independent audits at most a share alpha may report a violation, and at most a share alpha may state a lower bound above
the truth. :func:`tight_mechanisms` lists the twelve; tests and benchmarks read the same list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact, neighbours
from dpaudit._util.validation import check_open_unit, check_positive
from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    Claim,
    GaussianDP,
    MetricDP,
    ProfileDP,
    PureDP,
    TradeOffDP,
    gaussian_delta,
)
from dpaudit.neighbours import Neighbours

from .._common import Floats, check_draw, gaussian_epsilon
from ..randomised_response import RandomisedResponse
from .catalogue import only

EPSILON = 1.0
MU = 0.5
LEAK = 0.05
REPORTED_DELTA = 1e-5  # where a Gaussian claim's epsilon is stated


@dataclass(frozen=True, slots=True)
class RoundedLaplace:
    """A number with Laplace noise of scale 1/epsilon, rounded to the nearest multiple of 1/8.

    Rounding is post-processing, so epsilon-DP for answers at most 1 apart; and answers exactly 1 apart are eight steps
    apart on the grid, so that far out every cell has log-ratio epsilon exactly.

    >>> mechanism = RoundedLaplace(1.0)
    >>> round(exact.epsilon(mechanism.law(0.0), mechanism.law(1.0)), 12)
    1.0
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)

    def sample(self, data: float, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy numbers."""
        check_draw(size, rng)
        return np.round((data + rng.laplace(scale=1.0 / self.epsilon, size=size)) * 8.0) / 8.0

    def law(self, data: float) -> exact.Law:
        """The Laplace law, rounded."""
        return exact.Rounded(exact.Laplace(float(data), 1.0 / self.epsilon), 0.125)


@dataclass(frozen=True, slots=True)
class ShiftedGaussian:
    """A number times ``mu``, with standard Gaussian noise: mu-Gaussian DP with equality for answers 1 apart.

    >>> mechanism = ShiftedGaussian(0.5)
    >>> round(exact.delta(mechanism.law(0.0), mechanism.law(1.0), 1.0) / float(gaussian_delta(1.0, 0.5)), 9)
    1.0
    """

    mu: float

    def __post_init__(self) -> None:
        check_positive(mu=self.mu)

    def sample(self, data: float, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy numbers."""
        check_draw(size, rng)
        return rng.normal(self.mu * data, 1.0, size)

    def law(self, data: float) -> exact.Law:
        """A Gaussian of variance 1."""
        return exact.Gaussian(self.mu * float(data), 1.0)


@dataclass(frozen=True, slots=True)
class LeakingResponse:
    """With probability ``leak`` the bit itself, recognisable as such (10 or 11); otherwise randomised response.

    At epsilon the responses spend nothing of delta and the leak all of it: delta(epsilon) = leak exactly, and it is larger
    at every smaller epsilon.

    >>> mechanism = LeakingResponse(1.0, 0.05)
    >>> round(exact.delta(mechanism.law(0), mechanism.law(1), 1.0), 12)
    0.05
    """

    epsilon: float
    leak: float

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_open_unit(leak=self.leak)

    @property
    def _truthful(self) -> float:
        return 1.0 / (1.0 + math.exp(-self.epsilon))

    def sample(self, data: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return ``size`` answers."""
        check_draw(size, rng)
        response = np.where(rng.random(size) < self._truthful, data, 1 - data)
        return np.where(rng.random(size) < self.leak, 10 + data, response)

    def law(self, data: int) -> exact.Law:
        """Three outcomes: the leaked bit, and the two responses."""
        kept = 1.0 - self.leak
        return exact.Discrete(
            {10 + data: self.leak, data: kept * self._truthful, 1 - data: kept * (1.0 - self._truthful)}
        )


@dataclass(frozen=True, slots=True)
class OneSidedResponse:
    """A bit with log-ratios ``up`` and ``up - epsilon`` exactly: bounded range epsilon with equality.

    Its profile is that of the claim at 2 up - epsilon, and smaller elsewhere.

    >>> mechanism = OneSidedResponse(1.0, 0.75)
    >>> round(exact.log_ratio_range(mechanism.law(0), mechanism.law(1)), 12)
    1.0
    >>> delta = exact.delta(mechanism.law(0), mechanism.law(1), 0.5)
    >>> round(delta / BoundedRange(1.0).delta(0.5), 9)
    1.0
    """

    epsilon: float
    up: float

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, up=self.up)

    def ones(self, data: int) -> float:
        """Probability of a one: that of log-ratio ``up`` on data 0, and exp(-up) of it on data 1."""
        likely = math.expm1(self.epsilon - self.up) / (math.exp(self.epsilon - self.up) - math.exp(-self.up))
        return likely if data == 0 else likely * math.exp(-self.up)

    def sample(self, data: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return ``size`` bits."""
        check_draw(size, rng)
        return (rng.random(size) < self.ones(data)).astype(np.int64)

    def law(self, data: int) -> exact.Law:
        """Two outcomes."""
        return exact.Discrete({1: self.ones(data), 0: 1.0 - self.ones(data)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tight:
    """A mechanism that keeps ``claim`` with equality on ``pairs``.

    Attributes
    ----------
    name : str
        For tables.
    mechanism : Mechanism
        It has a law too.
    claim : Claim
        What is audited.
    pairs : tuple of pairs
        A few, on each of which the claim is tight.
    everywhere : callable or None
        Makes neighbours to search among: the claim holds on all of them, and is tight on some. None where ``pairs`` are all.
    epsilon : float
        The true epsilon at the delta where ``epsilon_lower`` is stated.
    """

    name: str
    mechanism: Any
    claim: Claim
    pairs: tuple[tuple[Any, Any], ...]
    everywhere: Callable[[], Neighbours] | None
    epsilon: float


def numbers() -> Neighbours:
    """One number between -8 and 8 that moves by at most 1."""
    return neighbours.answers(1, -8, 8).map_data(only)


def far_numbers() -> Neighbours:
    """One number between -8 and 8 that moves by at most 4."""
    return neighbours.answers(4, -8, 8).map_data(only)


def two_digits() -> Neighbours:
    """Two different digits."""
    return neighbours.fixed(itertools.combinations(range(10), 2))


def tight_mechanisms() -> tuple[Tight, ...]:
    """Return the twelve mechanisms on which false alarms are counted.

    >>> [tight.name for tight in tight_mechanisms()][:2]
    ['randomised response', 'Laplace on a dyadic grid']
    """
    bits, digits = (0, 1), tuple(range(10))
    return (
        Tight(
            name="randomised response",
            mechanism=RandomisedResponse.k_ary(EPSILON, bits),
            claim=PureDP(EPSILON),
            pairs=((0, 1),),
            everywhere=None,
            epsilon=EPSILON,
        ),
        Tight(
            name="Laplace on a dyadic grid",
            mechanism=RoundedLaplace(EPSILON),
            claim=PureDP(EPSILON),
            pairs=((0, 1), (3, 4)),
            everywhere=numbers,
            epsilon=EPSILON,
        ),
        Tight(
            name="k-ary response",
            mechanism=RandomisedResponse.k_ary(EPSILON, digits),
            claim=PureDP(EPSILON),
            pairs=((0, 1), (2, 7), (4, 5)),
            everywhere=two_digits,
            epsilon=EPSILON,
        ),
        Tight(
            name="Gaussian at its delta",
            mechanism=ShiftedGaussian(MU),
            claim=ApproxDP(EPSILON, float(gaussian_delta(EPSILON, MU))),
            pairs=((0, 1),),
            everywhere=numbers,
            epsilon=EPSILON,
        ),
        Tight(
            name="leak and randomised response",
            mechanism=LeakingResponse(EPSILON, LEAK),
            claim=ApproxDP(EPSILON, LEAK),
            pairs=((0, 1),),
            everywhere=None,
            epsilon=EPSILON,
        ),
        Tight(
            name="Gaussian as Gaussian DP",
            mechanism=ShiftedGaussian(1.0),
            claim=GaussianDP(1.0),
            pairs=((0, 1), (1, 2)),
            everywhere=numbers,
            epsilon=gaussian_epsilon(1.0, REPORTED_DELTA),
        ),
        *_tight_curves(),
    )


def _tight_curves() -> tuple[Tight, ...]:
    """Return those whose claim is a curve, a range or a metric."""
    levels = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
    kept, wrong = 1.0 - LEAK, 1.0 / (1.0 + math.exp(EPSILON))
    one_sided = OneSidedResponse(EPSILON, 0.75)
    return (
        Tight(
            name="Gaussian as a profile",
            mechanism=ShiftedGaussian(1.0),
            claim=ProfileDP(zip(levels, gaussian_delta(levels, 1.0), strict=True)),
            pairs=((0, 1), (1, 2)),
            everywhere=numbers,
            epsilon=gaussian_epsilon(1.0, REPORTED_DELTA),
        ),
        Tight(
            name="response as a profile",
            mechanism=RandomisedResponse.k_ary(EPSILON, (0, 1)),
            claim=ProfileDP([(0.0, math.tanh(EPSILON / 2.0)), (EPSILON, 0.0)]),
            pairs=((0, 1),),
            everywhere=None,
            epsilon=EPSILON + math.log1p(-REPORTED_DELTA * (1.0 + math.exp(-EPSILON))),
        ),
        Tight(
            name="leak as a trade-off",
            mechanism=LeakingResponse(EPSILON, LEAK),
            claim=TradeOffDP([(0.0, kept), (kept * wrong, kept * wrong), (kept, 0.0)]),
            pairs=((0, 1),),
            everywhere=None,
            epsilon=math.inf,  # at a delta below the leak
        ),
        Tight(
            name="response as bounded range",
            mechanism=RandomisedResponse.k_ary(EPSILON / 2.0, (0, 1)),
            claim=BoundedRange(EPSILON),
            pairs=((0, 1),),
            everywhere=None,
            epsilon=EPSILON / 2.0 + math.log1p(-REPORTED_DELTA * (1.0 + math.exp(-EPSILON / 2.0))),
        ),
        Tight(
            name="one-sided bounded range",
            mechanism=one_sided,
            claim=BoundedRange(EPSILON),
            pairs=((0, 1),),
            everywhere=None,
            epsilon=one_sided.up + math.log1p(-REPORTED_DELTA / one_sided.ones(0)),
        ),
        Tight(
            name="Laplace as metric privacy",
            mechanism=RoundedLaplace(EPSILON),
            claim=MetricDP(EPSILON, "euclidean"),
            pairs=((0, 1), (3, 5), (2, 2.5)),
            everywhere=far_numbers,
            epsilon=EPSILON,
        ),
    )
