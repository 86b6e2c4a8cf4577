"""Federated averaging as Flower has it where its noise does not fit its sensitivity (flwr 1.28.0 development)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from dpaudit import exact
from dpaudit._util.validation import check_count, check_positive
from dpaudit.claims import ApproxDP, GaussianDP, Relation, gaussian_delta
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Raised

from .._common import Floats, check_draw, gaussian_epsilon, whole_numbers
from ..federated import (
    AdaptiveRound,
    FederatedAveraging,
    client_updates,
    clip_updates,
)
from ..federated.accounting import exact_mu, local_dp_std


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedAverage:
    """FedAvg weighted by the number of examples, with noise for equal weights (the default in Flower).

    The heaviest client moves the average by ``C n_i / sum(n)``, not ``C / m``.

    >>> weights = (1000.0, *[100.0] * 9)
    >>> broken = WeightedAverage(clipping_norm=1.0, noise_multiplier=1.0, weights=weights)
    >>> round(1.0 / broken.mu_exact, 12)        # the noise multiplier it is worth
    0.19
    """

    clipping_norm: float
    noise_multiplier: float
    weights: tuple[float, ...]
    relation: Relation = Relation.ZERO_OUT

    def __post_init__(self) -> None:
        _ = self._right

    @property
    def _right(self) -> FederatedAveraging:
        return FederatedAveraging(
            clipping_norm=self.clipping_norm,
            noise_multiplier=self.noise_multiplier,
            weights=self.weights,
            relation=self.relation,
        )

    @property
    def claim(self) -> GaussianDP:
        """The claim made for it: that of equal weights."""
        return GaussianDP(exact_mu(self.noise_multiplier, relation=self.relation), self.relation)

    @property
    def mu_exact(self) -> float:
        """The true mu."""
        return self._right.claim.mu

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy averages."""
        return self._right.sample(data, size, rng)

    def law(self, data: ArrayLike) -> exact.Law:
        """Independent Gaussians around the weighted average."""
        return self._right.law(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseForConfiguredClients:
    """Noise for the number of clients that were asked, although fewer replied: Flower only warns.

    The average of ``m`` replies moves by ``C / m``, the noise is ``z C / configured``.

    >>> NoiseForConfiguredClients(clipping_norm=1.0, noise_multiplier=1.0, configured=10).mu_for(replies=5)
    2.0
    """

    clipping_norm: float
    noise_multiplier: float
    configured: int
    relation: Relation = Relation.ZERO_OUT

    def __post_init__(self) -> None:
        check_positive(clipping_norm=self.clipping_norm, noise_multiplier=self.noise_multiplier)
        check_count(configured=self.configured)

    @property
    def claim(self) -> GaussianDP:
        """The claim made for it."""
        return GaussianDP(exact_mu(self.noise_multiplier, relation=self.relation), self.relation)

    def mu_for(self, replies: int) -> float:
        """The true mu with that many replies."""
        check_count(replies=replies)
        return self.claim.mu * self.configured / replies

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy averages of the replies."""
        check_draw(size, rng)
        mean: Floats = clip_updates(data, self.clipping_norm).mean(axis=0)
        return mean + self._std * rng.standard_normal((size, mean.size))

    def law(self, data: ArrayLike) -> exact.Law:
        """Independent Gaussians around the average."""
        mean = clip_updates(data, self.clipping_norm).mean(axis=0)
        return exact.Product([exact.Gaussian(float(centre), self._std) for centre in mean])

    @property
    def _std(self) -> float:
        return self.noise_multiplier * self.clipping_norm / self.configured


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseOfUpdatedNorm:
    """Adaptive clipping whose noise belongs to the norm of the next round, while the old norm clipped.

    Where all clients are clipped and Flower's bit counts them, the norm has just shrunk by ``exp(-learning_rate (1 -
    target))``, 0.905 by default, and so has the noise. Output: the noisy count, then the average.
    """

    right: AdaptiveRound

    @property
    def relation(self) -> Relation:
        """The relation of the correct mechanism."""
        return self.right.relation

    @property
    def claim(self) -> GaussianDP:
        """The claim made for it."""
        return self.right.claim

    @property
    def mu_exact(self) -> float:
        """Infinite: the noisy count has no upper end, and with it the noise on the average no lower one."""
        return math.inf

    def pair_delta(self, data: ArrayLike, neighbour: ArrayLike, epsilon: float) -> float:
        """Exact ``delta(epsilon)`` of a pair with the same count of bits, by quadrature over the count's noise.

        Given the count both averages are Gaussian of one standard deviation, so the divergence is the mean of the
        Gaussian one over the count.
        """
        (count, mean), (other_count, other_mean) = self.right.centre(data), self.right.centre(neighbour)
        clients = len(client_updates(data))
        if count != other_count or len(client_updates(neighbour)) != clients:
            raise InvalidArgument(
                f"data and neighbour have {count:g} and {other_count:g} bits; the closed form needs equal counts."
            )
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        stds = self._stds(count + self.right.count_std * nodes, clients)
        distance = float(np.linalg.norm(mean - other_mean))
        deltas = np.array([float(gaussian_delta(epsilon, distance / std)) for std in stds])
        return float(deltas @ weights) / math.sqrt(2.0 * math.pi)

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` rows: the noisy count, then the average."""
        check_draw(size, rng)
        count, mean = self.right.centre(data)
        counts = count + self.right.count_std * rng.standard_normal(size)
        stds = self._stds(counts, len(client_updates(data)))
        averages = mean + stds[:, None] * rng.standard_normal((size, mean.size))
        return np.concatenate([counts[:, None], averages], axis=1)

    def _stds(self, counts: Floats, clients: int) -> Floats:
        adaptive = self.right.adaptive
        shrink = np.exp(-adaptive.learning_rate * (counts / clients - adaptive.target))
        return np.asarray(self.right.update_std(clients) * shrink)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDpMod:
    """One client's update, clipped to C, with the classical Gaussian noise for a ``sensitivity`` that the user names.

    Two clipped updates are up to ``2 C`` apart, so ``sensitivity = C`` is half of what is needed; and the formula
    itself fails for large epsilon. The data are a table of one row.

    >>> broken = LocalDpMod(epsilon=1.0, delta=1e-5, clipping_norm=1.0, sensitivity=1.0)
    >>> round(broken.delta_exact, 6)
    0.0017
    """

    epsilon: float
    delta: float
    clipping_norm: float
    sensitivity: float
    relation: ClassVar[Relation] = Relation.SUBSTITUTE  # the one client's update is replaced

    def __post_init__(self) -> None:
        check_positive(clipping_norm=self.clipping_norm)
        _ = self.std

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        return local_dp_std(epsilon=self.epsilon, delta=self.delta, sensitivity=self.sensitivity)

    @property
    def claim(self) -> ApproxDP:
        """The claim made for it."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    @property
    def mu_exact(self) -> float:
        """The mu it has: opposite updates of norm C are reached."""
        return 2.0 * self.clipping_norm / self.std

    @property
    def delta_exact(self) -> float:
        """The delta it keeps at the claimed epsilon."""
        return float(gaussian_delta(self.epsilon, self.mu_exact))

    @property
    def epsilon_exact(self) -> float:
        """The epsilon it keeps at the claimed delta."""
        return gaussian_epsilon(self.mu_exact, self.delta)

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy updates."""
        check_draw(size, rng)
        update = self._update(data)
        return update + self.std * rng.standard_normal((size, update.size))

    def law(self, data: ArrayLike) -> exact.Law:
        """Independent Gaussians around the clipped update."""
        return exact.Product([exact.Gaussian(float(centre), self.std) for centre in self._update(data)])

    def _update(self, data: ArrayLike) -> Floats:
        table = clip_updates(data, self.clipping_norm)
        if len(table) != 1:
            raise InvalidArgument(f"data holds {len(table)} updates; local privacy is about one client, one row.")
        return np.asarray(table[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedNoise:
    """Noise that is cast to the integer type of the array: ``astype`` cuts towards zero, and little noise is left.

    One integer per client; they are summed, and with ``|x| <= C`` the sum moves by C when one client is zeroed out.

    >>> broken = TruncatedNoise(clipping_norm=1, noise_multiplier=1.0)
    >>> round(broken.delta_exact(0.0), 6), round(broken.claim.delta(0.0), 6)
    (0.682689, 0.382925)
    """

    clipping_norm: int = 1
    noise_multiplier: float = 1.0
    relation: Relation = field(default=Relation.ZERO_OUT, init=False)

    def __post_init__(self) -> None:
        check_count(clipping_norm=self.clipping_norm)
        check_positive(noise_multiplier=self.noise_multiplier)

    @property
    def std(self) -> float:
        """Standard deviation before the cast."""
        return self.noise_multiplier * self.clipping_norm

    @property
    def claim(self) -> GaussianDP:
        """The claim made for it."""
        return GaussianDP(1.0 / self.noise_multiplier, self.relation)

    def delta_exact(self, epsilon: float) -> float:
        """True ``delta(epsilon)``."""
        return exact.delta(self.law([0]), self.law([self.clipping_norm]), epsilon)

    @property
    def mu_exact(self) -> float:
        """Smallest mu that holds.

        The trade-off of two discrete laws is a chain of chords between likelihood-ratio tests, and a convex Gaussian
        one lies below it iff it does at these tests; a test of errors alpha, beta needs ``mu >= Phi^-1(1 - alpha) -
        Phi^-1(beta)``.
        """
        k, log_mass = self._noise()
        outcome = np.arange(k[0], k[-1] + self.clipping_norm + 1)
        P, Q = (np.full(outcome.size, -np.inf) for _ in range(2))
        P[: k.size], Q[-k.size :] = log_mass, log_mass
        best = np.argsort(Q - P, kind="stable")  # the outcomes that speak most for P first
        right, taken_for_P = _quantiles(P[best]), _quantiles(Q[best])  # Phi^-1(1 - alpha) and Phi^-1(beta)
        tests = np.isfinite(right) & np.isfinite(taken_for_P)
        return float(np.max((right - taken_for_P)[tests]))

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return ``size`` noisy sums."""
        check_draw(size, rng)
        return self._sum(data) + (self.std * rng.standard_normal(size)).astype(np.int64)

    def law(self, data: Any) -> exact.Law:
        """The truncated normal noise around the sum: k has the mass of (k, k+1) beyond zero, 0 that of (-1, 1).

        Thirty-seven standard deviations out the masses, below 1e-298, are left out.
        """
        k, log_mass = self._noise()
        return exact.Discrete.from_log((k + self._sum(data)).tolist(), log_mass)

    def _noise(self) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Floats]:
        k = np.arange(1, math.ceil(37.0 * self.std) + 1)
        nearer, further = log_ndtr(-k / self.std), log_ndtr(-(k + 1) / self.std)
        side = nearer + np.log(-np.expm1(further - nearer))
        middle = math.log1p(-2.0 * math.exp(float(log_ndtr(-1.0 / self.std))))
        return np.concatenate([-k[::-1], [0], k]), np.concatenate([side[::-1], [middle], side])

    def _sum(self, data: Any) -> int:
        values = whole_numbers("data", data, ndim=1)
        return int(np.clip(values, -self.clipping_norm, self.clipping_norm).sum())


def _quantiles(log_mass: Floats) -> Floats:
    """Phi^-1 of the partial sums, each from its smaller side."""
    below = np.logaddexp.accumulate(log_mass)[:-1]
    above = np.logaddexp.accumulate(log_mass[::-1])[::-1][1:]
    return np.where(below < above, 1.0, -1.0) * ndtri_exp(np.minimum(below, above))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroNormRaises:
    """The clipping factor ``C / norm`` without a guard: an update of zero norm ends the round in ZeroDivisionError.

    A round that fails reveals that a client sent nothing, so no mu holds.
    """

    right: FederatedAveraging

    @property
    def relation(self) -> Relation:
        """The relation of the correct mechanism."""
        return self.right.relation

    @property
    def claim(self) -> GaussianDP:
        """The claim made for it."""
        return self.right.claim

    @property
    def mu_exact(self) -> float:
        """Infinite."""
        return math.inf

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats | list[Raised]:
        """Return ``size`` averages, or as many failures."""
        check_draw(size, rng)
        if not client_updates(data).any(axis=1).all():
            return [Raised.from_exception(ZeroDivisionError("float division by zero"))] * size
        return self.right.sample(data, size, rng)
