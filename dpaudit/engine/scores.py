"""Scores: functions of an output that are large where D is likelier, learned from past outputs.

Any function is valid as a score, because evidence only ever counts how often it falls in cells fixed beforehand. So the
fits below are quick rather than perfect: tables of per-coordinate log-likelihood ratios, and a ridge logistic regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.evidence import shrunk_log_ratio
from dpaudit.engine.outputs import EXACT_INTEGER, Encoded
from dpaudit.engine.partition import Line, Table, line_from

Floats: TypeAlias = NDArray[np.float64]

LOOKUP_BINS = 1024
MOST_COORDINATES = 256  # coordinates that a score looks at


class Score(Protocol):
    """A number per output."""

    def __call__(self, batch: Encoded) -> Floats:
        """Score every output of a batch."""

    def describe(self) -> str:
        """What the score is, for a person."""


@dataclass(frozen=True, slots=True)
class Column:
    """One coordinate, as it is."""

    index: int

    def __call__(self, batch: Encoded) -> Floats:
        """Return the coordinate; NaN where it is absent."""
        if self.index >= batch.values.shape[1]:
            return np.full(len(batch), np.nan)
        return np.asarray(batch.values[:, self.index])

    def describe(self) -> str:
        """Name the coordinate."""
        return f"output[{self.index}]"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A step function: ``table[k]`` on the k-th of equal bins from ``low`` on, its ends beyond them."""

    low: float
    inverse_width: float
    table: Floats
    at_nan: float

    def __call__(self, column: Floats) -> Floats:
        """Evaluate on a column, without a branch per value."""
        with np.errstate(over="ignore", invalid="ignore"):
            position = (column - self.low) * self.inverse_width
        if np.isnan(position).any():
            missing = np.isnan(position)
            values = self.table[np.clip(np.where(missing, 0.0, position), 0.0, self.table.size - 1.0).astype(np.int32)]
            return np.where(missing, self.at_nan, values)
        np.clip(position, 0.0, self.table.size - 1.0, out=position)
        return np.take(self.table, position.astype(np.int32))


def fit_lookup(of_d: Floats, of_neighbour: Floats) -> Lookup:
    """Per-coordinate log-likelihood ratio as a lookup table.

    Values on an integer grid get a bin each; other columns get quantile cells spread over equal bins.
    """
    pooled = np.concatenate([of_d, of_neighbour])
    finite = pooled[np.isfinite(pooled)]
    if not finite.size:
        return Lookup(0.0, 1.0, np.zeros(1), 0.0)
    low, high = float(finite.min()), float(finite.max())
    small = max(abs(low), abs(high)) < EXACT_INTEGER
    if small and high - low < LOOKUP_BINS and (finite == np.rint(finite)).all():
        line = Line(np.unique(np.concatenate([[-np.finfo(float).max], np.arange(low, high + 1.0) - 0.5, [np.inf]])))
        centres = np.arange(low, high + 1.0)
        width = 1.0
        start = low - 0.5
    else:
        line = line_from(pooled, resolution=16 if finite.size < 3000 else 32)
        start, stop = np.clip(np.quantile(finite, [0.002, 0.998]), -1e300, 1e300)
        width = max((stop - start) / LOOKUP_BINS, 1e-300)
        centres = start + width * (np.arange(LOOKUP_BINS) + 0.5)
    counts = np.stack([line.count(np.sort(of_d)), line.count(np.sort(of_neighbour))])
    ratio = shrunk_log_ratio(counts)
    table = ratio[np.searchsorted(line.cuts, centres, side="right")]
    return Lookup(float(start), 1.0 / width, np.ascontiguousarray(table), float(ratio[-1]))


@dataclass(frozen=True, slots=True)
class NaiveBayes:
    """Sum over the coordinates of their log-likelihood ratios, plus that of the structure."""

    columns: tuple[Lookup, ...]
    index: tuple[int, ...]  # which coordinates they belong to
    codes: Table
    code_ratio: Floats
    differences: bool = False

    def __call__(self, batch: Encoded) -> Floats:
        """Score every output, by elementwise operations alone: its score must not depend on the batch it comes in."""
        if self.codes.keys.size == 1 and batch.codes.strides == (0,) and batch.codes[0] == self.codes.keys[0]:
            total = np.zeros(len(batch))
        else:
            row = np.searchsorted(self.codes.keys, batch.codes)
            row = np.where(np.isin(batch.codes, self.codes.keys), row, self.codes.keys.size)
            total = self.code_ratio[row]
        values = _successive(batch.values) if self.differences else batch.values
        for lookup, place in zip(self.columns, self.index, strict=True):
            # A number that a narrow batch does not have is as absent as one that a wide batch marks absent.
            total = total + (lookup(values[:, place]) if place < values.shape[1] else lookup.at_nan)
        return total

    def describe(self) -> str:
        """Say what is summed."""
        of = "successive differences of the coordinates" if self.differences else "coordinates"
        return f"sum of log-likelihood ratios of the {len(self.columns)} {of}"


