"""The truth table of a column: which published labels contain which original values.

It equals :func:`~dpaudit.anonymity.covers` for every pair. Ranges of numbers, the most frequent labels, are found by bisection.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.anonymity.tables.cells import MISSING, as_number
from dpaudit.anonymity.tables.hierarchy import Hierarchy
from dpaudit.anonymity.tables.regions import covers, number_range


def containment(labels: Sequence[Any], values: Sequence[Any], hierarchy: Hierarchy | None = None) -> NDArray[np.bool_]:
    """Return a table of truth values: does the label (row) contain the value (column)?

    Parameters
    ----------
    labels, values : sequence
        Different published cells, and different original ones.
    hierarchy : Hierarchy, optional
        The hierarchy of the column.

    Examples
    --------
    >>> containment(["20-29", "3*", "*"], [23, 30, "x"]).astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
    """
    inside = np.zeros((len(labels), len(values)), dtype=bool)
    numbers = [None if value is MISSING else as_number(value) for value in values]
    sequence = sorted(
        (i for i in range(len(values)) if numbers[i] is not None), key=lambda i: numbers[i] or Fraction(0)
    )
    places = [numbers[i] or Fraction(0) for i in sequence]
    order = np.array(sequence, dtype=np.intp)
    # A range contains no value without a number, unless the value is the text of the range itself.
    others = [i for i, number in enumerate(numbers) if number is None]
    for row, label in enumerate(labels):
        ends = number_range(label) if hierarchy is None else None
        if ends is None:
            inside[row] = [label == value or covers(label, value, hierarchy) for value in values]
            continue
        low, high, with_low, with_high = ends
        start = 0 if low is None else (bisect.bisect_left if with_low else bisect.bisect_right)(places, low)
        stop = len(places) if high is None else (bisect.bisect_right if with_high else bisect.bisect_left)(places, high)
        inside[row, order[start:stop]] = True
        inside[row, others] = [covers(label, values[i]) for i in others]
    return inside
