"""Conditions on one output: a small tree that can be read as text, as Python and as JSON, and evaluated on a batch.

An event is a union of parts (:class:`AnyOf`). A part is about the structure of the output (:class:`Structure`,
:class:`OtherStructure`), about the output as a whole (:class:`Records`), about one number of it or a score
(:class:`Number`, :class:`Values`), or about the bits of a number (:class:`Bits`). Views build the tree for the cells that
they are given, and ``dpaudit.engine.views.plain_events`` builds it from JSON. Every condition has

``text()``           a phrase in words
``python(names)``    a Python expression in ``output``
``plain()``          its JSON form, described in ``dpaudit.engine.views.plain_events``; None if it has none
``contains(batch)``  for every output of an encoded batch, whether the condition holds
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded, record_keys
from dpaudit.engine.encoding.float_grid import DECIMAL, NEGATIVE_ZERO, NO_BIT, lowest_bits

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Plain: TypeAlias = dict[str, Any]

LOWEST = -np.finfo(np.float64).max
"""The smallest finite float: an interval from here on holds everything but minus infinity."""
MOST_IN_TEXT = 8
"""Exact outputs that a text lists; it says how many more there are."""
MOST_IN_PYTHON = 64
"""Exact outputs that Python code compares one by one; longer lists are lists of digests."""


class Names(Protocol):
    """Python expressions for the parts of ``output``; ``dpaudit.engine.witness.python_code`` has the implementation."""

    def structure(self, code: int) -> str:
        """Return a test of the structure."""

    def other_structure(self, codes: Sequence[int]) -> str:
        """Return a test that the structure is none of these."""

    def number(self, index: int) -> str:
        """Return one number of the output."""

    def record(self, key: int, text: str) -> str:
        """Return a test that the output is the one with this key; empty if it cannot be written down."""

    def kind(self, key: int, text: str) -> str:
        """Return what distinguishes outputs that print alike, such as `` (int)``; usually empty."""

    def suspect(self, place: int, name: str, condition: Condition, labels: Mapping[int, str]) -> str:
        """Return a condition on the value of a suspect, whose values have these structures."""

    def define(self, code: str) -> None:
        """Note code that an expression needs before it."""


class Quantity(Protocol):
    """A number per output: a coordinate or a score."""

    def __call__(self, batch: Encoded) -> Floats:
        """Return the number of every output of a batch."""

    def describe(self) -> str:
        """Describe it in words."""

    def plain(self) -> Plain | None:
        """Return its JSON form; None if it has none."""

    def python(self, names: Names) -> str:
        """Return a Python expression for it, after noting its definitions; empty if there is none."""


class Condition(Protocol):
    """A set of outputs."""

    def text(self, names: Names) -> str:
        """Return a phrase in words."""

    def python(self, names: Names) -> str:
        """Return a Python expression in ``output``; empty if there is none."""

    def plain(self) -> Plain | None:
        """Return its JSON form; None if it has none."""

    def contains(self, batch: Encoded) -> Mask:
        """Return for every output whether it is in the set."""


@dataclass(frozen=True, slots=True)
class Interval:
    """``low <= x < high``; without ``high`` up to and including infinity."""

    low: float
    high: float | None

    @property
    def everything(self) -> bool:
        """True if it holds every number."""
        return self.low == -math.inf and self.high is None

    def text(self, name: str) -> str:
        """Return the condition on ``name``, as simple as possible and exact about infinities."""
        low, high = self.low, self.high
        if self.everything:
            return f"{name} is a number"
        if high is None:
            return f"{name} == inf" if low == math.inf else f"{name} {_shorter('>=', low, '>')}"
        if low == -math.inf:
            return f"{name} == -inf" if high == LOWEST else f"{name} {_shorter('<', high, '<=')}"
        if low == LOWEST:
            return f"-inf < {name} {_shorter('<', high, '<=')}"
        if math.nextafter(low, math.inf) == high:
            return f"{name} == {low!r}"
        return f"{low!r} <= {name} {_shorter('<', high, '<=')}"

    def python(self, name: str) -> str:
        """Return the condition as Python."""
        if self.everything:
            return f"{name} == {name}"
        return self.text("\0").replace("-inf", "float('-inf')").replace(" inf", " float('inf')").replace("\0", name)

    def plain(self) -> list[Any]:
        """Return the ends; JSON has no infinities."""
        return [end if end is None or math.isfinite(end) else str(end) for end in (self.low, self.high)]

    def contains(self, values: Floats) -> Mask:
        """Return for every value whether it lies inside."""
        return np.asarray((values >= self.low) & ((values < self.high) if self.high is not None else True))


MUCH_SHORTER = 3  # digits: "<= 0.0" instead of "< 5e-324", but no "> 0.471...6" instead of ">= 0.471...64"


def _shorter(comparison: str, end: float, beside: str) -> str:
    """Return a comparison with an end of an interval, or the equivalent one with the float below it if that is much shorter.

    >>> _shorter("<", 5e-324, "<="), _shorter("<", 0.5, "<=")
    ('<= 0.0', '< 0.5')
    """
    below = math.nextafter(end, -math.inf)
    return f"{beside} {below!r}" if len(repr(below)) + MUCH_SHORTER <= len(repr(end)) else f"{comparison} {end!r}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the output, or a score of it, lies in one of the intervals, or is NaN."""

    of: Quantity
    intervals: tuple[Interval, ...]
    nan: bool = False
    name: str = "output"  # in the text

    def text(self, names: Names) -> str:
        """Return the intervals, and how the score is computed."""
        del names
        if getattr(self.of, "indicator", False) and (zero := self._holds(0.0)) != self._holds(1.0):
            return f"not ({self.name})" if zero else self.name
        absent = "is absent or NaN" if getattr(self.of, "may_be_absent", False) else "is NaN"
        parts = [interval.text(self.name) for interval in self.intervals] + [f"{self.name} {absent}"] * self.nan
        shown = " or ".join(parts)
        return f"{shown}, where score = {self.of.describe()}" if self.name == "score" else shown

    def _holds(self, value: float) -> bool:
        return any(bool(interval.contains(np.array([value]))[0]) for interval in self.intervals)

    def python(self, names: Names) -> str:
        """Return the intervals as comparisons."""
        name = self.of.python(names)
        # Not "x != x": a masked number of numpy is not unequal to itself, and not equal either.
        parts = [interval.python(name) for interval in self.intervals] + [f"not {name} == {name}"] * self.nan
        return _either(parts) if name else ""

    def plain(self) -> Plain | None:
        """Return the quantity with its intervals."""
        quantity = self.of.plain()
        if quantity is None:
            return None
        return {
            **quantity,
            "within": [interval.plain() for interval in self.intervals],
            **({"nan": True} if self.nan else {}),
        }

    def contains(self, batch: Encoded) -> Mask:
        """Evaluate the quantity and compare."""
        values = self.of(batch)
        found = np.isnan(values) if self.nan else np.zeros(len(batch), dtype=bool)
        for interval in self.intervals:
            found = found | interval.contains(values)
        return found