def fit_naive_bayes(of_d: Encoded, of_neighbour: Encoded, *, differences: bool = False) -> NaiveBayes:
    """Tables for every coordinate (or successive difference) and for the structure."""
    keys = np.unique(np.concatenate([of_d.codes, of_neighbour.codes]))[:1024]
    codes = Table(keys)
    counts = np.stack([codes.count(np.sort(of_d.codes)), codes.count(np.sort(of_neighbour.codes))])
    first = _successive(of_d.values) if differences else of_d.values
    second = _successive(of_neighbour.values) if differences else of_neighbour.values
    index = informative(first, second)
    columns = tuple(fit_lookup(first[:, place], second[:, place]) for place in index)
    return NaiveBayes(columns, index, codes, shrunk_log_ratio(counts), differences)


def informative(first: Floats, second: Floats) -> tuple[int, ...]:
    """All coordinates, or of very many those whose centre or spread differs most between the two sides."""
    width = first.shape[1]
    if width <= MOST_COORDINATES:
        return tuple(range(width))
    a, b = (np.nan_to_num(side, nan=0.0, posinf=1e100, neginf=-1e100) for side in (first, second))
    centre = np.median(np.concatenate([a, b]), axis=0)
    best = np.zeros(width)
    for one, other in ((a, b), (np.abs(a - centre), np.abs(b - centre))):
        error = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other))
        gap = np.abs(one.mean(axis=0) - other.mean(axis=0))
        best = np.maximum(best, np.divide(gap, error, out=np.where(gap > 0.0, np.inf, 0.0), where=error > 0.0))
    chosen = np.argsort(-best, kind="stable")[:MOST_COORDINATES]
    return tuple(sorted(chosen.tolist()))


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum of the coordinates."""

    weights: Floats
    index: tuple[int, ...]
    offset: float

    def __call__(self, batch: Encoded) -> Floats:
        """Score every output; absent numbers count as zero.

        Elementwise, not a matrix product: BLAS may round one row differently in another batch.
        """
        score = np.full(len(batch), -self.offset)
        for weight, place in zip(self.weights.tolist(), self.index, strict=True):
            if place < batch.values.shape[1]:
                score += np.clip(np.nan_to_num(batch.values[:, place]), -1e150, 1e150) * weight
        return score

    def describe(self) -> str:
        """Print the largest weights."""
        largest = np.sort(np.argsort(-np.abs(self.weights))[:6])
        terms = " ".join(f"{self.weights[i]:+.3g}*output[{self.index[i]}]" for i in largest)
        return terms + (" + ..." if self.weights.size > 6 else "")


def fit_linear(of_d: Encoded, of_neighbour: Encoded, *, steps: int = 8) -> Linear | None:
    """Ridge logistic regression by a few Newton steps; None where nothing can be fitted."""
    index = informative(of_d.values, of_neighbour.values)
    values = np.concatenate([of_d.values, of_neighbour.values])[:, index]
    target = np.concatenate([np.ones(len(of_d)), np.zeros(len(of_neighbour))])
    values = np.where(np.abs(values) < 1e150, values, np.nan)
    known = np.isfinite(values).any(axis=0)
    if not known.any():
        return None
    filled = np.where(known, values, 0.0)
    centre = np.nanmedian(filled, axis=0)
    spread = np.nanmean(np.abs(filled - centre), axis=0)
    spread = np.where(spread > 1e-150, spread, 1.0)
    scaled = np.clip(np.nan_to_num((values - centre) / spread), -5.0, 5.0)
    weights = np.zeros(scaled.shape[1])
    for _ in range(steps):
        predicted = 1.0 / (1.0 + np.exp(-np.clip(scaled @ weights, -30.0, 30.0)))
        slope = scaled.T @ (target - predicted) - weights
        curvature = (scaled * (predicted * (1.0 - predicted))[:, None]).T @ scaled + np.eye(scaled.shape[1])
        step = np.linalg.solve(curvature, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-6:
            break
    weights = weights / spread
    if not np.isfinite(weights).all() or not np.abs(weights).any():
        return None
    return Linear(weights, index, float(centre @ weights))


@dataclass(frozen=True, slots=True)
class Boosted:
    """Gradient-boosted trees (scikit-learn), for leaks that only show in interactions."""

    model: Any

    def __call__(self, batch: Encoded) -> Floats:
        """Log-odds of D."""
        width = self.model.n_features_in_
        values = batch.values[:, :width]
        if values.shape[1] < width:
            values = np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=np.nan)
        return np.asarray(self.model.decision_function(_without_infinities(values)), dtype=np.float64)

    def describe(self) -> str:
        """Name the model."""
        return "score of gradient-boosted trees"


def fit_boosted(of_d: Encoded, of_neighbour: Encoded, *, rows: int = 20_000) -> Boosted:
    """Fit at most ``rows`` outputs of each side, with a fixed seed."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    a, b = of_d.values[:rows], of_neighbour.values[:rows]
    model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.1, random_state=0, early_stopping=False)
    model.fit(_without_infinities(np.concatenate([a, b])), np.concatenate([np.ones(len(a)), np.zeros(len(b))]))
    return Boosted(model)


def _without_infinities(values: Floats) -> Floats:
    """Infinities as the largest floats, which scikit-learn accepts."""
    return np.clip(values, -np.finfo(np.float32).max, np.finfo(np.float32).max)


def _successive(values: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.diff(values, axis=1, prepend=0.0)
