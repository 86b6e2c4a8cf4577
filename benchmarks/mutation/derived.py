"""Reference mechanisms whose exact law is derived here, or whose claim is not of the form that mutants are judged by.

:class:`FreshValues`   numerical sparse vector: which query was above, and its value (:mod:`.branches`)
:class:`Masked`        Pufferfish: a random number given a secret plus noise, a convolution in closed form
:class:`Coefficient`   importance weighting with one feature: the weights are equivalent to one number with Laplace noise
:class:`Claimed`       federated averages: Gaussian DP is claimed at one delta, where epsilon is 1
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from benchmarks.mutation import behaviours as b
from benchmarks.mutation.branches import Branches
from benchmarks.mutation.rewriting import Target
from benchmarks.mutation.subjects import Subject
from dpaudit import exact, neighbours
from dpaudit.claims import ApproxDP, Claim, Relation
from mechanisms import registry
from mechanisms.dyadic import DyadicLaplaceMechanism
from mechanisms.federated import AdaptiveClipping, AdaptiveRound, FederatedAveraging, clip_updates
from mechanisms.federated.accounting import update_noise_multiplier
from mechanisms.gaussian import GaussianMechanism
from mechanisms.importance_weighting import ImportanceWeighting
from mechanisms.pufferfish import (
    GaussianMasking,
    UnequalSpreadLaplace,
    WassersteinMechanism,
    conditional_law,
    draw,
    laplace_law,
    masked_law,
)
from mechanisms.registry import reference
from mechanisms.registry.catalogue import only
from mechanisms.sparse_vector import SparseVector, numerical_svt

Data = Any
DELTA = 1e-2
BITS = 3  # of the dyadic grid: few enough that its points can be counted


@dataclass(frozen=True, slots=True)
class FreshValues:
    """A sparse vector technique that releases fresh values, with its law."""

    technique: SparseVector

    @property
    def claim(self) -> Claim:
        return self.technique.claim

    def sample(self, data: Data, size: int, rng: np.random.Generator) -> Any:
        return self.technique.sample(data, size, rng)

    def law(self, data: Data) -> Branches:
        """The queries that were above the threshold, without their values, which have noise of their own."""
        words = replace(self.technique, release="indicator", value_scale=0.0).law(data)
        assert isinstance(words, exact.Discrete)
        taken = []
        for word, log_probability in zip(words.outcomes, words.log_probabilities, strict=True):
            hits = np.flatnonzero(np.array(word) == 1)
            values = tuple(exact.Laplace(float(data[hit]), self.technique.value_scale) for hit in hits)
            taken.append((str(word), float(log_probability), values))
        return Branches(tuple(taken))


def _numerical() -> Subject:
    right = numerical_svt(epsilon=1.0, threshold=0.0)

    def scaled(factor: float) -> FreshValues:
        return FreshValues(numerical_svt(epsilon=1.0 / factor, threshold=0.0))

    def changed(**fields: Any) -> Callable[[], FreshValues]:
        return lambda: FreshValues(replace(right, **fields))

    def asked(by: float) -> Callable[[], b.Mechanism]:
        return lambda: b.on_data(scaled(1.0), lambda data: by * data)

    return Subject(
        name="numerical-svt", scaled=scaled, neighbours=reference.six_answers, levels=(0.0, 0.5, 4.0), climbs=4,
        targets=((Target((numerical_svt,)), lambda made: FreshValues(made(epsilon=1.0, threshold=0.0))),),
        others=(
            *((f"{kind.replace('_scale', '')} noise x {f:g}", changed(**{kind: f * getattr(right, kind)}))
              for kind in ("threshold_scale", "query_scale", "value_scale") for f in (0.1, 0.5)),
            ("stops after 2 hits", changed(hits=2)),
            *((f"answers x {by:g}", asked(by)) for by in (2.0, 1.1, 0.5)),
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Masked:
    """F(X) plus Laplace or Gaussian noise of any scale, whatever it claims; with scale 0 there is none."""

    claim: Claim
    scale: float
    gaussian: bool = False

    def sample(self, data: Data, size: int, rng: np.random.Generator) -> Any:
        noise = rng.standard_normal(size) if self.gaussian else rng.laplace(size=size)
        return draw(data, size, rng) + self.scale * noise

    def law(self, data: Data) -> exact.Law:
        return (masked_law if self.gaussian else laplace_law)(conditional_law(data), self.scale)


def _pufferfish(name: str, make: Callable[..., Any], *targets: Target) -> Subject:
    """The data are secrets, about which X is drawn anew in every release: no output has a true value."""
    entry = registry.find(f"pufferfish-{name}")
    pairs = entry.make().pairs
    right = make(pairs)
    gaussian = isinstance(right, GaussianMasking)
    scale = right.noise_std if gaussian else right.scale

    def scaled(factor: float) -> Masked:
        return Masked(right.claim, scale * factor, gaussian)

    def remade(mechanism: Any) -> Masked:
        return Masked(right.claim, mechanism.scale)

    return Subject(
        name=entry.name, scaled=scaled, neighbours=entry.neighbours, unit=scale, public=(-2.0, 4.0), climbs=0,
        targets=tuple((target, lambda made: remade(make(pairs, made))) for target in targets),
        others=(
            *((f"raw once in {1 / rate:g}",
               functools.partial(b.sometimes, scaled(1.0), scaled(0.0), rate, product=False))
              for rate in (0.5, 0.1, 0.01, 0.001)),
            ("scale taken for the standard deviation" if not gaussian else "variance taken for the scale",
             lambda: scaled(scale if gaussian else math.sqrt(0.5))),
            ("no noise", lambda: scaled(0.0)),
            ("noise of the other kind", lambda: Masked(right.claim, scale, not gaussian)),
            ("scale cut to an integer", lambda: scaled(int(scale) / scale)),
        ),
    )  # fmt: skip


def _secrets() -> list[Subject]:
    """Gaussian masking is calibrated for epsilon 1 in place of the registry's 0.5."""
    distance = Target((WassersteinMechanism,), ("scale", "distance"))
    return [
        *(_pufferfish(name, lambda pairs, made=WassersteinMechanism: made(pairs, 1.0), distance)
          for name in ("wasserstein", "wasserstein-counts", "wasserstein-mixture")),
        _pufferfish("unequal-spread", lambda pairs, made=UnequalSpreadLaplace: made(pairs, 1.0, 1e-3),
                    Target((UnequalSpreadLaplace,), ("scale",))),
        _pufferfish("masking", lambda pairs: GaussianMasking(pairs, 1.0, DELTA)),
    ]  # fmt: skip


