"""Read tables from files: CSV in any common dialect, and Parquet if pyarrow is installed.

CSV cells stay text, exactly as published: ``01234`` keeps its zero, ``NA`` may be Namibia, and ``1`` and ``1.0`` are two
values, because an observer of the file can distinguish them. Only an empty cell is missing.
"""

from __future__ import annotations

import codecs
import csv
import importlib
import re
from array import array
from collections.abc import Hashable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from dpaudit._util.validation import did_you_mean, shorten
from dpaudit.errors import InvalidArgument, MissingDependency

_DELIMITERS = (",", ";", "\t", "|")
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 1 << 16
"""Number of characters from which the delimiter is detected."""
_LONGEST_FIELD = 1 << 20
"""Largest number of characters of a field. A longer one is almost always a quote that is never closed."""
_LONGEST_LINE = 1 << 24
"""Largest number of characters of a line: the reader holds a line in memory before it can be cut into fields."""


def read_frame(
    path: str | PathLike[str],
    *,
    columns: Sequence[Hashable] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    missing_marks: Sequence[str] = ("",),
) -> pd.DataFrame:
    """Read a table from a file: Parquet if its name ends in ``.parquet`` or ``.pq``, otherwise CSV.

    Parameters
    ----------
    columns
        The columns to keep; all by default.
    delimiter
        The character between cells; detected from the beginning of the file by default.
    encoding
        By default that of the byte order mark, or UTF-8 without one.
    missing_marks
        Cells that count as missing, such as ``("", "NA")``.
    """
    file = Path(path)
    if file.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(file, columns)
    if delimiter is not None and len(delimiter) != 1:
        raise InvalidArgument(f"delimiter={delimiter!r} must be one character.")
    try:
        with file.open("rb") as stream:
            encoding = encoding or _encoding(stream)
        with file.open(encoding=encoding, newline="") as text:
            return _read_csv(text, str(path), columns, delimiter, frozenset(missing_marks))
    except LookupError:
        raise InvalidArgument(f"encoding={encoding!r} is not known to Python; 'utf-8' and 'cp1252' are.") from None
    except UnicodeError as error:
        # Without a byte order mark the error is a plain UnicodeError before Python 3.13, and says so in all versions.
        if not isinstance(error, UnicodeDecodeError) or "BOM" in error.reason:
            raise InvalidArgument(
                f"path={str(path)!r} does not begin with the byte order mark that encoding={encoding!r} needs; name the byte "
                f"order, as in encoding='{encoding}-le', or leave encoding out if the file is UTF-8."
            ) from None
        raise InvalidArgument(
            f"path={str(path)!r} is not {encoding}: byte {error.object[error.start]:#04x} cannot be decoded "
            f"({error.reason}). Name its encoding; files from spreadsheets on Windows are often encoding='cp1252'."
        ) from None
    except OSError as error:
        raise InvalidArgument(f"path={str(path)!r} cannot be read: {error.strerror or error}.") from error


def _encoding(stream: IO[bytes]) -> str:
    start = stream.read(4)
    return next((name for mark, name in _BYTE_ORDER_MARKS.items() if start.startswith(mark)), "utf-8")


def sniff(sample: str) -> tuple[str, str]:
    r"""Find the delimiter and the quote character: those that cut the sample into the most columns of equal number.

    >>> sniff("plz;points\n'3270; Bern';89\n")
    (';', "'")
    >>> sniff("only\none\n")
    (',', '"')
    """
    lines = sample.splitlines(keepends=True)[:200]
    best, found = 1, (",", '"')
    # A single quote is a quote only where cells begin with it; elsewhere it is an apostrophe.
    for quote in ('"', "'") if re.search(r"(?:^|[,;\t|])'", sample, re.MULTILINE) else ('"',):
        for delimiter in _DELIMITERS:
            try:
                reader = csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=True)
                widths = {len(row) for row in reader if row}
            except csv.Error:
                continue
            if len(widths) == 1 and (width := widths.pop()) > best:
                best, found = width, (delimiter, quote)
    if best == 1 and lines:  # lines of different lengths: the header decides, and the reader reports the wrong line
        delimiter = max(_DELIMITERS, key=lines[0].count)
        return (delimiter, '"') if delimiter in lines[0] else found
    return found


