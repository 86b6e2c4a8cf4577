"""Search for what the usual views miss: remainders, decimals, distances, differences, and pairs and triples of coordinates.

The search is made when a share of the budget has been spent and nothing was won. Every candidate is a partition into cells,
fitted on the first half of some settled outputs. On the other half it must exceed the claim by ``clear`` standard errors;
otherwise no view is added, and nothing is bet: what keeps its claim keeps its capital. A view that is added is a late
bettor, whose share comes from the reserve. All of it is a function of settled rounds.

So that it costs next to nothing where there is nothing to find, a search begins with few outputs, and looks at more only if a
candidate seems to exceed the claim. If none does so clearly, but one does by ``hint`` standard errors, and scikit-learn is
installed, boosted trees and a small network are fitted to all coordinates, and held to the same test.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded
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
from dpaudit.engine.views.partition import line_from
from dpaudit.engine.views.scores import Coordinate, fit_boosted, fit_network
from dpaudit.engine.views.view import Block, Counts, ScoreView, View

Sides: TypeAlias = tuple[Encoded, Encoded]


@dataclass(frozen=True, slots=True)
class LateSearchLimits:
    """When a search is made, on how many outputs, and what it looks at."""

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


def late_views(sides: Sides, points: Points) -> tuple[list[tuple[View, Counts, Counts]], list[str]]:
    """Return views that exceed the claim on outputs they were not fitted on, and what was looked at.

    Each view comes with its counts on these outputs, and on the first half of them.
    """
    rows, width = min(map(len, sides)), max(batch.width for batch in sides)
    if rows < SEARCH.fewest or not width:
        return [], []
    tried = ["remainders, decimals and distances"]
    tried += ["pairs and triples of coordinates, differences and summaries"] if width > 1 else []
    score, candidates = np.full(1, -np.inf), list[GridView]()
    for stage in (SEARCH.first, SEARCH.most):
        fit, rest = _halves(sides, min(rows, stage))
        candidates = list(_grids(fit, width))
        score = _advantages(candidates, fit, rest, points)
        if score.max(initial=-np.inf) < SEARCH.suspicious or rows <= stage:
            break
    best = np.argsort(-score, kind="stable")[: SEARCH.added]
    found: list[View] = [candidates[place] for place in best if score[place] > SEARCH.clear]
    hinted = score.max(initial=-np.inf) > SEARCH.hint and importlib.util.find_spec("sklearn") is not None
    if not found and hinted and width > 1:
        tried.append("boosted trees and a small network")
        found = _fitted(fit, rest, points)
    older = [Block(batch.rows(slice(len(batch) // 2))) for batch in rest]
    counted = [
        [np.stack([view.count(block) for block in part]) for part in ([*map(Block, rest)], older)] for view in found
    ]
    return [(view, past, first) for view, (past, first) in zip(found, counted, strict=True)], tried


def _halves(sides: Sides, rows: int) -> tuple[Sides, Sides]:
    """Return outputs to fit on, and others."""
    half = rows // 2
    fit, rest = slice(half), slice(half, rows)
    return (sides[0].rows(fit), sides[1].rows(fit)), (sides[0].rows(rest), sides[1].rows(rest))


def _grids(fit: Sides, width: int) -> Iterator[GridView]:
    """Yield the candidates, with cuts from the outputs of both sides."""
    columns = range(min(width, SEARCH.coordinates))
    for index in columns:
        values = np.concatenate([Coordinate(index)(batch) for batch in fit])
        for quantity in _of_one(index, values, "output" if width == 1 else f"output[{index}]"):
            yield _grid((quantity,), fit)
    if width == 1:
        return
    for kind in SUMMARIES:
        yield _grid((VectorSummary(kind),), fit)
    for index, other in itertools.combinations(columns, 2):
        yield _grid((Difference(other, index),), fit)
    for size in (2, 3):
        cut = [_cut(Coordinate(index), fit, SEARCH.cells[size - 1]) for index in columns]
        for some in itertools.combinations(cut, size):
            yield GridView(" and ".join(axis.of.describe() for axis in some), some)


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


def _cut(quantity: Quantity, fit: Sides, cells: int) -> Cut:
    pooled = np.concatenate([quantity(batch) for batch in fit])
    return Cut(quantity, tuple(cuts_from(pooled, cells).tolist()))


def _grid(quantities: tuple[Quantity, ...], fit: Sides) -> GridView:
    axes = tuple(_cut(quantity, fit, SEARCH.cells[len(quantities) - 1]) for quantity in quantities)
    return GridView(" and ".join(quantity.describe() for quantity in quantities), axes)


def _advantages(candidates: Sequence[GridView], fit: Sides, rest: Sides, points: Points) -> Floats:
    """Return by how many standard errors each candidate exceeds the claim."""
    cells: dict[Cut, list[NDArray[np.intp]]] = {}
    for axis in {axis for view in candidates for axis in view.axes}:
        cells[axis] = [axis.locate(batch) for batch in (*fit, *rest)]
    largest = max((view.cells for view in candidates), default=0)
    counts = np.zeros((4, len(candidates), largest), np.int64)
    for place, view in enumerate(candidates):
        sizes = [axis.cells for axis in view.axes]
        for part in range(4):
            cell = cells[view.axes[0]][part]
            for axis, size in zip(view.axes[1:], sizes[1:], strict=True):
                cell = cell * size + cells[axis][part]
            counts[part, place] = np.bincount(cell, minlength=largest)
    return advantage(counts[:2], counts[2:], points) if candidates else np.empty(0)


def advantage(fit: Counts, rest: Counts, points: Points) -> Floats:
    """Return by how many standard errors an event exceeds the claim, for each row of counts of shape (2, rows, cells).

    The order of the cells comes from ``fit``, and the event is one end of that order, chosen and counted on ``rest``.
    """
    order = np.argsort(np.log((fit[0] + 0.5) / (fit[1] + 0.5)), axis=1, kind="stable")
    ordered = np.take_along_axis(rest, np.broadcast_to(order, rest.shape), axis=2)
    return np.asarray(choose_events(ordered, points).score.max(axis=(0, 2)))


def _fitted(fit: Sides, rest: Sides, points: Points) -> list[View]:
    """Fit boosted trees and a small network, and return those that exceed the claim clearly."""
    found: list[View] = []
    for name, score in (("boosted", fit_boosted(*fit)), ("network", fit_network(*fit))):
        half = len(rest[0]) // 2
        pooled = np.concatenate([score(batch.rows(slice(half))) for batch in rest])
        view = ScoreView(f"late {name}", score, line_from(pooled, resolution=SEARCH.cells[0]))
        first, second = (
            np.array([[view.count(Block(batch.rows(part)))] for batch in rest])
            for part in (slice(half), slice(half, None))
        )
        if advantage(first, second, points)[0] > SEARCH.clear:
            found.append(view)
    return found
