"""Functions whose extracted law was wrong, or stopped without need, until attacks by sampling showed it; and integrals."""

import math
import random
import secrets

import mpmath
import numpy as np
import pytest

from dpaudit.errors import CannotFollow
from dpaudit.symbolic import law_of

mpmath.mp.dps = 30


@pytest.mark.parametrize("scale", [0.1, 2.0])
def test_a_rounded_number_may_be_whole(scale):
    with pytest.raises(CannotFollow, match="is_integer of a rounded"):
        law_of(lambda data, rng: (data + round(rng.laplace(scale=scale), 1)).is_integer(), 5.0)
    assert law_of(lambda data, rng: (data + rng.laplace(scale=scale)).is_integer(), 5.0).outcomes() == {False: 1.0}
    shares = law_of(lambda data, rng: (0.5 * rng.integers(0, 4)).is_integer(), 5.0).outcomes()
    assert shares == {True: 0.5, False: 0.5}


def test_replays_at_several_values_find_what_only_some_values_show(monkeypatch):
    """As if a method of a symbol answered wrongly for one value in ten."""
    from dpaudit.symbolic.values.symbols import Symbol

    monkeypatch.setattr(Symbol, "is_integer", lambda self: False)
    with pytest.raises(CannotFollow, match="With plain numbers"):
        law_of(lambda data, rng: (data + round(rng.laplace(scale=0.1), 1)).is_integer(), 0.0)


def test_a_shifted_root_has_no_density_below_its_support():
    law = law_of(lambda data, rng: math.sqrt(rng.random()) + data, 2.0)
    x = np.array([1.5, 2.25, 2.5, 3.5])
    assert np.allclose(np.exp(law.log_prob(x)), [0.0, 0.5, 1.0, 0.0])


def test_a_loop_that_grows_less_likely_is_cut_on_its_unlikely_side():
    def bernoulli_of_exp(data, rng):
        k = 1
        while secrets.randbelow(10 * k) < 5:
            k += 1
        return k % 2 == 1

    law = law_of(bernoulli_of_exp, 0)
    assert law.rest < 1e-17
    assert law.outcomes()[True] == pytest.approx(math.exp(-0.5), abs=1e-15)


def test_a_draw_beyond_all_marks_is_compared_with_another():
    def function(data, rng):
        x = rng.laplace()
        return bool(x > 0), bool(x < 1), bool(x > rng.laplace())

    table = law_of(function, 0).outcomes()
    assert table[True, False, True] + table[True, False, False] == pytest.approx(0.5 * math.exp(-1.0), rel=1e-12)
    assert table[True, False, False] == pytest.approx(0.125 * math.exp(-2.0), rel=1e-10)


def test_whole_numbers_with_many_values_are_followed():
    shares = law_of(lambda data, rng: int(rng.integers(0, 2**62)) / 2**62 < 0.5, 0).outcomes()
    assert shares == pytest.approx({True: 0.5, False: 0.5}, rel=1e-14)


def test_lists_of_noisy_numbers_are_arrays_to_numpy():
    def choose(data, rng):
        return int(np.argmax([row + rng.gumbel() for row in data]))

    table = law_of(choose, [0.0, 1.0]).outcomes()
    assert table[1] == pytest.approx(1.0 / (1.0 + math.exp(-1.0)), rel=1e-11)
    total = law_of(lambda data, rng: float(np.sum([row + rng.normal() for row in data])), [1.0, 2.0])
    assert total.log_prob([3.0])[0] == pytest.approx(-0.5 * math.log(4.0 * math.pi))


DENSITY = {
    "laplace": lambda x: mpmath.exp(-abs(x)) / 2,
    "normal": mpmath.npdf,
    "exponential": lambda x: mpmath.exp(-x) if x >= 0 else mpmath.mpf(0),
    "gumbel": lambda x: mpmath.exp(-x - mpmath.exp(-x)),
    "logistic": lambda x: mpmath.exp(-abs(x)) / (1 + mpmath.exp(-abs(x))) ** 2,
}
ABOVE = {
    "laplace": lambda x: mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2,
    "normal": lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2,
    "exponential": lambda x: mpmath.exp(-x) if x > 0 else mpmath.mpf(1),
    "gumbel": lambda x: -mpmath.expm1(-mpmath.exp(-x)),
    "logistic": lambda x: 1 / (1 + mpmath.exp(x)),
}


@pytest.mark.parametrize("root", DENSITY)
def test_integrals_over_a_shared_draw_are_within_their_allowance(root):
    """Scales from 0.01 to 100, shifts up to 20, probabilities down to 1e-18."""
    rng = np.random.default_rng(sorted(DENSITY).index(root))
    for child in (root, "laplace", "gumbel"):
        scale, shift = float(10.0 ** rng.uniform(-2, 2)), float(rng.normal() * 10.0 ** rng.uniform(-1, 1.3))

        def above(data, draws, child=child, scale=scale, shift=shift):
            shared = getattr(draws, root)()
            return all(scale * getattr(draws, child)() + shift > shared for _ in range(2))

        law = law_of(above, 0)
        found = next((leaf for leaf in law.extraction.leaves if leaf.coordinates[0].value == 1.0), None)
        marks = {mpmath.mpf(shift) + mpmath.mpf(scale) * k for k in (-30, -8, -3, -1, 0, 1, 3, 8, 30)}
        low, high = {"exponential": (0, 80), "gumbel": (-8, 90), "normal": (-14, 14)}.get(root, (-90, 90))
        inner = sorted(x for x in marks | {mpmath.mpf(k) for k in (-8, -3, -1, 0, 1, 3, 8)} if low < x < high)
        truth = mpmath.quad(
            lambda x, child=child, scale=scale, shift=shift: (
                DENSITY[root](x) * ABOVE[child]((x - mpmath.mpf(shift)) / mpmath.mpf(scale)) ** 2
            ),
            [low, *inner, high],
        )
        if truth > mpmath.mpf("1e-18"):
            assert found is not None
            assert abs(found.weight / truth - 1) < found.error


def test_python_and_secrets_are_followed_inside_of_numpy_code():
    def mixed(data):
        return int(np.sum([secrets.randbelow(2), random.random() < 0.25, data]))

    assert law_of(mixed, 1).outcomes() == {1: 0.375, 2: 0.5, 3: 0.125}