PUBLIC = ((0.0,), (1.0,))
REGULARISATION = 0.2


@dataclass(frozen=True, slots=True)
class Coefficient:
    """The noisy coefficient behind the weights, each of which is a function of the other where there is one feature."""

    weighting: ImportanceWeighting

    @property
    def claim(self) -> Claim:
        return self.weighting.claim

    def law(self, data: Data) -> exact.Laplace:
        scale = self.weighting.sensitivity(len(data)) / self.weighting.epsilon
        return exact.Laplace(_coefficient(tuple(data)), scale)

    def sample(self, data: Data, size: int, rng: np.random.Generator) -> Any:
        return self.law(data).sample(size, rng)


@functools.cache
def _coefficient(data: tuple[float, ...]) -> float:
    weighting = ImportanceWeighting(PUBLIC, 1.0, REGULARISATION)
    return float(weighting.coefficients(np.reshape(data, (-1, 1)))[0])


def _weights(outputs: Any) -> Any:
    """The released weights, one for each public record."""
    shown = ImportanceWeighting(PUBLIC, 1.0, REGULARISATION).weights(np.asarray(outputs)[..., None])
    return shown.reshape(len(shown), -1)


def _weighting() -> Subject:
    def scaled(factor: float) -> Coefficient:
        return Coefficient(ImportanceWeighting(PUBLIC, 1.0 / factor, REGULARISATION))

    return Subject(
        name="importance-weighting", rows=True, symmetric=True, shown=_weights, scaled=scaled,
        neighbours=functools.partial(reference.unit_rows, 2, 4), raw=lambda data: _coefficient(tuple(data)),
        unit=ImportanceWeighting(PUBLIC, 1.0, REGULARISATION).sensitivity(4), public=(-3.0, 3.0),
        targets=(
            (Target((ImportanceWeighting,), ("sensitivity",)),
             lambda made: Coefficient(made(PUBLIC, 1.0, REGULARISATION))),
        ),
        # With one feature the reference uses 0.37 of its epsilon: these factors leave that behind.
        others=tuple((f"noise x {factor:g}", functools.partial(scaled, factor)) for factor in (0.25, 0.1)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claimed:
    """A mechanism with another true claim in place of its own."""

    mechanism: Any
    claim: Claim

    def sample(self, data: Data, size: int, rng: np.random.Generator) -> Any:
        return self.mechanism.sample(data, size, rng)

    def law(self, data: Data) -> Any:
        return self.mechanism.law(data)


def _federated() -> list[Subject]:
    """One parameter, two to four clients; noise for the mu that keeps (1, DELTA), as of one Gaussian of that scale."""
    scale = GaussianMechanism(1.0, DELTA).scale
    # At the clipping norm itself a client counts as below it: there the count moves along with the average.
    updates = st.tuples(st.sampled_from((-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)))

    def claimed(mechanism: Any) -> Claimed:
        return Claimed(mechanism, ApproxDP(1.0, DELTA, mechanism.relation))

    def average(factor: float, made: Any = FederatedAveraging, **fields: Any) -> Claimed:
        return claimed(made(clipping_norm=1.0, noise_multiplier=scale * factor, **fields))

    def adaptive(factor: float, made: Any = AdaptiveRound) -> Claimed:
        counting = AdaptiveClipping(count_std=4.0 * scale * factor)
        return claimed(made(clipping_norm=1.0, noise_multiplier=2.0 * scale * factor, adaptive=counting))

    def subject(name: str, make: Any, zeroed: bool, targets: tuple[Target, ...], by: float = 1.0) -> Subject:
        sizes = {"min_size": 2, "max_size": 4}
        right = make(1.0).mechanism
        return Subject(
            name=f"federated-{name}", scaled=make, rows=True, unit=by * scale / 4.0, symmetric=True, pool=24, climbs=4,
            neighbours=(functools.partial(neighbours.zero_out, updates, null=(0.0,), **sizes) if zeroed
                        else functools.partial(neighbours.substitute, updates, **sizes)),
            raw=lambda data: [law.location for law in right.law(data).laws], public=(-1.0, 1.0),
            targets=tuple((target, lambda made: make(1.0, made)) for target in targets),
        )  # fmt: skip

    def four(factor: float, made: Any = FederatedAveraging) -> Claimed:
        return average(4.0 * factor, made, rounds=4, relation=Relation.SUBSTITUTE)

    clip, own = Target((clip_updates, FederatedAveraging)), Target((FederatedAveraging,), ("mean", "noise_std"))
    adapting = (
        Target((AdaptiveRound,), ("centre", "update_std")),
        Target((update_noise_multiplier, AdaptiveRound)),
        Target((clip_updates, AdaptiveRound)),
    )
    return [
        subject("average", average, True, (own, clip)),
        subject("average-four-rounds", four, False, (own, clip), 4.0),
        subject("adaptive", adaptive, False, adapting, 2.0),
    ]


def _dyadic() -> Subject:
    made = functools.partial(DyadicLaplaceMechanism, bits=BITS)
    return Subject(
        name="laplace-dyadic", scaled=lambda f: made(1.0, sensitivity=f), unit=1.0, public=(-1.0, 3.0),
        neighbours=lambda: neighbours.answers(1, 0, 2).map_data(only),
        raw=lambda data: math.floor(math.ldexp(float(data), BITS) + 0.5) / 2.0**BITS,
        targets=(
            (Target((DyadicLaplaceMechanism,), ("sensitivity_in_steps", "scale_in_steps", "_steps")),
             lambda new: new(1.0, BITS)),
        ),
    )  # fmt: skip


_SAME = "the law of {}, whose mutants are judged"
# Sound mechanisms of the registry (but for the catalogue, which has them at other epsilons) that are no subject, and why.
_MIXTURE = "a training's law is a mixture over batches without a closed form; mechanisms.broken.dp_sgd has its mutants"
LEFT_OUT = {
    "laplace-inverse-cdf": _SAME.format("laplace"),
    "gaussian-small-delta": "the gaussian at another delta",
    "gaussian-classical": "the gaussian with more noise than it needs",
    "laplace-median-clipped": "laplace-median, whose mutants are clamped to a public range too",
    "randomised-response-warner": "the randomised response at another epsilon",
    "randomised-response-keep-or-uniform": "the randomised response at another epsilon",
    "above-threshold-monotone-noise": _SAME.format("above-threshold-counts"),
    "inverse-sensitivity-smallest": "inverse-sensitivity-median at the lowest rank",
    "bounded-noise-ten-queries": "the delta of ten bounded densities together has no closed form; one query is judged",
    **{f"dp-sgd-{name}": _MIXTURE for name in ("linear-steps", "logistic-last", "network-last")},
    "exponential-quantile-median": "inverse-sensitivity-median, whose mutants have the same law on other intervals",
    "exponential-quantiles-joint": "the law of several quantiles together takes minutes to judge",
    "synthesis-marginals": "rows show little of their counts; mechanisms.broken.synthesis has mutants with their epsilon",
    **{f"dp-sgd-shuffled-{name}": _MIXTURE for name in ("full-batch", "two-batches")},
}
# Registry names of subjects that are called otherwise, and what is left out of a subject.
CALLED = {
    "svt-1-two-hits": "svt1-two-hits",
    "svt-2-two-hits": "svt2-two-hits",
    "randomised-response-k-ary": "k-ary-response",
    "randomised-response-ranges": "range-response",
    "bounded-noise-one-query": "bounded-noise",
    "laplace-snapping": "snapping",
}
LIMITS = {
    "rappor": "only its permanent part (one-time-rappor): the instantaneous one is randomised response again",
    "numerical-svt": "nothing is mutated that would release the compared value: that has no law in closed form",
    "importance-weighting": "one feature: with more, the best event is a region of the space of coefficients",
    "federated-*": "one parameter, and Gaussian DP at delta 0.01 only; clients of unequal weights are not mutated",
    "pufferfish-*": "outputs have no true value, so nothing is mutated that would need one",
}


def derived() -> list[Subject]:
    """All of them."""
    return [_dyadic(), _numerical(), *_secrets(), _weighting(), *_federated()]
