"""Python source of learned scores: functions of one output that give the same score, to the last bit.

The source calls ``numbers(output)`` and ``code(output)``, which ``dpaudit.replay`` has.
"""

from __future__ import annotations

from collections.abc import Mapping

Step = tuple[float, float, list[int], list[float], dict[float, float], float]


def linear_code(weights: Mapping[int, float], offset: float) -> str:
    """Return a function ``score(output)``: the weighted sum of the coordinates, added in the order of ``weights``."""
    return f"""\
WEIGHTS = {dict(weights)!r}


def score(output):
    values = [min(max(x, -1e150), 1e150) if x == x else 0.0 for x in numbers(output)]
    total = {-offset!r}
    for place, weight in WEIGHTS.items():
        total += values[place] * weight if place < len(values) else 0.0
    return total
"""


def naive_bayes_code(
    tables: Mapping[int, Step],
    structures: Mapping[str, float],
    other: float,
    *,
    bins: int,
    differences: bool,
    values: str = "numbers(output)",
    structure: str = "code(output)",
) -> str:
    """Return a function ``score(output)``: the sum of a table value for each coordinate, and one for the structure.

    Parameters
    ----------
    tables : mapping
        By coordinate: where bins begin, how many there are to a unit, the bins at which the value changes, the values, the
        values at exact numbers, and the value at NaN.
    structures : mapping
        By structure code: its value.
    other : float
        The value of any other structure.
    bins : int
        The number of bins.
    differences : bool
        The tables are of differences of successive coordinates.
    values : str
        An expression for the coordinates of the output.
    structure : str
        An expression for its structure code.
    """
    difference = "    values = [b - a for a, b in zip([0.0, *values], values)]\n" if differences else ""
    return f"""\
import bisect

# By coordinate: where bins begin and how many there are to a unit, the bins at which heights change, the heights,
# heights of exact values, and of NaN.
TABLES = {dict(tables)!r}
STRUCTURES = {dict(structures)!r}


def score(output):
    values = {values}
{difference}    total = STRUCTURES.get({structure}, {other!r})
    for place, (low, per_unit, changes, heights, exact, at_nan) in TABLES.items():
        x = values[place] if place < len(values) else float('nan')
        bin = 0 if x != x else int(min(max((x - low) * per_unit, 0.0), {bins - 1}))
        total += at_nan if x != x else exact.get(x, heights[bisect.bisect_right(changes, bin)])
    return total
"""
