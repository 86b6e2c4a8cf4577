"""The tests on residuals keep their level: p-values of exactly declared noise are not too small.

A p-value p is valid if P(p <= a) <= a. Declared false-alarm probability of each check: 1e-6, that of more than ``limit``
p-values below ``LEVEL`` among ``RUNS`` independent ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, laplace

from dpaudit import Verdict, batched, exact, neighbours
from dpaudit.diagnosis import check_noise
from dpaudit.diagnosis.residuals import fit_tests, tails

RUNS = 300
LEVEL = 0.05
LIMIT = int(binom.isf(1e-6, RUNS, LEVEL))
LAWS = {
    "laplace": exact.Laplace(0.0, 1.0),
    "discrete": exact.DiscreteLaplace(0, 0.7),
    "atoms": exact.WithAtoms({0.0: 0.6}, 0.4, exact.Gaussian(0.0, 1.0)),
    "cdf": laplace(),
    "sampler": lambda size, rng: np.round(rng.normal(size=size), 1),
}


@pytest.mark.parametrize("name", LAWS)
def test_p_values_of_the_declared_noise(name):
    law = LAWS[name]
    low: dict[str, int] = {}
    for run in range(RUNS):
        rng = np.random.default_rng([run, 5])
        size = 120
        if hasattr(law, "sample"):
            drawn = law.sample(size, rng)
        else:
            drawn = law.rvs(size=size, random_state=rng) if hasattr(law, "rvs") else law(size, rng)
        residuals = np.asarray(drawn, dtype=float).reshape(40, 3)
        for test in fit_tests(*tails(law, residuals, np.ones_like(residuals), rng), rng):
            low[test.name] = low.get(test.name, 0) + (test.p_value <= LEVEL)
    assert set(low) == {"law", "scale", "repetition", "negation", "sharing", "opposition"}
    assert max(low.values()) <= LIMIT
    # The Gamma test is exact, so it must reach its level too: fewer than the mirrored limit is as unlikely.
    assert low["scale"] >= int(binom.ppf(1e-6, RUNS, LEVEL))


@pytest.mark.parametrize("law", [LAWS["laplace"], exact.Gaussian(0.0, 1.0), LAWS["discrete"]], ids=repr)
def test_all_tests_together_keep_alpha(law):
    alpha = 0.2
    close = neighbours.fixed([([1, 2], [1, 3]), ([4], [5])])

    def release(data, size, rng):
        return np.array([sum(data), len(data)]) + law.sample(2 * size, rng).reshape(size, 2)

    def query(data):
        return [sum(data), len(data)]

    blamed = sum(
        check_noise(batched(release), query, law, close, alpha=alpha, residuals=320, seed=seed).verdict
        is Verdict.VIOLATION
        for seed in range(RUNS)
    )
    assert blamed <= int(binom.isf(1e-6, RUNS, alpha))
    assert blamed > 0  # of about thirty: a correction that is much too strict would reject none
