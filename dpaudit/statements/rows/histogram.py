"""Report, sections 2.2.1 to 2.2.3: HistogramMethod, its picture, privacy, cost, and what its error is measured by."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from dpaudit import exact
from dpaudit.accuracy.conditions import Real
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import histogram_law, histogram_law_for_data
from dpaudit.claims import Relation
from dpaudit.exact.mechanism_laws.histogram import AS_PRINTED, HistogramDesign, PrintedBugs
from dpaudit.statements import growth
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close

CHAPTER = Chapter("report")


def _outputs(design: HistogramDesign, data: Real) -> list[tuple[Real, Real]]:
    """Values and probabilities of each released quantile."""
    laws: list[Any] = list(design.law(data).laws)
    return [(np.array(law.outcomes, dtype=np.float64), np.exp(law.log_probabilities)) for law in laws]


@CHAPTER.row(
    "histogram-method",
    "section 2.2.1, HistogramMethod",
    Kind.ALGORITHM,
    "Cuts [a, b] into steps bins and returns for each decile the first grid point below which more than d n/10"
    " records lie.",
    Standing.FALSE,
    corrected=(
        "Add a to grid points and outputs, empty the list of queries for each decile, return b where nothing is found."
    ),
    counterexample="n = 1000 normal records on [-5, 5]: the first decile, -1.28, is never answered within 1.",
)
def algorithm(e: Evidence, n: int = 1000, steps: int = 100, epsilon: float = 9.0) -> None:
    data = special.ndtri((np.arange(n) + 0.5) / n)
    near = {}
    for name, bugs in (("printed", AS_PRINTED), ("corrected", PrintedBugs())):
        design = HistogramDesign(epsilon=epsilon, low=-5.0, high=5.0, steps=steps, bugs=bugs)
        values, weights = _outputs(design, data)[0]
        near[name] = float(weights[np.abs(values - float(special.ndtri(0.1))) <= 1.0].sum())
    e.claim(
        f"as printed P(answer within 1 of the first decile) is near 1: it is {near['printed']:.3g}",
        near["printed"] > 0.5,
    )
    e.corrected(f"P(answer within 1 of the first decile) = {near['corrected']:.6g}", near["corrected"] > 0.9)
    uniform = (np.arange(50) + 0.5) / 50
    printed = _outputs(HistogramDesign(epsilon=1.0, low=0.0, high=1.0, steps=10, bugs=AS_PRINTED), uniform)
    above = float(np.mean([weights[values >= 1.0].sum() for values, weights in printed]))
    below = float(np.mean([weights[values < 0.0].sum() for values, weights in printed]))
    e.claim(
        f"as printed outputs lie in [a, b]: on 50 records of [0, 1] a share of {above:.4f} is at least b, and"
        f" {below:.4f} below a",
        above + below < 1e-6,
    )


@CHAPTER.row(
    "any-quantile",
    "section 2.2.1: deciles, or any quantiles",
    Kind.REMARK,
    "The method computes all deciles, or any other quantiles.",
    Standing.HOLDS,
    corrected="epsilon is shared by the number of quantiles that are released, which is 9 for the deciles only.",
)
def any_quantile(e: Evidence, quantile: float = 0.25, releases: int = 1, epsilon: float = 4.0) -> None:
    setting = HistogramSetting(
        n=400, steps=100, quantile=Fraction(quantile).limit_denominator(1000), epsilon=epsilon, releases=releases
    )
    within = histogram_law(setting).within(0.1, below=0.01)
    e.claim(
        f"quantile {quantile:g} as {releases} release of epsilon = {epsilon:g}: within 0.1 with probability"
        f" {within:.6f}",
        within > 0.9,
    )
    e.correction("histogram-uniform", "sharp", n=400, steps=100, quantile=quantile, releases=releases, epsilon=epsilon)
    e.correction("mean-error-monotone", "monotone-noise", n=400, quantile=quantile, releases=releases, epsilon=epsilon)


@CHAPTER.row(
    "figure-1",
    "figure 1",
    Kind.FIGURE,
    "The cut of [a, b] for a = 0, b = 1, steps = 4.",
    Standing.HOLDS,
    corrected="For a other than 0 the printed points i (b - a)/steps do not cut [a, b]; a + i (b - a)/steps do.",
)
def figure(e: Evidence, a: float = 0.0, b: float = 1.0, steps: int = 4) -> None:
    printed = np.arange(1, steps + 1) * (b - a) / steps
    design = HistogramDesign(epsilon=9.0, low=a, high=b, steps=steps, quantiles=(Fraction(1, 2),), edge="right")
    grid = design.searches([])[0].values
    equal = bool(np.allclose(printed, a + np.arange(1, steps + 1) * (b - a) / steps))
    e.claim(
        f"the printed points {', '.join(f'{p:g}' for p in printed[:8])} cut [{a:g}, {b:g}] into {steps} equal parts",
        equal,
    )
    e.corrected(
        f"the points a + i (b - a)/steps do: the last is {grid[-1]:g}",
        close(float(grid[-1]), b) and bool(np.allclose(np.diff(grid, prepend=a), (b - a) / steps)),
    )
    e.picture(ruler(a, b, steps))


def ruler(a: float, b: float, steps: int, width: int = 72) -> str:
    """Draw [a, b] cut into bins: a line with marks, and the grid points below it.

    >>> print(ruler(0.0, 1.0, 4, width=40))
    |---------|---------|---------|---------|
    0         0.25      0.5       0.75      1
    """
    shown = min(steps, 12)
    places = [round(i * width / shown) for i in range(shown + 1)]
    line = "".join("|" if i in places else "-" for i in range(width + 1))
    labels = [" "] * (width + 12)
    for i, place in enumerate(places):
        text = f"{a + (b - a) * i / shown:.4g}"
        if i in (0, shown) or all(c == " " for c in labels[max(0, place - 1) : place + len(text) + 1]):
            labels[place : place + len(text)] = text
    note = "" if shown == steps else f"\n({shown} of {steps} bins are drawn)"
    return f"{line}\n{''.join(labels).rstrip()}{note}"


@CHAPTER.row(
    "theorem-2.2.1.1",
    "theorem 2.2.1.1",
    Kind.THEOREM,
    "HistogramMethod is epsilon-differentially private.",
    Standing.HOLDS,
    corrected=(
        "3/4 epsilon under substitution, since one record moves all counts the same way, and epsilon/2 if records"
        " come and go, steps fixed."
    ),
)
def privacy(e: Evidence, epsilon: float = 9.0) -> None:
    design = HistogramDesign(epsilon=epsilon, low=0.0, high=1.0, steps=40)
    bound = design.epsilon_bound(Relation.SUBSTITUTE)
    e.claim(f"proved for substitution: {bound:.6g} of epsilon = {epsilon:g}", bound <= epsilon)
    median = HistogramDesign(epsilon=epsilon / 9.0, low=0.0, high=1.0, steps=40, quantiles=(Fraction(1, 2),))
    data = [0.999] + [0.0] * 60
    moved = [0.0] * 61
    pair = exact.epsilon(median.law(data), median.law(moved))
    share = median.epsilon_bound(Relation.SUBSTITUTE)
    e.claim(f"one decile on a pair of 61 records: {pair:.6f} of epsilon/9 = {epsilon / 9:.4g}", pair <= epsilon / 9.0)
    e.corrected(
        f"at most {share:.6g} for one decile, and this pair reaches {pair / share:.1%} of it",
        pair <= share * (1 + 1e-9),
    )
    added = design.epsilon_bound(Relation.ADD_REMOVE)
    e.corrected(f"addition and removal: {added:.6g}", close(added, epsilon / 2.0))


@CHAPTER.row(
    "complexity-histogram",
    "section 2.2.2",
    Kind.COMPLEXITY,
    "HistogramMethod takes O(nk) operations for n records and k steps.",
    Standing.LOOSE,
    corrected=(
        "O(n log n + 9k): sort once, and count by binary search. With the list that is never emptied the printed code"
        " takes 45nk."
    ),
)
def complexity(e: Evidence) -> None:
    points = [(n, k) for n in (20, 40, 80) for k in (10, 20, 40)]
    costs = [growth.printed_histogram_comparisons(n, k) for n, k in points]
    exponents = growth.fitted_exponents(points, costs)
    e.claim(
        f"comparisons of the printed code, counted: exponents {exponents[0]:.3f} of n and {exponents[1]:.3f} of k,"
        f" {costs[-1] / (80 * 40):g} nk",
        max(exponents) <= 1.0 + 1e-9,
    )
    bug = growth.printed_histogram_comparisons(80, 40, cleared=False)
    e.fact(f"as printed, with queries that are never emptied: {bug / (80 * 40):g} nk")
    n, k = 1_000_000, 10_000
    fast = growth.sorting_comparisons(20_000) / (20_000 * math.log2(20_000)) * n * math.log2(n) + 9 * k * math.log2(n)
    e.loose(
        f"at n = 10^6, k = 10^4 sorting first takes about {fast:.3g} comparisons instead of 9nk = {9.0 * n * k:.3g}",
        9.0 * n * k / fast,
    )


@CHAPTER.row(
    "squared-error",
    "section 2.2.3: root mean squared error",
    Kind.REMARK,
    "Announces the root mean squared error as measure of accuracy; no theorem of the report or the slides is about it.",
    Standing.NO_CONTENT,
    corrected="sqrt E(A - d)^2 has a bound by two order statistics, and its exact value is computed.",
)
def squared(e: Evidence, n: int = 1000, epsilon: float = 1.0) -> None:
    steps = math.ceil(1.5 * n / math.log(n))
    law = histogram_law(HistogramSetting(n=n, steps=steps, quantile=Fraction(1, 2), epsilon=epsilon))
    e.fact(
        f"median of {n} uniform records, epsilon = {epsilon:g} for nine deciles: root mean squared error"
        f" {law.root_mean_squared_error():.4f}, mean error {law.mean_error():.4f}"
    )
    for variant in ("corrected-72", "corrected-36"):
        e.correction("squared-error", variant, epsilon=10.0)


@CHAPTER.row(
    "target-sample",
    "section 2.2.3, first target",
    Kind.REMARK,
    "The deciles of the sample as target: 'the calculations were difficult', and none are given.",
    Standing.NO_CONTENT,
    corrected="E|A - X_(r)| <= (r_+ - r_-)/(n + 1) + 1/k + beta for uniform records.",
)
def target_sample(e: Evidence, n: int = 100, epsilon: float = 200.0) -> None:
    e.correction("sample-decile", "corrected-36", n=n, steps=20, epsilon=epsilon)


@CHAPTER.row(
    "target-law",
    "section 2.2.3, second target",
    Kind.REMARK,
    "The deciles of the law as target: the calculations are 'slightly simpler', and both choices make sense.",
    Standing.HOLDS,
)
def target_law(e: Evidence, n: int = 100, epsilon: float = 90.0) -> None:
    setting = HistogramSetting(n=n, steps=40, quantile=Fraction(1, 2), epsilon=epsilon)
    of_law = histogram_law(setting).mean_error()
    rng = np.random.default_rng(0)
    of_sample = float(np.mean([histogram_law_for_data(rng.random(n), setting).mean_error() for _ in range(60)]))
    e.claim(
        f"the targets differ: mean error {of_law:.4f} against the law, about {of_sample:.4f} against the sample,"
        " which has no sampling error",
        of_sample < of_law,
    )
