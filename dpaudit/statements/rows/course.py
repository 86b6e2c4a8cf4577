"""Course notes: the Laplace mechanism and the proof of its privacy."""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate

from dpaudit import exact, neighbours
from dpaudit.sensitivity import check_sensitivity
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close, reference

CHAPTER = Chapter("course notes")


@CHAPTER.row(
    "l1-sensitivity",
    "definition 1.1",
    Kind.DEFINITION,
    "Delta f = max over ||x - y||_1 = 1 of ||f(x) - f(y)||_1, databases as histograms (one record more or less).",
    Standing.HOLDS,
    corrected="The formula is garbled in print. Under substitution the sensitivity of a histogram is 2.",
)
def l1(e: Evidence) -> None:
    from hypothesis import strategies as st

    def histogram(rows: list[int]) -> list[int]:
        return [rows.count(value) for value in range(3)]

    records = st.integers(0, 2)
    added = check_sensitivity(histogram, 1.0, neighbours.add_remove(records, max_size=4), norm="l1", examples=80)
    e.claim(
        f"a histogram has sensitivity 1 if records come and go: largest change {added.largest:g}",
        close(added.largest, 1.0),
    )
    moved = check_sensitivity(
        histogram, 1.0, neighbours.substitute(records, min_size=1, max_size=4), norm="l1", examples=80
    )
    e.corrected(f"under substitution it is 2: largest change {moved.largest:g}", close(moved.largest, 2.0))


@CHAPTER.row(
    "laplace-law",
    "definition 1.2; slides, footnote of background 2/4",
    Kind.DEFINITION,
    "Lap(x | b) = exp(-|x|/b)/(2b).",
    Standing.HOLDS,
    source="course notes; slides",
)
def laplace(e: Evidence, b: float = 1.7) -> None:
    mass = 2.0 * integrate.quad(lambda x: math.exp(-x / b) / (2.0 * b), 0.0, math.inf)[0]
    e.claim(f"the density has mass {mass:.12f}", close(mass, 1.0))
    off = abs(float(np.asarray(exact.Laplace(0.0, b).log_prob([0.9]))[0]) - math.log(math.exp(-0.9 / b) / (2.0 * b)))
    e.claim(f"exact.Laplace has this density: {off:.1e}", off < 1e-12)
    e.theorem("laplace-tail", "printed", scale=b, x=3.0)


@CHAPTER.row(
    "laplace-mechanism",
    "definition 1.3; slides, background 2/4",
    Kind.DEFINITION,
    "M(x) = f(x) + (Y_1, ..., Y_k), Y_i independent Lap(Delta f/epsilon).",
    Standing.HOLDS,
    source="course notes; slides",
)
def mechanism(e: Evidence, epsilon: float = 1.0) -> None:
    release = reference("laplace").LaplaceMechanism(epsilon, sensitivity=2.0)
    draws = np.asarray(release.sample([1.0, 5.0], 40_000, np.random.default_rng(0)))
    spread = np.abs(draws - [1.0, 5.0]).mean(axis=0)
    e.claim(
        f"mean absolute noise {spread[0]:.4f} and {spread[1]:.4f} of Delta f/epsilon = {2.0 / epsilon:g}, 40,000 draws",
        bool(np.allclose(spread, 2.0 / epsilon, rtol=0.03)),
    )
    correlation = float(np.corrcoef((draws - [1.0, 5.0]).T)[0, 1])
    e.claim(f"the coordinates are independent: correlation {correlation:.4f}", abs(correlation) < 0.03)


@CHAPTER.row(
    "laplace-privacy",
    "theorem 1; slides, background 3/4",
    Kind.THEOREM,
    "The Laplace mechanism is (epsilon, 0)-differentially private.",
    Standing.HOLDS,
    corrected="Exactly epsilon. The slides say 'differentially private' and leave epsilon out.",
    source="course notes; slides",
)
def privacy(e: Evidence, epsilon: float = 1.0) -> None:
    release = reference("laplace").LaplaceMechanism(epsilon)
    for move in ([1.0, 0.0], [0.5, 0.5], [0.25, -0.75]):
        found = exact.epsilon(release.law([0.0, 0.0]), release.law(move))
        e.claim(f"answers moved by {move}: epsilon {found:.9f}", found <= epsilon * (1 + 1e-9))
    e.corrected("an l1 distance of 1 costs all of epsilon, however it is spread", close(found, epsilon))


@CHAPTER.row(
    "laplace-proof",
    "proof of theorem 1",
    Kind.PROOF,
    "The ratio of the densities is at most exp(epsilon ||f(x) - f(y)||_1/Delta f) by the triangle inequality.",
    Standing.HOLDS,
)
def proof(e: Evidence, epsilon: float = 1.0) -> None:
    rng = np.random.default_rng(0)
    first, second, at = (rng.normal(0.0, 3.0, (2000, 3)) for _ in range(3))
    log_ratio = epsilon * (np.abs(second - at) - np.abs(first - at)).sum(axis=1)
    bound = epsilon * np.abs(first - second).sum(axis=1)
    e.claim(
        "2000 random points in R^3: the largest excess of the log-ratio over its bound is"
        f" {float((log_ratio - bound).max()):.1e}",
        bool((log_ratio <= bound + 1e-12).all()),
    )


@CHAPTER.row(
    "private-learning",
    "differential privacy and machine learning",
    Kind.REMARK,
    "Learning with differential privacy generalises, and is a form of regularisation; nearly as accurate with nearly"
    " as many examples.",
    Standing.NO_CONTENT,
    corrected=(
        "No quantity is named. A consequence that can be computed: the advantage of a membership test is at most"
        " tanh(epsilon/2)."
    ),
)
def learning(e: Evidence, epsilon: float = 1.0) -> None:
    e.fact(
        "Reason: there is no definition of generalisation, no loss and no number of examples in the text, so nothing"
        " to check."
    )
    law = reference("laplace").LaplaceMechanism(epsilon)
    advantage = exact.total_variation(law.law([0.0]), law.law([1.0]))
    e.corrected(
        f"membership advantage {advantage:.4f} of a Laplace release is at most tanh(epsilon/2) ="
        f" {math.tanh(epsilon / 2):.4f}",
        advantage <= math.tanh(epsilon / 2.0),
    )
