"""Read events from plain data, which may come from anywhere: nothing in them is ever executed.

``dpaudit.engine.views.condition`` writes events in this form.
An event is ``{"any": [part, ...], "not": false}``: an output is in it if it is in one of the parts (with
``not``, in none). A part is the conjunction of what it names:

``code``        the structure of the output has this code (16 hexadecimal digits); ``structure`` says it for a reader
``other_than``  the structure has none of these codes
``records``     the key of the whole output is one of these
``column``      one number x of the output (NaN where there are fewer), or instead
``feature``     x is the feature of the output with this name (``dpaudit.engine.encoding.features``), or instead
``modulus``     with ``column``: x is that number modulo this one
``linear``      x = sum of weight times number over ``[[index, weight], ...]``, minus ``offset``; and then x satisfies one of
``within``      ``low <= x < high`` for one of ``[[low, high], ...]``; ``null`` for ``high`` is up to and including infinity
``equals``      x is one of these
``nan``         true: x is NaN

``all``         instead of all these: every part of this list

and besides, for the channel ``representation``,

``lowest_bit``  the grid that x is on is one of these: the exponent of its lowest set bit; 2000 + k for a short decimal with k
                decimals; -1100 for 0.0, infinities and NaN; -1101 for -0.0
``other_bits``  true: it is none of them, or the output has no such number
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit._util.intervals import clopper_pearson
from dpaudit._util.validation import shorten
from dpaudit.engine.encoding.float_grid import is_grid
from dpaudit.engine.views.condition import (
    AllOf,
    AnyOf,
    Bits,
    Condition,
    Interval,
    Number,
    OtherStructure,
    Quantity,
    Records,
    Structure,
    Values,
)
from dpaudit.engine.views.feature import Feature
from dpaudit.engine.views.late.derived import Remainder
from dpaudit.engine.views.scores import Coordinate, LinearScore
from dpaudit.errors import InvalidArgument

_KEYS = {
    "structure",
    "code",
    "other_than",
    "records",
    "column",
    "all",
    "feature",
    "linear",
    "modulus",
    "offset",
    "within",
    "equals",
    "nan",
    "lowest_bit",
    "other_bits",
}


def read_event(event: Any) -> AnyOf:
    """Return an event of the form above as conditions, or raise InvalidArgument.

    >>> from dpaudit.engine.encoding.batch import encode
    >>> event = read_event({"any": [{"column": 0, "within": [["-inf", 0.5]]}]})
    >>> event.contains(encode([0.25, 0.75])).tolist()
    [True, False]
    """
    if not isinstance(event, Mapping) or set(event) - {"any", "not"} or not isinstance(event.get("any"), list):
        raise InvalidArgument(f"event={shorten(event)} is not an event.")
    negated = event.get("not", False)
    if not isinstance(negated, bool):
        raise InvalidArgument(f"event={shorten(event)} is not an event.")
    return AnyOf(tuple(map(_part, event["any"])), negated)


def union(events: Sequence[Mapping[str, Any]]) -> AnyOf:
    """Return the union of events, with adjacent intervals of one number joined.

    >>> halves = [{"any": [{"column": 0, "within": [[0.5, None]]}]}, {"any": [{"column": 0, "within": [["-inf", 0.5]]}]}]
    >>> union(halves).plain()
    {'any': [{'column': 0, 'within': [['-inf', None]]}], 'not': False}
    """
    if any(event.get("not") for event in events):
        return AnyOf(tuple(map(read_event, events)))
    parts: dict[str, dict[str, Any]] = {}
    for part in (part for event in events for part in event["any"]):
        key = json.dumps({name: value for name, value in part.items() if name not in ("within", "nan")}, sort_keys=True)
        known = parts.setdefault(key, {**part, **({"within": []} if "within" in part else {})})
        if "within" in part:
            known["within"] = _joined([*known["within"], *part["within"]])
        if part.get("nan"):
            known["nan"] = True
    return read_event({"any": list(parts.values())})


def _joined(intervals: Sequence[Sequence[Any]]) -> list[list[Any]]:
    joined: list[list[Any]] = []
    for low, high in sorted(intervals, key=lambda interval: float(interval[0])):
        if joined and joined[-1][1] == low:
            joined[-1][1] = high
        else:
            joined.append([low, high])
    return joined


def _part(part: Any, *, nested: bool = False) -> AllOf:
    if not isinstance(part, Mapping) or set(part) - _KEYS or ("all" in part and (nested or len(part) > 1)):
        raise InvalidArgument(f"event: {shorten(part)} is not a part of an event.")
    try:
        if "all" in part:
            return AllOf(tuple(_part(inner, nested=True) for inner in part["all"]))
        return AllOf(tuple(_conditions(part)))
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        raise InvalidArgument(f"event: {shorten(part)} is not a part of an event ({error}).") from None


def _conditions(part: Mapping[str, Any]) -> Iterator[Condition]:
    measured = "column" in part or "feature" in part or "linear" in part
    single = "code" in part and part.get("column") == 0 and not part.keys() & {"modulus", "equals", "lowest_bit"}
    if "code" in part:
        label = str(part.get("structure", ""))
        yield Structure(_code(part["code"]), label, _number(part, "output") if single else None)
    if "other_than" in part:
        yield OtherStructure(tuple(map(_code, part["other_than"])))
    if "records" in part:
        yield Records(tuple(map(_code, part["records"])))
    if measured and not single:
        values = tuple(float(value) for value in part.get("equals", ()))
        number = _number(part, _quantity(part).describe())
        exact = Values(number.of, values)
        yield exact if not part.get("within") and not number.nan else AnyOf((number, exact)) if values else number
        if "lowest_bit" in part:
            anything = Number(Coordinate(_place(part["column"])), (Interval(-math.inf, None),), nan=True)
            yield Bits(anything, tuple(map(_grid, part["lowest_bit"])), part.get("other_bits", False) is True)
    elif "lowest_bit" in part:
        raise KeyError("column")


def _number(part: Mapping[str, Any], name: str) -> Number:
    return Number(_quantity(part), tuple(_intervals(part)), part.get("nan", False) is True, name)


def _intervals(part: Mapping[str, Any]) -> Iterator[Interval]:
    for low, high in part.get("within", ()):
        yield Interval(float(low), None if high is None else float(high))


def _quantity(part: Mapping[str, Any]) -> Quantity:
    if "modulus" in part:
        return Remainder(_place(part["column"]), _modulus(part["modulus"]))
    if "column" in part:
        return Coordinate(_place(part["column"]))
    return Feature(str(part["feature"])) if "feature" in part else _linear(part)


def _linear(part: Mapping[str, Any]) -> LinearScore:
    weights = {_place(index): float(weight) for index, weight in part["linear"]}
    return LinearScore(np.array(list(weights.values()), dtype=np.float64), tuple(weights), float(part["offset"]))


def _grid(number: Any) -> int:
    if isinstance(number, int) and not isinstance(number, bool) and is_grid(number):
        return number
    raise ValueError(f"{number!r} is no grid of numbers")


def _modulus(number: Any) -> float:
    if not isinstance(number, int | float) or not 0.0 < float(number) < math.inf:
        raise ValueError(f"{number!r} is no modulus")
    return float(number)


def _place(index: Any) -> int:
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise ValueError(f"{index!r} is not the place of a number")
    return index


def _code(text: Any) -> int:
    if not isinstance(text, str) or len(text) != 16:
        raise ValueError(f"{text!r} is not a code of 16 hexadecimal digits")
    return int(text, 16)


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
