"""The accountant of privacy random variables, for Gaussian noise over Poisson samples."""

from __future__ import annotations

import warnings

from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

warnings.simplefilter("ignore")


def upper(composition):
    """Return the upper bound on epsilon at a delta."""
    parts, delta = composition
    numbers = [steps for _, _, steps, _ in parts]
    accountant = PRVAccountant(
        prvs=[
            PoissonSubsampledGaussianMechanism(noise_multiplier=noise, sampling_probability=rate)
            for noise, rate, _, _ in parts
        ],
        max_self_compositions=numbers,
        eps_error=0.1,
        delta_error=delta / 1000.0,
    )
    return float(accountant.compute_epsilon(delta=delta, num_self_compositions=numbers)[2])
