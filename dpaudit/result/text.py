"""A result as text: a violation reads like a bug report, and a result without one says what would have been detected."""

from __future__ import annotations

import math
import textwrap

from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    Claim,
    MetricDP,
    ProfileDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
    Verdict,
    claimed_epsilon,
)
from dpaudit.result.model import Result, StoppedBy, Witness

LINE_WIDTH = 110
LONGEST_CLAIM = 160  # characters of a claim in a line; curves of many points are longer
STOPPED = {
    StoppedBy.VIOLATION: "stopped at the violation",
    StoppedBy.EXACT: "refuted by the exact law of the code",
    StoppedBy.SAMPLES: "all samples used",
    StoppedBy.SECONDS: "out of time",
    StoppedBy.INTERRUPT: "interrupted",
    StoppedBy.TIMEOUT: "a call timed out",
    StoppedBy.LOST_WORKER: "a worker was lost",
    StoppedBy.CONTROL: "the control failed",
}


def headline(result: Result, *, with_power: bool = False) -> str:
    """One line: verdict, name, claim, bound, cost.

    ``with_power`` adds the epsilon that would have been detected, if nothing was found.
    """
    caught = ""
    if with_power and result.verdict is Verdict.NO_VIOLATION_FOUND and math.isfinite(result.detectable_epsilon):
        caught = f", would have caught {result.detectable_epsilon:.3g}"
    cost = "exact, no samples" if result.stopped_by is StoppedBy.EXACT else f"{result.samples:,} samples"
    return (
        f"{result.verdict}  {result.name}: claimed {claim_text(result.claim)}, shown {shown(result)}{caught} "
        f"({cost}, {result.seconds:.1f} s)"
    )


def shown(result: Result) -> str:
    """Return the bound in words."""
    at = f" at delta {result.delta:g}" if result.delta else ""
    claimed = claimed_epsilon(result.claim)
    # If the claim itself is refuted, the true epsilon is strictly larger.
    beyond = result.verdict is Verdict.VIOLATION and result.epsilon_lower == claimed
    text = f"epsilon {'>' if beyond else '>='} {result.epsilon_lower:.4g}{at}"
    if isinstance(result.claim, MetricDP):
        text += " per unit of distance"
    if claimed is None:
        text = f"{parameter_words(result.claim)} >= {result.parameter_lower:.4g}, {text}"
    return text


def parameter_words(claim: Claim) -> str:
    """Return the claim's own parameter, in words that distinguish it from the epsilon of approximate DP beside it."""
    match claim:
        case RenyiDP():
            return f"epsilon of order {claim.order:g}"
        case BoundedRange():
            return "range"
        case ProfileDP() | TradeOffDP():
            return "factor of the curve"
    return claim.parameter_name


def claim_text(claim: Claim) -> str:
    """Return the claim as it is written, or its kind and size if that is too long for a line.

    >>> claim_text(PureDP(1.0)), claim_text(ProfileDP([(k / 10, 0.1 / (k + 1)) for k in range(20)]))
    ('PureDP(epsilon=1.0)', 'ProfileDP of 20 points')
    """
    text = repr(claim)
    if len(text) <= LONGEST_CLAIM or not isinstance(claim, ProfileDP | TradeOffDP):
        return text
    many, what = (len(claim.points), "points") if isinstance(claim, ProfileDP) else (len(claim.vertices), "corners")
    return f"{type(claim).__name__} of {many} {what}"


def render(result: Result) -> str:
    """Return the full text of a result."""
    lines = [headline(result)]
    if result.verdict is Verdict.VIOLATION:
        lines += _violation(result)
    elif result.verdict is Verdict.NO_VIOLATION_FOUND:
        lines += _nothing_found(result)
    else:
        lines += ["", *_paragraph("The audit could not decide; this is not a sign of privacy.")]
    for message in result.messages:
        lines += ["", *_paragraph(f"Note: {message}")]
    # Either the mechanism has randomness of its own, or the budget was too small to find out.
    replay = "" if result.reproducible else " A rerun with this seed may draw other numbers."
    lines += [
        "",
        *_paragraph(f"Seed {result.seed}; {STOPPED[result.stopped_by]}; {result.pairs} pair(s) tried.{replay}"),
    ]
    return "\n".join(lines)


def certainty(result: Result) -> str:
    """Return what a violation rests on, in one sentence."""
    if result.stopped_by is StoppedBy.EXACT:
        return (
            "The claim is false: the exact law of the output, extracted from the code, says so without samples (over the reals, "
            "for draws as their libraries document them)."
        )
    return f"The claim is false, or an event of probability {result.alpha:g} has happened."


