"""The log-ratio of two laws over their atoms and densities: its supremum, and sums of functions of it.

A divergence is given by a ``Kernel``, which maps the two log-probabilities of a point to the log of its contribution. The
contributions are summed over atoms and grid points and integrated over densities. None is negative, so nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit.errors import LawError
from dpaudit.exact.form import Array, Continuous, Form
from dpaudit.exact.quadrature import graded, log_integral, log_panel_sum, peaks, roots

Kernel = Callable[[Array, Array], Array]

FAR = 760.0
"""Log-densities this far below the largest are zero: exp(-745) is the smallest positive float."""
_SAMPLES = np.linspace(0.0, 1.0, 33)


def log_ratio(p: Array, q: Array) -> Array:
    """``p - q`` for log-probabilities: infinity where only ``q`` is impossible, minus infinity where ``p`` is."""
    with np.errstate(invalid="ignore"):
        return np.where(p == -np.inf, -np.inf, p - q)


def largest(p: Array, q: Array) -> float:
    """Return the largest log-ratio, from a point with a small rounding error.

    A log-probability of -700 has an error of 1e-13. If many points reach the maximum, as in the tail of a Laplace law, the
    result is that of the point whose ratio minus its error is largest.
    """
    ratio = log_ratio(p, q)
    with np.errstate(invalid="ignore"):
        surely = np.where(np.isfinite(ratio), ratio - 4e-16 * (np.abs(p) + np.abs(q)), ratio)
    return float(ratio.flat[np.argmax(surely)])


@dataclass(frozen=True, slots=True)
class DensityPair:
    """Two densities and their logarithms on a mesh that resolves both."""

    P: Continuous
    Q: Continuous | None
    x: Array  # one row per panel of the mesh, increasing
    p: Array  # log-density of P at x, one-sided at the ends of each row
    q: Array

    @classmethod
    def of(cls, P: Continuous, Q: Continuous | None) -> DensityPair:
        """Sample both between all kinks, and outwards until the density of ``P`` underflows."""
        exact = P.log_linear and (Q is None or Q.log_linear)
        edges = _mesh(P, Q) if exact else np.array(graded(_mesh(P, Q).tolist()))
        x = edges[:-1, None] + (edges[1:] - edges[:-1])[:, None] * (_SAMPLES[[0, -1]] if exact else _SAMPLES)
        x[:, -1] = edges[1:]
        draft = cls(P, Q, x, x, x)
        if not exact:
            x = draft._with_peaks()
        logs = [np.column_stack([log(x[:, :-1], 1), log(x[:, -1:], -1)]) for log in (P.log_density, draft.log_q)]
        return cls(P, Q, x, logs[0], logs[1])

    def at(self, x: Array) -> Array:
        """The log-ratio inside panels."""
        return log_ratio(self.P.log_density(x, 1), self.log_q(x, 1))

    def log_q(self, x: Array, side: int) -> Array:
        """Log-density of ``Q``, minus infinity if it has no continuous part."""
        return np.full(x.shape, -np.inf) if self.Q is None else self.Q.log_density(x, side)

    def _with_peaks(self) -> Array:
        """Return the mesh with each row's point of largest log-ratio, so that no narrow peak lies between samples."""
        best = np.argmax(self.at(self.x), axis=1)
        # Also where the best sample is an end of its row: the peak may lie between it and its neighbour.
        rows, last = np.arange(best.size), self.x.shape[1] - 1
        place = peaks(self.at, self.x[rows, np.maximum(best - 1, 0)], self.x[rows, np.minimum(best + 1, last)])
        return np.sort(np.column_stack([self.x, place]), axis=1)

    def supremum(self) -> float:
        """The essential supremum of the log-ratio: over the mesh, and in the limit at both infinities."""
        best = largest(self.p, self.q)
        for end in (0, 1):
            if best < math.inf:
                best = max(best, self._limit(end))
        return best

    def singular(self) -> bool:
        """Return True if ``P`` has mass where ``Q`` has none; the middle of a panel decides, since its ends may be limits."""
        if any(self.P.unbounded(end) and (self.Q is None or not self.Q.unbounded(end)) for end in (0, 1)):
            return True
        return bool((self.at(0.5 * (self.x[:, 0] + self.x[:, -1])) == np.inf).any())

    def _limit(self, end: int) -> float:
        if not self.P.unbounded(end):
            return -math.inf
        if self.Q is None or not self.Q.unbounded(end):
            return math.inf
        mine, theirs = self.P.tails[end], self.Q.tails[end]
        if mine is None or theirs is None:
            raise LawError(
                "The largest log-ratio of two densities with unbounded support depends on their tails, which are not "
                "known; pass tails=(Tail(...), Tail(...)) to Density, or truncate the law."
            )
        return mine.log_ratio_limit(theirs)

    def log_sum_above(self, level: float, kernel: Kernel) -> float:
        """Log of the integral of the kernel where the log-ratio exceeds ``level``."""
        excess = log_ratio(self.p, self.q) - level
        above = excess > 0.0
        row, left = np.nonzero(above[:, 1:] != above[:, :-1])
        brackets = [values[row, left + shift] for values in (self.x, excess) for shift in (0, 1)]
        found = roots(lambda x: self.at(x) - level, *brackets)
        edges = np.unique(np.concatenate([self.x[:, 0], self.x[-1:, -1], found]))
        low, high = edges[:-1], edges[1:]
        inside = self.at(low + 0.5 * (high - low)) > level
        return log_panel_sum(lambda x: kernel(self.P.log_density(x, 1), self.log_q(x, 1)), low[inside], high[inside])


