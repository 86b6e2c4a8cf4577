r"""Federated averaging with central differential privacy, as Flower does it, with the accounting that it really has.

The formulas were read in Flower (flwr 1.28.0 development, March 2026; the notes point to its explanation of
differential privacy). ``m`` clients send updates; each is scaled by ``min(1, C / norm)``, they are averaged, and
Gaussian noise of standard deviation ``z C / m`` is added to every coordinate. With equal weights one client moves the
average by at most ``C / m`` when it is zeroed out and ``2 C / m`` when it is replaced, and a canary ``C u`` reaches
both, so the round is exactly Gaussian private with

    mu = 1/z (zero-out),  2/z (substitution);   public weights w that sum to one: times m max(w);   T rounds: times
    sqrt(T).

Adaptive clipping (Andrew, Thakkar, McMahan and Ramaswamy 2021) also releases a noisy count of bits and pays for it by
more noise on the updates, ``z_delta = (z^-2 - (2 sigma_b)^-2)^(-1/2)``. Substitution moves the count by one and the
sum by 2 C, so ``4/z_delta^2 + 1/sigma_b^2 = 4/z^2``: the claim 2/z holds. Zeroing out (null bit 0) has ``1/z_delta^2
+ 1/sigma_b^2 = 1/z^2 + 3/(4 sigma_b^2)``, a little above 1/z^2.

Where Flower departs from this, a switch does the same here: ``order="flower"`` scales the noise by the norm that was
already updated, ``rule="flower"`` feeds the clipped share into a rule made for the share below, which runs away from
the target. The privacy-relevant departures are in ``mechanisms.broken.federated``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import exact
from dpaudit._util.validation import (
    check_choice,
    check_count,
    check_generator,
    check_non_negative,
    check_positive,
    check_unit,
    finite_array,
)
from dpaudit.claims import GaussianDP, Relation
from dpaudit.errors import InvalidArgument

from .._common import Floats, check_draw
from .accounting import RELATIONS, exact_mu, normalised_weights, update_noise_multiplier

ORDERS = ("fixed", "flower")
RULES = ("andrew", "flower")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveClipping:
    """Rule by which the clipping norm follows the clients: towards their ``target`` quantile.

    ``rule="andrew"`` counts updates of norm at most C; ``rule="flower"`` counts those above it and keeps the sign of
    the update, so the norm runs away from the quantile. ``count_std`` defaults to a twentieth of the clients.
    """

    target: float = 0.5
    learning_rate: float = 0.2
    count_std: float | None = None
    rule: str = "andrew"

    def __post_init__(self) -> None:
        check_unit(target=self.target)
        check_positive(learning_rate=self.learning_rate)
        check_choice(RULES, rule=self.rule)
        if self.count_std is not None:
            check_non_negative(count_std=self.count_std)

    def std_for(self, clients: int) -> float:
        """Standard deviation of the noise on the count of bits."""
        return clients / 20.0 if self.count_std is None else self.count_std

    def bits(self, norms: Floats, clipping_norm: float) -> Floats:
        """One bit per client, as the rule counts it."""
        return ((norms > clipping_norm) if self.rule == "flower" else (norms <= clipping_norm)).astype(np.float64)

    def updated(self, clipping_norm: float, fraction: float) -> float:
        """``C exp(-learning_rate (fraction - target))``."""
        return clipping_norm * math.exp(-self.learning_rate * (fraction - self.target))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The release of one round, and its privacy cost.

    ``mu`` is exact for the relation it was asked for. Where the noise was scaled by the updated norm
    (``order="flower"``) it holds given the noisy count that was drawn, and no finite mu holds for every count.
    """

    aggregate: Floats
    mu: float
    noise_std: float
    clipping_norm: float  # for the next round
    noisy_count: float | None = None


