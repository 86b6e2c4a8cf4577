"""The extreme rows of a strategy, found with its public interface only."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import target
from hypothesis.strategies import SearchStrategy

from dpaudit._hypothesis import LARGEST_TARGET, cut_short, explore, smallest
from dpaudit.errors import InvalidArgument
from dpaudit.values import fingerprint

T = TypeVar("T")

_EXAMPLES = 200
_ORDINARY = 64
_FEATURES = 6  # Hypothesis climbs one hill after the other, so many features would starve each other


@dataclass(frozen=True, slots=True)
class CornerRows:
    """What Hypothesis shrinks to, the two extremes, rows that reach the end of one feature, and rows between the extremes.

    ``between`` are up to three, nearest to the middle first: quantiles and thresholds are decided by rows inside the range.
    """

    minimal: Any
    low: Any
    high: Any
    others: tuple[Any, ...]
    between: tuple[Any, ...] = ()

    @property
    def all(self) -> list[Any]:
        """All of them, each once, the minimal one first."""
        distinct: dict[Any, Any] = {}
        for row in (self.minimal, self.high, self.low, *self.others):
            distinct.setdefault(fingerprint(row), row)
        return list(distinct.values())


class _CutShort(Exception):
    """Carries what was found until time was up around the cache."""


def _remembered(find: Callable[[SearchStrategy[Any]], T]) -> Callable[[SearchStrategy[Any]], T]:
    """Keep what was found for a strategy, unless time ran out (see ``_hypothesis.until``): another time there may be more."""

    @functools.lru_cache(maxsize=256)
    def whole(rows: SearchStrategy[Any]) -> T:
        found = find(rows)
        if cut_short():
            raise _CutShort(found)
        return found

    @functools.wraps(find)
    def remembered(rows: SearchStrategy[Any]) -> T:
        try:
            return whole(rows)
        except _CutShort as short:
            found: T = short.args[0]
            return found

    return remembered


@_remembered
def ordinary_rows(rows: SearchStrategy[Any]) -> tuple[Any, ...]:
    """Return some distinct rows of one seeded run."""
    seen: dict[Any, Any] = {}

    def visit(row: Any) -> bool:
        seen.setdefault(fingerprint(row), row)
        return len(seen) >= _ORDINARY

    explore(rows, visit, examples=_EXAMPLES, seed=0)
    return tuple(seen.values())


@_remembered
def corner_rows(rows: SearchStrategy[Any]) -> CornerRows:
    """Return the extreme rows of a strategy.

    A feature is a number inside the row, or the length of text. A seeded run climbs towards both ends of every feature;
    Hypothesis favours the ends of ranges, so bounded numbers reach their bounds. ``low`` and ``high`` have the smallest
    and the largest sum of features, each scaled to its range. Rows with a NaN come last among the others.
    """
    seen: dict[Any, tuple[Any, dict[str, float]]] = {}

    def visit(row: Any) -> dict[str, float]:
        features = dict(list(_features(row))[:_FEATURES])
        seen.setdefault(fingerprint(row), (row, features))
        for name, value in features.items():
            if not math.isnan(value):
                bounded = max(min(value, LARGEST_TARGET), -LARGEST_TARGET)
                target(bounded, label=f"+{name}")
                target(-bounded, label=f"-{name}")
        return features

    def simplest(row: Any, sign: float) -> Any:
        """The simplest row at least as extreme: -2.5 for a climb that ended at -2.4999999999999996."""
        features = dict(list(_features(row))[:_FEATURES])
        if all(value.is_integer() or not math.isfinite(value) for value in features.values()):
            return row

        def as_extreme(other: Any) -> bool:
            found = visit(other)
            return found.keys() == features.keys() and all(
                sign * found[name] >= sign * features[name] for name in found
            )

        return smallest(rows, as_extreme, examples=_EXAMPLES, seed=0, guided=True) or row

    explore(rows, lambda row: visit(row) is None, examples=_EXAMPLES, seed=0, guided=True)
    minimal = smallest(rows, lambda _: True, examples=10, seed=0)
    if not seen or (minimal is None and fingerprint(None) not in seen):
        raise InvalidArgument(f"rows={rows!r} yields no row.")
    known = _extremes(minimal, list(seen.values()))
    known = replace(known, low=simplest(known.low, -1.0), high=simplest(known.high, 1.0))
    ends = {fingerprint(row) for row in (known.low, known.high)}
    inside = {fingerprint(row): row for row in known.between if fingerprint(row) not in ends}
    return replace(known, between=tuple(inside.values()))


def _extremes(minimal: Any, seen: list[tuple[Any, dict[str, float]]]) -> CornerRows:
    names = list(dict.fromkeys(name for _, features in seen for name in features))
    table = np.array([[features.get(name, math.nan) for name in names] for _, features in seen]).reshape(len(seen), -1)
    whole = ~np.isnan(table).any(axis=1)
    low = high = minimal
    others: list[Any] = []
    between: list[Any] = []
    if whole.any() and names:
        finite = np.clip(table, -LARGEST_TARGET, LARGEST_TARGET)
        smallest_value, largest_value = np.nanmin(finite, axis=0), np.nanmax(finite, axis=0)
        # Halving first keeps the range of -1e300 to 1e300 finite.
        span = np.where(largest_value > smallest_value, largest_value / 2 - smallest_value / 2, 1.0)
        height = np.where(whole, ((finite / 2 - smallest_value / 2) / span).sum(axis=1), math.nan)
        low, high = (seen[int(place(height))][0] for place in (np.nanargmin, np.nanargmax))
        bottom, top = float(np.nanmin(height)), float(np.nanmax(height))
        rungs = [bottom + part * (top - bottom) for part in (0.5, 0.25, 0.75)]
        between = [seen[int(np.nanargmin(np.abs(height - rung)))][0] for rung in rungs]
        for column in table.T:
            others += [seen[int(place(column))][0] for place in (np.nanargmax, np.nanargmin)]
    others += [row for (row, _), complete in zip(seen, whole, strict=True) if not complete][:1]
    if (
        len({fingerprint(row) for row in (minimal, low, high)}) == 1
    ):  # no numbers to tell rows apart: take the next rows
        different = [row for row, _ in seen if fingerprint(row) != fingerprint(minimal)]
        high = different[0] if different else high
        others += different[1:3]
    return CornerRows(minimal, low, high, tuple(others), tuple(between))


def _features(row: Any, path: str = "", depth: int = 2) -> Iterator[tuple[str, float]]:
    if isinstance(row, bool | int | float | np.integer | np.floating | np.bool_):
        try:
            yield path, float(row)
        except OverflowError:
            yield path, math.copysign(math.inf, row)
    elif isinstance(row, str | bytes):
        yield path, float(len(row))
    elif depth:
        entries: Iterable[tuple[Any, Any]] = row.items() if isinstance(row, Mapping) else ()
        if isinstance(row, list | tuple | np.ndarray):
            entries = enumerate(row)
        for name, entry in entries:
            yield from _features(entry, f"{path}/{name}", depth - 1)
