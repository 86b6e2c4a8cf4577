"""Inverse sensitivity: derived accuracy bounds, and the lower bound for all private mechanisms."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.accuracy.bound import Bound, Sense, Status, Truth, Variant
from dpaudit.accuracy.bounds import inverse_sensitivity
from dpaudit.accuracy.conditions import Real
from dpaudit.accuracy.distributions.order_statistics import level_of, rank
from dpaudit.accuracy.regions import Range
from dpaudit.accuracy.theorem import Effort, Theorem, TheoremForm
from dpaudit.accuracy.truths.quantile_errors import inverse_sensitivity_mean_error
from dpaudit.exact.mechanism_laws.inverse_sensitivity import mean_absolute_error, quantile_law, quantile_segments

_DECILES = list(range(1, 10))


def _records(n: int, power: float) -> Real:
    """Fixed records ((j - 1/2)/n)^power: evenly spaced for power 1, concentrated near 0 for larger powers."""
    return ((np.arange(n) + 0.5) / n) ** power


def _tail_bound(*, rho: float, length: int, epsilon: float, **others: Any) -> Bound:
    del others
    return Bound(
        value=float(inverse_sensitivity.length_tail(length, rho, epsilon)),
        variant=Variant.DERIVED,
        theorem="inverse sensitivity, tail (theory R18)",
        sense=Sense.AT_MOST,
        quantity="P(len^rho(M) >= K)",
    )


def _tail_truth(
    bound: Bound,
    effort: Effort,
    *,
    n: int,
    i: int,
    rho: float,
    length: int,
    epsilon: float,
    power: float,
    quantile: float | None = None,
) -> Truth:
    del bound, effort
    data = _records(n, power)
    staircase = quantile_segments(data, int(rank(n, level_of(i, quantile))), low=0.0, high=1.0, rho=rho)
    return Truth.exact(staircase.length_tail(epsilon, length))


def _mean_bound(*, n: int, i: int, epsilon: float, quantile: float | None = None) -> Bound:
    return inverse_sensitivity.mean_error_bound(n=n, quantile=level_of(i, quantile), epsilon=epsilon)


def _plain_bound(*, n: int, i: int, epsilon: float, quantile: float | None = None) -> Bound:
    level = level_of(i, quantile)
    value, length, inner = inverse_sensitivity.plain_mean_error(n=n, quantile=level, epsilon=epsilon)
    return Bound(
        value=value,
        variant=Variant.DERIVED,
        theorem="inverse sensitivity without smoothing, mean error",
        sense=Sense.AT_MOST,
        quantity="E|M - d|",
        trivial=float(max(level, 1 - level)),
        terms={"K": float(length), "L": float(inner), "rho": 0.0},
    )


def _mean_truth(
    bound: Bound, effort: Effort, *, n: int, i: int, epsilon: float, quantile: float | None = None
) -> Truth:
    """Average over data of the exact error given the data, with the rho that the bound chose."""
    return inverse_sensitivity_mean_error(
        n,
        level_of(i, quantile),
        epsilon,
        bound.terms["rho"],
        rng=effort.rng,
        alpha=effort.alpha,
        against=bound.value,
    )


def _pair(n: int, changes: int, power: float) -> tuple[Real, Real]:
    """Two data sets that differ in the ``changes`` records above the median, moved to 0."""
    first = _records(n, power)
    second = first.copy()
    r = inverse_sensitivity.median_rank(n)
    second[r - 1 : r - 1 + changes] = 0.0
    return first, np.sort(second)


def _two_point_bound(*, n: int, length: int, epsilon: float, power: float) -> Bound:
    first, second = _pair(n, length, power)
    r = inverse_sensitivity.median_rank(n)
    gap = float(abs(first[r - 1] - second[r - 1]))
    return Bound(
        value=float(inverse_sensitivity.two_point_lower(gap, length, epsilon)),
        variant=Variant.DERIVED,
        theorem="two-point lower bound (theory R18)",
        sense=Sense.AT_LEAST,
        quantity="max of E|M - median| over two data sets at distance k",
        unmet=() if length <= n // 2 else (f"k <= n/2 records can be moved (k={length}, n={n})",),
        terms={"gap": gap},
    )


def _two_point_truth(bound: Bound, effort: Effort, *, n: int, length: int, epsilon: float, power: float) -> Truth:
    del bound, effort
    r = inverse_sensitivity.median_rank(n)
    errors = [
        mean_absolute_error(quantile_law(data, r, epsilon=epsilon, low=0.0, high=1.0), float(data[r - 1]))
        for data in _pair(n, length, power)
    ]
    return Truth.exact(max(errors))


_MEAN_PARAMETERS: dict[str, tuple[str, Any]] = {
    "n": ("n", 1000),
    "i": ("i", 5),
    "epsilon": ("epsilon", 1 / 9),
    "quantile": ("quantile", None),
}

THEOREMS = (
    Theorem(
        name="inverse-sensitivity-tail",
        title="Inverse sensitivity: tail of the length",
        source="derived; the slides leave the page empty",
        statement="P(len^rho(M) >= K) <= (b - a) exp(-epsilon K/2)/min(rho, b - a), for any data in [a, b] = [0, 1].",
        parameters={
            "n": ("n", 100),
            "i": ("i", 5),
            "rho": ("rho", 0.05),
            "length": ("length", 20),
            "epsilon": ("epsilon", 1.0),
            "power": ("scale", 1.0),
            "quantile": ("quantile", None),
        },
        forms=(
            TheoremForm(
                variant=Variant.DERIVED,
                bound=_tail_bound,
                truth=_tail_truth,
                expected=Status.HOLDS,
                region={
                    "n": Range(1, 300),
                    "i": _DECILES,
                    "rho": Range(0.001, 0.5),
                    "length": Range(1, 100),
                    "epsilon": Range(0.05, 5.0),
                    "power": [0.2, 1.0, 5.0, 40.0],
                },
                note="valid for all data",
            ),
        ),
    ),
    Theorem(
        name="inverse-sensitivity-mean",
        title="Inverse sensitivity: mean error over uniform records",
        source="derived; the slides leave the page empty",
        statement=(
            "E|M - d| <= E(X_(r+K-1) - d)_+ + E(d - X_(r-K+1))_+ + rho + min(1, exp(-epsilon K/2)/rho) max(d, 1 - d), "
            "best K and rho. epsilon is the budget of this one release."
        ),
        parameters=_MEAN_PARAMETERS,
        forms=(
            TheoremForm(
                variant=Variant.DERIVED,
                bound=_mean_bound,
                truth=_mean_truth,
                expected=Status.HOLDS,
                region={"n": [10, 30, 100, 300, 1000], "i": _DECILES, "epsilon": Range(0.02, 5.0)},
                note="truth by Monte Carlo over data, exact given the data",
                monte_carlo=True,
            ),
        ),
    ),
    Theorem(
        name="inverse-sensitivity-plain",
        title="Inverse sensitivity without smoothing: mean error over uniform records",
        source="derived; the slides leave the page empty",
        statement=(
            "E|M - d| <= E(X_(r+K-1) - d)_+ + E(d - X_(r-K+1))_+ + min(1, exp(-epsilon (K - L)/2) n/(m - 1)) max(d, 1 - d), "
            "m = min(r + L, n + 1) - max(r - L, 0), best K and L. epsilon is the budget of this one release."
        ),
        parameters=_MEAN_PARAMETERS,
        forms=(
            TheoremForm(
                variant=Variant.DERIVED,
                bound=_plain_bound,
                truth=_mean_truth,
                expected=Status.HOLDS,
                region={"n": [5, 10, 30, 100, 300, 1000], "i": _DECILES, "epsilon": Range(0.02, 5.0)},
                note="by the Beta law of the spacings around the quantile; truth by Monte Carlo over data",
                monte_carlo=True,
            ),
        ),
    ),
    Theorem(
        name="two-point",
        title="No private mechanism is accurate on both of two data sets",
        source="derived, after Asi and Duchi 2020",
        statement=(
            "For x, x' at distance k: max of E|M - f| over both >= |f(x) - f(x')|/(1 + exp(k epsilon)), for every "
            "epsilon-private M."
        ),
        parameters={
            "n": ("n", 11),
            "length": ("length", 1),
            "epsilon": ("epsilon", 1.0),
            "power": ("scale", 1.0),
        },
        forms=(
            TheoremForm(
                variant=Variant.DERIVED,
                bound=_two_point_bound,
                truth=_two_point_truth,
                expected=Status.HOLDS,
                region={
                    "n": Range(1, 100),
                    "length": Range(1, 50),
                    "epsilon": Range(0.05, 5.0),
                    "power": [0.2, 1.0, 5.0],
                },
                note="checked on the inverse sensitivity mechanism, records above the median moved to 0",
            ),
        ),
    ),
)
