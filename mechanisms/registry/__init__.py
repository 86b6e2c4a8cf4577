"""All mechanisms in one list, with what they claim, what is true, and what an audit must say.

Audits, benchmarks and tests iterate over :func:`entries`, so a mechanism is described once.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpaudit._util.validation import check_count, did_you_mean
from dpaudit.claims import Claim, Relation, Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours import Neighbours

Truth: TypeAlias = float | tuple[float, float]

# Each has a function ``entries()``. They import this module, so they are imported when the list is asked for; by names
# relative to this package, which is ``mechanisms.registry`` in the repository and ``dpaudit.mechanisms.registry`` installed.
MODULES = (
    ".catalogue",
    ".reference",
    ".broken",
    "..bounded_noise",
    "..pufferfish",
    "..importance_weighting",
    "..federated",
    "..dp_sgd",
    "..synthesis",
    "..floating_point",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One mechanism, and what is known about it.

    Attributes
    ----------
    name : str
        Unique, in lower case with hyphens.
    make : callable
        Makes the mechanism.
    claim : Claim
        What is audited; of broken mechanisms what they pretend.
    neighbours : callable
        Makes neighbours on which an audit can see what there is to see.
    truth : float or (float, float)
        The true value of the claim's parameter (epsilon; mu for Gaussian DP), a supremum over all neighbours of the
        relation: a number, infinity, or a proven bracket. For claims with a delta, the epsilon kept at that delta.
    samples : int
        Budget of the audit, with which the expectation is met.
    expect : Verdict
        What the audit must say.
    bug : str or None
        What is wrong, in a sentence; None for sound mechanisms.
    source : str
        Where it comes from.
    catalogue : int or None
        Its row in the catalogue of twenty on which the field's auditors were published.
    published : float or None
        The best lower confidence bound in print (S&P 2021 evaluation, 90 % confidence).
    """

    name: str
    make: Callable[[], Any]
    claim: Claim
    neighbours: Callable[[], Neighbours]
    truth: Truth
    samples: int
    expect: Verdict
    bug: str | None
    source: str
    catalogue: int | None = None
    published: float | None = None

    def __post_init__(self) -> None:
        check_count(samples=self.samples)
        low, high = self.bracket
        if not 0.0 <= low <= high:
            raise InvalidArgument(
                f"truth={self.truth!r} of {self.name} must be a number or an increasing pair, from 0 on."
            )
        if self.expect is Verdict.VIOLATION and not self.breaks_claim:
            raise InvalidArgument(f"{self.name} keeps its claim (truth={self.truth!r}); no audit may find a violation.")

    @property
    def bracket(self) -> tuple[float, float]:
        """Lower and upper end of what is known of the truth."""
        return self.truth if isinstance(self.truth, tuple) else (self.truth, self.truth)

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation of the claim."""
        return self.claim.relation

    @property
    def breaks_claim(self) -> bool:
        """Whether the truth is known to exceed what is claimed."""
        return self.bracket[0] > self.claim.parameter * (1.0 + 1e-9)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return all entries, the catalogue first.

    >>> len({entry.name for entry in entries()}) == len(entries())
    True
    """
    listed = tuple(entry for name in MODULES for entry in importlib.import_module(name, __name__).entries())
    names = [entry.name for entry in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgument(f"names {twice!r} are used by more than one entry; rename one.")
    return listed


def find(name: str) -> Entry:
    """Return the entry of that name.

    >>> find("laplace-half-scale").truth
    2.0
    """
    for entry in entries():
        if entry.name == name:
            return entry
    raise InvalidArgument(
        f"name={name!r} is not in the registry.{did_you_mean(name, [entry.name for entry in entries()])}"
    )
