"""Accuracy that OpenDP and diffprivlib state about their own noise. Without a library there is nothing to collect for it."""

from __future__ import annotations

import importlib.util
import math

from dpaudit import AccuracyAudit, RootMeanSquaredError, WithinError, per_release
from dpaudit.adapters import opendp

BETA = 0.05
SCALE = 2.0
AUDITS: list[AccuracyAudit] = []

if importlib.util.find_spec("opendp") is not None:
    dp = opendp.prelude()
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    # The utilities state P(|noise| >= accuracy) <= beta; for integers the largest smaller error is what may happen.
    for name, measurement, truth, accuracy in (
        ("laplace", real >> dp.m.then_laplace(scale=SCALE), float, dp.laplacian_scale_to_accuracy(SCALE, BETA)),
        ("gaussian", real >> dp.m.then_gaussian(scale=SCALE), float, dp.gaussian_scale_to_accuracy(SCALE, BETA)),
        (
            "discrete-laplace",
            whole >> dp.m.then_laplace(scale=SCALE),
            int,
            dp.discrete_laplacian_scale_to_accuracy(SCALE, BETA),
        ),
    ):
        AUDITS.append(
            AccuracyAudit(
                name=f"opendp-{name}-accuracy",
                mechanism=opendp.mechanism(measurement),
                truth=truth,
                claim=WithinError(accuracy, BETA),
                data=[truth(0), truth(100)],
                options={"samples": 20_000},
            )
        )

if importlib.util.find_spec("diffprivlib") is not None:
    from diffprivlib.mechanisms import Laplace, LaplaceTruncated

    for label, mechanism, value in (
        ("laplace", Laplace(epsilon=0.5, sensitivity=1.0), 0.0),
        ("laplace-truncated", LaplaceTruncated(epsilon=0.5, sensitivity=1.0, lower=0.0, upper=1.0), 0.3),
    ):
        AUDITS.append(
            AccuracyAudit(
                name=f"diffprivlib-{label}-mse",
                mechanism=per_release(lambda data, rng, inner=mechanism: inner.randomise(float(data))),  # noqa: ARG005
                truth=float,
                claim=RootMeanSquaredError(math.sqrt(mechanism.mse(value))),
                data=[value],
                options={"samples": 20_000},
            )
        )