def _violation(result: Result) -> list[str]:
    text = (
        f"{certainty(result)} Claimed: {claim_text(result.claim)}. Shown: {shown(result)}.{confirmed_in_words(result)}"
    )
    lines = ["", *_paragraph(text)]
    witness = result.witness
    if witness is None:
        return lines
    return [*lines, "", *_witness(witness)]


def confirmed_in_words(result: Result) -> str:
    """Return how a violation was confirmed, and what the bound assumes, where outputs came many to a call; otherwise nothing."""
    if not result.samples_confirming:
        return ""
    return (
        f" Refuted again on {result.samples_confirming:,} releases drawn one call each; the bound assumes that outputs of one "
        "call are independent."
    )


def _witness(witness: Witness) -> list[str]:
    ratio = "infinite" if math.isinf(witness.observed_log_ratio) else f"{witness.observed_log_ratio:.3f}"
    title = "Smallest pair found" if witness.shrunk else "Pair"
    lines = [
        f"{title}{'' if witness.confirmed else ' (not confirmed on fresh outputs)'}:",
        f"  data:      {witness.data}",
        f"  neighbour: {witness.neighbour}",
        "Event:",
        *textwrap.wrap(witness.event, LINE_WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False),
        "Counted on fresh outputs (with 99 % intervals):",
        f"  on data:      {witness.on_data}",
        f"  on neighbour: {witness.on_neighbour}",
        f"  log-ratio of the shares: {ratio}",
    ]
    return [*lines, "", "result.witness.script() is a program that repeats this measurement."]


def _nothing_found(result: Result) -> list[str]:
    return [
        "",
        *_paragraph(
            f"This is not a proof of privacy. {detectable_in_words(result)} Rarer leaks, and leaks on data that were not "
            "tried, need more."
        ),
    ]


def detectable_rows(result: Result) -> list[tuple[str, str]]:
    """Return pairs: the probability of an event, and the epsilon from which on it would have been detected.

    Most probable first.
    """
    return [
        (f"{mass:g}", f"{epsilon:.3g}" if math.isfinite(epsilon) else "not with these samples")
        for mass, epsilon in sorted(result.detectable.items(), reverse=True)
    ]


def detectable_note(claim: Claim, epsilon: str = "this epsilon", pairs: int = 1) -> str:
    """Explain the numbers of :func:`detectable_rows` (see ``dpaudit.engine.search.detectable``).

    >>> print(detectable_note(PureDP(1.0), pairs=8))
    An event of probability m on one data set and m exp(-epsilon) on its neighbour, on one of the 8 pairs, would have been
    caught, with probability about 0.9, from this epsilon on. Among numbers it is an end of the range, or of one coordinate's: an
    interval inside takes about twice the samples, and a rare one is missed. Among words it is made of the frequent ones.
    """
    plus = ""
    if isinstance(claim, ApproxDP):
        plus = ", plus the delta that the claim allows,"
    elif not isinstance(claim, PureDP | MetricDP):
        # The audit bets against several points of the curve, and at the largest delta the promise is the smallest.
        plus = f", plus the delta that the claim allows at epsilon 0 ({claim.delta(0.0):.3g}),"
    rate = "m exp(-epsilon distance)" if isinstance(claim, MetricDP) else "m exp(-epsilon)"
    where = f", on one of the {pairs} pairs," if pairs > 1 else ""
    return (
        f"An event of probability m{plus} on one data set and {rate} on its neighbour{where} would have been caught, "
        f"with probability about 0.9, from {epsilon} on. Among numbers it is an end of the range, or of one coordinate's: an "
        "interval inside takes about twice the samples, and a rare one is missed. Among words it is made of the frequent ones."
    )


def detectable_in_words(result: Result) -> str:
    """Return one sentence on the epsilon that would have been detected."""
    caught = [
        f"{epsilon:.3g} (m={mass:g})"
        for mass, epsilon in sorted(result.detectable.items(), reverse=True)
        if math.isfinite(epsilon)
    ]
    if caught:
        return detectable_note(result.claim, f"epsilon {', '.join(caught)}", result.pairs)
    if result.pairs > 1:
        return (
            f"With these samples no epsilon is promised to be detected if one of the {result.pairs} pairs leaks and the others "
            "do not: more samples or fewer pairs would change that."
        )
    return "With these samples no event is promised to be detected at any epsilon."


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, LINE_WIDTH, break_on_hyphens=False)
