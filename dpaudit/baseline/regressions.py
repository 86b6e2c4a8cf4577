"""Compare a run with its baseline, and list the regressions.

One check, one alpha. The check of an audit can report a regression by chance in two ways: the claim seems refuted, or the
stored event seems to have changed. The first uses one conclusion of the new audit: its verdict if the claim is what it
was, and otherwise its bound on epsilon; each of them is false with probability at most the audit's alpha. The second may happen
with probability ``CHANGE_SHARE / VERDICT_SHARE`` of that alpha. So a run that is compared or saved gives each audit
``VERDICT_SHARE`` of its part of alpha, and both together are wrong with probability at most that part. (Audits with an alpha of
their own, and files of runs made without a baseline, have used all of it for the verdict: there a check costs alpha /
``VERDICT_SHARE``.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit.baseline.stored import Baseline, Leading, Stored, read
from dpaudit.claims import Verdict
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.views.plain_events import log_ratio_interval
from dpaudit.errors import InvalidArgument
from dpaudit.utility.result import AccuracyResult

LESS_POWER = 2.0  # times the margin above the claim: a quarter of the samples, more than a busy machine takes away
SMALL_MARGIN = 0.02
VERDICT_SHARE = 0.9  # of an audit's part of alpha, for its verdict and bound, if the run is compared with a baseline
CHANGE_SHARE = 0.1  # the rest, for the change of the stored event


@dataclass(frozen=True, slots=True)
class Regression:
    """One audit that is worse than it was, and how."""

    audit: str
    kind: str  # refuted, weakened, vanished, power or changed; for accuracy: error
    message: str

    def __str__(self) -> str:
        return f"{self.audit}: {self.message}"


def regressions(
    old: Baseline,
    new: Baseline,
    *,
    measured: Mapping[str, Leading] | None = None,
    expected: Callable[[Stored], bool] = lambda _: True,
) -> list[Regression]:
    """Return all regressions, by name of the audit.

    Parameters
    ----------
    old, new : Baseline
        The stored baseline, and that of the new run.
    measured : mapping, optional
        Leading events of the baseline, counted again now, by name of the audit.
    expected : callable
        Returns True for an audit that the new run should have had; one that was left out by hand has not vanished.
    """
    found: list[Regression] = []
    for name, before in sorted(old.audits.items()):
        after = new.audits.get(name)
        if after is None:
            if expected(before):
                where = f" (it was in {before.path})" if before.path else ""
                found.append(Regression(name, "vanished", f"the audit is gone{where}."))
            continue
        found.extend(_of_audit(before, after, (measured or {}).get(name)))
    return found + [
        Regression(name, "error", message)
        for name, before in sorted(old.accuracy.items())
        if (message := less_accurate(before, new.accuracy.get(name)))
    ]


def less_accurate(before: AccuracyResult, after: AccuracyResult | None) -> str:
    """Return a message if a mechanism is less accurate than in the baseline, otherwise nothing.

    Upper bound then and lower bound now are each wrong with probability at most their alpha, so for an unchanged mechanism on
    the same data the sum of the two bounds a false report. Data sets are compared only if they are the same.
    """
    if after is None:
        return ""
    claim = before.claim
    if after.verdict is Verdict.VIOLATION and before.verdict is not Verdict.VIOLATION:
        return f"it was accurate ({claim!r}), and {after.claim.in_words(after.lower)} or more is shown now, on {after.data}."
    if type(after.claim) is not type(claim) or after.claim.limit > claim.limit or _wider(before, after):
        return f"the claim was {claim!r} and is {after.claim!r}, which does not imply it."
    if before.data == after.data and after.lower > before.upper:
        return (
            f"it is less accurate on {after.data}: {after.claim.in_words(after.lower)} or more, and was "
            f"{claim.in_words(before.upper)} or less."
        )
    return ""


def _wider(before: AccuracyResult, after: AccuracyResult) -> bool:
    return float(getattr(after.claim, "error", 0.0)) > float(getattr(before.claim, "error", 0.0))


def _of_audit(before: Stored, after: Stored, measured: Leading | None) -> list[Regression]:
    messages = {
        "vanished": _other_channel(before, after),
        "refuted": _refuted(before, after),
        "weakened": _weakened(before, after),
        "power": _less_power(before, after),
        "changed": _changed(before, after, measured),
    }
    return [Regression(before.name, kind, message) for kind, message in messages.items() if message]


def _other_channel(before: Stored, after: Stored) -> str:
    if before.channel is after.channel:
        return ""
    return f"the channel {before.channel.value!r} is no longer audited, {after.channel.value!r} is."


def _refuted(before: Stored, after: Stored) -> str:
    """Return the regression if the claim of the baseline is false now, even if another claim is made today.

    ``epsilon_lower`` at ``delta`` says: the mechanism is not (e, delta)-private for any smaller e. That contradicts a
    profile which is at most ``delta`` at such an e. If the claim is the same, only the verdict is used, because for
    some claims verdict and bound do not hold jointly at one alpha.
    """
    if before.verdict is Verdict.VIOLATION:
        return ""
    below = after.epsilon_lower * (1.0 - 1e-9)
    if after.claim == before.claim:
        refuted = after.verdict is Verdict.VIOLATION
    else:
        refuted = below > 0.0 and before.claim.delta(below) <= after.delta
    if refuted:
        at = f" at delta {after.delta:g}" if after.delta else ""
        return f"the baseline's claim {before.claim!r} is refuted: epsilon >= {after.epsilon_lower:.4g}{at}."
    return ""


def _weakened(before: Stored, after: Stored) -> str:
    if after.claim.is_at_least_as_strong_as(before.claim):
        return ""
    return f"the claim was {before.claim!r} and is {after.claim!r}, which does not imply it."


def _less_power(before: Stored, after: Stored) -> str:
    if Verdict.VIOLATION in (before.verdict, after.verdict):
        return ""  # an audit that stops at a violation has not used its budget
    if before.verdict is Verdict.NO_VIOLATION_FOUND and after.verdict is Verdict.INCONCLUSIVE:
        return "the audit used to decide and is inconclusive now."
    margin_before, margin_after = _margin(before), _margin(after)
    if margin_after > LESS_POWER * margin_before + SMALL_MARGIN:
        return (
            f"it would catch an event of probability 0.1 from epsilon {after.detectable_epsilon:.4g} on; "
            f"it was {before.detectable_epsilon:.4g}."
        )
    return ""


def _margin(stored: Stored) -> float:
    """Return how far above the claim a leak must be to be detected, relative to the claim."""
    claimed = float(points_of(stored.claim).epsilon.max())
    return max(stored.detectable_epsilon - claimed, 0.0) / max(claimed, 0.1)


def _changed(before: Stored, after: Stored, measured: Leading | None) -> str:
    """The stored event on the stored pair has another log-ratio now.

    Each of the two intervals fails with probability at most ``alpha / 2``, so for an unchanged mechanism they are disjoint
    with probability at most ``alpha``, which is the share of this check in the smaller alpha of the two audits.
    """
    stored, now = before.leading, measured or after.leading
    if stored is None or now is None or not stored.same_question(now):
        return ""
    if stored.on_data is None or stored.on_neighbour is None or now.on_data is None or now.on_neighbour is None:
        return ""
    alpha = min(before.alpha, after.alpha) * CHANGE_SHARE / VERDICT_SHARE
    low_then, high_then = log_ratio_interval(stored.on_data, stored.on_neighbour, alpha / 2.0)
    low_now, high_now = log_ratio_interval(now.on_data, now.on_neighbour, alpha / 2.0)
    if low_now > high_then:
        how = "differs more"
    elif high_now < low_then:
        how = "differs less"
    else:
        return ""
    return (
        f"the event {stored.text!r} on {stored.data} and {stored.neighbour} {how} than it did: its log-ratio is between "
        f"{low_now:.4g} and {high_now:.4g}, and was between {low_then:.4g} and {high_then:.4g}. "
        "If the mechanism was meant to change, save a new baseline."
    )


def exit_code_of_run(path: Path) -> ExitCode:
    """The exit code with which the run in a file ended; 0 for a baseline, which does not say, and for a comparison."""
    return ExitCode.OK if _table(path) is not None else read(path).exit_code


def compare_files(old: Path, new: Path) -> list[Regression]:
    """Regressions between two files: baselines, results of a run, or outputs of ``dpaudit accuracy compare --json``."""
    tables = [_table(path) for path in (old, new)]
    if tables[0] is not None and tables[1] is not None:
        return accuracy_regressions(tables[0], tables[1])
    before, after = read(old), read(new)
    return regressions(before, after, expected=lambda audit: audit.name not in after.failed)


def _table(path: Path) -> list[Any] | None:
    """The rows of an accuracy comparison, the only list that dpaudit writes."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return plain if isinstance(plain, list) else None


