r"""Weights with which a public data set replaces a private one (after Ji and Elkan 2013; notes).

``public`` is E, ``data`` is the private D; one weight per record of E is published, and anyone estimates a mean over
D by ``(1/N_E) sum_E b(x) w(x)``. That is right in expectation iff ``w = p_D / p_E`` on the support (docs/theory.md R27).

The idea is read from the paper's abstract and the notes. Algorithm 1 and its scaling are reconstructed; the original
text was not available. What is implemented is self-consistent and proved here:

1. ``beta(D)`` minimises ``J(b) = mean_D log(1 + exp(-b.x)) + mean_E log(1 + exp(b.x)) + (lambda/2) |b|^2``.
2. Features lie in [0, 1]^d and N_D is public. Replacing ``x`` by ``x'`` in D moves the gradient by
   ``(c x - c' x') / N_D`` with ``c, c'`` in (0, 1), so by at most ``sqrt(d) / N_D`` in l2; J is lambda-strongly convex,
   so beta moves by at most ``S = sqrt(d) / (N_D lambda)``. An optimiser that stops at a gradient
   of norm ``tol`` adds ``2 tol / lambda``.
3. ``beta~ = beta + z`` with density of ``z`` proportional to ``exp(-(epsilon/S) |z|)``: the ratio for two neighbours
   is at most ``exp(epsilon)``. Weights ``N_E exp(beta~.x) / sum_E exp(beta~.x)`` only post-process it.

So it is epsilon-DP under substitution, for an E that does not depend on D. Adding or removing a record is not covered.
The regularisation biases the estimates even without noise.
"""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, gammaln, kve, logsumexp

from dpaudit._util.validation import array_within, check_count, check_non_negative, check_positive, finite_array
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument, MechanismError

from ._common import Floats, check_draw, chunks


def fit_coefficients(
    private: ArrayLike, public: ArrayLike, *, regularisation: float, tolerance: float = 1e-12
) -> Floats:
    """The minimiser of J by damped Newton steps, to a gradient of norm at most ``tolerance``.

    Parameters
    ----------
    private, public : array_like
        Rows of the two data sets.
    regularisation : float
        Weight of the squared norm of the coefficients.
    tolerance : float
        Largest norm of the gradient at the end.

    Examples
    --------
    >>> fit_coefficients([[1.0]], [[1.0]], regularisation=0.1)     # D = E: nothing to distinguish
    array([0.])
    """
    inside, outside = features("private", private), features("public", public)
    if inside.shape[1] != outside.shape[1]:
        raise InvalidArgument(
            f"private has {inside.shape[1]} features and public {outside.shape[1]}; both need the same columns."
        )
    check_positive(regularisation=regularisation, tolerance=tolerance)

    def objective(b: Floats) -> float:
        risks = np.logaddexp(0.0, -inside @ b).mean() + np.logaddexp(0.0, outside @ b).mean()
        return float(risks + regularisation / 2.0 * (b @ b))

    b = np.zeros(inside.shape[1])
    for _ in range(200):
        chance_in, chance_out = expit(-inside @ b), expit(outside @ b)
        gradient = -(chance_in @ inside) / len(inside) + (chance_out @ outside) / len(outside) + regularisation * b
        if math.sqrt(float(gradient @ gradient)) <= tolerance:
            return b
        curvature = (
            inside.T @ (inside * (chance_in * (1.0 - chance_in))[:, None]) / len(inside)
            + outside.T @ (outside * (chance_out * (1.0 - chance_out))[:, None]) / len(outside)
            + regularisation * np.eye(b.size)
        )
        step = np.linalg.solve(curvature, gradient)
        size, decrease = 1.0, float(gradient @ step)
        # Armijo; near the minimum the objective no longer resolves the decrease and the full step is right.
        while size > 1e-10 and objective(b - size * step) > objective(b) - 1e-4 * size * decrease + 1e-15:
            size /= 2.0
        b = b - size * step
    raise MechanismError(
        f"The coefficients did not reach a gradient of tolerance={tolerance!r} in 200 Newton steps; "
        "use a larger tolerance (it is added to the sensitivity) or a larger regularisation."
    )


def features(name: str, values: ArrayLike) -> Floats:
    """A table of features in [0, 1], one record a row, at least one of each."""
    return array_within(name, values, 0.0, 1.0, ndim=2, empty=False)


