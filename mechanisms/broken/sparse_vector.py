"""The sparse vector techniques of Lyu, Su and Li 2017 that are not private (catalogue rows 11 to 14 and 18).

Each is :class:`mechanisms.sparse_vector.SparseVector` with the noise as it was published; its ``epsilon_exact`` says
what that is worth.
"""

from __future__ import annotations

from ..composition import Composition
from ..sparse_vector import SparseVector


def svt3(*, epsilon: float, threshold: float, hits: int = 1) -> SparseVector:
    """Row 11: a hit releases the very noisy answer that was compared.

    The value bounds the noisy threshold from above, which every miss before it has seen too, so epsilon grows with the
    number of queries: ``queries * epsilon / (2 hits)``, reached as the value goes to minus infinity.

    >>> round(svt3(epsilon=0.1, threshold=1.0).epsilon_exact(10), 12)
    0.5
    """
    return SparseVector(
        epsilon=epsilon,
        threshold=threshold,
        threshold_scale=2.0 / epsilon,
        query_scale=2.0 * hits / epsilon,
        hits=hits,
        release="compared value",
    )


def svt4(*, epsilon: float, threshold: float, hits: int = 1) -> SparseVector:
    """Row 12: a quarter of epsilon for the threshold, three quarters for a query, not divided by the number of hits.

    True epsilon ``(1 + 6 hits)/4 epsilon`` from ``3 hits + 1`` queries or so on: 0.175 for one hit at 0.1.

    >>> round(svt4(epsilon=0.1, threshold=1.0).epsilon_exact(10), 12)
    0.175
    """
    return SparseVector(
        epsilon=epsilon,
        threshold=threshold,
        threshold_scale=4.0 / epsilon,
        query_scale=4.0 / (3.0 * epsilon),
        hits=hits,
    )


def svt5(*, epsilon: float, threshold: float) -> SparseVector:
    """Row 13: no noise on the queries, and no end; epsilon is infinite.

    One noisy threshold decides all comparisons, so the order of two answers shows, and neighbours may swap it.

    >>> svt5(epsilon=0.1, threshold=1.0).epsilon_exact(10)
    inf
    """
    return SparseVector(epsilon=epsilon, threshold=threshold, threshold_scale=2.0 / epsilon, query_scale=0.0, hits=None)


def svt6(*, epsilon: float, threshold: float) -> SparseVector:
    """Row 14: noise on the queries but no end, so every query costs: ``queries * epsilon / 2``.

    The catalogue gives at least 0.420 for ten queries at 0.1, the value on the published patterns; the supremum is 0.5.

    >>> round(svt6(epsilon=0.1, threshold=1.0).epsilon_exact(10), 12)
    0.5
    """
    return SparseVector(
        epsilon=epsilon, threshold=threshold, threshold_scale=2.0 / epsilon, query_scale=2.0 / epsilon, hits=None
    )


def svt34_parallel(*, epsilon: float, threshold: float, hits: int = 2) -> Composition:
    """Row 18: SVT3 and SVT4 on the same answers, side by side: the values of the one, then the indicators of the other.

    For ten answers and two hits the true epsilon lies in [5.5, 5.75] times the nominal one. Above: the sum of the
    parts, 2.5 and 3.25. Below: eight answers far above the threshold move up, two far below move down, the second of
    them last. SVT4 that hits the two tends to 3.25; SVT3 that hits the first of them with a value near plus infinity,
    and then the last of the eight with one near minus infinity, has used nine answers, all moving the right way: 9/4.
    """
    return Composition(
        (
            svt3(epsilon=epsilon, threshold=threshold, hits=hits),
            svt4(epsilon=epsilon, threshold=threshold, hits=hits),
        )
    )


def half_noise_above_threshold(*, epsilon: float, threshold: float) -> SparseVector:
    """AboveThreshold with the noise that suffices for monotone queries, used on queries that are not: 3/2 epsilon.

    >>> half_noise_above_threshold(epsilon=1.0, threshold=0.0).epsilon_exact(5)
    1.5
    """
    return SparseVector(
        epsilon=epsilon, threshold=threshold, threshold_scale=2.0 / epsilon, query_scale=2.0 / epsilon, hits=1
    )
