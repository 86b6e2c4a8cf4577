"""Mechanisms, tools and models of diffprivlib."""

from __future__ import annotations

import functools
import warnings

import diffprivlib
import numpy as np

warnings.simplefilter("ignore")
m, tools, models = diffprivlib.mechanisms, diffprivlib.tools, diffprivlib.models

laplace = m.Laplace(epsilon=1.0, sensitivity=1.0).randomise
laplace_bounded = m.LaplaceBoundedDomain(epsilon=1.0, delta=0.0, sensitivity=1.0, lower=0.0, upper=1.0).randomise
laplace_folded = m.LaplaceFolded(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=1.0).randomise
laplace_truncated = m.LaplaceTruncated(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=1.0).randomise
snapping = m.Snapping(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=1.0).randomise
staircase = m.Staircase(epsilon=1.0, sensitivity=1.0, gamma=0.5).randomise
uniform = m.Uniform(delta=0.2, sensitivity=1.0).randomise
gaussian = m.Gaussian(epsilon=0.9, delta=1e-3, sensitivity=1.0).randomise
gaussian_analytic = m.GaussianAnalytic(epsilon=1.0, delta=1e-3, sensitivity=1.0).randomise
gaussian_discrete = m.GaussianDiscrete(epsilon=1.0, delta=1e-3, sensitivity=1).randomise
geometric = m.Geometric(epsilon=1.0, sensitivity=1).randomise
geometric_folded = m.GeometricFolded(epsilon=1.0, sensitivity=1, lower=0, upper=4).randomise
geometric_truncated = m.GeometricTruncated(epsilon=1.0, sensitivity=1, lower=0, upper=4).randomise
binary = m.Binary(epsilon=1.0, value0="a", value1="b").randomise
laplace_bounded_noise = m.LaplaceBoundedNoise(epsilon=1.0, delta=0.05, sensitivity=1.0).randomise
categorical = m.ExponentialCategorical(
    epsilon=1.0, utility_list=[["a", "b", 1.0], ["a", "c", 2.0], ["b", "c", 2.0]]
).randomise
hierarchical = m.ExponentialHierarchical(epsilon=1.0, hierarchy=[["a", "b"], ["c", "d"]]).randomise


def bingham(covariance):
    """Release a direction near the first eigenvector, as the angle of its line."""
    x, y = m.Bingham(epsilon=1.0, sensitivity=1.0).randomise(np.asarray(covariance, dtype=float))
    return float(np.arctan2(y, x)) % np.pi


def exponential(utility):
    return m.Exponential(epsilon=1.0, sensitivity=1.0, utility=list(utility)).randomise()


def permute_and_flip(utility):
    return m.PermuteAndFlip(epsilon=1.0, sensitivity=1.0, utility=list(utility)).randomise()


def tool(name, rows, **arguments):
    """Release a statistic of a column of numbers between 0 and 1."""
    function = getattr(tools, name)
    accountant = diffprivlib.BudgetAccountant()
    return function(np.asarray(rows, dtype=float), epsilon=1.0, bounds=(0.0, 1.0), accountant=accountant, **arguments)


mean, total, variance, deviation, median = (
    functools.partial(tool, name) for name in ("mean", "sum", "var", "std", "median")
)
mean_of_known, total_of_known, variance_of_known, deviation_of_known = (
    functools.partial(tool, name) for name in ("nanmean", "nansum", "nanvar", "nanstd")
)
quantile = functools.partial(tool, "quantile", quant=0.9)
percentile = functools.partial(tool, "percentile", percent=90.0)


def count_nonzero(rows):
    return int(tools.count_nonzero(np.asarray(rows), epsilon=1.0, accountant=diffprivlib.BudgetAccountant()))


def histogram(rows):
    accountant = diffprivlib.BudgetAccountant()
    counts, _ = tools.histogram(np.asarray(rows), epsilon=1.0, bins=2, range=(0.0, 1.0), accountant=accountant)
    return counts


def histogram_of_pairs(rows):
    """Release counts of pairs of numbers, by histogram2d."""
    table = np.asarray(rows, dtype=float).reshape(-1, 2)
    accountant = diffprivlib.BudgetAccountant()
    ranges = [(0.0, 1.0), (0.0, 1.0)]
    return np.ravel(tools.histogram2d(*table.T, epsilon=1.0, bins=2, range=ranges, accountant=accountant)[0])


def histogram_of_many(rows):
    """Release counts of pairs of numbers, by histogramdd."""
    table = np.asarray(rows, dtype=float).reshape(-1, 2)
    accountant = diffprivlib.BudgetAccountant()
    ranges = [(0.0, 1.0), (0.0, 1.0)]
    return np.ravel(tools.histogramdd(table, epsilon=1.0, bins=2, range=ranges, accountant=accountant)[0])


def model(make, attribute, rows):
    table = np.asarray(rows, dtype=float)
    return np.ravel(getattr(make(accountant=diffprivlib.BudgetAccountant()).fit(table), attribute))


standard_scaler = functools.partial(
    model, functools.partial(models.StandardScaler, epsilon=1.0, bounds=(0.0, 1.0)), "mean_"
)
k_means = functools.partial(
    model, functools.partial(models.KMeans, n_clusters=1, epsilon=1.0, bounds=(0.0, 1.0)), "cluster_centers_"
)
