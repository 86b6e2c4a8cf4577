"""Queries to a database as mechanisms: rows are loaded into a table, the query runs, and what it returns is the output.

Works with any connection of Python's database interface (DB-API 2.0, PEP 249); tried with SQLite and DuckDB. Every release
happens in a transaction that is rolled back, and begins with a look at the table: if rows of an earlier release are still there,
because the connection commits by itself or the query does, the audit ends with an error instead of mixing data.

>>> import functools, random, sqlite3
>>> import numpy as np
>>> people = mechanism(
...     functools.partial(sqlite3.connect, ":memory:"),
...     "SELECT COUNT(*) AS n FROM people WHERE age > 30",
...     table="people",
...     columns=("age", "city"),
...     create="CREATE TABLE people (age INTEGER, city TEXT)",
... )
>>> people.sample([(25, "Bern"), (41, "Basel")], 2, np.random.default_rng(0))
[{'columns': ('n',), 'rows': [(1,)]}, {'columns': ('n',), 'rows': [(1,)]}]
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.validation import shorten
from dpaudit._util.values import rows_of
from dpaudit.adapters._loading import native
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import Plain
from dpaudit.mechanism.waiting import at_end_of_audit

PLACEHOLDERS: dict[str, Callable[[int, str], str]] = {
    "qmark": lambda _, __: "?",
    "format": lambda _, __: "%s",
    "pyformat": lambda _, __: "%s",
    "numeric": lambda place, _: f":{place + 1}",
}


def mechanism(
    connect: Callable[[], Any],
    query: str | Sequence[str] | Callable[[Any], Any],
    *,
    table: str,
    columns: Sequence[str],
    create: str | None = None,
) -> Plain:
    """Return a query as a mechanism; each call is one release.

    Parameters
    ----------
    connect : callable
        Makes a connection, with the functions that the query needs. Every worker and thread has one of its own, which stays
        open until the audit ends.
    query : str, sequence of str or callable
        One statement, or several of which the last one returns the output, as
        ``{"columns": names, "rows": rows}``; or a function of the connection that returns the output.
    table : str
        The table into which the data are loaded. It must be empty.
    columns : sequence of str
        Its columns, in the order of the values of a row. Rows may be tuples, dicts, or values of a single column.
    create : str, optional
        A statement that makes the table, once for each connection.
    """
    if not callable(connect) or hasattr(connect, "cursor"):  # connections of SQLite are callable
        raise InvalidArgument(
            f"connect={shorten(connect)} must be a function that makes a connection, such as "
            "functools.partial(sqlite3.connect, ':memory:'); a connection itself cannot be sent to workers."
        )
    statements = (query,) if isinstance(query, str) else query
    if not callable(statements):
        statements = tuple(statements) if isinstance(statements, Sequence) else ()
    if not callable(statements) and (not statements or not all(isinstance(text, str) for text in statements)):
        raise InvalidArgument(f"query={shorten(query)} must be a statement, a list of them, or a function.")
    if isinstance(columns, str) or not columns:
        raise InvalidArgument(f"columns={columns!r} must be a list of names.")
    return Plain(Query(connect, statements, table, tuple(columns), create))


@dataclass(frozen=True, slots=True)
class Query:
    """A query on data that are loaded into a table for every release; see :func:`mechanism`."""

    connect: Callable[[], Any]
    query: tuple[str, ...] | Callable[[Any], Any]
    table: str
    columns: tuple[str, ...]
    create: str | None = None

    def __call__(self, data: Any) -> Any:
        """Load the rows, run the query, and roll back."""
        connection = _opened(self)
        try:
            return self._released(connection, data)
        finally:
            try:
                connection.rollback()
            except Exception:  # the connection is of no use any more; what the query raised is the output
                _close(_key(self))

    def _released(self, connection: Any, data: Any) -> Any:
        cursor = _cursor(connection)
        _begin(connection, cursor)
        cursor.execute(f"SELECT COUNT(*) FROM {self.table}")
        (left,) = cursor.fetchone()
        if left:
            raise MechanismError(
                f"table={self.table!r} holds {left} rows before the data are loaded. It must be empty, and the connection must "
                "not commit: turn off autocommit, and leave COMMIT out of the query."
            )
        if rows := [self._values(row) for row in rows_of(data)]:
            cursor.executemany(self._insert(connection), rows)
        if callable(self.query):
            return self.query(connection)
        for statement in self.query:
            cursor.execute(statement)
        if cursor.description is None:
            return {"columns": (), "rows": []}
        return {
            "columns": tuple(column[0] for column in cursor.description),
            "rows": list(map(tuple, cursor.fetchall())),
        }

    def _values(self, row: Any) -> tuple[Any, ...]:
        if isinstance(row, Mapping):
            return tuple(native(row[name]) for name in self.columns)
        values = tuple(row) if isinstance(row, tuple | list | np.ndarray) else (row,)
        if len(values) != len(self.columns):
            raise MechanismError(
                f"row={shorten(row)} has {len(values)} values; columns={self.columns!r} asks for as many."
            )
        return tuple(native(value) for value in values)

    def _insert(self, connection: Any) -> str:
        library = sys.modules.get(type(connection).__module__.partition(".")[0].removeprefix("_"))
        style = getattr(library, "paramstyle", "qmark")
        if style not in PLACEHOLDERS:
            raise MechanismError(
                f"paramstyle={style!r} of {library!r} is not known; use one of {', '.join(PLACEHOLDERS)}."
            )
        marks = ", ".join(PLACEHOLDERS[style](place, name) for place, name in enumerate(self.columns))
        return f"INSERT INTO {self.table} ({', '.join(self.columns)}) VALUES ({marks})"


def _cursor(connection: Any) -> Any:
    """Return a cursor; DuckDB makes another connection of it, with transactions of its own, but connections are cursors there."""
    return connection if hasattr(connection, "fetchall") else connection.cursor()


def _begin(connection: Any, cursor: Any) -> None:
    """Begin a transaction, on connections that do not do so by themselves."""
    if getattr(connection, "isolation_level", "") is None:  # SQLite in autocommit mode
        cursor.execute("BEGIN")
    elif callable(begin := getattr(connection, "begin", None)):
        begin()


_connections: dict[tuple[int, int, Query], Any] = {}  # by process and thread


def _key(query: Query) -> tuple[int, int, Query]:
    return os.getpid(), threading.get_ident(), query


def _opened(query: Query) -> Any:
    key = _key(query)
    if key not in _connections:
        connection = query.connect()
        if query.create is not None:
            _cursor(connection).execute(query.create)
            with contextlib.suppress(Exception):  # where nothing was begun there is nothing to commit
                connection.commit()
        _connections[key] = connection
    return _connections[key]


def _close(key: tuple[int, int, Query]) -> None:
    with contextlib.suppress(Exception):
        _connections.pop(key).close()


@at_end_of_audit
def close_connections() -> None:
    """Close the connections that this thread has opened."""
    for key in [key for key in _connections if key[:2] == (os.getpid(), threading.get_ident())]:
        _close(key)
