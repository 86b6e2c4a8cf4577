"""The ledger: every statement of five documents on private deciles and around, each with a computation that decides it.

The documents are an internship report on private deciles and the slides of its defence, course notes with the proof of the
Laplace mechanism, lecture notes on t-closeness and randomised response, and notes that survey mechanisms.

>>> from dpaudit import statements
>>> found = statements.find_statement("lemma-2.2.3.1").run()
>>> str(found.standing), found.as_expected
('vacuous', True)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.statements.ledger import STATEMENTS, find_statement, markdown_table
    from dpaudit.statements.sample_monotone import SampleMonotoneCheck, check_sample_monotone
    from dpaudit.statements.statement import Finding, Standing, Statement

_HOMES = {
    "Finding": "statement",
    "STATEMENTS": "ledger",
    "SampleMonotoneCheck": "sample_monotone",
    "Standing": "statement",
    "Statement": "statement",
    "check_sample_monotone": "sample_monotone",
    "find_statement": "ledger",
    "markdown_table": "ledger",
}

__all__ = [
    "STATEMENTS",
    "Finding",
    "SampleMonotoneCheck",
    "Standing",
    "Statement",
    "check_sample_monotone",
    "find_statement",
    "markdown_table",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
