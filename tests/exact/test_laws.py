"""Laws: their masses, densities, draws and error messages."""

from __future__ import annotations

import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import exact
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact import (
    Clipped,
    Density,
    Discrete,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    LaplaceGaussian,
    Law,
    Mixture,
    PiecewiseConstant,
    PiecewiseExponential,
    Product,
    Rounded,
    Tail,
    Truncated,
    WithAtoms,
)
from dpaudit.exact.form import form_of, heaviest, log_total


def log_triangle(x):
    with np.errstate(divide="ignore"):
        return np.log1p(-np.abs(x))


def log_logistic(x):
    return -np.abs(x) - 2.0 * np.log1p(np.exp(-np.abs(x)))


TRIANGLE = Density(log_triangle, [0.0], (-1.0, 1.0))
LOGISTIC = Density(log_logistic, tails=(Tail(linear=1.0), Tail(linear=1.0)))

REAL_LAWS = [
    Laplace(1.0, 0.5),
    Gaussian(-2.0, 3.0),
    Exponential(1.0, 2.0),
    LaplaceGaussian(0.5, 1.0, 2.0),
    PiecewiseConstant([0.0, 0.5, 2.0, 2.5], [0.0, -math.inf, 1.0]),
    PiecewiseExponential.normalised([-math.inf, -1.0, 1.0, math.inf], [0.0, 1.0, 0.5], [2.0, 0.0, -0.3]),
    TRIANGLE,
    LOGISTIC,
    Mixture([0.2, 0.8], [Gaussian(0.0, 1.0), Laplace(4.0, 0.1)]),
    Truncated(Gaussian(0.0, 1.0), 0.5, math.inf),
    Truncated(Laplace(0.0, 1.0), 30.0, 40.0),
    Truncated(DiscreteLaplace(0, 3.0), 2.0, 6.5),
    Truncated(DiscreteLaplace(0, 2.0), 12.0, math.inf),
    Clipped(Laplace(0.0, 1.0), -0.5, 2.0),
    Clipped(DiscreteLaplace(2, 4.0), 0.0, 5.0),
    Rounded(Gaussian(0.3, 2.0), 0.5),
    Rounded(Clipped(Laplace(0.0, 1.0), -1.1, 1.4), 0.25),
    WithAtoms({0.0: 0.25, 3.0: 0.25}, 0.5, Gaussian(0.0, 1.0)),
    DiscreteLaplace(-3, 2.5),
    Discrete({1.5: 0.25, -2.0: 0.75}),
]
NAMES = [f"{type(law).__name__}{position}" for position, law in enumerate(REAL_LAWS)]
DENSITIES = {name: law for name, law in zip(NAMES, REAL_LAWS, strict=True) if form_of(law).continuous}
each_law = pytest.mark.parametrize("law", REAL_LAWS, ids=NAMES)


def distribution_function(law, points):
    """P(X <= t) from the form: closed form or quadrature, never a draw."""
    form = form_of(law)
    values = []
    for t in points:
        total = math.fsum(math.exp(v) for outcome, v in form.atoms.items() if outcome <= t)
        if form.lattice:
            total += math.exp(form.lattice.log_range(-math.inf, math.floor(t / form.lattice.step + 1e-9)))
        if form.continuous:
            total += math.exp(float(form.continuous.log_mass(np.array(-np.inf), np.array(t))))
        values.append(total)
    return np.array(values)


@each_law
def test_mass_is_one(law):
    assert isinstance(law, Law)
    assert log_total(form_of(law)) == pytest.approx(0.0, abs=1e-12)


@each_law
def test_draws_follow_the_distribution_function(law):
    # Dvoretzky-Kiefer-Wolfowitz (Massart): P(sup > t) <= 2 exp(-2 n t^2) = 1e-9; the seed is fixed.
    size = 20_000
    draws = np.asarray(law.sample(size, np.random.default_rng(1)), dtype=np.float64)
    assert draws.shape == (size,)
    bound = math.sqrt(math.log(2e9) / (2 * size))
    points = np.quantile(draws, np.linspace(0.0, 1.0, 41), method="nearest")
    empirical = np.array([(draws <= t).mean() for t in points])
    assert np.abs(empirical - distribution_function(law, points)).max() <= bound
    assert np.isfinite(law.log_prob(draws[:200])).all()
    assert len(law.sample(0, np.random.default_rng(0))) == 0


