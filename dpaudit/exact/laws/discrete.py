"""Laws of finitely many outcomes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit._util.validation import shorten
from dpaudit.errors import InvalidArgument
from dpaudit.exact.form import Array, Form, FormLaw, as_outcomes, canonical, check_mass, log_sum


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Discrete(FormLaw):
    """A law on finitely many outcomes, which may be any hashable values: numbers, strings, tuples, None, NaN.

    ``probabilities`` maps each outcome to its probability; they must sum to one. ``from_log`` takes log-probabilities,
    and keeps outcomes of probability 1e-400 apart from impossible ones.

    >>> coin = Discrete({"heads": 0.75, "tails": 0.25})
    >>> coin.log_prob(["tails", "edge"]).round(6).tolist()
    [-1.386294, -inf]
    >>> Discrete({"heads": 0.75, "tails": 0.2})
    Traceback (most recent call last):
        ...
    dpaudit.errors.LawError: Discrete has total mass 0.95; a probability law has mass 1 ...
    """

    outcomes: tuple[Hashable, ...]
    log_probabilities: Array

    def __init__(self, probabilities: Mapping[Any, float]) -> None:
        if not isinstance(probabilities, Mapping):
            raise InvalidArgument(
                f"probabilities={shorten(probabilities)} must map each outcome to its probability, as a dict does."
            )
        values = _numbers("probabilities", list(probabilities.values()))
        if not ((values >= 0.0) & (values <= 1.0 + 1e-9)).all():
            raise InvalidArgument(f"probabilities={shorten(probabilities)} must all lie between 0 and 1.")
        with np.errstate(divide="ignore"):
            self._set(probabilities, np.log(values))

    @classmethod
    def from_log(cls, outcomes: Iterable[Any], log_probabilities: ArrayLike) -> Discrete:
        """Make the law from outcomes and their log-probabilities (minus infinity for an impossible one).

        >>> Discrete.from_log([0, 1], [-0.5, np.log(-np.expm1(-0.5))]).outcomes
        (0, 1)
        """
        law = cls.__new__(cls)
        values = _numbers("log_probabilities", log_probabilities)
        if np.isnan(values).any() or (values > 1e-9).any():
            raise InvalidArgument(
                f"log_probabilities={shorten(log_probabilities)} must all be zero or negative, never NaN."
            )
        law._set(outcomes, values)
        return law

    def _set(self, outcomes: Iterable[Any], log_probabilities: Array) -> None:
        keys = tuple(canonical(outcome) for outcome in outcomes)
        if len(keys) != log_probabilities.size:
            raise InvalidArgument(f"There are {len(keys)} outcomes but {log_probabilities.size} probabilities.")
        if len(set(keys)) != len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InvalidArgument(f"outcomes names {twice!r} more than once; add its probabilities up.")
        check_mass("Discrete", log_sum(log_probabilities))
        log_probabilities.flags.writeable = False
        object.__setattr__(self, "outcomes", keys)
        object.__setattr__(self, "log_probabilities", log_probabilities)

    def form(self) -> Form:
        """Atoms only; outcomes of probability zero are left out."""
        pairs = zip(self.outcomes, self.log_probabilities.tolist(), strict=True)
        return Form({outcome: value for outcome, value in pairs if value > -math.inf})

    def log_prob(self, outputs: Any) -> Array:
        """Log-probability of each output, minus infinity for one that is not among the outcomes."""
        table = dict(zip(self.outcomes, self.log_probabilities.tolist(), strict=True))
        return np.array([table.get(outcome, -math.inf) for outcome in as_outcomes(outputs)], dtype=np.float64)

    def _draw(self, size: int, rng: np.random.Generator) -> Any:
        """Return ``size`` outcomes: an array where all are numbers of one kind, otherwise a list."""
        probabilities = np.exp(self.log_probabilities)
        chosen = rng.choice(len(self.outcomes), size=size, p=probabilities / probabilities.sum())
        for kind in (bool, int, float):
            if all(type(outcome) is kind for outcome in self.outcomes):
                return np.array(self.outcomes)[chosen]
        return [self.outcomes[i] for i in chosen]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Discrete):
            return NotImplemented
        return self.form().atoms == other.form().atoms

    def __hash__(self) -> int:
        return hash(frozenset(self.form().atoms.items()))

    def __repr__(self) -> str:
        shown = {o: float(np.exp(v)) for o, v in zip(self.outcomes, self.log_probabilities, strict=True)}
        return f"Discrete({shorten(shown, 200)})"


def gather(chosen: NDArray[np.intp], drawn: Sequence[Any]) -> Any:
    """Put the draws of several laws into the order in which the laws were chosen: an array where all are numbers."""
    if all(isinstance(batch, np.ndarray) for batch in drawn) and len({batch.shape[1:] for batch in drawn}) == 1:
        result = np.empty((chosen.size, *drawn[0].shape[1:]), dtype=np.result_type(*drawn))
        for j, batch in enumerate(drawn):
            result[chosen == j] = batch
        return result
    queues = [iter(batch.tolist() if isinstance(batch, np.ndarray) else batch) for batch in drawn]
    return [next(queues[j]) for j in chosen]


def _numbers(name: str, values: ArrayLike) -> Array:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name}={shorten(values)} must be numbers.") from None
    if array.ndim != 1 or array.size == 0:
        raise InvalidArgument(f"{name} must be a list of at least one number; its shape is {array.shape}.")
    return array