def one_round(
    data: ArrayLike,
    clipping_norm: float,
    noise_multiplier: float,
    *,
    rng: np.random.Generator,
    weights: ArrayLike | None = None,
    order: str = "fixed",
    adaptive: AdaptiveClipping | None = None,
    relation: Relation = Relation.ZERO_OUT,
) -> Round:
    """Clip, average, add noise; adapt the clipping norm if asked. Returns the aggregate and its exact mu.

    ``weights`` are public and normalised here; the noise stays ``z C / m``, as in Flower, so unequal weights cost
    privacy and ``mu`` says how much.

    Parameters
    ----------
    data : array_like
        The updates of the clients, a row each.
    clipping_norm, noise_multiplier : float
        Largest norm of a clipped update, and the noise as a multiple of it.
    rng : numpy.random.Generator
        Source of the noise.
    weights : array_like or None
        Public weights of the clients; None: equal ones.
    order : str
        ``fixed``, or ``flower``: the noise is scaled by the norm that was adapted for the next round.
    adaptive : AdaptiveClipping or None
        The rule that changes the clipping norm.
    relation : Relation
        The relation for which mu is computed.

    Examples
    --------
    >>> outcome = one_round([[3.0, 4.0], [0.0, 0.0]], 1.0, 2.0, rng=np.random.default_rng(0))
    >>> outcome.aggregate.shape, outcome.mu, outcome.noise_std
    ((2,), 0.5, 1.0)
    """
    table = client_updates(data)
    check_positive(clipping_norm=clipping_norm)
    check_non_negative(noise_multiplier=noise_multiplier)
    check_generator(rng=rng)
    check_choice(ORDERS, order=order)
    check_choice(RELATIONS, relation=relation)
    clients = len(table)
    share = normalised_weights(weights, clients)
    moves = 2.0 if relation is Relation.SUBSTITUTE else 1.0
    if adaptive is None:
        multiplier, next_norm, noisy_count, count_cost = noise_multiplier, clipping_norm, None, 0.0
    else:
        count_std = adaptive.std_for(clients)
        multiplier = update_noise_multiplier(noise_multiplier, count_std)
        count = float(adaptive.bits(update_norms(table), clipping_norm).sum())
        noisy_count = count + count_std * float(rng.standard_normal())
        next_norm = adaptive.updated(clipping_norm, noisy_count / clients)
        count_cost = 1.0 / count_std**2 if count_std > 0.0 else math.inf
    scale_norm = next_norm if order == "flower" else clipping_norm
    noise_std = multiplier * scale_norm / clients
    mean = share @ clip_updates(table, clipping_norm)
    reach = moves * float(share.max()) * clipping_norm
    return Round(
        aggregate=mean + noise_std * rng.standard_normal(mean.size),
        mu=math.sqrt((reach / noise_std) ** 2 + count_cost) if noise_std > 0.0 else math.inf,
        noise_std=noise_std,
        clipping_norm=next_norm,
        noisy_count=noisy_count,
    )


def client_updates(data: ArrayLike) -> Floats:
    """A table of updates, one client a row, at least one of each and all finite."""
    return finite_array("data", data, ndim=2, empty=False)


