"""pure-LDP's unary encoding: the true entry is set with probability p, and where it is not, keeps the noise it already had."""

from __future__ import annotations

import functools
from typing import Any

from dpaudit import Audit, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters._loading import load


def make(*, optimised: bool) -> Any:
    client = load("pure_ldp.frequency_oracles.unary_encoding", extra="libraries").UEClient(
        epsilon=1.0, d=4, use_oue=optimised, index_mapper=lambda item: item
    )
    return client.privatise


def define(expect: Verdict) -> list[Audit]:
    return [
        Audit(
            name=f"pure-ldp-unary-{name}",
            mechanism=functools.partial(make, optimised=optimised),
            mechanism_is_factory=True,
            claim=PureDP(1.0, Relation.SUBSTITUTE),
            neighbours=neighbours.fixed([(0, 1), (1, 3)], relation=Relation.SUBSTITUTE),
            options={"samples": 100_000},
            expect=expect,
        )
        for name, optimised in (("symmetric", False), ("optimised", True))
    ]


AUDITS = define(Verdict.VIOLATION)
