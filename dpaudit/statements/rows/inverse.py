"""Report, section 3, and the same on the slides: the inverse sensitivity mechanism."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from dpaudit import exact
from dpaudit.accuracy.bounds import inverse_sensitivity as bounds
from dpaudit.exact.mechanism_laws.inverse_sensitivity import (
    mean_absolute_error,
    quantile_law,
    quantile_length,
    quantile_segments,
)
from dpaudit.statements.sample_monotone import check_sample_monotone
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close, reference

CHAPTER = Chapter("report; slides")


@CHAPTER.row(
    "length",
    "definition 3.1.0.1; slides, presentation 1/2",
    Kind.DEFINITION,
    "len_f(x, t): the least number of records to change so that f becomes t.",
    Standing.HOLDS,
    corrected="The infimum runs over data sets of the same size. For x_(r): max(0, #{x < t} - r + 1, r - #{x <= t}).",
)
def length(e: Evidence) -> None:
    points, size, rank = range(5), 4, 2
    worst = 0
    for x in itertools.combinations_with_replacement(points, size):
        for t in points:
            brute = min(
                sum(a != b for a, b in zip(x, other, strict=True))
                for other in itertools.product(points, repeat=size)
                if sorted(other)[rank - 1] == t
            )
            worst = max(worst, abs(brute - int(quantile_length(x, rank, [t])[0])))
    e.claim(
        f"the closed form for x_(2) of four records equals brute force on all 350 pairs of data and value: {worst}"
        " apart",
        worst == 0,
    )


@CHAPTER.row(
    "inverse-sensitivity",
    "definition 3.1.0.2; slides, presentation 1/2",
    Kind.DEFINITION,
    "The mechanism with density proportional to exp(-len(x, t) epsilon/2) with respect to a measure mu on T.",
    Standing.HOLDS,
    corrected=(
        "mu must give the weights a finite mass: for quantiles on the whole line they have none, as lengths are at"
        " most n."
    ),
)
def mechanism(e: Evidence, epsilon: float = 1.0) -> None:
    data = [0.1, 0.2, 0.35, 0.5, 0.9]
    law = reference("inverse_sensitivity").InverseSensitivityQuantile(epsilon, 0.0, 1.0).law(data)
    outputs = np.linspace(0.005, 0.995, 100)
    weights = -0.5 * epsilon * quantile_length(data, 3, outputs)
    ratio = np.asarray(law.log_prob(outputs)) - weights
    e.claim(
        f"log density plus epsilon len/2 is constant on a grid: spread {np.ptp(ratio):.1e}",
        float(np.ptp(ratio)) < 1e-9,
    )
    masses = [(2.0 * reach) * np.exp(-0.5 * epsilon * 5) for reach in (1e2, 1e4, 1e6)]
    e.corrected(
        "on [-R, R] the mass of the outer gaps alone is "
        + ", ".join(f"{m:.3g}" for m in masses)
        + " for R = 1e2, 1e4, 1e6: it grows without bound",
        masses[2] > 1e3 * masses[0],
    )


@CHAPTER.row(
    "smooth-length",
    "definitions 3.1.0.3 and 3.1.0.4; slides, presentation 2/2",
    Kind.DEFINITION,
    "The rho-smooth length: the least length within rho of t, N a norm on T; and the mechanism with it.",
    Standing.HOLDS,
    corrected="N(s, t) has two arguments: a distance, not a norm.",
)
def smooth(e: Evidence, rho: float = 0.07) -> None:
    data = [0.1, 0.25, 0.3, 0.55, 0.8]
    grid = np.linspace(0.0, 1.0, 2001)
    plain = quantile_length(data, 3, grid)
    step = grid[1] - grid[0]
    reach = int(rho / step)
    brute = np.array([plain[max(0, j - reach) : j + reach + 1].min() for j in range(grid.size)])
    # The infimum over [t - rho, t + rho] includes the data point itself, which lies between grid points.
    fast = quantile_length(data, 3, grid, rho=rho)
    share = float(np.mean(brute == fast))
    e.claim(
        f"the closed form equals a minimum over a grid at {share:.1%} of 2001 points, and is never above it",
        share > 0.99 and bool((fast <= brute).all()),
    )


@CHAPTER.row(
    "only-at-the-value",
    "remark after definition 3.1.0.2",
    Kind.REMARK,
    "len is zero at f(x) only, so the normaliser may be small and far values likely; smoothing helps.",
    Standing.HOLDS,
    corrected=(
        "For quantiles smoothing also costs: rho is added to the error. Without it a bound by the spacings is as good."
    ),
)
def remark(e: Evidence, epsilon: float = 1.0) -> None:
    data = [0.5] * 20
    plain, wide = (
        mean_absolute_error(quantile_law(data, 10, epsilon=epsilon, low=0.0, high=1.0, rho=rho), 0.5)
        for rho in (0.0, 0.02)
    )
    e.claim(f"20 equal records: mean error {plain:.4f} without smoothing, {wide:.4f} with rho = 0.02", wide < plain)
    spread = (np.arange(200) + 0.5) / 200
    plain, wide = (
        mean_absolute_error(quantile_law(spread, 100, epsilon=epsilon, low=0.0, high=1.0, rho=rho), spread[99])
        for rho in (0.0, 0.02)
    )
    e.fact(f"200 spread records: {plain:.4f} without, {wide:.4f} with")


@CHAPTER.row(
    "theorem-3.1.0.1",
    "theorem 3.1.0.1",
    Kind.THEOREM,
    "The rho-smooth inverse sensitivity mechanism is epsilon-differentially private.",
    Standing.HOLDS,
    corrected=(
        "epsilon is approached for inner ranks without smoothing; epsilon/2 for the smallest and largest record; less"
        " than epsilon with smoothing."
    ),
    source="report",
)
def privacy(e: Evidence, epsilon: float = 1.0) -> None:
    module = reference("inverse_sensitivity")
    tight = 0.0
    for tau in (1e-2, 1e-5, 1e-8):
        x = tau * np.array([0.1, 0.3, 0.5, 0.7, 0.9])
        y = np.append(x[1:], 1.0)
        law = module.InverseSensitivityQuantile(epsilon, 0.0, 1.0)
        tight = max(tight, exact.epsilon(law.law(x), law.law(y)))
    e.claim(
        f"five records close together, one moved to the end: epsilon {tight:.9f} of {epsilon:g}",
        tight <= epsilon * (1 + 1e-9),
    )
    extreme = module.InverseSensitivityQuantile(epsilon, 0.0, 1.0, 0.01)
    half = exact.epsilon(extreme.law([0.0, 1e-6, 0.5]), extreme.law([1e-6, 0.5, 1.0]))
    e.corrected(f"the smallest record: {half:.6f}, at most epsilon/2", half <= extreme.epsilon_exact(3) * (1 + 1e-9))
    smooth = module.InverseSensitivityQuantile(epsilon, 0.0, 1.0, smoothing=0.25)
    one = exact.epsilon(smooth.law([0.0]), smooth.law([0.5]))
    e.corrected(
        f"one record, rho = 0.25: exactly {smooth.epsilon_exact(1):.4f} (found {one:.4f})",
        close(one, smooth.epsilon_exact(1)),
    )
    rng = np.random.default_rng(0)
    worst = max(
        exact.epsilon(smooth.law(row), smooth.law(np.append(row[1:], rng.random()))) for row in rng.random((60, 4))
    )
    e.claim(
        f"60 random pairs of four records with smoothing: largest epsilon {worst:.4f}",
        worst <= smooth.epsilon_bound(4),
    )


@CHAPTER.row(
    "theorem-3.1.0.1-proof",
    "proof of theorem 3.1.0.1",
    Kind.PROOF,
    "Numerator and normaliser change by exp(epsilon/2) each; the third line has len(x, s) in the normaliser, where x'"
    " belongs.",
    Standing.FALSE,
    corrected="len(x', s) in the third line; then the last equality is true.",
    counterexample="With len(x, s) the last step turns Z(x) into Z(x'): two records show that they differ.",
    source="report",
)
def privacy_proof(e: Evidence, epsilon: float = 1.0) -> None:
    z = [
        float(np.exp(-0.5 * epsilon * s.lengths) @ np.diff(s.edges))
        for s in (quantile_segments(x, 2, low=0.0, high=1.0) for x in ([0.4, 0.5, 0.6], [0.4, 0.5, 1.0]))
    ]
    e.claim(
        f"int exp(-len(x, s) epsilon/2) = int exp(-len(x', s) epsilon/2): {z[0]:.4f} and {z[1]:.4f}",
        close(z[0], z[1]),
    )
    e.corrected(
        f"they differ by a factor of at most exp(epsilon/2): log-ratio {abs(np.log(z[0] / z[1])):.4f}",
        abs(np.log(z[0] / z[1])) <= epsilon / 2,
    )


@CHAPTER.row(
    "quasi-optimality",
    "section 3.2",
    Kind.PAGE,
    "The heading 'quasi-optimality' with a definition and no statement.",
    Standing.NO_CONTENT,
    corrected=(
        "The error over the two-point lower bound of every private mechanism, per data set: a number, computed here."
    ),
    source="report",
)
def optimality(e: Evidence, n: int = 101, epsilon: float = 1.0) -> None:
    for name, data in (
        ("spread", (np.arange(n) + 0.5) / n),
        ("near 0", ((np.arange(n) + 0.5) / n) ** 5),
        ("equal", np.full(n, 0.5)),
    ):
        ratio, error, lower = optimality_ratio(data, epsilon)
        e.fact(
            f"{n} records, {name}: mean error {error:.5f}, no private mechanism below {lower:.3g} on both data sets:"
            f" ratio {ratio:.3g}"
        )
        e.corrected(f"the larger error of the two data sets is at least the lower bound ({name})", ratio >= 1.0)


def optimality_ratio(data: np.ndarray, epsilon: float) -> tuple[float, float, float]:
    """Largest mean error over x and its worst neighbour at distance k, over the two-point lower bound, k chosen for the latter.

    The lower bound is max over k of omega(k)/(1 + exp(k epsilon)), omega(k) the reach of k replacements, and holds for the larger
    error of the pair (x, x'), where x' is x with k records moved so that the median moves by omega(k).
    """
    x = np.sort(np.asarray(data, dtype=float))
    r = bounds.median_rank(x.size)
    best = (0.0, 1)
    for k in range(1, min(r, x.size - r + 1) + 1):
        lower = float(bounds.two_point_lower(bounds.reach(x, r, k), k, epsilon))
        best = max(best, (lower, k))
    lower, k = best
    padded = np.concatenate([[0.0], x, [1.0]])
    up = padded[min(r + k, x.size + 1)] - padded[r] >= padded[r] - padded[max(r - k, 0)]
    # Move the k records at or below the median to the far end, or those at or above it.
    moved = x.copy()
    if up:
        moved[r - k : r] = 1.0
    else:
        moved[r - 1 : r - 1 + k] = 0.0
    moved = np.sort(moved)
    errors = [
        mean_absolute_error(quantile_law(rows, r, epsilon=epsilon, low=0.0, high=1.0), float(rows[r - 1]))
        for rows in (x, moved)
    ]
    return max(errors) / lower, max(errors), lower


@CHAPTER.row(
    "sample-monotone",
    "definition 3.2.0.1",
    Kind.DEFINITION,
    "f is sample-monotone if len(x, s) <= len(x, t) whenever s lies between f(x) and t.",
    Standing.HOLDS,
    corrected=(
        "Quantiles and the mean are; the mode is not. On a finite set of records s and t run over the values that f"
        " takes."
    ),
    source="report",
)
def sample_monotone(e: Evidence) -> None:
    median = check_sample_monotone(lambda x: float(sorted(x)[1]), [0, 1, 2, 3], 3)
    e.claim(f"the second smallest of three records: {median}", not median.counterexample_found)
    lowest = check_sample_monotone(lambda x: float(min(x)), [0, 1, 2, 3], 4)
    e.claim(f"the smallest of four: {lowest}", not lowest.counterexample_found)
    mean = check_sample_monotone(lambda x: sum(x) / len(x), [0.0, 0.5, 1.0, 1.5, 2.0], 3)
    e.claim(f"the mean of three records on an even grid: {mean}", not mean.counterexample_found)
    mode = check_sample_monotone(_mode, [0, 1, 2], 3)
    e.corrected(f"the mode is not: {mode}", mode.counterexample_found)


def _mode(x: Sequence[int]) -> float:
    """Return the most frequent value, the smallest of several."""
    return float(max(sorted(set(x)), key=x.count))
