"""Find the extreme rows of a Hypothesis strategy through its public interface."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import target
from hypothesis.strategies import SearchStrategy

from dpaudit._util.hypothesis_bridge import LARGEST_TARGET, cut_short, explore, smallest
from dpaudit._util.values import fingerprint
from dpaudit.errors import InvalidArgument

T = TypeVar("T")

_EXAMPLES = 200
"""Number of rows that one search draws."""
_ORDINARY = 64
"""Number of distinct rows that :func:`ordinary_rows` returns at most."""
_FEATURES = 6
"""Number of features per row that are maximised: Hypothesis divides its examples among all targets."""


@dataclass(frozen=True, slots=True)
class CornerRows:
    """Rows for corner pairs: extreme ones, and some inside the range, because those decide quantiles and thresholds."""

    minimal: Any  # the row that Hypothesis shrinks to
    low: Any  # the smallest sum of features
    high: Any  # the largest sum of features
    others: tuple[Any, ...]  # rows that reach an end of one feature
    between: tuple[Any, ...] = ()  # up to three rows between low and high, nearest to the middle first

    @property
    def all(self) -> list[Any]:
        """The minimal and the extreme rows, each once, the minimal one first."""
        distinct: dict[Any, Any] = {}
        for row in (self.minimal, self.high, self.low, *self.others):
            distinct.setdefault(fingerprint(row), row)
        return list(distinct.values())


class _CutShort(Exception):
    """Carries an incomplete result past the cache, so that it is not stored."""


def _remembered(find: Callable[[SearchStrategy[Any]], T]) -> Callable[[SearchStrategy[Any]], T]:
    """Cache the result for each strategy, unless the deadline passed (``hypothesis_bridge.until``): it may be incomplete."""

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
    """Return distinct rows of one seeded run."""
    seen: dict[Any, Any] = {}

    def visit(row: Any) -> bool:
        seen.setdefault(fingerprint(row), row)
        return len(seen) >= _ORDINARY

    explore(rows, visit, examples=_EXAMPLES, seed=0)
    return tuple(seen.values())


@_remembered
def corner_rows(rows: SearchStrategy[Any]) -> CornerRows:
    """Return the extreme rows of a strategy.

    A feature is a number inside the row, or the length of text. A seeded run maximises and minimises every feature;
    Hypothesis favours the ends of ranges, so bounded numbers reach their bounds. ``low`` and ``high`` have the smallest
    and the largest sum of features, each scaled to its range. Rows with a NaN come last among ``others``.
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
        """Return the simplest row that is at least as extreme: -2.5 if the search ended at -2.4999999999999996."""
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
        # Halved first, so that the range from -LARGEST_TARGET to LARGEST_TARGET does not overflow.
        span = np.where(largest_value > smallest_value, largest_value / 2 - smallest_value / 2, 1.0)
        height = np.where(whole, ((finite / 2 - smallest_value / 2) / span).sum(axis=1), math.nan)
        low, high = (seen[int(place(height))][0] for place in (np.nanargmin, np.nanargmax))
        bottom, top = float(np.nanmin(height)), float(np.nanmax(height))
        levels = [bottom + part * (top - bottom) for part in (0.5, 0.25, 0.75)]
        between = [seen[int(np.nanargmin(np.abs(height - level)))][0] for level in levels]
        for column in table.T:
            others += [seen[int(place(column))][0] for place in (np.nanargmax, np.nanargmin)]
    others += [row for (row, _), complete in zip(seen, whole, strict=True) if not complete][:1]
    # Without features all three rows are equal: take the next different rows.
    if len({fingerprint(row) for row in (minimal, low, high)}) == 1:
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
