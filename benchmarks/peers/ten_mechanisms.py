"""The ten mechanisms, with numpy alone: nine break the claim of epsilon = 1, the last one keeps it with equality."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

EPSILON = 1.0
Sampler = Callable[[int, int, np.random.Generator], np.ndarray]  # data (0 or 1), size, generator


def _released(data: int, size: int, rng: np.random.Generator) -> np.ndarray:
    del rng
    return np.full(size, float(data))


def _response(data: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(size) < 0.8, data, 1 - data).astype(float)


def _raw_sometimes(data: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(size) < 0.01, float(data), data + rng.laplace(size=size))


def _interaction(data: int, size: int, rng: np.random.Generator) -> np.ndarray:
    rows = rng.normal(size=(size, 10))
    sign = np.where(rng.random(size) < (0.8 if data else 0.2), 1.0, -1.0)
    rows[:, 7] = np.abs(rows[:, 7]) * np.sign(rows[:, 2]) * sign
    return rows


MECHANISMS: dict[str, Sampler] = {
    "the data themselves": _released,
    "Laplace, half the noise": lambda data, size, rng: data + rng.laplace(scale=0.5, size=size),
    "Laplace, 0.8 of the noise": lambda data, size, rng: data + rng.laplace(scale=0.8, size=size),
    "Gaussian of scale 1": lambda data, size, rng: data + rng.normal(size=size),
    "geometric, half the noise": lambda data, size, rng: (
        data + (rng.geometric(0.8647, size) - rng.geometric(0.8647, size)) * 1.0
    ),
    "randomised response, 0.8": _response,
    "the data once in 100": _raw_sometimes,
    "ten coordinates, twice the budget": lambda data, size, rng: 0.2 * data + rng.laplace(size=(size, 10)),
    "sign of a product of two of ten": _interaction,
    "Laplace, as claimed": lambda data, size, rng: data + rng.laplace(size=size),
}
