"""The lecture notes' worked example: nine students, their postcode and points, and the system that they use.

The names are left out: they are identifiers, and no measure uses them.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from dpaudit.anonymity.tables.table import Table


class Example(NamedTuple):
    """An original table, its published version, and the roles of the columns."""

    original: pd.DataFrame
    released: pd.DataFrame
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]

    @property
    def table(self) -> Table:
        """The published table."""
        return Table.from_frame(self.released, quasi_identifiers=self.quasi_identifiers, sensitive=self.sensitive)


def lecture_notes() -> Example:
    """Return the example as printed, with its slip: record 3 has postcode 3400 and is published as 3200-3299.

    Three classes of three records. The variational distances to the table are 4/9, 5/9 and 2/9: the 4/9 that the notes
    work out is class 1, and the table is t-close for t = 5/9 (docs/theory.md R22).

    >>> lecture_notes().table
    Table(9 records, 3 classes, quasi-identifiers plz, points, sensitive system)
    """
    system = ["iOS", "Android", "MacOS", "Windows", "Linux", "Windows", "MacOS", "Windows", "Android"]
    original = pd.DataFrame(
        {
            "plz": [3270, 3294, 3400, 2608, 3177, 2740, 3763, 3860, 3770],
            "points": [89, 77, 90, 42, 38, 35, 25, 33, 30],
            "system": system,
        },
        index=pd.RangeIndex(1, 10, name="record"),
    )
    released = pd.DataFrame(
        {
            "plz": ["3200-3299"] * 3 + ["2600-3199"] * 3 + ["3700-3899"] * 3,
            "points": ["75-90"] * 3 + ["35-45"] * 3 + ["25-34"] * 3,
            "system": system,
        },
        index=pd.RangeIndex(1, 10, name="record"),
    )
    return Example(original, released, ("plz", "points"), ("system",))
