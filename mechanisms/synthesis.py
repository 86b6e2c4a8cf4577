r"""Synthetic data by noisy marginals, with the exact law of the rows on small domains.

Every column has public categories. Its counts get two-sided geometric noise of parameter ``epsilon / columns`` and are clamped to
0..``largest``; synthetic rows are drawn, every column by itself, with probabilities ``(count + 1) / (total + categories)`` of the
noisy counts. The number of synthetic rows is public.

Adding or removing one row moves one count of every column by one, so the noisy counts of a column are (epsilon /
columns)-DP, all columns together epsilon-DP, and the rows are post-processing. The noisy counts of a column are independent
with known probabilities on a finite grid, and given them the rows are independent draws, so a sequence x of a column has

    P(x) = sum over counts c of  P(c | data) prod_i (c_{x_i} + 1) / (|c| + k),

a finite sum: the exact law of all rows is the product over the columns. Their epsilon is below the claim, since rows show
their counts only roughly; released with the counts they reach it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import check_count, check_positive, shorten
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import Floats, category_indices, check_draw

MOST_OUTCOMES = 1 << 16
"""Largest number of different releases of which a law is made."""
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MarginalSynthesis:
    """Draw ``rows`` synthetic rows from noisy one-way marginals.

    The data are rows, tuples with one category per column. A release is a vector of category numbers: those of the first
    column in all rows, then those of the second column, and so on; :meth:`table` turns it into rows.

    >>> colours = MarginalSynthesis(1.0, (("red", "blue"), ("s", "m", "l")), rows=2)
    >>> colours.claim
    PureDP(epsilon=1.0, relation='add-remove')
    >>> colours.table([0, 1, 2, 2])
    [('red', 'l'), ('blue', 'l')]
    """

    epsilon: float
    columns: tuple[tuple[Hashable, ...], ...]
    rows: int = 2
    largest: int = 4

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_count(rows=self.rows, largest=self.largest)
        if not self.columns or any(not column or len(set(column)) < len(column) for column in self.columns):
            raise InvalidArgument(
                f"columns={self.columns!r} must be at least one column, each with its categories, all different."
            )

    @property
    def relation(self) -> Relation:
        """One row more or less."""
        return Relation.ADD_REMOVE

    @property
    def claim(self) -> PureDP:
        """epsilon-DP, of the noisy counts and hence of the rows."""
        return PureDP(self.epsilon, self.relation)

    @property
    def ratio(self) -> float:
        """Ratio of the probabilities of neighbouring noise values, ``exp(-epsilon / columns)``."""
        return math.exp(-self.epsilon / len(self.columns))

    def counts(self, data: Any) -> list[Whole]:
        """Count the categories of every column."""
        table = self._table(data)
        return [
            np.bincount(category_indices([row[place] for row in table], column), minlength=len(column)).astype(np.int64)
            for place, column in enumerate(self.columns)
        ]

    def noisy_counts(self, counts: Whole, size: int, rng: np.random.Generator) -> Whole:
        """Return ``size`` noisy copies of the counts of a column, clamped."""
        shape = (size, len(counts))
        noise = rng.geometric(1.0 - self.ratio, shape) - rng.geometric(1.0 - self.ratio, shape)
        return np.clip(counts + noise, 0, self.largest)

    def drawn_rows(self, noisy: Whole, rng: np.random.Generator) -> Whole:
        """Return ``rows`` categories for every row of noisy counts."""
        edges = np.cumsum(noisy + 1, axis=1)
        uniform = rng.random((len(noisy), self.rows, 1)) * edges[:, None, -1:]
        return np.asarray((uniform >= edges[:, None, :]).sum(axis=2), dtype=np.int64)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Whole:
        """Return ``size`` synthetic tables, shape ``(size, columns * rows)``."""
        check_draw(size, rng)
        drawn = [self.drawn_rows(self.noisy_counts(counts, size, rng), rng) for counts in self.counts(data)]
        return np.hstack(drawn)

    def table(self, release: Sequence[int]) -> list[tuple[Hashable, ...]]:
        """Return a release as synthetic rows."""
        numbers = np.reshape(release, (len(self.columns), self.rows))
        return [
            tuple(column[number] for column, number in zip(self.columns, row, strict=True))
            for row in numbers.T.tolist()
        ]

    def law(self, data: Any) -> exact.Law:
        """Return the exact law of the rows."""
        if math.prod(len(column) ** self.rows for column in self.columns) > MOST_OUTCOMES:
            raise InvalidArgument(
                f"data of {len(self.columns)} columns and {self.rows} rows have more than {MOST_OUTCOMES} releases; no law "
                "object is made of so many."
            )
        laws = [self._column_law(tuple(counts.tolist())) for counts in self.counts(data)]
        outcomes, logs = [], []
        for chosen in itertools.product(*(law.items() for law in laws)):
            outcomes.append(tuple(itertools.chain.from_iterable(sequence for sequence, _ in chosen)))
            logs.append(math.fsum(math.log(probability) for _, probability in chosen))
        return exact.Discrete.from_log(outcomes, logs)

    def _column_law(self, counts: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        """Probability of every sequence of categories of one column: the sum of the module."""
        masses = [self.clamped_masses(count) for count in counts]
        sequences = list(itertools.product(range(len(counts)), repeat=self.rows))
        law = dict.fromkeys(sequences, 0.0)
        for noisy in itertools.product(range(self.largest + 1), repeat=len(counts)):
            mass = math.prod(mass[value] for mass, value in zip(masses, noisy, strict=True))
            total = sum(noisy) + len(counts)
            shares = [(value + 1) / total for value in noisy]
            for sequence in sequences:
                law[sequence] += mass * math.prod(shares[number] for number in sequence)
        return law

    def clamped_masses(self, count: int) -> Floats:
        """Probabilities of the values 0..largest of one noisy and clamped count."""
        a = self.ratio
        values = np.arange(self.largest + 1)
        masses = (1.0 - a) / (1.0 + a) * a ** np.abs(values - count, dtype=np.float64)
        masses[0] = _tail(a, count)  # noise of at most -count
        masses[-1] = _tail(a, self.largest - count)  # noise of at least largest - count
        return masses

    def _table(self, data: Any) -> list[Any]:
        try:
            rows = [tuple(row) for row in data]
        except TypeError:
            raise InvalidArgument(f"data={shorten(data)} must be rows, each with one category per column.") from None
        for row in rows:
            if len(row) != len(self.columns):
                raise InvalidArgument(f"data holds {shorten(row)}; a row has {len(self.columns)} categories.")
        return rows


def _tail(ratio: float, start: int) -> float:
    """Probability that two-sided geometric noise is at least ``start`` (or, as it is symmetric, at most ``-start``)."""
    if start <= 0:
        return 1.0 - ratio ** (1 - start) / (1.0 + ratio)
    return ratio**start / (1.0 + ratio)
