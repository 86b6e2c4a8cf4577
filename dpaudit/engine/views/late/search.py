"""Search for what the usual views miss: remainders, decimals, distances, differences, and pairs and triples of coordinates.

The search is made when a share of the budget has been spent and nothing was won. Every candidate is a partition into cells,
fitted on the first half of some settled outputs. On the other half it must exceed the claim by ``clear`` standard errors;
otherwise no view is added, and nothing is bet: what keeps its claim keeps its capital. A view that is added is a late
bettor, whose share comes from the reserve. All of it is a function of settled rounds.

So that it costs next to nothing where there is nothing to find, a search begins with few outputs, and looks at more only if a
candidate seems to exceed the claim. Outputs that were looked at without any such candidate are not looked at again.

Where scikit-learn is installed, boosted trees and a small network are fitted to all coordinates, and held to the same test: as
soon as a candidate exceeds the claim by ``hint`` standard errors without being clear; and in any case once ``models`` outputs of
each side have shown nothing. Earlier they would cost more than everything else in the audit.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded, stack
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.evidence.e_process import Points, choose_events
from dpaudit.engine.views.condition import Floats, Quantity
from dpaudit.engine.views.late.derived import (
    SUMMARIES,
    Decimals,
    Difference,
    DistanceToValues,
    Remainder,
    VectorSummary,
)
from dpaudit.engine.views.late.grid_view import Cut, GridView, cuts_from
from dpaudit.engine.views.late.models import fit_boosted, fit_network
from dpaudit.engine.views.partition import line_from
from dpaudit.engine.views.scores import Coordinate
from dpaudit.engine.views.view import Block, Counts, ScoreView, View

Sides: TypeAlias = tuple[Encoded, Encoded]


@dataclass(frozen=True, slots=True)
class LateSearchLimits:
    """Limits of a search: when it is made, on how many outputs, and what it looks at."""

    shares: tuple[int, ...] = (16, 4)
    """A search is made when the horizon divided by each of these numbers has been seen."""
    fewest: int = 1000
    """Outputs of each side that a search needs."""
    first: int = 2048
    """Outputs of each side that a search looks at first."""
    most: int = 8192
    """Outputs of each side that it looks at if the first ones are suspicious."""
    suspicious: float = 0.0
    """Standard errors by which a candidate must exceed the claim on the first outputs."""
    hint: float = 2.0
    """Standard errors from which on models are fitted if no candidate is clear."""
    models: int = 100_000
    """Outputs of each side that must have been seen for models to be fitted without a hint."""
    model_rows: tuple[int, ...] = (8192, 16_384)
    """Outputs of each side that models look at, half of them to be fitted: first, and if a model exceeds the claim at all."""
    clear: float = 4.5
    """Standard errors by which a candidate must exceed the claim on outputs on which it was not fitted."""
    added: int = 2
    """The most views that one search adds."""
    coordinates: int = 10
    """Coordinates that are combined: the first ones."""
    atoms: int = 64
    """Repeated values to which distances are measured."""
    cells: tuple[int, ...] = (32, 6, 2)
    """Cells of a quantity that is alone, in a pair, or in a triple."""
    whole_moduli: tuple[float, ...] = (2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 10.0, 100.0)
    """Moduli for coordinates that are whole numbers."""
    moduli: tuple[float, ...] = (1.0, 0.1, 2.0)
    """Moduli for other coordinates."""


SEARCH = LateSearchLimits()


@dataclass(frozen=True, slots=True)
class Searched:
    """The views that one search has found, what it tried, and whether more outputs might show more."""

    views: Sequence[tuple[View, Counts, Counts]]
    """Each with its counts on outputs that it was not fitted on, and on the first half of them."""
    tried: Sequence[str]
    undecided: bool


def late_views(sides: Sides, points: Points, *, grids: bool = True, models: bool = False) -> Searched:
    """Search for views that exceed the claim on outputs that they were not fitted on.

    Parameters
    ----------
    sides : tuple of Encoded
        Settled outputs.
    points : Points
        The claim.
    grids : bool
        Look at remainders, decimals, distances, differences, and pairs and triples of coordinates.
    models : bool
        Fit boosted trees and a small network, also without a hint that there is something to find.
    """
    rows, width = min(map(len, sides)), max(batch.width for batch in sides)
    if rows < SEARCH.fewest or not width:
        return Searched((), (), undecided=True)
    tried: list[str] = []
    found: list[View] = []
    best = -np.inf
    rest = sides
    if grids:
        tried.append("remainders, decimals and distances")
        tried += ["pairs and triples of coordinates, differences and summaries"] if width > 1 else []
        for stage in (SEARCH.first, SEARCH.most):
            fit, rest = _halves(sides, min(rows, stage))
            found, best = _grid_views(fit, rest, width, points)
            if best < SEARCH.suspicious or rows <= stage:
                break
    undecided = best >= SEARCH.suspicious or rows < SEARCH.first
    if not found and width > 1 and (models or best > SEARCH.hint) and importlib.util.find_spec("sklearn") is not None:
        tried.append("boosted trees and a small network")
        for stage in SEARCH.model_rows:
            fit, rest = _halves(sides, min(rows, stage))
            found, best = _fitted(fit, rest, points)
            if found or best < SEARCH.suspicious or rows <= stage:
                break
    older = [Block(batch.rows(slice(len(batch) // 2))) for batch in rest]
    counted = [
        [np.stack([view.count(block) for block in part]) for part in ([*map(Block, rest)], older)] for view in found
    ]
    views = [(view, past, first) for view, (past, first) in zip(found, counted, strict=True)]
    return Searched(views, tried, undecided)


def _halves(sides: Sides, rows: int) -> tuple[Sides, Sides]:
    """Return outputs to fit on, and others."""
    half = rows // 2
    fit, rest = slice(half), slice(half, rows)
    return (sides[0].rows(fit), sides[1].rows(fit)), (sides[0].rows(rest), sides[1].rows(rest))


class _FittedCells:
    """Outputs of both sides, those to fit on before those to test on, and their cells by every cut that is made."""

    def __init__(self, fit: Sides, rest: Sides) -> None:
        parts = [batch.with_features(None) for batch in (*fit, *rest)]
        self.rows = stack(parts)
        self.part = np.repeat(np.arange(4), [len(part) for part in parts])
        self._fitted = len(fit[0]) + len(fit[1])
        self._cells: dict[Cut, NDArray[np.intp]] = {}

    def column(self, index: int) -> Floats:
        """Return one coordinate of the outputs to fit on."""
        return Coordinate(index)(self.rows)[: self._fitted]

    def cut(self, quantity: Quantity, cells: int) -> Cut:
        """Cut a quantity at quantiles of the outputs to fit on."""
        values = quantity(self.rows)
        made = Cut(quantity, tuple(cuts_from(values[: self._fitted], cells).tolist()))
        self._cells[made] = made.place(values)
        return made

    def counts(self, candidates: Sequence[GridView]) -> Counts:
        """Count the cells of each candidate, shape (2, 2, candidates, most cells): to fit on, to test on; of each side."""
        most = max(view.cells for view in candidates)
        counts = np.empty((4, len(candidates), most), np.int64)
        start = self.part * most
        for place, view in enumerate(candidates):
            cell = self._cells[view.axes[0]]
            for axis in view.axes[1:]:
                cell = cell * axis.cells + self._cells[axis]
            counts[:, place] = np.bincount(start + cell, minlength=4 * most).reshape(4, most)
        return counts.reshape(2, 2, len(candidates), most)


def _grid_views(fit: Sides, rest: Sides, width: int, points: Points) -> tuple[list[View], float]:
    """Return the clearest candidates, and by how many standard errors the best one exceeds the claim."""
    cells = _FittedCells(fit, rest)
    candidates = list(_grids(cells, width))
    if not candidates:
        return [], -np.inf
    counts = cells.counts(candidates)
    score = advantage(counts[0], counts[1], points)
    best = np.argsort(-score, kind="stable")[: SEARCH.added]
    return [candidates[place] for place in best if score[place] > SEARCH.clear], float(score.max())


def _grids(cells: _FittedCells, width: int) -> Iterator[GridView]:
    """Yield the candidates, with cuts from the outputs of both sides."""
    columns = range(min(width, SEARCH.coordinates))
    for index in columns:
        for quantity in _of_one(index, cells.column(index), "output" if width == 1 else f"output[{index}]"):
            yield _alone(cells, quantity)
    if width == 1:
        return
    for kind in SUMMARIES:
        yield _alone(cells, VectorSummary(kind))
    for index, other in itertools.combinations(columns, 2):
        yield _alone(cells, Difference(other, index))
    for size in (2, 3):
        cuts = [cells.cut(Coordinate(index), SEARCH.cells[size - 1]) for index in columns]
        for some in itertools.combinations(cuts, size):
            yield GridView(" and ".join(axis.of.describe() for axis in some), some)


def _alone(cells: _FittedCells, quantity: Quantity) -> GridView:
    return GridView(quantity.describe(), (cells.cut(quantity, SEARCH.cells[0]),))


def _of_one(index: int, values: Floats, label: str) -> Iterator[Quantity]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return
    whole = bool((finite == np.rint(finite)).all())
    for modulus in SEARCH.whole_moduli if whole else SEARCH.moduli:
        if np.ptp(finite) > modulus:
            yield Remainder(index, modulus, label)
    if not whole:
        yield Decimals(index, label)
        atoms, _ = SortedSample(np.sort(finite)).repeated(SEARCH.atoms)
        if atoms.size:
            yield DistanceToValues(index, tuple(atoms.tolist()), label)


def advantage(fit: Counts, rest: Counts, points: Points) -> Floats:
    """Return by how many standard errors an event exceeds the claim, for each row of counts of shape (2, rows, cells).

    The order of the cells comes from ``fit``, and the event is one end of that order, chosen and counted on ``rest``.
    """
    order = np.argsort(np.log((fit[0] + 0.5) / (fit[1] + 0.5)), axis=1, kind="stable")
    ordered = np.take_along_axis(rest, np.broadcast_to(order, rest.shape), axis=2)
    return np.asarray(choose_events(ordered, points).score.max(axis=(0, 2)))


def _fitted(fit: Sides, rest: Sides, points: Points) -> tuple[list[View], float]:
    """Fit boosted trees and a small network; return those that exceed the claim clearly, and by how much the best does."""
    found: list[View] = []
    best = -np.inf
    for name, score in (("boosted", fit_boosted(*fit)), ("network", fit_network(*fit))):
        half = len(rest[0]) // 2
        pooled = np.concatenate([score(batch.rows(slice(half))) for batch in rest])
        view = ScoreView(f"late {name}", score, line_from(pooled, resolution=SEARCH.cells[0]))
        first, second = (
            np.array([[view.count(Block(batch.rows(part)))] for batch in rest])
            for part in (slice(half), slice(half, None))
        )
        exceeds = float(advantage(first, second, points)[0])
        best = max(best, exceeds)
        found += [view] if exceeds > SEARCH.clear else []
    return found, best
