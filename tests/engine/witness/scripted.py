"""Mechanisms that scripts of witnesses import by name. Nothing here needs the package that is tested."""

from __future__ import annotations

import json
import random
import struct
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


# A leak that is in neither of two numbers alone: the data decide whether a hash of the first is the second.


def hashed(data: int, rng: np.random.Generator) -> tuple[int, int]:
    seed = int(rng.integers(2**40))
    return seed, (seed // 8191 + (data if rng.random() < 0.95 else 1 - data)) % 2


def many_hashed(data: int, size: int, rng: np.random.Generator) -> Any:
    seeds = rng.integers(2**40, size=size)
    return np.stack([seeds, (seeds // 8191 + np.where(rng.random(size) < 0.95, data, 1 - data)) % 2], axis=1)


def plain_hashed(data: int) -> tuple[int, int]:
    return hashed(data, np.random.default_rng(random.getrandbits(64)))


def make_plain_hashed() -> Any:
    return plain_hashed


class Hashing:
    """An object with ``sample``."""

    def sample(self, data: int, size: int, rng: np.random.Generator) -> Any:
        return many_hashed(data, size, rng)

    def __repr__(self) -> str:
        return "Hashing()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashing)

    __hash__ = None  # type: ignore[assignment]


def parity(output: Any) -> int:
    return int(output[0] // 8191 + output[1]) % 2


def even(output: Any) -> Any:
    return np.bool_(parity(output) == 0)


def colour(output: Any) -> str:
    return ("blue output", "red")[parity(output)]


def fails(output: Any) -> float:
    if parity(output):
        raise ValueError("no parity")
    return 2.5


def truth_or_word(output: Any) -> Any:
    return "odd" if parity(output) else True


# Collections, text and bytes whose structure hardly ever repeats, with a leak in one feature.


def random_set(data: int, rng: np.random.Generator) -> set[str]:
    present = rng.random(40) < 0.3
    present[17] = rng.random() < (0.6 if data else 0.05)
    return {f"w{number}" for number in np.flatnonzero(present)}


def sound_set(data: int, rng: np.random.Generator) -> set[str]:
    present = rng.random(40) < 0.3
    present[17] = rng.random() < (0.6 if data else 0.4)
    return {f"w{number}" for number in np.flatnonzero(present)}


def set_of_numbers(data: int, rng: np.random.Generator) -> set[int]:
    return {int(word[1:]) for word in random_set(data, rng)}


def words_in_a_list(data: int, rng: np.random.Generator) -> list[str]:
    words = [f"w{number}" for number in rng.choice(40, 5, replace=False)]
    words[int(rng.integers(5))] = "w7" if data and rng.random() < 0.7 else "w8"
    return words


def value_at_a_key(data: int, rng: np.random.Generator) -> dict[str, float]:
    keys = rng.permutation(60)[:30].tolist()
    return {f"k{key}": float(rng.normal()) + (3.0 if data and key == 17 else 0.0) for key in keys}


def json_of_counts(data: int, rng: np.random.Generator) -> str:
    return json.dumps({"count": int(1000 * rng.normal()) + 3000 * data, "id": int(rng.integers(10**6))})


def token_and_name(data: int, rng: np.random.Generator) -> str:
    return f"{rng.bytes(6).hex()}-{'carol' if rng.random() < (0.8 if data else 0.1) else 'alice'}"


def packed_numbers(data: int, rng: np.random.Generator) -> bytes:
    return struct.pack("<3d", rng.normal(), rng.normal() + 3.0 * data, rng.normal())
