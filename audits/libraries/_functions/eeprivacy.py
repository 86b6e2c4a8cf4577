"""Operations of eeprivacy with bounds 0 and 1."""

from __future__ import annotations

import functools

import numpy as np
from eeprivacy import operations

UNIT = {"lower_bound": 0.0, "upper_bound": 1.0}
BINS = [0.0, 0.5, 1.0]
OPTIONS = [*np.linspace(0.1, 0.4, 8), 0.6]


def total(rows):
    return float(operations.PrivateClampedSum(**UNIT).execute(values=np.asarray(rows, dtype=float), epsilon=1.0))


def mean(rows):
    return float(operations.PrivateClampedMean(**UNIT).execute(values=np.asarray(rows, dtype=float), epsilon=1.0))


def vector_mean(kind, arguments, rows):
    """Release the mean of vectors, whose number is public."""
    rows = np.asarray(rows, dtype=float)
    return kind(**UNIT, k=rows.shape[1], N=len(rows)).execute(vectors=rows, **arguments)


vector_mean_gaussian = functools.partial(
    vector_mean, operations.PrivateVectorClampedMeanGaussian, {"epsilon": 0.9, "delta": 1e-3}
)
vector_mean_laplace = functools.partial(
    vector_mean, operations.PrivateVectorClampedMeanLaplace, {"epsilon": 1.0, "delta": 0.0}
)


def histogram(rows):
    return operations.PrivateHistogram(bins=BINS).execute(values=np.asarray(rows, dtype=float), epsilon=1.0)


def median(rows):
    made = operations.PrivateQuantile(options=OPTIONS)
    return float(made.execute(values=np.asarray(rows, dtype=float), epsilon=1.0, quantile=0.5))
