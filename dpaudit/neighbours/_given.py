"""Pairs that the user provides: fixed pairs, strategies of pairs, and pairs of secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from dpaudit._util.hypothesis_bridge import smallest
from dpaudit._util.validation import check_count, check_generator, shorten
from dpaudit._util.values import rows_of
from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument, RelationMismatch
from dpaudit.neighbours._core import Neighbours, Pair
from dpaudit.neighbours._tables import one_added, one_replaced


def fixed(pairs: Iterable[tuple[Any, Any]], *, relation: Relation | None = None) -> Neighbours:
    """Exactly these pairs, in this order.

    The pairs are checked if the relation is substitute or add-remove and the data are lists, arrays or data frames.

    >>> fixed([([0], [1]), ([], [1])]).corners()
    [Pair(data=[0], neighbour=[1]), Pair(data=[], neighbour=[1])]
    >>> fixed([([0], [1, 2])], relation=Relation.ADD_REMOVE)
    Traceback (most recent call last):
        ...
    dpaudit.errors.RelationMismatch: pairs[0]=([0], [1, 2]) are not neighbours by the relation 'add-remove'. ...
    """
    _check_relation(relation)
    known = [_as_pair(pair, f"pairs[{place}]") for place, pair in enumerate(_iterable(pairs))]
    if not known:
        raise InvalidArgument("pairs=[] is empty; at least one pair (data, neighbour) is needed.")
    rule = _rule(relation)
    for place, pair in enumerate(known):
        if rule is not None and not rule(pair.data, pair.neighbour):
            raise RelationMismatch(
                f"pairs[{place}]={shorten(tuple(pair))} are not neighbours by the relation {relation.value!r}. "  # type: ignore[union-attr]
                "Correct the pair, or leave the relation out."
            )
    return Neighbours(
        st.sampled_from(known),
        relation,
        f"fixed({len(known)} pair{'s' * (len(known) != 1)})",
        lambda: known,
        rule,
        _none,
        named=True,
    )


def pairs(strategy: SearchStrategy[Any], *, relation: Relation | None = None) -> Neighbours:
    """Pairs of your own strategy, which yields ``(data, neighbour)``.

    >>> from hypothesis import strategies as st
    >>> pairs(st.integers(0, 5).map(lambda n: (n, n + 1))).corners()
    [Pair(data=0, neighbour=1)]
    """
    _check_relation(relation)
    if not isinstance(strategy, SearchStrategy):
        raise InvalidArgument(
            f"strategy={shorten(strategy)} must be a Hypothesis strategy of pairs; for a list use neighbours.fixed."
        )
    mapped = strategy.map(lambda pair: _as_pair(pair, "pair"))

    def corners() -> Iterator[Pair]:
        minimal = smallest(mapped, lambda _: True, examples=100, seed=0)
        if minimal is not None:
            yield minimal

    return Neighbours(mapped, relation, f"pairs({strategy!r})", corners, _rule(relation))


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret of a Pufferfish pair, with the distribution of the data given the secret.

    The data are drawn again for every release.

    Parameters
    ----------
    name : str
        The secret, in words.
    draw : callable
        ``draw(rng)`` returns one data set drawn from this distribution.
    draw_many : callable, optional
        ``draw_many(size, rng)`` returns ``size`` of them at once, in a list or as the rows of an array.

    Examples
    --------
    >>> import numpy as np
    >>> ill = Secret("Alice is ill", lambda rng: [1, int(rng.random() < 0.3)])
    >>> len(ill.sample(3, np.random.default_rng(0)))
    3
    """

    name: str
    draw: Callable[[np.random.Generator], Any] = field(repr=False)
    draw_many: Callable[[int, np.random.Generator], Sequence[Any] | NDArray[Any]] | None = field(
        default=None, repr=False
    )

    def __post_init__(self) -> None:
        if not callable(self.draw) or not (self.draw_many is None or callable(self.draw_many)):
            raise InvalidArgument(
                f"draw={shorten(self.draw)} must be a function of rng, and draw_many={shorten(self.draw_many)} a "
                "function of size and rng or None."
            )

    def sample(self, size: int, rng: np.random.Generator) -> Sequence[Any] | NDArray[Any]:
        """Return ``size`` data sets, drawn independently given the secret."""
        check_count(minimum=0, size=size)
        check_generator(rng=rng)
        if self.draw_many is None:
            return [self.draw(rng) for _ in range(size)]
        drawn = self.draw_many(size, rng)
        if len(drawn) != size:
            raise InvalidArgument(f"draw_many of {self!r} returned {len(drawn)} data sets for size={size}.")
        return drawn


