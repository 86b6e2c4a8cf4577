"""Where is the bug? A mechanism that is declared as query plus noise, examined in stages.

1. Sensitivity: does the query change by no more than declared? Deterministic (``sensitivity``).
2. Noise: do the residuals, output minus query, follow the declared law? Exact tests (``noise``, ``residuals``).
3. Calibration: is the declared noise, moved by the declared sensitivity, as private as claimed? Exact (``exact``), where the
   law is one of ``dpaudit.exact`` with a location.
4. End to end: does the running code keep its claim? Black box (``engine``), with the pair on which the query changes most tried
   first.

Stages 2 and 4 are statistical and own half of alpha each, so with probability at least 1 - alpha neither of them blames a
mechanism that is what it was declared to be and keeps its claim. Stages 1 and 3 have no error probability.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from dpaudit import exact
from dpaudit.claims import Claim, PureDP, Verdict
from dpaudit.diagnosis.noise import RESIDUALS, NoiseCheck, check_noise
from dpaudit.engine.audit import as_neighbours, audit, name_of
from dpaudit.engine.family import points_of
from dpaudit.engine.result import Result
from dpaudit.errors import DPAuditError
from dpaudit.neighbours import Neighbours
from dpaudit.sensitivity import Norm, SensitivityCheck, check_sensitivity
from dpaudit.validation import check_count, check_open_unit

WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What :func:`diagnose` found: one field per stage, and ``culprits``, the stages that explain the bug.

    ``culprits`` holds "sensitivity", "noise", "calibration" for what is not as declared, and "elsewhere" where the claim is
    refuted end to end although nothing else was found.
    """

    mechanism: str
    claim: Claim
    alpha: float
    sensitivity: SensitivityCheck
    noise: NoiseCheck
    calibration: str | None  # why the declared noise is too small for the claim, "" if it is not, None if not known
    end_to_end: Result
    culprits: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """VIOLATION if any stage found one, otherwise that of the audit end to end."""
        return Verdict.VIOLATION if self.culprits else self.end_to_end.verdict

    @property
    def summary(self) -> str:
        """One sentence that says where the bug is."""
        held = {
            "sensitivity": ("the sensitivity is larger than declared", "no larger sensitivity was found"),
            "noise": ("the noise is not the declared one", "the noise fits"),
            "calibration": ("the declared noise is too small for the claim", ""),
        }
        parts = [held[stage][stage not in self.culprits] for stage in held]
        end = {
            Verdict.VIOLATION: "end to end the claim is violated",
            Verdict.NO_VIOLATION_FOUND: "end to end no violation was found",
            Verdict.INCONCLUSIVE: "end to end nothing could be decided",
        }
        return "; ".join([part for part in parts if part] + [end[self.end_to_end.verdict]])

    def __str__(self) -> str:
        lines = [f"{self.verdict}  {self.mechanism}: {self.summary}.", "", *textwrap.wrap(self._advice(), WIDTH), ""]
        stages = [
            ("1. sensitivity", str(self.sensitivity)),
            ("2. noise", str(self.noise)),
            ("3. calibration", self._calibration()),
            ("4. end to end", str(self.end_to_end)),
        ]
        for title, text in stages:
            lines += [title, *(f"  {line}".rstrip() for line in text.splitlines()), ""]
        lines.append(
            f"alpha {self.alpha:g} in all: half for the residuals, half for the audit end to end; the other stages are exact."
        )
        return "\n".join(lines)

    def _calibration(self) -> str:
        if self.calibration is None:
            return "not known: the declared noise is no law that can be moved and compared exactly"
        if self.calibration:
            return f"{Verdict.VIOLATION}: {self.calibration}"
        return "a change by the declared sensitivity in one number is hidden as claimed (exactly)"

    def _advice(self) -> str:
        if self.culprits == ("elsewhere",):
            return (
                "Query and noise look as declared on the data tried, and yet the claim is violated: the code does something else "
                "with the data (another branch, an exception, a second release), or the noise is too small for the claim."
            )
        if not self.culprits:
            return "No stage found anything. This is not a proof of privacy."
        where = {
            "sensitivity": "bound what one person can change (clip the data), or declare the larger sensitivity and add noise",
            "noise": "correct the code that draws the noise, or the declared law",
            "calibration": "scale the noise to sensitivity and claim",
        }
        return f"Where to look: {'; '.join(f'{stage}: {where[stage]}' for stage in self.culprits)}."


