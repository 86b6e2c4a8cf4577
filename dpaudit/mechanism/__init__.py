"""Mechanisms: the objects that are audited, and wrappers that make them from functions.

A mechanism is anything random that turns a data set into an output. The protocol is one method, ``sample(data, size,
rng)``, which returns ``size`` independent outputs: a numpy array whose first axis has length ``size``, or any sequence of
that length. An output may be anything: a float, an int, a string, a tuple, a dict, a list of varying length, None, NaN,
an array. An exception is an output too: see :class:`Raised`.

Functions become mechanisms through :func:`batched` (``f(data, size, rng)``), :func:`per_release` (``f(data, rng)``) and
:func:`fresh` (a new instance for every release). A function ``f(data)`` needs no wrapper. What is no function in this process
becomes a mechanism in the modules ``programs``, ``isolated``, ``services`` and ``conversations``, which are imported when needed.
"""

from dpaudit.mechanism.functions import (
    Batched,
    Fresh,
    Mechanism,
    Named,
    PerRelease,
    Plain,
    Then,
    after,
    as_mechanism,
    batched,
    called_otherwise,
    fresh,
    per_release,
    seeded_globals,
)
from dpaudit.mechanism.outputs import MOST_ITEMS, Outputs, Raised, checked_outputs, exited, kept

__all__ = [
    "MOST_ITEMS",
    "Batched",
    "Fresh",
    "Mechanism",
    "Named",
    "Outputs",
    "PerRelease",
    "Plain",
    "Raised",
    "Then",
    "after",
    "as_mechanism",
    "batched",
    "called_otherwise",
    "checked_outputs",
    "exited",
    "fresh",
    "kept",
    "per_release",
    "seeded_globals",
]
