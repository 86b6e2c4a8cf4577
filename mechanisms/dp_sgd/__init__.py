r"""DP-SGD (Abadi et al. 2016): every example's gradient is clipped, the sum gets Gaussian noise, the parameters move.

One step of a training with clipping norm C and noise multiplier z releases

    G_t = sum_{i in B_t} clip_C(g_i(w_t)) + z C N(0, I),    and sets    w_{t+1} = w_t - eta G_t / L,

with a public divisor L (never the number of examples that the batch happened to have). There are two kinds of batches,
each with its neighbours and its claim.

**Poisson batches, one example added or removed.** Every example joins every batch by its own coin of probability q. Given
w_t and who else is in the batch, the others move both laws by the same vector, so a step is a pair N(0, z^2) against
(1 - q) N(0, z^2) + q N(v, z^2) with ``|v| <= 1`` in units of C, which ``v`` of length 1 dominates; the mixture over the others
is no easier to distinguish (joint convexity), and adaptive composition of dominating pairs dominates (Zhu, Dong and Wang 2022,
theorem 10). Hence (epsilon, delta) is that of T compositions of this pair, computed by privacy
loss distributions whose rounding is upwards. It is reached when all G_t are released and the example's clipped gradient is
the same vector of norm C in all steps, as for linear regression with a large target.

**Shuffled batches, one example replaced.** Every epoch permutes the examples and cuts them into batches of public
sizes. Were the permutations released too, an example would be in one batch per epoch, known in advance, and replacing it
would move that one sum by at most 2 C: adaptive composition of one Gaussian mechanism per epoch, ``mu = 2 sqrt(epochs) / z``.
Not to release them is post-processing. No amplification by shuffling is claimed; with one batch per epoch the claim is
reached.

The last iterate is a function of the G_t and keeps the same claim; how much less it shows depends on the model.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit._util.validation import (
    check_choice,
    check_count,
    check_open_unit,
    check_positive,
    check_unit,
    finite_array,
)
from dpaudit.claims import ApproxDP, Claim, GaussianDP, Relation
from dpaudit.errors import InvalidArgument, MissingDependency

from .._common import Floats, bernoulli, check_draw, chunks, gaussian_epsilon
from .models import Model

Masks: TypeAlias = NDArray[np.bool_]
RELEASES = ("steps", "last")


def clipped_sum(training: DPSGD, gradients: Floats, batch: Masks) -> Floats:
    """Sum over the batch of gradients scaled to norm at most C; a gradient that is not finite counts as zero."""
    norms = np.linalg.norm(gradients, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.minimum(1.0, training.clipping_norm / norms)
    kept = np.where((norms > 0.0) & np.isfinite(norms), factor, 0.0)
    safe = np.where(np.isfinite(gradients), gradients, 0.0)
    return np.asarray(np.einsum("kn,knd->kd", np.where(batch, kept, 0.0), safe))


def fresh_noise(training: DPSGD, shape: tuple[int, int], rng: np.random.Generator) -> Iterator[Floats]:
    """Yield independent Gaussian noise of standard deviation z C for one step after the other."""
    while True:
        yield training.noise_multiplier * training.clipping_norm * rng.standard_normal(shape)


def random_batches(training: DPSGD, shape: tuple[int, int], rng: np.random.Generator) -> Iterator[Masks]:
    """Yield the batches of one step after the other as masks of shape (trainings, examples)."""
    if training.sampling_rate is not None:
        while True:
            yield bernoulli(training.sampling_rate, shape, rng)
    sizes = [part.size for part in np.array_split(np.arange(shape[1]), training.batches)]
    edges = np.concatenate([[0], np.cumsum(sizes)])
    while True:
        position = np.argsort(rng.random(shape), axis=1).argsort(axis=1)  # of each example in the epoch's permutation
        for low, high in itertools.pairwise(edges):
            yield (position >= low) & (position < high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The three places where DP-SGD is easily wrong; the mechanisms in ``mechanisms.broken.dp_sgd`` replace one of them."""

    batches: Callable[[DPSGD, tuple[int, int], np.random.Generator], Iterator[Masks]] = random_batches
    total: Callable[[DPSGD, Floats, Masks], Floats] = clipped_sum
    noise: Callable[[DPSGD, tuple[int, int], np.random.Generator], Iterator[Floats]] = fresh_noise


