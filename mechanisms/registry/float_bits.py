"""Registry entries for the bits of floats: mechanisms that keep their claim in doubles, and textbook ones that do not.

:func:`entries` are sound on both channels, ``value`` and ``representation``. :func:`leaking` are sound over the reals and
on the channel ``value``, but broken as programs: doubles near 0 have low bits that doubles near 1 cannot have, so outputs
exist that one answer can give and the other cannot (Mironov 2012). Their truth is that of the running code; they must be
audited with ``channel="representation"``.
"""

from __future__ import annotations

import functools
import math

from dpaudit import neighbours
from dpaudit.claims import Relation
from dpaudit.neighbours import Neighbours

from ..dyadic import DyadicLaplaceMechanism
from ..gaussian import GaussianMechanism
from ..laplace import LaplaceMechanism
from ..snapping import SnappingMechanism
from . import Entry, entry

LEAK = "the noise is added in doubles: which low bits the sum can have depends on the answer"


def zero_and_one() -> Neighbours:
    """The answers 0 and 1, where doubles differ most in their low bits."""
    return neighbours.fixed([(0.0, 1.0)], relation=Relation.ANSWERS)


def entries() -> list[Entry]:
    """Return mechanisms whose claim holds for the running code, rounding included."""
    snapping = functools.partial(SnappingMechanism, 1.0, 1024.0)
    dyadic = functools.partial(DyadicLaplaceMechanism, 1.0, 10)
    on_a_grid = "Ghosh et al. 2009 on a dyadic grid; Balcer and Vadhan 2018"
    return [
        entry(
            "laplace-snapping", snapping, zero_and_one, (1.0 / snapping().scale, 1.0), "Mironov 2012", samples=200_000
        ),
        entry("laplace-dyadic", dyadic, zero_and_one, 1.0, on_a_grid, samples=200_000),
    ]


def leaking() -> list[Entry]:
    """Return textbook mechanisms in doubles, to be audited with ``channel="representation"``."""
    return [
        entry(name, make, zero_and_one, math.inf, "Mironov 2012", LEAK, samples=samples)
        for name, make, samples in (
            ("laplace-bits", functools.partial(LaplaceMechanism, 1.0), 2000),
            ("laplace-inverse-cdf-bits", functools.partial(LaplaceMechanism, 1.0, method="inverse-cdf"), 2000),
            ("gaussian-bits", functools.partial(GaussianMechanism, 1.0, 1e-5), 20_000),
        )
    ]
