"""Grids, regions, and Hypothesis strategies of parameter points at which a theorem is evaluated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpaudit.errors import InvalidArgument

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Point = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Range:
    """All numbers from ``low`` to ``high`` with at most ``digits`` significant digits; whole ones if both ends are int.

    Hypothesis shrinks towards few digits, so that counterexamples are round numbers.

    >>> Range.parse("100:2000"), Range.parse("0.01:0.2")
    (Range(low=100, high=2000, digits=3), Range(low=0.01, high=0.2, digits=3))
    """

    low: float
    high: float
    digits: int = 3

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and 0 < self.low <= self.high):
            raise InvalidArgument(f"low={self.low!r}, high={self.high!r}: a range needs 0 < low <= high.")

    @classmethod
    def parse(cls, text: str) -> Range:
        """Read ``low:high``; a range of whole numbers if both ends are written as such."""
        ends = text.split(":")
        try:
            low, high = (int(end) if end.strip().isdigit() else float(end) for end in ends)
        except ValueError:
            raise InvalidArgument(f"region={text!r} must read low:high, such as 100:2000 or 0.01:0.2.") from None
        return cls(low, high)

    @property
    def whole(self) -> bool:
        """True for a range of whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def strategy(self) -> SearchStrategy[Any]:
        """Return round numbers of the range, log-uniform over its decades."""
        from hypothesis import strategies as st

        decades = range(math.floor(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
        choices = [
            (digits, decade) for digits in range(1, self.digits + 1) for decade in decades if self._span(digits, decade)
        ]
        if not choices:  # no round number inside: the ends themselves
            return st.sampled_from([self.low, self.high])

        def numbers(choice: tuple[int, int]) -> SearchStrategy[Any]:
            span = self._span(*choice)
            assert span is not None
            exponent = choice[1] - choice[0] + 1
            return st.integers(*span).map(lambda mantissa: self._number(mantissa, exponent))

        return st.sampled_from(choices).flatmap(numbers)

    def _span(self, digits: int, decade: int) -> tuple[int, int] | None:
        """Integers m with low <= m 10^(decade - digits + 1) <= high and ``digits`` digits."""
        exponent = decade - digits + 1
        if self.whole and exponent < 0:
            return None
        unit = 10.0**exponent
        first = max(10 ** (digits - 1), math.ceil(self.low / unit - 1e-9))
        last = min(10**digits - 1, math.floor(self.high / unit + 1e-9))
        return (first, last) if first <= last else None

    def _number(self, mantissa: int, exponent: int) -> float:
        return mantissa * 10**exponent if self.whole else float(f"{mantissa}e{exponent}")


Axis = Range | Sequence[Any]


def grid_points(axes: Mapping[str, Sequence[Any]]) -> Iterator[Point]:
    """Cartesian product of the values of each parameter.

    >>> list(grid_points({"n": [10, 20], "i": [5]}))
    [{'n': 10, 'i': 5}, {'n': 20, 'i': 5}]
    """
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def region_strategy(axes: Mapping[str, Axis]) -> SearchStrategy[Point]:
    """Points whose parameters come from their ranges, or from the values listed."""
    from hypothesis import strategies as st

    def one(axis: Axis) -> SearchStrategy[Any]:
        return axis.strategy() if isinstance(axis, Range) else st.sampled_from(list(axis))

    return st.fixed_dictionaries({name: one(axis) for name, axis in axes.items()})


def rounder(value: Any, digits: int = 4) -> Iterator[Any]:
    """Numbers near ``value`` with fewer significant digits, the roundest first.

    >>> list(rounder(0.58794))
    [0.6, 0.5, 0.59, 0.58, 0.588, 0.587, 0.5879, 0.588]
    >>> list(rounder(4037))
    [4000, 5000, 4000, 4100, 4040, 4030]
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or value == 0 or not math.isfinite(value):
        return
    magnitude = math.floor(math.log10(abs(value)))
    for kept in range(1, digits + 1):
        exponent = magnitude - kept + 1
        if isinstance(value, int):
            if exponent <= 0:
                return
            unit = 10**exponent
            near = round(value / unit) * unit
            yield near
            yield near + unit if near < value else near - unit
        else:
            near_float = float(f"{value:.{kept - 1}e}")
            step = 10.0**exponent
            yield near_float
            yield float(f"{near_float + (step if near_float < value else -step):.{kept - 1}e}")
