"""The law extracted from a mechanism's sampler equals the law that it declares, and the running code follows it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import exact
from dpaudit.symbolic import law_of
from mechanisms.registry import find
from tests.symbolic import ordinary_functions as functions

# One of each kind; `python -m benchmarks extraction` goes through all of the registry.
FOLLOWED = [
    "catalogue-laplace",
    "catalogue-truncated-geometric",
    "catalogue-noisy-hist-2",
    "catalogue-noisy-max-1",
    "catalogue-noisy-max-3",
    "catalogue-laplace-parallel",
    "discrete-laplace",
    "gaussian",
    "noisy-histogram",
    "laplace-median-clipped",
    "composition",
    "exponential",
    "noisy-max-exponential",
    "noisy-max-gumbel",
    "randomised-response-warner",
    "randomised-response-k-ary",
    "inverse-sensitivity-mean",
    "laplace-raw-once-in-1000",
    "laplace-sensitivity-from-data",
    "inverse-sensitivity-doubled-exponent",
    "randomised-response-ranges-from-data",
    "pufferfish-wasserstein-counts",
    "pufferfish-reused-draw",
    "federated-average",
    "federated-adaptive",
]


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_extracted_law_equals_the_declared_one(name):
    entry = find(name)
    mechanism = entry.make()
    data = entry.neighbours().corners()[0].data
    extracted = law_of(mechanism, data).to_exact()
    assert exact.epsilon(extracted, mechanism.law(data)) <= 1e-10


SIZE = 4000
# Dvoretzky, Kiefer, Wolfowitz: the distance of the empirical distribution function exceeds this with probability 1e-6.
FARTHEST = math.sqrt(math.log(2.0 / 1e-6) / (2.0 * SIZE))


@pytest.mark.parametrize(
    ("function", "data"),
    [
        (functions.clipped_mean, [1.0, 5.0]),
        (functions.geometric_count, [1, 2]),
        (functions.subsampled_sum, [1, 0, 1]),
        (functions.randomised_sum, [0, 1, 1]),
        (functions.noisy_argmax, [0, 1, 1, 2]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_running_code_follows_the_extracted_law(function, data):
    """False alarm with probability 1e-6 each."""
    law = law_of(function, data)
    rng = np.random.default_rng(2026)
    outputs = np.sort([float(function(data, rng)) for _ in range(SIZE)])
    table = law.outcomes()
    for point in np.unique(np.quantile(outputs, np.linspace(0.02, 0.98, 25), method="nearest")):
        if table is not None:
            mass = math.fsum(value for outcome, value in table.items() if outcome <= point)
        else:
            form = law.form()
            mass = (
                math.exp(form.lattice.log_range(-math.inf, point))
                if form.lattice is not None
                else math.exp(float(form.continuous.log_mass(np.array(-np.inf), np.array(point))))
            )
        assert abs(np.searchsorted(outputs, point, side="right") / SIZE - mass) <= FARTHEST