def diagnose(
    mechanism: Any,
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    query: Callable[[Any], Any],
    noise: Any,
    sensitivity: float,
    norm: Norm = "l1",
    alpha: float = 1e-6,
    residuals: int = RESIDUALS,
    samples: int = 200_000,
    seed: int = 0,
    **options: Any,
) -> Diagnosis:
    """Examine a mechanism that is declared as ``query(data) + noise``, stage by stage, and say where the bug is.

    Parameters
    ----------
    mechanism, claim, neighbours
        As for :func:`dpaudit.audit`.
    query
        The deterministic query: a number, or numbers in a list, array, dict, Series or DataFrame.
    noise
        The declared law of what is added, independently, to every number of the answer: a law of ``dpaudit.exact`` such as
        ``Laplace(0.0, 1.0)``, an object with ``cdf`` (a frozen distribution of ``scipy.stats``), or a sampler ``f(size, rng)``.
    sensitivity, norm
        The declared sensitivity of the query, as for :func:`dpaudit.check_sensitivity`.
    alpha
        Probability that a mechanism that is what it is declared to be, and keeps its claim, is blamed; half of it is for the
        residuals, half for the audit end to end.
    residuals
        How many residuals (numbers, not releases) the noise is judged by, over at most eight data sets.
    samples, seed, options
        As for :func:`dpaudit.audit`, of the last stage.

    Examples
    --------
    >>> import dpaudit
    >>> from dpaudit import exact, neighbours
    >>> from hypothesis import strategies as st
    >>> noisy_sum = dpaudit.batched(lambda data, size, rng: sum(data) + rng.laplace(scale=9.0, size=size))
    >>> found = dpaudit.diagnose(
    ...     noisy_sum, dpaudit.PureDP(1.0), neighbours.add_remove(st.integers(0, 10), max_size=4),
    ...     query=sum, noise=exact.Laplace(0.0, 10.0), sensitivity=10.0, samples=20_000,
    ... )
    >>> found.culprits, round(found.noise.spread, 1)
    (('noise',), 0.9)
    """
    check_open_unit(alpha=alpha)
    check_count(residuals=residuals, samples=samples, minimum=2)
    check_count(minimum=0, seed=seed)
    close = as_neighbours(neighbours)
    sensible = check_sensitivity(query, sensitivity, close, norm, seed=seed)
    # Where the query changes most, the audit looks first; the mechanism has not been run yet, so nothing is selected.
    aimed = replace(close, find_corners=lambda: itertools.chain([sensible.worst], close.corners()))
    fits = check_noise(mechanism, query, noise, aimed, alpha=alpha / 2.0, residuals=residuals, seed=seed)
    shortfall = calibration(noise, float(sensitivity), norm, claim)
    result = audit(mechanism, claim, aimed, alpha=alpha / 2.0, samples=samples, seed=seed, **options)
    culprits = [
        stage
        for stage, found in (
            ("sensitivity", sensible.verdict is Verdict.VIOLATION),
            ("noise", fits.verdict is Verdict.VIOLATION),
            ("calibration", bool(shortfall)),
        )
        if found
    ]
    if result.verdict is Verdict.VIOLATION and not culprits:
        culprits = ["elsewhere"]
    return Diagnosis(
        mechanism=name_of(mechanism),
        claim=claim,
        alpha=alpha,
        sensitivity=sensible,
        noise=fits,
        calibration=shortfall,
        end_to_end=result,
        culprits=tuple(culprits),
    )


def calibration(noise: Any, sensitivity: float, norm: Norm, claim: Claim) -> str | None:
    """Why the declared noise cannot hide a change of ``sensitivity`` in one number; "" where it can, None where unknown.

    >>> calibration(exact.Laplace(0.0, 0.5), 1.0, "l1", PureDP(1.0))
    'moved by 1, Laplace(location=0.0, scale=0.5) has epsilon 2, and the claim is PureDP(epsilon=1.0)'
    """
    known = (
        is_dataclass(noise) and not isinstance(noise, type) and "location" in {field.name for field in fields(noise)}
    )
    if not known or not hasattr(noise, "form") or callable(norm) or norm == "hamming" or sensitivity == 0.0:
        return None
    try:
        moved = replace(noise, location=noise.location + sensitivity)
        if isinstance(claim, PureDP):
            shown = max(exact.epsilon(noise, moved), exact.epsilon(moved, noise))
            if shown <= claim.epsilon * (1.0 + 1e-9):
                return ""
            return f"moved by {sensitivity:g}, {noise!r} has epsilon {shown:.6g}, and the claim is {claim!r}"
        for epsilon in points_of(claim).epsilon.tolist():
            shown = max(exact.delta(noise, moved, epsilon), exact.delta(moved, noise, epsilon))
            allowed = claim.delta(epsilon)
            if shown > allowed * (1.0 + 1e-9) + 1e-15:
                return (
                    f"moved by {sensitivity:g}, {noise!r} has delta {shown:.3g} at epsilon {epsilon:.4g}, and the claim "
                    f"{claim!r} allows {allowed:.3g}"
                )
    except DPAuditError:  # a law that cannot be moved there, or not be compared exactly
        return None
    return ""
