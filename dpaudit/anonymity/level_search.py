"""Full-domain generalisation: one level for each column, and a limit on the records that may be withheld.

Each quasi-identifier is generalised to one level of its hierarchy in all records; records whose class is still too small are
withheld, at most the given share of them (Samarati 2001). Of all choices of levels the one that loses the least is found. The
loss of the levels alone, without any withheld record, is a lower bound of what they lose, so levels are tried in the order of
this bound until it exceeds the best loss found. That is exact for every requirement on classes, also for those that merging two
classes can break (entropy l-diversity).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit._util.validation import check_choice, check_count, check_positive, check_unit
from dpaudit.anonymity.measures import l_diversity
from dpaudit.anonymity.partitioning import Anonymised
from dpaudit.anonymity.tables.cells import MISSING, SUPPRESSED, kind
from dpaudit.anonymity.tables.hierarchy import Hierarchy, Suppression
from dpaudit.anonymity.tables.table import Classes, Column, Table
from dpaudit.anonymity.utility import granularity
from dpaudit.errors import InvalidArgument

_NODES = 100_000
"""Largest number of choices of levels."""


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """One column at one level: the label and the code of each record, and the mean loss of the records."""

    labels: tuple[Any, ...]
    codes: NDArray[np.int64]
    losses: NDArray[np.float64]  # of each label

    @property
    def loss(self) -> float:
        return float(self.losses[self.codes].mean())


def full_domain(
    table: Table,
    *,
    k: int,
    hierarchies: Mapping[Hashable, Hierarchy],
    suppression: float = 0.0,
    l: float | None = None,  # noqa: E741 - the literature's name
    diversity: Literal["distinct", "entropy"] = "distinct",
) -> Anonymised:
    """Generalise each column to one level and withhold few records, so that the table is k-anonymous with the least loss.

    The loss is the mean granularity of the cells (see :func:`~dpaudit.anonymity.information_loss`), 1 for a withheld record.

    Parameters
    ----------
    table : Table
        The original table.
    k : int
        Smallest number of records of a class.
    hierarchies : mapping
        The hierarchy of each quasi-identifier; one without is kept or suppressed as a whole.
    suppression : float
        Largest share of the records that may be withheld.
    l : float, optional
        Smallest diversity of every sensitive attribute in a class.
    diversity : {"distinct", "entropy"}
        The kind of l-diversity.

    Examples
    --------
    >>> from dpaudit.anonymity.tables.hierarchy import Prefixes
    >>> raw = Table.from_frame({"plz": [3270, 3271, 3272, 9999]}, quasi_identifiers="plz")
    >>> full_domain(raw, k=2, hierarchies={"plz": Prefixes(4)}).frame["plz"].tolist()
    ['*', '*', '*', '*']
    >>> kept = full_domain(raw, k=2, hierarchies={"plz": Prefixes(4)}, suppression=0.25)
    >>> kept.frame["plz"].tolist(), kept.withheld, kept.levels
    (['327*', '327*', '327*'], 1, {'plz': 1})
    """
    check_count(k=k)
    check_unit(suppression=suppression)
    check_choice(("distinct", "entropy"), diversity=diversity)
    if l is not None:
        check_positive(l=l)
    if k > table.records:
        raise InvalidArgument(f"k={k!r} is more than the table's {table.records} records.")
    columns = [_levels(column, hierarchies.get(column.name, Suppression())) for column in table.quasi_identifiers]
    nodes = math.prod(map(len, columns))
    if nodes > _NODES:
        raise InvalidArgument(
            f"hierarchies: {nodes} choices of levels are more than {_NODES}; use fewer levels, or mondrian."
        )
    bounds = np.zeros(1)
    for levels in columns:
        bounds = np.add.outer(bounds, [level.loss for level in levels]).ravel()
    best: tuple[float, tuple[int, ...], NDArray[np.bool_]] | None = None
    choices = list(itertools.product(*(range(len(levels)) for levels in columns)))
    for node in np.argsort(bounds, kind="stable").tolist():
        if best is not None and bounds[node] >= best[0] - 1e-12:
            break
        chosen = [levels[level] for levels, level in zip(columns, choices[node], strict=True)]
        kept = _kept(table, chosen, k, l, diversity)
        if (~kept).sum() > suppression * table.records + 1e-9 or not kept.any():
            continue
        lost = sum(float(level.losses[level.codes][kept].sum() + (~kept).sum()) for level in chosen) / table.records
        if best is None or lost < best[0] - 1e-12:
            best = lost, choices[node], kept
    if best is None:
        wanted = f"k={k!r}" + ("" if l is None else f", l={l!r}")
        raise InvalidArgument(
            f"{wanted} with suppression={suppression!r} cannot be met at any level of the hierarchies."
        )
    return _published(table, columns, best[1], best[2], k)


def _levels(column: Column, hierarchy: Hierarchy) -> list[_Level]:
    found = []
    for level in range(hierarchy.height + 1):
        labels = [value if _starred(value) else hierarchy.generalise(value, level) for value in column.values]
        numbers: dict[tuple[str, Any], int] = {}
        number_of = np.array(
            [numbers.setdefault((kind(label), label), len(numbers)) for label in labels], dtype=np.int64
        )
        inside = number_of == np.arange(len(numbers))[:, None]
        losses = granularity(column.values, inside)
        found.append(_Level(tuple(label for _, label in numbers), number_of[column.codes], losses))
    return found


def _starred(value: Any) -> bool:
    return isinstance(value, str) and value == SUPPRESSED


def _kept(table: Table, chosen: list[_Level], k: int, level: float | None, diversity: Any) -> NDArray[np.bool_]:
    """Return which records are in classes that meet the requirements."""
    classes = Classes.from_codes([part.codes for part in chosen], table.records)
    fine = classes.sizes >= k
    if level is not None:
        seen = Table(table.quasi_identifiers, table.sensitive, classes, table.index)
        for column in table.sensitive:
            fine &= l_diversity(seen, column.name, kind=diversity).per_class >= level
    return np.asarray(fine[classes.of_record])


def _published(
    table: Table, columns: list[list[_Level]], choice: tuple[int, ...], kept: NDArray[np.bool_], k: int
) -> Anonymised:
    cells: list[Any] = []
    for levels, level in zip(columns, choice, strict=True):
        labels = np.empty(len(levels[level].labels), dtype=object)
        labels[:] = levels[level].labels
        cells.append(pd.Series(labels[levels[level].codes[kept]], dtype=object))
    for column in table.sensitive:
        values = pd.Series([None if value is MISSING else value for value in column.values], dtype=object)
        cells.append(values.infer_objects().take(column.codes[kept]).reset_index(drop=True))
    frame = pd.DataFrame(dict(enumerate(cells)))
    names = [column.name for column in table.quasi_identifiers]
    secret = [column.name for column in table.sensitive]
    frame.columns = pd.Index([*names, *secret], tupleize_cols=False)
    frame.index = table.index[kept]
    result = Table.from_frame(frame, quasi_identifiers=names, sensitive=secret, missing="value")
    return Anonymised(frame, result, k, int((~kept).sum()), dict(zip(names, choice, strict=True)))
