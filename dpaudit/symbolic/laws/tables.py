"""Tables of the integral of a density, for trees of comparisons that are deeper than one shared draw."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.exact.form import Array
from dpaudit.symbolic.values.paths import Stop

_REACH = 80.0
"""Distance from the outermost landmark at which a table ends; draws are in units of their scale."""
_MOST_EDGES = 4000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_LEGENDRE = np.polynomial.legendre.legvander(_NODES, 23)
_PROJECTION = _LEGENDRE.T * _WEIGHTS * (np.arange(24)[:, None] + 0.5)


@dataclass(frozen=True, slots=True)
class Cumulative:
    """The integral of a density, by Legendre polynomials on panels on which it is accurate.

    ``below`` and ``above`` are the logs of the masses on either side of every edge, so that small masses at both ends keep
    their relative accuracy.
    """

    edges: Array
    coefficients: Array
    peaks: Array
    below: Array
    above: Array

    @classmethod
    def of(
        cls, log_f: Callable[[Array], Array], support: tuple[float, float], points: Sequence[float], width: float
    ) -> Cumulative:
        """Make the table on panels no wider than ``width``, which end at all points and reach down to exp(-80)."""
        inner = list(points) or [next((x for x in support if math.isfinite(x)), 0.0)]
        start, stop = max(support[0], inner[0] - _REACH), min(support[1], inner[-1] + _REACH)
        marks = np.unique([x for x in (start, *inner, stop) if start <= x <= stop]).tolist()
        steps = [np.linspace(a, b, 1 + max(1, math.ceil((b - a) / width)))[:-1] for a, b in itertools.pairwise(marks)]
        edges = np.append(np.concatenate(steps), marks[-1])
        if edges.size > _MOST_EDGES:
            raise Stop("Draws of very different scales are compared with each other in a chain, which is not followed")
        low, high = edges[:-1], edges[1:]
        half = 0.5 * (high - low)
        x = (low + half)[:, None] + half[:, None] * _NODES
        values = log_f(x.ravel()).reshape(x.shape)
        peaks = np.where(np.isfinite(values.max(axis=1)), values.max(axis=1), 0.0)
        coefficients = np.exp(values - peaks[:, None]) @ _PROJECTION.T
        with np.errstate(divide="ignore"):
            masses = np.log(np.maximum(2.0 * coefficients[:, 0] * half, 0.0)) + peaks
        below = np.concatenate([[-np.inf], np.logaddexp.accumulate(masses)])
        above = np.concatenate([np.logaddexp.accumulate(masses[::-1])[::-1], [-np.inf]])
        return cls(edges, coefficients, peaks, below, above)

    def _partial(self, panel: Any, left: Array, right: Array) -> Array:
        """Log of the integral from ``left`` to ``right`` inside one panel."""
        low, high = self.edges[panel], self.edges[panel + 1]
        half = 0.5 * (high - low)
        ends = [np.clip((x - low) / half - 1.0, -1.0, 1.0) for x in (left, right)]
        first, second = (np.polynomial.legendre.legvander(x, 24) for x in ends)
        change = second - first
        integrals = np.empty((*panel.shape, 24))
        integrals[..., 0] = ends[1] - ends[0]
        degrees = np.arange(1, 24)
        integrals[..., 1:] = (change[..., 2:25] - change[..., 0:23]) / (2.0 * degrees + 1.0)
        value = (integrals * self.coefficients[panel]).sum(axis=-1) * half
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(value, 0.0)) + self.peaks[panel]  # type: ignore[no-any-return]

    def log_mass(self, low: Array, high: Array) -> Array:
        """Log-mass of intervals."""
        last = self.edges.size - 2
        a, b = np.clip(low, self.edges[0], self.edges[-1]), np.clip(high, self.edges[0], self.edges[-1])
        first = np.clip(np.searchsorted(self.edges, a, side="right") - 1, 0, last)
        final = np.clip(np.searchsorted(self.edges, b, side="left") - 1, 0, last)
        inside = self._partial(first, a, b)
        rest = self._partial(first, a, self.edges[first + 1])
        start = self._partial(final, self.edges[final], b)
        # Whole panels between: as a difference of masses on the side where they are small.
        with np.errstate(invalid="ignore", divide="ignore"):
            left = self.below[final] + np.log(-np.expm1(self.below[first + 1] - self.below[final]))
            right = self.above[first + 1] + np.log(-np.expm1(self.above[final] - self.above[first + 1]))
            between = np.where(self.below[final] < self.above[first + 1], left, right)
            between = np.where(final > first + 1, np.where(np.isnan(between), -np.inf, between), -np.inf)
        several = np.logaddexp(np.logaddexp(rest, start), between)
        value = np.where(first == final, inside, several)
        return np.where(a < b, value, -np.inf)
