"""Baselines: stored results of a repository's audits, and a comparison that lists what became worse."""

from dpaudit.baseline.measuring import measure, trials_for
from dpaudit.baseline.regressions import (
    VERDICT_SHARE,
    Regression,
    accuracy_regressions,
    compare_files,
    exit_code_of_run,
    regressions,
)
from dpaudit.baseline.stored import Baseline, Leading, Stored, leading_of, read, save

__all__ = [
    "VERDICT_SHARE",
    "Baseline",
    "Leading",
    "Regression",
    "Stored",
    "accuracy_regressions",
    "compare_files",
    "exit_code_of_run",
    "leading_of",
    "measure",
    "read",
    "regressions",
    "save",
    "trials_for",
]
