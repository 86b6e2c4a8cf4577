"""The claim that the options of ``dpaudit check`` and ``dpaudit verify`` describe."""

from __future__ import annotations

import argparse

from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    Claim,
    GaussianDP,
    ProfileDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpaudit.errors import InvalidArgument

CLAIM_OPTIONS = {
    "epsilon": "--epsilon", "mu": "--mu", "rho": "--rho", "renyi": "--renyi", "curve": "--profile",
    "bounded_range": "--bounded-range",
}  # fmt: skip


def claim_of(args: argparse.Namespace) -> Claim:
    """Return the claim, of which there must be exactly one.

    >>> claim_of(argparse.Namespace(curve="0:0.38,1:0.13"))
    ProfileDP(points=((0.0, 0.38), (1.0, 0.13)))
    """
    given = {name: value for name in CLAIM_OPTIONS if (value := getattr(args, name, None)) is not None}
    if len(given) != 1:
        named = " and ".join(map(CLAIM_OPTIONS.__getitem__, given)) or "no claim"
        raise InvalidArgument(f"Give exactly one claim: one of {', '.join(CLAIM_OPTIONS.values())}. Given: {named}.")
    ((kind, value),) = given.items()
    delta = getattr(args, "delta", 0.0)
    if delta != 0.0 and kind != "epsilon":
        raise InvalidArgument(f"--delta={delta!r} belongs to --epsilon; leave it out with {CLAIM_OPTIONS[kind]}.")
    match kind:
        case "epsilon":
            return PureDP(value) if delta == 0.0 else ApproxDP(value, delta)
        case "mu":
            return GaussianDP(value)
        case "rho":
            return ZeroConcentratedDP(value)
        case "bounded_range":
            return BoundedRange(value)
        case "renyi":
            return RenyiDP(*_pair("--renyi", value, "ORDER:EPSILON"))
    return ProfileDP([_pair("--profile", point, "EPSILON:DELTA") for point in value.split(",")])


def _pair(option: str, text: str, form: str) -> tuple[float, float]:
    first, colon, second = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return float(first), float(second)
    except ValueError:
        raise InvalidArgument(f"{option}={text!r} must be {form}, two numbers with a colon.") from None
