"""A pair of neighbours, and a search space of such pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis.strategies import SearchStrategy

from dpaudit._util.hypothesis_bridge import explore, passed, until, with_constants
from dpaudit._util.validation import check_count, check_generator, shorten
from dpaudit._util.values import fingerprint
from dpaudit.claims import Claim, Relation
from dpaudit.errors import InvalidArgument, RelationMismatch

_STALE = 500
"""Number of repeated pairs in a row after which the search for new pairs ends."""
_TRIES = 20
"""Number of random changes that are tried for each variation of a pair that is asked for."""


class Pair(NamedTuple):
    """Two neighbouring data sets."""

    data: Any
    neighbour: Any


@dataclass(frozen=True, slots=True, repr=False)
class Neighbours:
    """A search space of pairs of neighbouring data sets.

    Made by the functions of :mod:`dpaudit.neighbours`. ``strategy`` yields the pairs, ``relation`` is the rule by which
    they are neighbours (None: unknown), ``find_corners`` yields the extreme pairs, ``adjacent`` decides whether two data
    sets are neighbours, and ``edit`` makes one random change to a pair, or returns None if that change is impossible.

    >>> from hypothesis import strategies as st
    >>> from dpaudit import neighbours
    >>> close = neighbours.add_remove(st.integers(0, 10), max_size=4)
    >>> close.relation
    Relation.ADD_REMOVE
    >>> close.pool(2, seed=0)
    [Pair(data=[], neighbour=[0]), Pair(data=[], neighbour=[10])]
    """

    strategy: SearchStrategy[Pair]
    relation: Relation | None = None
    description: str = "Neighbours"
    find_corners: Callable[[], Iterable[Pair]] = tuple
    adjacent: Callable[[Any, Any], bool] | None = None
    edit: Callable[[Pair, np.random.Generator], Pair | None] | None = None
    named: bool = False  # there are no other pairs than the corners
    simpler: Callable[[Pair], Iterable[Pair]] | None = (
        None  # pairs with one part left out, to shrink a witness part by part
    )
    rows: SearchStrategy[Any] | None = None  # of one row, where ``vary`` makes simple pairs of a row
    vary: Callable[[Any], Iterable[Pair]] | None = None

    def __repr__(self) -> str:
        return self.description

    def corners(self) -> list[Pair]:
        """Return the extreme pairs, simplest first: no data, one row, all rows equal, the smallest and the largest rows.

        They do not depend on a seed, and each pair is listed in one order only.
        """
        return _distinct(self.find_corners())

    def pool(self, count: int, seed: int = 0, deadline: float | None = None) -> list[Pair]:
        """Return distinct pairs: corners first, and from the ninth on every fourth pair from a seeded Hypothesis run.

        After the last corner all pairs come from that run. A pair and its mirror image count as one, because an audit
        examines both orders of every pair. A larger pool starts with the pairs of a smaller one.

        Parameters
        ----------
        count : int
            Number of pairs. Fewer are returned only if the run finds no more, or the deadline passes.
        seed : int
            Seed of the Hypothesis run.
        deadline : float, optional
            Time of ``time.monotonic`` at which the search ends.
        """
        check_count(count=count)
        check_count(minimum=0, seed=seed)
        with until(deadline):
            corners = self.corners()
        known = {_unordered(pair) for pair in corners}
        turns = sum(_is_free(place) for place in range(count))
        wanted = 0 if self.named else max(turns, count - len(corners))
        free: dict[Any, Pair] = {}
        stale = 0

        def visit(pair: Pair) -> bool:
            nonlocal stale
            before = len(free)
            if (key := _unordered(pair)) not in known:
                free.setdefault(key, pair)
            stale = 0 if len(free) > before else stale + 1
            return len(free) >= wanted or stale >= _STALE or (passed(deadline) and bool(free or corners))

        if wanted and not (corners and passed(deadline)):
            # The first values of a Hypothesis run depend on its number of examples, up to some hundreds. With at least
            # that many, a larger pool starts with the pairs of a smaller one.
            explore(self.strategy, visit, examples=max(2 * _STALE, 20 * count), seed=seed)
        drawn, named = iter(free.values()), iter(corners)
        pool: list[Pair] = []
        for place in range(count):
            first, second = (drawn, named) if _is_free(place) else (named, drawn)
            pair = next(first, None) or next(second, None)
            if pair is None:
                break
            pool.append(pair)
        return pool

    def sweep(self, count: int, seed: int = 0, constants: tuple[int | float | str | bytes, ...] = ()) -> Iterator[Pair]:
        """Yield many distinct simple pairs: for data sets of rows, one or two for each of many different rows.

        Parameters
        ----------
        count : int
            Number of rows, or of pairs, that are drawn.
        seed : int
            Seed of the Hypothesis run.
        constants : tuple
            Values that rows should also be made of, where the strategy allows them.
        """
        drawn: dict[Any, Any] = {}
        if self.named:
            return
        with with_constants(constants):
            if self.rows is not None and self.vary is not None:
                explore(self.rows, lambda row: drawn.update({fingerprint(row): row}), examples=count, seed=seed)
                found: Iterable[Pair] = itertools.chain.from_iterable(map(self.vary, drawn.values()))
            else:
                explore(self.strategy, lambda pair: drawn.update({_unordered(pair): pair}), examples=count, seed=seed)
                found = drawn.values()
        yield from _distinct(pair for pair in found if fingerprint(pair.data) != fingerprint(pair.neighbour))

    def edits(self, pair: Pair, rng: np.random.Generator, count: int) -> list[Pair]:
        """Return distinct variations of ``pair`` that stay in the search space, for hill climbing.

        Variations of data sets of rows: a shared row removed or repeated, all shared rows made equal, a row replaced by an
        extreme or drawn one, the difference moved to another place. Variations of query answers: an entry moved to an end
        of the range, all shifted, another direction of one move or of all. A space without variations (your own pairs,
        ``map_data``, users, your own containers) gives new pairs of a seeded run, and a list of fixed pairs gives none.

        Parameters
        ----------
        pair : Pair
            A pair of this space.
        rng : numpy.random.Generator
            Source of the random changes.
        count : int
            Largest number of variations.

        Examples
        --------
        >>> import numpy as np
        >>> from hypothesis import strategies as st
        >>> from dpaudit import neighbours
        >>> close = neighbours.add_remove(st.integers(0, 9), max_size=3)
        >>> close.edits(Pair([4, 5], [4]), np.random.default_rng(0), 2)
        [Pair(data=[5], neighbour=[]), Pair(data=[4, 9], neighbour=[4])]
        """
        check_count(count=count)
        check_generator(rng=rng)
        if self.adjacent is not None and not self.adjacent(pair.data, pair.neighbour):
            raise InvalidArgument(f"pair={shorten(tuple(pair))} is not a pair of neighbours={self!r}.")
        found = {_unordered(pair): pair}

        def keep(other: Pair) -> bool:
            if fingerprint(other.data) != fingerprint(other.neighbour):
                found.setdefault(_unordered(other), other)
            return len(found) > count

        if self.edit is None:
            explore(self.strategy, keep, examples=_TRIES * count, seed=int(rng.integers(2**32)))
        else:
            for _ in range(_TRIES * count):
                other = self.edit(pair, rng)
                if other is not None and self.satisfies(*other) and keep(other):
                    break
        return list(found.values())[1:]

    def map_data(self, function: Callable[[Any], Any]) -> Neighbours:
        """Return the same pairs with ``function`` applied to both data sets; the relation is kept.

        The function gets one data set at a time and must be deterministic, so that neighbours stay neighbours. It may
        change how the data are stored (a file, a data frame, a tensor), but not which people are in them.
        """
        if not callable(function):
            raise InvalidArgument(f"function={shorten(function)} must be callable: it turns one data set into another.")

        vary = self.vary

        def mapped(pair: Pair) -> Pair:
            return Pair(function(pair.data), function(pair.neighbour))

        name = getattr(function, "__name__", type(function).__name__)
        return replace(
            self,
            strategy=self.strategy.map(mapped),
            description=f"{self.description}.map_data({name})",
            find_corners=lambda: map(mapped, self.find_corners()),
            adjacent=None,
            edit=None,
            simpler=None,
            vary=None if vary is None else lambda row: map(mapped, vary(row)),
        )

    def satisfies(self, data: Any, neighbour: Any) -> bool:
        """Return True if the two data sets are neighbours, in either order; a data set is its own neighbour."""
        if self.adjacent is None:
            raise InvalidArgument(
                f"neighbours={self!r} cannot decide its relation: it was made by map_data, from pairs of your own, "
                "or with a container of your own. Check the pairs before they are converted."
            )
        return self.adjacent(data, neighbour)


def check_relation(claim: Claim, neighbours: Neighbours) -> None:
    """Raise RelationMismatch if the claim is made for another relation than that of the neighbours."""
    claimed, given = claim.relation, neighbours.relation
    if claimed is None or given is None or claimed is given:
        return
    hint = ""
    if {claimed, given} == {Relation.SUBSTITUTE, Relation.ADD_REMOVE}:
        hint = " Substituting is removing and adding: epsilon under add-remove is up to 2 epsilon under substitute."
    raise RelationMismatch(
        f"claim={claim!r} is made for the relation {claimed.value!r}, but neighbours={neighbours!r} has the relation "
        f"{given.value!r}.{hint} Pass neighbours of the claimed relation, or state the claim for relation={given!r}."
    )


def _unordered(pair: Pair) -> frozenset[Any]:
    return frozenset((fingerprint(pair.data), fingerprint(pair.neighbour)))


def _is_free(place: int) -> bool:
    """Return True if this place of a pool takes a pair of the seeded run even when corners are left."""
    return place >= 8 and place % 4 == 3


def _distinct(pairs: Iterable[Pair]) -> list[Pair]:
    found: dict[frozenset[Any], Pair] = {}
    for pair in pairs:
        found.setdefault(_unordered(pair), pair)
    return list(found.values())
