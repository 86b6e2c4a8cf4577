"""Utility lost by a release: suppressed cells, lost information, and how well a class predicts a label."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit._util.validation import check_count
from dpaudit.anonymity.measure import compare_classes
from dpaudit.anonymity.release import matched
from dpaudit.anonymity.tables.cells import SUPPRESSED, as_number, as_text
from dpaudit.anonymity.tables.containment import containment
from dpaudit.anonymity.tables.hierarchy import Hierarchy
from dpaudit.anonymity.tables.table import Column, MissingPolicy, Names, Table, encode, locate
from dpaudit.errors import InvalidArgument


def classification_metric(table: Table, attribute: Hashable | None = None, *, withheld: int = 0) -> float:
    """Return the share of records that are withheld, or whose label is not the most frequent of their class (Iyengar 2002).

    Parameters
    ----------
    table : Table
        The release.
    attribute
        The label, one of the sensitive attributes; may be left out if there is only one.
    withheld : int
        The number of records of the original that were not released.

    Examples
    --------
    >>> table = Table.from_frame({"q": [0, 0, 0, 1, 1], "s": list("aabab")}, quasi_identifiers="q", sensitive="s")
    >>> classification_metric(table)
    0.4
    """
    check_count(minimum=0, withheld=withheld)
    comparison = compare_classes(table, table.attribute(attribute))
    kept = int(np.maximum.reduceat(comparison.weight, comparison.starts).sum())
    return (table.records - kept + withheld) / (table.records + withheld)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """Suppressed share of a table: ``cells`` of the quasi-identifiers, and whole ``records``, out of so many."""

    cells: int
    records: int
    all_cells: int
    all_records: int

    @property
    def share(self) -> float:
        """The share of records of which every quasi-identifier is suppressed, or that are withheld."""
        return self.records / self.all_records


def suppressed(table: Table, *, withheld: int = 0) -> Suppressed:
    """Count the suppressed cells (``*``) and records of a release.

    Parameters
    ----------
    table : Table
        The release.
    withheld : int
        The number of records of the original that were not released; they count as suppressed.

    Examples
    --------
    >>> suppressed(Table.from_frame({"a": ["*", "1", "*"], "b": ["*", "2", "2"]}, quasi_identifiers=["a", "b"]), withheld=1)
    Suppressed(cells=5, records=2, all_cells=8, all_records=4)
    """
    check_count(minimum=0, withheld=withheld)
    stars = np.stack(
        [
            np.array([isinstance(value, str) and value == SUPPRESSED for value in column.values])[column.codes]
            for column in table.quasi_identifiers
        ]
    )
    width, records = stars.shape
    return Suppressed(
        cells=int(stars.sum()) + withheld * width,
        records=int(stars.all(axis=0).sum()) + withheld,
        all_cells=(records + withheld) * width,
        all_records=records + withheld,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InformationLoss:
    """The result of :func:`information_loss`: from 0 (nothing is generalised) to 1 (everything is suppressed)."""

    granularity: float
    entropy: float
    granularity_by_column: Mapping[Hashable, float]
    withheld: int

    def __str__(self) -> str:
        columns = ", ".join(f"{name} {loss:.3g}" for name, loss in self.granularity_by_column.items())
        return f"information loss {self.granularity:.3g} by granularity ({columns}), {self.entropy:.3g} by entropy"


def information_loss(
    original: pd.DataFrame,
    released: pd.DataFrame,
    *,
    quasi_identifiers: Names,
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
    match: str = "position",
    missing: MissingPolicy = "error",
) -> InformationLoss:
    """Return how much of the quasi-identifiers was lost.

    *Granularity* is the loss metric of Iyengar (2002), also called normalised certainty penalty: of a number the span of the
    column's values in the published cell over the span of all of them, of other values (m - 1) / (M - 1), where m of the M
    different values lie in the cell. *Entropy* is the non-uniform entropy of Gionis and Tassa (2009): the bits that are missing
    to find the value from the published cell, over the bits that would be missing if everything was suppressed. Withheld records
    are lost completely.

    Parameters
    ----------
    original, released, hierarchies, match, missing
        As for :func:`~dpaudit.anonymity.audit_release`.
    quasi_identifiers
        The columns to compare.

    Examples
    --------
    >>> raw = pd.DataFrame({"age": [20, 22, 30, 40], "sex": ["f", "f", "m", "m"]})
    >>> shown = pd.DataFrame({"age": ["20-22", "20-22", "30-40", "30-40"], "sex": ["f", "f", "*", "*"]})
    >>> print(information_loss(raw, shown, quasi_identifiers=["age", "sex"]))
    information loss 0.4 by granularity (age 0.3, sex 0.5), 0.5 by entropy
    """
    table = Table.from_frame(released, quasi_identifiers=quasi_identifiers, missing=missing)
    matched(original, released, match)  # only checked: sums over the records do not depend on which is which
    withheld = len(original) - len(released)
    spans: dict[Hashable, float] = {}
    lost = whole = 0.0
    for published in table.quasi_identifiers:
        raw = encode(original.iloc[:, locate(original, published.name)], name=published.name, missing=missing)
        inside = _inside(published, raw, (hierarchies or {}).get(published.name))
        spans[published.name] = float(granularity(raw.values, inside)[published.codes].sum() + withheld) / len(original)
        shares = raw.counts / len(original)
        of_value, of_label = np.log2(shares)[raw.codes], np.log2(inside @ shares)[published.codes]
        # Of a released record log2(P(cell) / P(value)) bits are missing, of a withheld one log2(1 / P(value)).
        lost += float(of_label.sum() - of_value.sum())
        whole -= float(of_value.sum())
    return InformationLoss(
        granularity=sum(spans.values()) / len(spans),
        entropy=max(lost / whole, 0.0) if whole else 0.0,
        granularity_by_column=spans,
        withheld=withheld,
    )


def granularity(values: Sequence[Any], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the loss of each label; ``inside[label, value]`` says which of the column's values lie in it.

    >>> granularity([20, 22, 30, 40], np.array([[True, True, False, False], [True] * 4])).tolist()
    [0.1, 1.0]
    """
    numbers = [number for value in values if (number := as_number(value)) is not None]
    if len(values) < 2:
        return np.zeros(len(inside))
    if len(numbers) < len(values):
        return np.asarray((inside.sum(axis=1) - 1) / (len(values) - 1))
    # Differences of Fractions, because 1e999 is a number that a file may hold, and not one that a float can.
    places = sorted(set(numbers))
    rank_of = {place: rank for rank, place in enumerate(places)}
    ranks = np.array([rank_of[number] for number in numbers])
    highest = np.where(inside, ranks, -1).max(axis=1).tolist()
    lowest = np.where(inside, ranks, len(places)).min(axis=1).tolist()
    span = (places[-1] - places[0]) or 1
    return np.array([float((places[top] - places[low]) / span) for top, low in zip(highest, lowest, strict=True)])


def _inside(published: Column, domain: Column, hierarchy: Hierarchy | None) -> NDArray[np.bool_]:
    inside = containment(published.values, domain.values, hierarchy)
    empty = ~inside.any(axis=1)
    if empty.any():
        label = published.values[int(empty.argmax())]
        raise InvalidArgument(
            f"released: the cell {as_text(label)} of {published.name!r} contains no value of the original; audit_release "
            "lists such cells."
        )
    return inside
