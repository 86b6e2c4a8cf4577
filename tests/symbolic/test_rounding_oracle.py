"""Bounds of rounding errors against mpmath with 60 digits: masses in the middle, in tails, of narrow intervals, far from 0."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpaudit.symbolic.draws import counts, rounding, sources
from dpaudit.symbolic.values.regions import Region

mpmath.mp.dps = 60
mpf = mpmath.mpf


def exactly(x):
    return mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mpf(x)


def laplace(a, b):
    def above(x):
        return mpmath.exp(-x) / 2

    if a >= 0:
        return above(a) - above(b)
    return above(-b) - above(-a) if b <= 0 else 1 - above(b) - above(-a)


def normal(a, b):
    if b <= 0:
        a, b = -b, -a
    root = mpmath.sqrt(2)
    return (mpmath.erfc(a / root) - mpmath.erfc(b / root)) / 2


LAWS = {
    "laplace": laplace,
    "normal": normal,
    "exponential": lambda a, b: mpmath.exp(-max(a, 0)) - mpmath.exp(-max(b, 0)),
    "uniform": lambda a, b: max(mpf(0), min(b, mpf(1)) - max(a, mpf(0))),
    "gumbel": lambda a, b: mpmath.exp(-mpmath.exp(-b)) - mpmath.exp(-mpmath.exp(-a)),
    "logistic": lambda a, b: 1 / (1 + mpmath.exp(-b)) - 1 / (1 + mpmath.exp(-a)),
}
SOURCES = {"normal": sources.gaussian}


def regions(rng):
    """Intervals with rational ends, in units of the draw: wide, narrow, one-sided, and far out."""
    for _ in range(150):
        place = Fraction(float(rng.choice([1.0, 10.0, 100.0, 600.0]) * rng.normal())) / int(rng.integers(1, 50))
        width = abs(Fraction(float(10.0 ** rng.uniform(-12.0, 2.0)))) / 3
        kind = rng.integers(4)
        if kind == 0:
            yield Region.above(place)
        elif kind == 1:
            yield Region.below(place)
        else:
            yield Region.above(place).meet(Region.below(place + width))


@pytest.mark.parametrize("name", LAWS)
def test_masses_of_intervals_are_within_their_bounds(name):
    source = SOURCES.get(name, getattr(sources, name, None))()
    compared = 0
    for region in regions(np.random.default_rng(1)):
        ((low, _), (high, _)) = region.parts[0]
        truth = LAWS[name](exactly(low), exactly(high))
        log_mass = source.log_mass(region)
        if truth < mpf("1e-300") or log_mass == -np.inf:
            continue
        error, bound = abs(mpmath.exp(mpf(log_mass)) / truth - 1), source.error(region)
        assert error <= bound, (region, float(error), bound)
        compared += 1
    assert compared > 60


def ranges(rng, middle, spread):
    for _ in range(60):
        first = max(0, round(middle + spread * rng.normal() * rng.choice([1.0, 6.0])))
        yield first, first + int(rng.choice([0, 1, round(spread), round(5 * spread)]))


def checked(source, first, last, truth):
    region = Region.above(first, closed=True).meet(Region.below(last, closed=True))
    if truth > mpf("1e-300"):
        error = abs(mpmath.exp(mpf(source.log_mass(region))) / truth - 1)
        assert error <= source.error(region), (source.name, first, last, float(error), source.error(region))


@pytest.mark.parametrize("mean", [0.3, 11.7, 5000.1])
def test_poisson_masses_are_within_their_bounds(mean):
    source = sources.poisson(mean)
    for first, last in ranges(np.random.default_rng(2), mean, mean**0.5):
        masses = [
            mpmath.exp(k * mpmath.log(mpf(mean)) - mpf(mean) - mpmath.loggamma(k + 1)) for k in range(first, last + 1)
        ]
        checked(source, first, last, mpmath.fsum(masses))


@pytest.mark.parametrize(("trials", "success"), [(201, 0.3), (3000, 0.001), (4000, 0.5), (5000, 0.999)])
def test_binomial_masses_are_within_their_bounds(trials, success):
    source = sources.binomial(trials, success)
    spread = (trials * success * (1 - success)) ** 0.5
    p = mpf(success)
    for first, last in ranges(np.random.default_rng(3), trials * success, spread):
        masses = [
            mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(first, min(last, trials) + 1)
        ]
        checked(source, first, last, mpmath.fsum(masses))


def test_single_counts_of_large_laws_are_within_their_bounds():
    for mean in (1e6, 1e12):
        for k in (round(mean + t * mean**0.5) for t in (-20.0, -3.0, 0.0, 0.7, 12.0, 30.0)):
            truth = k * mpmath.log(mpf(mean)) - mpf(mean) - mpmath.loggamma(k + 1)
            value = float(counts.poisson_log_mass(np.array([k]), mean)[0])
            assert abs(mpf(value) - truth) <= counts.log_error(0.0)(k, k, value)
            n = 2 * round(mean)
            p = mpf(0.5)
            truth = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1) + n * mpmath.log(p)
            value = float(counts.binomial_log_mass(np.array([k]), n, 0.5)[0])
            assert abs(mpf(value) - truth) <= counts.log_error(float(n))(k, k, value)


@pytest.mark.parametrize("success", [1e-7, 0.01, 0.5, 0.999999])
def test_geometric_masses_are_within_their_bounds(success):
    p, rng = mpf(success), np.random.default_rng(4)
    fall = mpmath.log1p(-p)
    for _ in range(60):
        first = 1 + int(rng.exponential(20.0 / success))
        last = first + int(rng.choice([0, 1, 1000]))
        truth = mpmath.exp((first - 1) * fall) * -mpmath.expm1((last - first + 1) * fall)
        checked(sources.geometric(success), first, last, truth)
        peak = p / (2 - p)
        truth = peak * mpmath.exp(first * fall) * mpmath.expm1((last - first + 1) * fall) / mpmath.expm1(fall)
        checked(sources.two_sided_geometric(success), first, last, truth)


def test_a_rounded_end_moves_the_mass_of_a_narrow_interval():
    """The bound of one kind of error at a time: here only that the ends are no floats."""
    low = 100 + Fraction(1, 3)
    region = Region.above(low).meet(Region.below(low + Fraction(1, 3 * 10**10)))
    source = sources.laplace()
    truth = laplace(exactly(region.parts[0][0][0]), exactly(region.parts[0][1][0]))
    error = abs(mpmath.exp(mpf(source.log_mass(region))) / truth - 1)
    assert rounding.ELEMENTARY * 1000 < error <= source.error(region) < 1e-2
