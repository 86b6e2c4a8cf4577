"""Mechanisms that scripts of witnesses import by name. Nothing here needs the package that is tested."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

Generator = np.random.Generator


def interval(data: Any, size: int, rng: Generator) -> Any:
    return 2.0 * len(data) + rng.laplace(size=size)


def row(data: Any, size: int, rng: Generator) -> Any:
    outputs = rng.normal(size=(size, 3))
    outputs[:, 2] += 2.0 * len(data)
    return outputs


def shared_noise(data: Any, size: int, rng: Generator) -> Any:
    """Two numbers of which only the difference depends on the data."""
    shared = rng.normal(scale=20.0, size=size)
    return np.stack([shared, shared + 2.0 * len(data) + rng.normal(scale=0.4, size=size)], axis=1)


def added_noise(data: Any, size: int, rng: Generator) -> Any:
    return 0.1 * len(data) + rng.laplace(scale=20.0, size=size)


def coordinate(data: Any, rng: Generator) -> tuple[str, float, float]:
    return ("counts", float(rng.normal()), 2.0 * len(data) + float(rng.normal()))


def entry(data: Any, rng: Generator) -> dict[str, Any]:
    return {"method": "laplace", "mean": 2.0 * len(data) + float(rng.normal())}


def flag(data: Any, rng: Generator) -> bool:
    return bool(rng.random() < (0.8 if data else 0.2))


def nothing(data: Any, rng: Generator) -> float | None:
    return None if rng.random() < (0.8 if data else 0.2) else float(rng.normal())


def key(data: Any, rng: Generator) -> dict[str, float]:
    shown = {"a": float(rng.normal())}
    return {**shown, "b": float(rng.normal())} if rng.random() < (0.8 if data else 0.2) else shown


def category(data: Any) -> str:
    return "yes" if random.random() < (0.8 if data else 0.2) else "no"


def failure(data: Any) -> float:
    if np.random.random() < (0.8 if data else 0.2):  # noqa: NPY002 - as a function of the data alone has to draw
        raise ValueError(f"{len(data)} rows are too many")
    return random.random()


def failing_batch(data: Any, size: int, rng: Generator) -> Any:
    if (rng.random(size) < (0.8 if data else 0.2)).any():
        raise ValueError("no answer")
    return rng.random(size)


def lists(data: Any, rng: Generator) -> list[float]:
    return [float(rng.normal()), 2.0 * len(data) + float(rng.normal())]


def kinds_of_number(data: Any, rng: Generator) -> Any:
    return 1 if rng.random() < (0.8 if data else 0.2) else True


def make() -> Any:
    return category
