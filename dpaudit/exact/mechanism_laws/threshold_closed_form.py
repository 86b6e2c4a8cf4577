"""Probabilities of the outcomes of AboveThreshold in closed form, to any number of digits (docs/theory.md R2)."""

from __future__ import annotations

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

from numpy.typing import ArrayLike

from dpaudit._util.validation import check_count, check_finite, finite_array
from dpaudit.errors import InvalidArgument
from dpaudit.exact.mechanism_laws.above_threshold import noise_scales

_MOST_CLOSED = 60
"""Largest number of queries of the closed form."""


def above_threshold_closed_form(
    answers: ArrayLike,
    threshold: float,
    epsilon: float,
    *,
    threshold_scale: float | None = None,
    query_scale: float | None = None,
    digits: int = 30,
) -> tuple[Decimal, ...]:
    """Probabilities of the outcomes 0, ..., m-1 and -1 to ``digits`` correct digits, for at most 60 queries.

    Between breakpoints the integrand is ``exp(-+z/b1)`` times a polynomial in ``exp(z/b2)`` and its inverse, integrated term
    by term (docs/theory.md R2). The terms alternate, and cancel ever more as queries are added, so the working precision grows
    until the sum of the terms' absolute values shows that enough digits are correct. The arguments are taken as exact binary
    numbers; only the noise scales are rounded, as they are in a running mechanism.

    Parameters
    ----------
    answers, threshold, epsilon, threshold_scale, query_scale
        As for :func:`above_threshold_law`.
    digits : int
        Number of correct digits.

    Examples
    --------
    >>> [str(p) for p in above_threshold_closed_form([-5.0], 0.0, 1.0, digits=20)]
    ['0.17732236480281026769', '0.82267763519718973231']
    """
    y = finite_array("answers", answers, ndim=1, empty=False)
    check_finite(threshold=threshold)
    check_count(digits=digits)
    scales = noise_scales(epsilon, threshold_scale, query_scale)
    if y.size > _MOST_CLOSED:
        raise InvalidArgument(
            f"answers has {y.size} entries; the closed form takes at most {_MOST_CLOSED}. "
            "Use above_threshold_law, which has no limit."
        )
    u = [Fraction(value) - Fraction(float(threshold)) for value in y.tolist()]
    rates = (1 / Fraction(scales[0]), 1 / Fraction(scales[1]))
    with decimal.localcontext() as context:
        context.prec = digits + 2 * y.size + 10
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        while True:
            sums, sizes = _closed_form(u, *rates)
            lost = max(
                size.adjusted() - total.adjusted() if total > 0 else context.prec
                for total, size in zip(sums, sizes, strict=True)
            )
            if context.prec >= digits + lost + 5:
                break
            context.prec = max(2 * context.prec, digits + lost + 10)
        context.prec = digits
        return tuple(+total for total in sums)


def _closed_form(u: list[Fraction], rate1: Fraction, rate2: Fraction) -> tuple[list[Decimal], list[Decimal]]:
    """Return the integrals of all outcomes, and for each the sum of the absolute values of its terms."""
    m = len(u)
    sums, sizes = [Decimal(0)] * (m + 1), [Decimal(0)] * (m + 1)
    points: list[Fraction | None] = [None, *sorted({Fraction(0), *u}), None]
    half = Decimal(1) / 2
    for left, right in itertools.pairwise(points):
        rising = right is not None and right <= 0
        # Integrals of exp(rate z) for the powers p = -(m+1), ..., m+1 of exp(z/b2), with the sizes of their two parts.
        integrals = [_exponential(left, right, (rate1 if rising else -rate1) + p * rate2) for p in range(-m - 1, m + 2)]
        # before[k] is the coefficient of power k - (m+1) in l(z) prod_{i<j} F(z - u_i).
        before = [Decimal(0)] * (2 * m + 3)
        before[m + 1] = _decimal(rate1) * half
        for j in range(m + 1):
            if j == m:
                product = before
            else:
                above = left is not None and u[j] <= left
                factor = half * _decimal(rate2 * (u[j] if above else -u[j])).exp()
                moved = _shift(before, factor, -1 if above else 1)
                kept = [a - b for a, b in zip(before, moved, strict=True)]
                product, before = (moved, kept) if above else (kept, moved)
            for coefficient, (value, size) in zip(product, integrals, strict=True):
                if coefficient:
                    sums[j] += coefficient * value
                    sizes[j] += abs(coefficient) * size
    return sums, sizes


def _exponential(left: Fraction | None, right: Fraction | None, rate: Fraction) -> tuple[Decimal, Decimal]:
    """Integral of exp(rate z) from left to right (None: infinite), and the size of its parts; 0 where it diverges.

    A divergent integral is never used: its coefficient is zero.
    """
    if rate == 0:
        length = Decimal(0) if left is None or right is None else _decimal(right - left)
        return length, length
    ends = [Decimal(0) if end is None else (_decimal(rate * end)).exp() / _decimal(rate) for end in (left, right)]
    if (left is None and rate < 0) or (right is None and rate > 0):
        return Decimal(0), Decimal(0)
    return ends[1] - ends[0], abs(ends[0]) + abs(ends[1])


def _shift(coefficients: list[Decimal], factor: Decimal, by: int) -> list[Decimal]:
    """Multiply a polynomial by factor times the variable to the power ``by``."""
    moved = [factor * c for c in coefficients]
    return [*moved[1:], Decimal(0)] if by < 0 else [Decimal(0), *moved[:-1]]


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
