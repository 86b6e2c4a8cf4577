"""Mutations of behaviour: wrappers that change what a mechanism does, and its exact law with it.

Each is written once, for an output or a coordinate of it with a known law and a known true value, and fits any reference
mechanism whose outputs are of the right kind. Where a law is a product, a wrapper acts on one coordinate or on all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpaudit import exact
from dpaudit._util.values import fingerprint
from dpaudit.exact.form import canonical

Data = Any
Where = Literal["first", "last", "all"]

RELEASES = 200  # of one call, that are looked at together where they are not independent


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A mechanism made of two functions."""

    draw: Callable[[Data, int, np.random.Generator], Any]
    exact_law: Callable[[Data], Any]

    def sample(self, data: Data, size: int, rng: np.random.Generator) -> Any:
        return self.draw(data, size, rng)

    def law(self, data: Data) -> Any:
        return self.exact_law(data)


def remembered(mechanism: Any) -> Mechanism:
    """The mechanism, its law on each data set worked out once. Where law and sampler both fail, that is its output."""
    known: dict[Any, Any] = {}

    def law(data: Data) -> Any:
        key = fingerprint(data)
        if key not in known:
            try:
                known[key] = mechanism.law(data)
            except Exception:
                if not _fails(mechanism, data):
                    raise
                known[key] = FAILS
        return known[key]

    return Mechanism(mechanism.sample, law)


def published(mechanism: Mechanism, shown: Callable[[Any], Any] | None) -> Mechanism:
    """The mechanism with a function of its outputs in their place, which must keep all information: the law stays."""
    if shown is None:
        return mechanism
    return Mechanism(lambda data, size, rng: shown(mechanism.sample(data, size, rng)), mechanism.law)


def _fails(mechanism: Any, data: Data) -> bool:
    try:
        mechanism.sample(data, 1, np.random.default_rng(0))
    except Exception:
        return True
    return False


