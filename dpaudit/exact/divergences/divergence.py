r"""Divergences between two exact laws.

=====================  ==========================================================================================
``epsilon(P, Q)``      :math:`\sup_S \log P(S)/Q(S)`, the max divergence: the smallest epsilon of pure DP
``delta(P, Q, e)``     :math:`\sup_S P(S) - e^{e} Q(S) = \int (p - e^e q)_+`, the hockey-stick divergence
``profile``            ``delta`` at many epsilons
``renyi(P, Q, a)``     :math:`\frac{1}{a - 1} \log \int p^a q^{1-a}`; order 1 Kullback-Leibler, infinity ``epsilon``
``total_variation``    ``delta`` at 0
``log_ratio_range``    :math:`\sup \log p/q - \inf \log p/q`, the smallest epsilon of bounded range
=====================  ==========================================================================================

The first three take the larger of both orders unless ``order="forward"``. They are infinite (``delta``: one) where
supports do not meet, and never NaN. Values have a relative accuracy of about 1e-12, also where they are 1e-20: sums and
integrals of non-negative terms in logs, split at every kink, followed outwards until the rest is negligible.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import check_choice, check_non_negative, finite_array
from dpaudit.claims import gaussian_delta
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.divergences.grid import GridPair
from dpaudit.exact.divergences.kernels import hockey_stick, renyi_power, renyi_term
from dpaudit.exact.divergences.loss import LossDistribution, compose, loss_distribution
from dpaudit.exact.divergences.pair import DensityPair, Kernel, atom_pairs, largest, log_density_sum
from dpaudit.exact.form import Array, Form, form_of, log_sum
from dpaudit.exact.law import checked_law
from dpaudit.exact.laws.continuous import Gaussian, Laplace
from dpaudit.exact.laws.lattice import DiscreteLaplace
from dpaudit.exact.laws.product import Product

Order = Literal["both", "forward"]
_MOST_MIXED = 20_000
"""Largest number of evaluations of a density's profile for a product with discrete coordinates."""


def epsilon(P: Any, Q: Any, order: Order = "both") -> float:
    """Max divergence ``sup_S log P(S) / Q(S)``: the smallest epsilon for which the pair is epsilon-private.

    For atoms and grids the supremum is over single points (for pure DP singletons suffice), for densities over the
    points between kinks and both one-sided limits there, and in the limits at infinity, which the tails decide. For
    piecewise exponential densities that is exact without search. Independent coordinates add up.

    Parameters
    ----------
    P, Q : Law
        Two laws of this package.
    order : {"both", "forward"}
        ``"both"``: the larger of epsilon(P, Q) and epsilon(Q, P); ``"forward"``: only the first.

    Examples
    --------
    >>> from dpaudit.exact import Discrete, Gaussian, Laplace
    >>> epsilon(Laplace(0.0, 2.0), Laplace(1.0, 2.0))
    0.5
    >>> round(epsilon(Discrete({0: 0.75, 1: 0.25}), Discrete({0: 0.25, 1: 0.75})), 12)
    1.098612288668
    >>> epsilon(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))
    inf
    """
    check_choice(("both", "forward"), order=order)
    forward = _epsilon(P, Q)
    return max(forward, _epsilon(Q, P)) if order == "both" and forward < math.inf else forward


def log_ratio_range(P: Any, Q: Any) -> float:
    """Length of the smallest interval that holds ``log p/q``: the smallest epsilon of bounded range. Symmetric.

    >>> from dpaudit.exact import Discrete, Laplace
    >>> log_ratio_range(Laplace(0.0, 1.0), Laplace(1.0, 1.0))
    2.0
    >>> round(log_ratio_range(Discrete({0: 0.75, 1: 0.25}), Discrete({0: 0.5, 1: 0.5})), 12)
    1.098612288668
    """
    return _epsilon(P, Q) + _epsilon(Q, P)


def delta(P: Any, Q: Any, epsilon: float, order: Order = "both") -> float:
    """Hockey-stick divergence ``sup_S P(S) - exp(epsilon) Q(S)``: the smallest delta at that epsilon.

    Gaussians of equal scale and Laplace laws of equal scale have closed forms. Products are composed exactly: equal
    coordinates drop out, Gaussian coordinates of equal scale add their squared distances, discrete ones are convolved.

    Parameters
    ----------
    P, Q, order
        As for :func:`epsilon`.
    epsilon : float
        The epsilon of the divergence, zero or more.

    Examples
    --------
    >>> from dpaudit.exact import Gaussian
    >>> round(delta(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0), 1.0), 12)
    0.126936737507
    """
    check_choice(("both", "forward"), order=order)
    check_non_negative(epsilon=epsilon)
    value = _profile(P, Q)(float(epsilon))
    return max(value, _profile(Q, P)(float(epsilon))) if order == "both" else value


