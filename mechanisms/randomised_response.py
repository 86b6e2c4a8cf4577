r"""Randomised response: every person disturbs their own answer, and the proportions are still estimable.

One class for all forms in the sources, because all are the same channel: the truth comes out with probability ``p`` and
each of the other ``k - 1`` categories with probability ``q``.

========================  =========================================  ==================================================
form                      p, q                                       source
========================  =========================================  ==================================================
``warner(p)``             p, 1 - p                                   Warner 1965; the 1979 article in the notes
``keep_or_uniform(a)``    a + (1 - a)/k, (1 - a)/k                   lecture notes, section 6.1 (k = 2)
``k_ary(epsilon, k)``     e^epsilon / (e^epsilon + k - 1), ...       Kairouz, Oh and Viswanath 2014
ranges                    any of these on the number of a range      remark in the notes
========================  =========================================  ==================================================

The ratio of the probabilities of an output under two inputs is p/q, q/p or 1, so epsilon is exactly ``|log(p/q)|``: for
any two values of one person, and for data sets that differ in one row.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import array_within, check_open_unit, check_positive, finite_array
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import Floats, category_indices, check_draw


@dataclass(frozen=True, slots=True)
class RandomisedResponse:
    """Each person answers truthfully with probability ``truthful``, and otherwise one of the other categories at random.

    The data are one category (outputs of shape ``(size,)``) or one per person (``(size, n)``); the outputs are
    categories.

    >>> import numpy as np
    >>> coin = RandomisedResponse.keep_or_uniform(0.5)
    >>> coin.truthful, round(coin.epsilon, 12)
    (0.75, 1.098612288668)
    >>> coin.estimate([1] * 9 + [0] * 9)      # the lecture notes' example: 9 of 18 answer yes
    array([0.5, 0.5])
    """

    truthful: float
    categories: tuple[Hashable, ...] = (0, 1)
    _labels: NDArray[Any] = field(init=False, repr=False, compare=False)
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        if len(self.categories) < 2 or len(set(self.categories)) < len(self.categories):
            raise InvalidArgument(f"categories={self.categories!r} must be at least two, all different.")
        object.__setattr__(self, "_labels", _array_of(self.categories))
        check_open_unit(truthful=self.truthful, hint="At 0 or 1 some answers would be impossible and epsilon infinite.")
        if self.truthful == self.other:
            raise InvalidArgument(
                f"truthful={self.truthful!r} makes the answer independent of the truth: nothing can be "
                "estimated. Choose another probability."
            )

    @classmethod
    def warner(cls, truthful: float) -> RandomisedResponse:
        """The truth with probability ``truthful``, the opposite otherwise; below one half is as good as above."""
        return cls(truthful)

    @classmethod
    def keep_or_uniform(cls, keep: float, categories: tuple[Hashable, ...] = (0, 1)) -> RandomisedResponse:
        """Keep the answer with probability a, else take a uniform one; epsilon = log(1 + a k/(1 - a))."""
        check_open_unit(keep=keep, hint="0 carries no information, 1 no privacy.")
        return cls(keep + (1.0 - keep) / len(categories), categories)

    @classmethod
    def k_ary(cls, epsilon: float, categories: tuple[Hashable, ...]) -> RandomisedResponse:
        """The channel of that epsilon on the given categories."""
        check_positive(epsilon=epsilon)
        return cls(1.0 / (1.0 + (len(categories) - 1) * math.exp(-epsilon)), categories)

    @property
    def other(self) -> float:
        """Probability of each single category that is not the truth."""
        return (1.0 - self.truthful) / (len(self.categories) - 1)

    @property
    def epsilon(self) -> float:
        """``|log(p/q)|``, exactly."""
        return abs(math.log(self.truthful / self.other))

    @property
    def claim(self) -> PureDP:
        """epsilon-DP, locally: it holds for each person against everybody, the collector included."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``size`` independent collections of answers.

        One uniform decides a person's answer: below ``p`` the truth, beyond it the category that many times ``q``
        further.
        """
        check_draw(size, rng)
        truth = self._index(data)
        uniform = rng.random((size, *truth.shape))
        count = len(self.categories)
        uniform -= self.truthful
        uniform /= self.other
        np.floor(uniform, out=uniform)
        np.clip(uniform, -1, count - 2, out=uniform)  # -1 is the truth
        shift = uniform.astype(np.intp)
        shift += truth + 1
        shift %= count
        return self._labels[shift]

    def law(self, data: Any) -> exact.Law:
        """The channel's row for one person; for several the product of one each."""
        truth = self._index(data)
        laws = [self._row(int(index)) for index in truth.flat]
        return laws[0] if truth.ndim == 0 else exact.Product(laws)

    def _row(self, truth: int) -> exact.Discrete:
        probabilities = [self.truthful if j == truth else self.other for j in range(len(self.categories))]
        return exact.Discrete(dict(zip(self.categories, probabilities, strict=True)))

    def estimate(self, answers: Any, *, project: bool = False) -> Floats:
        """Unbiased estimate ``(c_j/n - q)/(p - q)`` of every category's proportion; it sums to 1.

        It may leave [0, 1]; ``project=True`` takes the nearest point of the simplex, which is biased.
        """
        counts = np.bincount(self._index(answers).ravel(), minlength=len(self.categories))
        estimate = (counts / counts.sum() - self.other) / (self.truthful - self.other)
        return _onto_simplex(estimate) if project else estimate

    def covariance(self, proportions: Any, people: int, *, iid: bool = False) -> Floats:
        """Exact covariance matrix of the estimate, for data with the given proportions of each category.

        For fixed data, ``Var_j = [pi_j p(1-p) + (1 - pi_j) q(1-q)] / (n (p-q)^2)`` and
        ``Cov_jl = -sum_i pi_i M_ij M_il / (n (p-q)^2)``; for people drawn independently from a population
        (``iid=True``), the multinomial ``(diag(l) - l l')/(n (p-q)^2)`` with ``l = q + (p - q) pi``.
        The lecture notes print ``1/(a^2 n)`` for two categories: four times the largest value it can take (docs/theory.md R21).

        Parameters
        ----------
        proportions : array_like
            Share of each category in the data or the population.
        people : int
            Number of answers.
        iid : bool
            People are drawn independently; otherwise the data are fixed.

        Examples
        --------
        >>> float(RandomisedResponse.keep_or_uniform(0.5).covariance([0.7, 0.3], 18, iid=True)[1, 1].round(12))
        0.053333333333
        """
        pi = array_within("proportions", proportions, 0.0, 1.0, empty=False)
        if pi.size != len(self.categories) or abs(pi.sum() - 1.0) > 1e-9:
            raise InvalidArgument(f"proportions={pi.tolist()!r} must be {len(self.categories)} numbers that sum to 1.")
        check_positive(people=people)
        p, q = self.truthful, self.other
        channel = np.full((pi.size, pi.size), q) + (p - q) * np.eye(pi.size)
        answered = pi @ channel
        if iid:
            spread = np.diag(answered) - np.outer(answered, answered)
        else:
            spread = np.diag(answered) - channel.T @ np.diag(pi) @ channel
        return np.asarray(spread / (people * (p - q) ** 2))

    def _index(self, data: Any) -> NDArray[np.intp]:
        """Number of the category of every answer."""
        if isinstance(data, np.ndarray | np.generic):
            if data.ndim > 1:
                raise InvalidArgument(f"data must be one answer or a vector of answers; its shape is {data.shape}.")
            data = data.tolist()
        single = not isinstance(data, list | tuple)
        answers = [data] if single else data
        found = category_indices(answers, self.categories)
        if found.size == 0:
            raise InvalidArgument("data is empty; at least one answer is needed.")
        return found.reshape(()) if single else found