def secrets(pairs: Iterable[tuple[Secret, Secret]]) -> Neighbours:
    """Pairs of secrets that the outputs must not distinguish (Pufferfish; Kifer and Machanavajjhala 2014).

    >>> ill, well = Secret("ill", lambda rng: [1]), Secret("well", lambda rng: [0])
    >>> secrets([(ill, well)]).relation
    Relation.SECRETS
    """
    known = [_as_pair(pair, f"pairs[{place}]") for place, pair in enumerate(_iterable(pairs))]
    if not known:
        raise InvalidArgument("pairs=[] is empty; at least one pair of secrets is needed.")
    for place, pair in enumerate(known):
        if not all(isinstance(side, Secret) for side in pair):
            raise InvalidArgument(
                f"pairs[{place}]={shorten(tuple(pair))} must be two neighbours.Secret(name, draw) objects."
            )
    names = ", ".join(f"{pair.data.name!r} against {pair.neighbour.name!r}" for pair in known)
    return Neighbours(
        st.sampled_from(known),
        Relation.SECRETS,
        f"secrets({names})",
        lambda: known,
        lambda first, second: any({first, second} == set(pair) or first == second for pair in known),
        _none,
        named=True,
    )


def _none(pair: Pair, rng: np.random.Generator) -> None:
    """Return no variation: fixed pairs have none."""


def _rule(relation: Relation | None) -> Callable[[Any, Any], bool] | None:
    rule = {Relation.SUBSTITUTE: one_replaced, Relation.ADD_REMOVE: one_added}.get(relation) if relation else None
    if rule is None:
        return None

    def adjacent(data: Any, neighbour: Any) -> bool:
        try:
            first, second = rows_of(data), rows_of(neighbour)
        except TypeError:  # not a table of rows, so it cannot be checked
            return True
        return rule(first, second)

    return adjacent


def _as_pair(pair: Any, name: str) -> Pair:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidArgument(f"{name}={shorten(pair)} must be a pair (data, neighbour).")
    return Pair(*pair)


def _iterable(pairs: Any) -> Iterable[Any]:
    if not isinstance(pairs, Iterable):
        raise InvalidArgument(f"pairs={shorten(pairs)} must be a list of pairs (data, neighbour).")
    return pairs


def _check_relation(relation: Any) -> None:
    if relation is not None and not isinstance(relation, Relation):
        known = ", ".join(map(repr, Relation))
        raise InvalidArgument(f"relation={relation!r} must be None or one of {known}.")


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def as_neighbours(neighbours: Any) -> Neighbours:
    """Return neighbours unchanged, and a list of pairs as neighbours made by :func:`fixed`."""
    if isinstance(neighbours, Neighbours):
        return neighbours
    if isinstance(neighbours, tuple) and len(neighbours) == 2 and not all(map(_is_pair, neighbours)):
        raise InvalidArgument(
            f"neighbours={shorten(neighbours)} must be a list of pairs; did you mean [(data, neighbour)]?"
        )
    if isinstance(neighbours, list | tuple):
        return fixed(neighbours)
    raise InvalidArgument(
        f"neighbours={shorten(neighbours)} must come from dpaudit.neighbours, or be a list of pairs (data, neighbour)."
    )
