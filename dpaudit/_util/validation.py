"""Argument checks. Each takes ``name=value`` pairs, so that the message can show both.

>>> check_positive(epsilon=-1.0)
Traceback (most recent call last):
    ...
dpaudit.errors.InvalidArgument: epsilon=-1.0 must be positive and finite.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import InvalidArgument


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidArgument(f"{name}={value!r} must be a number, not {type(value).__name__}.")
    try:
        return float(value)
    except OverflowError:  # an integer too large for a float
        return math.inf if value > 0 else -math.inf


def check_finite(**named: Any) -> None:
    """Check that each value is a finite real number."""
    for name, value in named.items():
        if not math.isfinite(_number(name, value)):
            raise InvalidArgument(f"{name}={value!r} must be finite.")


def check_positive(*, hint: str = "", **named: Any) -> None:
    """Check that each value is a finite number above zero."""
    for name, value in named.items():
        number = _number(name, value)
        if not (math.isfinite(number) and number > 0.0):
            raise InvalidArgument(f"{name}={value!r} must be positive and finite.{_space(hint)}")


def check_non_negative(*, hint: str = "", **named: Any) -> None:
    """Check that each value is a finite number, zero or more."""
    for name, value in named.items():
        number = _number(name, value)
        if not (math.isfinite(number) and number >= 0.0):
            raise InvalidArgument(f"{name}={value!r} must be zero or positive, and finite.{_space(hint)}")


def check_count(*, minimum: int = 1, **named: Any) -> None:
    """Check that each value is an integer of at least ``minimum``."""
    for name, value in named.items():
        try:
            integer = operator.index(value)
        except TypeError:
            raise InvalidArgument(
                f"{name}={value!r} must be a whole number (int), not {type(value).__name__}."
            ) from None
        if isinstance(value, bool) or integer < minimum:
            raise InvalidArgument(f"{name}={value!r} must be a whole number of at least {minimum}.")


def check_open_unit(*, hint: str = "", **named: Any) -> None:
    """Check that each value lies strictly between 0 and 1."""
    for name, value in named.items():
        if not 0.0 < _number(name, value) < 1.0:
            raise InvalidArgument(f"{name}={value!r} must lie strictly between 0 and 1.{_space(hint)}")


def check_unit(*, hint: str = "", **named: Any) -> None:
    """Check that each value lies in [0, 1]."""
    for name, value in named.items():
        if not 0.0 <= _number(name, value) <= 1.0:
            raise InvalidArgument(f"{name}={value!r} must lie between 0 and 1.{_space(hint)}")


def check_interval(*, low: Any, high: Any, names: tuple[str, str] = ("low", "high")) -> None:
    """Check that ``low < high`` and both are finite; ``names`` are the names that the message shows."""
    check_finite(**{names[0]: low, names[1]: high})
    if not low < high:
        raise InvalidArgument(f"{names[0]}={low!r} must be below {names[1]}={high!r}.")


def check_choice(choices: Iterable[Any], **named: Any) -> None:
    """Check that each value is one of ``choices``; the message suggests the most similar one."""
    allowed = list(choices)
    for name, value in named.items():
        if not any(_equal(value, choice) for choice in allowed):
            listed = ", ".join(repr(choice) for choice in allowed)
            raise InvalidArgument(f"{name}={value!r} must be one of {listed}.{did_you_mean(value, allowed)}")


def did_you_mean(word: Any, known: Iterable[Any]) -> str:
    """Return `` Did you mean 'x'?`` if a known word is similar, otherwise the empty string."""
    near = difflib.get_close_matches(str(word), [str(choice) for choice in known], n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_generator(**named: Any) -> None:
    """Check that each value is a ``numpy.random.Generator``, so that no random draw comes from hidden state."""
    for name, value in named.items():
        if not isinstance(value, np.random.Generator):
            raise InvalidArgument(
                f"{name}={value!r} must be a numpy.random.Generator; make one with numpy.random.default_rng(seed)."
            )


def finite_array(name: str, values: ArrayLike, *, ndim: int | None = None, empty: bool = True) -> NDArray[np.float64]:
    """Return ``values`` as a float array, after checking that all are finite numbers.

    Parameters
    ----------
    name : str
        The argument's name, for messages.
    values : array_like
        The numbers.
    ndim : int, optional
        Required number of dimensions.
    empty : bool
        Allow an empty array.
    """
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "biufO":  # numpy would parse text as numbers, and drop imaginary parts
            raise TypeError
        array = raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name}={shorten(values)} must be numbers.") from None
    if ndim is not None and array.ndim != ndim:
        raise InvalidArgument(f"{name} must have {ndim} dimension(s); its shape is {array.shape}.")
    if not empty and array.size == 0:
        raise InvalidArgument(f"{name} is empty; at least one value is needed.")
    bad = ~np.isfinite(array)
    if bad.any():
        raise InvalidArgument(
            f"{name} holds {array[bad][0]!r} at position {int(np.flatnonzero(bad)[0])}; all must be finite."
        )
    return array


def array_within(
    name: str, values: ArrayLike, low: float, high: float, *, ndim: int | None = 1, empty: bool = True
) -> NDArray[np.float64]:
    """Return ``values`` as a float array, after checking that all lie in [low, high]; see :func:`finite_array`."""
    array = finite_array(name, values, ndim=ndim, empty=empty)
    bad = (array < low) | (array > high)
    if bad.any():
        raise InvalidArgument(
            f"{name} holds {float(array[bad][0])!r}, outside [{low}, {high}]. Clip the data before the mechanism."
        )
    return array


def shorten(value: Any, limit: int = 80) -> str:
    """Return ``repr(value)`` for a message, cut to ``limit`` characters."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _equal(value: Any, choice: Any) -> bool:
    try:
        return bool(value == choice)
    except ValueError:  # an array compares entry by entry
        return False


def _space(hint: str) -> str:
    return f" {hint}" if hint else ""
