r"""Pufferfish privacy: noise for secrets about random data (Kifer and Machanavajjhala 2014).

A mechanism is epsilon-Pufferfish private if, for every prior theta and every discriminative pair of secrets of
positive probability under it, its output laws given the one and given the other differ by at most ``exp(epsilon)``,
where the probability is over the data **and** the noise. The (epsilon, delta) version bounds the hockey-stick
divergence of these two laws in both orders. Differential privacy is the case of all product priors. Releases about
the same data do not compose in general, so nothing here composes.

Three mechanisms for a number ``F(X)``:

:class:`WassersteinMechanism`    Laplace noise for the largest W_inf distance (Song, Wang and Chaudhuri 2017); epsilon
:class:`UnequalSpreadLaplace`    Laplace noise for Gaussians of different spread; (epsilon, delta)
:class:`GaussianMasking`         Gaussian noise, calibrated on the exact output law; (epsilon, delta)

The notes point to an article on Gaussian-mixture priors (Wu 2025, Scientific Reports 15:1015), whose body was not
available: its algorithm is not reproduced, and the second and third mechanism are reconstructions with their own
proofs, the second in the spirit of Ding 2024. That article's results on the Kullback-Leibler divergence and mutual
information of masked data are averages (``mechanisms.pufferfish.masking_formulas``); they imply no (epsilon,
delta) bound.

The data handed to ``sample`` are a :class:`Secret`, and X is drawn anew for every release. An audit that fixes X
audits another statement.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from dpaudit import exact
from dpaudit._util.validation import check_finite, check_open_unit, check_positive, check_unit, finite_array, shorten
from dpaudit.claims import ApproxDP, PureDP, Relation
from dpaudit.errors import InvalidArgument

from .._common import Floats, check_draw
from .wasserstein import (
    Conditional,
    GaussianMixture,
    check_conditional,
    check_shared_weights,
    numeric_outcomes,
    wasserstein_infinity,
)

if TYPE_CHECKING:
    from dpaudit import neighbours


@dataclass(frozen=True, slots=True)
class Secret:
    """An event about the data, with the law of F(X) given that event under one prior.

    ``probability`` is that of the event under the prior; pairs with a secret of probability 0 are left out, with a
    warning.

    >>> Secret("smokes", GaussianMixture.single(1.0, 1.0)).prior
    'theta'
    """

    name: str
    law: Conditional
    prior: str = "theta"
    probability: float = 1.0

    def __post_init__(self) -> None:
        check_conditional("law", self.law)
        check_unit(probability=self.probability)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """``size`` independent values of F(X) given the secret."""
        check_draw(size, rng)
        return np.asarray(self.law.sample(size, rng), dtype=np.float64)

    def as_neighbour(self) -> neighbours.Secret:
        """Return this secret for :func:`dpaudit.neighbours.secrets`; the mechanisms here still know its law."""
        from dpaudit import neighbours  # loads Hypothesis

        draw = functools.partial(_one, self)
        return neighbours.Secret(f"{self.name} ({self.prior})", draw, self.sample)


class Drawable(Protocol):
    """An object that draws values of F(X) given a secret: :class:`Secret`, or :class:`dpaudit.neighbours.Secret`."""

    def sample(self, size: int, rng: np.random.Generator) -> Any:
        """``size`` independent values."""


def conditional_law(data: Drawable) -> Conditional:
    """The law of F(X) given the secret, where it is known."""
    secret = data if isinstance(data, Secret) else getattr(getattr(data, "draw_many", None), "__self__", None)
    if not isinstance(secret, Secret):
        raise InvalidArgument(
            f"data={shorten(data)} does not declare its law; pass a mechanisms.pufferfish.Secret or its as_neighbour()."
        )
    return secret.law


Pairs: TypeAlias = tuple[tuple[Secret, Secret], ...]


def discriminative_pairs(pairs: Iterable[Any]) -> Pairs:
    """The pairs that count, checked: two secrets of one prior, both possible under it."""
    kept = []
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(one, Secret) for one in pair)):
            raise InvalidArgument(f"pairs holds {shorten(pair)}; each must be two Secret objects.")
        first, second = pair
        if first.prior != second.prior:
            raise InvalidArgument(
                f"A pair has the priors {first.prior!r} and {second.prior!r}; both secrets must belong to one prior."
            )
        if first.probability == 0.0 or second.probability == 0.0:
            impossible = first if first.probability == 0.0 else second
            warnings.warn(
                f"Secret {impossible.name!r} has probability 0 under prior {impossible.prior!r}; its pair is left out.",
                stacklevel=3,
            )
            continue
        kept.append((first, second))
    if not kept:
        raise InvalidArgument("pairs is empty; at least one pair of possible secrets is needed.")
    return tuple(kept)


def masked_law(law: Conditional, noise_std: float) -> exact.Law:
    """Exact law of F(X) plus Gaussian noise: a mixture again, each variance larger by that of the noise."""
    if isinstance(law, GaussianMixture):
        stds = [math.hypot(std, noise_std) for std in law.stds]
        return _mixture(law.weights, [exact.Gaussian(m, s) for m, s in zip(law.means, stds, strict=True)])
    if noise_std == 0.0:
        return law
    outcomes, probabilities = numeric_outcomes(law)
    return _mixture(tuple(probabilities.tolist()), [exact.Gaussian(x, noise_std) for x in outcomes.tolist()])


def laplace_law(law: Conditional, scale: float) -> exact.Law:
    """Exact law of F(X) plus Laplace noise."""
    if scale == 0.0:
        return masked_law(law, 0.0)
    if isinstance(law, GaussianMixture):
        parts = [exact.LaplaceGaussian(m, scale, s) for m, s in zip(law.means, law.stds, strict=True)]
        return _mixture(law.weights, parts)
    outcomes, probabilities = numeric_outcomes(law)
    return _mixture(tuple(probabilities.tolist()), [exact.Laplace(x, scale) for x in outcomes.tolist()])


@dataclass(frozen=True, slots=True)
class WassersteinMechanism:
    """F(X) plus Laplace noise of scale ``W / epsilon``, W the largest W_inf over all pairs and priors.

    Couple the two conditional laws within W: for coupled values the Laplace densities differ by at most
    ``exp(epsilon)`` at every output, and integrating over the coupling keeps that. ``bound`` replaces W by a larger
    number, such as that of :func:`~mechanisms.pufferfish.wasserstein.component_bound`; W = 0 needs no noise, W = infinity
    has no mechanism.

    >>> pair = (Secret("a", GaussianMixture.single(0.0, 1.0)), Secret("b", GaussianMixture.single(2.0, 1.0)))
    >>> mechanism = WassersteinMechanism((pair,), epsilon=1.0)
    >>> mechanism.scale, mechanism.claim
    (2.0, PureDP(epsilon=1.0, relation='secrets'))
    """

    pairs: Pairs
    epsilon: float
    bound: float | None = None
    relation: ClassVar[Relation] = Relation.SECRETS

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", discriminative_pairs(self.pairs))
        check_positive(epsilon=self.epsilon)
        if math.isinf(self.distance):
            raise InvalidArgument(
                "The W_inf distance of a pair is infinite (Gaussians of different standard deviation?), so no Laplace "
                "noise is enough. Use UnequalSpreadLaplace or GaussianMasking."
            )
        if self.bound is not None:
            check_finite(bound=self.bound)
            if self.bound < self.distance * (1.0 - 1e-12):
                raise InvalidArgument(f"bound={self.bound!r} must be at least the W_inf distance {self.distance!r}.")

    @property
    def distance(self) -> float:
        """Largest W_inf over the pairs."""
        return max(_distance(first.law, second.law) for first, second in self.pairs)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise; also the mean absolute error."""
        return (self.distance if self.bound is None else self.bound) / self.epsilon

    @property
    def claim(self) -> PureDP:
        """epsilon-Pufferfish privacy."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Drawable, size: int, rng: np.random.Generator) -> Floats:
        """``size`` releases, each about data drawn anew given the secret."""
        return add_laplace(data, self.scale, size, rng)

    def law(self, data: Drawable) -> exact.Law:
        """Exact law of a release given the secret."""
        return laplace_law(conditional_law(data), self.scale)


@dataclass(frozen=True, slots=True)
class UnequalSpreadLaplace:
    """F(X) plus Laplace noise of scale ``max (|dm| + |ds| z) / epsilon``, with ``z = Phi^{-1}(1 - delta/2)``.

    The monotone map between N(m, s^2) and N(m', s'^2) moves ``m + s Z`` by ``dm + ds Z``, which is at most
    ``epsilon`` times the scale unless ``|Z| > z``, of probability delta. Integrating the Laplace kernel over this
    coupling gives ``P(A) <= exp(epsilon) P'(A) + delta``, both orders. Mixtures must have equal weights: components
    are coupled one to one and the largest scale serves all. Reconstructed (in the spirit of Ding 2024); it is loose
    where the prior's own spread hides the secret.

    >>> pair = (Secret("a", GaussianMixture.single(0.0, 1.0)), Secret("b", GaussianMixture.single(1.0, 1.5)))
    >>> round(UnequalSpreadLaplace((pair,), epsilon=1.0, delta=1e-3).scale, 6)
    2.645263
    """

    pairs: Pairs
    epsilon: float
    delta: float
    relation: ClassVar[Relation] = Relation.SECRETS

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", discriminative_pairs(self.pairs))
        check_positive(epsilon=self.epsilon)
        check_open_unit(delta=self.delta)
        for first, second in self.pairs:
            if not (isinstance(first.law, GaussianMixture) and isinstance(second.law, GaussianMixture)):
                raise InvalidArgument(
                    f"Secrets {first.name!r} and {second.name!r} must have Gaussian-mixture laws; or use "
                    "WassersteinMechanism."
                )
            check_shared_weights(first.law, second.law)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise."""
        z = -float(ndtri(self.delta / 2.0))
        return max(_displacement(first.law, second.law, z) for first, second in self.pairs) / self.epsilon

    @property
    def claim(self) -> ApproxDP:
        """(epsilon, delta)-Pufferfish privacy."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    def sample(self, data: Drawable, size: int, rng: np.random.Generator) -> Floats:
        """``size`` releases, each about data drawn anew given the secret."""
        return add_laplace(data, self.scale, size, rng)

    def law(self, data: Drawable) -> exact.Law:
        """Exact law of a release given the secret."""
        return laplace_law(conditional_law(data), self.scale)


@dataclass(frozen=True, slots=True)
class GaussianMasking:
    """F(X) plus Gaussian noise of the smallest standard deviation that keeps (epsilon, delta) on the exact output laws.

    The output laws are mixtures of known Gaussians, so their hockey-stick divergence is computed, not bounded. More
    noise is post-processing, hence delta falls with it and the smallest is well defined; it is 0 where the prior
    alone suffices. Pure epsilon is out of reach wherever the outermost components of two laws differ.

    >>> pair = (Secret("a", GaussianMixture.single(0.0, 1.0)), Secret("b", GaussianMixture.single(1.0, 1.0)))
    >>> GaussianMasking((pair,), epsilon=1.0, delta=0.2).noise_std      # the prior alone has delta(1) = 0.127
    0.0
    """

    pairs: Pairs
    epsilon: float
    delta: float
    noise_std: float = math.nan
    relation: ClassVar[Relation] = Relation.SECRETS

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", discriminative_pairs(self.pairs))
        check_positive(epsilon=self.epsilon)
        check_open_unit(delta=self.delta)
        if math.isnan(self.noise_std):
            object.__setattr__(self, "noise_std", _smallest_noise(self.pairs, self.epsilon, self.delta))
            return
        reached = masking_delta(self.pairs, self.epsilon, self.noise_std)
        if reached > self.delta:
            raise InvalidArgument(
                f"noise_std={self.noise_std!r} gives delta={reached:.6g} at epsilon={self.epsilon!r}, above "
                f"delta={self.delta!r}. Leave it out to have it calibrated."
            )

    @property
    def claim(self) -> ApproxDP:
        """(epsilon, delta)-Pufferfish privacy."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    def sample(self, data: Drawable, size: int, rng: np.random.Generator) -> Floats:
        """``size`` releases, each about data drawn anew given the secret."""
        return draw(data, size, rng) + self.noise_std * rng.standard_normal(size)

    def law(self, data: Drawable) -> exact.Law:
        """Exact law of a release given the secret."""
        return masked_law(conditional_law(data), self.noise_std)