def _array_of(categories: tuple[Hashable, ...]) -> NDArray[Any]:
    if all(isinstance(c, int) for c in categories) or all(isinstance(c, str) for c in categories):
        return np.array(categories)
    boxed = np.empty(len(categories), dtype=object)
    boxed[:] = categories
    return boxed


@dataclass(frozen=True, slots=True)
class RangeResponse:
    """Randomised response on ranges of values: a number is replaced by the number of its range, and that is disturbed.

    The notes' remark. The edges are public and fixed before the data are seen: edges taken from the data leak them
    (``mechanisms.broken.randomised_response``). Ranges are closed on the left, the last one on both sides.

    >>> thirds = RangeResponse.of(1.0, (0.0, 3.0, 6.0, 9.0))
    >>> thirds.ranges([0.0, 2.9, 3.0, 9.0])
    array([0, 0, 1, 2])
    >>> thirds.claim
    PureDP(epsilon=1.0, relation='substitute')
    """

    response: RandomisedResponse
    edges: tuple[float, ...]
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        edges = finite_array("edges", self.edges, ndim=1)
        if edges.size < 3 or not (np.diff(edges) > 0.0).all():
            raise InvalidArgument(
                f"edges={self.edges!r} must be at least three increasing numbers: two ranges or more."
            )
        if self.response.categories != tuple(range(edges.size - 1)):
            raise InvalidArgument(
                f"response must have the categories 0..{edges.size - 2}, one for each range; it has "
                f"{self.response.categories!r}. RangeResponse.of(epsilon, edges) makes it so."
            )

    @classmethod
    def of(cls, epsilon: float, edges: tuple[float, ...]) -> RangeResponse:
        """Ranges between consecutive edges, disturbed by the k-ary channel of that epsilon."""
        return cls(RandomisedResponse.k_ary(epsilon, tuple(range(len(edges) - 1))), tuple(edges))

    @property
    def claim(self) -> PureDP:
        """The claim of the channel."""
        return self.response.claim

    @property
    def midpoints(self) -> Floats:
        """The middle of every range."""
        edges = np.array(self.edges, dtype=np.float64)
        middles: Floats = (edges[1:] + edges[:-1]) / 2.0
        return middles

    def ranges(self, data: Any) -> NDArray[np.intp]:
        """Number of the range of every value; a value outside all of them is refused, not clipped in silence."""
        values = array_within("data", data, self.edges[0], self.edges[-1], ndim=None, empty=False)
        return np.minimum(np.searchsorted(self.edges, values, side="right") - 1, len(self.edges) - 2)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``size`` collections of range numbers."""
        return self.response.sample(self.ranges(data), size, rng)

    def law(self, data: Any) -> exact.Law:
        """Law of the range numbers."""
        return self.response.law(self.ranges(data))

    def mean(self, answers: Any) -> float:
        """Estimate of the mean of the values: midpoints weighted by the estimated proportions.

        Unbiased for the mean of the midpoints, so its bias is at most half the widest range.
        """
        return float(self.midpoints @ self.response.estimate(answers))

    def mean_variance(self, proportions: Any, people: int, *, iid: bool = False) -> float:
        """Exact variance of :meth:`mean`: ``mid' Cov mid``.

        Parameters
        ----------
        proportions, people, iid
            As for :meth:`RandomisedResponse.covariance`.
        """
        return float(self.midpoints @ self.response.covariance(proportions, people, iid=iid) @ self.midpoints)


def _onto_simplex(estimate: Floats) -> Floats:
    """Nearest probability vector: subtract one number from all entries and cut at zero (Held, Wolfe, Crowder 1974)."""
    descending = np.sort(estimate)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, estimate.size + 1)
    projected: Floats = np.maximum(estimate - excess[np.flatnonzero(descending > excess)[-1]], 0.0)
    return projected