@dataclass(frozen=True, slots=True)
class Values:
    """A number of the output is one of these values."""

    of: Quantity
    values: tuple[float, ...]

    def text(self, names: Names) -> str:
        """List them."""
        del names
        return _listed([f"output == {value!r}" for value in self.values])

    def python(self, names: Names) -> str:
        """Return a membership test."""
        return f"{self.of.python(names)} in [{', '.join(map(_literal, self.values))}]"

    def plain(self) -> Plain | None:
        """Return the quantity with its values."""
        quantity = self.of.plain()
        return None if quantity is None else {**quantity, "equals": list(self.values)}

    def contains(self, batch: Encoded) -> Mask:
        """Compare exactly."""
        return np.isin(self.of(batch), np.array(self.values, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class Structure:
    """The output has this structure and, if ``number`` is given, its single number satisfies that."""

    code: int
    label: str  # in words
    number: Number | None = None
    alone: bool = False  # no other structure was seen, so text and Python need not mention it

    def text(self, names: Names) -> str:
        """Return the condition on the number, or the structure."""
        number = self.number
        if number is None or (not self.alone and any(interval.everything for interval in number.intervals)):
            return self.label if self.label.startswith("raises ") else f"output is {self.label}"
        return number.text(names)

    def python(self, names: Names) -> str:
        """Return a test of both."""
        if self.number is None:
            return names.structure(self.code)
        inside = self.number.python(names)
        return inside if self.alone else f"{names.structure(self.code)} and ({inside})"

    def plain(self) -> Plain | None:
        """Return the code, and the label for a reader."""
        inside = {} if self.number is None else self.number.plain()
        return None if inside is None else {"structure": self.label, "code": hexadecimal(self.code), **inside}

    def contains(self, batch: Encoded) -> Mask:
        """Compare the codes."""
        found = np.asarray(batch.codes == np.uint64(self.code))
        return found if self.number is None else found & self.number.contains(batch)


@dataclass(frozen=True, slots=True)
class OtherStructure:
    """The output has none of these structures."""

    codes: tuple[int, ...]

    def text(self, names: Names) -> str:
        """Say so."""
        del names
        return "output has a structure not seen while learning"

    def python(self, names: Names) -> str:
        """Return a test of the structure."""
        return names.other_structure(self.codes)

    def plain(self) -> Plain | None:
        """List the codes."""
        return {"other_than": [hexadecimal(code) for code in self.codes]}

    def contains(self, batch: Encoded) -> Mask:
        """Compare the codes."""
        return ~np.isin(batch.codes, np.array(self.codes, dtype=np.uint64))


@dataclass(frozen=True, slots=True)
class Records:
    """The output as a whole is one of these; ``texts`` says which, as far as it is known."""

    keys: tuple[int, ...]
    texts: tuple[str, ...] = ()

    def text(self, names: Names) -> str:
        """List them."""
        return _listed(
            [text + names.kind(key, text) if text else f"record {hexadecimal(key)}" for key, text in self._both()]
        )

    def python(self, names: Names) -> str:
        """Return comparisons, and a membership test of digests for outputs that cannot be written down."""
        spelled = (
            {key: names.record(key, text) for key, text in self._both()} if len(self.keys) <= MOST_IN_PYTHON else {}
        )
        digests = [hexadecimal(key) for key in self.keys if not spelled.get(key)]
        return _either([*filter(None, spelled.values()), *([f"record(output) in {digests!r}"] if digests else [])])

    def _both(self) -> list[tuple[int, str]]:
        return list(zip(self.keys, self.texts or [""] * len(self.keys), strict=True))

    def plain(self) -> Plain | None:
        """List the keys."""
        return {"records": [hexadecimal(key) for key in self.keys]}

    def contains(self, batch: Encoded) -> Mask:
        """Compare the keys."""
        return np.isin(record_keys(batch), np.array(self.keys, dtype=np.uint64))


@dataclass(frozen=True, slots=True)
class Bits:
    """A number lies in an interval, and is on one of the ``grids`` of :func:`float_grid.lowest_bits` (or on none of them)."""

    number: Number
    grids: tuple[int, ...] | None  # None: any
    others: bool = False  # it is on none of the grids
    seen: tuple[int, ...] = ()  # all grids that were seen, ascending: a text may then name a range of them

    def text(self, names: Names) -> str:
        """Return the interval with few digits, and the grids."""
        del names
        name, (interval,) = self.number.name, self.number.intervals
        where = f"{interval.low:.4g} <= {name} < {math.inf if interval.high is None else interval.high:.4g}"
        if self.grids is None:
            return where
        return f"({where} and {'not ' * self.others}{self._grids(np.array(self.grids, dtype=np.int64))})"

    def _grids(self, listed: NDArray[np.int64]) -> str:
        def some(base: int, exponents: NDArray[np.int64]) -> str:
            return ", ".join(f"{base}^{exponent}" for exponent in exponents[:6]) + ", ..." * (exponents.size > 6)

        seen = np.array(self.seen, dtype=np.int64)
        bits, known = (grids[(grids > NO_BIT) & (grids < DECIMAL)] for grids in (listed, seen))
        parts = []
        if bits.size > 1 and np.array_equal(bits, known[: bits.size]):
            parts.append(f"lowest set bit <= 2^{bits[-1]}")
        elif bits.size:
            parts.append(f"lowest set bit in {{{some(2, bits)}}}")
        if (decimals := listed[listed > DECIMAL]).size:
            parts.append(f"last decimal in {{{some(10, DECIMAL - decimals)}}}")
        if NO_BIT in listed:
            parts.append(f"{self.number.name} is 0.0, infinite or NaN")
        if NEGATIVE_ZERO in listed:
            parts.append(f"{self.number.name} is -0.0")
        return f"({' or '.join(parts)})"

    def python(self, names: Names) -> str:
        """Return a test of the value and of its grid."""
        where = self.number.python(names)
        if self.grids is None:
            return f"({where})"
        return f"({where}) and lowest_bit({self.number.of.python(names)}) {'not ' * self.others}in {list(self.grids)!r}"

    def plain(self) -> Plain | None:
        """Return the interval and the grids."""
        grids = {} if self.grids is None else {"lowest_bit": list(self.grids)}
        inside = self.number.plain()
        return None if inside is None else {**inside, **grids, **({"other_bits": True} if self.others else {})}

    def contains(self, batch: Encoded) -> Mask:
        """Compare value and grid."""
        found = self.number.contains(batch)
        if self.grids is None:
            return found
        on_grid = np.isin(lowest_bits(self.number.of(batch)), np.array(self.grids, dtype=np.int64))
        return np.asarray(found & (on_grid != self.others))


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds."""

    parts: tuple[Condition, ...]

    def text(self, names: Names) -> str:
        """Join the parts."""
        texts = [part.text(names) for part in self.parts]
        return (texts[0] if len(texts) == 1 else " and ".join(f"({text})" for text in texts)) or "any output"

    def python(self, names: Names) -> str:
        """Join the parts; empty if one of them has no Python form."""
        parts = [part.python(names) for part in self.parts]
        return (" and ".join(f"({part})" for part in parts) or "True") if all(parts) else ""

    def plain(self) -> Plain | None:
        """Return one dict with the entries of all parts, or a list of them if entries have the same name."""
        parts = [part.plain() for part in self.parts]
        if None in parts:
            return None
        joined = {name: value for part in parts if part for name, value in part.items()}
        return joined if len(joined) == sum(map(len, filter(None, parts))) else {"all": parts}

    def contains(self, batch: Encoded) -> Mask:
        """Evaluate all parts."""
        found = np.ones(len(batch), dtype=bool)
        for part in self.parts:
            found &= part.contains(batch)
        return found


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the parts holds; if ``negated``, none of them."""

    parts: tuple[Condition, ...]
    negated: bool = False

    def text(self, names: Names) -> str:
        """Join the parts."""
        shown = " or ".join(part.text(names) for part in self.parts) or "no output"
        return f"not ({shown})" if self.negated else shown

    def python(self, names: Names) -> str:
        """Join the parts; empty if one of them has no Python form."""
        parts = [part.python(names) for part in self.parts]
        if not all(parts):
            return ""
        return f"not ({_either(parts)})" if self.negated else _either(parts)

    def plain(self) -> Plain | None:
        """List the parts."""
        parts = [part.plain() for part in self.parts]
        return None if None in parts else {"any": parts, "not": self.negated}

    def contains(self, batch: Encoded) -> Mask:
        """Evaluate the parts."""
        found = np.zeros(len(batch), dtype=bool)
        for part in self.parts:
            found |= part.contains(batch)
        return ~found if self.negated else found


def hexadecimal(code: int) -> str:
    """Return a code or key as 16 hexadecimal digits."""
    return f"{int(code):016x}"


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_IN_TEXT
    return " or ".join(texts[:MOST_IN_TEXT]) + (f" or {more} more exact outputs" if more > 0 else "")


def _either(parts: Sequence[str]) -> str:
    return " or ".join(parts) or "False"


def _literal(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
