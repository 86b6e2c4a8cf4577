"""Tables: columns as value numbers, equivalence classes, and distributions of sensitive attributes.

A record is a row number from 0, independent of the index of the data frame; texts for people (messages, reports) number the
first record 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit._util.validation import check_choice, did_you_mean, shorten
from dpaudit.anonymity.tables.cells import MISSING, SUPPRESSED, as_text, kind
from dpaudit.errors import InvalidArgument

MissingPolicy: TypeAlias = Literal["error", "value", "suppressed"]
Names: TypeAlias = str | Iterable[Hashable]

# Inferred types of object columns in which equal cells have one kind; cells of other columns are keyed by kind too.
_UNMIXED = {
    "string",
    "integer",
    "floating",
    "mixed-integer-float",
    "boolean",
    "bytes",
    "date",
    "datetime",
    "datetime64",
}


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """An attribute: ``codes[record]`` is the number of its value, ``values`` are in order of first appearance."""

    name: Hashable
    codes: NDArray[np.int64]
    values: tuple[Any, ...]
    order: tuple[Any, ...] | None = None  # of an ordered Categorical

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of records with each value."""
        return np.bincount(self.codes, minlength=len(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Equivalence classes: records that agree on all quasi-identifiers, numbered in order of first appearance."""

    of_record: NDArray[np.int64]
    sizes: NDArray[np.int64]
    sorted_records: NDArray[np.int64]  # records by class, and in each class by position
    starts: NDArray[np.int64]

    @classmethod
    def from_codes(cls, columns: Sequence[NDArray[np.int64]], records: int) -> Classes:
        """Group records by the tuple of their codes."""
        label = np.zeros(records, dtype=np.int64)
        for codes in columns:
            # Renumbered after every column, so that the product never overflows.
            label = pd.factorize(label * (int(codes.max(initial=0)) + 1) + codes)[0].astype(np.int64)
        sizes = np.bincount(label)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        return cls(label, sizes, np.argsort(label, kind="stable"), starts)

    def __len__(self) -> int:
        return len(self.sizes)

    def records(self, index: int) -> NDArray[np.int64]:
        """Return the positions of the records of one class."""
        start = self.starts[index]
        return self.sorted_records[start : start + self.sizes[index]]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table, its quasi-identifiers (what an observer may know) and sensitive attributes (what they must not learn).

    Make one with :meth:`from_frame` or :meth:`from_file`.

    >>> frame = pd.DataFrame({"plz": ["32**", "32**", "26**"], "system": ["iOS", "Linux", "iOS"]}, index=[9, 9, 7])
    >>> table = Table.from_frame(frame, quasi_identifiers="plz", sensitive="system")
    >>> table
    Table(3 records, 2 classes, quasi-identifiers plz, sensitive system)
    >>> table.distribution("system")
    {'iOS': Fraction(2, 3), 'Linux': Fraction(1, 3)}
    >>> table.key(1), table.class_distribution(1)
    ({'plz': '26**'}, {'iOS': Fraction(1, 1)})
    """

    quasi_identifiers: tuple[Column, ...]
    sensitive: tuple[Column, ...]
    classes: Classes
    index: pd.Index

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame | Mapping[Any, Sequence[Any]],
        *,
        quasi_identifiers: Names,
        sensitive: Names = (),
        missing: MissingPolicy = "error",
    ) -> Table:
        """Read the named columns of a data frame (or of a mapping from name to cells).

        Parameters
        ----------
        frame
            The data; one row per record.
        quasi_identifiers
            Names of the columns that an observer may know.
        sensitive
            Names of the columns that an observer must not learn.
        missing
            Meaning of an empty cell (None, NaN, NaT, NA). ``"error"``: not allowed. ``"value"``: the value MISSING, equal to
            no other. ``"suppressed"``: the mark ``*``, equal to cells that contain it. Rows are never dropped.
        """
        if not isinstance(frame, pd.DataFrame):
            frame = _frame(frame)
        check_choice(get_args(MissingPolicy), missing=missing)
        known, secret = _names("quasi_identifiers", quasi_identifiers), _names("sensitive", sensitive)
        if not known:
            raise InvalidArgument("quasi_identifiers is empty; name at least one column that an observer may know.")
        both = [name for name in known if name in secret]
        if both:
            raise InvalidArgument(
                f"{both[0]!r} is both a quasi-identifier and sensitive; an attribute that the observer knows needs no "
                "protection, and one that is protected is not known. Name it once."
            )
        positions = {name: locate(frame, name) for name in (*known, *secret)}
        if not len(frame):
            raise InvalidArgument("The table has no records; every measure of an empty table would be vacuous.")
        columns = {
            name: encode(frame.iloc[:, position], name=name, missing=missing) for name, position in positions.items()
        }
        classes = Classes.from_codes([columns[name].codes for name in known], len(frame))
        return cls(tuple(columns[n] for n in known), tuple(columns[n] for n in secret), classes, frame.index)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        quasi_identifiers: Names,
        sensitive: Names = (),
        missing: MissingPolicy = "error",
        **options: Any,
    ) -> Table:
        """Read a CSV or Parquet file.

        Parameters
        ----------
        path
            The file.
        quasi_identifiers, sensitive, missing
            As for :meth:`from_frame`.
        options
            Passed to :func:`dpaudit.anonymity.read_frame`.
        """
        from dpaudit.anonymity.tables.reading import read_frame

        names = (*_names("quasi_identifiers", quasi_identifiers), *_names("sensitive", sensitive))
        frame = read_frame(path, columns=names, **options)
        return cls.from_frame(frame, quasi_identifiers=quasi_identifiers, sensitive=sensitive, missing=missing)

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.classes.of_record)

    def key(self, index: int) -> dict[Hashable, Any]:
        """Return the value of each quasi-identifier that the records of a class share."""
        first = self.classes.records(self._class(index))[0]
        return {column.name: column.values[column.codes[first]] for column in self.quasi_identifiers}

    def attribute(self, name: Hashable | None = None) -> Column:
        """Return a sensitive attribute; the name may be left out if there is only one."""
        if name is None and len(self.sensitive) == 1:
            return self.sensitive[0]
        names = [column.name for column in self.sensitive]
        for column in self.sensitive:
            if column.name == name:
                return column
        if not names:
            raise InvalidArgument("The table was read without sensitive attributes; name them with sensitive=.")
        if name is None:
            raise InvalidArgument(f"attribute=None: choose one of the sensitive attributes {names!r}.")
        raise InvalidArgument(f"attribute={name!r} is not one of {names!r}.{did_you_mean(name, names)}")

    def distribution(self, attribute: Hashable | None = None) -> dict[Any, Fraction]:
        """Return the distribution Q of the attribute in the whole table (the completely generalised table)."""
        column = self.attribute(attribute)
        return by_value(column.values, [Fraction(count, self.records) for count in column.counts.tolist()])

    def class_distribution(self, index: int, attribute: Hashable | None = None) -> dict[Any, Fraction]:
        """Return the distribution L of the attribute in one class: what an observer who knows the class learns."""
        column = self.attribute(attribute)
        codes = column.codes[self.classes.records(self._class(index))]
        present, counts = np.unique(codes, return_counts=True)
        shares = [Fraction(count, len(codes)) for count in counts.tolist()]
        return by_value((column.values[code] for code in present), shares)

    def regrouped(self, known: Iterable[Hashable]) -> Table:
        """Return the table as seen by an observer who knows some sensitive attributes too."""
        extra = tuple(self.attribute(name) for name in known)
        names = {column.name for column in extra}
        columns = self.quasi_identifiers + extra
        rest = tuple(column for column in self.sensitive if column.name not in names)
        return Table(columns, rest, Classes.from_codes([c.codes for c in columns], self.records), self.index)

    def _class(self, index: int) -> int:
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < len(self.classes):
            raise InvalidArgument(f"index={index!r} must be a class number from 0 to {len(self.classes) - 1}.")
        return int(index)

    def __repr__(self) -> str:
        known, secret = (
            ", ".join(str(c.name) for c in columns) for columns in (self.quasi_identifiers, self.sensitive)
        )
        return f"Table({self.records} records, {len(self.classes)} classes, quasi-identifiers {known}" + (
            f", sensitive {secret})" if secret else ")"
        )


