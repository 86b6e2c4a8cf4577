"""OpenDP's Laplace and Gaussian mechanisms on integers, of scale 3."""

from __future__ import annotations

import opendp.prelude as dp

dp.enable_features("contrib")
space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
laplace = dp.m.make_laplace(*space, scale=3.0)
gaussian = dp.m.make_gaussian(*space, scale=3.0)
if laplace.map(1) > 1.0 / 3.0 + 1e-9 or gaussian.map(1) > 1.0 / 18.0 + 1e-9:
    raise ValueError("OpenDP states less than the claim that is audited.")
