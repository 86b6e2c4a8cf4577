"""The laws of single random draws, in standard form: what the documentation of numpy and ``random`` says they are.

A draw ``rng.laplace(loc, scale)`` is ``loc + scale * x`` with a standard ``x``, so families of location and scale need one
law each. Draws of whole numbers keep their parameters.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri

from dpaudit import exact
from dpaudit.exact.form import Array, Continuous, Form, Integers, Lattice, Tail, form_of, log_sum
from dpaudit.symbolic.draws import counts, rounding
from dpaudit.symbolic.values.regions import End, Region

Points = dict[Any, float]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The law of one draw.

    ``form`` is its normal form, ``named`` the law of ``factor * x + shift`` where ``exact`` has a name for it, and
    ``shares`` the exact probabilities if the support is finite, ``every`` the first and last of many whole numbers that are
    equally likely. If the law moved by ``z`` has an epsilon of ``decay |z|``, that is known to a few units of the last place.
    ``log_below`` and ``log_above`` are the logs of the distribution
    function and of its complement, where they are quicker than the form. ``log_error`` bounds the error of a log-mass
    (see :mod:`~dpaudit.symbolic.draws.rounding`).
    """

    name: str
    form: Form
    named: Callable[[float, float], Any] | None = None
    shares: tuple[tuple[float, Fraction], ...] | None = None
    quantile: Callable[[Any], Any] | None = None
    log_below: Callable[[Array], Array] | None = None
    log_above: Callable[[Array], Array] | None = None
    every: tuple[int, int] | None = None
    decay: float | None = None
    log_error: rounding.LogError = rounding.OF_SUMS

    @property
    def integer(self) -> bool:
        """True if all values are whole numbers."""
        return self.form.continuous is None

    def mass(self, region: Region) -> float:
        """Probability of a region, to the relative error that ``error`` gives."""
        share = self.exact_mass(region)
        return math.exp(self.log_mass(region)) if share is None else float(share)

    def exact_mass(self, region: Region) -> Fraction | None:
        """Probability of a region as a rational number, for finite supports."""
        if self.every is not None:
            low, high = self.every
            return Fraction(sum(last - first + 1 for first, last in self._whole(region)), high - low + 1)
        if self.shares is None:
            return None
        return sum((share for value, share in self.shares if value in region), Fraction(0))

    def _whole(self, region: Region) -> list[tuple[int, int]]:
        """First and last of the equally likely whole numbers in each part of a region."""
        assert self.every is not None
        low, high = self.every
        ranges = [(int(max(a, low)), int(min(b, high))) for a, b in region.whole_numbers()]
        return [(first, last) for first, last in ranges if first <= last]

    def log_mass(self, region: Region) -> float:
        """Log-probability of a region."""
        return _log_mass(self, region)

    def error(self, region: Region) -> float:
        """Bound of the relative error of the probability of a region."""
        return _mass_error(self, region)

    def _computed(self, region: Region) -> float:
        share = self.exact_mass(region)
        if share is not None:
            return math.log(share.numerator) - math.log(share.denominator) if share else -math.inf
        if self.form.lattice is not None:
            terms = [self.form.lattice.log_range(first, last) for first, last in region.whole_numbers()]
        else:
            assert self.form.continuous is not None
            if self.name == "uniform" and not any(map(_hits_grid, region.meet(_UNIT).parts)):
                return -math.inf
            terms = [
                float(self.form.continuous.log_mass(np.array(low), np.array(high))) for low, high in region.intervals()
            ]
        return log_sum(np.array(terms, dtype=np.float64)) if terms else -math.inf

    def support(self) -> tuple[float, float]:
        """Smallest and largest value, possibly infinite."""
        if self.shares is not None:
            return self.shares[0][0], self.shares[-1][0]
        if self.form.lattice is not None:
            first, last = self.form.lattice.first, self.form.lattice.last
            return (-math.inf if first is None else first), (math.inf if last is None else last)
        assert self.form.continuous is not None
        return self.form.continuous.support

    def sample(self, region: Region, size: int, rng: np.random.Generator) -> Array:
        """Draw values inside a region."""
        if self.shares is not None:
            inside = [(value, float(share)) for value, share in self.shares if value in region]
            weights = np.array([share for _, share in inside])
            return rng.choice([value for value, _ in inside], size=size, p=weights / weights.sum())
        if self.every is not None:
            first, last = max(self._whole(region), key=lambda part: part[1] - part[0])
            chosen: list[int] = [int(rng.integers(first, last, endpoint=True)) for _ in range(size)]
            return np.array(chosen, dtype=np.float64)
        if self.name.startswith("geometric("):
            return self._waiting_time(region, size, rng)
        quick = self._by_quantile(region, size, rng)
        if quick is not None:
            return quick
        from dpaudit.exact.laws.sampling import sample_form
        from dpaudit.symbolic.values.forms import restricted

        return sample_form(restricted(self.form, region), size, rng)

    def _waiting_time(self, region: Region, size: int, rng: np.random.Generator) -> Array:
        """Draw numbers of trials in the likeliest part of a region, by inverting the distribution function."""
        assert self.form.lattice is not None
        first, last = max(region.whole_numbers(), key=lambda ends: self.form.lattice.log_range(*ends))  # type: ignore[union-attr]
        first = max(first, 1.0)
        one, two = self.form.lattice.log_mass(np.array([1, 2]))
        rate = float(one - two) if two > -np.inf else 745.0
        waited = np.floor(-np.log1p(rng.random(size) * math.expm1(-rate * (last - first + 1.0))) / rate)
        return np.minimum(first + waited, last)

    def _by_quantile(self, region: Region, size: int, rng: np.random.Generator) -> Array | None:
        """Draw by inverting the distribution function on one part of the region; None where that loses its digits."""
        part = self.form.continuous
        if self.quantile is None or part is None:
            return None
        ends = np.array(region.intervals())
        shares = np.exp(part.log_mass(ends[:, 0], ends[:, 1]))
        low, high = ends[int(np.argmax(shares))]
        below, above = np.exp(part.log_mass(np.array([-np.inf, -np.inf]), np.array([low, high])))
        if not (above - below > 1e-9):
            return None
        drawn = self.quantile(below + (above - below) * (0.05 + 0.9 * rng.random(size)))
        inside: Array = np.asarray(drawn, dtype=np.float64)
        return inside if ((inside > low) & (inside < high)).all() else None


