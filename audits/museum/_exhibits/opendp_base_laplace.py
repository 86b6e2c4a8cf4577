"""opendp.measurements.make_base_laplace at answers 0 and 1: values keep the claim, bits do not."""

from __future__ import annotations

from collections.abc import Callable

from dpaudit import Audit, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters._loading import load


def make() -> Callable[[float], float]:
    load("opendp.mod", extra="libraries").enable_features("floating-point", "contrib")
    measurement: Callable[[float], float] = load("opendp.meas", extra="libraries").make_base_laplace(scale=1.0)
    return measurement  # its privacy map had another name then; a function of the data needs no adapter


def define(channel: str, expect: Verdict) -> Audit:
    return Audit(
        name=f"opendp-base-laplace-{channel}",
        mechanism=make,
        mechanism_is_factory=True,
        claim=PureDP(1.0, Relation.ANSWERS),
        neighbours=neighbours.fixed([(0.0, 1.0)], relation=Relation.ANSWERS),
        options={"samples": 30_000, "channel": channel},
        expect=expect,
    )


AUDITS = [define("value", Verdict.NO_VIOLATION_FOUND), define("representation", Verdict.VIOLATION)]
