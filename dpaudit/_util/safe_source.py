"""Evaluate literal Python source without executing it; callers decide what else is allowed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

Read = Callable[[ast.expr], Any]
ReadOther = Callable[[ast.expr, Read], Any]


class NotAllowed(ValueError):
    """The source holds something that is neither a literal nor allowed."""


def evaluate(text: str, read_other: ReadOther) -> Any:
    """Return the value of an expression of literals, lists, tuples, sets, dicts, signs, and what else is allowed.

    Parameters
    ----------
    text : str
        The source.
    read_other : callable
        Receives every other expression in the source, such as a call, and a function that evaluates the parts of it. It
        returns the value, or raises :func:`not_allowed`.

    Raises
    ------
    SyntaxError
        The text is not an expression.
    NotAllowed
        The text holds anything else, which the message shows.

    Examples
    --------
    >>> evaluate("[1, ('a', -total(2, 3))]", lambda call, read: sum(map(read, call.args)))
    [1, ('a', -5)]
    """

    def read(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=items):
                return [read(item) for item in items]
            case ast.Tuple(elts=items):
                return tuple(read(item) for item in items)
            case ast.Set(elts=items):
                return {read(item) for item in items}
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {read(key): read(value) for key, value in zip(keys, values, strict=True) if key is not None}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -_number(read(operand), node)
            case ast.BinOp(
                left=left, op=ast.Add() | ast.Sub() as sign, right=ast.Constant(value=complex() as imaginary)
            ):
                return _number(read(left), node) + (imaginary if isinstance(sign, ast.Add) else -imaginary)
        return read_other(node, read)

    return read(ast.parse(text.strip(), mode="eval").body)


def not_allowed(node: ast.expr) -> NotAllowed:
    """Return the error for a part of the source that is neither a literal nor allowed."""
    return NotAllowed(f"{ast.unparse(node)!r} is not allowed")


def _number(value: Any, node: ast.expr) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | complex):
        raise not_allowed(node)
    return value