def clip_updates(data: ArrayLike, clipping_norm: float) -> Floats:
    """Each row scaled by ``min(1, C / norm)``; a zero update stays zero (in Flower it divides by zero).

    >>> clip_updates([[3.0, 4.0], [0.0, 0.0]], 1.0)
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    table = client_updates(data)
    check_positive(clipping_norm=clipping_norm)
    # Divided by its largest entry first, a row neither overflows nor vanishes when it is squared.
    largest = np.abs(table).max(axis=1, keepdims=True)
    direction = np.divide(table, largest, out=np.zeros_like(table), where=largest > 0.0)
    length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1.0)
    return np.where(largest > clipping_norm / length, direction * (clipping_norm / length), table)


def update_norms(data: ArrayLike) -> Floats:
    """Norm of each row; infinite where it exceeds every float."""
    table = client_updates(data)
    largest = np.abs(table).max(axis=1, keepdims=True)
    direction = np.divide(table, largest, out=np.zeros_like(table), where=largest > 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(largest[:, 0] * np.linalg.norm(direction, axis=1))


def clipping_norm_path(
    norms: ArrayLike, initial: float, rounds: int, adaptive: AdaptiveClipping | None = None
) -> Floats:
    """The clipping norm before each round and after the last, for clients of fixed norms and no noise.

    Andrew's rule settles at the target quantile from every start; with Flower's bit the same exponent is positive
    feedback, and the norm goes to zero or to infinity.

    Parameters
    ----------
    norms : array_like
        The norms of the clients' updates, the same in every round.
    initial : float
        The clipping norm of the first round.
    rounds : int
        Number of rounds.
    adaptive : AdaptiveClipping or None
        The rule; None: that of Andrew et al.

    Examples
    --------
    >>> norms = np.exp(np.linspace(-2, 2, 101))
    >>> bool(abs(clipping_norm_path(norms, 5.0, 300)[-1] - 1.0) < 0.1)
    True
    >>> bool(clipping_norm_path(norms, 5.0, 300, AdaptiveClipping(rule="flower"))[-1] > 1e6)
    True
    """
    lengths = np.abs(finite_array("norms", norms, ndim=1, empty=False))
    check_positive(initial=initial)
    check_count(minimum=0, rounds=rounds)
    adaptive = AdaptiveClipping() if adaptive is None else adaptive
    path = [float(initial)]
    for _ in range(rounds):
        path.append(adaptive.updated(path[-1], float(adaptive.bits(lengths, path[-1]).mean())))
    return np.array(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedAveraging:
    """``rounds`` noisy averages of the same clipped updates; the data are the updates, one client a row.

    >>> mechanism = FederatedAveraging(clipping_norm=1.0, noise_multiplier=2.0)
    >>> mechanism.claim
    GaussianDP(mu=0.5, relation='zero-out')
    >>> mechanism.sample([[1.0, 0.0], [0.0, 1.0]], 3, np.random.default_rng(0)).shape
    (3, 2)
    """

    clipping_norm: float
    noise_multiplier: float
    weights: tuple[float, ...] | None = None
    rounds: int = 1
    relation: Relation = Relation.ZERO_OUT

    def __post_init__(self) -> None:
        check_positive(clipping_norm=self.clipping_norm, noise_multiplier=self.noise_multiplier)
        check_count(rounds=self.rounds)
        check_choice(RELATIONS, relation=self.relation)
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(normalised_weights(self.weights, len(self.weights)).tolist()))

    @property
    def claim(self) -> GaussianDP:
        """Gaussian DP with the exact mu: the canary ``C u`` at the heaviest client reaches it."""
        mu = exact_mu(self.noise_multiplier, relation=self.relation, rounds=self.rounds, weights=self.weights)
        return GaussianDP(mu, self.relation)

    def mean(self, data: ArrayLike) -> Floats:
        """The clipped and weighted average, before noise."""
        table = client_updates(data)
        return normalised_weights(self.weights, len(table)) @ clip_updates(table, self.clipping_norm)

    def noise_std(self, clients: int) -> float:
        """``z C / m``."""
        return self.noise_multiplier * self.clipping_norm / clients

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """``size`` releases, each the averages of all rounds one after the other: shape ``(size, rounds * d)``."""
        check_draw(size, rng)
        centre = np.tile(self.mean(data), self.rounds)
        return centre + self.noise_std(len(client_updates(data))) * rng.standard_normal((size, centre.size))

    def law(self, data: ArrayLike) -> exact.Law:
        """Independent Gaussians around the average."""
        std = self.noise_std(len(client_updates(data)))
        return exact.Product([exact.Gaussian(float(centre), std) for centre in np.tile(self.mean(data), self.rounds)])


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveRound:
    """One round with adaptive clipping: the noisy count of bits, then the noisy average.

    The next clipping norm is a function of the count, so the count is released. Noise on the average belongs to the
    norm that clipped; :class:`mechanisms.broken.federated.NoiseOfUpdatedNorm` does what Flower does instead.

    >>> mechanism = AdaptiveRound(clipping_norm=1.0, noise_multiplier=1.0, adaptive=AdaptiveClipping(count_std=5.0))
    >>> mechanism.claim
    GaussianDP(mu=2.0, relation='substitute')
    """

    clipping_norm: float
    noise_multiplier: float
    adaptive: AdaptiveClipping
    relation: Relation = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        check_positive(
            clipping_norm=self.clipping_norm, noise_multiplier=self.noise_multiplier, count_std=self.count_std
        )
        check_choice(RELATIONS, relation=self.relation)
        update_noise_multiplier(self.noise_multiplier, self.count_std)

    @property
    def count_std(self) -> float:
        """Standard deviation of the noise on the count; it is part of the claim, so it must be given."""
        if self.adaptive.count_std is None:
            raise InvalidArgument("adaptive.count_std=None must be a number here: the claim depends on it.")
        return self.adaptive.count_std

    @property
    def claim(self) -> GaussianDP:
        """2/z under substitution; ``sqrt(1/z^2 + 3/(4 sigma_b^2))`` under zero-out, where a null bit is 0."""
        if self.relation is Relation.SUBSTITUTE:
            return GaussianDP(2.0 / self.noise_multiplier, self.relation)
        return GaussianDP(math.hypot(1.0 / self.noise_multiplier, math.sqrt(0.75) / self.count_std), self.relation)

    def centre(self, data: ArrayLike) -> tuple[float, Floats]:
        """The count of bits and the clipped average, before noise. A null (zero) update has bit 0."""
        table = client_updates(data)
        norms = update_norms(table)
        bits = self.adaptive.bits(norms, self.clipping_norm) * (norms > 0.0)
        return float(bits.sum()), clip_updates(table, self.clipping_norm).mean(axis=0)

    def update_std(self, clients: int) -> float:
        """Standard deviation of the noise on the average."""
        return update_noise_multiplier(self.noise_multiplier, self.count_std) * self.clipping_norm / clients

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """``size`` releases, shape ``(size, 1 + d)``: the count, then the average."""
        check_draw(size, rng)
        count, mean = self.centre(data)
        noise = rng.standard_normal((size, 1 + mean.size))
        scale = np.array([self.count_std] + [self.update_std(len(client_updates(data)))] * mean.size)
        return np.concatenate([[count], mean]) + scale * noise

    def law(self, data: ArrayLike) -> exact.Law:
        """Independent Gaussians around the count and the average."""
        count, mean = self.centre(data)
        std = self.update_std(len(client_updates(data)))
        return exact.Product(
            [exact.Gaussian(count, self.count_std), *(exact.Gaussian(float(centre), std) for centre in mean)]
        )
