"""Scores: functions of an output that are large where D is likelier, learned from past outputs.

Any function is valid as a score, because evidence only ever counts how often it falls in cells fixed beforehand. So the
fits below are quick rather than perfect: tables of per-coordinate log-likelihood ratios, and a ridge logistic regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.encoding.remainders import EXACT_INTEGER
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.evidence.e_process import shrunk_log_ratio
from dpaudit.engine.views.condition import Names, Plain, hexadecimal
from dpaudit.engine.views.partition import KeyTable
from dpaudit.engine.views.score_code import Step, linear_code, naive_bayes_code
from dpaudit.engine.views.small_integers import Group, Patterns

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

BINS = 1024  # equal bins of one coordinate
ATOMS = 8  # repeated values of one coordinate with a height of their own
ABSENT = BINS + ATOMS  # place of the height of an absent number
WIDTH = ABSENT + 1  # heights of one coordinate
ROWS_IN_CACHE = 32_768  # outputs scored at a time: larger pieces leave the cache, smaller ones need more calls
GROUPS = (2, 4, 8, 16, 32, 64, BINS)  # numbers of groups into which bins are joined; the best is chosen
CHARGE = 1.0  # log-likelihood that each free height must gain
MOST_COORDINATES = 256  # coordinates that a score looks at
COMPARED_AT_ONCE = 1 << 20  # numbers in a piece of the outputs that are compared coordinate by coordinate
SPARSE = 4  # if at most one number in so many is present, only those are read
GRID = 2.0**-30  # heights and ratios are multiples of it, so that their sums are exact in any order
LARGEST_BIN = 2.0**62  # larger bin numbers are not converted to integers
FIRST_PLACE = 2.0**52  # floats from here on are integers, and their lowest bits count them
PLACE_BITS = np.int64(2**54 + 2**11 - 1)  # the bits of a place; the highest is set in NaN only
LARGE = 1e150  # a weighted sum clips larger numbers
WHOLE = 255  # weighted sums of integers up to here are exact


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One coordinate, as it is."""

    index: int

    def __call__(self, batch: Encoded) -> Floats:
        """Return the coordinate; NaN where it is absent."""
        if self.index >= batch.width:
            return np.full(len(batch), np.nan)
        return np.asarray(batch.values[:, self.index])

    def describe(self) -> str:
        """Name the coordinate."""
        return f"output[{self.index}]"

    def plain(self) -> Plain | None:
        """Return the place of the coordinate."""
        return {"column": self.index}

    def python(self, names: Names) -> str:
        """Return an expression for the coordinate."""
        return names.number(self.index)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A function of one number: a height on each of equal bins from ``low`` on, ends beyond, at NaN, and at exact values."""

    low: float
    inverse_width: float
    atoms: tuple[float, ...]  # values that repeat exactly, each with a height of its own
    heights: Floats  # of the bins, of the atoms, of nothing where there are fewer than ``ATOMS``, and of NaN

    @property
    def at_nan(self) -> float:
        """Height of an absent number."""
        return float(self.heights[ABSENT])

    def position(self, column: Floats, out: Floats | None = None) -> Floats:
        """Return the bin of each value with its fraction, also beyond the ends."""
        position = np.subtract(column, self.low, out=out)
        position *= self.inverse_width
        return position

    def places(self, column: Floats, out: Floats | None = None) -> NDArray[np.int64]:
        """Return the place of each value's height, without a branch per value; for NaN a place from ``ABSENT`` on."""
        position = self.position(column, out)
        np.floor(position, out=position)
        position += FIRST_PLACE
        position.clip(FIRST_PLACE, FIRST_PLACE + BINS - 1.0, out=position)
        for number, atom in enumerate(self.atoms, start=BINS):
            np.copyto(position, FIRST_PLACE + number, where=column == atom)
        places = position.view(np.int64)
        places &= PLACE_BITS
        return places

    def steps(self) -> Step:
        """Return the table for :func:`score_code.naive_bayes_code`, with equal neighbours joined."""
        table = self.heights[:BINS]
        changes = np.flatnonzero(np.diff(table)) + 1
        heights = table[np.concatenate(([0], changes))]
        exact = dict(zip(self.atoms, self.heights[BINS:].tolist(), strict=False))
        return self.low, self.inverse_width, changes.tolist(), heights.tolist(), exact, self.at_nan


