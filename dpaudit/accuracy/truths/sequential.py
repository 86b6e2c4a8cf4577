"""A confidence sequence for the mean of bounded draws: valid at every sample size at once, hence at any stopping time.

**Construction.** Let X_1, X_2, ... lie in [0, 1] with P(X_t given the past) of mean mu. For c in (0, 1) and m in (0, 1]

    K_t(m, c) = prod_{s <= t} (1 - c + c X_s/m)

is the wealth of a bettor who stakes the fraction c on "the mean exceeds m" at every step.

**Validity.** Every factor is non-negative, and at m = mu its conditional mean is 1 - c + c = 1. So K_t(mu, c) is a
non-negative martingale that starts at 1, and so is the average W_t(mu) over a fixed set of c. By Ville's inequality
P(there is t with W_t(mu) >= 2/alpha) <= alpha/2. W_t(m) falls in m, hence the set {m: W_t(m) < 2/alpha} is (L_t, 1] and
P(there is t with mu <= L_t) <= alpha/2. The same with 1 - X gives U_t. Together P(some t has mu outside (L_t, U_t)) <=
alpha, so the interval may be computed after every draw, with any stopping rule, and the best L and U may be kept. QED

(Waudby-Smith and Ramdas 2024 call this a hedged capital process; a mixture over fixed stakes needs no tuning and loses
a factor log(number of stakes) against the best of them.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from dpaudit._util.validation import array_within, check_count, check_interval, check_open_unit
from dpaudit.accuracy.bound import Truth
from dpaudit.accuracy.conditions import Real

STAKES = np.concatenate([np.geomspace(2.0**-13, 0.5, 25), [0.65, 0.8, 0.9, 0.97]])


class MeanConfidence:
    """Anytime-valid interval for the mean of draws in [low, high]; feed it with :meth:`update`.

    >>> rng = np.random.default_rng(1)
    >>> confidence = MeanConfidence(alpha=1e-6)
    >>> for _ in range(10):
    ...     confidence.update(rng.random(500) < 0.2)
    >>> confidence.lower < 0.2 < confidence.upper, confidence.upper - confidence.lower < 0.08
    (True, True)
    """

    def __init__(self, alpha: float, low: float = 0.0, high: float = 1.0) -> None:
        check_open_unit(alpha=alpha)
        check_interval(low=low, high=high)
        self.alpha, self.low, self.high = alpha, low, high
        self.count = 0
        self._values: list[Real] = []
        self._lower, self._upper = 0.0, 1.0

    @property
    def lower(self) -> float:
        """Largest lower bound so far."""
        return self.low + (self.high - self.low) * self._lower

    @property
    def upper(self) -> float:
        """Smallest upper bound so far."""
        return self.low + (self.high - self.low) * self._upper

    def update(self, draws: ArrayLike) -> None:
        """Add draws (each may depend on the past), and tighten the interval if possible."""
        raw = array_within("draws", np.asarray(draws, dtype=np.float64), self.low, self.high, empty=False)
        unit = (raw - self.low) / (self.high - self.low)
        self._values.append(unit)
        self.count += unit.size
        everything = np.concatenate(self._values)
        log_level = np.log(2.0 / self.alpha)
        self._lower = max(self._lower, _lower_end(everything, log_level))
        self._upper = min(self._upper, 1.0 - _lower_end(1.0 - everything, log_level))

    def truth(self) -> Truth:
        """Return the interval as the truth of a theorem, with its error probability."""
        return Truth(
            low=self.lower,
            high=self.upper,
            method="monte carlo",
            error_probability=self.alpha,
            estimate=self.low + (self.high - self.low) * float(np.concatenate(self._values).mean()),
        )


def log_wealth(x: Real, m: float) -> float:
    """Log of the average wealth of the bettors on "the mean of x exceeds m"."""
    gain = x / m - 1.0
    # Stakes stay below 1, so that no draw loses everything and every logarithm is finite.
    each = np.log1p(np.multiply.outer(STAKES, gain)).sum(axis=1)
    return float(np.logaddexp.reduce(each) - np.log(STAKES.size))


def _lower_end(x: Real, log_level: float) -> float:
    """Largest m whose wealth reaches the level: the wealth falls in m, and at the sample mean no bettor has won."""
    middle = float(x.mean())
    tiny = 1e-12
    if middle <= tiny or log_wealth(x, tiny) < log_level:
        return 0.0
    # By Jensen's inequality the log-wealth at the sample mean is at most zero, so the root is bracketed.
    root = optimize.brentq(lambda m: log_wealth(x, m) - log_level, tiny, middle, xtol=1e-10, rtol=1e-10)
    # Any m below the root is below L_t as well: step back so that rounding cannot overstate the bound.
    return max(0.0, float(root) - 1e-9)


def estimate_mean(
    draw: Callable[[int], ArrayLike],
    *,
    alpha: float,
    low: float = 0.0,
    high: float = 1.0,
    against: float | None = None,
    width: float = 0.0,
    batch: int = 256,
    most: int = 20_000,
) -> Truth:
    """Draw until the confidence interval of the mean is decisive, and return it.

    Parameters
    ----------
    draw : callable
        ``draw(size)`` returns that many draws in [low, high].
    alpha : float
        Probability that the interval misses the mean.
    low, high : float
        Range of the draws.
    against : float, optional
        Stop when the interval excludes this value.
    width : float
        Stop when the interval is narrower than this.
    batch, most : int
        Number of draws at a time, and altogether.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = estimate_mean(lambda size: rng.random(size), alpha=1e-6, against=0.4)
    >>> truth.low > 0.4
    True
    """
    check_count(batch=batch, most=most)
    confidence = MeanConfidence(alpha, low, high)
    size = batch
    while confidence.count < most:
        confidence.update(draw(min(size, most - confidence.count)))
        decided = against is not None and not confidence.lower <= against <= confidence.upper
        if decided or confidence.upper - confidence.lower <= width:
            break
        size *= 2
    return confidence.truth()
