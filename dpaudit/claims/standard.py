"""Claims of one or two numbers: pure, approximate, Gaussian, zero-concentrated and Renyi differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.deprecation import renamed_fields
from dpaudit._util.validation import check_non_negative, check_open_unit, check_positive
from dpaudit.claims.claim import Profile, Relation, as_relation, readable
from dpaudit.claims.gaussian import gaussian_delta
from dpaudit.claims.moments import best_order_delta
from dpaudit.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class PureDP(Profile):
    """epsilon-differential privacy: ``P(S) <= exp(epsilon) Q(S)`` for every event and both orders.

    >>> PureDP(1.0)
    PureDP(epsilon=1.0)
    >>> round(PureDP(1.0).delta(0.0), 6)      # total variation tanh(1/2), reached by randomised response
    0.462117
    """

    epsilon: float
    relation: Relation | None = None

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, hint=_did_you_mean_positive("PureDP", self.epsilon))
        object.__setattr__(self, "relation", as_relation(self.relation))

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return randomised_response_profile(self.epsilon, epsilon)

    def __repr__(self) -> str:
        return readable(self)


@renamed_fields(claimed_delta="delta_claimed")
@dataclass(frozen=True, slots=True, init=False)
class ApproxDP(Profile):
    """(epsilon, delta)-differential privacy: ``P(S) <= exp(epsilon) Q(S) + delta``, both orders.

    Parameters
    ----------
    epsilon : float
        Zero or positive.
    delta : float
        Strictly between 0 and 1. It is read back as ``delta_claimed``, because ``delta(epsilon)`` is the profile.
    relation : Relation or str, optional
        The neighbouring relation that the claim is made for; without one it is audited on any pairs.

    Examples
    --------
    >>> claim = ApproxDP(1.0, 1e-5)
    >>> claim
    ApproxDP(epsilon=1.0, delta=1e-05)
    >>> claim.delta(1.0), claim.delta(2.0)
    (1e-05, 1e-05)
    """

    epsilon: float
    delta_claimed: float
    relation: Relation | None = None

    def __init__(self, epsilon: float, delta: float, relation: Relation | None = None) -> None:
        check_non_negative(epsilon=epsilon)
        hint = "Use PureDP(epsilon) for delta = 0." if delta == 0 else ""
        check_open_unit(delta=delta, hint=hint)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta_claimed", delta)
        object.__setattr__(self, "relation", as_relation(relation))

    def at(self, parameter: float) -> Self:
        """Return the claim with the same delta and another epsilon."""
        return type(self)(parameter, self.delta_claimed, self.relation)

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.delta_claimed + (1.0 - self.delta_claimed) * randomised_response_profile(self.epsilon, epsilon)

    def __repr__(self) -> str:
        return readable(self).replace("delta_claimed", "delta")


@dataclass(frozen=True, slots=True)
class GaussianDP(Profile):
    """mu-Gaussian differential privacy: the two outputs are at least as hard to distinguish as N(0, 1) and N(mu, 1).

    >>> round(GaussianDP(1.0).delta(1.0), 12)
    0.126936737507
    """

    mu: float
    relation: Relation | None = None
    parameter_name = "mu"

    def __post_init__(self) -> None:
        check_positive(mu=self.mu)
        object.__setattr__(self, "relation", as_relation(self.relation))

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return gaussian_delta(epsilon, self.mu)

    def __repr__(self) -> str:
        return readable(self)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(Profile):
    """rho-zCDP: Renyi divergence of every order ``a > 1`` at most ``rho * a`` (Bun and Steinke 2016).

    >>> ZeroConcentratedDP(0.1).delta(1.0) < 0.03
    True
    """

    rho: float
    relation: Relation | None = None
    parameter_name = "rho"

    def __post_init__(self) -> None:
        check_positive(rho=self.rho)
        object.__setattr__(self, "relation", as_relation(self.relation))

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([best_order_delta(e, lambda a: self.rho * a, math.inf) for e in epsilon.tolist()])

    def __repr__(self) -> str:
        return readable(self)


@dataclass(frozen=True, slots=True)
class RenyiDP(Profile):
    """(order, epsilon)-Renyi differential privacy: Renyi divergence of that order at most ``epsilon`` (Mironov 2017).

    Parameters
    ----------
    order : float
        Above 1.
    epsilon : float
        Positive.
    relation : Relation or str, optional
        As for :class:`ApproxDP`.

    Examples
    --------
    >>> RenyiDP(order=8.0, epsilon=0.5)
    RenyiDP(order=8.0, epsilon=0.5)
    """

    order: float
    epsilon: float
    relation: Relation | None = None

    def __post_init__(self) -> None:
        check_positive(order=self.order, epsilon=self.epsilon)
        object.__setattr__(self, "relation", as_relation(self.relation))
        if self.order <= 1.0:
            raise InvalidArgument(f"order={self.order!r} must be above 1; order 1 is the Kullback-Leibler divergence.")

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        # Renyi divergence grows with its order, so the claimed bound holds at every smaller order too.
        return np.array([best_order_delta(e, lambda _: self.epsilon, self.order) for e in epsilon.tolist()])

    def __repr__(self) -> str:
        return readable(self)


def randomised_response_profile(claimed: float, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(exp(claimed) - exp(e))_+ / (1 + exp(claimed))``, without overflow."""
    return np.maximum(-np.expm1(np.minimum(epsilon - claimed, 0.0)), 0.0) / (1.0 + math.exp(-claimed))


def _did_you_mean_positive(name: str, epsilon: object) -> str:
    if isinstance(epsilon, int | float) and epsilon < 0:
        return f"A claim of epsilon-DP needs epsilon > 0; did you mean {name}({-epsilon!r})?"
    return ""
