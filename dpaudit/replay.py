"""Functions that the script of a witness imports: draw outputs as an audit does, and read them. A script imports
nothing else of this package.

A script whose event and mechanism need only numpy imports nothing of this package. The names keep their meaning from
version to version (docs/stability.md), so that a script that was stored with a report still runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    GaussianDP,
    MetricDP,
    ProfileDP,
    PureDP,
    Relation,
    RenyiDP,
    TradeOffDP,
    ZeroConcentratedDP,
)
from dpaudit.engine.encoding.batch import code, encode, number, numbers, record, structure
from dpaudit.engine.encoding.features import feature
from dpaudit.engine.encoding.float_grid import lowest_bits
from dpaudit.engine.sampling.blocks import Sampler
from dpaudit.engine.timing.clock import microseconds
from dpaudit.engine.views.late.derived import Decimals, VectorSummary
from dpaudit.mechanism import Outputs, after, as_mechanism, batched, fresh, per_release
from dpaudit.mechanism.conversations import interactive

__all__ = [
    "ApproxDP",
    "BoundedRange",
    "GaussianDP",
    "MetricDP",
    "ProfileDP",
    "PureDP",
    "Relation",
    "RenyiDP",
    "TradeOffDP",
    "ZeroConcentratedDP",
    "after",
    "attempt",
    "batched",
    "code",
    "decimals",
    "draw",
    "feature",
    "fresh",
    "interactive",
    "lowest_bit",
    "microseconds",
    "number",
    "numbers",
    "per_release",
    "record",
    "structure",
    "summary",
]


def draw(mechanism: Any, data: Any, trials: int, seed: int, *, one_by_one: bool = False) -> Outputs:
    """Return independent outputs of a mechanism on one data set, in the form in which an audit reads them.

    Parameters
    ----------
    mechanism : object
        As for :func:`dpaudit.audit`: an object with ``sample``, a function of the data, or a name.
    data : object
        The data set.
    trials : int
        The number of outputs.
    seed : int
        The seed of their generator.
    one_by_one : bool
        Make a call for every output, so that an exception is the output of one release.

    Examples
    --------
    >>> draw(batched(lambda data, size, rng: np.full(size, len(data))), [1, 2, 3], 2, seed=0).tolist()
    [3, 3]
    """
    sampler = Sampler(as_mechanism(mechanism), one_by_one=one_by_one)
    return sampler.draw(data, trials, np.random.SeedSequence(seed))


def attempt(function: Callable[[Any], Any], output: Any) -> Any:
    """Return the value of a function on an output, or the exception that it raises.

    >>> attempt(len, "abc"), attempt(len, 3)
    (3, TypeError("object of type 'int' has no len()"))
    """
    try:
        return function(output)
    except Exception as error:  # the user's function may raise anything
        return error


def decimals(x: float) -> float:
    """Return the number of decimals of a number: 0 if it is whole, 99 if it is no short decimal.

    >>> decimals(3), decimals(0.25), decimals(1.1), decimals(1 / 3)
    (0.0, 2.0, 1.0, 99.0)
    """
    return float(Decimals(0)(encode([float(x)]))[0])


def summary(output: Any, kind: str) -> float:
    """Return a summary of the numbers of an output.

    >>> summary([3.0, 1.0, 3.0], "number of repeated entries"), summary([3.0, 1.0], "place of the smallest entry")
    (1.0, 1.0)
    """
    return float(VectorSummary(kind)(encode([output]))[0])


def lowest_bit(x: float) -> int:
    """Return the exponent of the lowest set bit of a float, or 2000 plus its number of decimals if these are few.

    Zero, infinities and NaN give -1100, and minus zero gives -1101.

    >>> lowest_bit(0.75), lowest_bit(0.1), lowest_bit(0.0), lowest_bit(-0.0)
    (-2, 2001, -1100, -1101)
    """
    return int(lowest_bits(np.array([x], dtype=np.float64))[0])
