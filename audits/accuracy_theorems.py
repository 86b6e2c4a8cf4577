"""Accuracy theorems of this project, checked on the running mechanisms: HistogramMethod, inverse sensitivity, naive noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpaudit import AccuracyAudit, DrawnData, MeanError, Verdict, WithinError, batched
from dpaudit.accuracy.bounds import inverse_sensitivity, mean_error
from mechanisms.histogram_method import HistogramMethod
from mechanisms.inverse_sensitivity import InverseSensitivityQuantile
from mechanisms.laplace import LaplaceMechanism

N, EPSILON = 300, 30.0
HALF = Fraction(1, 2)
UNIFORM = DrawnData(lambda rng: rng.random(N), f"{N} uniform records")
STEPS = int(mean_error.slides_steps(N))
MEDIAN = HistogramMethod(EPSILON, 0.0, 1.0, steps=STEPS, edge="left")


def median_of_nine(data, size, rng):
    return MEDIAN.sample(data, size, rng)[:, 4]


theorem_3_5 = AccuracyAudit(
    name="histogram-mean-error-theorem",
    mechanism=batched(median_of_nine),
    truth=0.5,
    claim=MeanError(mean_error.corrected_mean_error_bound(n=N, quantile=HALF, epsilon=EPSILON).value, largest=1.0),
    data=UNIFORM,
    options={"samples": 2000},
)
inverse = AccuracyAudit(
    name="inverse-sensitivity-mean-error-theorem",
    mechanism=InverseSensitivityQuantile(1.0, 0.0, 1.0),
    truth=0.5,
    claim=MeanError(inverse_sensitivity.plain_mean_error(n=N, quantile=HALF, epsilon=1.0)[0], largest=1.0),
    data=UNIFORM,
    options={"samples": 2000},
)
tail = AccuracyAudit(
    name="laplace-tail-theorem",
    mechanism=LaplaceMechanism(1.0),
    truth=0.0,
    claim=WithinError(-float(np.log(0.05)), 0.05),
    data=[0.0],
    options={"samples": 20_000},
)
too_good = AccuracyAudit(
    name="laplace-mean-error-too-good",
    mechanism=LaplaceMechanism(1.0),
    truth=0.0,
    claim=MeanError(0.9),
    data=[0.0],
    options={"samples": 50_000},
    expect=Verdict.VIOLATION,
)
