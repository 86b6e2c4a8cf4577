"""Events of dp-accounting as claims.

An event describes a mechanism; what it promises depends on the neighbours. By the definitions of the events, values have
norm at most C and the noise multiplier is relative to C: adding, removing or zeroing out one row moves the sum by at most
C, replacing one by at most 2 C. Simple events therefore have claims in closed form,

- Gaussian: ``GaussianDP(1 / noise_multiplier)``, twice that under substitution
- Laplace: ``PureDP(1 / noise_multiplier)``, twice that under substitution
- discrete Laplace: ``PureDP(noise_parameter * sensitivity)``, twice that under substitution
- randomised response over k buckets, under substitution: ``PureDP(log(1 + k (1 - p) / p))``
- (0, rho)-zCDP: ``ZeroConcentratedDP(rho)``

and all others an epsilon at a delta, or a whole profile, computed by an accountant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from dpaudit._util.validation import check_choice, check_open_unit, shorten
from dpaudit.adapters._loading import load, quiet
from dpaudit.claims import ApproxDP, Claim, GaussianDP, ProfileDP, PureDP, Relation, ZeroConcentratedDP
from dpaudit.errors import InvalidArgument

ADJACENCY_NAMES = {
    Relation.ADD_REMOVE: "ADD_OR_REMOVE_ONE",
    Relation.SUBSTITUTE: "REPLACE_ONE",
    Relation.ZERO_OUT: "REPLACE_SPECIAL",
}


def claim(
    event: Any,
    relation: Relation = Relation.ADD_REMOVE,
    *,
    delta: float | None = None,
    accountant: Any = None,
) -> Claim:
    """Return what an event promises.

    Parameters
    ----------
    event
        A ``DpEvent``, composed or simple.
    relation
        ``ADD_REMOVE``, ``SUBSTITUTE`` or ``ZERO_OUT``.
    delta
        Where to state epsilon; needed for every event without a claim in closed form. If given, the claim is
        ``ApproxDP`` for all events.
    accountant
        A fresh accountant to compose the event into; by default one on privacy loss distributions, whose rounding is
        pessimistic, so its epsilon is an upper bound.
    """
    check_choice(tuple(ADJACENCY_NAMES), relation=relation)
    if delta is None:
        closed = _closed_form(event, relation)
        if closed is not None:
            return closed
        raise InvalidArgument(
            f"delta={delta!r} must be given for event={shorten(event)}: its claim has no closed form, and epsilon is "
            "computed at a delta."
        )
    check_open_unit(delta=delta)
    if accountant is None:
        library = load("dp_accounting", extra="accounting")
        accountant = load("dp_accounting.pld", extra="accounting").PLDAccountant(
            neighboring_relation=library.NeighboringRelation[ADJACENCY_NAMES[relation]]
        )
    if not accountant.supports(event):
        raise InvalidArgument(
            f"event={shorten(event)} is not supported by {type(accountant).__name__} under {relation!r}; "
            + ("leave out delta= (its claim has a closed form), or " if _closed_form(event, relation) else "")
            + "pass another accountant=, such as dp_accounting.rdp.RdpAccountant(neighboring_relation=...)."
        )
    epsilon = float(accountant.compose(event).get_epsilon(delta))
    if not math.isfinite(epsilon):
        raise InvalidArgument(f"event={shorten(event)} promises nothing at delta={delta!r}: epsilon is infinite.")
    return ApproxDP(max(epsilon, 0.0), delta, relation)


def profile(
    event: Any, relation: Relation = Relation.ADD_REMOVE, *, epsilons: Iterable[float] | None = None
) -> ProfileDP:
    """Return the whole privacy profile of an event, as a claim, by privacy loss distributions, whose rounding is pessimistic.

    Parameters
    ----------
    event
        A ``DpEvent``, composed or simple.
    relation
        ``ADD_REMOVE``, ``SUBSTITUTE`` or ``ZERO_OUT``.
    epsilons
        Where to read the profile, as for :meth:`dpaudit.ProfileDP.of`.
    """
    check_choice(tuple(ADJACENCY_NAMES), relation=relation)
    library = load("dp_accounting", extra="accounting")
    account = load("dp_accounting.pld", extra="accounting").PLDAccountant(
        neighboring_relation=library.NeighboringRelation[ADJACENCY_NAMES[relation]]
    )
    if not account.supports(event):
        raise InvalidArgument(
            f"event={shorten(event)} is not supported by PLDAccountant under {relation!r}; give the points of its profile "
            "yourself, with dpaudit.ProfileDP."
        )
    account.compose(event)
    return ProfileDP.of(account.get_delta, epsilons=epsilons, relation=relation)


def accountant(make: Callable[[], Any]) -> Callable[[Any, float], float]:
    """Return an accountant of dp-accounting for :func:`dpaudit.check_accountant`.

    Parameters
    ----------
    make
        Makes a fresh accountant, for instance ``RdpAccountant`` of ``dp_accounting.rdp``. Check it with the relation that it
        is for; where it is made without one that is add-remove.
    """
    if not callable(make):
        raise InvalidArgument(f"make={shorten(make)} must be a function that makes a fresh accountant.")

    def epsilon(composition: Any, delta: float) -> float:
        library = load("dp_accounting", extra="accounting")
        account = make()
        for part in composition:
            event = (library.GaussianDpEvent if part.noise == "gaussian" else library.LaplaceDpEvent)(
                part.noise_multiplier
            )
            if part.sampling_rate < 1.0:
                event = library.PoissonSampledDpEvent(part.sampling_rate, event)
            account.compose(library.SelfComposedDpEvent(event, part.steps))
        with quiet("absl"):  # it logs every order that did not converge
            return float(account.get_epsilon(delta))

    return epsilon


def _closed_form(event: Any, relation: Relation) -> Claim | None:
    moved = 2.0 if relation is Relation.SUBSTITUTE else 1.0
    match type(event).__name__:
        case "GaussianDpEvent" if event.noise_multiplier > 0.0:
            return GaussianDP(moved / event.noise_multiplier, relation)
        case "LaplaceDpEvent" if event.noise_multiplier > 0.0:
            return PureDP(moved / event.noise_multiplier, relation)
        case "DiscreteLaplaceDpEvent":
            return PureDP(moved * event.noise_parameter * event.sensitivity, relation)
        case "RandomizedResponseDpEvent" if relation is Relation.SUBSTITUTE and 0.0 < event.noise_parameter < 1.0:
            p, k = event.noise_parameter, event.num_buckets
            return PureDP(math.log1p(k * (1.0 - p) / p), relation)
        case "ZCDpEvent" if event.xi == 0.0:
            return ZeroConcentratedDP(event.rho, relation)
    return None
