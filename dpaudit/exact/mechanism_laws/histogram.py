"""HistogramMethod on fixed data: its searches, and the exact joint law of its output.

The method (report, section 2.2.1; slides) finds private quantiles of n numbers in [low, high]: for each quantile q one
AboveThreshold call with an equal share of epsilon asks for the first grid point t_1 < ... < t_steps = high below which
more than q n numbers lie. On fixed data the calls are independent, so the joint law is a product of AboveThreshold laws,
and counting needs one sort: O(n log n + steps) instead of O(n steps) (docs/theory.md R6).

The printed pseudo-code has five bugs; ``PrintedBugs`` switches each of them on. None of them costs privacy under
substitution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import check_choice, check_count, check_interval, check_positive, finite_array, shorten
from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument
from dpaudit.exact.form import Array
from dpaudit.exact.laws.discrete import Discrete
from dpaudit.exact.laws.product import Product
from dpaudit.exact.mechanism_laws.above_threshold import above_threshold_log_pmf, worst_case_epsilon

Edge = Literal["left", "middle", "right"]

DECILE_LEVELS = tuple(Fraction(d, 10) for d in range(1, 10))
_PLACE = {"left": 0.0, "middle": 0.5, "right": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedBugs:
    """The bugs of the printed pseudo-code that are kept (docs/theory.md R6); none by default.

    Attributes
    ----------
    missing_offset : bool
        Grid points and outputs are measured from 0, not from ``low``.
    queries_never_cleared : bool
        The d-th quantile searches d copies of the grid; an index past the first copy is returned as a value above ``high``.
    left_edge : bool
        The index counts from 0 but the queries from 1: the bin whose right edge was tested is returned as its left edge.
    none_below_range : bool
        "No query above" is the index -1, returned as a value one bin below the grid instead of ``high``.
    fractional_steps : bool
        ``steps = 1.5 n / log n`` is used unrounded: the last grid point stays below ``high``.
    """

    missing_offset: bool = False
    queries_never_cleared: bool = False
    left_edge: bool = False
    none_below_range: bool = False
    fractional_steps: bool = False


AS_PRINTED = PrintedBugs(missing_offset=True, queries_never_cleared=True, left_edge=True, none_below_range=True)
"""The report, where ``steps`` is an argument. The slides compute it, and add ``fractional_steps``."""


def default_steps(records: int) -> int:
    """Number of grid points of the slides, ``1.5 n / log n``, rounded up so that a bin is at most 2 log(n) / (3 n) wide.

    >>> default_steps(1000)
    218
    """
    return math.ceil(_slide_steps(records))


def _slide_steps(records: int) -> float:
    check_count(records=records)
    if records < 2:
        raise InvalidArgument(f"records={records} is too few: 1.5 n / log n needs at least 2. Pass steps instead.")
    return 1.5 * records / math.log(records)


def rank(quantile: Fraction, records: int) -> int:
    """Rank r = ceil(q n) of the empirical quantile X_(r), in integers; a float product can be off by one.

    >>> rank(Fraction(3, 10), 10), math.ceil(0.1 * 3 * 10)
    (3, 4)
    """
    check_count(records=records)
    return math.ceil(quantile * records)


def as_quantile(value: Any) -> Fraction:
    """Return a probability as the fraction it is written as: 0.3 is 3/10, not the nearest binary number.

    >>> as_quantile(0.3)
    Fraction(3, 10)
    """
    try:
        fraction = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"quantile={value!r} must be a number.") from None
    if not 0 < fraction < 1:
        raise InvalidArgument(f"quantile={value!r} must lie strictly between 0 and 1.")
    return fraction


@dataclass(frozen=True, slots=True, eq=False)
class QuantileSearch:
    """One AboveThreshold call: its queries, and the value released for each index it returns."""

    quantile: Fraction
    answers: Array
    threshold: float
    values: Array
    none_value: float

    def released(self, index: ArrayLike) -> Array:
        """Values released for indices from AboveThreshold; -1 is ``none_value``."""
        j = np.asarray(index, dtype=np.intp)
        return np.where(j < 0, self.none_value, self.values[j])


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramDesign:
    """The public parameters of HistogramMethod: everything but the data.

    Parameters
    ----------
    epsilon : float
        Budget of all quantiles together; each AboveThreshold call gets ``epsilon / len(quantiles)``.
    low, high : float
        The range that is cut into bins. Data outside the range are counted too.
    steps : int, optional
        Number of bins. The default is that of the slides for n records, which is private only if n is public.
    quantiles : tuple
        Probabilities, in the order of the calls; the deciles by default.
    edge : {"left", "middle", "right"}
        The point of the found bin that is returned; the corrected accuracy theorem is stated for "left" (docs/theory.md R10).
    monotone_noise : bool
        Query noise 2/epsilon0 instead of 4/epsilon0. Private here, because one substitution moves all counts in the
        same direction (docs/theory.md R5); AboveThreshold on other queries would reach 1.5 epsilon0.
    bugs : PrintedBugs
        Bugs of the printed pseudo-code to keep.

    Examples
    --------
    >>> design = HistogramDesign(epsilon=9.0, low=0.0, high=1.0, steps=5, edge="left")
    >>> median = design.law(np.arange(0.05, 1.0, 0.1)).laws[4]
    >>> [(value, round(float(np.exp(p)), 6)) for value, p in zip(median.outcomes, median.log_probabilities)]
    [(0.0, 0.277723), (0.2, 0.268541), (0.4, 0.221152), (0.6, 0.134262), (0.8, 0.061513), (1.0, 0.036809)]
    """

    epsilon: float
    low: float
    high: float
    steps: float | None = None
    quantiles: tuple[Fraction, ...] = DECILE_LEVELS
    edge: Edge = "right"
    monotone_noise: bool = False
    bugs: PrintedBugs = PrintedBugs()

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)
        check_choice(_PLACE, edge=self.edge)
        if self.steps is not None and not self.bugs.fractional_steps:
            check_count(steps=self.steps)
        elif self.steps is not None and not (self.steps >= 1.0 and math.isfinite(self.steps)):
            raise InvalidArgument(f"steps={self.steps!r} must be at least 1.")
        if not isinstance(self.quantiles, tuple) or not self.quantiles:
            raise InvalidArgument(f"quantiles={shorten(self.quantiles)} must be a tuple of at least one probability.")
        object.__setattr__(self, "quantiles", tuple(as_quantile(q) for q in self.quantiles))

    @property
    def epsilon_per_quantile(self) -> float:
        """Budget of one AboveThreshold call."""
        return self.epsilon / len(self.quantiles)

    @property
    def noise_scales(self) -> tuple[float, float]:
        """Scales of the threshold noise and of the query noise."""
        share = self.epsilon_per_quantile
        return 2.0 / share, (2.0 if self.monotone_noise else 4.0) / share

    def searches(self, data: ArrayLike) -> tuple[QuantileSearch, ...]:
        """The AboveThreshold calls on these data, one for each quantile."""
        records = np.sort(finite_array("data", data, ndim=1))
        steps: float = self.steps if self.steps is not None else _slide_steps(records.size)
        if not self.bugs.fractional_steps:
            steps = math.ceil(steps)
        bins = math.floor(steps)
        # The report's counts are strict, #{x < t}: a record equal to ``high`` is never counted.
        grid = self._points(np.arange(1, bins + 1, dtype=np.float64), steps)
        counts = np.searchsorted(records, grid, side="left").astype(np.float64)
        place = 0.0 if self.bugs.left_edge else _PLACE[self.edge]
        none_value = float(self._points(np.array(-1.0), steps)) if self.bugs.none_below_range else float(self.high)
        searches = []
        for number, quantile in enumerate(self.quantiles, start=1):
            copies = number if self.bugs.queries_never_cleared else 1
            values = self._points(np.arange(copies * bins, dtype=np.float64) + place, steps)
            threshold = float(quantile * records.size)
            searches.append(QuantileSearch(quantile, np.tile(counts, copies), threshold, values, none_value))
        return tuple(searches)

    def _points(self, index: Array, steps: float) -> Array:
        """Grid point of that number: 0 is the lower end, ``steps`` is ``high`` without rounding."""
        offset = 0.0 if self.bugs.missing_offset else self.low
        points: Array = offset + index * (self.high - self.low) / steps
        return points if self.bugs.missing_offset else np.where(index == steps, self.high, points)

    def law(self, data: ArrayLike) -> Product:
        """Exact joint law of the released values: independent coordinates, one for each quantile."""
        return Product([self._law(search) for search in self.searches(data)])

    def _law(self, search: QuantileSearch) -> Discrete:
        threshold_scale, query_scale = self.noise_scales
        log_pmf = above_threshold_log_pmf(
            search.answers,
            search.threshold,
            self.epsilon_per_quantile,
            threshold_scale=threshold_scale,
            query_scale=query_scale,
        )
        # Two indices may be read as the same value, such as the right edge of the last bin and "none".
        values, owner = np.unique(np.append(search.values, search.none_value), return_inverse=True)
        merged = np.full(values.size, -np.inf)
        np.logaddexp.at(merged, owner, log_pmf)
        return Discrete.from_log(values.tolist(), np.minimum(merged, 0.0))

    def epsilon_bound(self, relation: Relation) -> float:
        """The epsilon that the method keeps, which is less than the one it is given (docs/theory.md R5).

        Substitution: one record moves all counts of a call in the same direction, so each call costs the monotone
        worst case of AboveThreshold; 3/4 of epsilon from four bins on, all of it with ``monotone_noise``.

        Addition or removal with fixed ``steps``: ``count - q n`` moves by -q below the record and by 1 - q above it. A
        shift of z as in the proof for AboveThreshold gives, in one direction, max((1-q)/b1, min(q/b1, q/b2)) (where the
        list is never cleared and the record may be counted and then not: (1-q)/b1 + 1/b2), in the other q/b1 + 1/b2. The
        direction is common to all calls; for the deciles the sum is epsilon/2. Without fixed ``steps`` the grids
        of n and n+1 records differ, and no epsilon holds.

        >>> design = HistogramDesign(epsilon=1.0, low=0.0, high=1.0, steps=50)
        >>> design.epsilon_bound(Relation.SUBSTITUTE)
        0.75
        >>> round(design.epsilon_bound(Relation.ADD_REMOVE), 12)
        0.5
        """
        check_choice((Relation.SUBSTITUTE, Relation.ADD_REMOVE), relation=relation)
        b1, b2 = self.noise_scales
        if relation is Relation.ADD_REMOVE:
            if self.steps is None:
                return math.inf
            forward = backward = 0.0
            for number, quantile in enumerate(self.quantiles):
                q = float(quantile)
                again = self.bugs.queries_never_cleared and number > 0
                forward += (1.0 - q) / b1 + 1.0 / b2 if again else max((1.0 - q) / b1, min(q / b1, q / b2))
                backward += q / b1 + 1.0 / b2
            return max(forward, backward)
        bins = math.floor(self.steps) if self.steps is not None else 1_000_000
        copies = range(1, len(self.quantiles) + 1) if self.bugs.queries_never_cleared else [1] * len(self.quantiles)
        return math.fsum(
            worst_case_epsilon(
                bins * copy, self.epsilon_per_quantile, monotone=True, threshold_scale=b1, query_scale=b2
            )
            for copy in copies
        )
