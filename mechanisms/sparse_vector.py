r"""The sparse vector technique: which answers exceed a threshold, until enough of them did.

Threshold and answers get Laplace noise; the release says for each query whether its noisy answer exceeds the noisy
threshold, and stops after ``hits`` of them. One class holds the whole family of Lyu, Su and Li 2017 (catalogue rows 9
to 14 and 20), right and wrong, because they differ only in who gets how much noise and in what is released;
:func:`svt1`, :func:`svt2` and :func:`numerical_svt` are the sound ones, ``mechanisms.broken.sparse_vector`` has the
others.

What a choice of noise is worth (docs/theory.md R3, generalised). Let the threshold noise have scale ``b`` and the query noise
``c``, answers moving by at most D, and take an outcome with ``t`` hits and ``f`` misses under one threshold. Moving the
threshold along by ``s D`` with ``-1 <= s <= 1`` shows that its two log-probabilities differ by at most
``D (|s|/b + t (1 + s)/c + f (1 - s)/c)``, which is smallest at -1, 0 or 1:

    ``D min{ (t + f)/c,  1/b + 2 t/c,  1/b + 2 f/c }``.

It is a supremum: put the misses far above the threshold and the hits far below it, both moving apart. Then the
threshold's own weight, ``exp(-|z|/b + (f - t) z/c)``, sits in the middle, at the misses or at the hits, and the ratio
tends to the first, second or third value. Maximising over the outcomes that can occur gives
:meth:`SparseVector.epsilon_exact`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import check_choice, check_count, check_finite, check_non_negative, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import Floats, answers_of, check_draw, chunks, laplace_noise
from ._quadrature import integrate, log_laplace_cdf, log_laplace_density, panels

RELEASES = ("indicator", "compared value", "fresh value")
_MOST_OUTCOMES = 1 << 14
_BAND = 1 << 13  # comparisons at a time: below that a call of numpy costs more than what it does


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """A sparse vector release with its noise spelled out.

    Indicators come as an int8 array of shape ``(size, queries)``: 1 above, 0 not above, -1 after the end. Values come
    as a float array of that shape: the value where the answer was above, NaN elsewhere, which loses nothing because the
    end comes right after the last value.

    Parameters
    ----------
    epsilon : float
        What is claimed.
    threshold, threshold_scale, query_scale : float
        The threshold, and the scales of the Laplace noise on it and on every answer (0: no noise).
    hits : int or None
        Stop after that many answers above; None never stops.
    redraw : bool
        Whether the threshold gets new noise after every hit.
    release : {"indicator", "compared value", "fresh value"}
        What a hit releases: that it was one, the very noisy answer that was compared, or the answer with noise of its
        own.
    value_scale : float
        Scale of the noise of a fresh value.
    """

    epsilon: float
    threshold: float
    threshold_scale: float
    query_scale: float
    hits: int | None = 1
    redraw: bool = False
    release: str = "indicator"
    value_scale: float = 0.0
    sensitivity: float = 1.0
    relation: ClassVar[Relation] = Relation.ANSWERS  # each of which moves by at most the sensitivity

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, sensitivity=self.sensitivity, threshold_scale=self.threshold_scale)
        check_finite(threshold=self.threshold)
        check_non_negative(query_scale=self.query_scale, value_scale=self.value_scale)
        check_choice(RELEASES, release=self.release)
        if self.hits is not None:
            check_count(hits=self.hits)
        if (self.release == "fresh value") != (self.value_scale > 0.0):
            raise InvalidArgument(
                f"value_scale={self.value_scale!r} with release={self.release!r}: fresh values need a positive scale, "
                "other releases have none."
            )

    @property
    def claim(self) -> PureDP:
        """epsilon-DP, whether true or not: compare :meth:`epsilon_exact`."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``size`` releases on a vector of query answers, by running the algorithm on blocks of them."""
        check_draw(size, rng)
        answers = answers_of(data)
        values = self.release != "indicator"
        outputs: NDArray[Any] = np.full((answers.size, size), np.nan if values else np.int8(-1)).T
        for rows in chunks(size, 1):
            self._run(answers, outputs[rows], rng)
        return outputs

    def _run(self, answers: Floats, outputs: NDArray[Any], rng: np.random.Generator) -> None:
        """Fill in the rows, which hold the end everywhere, some queries at a time; rows that ended draw no more."""
        running: NDArray[np.intp] = np.arange(len(outputs))
        hits = min(self.hits or 0, answers.size)
        left: NDArray[Any] = np.full(running.size, hits, dtype=np.int8 if hits <= 127 else np.int32)
        threshold = self._thresholds(running.size, rng)
        new_thresholds = self.redraw and self.hits != 1
        start = 0
        while start < answers.size and running.size:
            band = answers[start:][: 1 if new_thresholds else max(1, _BAND // running.size)]
            noisy = self._compared(band, running.size, rng)
            above = noisy > threshold
            ended = None
            if self.hits is not None and band.size > 1:  # a row may end inside the band
                ended = np.cumsum(above, axis=0, dtype=np.int32) - above >= left
                above &= ~ended
            self._release(outputs[:, start : start + band.size], running, band, noisy, above, ended, rng)
            if new_thresholds:
                threshold[above[0]] = self._thresholds(int(above.sum()), rng)
            if self.hits is not None:
                left -= above.sum(axis=0, dtype=left.dtype) if band.size > 1 else above[0].view(np.int8)
                going = (left > 0).nonzero()[0]
                if going.size < running.size:
                    running, threshold = running.take(going, mode="clip"), threshold.take(going, mode="clip")
                    left = left.take(going, mode="clip")
            start += band.size

    def _release(
        self,
        outputs: NDArray[Any],
        running: NDArray[np.intp],
        band: Floats,
        noisy: Floats,
        above: NDArray[np.bool_],
        ended: NDArray[np.bool_] | None,
        rng: np.random.Generator,
    ) -> None:
        """Write down the answers to a band of queries: a column each here, a row each in ``noisy`` and ``above``."""
        everybody = running.size == len(outputs)
        if self.release == "indicator":
            for column, state in enumerate(above.view(np.int8) if ended is None else above.view(np.int8) - ended):
                outputs[:, column][slice(None) if everybody else running] = state
            return
        for column, (answer, values, hit) in enumerate(zip(band.tolist(), noisy, above, strict=True)):
            row = hit.nonzero()[0]
            if self.release == "compared value":
                shown = values.take(row, mode="clip")
            else:
                shown = laplace_noise(self.value_scale, row.size, rng, centre=answer)
            outputs[:, column][row if everybody else running.take(row, mode="clip")] = shown

    def _compared(self, band: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Return this many noisy answers to each query of a band, one row for each query."""
        if band.size == 1:
            return laplace_noise(self.query_scale, (1, count), rng, centre=float(band[0]))
        noisy = laplace_noise(self.query_scale, (band.size, count), rng)
        noisy += band[:, None]
        return noisy

    def _thresholds(self, count: int, rng: np.random.Generator) -> Floats:
        return laplace_noise(self.threshold_scale, count, rng, centre=self.threshold)

    def law(self, data: Any) -> exact.Law:
        """Exact law of the indicators, as tuples of 1, 0 and -1: the integral over the threshold's noise.

        Releases of values have a density on parts of different dimension and no law here; ``epsilon_exact`` covers
        them.
        """
        answers = answers_of(data)
        if self.release != "indicator":
            raise InvalidArgument(
                f"release={self.release!r} mixes numbers and their absence query by query; it has no law object. "
                "Use epsilon_exact, or audit it by sampling."
            )
        outcomes = _outcomes(answers.size, self.hits)
        if self.query_scale == 0.0:
            log_probabilities = self._noiseless(answers, outcomes)
        elif self.redraw:
            log_probabilities = self._renewed(answers, outcomes)
        else:
            log_probabilities = self._integrated(answers, outcomes)
        return exact.Discrete.from_log(map(tuple, outcomes.tolist()), log_probabilities)

    def _integrated(self, answers: Floats, outcomes: NDArray[np.int8]) -> Floats:
        fastest = 1.0 / (1.0 / self.threshold_scale + answers.size / self.query_scale)
        nodes, weights = panels(np.append(answers - self.threshold, 0.0), fastest, self.threshold_scale)
        gaps = self.threshold + nodes[:, None] - answers
        missed, hit = log_laplace_cdf(gaps, self.query_scale), log_laplace_cdf(-gaps, self.query_scale)
        given = missed @ (outcomes == 0).T + hit @ (outcomes == 1).T
        given += log_laplace_density(nodes, self.threshold_scale)[:, None]
        return integrate(given, weights)

    def _renewed(self, answers: Floats, outcomes: NDArray[np.int8]) -> Floats:
        """New noise after each hit: the parts between hits are independent, each an integral of its own."""
        parts: dict[tuple[int, int, bool], float] = {}
        for start, stop in itertools.combinations(range(answers.size + 1), 2):
            missed = np.zeros((2, stop - start), dtype=np.int8)
            missed[1, -1] = 1
            none, last = self._integrated(answers[start:stop], missed)
            parts[start, stop, False], parts[start, stop, True] = float(none), float(last)
        log_probabilities = np.zeros(len(outcomes))
        for row, outcome in enumerate(outcomes):
            start, end = 0, int((outcome >= 0).sum())
            for stop in [*(np.flatnonzero(outcome == 1) + 1).tolist(), end]:
                if stop > start:
                    log_probabilities[row] += parts[start, stop, bool(outcome[stop - 1] == 1)]
                start = stop
        return log_probabilities

    def _noiseless(self, answers: Floats, outcomes: NDArray[np.int8]) -> Floats:
        """Without query noise the outcome is a function of the noisy threshold: probabilities of intervals."""
        if self.redraw and self.hits != 1:
            raise InvalidArgument(
                "redraw=True with query_scale=0.0 has no law here; the technique is not private anyway."
            )
        low = np.where(outcomes == 0, answers, -np.inf).max(axis=1) - self.threshold
        high = np.where(outcomes == 1, answers, np.inf).min(axis=1) - self.threshold
        # Probability of (low, high]: by distribution functions on the side where they are small.
        flip = low > 0.0
        near, far = np.where(flip, -high, low), np.where(flip, -low, high)
        log_near, log_far = log_laplace_cdf(near, self.threshold_scale), log_laplace_cdf(far, self.threshold_scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(low < high, log_far + np.log(-np.expm1(log_near - log_far)), -np.inf)

    def epsilon_exact(self, queries: int) -> float:
        """The true epsilon for that many queries, the supremum over all answers (module docstring).

        A fresh value adds ``D/value_scale`` a hit. A compared value fixes the query noise of its hit, so that moving
        the threshold no longer helps: as the value goes to minus infinity every query used costs ``D/query_scale``, and
        epsilon grows with their number. Without query noise it is infinite.

        >>> [round(svt1(epsilon=1.0, threshold=0.0).epsilon_exact(m), 12) for m in (1, 2, 3, 4, 9)]   # docs/theory.md R3
        [0.25, 0.5, 0.75, 1.0, 1.0]
        """
        check_count(queries=queries)
        if self.query_scale == 0.0:
            return math.inf
        most = queries if self.hits is None else min(self.hits, queries)
        if self.release == "compared value":
            return queries * self.sensitivity / self.query_scale
        if not self.redraw:
            costs = (
                self._cost(hits, misses) + (hits * self.sensitivity / self.value_scale if self.value_scale else 0.0)
                for hits in range(most + 1)
                for misses in range(queries - hits + 1)
            )
            return max(costs)
        return self._renewed_cost(queries, most)

    def _cost(self, hits: int, misses: int) -> float:
        along, each = self.sensitivity / self.threshold_scale, self.sensitivity / self.query_scale
        return min((hits + misses) * each, along + 2 * hits * each, along + 2 * misses * each)

    def _renewed_cost(self, queries: int, hits: int) -> float:
        """Worst division of the queries into runs that end in a hit, the last one perhaps without."""
        fresh = self.sensitivity / self.value_scale if self.value_scale else 0.0
        without = [max(self._cost(0, used) for used in range(left + 1)) for left in range(queries + 1)]
        worst = [0.0] * (queries + 1)
        for _ in range(hits):
            worst = [
                max(
                    [without[left], *(self._cost(1, run - 1) + fresh + worst[left - run] for run in range(1, left + 1))]
                )
                for left in range(queries + 1)
            ]
        return worst[queries]


def svt1(*, epsilon: float, threshold: float, hits: int = 1, sensitivity: float = 1.0) -> SparseVector:
    """Lyu, Su and Li 2017, algorithm 1 (catalogue row 9): half of epsilon for the threshold, half for the hits.

    Parameters
    ----------
    epsilon : float
        Budget of the whole mechanism.
    threshold : float
        The public threshold.
    hits : int
        Number of answers above it after which the mechanism stops.
    sensitivity : float
        Largest change of an answer.

    Examples
    --------
    >>> import numpy as np
    >>> svt1(epsilon=0.1, threshold=0.5).sample(np.ones(3), 1, np.random.default_rng(2)).shape
    (1, 3)
    """
    return SparseVector(
        epsilon=epsilon,
        threshold=threshold,
        threshold_scale=2.0 * sensitivity / epsilon,
        query_scale=4.0 * hits * sensitivity / epsilon,
        hits=hits,
        sensitivity=sensitivity,
    )


def svt2(*, epsilon: float, threshold: float, hits: int = 1, sensitivity: float = 1.0) -> SparseVector:
    """Dwork and Roth 2014, algorithm 2 (catalogue row 10): a new threshold, of scale 2 hits/epsilon, after a hit.

    Parameters
    ----------
    epsilon : float
        Budget of the whole mechanism.
    threshold : float
        The public threshold.
    hits : int
        Number of answers above it after which the mechanism stops.
    sensitivity : float
        Largest change of an answer.
    """
    return SparseVector(
        epsilon=epsilon,
        threshold=threshold,
        threshold_scale=2.0 * hits * sensitivity / epsilon,
        query_scale=4.0 * hits * sensitivity / epsilon,
        hits=hits,
        redraw=True,
        sensitivity=sensitivity,
    )


def numerical_svt(*, epsilon: float, threshold: float, hits: int = 1, sensitivity: float = 1.0) -> SparseVector:
    """Wang et al. 2019 (catalogue row 20): a third of epsilon each for threshold, comparisons and fresh values.

    Parameters
    ----------
    epsilon : float
        Budget of the whole mechanism.
    threshold : float
        The public threshold.
    hits : int
        Number of answers above it after which the mechanism stops.
    sensitivity : float
        Largest change of an answer.
    """
    return SparseVector(
        epsilon=epsilon,
        threshold=threshold,
        threshold_scale=3.0 * sensitivity / epsilon,
        query_scale=6.0 * hits * sensitivity / epsilon,
        hits=hits,
        release="fresh value",
        value_scale=3.0 * hits * sensitivity / epsilon,
        sensitivity=sensitivity,
    )


def _outcomes(queries: int, hits: int | None) -> NDArray[np.int8]:
    """All vectors of 1, 0, -1 that can come out: at most ``hits`` ones, and -1 from the last of them on."""
    most = queries if hits is None else min(hits, queries)
    count = sum(math.comb(queries, ones) for ones in range(most + 1))
    if count > _MOST_OUTCOMES:
        raise InvalidArgument(
            f"{queries} queries with hits={hits!r} have {count} outcomes; there is a law up to {_MOST_OUTCOMES}."
        )
    rows = []
    for ones in range(most + 1):
        for places in itertools.combinations(range(queries), ones):
            row = np.zeros(queries, dtype=np.int8)
            row[list(places)] = 1
            if hits is not None and ones == hits:
                row[places[-1] + 1 :] = -1
            rows.append(row)
    return np.array(rows)