@dataclass(frozen=True, slots=True)
class At:
    """The value of an output without noise, and the data it is computed from."""

    truth: Any
    data: Data


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the outputs of one coordinate, and of their law."""

    values: Callable[[Any, At, np.random.Generator], Any]
    law: Callable[[Any, At], Any]


def changed(mechanism: Any, raw: Callable[[Data], Any], change: Change, where: Where | None = None) -> Mechanism:
    """The mechanism with the change made to its whole output, or to some coordinates where its law is a product."""
    places = {"first": slice(0, 1), "last": slice(-1, None), "all": slice(None)}

    def draw(data: Data, size: int, rng: np.random.Generator) -> Any:
        outputs, truth = np.array(mechanism.sample(data, size, rng)), raw(data)
        if where is None:
            return change.values(outputs, At(truth, data), rng)
        for place in range(outputs.shape[1])[places[where]]:
            outputs[:, place] = change.values(outputs[:, place].copy(), At(truth[place], data), rng)
        return outputs

    def law(data: Data) -> Any:
        before, truth = mechanism.law(data), raw(data)
        if where is None:
            return change.law(before, At(truth, data))
        chosen = range(len(before.laws))[places[where]]
        after = [change.law(one, At(truth[i], data)) if i in chosen else one for i, one in enumerate(before.laws)]
        return exact.Product(
            [part for one in after for part in (one.laws if isinstance(one, exact.Product) else [one])]
        )

    return Mechanism(draw, law)


def certain(value: Any) -> exact.Discrete:
    """The law of an output that never changes."""
    return exact.Discrete({canonical(value): 1.0})


FAILS = certain("fails")


def _replaced(outputs: Any, mask: Any, value: Any) -> Any:
    outputs[mask] = value
    return outputs


def leak(rate: float) -> Change:
    """With that probability the true value leaves without noise."""
    return Change(
        lambda outputs, at, rng: _replaced(outputs, rng.random(len(outputs)) < rate, at.truth),
        lambda law, at: exact.Mixture([1.0 - rate, rate], [law, certain(at.truth)]),
    )


def bare() -> Change:
    """No noise at all."""
    return bare_where(lambda _truth: True)


def bare_where(condition: Callable[[Any], bool], value: Callable[[Any], Any] = lambda truth: truth) -> Change:
    """On one branch, decided by the true value, ``value`` of it leaves in place of a noisy one."""
    return Change(
        lambda outputs, at, _rng: _replaced(outputs, slice(None), value(at.truth)) if condition(at.truth) else outputs,
        lambda law, at: certain(value(at.truth)) if condition(at.truth) else law,
    )


def clamped(low: Callable[[At], float], high: Callable[[At], float]) -> Change:
    """Outputs are forced between two bounds; harmless where the bounds are public."""

    def law(law: Any, at: At) -> Any:
        bounds = low(at), high(at)
        return certain(bounds[0]) if bounds[0] == bounds[1] else exact.Clipped(law, *bounds)

    return Change(lambda outputs, at, _rng: np.clip(outputs, low(at), high(at)), law)


def clamped_to(low: float, high: float) -> Change:
    """Outputs are forced into a public range."""
    return clamped(lambda _at: low, lambda _at: high)


def one_sided() -> Change:
    """The absolute value of symmetric noise."""
    return Change(
        lambda outputs, at, _rng: at.truth + np.abs(outputs - at.truth),
        lambda law, at: exact.Truncated(law, float(at.truth), math.inf),
    )


def rounded(step: float) -> Change:
    """Rounding of the output to a public grid: post-processing."""
    return Change(lambda outputs, _at, _rng: np.rint(outputs / step) * step, lambda law, _at: exact.Rounded(law, step))


def noise_truncated() -> Change:
    """Symmetric noise cut to an integer, towards zero, before it is added: ``answer + int(noise)``.

    An output shows the fraction of the answer. That fraction and the integer below the answer plus the noise
    determine the output, so their law is used. Upwards the noise cut to k lay in [k, k + 1): that is rounding, half a step lower.
    """

    def law(law: Any, at: At) -> Any:
        whole = math.floor(at.truth)
        up, down = (replace(law, location=whole + shift) for shift in (-0.5, 0.5))
        halves = exact.Truncated(up, whole - 0.5, math.inf), exact.Truncated(down, -math.inf, whole + 0.5)
        noisy = exact.Mixture([0.5, 0.5], [exact.Rounded(half, 1.0) for half in halves])
        return exact.Product([certain(float(at.truth - whole)), noisy])

    return Change(lambda outputs, at, _rng: at.truth + np.trunc(outputs - at.truth), law)


def sometimes(mechanism: Any, other: Any, rate: float, *, product: bool) -> Mechanism:
    """With probability ``rate`` the other mechanism answers: in a product, for the first coordinate only."""

    def draw(data: Data, size: int, rng: np.random.Generator) -> Any:
        outputs, others = np.array(mechanism.sample(data, size, rng)), np.asarray(other.sample(data, size, rng))
        mask = rng.random(size) < rate
        chosen = (mask, 0) if product else mask
        outputs[chosen] = others[chosen]
        return outputs

    def law(data: Data) -> Any:
        first, second = mechanism.law(data), other.law(data)
        if not product:
            return exact.Mixture([1.0 - rate, rate], [first, second])
        return exact.Product([exact.Mixture([1.0 - rate, rate], [first.laws[0], second.laws[0]]), *first.laws[1:]])

    return Mechanism(draw, law)


def on_data(mechanism: Any, transform: Callable[[Data], Data]) -> Mechanism:
    """The mechanism on data that were changed before."""
    return Mechanism(
        lambda data, size, rng: mechanism.sample(transform(data), size, rng),
        lambda data: mechanism.law(transform(data)),
    )


def chosen_by_data(choose: Callable[[Data], Any]) -> Mechanism:
    """A mechanism whose parameters depend on the data."""
    return Mechanism(lambda data, size, rng: choose(data).sample(data, size, rng), lambda data: choose(data).law(data))


def twice(mechanism: Any) -> Mechanism:
    """Two releases for the price of one."""

    def law(data: Data) -> Any:
        once = mechanism.law(data)
        parts = once.laws if isinstance(once, exact.Product) else (once,)
        return exact.Product([*parts, *parts])

    return Mechanism(
        lambda data, size, rng: np.column_stack([mechanism.sample(data, size, rng) for _ in range(2)]), law
    )


def same_noise(mechanism: Any, raw: Callable[[Data], Any]) -> Mechanism:
    """One noise for all coordinates. The law is that of the first and of the differences to it."""

    def draw(data: Data, size: int, rng: np.random.Generator) -> Any:
        truth = np.asarray(raw(data), dtype=float)
        outputs = np.array(mechanism.sample(data, size, rng), dtype=float)
        return outputs[:, :1] - truth[0] + truth

    def law(data: Data) -> Any:
        truth = np.asarray(raw(data), dtype=float)
        return exact.Product([mechanism.law(data).laws[0], *(certain(x) for x in (truth[1:] - truth[0]).tolist())])

    return Mechanism(draw, law)


def same_seed(mechanism: Any) -> Mechanism:
    """Every call seeds its generator alike: what a call returns is a function of the data, and that is its law."""

    def draw(data: Data, size: int, _rng: np.random.Generator) -> Any:
        return mechanism.sample(data, size, np.random.default_rng(20))

    return Mechanism(draw, lambda data: certain(np.ravel(draw(data, RELEASES, np.random.default_rng(0))).tolist()))
