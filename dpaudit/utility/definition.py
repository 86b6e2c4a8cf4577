"""Definitions of accuracy checks in audit files, and the judgement of their results; light to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpaudit._util.validation import check_choice, shorten
from dpaudit.claims import Verdict
from dpaudit.errors import AccuracyViolation, Inconclusive, InvalidArgument
from dpaudit.utility.error_claim import ErrorClaim
from dpaudit.utility.result import AccuracyResult

OPTIONS = ("samples", "seconds", "alpha", "seed", "examples")
"""Options of a run that apply to accuracy too."""


def judge(result: AccuracyResult, expect: Verdict | None, *, allow_inconclusive: bool) -> None:
    """Raise if the verdict is not the one that was expected."""
    if expect is not None:
        if result.verdict is not expect:
            raise AccuracyViolation(f"Expected {expect}, but:\n\n{result}", result)
    elif result.verdict is Verdict.VIOLATION:
        raise AccuracyViolation(str(result), result)
    elif result.verdict is Verdict.INCONCLUSIVE and not allow_inconclusive:
        raise Inconclusive(str(result), result)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyAudit:
    """A definition of an accuracy check, which ``dpaudit run`` and the pytest plugin collect.

    Parameters
    ----------
    name : str
        The name under which the result is reported.
    mechanism, truth, claim, data
        As for :func:`dpaudit.check_accuracy`.
    options : dict
        Keywords of :func:`dpaudit.check_accuracy`.
    expect : Verdict or str, optional
        The verdict that the check must reach; a run with any other one fails. None: a violation fails.
    """

    name: str
    mechanism: Any
    truth: Any
    claim: ErrorClaim
    data: Any
    options: dict[str, Any] = field(default_factory=dict)
    expect: Verdict | str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidArgument(f"name={shorten(self.name)} must be text (str), under which the result is reported.")
        if isinstance(self.expect, str):
            check_choice([verdict.value for verdict in Verdict], expect=self.expect)
            object.__setattr__(self, "expect", Verdict(self.expect))

    def run(self, **overrides: Any) -> AccuracyResult:
        """Run it, with options replaced where given; those of privacy audits that accuracy does not have are ignored."""
        from dpaudit.utility.check import check_accuracy

        chosen = {k: v for k, v in overrides.items() if k in OPTIONS and v is not None}
        return check_accuracy(
            self.mechanism, self.truth, self.claim, self.data, name=self.name, **{**self.options, **chosen}
        )
