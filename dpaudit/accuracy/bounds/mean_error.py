"""Mean error of private quantiles (slides, "Analyse de precision" 3/5 to 5/5; docs/theory.md R13 to R15).

HistogramMethod as in :mod:`dpaudit.accuracy.bounds.deciles`, on n independent records; the default is steps = ceil(1.5
n/log n). A run that finds nothing returns b.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpaudit._util.validation import check_choice
from dpaudit.accuracy.bound import Bound, Sense, Variant
from dpaudit.accuracy.bounds.above_threshold import panels
from dpaudit.accuracy.bounds.deciles import DECILES, centre, histogram_alpha, sharp_ranks
from dpaudit.accuracy.conditions import Real, check, plain
from dpaudit.accuracy.distributions.data_law import DataLaw
from dpaudit.accuracy.distributions.order_statistics import above, as_fraction, below, mean_above, mean_below

PRINTED_VARIANTS = (Variant.PRINTED, Variant.ALPHA_REPAIRED)
CORRECTED_VARIANTS = (Variant.CORRECTED_72, Variant.CORRECTED_36, Variant.MONOTONE_NOISE)


def slides_steps(n: ArrayLike) -> Any:
    """Default number of steps, ceil(1.5 n/log n): the slides' 1.5 n/log n is not a whole number (docs/theory.md R6).

    >>> slides_steps(1000)
    218
    """
    check(n_slides=n)
    size = np.asarray(n, float)
    return plain(np.ceil(1.5 * size / np.log(size)).astype(np.int64))


def slides_beta(n: ArrayLike) -> Any:
    """The corollary's choice beta = 1/(sqrt(n) log n), which is below one from n = 3 on."""
    check(n_closed=n)
    size = np.asarray(n, float)
    return plain(1.0 / (np.sqrt(size) * np.log(size)))


def slides_alpha(n: ArrayLike, epsilon: ArrayLike, beta: ArrayLike | None = None) -> Any:
    """Return the slides' alpha: 8 log(3 n sqrt n)/epsilon, or 8 log(3n/(beta log n))/epsilon if ``beta`` is given.

    Both are 8 log(2k/beta)/epsilon at k = 1.5 n/log n; the first has beta = 1/(sqrt(n) log n) built in, and theorem
    3/5 uses it although its beta is free (docs/theory.md R13).

    Parameters
    ----------
    n, epsilon : array_like
        Number of records, privacy budget.
    beta : array_like, optional
        Failure probability.
    """
    check(n_slides=n, epsilon=epsilon)
    size = np.asarray(n, float)
    if beta is None:
        return plain(8.0 * (math.log(3.0) + 1.5 * np.log(size)) / np.asarray(epsilon, float))
    check(beta=beta)
    return plain(8.0 * np.log(3.0 * size / (np.asarray(beta, float) * np.log(size))) / np.asarray(epsilon, float))


def printed_mean_error(
    n: ArrayLike, quantile: float | Fraction, epsilon: ArrayLike, beta: ArrayLike, variant: Variant = Variant.PRINTED
) -> Any:
    """Right-hand side of the slides' theorem 3/5 (and, at :func:`slides_beta`, of corollary 4/5); NaN where undefined.

    With r = ceil(q n + alpha) and s = floor(q n - alpha), its two integrals are E min(X_(r) - d, d)_+ and E(d -
    X_(s))_+, in closed form (I_x is read as 1 beyond x = 1). ``alpha-repaired`` takes the alpha that the proof needs
    for a free beta. Both ignore that each call has epsilon/9, and are false for large n (docs/theory.md R13).

    Parameters
    ----------
    n : array_like
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    epsilon, beta : array_like
        Privacy budget, failure probability.
    variant : Variant
        The form of the theorem.

    Examples
    --------
    >>> round(printed_mean_error(10**7, 0.5, 1.538742265e-4, 0.01, Variant.ALPHA_REPAIRED), 6)
    0.213001
    """
    check_choice(PRINTED_VARIANTS, variant=variant)
    check(n_slides=n, epsilon=epsilon, beta=beta)
    size, b = np.asarray(n, float), np.asarray(beta, float)
    d = float(as_fraction(quantile))
    allowed = slides_alpha(n, epsilon, None if variant is Variant.PRINTED else beta)
    target = centre(n, quantile)
    upper, lower = np.ceil(target + allowed), np.floor(target - allowed)
    reach = min(d, 1.0 - d)
    over = np.asarray(mean_above(d, upper, size)) - np.asarray(mean_above(d + reach, upper, size))
    under = np.asarray(mean_below(d, lower, size))
    tails = below(d - 0.1, lower, size) + above(d + 0.1, upper, size)
    value = over + under + b + tails + 2.0 * np.log(size) / (3.0 * size) + d * b
    return plain(np.where((lower >= 1) & (upper <= size), value, np.nan))


