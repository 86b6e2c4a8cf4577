"""Gaussian mixtures in R^d (notes, Pufferfish), and the law of a linear query on such data.

A mixture of Gaussians in R^d is again one along every direction: for weights w_i, means mu_i and covariances Sigma_i the number
c'X is the mixture of N(c'mu_i, c'Sigma_i c). So the one-dimensional Pufferfish mechanisms apply to every linear query.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from dpaudit._util.validation import finite_array
from dpaudit.errors import InvalidArgument

from .._common import Floats, check_draw
from .wasserstein import GaussianMixture


@dataclass(frozen=True, slots=True, eq=False)
class VectorMixture:
    """``sum_i weights[i] N(means[i], covariances[i])`` on R^d; weights are zero or positive and sum to one.

    >>> law = VectorMixture([0.3, 0.7], [[0.0, 0.0], [1.0, 2.0]], [np.eye(2), [[1.0, 0.5], [0.5, 2.0]]])
    >>> law.along([1.0, 1.0])
    GaussianMixture(weights=(0.3, 0.7), means=(0.0, 3.0), stds=(1.4142135623730951, 2.0))
    """

    weights: Floats
    means: Floats
    covariances: Floats

    def __init__(self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> None:
        w = finite_array("weights", weights, ndim=1, empty=False)
        m = finite_array("means", means, ndim=2, empty=False)
        c = finite_array("covariances", covariances, ndim=3, empty=False)
        if not (w.size == m.shape[0] == c.shape[0] and c.shape[1:] == (m.shape[1], m.shape[1])):
            raise InvalidArgument(
                f"weights {w.shape}, means {m.shape} and covariances {c.shape} must have shapes (M,), (M, d) and (M, d, d)."
            )
        if (w < 0.0).any() or abs(float(w.sum()) - 1.0) > 1e-9:
            raise InvalidArgument(f"weights={w.tolist()!r} must be zero or positive and sum to 1 (tolerance 1e-9).")
        if not np.allclose(c, np.swapaxes(c, 1, 2)) or (np.linalg.eigvalsh(c) <= 0.0).any():
            raise InvalidArgument("covariances must be symmetric and positive definite.")
        for name, values in (("weights", w), ("means", m), ("covariances", c)):
            object.__setattr__(self, name, values)

    @property
    def dimension(self) -> int:
        """Number d of coordinates."""
        return int(self.means.shape[1])

    def log_density(self, points: ArrayLike) -> Floats:
        """Log of p(x) for each row."""
        x = finite_array("points", points, ndim=2)
        parts = []
        for mean, covariance in zip(self.means, self.covariances, strict=True):
            factor = np.linalg.cholesky(covariance)
            scaled = np.linalg.solve(factor, (x - mean).T)
            log_root = float(np.log(np.diag(factor)).sum())
            parts.append(-0.5 * (scaled**2).sum(axis=0) - log_root - 0.5 * self.dimension * math.log(2.0 * math.pi))
        with np.errstate(divide="ignore"):  # a component of weight zero
            return np.asarray(logsumexp(np.array(parts) + np.log(self.weights)[:, None], axis=0))

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """``size`` independent draws, one a row."""
        check_draw(size, rng)
        label = rng.choice(self.weights.size, size, p=self.weights)
        factors = np.linalg.cholesky(self.covariances)
        noise = rng.standard_normal((size, self.dimension))
        return np.asarray(self.means[label] + np.einsum("nij,nj->ni", factors[label], noise))

    def along(self, direction: ArrayLike) -> GaussianMixture:
        """Law of the linear query ``direction @ x``, for :class:`Secret` and the mechanisms of ``pufferfish``."""
        c = finite_array("direction", direction, ndim=1)
        if c.size != self.dimension or not c.any():
            raise InvalidArgument(
                f"direction={c.tolist()!r} must be a vector of {self.dimension} numbers, not all zero."
            )
        spreads = np.sqrt(np.einsum("i,kij,j->k", c, self.covariances, c))
        return GaussianMixture(tuple(self.weights.tolist()), tuple((self.means @ c).tolist()), tuple(spreads.tolist()))
