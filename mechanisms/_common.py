"""Functions that the mechanisms share: checks of arguments, and random draws that are fast and need little memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import (
    check_count,
    check_generator,
    did_you_mean,
    finite_array,
    shorten,
)
from dpaudit.claims import gaussian_epsilon as gaussian_epsilon  # used throughout the mechanisms
from dpaudit.errors import InvalidArgument

Floats: TypeAlias = NDArray[np.float64]
Query: TypeAlias = Callable[[Any], Any]

# A matrix of draws holds at most this many cells at a time: half a MB of doubles stays inside the second-level cache.
CELLS = 1 << 16
FEW_CUTS = 16  # up to this many cuts, comparing with all of them is faster than a binary search
FEW_CELLS = 1024  # below this many cells the cost of each numpy call dominates, so as few as possible are made
_AT_ONCE = 1 << 14  # number of random numbers that are processed at once, so that they stay in the cache
# The signs that the bits of each byte encode.
_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)


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


def whole_numbers(name: str, values: Any, *, ndim: int | None = None) -> NDArray[np.int64]:
    """Return ``values`` as integers, refusing what is not whole or does not fit."""
    array = finite_array(name, values, ndim=ndim, empty=False)
    if (array != np.rint(array)).any() or (np.abs(array) > 2.0**53).any():
        bad = float(array[(array != np.rint(array)) | (np.abs(array) > 2.0**53)].flat[0])
        raise InvalidArgument(f"{name} holds {bad!r}; all must be whole numbers of at most 2**53.")
    return array.astype(np.int64)


def category_indices(data: Any, categories: tuple[Hashable, ...]) -> NDArray[np.intp]:
    """Return the number of the category of every row, refusing rows that are none of them."""
    if not isinstance(data, Iterable):
        raise InvalidArgument(
            f"data={shorten(data)} must be a list of rows, each one of the categories {categories!r}."
        )
    number = {category: index for index, category in enumerate(categories)}
    indices: list[int] = []
    for row in data:
        try:
            indices.append(number[row])
        except (KeyError, TypeError):  # a list is not hashable
            hint = did_you_mean(row, categories)
            raise InvalidArgument(
                f"data holds {shorten(row)}, which is none of the categories {categories!r}.{hint}"
            ) from None
    return np.array(indices, dtype=np.intp)


def chunks(size: int, width: int) -> Iterator[slice]:
    """Cut ``range(size)`` into slices of at most ``CELLS / width`` rows, so that a matrix over one of them is small."""
    rows = max(1, CELLS // max(1, width))
    for start in range(0, size, rows):
        yield slice(start, min(start + rows, size))


def laplace_noise(
    scale: float,
    shape: int | tuple[int, ...],
    rng: np.random.Generator,
    *,
    centre: float = 0.0,
    out: Floats | None = None,
) -> Floats:
    """Draw Laplace noise around ``centre`` as exponential variables with random signs, into ``out`` if given.

    numpy draws those without a logarithm, so a large array takes a third of the time of ``rng.laplace``. A scale of
    zero draws nothing.
    """
    noise: Floats = np.empty(shape) if out is None else out
    if scale == 0.0:
        noise[...] = centre
        return noise
    if noise.size < FEW_CELLS:
        noise[...] = rng.laplace(centre, scale, shape)
        return noise
    cells = noise.reshape(-1)
    signs = _random_bytes(-(-cells.size // 8), rng)
    factors, factor = scale * _SIGNS, np.empty((_AT_ONCE // 8, 8))
    for start in range(0, cells.size, _AT_ONCE):
        part, eights = cells[start : start + _AT_ONCE], signs[start // 8 : (start + _AT_ONCE) // 8]
        rng.standard_exponential(out=part)
        part *= factors.take(eights, axis=0, out=factor[: eights.size], mode="clip").reshape(-1)[: part.size]
        if centre:
            part += centre
    return noise


def bernoulli(rates: Floats | float, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw independent bits that are one with the given probabilities, which broadcast to ``shape``.

    The law is that of ``rng.random(shape) < rates``. The first eight binary digits of a uniform number settle the
    comparison unless they are those of the rate; then, once in 256 times, the rest of the number is drawn.

    >>> bernoulli(np.array([0.0, 1.0]), (2, 2), np.random.default_rng(0))
    array([[False,  True],
           [False,  True]])
    """
    if math.prod(shape) < 16 * FEW_CELLS:
        return rng.random(shape) < rates
    scaled = 256.0 * np.asarray(rates, dtype=np.float64)
    leading = np.minimum(np.floor(scaled), 255.0)
    digits = _random_bytes(math.prod(shape), rng).reshape(shape)
    first = leading.astype(np.uint8)
    if first.ndim:  # laid out in full: numpy compares two long rows much faster than many short ones
        first = np.broadcast_to(first, shape).copy()
    ones: NDArray[np.bool_] = digits < first
    undecided = np.unravel_index(np.flatnonzero(digits == first), shape)
    ones[undecided] = rng.random(len(undecided[0])) < np.broadcast_to(scaled - leading, shape)[undecided]
    return ones


def _random_bytes(count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """``rng.bytes`` in words of 64 bits, which is several times as fast."""
    return rng.integers(0, 1 << 64, -(-count // 8), dtype=np.uint64).view(np.uint8)[:count]


def place(cuts: NDArray[Any], values: NDArray[Any], side: Literal["left", "right"]) -> NDArray[np.intp]:
    """Return ``np.searchsorted(cuts, values, side)``, by plain comparisons where the cuts are few."""
    if len(cuts) > FEW_CUTS or values.size < FEW_CELLS:
        return np.searchsorted(cuts, values, side)
    passed = np.zeros(values.shape, dtype=np.uint8)
    for cut in cuts:
        passed += values > cut if side == "left" else values >= cut
    return passed.astype(np.intp)


def draw_index(log_weights: Floats, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw indices with probabilities proportional to ``exp(log_weights)``, by inverting their cumulative sum.

    Costs one uniform and one search a draw. A weight below 2^-53 of the total may be out of the uniform's reach;
    a weight of exactly zero never comes.
    """
    weights = np.exp(log_weights - np.max(log_weights))
    cumulative = np.cumsum(weights)
    index = place(cumulative, rng.random(size) * cumulative[-1], "right")
    # u * total may round up to the total: the last weight that is not zero takes it.
    np.minimum(index, np.flatnonzero(weights)[-1], out=index)
    return index