def printed_mean_error_bound(
    *, n: int, quantile: float | Fraction, epsilon: float, beta: float | None = None, variant: Variant = Variant.PRINTED
) -> Bound:
    """:func:`printed_mean_error` with its hypotheses; without ``beta`` the corollary 4/5.

    Parameters
    ----------
    n : int
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    epsilon : float
        Privacy budget.
    beta : float, optional
        Failure probability.
    variant : Variant
        The form of the theorem.
    """
    corollary = beta is None
    chosen = float(slides_beta(n)) if beta is None else beta
    value = float(printed_mean_error(n, quantile, epsilon, chosen, variant))
    condition = float(slides_alpha(n, epsilon, None if corollary else chosen))
    used = float(slides_alpha(n, epsilon, None if variant is Variant.PRINTED else chosen))
    unmet = _alpha_hypothesis(condition, n)
    if math.isnan(value):
        unmet += (f"1 <= floor(q n - alpha) and ceil(q n + alpha) <= n (alpha={used!r}, n={n})",)
    return _mean_bound(
        value,
        variant,
        "slides, corollary 4/5" if corollary else "slides, theorem 3/5",
        quantile,
        1 / slides_steps(n),
        unmet,
        {"alpha": used, "beta": chosen},
    )


def printed_closed_form(n: ArrayLike, quantile: float | Fraction, epsilon: ArrayLike) -> Any:
    """Right-hand side of the slides' closed form 5/5, which is false for two reasons (docs/theory.md R14).

    2 alpha/n = (16/(n epsilon)) (log 3 + 1.5 log n) was split into the product (16/epsilon) log(3) log(n)/n, which is
    too small by a factor of about 1.4 to 1.5, and it ignores that each call has epsilon/9.

    Parameters
    ----------
    n : array_like
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    epsilon : array_like
        Privacy budget.

    Examples
    --------
    >>> round(printed_closed_form(10**6, 0.5, 0.0019), 12)
    0.13043822001
    """
    check(n_slides=n, epsilon=epsilon)
    size, e = np.asarray(n, float), np.asarray(epsilon, float)
    d, log_n = float(as_fraction(quantile)), np.log(size)
    gap = 0.1 - np.asarray(slides_alpha(n, epsilon)) / size
    return plain(
        2.0 * np.sqrt(0.5 * np.pi / size)
        + (d + 1.0) / (np.sqrt(size) * log_n)
        + log_n / size * (2.0 / 3.0 + 16.0 / e * math.log(3.0))
        + 2.0 * np.exp(-2.0 * size * gap**2)
    )


def printed_closed_form_bound(*, n: int, quantile: float | Fraction, epsilon: float) -> Bound:
    """:func:`printed_closed_form` with its hypothesis alpha <= n/10.

    Parameters
    ----------
    n : int
        Number of records.
    quantile : float or Fraction
        Level of the quantile.
    epsilon : float
        Privacy budget.
    """
    value, needed = float(printed_closed_form(n, quantile, epsilon)), float(slides_alpha(n, epsilon))
    unmet = _alpha_hypothesis(needed, n)
    return _mean_bound(
        value, Variant.PRINTED, "slides, closed form 5/5", quantile, 1 / slides_steps(n), unmet, {"alpha": needed}
    )


