r"""Laws of a number under a secret, and the distances between them, on which the Pufferfish mechanisms are calibrated.

A conditional law is a Gaussian mixture or a :class:`dpaudit.exact.Discrete` law on numbers. In one dimension the
distance ``W_inf = inf over couplings of sup |x - y|`` is ``sup_u |F^{-1}(u) - G^{-1}(u)|``: the quantile coupling is
optimal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp

from dpaudit import exact
from dpaudit._util.validation import finite_array, shorten
from dpaudit.errors import InvalidArgument

from .._common import Floats, check_draw

# Quantile levels closer than this are one level that was summed in two orders; it bounds the mass that is neglected.
_SAME_LEVEL = 1e-12
_REACH = 40.0  # standard deviations on either side of a component that are searched


@dataclass(frozen=True, slots=True)
class GaussianMixture:
    """``sum_c weights[c] N(means[c], stds[c]^2)``; weights are zero or positive and sum to one.

    >>> GaussianMixture((0.3, 0.7), (0.0, 4.0), (1.0, 1.5)).mean
    2.8
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]
    stds: tuple[float, ...]

    def __post_init__(self) -> None:
        weights, means, stds = (
            finite_array(name, getattr(self, name), ndim=1, empty=False) for name in ("weights", "means", "stds")
        )
        if not weights.size == means.size == stds.size:
            raise InvalidArgument(
                f"weights, means and stds have {weights.size}, {means.size} and {stds.size} entries; all must agree."
            )
        if (weights < 0.0).any() or abs(float(weights.sum()) - 1.0) > 1e-9:
            raise InvalidArgument(f"weights={self.weights!r} must be zero or positive and sum to 1 (tolerance 1e-9).")
        if (stds <= 0.0).any():
            raise InvalidArgument(f"stds={self.stds!r} must be positive; a point mass belongs in a Discrete law.")
        kept = weights > 0.0
        for name, values in (("weights", weights / weights.sum()), ("means", means), ("stds", stds)):
            object.__setattr__(self, name, tuple(values[kept].tolist()))

    @classmethod
    def single(cls, mean: float, std: float) -> GaussianMixture:
        """One Gaussian."""
        return cls((1.0,), (mean,), (std,))

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(np.dot(self.weights, self.means))

    def log_cdf(self, x: ArrayLike) -> Floats:
        """Log of P(X <= x), accurate in the left tail."""
        return self._log_tail(x, 1.0)

    def log_sf(self, x: ArrayLike) -> Floats:
        """Log of P(X > x), accurate in the right tail."""
        return self._log_tail(x, -1.0)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """``size`` independent draws."""
        check_draw(size, rng)
        label = rng.choice(len(self.weights), size, p=self.weights)
        return np.array(self.means)[label] + np.array(self.stds)[label] * rng.standard_normal(size)

    def _log_tail(self, x: ArrayLike, sign: float) -> Floats:
        z = (np.asarray(x, dtype=np.float64)[..., None] - np.array(self.means)) / np.array(self.stds)
        return np.asarray(logsumexp(np.log(self.weights) + log_ndtr(sign * z), axis=-1))


Conditional: TypeAlias = GaussianMixture | exact.Discrete


def check_conditional(name: str, law: object) -> None:
    """Refuse anything but a Gaussian mixture or a discrete law on finite numbers."""
    if isinstance(law, exact.Discrete):
        numeric_outcomes(law)
    elif not isinstance(law, GaussianMixture):
        raise InvalidArgument(
            f"{name}={shorten(law)} must be a GaussianMixture or a dpaudit.exact.Discrete law on numbers."
        )


def numeric_outcomes(law: exact.Discrete) -> tuple[Floats, Floats]:
    """Sorted outcomes of positive probability, and their probabilities."""
    listed: list[Any] = list(law.outcomes)  # finite_array says which are no numbers
    outcomes = finite_array("outcomes", listed, ndim=1, empty=False)
    probabilities = np.exp(law.log_probabilities)
    place = np.argsort(outcomes)
    place = place[probabilities[place] > 0.0]
    return outcomes[place], probabilities[place]


def wasserstein_infinity(P: Conditional, Q: Conditional) -> float:
    """``W_inf(P, Q)``, infinite where the tails differ in spread.

    Discrete laws: exact, by comparing the quantiles on every interval between consecutive levels of the two
    distribution functions. Two Gaussians: the difference of the means, or infinity if the standard deviations differ.
    Mixtures: at both infinities the component of largest standard deviation decides (among equals the outermost), the
    weights do not matter, and the quantile gap tends to the difference of those means; between, the gap is maximised
    numerically around every component of both laws, and rounded up by one part in 1e9.

    >>> wasserstein_infinity(GaussianMixture.single(0.0, 1.0), GaussianMixture.single(1.0, 1.0))
    1.0
    >>> wasserstein_infinity(exact.Discrete({0: 0.9, 5: 0.1}), exact.Discrete({0: 1.0}))
    5.0
    """
    check_conditional("P", P)
    check_conditional("Q", Q)
    if isinstance(P, exact.Discrete) and isinstance(Q, exact.Discrete):
        return float(np.max(np.abs(_discrete_gaps(P, Q)[0])))
    if isinstance(P, GaussianMixture) and isinstance(Q, GaussianMixture):
        return _mixture_distance(P, Q)
    return math.inf  # bounded against unbounded support


