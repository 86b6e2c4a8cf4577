"""Accountants of autodp, for sums with noise over Poisson samples."""

from __future__ import annotations

import contextlib
import io
import warnings

from autodp import mechanism_zoo, transformer_zoo

warnings.simplefilter("ignore")


def renyi(composition):
    """Return epsilon at a delta by Renyi DP, with the tighter bound for Poisson samples."""
    parts, delta = composition
    steps = [step(*part[:2], part[3]) for part in parts]
    return float(transformer_zoo.Composition()(steps, [part[2] for part in parts]).get_approxDP(delta))


def step(noise, rate, kind):
    made = mechanism_zoo.GaussianMechanism(noise) if kind == "gaussian" else mechanism_zoo.LaplaceMechanism(b=noise)
    if rate == 1.0:
        return made
    return transformer_zoo.AmplificationBySampling(PoissonSampling=True)(made, rate, improved_bound_flag=True)


def characteristic(composition):
    """Return epsilon at a delta by characteristic functions."""
    parts, delta = composition
    if any(rate < 1.0 for _, rate, _, _ in parts):
        raise ValueError("subsampling needs an older scipy")
    steps = [mechanism_zoo.GaussianMechanism(noise, phi_off=False, RDP_off=True) for noise, _, _, _ in parts]
    with contextlib.redirect_stdout(io.StringIO()):
        return float(transformer_zoo.ComposeAFA()(steps, [part[2] for part in parts]).get_approxDP(delta))