def profile(P: Any, Q: Any, epsilons: ArrayLike, order: Order = "both") -> Array:
    """``delta`` at each of ``epsilons``: the privacy profile of the pair.

    Parameters
    ----------
    P, Q, order
        As for :func:`epsilon`.
    epsilons : array_like
        One-dimensional, all zero or more.

    Examples
    --------
    >>> from dpaudit.exact import Laplace
    >>> profile(Laplace(0.0, 1.0), Laplace(1.0, 1.0), [0.0, 0.5, 1.0]).round(6).tolist()
    [0.393469, 0.221199, 0.0]
    """
    check_choice(("both", "forward"), order=order)
    grid = finite_array("epsilons", epsilons)
    if (grid < 0.0).any():
        raise InvalidArgument(f"epsilons holds {float(grid.min())!r}; a privacy profile starts at 0.")
    pairs = [(P, Q), (Q, P)] if order == "both" else [(P, Q)]
    curves = [_profile(first, second) for first, second in pairs]
    return np.array([max(curve(float(e)) for curve in curves) for e in grid.ravel()]).reshape(grid.shape)


def total_variation(P: Any, Q: Any) -> float:
    """Total variation distance ``sup_S P(S) - Q(S)``; the same in both orders.

    >>> from dpaudit.exact import Discrete
    >>> round(total_variation(Discrete({0: 0.75, 1: 0.25}), Discrete({0: 0.25, 1: 0.75})), 12)
    0.5
    """
    return delta(P, Q, 0.0, order="forward")


def renyi(P: Any, Q: Any, order: float) -> float:
    """Renyi divergence of ``P`` from ``Q``: ``log(integral of p^a q^(1-a)) / (a - 1)`` at ``order`` a > 0.

    Not symmetric in the two laws.

    Parameters
    ----------
    P, Q : Law
        Two laws of this package.
    order : float
        Above 0. Order 1 is the Kullback-Leibler divergence, order infinity the max divergence.

    Examples
    --------
    >>> from dpaudit.exact import Gaussian
    >>> round(renyi(Gaussian(0.0, 2.0), Gaussian(1.0, 2.0), 3.0), 12)      # order mu^2 / 2
    0.375
    """
    if not isinstance(order, int | float | np.integer | np.floating) or isinstance(order, bool) or not order > 0.0:
        raise InvalidArgument(f"order={order!r} must be a number above 0, or infinity.")
    if order == math.inf:
        return _epsilon(P, Q)
    pairs = _coordinates(P, Q)
    return math.inf if pairs is None else math.fsum(_renyi(form_of(p), form_of(q), float(order)) for p, q in pairs)


def _coordinates(P: Any, Q: Any) -> list[tuple[Any, Any]] | None:
    """The coordinates in which two laws differ; None where outputs of one are never outputs of the other."""
    if not isinstance(P, Product) and not isinstance(Q, Product):
        return [] if checked_law(P) == checked_law(Q) else [(P, Q)]
    if not (isinstance(P, Product) and isinstance(Q, Product)):
        return [(P, Q)]
    if len(P.laws) != len(Q.laws):
        return None
    inner = [_coordinates(p, q) for p, q in zip(P.laws, Q.laws, strict=True)]
    return None if any(pairs is None for pairs in inner) else [pair for pairs in inner if pairs for pair in pairs]


def _epsilon(P: Any, Q: Any) -> float:
    pairs = _coordinates(P, Q)
    return math.inf if pairs is None else math.fsum(_pair_epsilon(p, q) for p, q in pairs)


def _pair_epsilon(P: Any, Q: Any) -> float:
    if isinstance(P, Laplace | DiscreteLaplace) and type(P) is type(Q) and P.scale == Q.scale:
        return abs(P.location - Q.location) / P.scale
    first, second = form_of(P), form_of(Q)
    best = 0.0
    p, q = atom_pairs(first, second)
    if p.size:
        best = max(best, largest(p, q))
    grid = GridPair.of(first, second)
    if grid is not None and best < math.inf:
        best = max(best, grid.supremum())
    if first.continuous is not None and best < math.inf:
        best = max(best, DensityPair.of(first.continuous, second.continuous).supremum())
    return best


def _profile(P: Any, Q: Any) -> Callable[[float], float]:
    """The function ``e -> delta`` in one order, for any real ``e``."""
    pairs = _coordinates(P, Q)
    if pairs is None:
        return lambda _: 1.0
    losses: LossDistribution | None = None
    squared_distance = 0.0
    others: list[Callable[[float], float]] = []
    for p, q in pairs:
        if isinstance(p, Gaussian) and isinstance(q, Gaussian) and p.scale == q.scale:
            squared_distance += ((p.location - q.location) / p.scale) ** 2
            continue
        discrete = loss_distribution(form_of(p), form_of(q)) if len(pairs) > 1 else None
        if discrete is None:
            others.append(_pair_profile(p, q))
        else:
            losses = discrete if losses is None else compose(losses, discrete)
    if squared_distance > 0.0:
        others.append(_gaussian_profile(math.sqrt(squared_distance)))
    if len(others) > 1:
        raise LawError(
            "delta of a product is exact where at most one differing coordinate has a density (Gaussians of equal "
            f"scale count as one); here {len(others)} do. Compose their loss distributions with dp-accounting's "
            "PLD, which brackets the value, or bound it with renyi, which adds up over coordinates."
        )
    return _joint(losses, others[0] if others else None)


