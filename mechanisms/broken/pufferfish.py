"""Pufferfish mechanisms calibrated on the wrong distance, and one whose audit does not draw the data anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import check_positive, shorten
from dpaudit.claims import ApproxDP, PureDP, Relation
from dpaudit.errors import InvalidArgument

from .._common import Floats, check_draw
from ..pufferfish import (
    Drawable,
    Pairs,
    Secret,
    WassersteinMechanism,
    add_laplace,
    conditional_law,
    discriminative_pairs,
    laplace_law,
)
from ..pufferfish.wasserstein import GaussianMixture, wasserstein_one


@dataclass(frozen=True, slots=True)
class MiscalibratedLaplace:
    """F(X) plus Laplace noise of a scale that something other than the W_inf distance gave; delta 0 is a pure claim."""

    pairs: Pairs
    epsilon: float
    scale: float
    delta: float = 0.0
    relation: ClassVar[Relation] = Relation.SECRETS

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", discriminative_pairs(self.pairs))
        check_positive(epsilon=self.epsilon, scale=self.scale)
        _ = self.claim

    @property
    def claim(self) -> PureDP | ApproxDP:
        """The claim made for it."""
        if self.delta == 0.0:
            return PureDP(self.epsilon, self.relation)
        return ApproxDP(self.epsilon, self.delta, self.relation)

    @property
    def epsilon_exact(self) -> float:
        """The true epsilon, at a delta of zero."""
        return max(exact.epsilon(self.law(first), self.law(second)) for first, second in self.pairs)

    @property
    def delta_exact(self) -> float:
        """The delta it keeps at the claimed epsilon."""
        return max(exact.delta(self.law(first), self.law(second), self.epsilon) for first, second in self.pairs)

    def sample(self, data: Drawable, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` releases, each about data drawn anew."""
        return add_laplace(data, self.scale, size, rng)

    def law(self, data: Drawable) -> exact.Law:
        """Exact law of a release given the secret."""
        return laplace_law(conditional_law(data), self.scale)


def mean_distance(pairs: Pairs, epsilon: float) -> MiscalibratedLaplace:
    """Laplace noise scaled by W_1, the mean distance, in place of W_inf, the largest one.

    A rare but large difference has a small mean: the noise does not hide it.

    >>> often, never = exact.Discrete({0: 0.9, 10: 0.1}), exact.Discrete({0: 0.999, 10: 0.001})
    >>> broken = mean_distance(((Secret("often", often), Secret("never", never)),), epsilon=1.0)
    >>> round(broken.scale, 6), broken.epsilon_exact > 4
    (0.99, True)
    """
    check_positive(epsilon=epsilon)
    pairs = discriminative_pairs(pairs)
    distances = []
    for first, second in pairs:
        if not (isinstance(first.law, exact.Discrete) and isinstance(second.law, exact.Discrete)):
            raise InvalidArgument(f"Secrets {first.name!r} and {second.name!r} must have discrete laws.")
        distances.append(wasserstein_one(first.law, second.law))
    return MiscalibratedLaplace(pairs, epsilon, max(distances) / epsilon)


def one_prior_only(pairs: Pairs, epsilon: float) -> MiscalibratedLaplace:
    """Calibrate the Wasserstein mechanism for the first prior alone, whatever the others allow.

    >>> at = {mean: GaussianMixture.single(mean, 1.0) for mean in (0.0, 1.0, 3.0)}
    >>> near = (Secret("a", at[0.0], "near"), Secret("b", at[1.0], "near"))
    >>> far = (Secret("a", at[0.0], "far"), Secret("b", at[3.0], "far"))
    >>> round(one_prior_only((near, far), epsilon=1.0).epsilon_exact, 9)
    3.0
    """
    pairs = discriminative_pairs(pairs)
    known = tuple(pair for pair in pairs if pair[0].prior == pairs[0][0].prior)
    return MiscalibratedLaplace(pairs, epsilon, WassersteinMechanism(known, epsilon).scale)


def ignored_spread(pairs: Pairs, epsilon: float, delta: float) -> MiscalibratedLaplace:
    """Laplace noise for the difference of the means, as if the standard deviations were equal.

    In the tails the log-ratio of the outputs tends to ``(s'^2 - s^2) / (2 b^2)`` plus or minus ``dm / b``, above
    epsilon.

    >>> pair = (Secret("a", GaussianMixture.single(0.0, 1.0)), Secret("b", GaussianMixture.single(1.0, 3.0)))
    >>> ignored_spread((pair,), epsilon=1.0, delta=1e-3).delta_exact > 0.1
    True
    """
    check_positive(epsilon=epsilon)
    pairs = discriminative_pairs(pairs)
    gaps = []
    for first, second in pairs:
        if not (isinstance(first.law, GaussianMixture) and isinstance(second.law, GaussianMixture)):
            raise InvalidArgument(f"Secrets {first.name!r} and {second.name!r} must have Gaussian-mixture laws.")
        gaps.append(abs(first.law.mean - second.law.mean))
    return MiscalibratedLaplace(pairs, epsilon, max(gaps) / epsilon, delta)


@dataclass(frozen=True, slots=True)
class ReusedDraw:
    """A private mechanism under a trial loop that draws X once per secret and keeps it: another statement is audited.

    ``values`` maps the secret's name to the X that was kept. Given these, the outputs are Laplace around them, and
    the log-ratio is ``|x - x'| epsilon / W``: any number, above the true epsilon or below it, while the mechanism
    itself keeps its claim. The bug is in the audit; drawing X inside every release is the cure.

    >>> pair = (Secret("a", GaussianMixture.single(0.0, 1.0)), Secret("b", GaussianMixture.single(1.0, 1.0)))
    >>> broken = ReusedDraw(WassersteinMechanism((pair,), epsilon=1.0), (("a", -0.5), ("b", 2.0)))
    >>> broken.epsilon_exact
    2.5
    """

    mechanism: WassersteinMechanism
    values: tuple[tuple[str, float], ...]
    relation: ClassVar[Relation] = Relation.SECRETS

    def __post_init__(self) -> None:
        if self.mechanism.scale == 0.0:
            raise InvalidArgument("The mechanism adds no noise; choose secrets that differ.")
        for secret in (secret for pair in self.mechanism.pairs for secret in pair):
            self._kept(secret)

    @property
    def claim(self) -> PureDP:
        """The claim of the mechanism, which it keeps where X is drawn anew."""
        return self.mechanism.claim

    @property
    def epsilon_exact(self) -> float:
        """Epsilon of what is audited."""
        return max(abs(self._kept(a) - self._kept(b)) for a, b in self.mechanism.pairs) / self.mechanism.scale

    def sample(self, data: Secret, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` releases, all about the same X."""
        check_draw(size, rng)
        return rng.laplace(self._kept(data), self.mechanism.scale, size)

    def law(self, data: Secret) -> exact.Law:
        """Laplace around the X that was kept."""
        return exact.Laplace(self._kept(data), self.mechanism.scale)

    def _kept(self, secret: Secret) -> float:
        value = dict(self.values).get(getattr(secret, "name", ""), math.nan)
        if math.isnan(value):
            raise InvalidArgument(
                f"data={shorten(secret)} must be a secret that values={self.values!r} has a number for."
            )
        return value
