"""Compare data sets, list their rows, and write Python source that recreates them."""

from __future__ import annotations

import hashlib
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
        content = value.tobytes() if value.nbytes <= _LARGE_BYTES else content_digest(value)
        return name, value.dtype.str, value.shape, content
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
        if len(value) > _LARGE_ROWS and all(map(_is_plain, value)):
            return name, len(value), content_digest(value)
        return name, tuple(fingerprint(entry) for entry in value)
    if isinstance(value, float | complex | np.generic):
        return name, repr(value)
    try:
        hash(value)
    except TypeError:
        return name, repr(value)
    return name, value


_LARGE_ROWS = 10_000  # a longer data set of plain rows is compared by its digest, which takes no memory
_LARGE_BYTES = 1 << 16  # a larger array is compared by its digest
_DIGEST_ROWS = 4096  # rows that are written down at once for a digest
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})


def content_digest(value: Any) -> str:
    """Return a digest of a data set: equal for equal contents, and (up to chance, 2^-128) for no others."""
    digest = hashlib.blake2b(type(value).__name__.encode(), digest_size=16)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"{value.dtype.str} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
    elif is_frame(value):
        for place, name in enumerate(value.columns):
            digest.update(repr((name, content_digest(value.iloc[:, place].to_numpy()))).encode())
        digest.update(content_digest(value.index.to_numpy()).encode())
    else:
        for start in range(0, len(value), _DIGEST_ROWS):
            rows = list(value[start : start + _DIGEST_ROWS])
            digest.update(repr([_without_order(row) for row in rows] if dict in map(type, rows) else rows).encode())
    return digest.hexdigest()


def _is_plain(value: Any) -> bool:
    """Return True if the repr of a value says all about it: scalars of Python, and lists, tuples and dicts of them."""
    kind = type(value)
    if kind in _PLAIN or issubclass(kind, np.generic):
        return True
    if kind is dict:
        return all(map(_is_plain, value)) and all(type(entry) in _PLAIN for entry in value.values())
    return kind in (tuple, list) and all(type(entry) in _PLAIN for entry in value)


def _without_order(row: Any) -> Any:
    return sorted((repr(key), entry) for key, entry in row.items()) if type(row) is dict else row


def rows_of(data: Any) -> list[Any]:
    """Return the rows of a list, tuple, array or data frame."""
    if is_frame(data):
        return list(data.itertuples(index=False, name=None))
    return list(data)


LONGEST_SOURCE = 20_000  # characters of a data set in results and reports; a longer one is shortened
_SHOWN_ROWS = 3  # first and last rows of a data set that is too long to show


def described(data: Any) -> tuple[str, bool]:
    """Return source for a data set, and True; for a long one its size, a digest and its ends, and False.

    >>> described([1, 2])
    ('[1, 2]', True)
    >>> described(list(range(1_000_000)))
    ('<list of 1,000,000 rows, digest 49c515f993285c34: 0, 1, 2, ..., 999997, 999998, 999999>', False)
    """
    rows = _length(data)
    if rows is None or rows <= LONGEST_SOURCE // 2:  # a row takes two characters at least
        text = source(data)
        if len(text) <= LONGEST_SOURCE:
            return text, True
    kind = type(data).__name__
    if rows is None:
        text = source(data)
        return f"<{kind} whose source has {len(text):,} characters, beginning with {text[:_SHORT]}>", False
    if rows > 2 * _SHOWN_ROWS:
        ends = [*_some_rows(data, 0, _SHOWN_ROWS), "...", *_some_rows(data, rows - _SHOWN_ROWS, rows)]
    else:
        ends = _some_rows(data, 0, rows)
    return f"<{kind} of {rows:,} rows, digest {content_digest(data)[:16]}: {', '.join(ends)}>", False


_SHORT = 200  # characters of one row of a data set that is too long to show


def _some_rows(data: Any, start: int, stop: int) -> list[str]:
    rows = rows_of(data.iloc[start:stop]) if is_frame(data) else list(data[start:stop])
    texts = [source(row) for row in rows]
    return [text if len(text) <= _SHORT else f"{text[:_SHORT]}..." for text in texts]


def _length(data: Any) -> int | None:
    """Return the number of rows of a list, tuple, array or data frame, otherwise None."""
    if type(data) in (list, tuple) or (isinstance(data, np.ndarray) and data.ndim) or is_frame(data):
        return len(data)
    return None


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
    text = repr(value)
    if type(value).__module__ == "numpy" and isinstance(value, np.generic) and not text.startswith("np."):
        return f"np.{type(value).__name__}({text})"  # before version 2 numpy leaves out the type
    return text
