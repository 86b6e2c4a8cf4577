r"""The limit that a bound is compared with: what any audit could show with so many samples if it knew the two laws.

An e-process against epsilon-DP that sees n outputs of each side of a pair (P, Q) grows on average by at most

    ``n G(epsilon),  G(epsilon) = min { KL(P, p) + KL(Q, q) : p <= c q, q <= c p },  c = e^epsilon``

(Gruenwald, de Heide and Koolen 2024: the minimiser, the reverse information projection, gives the log-optimal e-variable).
All events are in it at once, so no single event can do better. The largest epsilon with ``n G(epsilon) >= log(1/alpha)`` is
what the best audit shows in a typical run: :func:`best_epsilon`.

*The minimum.* Against (epsilon, delta)-DP the pairs (p, q) are those with ``sum max(p - c q, 0) <= delta`` and the same with
the roles exchanged. With multipliers a, b of the two total masses and k, m of these two sums, every outcome is on its own: the
largest of ``P log f + Q log h`` with ``f = a + t - c s``, ``h = b - c t + s`` over t in [0, k] and s in [0, m], of which at most
one is positive, and ``t = (b P - a c Q) / (c (P + Q))`` where that is inside. Then ``p = P / f`` and ``q = Q / h``: off the
constraint for t = 0, on ``p = c q`` for t inside, beyond it for t = k. So

    ``G = max { sum P log f + sum Q log h + 2 - a - b - delta (k + m) },``

which is concave in (a, b, k, m), and whose gradient is what the constraints leave over. With delta = 0 nothing bounds t and s.
At the maximum f and h are a bet: ``sum p f + sum q h <= a + b + delta (k + m) = 2`` for every pair that keeps the claim. Only
the log-ratio of an outcome enters, so laws come as cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize

from dpaudit import exact
from dpaudit.exact.form import Form, form_of
from mechanisms._quadrature import log_laplace_cdf, log_laplace_density
from mechanisms.broken.laplace import PrefixSum
from mechanisms.composition import Composition
from mechanisms.sparse_vector import SparseVector

Floats: TypeAlias = NDArray[np.float64]

CELLS = 4000
DRAWS = 200_000
LARGEST = 60.0
GRID = 40_001  # thresholds that are integrated over; four times as many move the limit by some millionths
ROUGHLY = 10  # a first look at all pairs takes one draw in so many
NEGLIGIBLE = 1e-250  # a mass that counts as zero
PROMISING = 0.97  # pairs that show this share of the best one in the first look are looked at with all draws


@dataclass(frozen=True, slots=True)
class Cells:
    """Masses of cells of nearly constant log-ratio under the two laws."""

    P: Floats
    Q: Floats

    @property
    def log_ratio(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.P) - np.log(self.Q)


def growth(cells: Cells, epsilon: float, delta: float = 0.0) -> float:
    """G: the least relative entropy to a pair that keeps (epsilon, delta)-DP, per output of each side."""
    c = math.exp(epsilon)
    P, Q = (np.where(masses > NEGLIGIBLE, masses, 0.0) for masses in (cells.P, cells.Q))

    def loss(x: Floats) -> tuple[float, Floats]:
        a, b, *bounds = x
        k, m = bounds or (math.inf, math.inf)
        with np.errstate(invalid="ignore"):
            right = np.nan_to_num((b * P - a * c * Q) / (c * (P + Q)))
            left = np.nan_to_num((a * Q - b * c * P) / (c * (P + Q)))
        t, s = np.clip(right, 0.0, k), np.clip(left, 0.0, m)
        # On the constraint the differences a - c s and b - c t cancel where one of P and Q is much smaller.
        f = np.where((left > 0.0) & (left < m), P * (a + b * c) / (P + Q), a + t - c * s)
        h = np.where((right > 0.0) & (right < k), Q * (b + a * c) / (P + Q), b - c * t + s)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(P > 0.0, P * np.log(f), 0.0) + np.where(Q > 0.0, Q * np.log(h), 0.0)
            p, q = np.where(P > 0.0, P / f, 0.0), np.where(Q > 0.0, Q / h, 0.0)
        gradient = [p.sum() - 1.0, q.sum() - 1.0]
        if bounds:
            gradient += [(p - c * q)[right > k].sum() - delta, (q - c * p)[left > m].sum() - delta]
        return -(float(value.sum()) + 2.0 - a - b - delta * sum(bounds)), -np.array(gradient)

    start, limits = [1.0, 1.0], [(1e-9, 2.0)] * 2
    if delta > 0.0:
        start, limits = [*start, 0.1 / c, 0.1 / c], [*limits, (0.0, 2.0 / delta), (0.0, 2.0 / delta)]
    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 1_000}
    found = minimize(loss, np.array(start), jac=True, bounds=limits, method="L-BFGS-B", options=options)
    return max(-float(found.fun), 0.0)


def fewest_samples(cells: Cells, epsilon: float, delta: float, alpha: float) -> float:
    """Outputs of both sides after which an audit that knows the laws refutes the claim on average; infinite if they keep it.

    Laplace noise of scale 1 beside twice the epsilon that is claimed, in the two cells of its best event:

    >>> cells = Cells(np.array([0.5, 0.5]), np.array([0.5 * math.exp(-2.0), 1.0 - 0.5 * math.exp(-2.0)]))
    >>> round(fewest_samples(cells, 1.0, 0.0, 1e-6))
    581
    """
    grown = growth(cells, epsilon, delta)
    return 2.0 * math.log(1.0 / alpha) / grown if grown > 1e-12 else math.inf


def best_epsilon(cells: Cells, samples: int, alpha: float) -> float:
    """Largest epsilon that an audit which knows the laws refutes on average, with half of the samples on each side.

    Randomised response with log-odds 1, 20 million samples:

    >>> p = 1.0 / (1.0 + math.exp(-1.0))
    >>> round(best_epsilon(Cells(np.array([p, 1 - p]), np.array([1 - p, p])), 20_000_000, 1e-3), 4)
    0.9981
    """
    needed = math.log(1.0 / alpha) / (samples / 2)
    if growth(cells, 0.0) <= needed:
        return 0.0
    if growth(cells, LARGEST) >= needed:
        return math.inf
    return float(brentq(lambda epsilon: growth(cells, epsilon) - needed, 0.0, LARGEST, xtol=1e-6))


def best_on_pairs(mechanism: Any, pairs: Sequence[Any], samples: int, alpha: float, *, draws: int = DRAWS) -> float:
    """Return the same for the best of several pairs, with all samples spent there; a few draws choose the candidates."""
    rng = np.random.default_rng(0)

    def best(data: Any, neighbour: Any, draws: int) -> float:
        return best_epsilon(cells_of(mechanism, data, neighbour, rng, draws), samples, alpha)

    if len(pairs) == 1:
        return best(*pairs[0], draws)
    rough = [best(*pair, draws // ROUGHLY) for pair in pairs]
    chosen = [pair for pair, found in zip(pairs, rough, strict=True) if found >= PROMISING * max(rough)]
    return max(best(*pair, draws) for pair in chosen)


def cells_of(mechanism: Any, data: Any, neighbour: Any, rng: np.random.Generator, draws: int = DRAWS) -> Cells:
    """Cells of a pair: exact where the law is discrete or of one number, otherwise from draws whose log-ratio is exact.

    An output x of the even mixture counts as ``P/(P + Q)`` for P and the rest for Q, which needs no luck in both counts.
    """
    parts: Sequence[Sequence[exact.Law]] = ()
    if isinstance(mechanism, exact.HasLaw) and not _releases_values(mechanism):
        laws = mechanism.law(data), mechanism.law(neighbour)
        parts = [law.laws if isinstance(law, exact.Product) else (law,) for law in laws]
        if all(isinstance(law, exact.Discrete) for part in parts for law in part):
            return _discrete_cells(*parts)
    drawn = [mechanism.sample(where, draws, rng) for where in (data, neighbour)]
    if all(len(part) == 1 and form_of(part[0]).lattice is None for part in parts) and parts:
        return _cells_on_a_line([form_of(part[0]) for part in parts], np.concatenate(drawn, axis=None))
    ratio = np.concatenate([log_ratio(mechanism, data, neighbour, outputs) for outputs in drawn])
    ratio.sort()
    edges = np.unique(np.linspace(0, ratio.size, CELLS + 1).astype(int))[:-1]
    with np.errstate(over="ignore"):
        share = 1.0 / (1.0 + np.exp(-ratio))
    P, Q = (np.add.reduceat(weight, edges) for weight in (share, 1.0 - share))
    return Cells(P / P.sum(), Q / Q.sum())


def _cells_on_a_line(forms: Sequence[Form], outputs: Floats) -> Cells:
    """Exact masses of intervals between quantiles of ``outputs``, kinks and ends of supports, and of the atoms."""
    densities = [form.continuous for form in forms]
    kinks = [x for part in densities if part is not None for x in (*part.kinks, *part.support)]
    cuts = np.unique([-np.inf, *np.quantile(outputs.astype(float), np.linspace(0.0, 1.0, CELLS)), *kinks, np.inf])
    atoms = {**forms[0].atoms, **forms[1].atoms}
    masses = [
        np.concatenate(
            [
                np.zeros(cuts.size - 1) if part is None else np.exp(part.log_mass(cuts[:-1], cuts[1:])),
                np.exp([form.atoms.get(x, -math.inf) for x in atoms]),
            ]
        )
        for form, part in zip(forms, densities, strict=True)
    ]
    some = masses[0] + masses[1] > 0.0
    return Cells(masses[0][some], masses[1][some])


def _discrete_cells(laws: Sequence[exact.Law], others: Sequence[exact.Law]) -> Cells:
    """Cells of independent discrete coordinates; those with the same law on both sides are left out."""
    P = Q = np.ones(1)
    for law, other in zip(laws, others, strict=True):
        if law != other:
            forms = form_of(law), form_of(other)
            outcomes = {**forms[0].atoms, **forms[1].atoms}
            more_P, more_Q = (np.exp([form.atoms.get(x, -math.inf) for x in outcomes]) for form in forms)
            P, Q = np.outer(P, more_P).ravel(), np.outer(Q, more_Q).ravel()
    return Cells(P, Q)


def log_ratio(mechanism: Any, data: Any, neighbour: Any, outputs: Any) -> Floats:
    """Exact log P/Q of every output."""
    if isinstance(mechanism, Composition) and any(map(_releases_values, mechanism.mechanisms)):
        width = len(data)
        parts = [outputs[:, k * width : (k + 1) * width] for k in range(len(mechanism.mechanisms))]
        each = [log_ratio(part, data, neighbour, out) for part, out in zip(mechanism.mechanisms, parts, strict=True)]
        return np.asarray(np.sum(each, axis=0))
    if _releases_values(mechanism):
        return _log_ratio_of_values(mechanism, np.asarray(data), np.asarray(neighbour), outputs)
    if isinstance(mechanism, PrefixSum):  # one to one with the noisy answers
        laws, outputs = [mechanism.law_of_answers(x) for x in (data, neighbour)], np.diff(outputs, prepend=0.0, axis=1)
        return np.asarray(laws[0].log_prob(outputs) - laws[1].log_prob(outputs))
    if isinstance(mechanism, SparseVector):
        return _per_pattern(mechanism, data, outputs) - _per_pattern(mechanism, neighbour, outputs)
    return np.asarray(mechanism.law(data).log_prob(outputs) - mechanism.law(neighbour).log_prob(outputs))


def _releases_values(mechanism: Any) -> bool:
    if isinstance(mechanism, Composition):
        return any(map(_releases_values, mechanism.mechanisms))
    return isinstance(mechanism, SparseVector) and mechanism.release != "indicator"


def _per_pattern(mechanism: SparseVector, data: Any, outputs: NDArray[Any]) -> Floats:
    """Log-probability of every row of indicators; equal rows are looked up once."""
    patterns, owner = _different(outputs.astype(np.int64))
    return np.asarray(mechanism.law(data).log_prob([tuple(row) for row in patterns.tolist()]))[owner]


def _different(states: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The different rows of 1, 0 and -1, and which each row is, by the numbers they are in base three.

    >>> [part.tolist() for part in _different(np.array([[1, -1], [0, 1], [1, -1]]))]
    [[[0, 1], [1, -1]], [1, 0, 1]]
    """
    number = (states + 1) @ 3 ** np.arange(states.shape[1], dtype=np.int64)[::-1]
    _, first, owner = np.unique(number, return_index=True, return_inverse=True)
    return states[first], owner


