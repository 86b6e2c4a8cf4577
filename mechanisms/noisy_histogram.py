r"""A histogram with Laplace noise on every count (catalogue row 3; Dwork et al. 2006).

Adding or removing one row moves one count by 1, substituting one moves two: the l1 sensitivity is 1 or 2, and noise
made for the one is worth only half under the other (docs/theory.md R1).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import check_choice, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import Floats, category_indices, check_draw
from .laplace import add_laplace, laplace_law


@dataclass(frozen=True, slots=True)
class NoisyHistogram:
    """Counts of every category plus Laplace noise; outputs have the shape ``(size, number of categories)``.

    The data are rows, each of one of the categories; the categories are public, and a row of none of them is refused.

    >>> import numpy as np
    >>> histogram = NoisyHistogram(1.0, ("a", "b", "c"))
    >>> histogram.counts(["a", "c", "a"])
    array([2., 0., 1.])
    >>> NoisyHistogram(1.0, ("a", "b"), relation=Relation.SUBSTITUTE).scale
    2.0
    """

    epsilon: float
    categories: tuple[Hashable, ...]
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_choice((Relation.ADD_REMOVE, Relation.SUBSTITUTE), relation=self.relation)
        if not self.categories or len(set(self.categories)) < len(self.categories):
            raise InvalidArgument(f"categories={self.categories!r} must be at least one, all different.")

    @property
    def sensitivity(self) -> float:
        """l1 sensitivity of the counts: 1 under addition and removal, 2 under substitution."""
        return 1.0 if self.relation is Relation.ADD_REMOVE else 2.0

    @property
    def scale(self) -> float:
        """Scale of the noise on every count."""
        return self.sensitivity / self.epsilon

    @property
    def claim(self) -> PureDP:
        """epsilon-DP, exactly reached."""
        return PureDP(self.epsilon, self.relation)

    def counts(self, data: Any) -> Floats:
        """Count every category."""
        counts = np.bincount(category_indices(data, self.categories), minlength=len(self.categories))
        return counts.astype(np.float64)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy histograms."""
        check_draw(size, rng)
        return add_laplace(self.counts(data), self.scale, size, rng)

    def law(self, data: Any) -> exact.Law:
        """Product of one Laplace law per count."""
        return laplace_law(self.counts(data), self.scale)
