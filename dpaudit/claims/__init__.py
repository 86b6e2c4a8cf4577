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
``ProfileDP(points)``         exact: the points with what convexity and monotonicity imply
``TradeOffDP(f)``             exact for a symmetric piecewise linear f; any other f is replaced by one below it
``BoundedRange(epsilon)``     exact at each epsilon, each time by another pair (Dong, Durfee and Rogers 2020)
``MetricDP(epsilon, d)``      exact, for a pair at distance 1; a pair at distance d has d times the epsilon
============================  ======================================================================================

"Exact" means: some mechanism keeps the claim and reaches the profile at every epsilon; nothing smaller would be valid.
"""

from typing import Any

from dpaudit.claims.bounded_range import BoundedRange as BoundedRange
from dpaudit.claims.claim import Claim as Claim
from dpaudit.claims.claim import Relation as Relation
from dpaudit.claims.claim import Verdict as Verdict
from dpaudit.claims.gaussian import gaussian_delta as gaussian_delta
from dpaudit.claims.gaussian import gaussian_epsilon as gaussian_epsilon
from dpaudit.claims.implications import REPORTED_DELTA as REPORTED_DELTA
from dpaudit.claims.implications import claim_delta as claim_delta
from dpaudit.claims.implications import claimed_epsilon as claimed_epsilon
from dpaudit.claims.metric import MetricDP as MetricDP
from dpaudit.claims.metric import distance_between as distance_between
from dpaudit.claims.profile import ProfileDP as ProfileDP
from dpaudit.claims.standard import ApproxDP as ApproxDP
from dpaudit.claims.standard import GaussianDP as GaussianDP
from dpaudit.claims.standard import PureDP as PureDP
from dpaudit.claims.standard import RenyiDP as RenyiDP
from dpaudit.claims.standard import ZeroConcentratedDP as ZeroConcentratedDP
from dpaudit.claims.trade_off import TradeOffDP as TradeOffDP

CLAIM_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        PureDP,
        ApproxDP,
        GaussianDP,
        ZeroConcentratedDP,
        RenyiDP,
        ProfileDP,
        TradeOffDP,
        MetricDP,
        BoundedRange,
    )
}
"""All claims by name, as stored results and the scripts of witnesses name them."""
