"""OpenDP's Laplace mechanism on integers, of scale 3."""

from __future__ import annotations

import opendp.prelude as dp

dp.enable_features("contrib")
laplace = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=3.0)
if laplace.map(1) > 1.0 / 3.0 + 1e-9:
    raise ValueError("OpenDP states less than the claim that is audited.")
