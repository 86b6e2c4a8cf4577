"""Laws whose log-density is linear between finitely many edges; masses and divergences have closed forms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import finite_array, shorten
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.form import Array, Continuous, Form, FormLaw, Tail, check_mass

_FLAT = 1e-8
"""A fall of the log-density over a piece below which its mass is computed by a series."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Log-density ``values[j] + slopes[j] (x - anchors[j])`` on ``(edges[j], edges[j+1])``, outer edges maybe infinite.

    An anchor near its piece keeps the value there exact; ``intercept + slope x`` would cancel far from the origin.
    """

    edges: Array
    anchors: Array
    values: Array
    slopes: Array

    def log_density(self, x: Array, side: int) -> Array:
        """The limit from the right (side 1) or left (side -1); minus infinity outside."""
        j = np.searchsorted(self.edges, x, side="right" if side > 0 else "left") - 1
        inside = (j >= 0) & (j < self.values.size)
        j = np.clip(j, 0, self.values.size - 1)
        with np.errstate(invalid="ignore"):
            values = self.values[j] + np.where(self.slopes[j] == 0.0, 0.0, self.slopes[j] * (x - self.anchors[j]))
        return np.where(inside, values, -np.inf)

    def log_mass(self, low: Array, high: Array) -> Array:
        """Log-mass of the intervals (low, high).

        On one piece the integral is ``top (1 - exp(-d)) / |slope|`` where ``top`` is the larger end and ``d`` the fall
        of the log-density: no difference of large numbers.
        """
        left = np.maximum(np.asarray(low, dtype=np.float64)[..., None], self.edges[:-1])
        right = np.minimum(np.asarray(high, dtype=np.float64)[..., None], self.edges[1:])
        total: Array = np.logaddexp.reduce(self._log_parts(left, right), axis=-1)
        return total

    def _log_parts(self, left: Array, right: Array) -> Array:
        """Log-mass of (left, right), one interval inside each piece."""
        steep = np.abs(self.slopes)
        top = np.where(self.slopes > 0.0, right, left)
        with np.errstate(invalid="ignore", divide="ignore"):
            width = np.maximum(right - left, 0.0)
            fall = np.where(steep == 0.0, 0.0, steep * width)
            # (1 - exp(-d)) / d = 1 - d/2 + ... where d is too small to divide by.
            size = np.where(fall < _FLAT, np.log(width) - 0.5 * fall, np.log(-np.expm1(-fall)) - np.log(steep))
            peak = self.values + np.where(steep == 0.0, 0.0, self.slopes * (top - self.anchors))
            return np.where(right > left, peak + size, -np.inf)

    def continuous(self) -> Continuous:
        """The form that the divergences work with."""
        low, high = float(self.edges[0]), float(self.edges[-1])
        finite = tuple(float(x) for x in self.edges if math.isfinite(x))
        outer = []
        if low == -math.inf:
            outer.append(finite[0] - 1.0 / abs(self.slopes[0]))
        if high == math.inf:
            outer.append(finite[-1] + 1.0 / abs(self.slopes[-1]))
        return Continuous(
            self.log_density,
            self.log_mass,
            (low, high),
            finite,
            tuple(sorted({*finite, *map(float, outer)})),
            (self._tail(0, -1.0) if low == -math.inf else None, self._tail(-1, 1.0) if high == math.inf else None),
            log_linear=True,
        )

    def _tail(self, j: int, sign: float) -> Tail:
        slope = float(self.slopes[j])
        return Tail(linear=-sign * slope, constant=float(self.values[j]) - slope * float(self.anchors[j]))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Draw a piece by its mass, then a point inside it by inverting its distribution function."""
        masses = np.exp(self._log_parts(self.edges[:-1], self.edges[1:]))
        j = rng.choice(masses.size, size=size, p=masses / masses.sum())
        # 1 - U lies in (0, 1]: the logarithm below is finite.
        uniform = 1.0 - rng.random(size)
        left, right, slope = self.edges[j], self.edges[j + 1], self.slopes[j]
        steep = np.abs(slope)
        with np.errstate(invalid="ignore", divide="ignore"):
            fall = np.where(steep == 0.0, 0.0, steep * (right - left))
            sloped = -np.log1p((1.0 - uniform) * np.expm1(-fall)) / steep
            inward = np.where(fall < _FLAT, uniform * (right - left), sloped)
        return np.where(slope > 0.0, right - inward, left + inward)


