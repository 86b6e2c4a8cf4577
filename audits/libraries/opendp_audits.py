"""OpenDP's current release: nothing may be found. Without the library there is nothing to collect."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

from dpaudit import Audit, InvalidArgument, PureDP, Relation, Verdict, ZeroConcentratedDP, neighbours
from dpaudit.adapters import opendp
from dpaudit.claims import Claim

INSTALLED = importlib.util.find_spec("opendp") is not None


def measured(build: Callable[[Any], Any], claim: Claim, distance: float | None = None) -> Any:
    """The measurement as a mechanism, once the library has confirmed that it states this claim."""
    measurement = build(opendp.prelude())
    relation = claim.relation
    assert relation is not None
    stated = opendp.claim(measurement, relation, distance=distance)
    if not stated.is_at_least_as_strong_as(claim.at(claim.parameter * (1.0 + 1e-9))):
        raise InvalidArgument(f"OpenDP states {stated!r}, weaker than the {claim!r} that is audited.")
    return opendp.mechanism(measurement)


def number(dp: Any) -> Any:
    return dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def laplace(dp: Any) -> Any:
    return number(dp) >> dp.m.then_laplace(scale=1.0)


def discrete_laplace(dp: Any) -> Any:
    return (dp.atom_domain(T=int), dp.absolute_distance(T=int)) >> dp.m.then_laplace(scale=1.0)


def gaussian(dp: Any) -> Any:
    return number(dp) >> dp.m.then_gaussian(scale=1.0)


def count(dp: Any) -> Any:
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return rows >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)


def counts_by_category(dp: Any) -> Any:
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return rows >> dp.t.then_count_by_categories(categories=[0, 1], null_category=False) >> dp.m.then_laplace(scale=2.0)


def randomised_response(dp: Any) -> Any:
    return dp.m.make_randomized_response_bool(prob=0.75)


def define(
    name: str,
    build: Callable[[Any], Any],
    claim: Claim,
    pairs: list[tuple[Any, Any]],
    *,
    distance: float | None = None,
    channel: str = "value",
    samples: int = 30_000,
) -> Audit:
    return Audit(
        name=f"opendp-{name}",
        mechanism=functools.partial(measured, build, claim, distance),
        mechanism_is_factory=True,
        claim=claim,
        neighbours=functools.partial(neighbours.fixed, pairs, relation=claim.relation),
        options={"samples": samples, "channel": channel},
        expect=Verdict.NO_VIOLATION_FOUND,
    )


ONE = PureDP(1.0, Relation.ANSWERS)
AUDITS = (
    [
        define("laplace", laplace, ONE, [(0.0, 1.0)], distance=1.0),
        define("laplace-bits", laplace, ONE, [(0.0, 1.0)], distance=1.0, channel="representation"),
        define("discrete-laplace", discrete_laplace, ONE, [(0, 1)], distance=1),
        define("gaussian", gaussian, ZeroConcentratedDP(0.5, Relation.ANSWERS), [(0.0, 1.0)], distance=1.0),
        define(
            "gaussian-bits",
            gaussian,
            ZeroConcentratedDP(0.5, Relation.ANSWERS),
            [(0.0, 1.0)],
            distance=1.0,
            channel="representation",
        ),
        define("count", count, PureDP(1.0, Relation.ADD_REMOVE), [([], [1]), ([1, 2], [1])]),
        define("categories", counts_by_category, PureDP(1.0, Relation.SUBSTITUTE), [([0], [1])]),
        define("randomised-response", randomised_response, PureDP(1.0986123, Relation.SUBSTITUTE), [(True, False)]),
    ]
    if INSTALLED
    else []
)
