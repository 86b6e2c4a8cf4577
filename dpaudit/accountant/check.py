r"""Search for a composition on which a privacy accountant is wrong, and shrink it.

An accountant reports an epsilon for a composition and a delta. Four things can be wrong with it:

- it understates: the report is below a lower bound on the true epsilon of a concrete mechanism (``truth``). Then a
  claim that is based on it is false
- it is negative. (epsilon, delta)-DP with ``epsilon < log(1 - delta)`` is impossible (take the event that always happens), and
  epsilon is used as a number from 0 on
- it is not a number
- it is not monotone: it falls by more than ``slack`` where privacy is given up (more steps, a larger sampling rate, less noise, a
  smaller delta) and the truth cannot fall. One of the two reports is too large, or the other one is false

Only the search is random: a finding is certain up to rounding, for which ``tolerance`` (relative) allows. Finding
nothing says nothing about compositions that were not tried.
"""

from __future__ import annotations

import enum
import functools
import inspect
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dpaudit._util.deprecation import checked_keywords
from dpaudit._util.validation import (
    check_choice,
    check_count,
    check_non_negative,
    check_open_unit,
    check_positive,
    shorten,
)
from dpaudit.accountant.composition import COMPOSED_RELATIONS, PART_NOISES, Case, Composition, CompositionLimits, cases
from dpaudit.accountant.truth import Bracket, decide, true_epsilon
from dpaudit.claims import Relation, Verdict
from dpaudit.errors import InvalidArgument

Accountant: TypeAlias = Callable[[Composition, float], float]

NAMED = ("noise_multiplier", "sampling_rate", "steps", "delta")
"""An accountant with parameters of these names is called with them, on compositions of one part."""


