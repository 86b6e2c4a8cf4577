"""The comparison of mechanisms for private quantiles."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.accuracy.comparison import Contender, _clipped_laplace_error, compare, sampling_error
from dpaudit.accuracy.distributions.data_law import EXPONENTIAL, NORMAL, UNIFORM
from dpaudit.accuracy.distributions.order_statistics import mean_absolute
from dpaudit.errors import InvalidArgument


def test_order_of_the_mechanisms_at_a_hundred_records():
    rows = {row.contender: row for row in compare(n=[100], epsilon=[5.0])}
    assert set(rows) == set(Contender)
    error = {contender: row.error.middle for contender, row in rows.items()}
    assert error[Contender.HISTOGRAM_MONOTONE] < error[Contender.HISTOGRAM]
    assert error[Contender.INVERSE_SENSITIVITY] < error[Contender.HISTOGRAM_MONOTONE]
    assert error[Contender.HISTOGRAM] < error[Contender.NAIVE_LAPLACE]
    for row in rows.values():
        assert row.sampling_error == pytest.approx(mean_absolute(0.5, 50, 100), rel=1e-9)
        assert row.error.high >= row.sampling_error * 0.9
        if row.bound is not None:
            assert row.error.low <= row.bound


@pytest.mark.parametrize("law", [NORMAL, EXPONENTIAL], ids=["normal", "exponential"])
def test_bounds_hold_for_other_laws(law):
    for row in compare(n=[60], epsilon=[30.0], quantiles=[0.3], laws=[law], contenders=list(Contender)):
        if row.bound is not None:
            assert row.error.low <= row.bound, row


def test_sampling_error_against_simulation():
    x = np.sort(np.clip(NORMAL.sample((20_000, 25), np.random.default_rng(0)), -4, 4), axis=1)[:, 7]
    # Standard error below 0.002 (the errors have standard deviation below 0.25): six of them.
    assert np.abs(x - NORMAL.quantile(0.3)).mean() == pytest.approx(sampling_error(25, 0.3, NORMAL), abs=0.011)
    assert sampling_error(1000, 0.5, UNIFORM) == pytest.approx(mean_absolute(0.5, 500, 1000), rel=1e-9)


def test_clipped_laplace_error_against_simulation():
    noise = np.random.default_rng(1).laplace(scale=0.4, size=400_000)
    for x, d in ((0.2, 0.5), (0.9, 0.5), (0.5, 0.1)):
        simulated = np.abs(np.clip(x + noise, 0.0, 1.0) - d).mean()
        # Hoeffding: 0.005 is exceeded with probability below 2 exp(-2 * 4e5 * 2.5e-5) = 4e-9.
        assert _clipped_laplace_error(np.array([x]), d, 0.4, 0.0, 1.0)[0] == pytest.approx(simulated, abs=0.005)


def test_bad_arguments():
    with pytest.raises(InvalidArgument, match="contender"):
        compare(n=[10], contenders=["histograms"])
    with pytest.raises(InvalidArgument, match="n=1"):
        compare(n=[1])
