r"""The exponential mechanism (McSherry and Talwar 2007; notes, "Mecanisme exponentiel").

Each candidate ``r`` comes with probability proportional to ``exp(epsilon u(D, r) / (2 sensitivity))``, where the
sensitivity is the largest change of ``u(., r)`` between neighbours, over all candidates as well. The weight changes by
at most ``exp(epsilon/2)`` and so does the normalisation: epsilon-DP. Where every utility moves the same way the
normalisation moves with the weight, and the 2 may go (``monotone=True``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import array_within, check_finite, check_interval, check_positive, finite_array
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import Floats, answers_of, check_draw, draw_index


@dataclass(frozen=True, slots=True)
class ExponentialMechanism:
    """Choose one of ``candidates``, the better the likelier. The outputs are the candidates themselves, as an array.

    >>> import numpy as np
    >>> votes = ExponentialMechanism(1.0, ("red", "blue"), lambda data, r: data.count(r), relation=Relation.SUBSTITUTE)
    >>> np.exp(votes.law(["red", "red", "blue"]).log_prob(["red", "blue"])).round(6)
    array([0.622459, 0.377541])
    """

    epsilon: float
    candidates: tuple[Any, ...]
    utility: Callable[[Any, Any], float]
    sensitivity: float = 1.0
    relation: Relation | None = None
    monotone: bool = False

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        if not self.candidates:
            raise InvalidArgument("candidates=() is empty; the mechanism chooses among at least one.")
        if len(set(self.candidates)) < len(self.candidates):
            raise InvalidArgument(f"candidates={self.candidates!r} must differ from each other.")

    @property
    def claim(self) -> PureDP:
        """epsilon-DP; reached in the limit of one good candidate among many."""
        return PureDP(self.epsilon, self.relation)

    def log_weights(self, data: Any) -> Floats:
        """Log-weight of every candidate, not normalised."""
        utilities = finite_array("utility(data, candidate)", [self.utility(data, r) for r in self.candidates])
        return utilities * (self.epsilon / ((1.0 if self.monotone else 2.0) * self.sensitivity))

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``size`` chosen candidates."""
        check_draw(size, rng)
        return candidate_array(self.candidates)[draw_index(self.log_weights(data), size, rng)]

    def law(self, data: Any) -> exact.Law:
        """The normalised weights."""
        return weights_law(self.candidates, self.log_weights(data))


def candidate_array(candidates: tuple[Any, ...]) -> NDArray[Any]:
    """Return the candidates as a one-dimensional array, of objects where they are not plain numbers or strings."""
    if all(isinstance(r, str) for r in candidates) or all(isinstance(r, int | float | np.number) for r in candidates):
        return np.array(candidates)
    boxed = np.empty(len(candidates), dtype=object)
    boxed[:] = candidates
    return boxed


def weights_law(candidates: tuple[Any, ...], log_weights: Floats) -> exact.Law:
    """Discrete law with the given unnormalised log-weights."""
    return exact.Discrete.from_log(candidates, log_weights - np.logaddexp.reduce(log_weights))


def answer_at(data: Any, candidate: int) -> float:
    """Utility of candidate i: the i-th answer."""
    answers = answers_of(data)
    if not 0 <= candidate < answers.size:
        raise InvalidArgument(f"data holds {answers.size} answers; there is none for candidate={candidate!r}.")
    return float(answers[candidate])


def nearest_film(data: Any, film: float) -> float:
    """Utility of the notes' film example, with its sign put right: minus the distance to the nearest film of the data.

    The notes print ``u(D, r) = min_d distance(d, r)``, which rewards the film farthest from everything liked (docs/theory.md
    R20).
    """
    return -float(np.min(np.abs(np.asarray(data, dtype=np.float64) - film)))


@dataclass(frozen=True, slots=True)
class FilmRecommendation:
    """The notes' example: recommend one of ``films`` (points of [low, high]) near what the data liked.

    Under substitution the distance to the nearest liked film may move by the whole diameter ``high - low`` (from a film
    at one end to one at the other, for data of one row), which is therefore the sensitivity.

    >>> import numpy as np
    >>> film = FilmRecommendation(1.0, films=(1.5, 3.0, 5.0, 9.0), low=0.0, high=10.0)
    >>> np.exp(film.law([1.0, 2.0]).log_prob([1.5, 3.0, 5.0, 9.0])).round(4)
    array([0.2793, 0.2724, 0.2465, 0.2018])
    """

    epsilon: float
    films: tuple[float, ...]
    low: float
    high: float
    utility: Callable[[Any, Any], float] = nearest_film
    relation: ClassVar[Relation] = Relation.SUBSTITUTE  # the number of films liked is public

    def __post_init__(self) -> None:
        check_interval(low=self.low, high=self.high)
        check_finite(**{f"films[{i}]": film for i, film in enumerate(self.films)})
        array_within("films", self.films, self.low, self.high)
        _ = self._mechanism

    @property
    def _mechanism(self) -> ExponentialMechanism:
        return ExponentialMechanism(self.epsilon, self.films, self.utility, self.high - self.low, self.relation)

    @property
    def claim(self) -> PureDP:
        """epsilon-DP."""
        return self._mechanism.claim

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``size`` recommended films."""
        return self._mechanism.sample(self._checked(data), size, rng)

    def law(self, data: Any) -> exact.Law:
        """The normalised weights."""
        return self._mechanism.law(self._checked(data))

    def _checked(self, data: Any) -> Floats:
        return array_within("data", data, self.low, self.high, empty=False)
