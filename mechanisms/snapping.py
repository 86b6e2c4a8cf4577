r"""The snapping mechanism (Mironov 2012): Laplace noise whose low bits are rounded away.

    output = clamp_B( round_L( clamp_B(answer) + scale * S * log U ) ),

with a random sign S, a uniform U that has 53 significant bits wherever in (0, 1) it falls, L the smallest power of two
from ``scale`` on, and round_L the nearest multiple of L. Additions and products are those of doubles.

Mironov proves (1 + 12 B eta) / scale + 2 eta, eta = 2^-53, for sensitivity 1 and a logarithm that is rounded correctly.
numpy's is not promised to be, so the epsilon claimed here rests on a proof that needs less.

Assumption (A): doubles follow IEEE 754, and ``numpy.log`` on [1, 2) errs by at most 2^-51 (four units in the last place).

Rounding moves the noise little. The draw is ``E' = k log 2 - log m``, for a geometric k and a mantissa m in [1, 2) that
cuts a uniform real U after 53 bits, so -log U = E is exponential, and E' = E up to 2^-52 from the cut, 2^-51 from log m,
2^-52 k log 2 from the product and 2^-53 E' from the difference: |E' - E| <= 2^-51 E + 2^-49. With the product by the
scale, the noise w' = scale S E' that is added differs from a real Laplace w by at most 2^-50 |w| + 2^-48 scale.

Each output is an interval of noise. Rounding to L and clamping are monotone and exact, so an output is the event that
``fl(answer + w')`` lies in an interval I: of length L >= scale with ends of size at most B + L, or a half-line with such
an end. Where |answer| <= B, the three errors move an end of {w : answer + w in I} by at most

    tau = 2^-53 (B + L) + 2^-50 (2 B + 2 L) + 2^-48 scale <= 2^-48 (B + 3 scale)                  (as L < 2 scale),

so the event lies between the shifted interval widened by tau and the same one narrowed by tau at each end.

Ratio. The log-density of w is Lipschitz with constant 1 / scale. Moving the answer by at most the sensitivity costs
``sensitivity / scale``. Stretching the narrowed interval (length L - 2 tau) linearly onto the widened one (L + 2 tau)
moves no point by more than 2 tau, hence costs at most ``2 tau / scale + log((L + 2 tau) / (L - 2 tau))``, which is below
``7 tau / scale``; for a half-line it is ``2 tau / scale``. Together

    epsilon <= sensitivity / scale + 2^-45 (B / scale + 3),                                                      (*)

and ``scale`` is chosen so that the right side is the epsilon claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import check_count, check_generator, check_positive
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import Floats, Query, answer_of, check_draw

ERROR = 2.0**-45  # relative error allowed for in (*)


@dataclass(frozen=True, slots=True)
class SnappingMechanism:
    """One number, clamped to [-bound, bound], plus Laplace noise rounded to a power of two; pure DP in doubles.

    Parameters
    ----------
    epsilon : float
        What is claimed and proved, rounding included; at least 1e-9.
    bound : float
        B: answers and outputs are clamped to [-bound, bound]. At least the scale, at most 2^30 times it.
    sensitivity : float
        Largest distance of the answers on two neighbouring data sets.

    >>> mechanism = SnappingMechanism(epsilon=1.0, bound=1024.0)
    >>> mechanism.step, mechanism.scale - 1.0 < 1e-10
    (2.0, True)
    >>> outputs = mechanism.sample(0.3, 1000, np.random.default_rng(0))
    >>> bool((outputs % 2.0 == 0.0).all())
    True
    """

    epsilon: float
    bound: float = 1024.0
    sensitivity: float = 1.0
    query: Query | None = None
    relation: Relation = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, bound=self.bound, sensitivity=self.sensitivity)
        if self.epsilon < 1e-9:
            raise InvalidArgument(f"epsilon={self.epsilon!r} must be at least 1e-9; below, rounding uses it up.")
        if not self.scale <= self.bound <= 2.0**30 * self.scale:
            raise InvalidArgument(
                f"bound={self.bound!r} must lie between the scale of the noise, {self.scale:.4g}, and 2^30 times it."
            )

    @property
    def scale(self) -> float:
        """Scale of the noise: the solution of (*), which is a little above ``sensitivity / epsilon``."""
        solution = (self.sensitivity + ERROR * self.bound) / (self.epsilon - 3.0 * ERROR)
        return solution * (1.0 + 2.0**-50)  # rounding of this very formula

    @property
    def step(self) -> float:
        """L: outputs inside the bound are its multiples."""
        mantissa, exponent = math.frexp(self.scale)
        return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)

    @property
    def claim(self) -> PureDP:
        """epsilon-DP of the running code, and not much less: ``sensitivity / scale`` is reached by the real law."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers."""
        check_draw(size, rng)
        answer = self._answer(data)
        noise = full_precision_exponential((size, *answer.shape), rng)
        noise *= self.scale
        noise = np.where(rng.integers(0, 2, noise.shape, dtype=np.int8) == 0, noise, -noise)
        noise += answer
        noise /= self.step
        np.round(noise, out=noise)
        noise += 0.0  # one zero, not two: the sign of zero would reveal on which side the noisy answer lay
        noise *= self.step
        return np.clip(noise, -self.bound, self.bound, out=noise)

    def law(self, data: Any) -> exact.Law:
        """The law with real-valued noise; by the proof the code's masses are within a factor ``exp(7 tau / scale)``."""
        answer = float(self._answer(data).reshape(-1)[0])
        snapped = exact.Rounded(exact.Laplace(answer, self.scale), self.step)
        return exact.Clipped(snapped, -self.bound, self.bound)

    def _answer(self, data: Any) -> Floats:
        answer = answer_of(self.query, data)
        if answer.size != 1:
            raise InvalidArgument(f"The answer must be one number; its shape is {answer.shape}. Snap entry by entry.")
        return np.clip(answer, -self.bound, self.bound)


def full_precision_exponential(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Exponential draws ``-log U``, U with 53 significant bits at every magnitude (Mironov 2012, section 5.2).

    ``U = m 2^-k``: k counts the tosses up to the first head, in words of 64 tosses, and m has 52 random bits after its
    leading one.

    >>> bool((full_precision_exponential((1000,), np.random.default_rng(0)) > 0.0).all())
    True
    """
    check_generator(rng=rng)
    check_count(minimum=0, size=math.prod(shape))
    tosses = rng.integers(0, 2**64 - 1, shape, dtype=np.uint64, endpoint=True)
    exponent = np.ones(shape)
    while (tails := tosses == 0).any():  # once in 2^64 words
        exponent[tails] += 64.0
        tosses[tails] = rng.integers(0, 2**64 - 1, int(tails.sum()), dtype=np.uint64, endpoint=True)
    # The lowest set bit is a power of two, and exact as a double.
    lowest = tosses & (~tosses + np.uint64(1))
    exponent += np.log2(lowest.astype(np.float64))
    mantissa = 1.0 + rng.integers(0, 2**52, shape, dtype=np.int64) * 2.0**-52
    return np.asarray(exponent * math.log(2.0) - np.log(mantissa))