@each_law
def test_log_prob_outside_the_support_is_minus_infinity_and_never_nan(law):
    values = law.log_prob([math.nan, math.inf, -math.inf])
    assert (values == -math.inf).all()


@each_law
def test_laws_pickle_and_compare(law):
    copy = pickle.loads(pickle.dumps(law))
    assert copy == law
    assert exact.epsilon(law, copy) == 0.0


@pytest.mark.parametrize("law", DENSITIES.values(), ids=DENSITIES.keys())
def test_interval_masses_are_integrals_of_the_density(law):
    from scipy.integrate import quad

    part = form_of(law).continuous
    low, high = max(part.support[0], -4.0), min(part.support[1], 40.0)
    cuts = sorted({low, high, *(x for x in (*part.kinks, *part.landmarks) if low < x < high)})
    pieces = [
        quad(lambda x: math.exp(part.log_density(np.array([x]), 1)[0]), *ends, epsabs=0.0, epsrel=1e-11)[0]
        for ends in itertools.pairwise(cuts)
    ]
    assert math.exp(float(part.log_mass(np.array(low), np.array(high)))) == pytest.approx(math.fsum(pieces), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    scale=st.floats(0.01, 100.0),
    location=st.floats(-50.0, 50.0),
    start=st.floats(-40.0, 40.0),
    width=st.floats(1e-9, 40.0),
)
def test_gaussian_masses_of_intervals_keep_their_relative_accuracy(scale, location, start, width):
    import mpmath as mp

    low, high = location + scale * start, location + scale * (start + width)
    found = float(form_of(Gaussian(location, scale)).continuous.log_mass(np.array(low), np.array(high)))
    with mp.workdps(450):
        a, b = ((mp.mpf(end) - mp.mpf(location)) / mp.mpf(scale) for end in (low, high))
        expected = mp.log(mp.ncdf(b) - mp.ncdf(a)) if b > a else -mp.inf
        assert found == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


# ---------------------------------------------------------------------------------------------------------- single laws


def test_discrete_keeps_any_outcome():
    law = Discrete({None: 0.1, "a": 0.2, (1, 2): 0.3, math.nan: 0.4})
    assert np.exp(law.log_prob([None, "a", (1, 2), float("nan"), "b"])).round(12).tolist() == [0.1, 0.2, 0.3, 0.4, 0.0]
    assert set(law.sample(50, np.random.default_rng(0))) <= {None, "a", (1, 2), math.nan}
    rows = Discrete({(0, 1): 0.5, (1, 0): 0.5})
    assert rows.log_prob(np.array([[0, 1], [1, 1]])).tolist() == [math.log(0.5), -math.inf]


def test_discrete_samples_arrays_of_numbers():
    assert Discrete({0: 0.5, 1: 0.5}).sample(5, np.random.default_rng(0)).dtype == np.int64
    assert Discrete({True: 0.5, False: 0.5}).sample(5, np.random.default_rng(0)).dtype == np.bool_
    assert isinstance(Discrete({0: 0.5, "x": 0.5}).sample(5, np.random.default_rng(0)), list)


def test_discrete_distinguishes_tiny_from_zero_probabilities():
    law = Discrete.from_log(["never", "hardly", "always"], [-math.inf, -2000.0, 0.0])
    assert law.log_prob(["never", "hardly"]).tolist() == [-math.inf, -2000.0]
    assert exact.epsilon(law, Discrete.from_log(["hardly", "always"], [-2001.0, 0.0])) == 1.0
    assert law == Discrete.from_log(["always", "hardly"], [0.0, -2000.0])
    assert hash(law) == hash(Discrete.from_log(["always", "hardly"], [0.0, -2000.0]))
    assert not law.log_probabilities.flags.writeable


def test_density_jumps_and_ends():
    law = PiecewiseConstant([0.0, 1.0, 3.0], [math.log(0.5), math.log(0.25)])
    assert np.exp(law.log_prob([-0.1, 0.0, 1.0, 3.0, 3.1])).round(12).tolist() == [0.0, 0.5, 0.25, 0.25, 0.0]
    part = form_of(law).continuous
    assert part.log_density(np.array([1.0]), -1)[0] == pytest.approx(math.log(0.5))


