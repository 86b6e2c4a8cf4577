"""Synthetic data: anything with ``fit(table)`` and ``sample(n)``. Released are the rows and the metadata.

A table is a large output, and few of its numbers show a leak. So what the auditor gets of a release is a summary, a flat dict
of named things that people look at first:

- ``rows``, how many there are, and ``schema``, the names and types of the columns
- of every column of numbers its ``min`` and ``max``; of every other one the ``categories`` that occur, unless ``domain`` names
  them
- of every value that ``domain`` names how often its column has it (the one-way marginals), and how often it has others
- of every record in ``records`` how often it occurs
- the attributes of the fitted synthesiser that ``metadata`` names: bounds, categories, a structure
- what the functions in ``suspect`` return for the table

Each is a function of what is released, so a claim that holds for the release holds for the summary (post-processing): what
is left out of it can hide a leak, and never makes one. The claim is yours; so are the neighbours, add-remove for most
synthesisers.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.validation import check_count, shorten
from dpaudit._util.values import fingerprint, is_frame, rows_of
from dpaudit.adapters.estimators import released
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import PerRelease, kept, seeded_globals

MOST_CATEGORIES = 50
"""Categories of a column that are listed; of more of them only the number is."""


@dataclass(frozen=True, slots=True)
class Synthesis:
    """Make a synthesiser, fit it, draw a table, and summarise it."""

    make: Callable[..., Any]
    rows: int | None
    domain: Mapping[Any, tuple[Any, ...]]
    records: tuple[Any, ...]
    metadata: tuple[str, ...]
    suspect: Mapping[str, Callable[[Any], Any]]

    def __call__(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return the summary of one release."""
        with seeded_globals(rng):
            synthesiser = self.make(rng) if _takes_generator(self.make) else self.make()
            if not all(callable(getattr(synthesiser, name, None)) for name in ("fit", "sample")):
                raise MechanismError(f"make() returned {shorten(synthesiser)}, which has no methods fit and sample.")
            table = kept(data)  # fitting in place must not change the data of the next release
            synthesiser.fit(table)
            drawn = synthesiser.sample(len(data) if self.rows is None else self.rows)
        summary = summarise(drawn, domain=self.domain, records=self.records)
        if self.metadata:
            summary |= {f"metadata {name}": value for name, value in released(synthesiser, self.metadata).items()}
        summary |= {f"suspect {name}": function(drawn) for name, function in self.suspect.items()}
        return dict(sorted(summary.items()))


def mechanism(
    make: Callable[..., Any],
    *,
    rows: int | None = None,
    domain: Mapping[Any, Sequence[Any]] | None = None,
    records: Sequence[Any] = (),
    metadata: Sequence[str] | str = (),
    suspect: Mapping[str, Callable[[Any], Any]] | Callable[[Any], Any] | None = None,
) -> PerRelease:
    """Return a synthesiser as a mechanism that releases a summary of its table.

    Parameters
    ----------
    make
        Makes a new synthesiser, for instance ``lambda: Synthesiser(epsilon=1.0)``. Where it takes one argument it is called
        with a ``numpy.random.Generator``; ``random`` and legacy ``numpy.random`` are seeded either way.
    rows
        How many rows to draw; None draws as many as the data have, which under add-remove shows how many these are.
    domain
        Values to count, by column name (or number, if the table has no names).
    records
        Records to look for: rows as tuples. Give those that differ between the neighbours.
    metadata
        Names of attributes that are released beside the rows.
    suspect
        A function of the synthetic table, or several by name.

    Examples
    --------
    >>> class Copy:                                       # the worst synthesiser
    ...     def fit(self, table):
    ...         self.table = table
    ...     def sample(self, n):
    ...         return self.table[:n]
    >>> copied = mechanism(Copy, records=[("b", 2)], domain={0: ["a"]})
    >>> copied.sample([("a", 1), ("b", 2)], 1, np.random.default_rng(0))[0]["record ('b', 2)"]
    1
    """
    if not callable(make):
        raise InvalidArgument(
            f"make={shorten(make)} must be a function that makes a new synthesiser: lambda: {type(make).__name__}(...). A "
            "fitted one would carry state from one release to the next."
        )
    if rows is not None:
        check_count(rows=rows)
    if domain is not None and not isinstance(domain, Mapping):
        raise InvalidArgument(f"domain={shorten(domain)} must map columns to lists of their values.")
    suspects = {"table": suspect} if callable(suspect) else dict(suspect or {})
    for name, function in suspects.items():
        if not callable(function):
            raise InvalidArgument(f"suspect[{name!r}]={shorten(function)} must be a function of the synthetic table.")
    return PerRelease(
        Synthesis(
            make,
            rows,
            {column: tuple(values) for column, values in (domain or {}).items()},
            tuple(records),
            (metadata,) if isinstance(metadata, str) else tuple(metadata),
            suspects,
        )
    )


