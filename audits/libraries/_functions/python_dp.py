"""Algorithms of PyDP, which wraps Google's C++ library."""

from __future__ import annotations

import functools

from pydp.algorithms import laplacian, numerical_mechanisms, partition_selection


def between(name, bounds, rows, kind="float", **arguments):
    """Release a statistic of rows that are clipped to the bounds."""
    lower, upper = bounds
    make = getattr(laplacian, name)
    return make(epsilon=1.0, lower_bound=lower, upper_bound=upper, dtype=kind, **arguments).quick_result(list(rows))


UNIT, AWAY, WHOLE = (0.0, 1.0), (5.0, 6.0), (-10, 10)
bounded_sum, bounded_mean, variance, deviation, median, maximum, minimum = (
    functools.partial(between, name, UNIT)
    for name in ("BoundedSum", "BoundedMean", "BoundedVariance", "BoundedStandardDeviation", "Median", "Max", "Min")
)
sum_away, mean_away = (functools.partial(between, name, AWAY) for name in ("BoundedSum", "BoundedMean"))
sum_of_integers, mean_of_integers = (
    functools.partial(between, name, WHOLE, kind="int") for name in ("BoundedSum", "BoundedMean")
)
percentile = functools.partial(between, "Percentile", UNIT, percentile=0.9)


def count(rows):
    return laplacian.Count(epsilon=1.0, dtype="int").quick_result(list(rows))


def laplace(answer):
    return numerical_mechanisms.LaplaceMechanism(1.0, 1.0).add_noise(answer)


def gaussian(answer):
    return numerical_mechanisms.GaussianMechanism(1.0, 1e-3, 1.0).add_noise(answer)


def kept(strategy, people):
    """Release whether a partition with so many people is kept."""
    make = getattr(partition_selection, f"create_{strategy}_partition_strategy")
    return make(1.0, 0.1, 1).should_keep(people)


kept_geometric, kept_laplace, kept_gaussian = (
    functools.partial(kept, strategy) for strategy in ("truncated_geometric", "laplace", "gaussian")
)