def test_piecewise_laws_far_from_the_origin_do_not_cancel():
    P = PiecewiseExponential.normalised([1e8, 1e8 + 1.0], [0.0], [-1e-3])
    assert P.log_prob([1e8])[0] == pytest.approx(math.log(1e-3 / -math.expm1(-1e-3)), abs=1e-7)
    assert exact.epsilon(Laplace(1e6, 1e-3), Laplace(1e6 + 1e-3, 1e-3)) == pytest.approx(1.0, rel=1e-6)
    # The mixture is computed as a general density, with the kinks evaluated exactly at their places.
    shift = 2.0**-10
    shifted = [Mixture([1.0], [Laplace(2.0**20 + k * shift, shift)]) for k in (0, 1)]
    assert exact.epsilon(*shifted) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("slope", [0.0, 5e-324, 1e-300, 1e-12, -1e-9, 1e-7])
def test_very_small_slopes_keep_their_accuracy(slope):
    law = PiecewiseExponential.normalised([0.0, 2.0], [0.0], [slope])
    assert law.log_prob([1.0])[0] == pytest.approx(-math.log(2.0), abs=1e-13)
    assert np.exp(Rounded(law, 1.0).log_prob([0.0, 1.0, 2.0])).tolist() == pytest.approx([0.25, 0.5, 0.25], rel=1e-6)
    assert law.sample(1000, np.random.default_rng(0)).mean() == pytest.approx(1.0, abs=0.15)


def test_exact_rounding_of_ties_and_atoms():
    law = Rounded(Discrete({0.5: 0.25, 1.5: 0.25, -0.5: 0.5}), 1.0)
    assert np.exp(law.log_prob([0.0, 2.0, 1.0])).tolist() == pytest.approx([0.75, 0.25, 0.0])
    draws = law.sample(100, np.random.default_rng(0))
    assert set(draws.tolist()) == {0.0, 2.0}


def test_clipping_puts_the_mass_outside_into_atoms():
    law = Clipped(Laplace(0.0, 1.0), -1.0, 2.0)
    assert np.exp(law.log_prob([-1.0, 2.0])).tolist() == pytest.approx([math.exp(-1) / 2, math.exp(-2) / 2], rel=1e-14)
    inner = Clipped(DiscreteLaplace(0, 1.0), 0.0, 1.0)
    masses = np.exp(inner.log_prob([0, 1, 2]))
    assert masses.tolist() == pytest.approx([1 / (1 + math.exp(-1)), math.exp(-1) / (1 + math.exp(-1)), 0.0], rel=1e-14)


def test_mixture_of_atoms_grids_and_densities():
    law = Mixture([0.5, 0.25, 0.25], [Discrete({0.0: 1.0}), DiscreteLaplace(0, 1.0), Gaussian(0.0, 1.0)])
    peak = math.tanh(0.5)
    assert np.exp(law.log_prob([0.0, 1.0, 0.5])).tolist() == pytest.approx(
        [0.5 + 0.25 * peak, 0.25 * peak * math.exp(-1.0), 0.25 * math.exp(-0.125) / math.sqrt(2 * math.pi)], rel=1e-14
    )
    words = Mixture([0.5, 0.5], [Discrete({"a": 1.0}), Discrete({"a": 0.5, None: 0.5})])
    assert np.exp(words.log_prob(["a", None])).tolist() == pytest.approx([0.75, 0.25])
    assert set(words.sample(40, np.random.default_rng(0))) == {"a", None}


def test_atoms_that_are_not_numbers():
    law = WithAtoms({None: 0.5}, 0.5, Laplace(0.0, 1.0))
    assert np.exp(law.log_prob([None, 0.0, "x"])).tolist() == [0.5, 0.25, 0.0]
    draws = law.sample(100, np.random.default_rng(0))
    assert sum(draw is None for draw in draws) == pytest.approx(50, abs=40)
    with pytest.raises(LawError, match="None"):
        Rounded(law, 1.0)
    with pytest.raises(LawError, match="None"):
        Clipped(law, 0.0, 1.0).form()


