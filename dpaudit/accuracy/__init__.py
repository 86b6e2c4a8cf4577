"""Accuracy theorems as calculators, printed and corrected, and their verification against exact values.

>>> from dpaudit import accuracy
>>> accuracy.verify("threshold-in-histogram", {"steps": [10], "beta": [0.1], "epsilon": [1.0]})[0].status
<Status.VIOLATED: 'VIOLATED'>

The calculators are in the modules ``above_threshold``, ``deciles``, ``mean_error``, ``inverse_sensitivity``,
``randomised_response``, ``noise`` and ``order_statistics``, exact quantities in ``truths`` and ``certified``. Their parameters
have the names of the theorems' symbols, whose meaning and range are in ``conditions.SYMBOLS``.
"""

from __future__ import annotations

import importlib
from typing import Any

# Loaded on first use (PEP 562): the help of the command line does not need scipy.
_HOMES = {
    "BETA_2_5": "data_law",
    "Bound": "bound",
    "Contender": "comparison",
    "DataLaw": "data_law",
    "EXPONENTIAL": "data_law",
    "ErrorLaw": "error_law",
    "TheoremForm": "theorem",
    "HistogramSetting": "certified",
    "MeanConfidence": "sequential",
    "NORMAL": "data_law",
    "Range": "regions",
    "Row": "verification",
    "Sense": "bound",
    "Status": "bound",
    "THEOREMS": "theorems",
    "Theorem": "theorem",
    "Truth": "bound",
    "UNIFORM": "data_law",
    "Variant": "bound",
    "TheoremVerification": "verification",
    "compare": "comparison",
    "find_theorem": "theorems",
    "histogram_law": "truths",
    "histogram_law_for_data": "truths",
    "verify": "verification",
}
_MODULES = (
    "above_threshold", "certified", "command", "deciles", "inverse_sensitivity", "mean_error", "noise", "order_statistics",
    "plots", "randomised_response", "sequential", "truths",
)  # fmt: skip

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
