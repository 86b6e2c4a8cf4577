r"""Outward rounding: bounds of the errors with which masses and densities of draws are computed.

Every end of an interval that :func:`dpaudit.verify` reports is moved outwards by the bounds of this module. They are first
order in :math:`u = 2^{-53}`, with factors of two or more to spare, and tests compare them with mpmath.

**Allowed.** A basic operation has a relative error of at most ``UNIT``. ``exp``, ``expm1``, ``log``, ``log1p`` and
``logaddexp`` are allowed ``ELEMENTARY``, eight units of the last place: numpy documents at most four, the C library at most two.
``log_ndtr`` is allowed ``SPECIAL`` plus ``4 UNIT x^2``, the rounding of the square in it. Nothing else is taken for granted.

**Masses of intervals.** Every closed form is a sum of logarithms of one sign, so the error of the sum is at most
``ELEMENTARY`` times a multiple of its size plus a constant; where numbers are subtracted, the bound has the ratio of their size
to the difference. ``Source.log_error`` states the bound for each law.

**Ends of intervals.** A cut is a rational number, and is rounded to a float ``e`` for the closed form. That moves the mass by at
most ``UNIT |e|`` times the density there, which is much of the mass of a narrow interval far from 0
(:func:`mass_error`).

**Densities of outputs.** A density is compared down to ``exp(-760)``. There the standard draw is at most ``reach`` from 0, its
logarithm changes by at most ``slope`` per unit, and location and scale are rounded to floats (:func:`density_error`). A cell of
a rounded number is an interval whose ends are floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dpaudit.exact.form import Continuous
    from dpaudit.symbolic.draws.sources import Source
    from dpaudit.symbolic.values.regions import RealNumber, Region

UNIT = 2.0**-53
ELEMENTARY = 16.0 * UNIT
SPECIAL = 64.0 * UNIT
LARGEST_LOG = 760.0
"""Logs of densities are compared down to minus this: ``exact.divergences.pair.FAR``."""

LogError = Callable[[float, float, float], float]
"""The error of the log-mass of an interval between two floats, from its ends and the log-mass that was computed."""


class Steepness(NamedTuple):
    """Bounds where a standard density is above ``exp(-760)``: the largest ``|x|``, slope of its logarithm, and their product."""

    reach: float
    slope: float
    product: float


STEEPNESS = {
    "laplace": Steepness(760.0, 1.0, 760.0),
    "exponential": Steepness(760.0, 1.0, 760.0),
    "logistic": Steepness(760.0, 1.0, 760.0),
    "normal": Steepness(39.0, 39.0, 1521.0),
    "gumbel": Steepness(760.0, 761.0, 5100.0),  # the slope is exp(-x) - 1, so it is steep left of 0 only, to -6.7
    "uniform": Steepness(1.0, 0.0, 0.0),
}


def of_sums(terms: float, size: float) -> LogError:
    """The error of a log-mass that is a sum of ``terms`` logarithms of one sign, each used ``size`` times."""
    return lambda _low, _high, log_mass: ELEMENTARY * (terms + size * abs(log_mass))


OF_SUMS = of_sums(6.0, 3.0)


def of_normal(_low: float, _high: float, log_mass: float) -> float:
    """The error of the log-mass of an interval under the normal law.

    For tails ``Q(a) > Q(b)`` with ``log Q(b) - log Q(a) < -1/2`` the log of the difference moves by at most 2.6 times the
    error of ``log Q(a)`` and 1.6 times that of ``log Q(b)`` where both matter; ``a^2 / 2`` is at most the log of the mass.
    Otherwise it is one Gauss-Legendre rule of 24 nodes on an interval of half-width h < 0.8 and ``2 h |x| < 1.5``: on the ellipse
    whose half-axes sum to 4 h the integrand is at most ``exp(6)`` times its least value, and the error of the rule below
    ``64/15 exp(6) 4^-46 < 1e-24`` (see laws/shared_draw.py); the rest is rounding.
    """
    return 4.0 * SPECIAL + ELEMENTARY * (8.0 + 8.0 * abs(log_mass))


def of_gumbel(low: float, high: float, log_mass: float) -> float:
    """The error of ``-n + log(1 - exp(n - f))`` with ``f = exp(-low)`` and ``n = exp(-high)``."""
    far, near = (math.exp(min(700.0, -end)) for end in (low, high))
    gap = far - near
    lost = (far + near) / math.expm1(gap) if 0.0 < gap < 700.0 else 0.0 if gap > 0.0 else math.inf
    return ELEMENTARY * (4.0 + lost + near + abs(log_mass))


def mass_error(source: Source, region: Region) -> float:
    """Relative error of the mass of a region as :meth:`Source.log_mass` computes it."""
    if source.shares is not None or source.every is not None:
        return 2.0 * UNIT
    log_mass = source.log_mass(region)
    if log_mass == -math.inf:
        return 0.0
    if source.form.lattice is not None:
        ranges = region.whole_numbers()
        errors = [source.log_error(first, last, log_mass) for first, last in ranges]
    else:
        errors = [_interval_error(source, low[0], high[0]) for low, high in region.parts]
    return max(errors, default=0.0) + ELEMENTARY * (1.0 + abs(log_mass))


def _interval_error(source: Source, low: RealNumber, high: RealNumber) -> float:
    part = source.form.continuous
    assert part is not None
    a, b = float(low), float(high)
    log_mass = float(part.log_mass(np.array(a), np.array(b)))
    if log_mass == -math.inf:
        return 0.0
    error = source.log_error(a, b, log_mass)
    for end, given in ((a, low), (b, high)):
        if math.isfinite(end) and Fraction(end) != given:
            density = max(float(part.log_density(np.array([end]), side)[0]) for side in (-1, 1))
            error += math.exp(min(700.0, density - log_mass + 1.0)) * UNIT * abs(end)
    return error


def density_error(source: Source, factor: float, shift: float) -> float:
    """Error of the log-density of ``factor * x + shift`` for a draw ``x``, wherever it is above exp(-760)."""
    if source.name not in STEEPNESS:
        return point_error(source)
    steep = STEEPNESS[source.name]
    moved = 2.0 * UNIT * abs(shift / factor) * steep.slope + 4.0 * UNIT * steep.product
    return ELEMENTARY * (4.0 + LARGEST_LOG) + moved


def point_error(source: Source) -> float:
    """Error of the log-mass of one whole number, wherever it is above exp(-760)."""
    if source.shares is not None:
        return ELEMENTARY * (1.0 + max(-math.log(share) for _, share in source.shares if share > 0))
    lattice = source.form.lattice
    assert lattice is not None
    worst = max(source.log_error(float(k), float(k), -LARGEST_LOG) for k in lattice.landmarks)
    return worst + ELEMENTARY * (1.0 + LARGEST_LOG)


def cell_error(source: Source, factor: float, shift: float, step: float) -> float:
    """Error of the log-mass of a cell of width ``step`` of ``factor * x + shift``, beyond that of the density.

    Both ends are rounded by at most ``4 UNIT`` of their size. The mass of a cell is at least ``(1 - exp(-s)) / s`` of the largest
    density in it times its width, where ``s`` is the largest change of the log-density over it.
    """
    if source.name not in STEEPNESS:
        return 0.0
    steep = STEEPNESS[source.name]
    width = step / abs(factor)
    change = min(700.0, steep.slope * width)
    narrow = change / -math.expm1(-change) if change > 0.0 else 1.0
    own = ELEMENTARY * (8.0 + 8.0 * LARGEST_LOG)
    if source.name == "gumbel":
        own += ELEMENTARY * 2.0 / -math.expm1(-min(700.0, width))
    return 8.0 * UNIT * (abs(shift) + steep.reach * abs(factor) + step) / step * narrow + own


def end_error(part: Continuous, shift: float, low: float, high: float) -> float:
    """Error of the log-masses beyond both ends of an interval to which a density is clipped."""
    error = 0.0
    for end, ends in ((low, (-math.inf, low)), (high, (high, math.inf))):
        log_mass = float(part.log_mass(*map(np.array, ends))) if math.isfinite(end) else -math.inf
        if log_mass > -LARGEST_LOG:
            density = max(float(part.log_density(np.array([end]), side)[0]) for side in (-1, 1))
            error = max(error, math.exp(min(700.0, density - log_mass + 1.0)) * 4.0 * UNIT * (abs(end) + abs(shift)))
    return error + ELEMENTARY * (8.0 + 8.0 * LARGEST_LOG)


def function_error(factor: float, shift: float) -> float:
    """Error of the log-density of an increasing function of a draw (exp, log, square root), times a factor and shifted.

    The inverse has an error of ``ELEMENTARY`` of its size, and the log-density is taken to change by no more than that of a
    Gumbel law; this is stated, not proved.
    """
    steep = STEEPNESS["gumbel"]
    moved = 2.0 * UNIT * abs(shift / factor) * steep.slope + ELEMENTARY * steep.product
    return ELEMENTARY * (4.0 + 2.0 * LARGEST_LOG) + moved