def uniform_prior(values: Iterable[Any]) -> dict[Any, Fraction]:
    """Return the prior of the lecture notes: every value is equally likely, independent of the table.

    >>> uniform_prior(["iOS", "Android"])
    {'iOS': Fraction(1, 2), 'Android': Fraction(1, 2)}
    """
    distinct = list(dict.fromkeys(values))
    return {value: Fraction(1, len(distinct)) for value in distinct}


def locate(frame: pd.DataFrame, name: Hashable) -> int:
    """Return the position of a column that must exist exactly once."""
    names = list(frame.columns)
    positions = [position for position, column in enumerate(names) if kind(column) == kind(name) and column == name]
    if not positions:
        raise InvalidArgument(
            f"column={name!r} is not in the table, which has {shorten(names)}.{did_you_mean(name, names)}"
        )
    if len(positions) > 1:
        raise InvalidArgument(
            f"column={name!r} occurs {len(positions)} times in the table; rename the columns so that it is clear."
        )
    return positions[0]


def encode(series: pd.Series[Any], *, name: Hashable, missing: MissingPolicy = "error") -> Column:
    """Number the values of a column in order of first appearance; ``missing`` is the policy of ``Table.from_frame``."""
    empty = series.isna().to_numpy(dtype=bool)
    if empty.any():
        if missing == "error":
            raise InvalidArgument(
                f"column={name!r} has {int(empty.sum())} missing cells, the first in record {int(empty.argmax()) + 1}. Choose"
                " missing='value' (a value of its own) or missing='suppressed' (the same as *); rows are never dropped."
            )
        cells = series.to_numpy(dtype=object).copy()
        cells[empty] = MISSING if missing == "value" else SUPPRESSED
        codes, values = _by_kind(cells, name)
        return Column(name, codes, values)
    order = None
    if isinstance(series.dtype, pd.CategoricalDtype) and series.dtype.ordered:
        order = tuple(series.dtype.categories.tolist())
    if series.dtype == object and pd.api.types.infer_dtype(series, skipna=False) not in _UNMIXED:
        codes, values = _by_kind(series.to_numpy(dtype=object), name)
        return Column(name, codes, values)
    numbers, uniques = pd.factorize(series)
    return Column(name, numbers.astype(np.int64), tuple(uniques.tolist()), order)


