"""The view of a suspect, and its events: those of any output, about the value of the user's function instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.views.condition import AnyOf, Condition, Floats, Mask, Names, Plain, Quantity
from dpaudit.engine.views.partition import Line
from dpaudit.engine.views.view import Axis, BaseView, Block, Counts, Groups, ValueView

_WORD_OR_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\boutput\b")


@dataclass(frozen=True, slots=True)
class OfSuspect:
    """A condition on the value of a suspect."""

    place: int  # among the suspects of the audit
    name: str
    condition: Condition
    labels: Mapping[int, str]  # structures of the values

    def text(self, names: Names) -> str:
        """Return the condition, with the call of the suspect in place of the output."""
        call, shown = f"suspect {self.name}(output)", self.condition.text(names)
        if shown.startswith("raises "):
            return f"{call} {shown}"
        return _WORD_OR_QUOTED.sub(lambda found: call if found[0] == "output" else found[0], shown)

    def python(self, names: Names) -> str:
        """Return the condition, with the call of the suspect in place of the output."""
        return names.suspect(self.place, self.name, self.condition, self.labels)

    def plain(self) -> Plain | None:
        """A function of the user's has no plain form."""
        return None

    def contains(self, batch: Encoded) -> Mask:
        """Evaluate the condition on the values."""
        return self.condition.contains(batch.suspects[self.place])


@dataclass(frozen=True, slots=True)
class SuspectNumber:
    """The number that a suspect returns."""

    place: int
    name: str
    of: Quantity

    def __call__(self, batch: Encoded) -> Floats:
        """Return the number of every output."""
        return self.of(batch.suspects[self.place])

    def describe(self) -> str:
        """Name the call."""
        return f"{self.name}(output)"

    def plain(self) -> Plain | None:
        """A function of the user's has no plain form."""
        return None

    def python(self, names: Names) -> str:
        """There is no expression without a condition."""
        del names
        return ""


@dataclass(frozen=True, slots=True)
class SuspectView(BaseView):
    """The values of one suspect, by structure and number."""

    place: int
    suspect: str
    inner: ValueView
    labels: Mapping[int, str]
    ordered: bool = True

    @property
    def name(self) -> str:
        """The name of the suspect; views of outputs have others."""
        return f"suspect {self.suspect}"

    @property
    def cells(self) -> int:
        """Those of the values."""
        return self.inner.cells

    def count(self, block: Block) -> Counts:
        """Count the values."""
        return self.inner.count(Block(block.batch.suspects[self.place]))

    def locate(self, batch: Encoded) -> NDArray[np.intp]:
        """Return the cell of each value."""
        return self.inner.locate(batch.suspects[self.place])

    def condition(self, cells: Mask, labels: Mapping[int, str]) -> AnyOf:
        """Return the condition on the value."""
        del labels
        return AnyOf(
            tuple(
                OfSuspect(self.place, self.suspect, part, self.labels)
                for part in self.inner.condition(cells, self.labels).parts
            )
        )

    def readable(self, sides: tuple[Encoded, Encoded]) -> SuspectView:
        """Cut the values anew."""
        values = sides[0].suspects[self.place], sides[1].suspects[self.place]
        return replace(self, inner=self.inner.readable(values))

    @property
    def number_lines(self) -> tuple[Line | None, ...]:
        """One for each structure with a number."""
        return self.inner.number_lines

    @property
    def groups(self) -> Groups:
        """Group the cells by structure."""
        return self.inner.groups

    def axis(self, cells: Mask) -> Axis | None:
        """Return the number that the suspect returns, if it returns nothing else."""
        found = self.inner.axis(cells)
        if found is None:
            return None
        return Axis(SuspectNumber(self.place, self.suspect, found.of), found.selected, f"{self.suspect}(output)")
