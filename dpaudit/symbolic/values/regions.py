"""Finite unions of intervals of the real line, with open and closed ends: where a draw may lie on a path.

Ends are rational numbers (or infinite), so that a cut at ``noisy > 3`` is at exactly 3 again when it is carried from the draw
to the output, whatever the location and scale: two supports that differ by the rounding of one end would look like a leak.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

RealNumber: TypeAlias = float | Fraction
End: TypeAlias = tuple[RealNumber, int]
"""A cut of the line at a number: side 0 is just before it, side 1 just after it."""
LEFT: End = (-math.inf, 0)
RIGHT: End = (math.inf, 1)


def is_infinite(value: RealNumber) -> bool:
    """Return True for plus and minus infinity."""
    return isinstance(value, float) and math.isinf(value)


@dataclass(frozen=True, slots=True)
class Region:
    """The union of the parts between pairs of cuts, which increase.

    A closed interval ``[a, b]`` lies between the cuts ``(a, 0)`` and ``(b, 1)``, an open one between ``(a, 1)`` and
    ``(b, 0)``.

    >>> Region.above(1.0).meet(Region.below(2.0, closed=True))
    Region((1.0, 2.0])
    """

    parts: tuple[tuple[End, End], ...]

    @classmethod
    def of(cls, parts: Iterable[tuple[End, End]]) -> Region:
        """Make a region of parts in any order, which may overlap."""
        joined: list[tuple[End, End]] = []
        for low, high in sorted(part for part in parts if part[0] < part[1]):
            if joined and low <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
            else:
                joined.append((low, high))
        return cls(tuple(joined))

    @classmethod
    def point(cls, value: RealNumber) -> Region:
        """One number."""
        return cls((((value, 0), (value, 1)),))

    @classmethod
    def below(cls, value: RealNumber, *, closed: bool = False) -> Region:
        """All numbers below a value, with it if ``closed``."""
        return cls.of([(LEFT, (value, int(closed)))])

    @classmethod
    def above(cls, value: RealNumber, *, closed: bool = False) -> Region:
        """All numbers above a value, with it if ``closed``."""
        return cls.of([((value, 1 - int(closed)), RIGHT)])

    def meet(self, other: Region) -> Region:
        """The intersection of two regions."""
        if self is FULL or other is FULL:
            return other if self is FULL else self
        return Region.of((max(low, low2), min(high, high2)) for low, high in self.parts for low2, high2 in other.parts)

    def join(self, other: Region) -> Region:
        """The union of two regions."""
        return Region.of((*self.parts, *other.parts))

    def complement(self) -> Region:
        """All other numbers."""
        cuts = [LEFT, *(cut for part in self.parts for cut in part), RIGHT]
        return Region.of(zip(cuts[::2], cuts[1::2], strict=True))

    def affine(self, factor: RealNumber, shift: RealNumber) -> Region:
        """The region of ``factor * x + shift``, exactly; the factor is not zero."""
        slope, move = Fraction(factor), Fraction(shift)

        def moved(cut: End) -> End:
            value: RealNumber = cut[0] if is_infinite(cut[0]) else slope * Fraction(cut[0]) + move
            if slope > 0:
                return value, cut[1]
            return (-cut[0] if is_infinite(cut[0]) else value), 1 - cut[1]

        return Region.of(tuple(sorted((moved(low), moved(high)))) for low, high in self.parts)  # type: ignore[misc]

    def intervals(self) -> list[tuple[float, float]]:
        """The ends of the parts, whether open or closed."""
        return [(float(low[0]), float(high[0])) for low, high in self.parts]

    def whole_numbers(self) -> list[tuple[float, float]]:
        """The first and last whole number of each part that has one; infinite where it is unbounded."""
        ranges = []
        for low, high in self.parts:
            first = (
                float(low[0])
                if is_infinite(low[0])
                else math.ceil(low[0]) + int(low[1] == 1 and low[0] == math.ceil(low[0]))
            )
            last = (
                float(high[0])
                if is_infinite(high[0])
                else math.floor(high[0]) - int(high[1] == 0 and high[0] == math.floor(high[0]))
            )
            if first <= last:
                ranges.append((first, last))
        return ranges

    def __contains__(self, value: RealNumber) -> bool:
        return any(low <= (value, 0) and (value, 1) <= high for low, high in self.parts)

    def __repr__(self) -> str:
        shown = [
            f"{'[(('[low[1] + (low == LEFT)]}{float(low[0])!r}, {float(high[0])!r}{')]'[high[1] and high != RIGHT]}"
            for low, high in self.parts
        ]
        return f"Region({' | '.join(shown) or 'empty'})"


FULL = Region(((LEFT, RIGHT),))
EMPTY = Region(())