def corrected_mean_error(
    *,
    n: ArrayLike,
    steps: ArrayLike,
    quantile: float | Fraction,
    epsilon: ArrayLike,
    beta: ArrayLike,
    variant: Variant = Variant.CORRECTED_36,
    releases: int = DECILES,
) -> Any:
    """Upper bound on E|A - d| for uniform records, any steps and beta, no condition on n (docs/theory.md R13).

        E|A - d| <= E(X_(r_+) - d)_+ + E(d - X_(r_-))_+ + 1/k + beta max(d + 1/k, 1 - d)

    Proof: with probability 1 - beta the good event of AboveThreshold gives X_(r_-) - 1/k < A <= X_(r_+)
    (:func:`dpaudit.accuracy.bounds.deciles.sharp_ranks`), so (A - d)_+ <= (X_(r_+) - d)_+ and (d - A)_+ <= (d - X_(r_-))_+ +
    1/k; otherwise |A - d| is at most max(d + 1/k, 1 - d). A rank above n stands for b, one below 1 for a. QED

    Parameters
    ----------
    n, steps, quantile, epsilon, beta, releases
        As for :func:`dpaudit.accuracy.bounds.deciles.within`.
    variant : Variant
        One of ``CORRECTED_VARIANTS``.

    Examples
    --------
    >>> round(corrected_mean_error(n=10_000, steps=1629, quantile=0.5, epsilon=1.0, beta=slides_beta(10_000)), 12)
    0.100647459144
    """
    check_choice(CORRECTED_VARIANTS, variant=variant)
    check(n=n, steps=steps, epsilon=epsilon, beta=beta)
    allowed = histogram_alpha(steps, beta, epsilon, variant, releases)
    lower, upper = sharp_ranks(n, quantile, allowed)
    d, size, k = float(as_fraction(quantile)), np.asarray(n, float), np.asarray(steps, float)
    spread = np.asarray(mean_above(d, upper, size)) + np.asarray(mean_below(d, lower, size))
    return plain(spread + _failure(d, k, beta))


def corrected_closed_form(
    *,
    n: ArrayLike,
    steps: ArrayLike,
    quantile: float | Fraction,
    epsilon: ArrayLike,
    beta: ArrayLike,
    variant: Variant = Variant.CORRECTED_36,
    releases: int = DECILES,
) -> Any:
    """sqrt(pi/(2n)) + 2 (alpha + 1)/n + 1/k + beta max(d + 1/k, 1 - d), an upper bound on E|A - d| (docs/theory.md R14).

    Proof from :func:`corrected_mean_error`: P(X_(r) > d + t) = P(Bin(n, d + t) < r) <= exp(-2n (d + t - r/n)^2) beyond
    r/n (Hoeffding), hence E(X_(r_+) - d)_+ <= (alpha + 1)/n + int_0^inf exp(-2 n u^2) du = (alpha + 1)/n +
    sqrt(pi/(8n)); the same below; add. QED

    The parameters are those of :func:`corrected_mean_error`.

    >>> beta = slides_beta(10_000)
    >>> round(corrected_closed_form(n=10_000, steps=1629, quantile=0.5, epsilon=1.0, beta=beta), 12)
    0.113363974671
    """
    check_choice(CORRECTED_VARIANTS, variant=variant)
    check(n=n, steps=steps, epsilon=epsilon, beta=beta)
    allowed = np.asarray(histogram_alpha(steps, beta, epsilon, variant, releases))
    d, size, k = float(as_fraction(quantile)), np.asarray(n, float), np.asarray(steps, float)
    return plain(np.sqrt(0.5 * np.pi / size) + 2.0 * (allowed + 1.0) / size + _failure(d, k, beta))


