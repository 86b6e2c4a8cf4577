"""OpenDP's randomised response on bit vectors."""

from __future__ import annotations

import math

import opendp.prelude as dp

FLIP, BITS = 0.9, 2
dp.enable_features("contrib")
space = dp.bitvector_domain(max_weight=BITS), dp.discrete_distance()
bits = dp.m.make_randomized_response_bitvec(*space, f=FLIP)
if bits.map(1) > 2 * BITS * math.log((2.0 - FLIP) / FLIP) * (1.0 + 1e-9):  # the library rounds up
    raise ValueError("OpenDP states less than the claim that is audited.")
