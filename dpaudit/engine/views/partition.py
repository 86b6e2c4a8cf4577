"""Partition the real line, or a table of exact values, into cells that can be counted fast.

A cell is ``[cut, next cut)``; an exact value ``a`` is the cell ``[a, nextafter(a))``, so one sorted search per cut counts
everything. Minus infinity, plus infinity and NaN have cells of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.sorted_counts import SortedSample, most_frequent
from dpaudit.engine.views.condition import LOWEST, Interval

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

FIRST_BIN = 2.0**52  # floats from here to twice as much are the integers
BIN_WIDTHS = (2.0**-900, 2.0**900)  # beyond these widths sums overflow or lose their last bits


@dataclass(frozen=True, slots=True)
class RasterSizes:
    """Sizes of a raster."""

    bins: int = 4096
    """The number of bins, a power of two."""
    margin: float = 0.15
    """A raster reaches beyond the learned range by this share of it. Later blocks seldom reach further."""
    values_in_cache: int = 32_768
    """Values that are counted at a time, so that they stay in the processor's cache."""
    kept_cuts: float = 0.9
    """The smallest share of the cuts that must fall into bins of their own."""
    fewest_values: int = 30_000
    """With fewer values to learn from, sorting costs little, and no raster is made."""


RASTER = RasterSizes()


@dataclass(frozen=True, slots=True)
class CellSizes:
    """Sizes of the cells of a line."""

    most_atoms: int = 256
    """Repeated values that get a cell of their own."""
    fewest_per_cell: int = 8
    """Every cell is learned from at least so many outputs, as soon as there are enough for the fewest cells."""
    fewest: int = 4
    """The number of quantile bins that the first few outputs are cut into."""
    readable: int = 24
    """The number of cells of a line that is shown to the user."""
    readable_digits: int = 3
    """The cuts of such a line are rounded to so many digits of the spread."""


CELLS = CellSizes()


