r"""The Laplace mechanism (Dwork, McSherry, Nissim and Smith 2006; course notes, theorem 1; notes; slides).

The answer plus independent Laplace noise of scale ``sensitivity / epsilon`` on every coordinate. Two neighbouring
answers differ by at most the sensitivity in l1, and the log-density of the noise is Lipschitz with constant ``epsilon /
sensitivity``, so the log-ratio of the two output densities is at most epsilon. It is reached at every output beyond
both answers: the mechanism is exactly epsilon-private, not less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import check_choice, check_positive
from dpaudit.claims import PureDP, Relation

from ._common import Floats, Query, answer_of, check_draw, laplace_noise

METHODS = ("numpy", "inverse-cdf", "signed-exponential")


@dataclass(frozen=True, slots=True)
class LaplaceMechanism:
    """Answer plus Laplace noise: a number (outputs of shape ``(size,)``) or a vector (``(size, d)``).

    Parameters
    ----------
    epsilon : float
        What is claimed.
    sensitivity : float
        Largest l1 distance of the answers on two neighbouring data sets, under ``relation``.
    query : callable, optional
        Turns the data into the answer; without it the data are the answer.
    relation : Relation
        The neighbouring relation for which the sensitivity was computed. Counts of a histogram have sensitivity 1 under
        addition and removal but 2 under substitution (docs/theory.md R1), so it is part of the claim.
    method : {"numpy", "inverse-cdf", "signed-exponential"}
        numpy's own draw, the inverse distribution function printed in the notes, or an exponential variable with a
        random sign, which is the fastest. One law, three ways to round it to doubles.

    >>> import numpy as np
    >>> count = LaplaceMechanism(epsilon=0.5, query=len, relation=Relation.ADD_REMOVE)
    >>> count.scale, count.claim
    (2.0, PureDP(epsilon=0.5, relation='add-remove'))
    >>> count.sample([3, 1, 4], 2, np.random.default_rng(0)).shape
    (2,)
    """

    epsilon: float
    sensitivity: float = 1.0
    query: Query | None = None
    relation: Relation = Relation.ANSWERS
    method: str = "numpy"

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        check_choice(METHODS, method=self.method)

    @property
    def scale(self) -> float:
        """Scale of the noise, ``sensitivity / epsilon``; its standard deviation is sqrt(2) times that."""
        return self.sensitivity / self.epsilon

    @property
    def claim(self) -> PureDP:
        """epsilon-DP, exactly reached."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers."""
        check_draw(size, rng)
        return add_laplace(answer_of(self.query, data), self.scale, size, rng, method=self.method)

    def law(self, data: Any) -> exact.Law:
        """Laplace at the answer; for a vector the product of one per coordinate."""
        return laplace_law(answer_of(self.query, data), self.scale)


def add_laplace(answer: Floats, scale: float, size: int, rng: np.random.Generator, *, method: str = "numpy") -> Floats:
    """Return ``size`` copies of ``answer``, each with fresh Laplace noise on every coordinate."""
    if method == "signed-exponential":
        # A coordinate at a time, in column order, because outputs are read by coordinates too.
        columns = np.empty((*answer.shape, size))
        for column, centre in zip(columns.reshape(answer.size, size), answer.ravel().tolist(), strict=True):
            laplace_noise(scale, size, rng, centre=centre, out=column)
        return columns.T
    shape = (size, *answer.shape)
    noise = rng.laplace(0.0, scale, shape) if method == "numpy" else inverse_cdf_laplace(rng.random(shape), scale)
    noise += answer
    return noise


def inverse_cdf_laplace(uniform: Floats, scale: float) -> Floats:
    """Turn uniforms in [0, 1) into Laplace noise, as the notes do, overwriting them.

    ``scale log(2u)`` below one half and ``-scale log(2(1-u))`` from there on: both are ``scale log(2 min(u, 1-u))``
    with the sign of ``1/2 - u`` taken off. The notes branch on the sign of the result, which is not known yet; the
    branch belongs on ``u``. A uniform of exactly 0 would give minus infinity and is read as 2^-54 (docs/theory.md R20, R26).

    >>> inverse_cdf_laplace(np.array([0.0, 0.25, 0.5, 0.75]), 1.0).round(6)
    array([-36.736801,  -0.693147,   0.      ,   0.693147])
    """
    np.maximum(uniform, 2.0**-54, out=uniform)
    side = uniform - 0.5
    np.minimum(uniform, 1.0 - uniform, out=uniform)
    uniform *= 2.0
    np.log(uniform, out=uniform)
    uniform *= scale
    return np.copysign(uniform, side, out=uniform)


def laplace_law(answer: Floats, scale: float) -> exact.Law:
    """Law of an answer plus Laplace noise on every coordinate."""
    if answer.ndim == 0:
        return exact.Laplace(float(answer), scale)
    return exact.Product([exact.Laplace(float(entry), scale) for entry in answer])
