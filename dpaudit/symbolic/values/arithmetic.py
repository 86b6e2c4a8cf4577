"""Arithmetic of symbolic numbers: every operator and numpy function of one or two arguments that can be followed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import erfinv

from dpaudit.symbolic.values import operations, sources
from dpaudit.symbolic.values.operations import Affine, Clip, Operation
from dpaudit.symbolic.values.paths import Constraint, Draw, active, stop
from dpaudit.symbolic.values.regions import Region
from dpaudit.symbolic.values.symbols import (
    GRID_TOLERANCE,
    MOST_STEPS,
    Image,
    Linear,
    PendingComparison,
    Steps,
    Symbol,
    is_symbol,
)

Binary = Callable[[Any, Any], Any]

PLAIN_BINARY: dict[str, Binary] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "true_divide": operator.truediv,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b),
    "logical_xor": lambda a, b: bool(a) != bool(b),
    "maximum": lambda a, b: a if a >= b else b,
    "minimum": lambda a, b: a if a <= b else b,
    "fmax": lambda a, b: a if a >= b else b,
    "fmin": lambda a, b: a if a <= b else b,
    "copysign": math.copysign,
}
PLAIN_UNARY: dict[str, Callable[[Any], Any]] = {
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": operator.abs,
    "fabs": abs,
    "floor": lambda x: float(math.floor(x)),
    "ceil": lambda x: float(math.ceil(x)),
    "trunc": lambda x: float(math.trunc(x)),
    "rint": lambda x: float(np.rint(x)),
    "sign": lambda x: type(x)((x > 0) - (x < 0)),
    "invert": lambda x: (not x) if isinstance(x, bool | np.bool_) else ~x,
    "logical_not": operator.not_,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "exp": np.exp,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "erfinv": erfinv,
    "square": lambda x: x * x,
    "isnan": lambda x: x != x,
    "isfinite": lambda x: bool(np.isfinite(x)),
    "isinf": lambda x: bool(np.isinf(x)),
    "conjugate": lambda x: x,
}
_INCREASING = {
    "log": operations.LOG,
    "log1p": operations.LOG1P,
    "exp": operations.EXP,
    "expm1": operations.EXPM1,
    "sqrt": operations.SQRT,
    "erfinv": operations.ERFINV,
}
_SWAPPED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_COMPARISONS = {*_SWAPPED, "equal", "not_equal"}


def constant(value: Any) -> bool:
    """Return True for a plain real number."""
    return isinstance(value, int | float | Fraction | np.integer | np.floating | np.bool_) and not is_symbol(value)


def rational(value: Any) -> Fraction:
    """A number as a fraction: every float is one."""
    try:
        return Fraction(value.item() if isinstance(value, np.generic) else value)
    except (OverflowError, ValueError):
        raise stop("A random number was combined with an infinite or undefined number") from None


def linear(terms: dict[Draw, Fraction], shift: Fraction, *, integer: bool) -> Any:
    """The linear combination, or its constant if every draw cancels."""
    kept = tuple((drawn, factor) for drawn, factor in terms.items() if factor)
    if not kept:
        return int(shift) if integer else float(shift)
    active().check(*(drawn for drawn, _ in kept))
    return Linear(kept, shift, integer)


def of_draw(drawn: Draw, *, factor: Any = 1) -> Any:
    """A draw times a constant."""
    scale = rational(factor)
    return linear({drawn: scale}, Fraction(0), integer=drawn.source.integer and scale.denominator == 1)


def binary(name: str, a: Any, b: Any) -> Any:
    """Apply a function of two arguments, at least one of them a symbol."""
    if name not in PLAIN_BINARY:
        raise stop(f"{name} of random numbers is not followed")
    plain = PLAIN_BINARY[name]
    if not is_symbol(a) and not is_symbol(b):
        return plain(a, b)
    if type(a) is PendingComparison or type(b) is PendingComparison:
        return binary(name, _decided(a), _decided(b))
    if type(a) is Steps or type(b) is Steps:
        return _steps(name, plain, a, b)
    for value in (a, b):
        if not is_symbol(value) and not constant(value):
            raise stop(f"{name} of a random number and {type(value).__name__} is not followed")
    a, b = _plain(a), _plain(b)
    if name in ("maximum", "fmax", "minimum", "fmin"):
        return _extreme(name in ("maximum", "fmax"), a, b)
    if name == "copysign":
        return unary("absolute", a) if binary("greater_equal", b, 0.0) else unary("negative", unary("absolute", a))
    if name in _COMPARISONS:
        return _compare(name, a, b)
    if name in ("add", "subtract", "multiply", "true_divide", "divide"):
        return _arithmetic(name, a, b)
    finite_a, finite_b = (as_finite(x) if is_symbol(x) else x for x in (a, b))
    if finite_a is not None and finite_b is not None:
        return _steps(name, plain, finite_a, finite_b)
    if name == "power" and constant(b) and b in (1, 2):
        return a if b == 1 else unary("square", a)
    if name == "floor_divide" and constant(b) and b > 0:
        return unary("floor", binary("true_divide", a, b))
    raise stop(f"{name} of random numbers is not followed")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) and not is_symbol(value) else value


def _decided(value: Any) -> Any:
    return value.concrete() if type(value) is PendingComparison else value


def as_finite(value: Any) -> Steps | None:
    """The symbol as a finite function of a draw, if it is one."""
    if type(value) is Steps:
        return value
    return value.as_steps() if type(value) is Linear else None


def _steps(name: str, plain: Binary, a: Any, b: Any) -> Any:
    if type(a) is Steps and type(b) is Steps:
        if a.drawn is b.drawn:
            known = b.possible()
            return Steps(
                a.drawn,
                tuple(
                    (region.meet(other), plain(x, y))
                    for region, x in a.possible().cells
                    for other, y in known.cells
                    if region.meet(other).parts
                ),
            )
        # Two coins: settle the one with fewer values, and go on with the other.
        if len(a.cells) <= len(b.cells):
            return binary(name, a.concrete(), b)
        return binary(name, a, b.concrete())
    if type(a) is Steps:
        if is_symbol(b):
            return binary(name, a.concrete(), b)
        _check_constant(b)
        return a.mapped(lambda x: plain(x, b))
    if is_symbol(a):
        return binary(name, a, b.concrete())
    _check_constant(a)
    return b.mapped(lambda y: plain(a, y))


def _check_constant(value: Any) -> None:
    if isinstance(value, np.ndarray) and value.ndim:
        raise stop("A random choice was combined with an array in a way that is not followed")


def _arithmetic(name: str, a: Any, b: Any) -> Any:
    if name in ("add", "subtract"):
        sign = 1 if name == "add" else -1
        if type(a) is Image or type(b) is Image:
            return _add_image(sign, a, b)
        terms: dict[Draw, Fraction] = dict(a.terms) if is_symbol(a) else {}
        for drawn, factor in b.terms if is_symbol(b) else ():
            terms[drawn] = terms.get(drawn, Fraction(0)) + sign * factor
        shift = (a.constant if is_symbol(a) else rational(a)) + sign * (b.constant if is_symbol(b) else rational(b))
        return linear(terms, shift, integer=_whole(a) and _whole(b))
    if name == "multiply" and is_symbol(b):
        a, b = b, a
    if is_symbol(b) or not is_symbol(a):
        # A finite draw times another one: settle it.
        first, second = as_finite(a), as_finite(b)
        if first is not None and is_symbol(b):
            return binary(name, first.concrete(), b)
        if second is not None:
            return binary(name, a, second.concrete()) if is_symbol(a) else _steps(name, PLAIN_BINARY[name], a, second)
        raise stop("A product or quotient of random numbers is not followed")
    if name != "multiply" and b == 0:
        raise stop("A random number is divided by zero")
    factor = rational(b) if name == "multiply" else 1 / rational(b)
    if factor == 0:
        return 0 if _whole(a) and _whole(b) else 0.0
    whole = name == "multiply" and _whole(a) and _whole(b)
    if type(a) is Image:
        return a.then(Affine(factor, Fraction(0)), integer=whole)
    return linear({drawn: f * factor for drawn, f in a.terms}, a.constant * factor, integer=whole)


def straightened(value: Any) -> Any:
    """Decide where a clipped or absolute value lies, which makes it linear or constant; None if it is neither even then."""
    if type(value) is not Image:
        return value
    current: Any = of_draw(value.drawn)
    for place, operation in enumerate(value.chain):
        if isinstance(operation, Affine):
            current = binary("add", binary("multiply", current, operation.factor), operation.shift)
        elif isinstance(operation, Clip):
            if binary("less_equal", current, operation.low):
                current = operation.low
            elif binary("greater_equal", current, operation.high):
                current = operation.high
        elif isinstance(operation, operations.Absolute):
            current = current if binary("greater_equal", current, 0.0) else unary("negative", current)
        else:
            return None
        if not is_symbol(current):
            # A constant from here on: the rest of the chain is plain arithmetic.
            for rest in value.chain[place + 1 :]:
                current = rest.value(current)
            return current
    return current


def _add_image(sign: int, a: Any, b: Any) -> Any:
    if is_symbol(a) and is_symbol(b):
        first, second = straightened(a), straightened(b)
        if first is None or second is None:
            raise stop("A sum of a rounded or transformed random number and another one is not followed")
        return binary("add" if sign > 0 else "subtract", first, second)
    whole = _whole(a) and _whole(b)
    if type(a) is Image:
        return a.then(Affine(Fraction(1), sign * rational(b)), integer=whole)
    return b.then(Affine(Fraction(sign), rational(a)), integer=whole)


def _whole(value: Any) -> bool:
    return value.integer if is_symbol(value) else isinstance(value, int | np.integer)


def _compare(name: str, a: Any, b: Any) -> Any:
    if not is_symbol(a):
        return _compare(_SWAPPED.get(name, name), b, a)
    if not is_symbol(b) and (math.isinf(b) or b != b):
        return PLAIN_BINARY[name](0.0, b)  # every draw is finite
    if type(a) is Image or type(b) is Image:
        if is_symbol(b):
            return _compare_images(name, a, b)
        region = _region(name, b)
        return _indicator(a.drawn, a.compared(region))
    difference = binary("subtract", a, b)
    if not is_symbol(difference):
        return PLAIN_BINARY[name](difference, 0.0)
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
        nearest == cut and _whole(a) and (_whole(b) or constant(b))
    ):
        return region
    if drawn.source.log_mass(active().region(drawn).meet(Region.point(nearest))) == -math.inf:
        return region
    left, right = (
        float(sum((f * nearest for _, f in side.terms), side.constant)) if is_symbol(side) else side for side in (a, b)
    )
    active().doubts.append((drawn.index, Region.point(nearest)))
    point = Region.point(nearest)
    return region.join(point) if PLAIN_BINARY[name](left, right) else region.meet(point.complement())


def _negated(value: Linear) -> Linear:
    return Linear(tuple((drawn, -factor) for drawn, factor in value.terms), -value.constant, value.integer)


def _region(name: str, number: Any) -> Region:
    value = rational(number)
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
        return PLAIN_BINARY[name](0, 0)
    same = type(a) is Image and type(b) is Image and a.chain == b.chain
    if same and all(_strictly_increasing(operation) for operation in a.chain):
        # The same increasing function on both sides: compare what it was applied to.
        return _compare(name, of_draw(a.drawn), of_draw(b.drawn))
    first, second = straightened(a), straightened(b)
    if first is None or second is None:
        raise stop("A comparison of rounded or transformed random numbers with each other is not followed")
    return binary(name, first, second)


def _strictly_increasing(operation: Operation) -> bool:
    return isinstance(operation, operations.Increasing) or (isinstance(operation, Affine) and operation.factor > 0)


def _extreme(largest: bool, a: Any, b: Any) -> Any:
    if is_symbol(a) and is_symbol(b):
        return a if binary("greater_equal" if largest else "less_equal", a, b) else b
    symbol, bound = (a, b) if is_symbol(a) else (b, a)
    if bound != bound:
        return math.nan
    return clip(symbol, bound if largest else -math.inf, math.inf if largest else bound)


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
    known = as_finite(value)
    if known is not None:
        return known.mapped(lambda x: min(max(x, low), high))
    whole = value.integer and all(math.isinf(end) or float(end).is_integer() for end in (low, high))
    image = _image(value)
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
    ends = [end if math.isinf(end) else rational(end) for end in (low, high)]
    return image.then(Clip(ends[0], ends[1]), integer=whole)


def _image(value: Any) -> Image:
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

    Independent normal draws add to a normal draw; two equal geometric draws subtract to a two-sided geometric one. The
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
    elif len(value.terms) == 2 and len(names) == 1 and next(iter(names)).startswith("geometric("):
        (first, one), (_, other) = value.terms
        if one != -other:
            return None
        size = abs(one)
        lattice = first.source.form.lattice
        assert lattice is not None
        source = sources.two_sided_geometric(float(np.exp(lattice.log_mass(np.array([1]))[0])))
    else:
        return None
    if known is None:
        known = trace.draw(source, "sum of draws")
        trace.derived[known.index] = tuple(drawn.index for drawn, _ in value.terms)
        trace.merged[key] = known
    return Linear(((known, size),), value.constant, value.integer)


def unary(name: str, value: Any) -> Any:
    """Apply a function of one symbol."""
    if name not in PLAIN_UNARY:
        raise stop(f"{name} of a random number is not followed")
    value = _decided(value)
    if not is_symbol(value):
        return PLAIN_UNARY[name](value)
    if type(value) is Steps:
        return value.mapped(PLAIN_UNARY[name])
    if name in _OF_A_NUMBER:
        return _OF_A_NUMBER[name](value)
    known = as_finite(value)
    if known is not None:
        return known.mapped(PLAIN_UNARY[name])
    if name in ("floor", "ceil", "trunc", "rint"):
        return _rounded(name, value)
    if name in ("absolute", "fabs"):
        return _image(value).then(operations.Absolute(), integer=value.integer)
    if name == "sign":
        return _sign(value)
    if name == "square":
        root = _image(value).then(operations.Absolute())
        doubled = binary("multiply", unary("log", root), 2.0)
        return unary("exp", doubled)
    if name in ("log2", "log10"):
        return binary("true_divide", unary("log", value), math.log(2.0 if name == "log2" else 10.0))
    if name in _INCREASING:
        return _increasing(_INCREASING[name], value)
    raise stop(f"{name} of a random number is not followed")


_OF_A_NUMBER: dict[str, Callable[[Any], Any]] = {
    # every draw is a finite number
    "positive": lambda value: value,
    "conjugate": lambda value: value,
    "negative": lambda value: binary("multiply", value, -1),
    "logical_not": lambda value: not truth(value),
    "isnan": lambda _: False,
    "isinf": lambda _: False,
    "isfinite": lambda _: True,
}


def _sign(value: Any) -> Any:
    image = _image(value)
    kind: Callable[[int], Any] = int if value.integer else float
    return Steps(
        image.drawn,
        (
            (image.preimage(Region.below(0.0)), kind(-1)),
            (image.preimage(Region.point(0.0)), kind(0)),
            (image.preimage(Region.above(0.0)), kind(1)),
        ),
    ).possible()


def _increasing(operation: operations.Increasing, value: Any) -> Any:
    image = _image(value)
    if image.drawn.source.integer:
        raise stop(f"{operation.name} of a whole random number is not followed")
    low, high = operation.domain
    inside = image.preimage(Region.above(low, closed=True).meet(Region.below(high, closed=True)))
    known = active().region(image.drawn)
    if image.drawn.source.log_mass(known.meet(inside.complement())) > -math.inf:
        raise stop(f"{operation.name} of a random number that may lie outside its domain")
    return image.then(operation)


def _rounded(name: str, value: Any, step: Fraction = Fraction(1)) -> Any:
    if value.integer:
        return _as_float(value) if name != "int" else value
    image = _image(value)
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


def as_integer(value: Any) -> Any:
    """``int(value)``: without the fraction."""
    value = _decided(value)
    if not is_symbol(value):
        return int(value)
    if type(value) is Steps:
        return value.mapped(int)
    if value.integer:
        return value
    known = as_finite(value)
    return known.mapped(int) if known is not None else _rounded("trunc", value)


def as_float(value: Any) -> Any:
    """``float(value)``."""
    value = _decided(value)
    if not is_symbol(value):
        return float(value)
    return value.mapped(float) if type(value) is Steps else value


def round_to(value: Any, digits: int, plain: Binary = np.round) -> Any:
    """``round(value, digits)`` of a symbol: Python's or numpy's, which differ for some decimals."""
    value = _decided(value)
    if not is_symbol(value):
        return plain(value, digits)
    known = as_finite(value)
    if known is not None:
        return known.mapped(lambda x: plain(x, digits) if not isinstance(x, int) or digits < 0 else x)
    if value.integer and digits >= 0:
        return value
    step = Fraction(10) ** -int(digits)
    return _rounded("rint", value, step)


def _round(value: Any, digits: int | None = None) -> Any:
    """``round`` of a symbol."""
    return round_to(value, 0, lambda x, _: round(x)) if digits is None else round_to(value, digits, round)


def truth(value: Any) -> bool:
    """Decide whether a symbol is true, which for a number means not zero."""
    if type(value) is PendingComparison:
        return value.concrete()
    if type(value) is Steps:
        return bool(value.mapped(bool).concrete())
    known = as_finite(value)
    if known is not None:
        return truth(known)
    different = binary("not_equal", value, 0)
    return truth(different) if is_symbol(different) else bool(different)


def largest(values: list[Any], *, smallest: bool = False) -> int:
    """The place of the first largest of several values, some of them symbols, as one choice of the run."""
    values = [_decided(value) for value in values]
    if not all(type(value) is Linear or constant(value) for value in values):
        best = 0
        for place in range(1, len(values)):
            if binary("less" if smallest else "greater", values[place], values[best]):
                best = place
        return best
    options = []
    for place, value in enumerate(values):
        option: list[Constraint] | None = []
        for other_place, other in enumerate(values):
            if other_place == place or option is None:
                continue
            strict = other_place < place  # a tie goes to the first
            ahead = binary("subtract", other, value) if smallest else binary("subtract", value, other)
            if not is_symbol(ahead):
                option = option if (ahead > 0 if strict else ahead >= 0) else None
            else:
                option.append(
                    Constraint(tuple((drawn.index, factor) for drawn, factor in ahead.terms), ahead.constant, strict)
                )
        if option is not None:
            options.append((place, option))
    return options[active().decide_constraints([option for _, option in options])][0]


def _operator(name: str, *, swapped: bool = False) -> Any:
    def method(self: Symbol, other: Any) -> Any:
        from dpaudit.symbolic.values.arrays import SymbolicArray, elementwise

        if isinstance(other, np.ndarray) or type(other) is SymbolicArray:
            return elementwise(name, other, self) if swapped else elementwise(name, self, other)
        if type(self) is not Steps and not is_symbol(other) and not constant(other):
            # A number is never equal to something else, and the other object may know what to do with it.
            return (name == "not_equal") if name in ("equal", "not_equal") else NotImplemented
        return binary(name, other, self) if swapped else binary(name, self, other)

    return method


def _install() -> None:
    for name, method in {
        "add": "add",
        "sub": "subtract",
        "mul": "multiply",
        "truediv": "true_divide",
        "floordiv": "floor_divide",
        "mod": "remainder",
        "pow": "power",
        "and": "bitwise_and",
        "or": "bitwise_or",
        "xor": "bitwise_xor",
    }.items():
        setattr(Symbol, f"__{name}__", _operator(method))
        setattr(Symbol, f"__r{name}__", _operator(method, swapped=True))
    for name, method in {
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
        "eq": "equal",
        "ne": "not_equal",
    }.items():
        setattr(Symbol, f"__{name}__", _operator(method))
    unaries = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
    for name, method in {**unaries, "floor": "floor", "ceil": "ceil"}.items():
        setattr(Symbol, f"__{name}__", lambda self, method=method: unary(method, self))
    Symbol.__trunc__ = as_integer  # type: ignore[attr-defined]
    Symbol.__round__ = _round  # type: ignore[attr-defined]


_install()
