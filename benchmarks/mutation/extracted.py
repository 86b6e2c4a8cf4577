"""The true epsilon of a mutant from its code: its sampler is run on symbols, and the laws that come out are compared.

Independent of the law that a mutant declares, which was derived by hand or mutated along with the sampler; where both are
known they must agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from scipy import optimize

from dpaudit.errors import CannotFollow, LawError
from dpaudit.neighbours import Pair
from dpaudit.symbolic import comparison
from dpaudit.symbolic.running.extraction import Limits, extract
from dpaudit.symbolic.running.release import mechanism_of, release_of

LIMITS = Limits(seconds=1.0, paths=300)
TIGHT = 1e-6  # relative width of an interval that counts as one number
_LARGEST = 64.0  # beyond which an epsilon counts as infinite, as in the judging


def epsilon_from_code(mechanism: Any, pair: Pair, delta: float) -> float | None:
    """Return the epsilon of a pair (with a delta, the one that is kept at it), or None if the code does not show it."""
    release, function = release_of(mechanism_of(mechanism))
    try:
        P, Q = (extract(release, function, side, LIMITS) for side in pair)
        low, high = comparison.epsilon(P, Q) if delta == 0.0 else _kept(P, Q, delta)
    except (CannotFollow, LawError):
        return None
    if low == high:
        return low
    return 0.5 * (low + high) if high - low <= TIGHT * max(1.0, high) else None


def _kept(P: Any, Q: Any, delta: float) -> tuple[float, float]:
    """Ends of the smallest epsilon at which the pair keeps a delta."""
    ends = [_crossing(lambda level, end=end: comparison.delta(P, Q, level)[end] - delta) for end in (0, 1)]  # type: ignore[misc]
    return ends[0], ends[1]


def _crossing(excess: Callable[[float], float]) -> float:
    if excess(0.0) <= 0.0:
        return 0.0
    high = 1.0
    while excess(high) > 0.0:
        high *= 2.0
        if high > _LARGEST:
            return math.inf
    found: float = optimize.brentq(excess, 0.0, high, xtol=1e-9)
    return found


def disagreement(declared: float, extracted: float | None) -> bool:
    """Return True if the law that a mutant declares has another epsilon than its code."""
    if extracted is None or declared == extracted:
        return False
    return not abs(declared - extracted) <= 10.0 * TIGHT * max(1.0, min(declared, extracted))
