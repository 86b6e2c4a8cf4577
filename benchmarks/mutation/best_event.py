r"""The best event on a pair of known laws, and the samples it needs.

A one-event test of a claim (epsilon, delta) draws n outputs on either side, counts X ~ Bin(n, p) and Y ~ Bin(n, q) of them
in an event S with ``p = P(S)``, ``q = Q(S)``, and rejects ``p <= e^epsilon q + delta``. Which event is best, and what n?

*Event.* Any measure of a test's success here grows with p, falls with q and is quasi-convex along the trade-off curve,
so its best value is at a vertex of that curve: by Neyman and Pearson the events ``{log p(x)/q(x) > t}``. The line is cut
into cells on which the log-ratio is (nearly) constant; cells are sorted by it and unions of the first k are tried.

*Samples.* Let (p*, q*) be the point of the boundary ``p* = e^epsilon q* + delta`` that is nearest to (p, q) in relative
entropy. Any valid test has level alpha there, so none has more power at (p, q) than the likelihood ratio test of (p, q)
against (p*, q*), which rejects for large ``a X - b Y``. :func:`samples_needed` is the smallest n at which that test, its
level and its power computed exactly from the binomial laws, has the power asked for: a lower bound for every one-event
test, so that no mutant is excused for lack of samples which some test would have had enough of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from benchmarks.mutation.branches import Branches
from dpaudit import exact
from dpaudit.exact.form import Continuous, Form, Lattice, form_of

Array: TypeAlias = NDArray[np.float64]

_ALL: Array = np.ones(1)  # one cell that holds everything
_CELLS = 1600  # of one density pair, four fifths of them where all but a thousandth of the mass is
_CELLS_IN_PRODUCT = 300
_MOST_CELLS = 3000  # of a product, before cells of nearly equal log-ratio are merged
_MERGED = 2e-3  # width in log-ratio of a merged cell
_CORE, _NEGLIGIBLE = -7.0, -23.0  # log-mass beyond the core, and of what is left out of a tail (1e-10)
_CONSIDERED = 60  # vertices of the trade-off curve that are looked at closely
_TINY = 1e-300
_EXACT_UP_TO = 2e7  # larger numbers of samples come from the normal approximation


@dataclass(frozen=True, slots=True)
class BestEvent:
    """An event of probability ``p`` on one side and ``q`` on the other, and the samples of both sides that it needs."""

    p: float
    q: float
    samples: float


def best_event(
    P: Any, Q: Any, epsilon: float, delta: float, *, alpha: float = 1e-6, power: float = 0.99
) -> BestEvent | None:
    """The event that needs the fewest samples to refute (epsilon, delta) on this pair of laws; None if none ever does."""
    return best_union(*cells(P, Q), epsilon, delta, alpha=alpha, power=power)


def best_union(
    first: Array,
    second: Array,
    epsilon: float,
    delta: float,
    *,
    alpha: float = 1e-6,
    power: float = 0.99,
    precise: bool = True,
) -> BestEvent | None:
    """The best event made of cells, given their masses under both laws.

    With ``precise=False`` the number of samples is that at which the expected log-likelihood ratio, less its normal
    fluctuation, reaches ``log(1/alpha)``: enough to compare pairs, and never far below the exact one.
    """
    found: BestEvent | None = None
    for p_mass, q_mass in ((first, second), (second, first)):
        p, q = trade_off(p_mass, q_mass)
        excess = p - math.exp(epsilon) * q - delta
        with np.errstate(divide="ignore", invalid="ignore"):
            score = excess / np.sqrt(p * (1.0 - p) + math.exp(2.0 * epsilon) * q * (1.0 - q))
        score = np.where(excess > 1e-12, np.nan_to_num(score, nan=np.inf, posinf=np.inf), -np.inf)
        order = np.argsort(-score)[:_CONSIDERED]
        order = order[score[order] > 0.0]
        if not order.size:
            continue
        rough = rough_samples(p[order], q[order], epsilon, delta, alpha=alpha, power=power)
        best = int(np.argmin(rough))
        if found is None or rough[best] < found.samples:
            found = BestEvent(float(p[order[best]]), float(q[order[best]]), float(rough[best]))
    if found is None or not precise or found.samples > _EXACT_UP_TO:
        return found
    samples = samples_needed(found.p, found.q, epsilon, delta, alpha=alpha, power=power)
    return BestEvent(found.p, found.q, float(samples))


def trade_off(p_mass: Array, q_mass: Array) -> tuple[Array, Array]:
    """P and Q of the unions of the k cells with the largest log-ratios, for every k at which the ratio changes."""
    order = np.argsort(-_log_ratio(p_mass, q_mass), kind="stable")
    return np.minimum(np.cumsum(p_mass[order]), 1.0), np.minimum(np.cumsum(q_mass[order]), 1.0)


def nearest_null(p: ArrayLike, q: ArrayLike, epsilon: float, delta: float) -> tuple[Array, Array]:
    """The (p*, q*) with ``p* = e^epsilon q* + delta`` nearest to (p, q), ``kl(p, p*) + kl(q, q*)`` being smallest.

    That is convex in q*, with its minimum between q and ``(p - delta) e^-epsilon``: bisection of the derivative.
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    ratio = math.exp(epsilon)
    low, high = q.copy(), np.minimum((p - delta) / ratio, (1.0 - delta) / ratio)
    for _ in range(200):
        middle = np.where((low > 0.0) & (high > 4.0 * low), np.sqrt(np.maximum(low, _TINY) * high), (low + high) / 2.0)
        null = np.minimum(ratio * middle + delta, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = ratio * (null - p) / (null * (1.0 - null)) + (middle - q) / (middle * (1.0 - middle))
        falling = np.nan_to_num(slope, nan=1.0) < 0.0
        low, high = np.where(falling, middle, low), np.where(falling, high, middle)
    q_null = (low + high) / 2.0
    return np.minimum(ratio * q_null + delta, 1.0), q_null


def rough_samples(p: Array, q: Array, epsilon: float, delta: float, *, alpha: float, power: float) -> Array:
    """Samples of both sides after which ``n G - z s sqrt(n) = log(1/alpha)``; G, s: mean and deviation of one log-ratio."""
    p_null, q_null = nearest_null(p, q, epsilon, delta)
    gain_p, spread_p = _log_ratio_moments(p, p_null)
    gain_q, spread_q = _log_ratio_moments(q, q_null)
    gain, spread = gain_p + gain_q, np.sqrt(spread_p + spread_q)
    fluctuation = float(special.ndtri(power)) * spread
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        root = (fluctuation + np.sqrt(fluctuation**2 - 4.0 * gain * math.log(alpha))) / (2.0 * gain)
        return np.asarray(2.0 * np.nan_to_num(root, nan=np.inf, posinf=np.inf) ** 2)


def samples_needed(
    p: float, q: float, epsilon: float, delta: float = 0.0, *, alpha: float = 1e-6, power: float = 0.99
) -> int:
    """Samples of both sides with which the best test of one event has that power at that level (module docstring)."""
    p_null, q_null = (float(x) for x in nearest_null(p, q, epsilon, delta))
    weights = _log_odds(p, p_null), -_log_odds(q, q_null)

    def level(n: int) -> float:
        """Level of the test that has the power asked for with n outputs of each side."""
        spread = math.sqrt(n * (weights[0] ** 2 * p * (1.0 - p) + weights[1] ** 2 * q * (1.0 - q)))
        middle = n * (weights[0] * p - weights[1] * q)
        low, high = middle - 6.0 * spread - 8.0 * sum(weights), middle + weights[0]
        for _ in range(40):
            cut = (low + high) / 2.0
            low, high = (cut, high) if _tail(n, p, q, weights, cut) >= power else (low, cut)
        return _tail(n, p_null, q_null, weights, low)

    rough = rough_samples(np.array([p]), np.array([q]), epsilon, delta, alpha=alpha, power=power)[0]
    low, high = 1, max(2, math.ceil(float(rough) / 2.0))
    while level(high) > alpha:  # the rough number is nearly always enough
        low, high = high, 2 * high
    while high - low > max(1, high // 500):
        middle = (low + high) // 2
        low, high = (low, middle) if level(middle) <= alpha else (middle, high)
    return 2 * high


def _tail(n: int, p: float, q: float, weights: tuple[float, float], cut: float) -> float:
    """P(a X - b Y >= cut) for independent X ~ Bin(n, p), Y ~ Bin(n, q)."""
    mean, spread = n * q, math.sqrt(n * q * (1.0 - q))
    y = np.arange(max(0, math.floor(mean - 9.0 * spread - 30.0)), min(n, math.ceil(mean + 9.0 * spread + 60.0)) + 1)
    with np.errstate(divide="ignore"):
        log_mass = special.gammaln(n + 1.0) - special.gammaln(y + 1.0) - special.gammaln(n - y + 1.0)
        log_mass += special.xlogy(y, q) + special.xlog1py(n - y, -q)
    needed = cut + weights[1] * y
    # A weight of zero: X is as likely under both, and Y alone decides.
    least = np.ceil(needed / weights[0]) if weights[0] > 1e-12 else np.where(needed <= 0.0, 0.0, n + 1.0)
    above = np.where(least <= 0.0, 1.0, np.where(least > n, 0.0, special.bdtrc(np.clip(least - 1.0, 0, n), n, p)))
    return float(np.exp(log_mass) @ above)


def _log_odds(p: float, null: float) -> float:
    """Change of the log-likelihood ratio by one more output in the event."""
    return math.log(max(p, _TINY) / max(null, _TINY)) - math.log(max(1.0 - p, _TINY) / max(1.0 - null, _TINY))


def _log_ratio_moments(p: Array, null: Array) -> tuple[Array, Array]:
    """Mean and variance, for one Bernoulli(p) output, of its log-likelihood ratio against Bernoulli(null)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = np.log(np.maximum(p, _TINY) / np.maximum(null, _TINY)), np.log1p(-p) - np.log1p(-null)
    outside = np.where(p >= 1.0, 0.0, outside)
    inside = np.where(p <= 0.0, 0.0, inside)
    return p * inside + (1.0 - p) * outside, p * (1.0 - p) * (inside - outside) ** 2


def cells(P: Any, Q: Any) -> tuple[Array, Array]:
    """Masses under both laws of cells on each of which their log-ratio is nearly constant.

    Independent coordinates multiply; cells of nearly equal log-ratio are merged, which costs an event at most that much.
    """
    if isinstance(P, exact.Product) and isinstance(Q, exact.Product):
        if len(P.laws) != len(Q.laws):
            return np.array([1.0, 0.0]), np.array([0.0, 1.0])
        differing = [(first, second) for first, second in zip(P.laws, Q.laws, strict=True) if first != second]
        count = _CELLS if len(differing) == 1 else _CELLS_IN_PRODUCT
        p, q = np.ones(1), np.ones(1)
        for first, second in differing:
            more_p, more_q = _form_cells(form_of(first), form_of(second), count)
            p, q = _merged(np.outer(p, more_p).ravel(), np.outer(q, more_q).ravel())
        return p, q
    if isinstance(P, Branches) and isinstance(Q, Branches):
        parts = [
            [math.exp(log_p) * first, math.exp(log_q) * second]
            for (_, log_p, numbers), (_, log_q, others) in P.together(Q)
            for first, second in [cells(exact.Product(numbers), exact.Product(others)) if numbers else (_ALL, _ALL)]
        ]
        masses = [np.concatenate(side) for side in zip(*parts, strict=True)]
        return masses[0], masses[1]
    return _form_cells(form_of(P), form_of(Q), _CELLS)


def _form_cells(P: Form, Q: Form, count: int) -> tuple[Array, Array]:
    points = {**dict.fromkeys(P.atoms), **dict.fromkeys(Q.atoms)}
    for form in (P, Q):
        if form.lattice is not None:
            points |= dict.fromkeys(_grid_points(form.lattice))
    masses = [np.exp([form.log_point_mass(x) for x in points]) for form in (P, Q)]
    parts = [form.continuous for form in (P, Q)]
    known = [part for part in parts if part is not None]
    if known:
        edges = _edges(known, count)
        for place, part in enumerate(parts):
            mass = np.zeros(edges.size - 1) if part is None else np.exp(part.log_mass(edges[:-1], edges[1:]))
            masses[place] = np.concatenate([masses[place], mass])
    return masses[0], masses[1]


def _grid_points(lattice: Lattice) -> list[float]:
    first, last = lattice.first, lattice.last
    if first is None:
        first = int(_reach(min(lattice.landmarks), -1, lambda k: lattice.log_range(-math.inf, float(k)), _NEGLIGIBLE))
    if last is None:
        last = int(_reach(max(lattice.landmarks), 1, lambda k: lattice.log_range(float(k), math.inf), _NEGLIGIBLE))
    return [lattice.step * k for k in range(first, last + 1)]


def _edges(parts: list[Continuous], count: int) -> Array:
    marks = sorted({x for part in parts for x in (*part.kinks, *part.landmarks)})
    left, right = np.array(-np.inf), np.array(np.inf)

    def beyond(end: int, x: Array) -> float:
        """Largest log-mass of the parts on that side of ``x``."""
        return max(float(part.log_mass(*((left, x), (x, right))[end])) for part in parts)

    ends = []
    for left_out in (_CORE, _NEGLIGIBLE):
        low = (
            _reach(marks[0], -1, partial(beyond, 0), left_out) if any(part.unbounded(0) for part in parts) else marks[0]
        )
        high = (
            _reach(marks[-1], 1, partial(beyond, 1), left_out)
            if any(part.unbounded(1) for part in parts)
            else marks[-1]
        )
        ends.append((low, high))
    (low, high), (first, last) = ends
    inner = [np.linspace(low, high, 4 * count // 5), np.linspace(first, last, count // 5), np.array(marks)]
    return np.concatenate([[-np.inf], np.unique(np.concatenate(inner)), [np.inf]])


def _reach(start: float, direction: int, log_mass_beyond: Callable[[Any], Any], left_out: float) -> float:
    """The first of ``start + direction 2^k`` beyond which no more than that log-mass lies."""
    width = 1
    while float(log_mass_beyond(np.array(start + direction * width))) > left_out:
        width *= 2
    return start + direction * width


def _log_ratio(p: Array, q: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p <= 0.0, -np.inf, np.log(p) - np.log(q))


def _merged(p: Array, q: Array) -> tuple[Array, Array]:
    kept = (p > 0.0) | (q > 0.0)
    p, q = p[kept], q[kept]
    if p.size <= _MOST_CELLS:
        return p, q
    owner: NDArray[np.int64] = np.rint((np.clip(_log_ratio(p, q), -60.0, 60.0) + 60.0) / _MERGED).astype(np.int64)
    first, second = (np.bincount(owner, weights=side).astype(np.float64) for side in (p, q))
    kept = (first > 0.0) | (second > 0.0)
    return first[kept], second[kept]
