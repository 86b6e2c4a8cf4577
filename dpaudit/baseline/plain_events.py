"""Events as plain data, read from a file that may come from anywhere: nothing in them is ever executed.

An event is ``{"any": [part, ...], "not": false}``: an output is in it if it is in one of the parts (with
``not``, in none). A part is the conjunction of what it names:

``code``        the structure of the output has this code (16 hexadecimal digits); ``structure`` says it for a reader
``other_than``  the structure has none of these codes
``records``     the key of the whole output is one of these
``column``      one number x of the output (NaN where there are fewer), or instead
``linear``      x = sum of weight times number over ``[[index, weight], ...]``, minus ``offset``; and then x satisfies one of
``within``      ``low <= x < high`` for one of ``[[low, high], ...]``; ``null`` for ``high`` is up to and including infinity
``equals``      x is one of these
``nan``         true: x is NaN

and besides, for the channel ``representation``,

``lowest_bit``  the grid that x is on is one of these: the exponent of its lowest set bit; 2000 + k for a short decimal with k
                decimals; -1100 for 0.0, infinities and NaN; -1101 for -0.0
``other_bits``  true: it is none of them, or the output has no such number
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.intervals import clopper_pearson
from dpaudit._util.validation import shorten
from dpaudit.engine.encoding.batch import Encoded, record_keys
from dpaudit.engine.views.float_bits import is_grid, lowest_bit
from dpaudit.errors import InvalidArgument

Mask: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]

_KEYS = {
    "structure",
    "code",
    "other_than",
    "records",
    "column",
    "linear",
    "offset",
    "within",
    "equals",
    "nan",
    "lowest_bit",
    "other_bits",
}


def check_event(event: Any) -> None:
    """Refuse what is not an event of the form above."""
    if not isinstance(event, Mapping) or set(event) - {"any", "not"} or not isinstance(event.get("any"), list):
        raise InvalidArgument(f"event={shorten(event)} is not an event.")
    if not isinstance(event.get("not", False), bool):
        raise InvalidArgument(f"event={shorten(event)} is not an event.")
    for part in event["any"]:
        if not isinstance(part, Mapping) or set(part) - _KEYS:
            raise InvalidArgument(f"event: {shorten(part)} is not a part of an event.")
        try:
            _condition(part, Encoded(np.zeros(1, np.uint64), np.zeros((1, 1)), {}))
        except (TypeError, ValueError, OverflowError, KeyError) as error:
            raise InvalidArgument(f"event: {shorten(part)} is not a part of an event ({error}).") from None


def inside(event: Mapping[str, Any], batch: Encoded) -> Mask:
    """Which outputs of a batch are in the event."""
    found = np.zeros(len(batch), dtype=bool)
    for part in event["any"]:
        found |= _condition(part, batch)
    return ~found if event.get("not", False) else found


def _condition(part: Mapping[str, Any], batch: Encoded) -> Mask:
    chosen = np.ones(len(batch), dtype=bool)
    if "code" in part:
        chosen &= batch.codes == _code(part["code"])
    if "other_than" in part:
        chosen &= ~np.isin(batch.codes, np.array([_code(code) for code in part["other_than"]], dtype=np.uint64))
    if "records" in part:
        chosen &= np.isin(record_keys(batch), np.array([_code(key) for key in part["records"]], dtype=np.uint64))
    if "column" in part or "linear" in part:
        chosen &= _satisfies(part, _number(part, batch))
    if "lowest_bit" in part:
        chosen &= _has_bits(part, batch)
    return chosen


def _has_bits(part: Mapping[str, Any], batch: Encoded) -> Mask:
    other = part.get("other_bits", False) is True
    listed = np.array([_grid(number) for number in part["lowest_bit"]], dtype=np.int64)
    return np.asarray(np.isin(lowest_bit(_column(part["column"], batch)), listed) != other)


def _grid(number: Any) -> int:
    if isinstance(number, int) and not isinstance(number, bool) and is_grid(number):
        return number
    raise ValueError(f"{number!r} is no grid of numbers")


def _number(part: Mapping[str, Any], batch: Encoded) -> Floats:
    if "column" in part:
        return _column(part["column"], batch)
    total = np.full(len(batch), -float(part["offset"]))
    for index, weight in part["linear"]:
        # As the engine scores: absent numbers count as zero, and infinities as very large.
        total = total + np.clip(np.nan_to_num(_column(index, batch)), -1e150, 1e150) * float(weight)
    return total


def _column(index: Any, batch: Encoded) -> Floats:
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise ValueError(f"{index!r} is not the place of a number")
    if index >= batch.width:
        return np.full(len(batch), np.nan)
    return np.asarray(batch.values[:, index])


def _satisfies(part: Mapping[str, Any], x: Floats) -> Mask:
    found = np.isnan(x) if part.get("nan", False) is True else np.zeros(x.shape, dtype=bool)
    for low, high in part.get("within", ()):
        found |= (x >= float(low)) & ((x < float(high)) if high is not None else True)
    return found | np.isin(x, np.array([float(value) for value in part.get("equals", ())]))


def _code(text: Any) -> np.uint64:
    if not isinstance(text, str) or len(text) != 16:
        raise ValueError(f"{text!r} is not a code of 16 hexadecimal digits")
    return np.uint64(int(text, 16))


def log_ratio_interval(on_data: tuple[int, int], on_neighbour: tuple[int, int], alpha: float) -> tuple[float, float]:
    """Interval for ``log(P(event | data) / P(event | neighbour))`` that holds with probability ``1 - alpha``.

    Both shares lie in their exact intervals (Clopper and Pearson 1934) of level ``1 - alpha / 2``, together with
    probability ``1 - alpha`` by the union bound, and the log-ratio is monotone in each.
    """
    low_data, high_data = clopper_pearson(*on_data, alpha=alpha / 2.0)
    low_neighbour, high_neighbour = clopper_pearson(*on_neighbour, alpha=alpha / 2.0)
    return _log(low_data) - _log(high_neighbour), _log(high_data) - _log(low_neighbour)


def _log(share: float) -> float:
    return math.log(share) if share > 0.0 else -math.inf
