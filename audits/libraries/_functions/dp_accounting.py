"""Accountants of dp-accounting, for sums with noise over Poisson samples."""

from __future__ import annotations

import functools
import logging

import dp_accounting
from dp_accounting import pld, rdp

logging.getLogger("absl").setLevel(logging.ERROR)
Relation = dp_accounting.NeighboringRelation


def account(make, composition):
    """Return epsilon at a delta."""
    parts, delta = composition
    accountant = make()
    for noise, rate, steps, kind in parts:
        event = (dp_accounting.GaussianDpEvent if kind == "gaussian" else dp_accounting.LaplaceDpEvent)(noise)
        event = dp_accounting.PoissonSampledDpEvent(rate, event) if rate < 1.0 else event
        accountant.compose(dp_accounting.SelfComposedDpEvent(event, steps))
    return float(accountant.get_epsilon(delta))


renyi = functools.partial(account, rdp.RdpAccountant)
losses = functools.partial(account, pld.PLDAccountant)
renyi_replace, losses_replace = (
    functools.partial(account, functools.partial(make, neighboring_relation=Relation.REPLACE_ONE))
    for make in (rdp.RdpAccountant, pld.PLDAccountant)
)
