"""OpenDP's current release: nothing may be found. Without the library there is nothing to collect."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from dpaudit import Audit, InvalidArgument, PureDP, Relation, Verdict, ZeroConcentratedDP, interactive, neighbours
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


def filtered(compose: Callable[[Any, Any], Any], claim: Claim) -> Any:
    """A conversation: each question is an epsilon, and its answer a count of that precision or a refusal."""
    dp = opendp.prelude()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counts = {
        epsilon: space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0 / epsilon) for epsilon in EPSILONS
    }  # made once: building a measurement takes longer than asking it
    measurement = compose(dp, space)
    relation = claim.relation
    assert relation is not None
    stated = opendp.claim(measurement, relation)
    if not stated.is_at_least_as_strong_as(claim.at(claim.parameter * (1.0 + 1e-9))):
        raise InvalidArgument(f"OpenDP states {stated!r}, weaker than the {claim!r} that is audited.")

    def begin(data: list[int]) -> Callable[[float], Any]:
        queryable = measurement(data)
        return lambda epsilon: queryable(counts[epsilon])

    return interactive(begin)


EPSILONS = (0.25, 0.5)


def privacy_filter(dp: Any, space: Any) -> Any:
    odometer = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
    return dp.c.make_privacy_filter(odometer, d_in=1, d_out=1.0)


def adaptive_composition(dp: Any, space: Any) -> Any:
    return dp.c.make_adaptive_composition(*space, dp.max_divergence(), d_in=1, d_mids=[0.5, 0.5])


def converse(name: str, compose: Callable[[Any, Any], Any]) -> Audit:
    """Scripts stay within the budget: a refusal takes OpenDP a fifth of a second, and does not depend on the data."""
    claim = PureDP(1.0, Relation.ADD_REMOVE)
    pairs = functools.partial(neighbours.fixed, [([], [1])], relation=claim.relation)
    return Audit(
        name=f"opendp-{name}",
        mechanism=functools.partial(filtered, compose, claim),
        mechanism_is_factory=True,
        claim=claim,
        neighbours=lambda: neighbours.asking(pairs(), st.sampled_from(EPSILONS), max_questions=2),
        options={"samples": 30_000, "pairs": 2},
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
        converse("filter", privacy_filter),
        converse("adaptive-composition", adaptive_composition),
    ]
    if INSTALLED
    else []
)
