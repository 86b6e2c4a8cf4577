"""Claims, relations and verdicts in sentences, for the reports that people read."""

from __future__ import annotations

import math

from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    Claim,
    GaussianDP,
    MetricDP,
    ProfileDP,
    PureDP,
    Relation,
    RenyiDP,
    TradeOffDP,
    Verdict,
    ZeroConcentratedDP,
)
from dpaudit.report.document import AnyEntry, Document, Entry
from dpaudit.result.model import Result
from dpaudit.result.text import certainty, confirmed_in_words

RELATIONS = {
    Relation.SUBSTITUTE: "one row replaced; the number of rows is public",
    Relation.ADD_REMOVE: "one row more or less",
    Relation.ZERO_OUT: "one row replaced by a fixed null row",
    Relation.ANSWERS: "vectors of query answers, each entry moved by at most the sensitivity",
    Relation.USERS_SUBSTITUTE: "all rows of one person replaced",
    Relation.USERS_ADD_REMOVE: "all rows of one person added or removed",
    Relation.SECRETS: "two secrets; the data are drawn anew in every trial",
}


def claim_in_words(claim: Claim) -> str:
    """Return the promise of a claim, in words.

    >>> claim_in_words(PureDP(1.0))
    'No set of outputs is more than exp(1) = 2.718 times as likely on one data set as on a neighbouring one.'
    """
    match claim:
        case PureDP():
            return f"No set of outputs is more than {_factor(claim.epsilon)} as likely on one data set as on a neighbouring one."
        case ApproxDP():
            return (
                f"No set of outputs is more than {_factor(claim.epsilon)} as likely, plus {claim.delta_claimed:g}, on one data "
                "set as on a neighbouring one."
            )
        case GaussianDP():
            return (
                "Outputs on neighbouring data sets are no easier to distinguish than the normal laws N(0, 1) and "
                f"N({claim.mu:g}, 1)."
            )
        case ZeroConcentratedDP():
            return (
                "The Renyi divergence of every order a > 1 between outputs on neighbouring data sets is at most "
                f"{claim.rho:g} a."
            )
        case RenyiDP():
            return (
                f"The Renyi divergence of order {claim.order:g} between outputs on neighbouring data sets is at most "
                f"{claim.epsilon:g}."
            )
        case _:
            return _curve_in_words(claim)


def _curve_in_words(claim: Claim) -> str:
    match claim:
        case ProfileDP():
            scaled = "" if claim.factor == 1.0 else f" (delta times {claim.factor:g})"
            ends = dict.fromkeys((claim.points[0], claim.points[-1]))
            shown = " to ".join(f"({epsilon:g}, {delta:g})" for epsilon, delta in ends)
            return (
                f"(epsilon, delta)-differential privacy at {len(claim.points)} point(s) at once, {shown}{scaled}, and what "
                "convexity makes of them in between."
            )
        case TradeOffDP():
            return (
                "A test that distinguishes neighbouring data sets, with error alpha on one, has at least the error f(alpha) "
                f"on the other, for a trade-off function f with {len(claim.vertices)} corners."
            )
        case BoundedRange():
            return (
                "For each pair of neighbouring data sets the log-ratios of all outputs lie in an interval of length "
                f"{claim.epsilon:g}."
            )
        case MetricDP():
            return (
                f"No set of outputs is more than exp({claim.epsilon:g} d) times as likely on one data set as on another one at "
                f"distance d ({claim.distance})."
            )
    return repr(claim)


def _factor(epsilon: float) -> str:
    return f"exp({epsilon:g}) = {math.exp(epsilon):.4g} times" if epsilon < 700.0 else f"exp({epsilon:g}) times"


def verdict_in_words(result: Result) -> str:
    """Return the meaning of the verdict, in one or two sentences."""
    match result.verdict:
        case Verdict.VIOLATION:
            return certainty(result) + confirmed_in_words(result)
        case Verdict.NO_VIOLATION_FOUND:
            return (
                "Nothing was found. This is not a proof of privacy: rarer leaks, and leaks on data that were not tried, "
                "need more samples."
            )
    return "The audit could not decide. This is not a sign of privacy."


def outcome(entry: Entry) -> str:
    """Return the expectation and its outcome, or nothing if there was no expectation."""
    if entry.expect is None:
        return ""
    return "as expected" if entry.met else f"unexpected: {entry.expect} was expected"


def needs_attention(entry: AnyEntry) -> bool:
    """Return True if action is needed: a violation, an unmet expectation, or no decision."""
    return not entry.met or (entry.expect is None and entry.result.verdict is Verdict.INCONCLUSIVE)


def by_urgency(document: Document) -> list[Entry]:
    """Return the entries in order: first the failed ones, then the undecided ones, then the others."""
    return sorted(document.entries, key=lambda entry: (entry.met, not needs_attention(entry)))
