"""Containers of rows: lists, arrays and data frames whose types do not depend on the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis.strategies import SearchStrategy
from numpy.typing import DTypeLike, NDArray

from dpaudit._util.validation import shorten
from dpaudit.errors import InvalidArgument, MissingDependency
from dpaudit.neighbours._corner_rows import corner_rows

MakeContainer: TypeAlias = Callable[[list[Any]], Any]
"""Turns a list of rows into a data set: ``list``, ``tuple``, ``frame(...)``, ``array(...)``, a function."""


@dataclass(frozen=True, slots=True)
class Array:
    """Builds numpy arrays of one dtype, shape ``(number of rows, *row_shape)``, also from no rows."""

    dtype: np.dtype[Any]
    row_shape: tuple[int, ...] = ()

    def __call__(self, rows: list[Any]) -> NDArray[Any]:
        """Return the rows as an array."""
        try:
            return np.array(rows, dtype=self.dtype).reshape((len(rows), *self.row_shape))
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(
                f"rows={shorten(rows)} do not fit an array of dtype={self.dtype} and row shape {self.row_shape}: "
                f"{error}. Pass container=neighbours.array(dtype, row_shape)."
            ) from error


@dataclass(frozen=True, slots=True)
class Frame:
    """Builds pandas data frames that keep their columns and dtypes when they have no rows."""

    columns: tuple[str, ...]
    dtypes: tuple[Any, ...]

    def __call__(self, rows: list[Any]) -> Any:
        """Return the rows as a data frame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependency(
                "container=frame(...) needs pandas; install it with 'pip install pandas'."
            ) from error
        by_column = list(zip(*map(self._cells, rows), strict=True)) if rows else [()] * len(self.columns)
        return pd.DataFrame(
            {
                name: pd.Series(list(cells), dtype=dtype)
                for name, cells, dtype in zip(self.columns, by_column, self.dtypes, strict=True)
            }
        )

    def _cells(self, row: Any) -> tuple[Any, ...]:
        if isinstance(row, Mapping):
            cells = tuple(row[name] for name in self.columns if name in row)
        else:
            cells = tuple(row) if isinstance(row, tuple | list | np.ndarray) else (row,)
        if len(cells) != len(self.columns):
            raise InvalidArgument(
                f"row={shorten(row)} must have one entry for each of the columns {list(self.columns)}."
            )
        return cells


def array(dtype: DTypeLike, row_shape: tuple[int, ...] = ()) -> Array:
    """Return a container that makes numpy arrays of this dtype; ``row_shape`` is the shape of one row.

    >>> array("int64")([]).dtype
    dtype('int64')
    """
    return Array(np.dtype(dtype), tuple(row_shape))


def frame(columns: Sequence[str], dtypes: Sequence[Any] | Mapping[str, Any]) -> Frame:
    """Return a container that makes pandas data frames; a row is a tuple, a dict, or one value for a single column.

    A frame without rows keeps its columns and dtypes; otherwise they would reveal that it is empty.

    >>> frame(["age"], ["int64"])([]).dtypes.to_dict()
    {'age': dtype('int64')}
    """
    if isinstance(columns, str) or not columns:
        raise InvalidArgument(f"columns={columns!r} must be a list of column names, and not empty.")
    if len(set(columns)) != len(columns):
        raise InvalidArgument(f"columns={list(columns)!r} must be different from each other.")
    if isinstance(dtypes, str) or len(dtypes) != len(columns):
        raise InvalidArgument(f"dtypes={dtypes!r} must name one dtype for each of the {len(columns)} columns.")
    if isinstance(dtypes, Mapping):
        if set(dtypes) != set(columns):
            raise InvalidArgument(f"dtypes={dict(dtypes)!r} must have the columns {list(columns)!r} as its keys.")
        dtypes = [dtypes[name] for name in columns]
    if any(dtype is None for dtype in dtypes):
        raise InvalidArgument(f"dtypes={list(dtypes)!r} must not hold None: an inferred dtype changes with the rows.")
    return Frame(tuple(columns), tuple(dtypes))


def resolve(container: Any, rows: SearchStrategy[Any]) -> MakeContainer:
    """Return the container as a function; for ``np.ndarray`` its dtype and row shape are those of the corner rows."""
    if container is np.ndarray:
        known = corner_rows(rows).all
        try:
            sample = np.array(known)
        except ValueError as error:
            raise InvalidArgument(
                f"rows={rows!r} have no common shape ({error}); pass container=neighbours.array(dtype, row_shape) "
                "or a list."
            ) from error
        return Array(sample.dtype, sample.shape[1:])
    if not callable(container):
        raise InvalidArgument(
            f"container={container!r} must be list, numpy.ndarray, neighbours.frame(columns, dtypes), or a function "
            "that turns a list of rows into a data set."
        )
    make: MakeContainer = container
    return make
