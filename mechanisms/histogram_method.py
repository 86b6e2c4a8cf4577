r"""HistogramMethod (report, section 2.2; slides): private quantiles by AboveThreshold on the counts of a grid.

The range [low, high] is cut into ``steps`` bins. For every quantile, AboveThreshold with an equal share of epsilon
finds the first grid point below which more than that share of the rows lies. Counts have sensitivity 1, so each call
keeps its share and together they keep epsilon (report, theorem 2.2.1.1). They keep more (docs/theory.md R5): one substitution
moves all counts the same way, which AboveThreshold charges at three quarters; adding or removing a row moves count
minus threshold by 1 - q or by -q, which adds up to one half for the nine deciles.

The printed pseudo-code has five bugs (docs/theory.md R6), which :class:`dpaudit.exact.mechanism_laws.histogram.PrintedBugs`
switches on one by one. None of them breaks the privacy under substitution; the number of steps that the slides compute from
the data breaks it under addition and removal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import array_within, check_choice
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument
from dpaudit.exact.mechanism_laws.histogram import AS_PRINTED, DECILE_LEVELS, Edge, HistogramDesign, PrintedBugs

from ._common import Floats, check_draw
from .above_threshold import first_above

__all__ = ["AS_IN_SLIDES", "AS_PRINTED", "DECILE_LEVELS", "HistogramMethod", "PrintedBugs"]

NO_BUGS = PrintedBugs()
AS_IN_SLIDES = replace(AS_PRINTED, fractional_steps=True)
"""The slides compute ``steps = 1.5 n / log n`` and use it as it comes; the report takes it as an argument."""


@dataclass(frozen=True, slots=True)
class HistogramMethod:
    """Noisy quantiles of numbers in [low, high]: outputs of shape ``(size, number of quantiles)``.

    Parameters
    ----------
    epsilon : float
        What is claimed for all quantiles together.
    low, high : float
        Public bounds of the data; rows outside are refused.
    steps : int, optional
        Number of bins. Without it ``ceil(1.5 n / log n)``, which needs a public n: substitution only.
    quantiles : tuple
        Which quantiles, in (0, 1); the nine deciles if left out.
    edge : {"right", "middle", "left"}
        Which point of the bin found is the output. The corrected accuracy theorem allows each one bin width (R10).
    relation : Relation
        Substitution, or addition and removal with fixed ``steps``; then the data may be empty.
    monotone_noise : bool
        Query noise ``2/epsilon`` in place of ``4/epsilon``, enough for counts under substitution (docs/theory.md R5).
    bugs : PrintedBugs
        Which of the printed bugs to run with.

    >>> import numpy as np
    >>> deciles = HistogramMethod(9.0, 0.0, 1.0, steps=5)
    >>> deciles.sample([0.2, 0.4, 0.9], 2, np.random.default_rng(0)).shape
    (2, 9)
    >>> deciles.epsilon_bound
    6.75
    """

    epsilon: float
    low: float
    high: float
    steps: int | None = None
    quantiles: tuple[Fraction | float, ...] = DECILE_LEVELS
    edge: Edge = "right"
    relation: Relation = Relation.SUBSTITUTE
    monotone_noise: bool = False
    bugs: PrintedBugs = NO_BUGS

    def __post_init__(self) -> None:
        check_choice((Relation.SUBSTITUTE, Relation.ADD_REMOVE), relation=self.relation)
        _ = self.design
        if self.steps is None and self.relation is Relation.ADD_REMOVE and not self.bugs.fractional_steps:
            raise InvalidArgument(
                "steps=None takes the number of bins from the number of rows, which addition and removal change: their "
                "outputs lie on different grids. Fix steps, or claim for relation=Relation.SUBSTITUTE."
            )

    @property
    def design(self) -> HistogramDesign:
        """The public parameters, and the exact law that follows from them."""
        return HistogramDesign(
            epsilon=self.epsilon,
            low=self.low,
            high=self.high,
            steps=self.steps,
            quantiles=self.quantiles,  # type: ignore[arg-type]  # turned into fractions there
            edge=self.edge,
            monotone_noise=self.monotone_noise,
            bugs=self.bugs,
        )

    @property
    def claim(self) -> PureDP:
        """epsilon-DP."""
        return PureDP(self.epsilon, self.relation)

    @property
    def epsilon_bound(self) -> float:
        """The epsilon it keeps, proved, and approached as rows and steps grow; infinite for the slides' steps."""
        return self.design.epsilon_bound(self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` rows of noisy quantiles: one sort, then AboveThreshold anew for every quantile and release."""
        check_draw(size, rng)
        design = self.design
        searches = design.searches(self._rows(data))
        outputs = np.empty((size, len(searches)))
        for column, search in enumerate(searches):
            index = first_above(search.answers, search.threshold, *design.noise_scales, size, rng)
            outputs[:, column] = search.released(index)
        return outputs

    def law(self, data: Any) -> exact.Product:
        """Exact joint law for these data: the product of one AboveThreshold law a quantile, read as outputs."""
        return self.design.law(self._rows(data))

    def _rows(self, data: Any) -> Floats:
        # Where rows come and go, refusing an empty table would itself reveal that it is empty.
        return array_within("data", data, self.low, self.high, empty=self.relation is Relation.ADD_REMOVE)
