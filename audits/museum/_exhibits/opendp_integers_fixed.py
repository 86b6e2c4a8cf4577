"""The same call as in opendp_integers.py, after the fix."""

from __future__ import annotations

from audits.museum._exhibits.opendp_integers import define
from dpaudit import Verdict

AUDIT = define(Verdict.NO_VIOLATION_FOUND)
