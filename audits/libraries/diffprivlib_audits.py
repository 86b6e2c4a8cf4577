"""diffprivlib's current release: its values keep their claims, and the bits of its floats do not (its issue 94).

Nor do these, on values:

- LinearRegression where the lower bound of a feature is smaller than the upper one (its issue 105)
- the median of many rows: probabilities underflow, and whether all of them do, which raises, depends on one row (its issue 107)
- statistics of a column with a missing value, which are NaN whatever the noise (its issue 80, of quantiles)

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


def fitting(kind: str, arguments: dict[str, Any], attributes: list[str], claim: Claim, target: bool) -> Any:
    """The model of that name, once it has stated this claim."""
    library = load("diffprivlib", extra="libraries")

    def make() -> Any:
        return getattr(library.models, kind)(**arguments, accountant=library.BudgetAccountant())

    stated = diffprivlib.claim(make(), claim.relation)
    if stated != claim:
        raise InvalidArgument(f"{kind} states {stated!r}, not the {claim!r} that is audited.")
    return diffprivlib.model(make, attributes=attributes, target=target)


def define(
    name: str,
    make: Any,
    claim: Claim,
    pair: tuple[Any, Any],
    *,
    bits: bool = False,
    expect: Verdict = Verdict.NO_VIOLATION_FOUND,
    **options: Any,
) -> Audit:
    return Audit(
        name=f"diffprivlib-{name}",
        mechanism=make,
        mechanism_is_factory=True,
        claim=claim,
        neighbours=functools.partial(neighbours.fixed, [pair], relation=claim.relation),
        options={
            "samples": 30_000,
            "channel": "representation" if bits else "value",
            "shrink": False,
            **options,
        },
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
REPLACED = PureDP(1.0, Relation.SUBSTITUTE)
ADDED = PureDP(1.0, Relation.ADD_REMOVE)
UNIT = {"epsilon": 1.0, "bounds": (0.0, 1.0)}
COLUMN = np.array([0.0, 0.0]), np.array([0.0, 1.0])
QUARTERS = np.array([0.25, 0.25, 1.0, 0.0]), np.array([0.25, 0.25, 1.0, 1.0])
# Between 0.25 and 0.75 the utility is 1,488 and 1,489 ranks below the best: exp(-744) is a float, and half of exp(-744.5) is 0.
MANY = np.repeat([0.25, 0.75], [12, 2988]), np.repeat([0.25, 0.75], [11, 2989])
MISSING = np.array([0.0, 0.0]), np.array([0.0, np.nan])
KEPT, REFUTED = Verdict.NO_VIOLATION_FOUND, Verdict.VIOLATION
# Name, function, arguments, claim, data, and what must be shown.
TOOLS: list[tuple[str, str, dict[str, Any], Claim, tuple[Any, Any], Verdict]] = [
    ("mean", "mean", UNIT, REPLACED, COLUMN, KEPT),
    ("mean-missing", "mean", UNIT, REPLACED, MISSING, REFUTED),
    ("sum", "sum", UNIT, REPLACED, COLUMN, KEPT),
    ("var", "var", UNIT, REPLACED, COLUMN, KEPT),
    ("median", "median", UNIT, REPLACED, QUARTERS, KEPT),
    ("median-many", "median", UNIT, REPLACED, MANY, REFUTED),
    ("median-missing", "median", UNIT, REPLACED, MISSING, REFUTED),
    ("count_nonzero", "count_nonzero", {"epsilon": 1.0}, REPLACED, COLUMN, KEPT),
    ("histogram", "histogram", {"epsilon": 1.0, "bins": 2, "range": (0.0, 1.0)}, ADDED, ([0.2], [0.2, 0.8]), KEPT),
]
REGRESSION = {"epsilon": 1.0, "bounds_X": (0.0, 1.0), "bounds_y": (0.0, 1.0), "fit_intercept": False}
# Class, arguments, what is released, whether the last column is the target, data, and what must be shown.
MODELS: list[tuple[str, dict[str, Any], list[str], bool, tuple[Any, Any], Verdict]] = [
    (
        "StandardScaler",
        UNIT,
        ["mean_", "var_"],
        False,
        ([[0.0], [0.0]], [[0.0], [1.0]]),
        Verdict.NO_VIOLATION_FOUND,
    ),
    ("LinearRegression", REGRESSION, ["coef_"], True, ([[0.25, 0.0]], [[1.0, 0.0]]), Verdict.VIOLATION),
]


def _all() -> list[Audit]:
    found = []
    for name, kind, arguments, claim, answers, bits in MECHANISMS:
        make = functools.partial(perturbing, kind, arguments, claim)
        found.append(define(name, make, claim, answers))
        if bits is not None:
            found.append(define(f"{name}-bits", make, claim, answers, bits=True, expect=bits))
    for name, kind, arguments, claim, pair, expect in TOOLS:
        make = functools.partial(using_tool, kind, arguments)
        found.append(define(f"tools-{name}", make, claim, pair, expect=expect))
    for kind, arguments, attributes, target, pair, expect in MODELS:
        make = functools.partial(fitting, kind, arguments, attributes, REPLACED, target)
        found.append(define(f"models-{kind}", make, REPLACED, pair, expect=expect, samples=24_000))
    return found


AUDITS = _all() if INSTALLED else []
