"""Decide whether an original value lies in a published cell such as ``3200-3299``, ``32**``, ``{iOS, Linux}``, ``*``."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any, TypeAlias

import pandas as pd

from dpaudit.anonymity.tables.cells import MISSING, SUPPRESSED, as_moment, as_number, as_text
from dpaudit.anonymity.tables.hierarchy import Hierarchy
from dpaudit.errors import InvalidArgument

Contains: TypeAlias = Callable[[Any], bool]

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:-|\.\.|\u2013|to)\s*({_NUMBER})\s*", re.ASCII)
_BRACKETS = re.compile(r"\s*([\[(\]])\s*([^,;]*?)\s*[,;]\s*([^,;]*?)\s*([\])\[])\s*")
_LESS, _MORE = r"<=|<|\u2264", r">=|>|\u2265"
# The name of the attribute may stand in the middle, as in ``10 < Age <= 30``.
_CHAIN = re.compile(
    rf"\s*({_NUMBER})\s*(?:({_LESS})[^<>=\u2264\u2265]+({_LESS})|({_MORE})[^<>=\u2264\u2265]+({_MORE}))\s*({_NUMBER})\s*",
    re.ASCII,
)
_NAMED = re.compile(rf"\s*[^\W\d][^<>=\u2264\u2265]*?\s*(?=(?:{_LESS}|{_MORE})\s*{_NUMBER}\s*$)")
_ONE_SIDED = re.compile(rf"\s*(<=|>=|<|>|\u2264|\u2265)\s*({_NUMBER})\s*|\s*({_NUMBER})\s*\+\s*", re.ASCII)


def covers(released: Any, original: Any, hierarchy: Hierarchy | None = None) -> bool:
    """Return True if the original value lies in the published one.

    Parameters
    ----------
    released
        The published cell: a value, ``*``, a range with both ends included (``3200-3299``, ``20..29``, ``20 to 29``), an
        interval (``[20, 30)``, pandas.Interval; a bracket turned outwards excludes its end), ``<18``, ``>=65``, ``65+``,
        inequalities with the attribute's name (``10 < Age <= 30``, ``Age > 65``), a
        set (``{iOS, Linux}``), a mask (``32**``: one character for each star; ``32*``: also any ending), or a label of the
        hierarchy.
    original
        The original cell.
    hierarchy : Hierarchy, optional
        The hierarchy of the column.

    Examples
    --------
    >>> covers("3200-3299", 3270), covers("3200-3299", 3400), covers("32**", 3270), covers("{iOS, Linux}", "Windows")
    (True, False, True, False)
    """
    if hierarchy is not None:
        try:
            if released in hierarchy.ancestors(original):
                return True
        except InvalidArgument:  # a value outside the hierarchy lies in none of its labels
            pass
    if isinstance(released, pd.Interval):
        closed = released.closed
        inside = _between(released.left, released.right, closed in ("left", "both"), closed in ("right", "both"))
        return inside(original) or same(released, original)
    if isinstance(released, str) and _region(released)(original):
        return True
    return same(released, original)


def number_range(released: Any) -> tuple[Fraction | None, Fraction | None, bool, bool] | None:
    """Return the ends of a published range of numbers, and whether they belong to it; None for every other cell.

    >>> number_range("20-29"), number_range("<18"), number_range("32**")
    ((Fraction(20, 1), Fraction(29, 1), True, True), (None, Fraction(18, 1), False, False), None)
    """
    contains = _region(released) if isinstance(released, str) else None
    if isinstance(contains, functools.partial) and contains.args[0] is as_number:
        _, low, high, with_low, with_high = contains.args
        return low, high, with_low, with_high
    return None


def same(released: Any, original: Any) -> bool:
    """Return True if two cells show the same value: the same number, the same moment, or the same text.

    >>> same("3270", 3270.0), same("True", True), same("01", 1)
    (True, True, False)
    """
    if released is MISSING or original is MISSING:
        return released is original or released == str(MISSING)  # its text in a set of values
    if isinstance(released, str) and isinstance(original, str):
        return released == original
    if isinstance(released, str) or isinstance(original, str):
        if as_text(released) == as_text(original):
            return True
        text, other = (released, original) if isinstance(released, str) else (original, released)
        if _padded(text):  # 01 is not the number 1
            return False
    else:
        other = original
    number = as_number(released)
    if number is not None:
        return number == as_number(original)
    moment = as_moment(released)
    if moment is not None:
        return moment == as_moment(original)
    try:
        return type(released) is type(other) and bool(released == original)
    except (TypeError, ValueError):
        return False


def _padded(text: str) -> bool:
    digits = text.strip().lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


@functools.lru_cache(maxsize=1 << 16)
def _region(label: str) -> Contains:
    if label.strip() == SUPPRESSED:
        return _everything
    if (match := _RANGE.fullmatch(label)) and Fraction(match[1]) <= Fraction(match[2]):
        return _between(match[1], match[2], True, True)
    if match := _BRACKETS.fullmatch(label):
        opening, low, high, closing = match.groups()
        return _between(low, high, opening == "[", closing == "]")
    if match := _CHAIN.fullmatch(label):
        first, below, upto, above, downto, last = match.groups()
        if below is not None:
            return _between(first, last, below != "<", upto != "<")
        return _between(last, first, downto != ">", above != ">")
    if match := _ONE_SIDED.fullmatch(_NAMED.sub("", label, count=1)):
        sign, end, least = match.groups()
        if least is not None or sign in (">", ">=", "\u2265"):
            return _between(least or end, None, sign != ">", False)
        return _between(None, end, False, sign != "<")
    if label.startswith("{") and label.endswith("}"):
        return _one_of(split_set(label))
    return _mask(label) if SUPPRESSED in label else _nothing


def _everything(_: Any) -> bool:
    return True


def _nothing(_: Any) -> bool:
    return False


def _between(low: Any, high: Any, with_low: bool, with_high: bool) -> Contains:
    for convert in (as_number, as_moment):
        bottom, top = (None if end is None else convert(end) for end in (low, high))
        if (bottom is None) == (low is None) and (top is None) == (high is None):
            return functools.partial(_inside, convert, bottom, top, with_low, with_high)
    return _nothing


def _inside(
    convert: Callable[[Any], Fraction | datetime | None],
    low: Any,
    high: Any,
    with_low: bool,
    with_high: bool,
    cell: Any,
) -> bool:
    place = convert(cell)
    if place is None:
        return False
    try:
        above = low is None or low < place or (with_low and low == place)
        return bool(above and (high is None or place < high or (with_high and high == place)))
    except TypeError:  # a moment with a time zone against one without
        return False


def _one_of(labels: tuple[str, ...]) -> Contains:
    return lambda cell: any(same(label, cell) or as_text(cell) == label for label in labels)


def _mask(label: str) -> Contains:
    def contains(cell: Any) -> bool:
        text = as_text(cell)
        if len(text) == len(label):
            return all(shown in (SUPPRESSED, letter) for shown, letter in zip(label, text, strict=True))
        # One star at the end may stand for any number of characters; several stars stand for one character each.
        return label.count(SUPPRESSED) == 1 and label.endswith(SUPPRESSED) and text.startswith(label[:-1])

    return contains


def set_label(values: list[Any]) -> str:
    r"""Write a set of values so that it can be read back.

    >>> set_label(["iOS", "a, b"])
    '{iOS, a\\, b}'
    """
    if len(values) == 1:
        return as_text(values[0])
    return "{" + ", ".join(re.sub(r"([\\,{}]|^\s|\s$)", r"\\\1", as_text(value)) for value in values) + "}"


def split_set(label: str) -> tuple[str, ...]:
    r"""Read a set of values.

    >>> split_set(r"{iOS, a\, b}")
    ('iOS', 'a, b')
    """
    parts = [[""]]
    letters = iter(label[1:-1])
    for letter in letters:
        if letter == ",":
            parts.append([""])
        elif letter == "\\":
            parts[-1].append(next(letters, letter))
        elif not letter.isspace() or len(parts[-1]) > 1:
            parts[-1].append(letter)
    return tuple("".join(part) for part in parts)