@dataclass(frozen=True, slots=True, init=False)
class PiecewiseConstant(FormLaw):
    """A density that is constant between ``edges``; ``log_weights`` are the logs of its heights, up to one factor.

    The law normalises itself: the height on segment ``j`` is ``exp(log_weights[j]) / Z`` with
    ``Z = sum_j exp(log_weights[j]) (edges[j+1] - edges[j])``, all in logs. Minus infinity makes a segment empty.
    At an edge the density is that of the segment to its right, at the last edge that of the one to its left.

    >>> law = PiecewiseConstant([0.0, 1.0, 3.0], [0.0, -1.0])
    >>> round(law.log_normaliser, 12) == round(float(np.log(1 + 2 * np.exp(-1.0))), 12)
    True
    """

    edges: tuple[float, ...]
    log_weights: tuple[float, ...]
    log_normaliser: float

    def __init__(self, edges: ArrayLike, log_weights: ArrayLike) -> None:
        borders = _sorted_edges(edges)
        if not np.isfinite(borders).all():
            raise InvalidArgument(f"edges={shorten(edges)} must be finite: a constant density has two ends.")
        weights = _log_weights(log_weights, borders.size - 1)
        with np.errstate(divide="ignore"):
            log_normaliser = float(np.logaddexp.reduce(weights + np.log(np.diff(borders))))
        object.__setattr__(self, "edges", tuple(borders.tolist()))
        object.__setattr__(self, "log_weights", tuple(weights.tolist()))
        object.__setattr__(self, "log_normaliser", log_normaliser)

    def _pieces(self) -> Pieces:
        edges = np.array(self.edges)
        values = np.array(self.log_weights) - self.log_normaliser
        return Pieces(edges, edges[:-1], values, np.zeros(values.size))

    def form(self) -> Form:
        """A density, closed form."""
        return Form(continuous=self._pieces().continuous())

    def _draw(self, size: int, rng: np.random.Generator) -> Array:
        return self._pieces().sample(size, rng)


@dataclass(frozen=True, slots=True, init=False)
class PiecewiseExponential(FormLaw):
    """A density whose logarithm is ``intercepts[j] + slopes[j] x`` on ``(edges[j], edges[j+1])``.

    The outer edges may be infinite, with slopes that make the mass finite. Total mass must be one;
    ``PiecewiseExponential.normalised`` divides by it. At an edge the density is that of the piece to its right, at the last edge
    that of the one to its left.

    >>> law = PiecewiseExponential([-np.inf, 0.0, np.inf], [-np.log(2.0)] * 2, [1.0, -1.0])
    >>> law.log_prob([0.0, 3.0]).round(6).tolist()
    [-0.693147, -3.693147]
    """

    edges: tuple[float, ...]
    intercepts: tuple[float, ...]
    slopes: tuple[float, ...]

    def __init__(self, edges: ArrayLike, intercepts: ArrayLike, slopes: ArrayLike) -> None:
        borders = _sorted_edges(edges)
        heights = _log_weights(intercepts, borders.size - 1)
        steepness = finite_array("slopes", slopes, ndim=1, empty=False)
        if steepness.size != heights.size:
            raise InvalidArgument(f"There are {heights.size} intercepts but {steepness.size} slopes.")
        object.__setattr__(self, "edges", tuple(borders.tolist()))
        object.__setattr__(self, "intercepts", tuple(heights.tolist()))
        object.__setattr__(self, "slopes", tuple(steepness.tolist()))
        check_mass("PiecewiseExponential", self._log_total())

    @classmethod
    def normalised(cls, edges: ArrayLike, intercepts: ArrayLike, slopes: ArrayLike) -> PiecewiseExponential:
        """Return the law whose log-density is the given one up to a constant.

        Parameters
        ----------
        edges, intercepts, slopes : array_like
            As for :class:`PiecewiseExponential`, but of any positive finite mass.
        """
        law = cls.__new__(cls)
        for name, values in (("edges", edges), ("intercepts", intercepts), ("slopes", slopes)):
            object.__setattr__(law, name, tuple(np.asarray(values, dtype=np.float64).tolist()))
        total = law._log_total()
        if not math.isfinite(total):
            raise LawError(f"PiecewiseExponential has total mass exp({total}); it must be positive and finite.")
        return cls(edges, np.asarray(intercepts, dtype=np.float64) - total, slopes)

    def _log_total(self) -> float:
        first, last = self.edges[0], self.edges[-1]
        if (first == -math.inf and self.slopes[0] <= 0.0) or (last == math.inf and self.slopes[-1] >= 0.0):
            raise LawError(
                f"PiecewiseExponential with edges={shorten(self.edges)} and slopes={shorten(self.slopes)} has infinite "
                "mass: towards minus infinity the slope must be positive, towards infinity negative."
            )
        return float(self._pieces().log_mass(np.array(-np.inf), np.array(np.inf)))

    def _pieces(self) -> Pieces:
        edges, heights, slopes = np.array(self.edges), np.array(self.intercepts), np.array(self.slopes)
        anchors = np.where(np.isfinite(edges[:-1]), edges[:-1], np.where(np.isfinite(edges[1:]), edges[1:], 0.0))
        return Pieces(edges, anchors, heights + slopes * anchors, slopes)

    def form(self) -> Form:
        """A density, closed form."""
        return Form(continuous=self._pieces().continuous())

    def _draw(self, size: int, rng: np.random.Generator) -> Array:
        return self._pieces().sample(size, rng)


def _sorted_edges(edges: ArrayLike) -> Array:
    borders = np.asarray(edges, dtype=np.float64)
    if borders.ndim != 1 or borders.size < 2 or not (np.diff(borders) > 0.0).all():
        raise InvalidArgument(f"edges={shorten(edges)} must be at least two increasing numbers.")
    return borders


def _log_weights(values: ArrayLike, count: int) -> Array:
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (count,):
        raise InvalidArgument(f"{count + 1} edges make {count} segments, but {weights.size} weights were given.")
    if not (weights < np.inf).all() or not np.isfinite(weights).any():  # also catches NaN
        raise InvalidArgument(
            f"log-weights {shorten(values)} must be numbers or minus infinity, at least one of them finite."
        )
    return weights
