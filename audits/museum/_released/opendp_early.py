"""Measurements of OpenDP 0.4 and 0.5."""

from __future__ import annotations

import math

from opendp.meas import make_base_laplace, make_randomized_response_bool
from opendp.mod import enable_features

enable_features("floating-point", "contrib")
KEPT = 0.75
laplace = make_base_laplace(scale=1.0)
response = make_randomized_response_bool(prob=KEPT)
if not response.check(1, math.log(KEPT / (1.0 - KEPT)) * (1.0 + 1e-9)):  # the library rounds up
    raise ValueError("OpenDP does not claim this epsilon for two people whose bits differ.")
