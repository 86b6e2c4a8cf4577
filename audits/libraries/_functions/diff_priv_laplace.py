"""Statistics of diff-priv-laplace-python, which takes no bounds."""

from __future__ import annotations

import functools

import numpy as np
from diffpriv_laplace import DiffPrivStatistics


def statistic(name, rows):
    return float(getattr(DiffPrivStatistics, name)(np.asarray(rows, dtype=float), 1.0))


count, proportion, smallest, largest, median, total, mean, variance = (
    functools.partial(statistic, name)
    for name in ("count", "proportion", "min", "max", "median", "sum", "mean", "variance")
)