def _joint(losses: LossDistribution | None, density: Callable[[float], float] | None) -> Callable[[float], float]:
    """Return the joint profile: given the loss ``l`` of the discrete coordinates, the density's profile at ``e - l``."""
    if losses is None:
        return density or (lambda _: 0.0)
    if density is None:
        return losses.delta
    if losses.losses.size > _MOST_MIXED:
        raise LawError(
            f"The discrete coordinates have {losses.losses.size} distinct losses beside a density, more than "
            f"{_MOST_MIXED}; use dp-accounting's PLD."
        )
    weighted = list(zip(np.exp(losses.log_masses).tolist(), losses.losses.tolist(), strict=True))
    certain = math.exp(losses.log_infinite)
    return lambda e: math.fsum([certain, *(mass * density(e - loss) for mass, loss in weighted)])


def _gaussian_profile(distance: float) -> Callable[[float], float]:
    return lambda e: float(gaussian_delta(e, distance))


def _pair_profile(P: Any, Q: Any) -> Callable[[float], float]:
    if isinstance(P, Laplace) and isinstance(Q, Laplace) and P.scale == Q.scale:
        return _laplace_profile(abs(P.location - Q.location) / P.scale)
    first, second = form_of(P), form_of(Q)
    p, q = atom_pairs(first, second)
    grid = GridPair.of(first, second)
    densities = None if first.continuous is None else DensityPair.of(first.continuous, second.continuous)

    def curve(e: float) -> float:
        kernel = hockey_stick(e)
        value = log_sum(kernel(p, q))
        if grid is not None:
            value = np.logaddexp(value, grid.log_sum(kernel))
        if densities is not None:
            value = np.logaddexp(value, densities.log_sum_above(e, kernel))
        return min(1.0, math.exp(value))

    return curve


def _laplace_profile(distance: float) -> Callable[[float], float]:
    """``1 - exp((e - distance) / 2)`` while ``e`` is a value of the loss, from ``-distance`` to ``distance``."""

    def curve(e: float) -> float:
        return -math.expm1(e) if e < -distance else max(0.0, -math.expm1(min(0.5 * (e - distance), 0.0)))

    return curve


def _renyi(P: Form, Q: Form, order: float) -> float:
    if order >= 1.0 and (_singular(P, Q) or _diverges(P, Q, order)):
        return math.inf
    value = _log_sum(P, Q, renyi_term(order))
    rate = order - 1.0
    if rate == 0.0:
        return math.exp(value)
    if rate > 0.0:
        return float(np.logaddexp(0.0, math.log(rate) + value)) / rate if value > -math.inf else 0.0
    share = -rate * math.exp(value)
    if share < 0.5:
        return math.log1p(-share) / rate
    overlap = _log_sum(P, Q, renyi_power(order))
    return max(0.0, overlap / rate)


def _log_sum(P: Form, Q: Form, kernel: Kernel) -> float:
    p, q = atom_pairs(P, Q)
    grid = GridPair.of(P, Q)
    value = np.logaddexp(log_sum(kernel(p, q)), log_density_sum(P.continuous, Q.continuous, kernel))
    return float(value if grid is None else np.logaddexp(value, grid.log_sum(kernel)))


def _singular(P: Form, Q: Form) -> bool:
    """Return True if ``P`` has mass where ``Q`` has none."""
    p, q = atom_pairs(P, Q)
    grid = GridPair.of(P, Q)
    if ((p > -np.inf) & (q == -np.inf)).any() or (grid is not None and grid.singular()):
        return True
    return P.continuous is not None and DensityPair.of(P.continuous, Q.continuous).singular()


def _diverges(P: Form, Q: Form, order: float) -> bool:
    """Return True if the integral of ``p^order q^(1 - order)`` (order 1: of ``p log(p / q)``) is infinite at an infinity."""
    for end in (0, 1):
        for mine, theirs in ((P.lattice, Q.lattice), (P.continuous, Q.continuous)):
            if mine is None or theirs is None or not mine.unbounded(end):
                continue
            tail, other = mine.tails[end], theirs.tails[end]
            if tail is None or other is None:
                raise LawError(
                    f"Whether the Renyi divergence of order {order} is finite depends on tails that are not known; "
                    "pass tails=(Tail(...), Tail(...)) to Density, or truncate the law."
                )
            if not tail.integrable_against(other, order):
                return True
    return False
