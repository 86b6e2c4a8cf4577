"""Symbolic numbers: what a random draw becomes while the user's code calculates with it.

======================  ===================================================================================
``Linear``              a linear combination of draws plus a constant
``Image``               a chain of operations (round, clip, abs, log, ...) on a linear function of one draw
``Steps``               a function of one draw with finitely many values: coins, comparisons, small integers
``PendingComparison``   the sign of a linear combination of several draws, not decided yet
======================  ===================================================================================

They behave like numbers as long as that can be followed exactly. Where Python insists on a plain value (a condition, an
index, a dictionary key), a symbol with finitely many values asks the run to choose one; every other symbol stops the
extraction. No symbol ever turns into a number that stands for something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.values import operations
from dpaudit.symbolic.values.operations import Operation
from dpaudit.symbolic.values.paths import Constraint, Draw, active, stop
from dpaudit.symbolic.values.regions import Region, is_infinite

MOST_STEPS = 4096
"""Largest number of values of a finite function of a draw."""
GRID_TOLERANCE = Fraction(1, 10**9)
"""Relative distance up to which two numbers may be one number and its rounding."""


class Symbol:
    """Base of all symbolic numbers: the operators, which :mod:`dpaudit.symbolic.values.operators` gives them."""

    __slots__ = ()
    integer = False

    def draws(self) -> tuple[Draw, ...]:
        """The draws that the value depends on."""
        raise NotImplementedError

    def at(self, values: dict[int, float]) -> Any:
        """The value if the draws had the given values, by their numbers."""
        raise NotImplementedError

    def concrete(self) -> Any:
        """Choose one of the values and return it; stop if there are not finitely many."""
        raise stop(_unbounded(self))

    # isinstance(x, float) and isinstance(x, np.floating) must be true in the user's code, as they would be of a number.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.int64 if self.integer else np.float64

    def __bool__(self) -> bool:
        from dpaudit.symbolic.values.comparing import truth

        return truth(self)

    def __hash__(self) -> int:
        return hash(self.concrete())

    def __index__(self) -> int:
        value = self.concrete()
        if isinstance(value, float | np.floating):
            raise TypeError(f"{type(value).__name__!r} object cannot be interpreted as an integer")
        return int(value)

    def __int__(self) -> int:
        return int(self.concrete())

    def __float__(self) -> float:
        return float(self.concrete())

    def __complex__(self) -> complex:
        return complex(self.concrete())

    def __str__(self) -> str:
        return str(self.concrete())

    def __repr__(self) -> str:
        return repr(self.concrete())

    def __format__(self, spec: str) -> str:
        return format(self.concrete(), spec)

    def __copy__(self) -> Symbol:
        return self

    def __deepcopy__(self, memo: Any) -> Symbol:
        return self

    def __reduce__(self) -> Any:
        raise stop("A random number was pickled")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.concrete(), dtype=dtype)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linear(Symbol):
    """``sum(coefficient * draw) + constant``; no coefficient is zero, and there is at least one draw."""

    terms: tuple[tuple[Draw, Fraction], ...]
    constant: Fraction
    integer: bool = False

    def draws(self) -> tuple[Draw, ...]:
        """The draws that the value depends on."""
        return tuple(drawn for drawn, _ in self.terms)

    def at(self, values: dict[int, float]) -> Any:
        """The value if the draws had the given values, by their numbers."""
        value = math.fsum([float(self.constant), *(float(f) * values[drawn.index] for drawn, f in self.terms)])
        return int(value) if self.integer else value

    def concrete(self) -> Any:
        """Choose one of the values and return it."""
        finite = self.as_steps()
        if finite is not None:
            return finite.concrete()
        single = self.single()
        if single is not None and single[0].source.integer:
            return self._search(*single)
        raise stop(_unbounded(self))

    def single(self) -> tuple[Draw, Fraction] | None:
        """The draw and its coefficient if there is only one."""
        return self.terms[0] if len(self.terms) == 1 else None

    def as_steps(self) -> Steps | None:
        """The same as a finite function, if the support is finite."""
        single = self.single()
        if single is None or single[0].source.shares is None:
            return None
        drawn, factor = single
        kind: Callable[[Any], Any] = int if self.integer else float
        return Steps(
            drawn,
            tuple((Region.point(x), kind(factor * Fraction(x) + self.constant)) for x, _ in drawn.source.shares or ()),
        )

    def _search(self, drawn: Draw, factor: Fraction) -> Any:
        """Try the whole numbers that the draw can be, one after the other, outwards from the likeliest end."""
        trace = active()
        while True:
            ranges = trace.region(drawn).whole_numbers()
            low, high = max(ranges[0][0], drawn.source.support()[0]), min(ranges[-1][1], drawn.source.support()[1])
            start = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
            if math.isinf(low) and math.isinf(high):
                inside = [first for first, last in ranges if first <= 0.0 <= last]
                start = 0.0 if inside else min((end for part in ranges for end in part), key=abs)
            if low == high:
                return self._plain(factor * Fraction(low) + self.constant)
            here = Region.point(start)
            if trace.decide(drawn, [here, here.complement()]) == 0:
                return self._plain(factor * Fraction(start) + self.constant)

    def _plain(self, value: Fraction) -> Any:
        return int(value) if self.integer else float(value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Image(Symbol):
    """Operations applied one after the other to a draw with a density."""

    drawn: Draw
    chain: tuple[Operation, ...]
    integer: bool = False

    def draws(self) -> tuple[Draw, ...]:
        """The draws that the value depends on."""
        return (self.drawn,)

    def at(self, values: dict[int, float]) -> Any:
        """The value if the draws had the given values, by their numbers."""
        value = values[self.drawn.index]
        for operation in self.chain:
            value = operation.value(value)
        return int(value) if self.integer else value

    def preimage(self, region: Region) -> Region:
        """The values of the draw for which the result lies in a region."""
        for operation in reversed(self.chain):
            region = operation.preimage(region)
        return region

    def compared(self, region: Region) -> Region:
        """Return the values of the draw whose result lies in a region as floats have it.

        ``round(x, 1) * 3 > 0.9`` is false at 0.3. A value of a grid at an end of the region is moved to the side where the
        nearest float of its exact result lies, which is what one operation gives; of several it may differ, so it is
        remembered and run again as itself.
        """
        found = self.preimage(region)
        grids = (operations.RoundTo, operations.Floor, operations.Truncate)
        last = next((k for k in reversed(range(len(self.chain))) if isinstance(self.chain[k], grids)), None)
        if last is None or self.integer or last + 1 == len(self.chain):
            return found  # numbers with a density; whole ones; or floats that are compared as they are
        operation, on_grid = self.chain[last], region
        step = operation.step if isinstance(operation, operations.RoundTo) else Fraction(1)
        for after in reversed(self.chain[last + 1 :]):
            on_grid = after.preimage(on_grid)
        for end in {end for part in on_grid.parts for end, _ in part if not is_infinite(end)}:
            near = round(Fraction(end) / step) * step
            if abs(near - Fraction(end)) <= GRID_TOLERANCE * (step + abs(near)):
                value: float | Fraction = Fraction(float(near))
                cell = Image(self.drawn, self.chain[: last + 1]).preimage(Region.point(value))
                for after in self.chain[last + 1 :]:
                    if isinstance(after, operations.Affine):
                        value = after.factor * Fraction(value) + after.shift
                    else:
                        value = after.value(float(value))
                found = found.join(cell) if float(value) in region else found.meet(cell.complement())
                active().doubts.append((self.drawn.index, cell))
        return found

    def then(self, operation: Operation, *, integer: bool = False) -> Image:
        """Apply one more operation."""
        if isinstance(operation, operations.Affine) and self.chain and isinstance(self.chain[-1], operations.Affine):
            last = self.chain[-1]
            factor = operation.factor * last.factor
            return Image(
                self.drawn,
                (*self.chain[:-1], operations.Affine(factor, operation.factor * last.shift + operation.shift)),
                integer,
            )
        return Image(self.drawn, (*self.chain, operation), integer)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Steps(Symbol):
    """A finite function of one draw: regions that cover the line, each with a value of any kind."""

    drawn: Draw
    cells: tuple[tuple[Region, Any], ...]

    def __post_init__(self) -> None:
        if len(self.cells) > MOST_STEPS:
            raise stop(f"A draw takes {len(self.cells)} values, more than {MOST_STEPS}")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        value = self.cells[0][1]
        return value.__class__

    @property
    def integer(self) -> bool:  # type: ignore[override]
        """True if all values are whole numbers."""
        return all(isinstance(value, int | np.integer) for _, value in self.cells)

    def draws(self) -> tuple[Draw, ...]:
        """The draws that the value depends on."""
        return (self.drawn,)

    def at(self, values: dict[int, float]) -> Any:
        """The value if the draws had the given values, by their numbers."""
        x = values[self.drawn.index]
        return next(value for region, value in self.cells if x in region)

    def possible(self) -> Steps:
        """The function without the cells that the path has ruled out."""
        known = active().region(self.drawn)
        source = self.drawn.source
        cells = tuple(
            (region, value) for region, value in self.cells if source.log_mass(known.meet(region)) > -math.inf
        )
        return Steps(self.drawn, cells)

    def concrete(self) -> Any:
        """Choose one of the values and return it."""
        merged: list[tuple[Region, Any]] = []
        for region, value in self.cells:
            for place, (other, known) in enumerate(merged):
                if type(known) is type(value) and _equal(known, value):
                    merged[place] = (other.join(region), known)
                    break
            else:
                merged.append((region, value))
        return merged[active().decide(self.drawn, [region for region, _ in merged])][1]

    def mapped(self, function: Callable[[Any], Any]) -> Steps:
        """Apply a function to every value that is still possible."""
        return Steps(self.drawn, tuple((region, function(value)) for region, value in self.possible().cells))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PendingComparison(Symbol):
    """``linear > 0``, or ``linear >= 0``, of several draws."""

    linear: Linear
    strict: bool

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.bool_

    def draws(self) -> tuple[Draw, ...]:
        """The draws that the value depends on."""
        return self.linear.draws()

    def at(self, values: dict[int, float]) -> Any:
        """The value if the draws had the given values, by their numbers."""
        value = self.linear.at(values)
        return value > 0.0 if self.strict else value >= 0.0

    def constraints(self) -> tuple[Constraint, Constraint]:
        """The constraint that holds if it is true, and the one if it is false."""
        terms = tuple((drawn.index, factor) for drawn, factor in self.linear.terms)
        negated = tuple((index, -factor) for index, factor in terms)
        constant = self.linear.constant
        return Constraint(terms, constant, self.strict), Constraint(negated, -constant, not self.strict)

    def concrete(self) -> bool:
        """Choose whether it holds."""
        holds, fails = self.constraints()
        return active().decide_constraints([[holds], [fails]]) == 0


def is_symbol(value: Any) -> bool:
    """Return True for a symbolic number, whatever it says of its class."""
    return issubclass(type(value), Symbol)


def _equal(first: Any, second: Any) -> bool:
    try:
        return bool(first == second) or (first != first and second != second)
    except Exception:  # arrays and the like as values
        return first is second


def _unbounded(symbol: Symbol) -> str:
    names = sorted({drawn.source.name for drawn in symbol.draws()})
    return (
        f"A random number (from {', '.join(names)}) was needed as a plain value (float(), a format, a key, or a function "
        "that is not followed)"
    )
