"""Synthetic data whose noise does not cover all that is released."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit import exact
from dpaudit.claims import PureDP, Relation

from .._common import check_draw
from ..synthesis import MarginalSynthesis, Whole


@dataclass(frozen=True, slots=True)
class _Wrong:
    """The part that all broken ones share: the claim of the right synthesis."""

    right: MarginalSynthesis

    @property
    def claim(self) -> PureDP:
        """The claim made for it."""
        return self.right.claim

    @property
    def relation(self) -> Relation:
        """One row more or less."""
        return self.right.relation


@dataclass(frozen=True, slots=True)
class CategoriesFromData(_Wrong):
    """Categories are those that occur in the data (all of them where the data are empty), so a row shows that its own do.

    No epsilon holds: a category that one row alone has is impossible without it.
    """

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Whole:
        """Return ``size`` synthetic tables."""
        check_draw(size, rng)
        drawn = []
        for counts in self.right.counts(data):
            present = np.flatnonzero(counts) if counts.any() else np.arange(len(counts))
            drawn.append(present[self.right.drawn_rows(self.right.noisy_counts(counts[present], size, rng), rng)])
        return np.hstack(drawn)


@dataclass(frozen=True, slots=True)
class BoundsFromData(_Wrong):
    """The smallest and the largest value of every column are released beside the rows, as DataSynthesizer does.

    No epsilon holds: a row that is the only one with its value moves a bound with certainty.
    """

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Whole:
        """Return ``size`` synthetic tables, each after the bounds of all columns (-1 where there are no rows)."""
        check_draw(size, rng)
        bounds = []
        for counts in self.right.counts(data):
            present = np.flatnonzero(counts)
            bounds += [int(present[0]), int(present[-1])] if present.size else [-1, -1]
        return np.hstack([np.tile(np.array(bounds, dtype=np.int64), (size, 1)), self.right.sample(data, size, rng)])


@dataclass(frozen=True, slots=True)
class FixedSeed(_Wrong):
    """The noise comes from a generator with a default seed, so it is the same in every release and can be subtracted.

    No epsilon holds: the noisy counts are a function of the data. Here they are released beside the rows.
    """

    seed: int = 0

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Whole:
        """Return ``size`` synthetic tables, each after its noisy counts."""
        check_draw(size, rng)
        noise = np.random.default_rng(self.seed)
        noisy = [
            np.repeat(self.right.noisy_counts(counts, 1, noise), size, axis=0) for counts in self.right.counts(data)
        ]
        return np.hstack([*noisy, *(self.right.drawn_rows(counts, rng) for counts in noisy)])


@dataclass(frozen=True, slots=True)
class ScaleDividedByRows(_Wrong):
    """The noise is made for shares, which move by 1 / n, and is added to counts, which move by 1; n is public here.

    Counts have n times the epsilon. How much of it the rows show on a pair of data sets is a finite sum.
    """

    @property
    def wrong(self) -> MarginalSynthesis:
        """The mechanism that runs: a right synthesis of n times the epsilon."""
        return replace(self.right, epsilon=self.right.rows * self.right.epsilon)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Whole:
        """Return ``size`` synthetic tables."""
        return self.wrong.sample(data, size, rng)

    def law(self, data: Any) -> exact.Law:
        """The exact law of the rows."""
        return self.wrong.law(data)

    def bracket(self, data: Any, neighbour: Any) -> tuple[float, float]:
        """Epsilon on one pair, and that of the noisy counts: the truth lies between them."""
        return exact.epsilon(self.law(data), self.law(neighbour)), self.wrong.epsilon


@dataclass(frozen=True, slots=True)
class StructureWithoutBudget(_Wrong):
    """One column is modelled and released with its number, chosen as the one whose largest count is largest, without noise.

    No epsilon holds: one row can decide between two columns.
    """

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Whole:
        """Return ``size`` synthetic columns, each after the number of the column; it is filled up with its last category."""
        check_draw(size, rng)
        counts = self.right.counts(data)
        share = [column.max(initial=0) * len(column) for column in counts]  # relative to equal shares
        chosen = int(np.argmax(share))
        drawn = self.right.drawn_rows(self.right.noisy_counts(counts[chosen], size, rng), rng)
        return np.hstack([np.full((size, 1), chosen), drawn])