def draw(secret: Drawable, size: int, rng: np.random.Generator) -> Floats:
    """``size`` values of F(X), drawn anew for each release."""
    check_draw(size, rng)
    if not callable(getattr(secret, "sample", None)):
        raise InvalidArgument(
            f"data={shorten(secret)} must be a secret that draws data: mechanisms.pufferfish.Secret or neighbours.Secret."
        )
    return finite_array("F(X)", secret.sample(size, rng), ndim=1)


def add_laplace(secret: Drawable, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """``size`` fresh values of F(X), each with fresh Laplace noise."""
    values = draw(secret, size, rng)
    return values + rng.laplace(0.0, scale, size) if scale > 0.0 else values


def masking_delta(pairs: Iterable[Any], epsilon: float, noise_std: float) -> float:
    """Largest hockey-stick divergence over the pairs and both orders, under Gaussian noise; exact.

    Parameters
    ----------
    pairs : iterable
        Pairs of secrets whose data are Gaussian mixtures.
    epsilon : float
        Where the profile is read.
    noise_std : float
        Standard deviation of the noise.
    """
    if noise_std != 0.0:
        check_positive(noise_std=noise_std)
    return max(
        exact.delta(masked_law(first.law, noise_std), masked_law(second.law, noise_std), epsilon)
        for first, second in discriminative_pairs(pairs)
    )


def _one(secret: Secret, rng: np.random.Generator) -> float:
    return float(secret.sample(1, rng)[0])


def _mixture(weights: tuple[float, ...], laws: list[Any]) -> exact.Law:
    law: exact.Law = laws[0] if len(laws) == 1 else exact.Mixture(weights, laws)
    return law


def _displacement(P: Conditional, Q: Conditional, z: float) -> float:
    if not (isinstance(P, GaussianMixture) and isinstance(Q, GaussianMixture)):  # pragma: no cover - checked before
        raise AssertionError("checked when the mechanism was made")
    moves = np.abs(np.subtract(P.means, Q.means)) + z * np.abs(np.subtract(P.stds, Q.stds))
    return float(moves.max())


@functools.lru_cache(maxsize=256)
def _distance(P: Conditional, Q: Conditional) -> float:
    return wasserstein_infinity(P, Q)


def _smallest_noise(pairs: Pairs, epsilon: float, delta: float) -> float:
    def excess(noise_std: float) -> float:
        return math.log(max(masking_delta(pairs, epsilon, noise_std), 1e-300)) - math.log(delta)

    if excess(0.0) <= 0.0:
        return 0.0
    high = max(_scales(pairs))
    while excess(high) > 0.0:
        high *= 2.0
    noise_std = float(brentq(excess, 0.0, high, xtol=1e-10 * high, rtol=1e-12))
    while excess(noise_std) > 0.0:  # the root finder may stop on the wrong side of the promise
        noise_std *= 1.0 + 1e-10
    return noise_std


def _scales(pairs: Pairs) -> Iterator[float]:
    for pair in pairs:
        for secret in pair:
            if isinstance(secret.law, GaussianMixture):
                yield max(secret.law.stds)
            else:
                outcomes, _ = numeric_outcomes(secret.law)
                yield float(np.ptp(outcomes)) or 1.0
