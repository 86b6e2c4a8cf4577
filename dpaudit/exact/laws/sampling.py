"""Samples from laws that are given by their normal form only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpaudit.exact.form import Array, Continuous, Form, Lattice
from dpaudit.exact.quadrature import LogFunction, gauss_legendre, log_integrals, panels

_CHUNK = 1 << 15
"""Number of draws that are made at once."""


def sample_form(form: Form, size: int, rng: np.random.Generator) -> Array:
    """Draw from the atoms, the lattice and the density, each by its share of the mass; all outcomes are numbers."""
    outcomes = np.array(list(form.atoms), dtype=np.float64)
    lattice = form.lattice.log_total() if form.lattice else -math.inf
    density: Any = form.continuous.log_mass(np.array(-np.inf), np.array(np.inf)) if form.continuous else -math.inf
    shares = np.exp([*form.atoms.values(), lattice, float(density)])
    chosen = rng.choice(shares.size, size=size, p=shares / shares.sum())
    result = np.empty(size)
    atom = chosen < outcomes.size
    result[atom] = outcomes[chosen[atom]]
    if form.lattice:
        there = chosen == outcomes.size
        result[there] = sample_lattice(form.lattice, int(there.sum()), rng)
    if form.continuous:
        there = chosen == outcomes.size + 1
        result[there] = sample_density(form.continuous, int(there.sum()), rng)
    return result


def sample_lattice(part: Lattice, size: int, rng: np.random.Generator) -> Array:
    """Draw from the grid points outside which less than 1e-20 of the mass lies."""
    total = part.log_total()
    first, last, reach = min(part.landmarks), max(part.landmarks), 64
    while part.unbounded(0) and part.log_range(-math.inf, first - 1) > total - 46.0:
        first, reach = first - reach, 2 * reach
    while part.unbounded(1) and part.log_range(last + 1, math.inf) > total - 46.0:
        last, reach = last + reach, 2 * reach
    k = np.arange(first, last + 1)
    masses = np.exp(part.log_mass(k) - total)
    drawn: Array = rng.choice(k, size=size, p=masses / masses.sum()) * np.float64(part.step)
    return drawn


def sample_density(part: Continuous, size: int, rng: np.random.Generator) -> Array:
    """Draw a panel by its mass, then invert the distribution function inside it by bracketed Newton steps."""

    def log_density(x: Array) -> Array:
        return part.log_density(x, 1)

    marks = sorted({x for x in (*part.kinks, *part.landmarks) if part.support[0] < x < part.support[1]})
    low, high = panels(log_density, [part.support[0], *(marks or [0.0]), part.support[1]])
    # Eight pieces per panel: on each the density is close enough to a polynomial for one Gauss-Legendre rule.
    fractions = np.arange(9) / 8.0
    edges = low[:, None] + (high - low)[:, None] * fractions
    low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    log_masses = log_integrals(log_density, low, high, (), ())
    masses = np.exp(log_masses - log_masses.max())
    chosen = rng.choice(masses.size, size=size, p=masses / masses.sum())
    uniform = 1.0 - rng.random(size)
    result = np.empty(size)
    for start in range(0, size, _CHUNK):
        j, u = chosen[start : start + _CHUNK], uniform[start : start + _CHUNK]
        result[start : start + _CHUNK] = _invert(log_density, low[j], high[j], log_masses[j], u)
    return result


def _invert(log_density: LogFunction, low: Array, high: Array, log_mass: Array, u: Array) -> Array:
    """The point of (low, high) below which the share ``u`` of its mass lies."""
    x, left, right = low + u * (high - low), low.copy(), high.copy()
    active = np.arange(x.size)
    for _ in range(60):
        start, here, log_whole = low[active], x[active], log_mass[active]
        excess = np.exp(gauss_legendre(log_density, start, here) - log_whole) - u[active]
        below, above = np.where(excess < 0.0, here, left[active]), np.where(excess < 0.0, right[active], here)
        left[active], right[active] = below, above
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = here - excess / np.exp(log_density(here) - log_whole)
        x[active] = np.where((step > below) & (step < above), step, 0.5 * (below + above))
        active = active[np.abs(x[active] - here) > 1e-13 * (high[active] - start)]
        if not active.size:
            break
    return x