@functools.lru_cache(maxsize=1 << 14)
def _log_mass(source: Source, region: Region) -> float:
    """Paths ask for the same regions of the same laws again and again."""
    return source._computed(region)


@functools.lru_cache(maxsize=1 << 14)
def _mass_error(source: Source, region: Region) -> float:
    return rounding.mass_error(source, region)


_UNIT = Region((((0.0, 0), (1.0, 0)),))


def _hits_grid(part: tuple[End, End]) -> bool:
    """Return True if an interval contains a multiple of 2^-53, which is what libraries return for uniform numbers."""
    first, last = (Fraction(value) * 2**53 for value, _ in part)
    low = math.floor(first) + 1 if part[0][1] else math.ceil(first)  # open at its left end, or closed
    high = math.floor(last) if part[1][1] else math.ceil(last) - 1
    return low <= high


def laplace() -> Source:
    """The Laplace law of location 0 and scale 1."""
    return _LAPLACE


def gaussian() -> Source:
    """The normal law of mean 0 and variance 1."""
    return _GAUSSIAN


def exponential() -> Source:
    """The exponential law of rate 1."""
    return _EXPONENTIAL


def uniform() -> Source:
    """The uniform law between 0 and 1."""
    return _UNIFORM


def gumbel() -> Source:
    """The Gumbel law (of maxima) of location 0 and scale 1."""
    return _GUMBEL


def logistic() -> Source:
    """The logistic law of location 0 and scale 1."""
    return _LOGISTIC


def finite(name: str, shares: dict[float, Fraction]) -> Source:
    """A law of finitely many numbers with rational probabilities."""
    kept = tuple(sorted((value, share) for value, share in shares.items() if share > 0))
    return Source(name, Form({value: math.log(share) for value, share in kept}), shares=kept)


def geometric(success: float) -> Source:
    """Number of trials up to the first success: 1, 2, ..."""
    rate = -math.log1p(-success)
    log_success = math.log(success)

    def log_mass(k: Integers) -> Array:
        return np.where(k >= 1, log_success - rate * (k - 1.0), -np.inf)

    def log_range(first: float, last: float) -> float:
        first = max(first, 1.0)
        if first > last:
            return -math.inf
        return -rate * (first - 1.0) + math.log(-math.expm1(-rate * (last - first + 1.0)))

    tail = Tail(linear=rate, constant=log_success + rate)
    lattice = Lattice(1.0, log_mass, log_range, 1, None, (1,), (1, 1 + math.ceil(1.0 / rate)), (None, tail), True)
    return Source(f"geometric({success!r})", Form(lattice=lattice))


def two_sided_geometric(success: float) -> Source:
    """The difference of two independent geometric draws."""
    scale = -1.0 / math.log1p(-success)
    name = f"difference of two geometric({success!r})"
    return Source(name, exact.DiscreteLaplace(0, scale).form(), decay=-math.log1p(-success))


def poisson(mean: float) -> Source:
    """The Poisson law."""
    middle = int(mean)

    def log_mass(k: Integers) -> Array:
        return counts.poisson_log_mass(k, mean)

    def log_range(first: float, last: float) -> float:
        return counts.log_range(log_mass, max(first, 0.0), last, middle)

    marks = tuple(sorted({0, middle, middle + math.ceil(4.0 * math.sqrt(mean)) + 4}))
    lattice = Lattice(1.0, log_mass, log_range, 0, None, (0,), marks)
    return Source(f"poisson({mean!r})", Form(lattice=lattice), log_error=counts.log_error(0.0))


