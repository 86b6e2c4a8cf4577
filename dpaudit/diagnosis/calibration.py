"""The stage of calibration: is the declared noise, moved by what the query may change, as private as claimed? Exact.

A change of the answer is a vector with an entry for each number, and the numbers have independent noise. So a change is hidden as
claimed if the product of the declared laws and the same product, moved by the change, are as close as the claim asks. Two kinds
of changes refute the calibration: the declared sensitivity in one number, and changes within it that the query was seen to make.

What shows that nothing is wrong is the worst change of the declared norm. Of norm s, over d numbers, it is known for

* log-concave noise and the norm linf, or one number: (s, ..., s); over several numbers the noise must be symmetric too, so that
  signs do not matter. The best test between such a law and its translate is a threshold, and its
  power grows with the distance; so each coordinate of a smaller change can be made, at random, from that of (s, ..., s)
  (Blackwell's theorem), and as they are independent all of them together can;
* Gaussian noise: only the l2 length counts, as a rotation shows: s in one number for l1 and l2;
* Laplace noise, continuous or discrete, and pure DP: epsilon is the l1 length over the scale: s in one number for l1, and
  s / sqrt(d) in each for l2 (Cauchy-Schwarz). What that epsilon implies is kept too.

The declared norm allows its worst change, but the query need not make it: a histogram of linf sensitivity 1 changes in one count
only. So if that change alone is not hidden, the calibration is not decided, and the reason is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from dpaudit import exact
from dpaudit.claims import Claim, PureDP, Verdict
from dpaudit.engine.family import points_of
from dpaudit.errors import DPAuditError
from dpaudit.sensitivity import Norm

DECLARED = 1e-9  # relative rounding allowance on the claim,
SEEN = 1e-6  # and where the change is a difference of rounded answers
SYMMETRIC = (exact.Laplace, exact.DiscreteLaplace, exact.Gaussian, exact.LaplaceGaussian)
LOG_CONCAVE = (*SYMMETRIC, exact.Exponential)
MOST_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Whether the declared noise is enough for claim and sensitivity, and why.

    INCONCLUSIVE where laws cannot be compared exactly, or where a change that the norm allows is not hidden, but was not seen.
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
    """Compare the declared noise with itself, moved by changes of ``width`` numbers within the declared sensitivity.

    ``changes`` are those that the query was seen to make.

    >>> print(calibration(exact.Laplace(0.0, 0.5), 1.0, "l1", PureDP(1.0)))
    VIOLATION: moved by 1, Laplace(location=0.0, scale=0.5) has epsilon 2, and the claim is PureDP(epsilon=1.0)
    >>> calibration(exact.Laplace(0.0, 1.0), 1.0, "linf", PureDP(1.0), width=3, changes=[(1.0, 1.0, 1.0)]).reason
    'moved by (1, 1, 1), Laplace(location=0.0, scale=1.0) has epsilon 3, and the claim is PureDP(epsilon=1.0)'
    """
    if not _can_be_moved(noise):
        return _undecided("the declared noise is no law that can be moved and compared exactly")
    bounded = norm in ("l1", "l2", "linf")
    refuting = [([sensitivity], DECLARED)] if bounded else []
    for change, tolerance in [*refuting, *((change, SEEN) for change in changes)]:
        shortfall = _shortfall(noise, change, claim, tolerance)
        if shortfall:
            return Calibration(verdict=Verdict.VIOLATION, reason=shortfall)
    if not bounded:
        return _undecided(
            f"the norm {norm if isinstance(norm, str) else 'given'} does not bound what a number changes by"
        )
    worst = _worst(noise, sensitivity, norm, claim, width)
    if worst is None:
        return _undecided(
            f"of the changes of {norm} norm {sensitivity:g} in {width} number(s) it is not known which one {noise!r} hides least"
        )
    shortfall = _shortfall(noise, worst, claim, DECLARED)
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
    """The change within the declared sensitivity that is hidden least; None where it is not known."""
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
    """Why the claim does not hide the change, "" where it does, None where the laws cannot be compared exactly."""
    epsilon = _epsilon(noise, change)
    if epsilon is not None and _implied(epsilon / (1.0 + tolerance), claim):
        return ""
    told = f"moved by {_shown(change)}, {noise!r} has"
    if isinstance(claim, PureDP):
        return None if epsilon is None else f"{told} epsilon {epsilon:.6g}, and the claim is {claim!r}"
    try:
        for point in points_of(claim).epsilon.tolist():
            delta, allowed = exact.delta(*_laws(noise, change), point), claim.delta(point)
            if delta > allowed * (1.0 + tolerance) + 1e-15:
                return f"{told} delta {delta:.3g} at epsilon {point:.4g}, and the claim {claim!r} allows {allowed:.3g}"
    except DPAuditError:
        return None
    return ""


def _epsilon(noise: Any, change: Sequence[float]) -> float | None:
    try:
        return exact.epsilon(*_laws(noise, change))
    except DPAuditError:  # a law that cannot be moved there, or not be compared exactly
        return None


def _laws(noise: Any, change: Sequence[float]) -> tuple[exact.Product, exact.Product]:
    moved = [replace(noise, location=noise.location + entry) for entry in change]
    return exact.Product([noise] * len(moved)), exact.Product(moved)


def _implied(epsilon: float | None, claim: Claim) -> bool:
    """Whether epsilon-DP implies the claim."""
    if epsilon is None or not math.isfinite(epsilon):
        return False
    return epsilon == 0.0 or PureDP(epsilon, relation=claim.relation).is_at_least_as_strong_as(claim)


def _shown(change: Sequence[float]) -> str:
    if len(change) == 1:
        return f"{change[0]:g}"
    entries = [f"{entry:g}" for entry in change[:MOST_SHOWN]]
    more = [f"... {len(change)} numbers"] if len(change) > MOST_SHOWN else []
    return f"({', '.join([*entries, *more])})"
