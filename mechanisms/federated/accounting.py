"""Privacy cost of federated rounds: exact Gaussian-DP parameters, subsampled accounting, and Flower's noise formulas."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import (
    check_choice,
    check_count,
    check_non_negative,
    check_open_unit,
    check_positive,
    check_unit,
    finite_array,
)
from dpaudit.claims import Relation, gaussian_delta
from dpaudit.errors import InvalidArgument, MissingDependency

from .._common import Floats

RELATIONS = (Relation.ZERO_OUT, Relation.SUBSTITUTE)


def exact_mu(
    noise_multiplier: float,
    *,
    relation: Relation = Relation.ZERO_OUT,
    rounds: int = 1,
    weights: ArrayLike | None = None,
) -> float:
    """Exact Gaussian-DP parameter of ``rounds`` rounds with full participation.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    relation : Relation
        Zero-out, or substitution, which moves the sum twice as far.
    rounds : int
        Number of rounds.
    weights : array_like or None
        Public weights of the clients; None: equal ones.

    Examples
    --------
    >>> exact_mu(2.0), exact_mu(2.0, relation=Relation.SUBSTITUTE, rounds=4)
    (0.5, 2.0)
    """
    check_positive(noise_multiplier=noise_multiplier)
    check_count(rounds=rounds)
    check_choice(RELATIONS, relation=relation)
    moves = 2.0 if relation is Relation.SUBSTITUTE else 1.0
    excess = 1.0
    if weights is not None:
        size = np.size(weights)
        excess = float(normalised_weights(weights, size).max()) * size
    return moves * excess * math.sqrt(rounds) / noise_multiplier


def normalised_weights(weights: ArrayLike | None, clients: int) -> Floats:
    """Public weights that sum to one; equal ones where none are given."""
    if weights is None:
        return np.full(clients, 1.0 / clients)
    w = finite_array("weights", weights, ndim=1, empty=False)
    if w.size != clients or (w < 0.0).any() or not w.any():
        raise InvalidArgument(
            f"weights={w.tolist()!r} must be {clients} numbers, one per client, zero or positive, and not all zero."
        )
    return np.asarray(w / w.sum())


def poisson_epsilon(
    noise_multiplier: float, *, sampling_rate: float, rounds: int, delta: float, accountant: str = "pld"
) -> float:
    """Epsilon of ``rounds`` Poisson-sampled rounds under zero-out, by dp-accounting's PLD or Renyi accountant.

    Holds only where each client joins each round by an independent coin. Flower samples a fixed number without
    replacement, to which this does not apply.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    sampling_rate : float
        Probability that a client joins a round.
    rounds : int
        Number of rounds.
    delta : float
        Where the profile is inverted.
    accountant : str
        ``pld`` or ``rdp``.
    """
    check_positive(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    check_unit(sampling_rate=sampling_rate)
    check_count(rounds=rounds)
    check_open_unit(delta=delta)
    check_choice(("pld", "rdp"), accountant=accountant)
    try:
        from dp_accounting import (
            GaussianDpEvent,
            NeighboringRelation,
            PoissonSampledDpEvent,
            SelfComposedDpEvent,
        )
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant
    except ImportError as error:
        raise MissingDependency(
            "Subsampled rounds are accounted for with dp-accounting. Install it with `pip install dpaudit[accounting]`."
        ) from error
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    account = PLDAccountant(relation) if accountant == "pld" else RdpAccountant(neighboring_relation=relation)
    event = PoissonSampledDpEvent(sampling_rate, GaussianDpEvent(noise_multiplier))
    account.compose(SelfComposedDpEvent(event, rounds))
    return float(account.get_epsilon(delta))


def update_noise_multiplier(noise_multiplier: float, count_std: float) -> float:
    """``z_delta = (z^-2 - (2 sigma_b)^-2)^(-1/2)``: what the updates get once the count has had its share.

    >>> round(update_noise_multiplier(1.0, 1.0), 12)
    1.154700538379
    """
    check_non_negative(noise_multiplier=noise_multiplier, count_std=count_std)
    if noise_multiplier == 0.0:
        return 0.0
    if noise_multiplier >= 2.0 * count_std:
        raise InvalidArgument(
            f"noise_multiplier={noise_multiplier!r} must be below 2 * count_std = {2.0 * count_std!r}: the noise on "
            "the count would cost the whole budget. Raise count_std, or lower noise_multiplier."
        )
    ratio = noise_multiplier / (2.0 * count_std)
    return noise_multiplier / math.sqrt((1.0 - ratio) * (1.0 + ratio))


def local_dp_std(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """Flower's LocalDpMod: ``sensitivity sqrt(2 log(1.25 / delta)) / epsilon``, the classical formula.

    It is proved for epsilon below 1 only (Dwork and Roth 2014, theorem A.1), and with clipping at C two updates are
    up to 2 C apart, so ``sensitivity`` must be 2 C. :func:`local_dp_delta` says what it gives.

    Parameters
    ----------
    epsilon, delta : float
        The claim that is made.
    sensitivity : float
        Largest distance of two updates.

    Examples
    --------
    >>> round(local_dp_std(epsilon=1.0, delta=1e-5, sensitivity=1.0), 6)
    4.844805
    """
    check_positive(epsilon=epsilon, sensitivity=sensitivity)
    check_open_unit(delta=delta)
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def local_dp_delta(*, epsilon: float, delta: float, sensitivity: float, distance: float) -> float:
    """True delta at ``epsilon`` of LocalDpMod's noise between two updates that are ``distance`` apart.

    Parameters
    ----------
    epsilon, delta, sensitivity : float
        As for :func:`local_dp_std`.
    distance : float
        True distance of the two updates.

    Examples
    --------
    >>> float(f"{local_dp_delta(epsilon=10.0, delta=1e-5, sensitivity=1.0, distance=1.0):.3e}")
    2.265e-05
    """
    check_positive(distance=distance)
    std = local_dp_std(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    return float(gaussian_delta(epsilon, distance / std))
