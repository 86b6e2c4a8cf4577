"""Neighbouring vectors of query answers: every entry moves by at most the sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from dpaudit._util.validation import check_choice, check_count, check_interval, check_positive
from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours._core import Neighbours, Pair

Vector = NDArray[Any]

COARSE_LEVELS = 7
"""Number of levels inside the range whose corner pairs come before those at the ends of the range."""


def answers(
    length: int,
    low: float,
    high: float,
    *,
    sensitivity: float = 1,
    monotone: bool = False,
    entries: Literal["all", "one"] = "all",
    integral: bool = False,
) -> Neighbours:
    """Vectors of ``length`` query answers in [low, high]; entries move by at most ``sensitivity``.

    The corner pairs start from equal answers and use the eight moves of the published auditors (Ding et al. 2018;
    Bichsel et al. 2021): one entry down; one up; one up and the rest down; one down and the rest up; half up and half down;
    all up; all down; alternating. All moves come first at the level ``low + sensitivity``, then at the level nearest to
    zero. Next comes the worst move for AboveThreshold (docs/theory.md R3), at several levels inside the range and at both ends,
    because code that compares answers with a threshold shows its bugs only near the threshold. Last come all moves in the
    middle and at the ends of the range.

    Parameters
    ----------
    length : int
        Number of queries.
    low, high : float
        Range of the answers.
    sensitivity : float
        Largest change of one answer.
    monotone : bool
        All answers move in the same direction, as counts do when one row is added.
    entries : {"all", "one"}
        ``"all"``: every answer may move; ``"one"``: only one.
    integral : bool
        Whole numbers (``int64``) instead of floats, for mechanisms on counts.

    Examples
    --------
    >>> for pair in answers(3, 0, 10).corners()[:3]:
    ...     print(pair.data, pair.neighbour)
    [1. 1. 1.] [0. 1. 1.]
    [1. 1. 1.] [2. 1. 1.]
    [1. 1. 1.] [2. 0. 0.]
    """
    check_count(length=length)
    check_interval(low=low, high=high)
    check_positive(sensitivity=sensitivity)
    check_choice(("all", "one"), entries=entries)
    if integral and any(value != int(value) for value in (low, high, sensitivity)):
        raise InvalidArgument(
            f"low={low!r}, high={high!r} and sensitivity={sensitivity!r} must be whole numbers where integral=True."
        )
    space = _AnswerSpace(length, low, high, sensitivity, monotone, entries, integral)
    return Neighbours(
        space.strategy(),
        Relation.ANSWERS,
        f"answers({length}, {low}, {high}, sensitivity={sensitivity}, monotone={monotone}, entries={entries!r})",
        space.corners,
        space.adjacent,
        space.edit,
        rows=space.levels(),
        vary=space.at_level,
    )


@dataclass(frozen=True, slots=True)
class _AnswerSpace:
    """The pairs that :func:`answers` describes; the fields are its parameters."""

    length: int
    low: float
    high: float
    sensitivity: float
    monotone: bool
    entries: Literal["all", "one"]
    integral: bool

    def corners(self) -> Iterator[Pair]:
        """Yield the corner pairs in the order that :func:`answers` describes."""
        patterns, last = self._patterns(0), self._patterns(self.length - 1)
        stays = [
            direction for direction in last if direction[-1] == 0.0
        ]  # the answer that stays may also be the last one
        yield from (self._pair(self.low + self.sensitivity, direction) for direction in (*patterns, *stays))
        zero = min(max(0.0, self.low), self.high)  # a common threshold
        if abs(zero - self.low) > self.sensitivity:
            yield from (self._pair(zero, direction) for direction in last)
        ends = np.full(self.length, float(self.high))
        ends[-1] = self.low
        outer: list[Vector | float] = [ends, self.low + self.high - ends, float(self.high)]
        levels: list[Vector | float] = [*_levels(self.low, self.high, self.sensitivity, integral=self.integral)]
        worst = _worst(self.length, monotone=self.monotone, entries=self.entries)
        yield from (self._pair(level, worst) for level in (*levels[:COARSE_LEVELS], *outer, *levels[COARSE_LEVELS:]))
        for level in (*levels[:1], *outer):
            yield from (self._pair(level, direction) for direction in last)

    def levels(self) -> SearchStrategy[float]:
        """Return the Hypothesis strategy of one answer."""
        first, last = math.ceil(self.low), math.floor(self.high)
        whole = st.integers(first, last).map(float) if first <= last else st.nothing()
        return whole if self.integral else whole | st.floats(self.low, self.high)

    def at_level(self, level: float) -> Iterator[Pair]:
        """Yield two pairs: all answers at one level, and the last answer there while the others are zero."""
        yield self._pair(level, _worst(self.length, monotone=self.monotone, entries=self.entries))
        start = np.full(self.length, min(max(0.0, self.low), self.high))
        start[-1] = level
        yield self._pair(start, self._patterns(self.length - 1)[0])

    def strategy(self) -> SearchStrategy[Pair]:
        """Return the Hypothesis strategy of the pairs: catalogued moves from one level, or any moves from any answers."""
        length, levels = self.length, self.levels()
        steps = st.sampled_from((0.0, 1.0, -1.0)) | (st.nothing() if self.integral else st.floats(-1.0, 1.0))

        @st.composite
        def pattern_pairs(draw: st.DrawFn) -> Pair:
            entry = draw(st.integers(0, length - 1))
            down, up, *others = self._patterns(entry)
            return self._pair(draw(levels), draw(st.sampled_from([up, down, *others])))

        @st.composite
        def free_pairs(draw: st.DrawFn) -> Pair:
            data = np.array(draw(st.lists(levels, min_size=length, max_size=length)))
            direction = np.zeros(length)
            if self.entries == "one":
                direction[draw(st.integers(0, length - 1))] = draw(steps)
            else:
                direction[:] = draw(st.lists(steps, min_size=length, max_size=length))
            if self.monotone:
                direction = np.abs(direction) * (-1.0 if draw(st.booleans()) else 1.0)
            return self._typed(data, self.sensitivity * direction)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            one = draw(pattern_pairs() | free_pairs())
            assume(not np.array_equal(one.data, one.neighbour))
            return Pair(one.neighbour, one.data) if draw(st.booleans()) else one

        return pairs()

    def adjacent(self, data: Any, neighbour: Any) -> bool:
        """Return True if both vectors lie in the range and their difference is an allowed move."""
        first, second = np.asarray(data, dtype=float), np.asarray(neighbour, dtype=float)
        if first.shape != (self.length,) or second.shape != (self.length,):
            return False
        change = second - first
        inside = all(((self.low <= side) & (side <= self.high)).all() for side in (first, second))
        one_way = not self.monotone or (change >= 0).all() or (change <= 0).all()
        few = self.entries == "all" or np.count_nonzero(change) <= 1
        return bool(inside and one_way and few and (np.abs(change) <= self.sensitivity).all())

    def edit(self, known: Pair, rng: np.random.Generator) -> Pair | None:
        """Return the pair with one random change to its levels or to its move, or None if that leaves no difference."""
        level, neighbour = (np.array(side, dtype=float) for side in known)
        move = neighbour - level
        entry = int(rng.integers(self.length))
        match rng.integers(5):
            case 0:
                level[entry] = rng.choice((self.low, self.high))
            case 1 | 2:
                level += self._shift(level, rng)
            case 3:
                same_way = self.monotone and self.entries == "all" and move.any()
                signs = [np.sign(move.sum())] if same_way else [1.0, -1.0]
                if self.entries == "one":
                    move[:] = 0.0
                move[entry] = self.sensitivity * rng.choice((0.0, *signs))
            case _:
                patterns = self._patterns(entry)
                move = self.sensitivity * patterns[rng.integers(len(patterns))]
        edited = self._moved_pair(level, move)
        return None if np.array_equal(edited.data, edited.neighbour) else edited

    def _shift(self, level: Vector, rng: np.random.Generator) -> Any:
        """Draw a common shift of all answers: to an end of the range, or a step of random size, to approach a threshold."""
        ends = self.low - level.min(), self.high - level.max()
        spacing = 2.0 * (self.high - self.low) / (COARSE_LEVELS + 1) / self.sensitivity
        step = 0.5 * self.sensitivity * max(2.0, spacing) ** rng.random()
        shift = np.clip(rng.choice((*ends, -step, step, -step, step)), *ends)
        return np.copysign(np.ceil(abs(shift)), shift) if self.integral else shift

    def _patterns(self, entry: int) -> list[Vector]:
        return _patterns(self.length, entry, monotone=self.monotone, entries=self.entries)

    def _pair(self, level: Vector | float, direction: Vector) -> Pair:
        return self._moved_pair(level, self.sensitivity * direction)

    def _moved_pair(self, level: Vector | float, move: Vector) -> Pair:
        # Each entry starts so that its move stays inside the range, if the range is wide enough for it.
        floor = np.minimum(self.low - np.minimum(move, 0.0), self.high)
        ceiling = np.maximum(self.high - np.maximum(move, 0.0), self.low)
        return self._typed(np.clip(np.broadcast_to(level, (self.length,)), floor, ceiling), move)

    def _typed(self, data: Vector, move: Vector) -> Pair:
        dtype = np.dtype(np.int64) if self.integral else np.dtype(np.float64)
        return Pair(*(side.astype(dtype) for side in (data, _moved(data, move, self.low, self.high))))


def _patterns(length: int, entry: int, *, monotone: bool, entries: str) -> list[Vector]:
    """Return the directions of the catalogued moves, in the published order, without those that the relation forbids."""
    one = np.zeros(length)
    one[entry] = 1.0
    up, signs = np.ones(length), np.where(np.arange(length) % 2 == 0, 1.0, -1.0)
    halves = np.where(np.arange(length) < (length + 1) // 2, 1.0, -1.0)
    mixed = [2 * one - up, up - 2 * one, halves]
    listed = [-one, one]
    if entries == "all":
        # If all must move the same way, AboveThreshold is worst when the answer it returns stays (docs/theory.md R3).
        listed += [up, -up, up - one, one - up] if monotone else [*mixed, up, -up, signs]
    distinct = {direction.tobytes(): direction for direction in listed if direction.any()}
    return list(distinct.values())


def _worst(length: int, *, monotone: bool, entries: str) -> Vector:
    """Return the worst move for AboveThreshold: all answers against the last one, which it returns (docs/theory.md R3)."""
    named = np.zeros(length)
    named[-1] = 1.0
    if entries == "one" or length == 1:
        return named
    return named - 1.0 if monotone else 2.0 * named - 1.0


def _levels(low: float, high: float, sensitivity: float, *, integral: bool) -> list[float]:
    """Return levels inside the range: its middle, the middles of its halves, and so on while they are well apart."""
    levels = [0.5 * (low + high)]
    for parts in (4, 8, 16):
        if high - low >= 2.0 * parts * sensitivity:
            levels += [low + (high - low) * part / parts for part in range(1, parts, 2)]
    return [float(np.rint(level)) for level in levels] if integral else levels


def _moved(data: Vector, move: Vector, low: float, high: float) -> Vector:
    """Return ``data + move``, clipped to the range, and corrected so that rounding moves no entry further than ``move``."""
    moved = np.clip(data + move, low, high)
    too_far = np.abs(moved - data) > np.abs(move)
    kept: Vector = np.where(too_far, np.nextafter(moved, data), moved)
    return kept
