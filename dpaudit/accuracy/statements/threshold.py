"""AboveThreshold: report, lemma 2.2.1.1, and its use inside HistogramMethod."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.accuracy.bound import Bound, Sense, Status, Truth, Variant
from dpaudit.accuracy.bounds import above_threshold as at
from dpaudit.accuracy.bounds.deciles import DECILES, histogram_alpha
from dpaudit.accuracy.conditions import Real
from dpaudit.accuracy.regions import Axis, Range
from dpaudit.accuracy.theorem import Effort, Theorem, TheoremForm

_LEMMA = "report, lemma 2.2.1.1"
_REGION: dict[str, Axis] = {
    "queries": Range(1, 60),
    "beta": Range(0.001, 0.3),
    "epsilon": Range(0.1, 10.0),
    "offsets": [(-1.0,), (1.0,), (-1.0, 1.0), (-1.0, -1.2, 0.5), (1.0, -1.0), (-1.0, -1.0, 1.05), (0.0, -1.0)],
}


def _answers(queries: int, offsets: tuple[float, ...]) -> Real:
    """Answers in units of alpha around the threshold; a short pattern is repeated."""
    return np.resize(np.asarray(offsets, float), queries)


def _distance(variant: Variant, queries: int, beta: float, epsilon: float) -> tuple[float, tuple[str, ...]]:
    limits = {Variant.TIGHT: 2.0 / 3.0, Variant.QUADRATIC: 0.5}
    limit = limits.get(variant, math.inf)
    if beta / queries >= limit:
        return math.nan, (f"beta/m < {limit:.4g}, otherwise alpha <= 0 (beta={beta!r}, m={queries})",)
    return float(at.alpha(queries, beta, epsilon, variant)), ()


def _error_bound(variant: Variant) -> Callable[..., Bound]:
    def bound(*, queries: int, beta: float, epsilon: float, offsets: tuple[float, ...]) -> Bound:
        del offsets
        distance, unmet = _distance(variant, queries, beta, epsilon)
        return Bound(
            value=beta,
            variant=variant,
            theorem=_LEMMA,
            sense=Sense.AT_MOST,
            quantity="P(wrong by alpha or more)",
            unmet=unmet,
            terms={"alpha": distance},
        )

    return bound


def _error_truth(variant: Variant) -> Callable[..., Truth]:
    def truth(
        bound: Bound, effort: Effort, *, queries: int, beta: float, epsilon: float, offsets: tuple[float, ...]
    ) -> Truth:
        del effort
        if variant is Variant.RANDOM_INDEX:
            each = np.asarray(at.alpha(np.arange(1, queries + 1), beta, epsilon, variant))
            allowed: Any = np.append(each, each[-1])
            answers = _answers(queries, offsets) * each
        else:
            allowed = bound.terms["alpha"]
            answers = _answers(queries, offsets) * allowed
        return Truth.exact(at.error_probability(answers, 0.0, allowed, epsilon))

    return truth


def _literal_bound(*, queries: int, beta: float, epsilon: float, offsets: tuple[float, ...]) -> Bound:
    del offsets
    return Bound(
        value=1.0 - beta,
        variant=Variant.LITERAL,
        theorem=_LEMMA,
        sense=Sense.AT_LEAST,
        quantity="P(f_i + nu_i < T + alpha for i < k, and f_k + nu_k > T - alpha)",
        terms={"alpha": float(at.alpha(queries, beta, epsilon, Variant.PRINTED))},
    )


def _literal_truth(bound: Bound, effort: Effort, *, epsilon: float, **others: Any) -> Truth:
    """Enclose the event: |Z| < alpha implies it, since the run itself compared the noisy answers with T + Z."""
    del effort, others
    return Truth(low=-math.expm1(-0.5 * epsilon * bound.terms["alpha"]), high=1.0, method="certified")


def _noise_bound(*, queries: int, beta: float, epsilon: float) -> Bound:
    return Bound(
        value=1.0 - beta,
        variant=Variant.PRINTED,
        theorem="report, inequality (1)",
        sense=Sense.AT_LEAST,
        quantity="P(max |nu_i| + |T - That| < alpha)",
        terms={"alpha": float(at.alpha(queries, beta, epsilon, Variant.PRINTED))},
    )


def _noise_truth(bound: Bound, effort: Effort, *, queries: int, beta: float, epsilon: float) -> Truth:
    del effort, beta
    return Truth.exact(at.noise_within(queries, bound.terms["alpha"], epsilon))


def _inside_bound(variant: Variant) -> Callable[..., Bound]:
    def bound(*, steps: int, beta: float, epsilon: float) -> Bound:
        return Bound(
            value=beta,
            variant=variant,
            theorem="report, proof of theorem 2.2.3.1",
            sense=Sense.AT_MOST,
            quantity="P(wrong by alpha or more), one call of HistogramMethod",
            terms={"alpha": float(histogram_alpha(steps, beta, epsilon, variant))},
        )

    return bound


def _inside_truth(bound: Bound, effort: Effort, *, steps: int, beta: float, epsilon: float) -> Truth:
    """All counts alpha below the threshold, noise of the epsilon/9 that the call has (docs/theory.md R7)."""
    del effort, beta
    return Truth.exact(at.all_below_error(steps, bound.terms["alpha"], epsilon / DECILES))


def _lemma_form(variant: Variant, note: str) -> TheoremForm:
    return TheoremForm(
        variant=variant,
        bound=_error_bound(variant),
        truth=_error_truth(variant),
        expected=Status.HOLDS,
        region=_REGION,
        note=note,
    )


def _inside_form(variant: Variant, expected: Status, note: str) -> TheoremForm:
    return TheoremForm(
        variant=variant,
        bound=_inside_bound(variant),
        truth=_inside_truth,
        expected=expected,
        region={"steps": Range(1, 1000), "beta": Range(0.001, 0.3), "epsilon": Range(0.1, 10.0)},
        note=note,
    )


THEOREMS = (
    Theorem(
        name="above-threshold",
        title="AboveThreshold is (alpha, beta)-accurate",
        source=_LEMMA,
        statement=(
            "With probability at least 1 - beta AboveThreshold returns no query at or below T - alpha and passes none at or "
            "above T + alpha. Printed with alpha = 8 (log k + log(2/beta))/epsilon, k the random answer itself, and with the "
            "noisy answers f_i + nu_i in the event. offsets: the answers in units of alpha around T, repeated."
        ),
        parameters={
            "queries": ("queries", 10),
            "beta": ("beta", 0.05),
            "epsilon": ("epsilon", 1.0),
            "offsets": ("", (-1.0,)),
        },
        forms=(
            TheoremForm(
                variant=Variant.LITERAL,
                bound=_literal_bound,
                truth=_literal_truth,
                expected=Status.HOLDS,
                region=_REGION,
                note="true but empty: about the noisy answers, and implied by |Z| < alpha alone, probability "
                "1 - (beta/(2m))^4; undefined for the answers 0 and -1 (log k)",
            ),
            _lemma_form(Variant.PRINTED, "the meaning, m fixed, true answers, the printed alpha: true and very loose"),
            _lemma_form(Variant.TIGHT, "alpha = (4/epsilon) log(2m/(3 beta))"),
            _lemma_form(Variant.QUADRATIC, "alpha solves m tau(alpha) = beta"),
            _lemma_form(
                Variant.RANDOM_INDEX,
                "alpha = 8 log(2j/beta)/epsilon for the 1-based answer j: true, but not by the report's proof",
            ),
        ),
    ),
    Theorem(
        name="above-threshold-noise",
        title="All noise of AboveThreshold is small",
        source="report, inequality (1) in the proof of lemma 2.2.1.1",
        statement=(
            "P(max over m queries of |nu_i| + |T - That| < alpha) >= 1 - beta, alpha = 8 (log m + log(2/beta))/epsilon. It "
            "implies the lemma for the true answers and a fixed m."
        ),
        parameters={"queries": ("queries", 10), "beta": ("beta", 0.05), "epsilon": ("epsilon", 1.0)},
        forms=(
            TheoremForm(
                variant=Variant.PRINTED,
                bound=_noise_bound,
                truth=_noise_truth,
                expected=Status.HOLDS,
                region={name: axis for name, axis in _REGION.items() if name != "offsets"},
                note="true for a fixed m: the threshold noise gets beta/2 and needs (beta/2)^2/m^2 of it",
            ),
        ),
    ),
    Theorem(
        name="threshold-in-histogram",
        title="The epsilon/9 slip",
        source="report, proof of theorem 2.2.3.1; slides, all theorems",
        statement=(
            "Inside HistogramMethod a call of AboveThreshold is wrong by alpha with probability at most beta. Printed with "
            "alpha = 8 (log k + log(2/beta))/epsilon, although the call has epsilon/9."
        ),
        parameters={"steps": ("steps", 10), "beta": ("beta", 0.1), "epsilon": ("epsilon", 1.0)},
        forms=(
            _inside_form(Variant.PRINTED, Status.VIOLATED, "false: the budget of one call is epsilon/9"),
            _inside_form(Variant.CORRECTED_72, Status.HOLDS, "alpha = 72 log(2k/beta)/epsilon"),
            _inside_form(Variant.CORRECTED_36, Status.HOLDS, "alpha = 36 log(2k/(3 beta))/epsilon"),
        ),
    ),
)
