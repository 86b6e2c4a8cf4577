"""The examination: every mechanism of the registry, with the verdict it must get."""

from __future__ import annotations

from dpaudit import Audit
from mechanisms import registry

AUDITS = [
    Audit(
        name=entry.name,
        mechanism=entry.make,
        mechanism_is_factory=True,
        claim=entry.claim,
        neighbours=entry.neighbours,
        options={"samples": entry.samples, "seed": 0},
        expect=entry.expect,
    )
    for entry in registry.entries()
]
