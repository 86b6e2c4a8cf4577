"""Parameters of the theorems: the range of each, and its reason, in one table for calculators and command line.

Every calculator takes numbers or arrays that broadcast. A value outside its range raises InvalidArgument with the condition of
the theorem that it violates.

>>> check(beta=0.0)
Traceback (most recent call last):
    ...
dpaudit.errors.InvalidArgument: beta=0.0 must lie strictly between 0 and 1: beta is the failure probability of ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import InvalidArgument

Real = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TheoremSymbol:
    """A parameter of a theorem, with its range."""

    name: str
    allowed: str
    condition: str
    test: Callable[[Any], Any]  # of a number or of an array
    whole: bool = False

    def parse(self, text: str) -> float | int:
        """Read a value from the command line; fractions are refused if the parameter is a count."""
        try:
            number = float(Fraction(text)) if "/" in text else float(text)
        except (ValueError, ZeroDivisionError):
            raise InvalidArgument(f"{self.name}={text!r} is not a number: {self.condition}.") from None
        _refuse(self, np.asarray(number))
        return int(number) if self.whole else number


def _at_least(low: float) -> Callable[[Any], Any]:
    return lambda x: x >= low


def _above(low: float) -> Callable[[Any], Any]:
    return lambda x: x > low


def _open_unit(x: Any) -> Any:
    return (x > 0.0) & (x < 1.0)


def _unit(x: Any) -> Any:
    return (x >= 0.0) & (x <= 1.0)


_TABLE = [
    TheoremSymbol("n", "at least 1", "n is the number of records", _at_least(1), whole=True),
    TheoremSymbol(
        "n_slides",
        "at least 2",
        "the slides divide by log n (steps = 1.5 n / log n), which needs n >= 2",
        _at_least(2),
        whole=True,
    ),
    TheoremSymbol(
        "n_closed",
        "at least 3",
        "beta = 1/(sqrt(n) log n) is a probability only from n = 3 on",
        _at_least(3),
        whole=True,
    ),
    TheoremSymbol(
        "steps",
        "at least 1",
        "steps is the number k of queries of AboveThreshold; round 1.5 n / log n up with math.ceil",
        _at_least(1),
        whole=True,
    ),
    TheoremSymbol(
        "queries",
        "at least 1",
        "queries is the fixed number m of queries of AboveThreshold; log m is undefined at 0",
        _at_least(1),
        whole=True,
    ),
    TheoremSymbol(
        "i", "from 1 to 9", "i is the index of a decile, 1 <= i <= 9", lambda x: (x >= 1) & (x <= 9), whole=True
    ),
    TheoremSymbol(
        "quantile", "strictly between 0 and 1", "quantile is the level of the quantile that is estimated", _open_unit
    ),
    TheoremSymbol(
        "releases", "at least 1", "releases is the number of quantiles that share epsilon", _at_least(1), whole=True
    ),
    TheoremSymbol(
        "gamma", "zero or positive", "gamma is the half width of the interval around the decile", _at_least(0)
    ),
    TheoremSymbol(
        "beta",
        "strictly between 0 and 1",
        "beta is the failure probability of AboveThreshold, and log(2/beta) must be finite",
        _open_unit,
    ),
    TheoremSymbol("epsilon", "positive", "epsilon is the privacy budget, epsilon > 0", _above(0)),
    TheoremSymbol("delta", "strictly between 0 and 1", "delta is the slack of (epsilon, delta)-privacy", _open_unit),
    TheoremSymbol("alpha", "zero or positive", "alpha is a number of records", _at_least(0)),
    TheoremSymbol(
        "rho",
        "positive",
        "rho is the half width of the plateau of the smooth length; the bound divides by it",
        _above(0),
    ),
    TheoremSymbol(
        "length", "at least 1", "length is the number K of records to change, K >= 1", _at_least(1), whole=True
    ),
    TheoremSymbol(
        "rank", "at least 1", "rank is the rank of the order statistic, 1 <= rank <= n", _at_least(1), whole=True
    ),
    TheoremSymbol(
        "truth_rate",
        "above 0, at most 1",
        "the estimator divides by the rate a of true answers, 0 < a <= 1",
        lambda x: (x > 0) & (x <= 1),
    ),
    TheoremSymbol("p", "between 0 and 1", "p is the share of ones in the population", _unit),
    TheoremSymbol("median", "between 0 and 1", "the data lie in [0, 1], hence so does their median", _unit),
    TheoremSymbol("sensitivity", "positive", "sensitivity is the largest change that one record makes", _above(0)),
    TheoremSymbol("scale", "positive", "scale is the scale of the noise", _above(0)),
    TheoremSymbol("x", "zero or positive", "x is the size of the error whose tail is asked for", _at_least(0)),
    TheoremSymbol("records", "at least 1", "records is the number N_D of private records", _at_least(1), whole=True),
    TheoremSymbol("dimension", "at least 1", "dimension is the number d of features", _at_least(1), whole=True),
    TheoremSymbol("regularisation", "positive", "regularisation is lambda; the sensitivity divides by it", _above(0)),
]
SYMBOLS = {symbol.name: symbol for symbol in _TABLE}


def check(**named: ArrayLike | float) -> None:
    """Raise InvalidArgument for any value outside the range of its symbol; arrays are checked entry by entry."""
    for name, value in named.items():
        symbol = SYMBOLS[name]
        # Fast path: sweeps check millions of plain numbers, and arrays take about a hundred times as long.
        if isinstance(value, int | float) and _fits(symbol, value):
            continue
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgument(f"{_shown(symbol)}={value!r} must be a number: {symbol.condition}.") from None
        _refuse(symbol, array)


def _fits(symbol: TheoremSymbol, number: float) -> bool:
    return math.isfinite(number) and bool(symbol.test(number)) and not (symbol.whole and number != math.floor(number))


def _refuse(symbol: TheoremSymbol, array: Real) -> None:
    bad = ~(np.isfinite(array) & symbol.test(array))
    fractional = symbol.whole & (array != np.floor(array))
    if np.any(fractional):
        value = float(array[fractional][0]) if array.ndim else float(array)
        raise InvalidArgument(f"{_shown(symbol)}={value!r} must be a whole number: {symbol.condition}.")
    if np.any(bad):
        value = float(array[bad][0]) if array.ndim else float(array)
        shown: Any = int(value) if symbol.whole and math.isfinite(value) else value
        verb = "lie" if symbol.allowed.startswith(("strictly", "between")) else "be"
        raise InvalidArgument(f"{_shown(symbol)}={shown!r} must {verb} {symbol.allowed}: {symbol.condition}.")


def _shown(symbol: TheoremSymbol) -> str:
    return symbol.name.removesuffix("_slides").removesuffix("_closed")


def plain(values: Any) -> Any:
    """Return a float for a zero-dimensional result, the array otherwise."""
    array = np.asarray(values)
    return array.item() if array.ndim == 0 else array
