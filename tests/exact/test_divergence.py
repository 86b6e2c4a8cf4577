"""Properties of divergences for every pair of laws. Comparisons with mpmath are in test_divergence_oracle.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import PureDP, exact
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
    Mixture,
    PiecewiseConstant,
    PiecewiseExponential,
    Product,
    Rounded,
    Tail,
    Truncated,
    WithAtoms,
)

locations = st.floats(-5.0, 5.0)
scales = st.sampled_from([0.25, 0.5, 1.0, 2.0])


def distribution(size):
    return st.lists(st.floats(0.01, 1.0), min_size=size, max_size=size).map(lambda w: [x / math.fsum(w) for x in w])


@st.composite
def piecewise_constant(draw):
    inner = sorted(draw(st.sets(st.integers(1, 9), max_size=4)))
    edges = [0, *inner, 10]
    return PiecewiseConstant(edges, draw(st.lists(st.floats(-4, 4), min_size=len(edges) - 1, max_size=len(edges) - 1)))


@st.composite
def piecewise_exponential(draw):
    middle = draw(st.floats(-2.0, 2.0))
    edges = [-math.inf, -1.0, 2.0, math.inf]
    heights = draw(st.lists(st.floats(-2, 2), min_size=3, max_size=3))
    return PiecewiseExponential.normalised(edges, heights, [draw(scales), middle, -draw(scales)])


smooth = st.one_of(
    st.builds(Laplace, locations, scales),
    st.builds(Gaussian, locations, scales),
    st.builds(Exponential, locations, scales),
    st.builds(LaplaceGaussian, locations, scales, scales),
    piecewise_constant(),
    piecewise_exponential(),
)


@st.composite
def mixtures(draw):
    return Mixture(draw(distribution(2)), [draw(smooth), draw(smooth)])


densities = st.one_of(smooth, mixtures())
discretes = distribution(4).map(lambda w: Discrete(dict(enumerate(w))))
grids = st.one_of(
    st.builds(DiscreteLaplace, st.integers(-3, 3), scales),
    st.builds(Rounded, densities, st.sampled_from([0.5, 1.0])),
)
mixed = st.one_of(
    st.builds(lambda law, low: Clipped(law, low, low + 3.0), st.one_of(densities, grids), locations),
    st.builds(lambda law, p: WithAtoms({0.0: p, None: 0.25}, 0.75 - p, law), densities, st.floats(0.0, 0.75)),
)
laws = st.one_of(densities, discretes, grids, mixed)
levels = st.floats(0.0, 4.0)


@st.composite
def comparable(draw):
    """Two laws of the same kind, so that finite values occur too."""
    kind = draw(st.sampled_from(["discrete", "laplace", "piecewise", "mixture", "gaussian", "atoms", "noisy"]))
    if kind == "discrete":
        return draw(discretes), draw(discretes)
    if kind == "piecewise":
        return draw(piecewise_constant()), draw(piecewise_constant())
    if kind == "gaussian":
        return Gaussian(draw(locations), draw(scales)), Gaussian(draw(locations), draw(scales))
    if kind == "mixture":
        parts = [Laplace(float(k), 1.0) for k in range(3)]
        return Mixture(draw(distribution(3)), parts), Mixture(draw(distribution(3)), parts)
    if kind == "noisy":
        return LaplaceGaussian(draw(locations), 1.0, draw(scales)), LaplaceGaussian(draw(locations), 1.0, draw(scales))
    pair = [Laplace(draw(locations), 1.0) for _ in range(2)]
    if kind == "atoms":
        return tuple(WithAtoms({None: p}, 1.0 - p, law) for p, law in zip(draw(distribution(2)), pair, strict=True))
    return tuple(pair)


@settings(max_examples=60, deadline=None)
@given(laws, laws, levels, st.sampled_from([0.5, 1.0, 2.0, 7.5, math.inf]))
def test_any_two_laws_compare_without_nan(P, Q, level, order):
    found = exact.epsilon(P, Q, order="forward")
    assert found >= 0.0
    delta = exact.delta(P, Q, level, order="forward")
    assert 0.0 <= delta <= 1.0
    if level >= found:
        assert delta <= 1e-13
    divergence = exact.renyi(P, Q, order)
    assert 0.0 <= divergence <= found + 1e-9 * (1.0 + found)


@settings(max_examples=60, deadline=None)
@given(st.one_of(comparable(), st.tuples(densities, densities)), st.floats(0.0, 1.0))
def test_no_point_has_a_larger_ratio_than_epsilon(pair, offset):
    P, Q = pair
    found = exact.epsilon(P, Q, order="forward")
    x = np.linspace(-12.0, 16.0, 4001) + 0.007 * offset
    p, q = P.log_prob(x), Q.log_prob(x)
    seen = (p > -np.inf) & (found < math.inf)
    assert (p[seen] - q[seen] <= found + 1e-11 * (1.0 + found)).all()


def test_a_peak_beside_the_edge_of_a_panel_is_found():
    # Found by brute force: the maximum lies between the last sample of one panel and its end.
    P = LaplaceGaussian(0.7394642549418561, 0.49296948459054873, 1.5580425847394792)
    Q = LaplaceGaussian(2.531016202626902, 5.267369344082976, 1.182809435194097)
    x = np.linspace(-5.0, 5.0, 200_001)
    assert exact.epsilon(P, Q, order="forward") == pytest.approx((P.log_prob(x) - Q.log_prob(x)).max(), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(laws)
def test_a_law_is_at_distance_zero_from_itself(P):
    assert exact.epsilon(P, P) == exact.delta(P, P, 0.0) == exact.renyi(P, P, 2.0) == 0.0
    # The same law in another form is not recognised as equal, so the divergence is computed.
    again = Mixture([0.5, 0.5], [P, P])
    assert exact.epsilon(P, again) <= 1e-12
    assert exact.total_variation(P, again) <= 1e-13


@settings(max_examples=25, deadline=None)
@given(comparable(), st.lists(levels, min_size=2, max_size=5).map(sorted))
def test_profiles_fall_and_obey_pure_privacy(pair, epsilons):
    P, Q = pair
    curve = exact.profile(P, Q, epsilons)
    assert (np.diff(curve) <= 1e-13).all()
    assert curve.tolist() == [exact.delta(P, Q, e) for e in epsilons]
    worst = exact.epsilon(P, Q)
    if 0.0 < worst < math.inf:
        assert (curve <= PureDP(worst).delta(np.array(epsilons)) + 1e-13).all()


@settings(max_examples=30, deadline=None)
@given(comparable())
def test_total_variation_is_symmetric(pair):
    P, Q = pair
    assert exact.total_variation(P, Q) == pytest.approx(exact.total_variation(Q, P), rel=1e-11, abs=1e-15)


@settings(max_examples=30, deadline=None)
@given(comparable(), st.floats(0.2, 5.0), st.floats(1.01, 3.0))
def test_renyi_grows_with_its_order(pair, order, factor):
    P, Q = pair
    low, high = exact.renyi(P, Q, order), exact.renyi(P, Q, order * factor)
    assert low <= high * (1.0 + 1e-11) + 1e-15
    assert high <= exact.epsilon(P, Q, order="forward") + 1e-11


@settings(max_examples=30, deadline=None)
@given(smooth, smooth, st.sampled_from([0.3, 1.0, 2.5]), st.floats(-3.0, 3.0), st.floats(0.1, 6.0), levels)
def test_post_processing_never_increases_a_divergence(P, Q, step, low, width, level):
    worst, delta = exact.epsilon(P, Q), exact.delta(P, Q, level)
    for process in (lambda law: Rounded(law, step), lambda law: Clipped(law, low, low + width)):
        first, second = process(P), process(Q)
        assert exact.epsilon(first, second) <= worst + 1e-9 * (1.0 + worst)
        assert exact.delta(first, second, level) <= delta + 1e-12


@settings(max_examples=30, deadline=None)
@given(locations, scales, locations, scales, st.floats(-100.0, 100.0), st.sampled_from([0.125, 8.0]))
def test_gaussian_divergences_do_not_depend_on_the_unit(first, scale, second, scale2, shift, unit):
    P, Q = Gaussian(first, scale), Gaussian(second, scale2)
    moved = [Gaussian(shift + unit * law.location, unit * law.scale) for law in (P, Q)]
    for level in (0.0, 1.0):
        assert exact.delta(*moved, level) == pytest.approx(exact.delta(P, Q, level), rel=1e-8, abs=1e-13)


@given(locations, locations, st.floats(0.01, 10.0))
def test_laplace_shift_is_exact(first, second, scale):
    assert exact.epsilon(Laplace(first, scale), Laplace(second, scale)) == abs(first - second) / scale


@settings(max_examples=30, deadline=None)
@given(locations, locations, scales, levels)
def test_laplace_shift_computed_as_a_general_density(first, second, scale, level):
    P, Q = Laplace(first, scale), Laplace(second, scale)
    general = [Mixture([1.0], [law]) for law in (P, Q)]
    assert exact.epsilon(*general) == pytest.approx(exact.epsilon(P, Q), rel=1e-12, abs=1e-14)
    assert exact.delta(*general, level) == pytest.approx(exact.delta(P, Q, level), rel=1e-10, abs=1e-14)


@given(st.integers(-20, 20), st.integers(-20, 20), st.floats(0.1, 50.0))
def test_discrete_laplace_shift_is_exact(first, second, scale):
    assert exact.epsilon(DiscreteLaplace(first, scale), DiscreteLaplace(second, scale)) == abs(first - second) / scale


def test_a_law_that_meets_its_epsilon_has_delta_zero_there():
    for P, Q in (
        (Laplace(0.0, 0.3), Laplace(0.1, 0.3)),
        (Rounded(Laplace(0.0, 0.3), 0.1), Rounded(Laplace(0.1, 0.3), 0.1)),
        (Clipped(Laplace(0.0, 0.3), -1.0, 1.0), Clipped(Laplace(0.1, 0.3), -1.0, 1.0)),
        (DiscreteLaplace(0, 3.0), DiscreteLaplace(1, 3.0)),
        (Discrete({0: 0.75, 1: 0.25}), Discrete({0: 0.25, 1: 0.75})),
        (Product([Laplace(0.0, 1.0), Laplace(0.0, 7.0)]), Product([Laplace(0.0, 1.0), Laplace(0.3, 7.0)])),
    ):
        worst = exact.epsilon(P, Q)
        assert exact.delta(P, Q, worst) == 0.0
        assert exact.delta(P, Q, 0.999 * worst) > 0.0


# ------------------------------------------------------------------------------------------------- tails and supports


def test_limits_at_infinity_are_decided_by_the_tails():
    assert exact.epsilon(Laplace(0.0, 1.0), Laplace(0.0, 2.0), order="forward") == pytest.approx(math.log(2.0))
    assert exact.epsilon(Laplace(0.0, 2.0), Laplace(0.0, 1.0), order="forward") == math.inf
    assert exact.epsilon(Gaussian(0.0, 1.0), Gaussian(1e-9, 1.0)) == math.inf
    assert exact.epsilon(Gaussian(0.0, 1.0), Gaussian(0.0, 2.0), order="forward") == pytest.approx(math.log(2.0))
    assert exact.epsilon(Gaussian(0.0, 1.0), Laplace(0.0, 1.0), order="forward") < math.inf
    assert exact.epsilon(Laplace(0.0, 1.0), Gaussian(0.0, 1.0), order="forward") == math.inf
    # The widest component decides, however small its weight; with the same widest component the ratio is bounded.
    wide = Gaussian(0.0, 3.0)
    P, Q = (Mixture([1.0 - w, w], [Gaussian(m, 1.0), wide]) for m, w in ((0.0, 1e-12), (1.0, 2e-12)))
    assert exact.epsilon(P, Q) < math.inf
    assert exact.epsilon(P, Mixture([0.5, 0.5], [Gaussian(0.0, 1.0), Gaussian(0.0, 3.1)]), order="forward") < math.inf
    assert exact.epsilon(P, Mixture([0.5, 0.5], [Gaussian(0.0, 1.0), Gaussian(0.0, 2.9)]), order="forward") == math.inf
    assert exact.epsilon(Rounded(Laplace(0.0, 1.0), 0.5), Rounded(Laplace(0.0, 1.5), 0.5)) == math.inf
    assert exact.epsilon(LaplaceGaussian(0.0, 1.0, 1.0), Laplace(0.0, 1.0)) < math.inf


def test_laws_far_apart_in_their_own_units():
    # All mass of one law sits at the end of a panel a million scales wide, before the first node of any rule.
    P, Q = (Mixture([1.0], [Laplace(m, 1.0)]) for m in (0.0, 1e6))
    assert exact.delta(P, Q, 1.0) == pytest.approx(1.0, rel=1e-13)
    assert exact.epsilon(P, Q) == pytest.approx(1e6, rel=1e-15)
    assert exact.renyi(Gaussian(0.0, 1.0), Gaussian(1e6, 2.0), 2.0) == pytest.approx(
        1e12 / 7.0 + 0.5 * math.log(16.0 / 7.0), rel=1e-13
    )
    needle, hay = Gaussian(0.0, 1e-6), Gaussian(3.0, 1e6)
    assert exact.epsilon(needle, hay, order="forward") == pytest.approx(math.log(1e12), rel=1e-11)
    assert exact.renyi(needle, hay, 1.0) == pytest.approx(math.log(1e12) - 0.5, rel=1e-11)
    peaks = [Mixture([0.5, 0.5], [Gaussian(m, 1e-5), Gaussian(3.0, 1.0)]) for m in (0.0, 1e-5)]
    alone = exact.delta(Gaussian(0.0, 1e-5), Gaussian(1e-5, 1e-5), 0.1)
    assert exact.delta(*peaks, 0.1) == pytest.approx(0.5 * alone, rel=1e-4)


def test_supports_that_differ():
    left, right = PiecewiseConstant([0.0, 1.0], [0.0]), PiecewiseConstant([1.0, 2.0], [0.0])
    assert exact.epsilon(left, right) == math.inf
    assert exact.delta(left, right, 3.0) == pytest.approx(1.0, rel=1e-14)
    assert exact.renyi(left, right, 0.5) == exact.renyi(left, right, 1.0) == math.inf
    wide = PiecewiseConstant([0.0, 2.0], [0.0])
    assert exact.epsilon(left, wide, order="forward") == pytest.approx(math.log(2.0))
    assert exact.epsilon(wide, left, order="forward") == math.inf
    assert exact.renyi(left, wide, 3.0) == pytest.approx(math.log(2.0))
    assert exact.renyi(wide, left, 0.5) == pytest.approx(math.log(2.0))
    hole = PiecewiseConstant([0.0, 1.0, 1.5, 2.0], [0.0, -math.inf, 0.0])
    assert exact.epsilon(hole, wide, order="forward") < math.inf
    assert exact.delta(wide, hole, 5.0, order="forward") == pytest.approx(0.25)


def test_atoms_against_densities():
    P, Q = Discrete({0.0: 1.0}), Gaussian(0.0, 1.0)
    assert exact.epsilon(P, Q) == math.inf
    assert exact.delta(P, Q, 2.0) == 1.0
    assert exact.renyi(P, Q, 2.0) == math.inf
    spiked = WithAtoms({0.0: 0.5}, 0.5, Gaussian(0.0, 1.0))
    assert exact.epsilon(Q, spiked, order="forward") == pytest.approx(math.log(2.0))
    assert exact.epsilon(spiked, Q, order="forward") == math.inf
    assert exact.delta(spiked, Q, 0.0) == pytest.approx(0.5, rel=1e-14)
    # An atom of one law on the grid of the other is one point, with both masses.
    assert exact.delta(Discrete({0: 1.0}), DiscreteLaplace(0, 1.0), 0.0) == pytest.approx(
        1.0 - math.tanh(0.5), rel=1e-13
    )
    assert exact.epsilon(Discrete({0: 1.0}), DiscreteLaplace(0, 1.0), order="forward") == pytest.approx(
        -math.log(math.tanh(0.5))
    )


def test_grids_of_different_steps():
    coarse, fine = Rounded(Laplace(0.0, 1.0), 1.0), Rounded(Laplace(0.0, 1.0), 0.5)
    assert exact.epsilon(coarse, fine, order="forward") < math.inf
    assert exact.epsilon(fine, coarse, order="forward") == math.inf
    points = np.arange(-80, 81) * 0.5
    p, q = np.exp(coarse.log_prob(points)), np.exp(fine.log_prob(points))
    assert exact.delta(coarse, fine, 0.2, order="forward") == pytest.approx(np.maximum(p - math.exp(0.2) * q, 0).sum())
    with pytest.raises(LawError, match="same step"):
        exact.delta(coarse, Rounded(Laplace(0.0, 1.0), math.pi), 0.0)


def test_truncating_to_the_data_is_a_leak():
    P, Q = (Truncated(Laplace(0.0, 1.0), -high, high) for high in (3.0, 3.1))
    assert exact.epsilon(P, Q, order="forward") == pytest.approx(math.log(math.expm1(-3.1) / math.expm1(-3.0)))
    assert exact.epsilon(P, Q) == math.inf


def test_unknown_tails_raise_an_error_that_asks_for_them():
    def log_density(x):
        return -np.abs(x) - math.log(2.0)

    P, Q = Density(log_density, [0.0]), Density(lambda x: log_density(x - 1.0), [1.0])
    assert exact.delta(P, Q, 0.5) == pytest.approx(-math.expm1(-0.25), rel=1e-10)
    assert exact.renyi(P, Q, 0.5) == pytest.approx(exact.renyi(Laplace(0.0, 1.0), Laplace(1.0, 1.0), 0.5), rel=1e-10)
    for compare in (lambda: exact.epsilon(P, Q), lambda: exact.renyi(P, Q, 2.0)):
        with pytest.raises(LawError, match="tails="):
            compare()
    ends = [Tail(linear=1.0, constant=c - math.log(2.0)) for c in (0.0, 0.0, -1.0, 1.0)]
    known = (
        Density(log_density, [0.0], tails=tuple(ends[:2])),
        Density(lambda x: log_density(x - 1.0), [1.0], tails=tuple(ends[2:])),
    )
    assert exact.epsilon(*known) == pytest.approx(1.0, rel=1e-12)


def test_heavy_tails():
    def cauchy(scale):
        tail = Tail(power=2.0, constant=math.log(scale / math.pi))
        return Density(lambda x: math.log(scale / math.pi) - np.log(x * x + scale * scale), tails=(tail, tail))

    narrow, wide = cauchy(1.0), cauchy(2.0)
    assert exact.epsilon(wide, narrow, order="forward") == pytest.approx(math.log(2.0), rel=1e-10)
    assert exact.epsilon(narrow, wide, order="forward") == pytest.approx(math.log(2.0), rel=1e-10)
    # They cross at x^2 = 2: total variation (2/pi)(atan(sqrt 2) - atan(1 / sqrt 2)).
    crossing = math.sqrt(2.0)
    assert exact.total_variation(wide, narrow) == pytest.approx(
        2.0 / math.pi * (math.atan(crossing) - math.atan(crossing / 2.0)), rel=1e-10
    )
    assert exact.renyi(narrow, Gaussian(0.0, 1.0), 1.0) == math.inf
    # Chyzak and Nielsen 2019: KL = log((s1 + s2)^2 / (4 s1 s2))
    assert exact.renyi(narrow, wide, 1.0) == pytest.approx(math.log(9.0 / 8.0), rel=1e-10)


def test_densities_that_vanish_at_an_end_are_not_singular():
    with np.errstate(divide="ignore"):
        triangle = Density(lambda x: np.log(2.0 * x), support=(0.0, 1.0))
    uniform = PiecewiseConstant([0.0, 1.0], [0.0])
    assert exact.epsilon(triangle, uniform, order="forward") == pytest.approx(math.log(2.0), rel=1e-12)
    assert exact.epsilon(uniform, triangle, order="forward") > 30.0
    assert exact.renyi(uniform, triangle, 1.0) == pytest.approx(1.0 - math.log(2.0), rel=1e-10)
    assert exact.total_variation(uniform, triangle) == pytest.approx(0.25, rel=1e-12)


# -------------------------------------------------------------------------------------------------------------- products


def test_epsilon_of_a_product_is_the_sum_over_coordinates():
    P = Product([Laplace(0.0, 1.0), Gaussian(3.0, 1.0), Discrete({0: 0.75, 1: 0.25})])
    Q = Product([Laplace(0.5, 1.0), Gaussian(3.0, 1.0), Discrete({0: 0.25, 1: 0.75})])
    assert exact.epsilon(P, Q) == pytest.approx(0.5 + math.log(3.0), rel=1e-15)
    parts = [(Laplace(0.0, 1.0), Laplace(0.5, 1.0)), (P.laws[2], Q.laws[2])]
    assert exact.renyi(P, Q, 3.0) == pytest.approx(sum(exact.renyi(p, q, 3.0) for p, q in parts), rel=1e-14)
    assert exact.delta(P, P, 0.0) == 0.0
    nested = (
        Product([Product([Laplace(0.0, 1.0)]), Laplace(2.0, 1.0)]),
        Product([Product([Laplace(1.0, 1.0)]), Laplace(2.0, 1.0)]),
    )
    assert exact.epsilon(*nested) == 1.0
    assert exact.delta(*nested, 0.0) == exact.delta(Laplace(0.0, 1.0), Laplace(1.0, 1.0), 0.0)


def test_the_worse_order_of_a_product_is_one_order_for_all_coordinates():
    # One coordinate leaks forwards, the other backwards: the sum is taken per order, not coordinate by coordinate.
    loose, tight = Discrete({0: 0.5, 1: 0.5}), Discrete({0: 0.9, 1: 0.1})
    P, Q = Product([loose, tight]), Product([tight, loose])
    forward = exact.epsilon(loose, tight, order="forward") + exact.epsilon(tight, loose, order="forward")
    assert exact.epsilon(P, Q) == pytest.approx(forward, rel=1e-15)
    assert forward < 2.0 * exact.epsilon(loose, tight)


def test_delta_of_several_densities_raises_an_error():
    P, Q = Product([Laplace(0.0, 1.0)] * 2), Product([Laplace(1.0, 1.0)] * 2)
    with pytest.raises(LawError, match="dp-accounting"):
        exact.delta(P, Q, 1.0)
    rng = np.random.default_rng(0)
    wide = [Product([Discrete(dict(enumerate(rng.dirichlet(np.ones(300))))) for _ in range(3)]) for _ in range(2)]
    with pytest.raises(LawError, match="distinct privacy losses"):
        exact.delta(*wide, 1.0)


def test_products_of_different_length_have_infinite_epsilon():
    P, Q = Product([Laplace(0.0, 1.0)]), Product([Laplace(0.0, 1.0)] * 2)
    assert exact.epsilon(P, Q) == exact.renyi(P, Q, 2.0) == math.inf
    assert exact.delta(P, Q, 1.0) == 1.0


def test_a_product_of_discrete_laws_is_a_discrete_law():
    coin, loaded = Discrete({0: 0.5, 1: 0.5}), Discrete({0: 0.6, 1: 0.4})
    joint = Discrete({(0, 0): 0.25, (0, 1): 0.25, (1, 0): 0.25, (1, 1): 0.25})
    assert exact.delta(Product([coin, coin]), joint, 0.0) == pytest.approx(0.0, abs=1e-15)
    assert exact.epsilon(Product([loaded, coin]), joint) == pytest.approx(math.log(1.25), rel=1e-14)
    both = Mixture([0.5, 0.5], [Product([coin, coin]), Product([loaded, loaded])])
    assert exact.epsilon(both, joint) < exact.epsilon(Product([loaded, loaded]), joint)


def test_infinite_losses_compose():
    P, Q = Discrete({0: 0.9, 1: 0.1}), Discrete({0: 1.0})
    assert exact.delta(Product([P] * 3), Product([Q] * 3), 50.0, order="forward") == pytest.approx(1.0 - 0.9**3)
    assert exact.delta(Product([P, Laplace(0.0, 1.0)]), Product([Q, Laplace(1.0, 1.0)]), 50.0) == pytest.approx(0.1)


# ------------------------------------------------------------------------------------------------------------- arguments


def test_arguments_are_checked():
    P, Q = Laplace(0.0, 1.0), Laplace(1.0, 1.0)
    with pytest.raises(InvalidArgument, match="'backward'"):
        exact.epsilon(P, Q, order="backward")
    with pytest.raises(InvalidArgument, match=r"epsilon=-1\.0"):
        exact.delta(P, Q, -1.0)
    with pytest.raises(InvalidArgument, match=r"epsilons holds -0\.5"):
        exact.profile(P, Q, [0.5, -0.5])
    for order in (0.0, -1.0, math.nan, "two", True):
        with pytest.raises(InvalidArgument, match="order="):
            exact.renyi(P, Q, order)
    assert exact.profile(P, Q, np.zeros((2, 3))).shape == (2, 3)
    with pytest.raises(LawError, match="which is no law"):
        exact.epsilon(P, object())


def test_infinite_order_is_the_max_divergence_of_that_order():
    P, Q = Discrete({0: 0.5, 1: 0.5}), Discrete({0: 0.9, 1: 0.1})
    assert exact.renyi(P, Q, math.inf) == exact.epsilon(P, Q, order="forward")
    assert exact.renyi(P, Q, 400.0) == pytest.approx(exact.epsilon(P, Q, order="forward"), rel=2e-3)
