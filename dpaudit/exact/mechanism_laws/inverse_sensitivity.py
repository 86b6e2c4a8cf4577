"""The inverse sensitivity mechanism (Asi and Duchi 2020; report, section 3) for quantiles and for the mean, exactly.

The length ``len(x, t)`` is the least number of records of x to replace, inside [low, high], so that the statistic becomes
t; the rho-smooth length is its infimum over [t - rho, t + rho]. The mechanism draws t with density proportional to
``exp(-epsilon len(x, t) / 2)`` on [low, high], or with such probabilities on a finite set. One replacement changes every
length by at most 1, so numerator and normaliser change by at most exp(epsilon/2) each: epsilon-DP (docs/theory.md R18).

For order statistics and for the mean the length is a staircase that rises on both sides of the statistic, so the
density is piecewise constant, and sampling, moments and tails are closed forms. The range must be finite: lengths are at
most n, and on the whole line the density would have infinite mass. The range and rho must not depend on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit._util.validation import (
    array_within,
    check_count,
    check_finite,
    check_interval,
    check_non_negative,
    check_positive,
    finite_array,
)
from dpaudit.errors import InvalidArgument
from dpaudit.exact.form import Array
from dpaudit.exact.laws.discrete import Discrete
from dpaudit.exact.laws.piecewise import PiecewiseConstant

Lengths = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """A staircase on [edges[0], edges[-1]]: the length is ``lengths[j]`` inside (edges[j], edges[j+1])."""

    edges: Array
    lengths: Lengths

    def law(self, epsilon: float) -> PiecewiseConstant:
        """Law with density proportional to exp(-epsilon length / 2).

        >>> staircase = quantile_segments([0.1, 0.25, 0.3, 0.55, 0.8], 3, low=0.0, high=1.0)
        >>> round(float(np.exp(staircase.law(1.0).log_normaliser)), 12)
        0.396050022427
        """
        check_positive(epsilon=epsilon)
        return PiecewiseConstant(self.edges, -0.5 * epsilon * self.lengths)

    def length_tail(self, epsilon: float, length: int) -> float:
        """P(length of the output >= ``length``): how many records at least the output is away.

        >>> staircase = quantile_segments([0.1, 0.25, 0.3, 0.55, 0.8], 3, low=0.0, high=1.0, rho=0.07)
        >>> round(1.0 - staircase.length_tail(1.0, 1), 12)
        0.277331076647
        """
        check_count(minimum=0, length=length)
        law = self.law(epsilon)
        return float(np.exp(_log_masses(law)[self.lengths >= length]).sum())


def quantile_length(data: ArrayLike, rank: int, outputs: ArrayLike, *, rho: float = 0.0) -> Lengths:
    """Length of each output for the order statistic x_(rank), data and outputs in the same interval.

    ``max(0, #{x < t} - rank + 1, rank - #{x <= t})``: to move x_(rank) up to t, all but rank - 1 of the records below t
    must be replaced, to move it down all but n - rank of those above. The smooth length is that of the point of
    [t - rho, t + rho] nearest to x_(rank), because the length rises on both sides of it (docs/theory.md R16, R17).

    Parameters
    ----------
    data, rank, rho
        As for :func:`quantile_law`.
    outputs : array_like
        The outputs t.

    Examples
    --------
    >>> quantile_length([1, 2, 4], 2, [0, 1, 2, 3, 4]).tolist()
    [2, 1, 0, 1, 1]
    """
    x = _ranked(data, rank)
    check_non_negative(rho=rho)
    t = finite_array("outputs", outputs)
    nearest = np.clip(x[rank - 1], t - rho, t + rho)
    below = np.searchsorted(x, nearest, side="left")
    up_to = np.searchsorted(x, nearest, side="right")
    lengths: Lengths = np.maximum(0, np.maximum(below - rank + 1, rank - up_to)).astype(np.int64)
    return lengths


def mean_length(data: ArrayLike, outputs: ArrayLike, *, low: float, high: float, rho: float = 0.0) -> Lengths:
    """Length of each output for the mean of data in [low, high].

    With k records the mean rises by at most ``(1/n) sum (high - x)`` over the k smallest, and falls by at most
    ``(1/n) sum (x - low)`` over the k largest; everything between is reached.

    Parameters
    ----------
    data, low, high, rho
        As for :func:`quantile_law`.
    outputs : array_like
        The outputs t in [low, high].

    Examples
    --------
    >>> mean_length([0.0, 0.5, 1.0], [0.5, 0.6, 0.8, 0.9, 1.0], low=0.0, high=1.0).tolist()
    [0, 1, 1, 2, 2]
    """
    x = _inside(data, low, high)
    check_non_negative(rho=rho)
    t = array_within("outputs", outputs, low, high, ndim=None)
    down, mean, up = _mean_steps(x, low, high)
    nearest = np.clip(mean, t - rho, t + rho)
    rise = np.searchsorted(np.append(mean, up), nearest, side="left")
    fall = np.searchsorted(-np.append(mean, down), -nearest, side="left")
    lengths: Lengths = np.where(nearest >= mean, rise, fall).astype(np.int64)
    return lengths


def quantile_segments(data: ArrayLike, rank: int, *, low: float, high: float, rho: float = 0.0) -> Segments:
    """The staircase of ``quantile_length``: after sorting, gap number c has length rank - c, or c - rank + 1 from rank on.

    Smoothing moves the gaps left of x_(rank) by rho to the left and the others to the right, and opens a plateau of
    length 0 between; all is cut to [low, high]. Ties make empty gaps, which are left out.

    Parameters
    ----------
    data, rank, low, high, rho
        As for :func:`quantile_law`.

    Examples
    --------
    >>> staircase = quantile_segments([0.1, 0.25, 0.3, 0.55, 0.8], 3, low=0.0, high=1.0, rho=0.07)
    >>> staircase.edges.round(2).tolist(), staircase.lengths.tolist()
    ([0.0, 0.03, 0.18, 0.23, 0.37, 0.62, 0.87, 1.0], [3, 2, 1, 0, 1, 2, 3])
    """
    x = _ranked(_inside(data, low, high), rank)
    return _staircase(x[rank - 1 :: -1], x[rank - 1 :], low=low, high=high, rho=rho)


def mean_segments(data: ArrayLike, *, low: float, high: float, rho: float = 0.0) -> Segments:
    """The staircase of ``mean_length``.

    Parameters
    ----------
    data, low, high, rho
        As for :func:`quantile_law`.

    Examples
    --------
    >>> mean_segments([0.1, 0.2, 0.35, 0.5, 0.9], low=0.0, high=1.0).edges.round(12).tolist()
    [0.0, 0.02, 0.06, 0.13, 0.23, 0.41, 0.59, 0.75, 0.88, 0.98, 1.0]
    """
    down, mean, up = _mean_steps(_inside(data, low, high), low, high)
    return _staircase(np.append(mean, down[:-1]), np.append(mean, up[:-1]), low=low, high=high, rho=rho)


def quantile_law(
    data: ArrayLike, rank: int, *, epsilon: float, low: float, high: float, rho: float = 0.0
) -> PiecewiseConstant:
    """Exact law of the mechanism for x_(rank), 1 <= rank <= n; for a quantile q take rank = ceil(q n).

    Parameters
    ----------
    data : array_like
        Records in [low, high].
    rank : int
        Which order statistic. A median that averages two records has another length.
    epsilon : float
        The mechanism is epsilon-DP under substitution; exactly epsilon/2 for rank 1 and n with rho = 0 (docs/theory.md R18).
    low, high : float
        Public range of data and outputs.
    rho : float
        Public smoothing radius.

    Examples
    --------
    >>> law = quantile_law([0.1, 0.2, 0.35, 0.5, 0.9], 3, epsilon=1.0, low=0.0, high=1.0)
    >>> round(mean_value(law), 12), round(mean_absolute_error(law, 0.35), 12)
    (0.473840067892, 0.225538946476)
    """
    return quantile_segments(data, rank, low=low, high=high, rho=rho).law(epsilon)


def mean_law(data: ArrayLike, *, epsilon: float, low: float, high: float, rho: float = 0.0) -> PiecewiseConstant:
    """Exact law of the mechanism for the mean of records in [low, high].

    Parameters
    ----------
    data, epsilon, low, high, rho
        As for :func:`quantile_law`.

    Examples
    --------
    >>> law = mean_law([0.1, 0.2, 0.35, 0.5, 0.9], epsilon=1.0, low=0.0, high=1.0)
    >>> round(float(np.exp(law.log_normaliser)), 12)
    0.380856063829
    """
    return mean_segments(data, low=low, high=high, rho=rho).law(epsilon)


def finite_quantile_law(data: ArrayLike, rank: int, *, epsilon: float, points: ArrayLike, rho: float = 0.0) -> Discrete:
    """Exact law of the mechanism on a finite set ``points`` that contains all data and all outputs.

    The smooth length uses the nearest point of the set, so it differs from that on an interval.

    Parameters
    ----------
    data, rank, epsilon, rho
        As for :func:`quantile_law`.
    points : array_like
        The public set of possible records and outputs.

    Examples
    --------
    >>> law = finite_quantile_law([1, 2, 4], 2, epsilon=1.0, points=range(5))
    >>> np.exp(law.log_probabilities).round(8).tolist()
    [0.11541419, 0.19028583, 0.3137283, 0.19028583, 0.19028583]
    """
    check_positive(epsilon=epsilon)
    check_non_negative(rho=rho)
    given = list(points) if isinstance(points, range) else points
    grid = np.unique(finite_array("points", given, ndim=1, empty=False))
    x = _ranked(data, rank)
    if not np.isin(x, grid).all():
        raise InvalidArgument(f"data holds {x[~np.isin(x, grid)][0]!r}, which is not one of the points.")
    target = x[rank - 1]
    first = np.searchsorted(grid, grid - rho, side="left")
    last = np.searchsorted(grid, grid + rho, side="right") - 1
    nearest = grid[np.clip(np.searchsorted(grid, target), first, last)]
    log_weights = -0.5 * epsilon * quantile_length(x, rank, nearest)
    log_probabilities = log_weights - np.logaddexp.reduce(log_weights)
    outcomes = [int(point) if float(point).is_integer() else float(point) for point in grid]
    return Discrete.from_log(outcomes, log_probabilities)


def mean_value(law: PiecewiseConstant) -> float:
    """Mean of a piecewise constant law: segment masses times midpoints."""
    edges = np.array(law.edges)
    return float(np.exp(_log_masses(law)) @ ((edges[:-1] + edges[1:]) / 2.0))


def mean_absolute_error(law: PiecewiseConstant, target: float) -> float:
    """E|M - target| of a piecewise constant law (docs/theory.md R16).

    On a segment it is the height times G(right) - G(left) with G(t) = sign(t - v) (t - v)^2 / 2, written as a product
    of sums where the target is outside, because the difference of squares would cancel.
    """
    check_finite(target=target)
    edges = np.array(law.edges)
    left, right = edges[:-1] - target, edges[1:] - target
    outside = np.where(left * right >= 0.0, np.abs(left + right) / 2.0, (left**2 + right**2) / (2.0 * (right - left)))
    return float(np.exp(_log_masses(law)) @ outside)


def probability_beyond(law: PiecewiseConstant, target: float, distance: float) -> float:
    """P(|M - target| > distance) of a piecewise constant law.

    >>> law = PiecewiseConstant([0.0, 1.0, 3.0], [0.0, 0.0])
    >>> round(probability_beyond(law, 1.0, 0.5), 12)
    0.666666666667
    """
    check_finite(target=target)
    check_non_negative(distance=distance)
    edges = np.array(law.edges)
    widths = np.diff(edges)
    below = np.clip(target - distance - edges[:-1], 0.0, widths)
    above = np.clip(edges[1:] - (target + distance), 0.0, widths)
    return float(np.exp(_log_masses(law)) @ ((below + above) / widths))


def _log_masses(law: PiecewiseConstant) -> Array:
    masses: Array = np.array(law.log_weights) - law.log_normaliser + np.log(np.diff(law.edges))
    return masses


def _inside(data: ArrayLike, low: float, high: float) -> Array:
    check_interval(low=low, high=high)
    return array_within("data", data, low, high, empty=False)


def _ranked(data: ArrayLike, rank: int) -> Array:
    x = np.sort(finite_array("data", data, ndim=1, empty=False))
    check_count(rank=rank)
    if rank > x.size:
        raise InvalidArgument(f"rank={rank} is larger than the number of records, {x.size}; ranks go from 1 to it.")
    return x


def _mean_steps(x: Array, low: float, high: float) -> tuple[Array, float, Array]:
    """The lowest means that 1, ..., n replacements reach, the mean, and the highest; the last ones are low and high.

    Each is rounded once, from its exact value: sums of doubles are whole numbers over one power of two, and Python divides
    whole numbers with correct rounding. Rounding keeps order, so where k replacements reach no further than k + 1 reach
    from a neighbour, the doubles say so too. Sums that round on the way leave slivers of 1e-17 between edges that are
    equal, in which the lengths of neighbours differ by two, and an exact comparison sees them.
    """
    ratios = [value.as_integer_ratio() for value in (float(low), float(high), *np.sort(x).tolist())]
    denominator = max(bottom for _, bottom in ratios)
    lowest, highest, *ordered = (top * (denominator // bottom) for top, bottom in ratios)
    total, unit = sum(ordered), x.size * denominator
    up = [(total + rise) / unit for rise in accumulate(highest - value for value in ordered)]
    down = [(total - fall) / unit for fall in accumulate(value - lowest for value in reversed(ordered))]
    return np.array(down), total / unit, np.array(up)


def _staircase(down: Array, up: Array, *, low: float, high: float, rho: float) -> Segments:
    """Length k between entries k-1 and k of ``up``, which starts at the statistic, then to ``high``; the same downwards."""
    check_non_negative(rho=rho)
    edges = np.clip(np.concatenate([[low], down[::-1] - rho, up + rho, [high]]), low, high)
    lengths = np.concatenate([np.arange(down.size, 0, -1), [0], np.arange(1, up.size + 1)])
    kept = np.diff(edges) > 0.0
    return Segments(np.append(edges[:-1][kept], high), lengths[kept])
