r"""The true epsilon of a composition, between a lower and an upper bound, by dp-accounting's privacy loss distributions.

The truth is that of a concrete mechanism: every step releases the sum of one number per row, with noise, over a Poisson sample,
and the data differ in a row whose number is 1 (and -1 where it is replaced). In units of its noise a step has the laws

- add-remove and zero-out: N(0, z^2) against (1 - q) N(0, z^2) + q N(1, z^2), in both orders
- substitution: (1 - q) N(0, z^2) + q N(1, z^2) against (1 - q) N(0, z^2) + q N(-1, z^2)

and the same with Laplace laws. An accountant that reports less than their composition has is wrong about this mechanism,
whatever dominating pairs it may use for others.

**Upper bound**: losses rounded so that the hockey-stick divergence is nowhere less ("connect the dots"; Doroshenko et al. 2022).

**Lower bound**: every loss rounded down to a multiple of the interval h. With P and Q the laws of a step, this replaces Q by
the measure ``P exp(-loss)``, which is nowhere smaller, so the hockey-stick divergence ``sum (P - exp(epsilon) Q)_+`` is no more
than the true one at every epsilon. Products of such measures are nowhere smaller either: the same holds for compositions.
Per step at most h is lost, so epsilon is at most h times the number of steps too small.

**Rounding.** The convolutions are Fourier transforms in double precision. Their error in delta, and the mass of the tails that
are cut off (1e-15 a part), are covered by asking for epsilon at ``delta + 1e-12 + 4e-14 steps`` in the lower bound: the
relative error of a transform is a few 2^-53, and a power multiplies it by the number of steps. This is an allowance, not a proof.

Gaussian steps without sampling need none of this: they are N(0, 1) against N(mu, 1) with ``mu^2`` the sum of ``steps / z^2``,
or four times that under substitution.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpaudit._util.validation import check_choice, check_open_unit, check_positive, shorten
from dpaudit.accountant.composition import COMPOSED_RELATIONS, Composition, Part
from dpaudit.adapters._loading import load
from dpaudit.claims import Relation, gaussian_epsilon
from dpaudit.errors import InvalidArgument

MOST_LOSSES = 2**19
"""Points of the grid between the losses of a composition, about; it is never finer than that."""
LOST_TO_ROUNDING = (1e-12, 4e-14)
"""Added to delta in the lower bound: once, and per step."""
COARSE_PRECISION, FINE_PRECISION = 0.3, 0.03
"""Largest loss of the lower bound in epsilon: of the first computation, and of the second if the first does not decide."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """The true epsilon is at least ``low`` and at most ``high``."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.6g}" if self.low == self.high else f"between {self.low:.6g} and {self.high:.6g}"


def true_epsilon(
    composition: Composition,
    delta: float,
    *,
    relation: Relation = Relation.ADD_REMOVE,
    precision: float = FINE_PRECISION,
) -> Bracket:
    """Bracket the true epsilon of a composition at ``delta``.

    Parameters
    ----------
    composition
        A tuple of :class:`~dpaudit.accountant.composition.Part`.
    delta, relation
        The delta of the epsilon, and the neighbouring relation.
    precision
        About how far apart the bounds may be; a grid of 2^19 losses is the limit.

    Examples
    --------
    >>> true_epsilon((Part(1.0),), 1e-5)
    Bracket(low=4.377178..., high=4.377178...)
    >>> truth = true_epsilon((Part(0.5, 0.01, 50),), 1e-5)
    >>> 5.57 < truth.low < truth.high < 5.603
    True
    """
    check_open_unit(delta=delta)
    check_choice(COMPOSED_RELATIONS, relation=relation)
    check_positive(precision=precision)
    if not composition or not all(isinstance(part, Part) for part in composition):
        raise InvalidArgument(f"composition={shorten(composition)} must be a tuple of dpaudit.accountant.Part.")
    exact = _without_sampling(composition, delta, relation)
    if exact is not None:
        return Bracket(exact, exact)
    high = _epsilon(composition, delta, relation, precision, upwards=True)
    low = _epsilon(composition, delta, relation, precision, upwards=False)
    return Bracket(min(low, high), high)