def _log_ratio_of_values(mechanism: SparseVector, data: Floats, neighbour: Floats, outputs: Floats) -> Floats:
    """The log-ratio where the value of a hit is released: its density, and the pattern or a bound on the noisy threshold."""
    hit = ~np.isnan(outputs)
    scale = mechanism.value_scale or mechanism.query_scale
    with np.errstate(invalid="ignore"):
        values = np.abs(outputs - neighbour) - np.abs(outputs - data)
    ratio = np.where(hit, values, 0.0).sum(axis=1) / scale
    before = np.cumsum(hit, axis=1) - hit
    ended = before >= (mechanism.hits or data.size + 1)
    patterns, owner = _different(np.where(ended, -1, hit))
    if mechanism.release == "fresh value":
        indicator = replace(mechanism, release="indicator", value_scale=0.0)
        return np.asarray(
            ratio + (_per_pattern(indicator, data, patterns) - _per_pattern(indicator, neighbour, patterns))[owner]
        )
    lowest = np.where(hit, outputs, np.inf).min(axis=1)
    for number, pattern in enumerate(patterns):
        rows = owner == number
        misses = tuple(np.flatnonzero(pattern == 0).tolist())
        for answers, sign in ((data, 1.0), (neighbour, -1.0)):
            grid, log_integral = _threshold_below(mechanism, tuple(answers[list(misses)].tolist()))
            ratio[rows] += sign * np.interp(np.minimum(lowest[rows], grid[-1]), grid, log_integral)
    return np.asarray(ratio)


@lru_cache(maxsize=1024)
def _threshold_below(mechanism: SparseVector, missed: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Log of P(noisy threshold <= x, all of these answers missed) on a fine grid of x."""
    reach = 40.0 * max(mechanism.threshold_scale, mechanism.query_scale)
    grid = np.linspace(mechanism.threshold - reach, mechanism.threshold + reach, GRID)
    log_density = log_laplace_density(grid - mechanism.threshold, mechanism.threshold_scale)
    for answer in missed:
        log_density += log_laplace_cdf(grid - answer, mechanism.query_scale)
    density = np.exp(log_density)
    # Below the grid the integrand is one exponential, whose integral is its end times its length.
    rate = 1.0 / mechanism.threshold_scale + len(missed) / mechanism.query_scale
    steps = (density[1:] + density[:-1]) / 2.0 * np.diff(grid)
    return grid, np.log(density[0] / rate + np.concatenate([[0.0], np.cumsum(steps)]))