def fit_bins(pooled: Floats) -> Lookup:
    """Return equal bins and the repeated values, with zero heights. Integers of a small range get a bin each."""
    nothing = np.zeros(WIDTH)
    finite = np.sort(pooled[np.isfinite(pooled)])
    if not finite.size:
        return Lookup(0.0, 1.0, (), nothing)
    low, high = float(finite[0]), float(finite[-1])
    small = max(abs(low), abs(high)) < EXACT_INTEGER
    if small and high - low < BINS and (finite == np.rint(finite)).all():
        return Lookup(low - 0.5, 1.0, (), nothing)
    start, stop = finite[np.rint(np.array([0.002, 0.998]) * (finite.size - 1)).astype(np.intp)].clip(-1e300, 1e300)
    atoms, _ = SortedSample(finite).repeated(ATOMS)
    return Lookup(float(start), 1.0 / max(float(stop - start) / BINS, 1e-300), tuple(atoms.tolist()), nothing)


def fit_heights(counts: Counts) -> Floats:
    """Log-likelihood ratios from counts of shape (coordinates, 2, ``WIDTH``): of bins, and of what stands alone.

    Bins are joined into groups of equal mass, as many groups as the counts support: the number whose likelihood gains most
    after a charge of ``CHARGE`` for each free height. In finer tables noise would hide a small difference in many coordinates.
    """
    body, alone = counts[:, :, :BINS], counts[:, :, BINS:]
    coordinates = np.arange(len(counts))
    pooled = body.sum(axis=1)
    level = (np.cumsum(pooled, axis=1) - 0.5 * pooled) / np.maximum(pooled.sum(axis=1, keepdims=True), 1)
    best = np.full(len(counts), -np.inf)
    heights = np.zeros((len(counts), counts.shape[2]))
    for groups in GROUPS:
        group = np.minimum((level * groups).astype(np.intp), groups - 1)
        cell = (coordinates[:, None] * groups + group).ravel()
        size = len(counts) * groups
        sides = [np.bincount(cell, body[:, side].ravel(), size).reshape(-1, groups) for side in (0, 1)]
        joined = np.concatenate([np.stack(sides, axis=1), alone], axis=2)
        gain = _likelihood_gain(joined) - CHARGE * (groups - 1)
        ratio = np.stack([shrunk_log_ratio(each) for each in joined])
        better = gain > best
        best[better] = gain[better]
        heights[better, :BINS] = np.take_along_axis(ratio, group, axis=1)[better]
        heights[better, BINS:] = ratio[better, groups:]
    return _on_grid(heights)


def _on_grid(heights: ArrayLike, grid: float = GRID) -> Floats:
    return np.asarray(np.rint(np.divide(heights, grid)) * grid, dtype=np.float64)