def decide(reported: float, composition: Composition, delta: float, relation: Relation, tolerance: float) -> Bracket:
    """Bracket the truth just finely enough to compare ``reported`` with it.

    The upper bound is sharp on a coarse grid already; a report that reaches it is right, and only for others is the lower
    bound refined.
    """
    bracket = true_epsilon(composition, delta, relation=relation, precision=COARSE_PRECISION)
    if bracket.low * (1.0 - tolerance) <= reported < bracket.high:
        return true_epsilon(composition, delta, relation=relation, precision=FINE_PRECISION)
    return bracket


def _without_sampling(composition: Composition, delta: float, relation: Relation) -> float | None:
    if any(part.noise != "gaussian" or part.sampling_rate < 1.0 for part in composition):
        return None
    moved = _moved(relation)
    return gaussian_epsilon(
        moved * math.sqrt(sum(part.steps / part.noise_multiplier**2 for part in composition)), delta
    )


def _moved(relation: Relation) -> float:
    return 2.0 if relation is Relation.SUBSTITUTE else 1.0


@functools.lru_cache(maxsize=4096)
def _epsilon(composition: Composition, delta: float, relation: Relation, precision: float, *, upwards: bool) -> float:
    steps = sum(part.steps for part in composition)
    interval = max(precision / steps, _range(composition, relation) / MOST_LOSSES)
    total = functools.reduce(
        lambda losses, other: losses.compose(other), _losses(composition, relation, interval, upwards=upwards)
    )
    once, each = LOST_TO_ROUNDING
    asked = delta if upwards else min(delta + once + each * steps, 1.0)
    return max(0.0, float(total.get_epsilon_for_delta(asked)))


def _range(composition: Composition, relation: Relation) -> float:
    """Losses between which a composition has nearly all its mass, roughly: it decides on the grid, not on validity.

    For a step of q and s = 1/z it is the largest loss of one step, and twenty standard deviations of the sum; the variance of a
    step is about ``q^2 (exp(s^2) - 1)`` for small q, and ``s^2`` for q = 1.
    """
    largest = square = 0.0
    for part in composition:
        s = _moved(relation) / part.noise_multiplier
        largest = max(largest, s**2 / 2.0 + 10.0 * s)
        square += part.steps * min(part.sampling_rate**2 * math.expm1(min(s**2, 100.0)), s**2)
    return largest + square + 20.0 * math.sqrt(square)


def _losses(composition: Composition, relation: Relation, interval: float, *, upwards: bool) -> Iterator[Any]:
    library = load("dp_accounting", extra="accounting")
    made = load("dp_accounting.pld.privacy_loss_distribution", extra="accounting")
    rounding = {
        "pessimistic_estimate": upwards,
        "use_connect_dots": upwards,  # the other rule has no lower bound
        "value_discretization_interval": interval,
    }
    replaced = relation is Relation.SUBSTITUTE
    names = library.NeighboringRelation
    for part in composition:
        if part.noise == "gaussian":
            losses = made.from_gaussian_mechanism(
                part.noise_multiplier,
                sampling_prob=part.sampling_rate,
                neighboring_relation=names.REPLACE_ONE if replaced else names.ADD_OR_REMOVE_ONE,
                **rounding,
            )
        elif replaced and part.sampling_rate < 1.0:
            raise InvalidArgument(
                f"composition has {part}: the truth of sampled Laplace noise is not known under substitution; use add-remove, "
                "or sampling_rate=1."
            )
        else:
            losses = made.from_laplace_mechanism(
                part.noise_multiplier, sensitivity=_moved(relation), sampling_prob=part.sampling_rate, **rounding
            )
        yield losses.self_compose(part.steps)
