r"""Noise that is bounded with probability one, for up to ``k`` adaptive queries.

One draw has density ``exp(-g(x / R)) / (R Z)`` on ``|x| < R`` and none outside, for one of three potentials on (-1,
1)::

    DE   g(x) = exp(1 / (1 - x^2))        p1   g(x) = 1 / (1 - x^2)        p2   g(x) = 1 / (1 - x^2)^2

The density is that of Dagan and Kur 2022 (A bounded-noise mechanism for differential privacy) and of its first
author's published code; the notes quote its error ``O(M sqrt(k log(1/delta)) / epsilon)``. The interactive algorithm
("algorithm 2 of section E") is reconstructed; the original text was not available. Neither is its constant used: the
radius is calibrated numerically, and the argument below makes that calibration exact.

(a) ``g`` is convex, so the privacy loss ``g(x - s) - g(x)`` of the pair ``f, f(. - s)`` falls with ``x``, and the
    hockey-stick divergence is ``sup_t F(t) - exp(epsilon) F(t - s)``, which grows with the shift ``s``: the worst query
    moves by exactly the sensitivity ``M``.
(b) Every round is then dominated by that one pair, whatever was answered before, and dominating pairs compose
    adaptively (Zhu, Dong and Wang 2022). So ``delta_k`` is the divergence of the k-fold product, reached by k queries
    that all move.
(c) The supports differ: each query has an infinite loss with probability ``F(-R + M)``. Hence delta = 0 is impossible.

What it is good for: every error is below R with certainty. What it costs: for few queries far more than Gaussian
noise, and for a single one truncated Laplace noise (:func:`truncated_laplace_half_width`) is 5.6 times narrower at
epsilon = 1, delta = 1e-5. The benefit appears from about a thousand queries. Outputs are doubles; what their lowest
bits reveal (Mironov 2012) is not covered.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from dpaudit import exact
from dpaudit._util.validation import (
    check_choice,
    check_count,
    check_finite,
    check_generator,
    check_open_unit,
    check_positive,
)
from dpaudit.claims import ApproxDP, Relation, gaussian_delta
from dpaudit.errors import InvalidArgument, MissingDependency

from .._common import Floats, answer_of, check_draw
from ..gaussian import analytic_scale
from .density import FAMILIES, noise_law, one_query_delta, shape, unit_cdf, unit_noise


def composed_delta(
    *, family: str, radius: float, sensitivity: float, epsilon: float, queries: int, step: float | None = None
) -> float:
    """``delta(epsilon)`` of ``queries`` adaptive queries: exact for one, a tight upper bound for more.

    More than one query needs dp-accounting: the one-query profile is put on the grid ``j * step`` by connect-the-dots
    (Doroshenko et al. 2022, never below the truth up to float error), composed, and read off. The default step is
    ``epsilon / (200 sqrt(queries))``, or a fiftieth of the standard deviation of one loss if that is larger; it costs
    about one part in ten thousand of the radius. Convolution in doubles resolves deltas down to about 1e-13.

    Parameters
    ----------
    family : str
        Name of the density: ``DE``, ``p1`` or ``p2``.
    radius, sensitivity : float
        Largest noise, and largest change of an answer.
    epsilon : float
        Where the profile is read.
    queries : int
        Number of adaptive queries.
    step : float or None
        Width of the grid of losses; None: the default.

    Examples
    --------
    >>> value = composed_delta(family="DE", radius=64.0, sensitivity=1.0, epsilon=1.0, queries=1)
    >>> round(value, 11)
    9.99979e-06
    """
    check_positive(radius=radius, sensitivity=sensitivity, epsilon=epsilon)
    check_count(queries=queries)
    check_choice(FAMILIES, family=family)
    shift = sensitivity / radius
    if shift >= 2.0:
        return 1.0
    if queries == 1:
        return float(one_query_delta(family, epsilon, shift))
    if step is None:
        step = max(epsilon / (200.0 * math.sqrt(queries)), _loss_std(family, shift) / 50.0)
    check_positive(step=step)
    # The size of the result is known from below by one query, and roughly by the Gaussian limit.
    gaussian = float(gaussian_delta(epsilon, _limit_mu(family, shift, queries)))
    expected = max(float(one_query_delta(family, epsilon, shift)), gaussian, 1e-30)
    losses = _composed_losses(family, shift, queries, step, ceiling=epsilon + 60.0, negligible=1e-8 * expected)
    return float(losses.get_delta_for_epsilon(epsilon))


def calibrate_radius(
    *, family: str = "DE", epsilon: float, delta: float, queries: int = 1, sensitivity: float = 1.0
) -> float:
    """Smallest radius that keeps (epsilon, delta)-DP over ``queries`` adaptive queries; linear in the sensitivity.

    One query is solved in closed form up to a root; more need dp-accounting (``pip install dpaudit[accounting]``).

    Parameters
    ----------
    family : str
        Name of the density: ``DE``, ``p1`` or ``p2``.
    epsilon, delta : float
        The claim that all queries together keep.
    queries : int
        Number of adaptive queries.
    sensitivity : float
        Largest change of an answer.

    Examples
    --------
    >>> round(calibrate_radius(epsilon=1.0, delta=1e-5), 4)
    63.9998
    """
    check_choice(FAMILIES, family=family)
    check_positive(epsilon=epsilon, sensitivity=sensitivity)
    check_open_unit(
        delta=delta, hint="Bounded noise cannot reach delta = 0: the supports differ." if delta == 0 else ""
    )
    check_count(queries=queries)
    if queries > 1 and delta < 1e-12:
        raise InvalidArgument(
            f"delta={delta!r} must be at least 1e-12 for more than one query: the composition is computed in doubles."
        )
    return sensitivity * _unit_radius(family, float(epsilon), float(delta), int(queries))


def composed_epsilon(*, family: str, radius: float, sensitivity: float, delta: float, queries: int) -> float:
    """Smallest epsilon at which ``queries`` adaptive queries have that delta; infinite where no epsilon does.

    Parameters
    ----------
    family : str
        Name of the density: ``DE``, ``p1`` or ``p2``.
    radius, sensitivity : float
        Largest noise, and largest change of an answer.
    delta : float
        Where the profile is inverted.
    queries : int
        Number of adaptive queries.

    Examples
    --------
    >>> round(composed_epsilon(family="DE", radius=64.0, sensitivity=1.0, delta=1e-5, queries=1), 5)
    1.0
    """
    check_open_unit(delta=delta)
    check_positive(radius=radius, sensitivity=sensitivity)
    check_count(queries=queries)
    check_choice(FAMILIES, family=family)
    shift = sensitivity / radius
    if shift >= 2.0:
        return math.inf
    if queries > 1:
        mu = _limit_mu(family, shift, queries)
        # Twice the epsilon of the Gaussian limit, and room: what lies beyond counts as infinite.
        ceiling = mu**2 + 2.0 * mu * math.sqrt(-2.0 * math.log(delta)) + 60.0
        losses = _composed_losses(
            family, shift, queries, _loss_std(family, shift) / 50.0, ceiling=ceiling, negligible=1e-8 * delta
        )
        return float(losses.get_epsilon_for_delta(delta))
    if float(one_query_delta(family, 0.0, shift)) <= delta:
        return 0.0
    if float(unit_cdf(family, shift)) >= delta:
        return math.inf
    high = 1.0
    while float(one_query_delta(family, high, shift)) > delta:
        high *= 2.0
    return float(brentq(lambda epsilon: float(one_query_delta(family, epsilon, shift)) / delta - 1.0, 0.0, high))


def gaussian_std(*, epsilon: float, delta: float, queries: int = 1, sensitivity: float = 1.0) -> float:
    """Smallest standard deviation of Gaussian noise for the same queries, for comparison.

    For many queries the losses become Gaussian with ``mu = sqrt(k I) M / R``, so R tends to ``sqrt(I)`` times this.

    Parameters
    ----------
    epsilon, delta : float
        The claim that all queries together keep.
    queries : int
        Number of adaptive queries.
    sensitivity : float
        Largest change of an answer.

    Examples
    --------
    >>> round(gaussian_std(epsilon=1.0, delta=1e-5), 4)
    3.7306
    """
    check_count(queries=queries)
    return analytic_scale(epsilon, delta, sensitivity * math.sqrt(queries))


def truncated_laplace_half_width(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Half-width of truncated Laplace noise for one query: ``(M/epsilon) log(1 + (exp(epsilon) - 1) / (2 delta))``.

    Parameters
    ----------
    epsilon, delta : float
        The claim that the query keeps.
    sensitivity : float
        Largest change of the answer.

    Examples
    --------
    >>> round(truncated_laplace_half_width(epsilon=1.0, delta=1e-5), 3)
    11.361
    """
    check_positive(epsilon=epsilon, sensitivity=sensitivity)
    check_open_unit(delta=delta)
    return sensitivity / epsilon * float(np.logaddexp(0.0, epsilon + math.log(-math.expm1(-epsilon) / (2.0 * delta))))


