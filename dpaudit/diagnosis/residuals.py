r"""Exact goodness-of-fit tests for residuals that should be independent draws from the declared law of the noise.

Every residual r is turned into u = F(r-) + V (F(r) - F(r-)), with F the declared distribution function and V uniform and
independent. If r follows F, u is exactly uniform on (0, 1), for continuous, discrete and mixed laws alike (randomised
probability integral transform), and independent residuals give independent u. All tests use these u, so they do not depend on
the declared law and hold for every n; none is asymptotic:

``law``
    D = sup |F_n(u) - u|; P(D > d) <= 2 exp(-2 n d^2) (Dvoretzky, Kiefer and Wolfowitz 1956, with the constant of Massart 1990).
``scale``
    T = sum of -log(2 min(u, 1 - u)). Under the law 2 min(u, 1 - u) is uniform, so T is a Gamma(n) variable, exactly. For
    Laplace noise T is the sum of |r| / scale: the likelihood-ratio test of the scale. Both tails count.
``repetition``
    For every lag L, S = sum of cos 2 pi (u_i - u_{i+L}) over all releases i (and coordinates). The pairs (i, i + L) form paths,
    and along a path the differences mod 1 and the first u are a one-to-one, measure-preserving image of all u on it: so the
    differences are independent and uniform. Such a cosine has E exp(t cos) = I_0(t) <= exp(t^2 / 4) (compare the series term
    by term), hence P(|S| >= s) <= 2 exp(-s^2 / m) for m terms (Chernoff), and n - 1 lags cost a factor n - 1. Noise that is
    repeated after a fixed number of releases, for example by a generator that restarts, is detected at its lag.
``negation``
    The same for u_i + u_{i+L}, by the same proof: noise that is repeated with its sign changed has u_2 = 1 - u_1, whose
    difference from u_1 is uniform and whose sum with it is not.
``sharing``, ``opposition``
    (u_1 - u_2) mod 1, and (u_1 + u_2) mod 1, over disjoint random pairs of coordinates of one release: uniform if they are
    independent, so tested like ``law``. These tests detect one draw of noise, or its negative, used for several coordinates.

The smallest p-value of several tests, times their number, is a p-value (Bonferroni): each test has an equal share of alpha.

Not detected: dependence that leaves all of this uniform, such as noise taken from a list in random order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, ifft, next_fast_len
from scipy.special import gammainc, gammaincc, ndtri

from dpaudit._util.validation import shorten
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.exact.form import Form, Lattice, is_real

Floats: TypeAlias = NDArray[np.float64]
Sampler: TypeAlias = Callable[[int, np.random.Generator], Any]

REFERENCES = 99
"""Number of draws of a sampler among which each residual is ranked, if the noise is declared by a sampler."""
RESIDUALS_AT_ONCE = 10_000
"""Number of residuals that are ranked at once."""
RESIDUAL_ROUNDING = 1e-9
"""A residual this near to a grid point or an atom, relative to query and output, counts as being on it."""
LARGEST_DEPTH = 27.6
"""-log(1e-12): further out in the tail, the rounding of query plus noise dominates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitTest:
    """One test: its name, the data set it was on (empty: all of them together), and its p-value."""

    name: str
    data: str
    residuals: int
    statistic: float
    p_value: float
    lag: int = 0  # number of releases after which noise seems to be repeated


def fit_tests(lower: Floats, upper: Floats, rng: np.random.Generator, *, data: str = "") -> list[FitTest]:
    """Test that ``u`` is independent and uniform on (0, 1).

    Parameters
    ----------
    lower, upper : array of shape (releases, coordinates)
        ``u`` and ``1 - u``, each accurate where it is small (see :func:`tails`).
    rng : numpy.random.Generator
        Draws the pairs of coordinates that are compared.
    data : str
        The data set's text, for the results.

    Examples
    --------
    >>> u = np.random.default_rng(0).random((1000, 1))
    >>> [test.name for test in fit_tests(u, 1 - u, np.random.default_rng(1))]
    ['law', 'scale', 'repetition', 'negation']
    """
    releases, coordinates = lower.shape
    tests = [_law(lower.ravel(), "law", data), _scale(lower.ravel(), upper.ravel(), data)]
    if releases > 1:
        tests += [_lags(lower, -1, "repetition", data), _lags(lower, 1, "negation", data)]
    if coordinates > 1:
        mixed = rng.permuted(lower, axis=1)[:, : coordinates - coordinates % 2].reshape(releases, -1, 2)
        for sign, name in ((-1, "sharing"), (1, "opposition")):
            tests.append(_law(np.mod(mixed[:, :, 0] + sign * mixed[:, :, 1], 1.0).ravel(), name, data))
    return tests


