r"""One Laplace draw compared with many independent ones (sparse vectors): its integral, with an error that is proved.

With a noisy threshold :math:`x` and answers of which each is above or below it, the probability of a path is

.. math:: \int \tfrac12 e^{-|x|} \prod_i m_i(x)\,dx, \qquad m_i(x) = F(\pm(a_i x + b_i)),

where :math:`F` is the Laplace distribution function: between kinks, :math:`m` is :math:`\tfrac12 e^{-u}` or :math:`1 -
\tfrac12 e^{-u}` with :math:`u = |a x + b|`. Panels end at all kinks, so on each the integrand :math:`f` is the restriction
of an entire function. Gauss-Legendre with :math:`n + 1` nodes on a panel of half-width :math:`h` has an error of at most

.. math:: \frac{64}{15}\,\frac{h M}{(1 - \rho^{-2})\,\rho^{2n}}

(Trefethen, Is Gauss Quadrature Better than Clenshaw-Curtis?, theorem 4.5), where :math:`M` bounds :math:`|f|` on the ellipse
with foci at the ends and half-axes that sum to :math:`\rho h`. From a point of the panel to one of the ellipse is at most
:math:`w = h (1 + (\rho + 1/\rho) / 2)`. There :math:`|e^{a z}| \le e^{a x} e^{|a| w}`, and because :math:`\tfrac12 e^{-u} \le
\tfrac12` on the panel, :math:`|1 - \tfrac12 e^{a z + b}| \le (1 - \tfrac12 e^{a x + b})\,e^{|a| w}`. So :math:`M \le \min f \cdot
\exp(w (1 + \sum_i |a_i|))`, and the error is relative to the integral. Beyond the last panel, every factor is at most its
value at the end, or one.

Rows of :math:`\log m_i` on the nodes are kept: paths of one mechanism, and of neighbouring data sets, need the same ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from dpaudit.exact.form import Array

_COUNT = 24
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_COUNT)
_RHO = 4.0
_REACH = 45.0
"""How far the panels reach beyond the outermost kink."""
_MOST_NODES = 50_000
_MOST_GRIDS = 4
_MOST_ROWS = 2_000
_TRUNCATION = 1e-14
"""Relative error allowed for the rule on one panel: its width follows from it."""
_ROUNDING = 1e-15
"""Relative rounding of one factor at one node: a few units of the last place."""
_WORST = 1e-11

Factor = tuple[float, float, bool]
"""A slope, a shift, and True for the mass above ``slope * x + shift``, False for that below."""


@dataclass(eq=False)
class Grid:
    """Nodes on panels that end at all kinks, and the logs of factors on them."""

    kinks: frozenset[float]
    width: float
    nodes: Array
    base: Array
    """Log of weight times density of the shared draw."""
    ends: tuple[float, float]
    rows: dict[Factor, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, kinks: frozenset[float], width: float) -> Grid | None:
        """Make panels no wider than ``width``; None if they are too many."""
        marks = np.array(sorted(kinks | {0.0}))
        marks = np.concatenate([[marks[0] - _REACH], marks, [marks[-1] + _REACH]])
        counts = np.ceil(np.diff(marks) / width).astype(int)
        if counts.sum() * _COUNT > _MOST_NODES:
            return None
        edges = np.concatenate(
            [np.linspace(a, b, n + 1)[:-1] for a, b, n in zip(marks, marks[1:], counts, strict=False)] + [marks[-1:]]
        )
        half = 0.5 * np.diff(edges)
        nodes = ((edges[:-1] + half)[:, None] + half[:, None] * _NODES).ravel()
        base = (np.log(half)[:, None] + np.log(_WEIGHTS)).ravel() - np.abs(nodes) - math.log(2.0)
        return cls(kinks, width, nodes, base, (float(marks[0]), float(marks[-1])))

    def row(self, factor: Factor) -> Array:
        """Return the log of a factor at all nodes."""
        known = self.rows.get(factor)
        if known is None:
            if len(self.rows) >= _MOST_ROWS:
                self.rows.clear()
            known = self.rows[factor] = log_factor(factor, self.nodes)
        return known

    def log_tail(self, factors: Counter[Factor], end: int) -> float:
        """Log of an upper bound of the integral beyond one end."""
        x = np.array([self.ends[end]])
        direction = 1.0 if end else -1.0
        decreasing = [
            count * float(log_factor((slope, shift, above), x)[0])
            for (slope, shift, above), count in factors.items()
            if (slope * direction > 0.0) == above
        ]
        return -abs(self.ends[end]) - math.log(2.0) + math.fsum(decreasing)


_grids: list[Grid] = []


def log_factor(factor: Factor, x: Array) -> Array:
    """Log of the mass of the standard Laplace law above or below ``slope * x + shift``."""
    slope, shift, above = factor
    bound = slope * x + shift
    inward = bound if above else -bound
    return np.where(inward > 0.0, -np.abs(inward) - math.log(2.0), np.log1p(-0.5 * np.exp(-np.abs(inward))))


def log_integral(factors: Iterable[Factor]) -> tuple[float, float] | None:
    """Log of the probability of all factors together, and a bound of its relative error; None if that is too much work."""
    counted = Counter(factors)
    steepness = 1.0 + math.fsum(abs(slope) * count for (slope, _, _), count in counted.items())
    kinks = frozenset(-shift / slope for slope, shift, _ in counted)
    if not all(map(math.isfinite, kinks)):
        return None
    grid = _grid(kinks, _width(steepness))
    if grid is None:
        return None
    values = grid.base.copy()
    for factor, count in counted.items():
        values += count * grid.row(factor) if count > 1 else grid.row(factor)
    top = float(values.max())
    total = top + math.log(float(np.exp(values - top).sum()))
    beyond = math.exp(min(0.0, max(grid.log_tail(counted, end) for end in (0, 1)) - total))
    near = values > top - 40.0
    reach = float(np.abs(grid.nodes[near]).max())
    size = float(np.abs(values[near]).max()) + math.fsum(
        count * (1.0 + 2.0 * (abs(slope) * reach + abs(shift))) for (slope, shift, _), count in counted.items()
    )
    error = 2.0 * beyond + _truncation(grid.width, steepness) + _ROUNDING * (20.0 + size)
    return (total, error) if error <= _WORST else None


def _truncation(width: float, steepness: float) -> float:
    """Relative error of the rule on a panel."""
    growth = 0.5 * width * (1.0 + 0.5 * (_RHO + 1.0 / _RHO)) * steepness
    return 64.0 / 15.0 / (1.0 - _RHO**-2) * math.exp(min(700.0, growth - 2.0 * (_COUNT - 1) * math.log(_RHO)))


def _width(steepness: float) -> float:
    """Return the largest width, on a coarse scale, at which the rule is accurate."""
    width = 1.0
    while _truncation(width, steepness) > _TRUNCATION:
        width *= 0.5
    return width


def _grid(kinks: frozenset[float], width: float) -> Grid | None:
    """Return a grid with at least these kinks; one that is there already if possible."""
    for grid in _grids:
        if grid.width <= width and kinks <= grid.kinks:
            return grid
    wider = _grids[-1].kinks | kinks if _grids else kinks
    made = Grid.of(wider, width) if len(wider) <= 4 * len(kinks) + 16 else None
    made = made or Grid.of(kinks, width)
    if made is not None:
        _grids.append(made)
        del _grids[:-_MOST_GRIDS]
    return made
