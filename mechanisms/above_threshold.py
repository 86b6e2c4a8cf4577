r"""AboveThreshold (report, section 2.1; Dwork and Roth 2014, algorithm 1): the first query above a threshold.

Threshold noise Lap(2/epsilon) once, fresh Lap(4/epsilon) on every query, and the index of the first noisy answer above
the noisy threshold, or -1. It is epsilon-DP for queries of sensitivity 1 (report, theorem 2.1.0.1), and exactly
``epsilon min(m, 4)/4`` for m queries; if all answers move the same way, exactly ``3 epsilon/4`` from four queries on
(docs/theory.md R3). Such monotone queries are epsilon-DP already with Lap(2/epsilon) on both, which roughly halves the error
(docs/theory.md R5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import check_finite, check_positive, finite_array
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument
from dpaudit.exact.mechanism_laws.above_threshold import NONE_ABOVE, above_threshold_law, worst_case_epsilon

from ._common import Floats, Query, answers_of, check_draw, chunks


@dataclass(frozen=True, slots=True)
class AboveThreshold:
    """Index of the first query whose noisy answer exceeds the noisy threshold, from 0; -1 if there is none.

    Parameters
    ----------
    epsilon : float
        What is claimed.
    threshold : float
        The threshold before noise.
    queries : tuple of callables, optional
        Each turns the data into one answer; without them the data are the vector of answers.
    sensitivity : float
        Largest move of any answer between neighbours.
    monotone : bool
        Whether all answers move the same way between any two neighbours, as counts do. Then the query noise is that of
        the threshold, ``2 sensitivity/epsilon``. For other queries this would reach ``3 epsilon/2``.

    >>> import numpy as np
    >>> first = AboveThreshold(epsilon=1.3, threshold=4.0)
    >>> np.exp(first.law([0, 1, 3, 5, 8]).log_prob([0, -1])).round(6)
    array([0.169309, 0.060191])
    """

    epsilon: float
    threshold: float
    queries: tuple[Query, ...] | None = None
    sensitivity: float = 1.0
    monotone: bool = False
    relation: Relation = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        check_finite(threshold=self.threshold)
        if self.queries is not None and not self.queries:
            raise InvalidArgument(
                "queries=() is empty; ask at least one, or leave it out and pass answers as the data."
            )

    @property
    def threshold_scale(self) -> float:
        """Scale of the threshold's noise."""
        return 2.0 * self.sensitivity / self.epsilon

    @property
    def query_scale(self) -> float:
        """Scale of the noise on every answer."""
        return (2.0 if self.monotone else 4.0) * self.sensitivity / self.epsilon

    @property
    def claim(self) -> PureDP:
        """epsilon-DP."""
        return PureDP(self.epsilon, self.relation)

    def epsilon_exact(self, queries: int, *, monotone: bool | None = None) -> float:
        """True epsilon for that many queries; ``monotone`` restricts the neighbours, not the noise.

        >>> AboveThreshold(1.0, 0.0).epsilon_exact(9), AboveThreshold(1.0, 0.0).epsilon_exact(9, monotone=True)
        (1.0, 0.75)
        """
        return worst_case_epsilon(
            queries,
            self.epsilon,
            monotone=self.monotone if monotone is None else monotone,
            threshold_scale=self.threshold_scale / self.sensitivity,
            query_scale=self.query_scale / self.sensitivity,
        )

    def answers(self, data: Any) -> Floats:
        """Answer all queries."""
        if self.queries is None:
            return answers_of(data)
        return finite_array("query(data)", [query(data) for query in self.queries], ndim=1)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return ``size`` indices."""
        check_draw(size, rng)
        return first_above(self.answers(data), self.threshold, self.threshold_scale, self.query_scale, size, rng)

    def law(self, data: Any) -> exact.Law:
        """Exact law of the index (docs/theory.md R2)."""
        return above_threshold_law(
            self.answers(data),
            self.threshold,
            self.epsilon,
            threshold_scale=self.threshold_scale,
            query_scale=self.query_scale,
        )


def first_above(
    answers: Floats, threshold: float, threshold_scale: float, query_scale: float, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Run AboveThreshold ``size`` times.

    The threshold's noise is drawn as in the algorithm. Given the noisy threshold ``t`` the query noises are
    independent, so the index J has ``P(J > j | t) = prod_{i<=j} F(t - y_i)``, and J is the first j at which the running
    sum of ``-log F(t - y_i)`` passes one standard exponential variable. That draws J exactly, with one random number
    where the loop would need up to m, and a run of equal answers (the counts of a histogram with more steps than rows)
    costs as much as one: inside it the sum is linear. Only numbers that no output shows are not drawn.
    """
    starts = np.flatnonzero(np.diff(answers, prepend=np.nan) != 0.0)
    levels, lengths = answers[starts], np.diff(starts, append=answers.size)
    runs = levels.size < answers.size
    indices = np.empty(size, dtype=np.int64)
    for rows in chunks(size, levels.size):
        noisy = rng.laplace(threshold, threshold_scale, rows.stop - rows.start)
        budget = rng.standard_exponential(noisy.size)
        hazard = _hazard(noisy, levels, query_scale)
        spent = np.cumsum(hazard * lengths if runs else hazard, axis=1)
        run = (spent < budget[:, None]).sum(axis=1)
        block = np.where(run < levels.size, run, NONE_ABOVE)
        if runs:
            found = np.flatnonzero(block != NONE_ABOVE)
            run = run[found]
            length, each = lengths[run], hazard[found, run]
            inside = np.ceil((budget[found] - (spent[found, run] - each * length)) / each) - 1.0
            block[found] = starts[run] + np.clip(inside, 0, length - 1).astype(np.int64)
        indices[rows] = block
    return indices


def _hazard(noisy: Floats, levels: Floats, scale: float) -> Floats:
    """``-log F(t - y)`` for every noisy threshold and level, never zero so that divisions by it stay finite."""
    gap = np.subtract.outer(noisy, levels)
    below = gap < 0.0
    np.abs(gap, out=gap)
    gap /= -scale
    far = np.log(2.0) - gap
    np.exp(gap, out=gap)
    gap *= -0.5
    np.log1p(gap, out=gap)
    np.negative(gap, out=gap)
    np.copyto(gap, far, where=below)
    return np.maximum(gap, np.finfo(np.float64).tiny, out=gap)
