"""Measurements of Tumult Core that need no Spark session."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
from tmlt.core.domains.numpy_domains import NumpyFloatDomain, NumpyIntegerDomain
from tmlt.core.domains.pandas_domains import PandasSeriesDomain
from tmlt.core.measurements import noise_mechanisms
from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
from tmlt.core.measures import PureDP

geometric_noise = noise_mechanisms.AddGeometricNoise(1)
discrete_gaussian_noise = noise_mechanisms.AddDiscreteGaussianNoise(1)
laplace_noise = noise_mechanisms.AddLaplaceNoise(NumpyFloatDomain(), 1)
gaussian_noise = noise_mechanisms.AddGaussianNoise(NumpyFloatDomain(), 1)


def noisy(measurement, kind, answer):
    return measurement(kind(answer))


geometric = functools.partial(noisy, geometric_noise, np.int64)
discrete_gaussian = functools.partial(noisy, discrete_gaussian_noise, np.int64)
laplace = functools.partial(noisy, laplace_noise, np.float64)
gaussian = functools.partial(noisy, gaussian_noise, np.float64)


def quantile_between(kind, lower, upper, rows):
    domain = PandasSeriesDomain(NumpyIntegerDomain() if kind is int else NumpyFloatDomain())
    measurement = NoisyQuantile(domain, PureDP(), 0.5, lower, upper, 1)
    return float(measurement(pd.Series(list(rows), dtype="int64" if kind is int else "float64")))


quantile = functools.partial(quantile_between, float, 0.0, 1.0)
quantile_of_integers = functools.partial(quantile_between, int, 0, 10)