@dataclass(frozen=True, slots=True)
class Raster:
    """Equal bins whose edges hold all inner cuts of a line, so that a histogram, without a sort, counts its cells.

    For a power of two w, floats between 2**52 w and 2**53 w are the multiples of w, and their bits count them. So ``x + shift``
    with a shift of about 2**52 w is the number of a bin of width w, rounded by the sum itself. Each operation, also rounding and
    clipping to the bins 0 ... ``RasterSizes.bins``, is monotone in x, so "bin >= k" is the same as "x >= cut" for the
    smallest float in bin k, and that float is the cut.
    """

    width: float  # a power of two
    shift: float
    starts: NDArray[np.intp]  # the first bin of each cell: 0, and that of each inner cut

    def place(self, values: Floats) -> NDArray[np.int64]:
        """Return the bin of each finite value."""
        first = FIRST_BIN * self.width
        with np.errstate(over="ignore"):  # an overflow belongs to the last bin
            place = np.clip(values + self.shift, first, first + RASTER.bins * self.width)
        return place.view(np.int64) - np.float64(first).view(np.int64)

    def count(self, values: Floats) -> Counts | None:
        """Count the values below the first cut, between the cuts, and above the last; None if one is not finite."""
        histogram = np.zeros(RASTER.bins + 1, np.int64)
        buffer = np.empty(min(RASTER.values_in_cache, values.size))
        bits_of_first = np.float64(FIRST_BIN * self.width).view(np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            # In pieces that stay in the cache, beginning with the values drawn last, which are there already.
            for start in reversed(range(0, values.size, RASTER.values_in_cache)):
                part = values[start : start + RASTER.values_in_cache]
                bins = np.add(part, self.shift, out=buffer[: part.size]).view(np.int64)
                bins -= bits_of_first
                # Any value out of range, also NaN and infinities, sets a bit that no bin number has.
                if np.bitwise_or.reduce(bins) & ~(RASTER.bins - 1):
                    if not np.isfinite(part).all():
                        return None
                    bins = self.place(part)
                histogram += np.bincount(bins, minlength=RASTER.bins + 1)
        return np.add.reduceat(histogram, self.starts)

    @classmethod
    def under(cls, edges: Floats, low: float, high: float) -> tuple[Raster, Floats] | None:
        """Return a raster for these edges, and the edges moved to its bins; None if it would join too many of them."""
        with np.errstate(over="ignore", invalid="ignore"):
            margin = RASTER.margin * (np.float64(high) - low)
            low, high = float(low - margin), float(high + margin)
            least = (np.float64(high) - low) / RASTER.bins
        if not edges.size or not BIN_WIDTHS[0] <= least <= BIN_WIDTHS[1]:
            return None
        width = 2.0 ** math.ceil(math.log2(least))
        if not abs(low) < FIRST_BIN / 4.0 * width:  # such large floats are too far apart for these bins
            return None
        raster = cls(width, (FIRST_BIN - math.floor(low / width)) * width, np.empty(0, np.intp))
        bins = np.unique(raster.place(edges))
        bins = bins[(bins > 0) & (bins < RASTER.bins)]
        if bins.size < RASTER.kept_cuts * edges.size:
            return None
        # Sums are rounded to the nearest bin: half a bin below its centre is the first float in it, or the last before it.
        halfway: Floats = np.asarray((bins + (math.floor(low / width) - 0.5)) * width, dtype=np.float64)
        cuts = np.where(raster.place(halfway) >= bins, halfway, np.nextafter(halfway, np.inf))
        return cls(width, raster.shift, np.concatenate(([0], bins)).astype(np.intp)), cuts


@dataclass(frozen=True, slots=True)
class Line:
    """Cells of the real line: {-inf}, [LOWEST, cut), ..., {+inf}, {NaN}."""

    cuts: Floats
    raster: Raster | None = None

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.cuts.size) + 2

    @property
    def exact(self) -> NDArray[np.bool_]:
        """True for cells that hold a single value."""
        with np.errstate(over="ignore"):
            single = np.nextafter(self.cuts[:-1], np.inf) == self.cuts[1:]
        return np.concatenate([[True], single, [True, True]])

    def count(self, ascending: SortedSample) -> Counts:
        """Count a sorted sample."""
        below = np.zeros(self.cells + 1, np.int64)
        below[1:-2] = ascending.below(self.cuts)
        below[-2:] = ascending.size
        if np.isnan(ascending.values[-1:]).any():
            below[-2] = ascending.below(np.array([np.nan]))[0]
        return below[1:] - below[:-1]

    def tally(self, values: Floats) -> Counts:
        """Count values in any order."""
        inside = None if self.raster is None else self.raster.count(values)
        if inside is None:
            return self.count(SortedSample(np.sort(values)))
        counts = np.zeros(self.cells, np.int64)
        counts[1:-2] = inside
        return counts

    def intervals(self, cells: NDArray[np.bool_]) -> tuple[Interval, ...]:
        """Return the selected cells as intervals, neighbouring cells joined; the cell of NaN is left out."""
        lows, highs = [-math.inf, *self.cuts.tolist()], [*self.cuts.tolist(), None]
        edges = np.flatnonzero(np.diff(np.concatenate(([False], cells[:-1], [False]))))
        return tuple(Interval(lows[start], highs[stop - 1]) for start, stop in edges.reshape(-1, 2))


def line_from(pooled: Floats, *, resolution: int) -> Line:
    """Return cells learned from a pooled sample: repeated values, quantile bins, and tails that halve cell by cell."""
    return line_from_sorted(np.sort(pooled), resolution=resolution)


