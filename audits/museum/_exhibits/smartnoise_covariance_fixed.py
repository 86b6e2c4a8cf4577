"""The same call as in smartnoise_covariance.py, after the fix."""

from __future__ import annotations

from audits.museum._exhibits.smartnoise_covariance import define
from dpaudit import Verdict

AUDIT = define(Verdict.NO_VIOLATION_FOUND)
