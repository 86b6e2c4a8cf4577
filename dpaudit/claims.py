r"""Privacy claims: the statements that a mechanism is audited against.

Every claim is a privacy profile: ``claim.delta(epsilon)`` bounds the hockey-stick divergence
``sup_S P(S) - exp(epsilon) Q(S)`` that it allows between the outputs on two neighbouring data sets, at each
``epsilon >= 0``. One auditing engine therefore serves all of them.

============================  ======================================================================================
claim                         ``delta(epsilon)``
============================  ======================================================================================
``PureDP(epsilon)``           exact: attained by randomised response
``ApproxDP(epsilon, delta)``  exact: attained by a leak of probability delta, else randomised response
``GaussianDP(mu)``            exact: N(0, 1) against N(mu, 1) (Balle and Wang 2018; Dong, Roth and Su 2022)
``ZeroConcentratedDP(rho)``   upper bound: Canonne, Kamath and Steinke 2020, proposition 12, optimised over the order
``RenyiDP(order, epsilon)``   upper bound: the same conversion, over all orders up to the claimed one
============================  ======================================================================================

"Exact" means: some mechanism keeps the claim and reaches the profile at every epsilon; nothing smaller would be valid.
"""

from __future__ import annotations

import contextlib
import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from dpaudit._util.deprecation import renamed_fields
from dpaudit._util.validation import check_non_negative, check_open_unit, check_positive, did_you_mean
from dpaudit.errors import InvalidArgument

REPORTED_DELTA = 1e-5
"""The delta at which ``epsilon_lower`` is reported for a claim that has no delta of its own (see :func:`claim_delta`)."""


class Relation(enum.Enum):
    """Which pairs of data sets are neighbours."""

    SUBSTITUTE = "substitute"  # same size, one row replaced; the size is public
    ADD_REMOVE = "add-remove"  # one row more or less
    ZERO_OUT = "zero-out"  # one row replaced by a fixed null row, size and denominators public
    ANSWERS = "answers"  # vectors of query answers, each entry moves by at most the sensitivity
    USERS_SUBSTITUTE = "users-substitute"  # all rows of one person replaced
    USERS_ADD_REMOVE = "users-add-remove"  # all rows of one person added or removed
    SECRETS = "secrets"  # Pufferfish: two secrets; the data are drawn again in every trial

    def __repr__(self) -> str:
        return f"Relation.{self.name}"


class Verdict(enum.Enum):
    """The outcome of a check. It is never called "passed" or "is private"."""

    VIOLATION = "VIOLATION"
    NO_VIOLATION_FOUND = "NO_VIOLATION_FOUND"
    INCONCLUSIVE = "INCONCLUSIVE"

    def __str__(self) -> str:
        return self.value


