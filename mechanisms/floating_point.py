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
from dpaudit.claims import Relation, Verdict
from dpaudit.neighbours import Neighbours

from .dyadic import DyadicLaplaceMechanism
from .gaussian import GaussianMechanism
from .laplace import LaplaceMechanism
from .registry import Entry
from .snapping import SnappingMechanism

LEAK = "the noise is added in doubles: which low bits the sum can have depends on the answer"


def zero_and_one() -> Neighbours:
    """The answers 0 and 1, where doubles differ most in their low bits."""
    return neighbours.fixed([(0.0, 1.0)], relation=Relation.ANSWERS)


def entries() -> list[Entry]:
    """Mechanisms whose claim holds for the running code, rounding included."""
    snapping = functools.partial(SnappingMechanism, 1.0, 1024.0)
    dyadic = functools.partial(DyadicLaplaceMechanism, 1.0, 10)
    return [
        Entry(
            name=name,
            make=make,
            claim=make().claim,
            neighbours=zero_and_one,
            truth=truth,
            samples=200_000,
            expect=Verdict.NO_VIOLATION_FOUND,
            bug=None,
            source=source,
        )
        for name, make, truth, source in (
            ("laplace-snapping", snapping, (1.0 / snapping().scale, 1.0), "Mironov 2012"),
            ("laplace-dyadic", dyadic, 1.0, "Ghosh et al. 2009 on a dyadic grid; Balcer and Vadhan 2018"),
        )
    ]


def leaking() -> list[Entry]:
    """Textbook mechanisms in doubles, to be audited with ``channel="representation"``."""
    return [
        Entry(
            name=name,
            make=make,
            claim=make().claim,
            neighbours=zero_and_one,
            truth=math.inf,
            samples=samples,
            expect=Verdict.VIOLATION,
            bug=LEAK,
            source="Mironov 2012",
        )
        for name, make, samples in (
            ("laplace-bits", functools.partial(LaplaceMechanism, 1.0), 2000),
            ("laplace-inverse-cdf-bits", functools.partial(LaplaceMechanism, 1.0, method="inverse-cdf"), 2000),
            ("gaussian-bits", functools.partial(GaussianMechanism, 1.0, 1e-5), 20_000),
        )
    ]