def line_from_sorted(ascending: Floats, *, resolution: int) -> Line:
    """Return the cells of :func:`line_from` for a sorted sample."""
    finite = ascending[np.searchsorted(ascending, -np.inf, side="right") : np.searchsorted(ascending, np.inf)]
    atoms, _ = SortedSample(finite).repeated(CELLS.most_atoms)
    rest = finite[~np.isin(finite, atoms)] if atoms.size else finite
    cells = min(resolution, max(rest.size // CELLS.fewest_per_cell, min(CELLS.fewest, rest.size // 2)))
    levels = np.arange(1, cells) / cells if cells > 1 else np.empty(0)
    if cells > 1:
        depth = int(np.log2(max(rest.size / cells / CELLS.fewest_per_cell, 1.0)))
        tails = 0.5 ** np.arange(1, depth + 1) / cells
        levels = np.concatenate([levels, tails, 1.0 - tails])
    edges = quantiles(rest, levels)
    if not atoms.size and rest.size >= RASTER.fewest_values:
        rastered = Raster.under(edges, float(rest[0]), float(rest[-1]))
        if rastered is not None:
            raster, edges = rastered
            return Line(np.concatenate([[LOWEST], edges, [np.inf]]), raster)
    with np.errstate(over="ignore"):  # beyond the largest float is infinity, which is a cut already
        cuts = np.concatenate([[LOWEST, np.inf], edges, atoms, np.nextafter(atoms, np.inf)])
    return Line(np.unique(cuts))


def readable_line(values: Sequence[NDArray[np.float64]]) -> Line:
    """Return a line with few cells, whose cuts are rounded to a few digits of the spread; exact values stay exact."""
    line = line_from(np.concatenate(values), resolution=CELLS.readable)
    inner = line.cuts[1:-1]
    exact = np.zeros(inner.size, dtype=bool)
    exact[:-1] |= np.nextafter(inner[:-1], np.inf) == inner[1:]
    exact[1:] |= exact[:-1].copy() & (np.nextafter(inner[:-1], np.inf) == inner[1:])
    with np.errstate(over="ignore"):
        spread = float(np.subtract(*np.quantile(inner, [0.9, 0.1]))) if inner.size > 1 else 1.0
    digits = (
        CELLS.readable_digits - 1 - math.floor(math.log10(spread))
        if spread > 0.0 and math.isfinite(spread)
        else CELLS.readable_digits
    )
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(inner, min(max(digits, -300), 300))
    rounded = np.where(exact | ~np.isfinite(rounded), inner, rounded)
    return Line(np.unique(np.concatenate([line.cuts[:1], rounded, line.cuts[-1:]])))


def quantiles(ascending: Floats, levels: Floats) -> Floats:
    """Return quantiles of a sorted sample by linear interpolation; numpy's function would sort it again."""
    if not levels.size:
        return np.empty(0)
    place = levels * (ascending.size - 1)
    below = place.astype(np.intp)
    low, high = ascending[below], ascending[np.minimum(below + 1, ascending.size - 1)]
    share = place - below
    return np.asarray(low * (1.0 - share) + high * share)  # high - low may overflow


@dataclass(frozen=True, slots=True)
class KeyTable:
    """One cell for each known exact value (or key), and a last one for everything else."""

    keys: NDArray[Any]  # sorted, distinct

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.keys.size) + 1

    def count(self, ascending: SortedSample) -> Counts:
        """Count a sorted sample of values or keys."""
        counts = np.empty(self.cells, np.int64)
        counts[:-1] = ascending.equal(self.keys)
        counts[-1] = ascending.size - counts[:-1].sum()
        return counts

    def unknown(self, ascending: SortedSample, limit: int) -> tuple[NDArray[Any], Counts]:
        """Return repeated values that have no cell yet, and their frequencies."""
        if self.keys.size and self.count(ascending)[-1] < 2:
            return ascending.values[:0], np.empty(0, np.int64)
        keys, lengths = ascending.repeated(limit + self.keys.size)
        new = ~np.isin(keys, self.keys)
        return most_frequent(keys[new], lengths[new], limit)
