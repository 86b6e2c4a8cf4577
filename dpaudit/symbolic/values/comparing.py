"""Comparisons of symbolic numbers: with constants, with each other, the largest of several, and truth."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpaudit.symbolic.values import arithmetic, operations, transforming
from dpaudit.symbolic.values.operations import Affine, Operation
from dpaudit.symbolic.values.paths import Constraint, Draw, active, stop
from dpaudit.symbolic.values.regions import Region
from dpaudit.symbolic.values.symbols import GRID_TOLERANCE, Image, Linear, PendingComparison, Steps, is_symbol

_SWAPPED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
COMPARISONS = {*_SWAPPED, "equal", "not_equal"}


def compare(name: str, a: Any, b: Any) -> Any:
    """Compare two numbers, at least one of them a symbol."""
    if not is_symbol(a):
        return compare(_SWAPPED.get(name, name), b, a)
    if not is_symbol(b) and (math.isinf(b) or b != b):
        return arithmetic.PLAIN_BINARY[name](0.0, b)  # every draw is finite
    if type(a) is Image or type(b) is Image:
        if is_symbol(b):
            return _compare_images(name, a, b)
        region = _region(name, b)
        return _indicator(a.drawn, a.compared(region))
    difference = arithmetic.binary("subtract", a, b)
    if not is_symbol(difference):
        return arithmetic.PLAIN_BINARY[name](difference, 0.0)
    single = difference.single()
    if single is not None:
        drawn, factor = single
        region = Affine(factor, difference.constant).preimage(_region(name, 0.0))
        if drawn.source.integer:
            region = _as_floats_compare(name, a, b, drawn, region, -difference.constant / factor)
        return _indicator(drawn, region)
    if name in ("equal", "not_equal"):
        if any(drawn.source.form.continuous is not None for drawn in difference.draws()):
            return name == "not_equal"  # a density has no mass on a line
        above = bool(PendingComparison(difference, strict=False)) and bool(
            PendingComparison(_negated(difference), strict=False)
        )
        return above == (name == "equal")
    if name in ("less", "less_equal"):
        return PendingComparison(_negated(difference), strict=name == "less")
    return PendingComparison(difference, strict=name == "greater")


def _as_floats_compare(name: str, a: Linear, b: Any, drawn: Draw, region: Region, cut: Fraction) -> Region:
    """Move a whole number that is at the cut up to rounding to the side on which the running code has it.

    ``k / 10 > 0.3`` is false at 3, although 3 / 10 is more than the float 0.3. The nearest float of the exact value is what
    one operation gives; of several it may differ, so the number is remembered and run again as itself.
    """
    nearest = round(cut)
    if abs(cut - nearest) > GRID_TOLERANCE * (1 + abs(cut)) or (
        nearest == cut and arithmetic.is_whole(a) and (arithmetic.is_whole(b) or arithmetic.constant(b))
    ):
        return region
    if drawn.source.log_mass(active().region(drawn).meet(Region.point(nearest))) == -math.inf:
        return region
    left, right = (
        float(sum((f * nearest for _, f in side.terms), side.constant)) if is_symbol(side) else side for side in (a, b)
    )
    active().doubts.append((drawn.index, Region.point(nearest)))
    point = Region.point(nearest)
    return region.join(point) if arithmetic.PLAIN_BINARY[name](left, right) else region.meet(point.complement())


def _negated(value: Linear) -> Linear:
    return Linear(tuple((drawn, -factor) for drawn, factor in value.terms), -value.constant, value.integer)


def _region(name: str, number: Any) -> Region:
    value = arithmetic.rational(number)
    match name:
        case "less":
            return Region.below(value)
        case "less_equal":
            return Region.below(value, closed=True)
        case "greater":
            return Region.above(value)
        case "greater_equal":
            return Region.above(value, closed=True)
        case "equal":
            return Region.point(value)
    return Region.point(value).complement()


def _indicator(drawn: Draw, region: Region) -> Any:
    value = Steps(drawn, ((region, True), (region.complement(), False))).possible()
    return value.cells[0][1] if len(value.cells) == 1 else value


def _compare_images(name: str, a: Any, b: Any) -> Any:
    """Compare two functions of the same draw, if one of them minus the other is monotone: here, if both are one chain."""
    if type(a) is Image and type(b) is Image and a.drawn is b.drawn and a.chain == b.chain:
        return arithmetic.PLAIN_BINARY[name](0, 0)
    same = type(a) is Image and type(b) is Image and a.chain == b.chain
    if same and all(_strictly_increasing(operation) for operation in a.chain):
        # The same increasing function on both sides: compare what it was applied to.
        return compare(name, arithmetic.of_draw(a.drawn), arithmetic.of_draw(b.drawn))
    first, second = arithmetic.straightened(a), arithmetic.straightened(b)
    if first is None or second is None:
        raise stop("A comparison of rounded or transformed random numbers with each other is not followed")
    return arithmetic.binary(name, first, second)


def _strictly_increasing(operation: Operation) -> bool:
    return isinstance(operation, operations.Increasing) or (isinstance(operation, Affine) and operation.factor > 0)


def extreme(largest: bool, a: Any, b: Any) -> Any:
    """Return the larger or smaller of two numbers, at least one of them a symbol."""
    if is_symbol(a) and is_symbol(b):
        return a if arithmetic.binary("greater_equal" if largest else "less_equal", a, b) else b
    symbol, bound = (a, b) if is_symbol(a) else (b, a)
    if bound != bound:
        return math.nan
    return transforming.clip(symbol, bound if largest else -math.inf, math.inf if largest else bound)


def truth(value: Any) -> bool:
    """Decide whether a symbol is true, which for a number means not zero."""
    if type(value) is PendingComparison:
        return value.concrete()
    if type(value) is Steps:
        return bool(value.mapped(bool).concrete())
    known = arithmetic.as_finite(value)
    if known is not None:
        return truth(known)
    different = arithmetic.binary("not_equal", value, 0)
    return truth(different) if is_symbol(different) else bool(different)


def largest(values: list[Any], *, smallest: bool = False) -> int:
    """The place of the first largest of several values, some of them symbols, as one choice of the run."""
    values = [arithmetic.decided(value) for value in values]
    if not all(type(value) is Linear or arithmetic.constant(value) for value in values):
        best = 0
        for place in range(1, len(values)):
            if arithmetic.binary("less" if smallest else "greater", values[place], values[best]):
                best = place
        return best
    options = []
    for place, value in enumerate(values):
        option: list[Constraint] | None = []
        for other_place, other in enumerate(values):
            if other_place == place or option is None:
                continue
            strict = other_place < place  # a tie goes to the first
            ahead = (
                arithmetic.binary("subtract", other, value) if smallest else arithmetic.binary("subtract", value, other)
            )
            if not is_symbol(ahead):
                option = option if (ahead > 0 if strict else ahead >= 0) else None
            else:
                option.append(
                    Constraint(tuple((drawn.index, factor) for drawn, factor in ahead.terms), ahead.constant, strict)
                )
        if option is not None:
            options.append((place, option))
    return options[active().decide_constraints([option for _, option in options])][0]
