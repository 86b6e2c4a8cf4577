"""diffprivlib's current release: its values keep their claims, and the bits of its floats do not (its issue 94).

Without the library there is nothing to collect.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from dpaudit import ApproxDP, Audit, InvalidArgument, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters import diffprivlib
from dpaudit.adapters._loading import load
from dpaudit.claims import Claim

INSTALLED = importlib.util.find_spec("diffprivlib") is not None


def perturbing(kind: str, arguments: dict[str, Any], claim: Claim) -> Any:
    """The mechanism of that name, once it has stated this claim."""
    perturb = getattr(load("diffprivlib", extra="libraries").mechanisms, kind)(**arguments)
    stated = diffprivlib.claim(perturb, claim.relation)
    if stated != claim:
        raise InvalidArgument(f"{kind} states {stated!r}, not the {claim!r} that is audited.")
    return diffprivlib.mechanism(perturb)


def using_tool(kind: str, arguments: dict[str, Any]) -> Any:
    return diffprivlib.tool(getattr(load("diffprivlib", extra="libraries").tools, kind), **arguments)


def define(
    name: str,
    make: Any,
    claim: Claim,
    pair: tuple[Any, Any],
    *,
    bits: bool = False,
    expect: Verdict = Verdict.NO_VIOLATION_FOUND,
) -> Audit:
    return Audit(
        name=f"diffprivlib-{name}",
        mechanism=make,
        made=True,
        claim=claim,
        neighbours=functools.partial(neighbours.fixed, [pair], relation=claim.relation),
        options={"samples": 30_000, "channel": "representation" if bits else "value", "shrink": False},
        expect=expect,
    )


SPREAD = {"sensitivity": 1.0}
BOUNDED = {"sensitivity": 1.0, "lower": -5.0, "upper": 6.0}
PURE = PureDP(1.0, Relation.ANSWERS)
LEAKY = ApproxDP(1.0, 0.01, Relation.ANSWERS)
# Name, class, arguments, claim, answers, and what the bits must show (None: outputs are no floats).
MECHANISMS: list[tuple[str, str, dict[str, Any], Claim, tuple[Any, Any], Verdict | None]] = [
    ("laplace", "Laplace", {"epsilon": 1.0, **SPREAD}, PURE, (0.0, 1.0), Verdict.VIOLATION),
    ("laplace-truncated", "LaplaceTruncated", {"epsilon": 1.0, **BOUNDED}, PURE, (0.0, 1.0), Verdict.VIOLATION),
    ("staircase", "Staircase", {"epsilon": 1.0, **SPREAD}, PURE, (0.0, 1.0), Verdict.VIOLATION),
    ("snapping", "Snapping", {"epsilon": 1.0, **BOUNDED}, PURE, (0.0, 1.0), Verdict.NO_VIOLATION_FOUND),
    (
        "gaussian-analytic",
        "GaussianAnalytic",
        {"epsilon": 1.0, "delta": 0.01, **SPREAD},
        LEAKY,
        (0.0, 1.0),
        Verdict.VIOLATION,
    ),
    ("geometric", "Geometric", {"epsilon": 1.0, "sensitivity": 1}, PURE, (0, 1), None),
]
TOOLS = ("mean", "sum", "var")


def _all() -> list[Audit]:
    found = []
    for name, kind, arguments, claim, answers, bits in MECHANISMS:
        make = functools.partial(perturbing, kind, arguments, claim)
        found.append(define(name, make, claim, answers))
        if bits is not None:
            found.append(define(f"{name}-bits", make, claim, answers, bits=True, expect=bits))
    replaced = PureDP(1.0, Relation.SUBSTITUTE)
    pair = np.array([0.0, 0.0]), np.array([0.0, 1.0])
    for kind in TOOLS:
        make = functools.partial(using_tool, kind, {"epsilon": 1.0, "bounds": (0.0, 1.0)})
        found.append(define(f"tools-{kind}", make, replaced, pair))
    return found


AUDITS = _all() if INSTALLED else []
