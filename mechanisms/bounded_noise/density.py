r"""The bounded densities of Dagan and Kur 2022 and their exact privacy profile, for one query.

On (-1, 1), scaled by a radius R afterwards: density ``exp(-g(x)) / Z`` with one of three convex potentials::

    DE   g(x) = exp(1 / (1 - x^2))        p1   g(x) = 1 / (1 - x^2)        p2   g(x) = 1 / (1 - x^2)^2
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import exact
from dpaudit._util.validation import check_choice, check_positive
from dpaudit.errors import InvalidArgument

from .._common import Floats, check_draw

FAMILIES: Final = ("DE", "p1", "p2")

_LARGEST_EXPONENT: Final = 700.0  # exp overflows at 709.8; the density is zero long before
_NODES: Final = 80


@dataclass(frozen=True, slots=True)
class Shape:
    """Constants of the unit density (R = 1) of a family.

    ``fisher`` is the Fisher information of its location, E g'(x)^2; ``acceptance`` the share of uniform proposals that
    rejection sampling keeps.
    """

    log_normaliser: float
    std: float
    mean_absolute: float
    fisher: float
    acceptance: float


def potential(family: str, edge: ArrayLike) -> Floats:
    """``g(-1 + edge)``: the potential at distance ``edge`` from the left end of (-1, 1); infinite outside.

    Distances from the end keep their digits where ``1 - x^2`` would lose them.

    >>> potential("p2", [1.0, 0.5, 0.0]).round(6)
    array([1.      , 1.777778,      inf])
    """
    edge = np.asarray(edge, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.where((edge > 0.0) & (edge < 2.0), 1.0 / (edge * (2.0 - edge)), np.inf)
        if family == "DE":
            return np.where(np.isinf(inverse), np.inf, np.exp(np.minimum(inverse, _LARGEST_EXPONENT)))
        return inverse if family == "p1" else inverse**2


@functools.cache
def shape(family: str) -> Shape:
    """The constants of a family.

    The trapezoidal rule converges faster than any power here: the density and all its derivatives vanish at both ends.

    >>> round(math.exp(shape("DE").log_normaliser), 12), round(shape("DE").std, 9)
    (0.054966054709, 0.286274659)
    """
    check_choice(FAMILIES, family=family)
    edge = np.linspace(0.0, 2.0, 4001)[1:-1]
    x = edge - 1.0
    inverse = 1.0 / (edge * (2.0 - edge))
    g = potential(family, edge)
    weight = np.exp(-g)
    normaliser = float(weight.sum() / 2000.0)
    density = weight / weight.sum()
    power = {"DE": np.minimum(g, 1e100), "p1": np.ones_like(g), "p2": 2.0 * inverse}
    slope = 2.0 * x * inverse**2 * power[family]
    return Shape(
        log_normaliser=math.log(normaliser),
        std=math.sqrt(float(density @ x**2)),
        mean_absolute=_mean_absolute(family, normaliser),
        fisher=float(density @ np.where(density > 0.0, slope, 0.0) ** 2),
        acceptance=normaliser / 2.0 * math.exp(float(potential(family, 1.0))),
    )


def unit_cdf(family: str, edge: ArrayLike) -> Floats:
    """``F(-1 + edge)`` of the unit density, with full relative accuracy in the left tail."""
    edge = np.clip(np.asarray(edge, dtype=np.float64), 0.0, 2.0)
    left = np.minimum(edge, 2.0 - edge)
    fraction, weight = _quadrature()
    flat = left.reshape(-1, 1)
    tail = flat[:, 0] * (np.exp(-potential(family, flat * fraction) - shape(family).log_normaliser) @ weight)
    tail = tail.reshape(edge.shape)
    return np.asarray(np.where(edge <= 1.0, tail, 1.0 - tail), dtype=np.float64)


def one_query_delta(family: str, epsilon: ArrayLike, shift: float) -> Floats:
    """Exact ``delta(epsilon)`` of one query that moves by ``shift`` radii, for ``epsilon >= 0``; both orders are equal.

    With ``y`` the distance of ``x - s`` from the left end, the loss ``l(y) = g(y) - g(y + s)`` falls from infinity to
    0 at ``y = 1 - s/2``; below its root ``y*`` the divergence collects ``f(y + s) (1 - exp(epsilon - l(y)))``, which
    has no cancellation, and the infinite losses add ``F(s)``.

    Parameters
    ----------
    family : str
        Name of the density: ``DE``, ``p1`` or ``p2``.
    epsilon : array_like
        Where the profile is read.
    shift : float
        Change of the answer, in radii.

    Examples
    --------
    >>> float(one_query_delta("DE", 1.0, 1 / 64).round(11))
    9.99979e-06
    """
    check_choice(FAMILIES, family=family)
    grid = np.asarray(epsilon, dtype=np.float64)
    if not (grid >= 0.0).all():
        raise InvalidArgument(f"epsilon={epsilon!r} must be zero or positive.")
    check_positive(shift=shift)
    if shift >= 2.0:
        return np.ones_like(grid)
    root = _loss_root(family, grid.reshape(-1), shift)
    fraction, weight = _quadrature()
    values = np.empty_like(root)
    for start in range(0, root.size, 4096):  # bounded memory
        part = slice(start, start + 4096)
        y = root[part, None] * fraction
        excess = grid.reshape(-1)[part, None] - _loss(family, y, shift)
        density = np.exp(-potential(family, y + shift) - shape(family).log_normaliser)
        values[part] = root[part] * ((density * -np.expm1(np.minimum(excess, 0.0))) @ weight)
    return np.minimum(values + unit_cdf(family, shift), 1.0).reshape(grid.shape)


def unit_noise(family: str, size: int, rng: np.random.Generator) -> Floats:
    """Draws of the unit density by rejection: a uniform ``u`` is kept with probability ``exp(g(0) - g(u))``."""
    check_choice(FAMILIES, family=family)
    check_draw(size, rng)
    peak = float(potential(family, 1.0))
    kept: list[Floats] = []
    missing = size
    while missing > 0:
        edge = 2.0 * rng.random(int(missing / shape(family).acceptance * 1.02) + 16)
        accepted = edge[rng.standard_exponential(edge.size) >= potential(family, edge) - peak] - 1.0
        kept.append(accepted[:missing])
        missing -= kept[-1].size
    return np.concatenate(kept) if kept else np.empty(0)


@dataclass(frozen=True, slots=True)
class NoiseLogDensity:
    """``log f_R(y - location)``; an object and not a closure, so that laws pickle."""

    family: str
    location: float
    radius: float

    def __call__(self, outputs: ArrayLike) -> Floats:
        """Log-density of each output, minus infinity from R on."""
        offset = (np.asarray(outputs, dtype=np.float64) - self.location) / self.radius
        return -potential(self.family, 1.0 + offset) - shape(self.family).log_normaliser - math.log(self.radius)


def noise_law(family: str, location: float, radius: float) -> exact.Density:
    """Exact law of one answer ``location + noise``."""
    return exact.Density(NoiseLogDensity(family, location, radius), (location,), (location - radius, location + radius))


@functools.cache
def _quadrature() -> tuple[Floats, Floats]:
    """Gauss-Legendre fractions and weights on (0, 1): one panel, since the densities are analytic inside."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0


def _mean_absolute(family: str, normaliser: float) -> float:
    # Twice the integral of |x| f over the left half: |x| has a kink at 0, which the trapezoidal rule would notice.
    fraction, weight = _quadrature()
    return 2.0 * float(((1.0 - fraction) * np.exp(-potential(family, fraction))) @ weight) / normaliser


def _loss(family: str, y: Floats, shift: float) -> Floats:
    far = potential(family, y + shift)
    # Where both potentials are beyond every float the density is zero as well; call the loss infinite there.
    return np.where(np.isfinite(far), potential(family, y) - np.where(np.isfinite(far), far, 0.0), np.inf)


def _loss_root(family: str, epsilon: Floats, shift: float) -> Floats:
    """``y*`` in (0, 1 - shift/2) where the loss crosses ``epsilon``, by bisection to the last bit."""
    low, high = np.zeros_like(epsilon), np.full_like(epsilon, 1.0 - shift / 2.0)
    for _ in range(64):
        middle = (low + high) / 2.0
        above = _loss(family, middle, shift) > epsilon
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high
