"""SmartNoise's covariance of two columns; the one module is imported alone, because the package wants PyTorch."""

from __future__ import annotations

import pandas
from module_alone import module_alone

covariance = module_alone("snsynth.models.dp_covariance", "smartnoise-synth").DPcovariance
COLUMNS = ["age", "income"]
BOUNDS = pandas.DataFrame({column: [0.0, 1.0] for column in COLUMNS})


def release(rows):
    """Release the covariance of rows that should lie within (0, 1)."""
    frame = pandas.DataFrame(rows, columns=COLUMNS, dtype="float64")
    return [float(entry) for entry in covariance(len(frame), COLUMNS, BOUNDS, 1.0).release(frame)]