@dataclass(frozen=True, slots=True)
class BoundedNoise:
    """Answers to at most ``queries`` queries of sensitivity ``sensitivity``, each with an error below ``radius``.

    The data are the answers: a number, or a vector of at most ``queries`` of them. A radius that is given is checked
    against the claim; without one, the smallest is calibrated.

    >>> mechanism = BoundedNoise(epsilon=1.0, delta=1e-5)
    >>> outputs = mechanism.sample(10.0, 1000, np.random.default_rng(0))
    >>> bool(np.abs(outputs - 10.0).max() < mechanism.radius)
    True
    >>> mechanism.claim
    ApproxDP(epsilon=1.0, delta=1e-05, relation='answers')
    """

    epsilon: float
    delta: float
    queries: int = 1
    sensitivity: float = 1.0
    family: str = "DE"
    radius: float = field(default=math.nan)
    relation: ClassVar[Relation] = Relation.ANSWERS

    def __post_init__(self) -> None:
        if isinstance(self.radius, float) and math.isnan(self.radius):
            radius = calibrate_radius(
                family=self.family,
                epsilon=self.epsilon,
                delta=self.delta,
                queries=self.queries,
                sensitivity=self.sensitivity,
            )
            object.__setattr__(self, "radius", radius)
            return
        check_open_unit(delta=self.delta)
        reached = composed_delta(
            family=self.family,
            radius=self.radius,
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            queries=self.queries,
        )
        if reached > self.delta:
            raise InvalidArgument(
                f"radius={self.radius!r} gives delta={reached:.6g} at epsilon={self.epsilon!r} over {self.queries} "
                f"queries, above delta={self.delta!r}. Leave the radius out to have it calibrated."
            )

    @property
    def claim(self) -> ApproxDP:
        """(epsilon, delta)-DP, where each answer moves by at most the sensitivity."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    @property
    def std(self) -> float:
        """Standard deviation of one answer."""
        return self.radius * shape(self.family).std

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """``size`` releases: shape ``(size,)`` for a single answer, ``(size, m)`` for a vector of ``m``."""
        check_draw(size, rng)
        return add_noise(self._answers(data), self.family, self.radius, size, rng)

    def law(self, data: ArrayLike) -> exact.Law:
        """Exact law of a release; for several answers the product of theirs, which :func:`composed_delta` compares."""
        return release_law(self._answers(data), lambda answer: noise_law(self.family, answer, self.radius))

    def session(self, data: Any, rng: np.random.Generator) -> Session:
        """Open an interactive session on ``data``: queries may depend on earlier answers."""
        check_generator(rng=rng)
        return Session(self, data, rng)

    def _answers(self, data: ArrayLike) -> Floats:
        answers = answer_of(None, data)
        if answers.size > self.queries:
            raise InvalidArgument(
                f"data holds {answers.size} answers, but the budget is queries={self.queries}. Calibrate for more."
            )
        return answers


def add_noise(
    answers: Floats, family: str, radius: float, size: int, rng: np.random.Generator, clip: float = 1.0
) -> Floats:
    """Return ``size`` copies of the answers with fresh noise, which may be clipped to that share of its radius."""
    noise = unit_noise(family, size * answers.size, rng).reshape((size, *answers.shape))
    return answers + radius * (noise if clip == 1.0 else np.clip(noise, -clip, clip))


def release_law(answers: Floats, law: Callable[[float], exact.Law]) -> exact.Law:
    """Law of one answer, or the product of those of several."""
    laws = [law(float(answer)) for answer in answers.reshape(-1)]
    return laws[0] if answers.ndim == 0 else exact.Product(laws)


class Session:
    """One interactive use of :class:`BoundedNoise`: at most ``queries`` answers, then it refuses.

    Nothing is truncated and nothing stops because of the data. Asking fewer queries only improves the guarantee.

    >>> session = BoundedNoise(epsilon=1.0, delta=1e-5).session([3, 4], np.random.default_rng(0))
    >>> abs(session.ask(len) - 2) < 64
    True
    >>> session.remaining
    0
    """

    __slots__ = ("_data", "_mechanism", "_remaining", "_rng")

    def __init__(self, mechanism: BoundedNoise, data: Any, rng: np.random.Generator) -> None:
        self._mechanism, self._data, self._rng = mechanism, data, rng
        self._remaining = mechanism.queries

    @property
    def remaining(self) -> int:
        """The number of queries that may still be asked."""
        return self._remaining

    def ask(self, query: Callable[[Any], float], sensitivity: float | None = None) -> float:
        """Answer ``query(data)`` with fresh noise.

        ``sensitivity`` is the query's own; it must hold whatever was answered before, and must not exceed the one the
        radius was calibrated for.
        """
        mechanism = self._mechanism
        declared = mechanism.sensitivity if sensitivity is None else sensitivity
        check_positive(sensitivity=declared)
        if declared > mechanism.sensitivity:
            raise InvalidArgument(
                f"sensitivity={declared!r} exceeds {mechanism.sensitivity!r}, for which the radius was calibrated. "
                "Divide the query by the ratio, or calibrate for the larger sensitivity."
            )
        if self._remaining == 0:
            raise InvalidArgument(
                f"queries={mechanism.queries} are answered; the budget is spent. Calibrate for more from the start."
            )
        self._remaining -= 1  # before the query runs: one that fails has been asked
        answer = query(self._data)
        check_finite(answer=answer)
        return float(answer) + mechanism.radius * float(unit_noise(mechanism.family, 1, self._rng)[0])


def _loss_std(family: str, shift: float) -> float:
    """Standard deviation of the loss of one query, to first order in the shift."""
    return math.sqrt(shape(family).fisher) * shift


def _limit_mu(family: str, shift: float, queries: int) -> float:
    return math.sqrt(queries) * _loss_std(family, shift)


def _composed_losses(family: str, shift: float, queries: int, step: float, *, ceiling: float, negligible: float) -> Any:
    """The privacy loss distribution of all queries, as dp-accounting has it.

    A loss beyond the grid counts as infinite, which is pessimistic; the grid ends where that adds ``negligible`` to
    delta, or at ``ceiling``.
    """
    pmf = _pld_pmf()
    grid = np.geomspace(ceiling * 1e-6, ceiling, 2000)
    tail = one_query_delta(family, grid, shift) - float(unit_cdf(family, shift))
    enough = np.flatnonzero(tail <= negligible / queries)
    largest = math.ceil((float(grid[enough[0]]) if enough.size else ceiling) / step)
    positive = one_query_delta(family, np.arange(largest + 1) * step, shift)
    # H at -e from H at e, for a pair that looks the same in both orders: H(-e) = 1 - exp(-e) (1 - H(e)).
    negative = (1.0 - np.exp(-np.arange(1, largest + 1) * step) * (1.0 - positive[1:]))[::-1]
    deltas = np.concatenate([negative, positive])
    one = pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -largest, largest, deltas)
    return one.self_compose(queries)


@functools.lru_cache(maxsize=256)
def _unit_radius(family: str, epsilon: float, delta: float, queries: int) -> float:
    def excess(log_radius: float) -> float:
        value = composed_delta(
            family=family, radius=math.exp(log_radius), sensitivity=1.0, epsilon=epsilon, queries=queries
        )
        return math.log(max(value, 1e-300)) - math.log(delta)

    guess = math.log(math.sqrt(shape(family).fisher) * gaussian_std(epsilon=epsilon, delta=delta, queries=queries))
    low, high = guess, guess
    while excess(low) <= 0.0:
        low -= 0.5
    while excess(high) > 0.0:
        high += 0.5
    tolerance = 1e-12 if queries == 1 else 1e-7
    log_radius = float(brentq(excess, low, high, xtol=tolerance, rtol=tolerance))
    while excess(log_radius) > 0.0:  # the root finder may stop on the wrong side of the promise
        log_radius += tolerance
    return math.exp(log_radius)


def _pld_pmf() -> Any:
    try:
        from dp_accounting.pld import pld_pmf
    except ImportError as error:
        raise MissingDependency(
            "The radius for more than one query is calibrated with dp-accounting. "
            "Install it with `pip install dpaudit[accounting]`."
        ) from error
    return pld_pmf