def _mesh(P: Continuous, Q: Continuous | None) -> Array:
    """Edges of panels: kinks and landmarks of both inside the support of ``P``, then outwards with doubling width."""
    low, high = P.support
    known = {*P.kinks, *P.landmarks, *(() if Q is None else (*Q.kinks, *Q.landmarks))}
    marks = sorted({x for x in known if low < x < high} | {x for x in P.support if math.isfinite(x)})
    points = np.array(marks)
    top = float(max(P.log_density(points, 1).max(), P.log_density(points, -1).max()))

    def outwards(start: float, others: list[float], direction: float) -> list[float]:
        width = abs(start - others[0]) if others else 1.0
        reach, edges = width, [start + direction * width]
        while len(edges) < 400 and float(P.log_density(np.array(edges[-1:]), 1)[0]) >= top - FAR:
            reach = 2.0 * reach + width
            edges.append(start + direction * reach)
        return edges

    left = outwards(marks[0], marks[1:2], -1.0)[::-1] if low == -math.inf else []
    right = outwards(marks[-1], marks[-2:-1], 1.0) if high == math.inf else []
    return np.array([*left, *marks, *right])


def log_density_sum(P: Continuous | None, Q: Continuous | None, kernel: Kernel) -> float:
    """Log of the integral of the kernel over the line."""
    parts = [part for part in (P, Q) if part is not None]
    if not parts:
        return -math.inf
    low, high = min(part.support[0] for part in parts), max(part.support[1] for part in parts)
    marks = sorted({x for part in parts for x in (*part.kinks, *part.landmarks) if low < x < high})

    def log_f(x: Array) -> Array:
        p, q = (np.full(x.shape, -np.inf) if part is None else part.log_density(x, 1) for part in (P, Q))
        return kernel(p, q)

    return log_integral(log_f, [low, *marks, high])


def atom_pairs(P: Form, Q: Form) -> tuple[Array, Array]:
    """Log-masses under both laws of every point that is an atom of one of them."""
    points = {**dict.fromkeys(P.atoms), **dict.fromkeys(Q.atoms)}
    gridded = P.lattice is not None or Q.lattice is not None
    first, second = (
        np.array([law.log_point_mass(x) if gridded else law.atoms.get(x, -math.inf) for x in points], dtype=np.float64)
        for law in (P, Q)
    )
    return first, second