def _lags(u: Floats, sign: int, name: str, data: str) -> FitTest:
    """Sums of cos 2 pi (u_i + sign u_{i+L}) for all lags L at once, by the Fourier transform."""
    releases, coordinates = u.shape
    turns = np.exp(2j * np.pi * u)
    padded = next_fast_len(2 * releases)  # zero padding, so that the convolution does not wrap around
    first = fft(turns if sign < 0 else turns.conj(), padded, axis=0)
    product = (first.conj() * fft(turns, padded, axis=0)).sum(axis=1)
    sums = np.abs(ifft(product).real[1:releases])
    terms = coordinates * np.arange(releases - 1, 0, -1)
    exponents = sums**2 / terms
    best = int(np.argmax(exponents))
    p_value = min(1.0, 2.0 * (releases - 1) * math.exp(-exponents[best]))
    return FitTest(
        name=name,
        data=data,
        residuals=u.size,
        statistic=float(sums[best] / terms[best]),
        p_value=p_value,
        lag=best + 1,
    )


def _law(u: Floats, name: str, data: str) -> FitTest:
    n = u.size
    ordered = np.sort(u)
    rank = np.arange(1, n + 1) / n
    distance = float(np.maximum(rank - ordered, ordered - (rank - 1.0 / n)).max())
    p_value = min(1.0, 2.0 * math.exp(-2.0 * n * distance**2))
    return FitTest(name=name, data=data, residuals=n, statistic=distance, p_value=p_value)


def _scale(lower: Floats, upper: Floats, data: str) -> FitTest:
    n = lower.size
    with np.errstate(divide="ignore"):
        depth = -np.log(np.minimum(1.0, 2.0 * np.minimum(lower, upper)))
    # Rounding dominates far out in the tail, so depths are capped there: this can only raise the p-value.
    above = float(gammaincc(n, np.minimum(depth, LARGEST_DEPTH).sum()))
    below = float(gammainc(n, depth.sum()))
    statistic = float(np.minimum(depth, LARGEST_DEPTH).mean())
    return FitTest(name="scale", data=data, residuals=n, statistic=statistic, p_value=min(1.0, 2.0 * min(above, below)))


def detectable_scale(residuals: int, alpha: float) -> float:
    """Relative error of a Laplace scale that the ``scale`` test detects with probability about 0.98 at level ``alpha``.

    The mean of n exponential variables has standard deviation 1 / sqrt(n) and moves by the relative error.

    >>> round(detectable_scale(40_000, 1e-7), 3)
    0.037
    """
    return float((-ndtri(0.5 * alpha) + 2.0) / math.sqrt(residuals))


