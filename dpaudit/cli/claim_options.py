"""Options that state a claim, as ``dpaudit check``, ``verify`` and ``diagnose`` take them, and the claim that they state."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpaudit.errors import InvalidArgument

if TYPE_CHECKING:
    from dpaudit.claims import Claim

BUDGETS = ("ci", "deep")

CLAIM_OPTIONS = {
    "epsilon": "--epsilon", "mu": "--mu", "rho": "--rho", "renyi": "--renyi", "curve": "--profile",
    "bounded_range": "--bounded-range",
}  # fmt: skip


class _Profile(argparse.Action):
    """Store the points of a claimed profile; the name of a budget is what ``--profile`` means on ``dpaudit run``."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del parser, option_string
        is_budget = values in BUDGETS and hasattr(namespace, "profile")
        setattr(namespace, "profile" if is_budget else self.dest, values)


def add_claim_options(parser: argparse.ArgumentParser, *, has_budget: bool = False) -> None:
    """Add the options that state a claim; with ``has_budget``, ``--profile`` takes the name of a budget as well."""
    claim = parser.add_argument_group("claim", "what is claimed; one of these")
    claim.add_argument("--epsilon", type=float, help="epsilon of pure DP, or of approximate DP with --delta")
    claim.add_argument("--delta", type=float, default=0.0, help="claimed delta (default 0)")
    claim.add_argument("--mu", type=float, help="mu of Gaussian DP")
    claim.add_argument("--rho", type=float, help="rho of zero-concentrated DP")
    claim.add_argument("--renyi", metavar="ORDER:EPSILON", help="Renyi DP of one order, e.g. 8:0.5")
    claim.add_argument(
        "--profile",
        "--curve",
        dest="curve",
        action=_Profile,
        metavar="POINTS",
        help="a privacy profile by points EPSILON:DELTA, e.g. 0:0.38,1:0.13,3:1e-3"
        + (" (or a budget: ci, about 5 seconds, or deep)" if has_budget else ""),
    )
    claim.add_argument("--bounded-range", type=float, metavar="EPSILON", help="epsilon of bounded range")


def claim_of(args: argparse.Namespace) -> Claim:
    """Return the claim, of which there must be exactly one.

    >>> claim_of(argparse.Namespace(curve="0:0.38,1:0.13"))
    ProfileDP(points=((0.0, 0.38), (1.0, 0.13)))
    """
    from dpaudit.claims import (  # imported here: it needs numpy, and ``--help`` does not
        ApproxDP,
        BoundedRange,
        GaussianDP,
        ProfileDP,
        PureDP,
        RenyiDP,
        ZeroConcentratedDP,
    )

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
