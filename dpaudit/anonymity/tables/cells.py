"""Cells of a table: their kind, number, date, text and order.

Two cells are equal if an observer of the published table cannot distinguish them: ``1`` and ``1.0`` are the same number, but
``1``, ``True`` and ``"1"`` are three different cells (Python's ``1 == True`` would merge two of them).
"""

from __future__ import annotations

import datetime
import enum
import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

SUPPRESSED = "*"
"""The mark of a suppressed cell."""


class Missing(enum.Enum):
    """The value of an empty cell under the policy ``missing="value"``. It is equal to no text."""

    MISSING = "missing"

    def __str__(self) -> str:
        return "<missing>"

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing.MISSING

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


def kind(cell: Any) -> str:
    """Name the kind of a cell; cells of different kinds are never equal.

    >>> kind(1) == kind(1.0), kind(1) == kind(True), kind(1) == kind("1")
    (True, False, False)
    """
    if isinstance(cell, bool | np.bool_):
        return "boolean"
    if isinstance(cell, numbers.Number | Decimal):
        return "number"
    if isinstance(cell, str):
        return "text"
    return type(cell).__qualname__


def as_number(cell: Any) -> Fraction | None:
    """Return the exact number of a numeric or text cell; None if it has none (booleans, infinities, other text).

    A float stands for the decimal that it prints as, so that 0.3 lies in the range 0.3-0.4.

    >>> as_number(0.3), as_number("3270"), as_number(True), as_number("many")
    (Fraction(3, 10), Fraction(3270, 1), None, None)
    """
    if isinstance(cell, str):
        text = cell.strip()
        return Fraction(text) if _NUMBER.fullmatch(text) else None
    if isinstance(cell, bool | np.bool_):
        return None
    if isinstance(cell, int | np.integer):
        return Fraction(int(cell))
    if isinstance(cell, Fraction):
        return cell
    if isinstance(cell, Decimal):
        return Fraction(cell) if cell.is_finite() else None
    if isinstance(cell, float | np.floating):
        return Fraction(str(cell)) if math.isfinite(cell) else None
    return None


def as_moment(cell: Any) -> datetime.datetime | None:
    """Return the date and time of a date or text cell (ISO 8601), in UTC if a zone is given; None if it has none.

    >>> as_moment("2024-02-29")
    datetime.datetime(2024, 2, 29, 0, 0)
    """
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, str):
        try:
            cell = datetime.datetime.fromisoformat(cell.strip())
        except ValueError:
            return None
    if isinstance(cell, datetime.date) and cell != cell:  # NaT
        return None
    if hasattr(cell, "to_pydatetime"):  # a pandas.Timestamp; nanoseconds are cut off
        cell = cell.to_pydatetime(warn=False)
    if isinstance(cell, datetime.datetime):
        return cell if cell.tzinfo is None else cell.astimezone(datetime.UTC)
    if isinstance(cell, datetime.date):
        return datetime.datetime(cell.year, cell.month, cell.day)
    return None


def as_text(cell: Any) -> str:
    """Return the cell as a published table shows it; whole floats as whole numbers, dates without an empty time.

    >>> as_text(3270.0), as_text("Bern"), as_text(None)
    ('3270', 'Bern', 'None')
    """
    if isinstance(cell, float | np.floating) and float(cell).is_integer() and abs(float(cell)) < 1e16:
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        text = cell.isoformat()
        return text.removesuffix("T00:00:00")
    return str(cell)


def sort_key(cell: Any) -> tuple[Any, ...]:
    """Order cells of any kinds: numbers by size, dates by time, text by code point, one kind after the other.

    >>> sorted(["b", 10, 2, "a", True], key=sort_key)
    [True, 2, 10, 'a', 'b']
    """
    if not isinstance(cell, str):
        number = as_number(cell)
        if number is not None:
            return (1, "number", number, "")
        moment = as_moment(cell)
        if moment is not None:
            return (2, "moment", moment.isoformat(), "")
    rank = 0 if isinstance(cell, bool | np.bool_) else 3 if isinstance(cell, str) else 4
    return (rank, kind(cell), str(cell), repr(cell))
