"""Mean error of HistogramMethod: the slides' theorem 3/5, corollary 4/5 and closed form 5/5; order statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpaudit.accuracy.bound import Bound, Sense, Status, Truth, Variant
from dpaudit.accuracy.bounds import mean_error
from dpaudit.accuracy.bounds.deciles import DECILES
from dpaudit.accuracy.distributions.order_statistics import below, level_of
from dpaudit.accuracy.regions import Axis, Range
from dpaudit.accuracy.theorem import Effort, Theorem, TheoremForm
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import histogram_mean_error

_DECILES = list(range(1, 10))
# Small enough for the exact law; the corrected theorems have no condition on n.
_SMALL: dict[str, Axis] = {
    "n": [3, 10, 30, 100, 300],
    "i": _DECILES,
    "epsilon": [0.5, 5.0, 20.0, 100.0, 400.0],
    "beta": Range(0.001, 0.3),
}
# Here alpha <= n/10, and the missing factor 9 matters: noise of scale 36/epsilon for n records.
_HUGE: dict[str, Axis] = {"n": [10**11, 10**12], "i": _DECILES, "epsilon": Range(2e-9, 5e-8)}


def _truth(
    bound: Bound,
    effort: Effort,
    *,
    n: int,
    i: int,
    epsilon: float,
    quantile: float | None = None,
    releases: int = DECILES,
    **others: Any,
) -> Truth:
    del effort, others
    setting = HistogramSetting(
        n=n,
        steps=int(mean_error.slides_steps(n)),
        quantile=level_of(i, quantile),
        epsilon=epsilon,
        releases=releases,
        monotone_noise=bound.variant is Variant.MONOTONE_NOISE,
    )
    return histogram_mean_error(setting, against=bound.value)


def _printed(variant: Variant) -> Callable[..., Bound]:
    def bound(
        *,
        n: int,
        i: int,
        epsilon: float,
        beta: float | None = None,
        quantile: float | None = None,
        releases: int = DECILES,
    ) -> Bound:
        del releases  # the printed alpha ignores how many quantiles share epsilon
        return mean_error.printed_mean_error_bound(
            n=n, quantile=level_of(i, quantile), epsilon=epsilon, beta=beta, variant=variant
        )

    return bound


def _closed(*, n: int, i: int, epsilon: float, quantile: float | None = None, releases: int = DECILES) -> Bound:
    del releases
    return mean_error.printed_closed_form_bound(n=n, quantile=level_of(i, quantile), epsilon=epsilon)


def _corrected(variant: Variant, *, closed: bool) -> Callable[..., Bound]:
    def bound(
        *,
        n: int,
        i: int,
        epsilon: float,
        beta: float | None = None,
        quantile: float | None = None,
        releases: int = DECILES,
    ) -> Bound:
        return mean_error.corrected_mean_error_bound(
            n=n,
            quantile=level_of(i, quantile),
            epsilon=epsilon,
            beta=beta,
            variant=variant,
            closed=closed,
            releases=releases,
        )

    return bound


def _form(
    variant: Variant, bound: Callable[..., Bound], expected: Status, region: Mapping[str, Axis], note: str
) -> TheoremForm:
    return TheoremForm(variant=variant, bound=bound, truth=_truth, expected=expected, region=region, note=note)


def _corrected_forms(*, closed: bool, region: Mapping[str, Axis], note: str) -> tuple[TheoremForm, TheoremForm]:
    return (
        _form(
            Variant.CORRECTED_72,
            _corrected(Variant.CORRECTED_72, closed=closed),
            Status.HOLDS,
            region,
            f"alpha = 72 log(2k/beta)/epsilon{note}",
        ),
        _form(
            Variant.CORRECTED_36,
            _corrected(Variant.CORRECTED_36, closed=closed),
            Status.HOLDS,
            region,
            f"alpha = 36 log(2k/(3 beta))/epsilon{note}",
        ),
    )


def _without_beta(region: Mapping[str, Axis]) -> dict[str, Axis]:
    return {name: axis for name, axis in region.items() if name != "beta"}


def _beta_law_bound(*, n: int, rank: int, p: float) -> Bound:
    unmet = () if rank <= n else (f"1 <= k <= n (k={rank}, n={n})",)
    return Bound(
        value=float(below(p, rank, n)),
        variant=Variant.PRINTED,
        theorem="slides, theorem 2/5",
        sense=Sense.EQUAL,
        quantity="P(X_(k) <= x)",
        unmet=unmet,
    )


def _beta_law_truth(bound: Bound, effort: Effort, *, n: int, rank: int, p: float) -> Truth:
    """P(Bin(n, x) >= k), summed term by term."""
    from scipy import stats

    del bound, effort
    return Truth.exact(float(np.sum(stats.binom.pmf(np.arange(rank, n + 1), n, p))))


_SLIDES_PARAMETERS: dict[str, tuple[str, Any]] = {
    "n": ("n_slides", 1_000_000),
    "i": ("i", 5),
    "epsilon": ("epsilon", 0.0019),
    "quantile": ("quantile", None),
    "releases": ("releases", DECILES),
}

THEOREMS = (
    Theorem(
        name="order-statistics",
        title="Order statistics of uniform records are Beta",
        source="slides, theorem 2/5",
        statement="X_(k) of n uniform records has the law Beta(k, n - k + 1): P(X_(k) <= x) = I_x(k, n - k + 1).",
        parameters={"n": ("n", 100), "rank": ("rank", 50), "p": ("p", 0.5)},
        forms=(
            TheoremForm(
                variant=Variant.PRINTED,
                bound=_beta_law_bound,
                truth=_beta_law_truth,
                expected=Status.HOLDS,
                region={"n": Range(1, 500), "rank": Range(1, 500), "p": Range(0.001, 0.999)},
                note="right",
            ),
        ),
    ),
    Theorem(
        name="mean-error",
        title="Mean error of HistogramMethod, free beta",
        source="slides, theorem 3/5",
        statement=(
            "For n uniform records, k = 1.5 n/log n and 8 log(3n/(beta log n))/epsilon <= n/10: E|A_i - d_i| <= "
            "E min(X_(r) - d, d)_+ + E(d - X_(s))_+ + beta + P(X_(s) <= d - 0.1) + P(X_(r) >= d + 0.1) + 2 log n/(3n) + "
            "d beta, r = ceil(i n/10 + alpha), s = floor(i n/10 - alpha), alpha = 8 log(3n sqrt n)/epsilon."
        ),
        parameters={
            **_SLIDES_PARAMETERS,
            "n": ("n_slides", 10**7),
            "beta": ("beta", 0.01),
            "epsilon": ("epsilon", 1.54e-4),
        },
        forms=(
            _form(
                Variant.PRINTED,
                _printed(Variant.PRINTED),
                Status.VIOLATED,
                {**_HUGE, "beta": Range(1e-9, 1e-6)},
                "false, but only for huge n (10^11): alpha ignores epsilon/9, and fits only one beta",
            ),
            _form(
                Variant.ALPHA_REPAIRED,
                _printed(Variant.ALPHA_REPAIRED),
                Status.VIOLATED,
                {"n": [10**6, 10**7], "i": _DECILES, "epsilon": Range(1.5e-4, 3e-3), "beta": Range(0.002, 0.02)},
                "alpha = 8 log(3n/(beta log n))/epsilon, as the proof needs: false from n = 10^7 on",
            ),
            *_corrected_forms(closed=False, region=_SMALL, note=", any steps, no condition on n"),
        ),
    ),
    Theorem(
        name="mean-error-corollary",
        title="Mean error of HistogramMethod, beta = 1/(sqrt(n) log n)",
        source="slides, corollary 4/5",
        statement=(
            "Theorem 3/5 at beta = 1/(sqrt(n) log n), under alpha = 8 log(3n sqrt n)/epsilon <= n/10. Corrected: the best "
            "beta."
        ),
        parameters={**_SLIDES_PARAMETERS, "n": ("n_closed", 10**11), "epsilon": ("epsilon", 3.2e-8)},
        forms=(
            _form(
                Variant.PRINTED,
                _printed(Variant.PRINTED),
                Status.VIOLATED,
                _HUGE,
                "false, but only for huge n (10^11): for practical n unproved rather than wrong",
            ),
            *_corrected_forms(closed=False, region=_without_beta(_SMALL), note=", best beta"),
        ),
    ),
    Theorem(
        name="mean-error-closed",
        title="Mean error of HistogramMethod, closed form",
        source="slides, closed form 5/5",
        statement=(
            "Under alpha = 8 log(3n sqrt n)/epsilon <= n/10: E|A_i - d_i| <= 2 sqrt(pi/(2n)) + (d + 1)/(sqrt(n) log n) + "
            "(log n/n)(2/3 + (16/epsilon) log 3) + 2 exp(-2n (0.1 - alpha/n)^2). Corrected: sqrt(pi/(2n)) + "
            "2 (alpha + 1)/n + 1/k + beta max(d + 1/k, 1 - d)."
        ),
        parameters={**_SLIDES_PARAMETERS, "n": ("n_closed", 1_000_000)},
        forms=(
            _form(
                Variant.PRINTED,
                _closed,
                Status.VIOLATED,
                {"n": [300_000, 1_000_000, 3_000_000], "i": _DECILES, "epsilon": Range(0.0006, 0.008)},
                "false: 2 alpha/n is split into a product (1.4 times too small), and epsilon/9 is ignored",
            ),
            *_corrected_forms(closed=True, region=_without_beta(_SMALL), note=", best beta"),
        ),
    ),
    Theorem(
        name="mean-error-monotone",
        title="Mean error of HistogramMethod with less noise",
        source="derived (theory R5)",
        statement=(
            "Counts under substitution all move the same way, so Lap(2/epsilon0) on threshold and queries is as private as the "
            "printed Lap(2/epsilon0) and Lap(4/epsilon0). The corrected theorem 3/5 then holds with about half the alpha: "
            "k (2 + u)/4 exp(-u) = beta, u = epsilon0 alpha/2, epsilon0 = epsilon/9."
        ),
        parameters={**_SLIDES_PARAMETERS, "n": ("n_slides", 1000), "epsilon": ("epsilon", 10.0)},
        forms=(
            _form(
                Variant.MONOTONE_NOISE,
                _corrected(Variant.MONOTONE_NOISE, closed=False),
                Status.HOLDS,
                _without_beta(_SMALL),
                "not printed: a free improvement, best beta",
            ),
        ),
    ),
)