@dataclass(frozen=True, slots=True, kw_only=True)
class DPSGD:
    """DP-SGD on rows of features and a target.

    Parameters
    ----------
    model
        Of ``mechanisms.dp_sgd.models``.
    noise_multiplier, clipping_norm, learning_rate
        z, C and eta of the module.
    steps
        Number of steps with Poisson batches; with shuffled ones it must be a multiple of ``batches``.
    sampling_rate
        The rate q of Poisson batches, or None for shuffled ones.
    batches
        Number of shuffled batches per epoch.
    divisor
        The public L by which sums are divided.
    release
        ``"steps"``: all G_t / L (white box), the values of the first coordinate in all steps, then those of the second, ...
        ``"last"``: the parameters after the last step.
    delta
        Where epsilon is claimed, with Poisson batches.
    start
        Parameters before the first step, public; zeros by default.

    Examples
    --------
    >>> from dpaudit.mechanisms.dp_sgd.models import LinearModel
    >>> training = DPSGD(model=LinearModel(1), noise_multiplier=2.0, steps=4, sampling_rate=None, batches=2)
    >>> training.claim
    GaussianDP(mu=1.414213562373095..., relation='substitute')
    >>> training.sample([[1.0, 2.0], [0.0, 1.0]], 3, np.random.default_rng(0)).shape
    (3, 2)
    """

    model: Model
    noise_multiplier: float
    clipping_norm: float = 1.0
    learning_rate: float = 0.1
    steps: int = 1
    sampling_rate: float | None = 1.0
    batches: int = 1
    divisor: float = 1.0
    release: str = "last"
    delta: float = 1e-5
    start: tuple[float, ...] | None = None
    parts: Parts = field(default_factory=Parts)

    def __post_init__(self) -> None:
        check_positive(
            noise_multiplier=self.noise_multiplier,
            clipping_norm=self.clipping_norm,
            learning_rate=self.learning_rate,
            divisor=self.divisor,
        )
        check_count(steps=self.steps, batches=self.batches)
        check_open_unit(delta=self.delta)
        check_choice(RELEASES, release=self.release)
        if self.sampling_rate is not None:
            check_positive(sampling_rate=self.sampling_rate)
            check_unit(sampling_rate=self.sampling_rate)
        elif self.steps % self.batches:
            raise InvalidArgument(f"steps={self.steps!r} must be a multiple of batches={self.batches!r}: whole epochs.")
        if self.start is not None and len(self.start) != self.model.dimension:
            raise InvalidArgument(f"start={self.start!r} must hold {self.model.dimension} parameters.")

    @property
    def relation(self) -> Relation:
        """Add-remove with Poisson batches, substitution with shuffled ones."""
        return Relation.SUBSTITUTE if self.sampling_rate is None else Relation.ADD_REMOVE

    @property
    def claim(self) -> Claim:
        """The claim that the module derives, for all G_t and hence for what is released."""
        if self.sampling_rate is None:
            mu = 2.0 * math.sqrt(self.steps // self.batches) / self.noise_multiplier
            return GaussianDP(mu, self.relation)
        return ApproxDP(
            epsilon_of(self.noise_multiplier, self.sampling_rate, self.steps, self.delta), self.delta, self.relation
        )

    def split(self, data: ArrayLike) -> tuple[Floats, Floats]:
        """Features and targets of the rows."""
        width = self.model.features + 1
        if np.size(data) == 0:
            return np.empty((0, width - 1)), np.empty(0)
        rows = finite_array("data", data, ndim=2)
        if rows.shape[1] != width:
            raise InvalidArgument(
                f"data has {rows.shape[1]} columns; the model needs {width}: {width - 1} features and the target."
            )
        return rows[:, :-1], rows[:, -1]

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` independent trainings: shape ``(size, steps * dimension)`` or ``(size, dimension)``."""
        check_draw(size, rng)
        features, targets = self.split(data)
        width = self.model.dimension
        released = np.empty((size, width * (self.steps if self.release == "steps" else 1)))
        for part in chunks(size, max(1, len(targets)) * width):
            released[part] = self._trained(features, targets, part.stop - part.start, rng)
        return released

    def _trained(self, features: Floats, targets: Floats, trainings: int, rng: np.random.Generator) -> Floats:
        width = self.model.dimension
        start = np.zeros(width) if self.start is None else np.array(self.start)
        parameters = np.tile(start, (trainings, 1))
        batches = self.parts.batches(self, (trainings, len(targets)), rng)
        noises = self.parts.noise(self, (trainings, width), rng)
        means = []
        for _ in range(self.steps):
            gradients = self.model.gradients(parameters, features, targets)
            mean = (self.parts.total(self, gradients, next(batches)) + next(noises)) / self.divisor
            parameters = parameters - self.learning_rate * mean
            means.append(mean)
        return np.stack(means, axis=-1).reshape(trainings, -1) if self.release == "steps" else parameters


INTERVAL = 1e-3
"""Grid of the privacy losses. Upwards it costs about 1e-5 in epsilon; downwards up to this much per step."""


def epsilon_of(noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """Epsilon at delta of Poisson batches under add-remove, rounded up; exact where every example joins every batch.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    sampling_rate : float
        Probability that an example joins a batch.
    steps : int
        Number of steps.
    delta : float
        Where the profile is inverted.

    Examples
    --------
    >>> round(epsilon_of(0.5, 0.01, 50, 1e-5), 3)
    5.602
    """
    return epsilon_bracket(noise_multiplier, sampling_rate, steps, delta)[1]


@functools.cache
def epsilon_bracket(noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> tuple[float, float]:
    """Epsilon at delta of Poisson batches under add-remove, rounded down and up.

    Both by dp-accounting: losses rounded down are those of a pair of laws that is no easier to distinguish, and 1e-12 of delta
    is left for the error of the Fourier transforms.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    sampling_rate : float
        Probability that an example joins a batch.
    steps : int
        Number of steps.
    delta : float
        Where the profile is inverted.
    """
    if sampling_rate == 1.0:
        epsilon = gaussian_epsilon(math.sqrt(steps) / noise_multiplier, delta)
        return epsilon, epsilon
    try:
        from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
    except ImportError as error:
        raise MissingDependency(
            "Poisson batches are accounted for with dp-accounting. Install it with `pip install dpaudit[accounting]`."
        ) from error

    def epsilon_at(delta: float, *, upwards: bool) -> float:
        losses = from_gaussian_mechanism(
            noise_multiplier,
            pessimistic_estimate=upwards,
            value_discretization_interval=INTERVAL,
            sampling_prob=sampling_rate,
            use_connect_dots=upwards,
        )
        return float(losses.self_compose(steps).get_epsilon_for_delta(delta))

    upper = epsilon_at(delta, upwards=True)
    return min(epsilon_at(delta + 1e-12, upwards=False), upper), upper
