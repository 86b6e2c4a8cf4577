"""Accuracy of AboveThreshold (report, lemma 2.2.1.1): distances from the threshold of wrong answers (docs/theory.md R4, R7).

The algorithm adds Z ~ Lap(2/epsilon) to the threshold T, nu_j ~ Lap(4/epsilon) to each answer f_j, and returns the
first j with f_j + nu_j > T + Z, or "none". Call a run *wrong at alpha* if it returns j with f_j <= T - alpha, or
passes a query with f_i >= T + alpha.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpaudit._util.validation import check_choice, finite_array
from dpaudit.accuracy.bound import Variant
from dpaudit.accuracy.conditions import Real, check, plain
from dpaudit.errors import InvalidArgument
from dpaudit.exact.mechanism_laws.above_threshold import above_threshold_log_pmf

ALPHA_VARIANTS = (Variant.PRINTED, Variant.TIGHT, Variant.QUADRATIC, Variant.RANDOM_INDEX)


def noise_tail(x: ArrayLike, epsilon: ArrayLike) -> Any:
    """tau(x) = P(nu - Z > x) = (2/3) exp(-epsilon x/4) - (1/6) exp(-epsilon x/2) for x >= 0 (docs/theory.md R4).

    The convolution of Lap(4/epsilon) and Lap(2/epsilon): partial fractions of the characteristic function
    1/((1 + b^2 s^2)(1 + c^2 s^2)) give weights b^2/(b^2 - c^2) = 4/3 and -1/3 of the two Laplace tails.

    >>> round(noise_tail(5.0, 1.0), 12)
    0.177322364803
    """
    check(x=x, epsilon=epsilon)
    half = np.exp(-0.25 * np.asarray(epsilon, float) * np.asarray(x, float))
    return plain(half * (4.0 - half) / 6.0)


def alpha(queries: ArrayLike, beta: ArrayLike, epsilon: ArrayLike, variant: Variant = Variant.QUADRATIC) -> Any:
    """Distance to the threshold at which AboveThreshold is wrong with probability at most ``beta``.

    For any m answers: a query at or below T - alpha makes the run wrong only if nu - Z > alpha, one at or above T + alpha only
    if nu - Z <= -alpha, each with probability at most tau(alpha), and no query can do both. So m tau(alpha) <= beta is enough
    (docs/theory.md R4). The variants, in decreasing size:

    * ``printed``: 8 (log m + log(2/beta))/epsilon, the report's (Dwork and Roth 2014), valid and very loose;
    * ``tight``: (4/epsilon) log(2m/(3 beta)), which drops the negative term of tau;
    * ``quadratic``: solves m tau(alpha) = beta, a quadratic in exp(-epsilon alpha/4);
    * ``random-index``: 8 log(2j/beta)/epsilon for the 1-based index j that is returned (m for "none"): pass j as
      ``queries``. Valid as well: sum over j of tau(alpha(j)) is at most 0.382 beta^2.

    Parameters
    ----------
    queries, beta, epsilon : array_like
        Number of queries, failure probability, privacy budget.
    variant : Variant
        The form of the theorem.

    Examples
    --------
    >>> round(alpha(1000, 0.05, 1.0), 6), round(alpha(1000, 0.05, 1.0, Variant.TIGHT), 6)
    (37.992015, 37.99209)
    """
    check_choice(ALPHA_VARIANTS, variant=variant)
    check(queries=queries, beta=beta, epsilon=epsilon)
    m, b, e = (np.asarray(v, float) for v in (queries, beta, epsilon))
    if variant in (Variant.PRINTED, Variant.RANDOM_INDEX):
        return plain(8.0 * (np.log(m) + np.log(2.0 / b)) / e)
    share = b / m
    if variant is Variant.TIGHT:
        _refuse_where(share >= 2.0 / 3.0, "tight", "beta/queries below 2/3", share)
        return plain(4.0 / e * np.log(2.0 / (3.0 * share)))
    _refuse_where(share >= 0.5, "quadratic", "beta/queries below 1/2", share)
    # The textbook root 2 - sqrt(4 - 6 x) cancels for small x; this form of it does not.
    return plain(-4.0 / e * np.log(6.0 * share / (2.0 + np.sqrt(4.0 - 6.0 * share))))


def _refuse_where(bad: Any, variant: str, allowed: str, share: Real) -> None:
    if np.any(bad):
        raise InvalidArgument(
            f"beta/queries={float(np.max(share))!r} leaves no alpha > 0: the {variant} form needs {allowed}. "
            "Take a smaller beta."
        )


def improved_noise_tail(x: ArrayLike, epsilon: ArrayLike) -> Any:
    """P(nu - Z > x) = (2 + x/b)/4 exp(-x/b), b = 2/epsilon, when threshold and queries both get Lap(2/epsilon).

    This noise is epsilon-private for counts that all move the same way, as those of HistogramMethod do under
    substitution (docs/theory.md R5), and for no other queries.
    """
    check(x=x, epsilon=epsilon)
    u = 0.5 * np.asarray(epsilon, float) * np.asarray(x, float)
    return plain(0.25 * (2.0 + u) * np.exp(-u))


def improved_alpha(queries: ArrayLike, beta: ArrayLike, epsilon: ArrayLike) -> Any:
    """Smallest alpha with m (2 + u)/4 exp(-u) <= beta, u = epsilon alpha/2: about half of the ordinary one (docs/theory.md R5).

    With s = 2 + u the equation reads -s exp(-s) = -4 (beta/m) exp(-2), so s = -W_{-1}(-4 (beta/m) exp(-2)).

    Parameters
    ----------
    queries, beta, epsilon : array_like
        Number of queries, failure probability, privacy budget.

    Examples
    --------
    >>> round(improved_alpha(1000, 0.05, 1.0), 4)
    22.1779
    """
    check(queries=queries, beta=beta, epsilon=epsilon)
    share = np.asarray(beta, float) / np.asarray(queries, float)
    _refuse_where(share >= 0.5, "improved", "beta/queries below 1/2", share)
    shifted = -special.lambertw(-4.0 * share * np.exp(-2.0), k=-1).real
    return plain(2.0 / np.asarray(epsilon, float) * (shifted - 2.0))


def all_below_error(queries: int, distance: float, epsilon: float) -> float:
    """Probability that some query is returned if all m lie ``distance`` below the threshold: 1 - E_Z F(distance + Z)^m.

    This is the hardest case of :func:`alpha` in one direction. F = F_{Lap(4/epsilon)}. The integrand is smooth between its
    kinks 0 and -distance, and Gauss-Legendre panels end at both. The range extends 45 scales of the wider noise beyond them;
    that of the narrower noise would miss the tail (docs/theory.md R2).

    Parameters
    ----------
    queries : int
        Number m of queries.
    distance, epsilon : float
        Distance of all answers below the threshold, privacy budget.

    Examples
    --------
    >>> round(all_below_error(10, float(alpha(10, 0.1, 1.0, Variant.TIGHT)), 1.0), 12)
    0.090024574276
    """
    check(queries=queries, x=distance, epsilon=epsilon)
    wide = 4.0 / epsilon
    # Panels of width wide / 2 also resolve the fall of F^m from 1 to 0, near z = wide log m - distance.
    ends = np.array([-distance - 45.0 * wide, -distance, 0.0, 45.0 * wide])
    nodes, weights = panels(ends, 0.5 * wide)
    x = (distance + nodes) / wide
    log_cdf = np.where(x < 0, np.minimum(x, 0.0) - np.log(2.0), np.log1p(-0.5 * np.exp(-np.maximum(x, 0.0))))
    density = 0.25 * epsilon * np.exp(-0.5 * epsilon * np.abs(nodes))
    return float(np.sum(weights * density * -np.expm1(queries * log_cdf)))


def noise_within(queries: int, distance: float, epsilon: float) -> float:
    """P(max_i |nu_i| + |Z| < distance), the left side of inequality (1) in the proof of lemma 2.2.1.1, exactly.

    E[(1 - exp(-epsilon (distance - |Z|)/4))^m; |Z| < distance], integrated over |Z| ~ Exp(epsilon/2) by panels that resolve
    the fall of the power near |Z| = distance.

    Parameters
    ----------
    queries : int
        Number m of queries.
    distance, epsilon : float
        The bound on the noise, privacy budget.

    Examples
    --------
    >>> distance = float(alpha(10, 0.1, 1.0, Variant.PRINTED))
    >>> round(noise_within(10, distance, 1.0), 9)
    0.999500528
    """
    check(queries=queries, x=distance, epsilon=epsilon)
    if distance == 0.0:
        return 0.0
    nodes, weights = panels(np.array([0.0, distance]), min(distance, 1.0 / epsilon))
    each = np.log(-np.expm1(-0.25 * epsilon * (distance - nodes)))
    return float(np.sum(weights * 0.5 * epsilon * np.exp(queries * each - 0.5 * epsilon * nodes)))


def error_probability(
    answers: ArrayLike,
    threshold: float,
    alpha: ArrayLike,
    epsilon: float,
    *,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
) -> float:
    """Exact probability that a run is wrong at ``alpha``, for any answers (docs/theory.md R4, by the law of R2).

    Parameters
    ----------
    answers, threshold, epsilon, threshold_scale, query_scale
        As for :func:`dpaudit.exact.above_threshold_law`.
    alpha : float or array of m + 1 entries
        The distance; an array has one entry for each index that may be returned, and the last for "none".

    Examples
    --------
    >>> from dpaudit.accuracy.bound import Variant
    >>> distance = alpha(10, 0.1, 1.0, Variant.TIGHT)
    >>> round(error_probability([-distance] * 10, 0.0, distance, 1.0), 10)
    0.0900245743
    """
    y = finite_array("answers", answers, ndim=1, empty=False)
    allowed = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (y.size + 1,))
    log_pmf = above_threshold_log_pmf(y, threshold, epsilon, threshold_scale=threshold_scale, query_scale=query_scale)
    highest_before = np.concatenate([[-np.inf], np.maximum.accumulate(y)])
    # A query exactly at distance alpha counts as wrong, also after rounding.
    slack = 1e-12 * np.maximum(1.0, allowed)
    wrong = highest_before >= threshold + allowed - slack
    wrong[:-1] |= y <= threshold - allowed[:-1] + slack[:-1]
    return float(np.exp(log_pmf[wrong]).sum())


def panels(ends: Real, width: float, order: int = 16) -> tuple[Real, Real]:
    """Gauss-Legendre nodes and weights on panels of at most ``width`` that break at every one of ``ends``.

    Parameters
    ----------
    ends : array
        Points at which panels end.
    width : float
        Largest width of a panel.
    order : int
        Number of nodes per panel.
    """
    pieces = [np.linspace(a, b, max(1, math.ceil((b - a) / width)) + 1) for a, b in itertools.pairwise(ends) if b > a]
    edges = np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])
    unit, mass = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = edges[:-1, None] + half * (1.0 + unit)
    return nodes.ravel(), (half * mass).ravel()
