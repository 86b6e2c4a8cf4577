"""Broken inverse sensitivity mechanisms, and one that looks broken but is private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import array_within, check_choice, check_interval, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.exact.mechanism_laws.histogram import as_quantile, rank
from dpaudit.exact.mechanism_laws.inverse_sensitivity import quantile_segments

from .._common import Floats, check_draw
from ..inverse_sensitivity import draw_piecewise

VARIANTS = ("doubled exponent", "range of the data", "smoothing by the spread", "shifted offset")


@dataclass(frozen=True, slots=True)
class BrokenInverseSensitivity:
    """The inverse sensitivity median of numbers in [low, high] with one thing changed.

    ======================= ========================================================================= ==================
    variant                 what is changed                                                           true epsilon
    ======================= ========================================================================= ==================
    doubled exponent        weights ``exp(-epsilon len)``: the 2 of both directions is forgotten      2 epsilon
    range of the data       outputs between the smallest and the largest row: the support moves       infinite
    smoothing by the spread rho is 2 % of the data's spread: one row can change every length at once  grows with rows
    shifted offset          lengths ``|c - r|`` on the n + 1 gaps: other lengths, still of            epsilon (no bug
                            sensitivity 1                                                             in the privacy)
    ======================= ========================================================================= ==================
    """

    epsilon: float
    low: float
    high: float
    variant: str
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)
        check_choice(VARIANTS, variant=self.variant)

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return PureDP(self.epsilon, self.relation)

    def epsilon_bracket(self, rows: int) -> tuple[float, float]:
        """Return a proven bracket of the true epsilon for that many rows, three or more.

        Smoothing by the spread: on equal rows at the middle the density is uniform, because every other output is
        ``m = max(r, n - r + 1)`` rows away; one row moved to an end smooths the median itself, and the exact epsilon of
        this pair is the lower end. The upper one is ``m epsilon``: lengths lie between 0 and m.
        """
        if self.variant == "doubled exponent":
            return 2.0 * self.epsilon, 2.0 * self.epsilon
        if self.variant == "range of the data":
            return math.inf, math.inf
        if self.variant == "shifted offset":
            return self.epsilon, self.epsilon
        data = np.full(rows, (self.low + self.high) / 2.0)
        moved = np.append(data[1:], self.high)
        place = rank(as_quantile(0.5), rows)
        farthest = max(place, rows - place + 1)
        return exact.epsilon(self.law(data), self.law(moved)), farthest * self.epsilon

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy medians."""
        law = self.law(data)
        if isinstance(law, exact.PiecewiseConstant):
            return draw_piecewise(law, size, rng)
        check_draw(size, rng)
        return np.full(size, float(np.asarray(data, dtype=np.float64).flat[0]))

    def law(self, data: Any) -> exact.PiecewiseConstant | exact.Discrete:
        """The piecewise constant density; a single point where equal rows leave no range."""
        rows = np.sort(array_within("data", data, self.low, self.high, empty=False))
        place = rank(as_quantile(0.5), rows.size)
        low, high, rho, epsilon = self.low, self.high, 0.0, self.epsilon
        if self.variant == "shifted offset":
            edges = np.concatenate([[low], rows, [high]])
            inside = np.diff(edges) > 0.0
            weights = -0.5 * epsilon * np.abs(np.arange(rows.size + 1) - place)
            return exact.PiecewiseConstant(np.append(edges[:-1][inside], high), weights[inside])
        if self.variant == "range of the data":
            low, high = float(rows[0]), float(rows[-1])
            if low == high:
                return exact.Discrete({low: 1.0})
        elif self.variant == "doubled exponent":
            epsilon = 2.0 * epsilon
        else:
            rho = 0.02 * float(rows[-1] - rows[0])
        return quantile_segments(rows, place, low=low, high=high, rho=rho).law(epsilon)
