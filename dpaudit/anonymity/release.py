"""Audit a release: every published cell must contain the original value, and sensitive values must be unchanged."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit._util.terminal.escape import one_line
from dpaudit._util.validation import check_choice, shorten
from dpaudit.anonymity.tables.cells import MISSING, SUPPRESSED, as_moment, as_number, as_text
from dpaudit.anonymity.tables.hierarchy import Hierarchy, interval_label
from dpaudit.anonymity.tables.regions import covers, same
from dpaudit.anonymity.tables.table import Column, MissingPolicy, Names, Table, encode, locate
from dpaudit.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A cell whose original value does not lie in the published one; ``record`` is a position in the release."""

    record: int
    column: Hashable
    original: Any
    released: Any
    span: str | None = None  # the smallest range with all original values of the record's class

    def __str__(self) -> str:
        text = f"record {self.record + 1}: {self.column} {as_text(self.original)} is not in {as_text(self.released)}"
        return one_line(text if self.span is None else f"{text}; the records of its class span {self.span}")


@dataclass(frozen=True, slots=True)
class ReleaseAudit:
    """The result of :func:`audit_release`; its truth value is True if there is no mismatch."""

    mismatches: tuple[Mismatch, ...]
    records: int
    cells: int
    withheld: int = 0  # records of the original that were not released

    def __bool__(self) -> bool:
        return not self.mismatches

    def __str__(self) -> str:
        count = len(self.mismatches)
        head = f"{count or 'none'} of {self.cells} published cells {'are' if count > 1 else 'is'} wrong"
        head += f", {self.withheld} record{'s' if self.withheld > 1 else ''} withheld" if self.withheld else ""
        return "\n".join([head, *(f"  {mismatch}" for mismatch in self.mismatches[:20])]) + (
            f"\n  and {count - 20} more" if count > 20 else ""
        )


def audit_release(
    original: pd.DataFrame,
    released: pd.DataFrame,
    *,
    quasi_identifiers: Names,
    sensitive: Names = (),
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
    match: Literal["position", "index"] = "position",
    missing: MissingPolicy = "error",
) -> ReleaseAudit:
    """Compare a release with the table that it was made from.

    Parameters
    ----------
    original, released : pandas.DataFrame
        The raw table and the published one.
    quasi_identifiers, sensitive
        Names of the columns to compare.
    hierarchies
        For columns whose published labels are those of a taxonomy; ranges, masks and sets need none.
    match
        ``"position"``: row by row, in the same order. ``"index"``: by index label, so that records may be withheld.
    missing
        Meaning of empty cells, as for ``Table.from_frame``; with ``"suppressed"`` an empty published cell contains everything.

    >>> from dpaudit.anonymity.tables.examples import lecture_notes
    >>> notes = lecture_notes()
    >>> print(audit_release(notes.original, notes.released, quasi_identifiers=["plz", "points"], sensitive="system"))
    1 of 27 published cells is wrong
      record 3: plz 3400 is not in 3200-3299; the records of its class span 3270-3400
    """
    table = Table.from_frame(released, quasi_identifiers=quasi_identifiers, sensitive=sensitive, missing=missing)
    positions = matched(original, released, match)
    source = original.iloc[positions]
    withheld = len(original) - len(released)
    mismatches: list[Mismatch] = []
    for published in table.quasi_identifiers + table.sensitive:
        raw = encode(source.iloc[:, locate(source, published.name)], name=published.name, missing=missing)
        hierarchy = (hierarchies or {}).get(published.name)
        known = any(published is column for column in table.quasi_identifiers)
        for record in _wrong(published, raw, hierarchy, known):
            members = table.classes.records(int(table.classes.of_record[record]))
            mismatches.append(
                Mismatch(
                    int(record),
                    published.name,
                    raw.values[raw.codes[record]],
                    published.values[published.codes[record]],
                    _span([raw.values[code] for code in raw.codes[members]]) if known else None,
                )
            )
    mismatches.sort(key=lambda mismatch: mismatch.record)
    cells = table.records * len(table.quasi_identifiers + table.sensitive)
    return ReleaseAudit(tuple(mismatches), table.records, cells, withheld)


def matched(original: pd.DataFrame, released: pd.DataFrame, match: str) -> NDArray[np.intp]:
    """Return for each released record the position of its original; ``match`` is that of :func:`audit_release`."""
    check_choice(("position", "index"), match=match)
    if not isinstance(original, pd.DataFrame):
        raise InvalidArgument(f"original={shorten(original)} must be a pandas DataFrame.")
    if match == "position":
        if len(original) != len(released):
            raise InvalidArgument(
                f"original has {len(original)} records and the release {len(released)}; by position they must be as many. "
                "Use match='index' where records were withheld."
            )
        return np.arange(len(original))
    for name, frame in (("original", original), ("released", released)):
        if frame.index.has_duplicates:
            raise InvalidArgument(f"{name} has duplicate index labels, so match='index' is ambiguous.")
    unknown = released.index.difference(original.index, sort=False)
    if len(unknown):
        raise InvalidArgument(f"released has the index label {unknown[0]!r}, which the original has not.")
    return np.asarray(original.index.get_indexer(released.index))


def _wrong(published: Column, raw: Column, hierarchy: Hierarchy | None, known: bool) -> NDArray[np.int64]:
    """Return the records whose cells do not fit; each pair of different cells is checked once."""
    width = len(raw.values)
    pairs, where = np.unique(published.codes * width + raw.codes, return_inverse=True)
    fits = np.empty(len(pairs), dtype=bool)
    for index, pair in enumerate(pairs.tolist()):
        shown, true = published.values[pair // width], raw.values[pair % width]
        # A sensitive value may be suppressed, but not generalised.
        fits[index] = covers(shown, true, hierarchy) if known else same(shown, true) or shown == SUPPRESSED
    return np.flatnonzero(~fits[where])


def _span(values: list[Any]) -> str | None:
    for convert in (as_number, as_moment):
        places = [(place, value) for value in values if value is not MISSING and (place := convert(value)) is not None]
        if len(places) == len(values):
            try:
                ends = (min(places, key=_first), max(places, key=_first))
            except TypeError:
                return None
            return interval_label(ends[0][1], ends[1][1])
    return None


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]