def _read_csv(
    text: IO[str], path: str, columns: Sequence[Hashable] | None, delimiter: str | None, marks: frozenset[str]
) -> pd.DataFrame:
    sample = text.read(_SAMPLE)
    if "\0" in sample:
        raise InvalidArgument(
            f"path={path!r} contains NUL bytes, so it is not text; if it is UTF-16, pass encoding='utf-16'."
        )
    whole = sample if len(sample) < _SAMPLE else sample[: sample.rfind("\n") + 1]
    sniffed, quote = sniff(whole)
    text.seek(0)
    reader = csv.reader(_lines(text, path), delimiter=delimiter or sniffed, quotechar=quote, strict=True)
    before = csv.field_size_limit(_LONGEST_FIELD)  # a setting of the whole process
    try:
        return _collect(reader, path, columns, marks)
    except csv.Error as error:
        raise InvalidArgument(f"path={path!r}, line {reader.line_num}: {error}. Is the quoting closed?") from None
    finally:
        csv.field_size_limit(before)


def _lines(text: IO[str], path: str) -> Iterator[str]:
    number = 0
    while line := text.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise InvalidArgument(
                f"path={path!r}, line {number} is longer than {_LONGEST_LINE} characters. Is it a table?"
            )
        yield line


def _collect(reader: Any, path: str, columns: Sequence[Hashable] | None, marks: frozenset[str]) -> pd.DataFrame:
    header: list[str] = next(iter(reader), [])
    if not header:
        raise InvalidArgument(f"path={path!r} is empty; its first line must name the columns.")
    header = [name.strip() for name in header]
    kept = list(header) if columns is None else [str(name) for name in columns]
    for name in kept:
        if name not in header:
            raise InvalidArgument(
                f"column={name!r} is not in {path!r}, which has {shorten(header)}.{did_you_mean(name, header)}"
            )
        if header.count(name) > 1:
            raise InvalidArgument(f"column={name!r} occurs {header.count(name)} times in {path!r}; rename the columns.")
    places = [header.index(name) for name in kept]
    # One dictionary of values per column: equal cells are stored as one string, and a number each.
    seen: list[dict[str, int]] = [{} for _ in kept]
    codes = [array("q") for _ in kept]
    for row in _records(reader, path, len(header)):
        for place, values, numbers in zip(places, seen, codes, strict=True):
            numbers.append(values.setdefault(row[place], len(values)))
    frame = {}
    for name, values, numbers in zip(kept, seen, codes, strict=True):
        cells = np.empty(len(values), dtype=object)
        cells[:] = [None if value in marks else value for value in values]
        frame[name] = pd.Series(cells[np.frombuffer(numbers, dtype=np.int64)] if numbers else [], dtype=object)
    return pd.DataFrame(frame)


def _records(reader: Any, path: str, width: int) -> Iterator[list[str]]:
    for row in reader:
        if len(row) == width:
            yield row
        elif not row:
            if width == 1:
                yield [""]
            # In tables of more than one column a blank line is not a record.
        else:
            raise InvalidArgument(
                f"path={path!r}, line {reader.line_num}: {len(row)} cells where the header has {width}. "
                "Quote cells that hold the delimiter, or name it with delimiter=."
            )


def _read_parquet(file: Path, columns: Sequence[Hashable] | None) -> pd.DataFrame:
    try:
        importlib.import_module("pyarrow")  # checked here for a better message than that of pandas
    except ImportError:
        raise MissingDependency(
            f"path={str(file)!r} is a Parquet file, which needs pyarrow: pip install pyarrow. Or save the table as CSV."
        ) from None
    try:
        frame = pd.read_parquet(file)
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise InvalidArgument(f"path={str(file)!r} cannot be read: {error}.") from error
    if columns is None:
        return frame
    for name in columns:
        if name not in list(frame.columns):
            names = list(frame.columns)
            raise InvalidArgument(f"column={name!r} is not in {str(file)!r}.{did_you_mean(name, names)}")
    return frame[list(columns)]