def wasserstein_one(P: exact.Discrete, Q: exact.Discrete) -> float:
    """``W_1``: the mean quantile gap of two discrete laws. It is no basis for a privacy mechanism; see the broken one.

    >>> round(wasserstein_one(exact.Discrete({0: 0.9, 5: 0.1}), exact.Discrete({0: 1.0})), 12)
    0.5
    """
    gaps, masses = _discrete_gaps(P, Q)
    return float(np.abs(gaps) @ masses)


def component_bound(P: GaussianMixture, Q: GaussianMixture) -> float:
    """``max_c |mean_c - mean'_c|``: an upper bound of W_inf for mixtures of common weights and standard deviations.

    Couple the components, and inside each shift by the difference of the means.

    >>> P = GaussianMixture((0.3, 0.7), (0.0, 4.0), (1.0, 1.5))
    >>> component_bound(P, GaussianMixture((0.3, 0.7), (1.0, 4.5), (1.0, 1.5)))
    1.0
    """
    check_shared_weights(P, Q)
    if P.stds != Q.stds:
        raise InvalidArgument(
            f"stds={P.stds!r} and stds={Q.stds!r} must be equal; otherwise no shift couples the components."
        )
    return float(np.max(np.abs(np.subtract(P.means, Q.means))))


def check_shared_weights(P: GaussianMixture, Q: GaussianMixture) -> None:
    """Refuse mixtures whose components do not pair up."""
    if len(P.weights) != len(Q.weights) or not np.allclose(P.weights, Q.weights, rtol=0.0, atol=1e-12):
        raise InvalidArgument(
            f"weights={P.weights!r} and weights={Q.weights!r} must be equal: components are coupled one to one."
        )


def _discrete_gaps(P: exact.Discrete, Q: exact.Discrete) -> tuple[Floats, Floats]:
    """Quantile gaps on the intervals between consecutive levels, and the lengths of these intervals."""
    (x, p), (y, q) = numeric_outcomes(P), numeric_outcomes(Q)
    cdf_x, cdf_y = np.cumsum(p) / p.sum(), np.cumsum(q) / q.sum()
    levels = np.unique(np.concatenate([[0.0], cdf_x, cdf_y]))
    lengths = np.diff(levels)
    middle = levels[:-1] + lengths / 2.0
    gaps = x[np.searchsorted(cdf_x[:-1], middle)] - y[np.searchsorted(cdf_y[:-1], middle)]
    real = lengths > _SAME_LEVEL
    return gaps[real], lengths[real]


def _mixture_distance(P: GaussianMixture, Q: GaussianMixture) -> float:
    if P == Q:
        return 0.0
    if max(P.stds) != max(Q.stds):
        return math.inf
    ends = [abs(_outermost(P, side) - _outermost(Q, side)) for side in (-1.0, 1.0)]
    if len(P.weights) == len(Q.weights) == 1:
        return ends[0]
    return max(*ends, _largest_gap(P, Q), _largest_gap(Q, P))


def _outermost(law: GaussianMixture, side: float) -> float:
    widest = max(law.stds)
    return side * max(side * mean for mean, std in zip(law.means, law.stds, strict=True) if std == widest)


def _largest_gap(P: GaussianMixture, Q: GaussianMixture) -> float:
    """Largest quantile gap around the components of P: a grid, then its best peaks magnified; rounded up by 1e-9."""
    steps = np.linspace(-_REACH, _REACH, 1601)
    x = np.unique(np.concatenate([mean + std * steps for mean, std in zip(P.means, P.stds, strict=True)]))
    gaps = np.abs(_transport(P, Q, x) - x)
    best = float(gaps.max())
    peaks = np.flatnonzero((gaps[1:-1] >= gaps[:-2]) & (gaps[1:-1] >= gaps[2:])) + 1
    peaks = peaks[np.argsort(-gaps[peaks])[:8]]
    low, high = x[peaks - 1], x[peaks + 1]
    fractions = np.linspace(0.0, 1.0, 33)
    for _ in range(4 if peaks.size else 0):  # each round sixteen times finer; the error of a peak goes with the square
        zoomed = low[:, None] + (high - low)[:, None] * fractions
        gaps = np.abs(_transport(P, Q, zoomed) - zoomed)
        best = max(best, float(gaps.max()))
        place = np.clip(gaps.argmax(axis=1), 1, fractions.size - 2)
        rows = np.arange(len(zoomed))
        low, high = zoomed[rows, place - 1], zoomed[rows, place + 1]
    return best * (1.0 + 1e-9)


def _transport(P: GaussianMixture, Q: GaussianMixture, x: Floats) -> Floats:
    """``G^{-1}(F(x))``, by bisection on the logarithm of the smaller tail."""
    log_cdf, log_sf = P.log_cdf(x), P.log_sf(x)
    left = log_cdf <= log_sf
    widest = max(*P.stds, *Q.stds)
    span = max(*P.means, *Q.means) - min(*P.means, *Q.means) + 2.0 * _REACH * widest
    low, high = np.full_like(x, min(Q.means) - span), np.full_like(x, max(Q.means) + span)
    for _ in range(60):
        middle = (low + high) / 2.0
        below = np.where(left, Q.log_cdf(middle) < log_cdf, Q.log_sf(middle) > log_sf)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2.0
