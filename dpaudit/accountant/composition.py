"""Compositions of noisy sums, which an accountant is asked about, and a strategy that generates them.

A step adds noise to a sum of values, each of norm at most 1 after clipping, over a Poisson sample of the data. Its noise
multiplier is the standard deviation of Gaussian noise (or the scale of Laplace noise on one number) in that unit. So adding,
removing or zeroing out one row moves the sum by at most 1 if it is sampled, and replacing it by at most 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from dpaudit._util.validation import check_choice, check_count, check_positive, check_unit, shorten
from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

PART_NOISES = ("gaussian", "laplace")
COMPOSED_RELATIONS = (Relation.ADD_REMOVE, Relation.SUBSTITUTE, Relation.ZERO_OUT)
# Values that a person would choose, the plainest first: Hypothesis shrinks towards the front.
PLAIN_MULTIPLIERS = (1.0, 2.0, 0.5, 4.0, 0.7, 10.0)
PLAIN_RATES = (1.0, 0.5, 0.1, 0.01, 0.001)
PLAIN_STEPS = (1, 2, 10, 50, 100, 1000)
PLAIN_DELTAS = (1e-5, 1e-3, 1e-6, 1e-8, 0.1)


@dataclass(frozen=True, slots=True)
class Part:
    """``steps`` equal steps, one after the other."""

    noise_multiplier: float
    sampling_rate: float = 1.0
    steps: int = 1
    noise: str = "gaussian"

    def __post_init__(self) -> None:
        check_positive(noise_multiplier=self.noise_multiplier, sampling_rate=self.sampling_rate)
        check_unit(sampling_rate=self.sampling_rate)
        check_count(steps=self.steps)
        check_choice(PART_NOISES, noise=self.noise)

    def __str__(self) -> str:
        rate = "" if self.sampling_rate == 1.0 else f", sampling rate {self.sampling_rate!r}"
        return f"{self.steps} x {self.noise}(noise multiplier {self.noise_multiplier!r}{rate})"


Composition: TypeAlias = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class CompositionLimits:
    """Ranges from which compositions are generated, both ends included."""

    noise_multipliers: tuple[float, float] = (0.5, 20.0)
    sampling_rates: tuple[float, float] = (0.001, 1.0)
    steps: tuple[int, int] = (1, 1000)
    deltas: tuple[float, float] = (1e-8, 0.1)

    def __post_init__(self) -> None:
        for name, largest in (("noise_multipliers", 1e6), ("sampling_rates", 1.0), ("steps", 10**6), ("deltas", 0.5)):
            _check_range(name, getattr(self, name), largest)
        check_count(steps=self.steps[0])
        check_count(steps=self.steps[1])


@dataclass(frozen=True, slots=True)
class Case:
    """A composition and a delta, and the same with less privacy: ``weaker`` differs from it in one quantity alone."""

    composition: Composition
    delta: float
    weaker: Composition
    smaller_delta: float


def cases(limits: CompositionLimits, *, noises: Sequence[str], parts: int, relation: Relation) -> SearchStrategy[Case]:
    """Return a strategy of cases.

    Laplace noise with sampling is left out under substitution: dp-accounting has no losses for it.
    """
    from hypothesis import strategies as st

    multipliers = _values(st, PLAIN_MULTIPLIERS, limits.noise_multipliers)
    rates = _values(st, PLAIN_RATES, limits.sampling_rates)
    deltas = _values(st, PLAIN_DELTAS, limits.deltas)
    low, high = limits.steps
    plain_steps = [count for count in PLAIN_STEPS if low <= count <= high] or [low]
    steps = st.sampled_from(plain_steps) | st.integers(low, high)

    def part(multiplier: float, rate: float, count: int, noise: str) -> Part:
        unsampled = noise == "laplace" and relation is Relation.SUBSTITUTE
        return Part(multiplier, 1.0 if unsampled else rate, count, noise)

    made = st.builds(part, multipliers, rates, steps, st.sampled_from(list(noises)))
    compositions = st.lists(made, min_size=1, max_size=parts).map(tuple)
    changes = st.sampled_from(["steps", "sampling rate", "noise", "delta"])
    return st.builds(_case, compositions, deltas, changes, st.sampled_from([2, 3, 10]))


def _case(composition: Composition, delta: float, change: str, factor: int) -> Case:
    """A case whose weaker side has ``factor`` times the steps or the sampling rate, or a part of the noise or of delta.

    The true epsilon cannot fall: further steps can be ignored, noise can be added to a release with less of it (Gaussian
    and Laplace laws are convolutions of narrower ones of their kind and a rest), and losses at a smaller sampling rate
    are mixtures of those at a larger one and of no loss at all, which joint convexity bounds.
    """
    first, rest = composition[0], composition[1:]
    match change:
        case "steps":
            changed = replace(first, steps=first.steps * factor)
        case "sampling rate":
            changed = replace(first, sampling_rate=min(1.0, first.sampling_rate * factor))
        case "noise":
            changed = replace(first, noise_multiplier=first.noise_multiplier / factor)
        case _:
            return Case(composition, delta, composition, delta / factor)
    return Case(composition, delta, (changed, *rest), delta)


def _values(st: Any, plain: Sequence[float], limits: tuple[float, float]) -> Any:
    low, high = limits
    inside = [value for value in plain if low <= value <= high] or [low]
    return st.sampled_from(inside) | st.floats(low, high).map(lambda value: min(max(float(f"{value:.3g}"), low), high))


def _check_range(name: str, limits: Any, largest: float) -> None:
    if not (isinstance(limits, tuple) and len(limits) == 2):
        raise InvalidArgument(f"{name}={shorten(limits)} must be a pair (smallest, largest).")
    check_positive(**{f"{name}[0]": limits[0], f"{name}[1]": limits[1]})
    if not limits[0] <= limits[1] <= largest:
        raise InvalidArgument(f"{name}={limits!r} must be an increasing pair of numbers up to {largest:g}.")
