"""Read values from their Python source by parsing alone: nothing in the text is ever executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from enum import EnumType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import shorten
from dpaudit._util.values import source
from dpaudit.errors import InvalidArgument


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
            made = _value(ast.parse(text.strip(), mode="eval").body)
        if source(made) == text.strip():
            return made
    except (SyntaxError, ValueError, TypeError, OverflowError, RecursionError, MemoryError, KeyError):
        pass
    raise InvalidArgument(f"{shorten(text)} has no plain form, so the data set cannot be made again.")


def constructed(text: str, names: Mapping[str, Any]) -> Any:
    """Return what a call such as ``Laplace(scale=1.0)`` makes, if it calls only ``names``, with plain values or such calls.

    >>> constructed("complex(1.0, imag=2.0)", {"complex": complex})
    (1+2j)
    """
    try:
        return _made(ast.parse(text.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, TypeError, OverflowError, RecursionError, MemoryError, KeyError) as error:
        raise InvalidArgument(f"{shorten(text)} is not a call with plain values ({type(error).__name__}).") from None


def _made(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in names and all(keyword.arg for keyword in node.keywords):
            arguments = [_made(argument, names) for argument in node.args]
            return names[name](*arguments, **{str(item.arg): _made(item.value, names) for item in node.keywords})
        case ast.Attribute(value=ast.Name(id=name), attr=member) if isinstance(names.get(name), EnumType):
            return names[name][member]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            collection = list if isinstance(node, ast.List) else tuple
            return collection(_made(item, names) for item in items)
    return _value(node)


_SCALARS = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            collection = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
            return collection(_value(item) for item in items)
        case ast.Dict(keys=keys, values=values):
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_real(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=ast.Constant(value=complex() as imaginary)):
            return _real(left) + (imaginary if isinstance(sign, ast.Add) else -imaginary)
        case ast.Call(
            func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf" | "nan" as name)], keywords=[]
        ):
            return float(name)
        case ast.Call(func=ast.Name(id="set" | "frozenset" as name), args=[], keywords=[]):
            return set() if name == "set" else frozenset()
        case ast.Call(func=ast.Name(id="frozenset"), args=[ast.Set() as items], keywords=[]):
            return frozenset(_value(items))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="array"), args=[items], keywords=keywords):
            return _array(_value(items), keywords)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=[item], keywords=[]) if (
            name in _SCALARS
        ):
            return getattr(np, name)(_value(item))
        case ast.Call(func=ast.Attribute(value=made, attr="reshape"), args=[shape], keywords=[]):
            array = _value(made)
            if isinstance(array, np.ndarray):
                return array.reshape(_value(shape))
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

            return pd.DataFrame(_value(columns)).astype(_value(dtypes))
    raise ValueError(f"{type(node).__name__} has no plain form")


def _real(node: ast.expr) -> Any:
    value = _value(node)
    if isinstance(value, bool) or not isinstance(value, int | float | complex):
        raise TypeError("a sign needs a number")
    return value


def _array(items: Any, keywords: list[ast.keyword]) -> NDArray[Any]:
    named = {keyword.arg: _value(keyword.value) for keyword in keywords}
    dtype = np.dtype(named.pop("dtype", "float64"))
    if named or dtype.hasobject:
        raise ValueError("only plain arrays have a plain form")
    return np.array(items, dtype=dtype)