def summarise(
    table: Any, *, domain: Mapping[Any, Sequence[Any]] | None = None, records: Sequence[Any] = ()
) -> dict[str, Any]:
    """Summarise a data frame, an array or a list of rows, as the module says.

    Parameters
    ----------
    table : object
        The rows.
    domain : mapping, optional
        The categories of some columns, by name or number, each counted even if none of its rows is there.
    records : sequence
        Rows whose copies in the table are counted.

    Examples
    --------
    >>> summarise([("a", 1), ("b", 5)], domain={0: ["a", "c"]})
    {'rows': 2, 'schema': '0: str, 1: int', '0 = a': 1, '0 = c': 0, '0 other': 1, '1 min': 1.0, '1 max': 5.0}
    """
    if is_frame(table):
        names: list[Any] = list(table.columns)
        columns = [table.iloc[:, place].tolist() for place in range(len(names))]
        types = [str(dtype) for dtype in table.dtypes]
        rows = rows_of(table)
    else:
        rows = [tuple(row) if isinstance(row, list | tuple | np.ndarray) else (row,) for row in rows_of(table)]
        names = list(range(max(map(len, rows), default=0)))
        columns = [[row[place] if place < len(row) else None for row in rows] for place in names]
        types = ["/".join(sorted({_kind(value) for value in values})) for values in columns]
    wanted = dict(domain or {})
    schema = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types, strict=True))
    summary: dict[str, Any] = {"rows": len(rows), "schema": schema}
    for name, values in zip(names, columns, strict=True):
        summary |= {f"{name} {key}": value for key, value in _column(values, wanted.pop(name, None)).items()}
    for name, expected in wanted.items():  # a column that the release has not got
        summary |= {f"{name} {key}": value for key, value in _column([], expected).items()}
    seen = Counter(map(_comparable, rows)) if records else Counter()
    return summary | {f"record {record!r}": seen[_comparable(record)] for record in records}


def _column(values: Sequence[Any], domain: Sequence[Any] | None) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if domain is not None:
        shown = {f"= {value}": sum(1 for entry in values if entry == value) for value in domain}
        shown["other"] = len(values) - sum(shown.values())
    numbers = [float(value) for value in values if _is_number(value)]
    if numbers and len(numbers) == len(values):
        shown |= {"min": min(numbers), "max": max(numbers)}
    elif values and domain is None:
        categories = sorted({str(value) for value in values})
        shown["categories"] = ", ".join(categories) if len(categories) <= MOST_CATEGORIES else len(categories)
    return shown


def _kind(value: Any) -> str:
    return type(value.item() if isinstance(value, np.generic) else value).__name__


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _comparable(record: Any) -> Any:
    """A record as something that equal records share: numpy's numbers as Python's."""
    return fingerprint(tuple(entry.item() if isinstance(entry, np.generic) else entry for entry in record))


def _takes_generator(make: Callable[..., Any]) -> bool:
    """Return whether ``make`` needs an argument."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return sum(one.default is one.empty and one.kind in positional for one in parameters) == 1