def test_product_rows():
    law = Product([Laplace(0.0, 1.0), Discrete({"a": 0.5, "b": 0.5})])
    assert law.log_prob([(0.0, "a"), (0.0, "c")]).tolist() == [math.log(0.25), -math.inf]
    assert len(law.sample(3, np.random.default_rng(0))) == 3
    numbers = Product([Laplace(0.0, 1.0), Gaussian(0.0, 1.0)])
    assert numbers.sample(3, np.random.default_rng(0)).shape == (3, 2)
    assert numbers.log_prob(np.zeros((2, 2))).shape == (2,)
    with pytest.raises(InvalidArgument, match="2 coordinates"):
        numbers.log_prob(np.zeros((2, 3)))
    with pytest.raises(InvalidArgument, match="2 coordinates"):
        law.log_prob([(0.0,)])
    assert Product([Discrete({0: 0.5, 1: 0.5})] * 2).form().atoms == pytest.approx(
        {pair: math.log(0.25) for pair in ((0, 0), (0, 1), (1, 0), (1, 1))}
    )


def test_density_must_have_mass_one_and_return_numbers():
    with pytest.raises(LawError, match=r"total mass 2\b"):
        Density(lambda x: np.zeros_like(x), support=(0.0, 2.0))
    flat = Density.normalised(lambda x: np.zeros_like(x), support=(0.0, 2.0))
    assert flat.log_prob([1.0])[0] == pytest.approx(-math.log(2.0), rel=1e-14)
    with pytest.raises(LawError, match="NaN"):
        Density(lambda x: np.full_like(x, np.nan), support=(0.0, 1.0))
    with pytest.raises(InvalidArgument, match="low < high"):
        Density(lambda x: x, support=(1.0, 0.0))
    with pytest.raises(InvalidArgument, match="function"):
        Density(3.0)


def test_density_finds_a_narrow_peak_far_away():
    law = Density(lambda x: -0.5 * ((x - 1e4) / 0.01) ** 2 - 0.5 * math.log(2 * math.pi) - math.log(0.01))
    other = Density(lambda x: -0.5 * ((x - 1e4 - 0.01) / 0.01) ** 2 - 0.5 * math.log(2 * math.pi) - math.log(0.01))
    assert exact.delta(law, other, 1.0) == pytest.approx(0.1269367375066439, rel=1e-9)


def test_tails_add_up_to_the_heaviest():
    light, heavy = Tail(quadratic=0.5), Tail(linear=1.0, constant=0.3)
    assert heaviest([light, heavy]) == heavy
    both = heaviest([heavy, heavy, light])
    assert both.constant == pytest.approx(0.3 + math.log(2.0))
    assert heavy.log_ratio_limit(light) == math.inf
    assert light.log_ratio_limit(heavy) == -math.inf
    assert Tail(linear=1.0, power=2.0, constant=1.0).log_ratio_limit(Tail(linear=1.0, power=2.0)) == 1.0
    # 0.1 + 0.2 and 0.3 are the same rate, computed twice.
    assert Tail(linear=0.1 + 0.2).log_ratio_limit(Tail(linear=0.3)) == 0.0


