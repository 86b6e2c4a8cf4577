"""Report, section 1, and the same definitions on the slides: neighbours, differential privacy, sensitivity."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpaudit import exact, neighbours
from dpaudit._util.hypothesis_bridge import smallest
from dpaudit.sensitivity import check_sensitivity
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close, reference

CHAPTER = Chapter("report")


@CHAPTER.row(
    "report-introduction",
    "sections 1, 1.1 and 1.3",
    Kind.PAGE,
    "Introduction, presentation of the problem and contribution: each is the word TODO.",
    Standing.NO_CONTENT,
)
def introduction(e: Evidence) -> None:
    e.fact("Reason: the three sections hold nothing but the word TODO, so there is nothing to compute.")


@CHAPTER.row(
    "neighbours",
    "definition 1.2.0.1; slides, background 1/4",
    Kind.DEFINITION,
    "Data sets are neighbours if they differ in at most one entry (Hamming distance at most 1).",
    Standing.HOLDS,
    corrected=(
        "Written ||x - y||_1 in the report, which for histograms (course notes) is another relation: a substitution"
        " is two steps."
    ),
    source="report; slides",
)
def neighbouring(e: Evidence) -> None:
    from hypothesis import strategies as st

    rows = neighbours.substitute(st.integers(0, 3), min_size=1, max_size=5)
    apart = smallest(
        rows.strategy,
        lambda pair: len(pair[0]) != len(pair[1]) or sum(a != b for a, b in zip(*pair, strict=True)) > 1,
        examples=200,
        seed=0,
    )
    e.claim(f"neighbours.substitute makes pairs of Hamming distance at most 1 (counterexample: {apart})", apart is None)
    table = reference("noisy_histogram").NoisyHistogram(1.0, ("a", "b"))
    added = exact.epsilon(table.law(["a"]), table.law(["a", "b"]))
    substituted = exact.epsilon(table.law(["a", "a"]), table.law(["a", "b"]))
    e.corrected(
        f"Lap(1) on each count of a histogram: epsilon {added:.6g} if one record is added, {substituted:.6g} if one"
        " is substituted",
        close(added, 1.0) and close(substituted, 2.0),
    )


@CHAPTER.row(
    "differential-privacy",
    "definition 1.2.0.2; slides, background 1/4; lecture notes",
    Kind.DEFINITION,
    "(epsilon, delta)-privacy: P(M(x) in S) <= exp(epsilon) P(M(y) in S) + delta for all measurable S and neighbours"
    " x, y.",
    Standing.HOLDS,
    corrected="S runs over sets: for delta > 0 single outcomes are not enough.",
    source="report; slides; lecture notes",
)
def differential_privacy(e: Evidence, epsilon: float = 0.3) -> None:
    rng = np.random.default_rng(0)
    worst, singles = 0.0, 0.0
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
        subsets = [list(s) for size in range(7) for s in itertools.combinations(range(6), size)]
        brute = max(
            max(p[s].sum() - math.exp(epsilon) * q[s].sum(), q[s].sum() - math.exp(epsilon) * p[s].sum())
            for s in subsets
        )
        P, Q = (exact.Discrete(dict(enumerate(law))) for law in (p, q))
        found = exact.delta(P, Q, epsilon)
        worst = max(worst, abs(found - brute))
        singles = max(singles, found / max((np.maximum(p, q) - math.exp(epsilon) * np.minimum(p, q)).max(), 1e-300))
    e.claim(
        f"delta(epsilon) is the largest excess over all 64 sets, 20 pairs of laws: largest difference {worst:.1e}",
        worst < 1e-12,
    )
    e.corrected(f"single outcomes understate delta by up to a factor of {singles:.3g}", singles > 1.5)


@CHAPTER.row(
    "sensitivity",
    "slides, background 2/4",
    Kind.DEFINITION,
    "Sensitivity: the supremum of N(f(x), f(y)) over neighbours, (T, N) a 'measured' space.",
    Standing.HOLDS,
    corrected="N must be a metric; a measure measures sets.",
    source="slides",
)
def sensitivity(e: Evidence) -> None:
    from hypothesis import strategies as st

    pairs = neighbours.substitute(st.sampled_from([0.0, 0.5, 1.0]), min_size=3, max_size=3)
    found = check_sensitivity(lambda x: sorted(x)[1], 1.0, pairs, norm=lambda a, b: abs(a - b), examples=60)
    e.claim(
        "the median of three numbers in [0, 1] has sensitivity 1 for the metric |a - b|: largest change"
        f" {found.largest:g}",
        close(found.largest, 1.0),
    )
    root = check_sensitivity(lambda x: sorted(x)[1], 1.0, pairs, norm=lambda a, b: abs(a - b) ** 0.5, examples=60)
    e.fact(f"another metric, sqrt|a - b|, gives another sensitivity on the same pairs: {root.largest:g}")
