"""The same call as in opendp_base_laplace.py, after the fix: noise on a grid that the answer is rounded to."""

from __future__ import annotations

from audits.museum._exhibits.opendp_base_laplace import define
from dpaudit import Verdict

AUDITS = [define(channel, Verdict.NO_VIOLATION_FOUND) for channel in ("value", "representation")]
