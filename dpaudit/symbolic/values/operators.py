"""The operators of Python for symbolic numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.symbolic.values import arithmetic, transforming
from dpaudit.symbolic.values.symbols import Steps, Symbol, is_symbol


def _operator(name: str, *, swapped: bool = False) -> Any:
    def method(self: Symbol, other: Any) -> Any:
        from dpaudit.symbolic.values.arrays import SymbolicArray, elementwise

        if isinstance(other, np.ndarray) or type(other) is SymbolicArray:
            return elementwise(name, other, self) if swapped else elementwise(name, self, other)
        if type(self) is not Steps and not is_symbol(other) and not arithmetic.constant(other):
            # A number is never equal to something else, and the other object may know what to do with it.
            return (name == "not_equal") if name in ("equal", "not_equal") else NotImplemented
        return arithmetic.binary(name, other, self) if swapped else arithmetic.binary(name, self, other)

    return method


def install() -> None:
    """Give all symbols the operators of numbers."""
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
        setattr(Symbol, f"__{name}__", lambda self, method=method: arithmetic.unary(method, self))
    Symbol.__trunc__ = transforming.as_integer  # type: ignore[attr-defined]
    Symbol.__round__ = transforming.python_round  # type: ignore[attr-defined]
