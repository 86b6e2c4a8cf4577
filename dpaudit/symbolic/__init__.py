"""Exact output laws of ordinary code: run a mechanism with symbols in place of random numbers.

:func:`dpaudit.verify` is the way in. ``law_of(f, data)`` returns the extracted law on one data set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpaudit.symbolic.running.extraction import Limits

if TYPE_CHECKING:
    from dpaudit.symbolic.law import ExtractedLaw

__all__ = ["CodeVerification", "ExtractedLaw", "Limits", "law_of", "verify", "verify_code"]


def law_of(mechanism: Any, data: Any, *, limits: Limits | None = None) -> ExtractedLaw:
    """Return the exact law of one output on ``data``, extracted from the code.

    Parameters
    ----------
    mechanism : mechanism or function
        As for :func:`dpaudit.verify`.
    data : any
        The data set.
    limits : Limits, optional
        How many paths are followed, and how long.

    Raises
    ------
    CannotFollow
        If the code does something that cannot be followed; it names the line.

    Examples
    --------
    >>> print(law_of(lambda data, rng: data ^ (rng.random() < 0.25), 1))
    0.75  1
    0.25  0
    """
    from dpaudit.symbolic.law import ExtractedLaw
    from dpaudit.symbolic.running.extraction import extract
    from dpaudit.symbolic.running.release import mechanism_of, release_of

    release, function = release_of(mechanism_of(mechanism))
    return ExtractedLaw(extract(release, function, data, limits or Limits()))


def __getattr__(name: str) -> Any:
    if name == "ExtractedLaw":
        from dpaudit.symbolic.law import ExtractedLaw

        return ExtractedLaw
    if name in ("CodeVerification", "verify", "verify_code"):
        from dpaudit.symbolic import verification

        return getattr(verification, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
