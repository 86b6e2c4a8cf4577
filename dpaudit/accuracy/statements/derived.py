"""Statements that the report uses or announces without proof: the event E_{A_i}, the sample as target, the squared error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.accuracy.bound import Bound, Sense, Status, Truth, Variant
from dpaudit.accuracy.bounds import other_targets
from dpaudit.accuracy.bounds.deciles import DECILES, histogram_alpha
from dpaudit.accuracy.conditions import Real
from dpaudit.accuracy.distributions.order_statistics import level_of
from dpaudit.accuracy.regions import Axis, Range
from dpaudit.accuracy.theorem import Effort, Theorem, TheoremForm
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import histogram_law, histogram_law_for_data
from dpaudit.accuracy.truths.separation import separation
from dpaudit.accuracy.truths.sequential import estimate_mean

_LEVELS = list(range(1, 10))
_PARAMETERS: dict[str, tuple[str, Any]] = {
    "n": ("n_slides", 100),
    "steps": ("steps", 20),
    "i": ("i", 5),
    "beta": ("beta", 0.05),
    "epsilon": ("epsilon", 20.0),
    "quantile": ("quantile", None),
    "releases": ("releases", DECILES),
}
_REGION: dict[str, Axis] = {
    "n": [10, 30, 60],
    "steps": [1, 3, 8, 20],
    "i": _LEVELS,
    "beta": Range(0.01, 0.3),
    "epsilon": [5.0, 20.0, 100.0],
}


def _setting(point: dict[str, Any]) -> HistogramSetting:
    return HistogramSetting(
        n=point["n"],
        steps=point["steps"],
        quantile=level_of(point["i"], point.get("quantile")),
        epsilon=point["epsilon"],
        releases=point.get("releases", DECILES),
    )


def _separation_bound(variant: Variant) -> Callable[..., Bound]:
    whole_bin = variant in (Variant.CORRECTED_72, Variant.CORRECTED_36)
    formula = Variant.CORRECTED_72 if variant is Variant.SEMI_REPAIRED else variant

    def bound(*, steps: int, beta: float, epsilon: float, releases: int = DECILES, **others: Any) -> Bound:
        del others
        return Bound(
            value=1.0 - beta,
            variant=variant,
            theorem="report, event E_{A_i} in the proof of theorem 2.2.3.1",
            sense=Sense.AT_LEAST,
            quantity=f"P(fewer than alpha records between X_(r) and {'the bin [A, A + h]' if whole_bin else 'A'})",
            terms={"alpha": float(histogram_alpha(steps, beta, epsilon, formula, releases))},
        )

    return bound


def _separation_truth(bound: Bound, effort: Effort, **point: Any) -> Truth:
    del effort
    whole_bin = bound.variant in (Variant.CORRECTED_72, Variant.CORRECTED_36)
    return Truth.exact(separation(_setting(point)).fewer_than(bound.terms["alpha"], whole_bin=whole_bin), 1e-8)


def _separation_form(variant: Variant, expected: Status, note: str) -> TheoremForm:
    return TheoremForm(
        variant=variant,
        bound=_separation_bound(variant),
        truth=_separation_truth,
        expected=expected,
        region=_REGION,
        note=note,
    )


def _error_bound(
    variant: Variant, value: Callable[..., float], quantity: str, worst: Callable[[float], float]
) -> Callable[..., Bound]:
    def bound(
        *,
        n: int,
        steps: int,
        i: int,
        beta: float,
        epsilon: float,
        quantile: float | None = None,
        releases: int = DECILES,
    ) -> Bound:
        level = level_of(i, quantile)
        return Bound(
            value=value(
                n=n, steps=steps, quantile=level, epsilon=epsilon, beta=beta, variant=variant, releases=releases
            ),
            variant=variant,
            theorem="derived (report, section 2.2.3)",
            sense=Sense.AT_MOST,
            quantity=quantity,
            trivial=worst(float(level)),
        )

    return bound


def _one(level: float) -> float:
    del level
    return 1.0


def _sample_truth(bound: Bound, effort: Effort, **point: Any) -> Truth:
    """Average over random data of the exact error against the quantile of these data."""
    setting = _setting(point)

    def draw(size: int) -> Real:
        data = effort.rng.random((size, setting.n))
        return np.array([min(1.0, histogram_law_for_data(row, setting).mean_error()) for row in data])

    return estimate_mean(draw, alpha=effort.alpha, against=bound.value, batch=64, most=512)


def _squared_truth(bound: Bound, effort: Effort, **point: Any) -> Truth:
    del bound, effort
    return Truth.exact(histogram_law(_setting(point)).root_mean_squared_error(), 1e-6)


THEOREMS = (
    Theorem(
        name="separating-records",
        title="Records between the empirical decile and the answer",
        source="report, event E_{A_i} in the proof of theorem 2.2.3.1",
        statement=(
            "With probability at least 1 - beta fewer than alpha = 8 (log k + log(2/beta))/epsilon records separate the "
            "empirical decile from A_i, by lemma 2.2.1.1."
        ),
        parameters=_PARAMETERS,
        forms=(
            _separation_form(Variant.PRINTED, Status.VIOLATED, "false: epsilon/9, and the records of the bin itself"),
            _separation_form(
                Variant.SEMI_REPAIRED,
                Status.VIOLATED,
                "alpha = 72 log(2k/beta)/epsilon: false on coarse grids, A is the left edge, the lemma is about the right one",
            ),
            _separation_form(
                Variant.CORRECTED_72, Status.HOLDS, "counted from the bin [A, A + h], alpha = 72 log(2k/beta)/epsilon"
            ),
            _separation_form(
                Variant.CORRECTED_36,
                Status.HOLDS,
                "counted from the bin [A, A + h], alpha = 36 log(2k/(3 beta))/epsilon",
            ),
        ),
    ),
    Theorem(
        name="sample-decile",
        title="Mean error of HistogramMethod against the decile of the sample",
        source="derived (report, section 2.2.3, first target)",
        statement="E|A - X_(r)| <= (min(r_+, n + 1) - max(r_-, 0))/(n + 1) + 1/k + beta for uniform records.",
        parameters={**_PARAMETERS, "n": ("n_slides", 200), "steps": ("steps", 57), "epsilon": ("epsilon", 50.0)},
        forms=(
            TheoremForm(
                variant=Variant.CORRECTED_36,
                bound=_error_bound(Variant.CORRECTED_36, other_targets.sample_quantile_error, "E|A - X_(r)|", _one),
                truth=_sample_truth,
                expected=Status.HOLDS,
                region={**_REGION, "epsilon": [20.0, 100.0, 400.0]},
                note="the case that the report gave up; truth by Monte Carlo over data, exact given the data",
                monte_carlo=True,
            ),
        ),
    ),
    Theorem(
        name="squared-error",
        title="Root mean squared error of HistogramMethod",
        source="derived (report, section 2.2.3)",
        statement=(
            "sqrt E(A - d)^2 <= sqrt(E(X_(r_+) - d)_+^2 + E((d - X_(r_-))_+ + 1/k)^2 + beta max(d, 1 - d)^2) for uniform records."
        ),
        parameters={**_PARAMETERS, "n": ("n_slides", 1000), "steps": ("steps", 218), "epsilon": ("epsilon", 10.0)},
        forms=tuple(
            TheoremForm(
                variant=variant,
                bound=_error_bound(
                    variant,
                    other_targets.root_mean_squared_error,
                    "sqrt E(A - d)^2",
                    lambda level: max(level, 1.0 - level),
                ),
                truth=_squared_truth,
                expected=Status.HOLDS,
                region={**_REGION, "epsilon": [20.0, 100.0, 400.0]},
                note=note,
            )
            for variant, note in (
                (Variant.CORRECTED_72, "alpha = 72 log(2k/beta)/epsilon"),
                (Variant.CORRECTED_36, "alpha = 36 log(2k/(3 beta))/epsilon"),
            )
        ),
    ),
)