class Flaw(enum.Enum):
    """The kind of mistake in a reported epsilon."""

    UNDERSTATES = "understates"
    NEGATIVE = "negative"
    NOT_A_NUMBER = "not a number"
    NOT_MONOTONE = "not monotone"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongReport:
    """A composition on which the accountant is wrong.

    ``truth`` is given where the accountant understates; ``weaker`` with its delta and report where it is not monotone.
    """

    flaw: Flaw
    composition: Composition
    delta: float
    reported: float
    truth: Bracket | None = None
    weaker: Composition | None = None
    weaker_delta: float | None = None
    weaker_reported: float | None = None

    def __str__(self) -> str:
        lines = [
            f"{self.flaw}: reports epsilon {self.reported:.6g} at delta {self.delta:g}",
            *_listed(self.composition),
        ]
        if self.truth is not None:
            lines.append(f"  the true epsilon is {self.truth}")
        if self.weaker is not None:
            at = f"at delta {self.weaker_delta:g} " if self.weaker_delta != self.delta else ""
            lines += [f"  but {self.weaker_reported:.6g} {at}for what is less private:", *_listed(self.weaker)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountantCheck:
    """The result of :func:`dpaudit.check_accountant`.

    ``findings`` has the smallest case of each flaw; ``worst`` the case that understates most, by the ratio of truth and report.
    ``refused`` counts cases on which the accountant raised an exception, ``refusal`` is the last of these exceptions.
    """

    accountant: str
    relation: Relation
    verdict: Verdict
    findings: tuple[WrongReport, ...]
    worst: WrongReport | None
    checked: int
    refused: int
    refusal: str | None
    seed: int

    def __str__(self) -> str:
        lines = [f"{self.verdict}  accountant {self.accountant} under {self.relation.value}: {self._summary()}"]
        for finding in self.findings:
            lines += ["", *str(finding).splitlines()]
        if self.worst is not None and self.worst not in self.findings:
            lines += ["", "The worst one found:", *str(self.worst).splitlines()]
        return "\n".join(lines)

    def _summary(self) -> str:
        found = ", ".join(str(finding.flaw) for finding in self.findings) or "nothing found"
        refused = f", {self.refused} refused ({self.refusal})" if self.refused else ""
        return f"{found} ({self.checked} compositions{refused}, seed {self.seed})"


@checked_keywords()
def check_accountant(
    accountant: Callable[..., float],
    *,
    relation: Relation = Relation.ADD_REMOVE,
    noises: Sequence[str] = ("gaussian",),
    parts: int = 2,
    noise_multipliers: tuple[float, float] = (0.5, 20.0),
    sampling_rates: tuple[float, float] = (0.001, 1.0),
    steps: tuple[int, int] = (1, 1000),
    deltas: tuple[float, float] = (1e-8, 0.1),
    examples: int = 100,
    seconds: float | None = None,
    seed: int = 0,
    tolerance: float = 1e-6,
    slack: float = 0.02,
    name: str | None = None,
) -> AccountantCheck:
    """Search for a composition on which the accountant reports less than the truth, or is otherwise wrong, and shrink it.

    Parameters
    ----------
    accountant
        ``accountant(composition, delta)`` returns epsilon for a tuple of ``dpaudit.accountant.Part``; or a function with the
        parameters ``noise_multiplier``, ``sampling_rate``, ``steps`` and ``delta``, which is checked on compositions of one
        part. An exception counts as a refusal, not as a flaw.
    relation
        The neighbours that the accountant is for: ``ADD_REMOVE``, ``SUBSTITUTE`` or ``ZERO_OUT``.
    noises
        Kinds of noise: ``"gaussian"``, ``"laplace"``.
    parts
        Most parts of a composition: kinds of steps with different noise or sampling.
    noise_multipliers, sampling_rates, steps, deltas
        Smallest and largest value to try. For unsampled steps give ``sampling_rates=(1.0, 1.0)``.
    examples
        Compositions to try; shrinking comes on top.
    seconds
        Budget of time for search and shrinking; None: no limit.
    seed
        Of the search; the same seed tries the same compositions.
    tolerance
        Relative rounding allowance when a report is compared with the truth.
    slack
        How far, relatively and absolutely, a report may fall where the truth cannot; accountants that compute on a grid
        vary a little.
    name
        The name under which the result is reported; None: that of the function.

    Returns
    -------
    AccountantCheck
        VIOLATION if it understates or is below ``log(1 - delta)``; INCONCLUSIVE if it refused everything.

    Examples
    --------
    >>> def basic(noise_multiplier, sampling_rate, steps, delta):          # forgets all steps but the first
    ...     return math.sqrt(2.0 * math.log(1.25 / delta)) / noise_multiplier
    >>> found = check_accountant(basic, sampling_rates=(1.0, 1.0), examples=30)
    >>> found.verdict, found.findings[0].flaw
    (<Verdict.VIOLATION: 'VIOLATION'>, <Flaw.UNDERSTATES: 'understates'>)
    """
    from dpaudit._util.hypothesis_bridge import explore, smallest, until

    check_choice(COMPOSED_RELATIONS, relation=relation)
    if not noises or isinstance(noises, str):
        raise InvalidArgument(f"noises={noises!r} must be a list of {', '.join(map(repr, PART_NOISES))}.")
    for noise in noises:
        check_choice(PART_NOISES, noises=noise)
    check_count(parts=parts, examples=examples)
    check_count(minimum=0, seed=seed)
    check_open_unit(tolerance=tolerance)
    check_non_negative(slack=slack)
    if seconds is not None:
        check_positive(seconds=seconds)
    limits = CompositionLimits(noise_multipliers, sampling_rates, steps, deltas)
    called, single = _called(accountant)
    strategy = cases(limits, noises=noises, parts=1 if single else parts, relation=relation)
    judge = _Judge(called, relation, tolerance, slack)
    with until(None if seconds is None else time.monotonic() + seconds):
        explore(strategy, judge.visit, examples=examples, seed=seed, guided=True)
        # Repeat the same search for each flaw that was found; now it stops at the flaw, and shrinks.
        small = {
            flaw: smallest(strategy, functools.partial(judge.shows, flaw), examples=examples, seed=seed, guided=True)
            for flaw in list(judge.first)
        }
    if judge.worst is not None:  # shrinking another flaw may have met the first case that understates
        judge.first.setdefault(Flaw.UNDERSTATES, judge.worst)
    findings = tuple(
        _sharpened(first if (case := small.get(flaw)) is None else judge.findings(case)[flaw], relation)
        for flaw, first in judge.first.items()
    )
    return AccountantCheck(
        accountant=getattr(accountant, "__name__", type(accountant).__name__) if name is None else name,
        relation=relation,
        verdict=_verdict(findings, judge.checked),
        findings=tuple(sorted(findings, key=lambda finding: list(Flaw).index(finding.flaw))),
        worst=None if judge.worst is None else _sharpened(judge.worst, relation),
        checked=judge.checked,
        refused=judge.refused,
        refusal=judge.refusal,
        seed=seed,
    )


@dataclass(slots=True)
class _Judge:
    """Compares reports with the truth and with each other, and keeps the wrong ones."""

    accountant: Accountant
    relation: Relation
    tolerance: float
    slack: float
    first: dict[Flaw, WrongReport] = field(default_factory=dict)
    worst: WrongReport | None = None
    checked: int = 0
    refused: int = 0
    refusal: str | None = None
    _reports: dict[tuple[Composition, float], float | None] = field(default_factory=dict)

    def visit(self, case: Case) -> None:
        """Judge a case, count it, and keep its flaws."""
        found = self._guide(case)
        reported = self._report(case.composition, case.delta)
        self.checked += reported is not None
        self.refused += reported is None
        for flaw, finding in found.items():
            self.first.setdefault(flaw, finding)

    def shows(self, flaw: Flaw, case: Case) -> bool:
        """Return True if the report on a case has this flaw."""
        return flaw in self._guide(case)

    def _guide(self, case: Case) -> dict[Flaw, WrongReport]:
        """Judge a case, and lead Hypothesis towards reports that are small beside the truth."""
        from hypothesis import target

        reported = self._report(case.composition, case.delta)
        if reported is not None and math.isfinite(reported):
            truth = decide(reported, case.composition, case.delta, self.relation, self.tolerance).high
            target(min(truth / max(reported, 1e-6), 1e6), label="truth over report")
        found = self.findings(case)
        low = found.get(Flaw.UNDERSTATES)
        if low is not None and (self.worst is None or _ratio(low) > _ratio(self.worst)):
            self.worst = low
        return found

    def findings(self, case: Case) -> dict[Flaw, WrongReport]:
        """Return the findings about the report on a case, by flaw."""
        composition, delta = case.composition, case.delta
        reported = self._report(composition, delta)
        if reported is None:
            return {}
        made: dict[Flaw, WrongReport] = {}

        def add(flaw: Flaw, **more: Any) -> None:
            made[flaw] = WrongReport(flaw=flaw, composition=composition, delta=delta, reported=reported, **more)

        if math.isnan(reported):
            add(Flaw.NOT_A_NUMBER)
            return made
        if reported < 0.0:
            add(Flaw.NEGATIVE)
        truth = decide(reported, composition, delta, self.relation, self.tolerance)
        if max(reported, 0.0) < truth.low * (1.0 - self.tolerance):  # the truth is the smallest epsilon from 0 on
            add(Flaw.UNDERSTATES, truth=truth)
        weaker = self._report(case.weaker, case.smaller_delta)
        if weaker is not None and weaker < reported - self.slack * max(1.0, abs(reported)):
            add(Flaw.NOT_MONOTONE, weaker=case.weaker, weaker_delta=case.smaller_delta, weaker_reported=weaker)
        return made

    def _report(self, composition: Composition, delta: float) -> float | None:
        key = composition, delta
        if key not in self._reports:
            try:
                value = self.accountant(composition, delta)
            except Exception as error:
                self.refusal = f"{type(error).__name__}: {shorten(str(error))}"
                self._reports[key] = None
            else:
                self._reports[key] = _number(value)
        return self._reports[key]


def _sharpened(finding: WrongReport, relation: Relation) -> WrongReport:
    """The finding with the finest bracket of the truth: a coarse one was enough to decide."""
    if finding.truth is None:
        return finding
    return replace(finding, truth=true_epsilon(finding.composition, finding.delta, relation=relation))


def _called(accountant: Any) -> tuple[Accountant, bool]:
    """Return the accountant as a function of (composition, delta), and whether it takes one part only."""
    if isinstance(accountant, type) or not callable(accountant):
        raise InvalidArgument(f"accountant={shorten(accountant)} must be a function that returns epsilon.")
    try:
        names = set(inspect.signature(accountant).parameters)
    except (TypeError, ValueError):  # a built-in function has no signature
        names = set()
    if not names.issuperset(NAMED):
        return accountant, False

    def one_part(composition: Composition, delta: float) -> float:
        (part,) = composition
        values = part.noise_multiplier, part.sampling_rate, part.steps, delta
        return accountant(**dict(zip(NAMED, values, strict=True)))  # type: ignore[no-any-return]

    return one_part, True


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(f"The accountant returned {shorten(value)}; it must return epsilon, a number.") from None


def _ratio(finding: WrongReport) -> float:
    """Return the true epsilon as a multiple of the reported one."""
    low = finding.truth.low if finding.truth is not None else 0.0
    return math.inf if finding.reported <= 0.0 else low / finding.reported


def _verdict(findings: Sequence[WrongReport], checked: int) -> Verdict:
    if any(
        finding.flaw is Flaw.UNDERSTATES
        or (finding.flaw is Flaw.NEGATIVE and finding.reported < math.log1p(-finding.delta))
        for finding in findings
    ):
        return Verdict.VIOLATION
    return Verdict.NO_VIOLATION_FOUND if checked else Verdict.INCONCLUSIVE


def _listed(composition: Composition) -> list[str]:
    return [f"    {part}" for part in composition]
