"""Pairs of data sets together with the questions that both are asked, for conversations."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dpaudit._util.validation import check_count, shorten
from dpaudit._util.values import fingerprint
from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism.conversations import DATA, QUESTIONS
from dpaudit.neighbours._core import Neighbours, Pair
from dpaudit.neighbours._corner_rows import corner_rows, ordinary_rows
from dpaudit.neighbours._given import as_neighbours

CORNER_QUESTIONS = 3  # extreme questions of which corner scripts are made


def asking(
    pairs: Neighbours | Sequence[tuple[Any, Any]],
    questions: SearchStrategy[Any] | Sequence[Any] | Callable[[list[tuple[Any, Any]]], Any],
    *,
    min_questions: int = 1,
    max_questions: int = 4,
) -> Neighbours:
    """Neighbouring data sets, both of which are asked the same questions; for ``dpaudit.interactive``.

    A data set becomes ``{"data": data, "questions": questions}``. The relation is that of ``pairs``.

    Parameters
    ----------
    pairs : Neighbours or list of pairs
        The neighbouring data sets.
    questions : strategy, sequence or callable
        A strategy of one question: scripts of ``min_questions`` to ``max_questions`` of them are searched, and shrink together
        with the data, so that the witness is the shortest conversation. Or one script, a list of questions. Or an analyst
        ``next_question(transcript)``, which gets the list of (question, answer) so far and returns the next question, or None
        at the end; it should be deterministic.
    min_questions, max_questions : int
        Bounds on the number of questions, with a strategy.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> from dpaudit import neighbours
    >>> rows = neighbours.add_remove(st.integers(0, 9), max_size=2)
    >>> neighbours.asking(rows, st.integers(0, 9)).corners()[0]
    Pair(data={'data': [], 'questions': [0]}, neighbour={'data': [0], 'questions': [0]})
    """
    close = as_neighbours(pairs)
    if close.relation is Relation.SECRETS:
        raise InvalidArgument(
            f"pairs={close!r} are secrets, whose data are drawn anew in every trial; conversations are about data sets."
        )
    if isinstance(questions, SearchStrategy):
        return _scripts(close, questions, min_questions, max_questions)
    if callable(questions):
        shown = getattr(questions, "__name__", type(questions).__name__)
        return _same_for_all(close, lambda: questions, shown)
    if isinstance(questions, str) or not isinstance(questions, Sequence):
        raise InvalidArgument(
            f"questions={shorten(questions)} must be a strategy of one question, a list of questions, or a function "
            "next_question(transcript)."
        )
    return _same_for_all(close, lambda: copy.deepcopy(list(questions)), shorten(list(questions)))


def _same_for_all(close: Neighbours, make: Callable[[], Any], shown: str) -> Neighbours:
    """All pairs with one script, or one analyst."""

    def joined(pair: Pair) -> Pair:
        return Pair({DATA: pair.data, QUESTIONS: make()}, {DATA: pair.neighbour, QUESTIONS: make()})

    def edit(pair: Pair, rng: np.random.Generator) -> Pair | None:
        other = close.edit(_data(pair), rng) if close.edit is not None else None
        return None if other is None else joined(other)

    return Neighbours(
        close.strategy.map(joined),
        close.relation,
        f"asking({close!r}, {shown})",
        lambda: map(joined, close.find_corners()),
        _adjacency(close),
        edit if close.adjacent is not None and close.edit is not None else None,
        named=close.named,
    )


def _scripts(close: Neighbours, questions: SearchStrategy[Any], fewest: int, most: int) -> Neighbours:
    """All pairs with scripts of questions."""
    check_count(minimum=0, min_questions=fewest)
    check_count(max_questions=most)
    if fewest > most:
        raise InvalidArgument(f"min_questions={fewest} must not exceed max_questions={most}.")

    def corners() -> Iterator[Pair]:
        pairs, scripts = list(close.find_corners()), list(_corner_scripts(questions, fewest, most))
        for total in range(len(pairs) + len(scripts) - 1):  # simple pairs with simple scripts first
            for at in range(max(0, total - len(pairs) + 1), min(total + 1, len(scripts))):
                yield _asked(pairs[total - at], scripts[at])

    def edit(pair: Pair, rng: np.random.Generator) -> Pair | None:
        script = list(pair.data[QUESTIONS])
        if close.edit is not None and rng.random() < 0.5:
            other = close.edit(_data(pair), rng)
            return None if other is None else _asked(other, script)
        changed = _edited(script, questions, rng)
        return _asked(_data(pair), changed) if fewest <= len(changed) <= most else None

    def simpler(pair: Pair) -> Iterator[Pair]:
        script = pair.data[QUESTIONS]
        if len(script) > fewest:
            yield from (_asked(_data(pair), [*script[:at], *script[at + 1 :]]) for at in range(len(script)))

    return Neighbours(
        st.builds(_asked, close.strategy, st.lists(questions, min_size=fewest, max_size=most)),
        close.relation,
        f"asking({close!r}, {questions!r}, min_questions={fewest}, max_questions={most})",
        corners,
        _adjacency(close),
        edit if close.adjacent is not None else None,
        simpler=simpler,
    )


def _asked(pair: Pair, script: Sequence[Any]) -> Pair:
    # A copy for each side, so that a session that changes its questions does not change those of the other.
    sides = ({DATA: data, QUESTIONS: copy.deepcopy(list(script))} for data in pair)
    return Pair(*sides)


def _data(pair: Pair) -> Pair:
    return Pair(pair.data[DATA], pair.neighbour[DATA])


def _corner_scripts(questions: SearchStrategy[Any], fewest: int, most: int) -> Iterator[list[Any]]:
    """Yield one question, the same one as often as possible (caches, budgets), and two that take turns."""
    known = corner_rows(questions)
    ends = known.all[:CORNER_QUESTIONS]
    for size in dict.fromkeys((max(fewest, 1), most)):
        yield from ([question] * size for question in ends)
    if most > 1:
        for first, second in itertools.pairwise(ends):
            yield ([first, second] * most)[:most]
    if known.between:
        yield [known.between[0]] * most


def _edited(script: list[Any], questions: SearchStrategy[Any], rng: np.random.Generator) -> list[Any]:
    """Return the script with one random change: a question removed, repeated, replaced or moved."""
    fresh = [*corner_rows(questions).all, *ordinary_rows(questions)]
    at = int(rng.integers(len(script))) if script else 0
    match int(rng.integers(4)):
        case 0:
            del script[at : at + 1]
        case 1 if script:
            script.insert(int(rng.integers(len(script) + 1)), script[at])
        case 2 if script:
            script.insert(int(rng.integers(len(script))), script.pop(at))
        case _:
            script[at : at + 1] = [fresh[int(rng.integers(len(fresh)))]]
    return script


def _adjacency(close: Neighbours) -> Callable[[Any, Any], bool] | None:
    rule = close.adjacent
    if rule is None:
        return None

    def adjacent(data: Any, neighbour: Any) -> bool:
        return fingerprint(data[QUESTIONS]) == fingerprint(neighbour[QUESTIONS]) and rule(data[DATA], neighbour[DATA])

    return adjacent
