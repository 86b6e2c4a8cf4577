"""HistogramMethod on data drawn independently from a known law: the exact law of the bin that it finds.

With N_j = #{x < t_j} the counts at the grid points, the search for one quantile stops at the first j = 1, ..., steps with
``N_j + nu_j > T + Z``. Given Z = z the counts form a Markov chain, and (docs/theory.md R12)

    P(J = j) = int l(z) E[prod_{i<j} F(T + z - N_i) (1 - F(T + z - N_j))] dz.

Three things make this fast. The counts of n independent records are those of a Poisson process given its total, so a step
of the chain is a convolution with a Poisson kernel that does not depend on the state, computed for all z at once by small
matrix products. Only counts of non-negligible probability are kept, and only z for which the search may still continue. The
nodes in z respect the kinks of the integrand at z = c - T, c = 0, ..., n: all unit cells between two kinks if they are few,
otherwise a subset of the cells, with weights that are exact for polynomials in the cell's number.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpaudit._util.validation import check_count, check_interval, check_open_unit
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.form import Array
from dpaudit.exact.mechanism_laws.above_threshold import noise_scales
from dpaudit.exact.mechanism_laws.histogram import as_quantile
from dpaudit.exact.mechanism_laws.threshold_quadrature import gauss_log_error, gauss_rule

Rule = tuple[Array, Array]

_TILE = 16
"""Number of rows of the small matrix products."""
_PRODUCT = 200_000
"""Largest size of a matrix product; larger ones start threads, which cost more than they save."""


def histogram_index_law_iid(
    records: int,
    steps: int,
    quantile: Fraction | float,
    epsilon: float,
    *,
    cdf: Callable[[Array], Any] | None = None,
    low: float = 0.0,
    high: float = 1.0,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
    tolerance: float = 1e-9,
) -> Array:
    """Probabilities that the search for one quantile stops at grid point 1, ..., ``steps``, and, last, that it finds none.

    Parameters
    ----------
    records : int
        Number n of records, drawn independently.
    steps : int
        Number of grid points ``t_j = low + j (high - low) / steps``.
    quantile : Fraction or float
        Probability q; the threshold is ``q n``.
    epsilon : float
        Budget of this one search: that of the method over its number of quantiles.
    cdf : callable, optional
        Continuous distribution function of a record, vectorised; uniform on [low, high] by default. Records outside [low, high]
        are counted as the method counts them.
    threshold_scale, query_scale : float, optional
        Noise scales; ``2/epsilon`` and ``4/epsilon`` by default.
    tolerance : float
        Approximate sum of the absolute errors of all probabilities. It bounds truncation and rounding; the error of the
        quadrature is estimated.

    Examples
    --------
    >>> histogram_index_law_iid(10, 4, 0.5, 1.0).round(8).tolist()
    [0.31785762, 0.30209675, 0.2180469, 0.11151327, 0.05048546]
    """
    check_count(records=records, steps=steps)
    check_open_unit(tolerance=tolerance)
    b1, b2 = noise_scales(epsilon, threshold_scale, query_scale)
    below = _grid_cdf(cdf, low, high, steps)
    threshold = float(as_quantile(quantile) * records)
    pieces = list(_threshold_rule(records, threshold, b1, b2, tolerance / 10.0))
    z = np.concatenate([nodes for nodes, _ in pieces])
    weights = np.concatenate([weights for _, weights in pieces]) * np.exp(-np.abs(z) / b1) / (2.0 * b1)
    law = _propagate(records, below, _NodeSearch(z, weights, threshold, b2), tolerance / 10.0)
    total = float(law.sum())
    if not abs(total - 1.0) < max(tolerance, 1e-11):
        raise LawError(f"The law adds up to {total!r}, not 1, at tolerance={tolerance!r}; pass a larger tolerance.")
    return law


def _grid_cdf(cdf: Callable[[Array], Any] | None, low: float, high: float, steps: int) -> Array:
    """P(record < t_j) for j = 1, ..., steps."""
    check_interval(low=low, high=high)
    if cdf is None:
        return np.arange(1, steps + 1) / steps
    below = np.asarray(cdf(low + np.arange(1, steps + 1) * (high - low) / steps), dtype=np.float64)
    if below.shape != (steps,) or not ((below >= 0.0) & (below <= 1.0)).all() or not (np.diff(below) >= 0.0).all():
        raise InvalidArgument(
            f"cdf={cdf!r} must be a vectorised distribution function: as many numbers as given, rising from 0 to 1."
        )
    return below


# ---------------------------------------------------------------------------------------------------------------------
# Nodes and weights for the threshold noise


def _threshold_rule(n: int, threshold: float, b1: float, b2: float, tolerance: float) -> Iterator[Rule]:
    """Nodes and weights for integrals over z of functions with kinks at c - threshold, c = 0, ..., n, and at 0.

    As functions of z the probabilities are analytic at a distance of about pi/2 query scales from the real line (the first
    hit of many queries has a Gumbel law of that scale), which sets the order that a panel of two scales needs. Far
    from 0 the density of Z asks for less.
    """
    reach = b1 * math.log(2.0 / tolerance)
    for left, right in ((-reach, 0.0), (0.0, reach)):
        first, last = max(left, -threshold), min(right, n - threshold)
        yield from _panels(left, min(right, -threshold), b1, b2, tolerance)
        if first < last:
            # Cells i0, ..., i1 - 1 are whole; cell i is (i, i + 1) - threshold.
            i0, i1 = math.ceil(first + threshold), math.floor(last + threshold)
            if i1 < i0:
                yield from _panels(first, last, b1, b2, tolerance)
            else:
                yield from _panels(first, i0 - threshold, b1, b2, tolerance)
                yield from _cells(n, i0, i1, threshold, b1, b2, tolerance)
                yield from _panels(i1 - threshold, last, b1, b2, tolerance)
        yield from _panels(max(left, n - threshold), right, b1, b2, tolerance)


def _panels(left: float, right: float, b1: float, b2: float, tolerance: float) -> Iterator[Rule]:
    """Gauss-Legendre panels of at most two query scales."""
    if not left < right:
        return
    edges = np.linspace(left, right, math.ceil((right - left) / (2.0 * b2)) + 1)
    for a, b in itertools.pairwise(edges.tolist()):
        # The rule of order q on a panel of half-width h converges as r^(-2q), r = s + sqrt(s^2 + 1), s = pi b2 / (2 h).
        s = math.pi * b2 / (b - a)
        nodes, weights = gauss_rule(2 + math.ceil(_digits(a, b, b1, tolerance) / 2.0 / math.asinh(s)))
        yield (a + b + (b - a) * nodes) / 2.0, (b - a) / 2.0 * weights


def _cells(n: int, start: int, stop: int, threshold: float, b1: float, b2: float, tolerance: float) -> Iterator[Rule]:
    """Unit cells start, ..., stop - 1, in blocks; a block within reach of the first or last count is short."""
    if start == stop:  # often the case when the noise is small
        return
    parts = math.ceil(1.0 / b2)
    # Inside a cell the steepest part that matters rises like exp(6 z / b2).
    rate = 3.0 / (b2 * parts)
    order = next(q for q in range(2, 40) if gauss_log_error(q) + 2 * q * math.log(rate) < math.log(tolerance))
    nodes, weights = gauss_rule(order)
    offsets = ((np.arange(parts)[:, None] + (1.0 + nodes) / 2.0) / parts).ravel()
    inside = np.tile(weights / (2.0 * parts), parts)
    while start < stop:
        size = min(stop - start, max(1, int(2.0 * b2)), 8 + start // 2, 8 + max(0, n - start) // 2)
        left = start - threshold
        digits = _digits(left, left + size, b1, tolerance)
        degree = digits / math.asinh(math.pi * b2 / size)
        # A kink is b2^-2 times as strong as its count is likely, and few steps make separate normal bumps of likely counts.
        deviation = math.sqrt(max(1, min(start * (n - start), (start + size) * (n - start - size))) / n)
        frequency = math.sqrt(2.0 * max(1.0, digits - 2.0 * math.log(b2))) / deviation
        cells, multiplicity = _lattice_rule(size, math.ceil(max(degree, frequency * size / 2.0)))
        yield (left + cells[:, None] + offsets).ravel(), np.outer(multiplicity, inside).ravel()
        start += size


def _digits(left: float, right: float, b1: float, tolerance: float) -> float:
    """Natural logarithm of the accuracy that (left, right) needs, given the density of Z there."""
    return max(1.0, math.log(1.0 / tolerance) - min(abs(left), abs(right)) / b1)


@functools.cache
def _lattice_rule(size: int, degree: int) -> tuple[NDArray[np.intp], Array]:
    """Return some of the integers 0, ..., size - 1, with positive weights that give the sum over all of them exactly,
    for polynomials up to ``degree``.

    The integers next to Gauss-Legendre points, so that few are needed; more until the least weights that do it are positive.
    """
    everything = np.arange(size)
    for points in range(degree + 1, size // 2, 2):
        wanted = (gauss_rule(points)[0] + 1.0) * size / 2.0 - 0.5
        chosen = np.unique(np.rint(wanted).astype(np.intp))
        basis = np.polynomial.legendre.legvander((2.0 * everything + 1.0) / size - 1.0, degree)
        weights, _, found, _ = np.linalg.lstsq(basis[chosen].T, basis.sum(axis=0), rcond=None)
        if found == degree + 1 and (weights > 0.0).all():
            return chosen, weights
    return everything, np.ones(size)


# ---------------------------------------------------------------------------------------------------------------------
# The chain of counts


class _NodeSearch:
    """The search for all nodes z at once: column z holds the Poisson weight of count c and of nothing found yet.

    While no column can stop, all columns are equal, and none is stored.
    """

    def __init__(self, z: Array, weights: Array, threshold: float, scale: float) -> None:
        self.z, self.weights, self.threshold, self.scale = z, weights, threshold, scale
        self.lo = self.rows = 0
        self.pad = 0
        self.buffers: list[Array] = []
        self.used = [0, 0]
        self.first_row = 0
        self.below = self.above = np.empty((0, 0))

    def nearest(self, count: int) -> float:
        """Distance from the count up to the lowest noisy threshold, in query scales."""
        return (self.threshold + float(self.z.min()) - count) / self.scale

    def start(self, lo: int, counts: Array) -> None:
        """Begin with these Poisson weights of the counts lo, lo + 1, ... in every column."""
        self.lo, self.rows = lo, counts.size
        self._allocate(np.broadcast_to(counts[:, None], (counts.size, self.z.size)))

    def _allocate(self, columns: Array) -> None:
        """Two buffers, zero around the rows in use: convolutions read up to ``pad`` rows beside them."""
        height = 2 * (columns.shape[0] + self.pad + _TILE) + self.pad
        self.buffers = [np.zeros((height, columns.shape[1])) for _ in range(2)]
        self.buffers[0][self.pad : self.pad + columns.shape[0]] = columns
        self.used = [columns.shape[0], 0]

    @property
    def columns(self) -> Array:
        """Weights of the counts lo, ..., lo + rows - 1, one column for each z."""
        return self.buffers[0][self.pad : self.pad + self.rows]

    def move(self, jump: int, toeplitz: Array, lo: int, rows: int) -> None:
        """Convolve with the kernel that begins at ``jump``; keep the counts lo, ..., lo + rows - 1."""
        length = toeplitz.shape[1] - _TILE + 1
        tiles = -(-rows // _TILE)
        ahead = lo - jump - self.lo
        if length > self.pad or self.pad + max(0, ahead) + tiles * _TILE + length > self.buffers[0].shape[0]:
            columns = np.vstack([self.columns, np.zeros((rows + length + 2 * _TILE, self.z.size))])
            self.pad = max(self.pad, length)
            self._allocate(columns)
        source, target = self.buffers
        start = self.pad + ahead - (length - 1)
        step, item = source.strides
        shape, strides = (tiles, _TILE + length - 1, source.shape[1]), (_TILE * step, step, item)
        windows = np.lib.stride_tricks.as_strided(source[start:], shape, strides, writeable=False)
        written = target[self.pad : self.pad + tiles * _TILE].reshape(tiles, _TILE, -1)
        width = max(64, _PRODUCT // toeplitz.size)
        for left in range(0, self.z.size, width):
            part = slice(left, left + width)
            np.matmul(toeplitz, windows[:, :, part], out=written[:, :, part])
        target[self.pad + rows : self.pad + max(self.used[1], tiles * _TILE)] = 0.0
        self.buffers = [target, source]
        self.used = [rows, self.used[0]]
        self.lo, self.rows = lo, rows

    def stop(self, remaining: Array) -> float:
        """Return the probability that the search stops here, and keep the rest in the columns.

        ``remaining`` turns weights into probabilities.
        """
        first = self.lo - self.first_row
        if first < 0 or first + self.rows > self.below.shape[0]:
            self._tabulate()
            first = 0
        here = slice(first, first + self.rows)
        scratch = self.buffers[1][self.pad : self.pad + self.rows]
        np.multiply(self.columns, self.above[here], out=scratch)
        self.used[1] = max(self.used[1], self.rows)
        found = float(remaining @ scratch @ self.weights)
        np.multiply(self.columns, self.below[here], out=self.columns)
        return found

    def _tabulate(self) -> None:
        """F and 1 - F for the counts ahead. Below 1e-30 F is set to zero: products of it would reach subnormal numbers."""
        self.first_row = self.lo
        x = (self.threshold + self.z - np.arange(self.lo, self.lo + 4 * self.rows + _TILE)[:, None]) / self.scale
        tail = 0.5 * np.exp(-np.abs(x))
        self.above = np.where(x < 0.0, 1.0 - tail, tail)
        self.below = 1.0 - tail
        np.copyto(self.below, np.where(tail > 1e-30, tail, 0.0), where=x < 0.0)

    def going_on(self, remaining: Array) -> float:
        """Probability that nothing has been found yet."""
        return float(remaining @ self.columns @ self.weights)

    def thin(self, remaining: Array, negligible: float) -> None:
        """Drop columns whose searches continue with probability below ``negligible`` in total, and tiny weights."""
        alive = (remaining @ self.columns) * self.weights > negligible / self.z.size
        columns = self.columns
        columns[columns < 1e-150] = 0.0
        if np.count_nonzero(alive) < 0.9 * alive.size:
            self.z, self.weights = self.z[alive], self.weights[alive]
            self.below, self.above = self.below[:, alive], self.above[:, alive]
            self._allocate(columns[:, alive])


def _propagate(n: int, below: Array, search: _NodeSearch, tolerance: float) -> Array:
    """Law of the index, from the chances ``below`` of a record to lie below each grid point."""
    steps = below.size
    law = np.zeros(steps + 1)
    means = n * np.diff(below, prepend=0.0)
    cut = tolerance / (10.0 * steps)
    kernel_cut = cut / (2.0 * math.pi * n + 1.0)
    counts, lo = np.ones(1), 0
    mean, jump, kernel, toeplitz = -1.0, 0, np.ones(1), np.empty((0, 0))
    started = False
    remaining = np.ones(1)
    for j in range(steps):
        # Differences that are rounding of the distribution function do not need a new kernel.
        if abs(means[j] - mean) > 1e-15 * n:
            mean = float(means[j])
            jump, kernel = _poisson(mean, kernel_cut)
            toeplitz = _toeplitz(kernel)
        # Counts of the Poisson process, and the weight of the rest of the total falling to the right of t_j.
        moved = np.convolve(counts, kernel)[: n + 1 - lo - jump]
        remaining = _remaining(n, n * (1.0 - float(below[j])), lo + jump, moved.size)
        marginal = np.cumsum(moved * remaining)
        first = int(np.searchsorted(marginal, cut * marginal[-1]))
        last = int(np.searchsorted(marginal, (1.0 - cut) * marginal[-1]))
        moved, remaining = moved[first : last + 1], remaining[first : last + 1]
        remaining = remaining / (moved @ remaining)
        begin = lo + jump + first
        if not started and search.nearest(begin + moved.size) < -math.log(cut):
            search.start(lo, counts)
            started = True
        counts, lo = moved, begin
        if started:
            search.move(jump, toeplitz, lo, counts.size)
            law[j] = search.stop(remaining)
            if j % 4 == 0:
                search.thin(remaining, tolerance / 10.0 / steps)
                if search.z.size == 0:
                    return law
    law[-1] = search.going_on(remaining) if started else search.weights.sum()
    return law


def _poisson(mean: float, cut: float) -> tuple[int, Array]:
    """Poisson probabilities above ``cut`` times the largest, and the number at which they begin."""
    numbers = np.arange(int(mean + 12.0 * math.sqrt(mean)) + 40)
    log_pmf = (
        numbers * math.log(mean) - mean - gammaln(numbers + 1.0) if mean > 0.0 else np.where(numbers, -np.inf, 0.0)
    )
    kept = np.flatnonzero(log_pmf > log_pmf.max() + math.log(cut))
    return int(kept[0]), np.exp(log_pmf[kept[0] : kept[-1] + 1])


def _toeplitz(kernel: Array) -> Array:
    """The matrix that convolves ``_TILE + len(kernel) - 1`` rows into ``_TILE``."""
    matrix = np.zeros((_TILE, _TILE + kernel.size - 1))
    for row in range(_TILE):
        matrix[row, row : row + kernel.size] = kernel[::-1]
    return matrix


def _remaining(n: int, mean: float, lo: int, size: int) -> Array:
    """Proportional to the Poisson probability of n - c with this mean, for c = lo, ..., lo + size - 1."""
    if mean <= 0.0:
        return np.where(np.arange(lo, lo + size) == n, 1.0, 0.0)
    logs = np.zeros(size)
    np.cumsum(np.log((n - np.arange(lo, lo + size - 1)) / mean), out=logs[1:])
    logs -= logs.max()
    return np.exp(logs, out=logs)
