r"""The Gaussian mechanism, calibrated by the classical formula and exactly.

The answer plus N(0, sigma^2) on every coordinate. Between answers at l2 distance ``sensitivity`` the outputs are as hard to
distinguish as N(0, 1) and N(mu, 1), ``mu = sensitivity / sigma``, so the privacy profile has a closed form
(Balle and Wang 2018): ``delta(epsilon) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from dpaudit import exact
from dpaudit._util.validation import check_choice, check_open_unit, check_positive
from dpaudit.claims import ApproxDP, GaussianDP, Relation, gaussian_delta
from dpaudit.errors import InvalidArgument

from ._common import Floats, Query, answer_of, check_draw

CALIBRATIONS = ("analytic", "classical")


@dataclass(frozen=True, slots=True)
class GaussianMechanism:
    """Answer plus Gaussian noise: a number (outputs of shape ``(size,)``) or a vector (``(size, d)``).

    ``calibration="classical"`` takes ``sigma = sensitivity sqrt(2 log(1.25/delta)) / epsilon``, proved for
    ``epsilon < 1`` (Dwork and Roth 2014, theorem A.1; notes); ``"analytic"`` the smallest sigma that keeps the claim.
    Pure epsilon-DP is out of reach: the log-ratio of two normal densities is unbounded.

    >>> round(GaussianMechanism(0.5, 1e-5).scale, 9)
    7.031826676
    >>> round(GaussianMechanism(0.5, 1e-5, calibration="classical").scale, 9)
    9.689610525
    """

    epsilon: float
    delta: float
    sensitivity: float = 1.0
    query: Query | None = None
    relation: Relation = Relation.ANSWERS
    calibration: str = "analytic"

    def __post_init__(self) -> None:
        check_choice(CALIBRATIONS, calibration=self.calibration)
        _ = self.scale

    @property
    def scale(self) -> float:
        """Standard deviation of the noise."""
        calibrate = analytic_scale if self.calibration == "analytic" else classical_scale
        return calibrate(self.epsilon, self.delta, self.sensitivity)

    @property
    def claim(self) -> ApproxDP:
        """(epsilon, delta)-DP."""
        return ApproxDP(self.epsilon, self.delta, self.relation)

    @property
    def gaussian_claim(self) -> GaussianDP:
        """The whole profile that the noise keeps: mu-Gaussian DP with ``mu = sensitivity / scale``."""
        return GaussianDP(self.sensitivity / self.scale, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy answers."""
        check_draw(size, rng)
        return add_gaussian(answer_of(self.query, data), self.scale, size, rng)

    def law(self, data: Any) -> exact.Law:
        """Normal at the answer; for a vector the product of one per coordinate."""
        return gaussian_law(answer_of(self.query, data), self.scale)


def add_gaussian(answer: Floats, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """Return ``size`` copies of ``answer``, each with fresh normal noise on every coordinate."""
    noise = rng.normal(0.0, scale, (size, *answer.shape))
    noise += answer
    return noise


def gaussian_law(answer: Floats, scale: float) -> exact.Law:
    """Law of an answer plus normal noise on every coordinate."""
    if answer.ndim == 0:
        return exact.Gaussian(float(answer), scale)
    return exact.Product([exact.Gaussian(float(entry), scale) for entry in answer])


def classical_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation by the textbook formula, which holds for ``0 < epsilon < 1`` only.

    Parameters
    ----------
    epsilon, delta : float
        The claim to keep.
    sensitivity : float
        Largest change of the answer in the l2 norm.

    Examples
    --------
    >>> round(classical_scale(0.5, 1e-5), 12)
    9.689610525211
    """
    check_positive(epsilon=epsilon, sensitivity=sensitivity)
    check_open_unit(delta=delta)
    if epsilon >= 1.0:
        raise InvalidArgument(
            f"epsilon={epsilon!r} must be below 1 for the classical Gaussian calibration; use calibration='analytic'."
        )
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def analytic_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest standard deviation whose exact profile is at most ``delta`` at ``epsilon`` (Balle and Wang 2018).

    delta(epsilon) falls as sigma grows, so the root in ``log sigma`` is unique; the result is rounded up by 1e-12,
    towards privacy.

    Parameters
    ----------
    epsilon, delta : float
        The claim to keep.
    sensitivity : float
        Largest change of the answer in the l2 norm.

    Examples
    --------
    >>> round(analytic_scale(0.5, 1e-5), 10)
    7.0318266756
    """
    check_positive(epsilon=epsilon, sensitivity=sensitivity)
    check_open_unit(delta=delta)

    def excess(log_scale: float) -> float:
        profile = float(gaussian_delta(epsilon, math.exp(-log_scale)))
        return (math.log(profile) if profile > 0.0 else -800.0) - math.log(delta)

    low, high = -1.0, 1.0
    while excess(low) <= 0.0:
        low -= 1.0
    while excess(high) > 0.0:
        high += 1.0
    return sensitivity * math.exp(float(brentq(excess, low, high, xtol=1e-14, rtol=1e-15))) * (1.0 + 1e-12)
