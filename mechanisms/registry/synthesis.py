"""Registry entries of synthesis: a sound one, and five broken ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from dpaudit import neighbours
from dpaudit.neighbours import Neighbours

from ..broken import synthesis as broken
from ..synthesis import MarginalSynthesis
from . import Entry, Truth, entry

COLUMNS = ("a", "b"), ("x", "y", "z")


def tables() -> Neighbours:
    """Up to four rows, one of them added or removed."""
    return neighbours.add_remove(st.tuples(*map(st.sampled_from, COLUMNS)), max_size=4)


def entries() -> list[Entry]:
    """Return the sound synthesis, then the broken ones."""

    def made(name: str, make: Callable[[], Any], truth: Truth, bug: str | None = None) -> Entry:
        source = "noisy marginals; the bugs are those of released synthesisers"
        return entry(f"synthesis-{name}", make, tables, truth, source, bug, samples=400_000)

    right = functools.partial(MarginalSynthesis, 1.0, COLUMNS)
    scaled = functools.partial(broken.ScaleDividedByRows, right(rows=4))
    return [
        made("marginals", right, (0.0, 1.0)),
        made(
            "categories-from-data",
            lambda: broken.CategoriesFromData(right()),
            math.inf,
            "Only categories that the data have are drawn.",
        ),
        made(
            "bounds-from-data",
            lambda: broken.BoundsFromData(right()),
            math.inf,
            "The smallest and largest category of every column are released as they are.",
        ),
        made("fixed-seed", lambda: broken.FixedSeed(right()), math.inf, "A default seed makes the noise constant."),
        made(
            "scale-divided-by-rows",
            scaled,
            scaled().bracket([], [("a", "x")]),
            "The noise on counts is that of shares: divided by the number of rows.",
        ),
        made(
            "structure-without-budget",
            lambda: broken.StructureWithoutBudget(right()),
            math.inf,
            "The column to be modelled is chosen by its exact counts.",
        ),
    ]
