"""Arithmetic of symbolic numbers: which operators and functions of one or two arguments can be followed, and how.

Comparisons are in :mod:`~dpaudit.symbolic.values.comparing`; rounding, clipping and other functions of one draw in
:mod:`~dpaudit.symbolic.values.transforming`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import erfinv

from dpaudit.symbolic.values import comparing, operations, transforming
from dpaudit.symbolic.values.operations import Affine, Clip
from dpaudit.symbolic.values.paths import Draw, active, stop
from dpaudit.symbolic.values.symbols import Image, Linear, PendingComparison, Steps, is_symbol

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
        return binary(name, decided(a), decided(b))
    if type(a) is Steps or type(b) is Steps:
        return _steps(name, plain, a, b)
    for value in (a, b):
        if not is_symbol(value) and not constant(value):
            raise stop(f"{name} of a random number and {type(value).__name__} is not followed")
    a, b = _plain(a), _plain(b)
    if name in ("maximum", "fmax", "minimum", "fmin"):
        return comparing.extreme(name in ("maximum", "fmax"), a, b)
    if name == "copysign":
        return unary("absolute", a) if binary("greater_equal", b, 0.0) else unary("negative", unary("absolute", a))
    if name in comparing.COMPARISONS:
        return comparing.compare(name, a, b)
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


def decided(value: Any) -> Any:
    """Decide a comparison of several draws; everything else stays as it is."""
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
        return linear(terms, shift, integer=is_whole(a) and is_whole(b))
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
        return 0 if is_whole(a) and is_whole(b) else 0.0
    whole = name == "multiply" and is_whole(a) and is_whole(b)
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
    whole = is_whole(a) and is_whole(b)
    if type(a) is Image:
        return a.then(Affine(Fraction(1), sign * rational(b)), integer=whole)
    return b.then(Affine(Fraction(sign), rational(a)), integer=whole)


def is_whole(value: Any) -> bool:
    """Return True for whole numbers, symbolic or plain."""
    return value.integer if is_symbol(value) else isinstance(value, int | np.integer)


def unary(name: str, value: Any) -> Any:
    """Apply a function of one symbol."""
    if name not in PLAIN_UNARY:
        raise stop(f"{name} of a random number is not followed")
    value = decided(value)
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
        return transforming.rounded(name, value)
    if name in ("absolute", "fabs"):
        return transforming.image_of(value).then(operations.Absolute(), integer=value.integer)
    if name == "sign":
        return transforming.sign(value)
    if name == "square":
        root = transforming.image_of(value).then(operations.Absolute())
        doubled = binary("multiply", unary("log", root), 2.0)
        return unary("exp", doubled)
    if name in ("log2", "log10"):
        return binary("true_divide", unary("log", value), math.log(2.0 if name == "log2" else 10.0))
    if name in transforming.INCREASING:
        return transforming.increasing(transforming.INCREASING[name], value)
    raise stop(f"{name} of a random number is not followed")


_OF_A_NUMBER: dict[str, Callable[[Any], Any]] = {
    # every draw is a finite number
    "positive": lambda value: value,
    "conjugate": lambda value: value,
    "negative": lambda value: binary("multiply", value, -1),
    "logical_not": lambda value: not comparing.truth(value),
    "isnan": lambda _: False,
    "isinf": lambda _: False,
    "isfinite": lambda _: True,
}