@runtime_checkable
class Claim(Protocol):
    """A privacy statement: the interface that all claims share."""

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation that the claim is made for, or None if it names none."""

    @property
    def parameter(self) -> float:
        """The number that grows as the claim weakens: epsilon, rho or mu."""

    @property
    def parameter_name(self) -> str:
        """The name of that parameter."""

    def at(self, parameter: float) -> Self:
        """Return the same kind of claim with another value of its parameter."""

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def delta(self, epsilon: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """Return the largest hockey-stick divergence that the claim allows at ``epsilon >= 0``."""

    def is_at_least_as_strong_as(self, other: Claim) -> bool:
        """Return True if keeping this claim is known to imply keeping the other one."""


class _Profile:
    """The part that all claims share. Subclasses define ``_delta`` for an array of non-negative epsilons."""

    __slots__ = ()

    relation: Relation | None
    parameter_name: str = "epsilon"

    @property
    def parameter(self) -> float:
        return float(getattr(self, self.parameter_name))

    def at(self, parameter: float) -> Self:
        return replace(self, **{self.parameter_name: parameter})  # type: ignore[type-var]

    _delta: Callable[[NDArray[np.float64]], NDArray[np.float64]]

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def delta(self, epsilon: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """Return the largest hockey-stick divergence that the claim allows at ``epsilon >= 0`` (a number or an array)."""
        grid = np.asarray(epsilon, dtype=np.float64)
        if not (grid >= 0.0).all():  # also catches NaN
            raise InvalidArgument(f"epsilon={epsilon!r} must be zero or positive; a privacy profile starts at 0.")
        values = np.clip(self._delta(grid.reshape(-1)), 0.0, 1.0)
        return float(values[0]) if grid.ndim == 0 else values.reshape(grid.shape)

    def is_at_least_as_strong_as(self, other: Claim) -> bool:
        """Return True if keeping this claim is known to imply keeping ``other``.

        The relation must be the same one, or not be named by ``other``. Claims of one kind compare by their
        parameters; an (epsilon, delta) claim follows from any profile that is at most delta at epsilon, and pure DP
        implies the moment claims through the known conversions. ``False`` means "not implied, as far as is known".

        >>> PureDP(1.0).is_at_least_as_strong_as(ZeroConcentratedDP(0.5))
        True
        >>> ZeroConcentratedDP(0.5).is_at_least_as_strong_as(PureDP(1.0))
        False
        """
        if other.relation is not None and other.relation is not self.relation:
            return False
        return _implies(self, other)


@dataclass(frozen=True, slots=True)
class PureDP(_Profile):
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
        object.__setattr__(self, "relation", _as_relation(self.relation))

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return _randomised_response_profile(self.epsilon, epsilon)

    def __repr__(self) -> str:
        return _readable(self)


@renamed_fields(claimed_delta="delta_claimed")
@dataclass(frozen=True, slots=True, init=False)
class ApproxDP(_Profile):
    """(epsilon, delta)-differential privacy: ``P(S) <= exp(epsilon) Q(S) + delta``, both orders.

    The parameter ``delta`` is read back as ``delta_claimed``, because ``delta(epsilon)`` is the profile.

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
        object.__setattr__(self, "relation", _as_relation(relation))

    def at(self, parameter: float) -> Self:
        """Return the claim with the same delta and another epsilon."""
        return type(self)(parameter, self.delta_claimed, self.relation)

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.delta_claimed + (1.0 - self.delta_claimed) * _randomised_response_profile(self.epsilon, epsilon)

    def __repr__(self) -> str:
        return _readable(self).replace("delta_claimed", "delta")


@dataclass(frozen=True, slots=True)
class GaussianDP(_Profile):
    """mu-Gaussian differential privacy: the two outputs are at least as hard to distinguish as N(0, 1) and N(mu, 1).

    >>> round(GaussianDP(1.0).delta(1.0), 12)
    0.126936737507
    """

    mu: float
    relation: Relation | None = None
    parameter_name = "mu"

    def __post_init__(self) -> None:
        check_positive(mu=self.mu)
        object.__setattr__(self, "relation", _as_relation(self.relation))

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return gaussian_delta(epsilon, self.mu)

    def __repr__(self) -> str:
        return _readable(self)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(_Profile):
    """rho-zCDP: Renyi divergence of every order ``a > 1`` at most ``rho * a`` (Bun and Steinke 2016).

    >>> ZeroConcentratedDP(0.1).delta(1.0) < 0.03
    True
    """

    rho: float
    relation: Relation | None = None
    parameter_name = "rho"

    def __post_init__(self) -> None:
        check_positive(rho=self.rho)
        object.__setattr__(self, "relation", _as_relation(self.relation))

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([_best_order_delta(e, lambda a: self.rho * a, math.inf) for e in epsilon.tolist()])

    def __repr__(self) -> str:
        return _readable(self)


@dataclass(frozen=True, slots=True)
class RenyiDP(_Profile):
    """(order, epsilon)-Renyi differential privacy: Renyi divergence of that order at most ``epsilon`` (Mironov 2017).

    >>> RenyiDP(order=8.0, epsilon=0.5)
    RenyiDP(order=8.0, epsilon=0.5)
    """

    order: float
    epsilon: float
    relation: Relation | None = None

    def __post_init__(self) -> None:
        check_positive(order=self.order, epsilon=self.epsilon)
        object.__setattr__(self, "relation", _as_relation(self.relation))
        if self.order <= 1.0:
            raise InvalidArgument(f"order={self.order!r} must be above 1; order 1 is the Kullback-Leibler divergence.")

    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        # Renyi divergence grows with its order, so the claimed bound holds at every smaller order too.
        return np.array([_best_order_delta(e, lambda _: self.epsilon, self.order) for e in epsilon.tolist()])

    def __repr__(self) -> str:
        return _readable(self)


def claim_delta(claim: Claim) -> float:
    """Return the delta at which ``epsilon_lower`` is reported for this claim.

    >>> claim_delta(PureDP(1.0)), claim_delta(ApproxDP(1.0, 1e-6)), claim_delta(GaussianDP(1.0))
    (0.0, 1e-06, 1e-05)
    """
    match claim:
        case PureDP():
            return 0.0
        case ApproxDP():
            return claim.delta_claimed
    return REPORTED_DELTA