def binomial(trials: int, success: float) -> Source:
    """The binomial law, with rational probabilities where there are few trials."""
    if trials <= 200:
        p = Fraction(success)
        return finite(
            f"binomial({trials}, {success!r})",
            {float(k): math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)},
        )
    middle = min(trials, int((trials + 1) * success))

    def log_mass(k: Integers) -> Array:
        return counts.binomial_log_mass(k, trials, success)

    def log_range(first: float, last: float) -> float:
        return counts.log_range(log_mass, max(first, 0.0), min(last, float(trials)), middle)

    lattice = Lattice(1.0, log_mass, log_range, 0, trials, (0, trials), tuple(sorted({0, middle, trials})))
    return Source(f"binomial({trials}, {success!r})", Form(lattice=lattice), log_error=counts.log_error(float(trials)))


def uniform_integers(low: int, high: int) -> Source:
    """The uniform law on the whole numbers from ``low`` to ``high``, with both."""
    count = high - low + 1
    if count <= 4096:
        return finite(f"integers({low}, {high})", {float(k): Fraction(1, count) for k in range(low, high + 1)})
    each = -math.log(count)

    def log_mass(k: Integers) -> Array:
        return np.where((k >= low) & (k <= high), each, -np.inf)

    def log_range(first: float, last: float) -> float:
        inside = min(last, high) - max(first, low) + 1
        return math.log(inside) + each if inside > 0 else -math.inf

    marks = (low, high)
    return Source(
        f"integers({low}, {high})",
        Form(lattice=Lattice(1.0, log_mass, log_range, low, high, marks, marks, geometric=True)),
        every=(low, high),
        log_error=rounding.of_sums(4.0 + 2.0 * math.log(count), 1.0),
    )


def _standard_uniform() -> Source:
    def named(factor: float, shift: float) -> exact.PiecewiseConstant:
        return exact.PiecewiseConstant(sorted((shift, factor + shift)), [0.0])

    return Source("uniform", form_of(named(1.0, 0.0)), named, quantile=lambda u: u)


def _standard_gumbel() -> Source:
    def log_density(x: Array, side: int) -> Array:  # noqa: ARG001 - smooth: both sides agree
        with np.errstate(over="ignore"):
            return -x - np.exp(-x)

    def log_mass(low: Array, high: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            far, near = np.exp(-np.asarray(low, dtype=np.float64)), np.exp(-np.asarray(high, dtype=np.float64))
            return np.where(far > near, -near + np.log(-np.expm1(-(far - near))), -np.inf)

    marks = (-4.0, -2.0, -1.0, 0.0, 1.0, 4.0, 12.0)
    part = Continuous(log_density, log_mass, (-math.inf, math.inf), (), marks, (None, Tail(linear=1.0)))
    return Source("gumbel", Form(continuous=part), quantile=lambda u: -np.log(-np.log(u)), log_error=rounding.of_gumbel)


def _standard_logistic() -> Source:
    def log_density(x: Array, side: int) -> Array:  # noqa: ARG001 - smooth: both sides agree
        return -np.abs(x) - 2.0 * np.log1p(np.exp(-np.abs(x)))

    def log_mass(low: Array, high: Array) -> Array:
        # F(b) - F(a) = (1 - exp(a - b)) / ((1 + exp(-b)) (1 + exp(a)))
        a, b = np.broadcast_arrays(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            value = np.log(-np.expm1(a - b)) - np.logaddexp(0.0, -b) - np.logaddexp(0.0, a)
        return np.where(a < b, value, -np.inf)

    tails = (Tail(linear=1.0), Tail(linear=1.0))
    part = Continuous(log_density, log_mass, (-math.inf, math.inf), (), (-8.0, -2.0, 0.0, 2.0, 8.0), tails)
    return Source("logistic", Form(continuous=part), quantile=lambda u: np.log(u) - np.log1p(-u))


def _log_laplace(x: Array) -> Array:
    """Log of the distribution function of the standard Laplace law."""
    half = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0.0, x - math.log(2.0), np.log1p(-half))


_LAPLACE = Source(
    "laplace",
    exact.Laplace(0.0, 1.0).form(),
    lambda a, b: exact.Laplace(b, abs(a)),
    quantile=lambda u: np.where(u < 0.5, np.log(2.0 * u), -np.log(2.0 * (1.0 - u))),
    log_below=_log_laplace,
    log_above=lambda x: _log_laplace(-x),
    decay=1.0,
)
_GAUSSIAN = Source(
    "normal",
    exact.Gaussian(0.0, 1.0).form(),
    lambda a, b: exact.Gaussian(b, abs(a)),
    quantile=ndtri,
    log_below=log_ndtr,
    log_above=lambda x: log_ndtr(-x),
    log_error=rounding.of_normal,
)
_EXPONENTIAL = Source(
    "exponential",
    exact.Exponential(0.0, 1.0).form(),
    lambda a, b: exact.Exponential(b, a) if a > 0.0 else None,
    quantile=lambda u: -np.log1p(-u),
)
_UNIFORM = _standard_uniform()
_GUMBEL = _standard_gumbel()
_LOGISTIC = _standard_logistic()