_QUESTION = ("contender", "law", "quantile", "epsilon", "n")


def accuracy_regressions(old: Sequence[Any], new: Sequence[Any]) -> list[Regression]:
    """Errors that got worse beyond their intervals, in two outputs of ``dpaudit accuracy compare --json``."""
    before, after = _errors(old, "the old file"), _errors(new, "the new file")
    found = []
    for question, (low, high) in before.items():
        name = ", ".join(f"{key}={value}" for key, value in zip(_QUESTION, question, strict=True))
        if question not in after:
            found.append(Regression(name, "vanished", "the comparison is gone."))
        elif after[question][0] > high:
            now = after[question]
            found.append(
                Regression(
                    name,
                    "error",
                    f"the mean error is between {now[0]:.6g} and {now[1]:.6g}, and was between {low:.6g} and {high:.6g}.",
                )
            )
    return found


def _errors(rows: Sequence[Any], origin: str) -> dict[tuple[Any, ...], tuple[float, float]]:
    try:
        return {
            tuple(row[key] for key in _QUESTION): (_end(row["error"]["low"], 0.0), _end(row["error"]["high"], math.inf))
            for row in rows
        }
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f"{origin} is not an output of `dpaudit accuracy compare --json` ({type(error).__name__}: {error})."
        ) from None


def _end(value: Any, unknown: float) -> float:
    return unknown if value is None else float(value)
