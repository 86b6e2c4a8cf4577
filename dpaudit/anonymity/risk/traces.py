"""Unicity of traces: how often a few points of a person's trace fit no other person (de Montjoye et al. 2013).

A trace is the set of points of one person: places with times, purchases, pages. Traces are unique even where every single point
is shared by many people, so k-anonymity of the points says little about them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit._util.intervals import clopper_pearson
from dpaudit._util.validation import check_count, check_generator
from dpaudit.anonymity.tables.table import Names, Table
from dpaudit.errors import InvalidArgument

_SUBSETS = 2_000_000
"""Largest number of sets of points that are counted one by one."""
_MISSES = 1e-3
"""Probability that the interval of a sampled unicity misses the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unicity:
    """The result of :func:`unicity`.

    ``share`` is the probability that ``points`` random points of a random person fit no other person. It is exact if ``draws`` is
    None; otherwise it was sampled, and lies in [``lower``, ``upper``] with confidence 99.9 %.
    """

    points: int
    people: int
    share: float
    lower: float
    upper: float
    draws: int | None = None

    def __str__(self) -> str:
        sampled = "" if self.draws is None else f" ({self.lower:.4g} to {self.upper:.4g}, {self.draws} draws)"
        noun = "point identifies" if self.points == 1 else "points identify"
        return f"{self.points} {noun} {100 * self.share:.4g} % of {self.people} people{sampled}"


def unicity(
    frame: pd.DataFrame,
    *,
    person: Hashable,
    point: Names,
    points: int = 4,
    draws: int | None = None,
    rng: np.random.Generator | None = None,
) -> Unicity:
    """Return the share of people whom some random points of their trace single out.

    Parameters
    ----------
    frame : pandas.DataFrame
        A row for each point of each person; repeated rows count once.
    person
        The name of the column that says whose point it is.
    point
        The names of the columns that make a point, such as antenna and hour.
    points : int
        How many points the observer knows; all points of a person who has fewer.
    draws : int, optional
        Number of random people and points to draw, instead of counting all; needed if there are too many to count.
    rng : numpy.random.Generator, optional
        The source of the draws.

    Examples
    --------
    >>> visits = pd.DataFrame({"who": list("aaabbbcc"), "where": [1, 2, 3, 1, 2, 4, 1, 2]})
    >>> print(unicity(visits, person="who", point="where", points=1))
    1 point identifies 22.22 % of 3 people
    >>> print(unicity(visits, person="who", point="where", points=2))
    2 points identify 44.44 % of 3 people
    """
    check_count(points=points)
    traces, people_of = _traces(frame, person, point)
    if draws is not None:
        check_count(draws=draws)
        check_generator(rng=rng)
        assert rng is not None
        hits = 0
        for index in rng.integers(len(traces), size=draws).tolist():
            trace = traces[index]
            known = rng.choice(len(trace), size=min(points, len(trace)), replace=False)
            hits += _unique([people_of[trace[place]] for place in known.tolist()])
        lower, upper = clopper_pearson(hits, draws, alpha=_MISSES)
        return Unicity(points=points, people=len(traces), share=hits / draws, lower=lower, upper=upper, draws=draws)
    subsets = sum(math.comb(len(trace), min(points, len(trace))) for trace in traces)
    if subsets > _SUBSETS:
        raise InvalidArgument(
            f"points={points!r}: the traces have {subsets} sets of so many points; sample them with draws=100_000 and "
            "rng=numpy.random.default_rng(seed)."
        )
    shares = []
    for trace in traces:
        known_sets = list(itertools.combinations(trace, min(points, len(trace))))
        shares.append(sum(_unique([people_of[place] for place in known]) for known in known_sets) / len(known_sets))
    share = math.fsum(shares) / len(traces)
    return Unicity(points=points, people=len(traces), share=share, lower=share, upper=share)


def _traces(frame: pd.DataFrame, person: Hashable, point: Names) -> tuple[list[list[int]], list[set[int]]]:
    """Return the points of each person, and the people who have each point."""
    table = Table.from_frame(frame, quasi_identifiers=point, sensitive=[person])
    owner = table.attribute(person)
    visits = np.unique(np.stack([owner.codes, table.classes.of_record]), axis=1)
    traces: list[list[int]] = [[] for _ in owner.values]
    people_of: list[set[int]] = [set() for _ in range(len(table.classes))]
    for who, where in visits.T.tolist():
        traces[who].append(where)
        people_of[where].add(who)
    return traces, people_of


def _unique(fitting: Sequence[set[int]]) -> bool:
    """Return True if exactly one person has all points; ``fitting`` are the people who have each of them."""
    first, *others = sorted(fitting, key=len)
    return len(first.intersection(*others)) == 1
