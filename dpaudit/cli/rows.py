"""A small safe language for rows on the command line: ``integers(0, 10)``, ``tuples(floats(0, 1), booleans())``.

The text is parsed, never evaluated: calls of a few Hypothesis strategies with literals or further such calls as arguments.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dpaudit._util.literals import NotAllowed, Read, evaluate, not_allowed
from dpaudit._util.validation import check_count, did_you_mean, shorten
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

LONGEST = 10_000  # characters of the text
DEEPEST = 8  # calls and collections inside each other
MOST_VALUES = 1_000  # values that every row must hold
MOST_ROWS = 10_000  # of a data set
LARGEST_INTEGER = 2**1023


def parse_rows(text: str) -> SearchStrategy[Any]:
    """Return the strategy that ``text`` names.

    >>> parse_rows("tuples(integers(0, 3), sampled_from(['a', 'b']))")
    tuples(integers(min_value=0, max_value=3), sampled_from(['a', 'b']))
    >>> parse_rows("__import__('os')")
    Traceback (most recent call last):
        ...
    dpaudit.errors.InvalidArgument: rows="__import__('os')": '__import__' is not a strategy here; use integers...
    """
    from hypothesis.strategies import SearchStrategy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in the text, or arguments that a later Hypothesis will refuse
        if len(text) > LONGEST:
            raise InvalidArgument(f"rows={shorten(text)} has {len(text)} characters; at most {LONGEST} are allowed.")
        try:
            _check_tree(text)
            made = evaluate(text, partial(_read_other, text))
            if not isinstance(made, SearchStrategy):
                raise InvalidArgument(
                    f"rows={shorten(text)} must be a strategy such as integers(0, 10), not a plain value."
                )
            made.validate()
            if made.is_empty:
                raise InvalidArgument(f"rows={shorten(text)} has no value at all.")
        except InvalidArgument:
            raise
        except NotAllowed as error:
            raise InvalidArgument(
                f"rows={shorten(text)}: {error}; use strategies ({', '.join(NAMES)}) and literals."
            ) from None
        except (SyntaxError, MemoryError) as error:
            raise InvalidArgument(
                f"rows={shorten(text)} is not an expression ({error}). Write e.g. integers(0, 10)."
            ) from None
        except Exception as error:  # Hypothesis refuses arguments with many exceptions, AssertionError included
            reason = str(error) or f"arguments that are not allowed ({type(error).__name__})"
            raise InvalidArgument(f"rows={shorten(text)}: {reason}") from None
    return made


def check_sizes(min_size: int, max_size: int) -> None:
    """Raise InvalidArgument for data sets that would take minutes to make."""
    check_count(minimum=0, min_size=min_size, max_size=max_size)
    if max(min_size, max_size) > MOST_ROWS:
        raise InvalidArgument(
            f"min_size={min_size}, max_size={max_size} must be at most {MOST_ROWS}: a leak shows on small data sets. Write an "
            "audit file with neighbours.fixed for a large one."
        )


def _fewest(node: ast.AST) -> float:
    """Return at least how many plain values a value of the strategy holds, as far as the text shows it."""
    if not isinstance(node, ast.Call):
        return 1.0
    inner = [_fewest(argument) for argument in (*node.args, *(keyword.value for keyword in node.keywords))]
    sizes = [
        keyword.value.value
        for keyword in node.keywords
        if keyword.arg == "min_size" and isinstance(keyword.value, ast.Constant)
    ]
    size = next((float(min(size, 2**1000)) for size in sizes if isinstance(size, int)), 1.0)
    return max(size, 1.0) * max(inner, default=1.0)


def _depth(node: ast.AST) -> int:
    inner = max(map(_depth, ast.iter_child_nodes(node)), default=0)
    return inner + isinstance(node, ast.Call | ast.List | ast.Tuple | ast.Set | ast.Dict)


def _check_tree(text: str) -> None:
    """Refuse what would take long to make, or what Hypothesis cannot hold."""
    tree = ast.parse(text.strip(), mode="eval")
    if _depth(tree) > DEEPEST:
        raise InvalidArgument(f"rows={shorten(text)} is nested more than {DEEPEST} deep.")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > LARGEST_INTEGER:
            raise InvalidArgument(
                f"rows={shorten(text)}: integers beyond 2^1023 do not fit into a float, and are not allowed."
            )
        if _fewest(node) > MOST_VALUES:
            raise InvalidArgument(
                f"rows={shorten(text)}: every row would hold more than {MOST_VALUES} values, which takes too long to make."
            )


def _read_other(text: str, node: ast.expr, read: Read) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            function = _strategy(name, text)
            if any(keyword.arg is None for keyword in node.keywords):
                raise InvalidArgument(f"rows={shorten(text)}: ** is not allowed.")
            return function(
                *map(read, node.args), **{str(keyword.arg): read(keyword.value) for keyword in node.keywords}
            )
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
    raise not_allowed(node)


def _strategy(name: str, text: str) -> Callable[..., Any]:
    from hypothesis import strategies

    if name not in NAMES:
        raise InvalidArgument(
            f"rows={shorten(text)}: {name!r} is not a strategy here; use {', '.join(NAMES)}.{did_you_mean(name, NAMES)}"
        )
    function: Callable[..., Any] = getattr(strategies, name)
    return function
