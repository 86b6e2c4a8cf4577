"""Algorithms of PyDP, which wraps Google's C++ library."""

from __future__ import annotations

from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count, Max, Median


def count(rows):
    return Count(epsilon=1.0, dtype="int").quick_result(list(rows))


def bounded_sum(rows):
    return BoundedSum(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float").quick_result(list(rows))


def bounded_mean(rows):
    return BoundedMean(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float").quick_result(list(rows))


def median(rows):
    return Median(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float").quick_result(list(rows))


def maximum(rows):
    return Max(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float").quick_result(list(rows))
