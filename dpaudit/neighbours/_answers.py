"""Vectors of query answers, in which every entry moves by at most the sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours._core import Neighbours, Pair
from dpaudit.validation import check_choice, check_count, check_interval, check_positive

Vector = NDArray[Any]

COARSE = 7  # rungs of the ladder that come before the ends of the range


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

    The corners are the eight patterns on which auditors were published (Ding et al. 2018; Bichsel et al. 2021): all
    answers at one level, against one entry down; one up; one up and the rest down; one down and the rest up; half up
    and half down; all up; all down; alternating. They come at the level ``low + sensitivity`` first, then at
    the one nearest to zero. Then come those that are worst for AboveThreshold (theory R3), on a ladder of levels between
    the bounds, because code that compares answers with a threshold shows its bugs only near it, and at both ends of the
    range; last all patterns in the middle and at the ends.

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
        Whether every answer may move or only one.
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
    dtype = np.dtype(np.int64) if integral else np.dtype(np.float64)

    def typed(data: Vector, move: Vector) -> Pair:
        return Pair(*(side.astype(dtype) for side in (data, _moved(data, move, low, high))))

    def pair(level: Vector | float, move: Vector) -> Pair:
        # Each entry starts where its move stays inside the range, if the range is wide enough for it.
        floor = np.minimum(low - np.minimum(move, 0.0), high)
        ceiling = np.maximum(high - np.maximum(move, 0.0), low)
        return typed(np.clip(np.broadcast_to(level, (length,)), floor, ceiling), move)

    def corners() -> Iterator[Pair]:
        patterns = _patterns(length, 0, monotone=monotone, entries=entries)
        last = _patterns(length, length - 1, monotone=monotone, entries=entries)
        named = [direction for direction in last if direction[-1] == 0.0]  # the answer named may also stand last
        yield from (pair(low + sensitivity, sensitivity * direction) for direction in (*patterns, *named))
        zero = min(max(0.0, low), high)  # where thresholds often lie
        if abs(zero - low) > sensitivity:
            yield from (pair(zero, sensitivity * direction) for direction in last)
        ends = np.full(length, float(high))
        ends[-1] = low
        outer: list[Vector | float] = [ends, low + high - ends, float(high)]
        rungs: list[Vector | float] = [*_ladder(low, high, sensitivity, integral=integral)]
        worst = sensitivity * _worst(length, monotone=monotone, entries=entries)
        yield from (pair(level, worst) for level in (*rungs[:COARSE], *outer, *rungs[COARSE:]))
        for level in (*rungs[:1], *outer):
            yield from (pair(level, sensitivity * direction) for direction in last)

    whole = st.integers(math.ceil(low), math.floor(high)) if math.ceil(low) <= math.floor(high) else st.nothing()
    levels = whole.map(float) if integral else whole.map(float) | st.floats(low, high)
    steps = st.sampled_from((0.0, 1.0, -1.0)) | (st.nothing() if integral else st.floats(-1.0, 1.0))

    @st.composite
    def pattern_pairs(draw: st.DrawFn) -> Pair:
        entry = draw(st.integers(0, length - 1))
        down, up, *others = _patterns(length, entry, monotone=monotone, entries=entries)
        return pair(draw(levels), sensitivity * draw(st.sampled_from([up, down, *others])))

    @st.composite
    def free_pairs(draw: st.DrawFn) -> Pair:
        data = np.array(draw(st.lists(levels, min_size=length, max_size=length)))
        direction = np.zeros(length)
        if entries == "one":
            direction[draw(st.integers(0, length - 1))] = draw(steps)
        else:
            direction[:] = draw(st.lists(steps, min_size=length, max_size=length))
        if monotone:
            direction = np.abs(direction) * (-1.0 if draw(st.booleans()) else 1.0)
        return typed(data, sensitivity * direction)

    @st.composite
    def pairs(draw: st.DrawFn) -> Pair:
        one = draw(pattern_pairs() | free_pairs())
        assume(not np.array_equal(one.data, one.neighbour))
        return Pair(one.neighbour, one.data) if draw(st.booleans()) else one

    def adjacent(data: Any, neighbour: Any) -> bool:
        first, second = np.asarray(data, dtype=float), np.asarray(neighbour, dtype=float)
        if first.shape != (length,) or second.shape != (length,):
            return False
        change = second - first
        inside = all(((low <= side) & (side <= high)).all() for side in (first, second))
        one_way = not monotone or (change >= 0).all() or (change <= 0).all()
        few = entries == "all" or np.count_nonzero(change) <= 1
        return bool(inside and one_way and few and (np.abs(change) <= sensitivity).all())

    def edit(known: Pair, rng: np.random.Generator) -> Pair | None:
        level, neighbour = (np.array(side, dtype=float) for side in known)
        move = neighbour - level
        entry = int(rng.integers(length))
        match rng.integers(5):
            case 0:
                level[entry] = rng.choice((low, high))
            case 1 | 2:
                # To an end, or by a step of any size up to that between rungs: a threshold is approached by shorter ones.
                ends = low - level.min(), high - level.max()
                step = 0.5 * sensitivity * max(2.0, 2.0 * (high - low) / (COARSE + 1) / sensitivity) ** rng.random()
                shift = np.clip(rng.choice((*ends, -step, step, -step, step)), *ends)
                level += np.copysign(np.ceil(abs(shift)), shift) if integral else shift
            case 3:
                signs = [np.sign(move.sum())] if monotone and entries == "all" and move.any() else [1.0, -1.0]
                if entries == "one":
                    move[:] = 0.0
                move[entry] = sensitivity * rng.choice((0.0, *signs))
            case _:
                patterns = _patterns(length, entry, monotone=monotone, entries=entries)
                move = sensitivity * patterns[rng.integers(len(patterns))]
        edited = pair(level, move)
        return None if np.array_equal(edited.data, edited.neighbour) else edited

    return Neighbours(
        pairs(),
        Relation.ANSWERS,
        f"answers({length}, {low}, {high}, sensitivity={sensitivity}, monotone={monotone}, entries={entries!r})",
        corners,
        adjacent,
        edit,
    )


def _patterns(length: int, entry: int, *, monotone: bool, entries: str) -> list[Vector]:
    """Directions of the moves, in the order of the published catalogue; those the relation forbids are left out."""
    one = np.zeros(length)
    one[entry] = 1.0
    up, signs = np.ones(length), np.where(np.arange(length) % 2 == 0, 1.0, -1.0)
    halves = np.where(np.arange(length) < (length + 1) // 2, 1.0, -1.0)
    mixed = [2 * one - up, up - 2 * one, halves]
    listed = [-one, one]
    if entries == "all":
        # Where all must move the same way, AboveThreshold is worst if the answer that is named stays (theory R3).
        listed += [up, -up, up - one, one - up] if monotone else [*mixed, up, -up, signs]
    distinct = {direction.tobytes(): direction for direction in listed if direction.any()}
    return list(distinct.values())


def _worst(length: int, *, monotone: bool, entries: str) -> Vector:
    """The move that tells most about a comparison with a threshold: all answers but the one named (theory R3)."""
    named = np.zeros(length)
    named[-1] = 1.0
    if entries == "one" or length == 1:
        return named
    return named - 1.0 if monotone else 2.0 * named - 1.0


def _ladder(low: float, high: float, sensitivity: float, *, integral: bool) -> list[float]:
    """Levels inside the range: its middle, the middles of its halves, and so on while the rungs are well apart."""
    rungs = [0.5 * (low + high)]
    for parts in (4, 8, 16):
        if high - low >= 2.0 * parts * sensitivity:
            rungs += [low + (high - low) * part / parts for part in range(1, parts, 2)]
    return [float(np.rint(rung)) for rung in rungs] if integral else rungs


def _moved(data: Vector, move: Vector, low: float, high: float) -> Vector:
    """``data + move`` inside the range, where no entry moves further than ``move`` after rounding."""
    moved = np.clip(data + move, low, high)
    too_far = np.abs(moved - data) > np.abs(move)
    kept: Vector = np.where(too_far, np.nextafter(moved, data), moved)
    return kept