def corrected_mean_error_for_law(
    *,
    n: int,
    steps: int,
    quantile: float | Fraction,
    epsilon: float,
    beta: float,
    law: DataLaw,
    variant: Variant = Variant.CORRECTED_36,
    releases: int = DECILES,
    low: float | None = None,
    high: float | None = None,
) -> float:
    """Evaluate :func:`corrected_mean_error` for any continuous law and a range [a, b] with a <= d <= b.

    Records outside [a, b] are allowed. E(min(X_(r_+), b) - d)_+ = int_d^b P(X_(r_+) > t) dt with P(X_(r) > t) = 1 -
    I_{F(t)}(r, n - r + 1), by Gauss-Legendre on panels that end at quantiles of X_(r).

    Parameters
    ----------
    n, steps, quantile, epsilon, beta, variant, releases
        As for :func:`corrected_mean_error`.
    law : DataLaw
        Distribution of one record.
    low, high : float, optional
        Range [a, b]; by default that of the law.

    Examples
    --------
    >>> from dpaudit.accuracy.distributions.data_law import UNIFORM
    >>> options = dict(n=500, steps=60, quantile=0.5, epsilon=10.0, beta=0.01)
    >>> general = corrected_mean_error_for_law(**options, law=UNIFORM)
    >>> abs(general - corrected_mean_error(**options)) < 1e-9
    True
    """
    low, high = law.low if low is None else low, law.high if high is None else high
    check(n=n, steps=steps, epsilon=epsilon, beta=beta)
    lower, upper = sharp_ranks(n, quantile, histogram_alpha(steps, beta, epsilon, variant, releases))
    d, width = law.quantile(quantile), (high - low) / steps
    over, under = excess_over(law, d, upper, n, high), excess_under(law, d, lower, n, low)
    return over + under + width + beta * max(d - low + width, high - d)


def excess_over(law: DataLaw, d: float, r: int, n: int, high: float) -> float:
    """E(min(X_(r), high) - d)_+ for records of any continuous law.

    Parameters
    ----------
    law : DataLaw
        Distribution of one record.
    d : float
        The true quantile.
    r, n : int
        Rank of the order statistic, number of records.
    high : float
        Upper end of the range.
    """
    if r > n or r < 1:
        return high - d if r > n else 0.0
    return _integral(above, law, d, high, r, n)


def excess_under(law: DataLaw, d: float, r: int, n: int, low: float) -> float:
    """E(d - max(X_(r), low))_+ for records of any continuous law.

    Parameters
    ----------
    law : DataLaw
        Distribution of one record.
    d : float
        The true quantile.
    r, n : int
        Rank of the order statistic, number of records.
    low : float
        Lower end of the range.
    """
    if r > n or r < 1:
        return d - low if r < 1 else 0.0
    return _integral(below, law, low, d, r, n)


def _integral(tail: Callable[..., Real], law: DataLaw, start: float, stop: float, r: int, n: int) -> float:
    """Integrate P(X_(r) > t) or P(X_(r) < t) over [start, stop]."""
    nodes, weights = panels(_breaks(law, start, stop, r, n), math.inf)
    return float(np.sum(weights * tail(law.probability_below(nodes), r, n)))


def _breaks(law: DataLaw, start: float, stop: float, r: int, n: int) -> Real:
    """Return panel ends: 16 equal parts, and quantiles of X_(r), where its distribution function rises from 0 to 1."""
    tails = 10.0 ** -np.arange(1.0, 17.0)
    levels = np.concatenate([tails, [0.2, 0.35, 0.5, 0.65, 0.8], 1.0 - tails[:15]])
    points = special.betaincinv(float(r), n - r + 1.0, levels)
    points = points[(points > 0.0) & (points < 1.0)]
    if law.inverse is not None:
        turns = np.asarray(law.inverse(points), float)
    else:
        cdf_ends = law.probability_below(np.array([law.low, law.high]))
        points = points[(points > cdf_ends[0]) & (points < cdf_ends[1])]
        turns = np.array(
            [law.quantile(Fraction(float(p)).limit_denominator(10**6)) for p in points if 1e-6 < p < 1 - 1e-6]
        )
    turns = turns[(turns > start) & (turns < stop)]
    return np.unique(np.concatenate([np.linspace(start, stop, 17), turns]))


