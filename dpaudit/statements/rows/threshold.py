"""Report, section 2.1 and lemma 2.2.1.1: AboveThreshold, its privacy and its accuracy."""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate

from dpaudit.accuracy.bound import Variant
from dpaudit.accuracy.bounds import above_threshold as at
from dpaudit.exact.mechanism_laws.above_threshold import (
    above_threshold_log_pmf,
    worst_case_epsilon,
)
from dpaudit.exact.mechanism_laws.threshold_closed_form import above_threshold_closed_form
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close, reference

CHAPTER = Chapter("report")
_FAR = 400.0


def _largest_ratio(answers: list[float], moved: list[float], epsilon: float, outcome: int) -> float:
    """Log-ratio of the probabilities of an outcome on both sides, whichever way it is larger."""
    first, second = (above_threshold_log_pmf(np.array(y), 0.0, epsilon)[outcome] for y in (answers, moved))
    return abs(float(first - second))


@CHAPTER.row(
    "above-threshold",
    "section 2.1, AboveThreshold; slides",
    Kind.ALGORITHM,
    "Returns the index of the first query whose noisy answer exceeds the noisy threshold, and -1 if none does.",
    Standing.HOLDS,
    corrected="The pseudo-code evaluates querie(D), and D is not its argument database.",
    source="report; slides",
)
def algorithm(e: Evidence, epsilon: float = 1.3) -> None:
    answers, threshold = np.array([0.0, 1.0, 3.0, 5.0, 8.0]), 4.0
    law = np.exp(above_threshold_log_pmf(answers, threshold, epsilon))
    closed = np.array([float(p) for p in above_threshold_closed_form(answers, threshold, epsilon)])
    e.claim(
        f"the exact law sums to 1 and agrees with sums of exponentials in 30 digits: {abs(law - closed).max():.1e}",
        abs(law - closed).max() < 1e-12,
    )
    draws = 200_000
    sample = (
        reference("above_threshold").AboveThreshold(epsilon, threshold).sample(answers, draws, np.random.default_rng(0))
    )
    index = np.where(np.asarray(sample) < 0, answers.size, np.asarray(sample, dtype=int))
    counted = np.bincount(index, minlength=law.size) / draws
    off = np.abs(counted - law) / np.sqrt(law * (1.0 - law) / draws)
    e.claim(
        f"a literal run agrees with the law: {draws} draws, largest deviation {off.max():.2f} standard errors",
        off.max() < 5.0,
    )
    e.fact("P(index 0..4, none) = " + ", ".join(f"{p:.6f}" for p in law))


@CHAPTER.row(
    "theorem-2.1.0.1",
    "theorem 2.1.0.1; slides",
    Kind.THEOREM,
    "AboveThreshold is epsilon-differentially private for queries of sensitivity 1.",
    Standing.HOLDS,
    corrected=(
        "Exactly epsilon min(m, 4)/4 for m queries; epsilon max(1, min(m - 1, 3))/4 if all answers move the same way."
    ),
    source="report; slides",
)
def privacy(e: Evidence, epsilon: float = 1.0) -> None:
    far = _FAR / epsilon
    for queries in (1, 2, 3, 4, 6):
        # The worst case of the shift argument: high answers that move up, and a low one that moves down.
        answers = [far] * (queries - 1) + [-far]
        moved = [far + 1.0] * (queries - 1) + [-far - 1.0]
        ratio = _largest_ratio(answers, moved, epsilon, queries - 1)
        supremum = worst_case_epsilon(queries, epsilon)
        e.claim(f"m = {queries}: log-ratio {ratio:.6f} is at most epsilon = {epsilon:g}", ratio <= epsilon * (1 + 1e-9))
        e.corrected(
            f"m = {queries}: the supremum is {supremum:.6g}",
            ratio <= supremum * (1 + 1e-9) and ratio > 0.97 * supremum,
        )
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(100):
        y = rng.normal(0.0, 3.0 / epsilon, 5)
        shifted = y + rng.choice([-1.0, 0.0, 1.0], 5)
        a, b = (above_threshold_log_pmf(v, 0.0, epsilon) for v in (y, shifted))
        worst = max(worst, float(np.abs(a - b).max()))
    e.claim(f"100 random pairs of five answers: largest log-ratio {worst:.4f}", worst <= epsilon)


