"""Mechanisms that the pinned audits run. Worker processes import them from here by name."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np

import dpaudit
from dpaudit.neighbours import Secret

Generator = np.random.Generator
WORDS = np.array(["no", "perhaps", "yes"])


# Numbers, many releases in a call.


def count_laplace(data: Any, size: int, rng: Generator) -> Any:
    return len(data) + rng.laplace(size=size)


def count_half_noise(data: Any, size: int, rng: Generator) -> Any:
    return len(data) + rng.laplace(scale=0.5, size=size)


def sum_half_noise(data: Any, size: int, rng: Generator) -> Any:
    return float(np.sum(data)) + rng.laplace(scale=0.5, size=size)


def count_gaussian(data: Any, size: int, rng: Generator) -> Any:
    return len(data) + rng.normal(size=size)


def count_narrow_gaussian(data: Any, size: int, rng: Generator) -> Any:
    return len(data) + rng.normal(scale=0.3, size=size)


def count_geometric(data: Any, size: int, rng: Generator) -> Any:
    return len(data) + rng.geometric(0.7, size) - rng.geometric(0.7, size)


def table_noise(data: Any, size: int, rng: Generator) -> Any:
    """Of the ages in a data frame, with noise for a tenth of their range."""
    return float(data["age"].sum()) + rng.laplace(scale=10.0, size=size)


def rarely_nan(data: Any, size: int, rng: Generator) -> Any:
    outputs = rng.laplace(size=size)
    outputs[rng.random(size) < (0.2 if len(data) else 0.01)] = np.nan
    return outputs


def secret_noise(data: Any, size: int, rng: Generator) -> Any:
    return np.sum(data) + rng.laplace(scale=0.4, size=size)


# Vectors.


def vector_laplace(data: Any, size: int, rng: Generator) -> Any:
    return len(data) + rng.laplace(scale=3.0, size=(size, 3))


def vector_last_leaks(data: Any, size: int, rng: Generator) -> Any:
    outputs = rng.laplace(scale=3.0, size=(size, 3))
    outputs[:, 2] = len(data) + rng.laplace(scale=0.3, size=size)
    return outputs


def vector_shared_noise(data: Any, size: int, rng: Generator) -> Any:
    """Two numbers that leak only through their difference."""
    shared = rng.normal(scale=20.0, size=size)
    return np.stack([shared, shared + len(data) + rng.normal(scale=0.4, size=size)], axis=1)


def vector_same_sign(data: Any, size: int, rng: Generator) -> Any:
    """The leak is whether the first and the last number have one sign: no linear score or difference of neighbours shows it."""
    outputs = rng.normal(size=(size, 3))
    outputs[:, 1] *= 20.0
    if len(data):
        same = np.where(rng.random(size) < 0.9, 1, -1)
        outputs[:, 2] = np.abs(outputs[:, 2]) * same * np.sign(outputs[:, 0])
    return outputs


def matrix_noise(data: Any, size: int, rng: Generator) -> Any:
    return np.full((2, 2), len(data)) + rng.laplace(scale=0.6, size=(size, 2, 2))


# Words and categories.


def words(data: Any, size: int, rng: Generator) -> Any:
    return rng.choice(WORDS, size=size, p=[0.2, 0.3, 0.5] if len(data) else [0.3, 0.3, 0.4])


def words_that_tell(data: Any, size: int, rng: Generator) -> Any:
    return rng.choice(WORDS, size=size, p=[0.02, 0.48, 0.5] if len(data) else [0.5, 0.48, 0.02])


def sentence(data: Any, rng: Generator) -> str:
    noisy = len(data) + rng.geometric(0.7) - rng.geometric(0.7)
    return f"There are {noisy} rows, {'about' if rng.random() < 0.5 else 'at most'}."


def number_as_text(data: Any, rng: Generator) -> str:
    return f"{len(data) + rng.laplace(scale=0.4):.2f}"


def coin(data: Any, rng: Generator) -> bool:
    return bool(rng.random() < (0.7 if data else 0.3))


def bytes_of(data: Any, rng: Generator) -> bytes:
    return bytes([rng.integers(0, 4) if rng.random() < 0.3 else len(data)])


def set_of_words(data: Any, rng: Generator) -> frozenset[str]:
    return frozenset(
        word for word, keep in zip(WORDS.tolist(), (0.5, 0.9 if data else 0.1, 0.5), strict=True) if rng.random() < keep
    )


# Outputs of several kinds.


def mixed(data: Any, rng: Generator) -> Any:
    """None, a number, a dict or a tuple: which of them has nothing to do with the data."""
    noisy = len(data) + rng.laplace()
    return (None, noisy, {"count": noisy, "unit": "rows"}, ("rows", noisy))[rng.integers(4)]


def mixed_that_tells(data: Any, rng: Generator) -> Any:
    """The dict comes with rows only, once in ten."""
    kind = rng.random()
    if kind < 0.1:
        return {"count": 1} if data else None
    return rng.laplace() if kind < 0.6 else ("rows", int(rng.integers(3)))


def tuple_that_tells(data: Any, rng: Generator) -> Any:
    return ("rows", {"count": len(data) + rng.laplace(scale=0.3), "exact": False}) if rng.random() < 0.8 else None


def list_of_some_length(data: Any, rng: Generator) -> list[float]:
    return rng.normal(size=rng.poisson(3.0 if data else 0.5)).tolist()


# Exceptions.


def raises_sometimes(data: Any, rng: Generator) -> float:
    if rng.random() < (0.3 if data else 0.02):
        raise ValueError(f"row {rng.integers(100)} is out of range")
    return rng.laplace()


def raises_alike(data: Any, rng: Generator) -> float:
    if rng.random() < 0.1:
        raise KeyError("budget")
    return len(data) + rng.laplace()


def batch_raises(data: Any, size: int, rng: Generator) -> Any:
    """A call for many outputs nearly always raises, on one side more readily."""
    if (rng.random(size) < (0.2 if len(data) else 0.002)).any():
        raise ZeroDivisionError("division by zero")
    return rng.laplace(size=size)


def batch_rarely_raises(data: Any, size: int, rng: Generator) -> Any:
    """Once in 1000 releases on both sides, so that the first phase settles some rounds."""
    if (rng.random(size) < 1 / 1000).any():
        raise RuntimeError("no answer")
    return len(data) + rng.laplace(size=size)


def batch_rarely_raises_half_noise(data: Any, size: int, rng: Generator) -> Any:
    if (rng.random(size) < 1 / 300).any():
        raise RuntimeError("no answer")
    return len(data) + rng.laplace(scale=0.7, size=size)


def mean_of_rows(data: Any, size: int, rng: Generator) -> Any:
    if not len(data):
        raise ValueError("no rows")
    return sum(data) / len(data) + rng.laplace(scale=5.0, size=size)


# Slow ones: an audit sends to its workers only what takes a while.
PAUSE = 5e-5  # seconds for a release


def slow_half_noise(data: Any, size: int, rng: Generator) -> Any:
    time.sleep(PAUSE * size)
    return count_half_noise(data, size, rng)


def slow_mixed(data: Any, rng: Generator) -> Any:
    time.sleep(PAUSE)
    return mixed_that_tells(data, rng)


def slow_batch_raises(data: Any, size: int, rng: Generator) -> Any:
    time.sleep(PAUSE * size)
    return batch_rarely_raises(data, size, rng)


class SlowNoisyMax:
    """An object with ``sample`` that has no literal form."""

    def sample(self, data: Any, size: int, rng: Generator) -> Any:
        time.sleep(PAUSE * size)
        return np.argmax(data + rng.exponential(size=(size, len(data))), axis=1)


# Functions of the data alone.


def exact_count(data: Any) -> int:
    return len(data)


def parity_of_nothing(data: Any) -> str:
    return "answer"


def plain_noise(data: Any) -> float:
    """Noise of the global generator, which an audit seeds."""
    return len(data) + random.expovariate(2.0) - random.expovariate(2.0)


class Remembers:
    """An object with a state: its first answer is noisy, later ones repeat it."""

    def __init__(self) -> None:
        self.answer: float | None = None

    def sample(self, data: Any, size: int, rng: Generator) -> Any:
        if self.answer is None:
            self.answer = len(data) + rng.laplace()
        return np.full(size, self.answer)


class Budgeted:
    """A function with a state: each instance answers once."""

    def __init__(self) -> None:
        self.left = 1

    def __call__(self, data: Any) -> float:
        if not self.left:
            raise RuntimeError("budget spent")
        self.left -= 1
        return len(data) + random.gauss(0.0, 0.3)


def make_half_noise() -> Any:
    return dpaudit.batched(count_half_noise)


# Secrets.


def many_ill(size: int, rng: Generator) -> Any:
    return rng.random((size, 4)) < 0.7


def few_ill(size: int, rng: Generator) -> Any:
    return rng.random((size, 4)) < 0.3


ILL = Secret("ill", lambda rng: [1, int(rng.random() < 0.5)])
WELL = Secret("well", lambda rng: [0, int(rng.random() < 0.5)])
MANY = Secret("many are ill", lambda rng: many_ill(1, rng)[0], many_ill)
FEW = Secret("few are ill", lambda rng: few_ill(1, rng)[0], few_ill)
