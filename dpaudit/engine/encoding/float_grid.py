"""The grid of a floating-point number: the exponent of its lowest set bit, or the number of its decimals."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

NO_BIT = -1100  # for zero, infinities and NaN, which have no lowest set bit
NEGATIVE_ZERO = -1101
DECIMAL = 2000  # plus the number of decimals, for a short decimal that is on no coarse dyadic grid
MOST_DIGITS = 12  # digits of a short decimal; one random float in 15,000 is so short
MOST_DECIMALS = 22  # floats hold powers of ten exactly up to this exponent
POWERS = 10.0 ** np.arange(MOST_DECIMALS + 1)
COARSE = 44  # the most bits of a number on a coarse dyadic grid


def lowest_bits(values: Floats) -> NDArray[np.int64]:
    """Return the grid of each float: the exponent of its lowest set bit, or ``DECIMAL`` plus the number of decimals.

    >>> lowest_bits(np.array([1.0, 0.75, 6.0, 1 / 3, 0.0, -0.0, np.inf, 0.1, -12.34])).tolist()
    [0, -2, 1, -54, -1100, -1101, -1100, 2001, 2002]
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    bits = values.view(np.int64)
    field = (bits >> 52) & 0x7FF
    fraction = bits & 0xFFFFFFFFFFFFF
    mantissa = np.where(field > 0, fraction | (1 << 52), fraction)
    lowest = (mantissa & -mantissa).astype(np.float64)
    zeros = np.frexp(lowest)[1] - 1
    grid = np.where((mantissa == 0) | (field == 0x7FF), NO_BIT, np.maximum(field, 1) - 1075 + zeros).astype(np.int64)
    grid[bits == np.iinfo(np.int64).min] = NEGATIVE_ZERO
    long = np.flatnonzero((zeros <= 52 - COARSE) & (field > 0) & (field < 0x7FF))
    decimals = _decimals(values[long])
    grid[long[decimals > 0]] = DECIMAL + decimals[decimals > 0]
    return grid


def is_grid(number: int) -> bool:
    """Return whether :func:`lowest_bits` may return this number."""
    return -1074 <= number <= 1023 or number in (NO_BIT, NEGATIVE_ZERO) or 0 < number - DECIMAL <= MOST_DECIMALS


def _decimals(values: Floats) -> NDArray[np.int64]:
    """Return the number of decimals of each number; 0 if it is not a short decimal."""
    places = np.floor(MOST_DIGITS - np.log10(np.abs(values))).astype(np.int64)
    scale = POWERS[np.clip(places, 0, MOST_DECIMALS)]
    digits = np.rint(values * scale)
    found = np.zeros(values.size, dtype=np.int64)
    short = np.flatnonzero((digits / scale == values) & (places > 0) & (places <= MOST_DECIMALS))
    digits, places = digits[short], places[short]
    while (spare := (places > 0) & (np.fmod(digits, 10.0) == 0.0)).any():
        digits, places = np.where(spare, digits / 10.0, digits), places - spare
    found[short] = places
    return found
