r"""Discrete Laplace noise on the dyadic grid 2^-bits Z: what to use instead of Laplace noise in doubles.

The answer is rounded to the grid, and a whole number of steps is added, whose mass falls by ``exp(-epsilon / m)`` a step,
where the answer moves by at most m steps. All that is released is an integer; times 2^-bits it is a double, exactly, as
long as it has at most 53 bits, so its low bits say nothing about the answer (Mironov 2012; Balcer and Vadhan 2018).

Rounding costs nothing where the sensitivity is a multiple of the step: rounding half up, ``r(x) = floor(x + 1/2)`` in
steps, is monotone and commutes with whole shifts, so |x - y| <= m implies |r(x) - r(y)| <= m. Otherwise m is the
sensitivity in steps, rounded up. Then the log-masses at two neighbouring answers differ by at most
``(epsilon / m) |r(x) - r(y)| <= epsilon``, with equality beyond both of them.

Limits. numpy draws geometric variables through doubles: the *masses* are right to about 1e-15 relative where they are
not negligible, and masses below 1e-16 may be missing; the *support* does not depend on the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import check_count, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import Floats, Query, answer_of, check_draw

LARGEST = 2**52  # steps, of answers: with the noise they stay within 53 bits


@dataclass(frozen=True, slots=True)
class DyadicLaplaceLaw:
    """The two-sided geometric law on multiples of ``2^-bits``; location and scale are counted in steps.

    >>> law = DyadicLaplaceLaw(location=0, scale=4.0, bits=2)
    >>> law.log_prob([0.0, 0.25, 0.1]).round(6).tolist()
    [-2.084631, -2.334631, -inf]
    """

    location: int
    scale: float
    bits: int

    def form(self) -> exact.Form:
        """The integer law, on a finer grid."""
        whole = exact.DiscreteLaplace(self.location, self.scale).form().lattice
        assert whole is not None
        step = math.ldexp(1.0, -self.bits)
        left, right = (tail and replace(tail, linear=tail.linear / step) for tail in whole.tails)
        return exact.Form(lattice=replace(whole, step=step, tails=(left, right)))

    def log_prob(self, outputs: Any) -> Floats:
        """Log-mass of each output; minus infinity off the grid."""
        return self.form().log_prob(outputs)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` independent draws."""
        steps = exact.DiscreteLaplace(self.location, self.scale).sample(size, rng).astype(np.float64)
        return np.asarray(np.ldexp(steps, -self.bits))


@dataclass(frozen=True, slots=True)
class DyadicLaplaceMechanism:
    """An answer rounded to multiples of ``2^-bits``, plus two-sided geometric noise in such steps.

    Parameters
    ----------
    epsilon : float
        What is claimed, exactly reached where the sensitivity is a multiple of the step.
    bits : int
        Binary digits after the point.
    sensitivity : float
        Largest l1 distance of the answers on two neighbouring data sets.
    query : callable, optional
        Turns the data into the answer. A vector must lie on the grid already: rounding each of its entries could move its
        l1 distance by a step per entry, so the query has to do it, and the sensitivity be that of the rounded vector.

    >>> mechanism = DyadicLaplaceMechanism(epsilon=1.0, bits=10)
    >>> outputs = mechanism.sample(0.3, 1000, np.random.default_rng(0))
    >>> bool((outputs * 1024 % 1 == 0).all())
    True
    """

    epsilon: float
    bits: int = 10
    sensitivity: float = 1.0
    query: Query | None = None
    relation: Relation = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        check_count(minimum=0, bits=self.bits)
        if self.bits > 1000 or self.scale_in_steps > 2.0**40:
            raise InvalidArgument(
                f"bits={self.bits!r} makes steps too small for the noise to fit into 53 bits; use fewer bits, "
                f"such as {min(self.bits, 10)} or less, or a larger epsilon."
            )

    @property
    def step(self) -> float:
        """Distance of the grid points."""
        return math.ldexp(1.0, -self.bits)

    @property
    def sensitivity_in_steps(self) -> int:
        """The m of the proof: the sensitivity in steps, rounded up."""
        return math.ceil(math.ldexp(self.sensitivity, self.bits))

    @property
    def scale_in_steps(self) -> float:
        """Scale of the noise, in steps."""
        return self.sensitivity_in_steps / self.epsilon

    @property
    def claim(self) -> PureDP:
        """epsilon-DP."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers."""
        check_draw(size, rng)
        answer = self._steps(data)
        stop = -math.expm1(-1.0 / self.scale_in_steps)
        noise = rng.geometric(stop, (size, *answer.shape))
        noise -= rng.geometric(stop, noise.shape)
        noise += answer
        return np.ldexp(noise.astype(np.float64), -self.bits)

    def law(self, data: Any) -> exact.Law:
        """The two-sided geometric law on the grid; for a vector the product of one per coordinate."""
        answer = self._steps(data)
        if answer.ndim == 0:
            return DyadicLaplaceLaw(int(answer), self.scale_in_steps, self.bits)
        return exact.Product([DyadicLaplaceLaw(int(entry), self.scale_in_steps, self.bits) for entry in answer])

    def _steps(self, data: Any) -> NDArray[np.int64]:
        """The answer in steps, rounded half up."""
        scaled = np.ldexp(answer_of(self.query, data), self.bits)
        if (np.abs(scaled) > LARGEST).any():
            raise InvalidArgument(
                f"The answer is {float(np.abs(scaled).max()):.4g} steps of 2^-{self.bits} from zero; at most 2^52 are "
                "allowed. Use fewer bits, or clamp the answer."
            )
        whole = np.floor(scaled)
        # The fraction is compared, not the sum x + 1/2 formed: that would round.
        if scaled.size > 1 and (scaled != whole).any():
            raise InvalidArgument(
                f"A vector of answers must lie on multiples of 2^-{self.bits}: rounding entry by entry would change its l1 "
                "sensitivity. Round inside the query and state the sensitivity of the rounded vector."
            )
        steps: NDArray[np.int64] = (whole + (scaled - whole >= 0.5)).astype(np.int64)
        return steps
