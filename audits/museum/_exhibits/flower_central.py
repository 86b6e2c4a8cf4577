"""Flower's central differential privacy: the rounds of audits/libraries, in the release in which the formulas were read."""

from __future__ import annotations

from audits.libraries.flower_audits import rounds

AUDITS = rounds()
