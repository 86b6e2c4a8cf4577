"""Closed forms for Gaussian data behind Gaussian noise: Gaussian-DP mu, Renyi divergence, and two averages."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import check_finite, check_positive, finite_array
from dpaudit.errors import InvalidArgument


def covariance_mu(mean: ArrayLike, other_mean: ArrayLike, covariance: ArrayLike, noise_std: float) -> float:
    """Exact Gaussian-DP mu of two d-dimensional Gaussians of equal covariance under noise ``N(0, noise_std^2 I)``.

    ``sqrt(d' (Sigma + noise_std^2 I)^{-1} d)`` with ``d`` the difference of the means.

    Parameters
    ----------
    mean, other_mean : array_like
        Means of the two laws.
    covariance : array_like
        Covariance matrix of both.
    noise_std : float
        Standard deviation of the noise on each coordinate.

    Examples
    --------
    >>> covariance_mu([0.0, 0.0], [3.0, 0.0], [[5.0, 0.0], [0.0, 1.0]], 2.0)
    1.0
    """
    first, second = finite_array("mean", mean, ndim=1, empty=False), finite_array("other_mean", other_mean, ndim=1)
    matrix = finite_array("covariance", covariance, ndim=2)
    check_positive(noise_std=noise_std)
    if matrix.shape != (first.size, first.size) or second.size != first.size:
        raise InvalidArgument(
            f"mean, other_mean, covariance have shapes {first.shape}, {second.shape}, {matrix.shape}; all must agree."
        )
    eigenvalues = np.linalg.eigvalsh((matrix + matrix.T) / 2.0)
    if not np.allclose(matrix, matrix.T) or eigenvalues[0] < -1e-12 * max(1.0, abs(float(eigenvalues[-1]))):
        raise InvalidArgument(
            f"covariance={matrix.tolist()!r} must be symmetric and positive semi-definite; smallest eigenvalue "
            f"{float(eigenvalues[0]):.3g}."
        )
    difference = first - second
    return math.sqrt(float(difference @ np.linalg.solve(matrix + noise_std**2 * np.eye(first.size), difference)))


def gaussian_renyi(*, mean: float, variance: float, other_mean: float, other_variance: float, order: float) -> float:
    """Renyi divergence of N(mean, variance) from N(other_mean, other_variance); infinite where the integral diverges.

    With ``v_a = (1 - a) v + a v'``: ``a (m - m')^2 / (2 v_a) + log(v_a / (v^(1-a) v'^a)) / (2 (1 - a))``.

    Parameters
    ----------
    mean, variance : float
        Mean and variance of the first law.
    other_mean, other_variance : float
        Mean and variance of the second law.
    order : float
        Order of the divergence, positive and not 1.

    Examples
    --------
    >>> round(gaussian_renyi(mean=0.0, variance=5.0, other_mean=1.0, other_variance=6.25, order=2.0), 10)
    0.1537443306
    """
    check_finite(mean=mean, other_mean=other_mean)
    check_positive(variance=variance, other_variance=other_variance, order=order)
    if order == 1.0:
        raise InvalidArgument(
            "order=1.0 is the Kullback-Leibler divergence, the limit of this formula; choose another order."
        )
    mixed = (1.0 - order) * variance + order * other_variance
    if mixed <= 0.0:
        return math.inf
    log_ratio = math.log(mixed) - (1.0 - order) * math.log(variance) - order * math.log(other_variance)
    return order * (mean - other_mean) ** 2 / (2.0 * mixed) + log_ratio / (2.0 * (1.0 - order))


def masking_kl(*, variance: float, noise_variance: float) -> float:
    """KL(X || X + N) for Gaussian X and noise: ``(s/(s+t) - 1 + log(1 + t/s)) / 2``. An average: it bounds no epsilon.

    >>> round(masking_kl(variance=1.0, noise_variance=4.0), 10)
    0.4047189562
    """
    check_positive(variance=variance, noise_variance=noise_variance)
    return 0.5 * (math.log1p(noise_variance / variance) - noise_variance / (variance + noise_variance))


def masking_information(*, variance: float, noise_variance: float) -> float:
    """Mutual information of X and X + N for Gaussian X and noise: ``log(1 + s/t) / 2``. This is an average too.

    >>> round(masking_information(variance=1.0, noise_variance=4.0), 10)
    0.1115717757
    """
    check_positive(variance=variance, noise_variance=noise_variance)
    return 0.5 * math.log1p(variance / noise_variance)
