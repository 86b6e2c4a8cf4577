"""The same calls as in pure_ldp_unary.py, after the fix."""

from __future__ import annotations

from audits.museum._exhibits.pure_ldp_unary import define
from dpaudit import Verdict

AUDITS = define(Verdict.NO_VIOLATION_FOUND)
