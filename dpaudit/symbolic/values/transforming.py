"""Functions of one symbolic number: rounding, clipping, logarithms and the like, and sums that are one draw by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.draws import sources
from dpaudit.symbolic.values import arithmetic, operations
from dpaudit.symbolic.values.operations import Affine, Clip
from dpaudit.symbolic.values.paths import active, stop
from dpaudit.symbolic.values.regions import Region
from dpaudit.symbolic.values.symbols import MOST_STEPS, Image, Linear, PendingComparison, Steps, is_symbol

INCREASING = {
    "log": operations.LOG,
    "log1p": operations.LOG1P,
    "exp": operations.EXP,
    "expm1": operations.EXPM1,
    "sqrt": operations.SQRT,
    "erfinv": operations.ERFINV,
}


def image_of(value: Any) -> Image:
    """The symbol as a function of one draw; certain sums of draws are replaced by one draw of their law."""
    if type(value) is Image:
        return value
    single = value.single()
    if single is None:
        merged = merge(value)
        if merged is None:
            raise stop("Rounding, clipping or transforming a sum of several draws is not followed")
        single, value = merged.terms[0], merged
    drawn, factor = single
    if factor == 1 and value.constant == 0:
        return Image(drawn, (), value.integer)
    return Image(drawn, (Affine(factor, value.constant),), value.integer)


def merge(value: Linear) -> Linear | None:
    """Replace a sum of draws by one draw with its law, if that law is known and nothing else was asked of the draws.

    Independent normal draws add to a normal draw; two equal geometric draws subtract to a two-sided geometric one, and two
    equal exponential draws to a Laplace one. The
    draws themselves may not be used from here on, because the new one depends on them.
    """
    trace = active()
    key = tuple((drawn.index, factor) for drawn, factor in value.terms)
    known = trace.merged.get(key)
    trace.check(*(drawn for drawn, _ in value.terms)) if known is None else None
    names = {drawn.source.name for drawn, _ in value.terms}
    used = {index for constraint in trace.constraints for index, _ in constraint.terms}
    if known is None and any(
        trace.log_masses[drawn.index] < 0.0 or drawn.index in used or drawn.index in trace.derived
        for drawn, _ in value.terms
    ):
        return None
    if names == {"normal"}:
        size = Fraction(math.sqrt(sum(factor * factor for _, factor in value.terms)))
        source = sources.gaussian()
    elif len(value.terms) == 2 and value.terms[0][1] == -value.terms[1][1] and names == {"exponential"}:
        size = abs(value.terms[0][1])
        source = sources.laplace()
    elif len(value.terms) == 2 and len(names) == 1 and next(iter(names)).startswith("geometric("):
        (first, one), (_, other) = value.terms
        if one != -other:
            return None
        size = abs(one)
        source = sources.two_sided_geometric(float(first.source.name[len("geometric(") : -1]))
    else:
        return None
    if known is None:
        known = trace.draw(source, "sum of draws")
        trace.derived[known.index] = tuple(drawn.index for drawn, _ in value.terms)
        trace.merged[key] = known
    return Linear(((known, size),), value.constant, value.integer)


def clip(value: Any, low: float, high: float) -> Any:
    """``min(max(value, low), high)`` of a symbol and two numbers."""
    if low == -math.inf and high == math.inf:
        return value
    if type(value) is PendingComparison:
        value = value.concrete()
    if not is_symbol(value):
        return min(max(value, low), high)
    if low >= high:
        return high
    known = arithmetic.as_finite(value)
    if known is not None:
        return known.mapped(lambda x: min(max(x, low), high))
    whole = value.integer and all(math.isinf(end) or float(end).is_integer() for end in (low, high))
    image = image_of(value)
    if whole and math.isfinite(low) and math.isfinite(high) and high - low < MOST_STEPS:
        cells = []
        for k in range(int(low), int(high) + 1):
            values = Region.point(k)
            if k == low:
                values = Region.below(k, closed=True)
            if k == high:
                values = Region.above(k, closed=True)
            cells.append((image.preimage(values), k))
        return Steps(image.drawn, tuple(cells)).possible()
    ends = [end if math.isinf(end) else arithmetic.rational(end) for end in (low, high)]
    return image.then(Clip(ends[0], ends[1]), integer=whole)


def sign(value: Any) -> Any:
    """Return -1, 0 or 1."""
    image = image_of(value)
    kind: Callable[[int], Any] = int if value.integer else float
    return Steps(
        image.drawn,
        (
            (image.preimage(Region.below(0.0)), kind(-1)),
            (image.preimage(Region.point(0.0)), kind(0)),
            (image.preimage(Region.above(0.0)), kind(1)),
        ),
    ).possible()


def increasing(operation: operations.Increasing, value: Any) -> Any:
    """Apply an increasing function, if the value lies in its domain."""
    image = image_of(value)
    if image.drawn.source.integer:
        raise stop(f"{operation.name} of a whole random number is not followed")
    low, high = operation.domain
    inside = image.preimage(Region.above(low, closed=True).meet(Region.below(high, closed=True)))
    known = active().region(image.drawn)
    if image.drawn.source.log_mass(known.meet(inside.complement())) > -math.inf:
        raise stop(f"{operation.name} of a random number that may lie outside its domain")
    return image.then(operation)


def rounded(name: str, value: Any, step: Fraction = Fraction(1)) -> Any:
    """Round to whole numbers, or to multiples of a step."""
    if value.integer:
        return _as_float(value) if name != "int" else value
    image = image_of(value)
    if image.drawn.source.integer:
        raise stop("Rounding a whole random number that was scaled is not followed")
    match name:
        case "floor":
            return image.then(operations.Floor(), integer=True)
        case "ceil":
            negative = image.then(operations.NEGATION).then(operations.Floor(), integer=True)
            return negative.then(operations.NEGATION, integer=True)
        case "trunc":
            return image.then(operations.Truncate(), integer=True)
    return image.then(operations.RoundTo(step), integer=step.denominator == 1)


def _as_float(value: Any) -> Any:
    return value


def is_integer(value: Any) -> Any:
    """``value.is_integer()``: of a linear function of draws with a density never."""
    value = arithmetic.decided(value)
    known = arithmetic.as_finite(value) if is_symbol(value) else None
    if known is not None:
        return known.mapped(lambda x: float(x).is_integer())
    if not is_symbol(value):
        return float(value).is_integer()
    if value.integer:
        return True
    if type(value) is Linear and any(drawn.source.form.continuous is not None for drawn in value.draws()):
        return False
    raise stop("is_integer of a rounded random number is not followed")


def as_integer(value: Any) -> Any:
    """``int(value)``: without the fraction."""
    value = arithmetic.decided(value)
    if not is_symbol(value):
        return int(value)
    if type(value) is Steps:
        return value.mapped(int)
    if value.integer:
        return value
    known = arithmetic.as_finite(value)
    return known.mapped(int) if known is not None else rounded("trunc", value)


def as_float(value: Any) -> Any:
    """``float(value)``."""
    value = arithmetic.decided(value)
    if not is_symbol(value):
        return float(value)
    return value.mapped(float) if type(value) is Steps else value


def round_to(value: Any, digits: int, plain: arithmetic.Binary = np.round) -> Any:
    """``round(value, digits)`` of a symbol: Python's or numpy's, which differ for some decimals."""
    value = arithmetic.decided(value)
    if not is_symbol(value):
        return plain(value, digits)
    known = arithmetic.as_finite(value)
    if known is not None:
        return known.mapped(lambda x: plain(x, digits) if not isinstance(x, int) or digits < 0 else x)
    if value.integer and digits >= 0:
        return value
    step = Fraction(10) ** -int(digits)
    return rounded("rint", value, step)


def python_round(value: Any, digits: int | None = None) -> Any:
    """``round`` of a symbol."""
    return round_to(value, 0, lambda x, _: round(x)) if digits is None else round_to(value, digits, round)
