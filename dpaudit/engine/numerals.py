"""Numbers as floats, without loss: where the nearest float is not the number itself, what it leaves over is kept beside it."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

EXACT_INTEGER = 2**53  # beyond it a float cannot tell neighbouring integers apart
NUMERIC = "fbiucmM"  # kinds of arrays that hold numbers, or times, which are counted from 1970


class Numerals(NamedTuple):
    """Rows of floats, and what they leave over: None where nothing is. Whether it is depends on the numbers alone."""

    near: Floats
    rest: Floats | None = None


def numeric(array: NDArray[Any]) -> Numerals | None:
    """Rows of floats for an array of numbers, None for any other. Columns are contiguous.

    Missing times and masked numbers are NaN. Complex numbers are their real parts followed by their imaginary parts.
    """
    if isinstance(array, np.ma.MaskedArray):
        return _masked(array)
    rows = array.reshape(array.shape[0], -1) if array.ndim != 1 else array[:, None]
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "fb" and size <= 8:
        return Numerals(np.asfortranarray(rows, dtype=np.float64))
    if kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            near = rows.astype(np.float64, order="F")
            left = np.asarray(rows - near, dtype=np.float64)
        return _exactly(near, np.where(np.isfinite(near), left, 0.0))
    if kind in "iu":
        near = rows.astype(np.float64, order="F")
        wide = size == 8 and rows.size and max(abs(int(rows.max())), abs(int(rows.min()))) > EXACT_INTEGER
        return _exactly(near, _left_of_integers(rows, near)) if wide else Numerals(near)
    if kind == "c":
        return numeric(np.concatenate([rows.real, rows.imag], axis=1))
    if kind in "mM":
        missing = np.isnat(rows)
        found = numeric(np.where(missing, 0, rows.astype(np.int64)))
        return None if found is None else _without(found, missing)
    return None


def _masked(array: np.ma.MaskedArray[Any, Any]) -> Numerals | None:
    """What is masked is not released, whatever lies beneath."""
    missing = np.ma.getmaskarray(array)
    if array.dtype.kind not in NUMERIC:
        return None
    found = numeric(np.where(missing, np.zeros(1, array.dtype), array.data))
    missing = missing.reshape(len(array), -1)
    parts = 2 if array.dtype.kind == "c" else 1
    return None if found is None else _without(found, np.concatenate([missing] * parts, axis=1))


def _without(found: Numerals, missing: NDArray[np.bool_]) -> Numerals:
    return found._replace(near=np.asfortranarray(np.where(missing, np.nan, found.near))) if missing.any() else found


def _exactly(near: Floats, rest: Floats) -> Numerals:
    return Numerals(near, rest if rest.any() else None)


def _left_of_integers(rows: NDArray[Any], near: Floats) -> Floats:
    """``rows - near`` in halves of 32 bits, because ``near`` may be an integer beyond the range of theirs."""
    high = np.floor(near / 2.0**32)
    low = near - high * 2.0**32
    return ((rows >> 32).astype(np.float64) - high) * 2.0**32 + ((rows & 0xFFFFFFFF).astype(np.float64) - low)