# -------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplace(0.0, 0.0), "scale=0.0"),
        (lambda: Laplace(math.nan, 1.0), "location=nan"),
        (lambda: Gaussian(0.0, -1.0), "scale=-1.0"),
        (lambda: Exponential(0.0, math.inf), "scale=inf"),
        (lambda: LaplaceGaussian(0.0, 1.0, 0.0), "sigma=0.0"),
        (lambda: DiscreteLaplace(0.5, 1.0), "location=0.5"),
        (lambda: Discrete([0.5, 0.5]), r"probabilities=.* must map"),
        (lambda: Discrete({}), "list of at least one"),
        (lambda: Discrete({0: -0.1, 1: 1.1}), "between 0 and 1"),
        (lambda: Discrete({0: "x"}), "must be numbers"),
        (lambda: Discrete.from_log([0, 0], [math.log(0.5)] * 2), "more than once"),
        (lambda: Discrete.from_log([0, 1], [0.0]), "2 outcomes but 1"),
        (lambda: Discrete.from_log([0], [math.nan]), "NaN"),
        (lambda: PiecewiseConstant([0.0, 0.0], [0.0]), "increasing"),
        (lambda: PiecewiseConstant([0.0, math.inf], [0.0]), "finite"),
        (lambda: PiecewiseConstant([0.0, 1.0], [0.0, 0.0]), "2 edges make 1 segments"),
        (lambda: PiecewiseConstant([0.0, 1.0], [-math.inf]), "at least one of them finite"),
        (lambda: PiecewiseExponential([0.0, 1.0], [0.0], [0.0, 0.0]), "slopes"),
        (lambda: Mixture([0.5, 0.5], [Laplace(0.0, 1.0)]), "2 weights but 1"),
        (lambda: Mixture([1.5, -0.5], [Laplace(0.0, 1.0)] * 2), "weights holds"),
        (lambda: Mixture([1.0], ["x"]), r"laws\[0\]"),
        (lambda: WithAtoms([0.5], 0.5, Laplace(0.0, 1.0)), r"atoms=.* must map"),
        (lambda: WithAtoms({0: 0.5}, 0.5, "x"), "law='x'"),
        (lambda: Truncated(Laplace(0.0, 1.0), 1.0, 1.0), "low=1.0 must be below"),
        (lambda: Clipped(Laplace(0.0, 1.0), 2.0, 1.0), "low=2.0 must be below"),
        (lambda: Rounded(Laplace(0.0, 1.0), 0.0), "step=0.0"),
        (lambda: Product([]), "laws is empty"),
        (lambda: Product([3]), r"laws\[0\]=3"),
        (lambda: Laplace(0.0, 1.0).sample(-1, np.random.default_rng(0)), "size=-1"),
        (lambda: Gaussian(0.0, 1.0).sample(1, 7), "rng=7"),
    ],
)
def test_errors_name_the_invalid_argument(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Discrete({0: 0.5, 1: 0.4}), r"total mass 0\.9\b"),
        (lambda: Mixture([0.5, 0.3], [Laplace(0.0, 1.0)] * 2), r"total mass 0\.8\b"),
        (lambda: WithAtoms({0: 0.5}, 0.6, Laplace(0.0, 1.0)), r"total mass 1\.1\b"),
        (lambda: PiecewiseExponential([0.0, 1.0], [0.5], [0.0]), "total mass 1.648"),
        (lambda: PiecewiseExponential([0.0, math.inf], [0.0], [1.0]), "infinite mass"),
        (lambda: Truncated(Exponential(0.0, 1.0), -2.0, -1.0), "no mass"),
        (lambda: Rounded(DiscreteLaplace(0, 1.0), 2.0), "grid already"),
        (lambda: Mixture([0.5, 0.5], [Rounded(Laplace(0.0, 1.0), s) for s in (1.0, 3.0)]).form(), "different steps"),
        (lambda: Product([Laplace(0.0, 1.0)]).form(), "coordinates are discrete"),
        (lambda: form_of(object()), "no normal form"),
    ],
)
def test_objects_that_are_not_laws_are_refused(make, message):
    with pytest.raises(LawError, match=message):
        make()


@settings(max_examples=30)
@given(st.lists(st.floats(-30.0, 5.0), min_size=1, max_size=6), st.floats(0.01, 10.0), st.data())
def test_piecewise_constant_normalises_itself(log_weights, width, data):
    widths = [width * data.draw(st.floats(0.01, 1.0)) for _ in log_weights]
    law = PiecewiseConstant(np.concatenate([[0.0], np.cumsum(widths)]), log_weights)
    assert log_total(form_of(law)) == pytest.approx(0.0, abs=1e-12)


def test_importing_the_laws_loads_no_slow_module():
    heavy = "scipy.stats", "scipy.integrate", "statsmodels", "hypothesis", "pandas", "matplotlib"
    code = f"import sys, dpaudit.exact; print([m for m in {heavy!r} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_all_names_resolve_and_others_do_not():
    assert all(getattr(exact, name) is not None for name in exact.__all__)
    assert set(exact.__all__) <= set(dir(exact))
    with pytest.raises(AttributeError, match="no_such_law"):
        _ = exact.no_such_law


@pytest.mark.parametrize("law", [exact.DiscreteLaplace(0, 1.0), exact.Laplace(0.0, 1.0)])
def test_clipping_on_one_side_only(law):
    """The atom has the mass beyond it; the other side, to infinity, is unchanged."""
    clipped = exact.Clipped(law, 0, math.inf)
    below = 0.5 if isinstance(law, exact.Laplace) else 0.5 * (1.0 - math.tanh(0.5))
    at_zero = 0.0 if isinstance(law, exact.Laplace) else math.tanh(0.5)
    assert math.exp(clipped.log_prob([0.0])[0]) == pytest.approx(below + at_zero, abs=1e-12)
    assert clipped.log_prob([3.0])[0] == pytest.approx(law.log_prob([3.0])[0], abs=1e-12)
    assert clipped.log_prob([-1.0])[0] == -math.inf