def best_beta(
    objective: Callable[[Real], Any], low: float = 1e-12, high: float = 0.4, points: int = 121, rounds: int = 4
) -> tuple[float, float]:
    """Minimise a bound over beta, and return (beta, value). Every beta gives a valid bound, so the search may be coarse.

    Parameters
    ----------
    objective : callable
        The bound as a function of an array of betas.
    low, high : float
        Smallest and largest beta.
    points : int
        Number of betas of one round.
    rounds : int
        Number of rounds, each around the best beta so far.

    Examples
    --------
    >>> bound = lambda beta: corrected_mean_error(n=200, steps=56, quantile=0.5, epsilon=20.0, beta=beta)
    >>> round(best_beta(bound)[1], 4)
    0.1574
    """
    left, right = math.log(low), math.log(high)
    best = (math.nan, math.inf)
    for _ in range(rounds):
        grid = np.linspace(left, right, points)
        values = np.asarray(objective(np.exp(grid)), float)
        place = int(np.argmin(values))
        if values[place] < best[1]:
            best = (float(np.exp(grid[place])), float(values[place]))
        left, right = grid[max(place - 2, 0)], grid[min(place + 2, grid.size - 1)]
    return best


def corrected_mean_error_bound(
    *,
    n: int,
    quantile: float | Fraction,
    epsilon: float,
    steps: int | None = None,
    beta: float | None = None,
    variant: Variant = Variant.CORRECTED_36,
    closed: bool = False,
    releases: int = DECILES,
) -> Bound:
    """Return the corrected theorem as a :class:`~dpaudit.accuracy.Bound`.

    Parameters
    ----------
    n, quantile, epsilon, variant, releases
        As for :func:`corrected_mean_error`.
    steps : int, optional
        Number of bins; by default :func:`slides_steps`.
    beta : float, optional
        Failure probability; by default the best one.
    closed : bool
        Use :func:`corrected_closed_form`.
    """
    k = int(slides_steps(n)) if steps is None else steps
    form = corrected_closed_form if closed else corrected_mean_error

    def objective(betas: ArrayLike) -> Any:
        return form(n=n, steps=k, quantile=quantile, epsilon=epsilon, beta=betas, variant=variant, releases=releases)

    if beta is None:
        beta, value = best_beta(objective)
    else:
        value = float(objective(beta))
    needed = float(histogram_alpha(k, beta, epsilon, variant, releases))
    source = "slides, closed form 5/5" if closed else "slides, theorem 3/5"
    return _mean_bound(
        value, variant, source, quantile, 1.0 / k, (), {"alpha": needed, "beta": beta, "steps": float(k)}
    )


def _failure(d: float, k: Real, beta: ArrayLike) -> Real:
    """Return what discretisation and a failure of AboveThreshold add to the error: 1/k + beta max(d + 1/k, 1 - d)."""
    added: Real = 1.0 / k + np.asarray(beta, float) * np.maximum(d + 1.0 / k, 1.0 - d)
    return added


def _alpha_hypothesis(needed: float, n: int) -> tuple[str, ...]:
    return () if needed <= n / 10 else (f"alpha <= n/10 (alpha={needed!r}, n/10={n / 10!r})",)


def _mean_bound(
    value: float,
    variant: Variant,
    theorem: str,
    quantile: float | Fraction,
    width: float,
    unmet: tuple[str, ...],
    terms: dict[str, float],
) -> Bound:
    d = float(as_fraction(quantile))
    return Bound(
        value=value,
        variant=variant,
        theorem=theorem,
        sense=Sense.AT_MOST,
        quantity="E|A - d|",
        trivial=max(d + width, 1.0 - d),
        unmet=unmet,
        terms=terms,
    )
