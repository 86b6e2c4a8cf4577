"""Numbers derived from the coordinates of an output: remainders, digits, distances, differences, and summaries of a vector.

Each is a :class:`dpaudit.engine.views.condition.Quantity` of one output, computed element by element or by exact
comparisons, so that it does not depend on the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.encoding.float_grid import DECIMAL, lowest_bits
from dpaudit.engine.views.condition import Floats, Names, Plain
from dpaudit.engine.views.scores import Coordinate

MOST_SUMMARISED = 64  # coordinates of a vector that a summary reads


@dataclass(frozen=True, slots=True)
class Remainder:
    """A coordinate modulo a number."""

    index: int
    modulus: float
    label: str = "output"  # the name of the coordinate

    def __call__(self, batch: Encoded) -> Floats:
        """Return the remainders, from 0 to the modulus."""
        with np.errstate(invalid="ignore"):
            return np.mod(Coordinate(self.index)(batch), self.modulus)

    def describe(self) -> str:
        """Write it as Python does."""
        return f"{self.label} % {self.modulus:g}"

    def plain(self) -> Plain | None:
        """Return the place and the modulus."""
        return {"column": self.index, "modulus": self.modulus}

    def python(self, names: Names) -> str:
        """Return the same in numpy, which is defined for NaN and infinities too."""
        return f"np.mod({names.number(self.index)}, {self.modulus!r})"


@dataclass(frozen=True, slots=True)
class Decimals:
    """The number of decimals of a coordinate; 0 for whole numbers, and 99 for floats that are no short decimal."""

    index: int
    label: str = "output"  # the name of the coordinate

    def __call__(self, batch: Encoded) -> Floats:
        """Return the numbers of decimals."""
        values = Coordinate(self.index)(batch)
        grid = lowest_bits(values)
        found = np.where(grid > DECIMAL, grid - DECIMAL, 99.0)
        # Short dyadic numbers, such as 0.25, have as many decimals as binary places.
        dyadic = (grid <= DECIMAL) & (grid >= -12) & np.isfinite(values)
        found = np.where(dyadic, np.maximum(-grid, 0), found)
        return np.asarray(np.where(values == np.rint(values), 0.0, found), dtype=np.float64)

    def describe(self) -> str:
        """Name it."""
        return f"decimals of {self.label}"

    def plain(self) -> Plain | None:
        """There is no plain form."""
        return None

    def python(self, names: Names) -> str:
        """Return a call of ``dpaudit.replay.decimals``."""
        return f"decimals({names.number(self.index)})"


@dataclass(frozen=True, slots=True)
class DistanceToValues:
    """The distance of a coordinate to the nearest of some values that were released again and again."""

    index: int
    values: tuple[float, ...]  # ascending
    label: str = "output"  # the name of the coordinate

    def __call__(self, batch: Encoded) -> Floats:
        """Return the distances."""
        column, known = Coordinate(self.index)(batch), np.array(self.values)
        place = np.searchsorted(known, column)
        with np.errstate(invalid="ignore"):
            below = column - known[np.clip(place - 1, 0, known.size - 1)]
            above = column - known[np.clip(place, 0, known.size - 1)]
            return np.asarray(np.minimum(np.abs(below), np.abs(above)))

    def describe(self) -> str:
        """Name the values."""
        shown = ", ".join(f"{value:g}" for value in self.values[:4]) + ", ..." * (len(self.values) > 4)
        return f"distance of {self.label} to the nearest of {{{shown}}}"

    def plain(self) -> Plain | None:
        """There is no plain form."""
        return None

    def python(self, names: Names) -> str:
        """Return the smallest difference."""
        return f"np.abs({names.number(self.index)} - np.array({list(self.values)!r})).min()"


@dataclass(frozen=True, slots=True)
class Difference:
    """One coordinate minus another."""

    index: int
    other: int

    def __call__(self, batch: Encoded) -> Floats:
        """Return the differences."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(Coordinate(self.index)(batch) - Coordinate(self.other)(batch))

    def describe(self) -> str:
        """Write it as Python does."""
        return f"output[{self.index}] - output[{self.other}]"

    def plain(self) -> Plain | None:
        """There is no plain form: a weighted sum clips large numbers."""
        return None

    def python(self, names: Names) -> str:
        """Return the same."""
        return f"({names.number(self.index)} - {names.number(self.other)})"


@dataclass(frozen=True, slots=True)
class VectorSummary:
    """A summary of the first coordinates of a vector."""

    kind: str

    def __call__(self, batch: Encoded) -> Floats:
        """Return the summary of every output."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(SUMMARIES[self.kind](batch.values[:, :MOST_SUMMARISED]), dtype=np.float64)

    def describe(self) -> str:
        """Name it."""
        return f"{self.kind} of output"

    def plain(self) -> Plain | None:
        """There is no plain form."""
        return None

    def python(self, names: Names) -> str:
        """Return a call of ``dpaudit.replay.summary``."""
        del names
        return f"summary(output, {self.kind!r})"


def _repeated(rows: Floats) -> Floats:
    ordered = np.sort(rows, axis=1)
    return np.asarray((ordered[:, 1:] == ordered[:, :-1]).sum(axis=1), dtype=np.float64)


def _place(choose: Callable[..., Floats], worst: float) -> Callable[[Floats], Floats]:
    return lambda rows: choose(np.where(np.isnan(rows), worst, rows), axis=1)


SUMMARIES: Mapping[str, Callable[[Floats], Floats]] = {
    "number of repeated entries": _repeated,
    "number of ascents": lambda rows: (rows[:, 1:] > rows[:, :-1]).sum(axis=1),
    "place of the largest entry": _place(np.argmax, -np.inf),
    "place of the smallest entry": _place(np.argmin, np.inf),
    "largest entry": lambda rows: np.fmax.reduce(rows, axis=1),
    "smallest entry": lambda rows: np.fmin.reduce(rows, axis=1),
    "largest minus smallest entry": lambda rows: np.fmax.reduce(rows, axis=1) - np.fmin.reduce(rows, axis=1),
    "number of negative entries": lambda rows: (rows < 0.0).sum(axis=1),
    "number of zeros": lambda rows: (rows == 0.0).sum(axis=1),
}
