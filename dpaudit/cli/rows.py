"""A small safe language for rows on the command line: ``integers(0, 10)``, ``tuples(floats(0, 1), booleans())``.

The text is parsed, never evaluated: calls of a few Hypothesis strategies with literals or further such calls as arguments.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpaudit._util.validation import did_you_mean
from dpaudit.errors import InvalidArgument

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

NAMES = (
    "integers",
    "floats",
    "booleans",
    "text",
    "binary",
    "none",
    "just",
    "sampled_from",
    "one_of",
    "tuples",
    "lists",
    "fixed_dictionaries",
    "dates",
)


def parse_rows(text: str) -> SearchStrategy[Any]:
    """Return the strategy that ``text`` names.

    >>> parse_rows("tuples(integers(0, 3), sampled_from(['a', 'b']))")
    tuples(integers(min_value=0, max_value=3), sampled_from(['a', 'b']))
    >>> parse_rows("__import__('os')")
    Traceback (most recent call last):
        ...
    dpaudit.errors.InvalidArgument: rows="__import__('os')": '__import__' is not a strategy here; use integers...
    """
    from hypothesis.errors import HypothesisException
    from hypothesis.strategies import SearchStrategy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in the text, or arguments that Hypothesis will refuse one day
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InvalidArgument(
                f"rows={text!r} is not an expression ({error}). Write e.g. integers(0, 10)."
            ) from None
        try:
            made = _value(tree.body, text)
            if not isinstance(made, SearchStrategy):
                raise InvalidArgument(f"rows={text!r} must be a strategy such as integers(0, 10), not a plain value.")
            made.validate()
            if made.is_empty:
                raise InvalidArgument(f"rows={text!r} has no value at all.")
        except (HypothesisException, TypeError, ValueError, OverflowError, RecursionError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(f"rows={text!r}: {error or type(error).__name__}") from None
    return made


def _value(node: ast.expr, text: str) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            function = _strategy(name, text)
            if any(keyword.arg is None for keyword in node.keywords):
                raise InvalidArgument(f"rows={text!r}: ** is not allowed.")
            arguments = [_value(argument, text) for argument in node.args]
            named = {str(keyword.arg): _value(keyword.value, text) for keyword in node.keywords}
            return function(*arguments, **named)
        case ast.List(elts=items):
            return [_value(item, text) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item, text) for item in items)
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_value(k, text): _value(v, text) for k, v in zip(keys, values, strict=True) if k is not None}
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
    raise InvalidArgument(
        f"rows={text!r}: {ast.unparse(node)!r} is not allowed; use strategies ({', '.join(NAMES)}) and literals."
    )


def _strategy(name: str, text: str) -> Callable[..., Any]:
    from hypothesis import strategies

    if name not in NAMES:
        raise InvalidArgument(
            f"rows={text!r}: {name!r} is not a strategy here; use {', '.join(NAMES)}.{did_you_mean(name, NAMES)}"
        )
    function: Callable[..., Any] = getattr(strategies, name)
    return function
