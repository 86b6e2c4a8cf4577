"""Find out whether code that claims to be differentially private really is.

The front door: :func:`audit`, :func:`assert_private`, :class:`Audit` (black box, with a stated error probability),
:func:`verify` (exact laws), :func:`check_sensitivity` (deterministic), :func:`diagnose` (where the bug is), the claims, and
the wrappers that make a mechanism of a function. Everything is imported on first use, so that ``import dpaudit`` costs next
to nothing (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit import accuracy, anonymity, exact, mechanisms, neighbours, statements
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
        AccuracyViolation,
        DPAuditError,
        Inconclusive,
        InvalidArgument,
        MechanismError,
        PrivacyViolation,
    )
    from dpaudit.exact.verification import verify
    from dpaudit.mechanism import Mechanism, Raised, batched, fresh, per_release
    from dpaudit.result.model import Channel, Result, Witness
    from dpaudit.sensitivity import check_sensitivity, estimate_sensitivity
    from dpaudit.utility.check import DrawnData, assert_accurate, check_accuracy
    from dpaudit.utility.definition import AccuracyAudit
    from dpaudit.utility.error_claim import MeanError, RootMeanSquaredError, WithinError
    from dpaudit.utility.result import AccuracyResult
    from dpaudit.utility.tradeoff import Tradeoff

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
        "AccuracyViolation",
        "DPAuditError",
        "Inconclusive",
        "InvalidArgument",
        "MechanismError",
        "PrivacyViolation",
    ),
    "dpaudit.exact.verification": ("verify",),
    "dpaudit.mechanism": ("Mechanism", "Raised", "batched", "fresh", "per_release"),
    "dpaudit.sensitivity": ("check_sensitivity", "estimate_sensitivity"),
    "dpaudit.utility.check": ("DrawnData", "assert_accurate", "check_accuracy"),
    "dpaudit.utility.definition": ("AccuracyAudit",),
    "dpaudit.utility.error_claim": ("MeanError", "RootMeanSquaredError", "WithinError"),
    "dpaudit.utility.result": ("AccuracyResult",),
    "dpaudit.utility.tradeoff": ("Tradeoff",),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}
_ROOMS = ("accuracy", "anonymity", "exact", "mechanisms", "neighbours", "statements")

__all__ = [
    "AccuracyAudit",
    "AccuracyResult",
    "AccuracyViolation",
    "ApproxDP",
    "Audit",
    "Channel",
    "Claim",
    "DPAuditError",
    "Diagnosis",
    "DrawnData",
    "GaussianDP",
    "Inconclusive",
    "InvalidArgument",
    "MeanError",
    "Mechanism",
    "MechanismError",
    "PrivacyViolation",
    "PureDP",
    "Raised",
    "Relation",
    "RenyiDP",
    "Result",
    "RootMeanSquaredError",
    "Tradeoff",
    "Verdict",
    "WithinError",
    "Witness",
    "ZeroConcentratedDP",
    "accuracy",
    "anonymity",
    "assert_accurate",
    "assert_private",
    "audit",
    "audit_scores",
    "batched",
    "check_accuracy",
    "check_sensitivity",
    "diagnose",
    "estimate_sensitivity",
    "exact",
    "fresh",
    "mechanisms",
    "neighbours",
    "one_run_bound",
    "per_release",
    "statements",
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