def _by_kind(cells: NDArray[Any], name: Hashable) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    seen: dict[tuple[str, Any], int] = {}
    codes = np.empty(len(cells), dtype=np.int64)
    for position, cell in enumerate(cells):
        try:
            codes[position] = seen.setdefault((kind(cell), cell), len(seen))
        except TypeError:
            raise InvalidArgument(
                f"column={name!r} holds {shorten(cell)} in record {position + 1}; a {type(cell).__name__} cannot be "
                "compared safely. Turn such cells into text or tuples first."
            ) from None
    return codes, tuple(cell for _, cell in seen)


def _names(argument: str, names: Names) -> tuple[Hashable, ...]:
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        if not isinstance(name, Hashable):
            raise InvalidArgument(f"{argument} holds {name!r}, which cannot be a column name.")
        if listed.count(name) > 1:
            raise InvalidArgument(f"{argument} names {name!r} twice.")
    return listed


def _frame(columns: Any) -> pd.DataFrame:
    if not isinstance(columns, Mapping):
        raise InvalidArgument(
            f"frame={shorten(columns)} must be a pandas DataFrame or a mapping from name to cells; "
            "Table.from_file reads a file."
        )
    for name, cells in columns.items():
        if isinstance(cells, str) or not hasattr(cells, "__len__"):
            raise InvalidArgument(f"frame: the column {name!r} is {shorten(cells)}; it must be a sequence of cells.")
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidArgument(f"frame: the columns have different lengths, {lengths!r}.")
    return pd.DataFrame({name: _cells(cells) for name, cells in columns.items()})


def _cells(cells: Any) -> Any:
    if isinstance(cells, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(cells).reset_index(drop=True)
    # Assigned one by one, because numpy would turn equally long lists into a matrix.
    column = np.empty(len(cells), dtype=object)
    for position, cell in enumerate(cells):
        column[position] = cell
    return pd.Series(cast(Any, column), dtype=object).infer_objects()


def by_value(values: Iterable[Any], weights: Iterable[Any]) -> dict[Any, Any]:
    """Add up weights by value; in a dictionary 1 and True are the same key, and no mass may be lost."""
    total: dict[Any, Any] = {}
    for value, weight in zip(values, weights, strict=True):
        total[value] = total.get(value, 0) + weight
    return total


def describe(key: Mapping[Hashable, Any]) -> str:
    """Return the key of a class as text.

    >>> describe({"plz": "32**", "points": 7.0})
    'plz=32**, points=7'
    """
    return ", ".join(f"{name}={as_text(value)}" for name, value in key.items())
