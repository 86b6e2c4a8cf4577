"""The exact output law of AboveThreshold, and how private it is.

AboveThreshold (report, section 2.1, after Dwork and Roth 2014) draws one threshold noise Z ~ Lap(2/epsilon) and one
noise nu_j ~ Lap(4/epsilon) for each query, and returns the first j with ``answers[j] + nu_j > threshold + Z``, or -1.
Given Z the queries are independent, so with F the distribution function of nu and l the density of Z (docs/theory.md R2)

    P(A = j)  = int l(z) prod_{i<j} F(T + z - y_i) (1 - F(T + z - y_j)) dz,
    P(A = -1) = int l(z) prod_i     F(T + z - y_i) dz.

The integrals are computed in two ways that share no code: a quadrature in logs (``threshold_quadrature``: fast, any number
of queries), and the closed form between breakpoints in decimal arithmetic (``threshold_closed_form``: slow, few queries, as
many digits as asked for).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import check_count, check_finite, check_positive, finite_array
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.form import Array
from dpaudit.exact.laws.discrete import Discrete
from dpaudit.exact.mechanism_laws.threshold_quadrature import log_outcomes

NONE_ABOVE = -1
"""The output of AboveThreshold when no query is found above the threshold."""

_FARTHEST = 1e15
"""Largest distance of an answer from the threshold, in noise scales; floats farther out cannot resolve the noise."""


def noise_scales(
    epsilon: float, threshold_scale: float | None = None, query_scale: float | None = None
) -> tuple[float, float]:
    """Return the scales of threshold noise and query noise; the defaults are ``2/epsilon`` and ``4/epsilon``.

    >>> noise_scales(0.5)
    (4.0, 8.0)
    """
    check_positive(epsilon=epsilon)
    b1 = 2.0 / epsilon if threshold_scale is None else threshold_scale
    b2 = 4.0 / epsilon if query_scale is None else query_scale
    check_positive(threshold_scale=b1, query_scale=b2)
    return float(b1), float(b2)


def above_threshold_law(
    answers: ArrayLike,
    threshold: float,
    epsilon: float,
    *,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
) -> Discrete:
    """Exact law of the index that AboveThreshold returns; the outcomes are 0, ..., m-1 and, last, -1.

    Parameters
    ----------
    answers : array_like of shape (m,)
        True answers of the queries, in the order in which they are asked.
    threshold : float
        The threshold before noise.
    epsilon : float
        Sets the noise scales ``2/epsilon`` (threshold) and ``4/epsilon`` (queries).
    threshold_scale, query_scale : float, optional
        Other noise scales.

    Examples
    --------
    >>> law = above_threshold_law([0, 1, 3, 5, 8], threshold=4, epsilon=1.3)
    >>> law.outcomes
    (0, 1, 2, 3, 4, -1)
    >>> np.exp(law.log_probabilities).round(12).tolist()
    [0.16930893232, 0.168979745194, 0.22441413528, 0.222914384477, 0.154191930792, 0.060190871937]
    """
    log_probabilities = above_threshold_log_pmf(
        answers, threshold, epsilon, threshold_scale=threshold_scale, query_scale=query_scale
    )
    return Discrete.from_log([*range(log_probabilities.size - 1), NONE_ABOVE], np.minimum(log_probabilities, 0.0))


def above_threshold_log_pmf(
    answers: ArrayLike,
    threshold: float,
    epsilon: float,
    *,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
) -> Array:
    """Log-probabilities of the outcomes 0, ..., m-1 and -1, each accurate relative to itself.

    The integrand of every outcome is log-concave in z (l, F and 1 - F are), and analytic between the breakpoints 0 and
    ``answers - threshold``. Cells split at all of them, and again until no outcome's integrand varies by more than
    exp(18) on a cell that matters to it; Gauss-Legendre nodes inside; stretches farther than 45 query scales from every
    breakpoint are log-linear and integrated in closed form, so the tails are too. Everything is summed in logs: an
    outcome of probability 1e-200 is as accurate as one of probability 1/2 (1e-11 relative up to thousands of queries).

    The cost is the number of queries times the number of nodes, without those that cannot matter.

    Parameters
    ----------
    answers, threshold, epsilon, threshold_scale, query_scale
        As for :func:`above_threshold_law`.

    Examples
    --------
    >>> above_threshold_log_pmf([-200.0, 1000.0], threshold=0.0, epsilon=1.0)[[0, -1]].round(6).tolist()
    [-50.405465, -250.405465]
    """
    y = finite_array("answers", answers, ndim=1, empty=False)
    check_finite(threshold=threshold)
    b1, b2 = noise_scales(epsilon, threshold_scale, query_scale)
    with np.errstate(over="ignore"):
        u = (y - threshold) / b2
    if not (np.abs(u) < _FARTHEST).all():
        raise InvalidArgument(
            f"answers holds {float(y[np.argmax(np.abs(u))])!r}, more than {_FARTHEST:g} noise scales from "
            f"threshold={threshold!r}; floats that far cannot resolve the noise. Clip the answers."
        )
    log_probabilities = log_outcomes(u, b2 / b1)
    total = float(np.exp(log_probabilities).sum())
    if not abs(total - 1.0) < 1e-9:
        raise LawError(f"AboveThreshold with scales {b1} and {b2} on {y.size} answers adds up to {total!r}, not 1.")
    return log_probabilities


def worst_case_epsilon(
    queries: int,
    epsilon: float,
    *,
    monotone: bool = False,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
) -> float:
    """Exact privacy parameter of AboveThreshold: the supremum of the log-ratio over all neighbouring answers.

    Each answer moves by at most 1. With the scales 2/epsilon and 4/epsilon the parameter is ``epsilon min(m, 4) / 4``, and
    for monotone moves epsilon/4 (m=1), epsilon/2 (m=2, 3), 3 epsilon/4 (m>=4) (docs/theory.md R3).

    Proof in short. Shift z by s in P'(A = j): the density of Z pays s/b1, the j factors before pay (1-s)/b2 each, the
    last pays (1+s)/b2 (monotone: s/b2, or 1/b2 where the answers move down). The cost is linear in s, so the least is at
    an end: min((j+1)/b2, 1/b1 + 2/b2), monotone min(j/b2, 1/b1 + 1/b2); with j = 0 a shift the other way gives
    min(1/b1, 1/b2). The outcome -1 costs min(m/b2, 1/b1). Reached as the answers before j go to plus infinity and the
    j-th to minus infinity.

    Parameters
    ----------
    queries : int
        Number m of queries.
    epsilon : float
        Sets the noise scales, as for :func:`above_threshold_law`.
    monotone : bool
        All answers move in the same direction.
    threshold_scale, query_scale : float, optional
        Other noise scales.

    Examples
    --------
    >>> [worst_case_epsilon(m, 1.0) for m in (1, 2, 3, 4, 9)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    >>> [worst_case_epsilon(m, 1.0, monotone=True) for m in (1, 2, 3, 4, 9)]
    [0.25, 0.5, 0.5, 0.75, 0.75]
    """
    check_count(queries=queries)
    b1, b2 = noise_scales(epsilon, threshold_scale, query_scale)
    first = min(1.0 / b1, 1.0 / b2)
    none = min(queries / b2, 1.0 / b1)
    if queries == 1:
        return max(first, none)
    before = queries - 1
    if monotone:
        return max(1.0 / b2, min(before / b2, 1.0 / b1 + 1.0 / b2), none)
    return max(min(queries / b2, 1.0 / b1 + 2.0 / b2), none)
