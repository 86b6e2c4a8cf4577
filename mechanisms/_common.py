"""What the mechanisms share: checks of what they are given, and drawing in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import InvalidArgument
from dpaudit.validation import check_count, check_generator, finite_array

Floats: TypeAlias = NDArray[np.float64]
Query: TypeAlias = Callable[[Any], Any]

# A matrix of draws holds at most this many cells at a time: 2 MB of doubles stays inside the second-level cache.
CELLS = 1 << 18


def check_draw(size: int, rng: np.random.Generator) -> None:
    """Refuse a size that is no count, and anything but a generator."""
    check_count(minimum=0, size=size)
    check_generator(rng=rng)


def answer_of(query: Query | None, data: Any) -> Floats:
    """Return the query's answer on the data, or the data where they are the answers: one number or a vector, finite."""
    name = "data" if query is None else "query(data)"
    answer = finite_array(name, data if query is None else query(data), empty=False)
    if answer.ndim > 1:
        raise InvalidArgument(f"{name} must be a number or a vector; its shape is {answer.shape}.")
    return answer


def answers_of(data: Any, *, length: int | None = None) -> Floats:
    """Return the data as a vector of query answers, finite and not empty, of the given length if there is one."""
    answers = finite_array("data", data, ndim=1, empty=False)
    if length is not None and answers.size != length:
        raise InvalidArgument(f"data must hold {length} answers; there are {answers.size}.")
    return answers


def whole_numbers(name: str, values: Any) -> NDArray[np.int64]:
    """Return ``values`` as integers, refusing what is not whole or does not fit."""
    array = finite_array(name, values, empty=False)
    if (array != np.rint(array)).any() or (np.abs(array) > 2.0**53).any():
        bad = float(array[(array != np.rint(array)) | (np.abs(array) > 2.0**53)].flat[0])
        raise InvalidArgument(f"{name} holds {bad!r}; all must be whole numbers of at most 2**53.")
    return array.astype(np.int64)


def chunks(size: int, width: int) -> Iterator[slice]:
    """Cut ``range(size)`` into slices of at most ``CELLS / width`` rows, so that a matrix over one of them is small."""
    rows = max(1, CELLS // max(1, width))
    for start in range(0, size, rows):
        yield slice(start, min(start + rows, size))


def draw_index(log_weights: Floats, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw indices with probabilities proportional to ``exp(log_weights)``, by inverting their cumulative sum.

    Costs one uniform and one binary search a draw. A weight below 2^-53 of the total may be out of the uniform's reach;
    a weight of exactly zero never comes.
    """
    weights = np.exp(log_weights - np.max(log_weights))
    cumulative = np.cumsum(weights)
    index: NDArray[np.intp] = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    # u * total may round up to the total: the last weight that is not zero takes it.
    np.minimum(index, np.flatnonzero(weights)[-1], out=index)
    return index
