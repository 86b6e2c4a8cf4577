"""The same calls as in opendp_integers.py, after the fix."""

from __future__ import annotations

from audits.museum._exhibits.opendp_integers import define
from dpaudit import Verdict

AUDITS = define(Verdict.NO_VIOLATION_FOUND)
