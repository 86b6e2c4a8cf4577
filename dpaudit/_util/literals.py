"""Read values from Python source by parsing alone: nothing in the text is ever executed.

:func:`evaluate` reads literals, and leaves everything else to its caller. :func:`rebuild` reads the source that
``dpaudit._util.values.source`` writes for data sets, :func:`constructed` calls of named functions.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from enum import EnumType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import shorten
from dpaudit._util.values import source
from dpaudit.errors import InvalidArgument

Read = Callable[[ast.expr], Any]
ReadOther = Callable[[ast.expr, Read], Any]

_REFUSED = (SyntaxError, ValueError, TypeError, OverflowError, RecursionError, MemoryError, KeyError)


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


def rebuild(text: str) -> Any:
    """Return the data set that source text written by ``dpaudit._util.values.source`` stands for, by parsing alone.

    >>> rebuild("[1, float('inf'), ('a', None)]")
    [1, inf, ('a', None)]
    >>> rebuild("np.array([1, 2], dtype='int8')")
    array([1, 2], dtype=int8)
    >>> rebuild("__import__('os').getcwd()")
    Traceback (most recent call last):
        ...
    dpaudit.errors.InvalidArgument: "__import__('os').getcwd()" has no plain form...
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the text
            made = evaluate(text, _read_written)
        if source(made) == text.strip():
            return made
    except _REFUSED:
        pass
    raise InvalidArgument(f"{shorten(text)} has no plain form, so the data set cannot be made again.")


def constructed(text: str, names: Mapping[str, Any]) -> Any:
    """Return what a call such as ``Laplace(scale=1.0)`` makes, if it calls only ``names``, with plain values or such calls.

    >>> constructed("complex(1.0, imag=2.0)", {"complex": complex})
    (1+2j)
    """

    def read_named(node: ast.expr, read: Read) -> Any:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in names and all(keyword.arg for keyword in node.keywords):
                return names[name](*map(read, node.args), **{str(item.arg): read(item.value) for item in node.keywords})
            case ast.Attribute(value=ast.Name(id=name), attr=member) if isinstance(names.get(name), EnumType):
                return names[name][member]
        return _read_written(node, read)

    try:
        return evaluate(text, read_named)
    except _REFUSED as error:
        raise InvalidArgument(f"{shorten(text)} is not a call with plain values ({type(error).__name__}).") from None


_SCALARS = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def _read_written(node: ast.expr, read: Read) -> Any:
    """Return the value of a call that ``source`` writes: infinities, empty sets, arrays, numpy's numbers and data frames."""
    match node:
        case ast.Call(
            func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf" | "nan" as name)], keywords=[]
        ):
            return float(name)
        case ast.Call(func=ast.Name(id="set" | "frozenset" as name), args=[], keywords=[]):
            return set() if name == "set" else frozenset()
        case ast.Call(func=ast.Name(id="frozenset"), args=[ast.Set() as items], keywords=[]):
            return frozenset(read(items))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="array"), args=[items], keywords=keywords):
            return _array(read(items), {keyword.arg: read(keyword.value) for keyword in keywords})
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=[item], keywords=[]) if (
            name in _SCALARS
        ):
            return getattr(np, name)(read(item))
        case ast.Call(func=ast.Attribute(value=made, attr="reshape"), args=[shape], keywords=[]):
            array = read(made)
            if isinstance(array, np.ndarray):
                return array.reshape(read(shape))
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="pd"), attr="DataFrame"), args=[columns], keywords=[]
                ),
                attr="astype",
            ),
            args=[dtypes],
            keywords=[],
        ):
            import pandas as pd

            return pd.DataFrame(read(columns)).astype(read(dtypes))
    raise not_allowed(node)


def _array(items: Any, named: dict[str | None, Any]) -> NDArray[Any]:
    dtype = np.dtype(named.pop("dtype", "float64"))
    if named or dtype.hasobject:
        raise ValueError("only plain arrays have a plain form")
    return np.array(items, dtype=dtype)
