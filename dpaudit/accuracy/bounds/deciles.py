"""Private deciles with high probability (report, section 2.2.3, 2.2.4 and appendix A; docs/theory.md R7 to R11).

HistogramMethod with k steps on [a, b] spends epsilon/9 on each decile: AboveThreshold over the counts #{x < a + j h},
h = (b - a)/k, with threshold i n/10. The output is the left edge a + (J - 1) h of the bin whose right edge stopped it,
and b if nothing did. All calculators take numbers or arrays, and any quantile level in place of i/10.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpaudit._util.validation import check_choice, check_count
from dpaudit.accuracy.bound import Bound, Sense, Variant
from dpaudit.accuracy.bounds import above_threshold
from dpaudit.accuracy.conditions import Real, check, plain
from dpaudit.accuracy.distributions.data_law import UNIFORM, DataLaw
from dpaudit.accuracy.distributions.order_statistics import above, as_fraction, below, binomial_at_most, rank

DECILES = 9
ETA_VARIANTS = (Variant.LITERAL, Variant.PROOF, Variant.CORRECTED)
MU_VARIANTS = (Variant.LITERAL, Variant.PRINTED, Variant.CORRECTED, Variant.EXACT)
WITHIN_VARIANTS = (
    Variant.LITERAL,
    Variant.PROOF,
    Variant.SEMI_REPAIRED,
    Variant.SEMI_WIDENED,
    Variant.CORRECTED_72,
    Variant.CORRECTED_36,
    Variant.SHARP,
)
PROVED = (Variant.CORRECTED_72, Variant.CORRECTED_36, Variant.SHARP)
WIDENED = (Variant.SEMI_WIDENED, Variant.CORRECTED_72, Variant.CORRECTED_36, Variant.SHARP)


def histogram_alpha(
    steps: ArrayLike, beta: ArrayLike, epsilon: ArrayLike, variant: Variant, releases: int = DECILES
) -> Any:
    """Number of records by which AboveThreshold may be wrong, for one of ``releases`` quantiles that share ``epsilon``.

    The printed proofs use 8 (log k + log(2/beta))/epsilon although every call has epsilon/9 (docs/theory.md R7). The
    correct value is 9 times that (72 log(2k/beta)/epsilon) or, by the sharper tail of docs/theory.md R4,
    36 log(2k/(3 beta))/epsilon. ``monotone-noise`` is Lap(2/epsilon) on both threshold and queries (docs/theory.md R5).

    Parameters
    ----------
    steps, beta, epsilon : array_like
        Number of bins, failure probability, privacy budget.
    variant : Variant
        The form of the theorem.
    releases : int
        Number of quantiles that share ``epsilon``.

    Examples
    --------
    >>> round(histogram_alpha(50, 0.05, 20.0, Variant.CORRECTED_36), 12)
    11.704122307573
    """
    check_count(releases=releases)
    share = np.asarray(epsilon, float) / releases
    if variant is Variant.CORRECTED_72:
        return above_threshold.alpha(steps, beta, share, Variant.PRINTED)
    if variant in (Variant.CORRECTED_36, Variant.SHARP):
        return above_threshold.alpha(steps, beta, share, Variant.TIGHT)
    if variant is Variant.MONOTONE_NOISE:
        return above_threshold.improved_alpha(steps, beta, share)
    return above_threshold.alpha(steps, beta, epsilon, Variant.PRINTED)


def eta(
    n: ArrayLike,
    quantile: float | Fraction,
    gamma: ArrayLike,
    variant: Variant = Variant.CORRECTED,
    law: DataLaw = UNIFORM,
) -> Any:
    """Probability that the empirical quantile misses [d - gamma/2, d + gamma/2] (report, lemmas 2.2.3.1 and 2.2.4.2).

    With S1 = P(Bin(n, F(d + gamma/2)) <= q n) and S2 = P(Bin(n, 1 - F(d - gamma/2)) <= (1 - q) n):

    * ``literal``: 2 - S1 + S2. Never below 1, so that "P >= 1 - eta" says nothing. For the normal law the report's
      gamma is missing too: the limits of the integrals are d itself.
    * ``proof``: 2 - S1 - S2, what the display in the proof gives. Wrong: the events in it are the complements of those
      it names. At n = 10, i = 9, gamma = 0 it claims P(d_9 = 0.9) >= 0.387 for a continuous law.
    * ``corrected``: exact. The empirical quantile is X_(r), r = ceil(q n), and X_(r) > u means Bin(n, F(u)) <= r - 1,
      X_(r) < l means Bin(n, 1 - F(l)) <= n - r (docs/theory.md R8).

    Parameters
    ----------
    n : array_like
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    gamma : array_like
        Half width of the interval around the quantile.
    variant : Variant
        The form of the theorem.
    law : DataLaw
        Distribution of one record.

    Examples
    --------
    >>> round(eta(100, 0.5, 0.1), 12), eta(100, 0.5, 0.1, Variant.LITERAL)
    (0.317304397874, 2.0)
    """
    check_choice(ETA_VARIANTS, variant=variant)
    level = as_fraction(quantile)
    check(n=n, gamma=gamma)
    n_real, half = np.asarray(n, float), 0.5 * np.asarray(gamma, float)
    d = law.quantile(level)
    if variant is not Variant.CORRECTED and law is not UNIFORM:
        half = np.zeros_like(half)
    right, left = law.probability_below(d + half), law.probability_below(d - half)
    if variant is Variant.CORRECTED:
        r = np.asarray(rank(n, level), float)
        return plain(above(right, r, n_real) + below(left, r, n_real))
    whole = np.asarray(n, dtype=np.int64)
    s1 = binomial_at_most(whole * level.numerator // level.denominator, n_real, right)
    s2 = binomial_at_most(whole * (level.denominator - level.numerator) // level.denominator, n_real, 1.0 - left)
    return plain(2.0 - s1 + s2 if variant is Variant.LITERAL else 2.0 - s1 - s2)


def flanks(quantile: float | Fraction, gamma: ArrayLike, law: DataLaw = UNIFORM) -> tuple[Real, Real]:
    """Probability of [d - gamma, d - gamma/2] and of [d + gamma/2, d + gamma] under the law of one record.

    Parameters
    ----------
    quantile : float or Fraction
        Level of the quantile.
    gamma : array_like
        Half width of the interval around the quantile.
    law : DataLaw
        Distribution of one record.
    """
    d, width = law.quantile(quantile), np.asarray(gamma, float)
    cdf = law.probability_below
    return cdf(d - 0.5 * width) - cdf(d - width), cdf(d + width) - cdf(d + 0.5 * width)


def mu(
    n: ArrayLike,
    quantile: float | Fraction,
    gamma: ArrayLike,
    alpha: ArrayLike,
    variant: Variant = Variant.CORRECTED,
    law: DataLaw = UNIFORM,
) -> Any:
    """Probability that fewer than ``alpha`` records lie in one of the two flanks (report, lemmas 2.2.3.2 and 2.2.4.3).

    * ``printed``: sum over k <= alpha of both binomials. A union bound; for whole alpha it has one term too many, and
      stays valid (docs/theory.md R9).
    * ``literal``: the normal case as it stands in the main text, where the integrals run from d - gamma/2 to d -
      gamma/2 and from d + gamma/2 to d + gamma/2 (both zero): (1 - p_left)^n + 1, never below 1. The same as
      ``printed`` for the uniform law.
    * ``corrected``: the union bound with k <= ceil(alpha) - 1.
    * ``exact``: no union bound. The two counts are trinomial: given a records on the left, the right count is
      Bin(n - a, p_right/(1 - p_left)).

    Parameters
    ----------
    n : array_like
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    gamma : array_like
        Half width of the interval around the quantile.
    alpha : array_like
        Number of records by which AboveThreshold may be wrong.
    variant : Variant
        The form of the theorem.
    law : DataLaw
        Distribution of one record.

    Examples
    --------
    >>> round(1.0 - mu(100, 0.5, 0.1, 3, Variant.EXACT), 12)
    0.775790597462
    """
    check_choice(MU_VARIANTS, variant=variant)
    check(n=n, gamma=gamma, alpha=alpha)
    left, right = flanks(quantile, gamma, law)
    n_real, needed = np.asarray(n, float), np.asarray(alpha, float)
    if variant is Variant.LITERAL and law is not UNIFORM:
        return plain(np.exp(n_real * np.log1p(-left)) + 1.0)
    if variant is Variant.EXACT:
        return plain(np.vectorize(_flank_failure, otypes=[float])(n_real, left, right, np.ceil(needed)))
    last = np.ceil(needed) - 1.0 if variant is Variant.CORRECTED else np.floor(needed)
    return plain(binomial_at_most(last, n_real, left) + binomial_at_most(last, n_real, right))


def _flank_failure(n: float, left: float, right: float, needed: float) -> float:
    """1 - P(both flanks hold at least ``needed`` of the n records), summed over the left count."""
    from scipy import stats

    if needed <= 0:
        return 0.0
    counts = np.arange(needed, n + 1)
    share = right / (1.0 - left) if left < 1.0 else 0.0
    # Failure on the left, plus success on the left with failure on the right: no cancellation when both are rare.
    right_fails = stats.binom.pmf(counts, n, left) * binomial_at_most(needed - 1.0, n - counts, share)
    return float(binomial_at_most(needed - 1.0, n, left) + np.sum(right_fails))


def sharp_ranks(n: ArrayLike, quantile: float | Fraction, alpha: ArrayLike) -> tuple[Any, Any]:
    """Ranks r_- = floor(q n - alpha) + 1 and r_+ = ceil(q n + alpha) that enclose the output (docs/theory.md R10).

    On the good event of AboveThreshold X_(r_-) - h < A <= X_(r_+).

    Since #{x < a + J h} > q n - alpha puts X_(r_-) below a + J h, and #{x < a + (J - 1) h} < q n + alpha leaves
    X_(r_+) at or above the output. q n is formed from integers, so that a whole q n is whole.

    Parameters
    ----------
    n : array_like
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    alpha : array_like
        Number of records by which AboveThreshold may be wrong.

    Examples
    --------
    >>> sharp_ranks(10_000, 0.5, 1073.8343362692908)
    (3927, 6074)
    """
    level = as_fraction(quantile)
    check(n=n, alpha=alpha)
    target, needed = centre(n, level), np.asarray(alpha, float)
    lower = np.floor(target - needed).astype(np.int64) + 1
    upper = np.ceil(target + needed).astype(np.int64)
    return plain(lower), plain(upper)


def centre(n: ArrayLike, quantile: float | Fraction) -> Real:
    """The threshold q n of AboveThreshold, computed in integers if it is whole."""
    level = as_fraction(quantile)
    quotient, remainder = np.divmod(np.asarray(n, dtype=np.int64) * level.numerator, level.denominator)
    return np.asarray(quotient + remainder / level.denominator, dtype=np.float64)


def within(
    *,
    n: ArrayLike,
    steps: ArrayLike,
    quantile: float | Fraction,
    gamma: ArrayLike,
    beta: ArrayLike,
    epsilon: ArrayLike,
    variant: Variant,
    law: DataLaw = UNIFORM,
    releases: int = DECILES,
) -> Any:
    """Lower bound on the probability that a private quantile is within gamma of the true one (report, theorem 2.2.3.1).

    ``literal``, ``proof`` and ``semi-repaired`` are about [d - gamma, d + gamma], the others about [d - gamma - h, d + gamma],
    because the output is a left edge (docs/theory.md R10). The variants:

    * ``literal`` and ``proof``: 1 - beta - eta - mu with the eta of that name: vacuous.
    * ``semi-repaired``: the corrected eta with alpha = 8 log(2k/beta)/epsilon, as a reader would implement it. False for
      two reasons: it ignores the discretisation, and alpha ignores that AboveThreshold has epsilon/9.
      ``semi-repaired-widened`` allows for the discretisation, and is false for the second reason alone.
    * ``corrected-72``, ``corrected-36``: alpha repaired (:func:`histogram_alpha`). Proof: on the good event of
      AboveThreshold the stopping index J has #{x < a + J h} > q n - alpha and #{x < a + (J-1) h} < q n + alpha. If a +
      J h < d - gamma, then #{x < a + J h} <= #{x < d - gamma/2} - alpha <= r - 1 - alpha < q n - alpha, a
      contradiction; if a + (J-1) h > d + gamma, then #{x < a + (J-1) h} >= #{x <= d + gamma/2} + alpha >= r + alpha, a
      contradiction; and "none" would need #{x < b} < q n + alpha, excluded likewise when d + gamma <= b. If d + gamma
      < a the first bin already is too high; hence the hypothesis a <= d + gamma <= b. QED
    * ``sharp``: 1 - beta - P(X_(r_-) < d - gamma) - P(X_(r_+) > d + gamma) with :func:`sharp_ranks`. It dominates the
      corrected ones, since {X_(r_-) < d - gamma} lies in {X_(r) < d - gamma/2} or {left flank below alpha}, and so on.

    Parameters
    ----------
    n, steps, gamma, beta, epsilon
        Number of records, number of bins, half width of the interval, failure probability, and budget; or arrays of them.
    quantile : float or Fraction
        Level of the quantile.
    variant : Variant
        One of ``WITHIN_VARIANTS``.
    law : DataLaw
        Distribution of one record.
    releases : int
        Number of quantiles that share ``epsilon``.

    Examples
    --------
    >>> round(within(n=1000, steps=50, quantile=0.5, gamma=0.05, beta=0.05, epsilon=20.0, variant=Variant.SHARP), 12)
    0.935433279205
    """
    check_choice(WITHIN_VARIANTS, variant=variant)
    check(n=n, steps=steps, gamma=gamma, beta=beta, epsilon=epsilon)
    allowed = histogram_alpha(steps, beta, epsilon, variant, releases)
    b = np.asarray(beta, float)
    if variant is Variant.SHARP:
        lower, upper = sharp_ranks(n, quantile, allowed)
        d, width = law.quantile(quantile), np.asarray(gamma, float)
        low_side = below(law.probability_below(d - width), lower, n)
        high_side = above(law.probability_below(d + width), upper, n)
        return plain(1.0 - b - low_side - high_side)
    if variant in (Variant.LITERAL, Variant.PROOF):
        flank = mu(n, quantile, gamma, allowed, Variant.LITERAL if variant is Variant.LITERAL else Variant.PRINTED, law)
        return plain(1.0 - b - np.asarray(eta(n, quantile, gamma, variant, law)) - np.asarray(flank))
    flank = mu(n, quantile, gamma, allowed, Variant.CORRECTED, law)
    return plain(1.0 - b - np.asarray(eta(n, quantile, gamma, Variant.CORRECTED, law)) - np.asarray(flank))


def within_bound(
    *,
    n: int,
    steps: int,
    quantile: float | Fraction,
    gamma: float,
    beta: float,
    epsilon: float,
    variant: Variant,
    law: DataLaw = UNIFORM,
    low: float | None = None,
    high: float | None = None,
    releases: int = DECILES,
) -> Bound:
    """Return :func:`within` as a :class:`~dpaudit.accuracy.Bound`, with the hypotheses that these parameters violate.

    The printed forms have the hypotheses of the report, gamma <= 0.1 on [0, 1]; the corrected and sharp ones need
    a <= d + gamma <= b only.

    Parameters
    ----------
    n, steps, quantile, gamma, beta, epsilon, variant, law, releases
        As for :func:`within`.
    low, high : float, optional
        Range [a, b] of the mechanism; by default that of the law.

    Examples
    --------
    >>> within_bound(n=100, steps=10, quantile=0.5, gamma=0.05, beta=0.05, epsilon=1.0, variant=Variant.LITERAL).vacuous
    True
    """
    low, high = law.low if low is None else low, law.high if high is None else high
    value = float(
        within(
            n=n,
            steps=steps,
            quantile=quantile,
            gamma=gamma,
            beta=beta,
            epsilon=epsilon,
            variant=variant,
            law=law,
            releases=releases,
        )
    )
    d = law.quantile(quantile)
    unmet = []
    if law is UNIFORM and variant not in PROVED and gamma > 0.1 + 1e-12:
        unmet.append(f"gamma in [0, 0.1] (gamma={gamma!r})")
    if law is UNIFORM and variant not in PROVED and (low, high) != (0.0, 1.0):
        unmet.append(f"a = 0 and b = 1 for the uniform law (a={low!r}, b={high!r})")
    if not low <= d + gamma <= high:
        unmet.append(f"a <= d + gamma <= b (a={low!r}, d + gamma={d + gamma!r}, b={high!r})")
    needed = float(histogram_alpha(steps, beta, epsilon, variant, releases))
    widened = " - (b - a)/k" if variant in WIDENED else ""
    return Bound(
        value=value,
        variant=variant,
        theorem="report, theorem 2.2.3.1" if law is UNIFORM else "report, theorem 2.2.4.1",
        sense=Sense.AT_LEAST,
        quantity=f"P(d - gamma{widened} <= A <= d + gamma)",
        unmet=tuple(unmet),
        terms={"alpha": needed, "d": d},
    )


def normal_decile(i: ArrayLike) -> Any:
    """d_i = sqrt(2) erfinv(0.2 i - 1), the deciles of N(0, 1) (report, lemma 2.2.4.1: right).

    >>> round(normal_decile(1), 12)
    -1.281551565545
    """
    check(i=i)
    return plain(special.ndtri(np.asarray(i, float) / 10.0))
