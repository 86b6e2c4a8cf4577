"""The result of a measure: its value, the value of each class, and the comparison with a required value."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.anonymity.distance.distances import AnyArray, Comparison, checked_weights
from dpaudit.anonymity.tables.cells import as_number
from dpaudit.anonymity.tables.table import Column, Table, describe
from dpaudit.errors import InvalidArgument


class MeasureSense(enum.Enum):
    """The comparison of a measure with a required value."""

    AT_LEAST = ">="  # k, l: larger is safer
    AT_MOST = "<="  # t, alpha, beta, epsilon: smaller is safer
    BELOW = "<"  # c and delta: the definition is a strict inequality


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Measure:
    """The value of a measure, with the class and the records that decide it.

    ``per_class[c]`` is the value of class ``c``, and ``value`` the worst of them, which class ``deciding_class``
    attains (the first, if several do). ``records`` are the positions of the records that decide: those of the class, or if one
    sensitive value decides, those of the class that have ``deciding_value``.
    """

    name: str
    value: int | float | Fraction
    sense: MeasureSense
    table: Table
    per_class: AnyArray
    deciding_class: int
    records: NDArray[np.int64]
    attribute: Hashable | None = None
    deciding_value: Any = None
    reference: Mapping[Any, int] | None = None  # counts of the reference set, for (n, epsilon)-closeness
    tolerance: float = 1e-12  # allowance for the rounding of a float

    def meets(self, required: float | Fraction) -> bool:
        """Return True if the value is at least as good as ``required``.

        The comparison is exact if the value is a Fraction or an int; for a float it allows ``tolerance`` for rounding.
        """
        bound = as_number(required)
        if bound is None:
            if isinstance(required, float) and math.isinf(required):
                return bool(self.value >= required if self.sense is MeasureSense.AT_LEAST else True)
            raise InvalidArgument(f"required={required!r} must be a number.")
        if isinstance(self.value, float) and math.isinf(self.value):
            return self.sense is MeasureSense.AT_LEAST
        value = Fraction(self.value)
        slack = self._slack(bound) if isinstance(self.value, float) else Fraction(0)
        if self.sense is MeasureSense.AT_LEAST:
            return value >= bound - slack
        # No allowance for a strict inequality: rounding might hide that the two are equal.
        return value <= bound + slack if self.sense is MeasureSense.AT_MOST else value < bound - slack

    def explain(self, stated: float | Fraction) -> str:
        """Explain a stated number: the value of the table, of some classes, or of none.

        >>> from dpaudit.anonymity import lecture_notes, t_closeness
        >>> t_closeness(lecture_notes().table, exact=True).explain(Fraction(4, 9))
        '4/9 (0.444444) is the value of class 1, not of the table, whose t-closeness (tv) is 5/9 (0.555556) (class 2)'
        """
        bound = as_number(stated)
        if bound is None:
            raise InvalidArgument(f"stated={stated!r} must be a number.")
        whole = f"{self.name} is {format_value(self.value)} (class {self.deciding_class + 1})"
        near = [self._equals(value, bound) for value in self.per_class]
        shown = format_value(stated)
        if self._equals(self.value, bound):
            return f"{shown} is right: {whole}"
        owners = ", ".join(str(index + 1) for index in np.flatnonzero(near)[:10])
        if not owners:
            return f"{shown} is the value of no class; {whole}"
        noun = "class" if sum(near) == 1 else "classes"
        return f"{shown} is the value of {noun} {owners}, not of the table, whose {whole}"

    def _equals(self, value: Any, bound: Fraction) -> bool:
        if isinstance(value, Fraction | int):
            return value == bound
        return math.isfinite(value) and abs(Fraction(float(value)) - bound) <= self._slack(bound)

    def _slack(self, bound: Fraction) -> Fraction:
        return Fraction(self.tolerance) * max(Fraction(1), abs(bound))

    def worst(self, count: int = 5) -> list[int]:
        """Return the numbers of the worst classes, worst first; equally bad ones by number."""
        keys = self.per_class if self.sense is MeasureSense.AT_LEAST else -self.per_class
        return [int(index) for index in np.argsort(keys, kind="stable")[:count]]

    def __str__(self) -> str:
        members = describe(self.table.key(self.deciding_class))
        on = "" if self.attribute is None else f" of {self.attribute}"
        held = "" if self.deciding_value is None else f" holding {self.deciding_value}"
        shown = ", ".join(str(record + 1) for record in self.records[:10])
        more = f" and {len(self.records) - 10} more" if len(self.records) > 10 else ""
        noun = "record" if len(self.records) == 1 else "records"
        return (
            f"{self.name}{on} = {format_value(self.value)}: class {self.deciding_class + 1} ({members}), "
            f"{noun} {shown}{more}{held}"
        )


def format_value(value: float | Fraction) -> str:
    """Return a value as text: fractions with their decimals.

    >>> format_value(Fraction(5, 9)), format_value(3), format_value(0.1 + 0.2), format_value(math.inf)
    ('5/9 (0.555556)', '3', '0.3', 'inf')
    """
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{value} ({float(value):.6g})"
    return str(value) if isinstance(value, int | Fraction) else f"{value:.6g}"


def worst_of(
    table: Table, attribute: Hashable | None, others_known: bool, measure: Callable[[Table, Column], Measure]
) -> Measure:
    """Apply a measure to one sensitive attribute, or to each of them, and return the worst result.

    Parameters
    ----------
    table : Table
        The published table.
    attribute
        The sensitive attribute; None for all of them.
    others_known : bool
        The observer knows the other sensitive attributes, which then act as quasi-identifiers (Machanavajjhala et al. 2007):
        a class that is diverse in each attribute alone need not be diverse once one is known.
    measure : callable
        The measure of one attribute.
    """
    every = attribute is None and len(table.sensitive) > 1
    names = [column.name for column in table.sensitive] if every else [table.attribute(attribute).name]
    results = []
    for name in names:
        others = [column.name for column in table.sensitive if column.name != name]
        seen = table.regrouped(others) if others_known and others else table
        results.append(measure(seen, seen.attribute(name)))
    larger_is_safer = results[0].sense is MeasureSense.AT_LEAST
    return (min if larger_is_safer else max)(results, key=lambda result: result.value)


def decided(
    name: str,
    sense: MeasureSense,
    table: Table,
    per_class: AnyArray,
    *,
    column: Column | None = None,
    deciding_codes: NDArray[np.intp] | None = None,
    tolerance: float = 1e-12,
    reference: Mapping[Any, int] | None = None,
) -> Measure:
    """Return the measure with its deciding class and records; ``deciding_codes[c]`` is the value that decides class ``c``."""
    index = int(np.argmin(per_class) if sense is MeasureSense.AT_LEAST else np.argmax(per_class))
    value = per_class[index]
    records = table.classes.records(index)
    deciding_value = None
    if column is not None and deciding_codes is not None and deciding_codes[index] >= 0:
        code = int(deciding_codes[index])
        deciding_value = column.values[code]
        records = records[column.codes[records] == code]
    return Measure(
        name=name,
        value=value.item() if isinstance(value, np.generic) else value,
        sense=sense,
        table=table,
        per_class=per_class,
        deciding_class=index,
        records=records,
        attribute=None if column is None else column.name,
        deciding_value=deciding_value,
        reference=reference,
        tolerance=tolerance,
    )


def compare_classes(
    table: Table, column: Column, *, reference: Mapping[Any, Any] | None = None, exact: bool = False
) -> Comparison:
    """Return the classes' distributions (rows) with that of the table, or with a given prior, as the reference."""
    width = len(column.values)
    keys, counts = np.unique(table.classes.of_record * width + column.codes, return_counts=True)
    row, value = np.divmod(keys, width)
    domain: list[Any] = list(column.values)
    weights: AnyArray = column.counts
    if reference is not None:
        observed = set(domain)
        domain += [extra for extra in reference if extra not in observed]
        weights = checked_weights("reference", [reference.get(item, 0) for item in domain], exact=exact)
    return Comparison(
        row.astype(np.intp), value.astype(np.intp), cast(AnyArray, counts), weights, domain, exact, column.order
    )