def _likelihood_gain(counts: Floats) -> Floats:
    """Log-likelihood of the sides given the groups, over that of one group for all; per coordinate."""
    whole = counts.sum(axis=1, keepdims=True)
    share = counts.sum(axis=2, keepdims=True) / np.maximum(whole.sum(axis=2, keepdims=True), 1.0)
    expected = np.maximum(whole * share, 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0.0, counts * np.log(counts / expected), 0.0)
    return np.asarray(terms.sum(axis=(1, 2)))


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, as keys of a cache
class NaiveBayes:
    """Sum over the coordinates of their log-likelihood ratios, plus that of the structure."""

    columns: tuple[Lookup, ...]
    index: tuple[int, ...]  # which coordinates they belong to
    codes: KeyTable
    code_ratio: Floats
    differences: bool = False

    def __call__(self, batch: Encoded) -> Floats:
        """Score every output by exact sums alone: its score must not depend on the batch it comes in."""
        return self._scored(batch, None, None)

    def study(self, batch: Encoded, counts: Counts | None = None) -> tuple[Floats, Counts]:
        """Scores, and the counts from which a later score can be fitted (see :meth:`refitted`).

        With ``counts`` every output of the batch stands for so many.
        """
        bins = np.zeros((len(self.columns), WIDTH), np.int64)
        scores = self._scored(batch, bins, counts)
        codes = batch.structures if counts is None else SortedSample.counted(batch.codes, counts)
        return scores, np.concatenate([bins.ravel(), self.codes.count(codes)])

    def part(self, columns: range, shift: int) -> NaiveBayes:
        """Return the score of some coordinates, for outputs that begin with coordinate ``shift``."""
        chosen = [number for number, place in enumerate(self.index) if place in columns]
        return replace(
            self,
            columns=tuple(self.columns[number] for number in chosen),
            index=tuple(self.index[number] - shift for number in chosen),
            code_ratio=np.zeros_like(self.code_ratio),
        )

    @property
    def exact(self) -> bool:
        """True: sums have no rounding errors, because heights are on a grid."""
        return True

    def without_coordinates(self, batch: Encoded) -> Floats:
        """Return what the structure adds to the score."""
        if self.codes.keys.size == 1 and batch.is_all(self.codes.keys[0]):
            return np.full(len(batch), self.code_ratio[0])
        row = np.searchsorted(self.codes.keys, batch.codes)
        return self.code_ratio[np.where(np.isin(batch.codes, self.codes.keys), row, self.codes.keys.size)]

    def _scored(self, batch: Encoded, bins: Counts | None, counts: Counts | None) -> Floats:
        total, values = self.without_coordinates(batch), batch.values
        plain = [not lookup.atoms for lookup in self.columns]
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(batch), ROWS_IN_CACHE):  # in pieces that stay in the cache
                rows = slice(start, start + ROWS_IN_CACHE)
                self._add(values[rows], total[rows], plain, bins, None if counts is None else counts[rows])
        return total

    def _add(
        self, values: Floats, total: Floats, plain: list[bool], bins: Counts | None, counts: Counts | None
    ) -> None:
        """Add the heights to the totals. If most numbers are absent, only the others are read.

        ``plain`` marks the columns that held only numbers of moderate size so far.
        """
        difference, position, heights = np.empty((3, len(total)))
        bin_of = np.empty(len(total), np.intp)
        outputs = len(total) if counts is None else int(counts.sum())
        everywhere = 0.0
        for number, (lookup, place) in enumerate(zip(self.columns, self.index, strict=True)):
            column = self._column(values, place, difference)
            if plain[number]:
                plain[number] = bool(lookup.position(column, position).max() < LARGEST_BIN)  # NaN compares false
            if plain[number]:
                np.copyto(bin_of, position, casting="unsafe")
                total += lookup.heights[:BINS].take(
                    bin_of, out=heights, mode="clip"
                )  # values beyond the ends belong to the outermost bins
                if bins is not None:
                    bin_of.clip(0, BINS - 1, out=bin_of)
                    bins[number, :BINS] += np.bincount(bin_of, counts, BINS).astype(np.int64)
                continue
            present = column == column
            chosen: slice | NDArray[np.intp] = slice(None)
            if SPARSE * int(np.count_nonzero(present)) > len(total):
                places = lookup.places(column, position)
                total += lookup.heights.take(places, out=heights, mode="clip")  # other modes are slower
            else:
                chosen = present.nonzero()[0]
                places = lookup.places(column[chosen])
                total[chosen] += lookup.heights.take(places) - lookup.at_nan
                everywhere += lookup.at_nan
            if bins is not None:
                np.minimum(places, ABSENT, out=places)
                found = np.bincount(places, None if counts is None else counts[chosen], WIDTH).astype(np.int64)
                found[ABSENT] += outputs - found.sum()
                bins[number] += found
        total += everywhere

    def _column(self, values: Floats, place: int, out: Floats) -> Floats:
        if place >= values.shape[1]:  # absent, as in a wider batch
            return np.full(len(values), np.nan)
        if not self.differences or place == 0:
            return values[:, place]
        return np.subtract(values[:, place], values[:, place - 1], out=out)

    def refitted(self, statistics: Counts) -> NaiveBayes:
        """The same bins with heights from counts of both sides, shape (2, all that :meth:`study` counts)."""
        width = len(self.columns) * WIDTH
        heights = fit_heights(statistics[:, :width].reshape(2, -1, WIDTH).transpose(1, 0, 2))
        columns = tuple(replace(lookup, heights=h) for lookup, h in zip(self.columns, heights, strict=True))
        return replace(self, columns=columns, code_ratio=_on_grid(shrunk_log_ratio(statistics[:, width:])))

    def describe(self) -> str:
        """Say what is summed."""
        of = "successive differences of the coordinates" if self.differences else "coordinates"
        return f"sum of log-likelihood ratios of the {len(self.columns)} {of}"

    def plain(self) -> Plain | None:
        """Tables are too large for a plain form."""
        return None

    def python(self, names: Names) -> str:
        """Define a function that looks up the same heights."""
        names.define(self.source("numbers(output)", "code(output)"))
        return "score(output)"

    def source(self, values: str, structure: str) -> str:
        """Return a function that looks up the same heights, with expressions for the numbers and the structure code."""
        *ratios, other = self.code_ratio.tolist()
        structures = dict(zip(map(hexadecimal, self.codes.keys), ratios, strict=True))
        tables = {place: lookup.steps() for place, lookup in zip(self.index, self.columns, strict=True)}
        return naive_bayes_code(
            tables, structures, other, bins=BINS, differences=self.differences, values=values, structure=structure
        )


