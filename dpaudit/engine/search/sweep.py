"""Look at many pairs with a few outputs each, and propose the few that look most different.

A leak may show on few pairs only: for one age of 110, for one word, at the edge of a bin. A pool of some dozen pairs misses
it. Nothing is bet on the outputs of a sweep. They choose pairs, whose shares of the capital were set aside at the start, and
which are then audited like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded, record_keys
from dpaudit.engine.sampling.blocks import BatchRaised
from dpaudit.neighbours import Pair

Draw: TypeAlias = Callable[[Any, int, int], Encoded]
"""Draws outputs of one data set: (data, number of outputs, number of the draw, which names the seed)."""


@dataclass(frozen=True, slots=True)
class SweepSizes:
    """Outputs and pairs of a sweep."""

    outputs: int = 8
    """Outputs of each side of every pair, at first."""
    finalists: int = 48
    """Pairs that are looked at again."""
    more_outputs: int = 32
    """Outputs of each side of those."""
    proposed: int = 4
    """Pairs that are proposed."""
    columns: int = 8
    """Numbers of an output that are compared."""
    share: float = 0.03
    """The largest share of the samples that a sweep takes."""
    most_rows: int = 600
    """The most rows that are drawn."""
    fewest_rows: int = 20
    """With fewer, a sweep would add nothing to the pool."""

    def rows(self, samples: int) -> int:
        """Return how many rows a sweep in an audit of so many samples draws; each gives about two pairs."""
        most = int(self.share * samples) // (4 * self.outputs)
        return min(self.most_rows, most) if most >= self.fewest_rows else 0


SWEEP = SweepSizes()


def sweep(pairs: Iterable[Pair], draw: Draw) -> tuple[list[Pair], int]:
    """Return the pairs whose outputs differ most, the most different first, and how many outputs were drawn."""
    drawn = 0

    def ranked(candidates: Iterable[Pair], outputs: int, first: int) -> list[Pair]:
        nonlocal drawn
        scores = []
        for number, pair in enumerate(candidates):
            sides: list[Encoded | None] = []
            for side, data in enumerate(pair):
                drawn += outputs
                try:
                    sides.append(draw(data, outputs, first + 2 * number + side))
                except BatchRaised:
                    sides.append(None)
            scores.append((_difference(sides), pair))
        return [pair for score, pair in sorted(scores, key=lambda scored: -scored[0]) if score > 0.0]

    finalists = ranked(pairs, SWEEP.outputs, 0)[: SWEEP.finalists]
    return ranked(finalists, SWEEP.more_outputs, 1_000_000)[: SWEEP.proposed], drawn


def _difference(sides: list[Encoded | None]) -> float:
    """Return how different the outputs of two data sets look, in standard errors; calls that raised differ from others."""
    one, other = sides
    if one is None or other is None:
        return 0.0 if one is other else math.inf
    score = max(_frequency(one.codes, other.codes), _frequency(record_keys(one), record_keys(other)))
    width = min(one.width, other.width, SWEEP.columns)
    if width:
        values = np.nan_to_num(np.concatenate([one.values[:, :width], other.values[:, :width]]), nan=0.0)
        score = max(score, _ranks(values, len(one)))
        score = max(score, _ranks(np.abs(values - np.median(values, axis=0)), len(one)))
    return score


def _frequency(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> float:
    """Compare how often each value occurs: the largest difference."""
    values, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = [np.bincount(part, minlength=values.size) for part in (place[: one.size], place[one.size :])]
    total = counts[0] + counts[1]
    often = total > 2  # a value that occurred once or twice says nothing
    return float((np.abs(counts[0] - counts[1])[often] / np.sqrt(total[often])).max(initial=0.0))


def _ranks(values: NDArray[np.float64], first: int) -> float:
    """Compare two samples, stacked, by the sum of the ranks of the first, column by column."""
    size = values.shape[0]
    ranks = np.argsort(np.argsort(values, axis=0, kind="stable"), axis=0)
    expected = first * (size - 1) / 2.0
    deviation = math.sqrt(first * (size - first) * (size + 1) / 12.0)
    varied = (values != values[0]).any(axis=0)
    return float((np.abs(ranks[:first].sum(axis=0) - expected)[varied] / deviation).max(initial=0.0))
