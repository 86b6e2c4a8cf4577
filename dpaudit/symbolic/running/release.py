"""One release of anything that can be audited, as a function of the data and a generator."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from dpaudit.mechanism import Batched, Fresh, Named, PerRelease, Plain, as_mechanism, batched, per_release
from dpaudit.symbolic.running.extraction import Release


def mechanism_of(source: Any) -> Any:
    """Return the mechanism for a source; a bare function of two or three arguments is wrapped by what they are.

    >>> mechanism_of(lambda data, rng: 0)
    PerRelease(function=<function <lambda> at ...>)
    """
    if isinstance(source, str | type) or not callable(source) or hasattr(source, "sample"):
        return as_mechanism(source)
    required = _required(source)
    if required == 2:
        return per_release(source)
    return batched(source) if required == 3 else as_mechanism(source)


def _required(function: Any) -> int | None:
    """Number of positional arguments without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)


def release_of(mechanism: Any) -> tuple[Release, Any]:
    """Return a function that makes one release, and the user's own object behind it."""
    match mechanism:
        case Named():
            return release_of(mechanism.resolve())
        case Plain(function=function):
            return lambda data, _rng: function(data), function
        case PerRelease(function=function):
            return lambda data, rng: function(data, rng), function
        case Batched(function=function):
            return lambda data, rng: _first(function(data, 1, rng)), function
        case Fresh(make=make):
            return mechanism.release, make
    return lambda data, rng: _first(mechanism.sample(data, 1, rng)), mechanism


def _first(outputs: Any) -> Any:
    if len(outputs) != 1:
        from dpaudit.errors import MechanismError

        raise MechanismError(f"The mechanism returned {len(outputs)} outputs for size=1")
    return (outputs.to_numpy() if hasattr(outputs, "to_numpy") else outputs)[0]


def concrete(release: Release, data: Any, seed: int) -> Any:
    """Make one release with real random numbers."""
    return release(data, np.random.Generator(np.random.PCG64(seed)))