@dataclass(frozen=True, slots=True)
class SphericalLaplace:
    """Density proportional to ``exp(-|x - location| / scale)`` on R^d: a uniform direction, a Gamma(d) length.

    >>> law = SphericalLaplace((0.0, 0.0), 1.0)
    >>> law.log_prob([[3.0, 4.0]]).round(6)      # -5 - log(2 pi)
    array([-6.837877])
    """

    location: tuple[float, ...]
    scale: float

    def __post_init__(self) -> None:
        finite_array("location", self.location, ndim=1, empty=False)
        check_positive(scale=self.scale)

    def log_prob(self, outputs: ArrayLike) -> Floats:
        """Log-density of each row."""
        points = np.asarray(outputs, dtype=np.float64)
        d = len(self.location)
        distance = np.linalg.norm(points - np.array(self.location), axis=-1)
        log_normaliser = _log_sphere(d) + gammaln(d) + d * math.log(self.scale)
        return np.asarray(-distance / self.scale - log_normaliser, dtype=np.float64)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """``size`` draws, shape ``(size, d)``."""
        check_draw(size, rng)
        d = len(self.location)
        direction = rng.standard_normal((size, d))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return np.array(self.location) + direction * rng.gamma(d, self.scale, (size, 1))


def spherical_laplace_delta(epsilon: float, *, shift: float, dimension: int) -> float:
    r"""Exact ``delta(epsilon)`` of two spherical Laplace laws whose centres are ``shift`` scales apart, both orders.

    In one dimension ``1 - exp((epsilon - t)/2)``. Otherwise use the two distances as coordinates: with foci at the
    centres, ``|x| = t (cosh a - cos b) / 2`` and ``|x - t e| = t (cosh a + cos b) / 2``, so the privacy loss is ``t
    cos b`` and the volume element ``(t/2)^d (sinh^2 a + sin^2 b) (sinh a sin b)^(d-2)``. The integral over ``a`` is a
    Bessel function::

        int exp(-z cosh a) sinh^m a da = Gamma((m+1)/2) / sqrt(pi) (2/z)^(m/2) K_{m/2}(z),     z = t/2,

    and what is left is one smooth, positive integral over ``cos b > epsilon / t``.

    Parameters
    ----------
    epsilon : float
        Where the profile is read.
    shift : float
        Distance of the centres, in scales.
    dimension : int
        Number of coordinates.

    Examples
    --------
    >>> round(spherical_laplace_delta(0.0, shift=1.0, dimension=3), 7), round(1 - 1.25 * math.exp(-0.5), 7)
    (0.2418367, 0.2418367)
    """
    check_non_negative(epsilon=epsilon, shift=shift)
    check_count(dimension=dimension)
    if epsilon >= shift:
        return 0.0
    if dimension == 1:
        return -math.expm1((epsilon - shift) / 2.0)
    z, d = shift / 2.0, dimension
    nodes, weights = _panels()
    width = math.acos(epsilon / shift)
    b = width * nodes
    loss = shift * np.cos(b)
    log_sine = np.log(np.sin(b))
    log_inner = np.logaddexp(_log_bessel_integral(d, z), 2.0 * log_sine + _log_bessel_integral(d - 2, z))
    log_volume = d * math.log(z) + _log_sphere(d - 1) - _log_sphere(d) - gammaln(d)
    integrand = np.exp(log_volume + log_inner + loss / 2.0 + (d - 2) * log_sine) * -np.expm1(epsilon - loss)
    return min(float(width * (integrand @ weights)), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class ImportanceWeighting:
    """Publish one weight per record of ``public``; the data are the private records, one a row.

    Parameters
    ----------
    public : array of shape (N_E, d)
        Features in [0, 1]. A constant column counts in ``d``; the normalisation of the weights makes it invisible.
    epsilon : float
        What is claimed, for the substitution of one private record.
    regularisation : float
        The lambda of the objective. Small values make ``S`` large and the weights degenerate: look at
        :func:`effective_sample_size`.
    tolerance : float
        Gradient norm at which the optimiser stops; ``2 tolerance / lambda`` is added to the sensitivity.

    >>> mechanism = ImportanceWeighting([[0.0], [1.0]], epsilon=1.0, regularisation=0.1)
    >>> weights = mechanism.sample([[1.0], [1.0], [0.0]], 5, np.random.default_rng(0))
    >>> weights.shape, bool(np.allclose(weights.sum(axis=1), 2.0))
    ((5, 2), True)
    """

    public: ArrayLike
    epsilon: float
    regularisation: float
    tolerance: float = 1e-12
    relation: ClassVar[Relation] = Relation.SUBSTITUTE  # the number of private records is public

    def __post_init__(self) -> None:
        table = features("public", self.public).copy()
        table.flags.writeable = False
        object.__setattr__(self, "public", table)
        check_positive(epsilon=self.epsilon, regularisation=self.regularisation, tolerance=self.tolerance)

    @property
    def claim(self) -> PureDP:
        """epsilon-DP for the substitution of one private record."""
        return PureDP(self.epsilon, self.relation)

    @property
    def dimension(self) -> int:
        """Number of features."""
        return int(np.shape(self.public)[1])

    @property
    def lossless(self) -> bool:
        """True if the weights determine the noisy coefficients: E has d linearly independent differences."""
        return int(self._visible_basis().shape[1]) == self.dimension

    def sensitivity(self, private_size: int) -> float:
        """``S``: how far beta moves in l2 when one of ``private_size`` records is replaced."""
        check_count(private_size=private_size)
        return (
            math.sqrt(self.dimension) / (private_size * self.regularisation)
            + 2.0 * self.tolerance / self.regularisation
        )

    def coefficients(self, data: ArrayLike) -> Floats:
        """``beta(D)``, before noise."""
        records = features("data", data)
        return fit_coefficients(records, self.public, regularisation=self.regularisation, tolerance=self.tolerance)

    def coefficient_law(self, data: ArrayLike) -> SphericalLaplace:
        """Exact law of the noisy coefficients.

        The weights themselves have no density on R^(N_E): they live on a surface of dimension at most d. Where
        ``lossless`` they carry the same information, so this law decides; :meth:`pair_delta` has the exact curve.
        """
        return SphericalLaplace(
            tuple(self.coefficients(data).tolist()), self.sensitivity(len(np.asarray(data))) / self.epsilon
        )

    def weights(self, coefficients: ArrayLike) -> Floats:
        """``N_E exp(beta.x) / sum_E exp(beta.x)`` for each row of coefficients; each row sums to N_E."""
        scores = np.asarray(coefficients, dtype=np.float64) @ np.asarray(self.public).T
        count = scores.shape[-1]
        return np.asarray(count * np.exp(scores - logsumexp(scores, axis=-1, keepdims=True)), dtype=np.float64)

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """``size`` releases of the weights, shape ``(size, N_E)``."""
        check_draw(size, rng)
        law = self.coefficient_law(data)
        outputs = np.empty((size, len(np.asarray(self.public))))
        for part in chunks(size, outputs.shape[1] + self.dimension):
            outputs[part] = self.weights(law.sample(part.stop - part.start, rng))
        return outputs

    def recover(self, weights: ArrayLike) -> Floats:
        """The part of beta~ that the weights show, by least squares on the differences of their logarithms."""
        log_weights = np.log(np.asarray(weights, dtype=np.float64))
        public = np.asarray(self.public)
        differences = public - public.mean(axis=0)
        return np.asarray((log_weights - log_weights.mean(axis=-1, keepdims=True)) @ np.linalg.pinv(differences).T)

    def pair_epsilon(self, data: ArrayLike, neighbour: ArrayLike) -> float:
        """Exact epsilon of the noisy coefficients on this pair: ``(epsilon / S) |beta(D) - beta(D')|``."""
        return self._distance(data, neighbour, visible=False)

    def visible_epsilon(self, data: ArrayLike, neighbour: ArrayLike) -> float:
        """Exact epsilon of the published weights on this pair.

        Weights show the projection of beta~ on the span of the differences of E. The log-density of a projection of
        spherical Laplace noise has a gradient of norm below ``1/scale`` (an average of unit vectors) that reaches it
        at infinity, so epsilon is ``(epsilon / S)`` times the length of the projected difference.
        """
        return self._distance(data, neighbour, visible=True)

    def pair_delta(self, data: ArrayLike, neighbour: ArrayLike, epsilon: float) -> float:
        """Exact ``delta(epsilon)`` of the pair where ``lossless``; otherwise an upper bound for the weights."""
        shift = self.pair_epsilon(data, neighbour)
        return spherical_laplace_delta(epsilon, shift=shift, dimension=self.dimension)

    def estimate_variance(self, values: ArrayLike, data: ArrayLike) -> float:
        """Variance that the noise adds to :func:`estimate`, to first order in it.

        The estimate has gradient ``Cov_w(b, x)`` in beta, and each coordinate of the noise variance ``(d+1)
        (S/epsilon)^2``.
        """
        law = self.coefficient_law(data)
        return delta_method_variance(values, self.public, self.weights(law.location), law.scale)

    def _distance(self, data: ArrayLike, neighbour: ArrayLike, *, visible: bool) -> float:
        size, other_size = len(np.asarray(data)), len(np.asarray(neighbour))
        if size != other_size:
            raise InvalidArgument(f"data has {size} records and neighbour {other_size}; substitution keeps the number.")
        moved = self.coefficients(data) - self.coefficients(neighbour)
        if visible:
            moved = moved @ self._visible_basis()
        return float(np.linalg.norm(moved)) * self.epsilon / self.sensitivity(size)

    def _visible_basis(self) -> Floats:
        public = np.asarray(self.public)
        _, singular, rows = np.linalg.svd(public - public.mean(axis=0), full_matrices=False)
        kept = singular > 1e-12 * max(1.0, float(singular.max()))
        return np.asarray(rows[kept].T)


def estimate(values: ArrayLike, weights: ArrayLike) -> float:
    """``(1/N_E) sum b(x) w(x)``: the mean of ``b`` over the private data, from public records and their weights.

    Warns where the weights are worth little more than one record in twenty.

    >>> estimate([0.0, 1.0], [0.5, 1.5])
    0.75
    """
    b, w = finite_array("values", values, ndim=1, empty=False), _weight_vector(weights)
    if b.size != w.size:
        raise InvalidArgument(f"values has {b.size} entries and weights {w.size}; one of each per public record.")
    worth = effective_sample_size(w)
    if worth < 1.0 + 0.05 * (w.size - 1):
        warnings.warn(
            f"The weights are worth {worth:.2f} records of {w.size}; increase the regularisation or the private data.",
            stacklevel=2,
        )
    return float(b @ w) / w.size


def effective_sample_size(weights: ArrayLike) -> float:
    """``(sum w)^2 / sum w^2``: how many equally weighted records these weights are worth.

    >>> effective_sample_size([1.0, 1.0, 0.0])
    2.0
    """
    w = _weight_vector(weights)
    w = w / w.max()
    return float(w.sum() ** 2 / (w @ w))


def delta_method_variance(values: ArrayLike, public: ArrayLike, weights: ArrayLike, scale: float) -> float:
    """First-order variance of the estimate under spherical Laplace noise: ``(d+1) scale^2 |Cov_w(b, x)|^2``.

    Parameters
    ----------
    values : array_like
        The quantity whose mean is estimated, one number for each public row.
    public, weights : array_like
        Rows of the public data, and their weights.
    scale : float
        Scale of the noise on the coefficients.
    """
    b, x, w = finite_array("values", values, ndim=1), features("public", public), _weight_vector(weights)
    if not b.size == len(x) == w.size:
        raise InvalidArgument(
            f"values, public and weights have {b.size}, {len(x)} and {w.size} entries; all must agree."
        )
    check_positive(scale=scale)
    gradient = weighted_covariance(b, x, w)
    return float((x.shape[1] + 1) * scale**2 * (gradient @ gradient))


def weighted_covariance(values: Floats, public: Floats, weights: Floats) -> Floats:
    """``Cov_w(b, x)``, the gradient of the estimate in the coefficients."""
    share = weights / weights.sum()
    return np.asarray((share * (values - share @ values)) @ public)


def worst_case(*, dimension: int, private_size: int) -> tuple[Floats, Floats, Floats]:
    """Return E, D and D' on which beta moves nearly as far as its bound: E mostly at e2, D at e1 but for one record.

    That record has a one in coordinate 2, which E has taught to be unlike D, so its weight ``c`` is near 1; on the
    other coordinates, where the objective is almost flat, it has ones in one half before and in the other half after.
    The few other records of E lie near the origin: they bend nothing, but make the weights lossless.
    """
    check_count(minimum=4, dimension=dimension)
    check_count(minimum=2, private_size=private_size)
    unit = np.eye(dimension)
    public = np.vstack([np.tile(unit[1], (20, 1)), np.zeros((1, dimension)), 0.05 * unit])
    data = np.tile(unit[0], (private_size, 1))
    neighbour = data.copy()
    data[0], neighbour[0] = unit[1] + unit[2::2].sum(axis=0), unit[1] + unit[3::2].sum(axis=0)
    return public, data, neighbour


def _weight_vector(weights: ArrayLike) -> Floats:
    w = finite_array("weights", weights, ndim=1, empty=False)
    if (w < 0.0).any() or not w.any():
        raise InvalidArgument(f"weights hold {float(w.min())!r}; all must be zero or positive, and one positive.")
    return w


def _log_sphere(dimension: int) -> float:
    """Log of the surface of the unit sphere in R^dimension."""
    return math.log(2.0) + dimension / 2.0 * math.log(math.pi) - float(gammaln(dimension / 2.0))


def _log_bessel_integral(power: int, z: float) -> float:
    """``log int_0^inf exp(-z cosh a) sinh^power a da``, by the stable recurrence of K_{v+1} / K_v."""
    order = 0.0 if power % 2 == 0 else 0.5
    log_bessel = math.log(float(kve(order, z))) - z
    ratio = float(kve(order + 1.0, z) / kve(order, z))
    while order < power / 2.0:
        log_bessel += math.log(ratio)
        order += 1.0
        ratio = 1.0 / ratio + 2.0 * order / z
    return float(gammaln((power + 1) / 2.0)) - 0.5 * math.log(math.pi) + power / 2.0 * math.log(2.0 / z) + log_bessel


@functools.cache
def _panels() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(32)
    panel = np.arange(16)[:, None]
    return ((panel + (nodes + 1.0) / 2.0) / 16.0).reshape(-1), np.tile(weights / 32.0, 16)
