"""A small safe language for rows on the command line: ``integers(0, 10)``, ``tuples(floats(0, 1), booleans())``.

The text is parsed, never evaluated: calls of a few Hypothesis strategies with literals or further such calls as arguments.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dpaudit._util.safe_source import NotAllowed, Read, evaluate, not_allowed
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
            made = evaluate(text, partial(_read_call, text))
            if not isinstance(made, SearchStrategy):
                raise InvalidArgument(f"rows={text!r} must be a strategy such as integers(0, 10), not a plain value.")
            made.validate()
            if made.is_empty:
                raise InvalidArgument(f"rows={text!r} has no value at all.")
        except InvalidArgument:
            raise
        except NotAllowed as error:
            raise InvalidArgument(
                f"rows={text!r}: {error}; use strategies ({', '.join(NAMES)}) and literals."
            ) from None
        except (SyntaxError, MemoryError) as error:
            raise InvalidArgument(
                f"rows={text!r} is not an expression ({error}). Write e.g. integers(0, 10)."
            ) from None
        except (HypothesisException, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidArgument(f"rows={text!r}: {error or type(error).__name__}") from None
    return made


def _read_call(text: str, call: ast.Call, read: Read) -> Any:
    match call:
        case ast.Call(func=ast.Name(id=name)):
            function = _strategy(name, text)
            if any(keyword.arg is None for keyword in call.keywords):
                raise InvalidArgument(f"rows={text!r}: ** is not allowed.")
            return function(
                *map(read, call.args), **{str(keyword.arg): read(keyword.value) for keyword in call.keywords}
            )
    raise not_allowed(call)


def _strategy(name: str, text: str) -> Callable[..., Any]:
    from hypothesis import strategies

    if name not in NAMES:
        raise InvalidArgument(
            f"rows={text!r}: {name!r} is not a strategy here; use {', '.join(NAMES)}.{did_you_mean(name, NAMES)}"
        )
    function: Callable[..., Any] = getattr(strategies, name)
    return function
