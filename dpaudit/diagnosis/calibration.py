"""Check exactly whether the declared noise is large enough for the declared sensitivity and the claim.

A change of the answer is a vector with an entry for each number, and the numbers have independent noise. The noise hides a
change as claimed if the product of the declared laws and the same product, shifted by the change, are as close as the claim
requires. Two kinds of changes refute the calibration: the declared sensitivity in one number, and changes within the declared
sensitivity that the query makes on a pair that was tried.

The calibration is right if the worst change of the declared norm is hidden. For norm s and d numbers, the worst change is known
for

* log-concave noise and the norm linf, or one number: (s, ..., s); for several numbers the noise must be symmetric too, so that
  signs do not matter. The best test between such a law and its translate is a threshold, and its power grows with the
  distance. So the outputs under each coordinate of a smaller change can be simulated from those under (s, ..., s)
  (Blackwell's theorem), and because the coordinates are independent, all of them together;
* Gaussian noise: by rotation only the l2 length matters: s in one number for l1 and l2;
* Laplace noise, continuous or discrete, and pure DP: epsilon is the l1 length over the scale: s in one number for l1, and
  s / sqrt(d) in each for l2 (Cauchy-Schwarz). Claims that this epsilon implies are covered too.

The declared norm allows its worst change, but the query need not make it: a histogram of linf sensitivity 1 changes in one count
only. So if only that change is not hidden, the verdict is INCONCLUSIVE, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from dpaudit import exact
from dpaudit.claims import BoundedRange, Claim, MetricDP, PureDP, Verdict
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.errors import DPAuditError
from dpaudit.sensitivity import Norm

DECLARED_TOLERANCE = 1e-9
"""Relative rounding allowance on the claim for the declared sensitivity."""
OBSERVED_TOLERANCE = 1e-6
"""Relative rounding allowance on the claim for an observed change, which is a difference of rounded answers."""
SYMMETRIC = (exact.Laplace, exact.DiscreteLaplace, exact.Gaussian, exact.LaplaceGaussian)
"""Laws that are symmetric about their location; all are log-concave."""
LOG_CONCAVE = (*SYMMETRIC, exact.Exponential)
"""Laws with a log-concave density or mass function."""
MOST_SHOWN = 4
"""Number of entries of a change that a message shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The verdict on the calibration of the noise, with its reason.

    INCONCLUSIVE if the laws cannot be compared exactly, or if the noise does not hide a change that the norm allows but that the
    query was not seen to make.
    """

    verdict: Verdict
    reason: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"


def calibration(
    noise: Any,
    sensitivity: float,
    norm: Norm,
    claim: Claim,
    *,
    width: int = 1,
    changes: Sequence[Sequence[float]] = (),
) -> Calibration:
    """Compare the declared noise with itself, shifted by changes within the declared sensitivity.

    Parameters
    ----------
    noise : Law
        The declared law of the noise of each number.
    sensitivity, norm
        The declared sensitivity of the query.
    claim : Claim
        The claim of the mechanism.
    width : int
        Number of numbers in the answer.
    changes : sequence of sequences of float
        Changes that the query was seen to make.

    Examples
    --------
    >>> print(calibration(exact.Laplace(0.0, 0.5), 1.0, "l1", PureDP(1.0)))
    VIOLATION: moved by 1, Laplace(location=0.0, scale=0.5) has epsilon 2, and the claim is PureDP(epsilon=1.0)
    >>> calibration(exact.Laplace(0.0, 1.0), 1.0, "linf", PureDP(1.0), width=3, changes=[(1.0, 1.0, 1.0)]).reason
    'moved by (1, 1, 1), Laplace(location=0.0, scale=1.0) has epsilon 3, and the claim is PureDP(epsilon=1.0)'
    """
    if not _can_be_moved(noise):
        return _undecided("the declared noise is not a law that can be shifted and compared exactly")
    bounded = norm in ("l1", "l2", "linf")
    refuting = [([sensitivity], DECLARED_TOLERANCE)] if bounded else []
    for change, tolerance in [*refuting, *((change, OBSERVED_TOLERANCE) for change in changes)]:
        shortfall = _shortfall(noise, change, claim, tolerance)
        if shortfall:
            return Calibration(verdict=Verdict.VIOLATION, reason=shortfall)
    if not bounded:
        return _undecided(
            f"the norm {norm if isinstance(norm, str) else 'given'} does not bound the change of a number"
        )
    worst = _worst(noise, sensitivity, norm, claim, width)
    if worst is None:
        return _undecided(
            f"the worst change of {norm} norm {sensitivity:g} in {width} number(s) is not known for {noise!r}"
        )
    shortfall = _shortfall(noise, worst, claim, DECLARED_TOLERANCE)
    if shortfall is None:
        return _undecided(f"{noise!r}, moved by {_shown(worst)}, cannot be compared exactly")
    if shortfall:
        return _undecided(
            f"{shortfall}; the declared sensitivity allows that change, which the query was not seen to make"
        )
    return Calibration(
        verdict=Verdict.NO_VIOLATION_FOUND,
        reason=f"the worst change of {norm} norm {sensitivity:g}, by {_shown(worst)}, is hidden as claimed (exactly)",
    )


def _undecided(reason: str) -> Calibration:
    return Calibration(verdict=Verdict.INCONCLUSIVE, reason=reason)


def _can_be_moved(noise: Any) -> bool:
    a_value = is_dataclass(noise) and not isinstance(noise, type)
    return a_value and hasattr(noise, "form") and "location" in {field.name for field in fields(noise)}


def _worst(noise: Any, sensitivity: float, norm: Norm, claim: Claim, width: int) -> list[float] | None:
    """Return the change within the declared sensitivity that is hidden least, or None if it is not known."""
    one = [sensitivity]
    if width == 1:  # all norms agree
        return one if isinstance(noise, LOG_CONCAVE) else None
    if norm == "linf":
        return one * width if isinstance(noise, SYMMETRIC) else None
    if isinstance(noise, exact.Gaussian):
        return one
    if isinstance(noise, exact.Laplace | exact.DiscreteLaplace):
        longest = one if norm == "l1" else [sensitivity / math.sqrt(width)] * width
        if isinstance(claim, PureDP) or _implied(_epsilon(noise, longest), claim):
            return longest
    return None


def _shortfall(noise: Any, change: Sequence[float], claim: Claim, tolerance: float) -> str | None:
    """Return why the change is not hidden as claimed, "" if it is, and None if the laws cannot be compared exactly."""
    epsilon = _epsilon(noise, change)
    if epsilon is not None and _implied(epsilon / (1.0 + tolerance), claim):
        return ""
    moved = f"moved by {_shown(change)}, {noise!r} has"
    if isinstance(claim, MetricDP):
        return None  # the change of an answer does not say how far the data sets are apart
    if isinstance(claim, BoundedRange):
        return _range_shortfall(noise, change, claim, tolerance, moved)
    if isinstance(claim, PureDP):
        return None if epsilon is None else f"{moved} epsilon {epsilon:.6g}, and the claim is {claim!r}"
    try:
        for point in points_of(claim).epsilon.tolist():
            delta, allowed = exact.delta(*_laws(noise, change), point), claim.delta(point)
            if delta > allowed * (1.0 + tolerance) + 1e-15:
                return f"{moved} delta {delta:.3g} at epsilon {point:.4g}, and the claim {claim!r} allows {allowed:.3g}"
    except DPAuditError:
        return None
    return ""


def _range_shortfall(
    noise: Any, change: Sequence[float], claim: BoundedRange, tolerance: float, moved: str
) -> str | None:
    try:
        length = exact.log_ratio_range(*_laws(noise, change))
    except DPAuditError:
        return None
    kept = length <= claim.epsilon * (1.0 + tolerance)
    return "" if kept else f"{moved} log-ratios over a range of {length:.6g}, and the claim is {claim!r}"


def _epsilon(noise: Any, change: Sequence[float]) -> float | None:
    try:
        return exact.epsilon(*_laws(noise, change))
    except DPAuditError:  # the law cannot be shifted, or not be compared exactly
        return None


def _laws(noise: Any, change: Sequence[float]) -> tuple[exact.Product, exact.Product]:
    moved = [replace(noise, location=noise.location + entry) for entry in change]
    return exact.Product([noise] * len(moved)), exact.Product(moved)


def _implied(epsilon: float | None, claim: Claim) -> bool:
    """Return True if epsilon-DP implies the claim."""
    if epsilon is None or not math.isfinite(epsilon):
        return False
    return epsilon == 0.0 or PureDP(epsilon, relation=claim.relation).is_at_least_as_strong_as(claim)


def _shown(change: Sequence[float]) -> str:
    if len(change) == 1:
        return f"{change[0]:g}"
    entries = [f"{entry:g}" for entry in change[:MOST_SHOWN]]
    more = [f"... {len(change)} numbers"] if len(change) > MOST_SHOWN else []
    return f"({', '.join([*entries, *more])})"
