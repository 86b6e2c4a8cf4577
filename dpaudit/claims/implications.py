"""Which claims imply which, and the epsilon and delta in terms of which a claim is reported."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from dpaudit.claims.bounded_range import BoundedRange
from dpaudit.claims.claim import Claim
from dpaudit.claims.metric import MetricDP
from dpaudit.claims.profile import ProfileDP
from dpaudit.claims.standard import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.claims.trade_off import TradeOffDP

REPORTED_DELTA = 1e-5
"""The delta at which ``epsilon_lower`` is reported for a claim that has no delta of its own (see :func:`claim_delta`)."""


def claim_delta(claim: Claim) -> float:
    """Return the delta at which ``epsilon_lower`` is reported for this claim.

    >>> claim_delta(PureDP(1.0)), claim_delta(ApproxDP(1.0, 1e-6)), claim_delta(GaussianDP(1.0))
    (0.0, 1e-06, 1e-05)
    """
    match claim:
        case PureDP() | MetricDP():
            return 0.0
        case ApproxDP():
            return claim.delta_claimed
    return REPORTED_DELTA


def claimed_epsilon(claim: Claim) -> float | None:
    """Return the epsilon of a pure, metric or approximate DP claim, and None for every other claim."""
    return claim.epsilon if isinstance(claim, PureDP | ApproxDP | MetricDP) else None


def implies(strong: Claim, weak: Claim) -> bool:
    """Return True if keeping ``strong`` is known to imply keeping ``weak``, relations aside."""
    if isinstance(strong, MetricDP) or isinstance(weak, MetricDP):
        same = isinstance(strong, MetricDP) and isinstance(weak, MetricDP) and strong.distance == weak.distance
        return same and strong.parameter <= weak.parameter
    if isinstance(weak, ApproxDP):
        return strong.delta(weak.epsilon) <= weak.delta_claimed
    if isinstance(weak, ProfileDP | TradeOffDP):
        # Profiles are convex in exp(epsilon), and these are straight between their levels: to lie below at the levels is enough.
        levels = weak.levels
        return bool((strong.delta(levels) <= weak.delta(levels)).all())
    if isinstance(strong, ProfileDP | TradeOffDP):
        return isinstance(weak, PureDP) and strong.delta(weak.epsilon) == 0.0
    if isinstance(strong, RenyiDP) and isinstance(weak, RenyiDP):
        return strong.order >= weak.order and strong.epsilon <= weak.epsilon
    if type(strong) is type(weak):
        return strong.parameter <= weak.parameter
    if isinstance(weak, GaussianDP):
        # The stronger profile must lie below everywhere. Approximate DP and bounds on moments never guarantee that.
        pure = isinstance(strong, PureDP | BoundedRange)
        return pure and _pure_below_gaussian(strong.parameter, weak.mu)
    return _implies_moments(strong, weak)


def _implies_moments(strong: Claim, weak: Claim) -> bool:
    match strong, weak:
        case PureDP(), BoundedRange():
            return 2.0 * strong.epsilon <= weak.epsilon
        case BoundedRange(), PureDP():
            return strong.epsilon <= weak.epsilon
        case BoundedRange(), ZeroConcentratedDP():
            return strong.epsilon**2 / 8.0 <= weak.rho  # Cesar and Rogers 2021, lemma 3.4
        case BoundedRange(), RenyiDP():
            return min(strong.epsilon, strong.epsilon**2 * weak.order / 8.0) <= weak.epsilon
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
