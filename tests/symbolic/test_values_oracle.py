"""Regions, operations and joint laws against brute force, scipy's quadrature and closed forms."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from dpaudit.errors import CannotFollow
from dpaudit.symbolic import law_of
from dpaudit.symbolic.draws import sources
from dpaudit.symbolic.values import forms, operations
from dpaudit.symbolic.values.regions import Region

OPERATIONS = [
    operations.Affine(Fraction(-3, 2), Fraction(1, 4)),
    operations.RoundTo(Fraction(1)),
    operations.RoundTo(Fraction(1, 10)),
    operations.Floor(),
    operations.Truncate(),
    operations.Clip(Fraction(-1), Fraction(2)),
    operations.Clip(-math.inf, Fraction(1, 3)),
    operations.Absolute(),
    operations.EXP,
]
CONTINUOUS = [sources.laplace(), sources.gaussian(), sources.uniform(), sources.exponential(), sources.gumbel()]
cuts = st.integers(-40, 40).map(lambda k: Fraction(k, 8))
regions = st.lists(st.tuples(cuts, st.integers(0, 1)), min_size=2, max_size=6, unique=True).map(
    lambda ends: Region.of(zip(sorted(ends)[::2], sorted(ends)[1::2], strict=False))
)


@given(regions, regions, cuts)
def test_regions_are_sets(first, second, x):
    assert (x in first.meet(second)) == (x in first and x in second)
    assert (x in first.join(second)) == (x in first or x in second)
    assert (x in first.complement()) == (x not in first)
    assert (-2 * x + 1 in first.affine(-2, 1)) == (x in first)


@given(regions)
def test_whole_numbers_of_a_region(region):
    found = {k for first, last in region.whole_numbers() for k in range(int(first), int(last) + 1)}
    assert found == {k for k in range(-10, 11) if k in region}


@pytest.mark.parametrize("operation", OPERATIONS, ids=[f"{type(one).__name__}-{k}" for k, one in enumerate(OPERATIONS)])
@given(region=regions, x=st.floats(-4.9, 4.9).filter(lambda x: abs(20 * x - round(20 * x)) > 1e-6))
def test_preimages_are_where_values_lie_in_the_region(operation, region, x):
    value = operation.value(x)
    if isinstance(operation, operations.RoundTo):  # 0.30000000000000004 is meant to be 3/10
        value = Fraction(round(value / operation.step)) * operation.step
    assert (x in operation.preimage(region)) == (value in region)


@pytest.mark.parametrize("source", CONTINUOUS, ids=lambda source: source.name)
@pytest.mark.parametrize("operation", OPERATIONS, ids=[f"{type(one).__name__}-{k}" for k, one in enumerate(OPERATIONS)])
@pytest.mark.parametrize(
    "region",
    [
        Region.above(Fraction(1, 2)),
        Region.below(0, closed=True),
        Region.point(1),
        Region.above(-1, closed=True).meet(Region.below(Fraction(7, 3))),
    ],
    ids=repr,
)
def test_the_image_of_a_law_has_the_masses_of_preimages(source, operation, region):
    image = operation.image(source.form)
    expected = source.mass(operation.preimage(region))
    assert forms.mass(forms.restricted(image, region)) == pytest.approx(expected, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    ("source", "reference"),
    [
        (sources.laplace(), stats.laplace()),
        (sources.gaussian(), stats.norm()),
        (sources.exponential(), stats.expon()),
        (sources.uniform(), stats.uniform()),
        (sources.gumbel(), stats.gumbel_r()),
        (sources.logistic(), stats.logistic()),
        (sources.geometric(0.3), stats.geom(0.3)),
        (sources.poisson(3.7), stats.poisson(3.7)),
        (sources.binomial(12, 0.3), stats.binom(12, 0.3)),
        (sources.binomial(1000, 0.3), stats.binom(1000, 0.3)),
        (sources.uniform_integers(-3, 7), stats.randint(-3, 8)),
        (sources.uniform_integers(0, 2**40), stats.randint(0, 2**40 + 1)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.parametrize("x", [-2.5, 0.3, 1.5, 4.5, 290.5])
def test_sources_are_what_the_documentation_says(source, reference, x):
    assert source.mass(Region.below(Fraction(x))) == pytest.approx(reference.cdf(x), rel=1e-9, abs=1e-300)
    assert source.mass(Region.above(Fraction(x))) == pytest.approx(reference.sf(x), rel=1e-9, abs=1e-300)


def _winning(answers, density, cdf, place):
    """Probability that one noisy answer is the largest, by scipy."""

    def integrand(x):
        others = math.prod(cdf(x - answer) for k, answer in enumerate(answers) if k != place)
        return density(x - answers[place]) * others

    return integrate.quad(integrand, -60.0, 60.0, points=sorted(answers), limit=500, epsabs=1e-13, epsrel=1e-12)[0]


def by_argmax(data, rng):
    return int(np.argmax(np.array(data) + getattr(rng, KIND)(size=len(data))))


def by_loop(data, rng):
    best, place = -math.inf, None
    for k, answer in enumerate(data):
        noisy = answer + getattr(rng, KIND)()
        if noisy > best:
            best, place = noisy, k
    return place


def by_key(data, rng):
    noisy = [answer + getattr(rng, KIND)() for answer in data]
    return max(range(len(data)), key=lambda k: noisy[k])


KIND = "laplace"


@pytest.mark.parametrize(
    ("kind", "law"), [("laplace", stats.laplace), ("normal", stats.norm), ("gumbel", stats.gumbel_r)]
)
@pytest.mark.parametrize("function", [by_argmax, by_loop, by_key])
def test_the_largest_of_noisy_answers(monkeypatch, kind, law, function):
    monkeypatch.setitem(globals(), "KIND", kind)
    answers = [0.0, 1.5, 0.5, -1.0]
    found = law_of(function, answers).outcomes()
    for place in range(4):
        assert found[place] == pytest.approx(_winning(answers, law.pdf, law.cdf, place), rel=1e-9)


def test_a_geometric_draw_against_a_laplace_draw():
    found = law_of(lambda data, rng: bool(rng.geometric(0.4) > data + rng.laplace()), 2.0).outcomes()
    k = np.arange(1, 200)
    by_hand = float((stats.geom(0.4).pmf(k) * stats.laplace(2.0).cdf(k)).sum())
    assert found == pytest.approx({True: by_hand, False: 1.0 - by_hand}, rel=1e-11)


def test_two_geometric_draws_may_be_equal():
    def compare(data, rng):
        a, b = rng.geometric(0.4), rng.geometric(0.7)
        return "equal" if a == b else "less" if a < b else "more"

    table = {"equal": 0.0, "less": 0.0, "more": 0.0}
    for a in range(1, 150):
        for b in range(1, 80):
            mass = stats.geom.pmf(a, 0.4) * stats.geom.pmf(b, 0.7)
            table["equal" if a == b else "less" if a < b else "more"] += mass
    assert law_of(compare, None).outcomes() == pytest.approx(table, rel=1e-10)


def test_a_hand_written_inverse_distribution_function():
    def laplace(data, rng):
        u = rng.random() - 0.5
        return data - 2.0 * np.sign(u) * np.log(1.0 - 2.0 * abs(u))

    from dpaudit import exact

    law = law_of(laplace, 3.0).to_exact()
    points = np.linspace(-20.0, 20.0, 33)
    assert law.log_prob(points) == pytest.approx(exact.Laplace(3.0, 2.0).log_prob(points), rel=1e-12)
    assert exact.epsilon(law, exact.Laplace(3.0, 2.0)) <= 1e-12


@pytest.mark.parametrize(
    "test",
    [
        lambda k: k / 10 > 0.3,
        lambda k: k / 10 == 0.3,
        lambda k: k / 10 <= 0.7,
        lambda k: k * 0.1 > 0.3,
        lambda k: k * 0.1 >= 0.6,
        lambda k: k / 3 > 1 / 3,
        lambda k: k / 10 + 0.2 == 0.5,
        lambda k: 0.1 * k < 0.7,
        lambda k: k / 49 * 49 >= 1.0,
    ],
    ids=range(9),
)
def test_whole_numbers_at_a_threshold_lie_where_floats_have_them(test):
    """``3 / 10 > 0.3`` is false although 3 / 10 is more than the float 0.3."""
    expected = sum(stats.binom.pmf(k, 12, 0.3) for k in range(13) if test(k))
    try:
        found = law_of(lambda data, rng: bool(test(rng.binomial(12, 0.3))), None).outcomes()
    except CannotFollow:  # several roundings: seen when the number itself is run
        return
    assert found.get(True, 0.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("digits", [1, 2])
@pytest.mark.parametrize("rounding", [round, np.round], ids=["python", "numpy"])
def test_rounded_noise_at_a_threshold_lies_where_floats_have_it(rounding, digits):
    step = 10.0**-digits
    for k in range(-9, 10):
        cut = round(k * step, digits)
        above = law_of(lambda data, rng, c=cut: bool(rounding(rng.laplace(), digits) > c), None).outcomes()
        equal = law_of(lambda data, rng, c=cut: bool(rounding(rng.laplace(), digits) == c), None).outcomes()
        assert above[True] == pytest.approx(stats.laplace.sf((k + 0.5) * step), rel=1e-9)
        assert equal[True] == pytest.approx(
            np.diff(stats.laplace.cdf([(k - 0.5) * step, (k + 0.5) * step]))[0], rel=1e-9
        )


def tied_sums(data, rng):
    return bool(rng.geometric(0.3) * 0.1 + 0.2 > rng.geometric(0.3) * 0.1 + 0.3)


def test_ties_between_whole_random_numbers_stop_the_extraction():
    with pytest.raises(CannotFollow, match="rounding of floats"):
        law_of(tied_sums, None)


@pytest.mark.parametrize(
    ("function", "cut"),
    [
        (lambda x: np.round(x, 1) * 10 >= 3, 0.25),
        (lambda x: np.round(x, 2) * 100 >= 29, 0.295),  # 0.29 * 100 is a little less than 29
        (lambda x: np.round(x, 1) * 2 - 28 > -27.6, 0.25),
        (lambda x: math.floor(x) / 10 > 0.3, 4.0),
    ],
    ids=range(4),
)
def test_grids_that_are_transformed_lie_where_floats_have_them(function, cut):
    found = law_of(lambda data, rng: bool(function(rng.laplace())), None).outcomes()
    assert found[True] == pytest.approx(stats.laplace.sf(cut), rel=1e-12)


def test_the_difference_of_two_exponential_draws_is_a_laplace_draw():
    law = law_of(lambda data, rng: data + 3.0 * (rng.exponential() - rng.exponential()), 1.0)
    x = np.array([-4.0, 1.0, 7.5])
    assert law.log_prob(x) == pytest.approx(stats.laplace.logpdf(x, 1.0, 3.0), abs=1e-12)


def test_a_uniform_number_lies_on_a_grid_of_two_to_the_minus_53():
    assert law_of(lambda _, rng: bool(rng.random() > 1.0 - 2.0**-53), None).outcomes() == {False: 1.0}
    assert sources.uniform().mass(Region.above(1.0 - 2.0**-52)) == pytest.approx(2.0**-52)
