"""Examine a mechanism that is declared as query plus noise in four stages, to find its faulty part.

1. Sensitivity: does the query change by no more than declared? Deterministic (``sensitivity``).
2. Noise: do the residuals, output minus query, follow the declared law? Exact tests (``noise``, ``residuals``).
3. Calibration: is the declared noise large enough for the declared sensitivity and the claim? Exact (``calibration``), if the
   law is one of ``dpaudit.exact`` with a location.
4. End to end: does the running code keep its claim? Black box (``engine``); the pair on which the query changes most is tried
   first. If the claim is refuted, stages 2 and 3 also examine the pair that refutes it, because a bug may affect few data sets.

Stage 4 has half of alpha, the residuals have a quarter, and a quarter is reserved for residuals on the pair that stage 4 finds.
That pair is chosen by other draws than those it is tested with, so the test is valid given the pair. By the union bound, with
probability at least 1 - alpha no stage reports a violation for a mechanism that is as declared and keeps its claim. Stages 1
and 3 have no error probability.
"""

from __future__ import annotations

import copy
import itertools
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.literals import rebuild
from dpaudit._util.notebook import card
from dpaudit._util.validation import check_count, check_open_unit
from dpaudit.claims import Claim, Verdict
from dpaudit.diagnosis.calibration import Calibration, calibration
from dpaudit.diagnosis.noise import RESIDUALS, NoiseCheck, check_noise, vector_of
from dpaudit.engine.audit import audit, name_of
from dpaudit.errors import DPAuditError, MechanismError
from dpaudit.neighbours import Neighbours, Pair, as_neighbours, fixed
from dpaudit.result.model import Result
from dpaudit.result.notebook import picture
from dpaudit.result.text import LINE_WIDTH
from dpaudit.sensitivity import Norm, SensitivityCheck, check_sensitivity, distance


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of :func:`diagnose`: one field per stage, and ``culprits``, the stages that explain the bug.

    ``culprits`` contains "sensitivity", "noise" and "calibration" for the parts that are not as declared, and "elsewhere" if the
    claim is refuted end to end and no other stage found anything.

    Attributes
    ----------
    mechanism, claim, alpha
        The name of the mechanism, its claim, and the probability of a false alarm over all stages.
    sensitivity, noise, calibration
        The results of the first three stages.
    noise_on_witness
        The residuals on the pair that refutes the claim, if ``noise`` found no violation; otherwise None.
    end_to_end, failure
        The result of the audit; None if it could not be run, and then ``failure`` gives the reason.
    """

    mechanism: str
    claim: Claim
    alpha: float
    sensitivity: SensitivityCheck
    noise: NoiseCheck
    noise_on_witness: NoiseCheck | None
    calibration: Calibration
    end_to_end: Result | None
    failure: str
    culprits: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """VIOLATION if any stage found one; INCONCLUSIVE if residuals or audit were, or if the audit did not run."""
        if self.culprits:
            return Verdict.VIOLATION
        decided = Verdict.INCONCLUSIVE not in (self.noise.verdict, self._end_to_end)
        return Verdict.NO_VIOLATION_FOUND if decided else Verdict.INCONCLUSIVE

    @property
    def _end_to_end(self) -> Verdict:
        return Verdict.INCONCLUSIVE if self.end_to_end is None else self.end_to_end.verdict

    @property
    def summary(self) -> str:
        """One sentence that says where the bug is."""
        fits = "the residuals are too few" if self.noise.verdict is Verdict.INCONCLUSIVE else "the noise fits"
        held = {
            "sensitivity": ("the sensitivity is larger than declared", "no larger sensitivity was found"),
            "noise": ("the noise is not the declared one", fits),
            "calibration": ("the declared noise is too small for the claim", ""),
        }
        parts = [held[stage][stage not in self.culprits] for stage in held]
        end = {
            Verdict.VIOLATION: "end to end the claim is violated",
            Verdict.NO_VIOLATION_FOUND: "end to end no violation was found",
            Verdict.INCONCLUSIVE: "end to end nothing could be decided",
        }
        last = "the audit end to end could not be run" if self.end_to_end is None else end[self._end_to_end]
        return "; ".join([part for part in parts if part] + [last])

    def __str__(self) -> str:
        lines = [
            f"{self.verdict}  {self.mechanism}: {self.summary}.",
            "",
            *textwrap.wrap(self._advice(), LINE_WIDTH),
            "",
        ]
        noise = str(self.noise)
        if self.noise_on_witness is not None:
            noise += f"\non the pair that refutes the claim\n{self.noise_on_witness}"
        end_to_end = f"{Verdict.INCONCLUSIVE}: {self.failure}" if self.end_to_end is None else str(self.end_to_end)
        stages = [
            ("1. sensitivity", str(self.sensitivity)),
            ("2. noise", noise),
            ("3. calibration", str(self.calibration)),
            ("4. end to end", end_to_end),
        ]
        for title, text in stages:
            lines += [title, *(f"  {line}".rstrip() for line in text.splitlines()), ""]
        lines.append(
            f"alpha {self.alpha:g} in all: half for the audit end to end, a quarter for the residuals, a quarter for those on "
            "the pair that refutes the claim; the other stages are exact."
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = [
            ("sensitivity", str(self.sensitivity.verdict)),
            ("noise", str(self.noise.verdict)),
            ("calibration", str(self.calibration.verdict)),
            ("end to end", str(self._end_to_end)),
            ("what to do", self._advice()),
        ]
        svg = "" if self.end_to_end is None else picture(self.end_to_end)
        return card(self.verdict, f"{self.mechanism}: {self.summary}", facts, text=str(self), svg=svg)

    def _advice(self) -> str:
        if self.culprits == ("elsewhere",):
            undecided = self.calibration.verdict is Verdict.INCONCLUSIVE
            return (
                "Query and noise look as declared on the data tried, and yet the claim is violated: the code does something else "
                "with the data (another branch, an exception, a second release)"
                + (", or the noise is too small for the claim, which stage 3 could not decide." if undecided else ".")
            )
        if not self.culprits:
            return "No stage found anything. This is not a proof of privacy."
        where = {
            "sensitivity": "bound what one person can change (clip the data), or declare the larger sensitivity and add noise",
            "noise": "correct the code that draws the noise, or the declared law",
            "calibration": "scale the noise to claim and sensitivity, in the norm that the noise needs",
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
    """Examine a mechanism that is declared as ``query(data) + noise`` in stages, and name the faulty part.

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
        Largest probability that a violation is reported for a mechanism that is as declared and keeps its claim. Half of it is
        for the audit end to end, a quarter for the residuals, a quarter for residuals on the pair that refutes the claim.
    residuals
        Number of residuals (numbers, not releases), over at most eight data sets.
    samples, seed, options
        As for :func:`dpaudit.audit`; samples and options are for the last stage.

    Returns
    -------
    Diagnosis
        The result of each stage, and the stages that explain the bug.

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
    # The pair on which the query changes most comes first. It does not depend on outputs, so the audit stays valid.
    aimed = replace(close, find_corners=lambda: itertools.chain([sensible.worst], close.corners()))
    fits = check_noise(mechanism, query, noise, aimed, alpha=alpha / 4.0, residuals=residuals, seed=seed)
    result, failure = None, ""
    try:
        result = audit(mechanism, claim, aimed, alpha=alpha / 2.0, samples=samples, seed=seed, **options)
    except MechanismError as error:  # the results of the other stages remain valid
        failure = str(error)
    refuted = result is not None and result.verdict is Verdict.VIOLATION
    shown = _witness(result) if refuted else None
    again = None
    if shown is not None and fits.verdict is not Verdict.VIOLATION:
        with suppress(DPAuditError):  # the outputs are no numbers there, or the mechanism fails
            # Another seed, because the same seed would repeat the draws on a data set that was tried before.
            again = check_noise(
                mechanism, query, noise, fixed([shown]), alpha=alpha / 4.0, residuals=residuals, seed=seed + 1
            )
    pairs = [sensible.worst] if shown is None else [sensible.worst, shown]
    changes = [_change(query, pair, float(sensitivity), norm) for pair in pairs]
    calibrated = calibration(
        noise,
        float(sensitivity),
        norm,
        claim,
        width=fits.width,
        changes=[change.tolist() for change in changes if change is not None],
    )
    noise_verdicts = [fits.verdict] if again is None else [fits.verdict, again.verdict]
    verdicts = {"sensitivity": [sensible.verdict], "noise": noise_verdicts, "calibration": [calibrated.verdict]}
    culprits = [stage for stage, found in verdicts.items() if Verdict.VIOLATION in found]
    if refuted and not culprits:
        culprits = ["elsewhere"]
    return Diagnosis(
        mechanism=name_of(mechanism),
        claim=claim,
        alpha=alpha,
        sensitivity=sensible,
        noise=fits,
        noise_on_witness=again,
        calibration=calibrated,
        end_to_end=result,
        failure=failure,
        culprits=tuple(culprits),
    )


def _witness(result: Result | None) -> Pair | None:
    """Return the pair that refutes the claim, recreated from its source, or None if it has no source."""
    witness = None if result is None else result.witness
    if witness is None or not witness.literal:
        return None
    data, neighbour = (rebuild(text) for text in (witness.data, witness.neighbour))
    return Pair(data, neighbour)


def _change(query: Callable[[Any], Any], pair: Pair, bound: float, norm: Norm) -> NDArray[np.float64] | None:
    """Return the change of the query on the pair as a vector, or None if it is no vector or is above the bound."""
    try:
        before, after = (query(copy.deepcopy(data)) for data in pair)
    except Exception:  # reported by the sensitivity stage
        return None
    first, second = vector_of(before), vector_of(after)
    if first is None or second is None or first.keys != second.keys or first.numbers.size != second.numbers.size:
        return None
    return second.numbers - first.numbers if distance(before, after, norm) <= bound * (1.0 + 1e-9) else None
