"""The result of checking an accuracy claim: verdict, numbers, the data set, as text and as plain data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpaudit._util.notebook import card
from dpaudit.claims import Verdict
from dpaudit.result.text import LINE_WIDTH
from dpaudit.utility.error_claim import ERROR_CLAIMS, ErrorClaim, error_claim_to_dict


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyResult:
    """The result of a check of an accuracy claim, with its verdict.

    The texts ``name`` and ``truth`` say what was checked, and what the outputs were compared with.

    Attributes
    ----------
    mean_score, lower, upper
        On ``data``: the average score (the error, its square, or the share of large errors), and bounds on its mean, each
        wrong with probability at most ``alpha``. ``upper`` is about scores cut at ``cut``.
    beyond_cut
        Upper bound on the probability of a score beyond ``cut``; 0 if the largest score is known.
    data
        The data set, as text: the smallest one found that refutes the claim, otherwise the worst that was tested.
    data_sets, tested
        Number of data sets that were scored, and of those that were tested in full.
    samples, seed
        Releases that were drawn in all, and the seed they came from.
    shrunk
        True if ``data`` is smaller than the data set with which the claim was first refuted.
    messages
        Notes about the check, as text.
    """

    name: str
    claim: ErrorClaim
    verdict: Verdict
    mean_score: float
    lower: float
    upper: float
    cut: float
    beyond_cut: float
    data: str
    truth: str
    samples: int
    data_sets: int
    tested: int
    alpha: float
    seed: int
    shrunk: bool = False
    messages: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        raise TypeError(
            "The truth value of an AccuracyResult is ambiguous. Compare result.verdict with a dpaudit.Verdict, or use "
            "dpaudit.assert_accurate(...) in a test."
        )

    def __str__(self) -> str:
        return render(self)

    def __repr__(self) -> str:
        return f"<AccuracyResult {headline(self)}>"

    def _repr_html_(self) -> str:
        bound = f"{self.claim.in_words(self.upper)} or less, on what was tried"
        if self.verdict is Verdict.VIOLATION:
            bound = f"{self.claim.in_words(self.lower)} or more"
        facts = [
            ("claimed", f"{self.claim.in_words(self.claim.limit)} at most"),
            ("observed", self.claim.in_words(self.mean_score)),
            ("shown", bound),
            ("data", self.data),
            ("truth", self.truth),
            ("cost", f"{self.samples:,} samples, {self.data_sets} data set(s), seed {self.seed}"),
        ]
        return card(self.verdict, f"accuracy of {self.name}", facts, text=str(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; infinities are text."""
        plain: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name == "claim":
                value = error_claim_to_dict(value)
            elif isinstance(value, float) and not math.isfinite(value):
                value = str(value)
            plain[name] = list(value) if isinstance(value, tuple) else value
        return plain | {"verdict": self.verdict.value}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AccuracyResult:
        """Read back what :meth:`to_dict` wrote."""
        fields = {name: plain[name] for name in cls.__dataclass_fields__}
        parameters = {k: float(v) for k, v in plain["claim"].items() if k != "kind"}
        fields["claim"] = ERROR_CLAIMS[plain["claim"]["kind"]](**parameters)
        fields["verdict"] = Verdict(plain["verdict"])
        fields["messages"] = tuple(plain["messages"])
        for name in ("mean_score", "lower", "upper", "cut", "beyond_cut", "alpha"):
            fields[name] = float(fields[name])
        return cls(**fields)


def headline(result: AccuracyResult) -> str:
    """Return one line: verdict, name, claim, and the bound that was shown."""
    claim = result.claim
    if result.verdict is Verdict.VIOLATION:
        shown = f"shown {claim.in_words(result.lower)} or more"
    else:
        shown = f"at most {claim.in_words(result.upper)} on what was tried"
    return f"{result.verdict}  {result.name}: claimed {claim!r}, {shown} ({result.samples:,} samples)"


def render(result: AccuracyResult) -> str:
    """Return the full text."""
    claim = result.claim
    lines = [headline(result), ""]
    if result.verdict is Verdict.VIOLATION:
        lines += _paragraph(
            f"The claim is false on the data set below, or an event of probability {result.alpha:g} has happened. Observed: "
            f"{claim.in_words(result.mean_score)}. Shown: {claim.in_words(result.lower)} or more. Claimed: "
            f"{claim.in_words(claim.limit)} at most."
        )
        lines += ["", "Smallest data set found:" if result.shrunk else "Data set:"]
    else:
        level = f"{claim.in_words(result.upper)} or less"
        if math.isfinite(result.cut) and result.beyond_cut > 0.0:
            level += f" for scores cut at {result.cut:g}, which are exceeded with probability {result.beyond_cut:.2g} or less"
        about = (
            f"the {result.tested} data sets that looked worst of {result.data_sets}"
            if result.data_sets > 1
            else "this data"
        )
        lines += _paragraph(
            f"On what was tried the claim holds at the level: {level} (wrong with probability at most {result.alpha:g}). That is "
            f"about {about}, not about all data."
        )
        if result.verdict is Verdict.INCONCLUSIVE:
            lines += _paragraph("That is more than twice what is claimed: too few samples to decide. Raise samples.")
        lines += ["", "Worst data set tested:"]
    lines += [f"  data:  {result.data}", f"  truth: {result.truth}"]
    for message in result.messages:
        lines += ["", *_paragraph(f"Note: {message}")]
    lines += ["", f"Seed {result.seed}; {result.data_sets} data set(s) tried, {result.tested} tested in full."]
    return "\n".join(lines)


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, LINE_WIDTH, break_long_words=False, break_on_hyphens=False)
