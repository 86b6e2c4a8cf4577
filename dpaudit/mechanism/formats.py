"""Data sets as text for programs and services, and their answers as outputs."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from dpaudit._util.validation import check_choice, shorten
from dpaudit._util.values import is_frame, is_series, rows_of
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism.outputs import ReleaseFailed

DataForm: TypeAlias = str | Callable[[Any], Any]
OutputForm: TypeAlias = str | Callable[[str], Any]

DATA_FORMS = ("json", "csv", "lines")
OUTPUT_FORMS = ("json", "text", "lines", "numbers")
SHOWN = 200  # characters of an unreadable answer that a message shows


def check_form(forms: tuple[str, ...], **named: Any) -> None:
    """Check that each value is one of ``forms`` or a function."""
    for name, value in named.items():
        if not callable(value):
            if not isinstance(value, str):
                raise InvalidArgument(f"{name}={shorten(value)} must be one of {', '.join(forms)}, or a function.")
            check_choice(forms, **{name: value})


def data_text(data: Any, form: DataForm) -> str:
    r"""Return a data set as text.

    Parameters
    ----------
    data : object
        A list of rows, an array, a data frame, or any value that ``form`` accepts.
    form : str or callable
        ``"json"``; ``"csv"``, one line a row, with a header if the rows have names; ``"lines"``, one line a row of one value;
        or a function that returns the text, or anything that JSON can hold.

    Examples
    --------
    >>> data_text([(1, "a"), (2, "b")], "json"), data_text([(1, "a"), (2, "b")], "csv"), data_text([3, 4], "lines")
    ('[[1, "a"], [2, "b"]]', '1,a\n2,b\n', '3\n4\n')
    """
    if callable(form):
        made = form(data)
        return made if isinstance(made, str) else json_text(made)
    if form == "json":
        return json_text(data)
    rows = _rows(data)
    if form == "lines":
        return "".join(f"{row}\n" for row in rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if is_frame(data):
        writer.writerow(data.columns)
    elif rows and isinstance(rows[0], Mapping):
        writer.writerow(rows[0])
    writer.writerows(_cells(row) for row in rows)
    return text.getvalue()


def json_text(value: Any) -> str:
    """Return a value as one line of JSON; arrays become lists, data frames lists of objects, sets sorted lists.

    >>> json_text({"rows": np.arange(3), "day": datetime.date(2024, 5, 1)})
    '{"rows": [0, 1, 2], "day": "2024-05-01"}'
    """
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MechanismError(
            f"data={shorten(value)} cannot be written as JSON ({error}). Pass data_as=f, where f(data) returns text or what "
            "JSON can hold: numbers that are finite, text, lists, dicts with text as keys."
        ) from error


def read_output(raw: bytes, form: OutputForm) -> Any:
    r"""Return what a program wrote as an output; raise ReleaseFailed if it cannot be read.

    >>> read_output(b"3.5 7\n", "numbers"), read_output(b"7\n", "numbers"), read_output(b"a\nb\n", "lines")
    ([3.5, 7], 7, ['a', 'b'])
    """
    text = raw.decode("utf-8", "backslashreplace")  # bytes that are no text stay different from each other
    if callable(form):
        return form(text)
    match form:
        case "text":
            return text.removesuffix("\n")
        case "lines":
            return text.splitlines()
        case "numbers":
            words = text.split()
            try:
                numbers = [_number(word) for word in words]
            except ValueError:
                raise unreadable(text, "numbers") from None
            if not numbers:
                raise unreadable(text, "numbers")
            return numbers[0] if len(numbers) == 1 else numbers
        case _:
            return read_json(text)


def read_json(text: str) -> Any:
    """Return the JSON value of a text; raise ReleaseFailed if the text is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise unreadable(text, "JSON") from None


def unreadable(text: str, wanted: str) -> ReleaseFailed:
    """Return the failure of a release whose answer does not have the agreed format."""
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"
    return ReleaseFailed("unreadable answer", f"{shown!r} is not {wanted}" if text else f"nothing, instead of {wanted}")


def _number(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def _rows(data: Any) -> list[Any]:
    try:
        return rows_of(data)
    except TypeError:
        raise MechanismError(f"data={shorten(data)} has no rows; pass data_as='json' or a function.") from None


def _cells(row: Any) -> list[Any]:
    if isinstance(row, Mapping):
        return list(row.values())
    return list(row) if isinstance(row, list | tuple | np.ndarray) else [row]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_frame(value):
        return value.to_dict("records")
    if is_series(value):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")
