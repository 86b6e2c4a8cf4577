"""Compare data sets, list their rows, and write Python source that recreates them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np


def is_frame(value: Any) -> bool:
    """Return True if the value is a pandas DataFrame, without importing pandas."""
    return _pandas(value) == "DataFrame"


def is_series(value: Any) -> bool:
    """Return True if the value is a pandas Series, without importing pandas."""
    return _pandas(value) == "Series"


def _pandas(value: Any) -> str:
    for kind in type(value).__mro__:
        if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in ("DataFrame", "Series"):
            return kind.__name__
    return ""


def fingerprint(value: Any) -> Hashable:
    """Return a hashable value that is equal for two data sets exactly if they have equal contents, types and signed zeros.

    Here NaN equals NaN.

    >>> fingerprint([1, float("nan")]) == fingerprint([1, float("nan")])
    True
    >>> fingerprint([1]) == fingerprint([1.0])
    False
    """
    name = type(value).__name__
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return name, value.shape, tuple(fingerprint(entry) for entry in value.ravel().tolist())
        return name, value.dtype.str, value.shape, value.tobytes()
    if is_frame(value):
        columns = tuple(fingerprint(value.iloc[:, place]) for place in range(value.shape[1]))
        return name, fingerprint(list(value.index)), columns
    if is_series(value):
        return name, str(value.dtype), fingerprint(value.name), tuple(fingerprint(entry) for entry in value.tolist())
    if isinstance(value, Mapping):
        return name, frozenset((fingerprint(key), fingerprint(entry)) for key, entry in value.items())
    if isinstance(value, AbstractSet):
        return name, frozenset(fingerprint(entry) for entry in value)
    if isinstance(value, list | tuple):
        return name, tuple(fingerprint(entry) for entry in value)
    if isinstance(value, float | complex | np.generic):
        return name, repr(value)
    try:
        hash(value)
    except TypeError:
        return name, repr(value)
    return name, value


def rows_of(data: Any) -> list[Any]:
    """Return the rows of a list, tuple, array or data frame."""
    if is_frame(data):
        return list(data.itertuples(index=False, name=None))
    return list(data)


def source(value: Any) -> str:
    """Return Python source that recreates the value, with ``numpy`` imported as ``np`` and ``pandas`` as ``pd``.

    >>> source([1, float("inf")])
    "[1, float('inf')]"
    >>> source(np.array([0.0, 1.5]))
    'np.array([0.0, 1.5])'
    >>> source(np.zeros((0, 2), dtype=np.int64))
    "np.array([], dtype='int64').reshape((0, 2))"
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject and value.dtype.names is None:
        dtype = (
            ""
            if value.dtype == np.float64
            else f", dtype={value.dtype.str if value.dtype.kind in 'US' else value.dtype.name!r}"
        )
        reshape = f".reshape({value.shape})" if value.size == 0 and value.ndim > 1 else ""
        entries = [] if value.size == 0 else value.tolist()
        return f"np.array({source(entries)}{dtype}){reshape}"
    if is_frame(value):
        columns = {name: value.iloc[:, place].tolist() for place, name in enumerate(value.columns)}
        dtypes = {name: str(dtype) for name, dtype in zip(value.columns, value.dtypes, strict=True)}
        return f"pd.DataFrame({source(columns)}).astype({dtypes!r})"
    if type(value) is float and not math.isfinite(value):
        return f"float({str(value)!r})"
    if type(value) is dict:
        return "{" + ", ".join(f"{source(key)}: {source(entry)}" for key, entry in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(source, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(source, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value)
