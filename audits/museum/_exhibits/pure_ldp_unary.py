"""pure-LDP's unary encoding: the true entry is set with probability p, and where it is not, keeps the noise it already had."""

from __future__ import annotations

from typing import Any

from dpaudit import Audit, PureDP, Relation, neighbours
from dpaudit.adapters._loading import load


def make(*, optimised: bool) -> Any:
    client = load("pure_ldp.frequency_oracles.unary_encoding", extra="libraries").UEClient(
        epsilon=1.0, d=4, use_oue=optimised, index_mapper=lambda item: item
    )
    return client.privatise


def make_symmetric() -> Any:
    return make(optimised=False)


def make_optimised() -> Any:
    return make(optimised=True)


AUDITS = [
    Audit(
        name=f"pure-ldp-unary-{name}",
        mechanism=factory,
        made=True,
        claim=PureDP(1.0, Relation.SUBSTITUTE),
        neighbours=neighbours.fixed([(0, 1), (1, 3)], relation=Relation.SUBSTITUTE),
        options={"samples": 100_000},
        expect="VIOLATION",
    )
    for name, factory in (("symmetric", make_symmetric), ("optimised", make_optimised))
]