def claimed_epsilon(claim: Claim) -> float | None:
    """Return the epsilon of a pure or approximate DP claim, and None for every other claim."""
    return claim.epsilon if isinstance(claim, PureDP | ApproxDP) else None


def gaussian_delta(epsilon: NDArray[np.float64] | float, mu: float) -> NDArray[np.float64]:
    """Hockey-stick divergence of N(mu, 1) from N(0, 1): ``Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)``.

    Put ``x = e/mu - mu/2`` and let ``R(t) = (1 - Phi(t)) / phi(t)`` be the Mills ratio. As ``phi(x) = exp(e)
    phi(x + mu)``, the divergence is ``phi(x) (R(x) - R(x + mu))``, and ``R'(t) = t R(t) - 1``. This form does not
    overflow, and keeps its relative accuracy (1e-12) far in the tail. For small mu the difference is the integral of
    ``1 - t R(t)``, evaluated by Gauss-Legendre quadrature.
    """
    with np.errstate(over="ignore"):  # an epsilon / mu that overflows may be replaced by 50: phi is 0 at both
        x = np.minimum(np.asarray(epsilon, dtype=np.float64) / mu - mu / 2.0, 50.0)
    density = np.exp(-(np.maximum(x, -50.0) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
    if mu <= 0.5:
        t = x[..., np.newaxis] + mu * _NODES
        return np.asarray(density * mu * np.sum(_WEIGHTS * (1.0 - t * _mills(t)), axis=-1))
    # For x < 0 the Mills ratio grows without bound. The normal distribution function is above 1/2 there: no cancellation.
    first = np.where(x < 0.0, ndtr(-x), density * _mills(np.maximum(x, 0.0)))
    return np.asarray(first - density * _mills(x + mu))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon at which mu-Gaussian privacy has that delta: the root of the profile, which falls, or 0.

    >>> round(gaussian_epsilon(1.0, 1e-5), 6)
    4.377178
    """
    check_positive(mu=mu)
    check_open_unit(delta=delta)

    def excess(epsilon: float) -> float:
        return math.log(max(float(gaussian_delta(epsilon, mu)), 1e-320)) - math.log(delta)

    if excess(0.0) <= 0.0:
        return 0.0
    from scipy.optimize import brentq  # imported here: slow to load

    # The loss is N(mu^2/2, mu^2), and forty standard deviations up nothing is left.
    return float(brentq(excess, 0.0, mu**2 / 2.0 + 40.0 * mu, xtol=1e-12, rtol=1e-12))


def _mills(t: NDArray[np.float64]) -> NDArray[np.float64]:
    return math.sqrt(math.pi / 2.0) * erfcx(t / math.sqrt(2.0))


def _unit_interval_rule(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1.0) / 2.0, weights / 2.0


_NODES, _WEIGHTS = _unit_interval_rule(12)


def _randomised_response_profile(claimed: float, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(exp(claimed) - exp(e))_+ / (1 + exp(claimed))``, without overflow."""
    return np.maximum(-np.expm1(np.minimum(epsilon - claimed, 0.0)), 0.0) / (1.0 + math.exp(-claimed))


def _best_order_delta(epsilon: float, divergence: _Curve, largest: float) -> float:
    """Smallest delta over the orders ``1 < a <= largest`` (Canonne, Kamath and Steinke 2020, proposition 12).

    ``log delta(a) = (a - 1)(R(a) - epsilon) - log(a - 1) + a log(1 - 1/a)``. Any order gives a valid upper bound, so an
    imperfect optimiser costs tightness, never validity. The search runs over ``t = log(a - 1)``, where the function is
    smooth, from a coarse grid to a bracketed minimum. Total variation adds Bretagnolle-Huber at order 1, from
    KL <= R(a) as a -> 1: ``delta(e) <= delta(0) <= sqrt(1 - exp(-KL))``.
    """
    if math.isinf(epsilon):
        return 0.0

    def log_delta(t: float) -> float:
        # a log(1 - 1/a) = -a log(1 + exp(-t)). Other forms cancel for large or small t, and the bound would be invalid.
        excess = math.exp(t)
        return excess * (divergence(1.0 + excess) - epsilon) - t - (1.0 + excess) * math.log1p(math.exp(-t))

    top = math.log(largest - 1.0) if math.isfinite(largest) else 40.0
    grid = np.linspace(min(-20.0, top - 1.0), top, 121).tolist()
    values = [log_delta(t) for t in grid]
    best = int(np.argmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    from scipy.optimize import minimize_scalar  # imported here: slow to load, and most claims do not need it

    refined = minimize_scalar(
        lambda t: log_delta(float(t)), bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    bretagnolle_huber = math.sqrt(-math.expm1(-divergence(1.0)))
    return min(1.0, math.exp(min(values[best], float(refined.fun), 0.0)), bretagnolle_huber)


class _Curve(Protocol):
    def __call__(self, order: float, /) -> float: ...


def _implies(strong: Claim, weak: Claim) -> bool:
    if isinstance(weak, ApproxDP):
        return strong.delta(weak.epsilon) <= weak.delta_claimed
    if isinstance(strong, RenyiDP) and isinstance(weak, RenyiDP):
        return strong.order >= weak.order and strong.epsilon <= weak.epsilon
    if type(strong) is type(weak):
        return strong.parameter <= weak.parameter
    if isinstance(weak, GaussianDP):
        # The stronger profile must lie below everywhere. Approximate DP and bounds on moments never guarantee that.
        return isinstance(strong, PureDP) and _pure_below_gaussian(strong.epsilon, weak.mu)
    match strong, weak:
        case PureDP(), ZeroConcentratedDP():
            return strong.epsilon**2 / 2.0 <= weak.rho  # Bun and Steinke 2016, proposition 3.3
        case PureDP(), RenyiDP():
            return _pure_renyi(strong.epsilon, weak.order) <= weak.epsilon
        case GaussianDP(), ZeroConcentratedDP():
            return strong.mu**2 / 2.0 <= weak.rho
        case GaussianDP(), RenyiDP():
            return strong.mu**2 * weak.order / 2.0 <= weak.epsilon
        case ZeroConcentratedDP(), RenyiDP():
            return strong.rho * weak.order <= weak.epsilon
    return False


def _pure_below_gaussian(epsilon: float, mu: float) -> bool:
    """Return True if every epsilon-DP pair is mu-Gaussian private, decided by trade-off functions.

    The worst epsilon-DP pair is randomised response: piecewise linear from (0, 1) through (v, v) to (1, 0), where
    ``v = 1 / (1 + exp(epsilon))``. The Gaussian trade-off is convex with the same end points and meets the diagonal at
    ``Phi(-mu/2)``, so it lies below everywhere exactly when it does at the vertex.
    """
    return -float(np.logaddexp(0.0, epsilon)) >= float(log_ndtr(-mu / 2.0))


def _pure_renyi(epsilon: float, order: float) -> float:
    """Largest Renyi divergence of an epsilon-DP pair: that of randomised response (Mironov 2017, proposition 3).

    ``log[(exp(a e) + exp((1 - a) e)) / (1 + exp(e))] / (a - 1)``.
    """
    return float(np.logaddexp(order * epsilon, (1.0 - order) * epsilon) - np.logaddexp(0.0, epsilon)) / (order - 1.0)


def _as_relation(relation: object) -> Relation | None:
    """Return the relation of a claim, which may be given by its value, as ``repr`` shows it."""
    if relation is None or isinstance(relation, Relation):
        return relation
    with contextlib.suppress(ValueError):
        return Relation(relation)
    if isinstance(relation, float | int) and not isinstance(relation, bool):
        raise InvalidArgument(
            f"relation={relation!r} must be None or a Relation. Is it a delta? That is another claim: "
            f"ApproxDP(epsilon, {relation!r})."
        )
    known = ", ".join(map(repr, Relation))
    hint = did_you_mean(relation, [member.value for member in Relation])
    raise InvalidArgument(f"relation={relation!r} must be None or one of {known}, or the value of one.{hint}")


def _did_you_mean_positive(name: str, epsilon: object) -> str:
    if isinstance(epsilon, int | float) and epsilon < 0:
        return f"A claim of epsilon-DP needs epsilon > 0; did you mean {name}({-epsilon!r})?"
    return ""


def _readable(claim: object) -> str:
    shown = [f"{name}={getattr(claim, name)!r}" for name in claim.__dataclass_fields__ if name != "relation"]  # type: ignore[attr-defined]
    relation = getattr(claim, "relation", None)
    if relation is not None:
        shown.append(f"relation={relation.value!r}")
    return f"{type(claim).__name__}({', '.join(shown)})"
