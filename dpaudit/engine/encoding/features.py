"""Features of one output: named numbers of collections, text and bytes, whose own structure hardly ever repeats.

A feature is a number with a readable name: ``size of output``, ``count of 'flu' in output``,
``output['age']``, ``number 2 in output``, ``output ends with 'bob'``. Which features an output has depends on that output
alone. A feature that an output lacks is 0 if it counts or tests something, and NaN if it is a number of the output's own.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dpaudit.engine.encoding.single_output import safe_repr
from dpaudit.mechanism import Raised

Found: TypeAlias = dict[str, float]


@dataclass(frozen=True, slots=True)
class FeatureLimits:
    """Limits of what is read of one output."""

    deepest: int = 4
    """Levels of nesting that are read."""
    most_features: int = 512
    """Features of one output, about."""
    places: int = 32
    """Numbers, and entries of a sequence, that are features by their place."""
    characters: int = 64
    """Characters or bytes that are features by their place."""
    longest_text: int = 4096
    """Characters of a text that are read; its length is that of the whole text."""
    longest_name: int = 60
    """Characters of an element, a key or a word that has a feature of its own."""
    affixes: tuple[int, ...] = (1, 2, 3, 4)
    """Lengths of the beginnings and ends of a text that are tested."""


FEATURE_LIMITS = FeatureLimits()
PACKED = ("<d", ">d", "<q", ">q", "<f", ">f", "<i", ">i")
"""Formats of :mod:`struct` in which bytes are read as numbers."""
_NUMBER_IN_TEXT = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")
_WORD = re.compile(r"[^\W_]+")
_CLASSES = {"letters": str.isalpha, "digits": str.isdigit, "capitals": str.isupper, "spaces": str.isspace}
_PLAIN = (type(None), bool, int, float, complex, np.number, np.bool_, np.datetime64, np.timedelta64, Raised)


def features(output: Any) -> dict[str, float]:
    """Return the features of one output; none for numbers, None, exceptions, and arrays of numbers.

    >>> features({"flu": 2.5, "cold": 1.0})
    {'size of output': 2.0, "output['flu']": 2.5, "output['cold']": 1.0}
    >>> sorted(features(frozenset({"a", "b"})))
    ["count of 'a' in output", "count of 'b' in output", 'size of output']
    """
    found: Found = {}
    if has_features(output):
        _walk(found, output, "output", 0)
    return found


def has_features(output: Any) -> bool:
    """Return whether an output is of a kind that has features."""
    if isinstance(output, _PLAIN):
        return False
    return not isinstance(output, np.ndarray) or output.dtype.kind in "OUS"


def feature(output: Any, name: str) -> float:
    """Return one feature of an output, by its name.

    >>> feature("12 of 30", "number 1 in output"), feature("12 of 30", "output ends with '1'")
    (30.0, 0.0)
    """
    return features(output).get(name, default(name))


def default(name: str) -> float:
    """Return the value of a feature that an output lacks: 0 for a count or a test, otherwise NaN."""
    return 0.0 if is_test(name) or name.startswith("count of ") else math.nan


def is_test(name: str) -> bool:
    """Return whether a feature says that something is so: 1 if it is, otherwise 0."""
    return name.endswith(("'", '"'))


def _walk(found: Found, output: Any, path: str, depth: int) -> None:
    if isinstance(output, bool | int | float | np.integer | np.floating | np.bool_):
        found[path] = _number(output)
    elif isinstance(output, _PLAIN) or depth > FEATURE_LIMITS.deepest:
        return
    elif isinstance(output, str):
        _text(found, str(output), path, depth)
    elif isinstance(output, bytes | bytearray | memoryview):
        _bytes(found, bytes(output), path, depth)
    elif isinstance(output, Mapping):
        _mapping(found, output, path, depth)
    elif isinstance(output, Set):
        found[f"size of {path}"] = float(len(output))
        _counts(found, output, path)
    elif isinstance(output, np.ndarray):
        if output.dtype.kind in "OUS":
            _sequence(found, output.ravel().tolist(), path, depth)
    elif isinstance(output, Sequence) and not isinstance(output, range):
        _sequence(found, output, path, depth)
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        for field in dataclasses.fields(output):
            _entry(found, getattr(output, field.name, None), f"{path}.{field.name}", depth)


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@lru_cache(maxsize=1 << 16)
def _count_name(text: str, path: str) -> str:
    return f"count of {text} in {path}"


def _counts(found: Found, items: Iterable[Any], path: str) -> None:
    """Count how often each element occurs."""
    for item in items:
        if text := _spelled(item):
            name = _count_name(text, path)
            found[name] = found.get(name, 0.0) + 1.0
            if len(found) > FEATURE_LIMITS.most_features:
                return


def _spelled(item: Any) -> str:
    """Return an element as text; empty if it is too long, or a number with decimals, which hardly repeats."""
    if isinstance(item, str):
        return repr(str(item)) if len(item) <= FEATURE_LIMITS.longest_name else ""
    if isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, float) and not item.is_integer():
        return ""
    text = safe_repr(item)
    return text if len(text) <= FEATURE_LIMITS.longest_name else ""


def _mapping(found: Found, output: Mapping[Any, Any], path: str, depth: int) -> None:
    """Read values by their key. A key without a number of its own is counted; that of a number shows by the number."""
    found[f"size of {path}"] = float(len(output))
    for key, value in output.items():
        text = _spelled(key)
        if text and type(value) in (float, int):
            found[f"{path}[{text}]"] = _number(value)
        elif text:
            found[_count_name(text, path)] = 1.0
            _entry(found, value, f"{path}[{text}]", depth)
        if len(found) > FEATURE_LIMITS.most_features:
            return


def _sequence(found: Found, output: Sequence[Any], path: str, depth: int) -> None:
    """Read numbers by their place, and count the other elements as those of a bag, with the first place of each."""
    found[f"size of {path}"] = float(len(output))
    for place, item in enumerate(output):
        if isinstance(item, str | bytes | None):
            if text := _spelled(item):
                name = _count_name(text, path)
                if name not in found:
                    found[f"place of {text} in {path}"] = float(place)
                found[name] = found.get(name, 0.0) + 1.0
        elif place < FEATURE_LIMITS.places:
            _entry(found, item, f"{path}[{place}]", depth)
        if len(found) > FEATURE_LIMITS.most_features:
            return


def _entry(found: Found, value: Any, path: str, depth: int) -> None:
    if isinstance(value, str | bytes) and (text := _spelled(value)):
        found[f"{path} == {text}"] = 1.0
    _walk(found, value, path, depth + 1)


def _text(found: Found, text: str, path: str, depth: int) -> None:
    found[f"length of {path}"] = float(len(text))
    text = text[: FEATURE_LIMITS.longest_text]
    if text[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return _walk(found, json.loads(text), f"json.loads({path})", depth + 1)
    for place, number in enumerate(_NUMBER_IN_TEXT.findall(text)[: FEATURE_LIMITS.places]):
        found[f"number {place} in {path}"] = _number(number)
    _counts(found, _WORD.findall(text), path)
    for length in FEATURE_LIMITS.affixes:
        if length < len(text):
            found[f"{path} starts with {text[:length]!r}"] = 1.0
            found[f"{path} ends with {text[-length:]!r}"] = 1.0
    for name, belongs in _CLASSES.items():
        found[f"number of {name} in {path}"] = float(sum(map(belongs, text)))
    if len(text) <= FEATURE_LIMITS.characters:
        for place, character in enumerate(text):
            found[f"ord({path}[{place}])"] = float(ord(character))
    return None


def _bytes(found: Found, data: bytes, path: str, depth: int) -> None:
    found[f"length of {path}"] = float(len(data))
    for place, byte in enumerate(data[: FEATURE_LIMITS.characters]):
        found[f"byte {place} of {path}"] = float(byte)
    for form in PACKED:
        count, rest = divmod(len(data), struct.calcsize(form))
        if data and not rest:
            count = min(count, FEATURE_LIMITS.places)
            numbers = struct.unpack_from(f"{form[0]}{count}{form[1]}", data)
            for place, number in enumerate(numbers):
                found[f"number {place} of {path} packed as {form}"] = float(number)
    if data.isascii() and (text := data.decode("ascii")).isprintable():
        _text(found, text, f"{path}.decode()", depth)