def fit_naive_bayes(of_d: Encoded, of_neighbour: Encoded, *, differences: bool = False) -> tuple[NaiveBayes, Counts]:
    """Fit tables for every coordinate (or successive difference) and for the structure; also return their counts."""
    codes = KeyTable(np.unique(np.concatenate([of_d.codes, of_neighbour.codes]))[:1024])
    first = _successive(of_d.values) if differences else of_d.values
    second = _successive(of_neighbour.values) if differences else of_neighbour.values
    index = informative(first, second)
    columns = tuple(fit_bins(np.concatenate([first[:, i], second[:, i]])) for i in index)
    empty = NaiveBayes(columns, index, codes, np.zeros(codes.cells), differences)
    statistics = np.stack([empty.study(of_d)[1], empty.study(of_neighbour)[1]])
    return empty.refitted(statistics), statistics


def separation(score: NaiveBayes, statistics: Counts) -> Floats:
    """Return how far each coordinate alone moves the mean score from one side to the other, on the counts of its fit."""
    width = len(score.columns) * WIDTH
    counts = statistics[:, :width].reshape(2, -1, WIDTH)
    shares = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
    heights = np.array([lookup.heights for lookup in score.columns]).reshape(-1, WIDTH)
    return np.asarray(((shares[0] - shares[1]) * heights).sum(axis=1))


def informative(first: Floats, second: Floats) -> tuple[int, ...]:
    """Return all coordinates, or of very many those whose centre or spread differs most between the sides."""
    width = first.shape[1]
    if width <= MOST_COORDINATES:
        return tuple(range(width))
    step = max(1, COMPARED_AT_ONCE // (len(first) + len(second)))
    starts = range(0, width, step)
    best = np.concatenate([_differences(first[:, i : i + step], second[:, i : i + step]) for i in starts])
    chosen = np.argsort(-best, kind="stable")[:MOST_COORDINATES]
    return tuple(sorted(chosen.tolist()))


def _differences(first: Floats, second: Floats) -> Floats:
    """Return by how many standard errors the centre or the spread of each coordinate differs between the sides."""
    a, b = (np.nan_to_num(side, nan=0.0, posinf=1e100, neginf=-1e100) for side in (first, second))
    centre = np.median(np.concatenate([a, b]), axis=0)
    best = np.zeros(first.shape[1])
    for one, other in ((a, b), (np.abs(a - centre), np.abs(b - centre))):
        error = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other))
        gap = np.abs(one.mean(axis=0) - other.mean(axis=0))
        best = np.maximum(best, np.divide(gap, error, out=np.where(gap > 0.0, np.inf, 0.0), where=error > 0.0))
    return best


@dataclass(frozen=True, slots=True, eq=False)
class LinearScore:
    """A weighted sum of the coordinates."""

    weights: Floats
    index: tuple[int, ...]
    offset: float
    exact: bool = False  # weights are on a grid, so that sums over small integers have no rounding errors

    def __call__(self, batch: Encoded) -> Floats:
        """Score every output; absent numbers count as zero.

        Elementwise, not a matrix product: BLAS may round one row differently in another batch.
        """
        score, values = self.without_coordinates(batch), batch.values
        for start in range(0, len(batch), ROWS_IN_CACHE):  # in pieces that stay in the cache
            rows = slice(start, start + ROWS_IN_CACHE)
            with np.errstate(over="ignore", invalid="ignore"):
                self._add(values[rows], score[rows])
        return score

    def part(self, columns: range, shift: int) -> LinearScore:
        """Return the score of some coordinates, for outputs that begin with coordinate ``shift``."""
        chosen = [number for number, place in enumerate(self.index) if place in columns]
        return replace(
            self, weights=self.weights[chosen], index=tuple(self.index[number] - shift for number in chosen), offset=0.0
        )

    def without_coordinates(self, batch: Encoded) -> Floats:
        """Return the constant part of the score."""
        return np.full(len(batch), -self.offset)

    def _add(self, values: Floats, score: Floats) -> None:
        product = np.empty(len(score))
        for weight, place in zip(self.weights.tolist(), self.index, strict=True):
            if place >= values.shape[1]:
                continue
            column = values[:, place]
            if column.min() >= -LARGE and column.max() <= LARGE:  # NaN compares false
                score += np.multiply(column, weight, out=product)
            else:
                chosen = (column == column).nonzero()[0]
                score[chosen] += column[chosen].clip(-LARGE, LARGE) * weight

    def describe(self) -> str:
        """Print the largest weights."""
        largest = np.sort(np.argsort(-np.abs(self.weights))[:6])
        terms = " ".join(f"{self.weights[i]:+.3g}*output[{self.index[i]}]" for i in largest)
        return terms + (" + ..." if self.weights.size > 6 else "")

    def plain(self) -> Plain | None:
        """Return weights and offset."""
        weights = [[place, weight] for place, weight in zip(self.index, self.weights.tolist(), strict=True)]
        return {"linear": weights, "offset": self.offset}

    def python(self, names: Names) -> str:
        """Define a function that adds in the same order, so that sums agree to the last bit."""
        names.define(linear_code(dict(zip(self.index, self.weights.tolist(), strict=True)), self.offset))
        return "score(output)"


