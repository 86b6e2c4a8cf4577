"""Deciles with high probability: report, sections 2.2.3 and 2.2.4, and appendix A."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpaudit.accuracy.bound import Bound, Sense, Status, Truth, Variant
from dpaudit.accuracy.bounds import deciles
from dpaudit.accuracy.distributions.data_law import NORMAL, UNIFORM, DataLaw
from dpaudit.accuracy.distributions.order_statistics import below, decile, level_of, rank
from dpaudit.accuracy.regions import Axis, Range
from dpaudit.accuracy.theorem import Effort, Theorem, TheoremForm
from dpaudit.accuracy.truths.certified import HistogramSetting, probability_at_mean_counts
from dpaudit.accuracy.truths.quantile_errors import histogram_probability

_DECILES = list(range(1, 10))
QUANTILE: dict[str, tuple[str, Any]] = {"quantile": ("quantile", None)}
"""A level that is not i/10; the printed statements are about deciles, the corrected ones about any level."""


def _lemma_bound(variant: Variant, law: DataLaw, theorem: str) -> Callable[..., Bound]:
    def bound(*, n: int, i: int, gamma: float, quantile: float | None = None) -> Bound:
        value = float(deciles.eta(n, level_of(i, quantile), gamma, variant, law))
        return Bound(
            value=1.0 - value,
            variant=variant,
            theorem=theorem,
            sense=Sense.EQUAL if variant is Variant.CORRECTED else Sense.AT_LEAST,
            quantity="P(d_i - gamma/2 <= empirical decile <= d_i + gamma/2)",
            unmet=_gamma_unmet(gamma, law, variant),
            terms={"eta": value},
        )

    return bound


def _gamma_unmet(gamma: float, law: DataLaw, variant: Variant) -> tuple[str, ...]:
    """Return the printed hypothesis on gamma, which the corrected lemmas do not need."""
    if law is UNIFORM and variant is not Variant.CORRECTED and gamma > 0.1 + 1e-12:
        return (f"gamma in [0, 0.1] (gamma={gamma!r})",)
    return ()


def _lemma_truth(law: DataLaw) -> Callable[..., Truth]:
    def truth(bound: Bound, effort: Effort, *, n: int, i: int, gamma: float, quantile: float | None = None) -> Truth:
        """I_F(u)(r, n - r + 1) - I_F(l)(r, n - r + 1), the law of the order statistic."""
        del bound, effort
        r, d = rank(n, level_of(i, quantile)), law.quantile(level_of(i, quantile))
        ends = law.probability_below(np.array([d - 0.5 * gamma, d + 0.5 * gamma]))
        at_ends = below(ends, r, n)
        return Truth.exact(float(at_ends[1] - at_ends[0]))

    return truth


def _empirical_decile(name: str, law: DataLaw, theorem: str, gammas: Range) -> Theorem:
    region: dict[str, Axis] = {"n": Range(1, 2000), "i": _DECILES, "gamma": gammas}
    small: dict[str, Axis] = {"n": Range(1, 100), "i": _DECILES, "gamma": Range(0.0001, gammas.high)}

    def form(variant: Variant, expected: Status, where: Mapping[str, Axis], note: str) -> TheoremForm:
        return TheoremForm(
            variant=variant,
            bound=_lemma_bound(variant, law, theorem),
            truth=_lemma_truth(law),
            expected=expected,
            region=where,
            note=note,
        )

    return Theorem(
        name=name,
        title=f"Empirical against true deciles, {law.name} law",
        source=theorem,
        statement=(
            "The empirical decile lies within gamma/2 of the true one with probability at least 1 - eta. Printed: "
            "eta = 2 - S1 + S2 with S1 = P(Bin(n, F(d + gamma/2)) <= i n/10), S2 = P(Bin(n, 1 - F(d - gamma/2)) <= (10 - i) n/10)"
            + ("." if law is UNIFORM else "; in the normal case gamma is lost from the limits.")
        ),
        parameters={"n": ("n", 100), "i": ("i", 5), "gamma": ("gamma", 0.1), **QUANTILE},
        forms=(
            form(Variant.LITERAL, Status.VACUOUS, region, "vacuous: eta >= 1 always"),
            form(Variant.PROOF, Status.VIOLATED, small, "false: 2 - S1 - S2 complements the wrong events"),
            form(Variant.CORRECTED, Status.HOLDS, region, "exact: limits r - 1 and n - r, r = ceil(i n/10)"),
        ),
    )


def _flank_bound(variant: Variant, law: DataLaw, theorem: str) -> Callable[..., Bound]:
    def bound(*, n: int, i: int, gamma: float, alpha: float, quantile: float | None = None) -> Bound:
        value = float(deciles.mu(n, level_of(i, quantile), gamma, alpha, variant, law))
        return Bound(
            value=1.0 - value,
            variant=variant,
            theorem=theorem,
            sense=Sense.AT_LEAST,
            quantity="P(at least alpha records in each flank)",
            unmet=_gamma_unmet(gamma, law, variant),
            terms={"mu": value},
        )

    return bound


def _flank_truth(law: DataLaw) -> Callable[..., Truth]:
    def truth(
        bound: Bound, effort: Effort, *, n: int, i: int, gamma: float, alpha: float, quantile: float | None = None
    ) -> Truth:
        del bound, effort
        return Truth.exact(1.0 - float(deciles.mu(n, level_of(i, quantile), gamma, alpha, Variant.EXACT, law)))

    return truth


def _flank_counts(name: str, law: DataLaw, theorem: str, gammas: Range) -> Theorem:
    region: dict[str, Axis] = {"n": Range(50, 1500), "i": _DECILES, "gamma": gammas, "alpha": Range(1, 40)}

    def form(variant: Variant, expected: Status, note: str) -> TheoremForm:
        return TheoremForm(
            variant=variant,
            bound=_flank_bound(variant, law, theorem),
            truth=_flank_truth(law),
            expected=expected,
            region=region,
            note=note,
        )

    literal = (form(Variant.LITERAL, Status.VACUOUS, "vacuous: an integral over an empty range makes mu >= 1"),)
    return Theorem(
        name=name,
        title=f"Records in both flanks, {law.name} law",
        source=theorem,
        statement=(
            "At least alpha records lie in each of [d - gamma, d - gamma/2] and [d + gamma/2, d + gamma] with probability at "
            "least 1 - mu, mu = P(Bin(n, p_left) <= alpha) + P(Bin(n, p_right) <= alpha)."
        ),
        parameters={
            "n": ("n", 1000),
            "i": ("i", 5),
            "gamma": ("gamma", 0.1),
            "alpha": ("alpha", 30.0),
            **QUANTILE,
        },
        forms=(
            *(literal if law is NORMAL else ()),
            form(Variant.PRINTED, Status.HOLDS, "true; one term too many for whole alpha"),
            form(Variant.CORRECTED, Status.HOLDS, "k <= ceil(alpha) - 1"),
        ),
    )


def _setting(law: DataLaw, point: Mapping[str, Any]) -> HistogramSetting:
    return HistogramSetting(
        n=point["n"],
        steps=point["steps"],
        quantile=level_of(point["i"], point.get("quantile")),
        epsilon=point["epsilon"],
        law=law,
        low=law.low,
        high=law.high,
        releases=point.get("releases", deciles.DECILES),
    )


def _within_bound(variant: Variant, law: DataLaw) -> Callable[..., Bound]:
    def bound(*, i: int, quantile: float | None = None, **point: Any) -> Bound:
        return deciles.within_bound(quantile=level_of(i, quantile), variant=variant, law=law, **point)

    return bound


def _interval(variant: Variant, setting: HistogramSetting, gamma: float) -> tuple[float, float]:
    below_by = setting.width if variant in deciles.WIDENED else 0.0
    return setting.target - gamma - below_by, setting.target + gamma


def _within_truth(variant: Variant, law: DataLaw) -> Callable[..., Truth]:
    def truth(bound: Bound, effort: Effort, **point: Any) -> Truth:
        del bound, effort
        setting = _setting(law, point)
        return histogram_probability(setting, *_interval(variant, setting, point["gamma"]))

    return truth


def _hopeless(variant: Variant, law: DataLaw) -> Callable[[Mapping[str, Any]], bool]:
    """Return a cheap test that skips the exact law if the bound holds by a wide margin at the mean counts."""

    def hopeless(point: Mapping[str, Any]) -> bool:
        bound = _within_bound(variant, law)(**point)
        if bound.vacuous or not bound.applies:
            return True
        setting = _setting(law, point)
        return probability_at_mean_counts(setting, *_interval(variant, setting, point["gamma"])) > bound.value + 0.01

    return hopeless


def _histogram(
    name: str,
    law: DataLaw,
    theorem: str,
    region: Mapping[str, Axis],
    coarse: Mapping[str, Axis],
    fine: Mapping[str, Axis],
) -> Theorem:
    def form(variant: Variant, expected: Status, where: Mapping[str, Axis], note: str, **options: Any) -> TheoremForm:
        return TheoremForm(
            variant=variant,
            bound=_within_bound(variant, law),
            truth=_within_truth(variant, law),
            expected=expected,
            region=where,
            note=note,
            **options,
        )

    return Theorem(
        name=name,
        title=f"HistogramMethod is near the true decile, {law.name} law",
        source=theorem,
        statement=(
            "P(d_i - gamma <= A_i <= d_i + gamma) >= 1 - beta - eta - mu, with alpha = 8 (log k + log(2/beta))/epsilon and "
            "eta, mu of the two lemmas. Corrected: d_i - gamma - (b - a)/k on the left. "
            f"Range [{law.low:g}, {law.high:g}]; a run that finds nothing returns b."
            + ("" if law is UNIFORM else " The printed hypothesis gamma <= d_i is empty for i <= 4, and not needed.")
        ),
        parameters={
            "n": ("n", 1000),
            "steps": ("steps", 50),
            "i": ("i", 5),
            "gamma": ("gamma", 0.1 if law is UNIFORM else 0.5),
            "beta": ("beta", 0.05),
            "epsilon": ("epsilon", 20.0),
            **QUANTILE,
            "releases": ("releases", deciles.DECILES),
        },
        forms=(
            form(Variant.LITERAL, Status.VACUOUS, region, "vacuous: the right side is negative for all parameters"),
            form(Variant.PROOF, Status.VACUOUS, region, "vacuous wherever tested: negative")
            if law is UNIFORM
            else form(Variant.PROOF, Status.VIOLATED, coarse, "false where it is not negative: gamma is lost from eta"),
            form(
                Variant.SEMI_REPAIRED,
                Status.VIOLATED,
                coarse,
                "eta repaired, alpha kept: false, the discretisation is ignored and alpha ignores epsilon/9",
            ),
            form(
                Variant.SEMI_WIDENED,
                Status.VIOLATED,
                fine,
                "allowing for the discretisation: still false, alpha ignores epsilon/9",
                hopeless=_hopeless(Variant.SEMI_WIDENED, law),
            ),
            form(Variant.CORRECTED_72, Status.HOLDS, region, "alpha = 72 log(2k/beta)/epsilon"),
            form(Variant.CORRECTED_36, Status.HOLDS, region, "alpha = 36 log(2k/(3 beta))/epsilon"),
            form(Variant.SHARP, Status.HOLDS, region, "order statistics in place of eta and mu; dominates both"),
        ),
    )


def _normal_decile_bound(*, i: int) -> Bound:
    return Bound(
        value=float(deciles.normal_decile(i)),
        variant=Variant.PRINTED,
        theorem="report, lemma 2.2.4.1",
        sense=Sense.EQUAL,
        quantity="d_i with Phi(d_i) = i/10",
    )


def _normal_decile_truth(bound: Bound, effort: Effort, *, i: int) -> Truth:
    """Bisection of the distribution function, independent of the closed form."""
    del bound, effort
    by_bisection = DataLaw("normal", NORMAL.cdf, NORMAL.low, NORMAL.high)
    return Truth.exact(by_bisection.quantile(decile(i)))


_UNIFORM_REGION: dict[str, Axis] = {
    "n": [20, 50, 120, 300],
    "steps": [1, 3, 7, 20, 60],
    "i": _DECILES,
    "gamma": Range(0.01, 0.1),
    "beta": Range(0.005, 0.3),
    "epsilon": [2.0, 9.0, 30.0, 100.0],
}
_NORMAL_REGION: dict[str, Axis] = {**_UNIFORM_REGION, "gamma": Range(0.05, 1.5)}

THEOREMS = (
    _empirical_decile("empirical-decile", UNIFORM, "report, lemma 2.2.3.1", Range(0.001, 0.1)),
    _flank_counts("flank-counts", UNIFORM, "report, lemma 2.2.3.2", Range(0.01, 0.1)),
    _histogram(
        "histogram-uniform",
        UNIFORM,
        "report, theorem 2.2.3.1",
        _UNIFORM_REGION,
        {
            "n": Range(10, 400),
            "steps": Range(1, 20),
            "i": _DECILES,
            "gamma": Range(0.01, 0.1),
            "beta": Range(0.01, 0.2),
            "epsilon": Range(1, 100),
        },
        {
            "n": [3000, 4000],
            "steps": [4000, 8000],
            "i": [5],
            "gamma": [0.1],
            "beta": Range(0.01, 0.1),
            "epsilon": Range(0.5, 1.0),
        },
    ),
    Theorem(
        name="normal-deciles",
        title="Deciles of the standard normal law",
        source="report, lemma 2.2.4.1",
        statement="d_i = sqrt(2) erfinv(0.2 i - 1).",
        parameters={"i": ("i", 1)},
        forms=(
            TheoremForm(
                variant=Variant.PRINTED,
                bound=_normal_decile_bound,
                truth=_normal_decile_truth,
                expected=Status.HOLDS,
                region={"i": _DECILES},
                note="right",
            ),
        ),
    ),
    _empirical_decile("empirical-decile-normal", NORMAL, "report, lemma 2.2.4.2", Range(0.01, 1.5)),
    _flank_counts("flank-counts-normal", NORMAL, "report, lemma 2.2.4.3", Range(0.05, 1.5)),
    _histogram(
        "histogram-normal",
        NORMAL,
        "report, theorem 2.2.4.1",
        _NORMAL_REGION,
        {
            "n": Range(10, 400),
            "steps": Range(1, 20),
            "i": _DECILES,
            "gamma": Range(0.05, 1.5),
            "beta": Range(0.01, 0.2),
            "epsilon": Range(1, 100),
        },
        {
            "n": [1500, 2000],
            "steps": [3000, 6000],
            "i": [5],
            "gamma": Range(0.8, 1.3, digits=2),
            "beta": Range(0.02, 0.15),
            "epsilon": Range(0.3, 1.0),
        },
    ),
)
