"""All mechanisms in one list, each with its claim, the true value, and the verdict that an audit must reach.

Audits, benchmarks and tests iterate over :func:`entries`, so a mechanism is described once. Modules of this package list
the entries, each made by :func:`entry`.
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

# Modules of this package with a function ``entries()``. They import this one, and Hypothesis, so they are imported when the list
# is asked for.
MODULES = (
    "catalogue",
    "reference",
    "broken",
    "bounded_noise",
    "pufferfish",
    "importance_weighting",
    "federated",
    "dp_sgd",
    "synthesis",
    "float_bits",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One mechanism, and what is known about it.

    Attributes
    ----------
    name : str
        Unique, in lower case with hyphens.
    make : callable
        Returns the mechanism.
    claim : Claim
        The claim to audit; a broken mechanism breaks it.
    neighbours : callable
        Returns neighbours on which an audit of these samples can reach the expected verdict.
    truth : float or (float, float)
        The true value of the claim's parameter (epsilon; mu for Gaussian DP), a supremum over all neighbours of the
        relation: a number, infinity, or a proven bracket. For claims with a delta, the epsilon kept at that delta.
    samples : int
        Budget of the audit, with which the expectation is met.
    expect : Verdict
        The verdict that the audit must reach.
    bug : str or None
        The mistake, in a sentence; None for sound mechanisms.
    source : str
        The publication it comes from, and the section of docs/theory.md that corrects it.
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
        """True if the truth is known to exceed the claim."""
        return self.bracket[0] > self.claim.parameter * (1.0 + 1e-9)


def entry(
    name: str,
    make: Callable[[], Any],
    where: Callable[[], Neighbours],
    truth: Truth,
    source: str,
    bug: str | None = None,
    *,
    samples: int = 1_000_000,
    expect: Verdict | None = None,
    claim: Claim | None = None,
    published: float | None = None,
) -> Entry:
    """Return an entry whose claim is the mechanism's own, and whose bug must be found, unless ``expect`` says
    otherwise.

    Parameters
    ----------
    name, make, truth, source, bug, samples, published
        As for :class:`Entry`.
    where : callable
        ``Entry.neighbours``.
    expect : Verdict, optional
        The verdict that an audit must reach. Left out, it is a violation if there is a bug.
    claim : Claim, optional
        The claim to audit, if it is not ``make().claim``.
    """
    return Entry(
        name=name,
        make=make,
        claim=make().claim if claim is None else claim,
        neighbours=where,
        truth=truth,
        samples=samples,
        expect=expect or (Verdict.NO_VIOLATION_FOUND if bug is None else Verdict.VIOLATION),
        bug=bug,
        source=source,
        published=published,
    )


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return all entries, the catalogue first.

    >>> len({entry.name for entry in entries()}) == len(entries())
    True
    """
    listed = tuple(found for name in MODULES for found in importlib.import_module(f"{__name__}.{name}").entries())
    names = [found.name for found in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgument(f"names {twice!r} are used by more than one entry; rename one.")
    return listed


def find(name: str) -> Entry:
    """Return the entry of that name.

    >>> find("laplace-half-scale").truth
    2.0
    """
    by_name = {listed.name: listed for listed in entries()}
    if name not in by_name:
        raise InvalidArgument(f"name={name!r} is not in the registry.{did_you_mean(name, list(by_name))}")
    return by_name[name]