@CHAPTER.row(
    "theorem-2.1.0.1-proof",
    "proof of theorem 2.1.0.1",
    Kind.PROOF,
    "Fixes the noise of earlier queries, changes variables twice, and bounds densities by the triangle inequality.",
    Standing.FALSE,
    corrected=(
        "Shift z by 1: l(z+1) >= e^{-eps/2} l(z), F(T+z+1-y'_i) >= F(T+z-y_i), 1-F(T+z+1-y'_k) >="
        " e^{-eps/2}(1-F(T+z-y_k)); -1 drops the last factor."
    ),
    counterexample=(
        "Seven slips: A' on D; no e^eps in the goal; |g_k - g'_k| = 1; missing minus signs; T-hat centred at 0; k ="
        " 0; the answer -1."
    ),
)
def privacy_proof(e: Evidence, epsilon: float = 1.0) -> None:
    y, moved = np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.0, 3.0])
    p, q = (np.exp(above_threshold_log_pmf(v, 1.0, epsilon)) for v in (y, moved))
    same = np.exp(above_threshold_log_pmf(y, 1.0, epsilon))
    e.claim(
        "(i) A' is AboveThreshold(D, ...), as printed: then P(A = k) = P(A' = k), and D' plays no part; on D' they"
        f" differ by {abs(p - q).max():.3f}",
        close(abs(p - same).max(), 0.0) and abs(p - q).max() < 1e-12,
    )
    e.claim(
        f"(ii) the goal P(A = k) <= P(A' = k) without exp(epsilon): {p[1]:.4f} against {q[1]:.4f} for k = 1",
        bool((p <= q).all()),
    )
    g, g_moved = max(0.0, 1.0), max(1.0, 0.0)
    e.claim(
        f"(iii) 1 = |g_k - g'_k|: for answers (0, 1) and (1, 0) without noise it is {abs(g - g_moved):g}",
        abs(g - g_moved) == 1.0,
    )
    mass = integrate.quad(lambda t: math.exp(abs(t) * epsilon / 2.0), -10.0, 10.0)[0]
    e.claim(
        f"(iv) exp(|t| epsilon/2) is the density of the threshold noise: over [-10, 10] alone it has mass {mass:.0f}",
        mass <= 1.0,
    )
    centred = np.exp(above_threshold_log_pmf(y, 0.0, epsilon))
    e.claim(
        f"(v) T-hat has the density l_2, centred at 0: at T = 1 P(A = 0) is {p[0]:.4f}, with T-hat around 0"
        f" {centred[0]:.4f}",
        close(p[0], centred[0]),
    )
    ratio = abs(
        float(np.diff([above_threshold_log_pmf(np.array([v]), 0.0, epsilon)[0] for v in (-_FAR, -_FAR - 1.0)])[0])
    )
    e.claim(
        "(vi) k = 0: g_0 is the maximum of an empty set, and g_0 - g'_0 is a number",
        math.isfinite(-math.inf - (-math.inf)),
    )
    e.corrected(
        f"k = 0 done apart: the log-ratio is at most epsilon/4 (found {ratio:.4f})", ratio <= epsilon / 4 * (1 + 1e-9)
    )
    e.claim(
        f"(vii) the answers k >= 0 are all answers: their probabilities sum to {p[:-1].sum():.4f}",
        close(float(p[:-1].sum()), 1.0),
    )
    none = _largest_ratio([_FAR] * 3, [_FAR + 1.0] * 3, epsilon, 3)
    e.corrected(f"the answer -1 has log-ratio at most epsilon/2 (found {none:.4f})", none <= epsilon / 2 * (1 + 1e-9))


@CHAPTER.row(
    "lemma-2.2.1.1",
    "lemma 2.2.1.1",
    Kind.LEMMA,
    "AboveThreshold is (alpha, beta)-accurate, alpha = 8 (log k + log(2/beta))/epsilon, k the random answer.",
    Standing.VACUOUS,
    corrected=(
        "For m fixed queries and their true answers (4/epsilon) log(2m/(3 beta)) is enough; log k is undefined for k"
        " = 0 and -1."
    ),
    counterexample=(
        "The event is about f_i + nu_i, which the run itself compared with T + Z: it follows from |Z| < alpha,"
        " whatever the f_i are."
    ),
)
def accuracy(e: Evidence, queries: int = 1000, beta: float = 0.05, epsilon: float = 1.0) -> None:
    alpha = float(at.alpha(queries, beta, epsilon, Variant.PRINTED))
    implied = -math.expm1(-0.5 * epsilon * alpha)
    wrong = [at.error_probability([offset * alpha] * 3, 0.0, 0.5 * alpha, epsilon) for offset in (-0.5, 0.5)]
    e.vacuous(
        f"|Z| < alpha alone has probability {implied:.12f} >= 1 - beta = {1 - beta:g}, and implies the event for all"
        f" answers: also for answers that are wrong by alpha/2 with probability {max(wrong):.2g}",
        implied >= 1.0 - beta,
    )
    for variant in ("printed", "tight", "quadratic"):
        e.correction("above-threshold", variant, queries=queries, beta=beta, epsilon=epsilon)
    e.correction("above-threshold", "random-index", queries=min(queries, 200), beta=beta, epsilon=epsilon)


@CHAPTER.row(
    "inequality-1",
    "proof of lemma 2.2.1.1, inequality (1)",
    Kind.PROOF,
    "P(max |nu_i| + |T - T-hat| < alpha) >= 1 - beta, which implies the lemma for the true answers.",
    Standing.LOOSE,
    corrected=(
        "For a fixed number m of queries. The threshold gets beta/2 of the failure probability and uses (beta/(2m))^2."
    ),
)
def inequality(e: Evidence, queries: int = 10, beta: float = 0.05, epsilon: float = 1.0) -> None:
    e.theorem("above-threshold-noise", "printed", queries=queries, beta=beta, epsilon=epsilon)


@CHAPTER.row(
    "epsilon-ninth",
    "every proof that uses lemma 2.2.1.1; slides, all theorems",
    Kind.PROOF,
    "Inside HistogramMethod a call of AboveThreshold is wrong by alpha = 8 (log k + log(2/beta))/epsilon with"
    " probability at most beta.",
    Standing.FALSE,
    corrected="A call has epsilon/9: alpha = 72 log(2k/beta)/epsilon, or 36 log(2k/(3 beta))/epsilon.",
    counterexample=(
        "k = 10, beta = 0.1, epsilon = 1: all counts alpha below the threshold, wrong with probability 0.775."
    ),
    source="report; slides",
)
def ninth(e: Evidence, steps: int = 10, beta: float = 0.1, epsilon: float = 1.0) -> None:
    e.theorem("threshold-in-histogram", "printed", steps=steps, beta=beta, epsilon=epsilon)
    for variant in ("corrected-72", "corrected-36"):
        e.correction("threshold-in-histogram", variant, steps=steps, beta=beta, epsilon=epsilon)
