"""Structures of outputs: text in which a marked place stands for each number."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

OPEN, CLOSE = "\x01", "\x02"  # around the place of a number in a structure
OPAQUE = "\x03"  # before the name of a type whose contents cannot be seen
CUT = "\x04"  # after a structure that was shortened
MARKS = (OPEN, CLOSE, OPAQUE, CUT)
REST = " + rest"  # the place holds two numbers: the nearest float and the exact remainder
SECONDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
UNITS = {"W": "weeks", "D": "days", "h": "hours", "m": "minutes", **SECONDS}
LARGEST_SPELLED_OUT = 1e16  # whole numbers from here on are written with an exponent, as floats are
LONGEST_NOTE = 200  # characters of a structure that a note shows

_KINDS = {"b": "bool", "i": "number", "u": "number", "f": "number", "c": "complex"}  # by the kind of a dtype
_MARKED = str.maketrans(dict.fromkeys(MARKS, "?"))
_UNMARKED = str.maketrans(dict.fromkeys(MARKS))
_PLACE = re.compile(rf"(array of )?{OPEN}([^{CLOSE}]*){CLOSE}(?: with shape \(([0-9, ]*)\))?")
_TIME = re.compile(r"(datetime|timedelta)64(?:\[(\w+)\])?")


def plain(label: str) -> str:
    """Return a structure as readable text.

    >>> plain(f"[{placeholder('number')}, 'number']")
    "[number, 'number']"
    """
    return label.translate(_UNMARKED)


def printable(text: str) -> str:
    """Replace characters that are used as marks."""
    return text.translate(_MARKED)


def placeholder(kind: str) -> str:
    """Return the place of a number in a structure. Marks distinguish it from text that reads the same."""
    return f"{OPEN}{kind}{CLOSE}"


def with_rest(label: str) -> str:
    """Return the structure of numbers that are represented by two floats each."""
    return label.replace(CLOSE, REST + CLOSE)


def array_label(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """Return the structure of one output of an array.

    Integers and floats are one kind, here and outside of arrays: a batch with a NaN is an array of floats where one without
    is an array of integers, so the type says something about the other outputs of the batch, not about this one.
    """
    kind = _KINDS.get(dtype.kind) or dtype.name
    return placeholder(kind) if shape == () else f"array of {placeholder(kind)} with shape {shape}"


def fill(label: str, values: Iterable[float]) -> str:
    """Return a structure with its numbers in their places.

    >>> fill(f"({placeholder('number')}, {placeholder('number')}, 'number')", [4.0, 2.5])
    "(4, 2.5, 'number')"
    """
    left = iter(values)

    def put(match: re.Match[str]) -> str:
        numbers = list(itertools.islice(left, _count(match)))
        single = match[2].removesuffix(REST)
        half = len(numbers) // 2 if single != match[2] else len(numbers)
        near, rest = numbers[:half], numbers[half:] or [0.0] * half
        texts = [_spell(single, *both) for both in zip(near, rest, strict=False)]
        if single == "complex":
            half = len(texts) // 2
            texts = [
                f"complex({real}, {imaginary})" for real, imaginary in zip(texts[:half], texts[half:], strict=False)
            ]
        return f"array({_nested(texts, _shape(match))})" if match[1] else "".join(texts[:1])

    return plain(_PLACE.sub(put, label))


def _nested(texts: Sequence[str], shape: tuple[int, ...]) -> str:
    if len(shape) > 1:
        size = math.prod(shape[1:])
        texts = [_nested(texts[row * size : (row + 1) * size], shape[1:]) for row in range(shape[0])]
    return f"[{', '.join(texts)}]"


def _spell(kind: str, near: float, rest: float) -> str:
    if not math.isfinite(near):
        return str(near)
    if kind == "bool":
        return str(near == 1.0)
    if _TIME.fullmatch(kind):
        return str(np.array(int(near) + int(rest)).astype(kind))
    if near.is_integer() and float(rest).is_integer() and (rest or abs(near) < LARGEST_SPELLED_OUT):
        return str(int(near) + int(rest))
    return f"{near!r} + {rest!r}" if rest else repr(near)


def explained(labels: Mapping[int, str]) -> str:
    """Return a note for events that names the numbers, if all outputs have one structure.

    >>> number = placeholder("number")
    >>> explained({0: f"{{'a': {number}, 'b': {number}}}"}), explained({0: f"[{number}, {number}]"})
    (", where output is {'a': output[0], 'b': output[1]}", '')
    >>> explained({0: f"date {placeholder('datetime64[D]')}"})
    ' (in days since 1970)'
    """
    known = set(labels.values()) if len(labels) <= 2 else set()
    known -= {label for label in known if OPEN in label and with_rest(label) in known}
    label = known.pop() if len(known) == 1 else ""
    if OPEN not in label or len(label) > LONGEST_NOTE:
        return ""
    kinds = {match[2].removesuffix(REST) for match in _PLACE.finditer(label)}
    time = _TIME.fullmatch(kinds.pop()) if len(kinds) == 1 else None
    if time is not None:
        return f" (in {UNITS.get(time[2], 'units')}{' since 1970' if time[1] == 'datetime' else ''})"
    if REST not in label and not re.search(r"\w", _PLACE.sub("", label)):
        return ""
    places = itertools.count()
    named = plain(_PLACE.sub(lambda match: _coordinates(match, places), label))
    return f", the number in {plain(label)}" if next(places) == 1 else f", where output is {named}"


def _coordinates(match: re.Match[str], places: Iterator[int]) -> str:
    names = [f"output[{place}]" for place in itertools.islice(places, _count(match))]
    return f"array({names[0]} to {names[-1]})" if match[1] and len(names) > 1 else " + ".join(names)


def _count(match: re.Match[str]) -> int:
    """Return how many numbers a place stands for."""
    shape = _shape(match)
    return math.prod(shape) * (2 if match[2].startswith("complex") else 1) * (2 if match[2].endswith(REST) else 1)


def _shape(match: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(size) for size in match[3].split(",") if size.strip()) if match[3] is not None else ()


def opaque_types(label: str) -> list[str]:
    """Return the names of the types in a structure whose contents cannot be seen."""
    return re.findall(rf"{OPAQUE}(\w+)", label) if OPAQUE in label else []