def fit_linear(of_d: Encoded, of_neighbour: Encoded, *, steps: int = 8) -> LinearScore | None:
    """Ridge logistic regression by a few Newton steps; None where nothing can be fitted."""
    index = informative(of_d.values, of_neighbour.values)
    values = np.concatenate([of_d.values[:, index], of_neighbour.values[:, index]])
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
    width = scaled.shape[1]
    weights = np.zeros(width)
    pieces, targets = _in_pieces(scaled), _in_pieces(target[:, None], pieces_of=width)
    for _ in range(steps):
        predicted = 1.0 / (1.0 + np.exp(-np.clip(pieces @ weights[:, None], -30.0, 30.0)))
        slope = (pieces.transpose(0, 2, 1) @ (targets - predicted)).sum(axis=0)[:, 0] - weights
        curvature = ((pieces * (predicted * (1.0 - predicted))).transpose(0, 2, 1) @ pieces).sum(axis=0) + np.eye(width)
        step = np.linalg.solve(curvature, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-6:
            break
    weights = weights / spread
    if not np.isfinite(weights).all() or not np.abs(weights).any():
        return None
    exact = bool(np.abs(values).max() <= WHOLE and (values == np.rint(values)).all())
    offset = centre @ weights
    if exact:
        grid = GRID * 2.0 ** np.frexp(np.abs(weights).max())[1]
        weights, offset = _on_grid(weights, grid), _on_grid(offset, grid)
    return LinearScore(weights, index, float(offset), exact)


def _in_pieces(rows: Floats, pieces_of: int | None = None) -> Floats:
    """Return rows in pieces of equal size, the last padded with zeros, so small that products of them use one thread.

    On a machine whose cores are all busy, the threads of a large product may wait for each other for seconds.
    """
    width = pieces_of or rows.shape[1]
    size = max(1, min(8192 // width, 200_000 // width**2))
    count = -(-len(rows) // size)
    filled = np.zeros((count * size, rows.shape[1]))
    filled[: len(rows)] = rows
    return filled.reshape(count, size, rows.shape[1])


def sum_tables(score: NaiveBayes | LinearScore, batch: Encoded, groups: Sequence[Group]) -> Floats:
    """Return the score of every output as a sum over groups of coordinates, which is the same because sums are exact."""
    total = score.without_coordinates(batch)
    for group in groups:
        total += _table(score, group.columns, group.shift, group.patterns).take(group.number, mode="clip")
    return total


@lru_cache(maxsize=32)
def _table(score: NaiveBayes | LinearScore, columns: range, shift: int, patterns: Patterns) -> Floats:
    return score.part(columns, shift)(patterns.batch)


def study_tables(score: NaiveBayes, batch: Encoded, groups: Sequence[Group]) -> Counts:
    """Return the counts of :meth:`NaiveBayes.study`, computed from the patterns of each group."""
    counted: list[Counts] = []
    for group in groups:
        part, patterns = score.part(group.columns, group.shift), group.patterns.batch
        counts = np.bincount(group.number, minlength=len(patterns))
        counted.append(part.study(patterns, counts)[1][: len(part.columns) * WIDTH])
    absent = np.zeros((sum(place >= batch.width for place in score.index), WIDTH), np.int64)
    absent[:, ABSENT] = len(batch)
    return np.concatenate([*counted, absent.ravel(), score.codes.count(batch.structures)])


def _successive(values: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.diff(values, axis=1, prepend=0.0)
