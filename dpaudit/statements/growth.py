"""Growth of the cost of the printed algorithms, by counting their elementary operations, with fitted exponents.

Counts do not depend on the machine, so that the verdict on a complexity claim is the same everywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np


def printed_histogram_comparisons(n: int, k: int, *, cleared: bool = True) -> int:
    """Count the comparisons ``element < i (b - a)/steps`` of the printed HistogramMethod, run literally on its worst case.

    All records equal b, so that no query exceeds its threshold (noise set to zero) and every query of every list is evaluated.
    ``cleared=False`` keeps the printed bug: the list of queries grows from decile to decile.

    >>> printed_histogram_comparisons(10, 4), printed_histogram_comparisons(10, 4, cleared=False)
    (360, 1800)
    """
    data = [1.0] * n
    comparisons = 0

    def count_below(point: float) -> int:
        nonlocal comparisons
        found = 0
        for element in data:
            comparisons += 1
            found += element < point
        return found

    queries: list[Callable[[], int]] = []
    for decile in range(1, 10):
        if cleared:
            queries = []
        queries += [functools.partial(count_below, i / k) for i in range(1, k + 1)]
        for query in queries:
            if query() > decile * n / 10:
                break
    return comparisons


def sorting_comparisons(n: int, seed: int = 0) -> int:
    """Count the comparisons of a merge sort of n random numbers, the only step of inverse sensitivity that is not linear.

    >>> sorting_comparisons(1), sorting_comparisons(2)
    (0, 1)
    """
    comparisons = 0

    def merge_sort(values: list[float]) -> list[float]:
        nonlocal comparisons
        if len(values) <= 1:
            return values
        half = len(values) // 2
        left, right = merge_sort(values[:half]), merge_sort(values[half:])
        merged: list[float] = []
        i = j = 0
        while i < len(left) and j < len(right):
            comparisons += 1
            if left[i] <= right[j]:
                merged.append(left[i])
                i += 1
            else:
                merged.append(right[j])
                j += 1
        return merged + left[i:] + right[j:]

    merge_sort(np.random.default_rng(seed).random(n).tolist())
    return comparisons


def fitted_exponents(points: Sequence[tuple[float, ...]], costs: Sequence[float]) -> tuple[float, ...]:
    """Return the exponents of the power law that fits the costs best in logarithms, one for each parameter.

    >>> [round(e, 6) for e in fitted_exponents([(1, 1), (2, 1), (1, 3), (4, 9)], [5, 10, 15, 180])]
    [1.0, 1.0]
    """
    logs = np.log(np.array(points, dtype=np.float64))
    design = np.column_stack([np.ones(len(points)), logs])
    solution, *_ = np.linalg.lstsq(design, np.log(np.array(costs, dtype=np.float64)), rcond=None)
    return tuple(float(exponent) for exponent in solution[1:])
