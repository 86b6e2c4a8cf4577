"""Lecture notes, section 6: randomised response and the definition of differential privacy."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpaudit import exact
from dpaudit.accuracy.bounds import randomised_response as bounds
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close, reference

CHAPTER = Chapter("lecture notes")


@CHAPTER.row(
    "randomised-response",
    "section 6.1",
    Kind.ALGORITHM,
    "Person i sends the true bit with probability a and a uniform bit otherwise.",
    Standing.HOLDS,
    corrected="epsilon = log((1 + a)/(1 - a)), which the notes do not give.",
)
def algorithm(e: Evidence, a: float = 0.5) -> None:
    response = reference("randomised_response").RandomisedResponse.keep_or_uniform(a)
    p = math.exp(float(np.asarray(response.law(1).log_prob([1]))[0]))
    e.claim(f"P(sends 1 given 1) = (1 + a)/2 = {p:.6f}", close(p, (1.0 + a) / 2.0))
    e.corrected(
        f"epsilon = {response.epsilon:.6f}",
        close(response.epsilon, math.log((1.0 + a) / (1.0 - a)))
        and close(exact.epsilon(response.law(0), response.law(1)), response.epsilon),
    )


@CHAPTER.row(
    "eighteen-students",
    "section 6.1, example",
    Kind.EXAMPLE,
    "18 students, 9 answer yes: the estimate of p is 2 * 1/2 - 1/2 = 1/2.",
    Standing.HOLDS,
    corrected="For a = 1/2. The estimate may fall outside [0, 1].",
)
def students(e: Evidence) -> None:
    response = reference("randomised_response").RandomisedResponse.keep_or_uniform(0.5)
    value = float(response.estimate([1] * 9 + [0] * 9)[1])
    e.claim(f"estimate {value:g}", close(value, 0.5))
    law = bounds.estimate_law(18, 0.5, 0.3)
    outside = float(law.probabilities[(law.values < 0.0) | (law.values > 1.0)].sum())
    e.corrected(f"at p = 0.3 it falls outside [0, 1] with probability {outside:.4f}", 0.09 < outside < 0.1)


@CHAPTER.row(
    "role-of-alpha",
    "section 6.1, role of alpha",
    Kind.REMARK,
    "alpha = 0: no utility, full privacy; alpha = 1: full utility, no privacy; a trade-off between.",
    Standing.HOLDS,
    corrected="As numbers: epsilon = log((1+a)/(1-a)) and standard deviation sqrt(q(1-q)/n)/a.",
)
def role(e: Evidence, n: int = 100, p: float = 0.3) -> None:
    rates = (0.01, 0.1, 0.3, 0.5, 0.8, 0.99)
    points = [(float(bounds.epsilon(a)), math.sqrt(float(bounds.variance(n, a, p)))) for a in rates]
    for a, (epsilon, deviation) in zip(rates, points, strict=True):
        e.fact(f"a = {a:g}: epsilon {epsilon:.3f}, standard deviation of the estimate {deviation:.3f}")
    falling = all(x[0] < y[0] and x[1] > y[1] for x, y in itertools.pairwise(points))
    e.claim("epsilon rises and the error falls from each a to the next", falling)
    e.claim(
        f"towards 0 the error grows without bound ({points[0][1]:.1f} at a = 0.01), at 1 epsilon is"
        f" {float(bounds.epsilon(1.0))}",
        points[0][1] > 1.0 and math.isinf(float(bounds.epsilon(1.0))),
    )


@CHAPTER.row(
    "estimator",
    "section 6.1, estimator",
    Kind.LEMMA,
    "p~ = (1/(a n)) sum Y_i - (1 - a)/(2a) estimates p; E[Y_i] = a p + (1 - a)/2.",
    Standing.HOLDS,
)
def estimator(e: Evidence, n: int = 18) -> None:
    worst = max(abs(bounds.estimate_law(n, a, p).mean() - p) for a in (0.1, 0.5, 1.0) for p in (0.0, 0.3, 1.0))
    e.claim(f"it is unbiased at nine settings: largest bias {worst:.1e}", worst < 1e-9)


@CHAPTER.row(
    "response-variance",
    "section 6.1, how accurate",
    Kind.LEMMA,
    "Var[p~] = 1/(a^2 n), by Var[Y_i] <= 1.",
    Standing.FALSE,
    corrected=(
        "q(1-q)/(a^2 n) with q = a p + (1-a)/2; at most 1/(4 a^2 n). As an upper bound the printed value is 4 times"
        " too large."
    ),
    counterexample="n = 18, a = 1/2, p = 0.3: 0.0533 instead of 0.2222.",
)
def variance(e: Evidence, n: int = 18, a: float = 0.5, p: float = 0.3) -> None:
    point = {"n": n, "truth_rate": a, "p": p}
    e.theorem("randomised-response", "printed", **point)
    for variant in ("proof", "corrected", "exact"):
        e.correction("randomised-response", variant, **point)


@CHAPTER.row(
    "must-be-randomised",
    "section 6, remarks on M",
    Kind.REMARK,
    "M must be randomised; differential privacy is a property of the algorithm, not of the data.",
    Standing.HOLDS,
    corrected="Or constant: a function that ignores its data is private for every epsilon.",
)
def randomised(e: Evidence) -> None:
    count = exact.epsilon(exact.Discrete({3: 1.0}), exact.Discrete({4: 1.0}))
    e.claim(f"the plain count on neighbours has epsilon {count}", math.isinf(count))
    constant = exact.epsilon(exact.Discrete({0: 1.0}), exact.Discrete({0: 1.0}))
    e.corrected(f"a constant has epsilon {constant:g}", constant == 0.0)


@CHAPTER.row(
    "neighbours-exactly-one",
    "definition of neighbouring data sets",
    Kind.DEFINITION,
    "X^n ~ X'^n if they differ in exactly one component.",
    Standing.HOLDS,
    corrected="The report says at most one; equal data sets cost nothing, so both give the same privacy.",
)
def exactly_one(e: Evidence) -> None:
    law = reference("laplace").LaplaceMechanism(1.0)
    same, moved = exact.epsilon(law.law([2.0]), law.law([2.0])), exact.epsilon(law.law([2.0]), law.law([3.0]))
    e.claim(
        f"equal data sets have epsilon {same:g}, so the largest over both definitions is the same, {moved:g}",
        same == 0.0 and moved == 1.0,
    )