def tails(noise: Any, residuals: Floats, size: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return ``u`` and ``1 - u`` of each residual, each accurate where it is small.

    Parameters
    ----------
    noise
        A law of ``dpaudit.exact`` (anything with ``form()``), an object with ``cdf`` such as a frozen distribution of
        ``scipy.stats``, or a sampler ``f(size, rng)``.
    residuals : array
        Outputs minus answers.
    size : array
        Magnitude of query and output, to which rounding is relative.
    rng : numpy.random.Generator
        Draws the randomisation, and the reference draws of a sampler.
    """
    flat, magnitude = residuals.ravel(), size.ravel()
    known = not isinstance(noise, type)
    if known and hasattr(noise, "form"):
        below, at, above = _form_masses(noise.form(), flat, magnitude)
    elif known and hasattr(noise, "cdf"):
        below, at, above = _cdf_masses(noise, flat, magnitude)
    elif known and callable(noise):
        below, at, above = _ranks(noise, flat, rng)
    else:
        raise InvalidArgument(
            f"noise={shorten(noise)} must be a law such as dpaudit.exact.Laplace(0.0, 1.0), an object with cdf(x), or a "
            "sampler f(size, rng)."
        )
    share = rng.random(flat.size)
    u, rest = below + share * at, above + (1.0 - share) * at
    return u.reshape(residuals.shape), rest.reshape(residuals.shape)


def _form_masses(form: Form, x: Floats, magnitude: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mass below, at and above each point."""
    atoms = {float(outcome): math.exp(mass) for outcome, mass in form.atoms.items() if is_real(outcome)}  # type: ignore[arg-type]
    if len(atoms) < len(form.atoms):
        other = next(outcome for outcome in form.atoms if not is_real(outcome))
        raise InvalidArgument(f"noise gives {other!r}, which cannot be added to a number; declare a law of numbers.")
    if form.lattice is not None:
        grid = np.round(x / form.lattice.step) * form.lattice.step
        x = np.where(np.abs(grid - x) <= RESIDUAL_ROUNDING * (magnitude + form.lattice.step), grid, x)
    if atoms:
        places = np.array(sorted(atoms))
        after = np.clip(np.searchsorted(places, x), 0, places.size - 1)
        before = np.maximum(after - 1, 0)
        near = np.where(np.abs(places[after] - x) <= np.abs(places[before] - x), places[after], places[before])
        x = np.where(np.abs(near - x) <= RESIDUAL_ROUNDING * magnitude, near, x)
    points, inverse = np.unique(x, return_inverse=True)
    below, at, above = np.zeros(points.size), np.zeros(points.size), np.zeros(points.size)
    if atoms:
        masses = np.array([atoms[place] for place in places])
        below += np.concatenate([[0.0], np.cumsum(masses)])[np.searchsorted(places, points, side="left")]
        above += np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])[np.searchsorted(places, points, side="right")]
        at += np.array([atoms.get(point, 0.0) for point in points.tolist()])
    if form.lattice is not None:
        below, at, above = (
            old + new for old, new in zip((below, at, above), _lattice_masses(form.lattice, points), strict=True)
        )
    if form.continuous is not None:
        infinite = np.full(points.size, np.inf)
        below += np.exp(form.continuous.log_mass(-infinite, points))
        above += np.exp(form.continuous.log_mass(points, infinite))
    return below[inverse], at[inverse], above[inverse]


def _lattice_masses(lattice: Lattice, points: Floats) -> tuple[Floats, Floats, Floats]:
    place = np.round(points / lattice.step)
    on_grid = place * lattice.step == points
    below = np.where(on_grid, place - 1.0, np.floor(points / lattice.step))
    above = np.where(on_grid, place + 1.0, np.floor(points / lattice.step) + 1.0)
    return (
        np.exp([lattice.log_range(-math.inf, last) for last in below.tolist()]),
        np.exp(lattice.log_mass_at(points)),
        np.exp([lattice.log_range(first, math.inf) for first in above.tolist()]),
    )


def _cdf_masses(noise: Any, x: Floats, magnitude: Floats) -> tuple[Floats, Floats, Floats]:
    # A frozen distribution of scipy has both methods, whether or not it is discrete.
    discrete = hasattr(getattr(noise, "dist", noise), "pmf")
    if discrete:
        whole = np.round(x)
        x = np.where(np.abs(whole - x) <= RESIDUAL_ROUNDING * (magnitude + 1.0), whole, x)
    at = np.asarray(noise.pmf(x), dtype=np.float64) if discrete else np.zeros(x.size)
    until = np.asarray(noise.cdf(x), dtype=np.float64)
    above = np.asarray(noise.sf(x), dtype=np.float64) if hasattr(noise, "sf") else 1.0 - until
    if not (np.isfinite(until).all() and (until >= 0.0).all() and (until <= 1.0).all()):
        raise InvalidArgument(f"noise={shorten(noise)} has a cdf outside [0, 1]; it must be a distribution function.")
    return np.maximum(until - at, 0.0), at, above


def _ranks(sampler: Sampler, x: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Rank each residual among its own reference draws; the rank is uniform if the residual has their law."""
    lower, equal = np.empty(x.size), np.empty(x.size)
    for start in range(0, x.size, RESIDUALS_AT_ONCE):
        part = x[start : start + RESIDUALS_AT_ONCE]
        drawn = np.asarray(sampler(part.size * REFERENCES, rng), dtype=np.float64)
        if drawn.shape != (part.size * REFERENCES,):
            raise MechanismError(
                f"noise={shorten(sampler)} returned shape {drawn.shape} for size={part.size * REFERENCES}; a sampler "
                "f(size, rng) returns that many numbers."
            )
        drawn = drawn.reshape(part.size, REFERENCES)
        lower[start : start + RESIDUALS_AT_ONCE] = (drawn < part[:, None]).sum(axis=1)
        equal[start : start + RESIDUALS_AT_ONCE] = (drawn == part[:, None]).sum(axis=1)
    total = REFERENCES + 1.0
    return lower / total, (equal + 1.0) / total, (REFERENCES - lower - equal) / total
