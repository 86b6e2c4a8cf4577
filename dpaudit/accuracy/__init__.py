"""Accuracy theorems as calculators, printed and corrected, and their verification against exact values.

>>> from dpaudit import accuracy
>>> accuracy.verify("threshold-in-histogram", {"steps": [10], "beta": [0.1], "epsilon": [1.0]})[0].status
<Status.VIOLATED: 'VIOLATED'>

The calculators are in ``bounds``, exact quantities and enclosures in ``truths``, distributions of records and of errors in
``distributions``; the sources' statements with all their forms are in ``statements``. Parameters have the names of the
theorems' symbols, whose meaning and range are in ``conditions.SYMBOLS``.
"""

from __future__ import annotations

import importlib
from typing import Any

# Loaded on first use (PEP 562): the help of the command line does not need scipy.
_HOMES = {
    "BETA_2_5": "distributions.data_law",
    "Bound": "bound",
    "Contender": "comparison",
    "DataLaw": "distributions.data_law",
    "EXPONENTIAL": "distributions.data_law",
    "ErrorLaw": "distributions.error_law",
    "TheoremForm": "theorem",
    "HistogramSetting": "truths.certified",
    "MeanConfidence": "truths.sequential",
    "NORMAL": "distributions.data_law",
    "Range": "regions",
    "Row": "verification",
    "Sense": "bound",
    "Status": "bound",
    "THEOREMS": "theorems",
    "Theorem": "theorem",
    "Truth": "bound",
    "UNIFORM": "distributions.data_law",
    "Variant": "bound",
    "TheoremVerification": "verification",
    "compare": "comparison",
    "find_theorem": "theorems",
    "histogram_law": "truths.quantile_errors",
    "histogram_law_for_data": "truths.quantile_errors",
    "verify": "verification",
}
_MODULES = {
    "above_threshold": "bounds",
    "certified": "truths",
    "deciles": "bounds",
    "inverse_sensitivity": "bounds",
    "mean_error": "bounds",
    "noise": "bounds",
    "order_statistics": "distributions",
    "randomised_response": "bounds",
    "sequential": "truths",
}

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
