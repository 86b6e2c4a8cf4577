r"""Simple composition: several mechanisms on the same data, with independent noise (slides; Dwork et al. 2006).

Pure epsilons add: for outputs in a product set the probabilities multiply, and sets with ``P(S) <= exp(sum) Q(S)`` form
a monotone class that holds all finite unions of rectangles, so the inequality reaches every event (docs/theory.md R25; the
slides stop at the rectangles). It is tight: k-fold randomised response reaches ``k epsilon``. Epsilons and deltas of
approximate claims add too; squares of mu and rho add.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP, Relation, ZeroConcentratedDP
from dpaudit.errors import InvalidArgument, RelationMismatch

from ._common import check_draw


class Reference(Protocol):
    """A mechanism that says what it promises."""

    @property
    def claim(self) -> Claim:
        """The claim that it keeps."""

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Return ``size`` outputs."""


@dataclass(frozen=True, slots=True)
class Composition:
    """Run every mechanism on the data and release all outputs: one row a release, the parts side by side.

    Scalars become one column, vectors as many as they have. The law is the product of the parts' laws, where all have
    one.

    >>> from mechanisms.laplace import LaplaceMechanism
    >>> both = Composition((LaplaceMechanism(0.5), LaplaceMechanism(0.25)))
    >>> both.claim
    PureDP(epsilon=0.75, relation='answers')
    """

    mechanisms: tuple[Reference, ...]

    def __post_init__(self) -> None:
        if not self.mechanisms:
            raise InvalidArgument("mechanisms=() is empty; compose at least one.")
        _ = self.claim

    @property
    def relation(self) -> Relation | None:
        """The relation all claims share."""
        return self.mechanisms[0].claim.relation

    @property
    def claim(self) -> Claim:
        """The sum of the claims, in the sense in which claims of that kind add."""
        return add_claims([mechanism.claim for mechanism in self.mechanisms])

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``size`` rows of all outputs."""
        check_draw(size, rng)
        parts: list[NDArray[Any]] = []  # by columns
        for _, same in itertools.groupby(self.mechanisms, key=id):
            # Outputs are independent: one mechanism n times is one run for n times as many, cut into n.
            copies = list(same)
            outputs = np.asarray(copies[0].sample(data, size * len(copies), rng))
            width = math.prod(outputs.shape[1:])
            columns = outputs.reshape(len(outputs), width).T.reshape(width, len(copies), size)
            parts.append(columns.swapaxes(0, 1).reshape(len(copies) * width, size))
        return parts[0].T if len(parts) == 1 else np.concatenate(parts).T

    def law(self, data: Any) -> exact.Law:
        """Product of the parts' laws; those that are products themselves are laid side by side."""
        laws: list[exact.Law] = []
        for mechanism in self.mechanisms:
            if not isinstance(mechanism, exact.HasLaw):
                raise InvalidArgument(f"{mechanism!r} has no exact law, so their composition has none.")
            law = mechanism.law(data)
            laws.extend(law.laws if isinstance(law, exact.Product) else [law])
        return exact.Product(laws)


def add_claims(claims: list[Claim]) -> Claim:
    """Return the claim that basic composition gives for independent releases under these claims.

    >>> add_claims([ApproxDP(0.5, 1e-6), PureDP(0.5)])
    ApproxDP(epsilon=1.0, delta=1e-06)
    >>> add_claims([GaussianDP(3.0), GaussianDP(4.0)])
    GaussianDP(mu=5.0)
    """
    relation = claims[0].relation
    for claim in claims:
        if claim.relation is not relation:
            raise RelationMismatch(
                f"{claims[0]!r} and {claim!r} are made for different neighbours and do not add. "
                "State both for one relation first."
            )
    if all(isinstance(claim, PureDP) for claim in claims):
        return PureDP(math.fsum(claim.parameter for claim in claims), relation)
    if all(isinstance(claim, PureDP | ApproxDP) for claim in claims):
        delta = math.fsum(claim.delta_claimed for claim in claims if isinstance(claim, ApproxDP))
        return ApproxDP(math.fsum(claim.parameter for claim in claims), delta, relation)
    if all(isinstance(claim, GaussianDP) for claim in claims):
        return GaussianDP(math.hypot(*(claim.parameter for claim in claims)), relation)
    if all(isinstance(claim, ZeroConcentratedDP) for claim in claims):
        return ZeroConcentratedDP(math.fsum(claim.parameter for claim in claims), relation)
    kinds = ", ".join(sorted({type(claim).__name__ for claim in claims}))
    raise InvalidArgument(f"claims of the kinds {kinds} do not add up simply; convert them to one kind first.")
