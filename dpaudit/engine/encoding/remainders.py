"""Represent numbers as floats without loss: the nearest float, and the exact remainder if there is one."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

EXACT_INTEGER = 2**53  # floats hold all integers up to here exactly
NUMERIC = "fbiucmM"  # dtype kinds of numbers, and of times, which are counted from 1970


class ExactFloats(NamedTuple):
    """Each number as the nearest float (``near``) plus the exact remainder (``rest``; None if every remainder is zero)."""

    near: Floats
    rest: Floats | None = None


def numeric(array: NDArray[Any]) -> ExactFloats | None:
    """Return rows of floats with contiguous columns for an array of numbers; None for any other array.

    Missing times and masked numbers are NaN. Complex numbers are their real parts followed by their imaginary parts.
    """
    if isinstance(array, np.ma.MaskedArray):
        return _masked(array)
    rows = array.reshape(array.shape[0], -1) if array.ndim != 1 else array[:, None]
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "fb" and size <= 8:
        return ExactFloats(np.asfortranarray(rows, dtype=np.float64))
    if kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            near = rows.astype(np.float64, order="F")
            rest = np.asarray(rows - near, dtype=np.float64)
        return _with_remainders(near, np.where(np.isfinite(near), rest, 0.0))
    if kind in "iu":
        near = rows.astype(np.float64, order="F")
        wide = size == 8 and rows.size and max(abs(int(rows.max())), abs(int(rows.min()))) > EXACT_INTEGER
        return _with_remainders(near, _integer_remainders(rows, near)) if wide else ExactFloats(near)
    if kind == "c":
        return numeric(np.concatenate([rows.real, rows.imag], axis=1))
    if kind in "mM":
        missing = np.isnat(rows)
        found = numeric(np.where(missing, 0, rows.astype(np.int64)))
        return None if found is None else _with_missing(found, missing)
    return None


def _masked(array: np.ma.MaskedArray[Any, Any]) -> ExactFloats | None:
    """Return rows of floats with NaN for masked numbers; the values under the mask are not released."""
    missing = np.ma.getmaskarray(array)
    if array.dtype.kind not in NUMERIC:
        return None
    found = numeric(np.where(missing, np.zeros(1, array.dtype), array.data))
    missing = missing.reshape(len(array), -1)
    parts = 2 if array.dtype.kind == "c" else 1
    return None if found is None else _with_missing(found, np.concatenate([missing] * parts, axis=1))


def _with_missing(found: ExactFloats, missing: NDArray[np.bool_]) -> ExactFloats:
    return found._replace(near=np.asfortranarray(np.where(missing, np.nan, found.near))) if missing.any() else found


def _with_remainders(near: Floats, rest: Floats) -> ExactFloats:
    return ExactFloats(near, rest if rest.any() else None)


def _integer_remainders(rows: NDArray[Any], near: Floats) -> Floats:
    """Return ``rows - near``, computed in halves of 32 bits because ``near`` may exceed the range of the integers."""
    high = np.floor(near / 2.0**32)
    low = near - high * 2.0**32
    return ((rows >> 32).astype(np.float64) - high) * 2.0**32 + ((rows & 0xFFFFFFFF).astype(np.float64) - low)
