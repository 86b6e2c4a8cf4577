"""Find out whether code that claims to be differentially private really is.

The front door: :func:`audit`, :func:`assert_private`, :class:`Audit` (black box, with a stated error probability),
:func:`verify` (exact laws, declared or extracted from the code), :func:`check_sensitivity` (deterministic),
:func:`diagnose` (where the bug is), the claims, and
the wrappers that make a mechanism of a function. Everything is imported on first use, so that ``import dpaudit`` costs next
to nothing (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit import accuracy, anonymity, exact, neighbours, symbolic
    from dpaudit.claims import (
        ApproxDP,
        Claim,
        GaussianDP,
        PureDP,
        Relation,
        RenyiDP,
        Verdict,
        ZeroConcentratedDP,
    )
    from dpaudit.diagnosis.staged import Diagnosis, diagnose
    from dpaudit.engine.audit import Audit, assert_private, audit
    from dpaudit.engine.membership import audit_scores, one_run_bound
    from dpaudit.errors import (
        CannotFollow,
        DPAuditError,
        Inconclusive,
        InvalidArgument,
        MechanismError,
        PrivacyViolation,
    )
    from dpaudit.mechanism import Mechanism, Raised, batched, fresh, per_release
    from dpaudit.result.model import Channel, Result, Witness
    from dpaudit.sensitivity import check_sensitivity, estimate_sensitivity
    from dpaudit.symbolic.verification import verify

__version__ = "0.1.0"

_HOME = {
    "dpaudit.claims": (
        "ApproxDP",
        "Claim",
        "GaussianDP",
        "PureDP",
        "Relation",
        "RenyiDP",
        "Verdict",
        "ZeroConcentratedDP",
    ),
    "dpaudit.diagnosis.staged": ("Diagnosis", "diagnose"),
    "dpaudit.engine.audit": ("Audit", "assert_private", "audit"),
    "dpaudit.engine.membership": ("audit_scores", "one_run_bound"),
    "dpaudit.result.model": ("Channel", "Result", "Witness"),
    "dpaudit.errors": (
        "CannotFollow",
        "DPAuditError",
        "Inconclusive",
        "InvalidArgument",
        "MechanismError",
        "PrivacyViolation",
    ),
    "dpaudit.mechanism": ("Mechanism", "Raised", "batched", "fresh", "per_release"),
    "dpaudit.sensitivity": ("check_sensitivity", "estimate_sensitivity"),
    "dpaudit.symbolic.verification": ("verify",),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}
_ROOMS = ("accuracy", "anonymity", "exact", "neighbours", "symbolic")

__all__ = [
    "ApproxDP",
    "Audit",
    "CannotFollow",
    "Channel",
    "Claim",
    "DPAuditError",
    "Diagnosis",
    "GaussianDP",
    "Inconclusive",
    "InvalidArgument",
    "Mechanism",
    "MechanismError",
    "PrivacyViolation",
    "PureDP",
    "Raised",
    "Relation",
    "RenyiDP",
    "Result",
    "Verdict",
    "Witness",
    "ZeroConcentratedDP",
    "accuracy",
    "anonymity",
    "assert_private",
    "audit",
    "audit_scores",
    "batched",
    "check_sensitivity",
    "diagnose",
    "estimate_sensitivity",
    "exact",
    "fresh",
    "neighbours",
    "one_run_bound",
    "per_release",
    "symbolic",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"dpaudit.{name}")
    else:
        from dpaudit._util.validation import did_you_mean

        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}.{did_you_mean(name, __all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
