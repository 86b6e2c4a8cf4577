"""The same call as in opendp_response.py, after the fix."""

from __future__ import annotations

from audits.museum._exhibits.opendp_response import define
from dpaudit import Verdict

AUDIT = define(Verdict.NO_VIOLATION_FOUND)
