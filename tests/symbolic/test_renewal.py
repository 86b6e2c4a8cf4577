"""Loops that try again: laws in closed form, and loops that only look as if they came back."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import dpaudit
from dpaudit import PureDP, Verdict
from dpaudit.symbolic import law_of
from dpaudit.symbolic.running.loops.renewal import Comeback, factors


def truncated(data, rng):
    while True:
        x = sum(data) + rng.laplace(scale=2.0)
        if 0.0 <= x <= 4.0:
            return x


def truncated_elsewhere(centre, rng):
    x = centre + rng.laplace(scale=2.0)
    while not 0.0 <= x <= 4.0:
        x = centre + rng.laplace(scale=2.0)
    return x


def two_of_them(data, rng):
    return [truncated_elsewhere(centre, rng) for centre in (1.0, 3.0)]


def discrete_gaussian(data, rng):
    while True:
        y = int(rng.integers(-4, 5))
        if rng.random() < math.exp(-y * y / 4.0):
            return y


def random_walk(start, rng):
    place = start
    while 0 < place < 5:
        place += 1 if rng.random() < 0.4 else -1
    return place


def odd_number_of_heads(data, rng):
    heads = 0
    while rng.random() < 0.3:
        heads = 1 - heads
    return heads


def density(x, centre):
    inside = np.diff(stats.laplace.cdf([0.0, 4.0], centre, 2.0))[0]
    return stats.laplace.logpdf(x, centre, 2.0) - math.log(inside)


def test_a_truncated_law():
    law = law_of(truncated, [1, 2])
    assert law.rest == 0.0
    x = np.array([0.0, 0.5, 2.9, 3.5, 4.0])
    assert law.log_prob(x) == pytest.approx(density(x, 3.0), abs=1e-11)


def test_a_loop_inside_of_a_loop_over_rows():
    law = law_of(two_of_them, None)
    assert law.rest == 0.0
    x = np.array([[0.5, 0.5], [3.5, 2.0]])
    expected = density(x[:, 0], 1.0) + density(x[:, 1], 3.0)
    assert law.log_prob(x) == pytest.approx(expected, abs=1e-9)


def test_a_loop_with_several_states():
    weights = {y: math.exp(-y * y / 4.0) for y in range(-4, 5)}
    total = math.fsum(weights.values())
    found = law_of(discrete_gaussian, None)
    assert found.rest == 0.0
    assert found.outcomes() == pytest.approx({y: weight / total for y, weight in weights.items()}, rel=1e-10)


@pytest.mark.parametrize("start", [1, 2, 4])
def test_a_random_walk_reaches_its_ends_as_often_as_the_gamblers_ruin_says(start):
    ratio = 0.6 / 0.4
    top = (1.0 - ratio**start) / (1.0 - ratio**5)
    assert law_of(random_walk, start).outcomes() == pytest.approx({0: 1.0 - top, 5: top}, rel=1e-10)


def test_a_loop_with_a_state_of_its_own():
    assert law_of(odd_number_of_heads, None).outcomes() == pytest.approx({0: 0.7 / (1 - 0.09), 1: 0.21 / (1 - 0.09)})


def test_epsilon_of_a_retry_loop_has_both_ends():
    pair = [([1], [1, 1])]
    masses = [np.diff(stats.laplace.cdf([0.0, 4.0], centre, 2.0))[0] for centre in (1.0, 2.0)]
    truth = 0.5 + abs(math.log(masses[0] / masses[1]))
    found = dpaudit.verify(truncated, PureDP(truth + 1e-6), pair)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.epsilon == pytest.approx((truth, truth), rel=1e-9)
    assert dpaudit.verify(truncated, PureDP(truth - 1e-6), pair).verdict is Verdict.VIOLATION


# Loops that are not what they look like.


def ends_after_three(data, rng):
    for _ in itertools.repeat(None, 3):
        if rng.random() < 0.5:
            return 1
    return 0


def ends_with_an_iterator(data, rng):
    left = iter(["a"] * 3)
    while next(left, None):
        if rng.random() < 0.5:
            return 1
    return 0


def ends_with_a_generator(data, rng):
    def three():
        yield "a"
        yield "a"
        yield "a"

    left = three()
    while next(left, None) is not None:
        if rng.random() < 0.5:
            return 1
    return 0


def ends_with_the_stack(data, rng):
    def tries(left):
        if left == 0:
            return 0
        return 1 if rng.random() < 0.5 else tries(left - 1)

    return tries(3)


class Counter:
    def __init__(self):
        self.left = 3

    def __call__(self):
        self.left -= 1
        return self.left >= 0


def ends_with_an_object(data, rng):
    left = Counter()
    while left():
        if rng.random() < 0.5:
            return 1
    return 0


def ends_with_a_closure(data, rng):
    left = 3

    def again():
        nonlocal left
        left -= 1
        return left >= 0

    while again():
        if rng.random() < 0.5:
            return 1
    return 0


def ends_with_what_waits_in_an_expression(data, rng):
    values = [0, 0, 1]
    while True:
        values.append(0)
        if values.pop(0) + (rng.random() < 0.5) >= 1:
            return len(values)


@pytest.mark.parametrize(
    "function",
    [
        ends_after_three,
        ends_with_an_iterator,
        ends_with_a_generator,
        ends_with_the_stack,
        ends_with_an_object,
        ends_with_a_closure,
    ],
)
def test_a_loop_that_ends_after_three_tries_is_not_endless(function):
    assert law_of(function, None).outcomes() == pytest.approx({1: 0.875, 0: 0.125})


def test_values_inside_an_unfinished_expression_belong_to_the_state():
    assert law_of(ends_with_what_waits_in_an_expression, None).outcomes() == pytest.approx({3: 1.0})


def correlated(data, rng):
    """The second number starts as the first one and is drawn anew only if it is false."""
    first = rng.random() < 0.5

    def loop(x):
        while True:
            if x:
                return 1
            x = rng.random() < 0.5
            if x and rng.random() < 0.5:
                return 2

    return bool(first), loop(first)


def test_a_draw_that_the_caller_holds_is_not_renamed():
    law = law_of(correlated, None).outcomes()
    assert law == pytest.approx({(True, 1): 0.5, (False, 1): 0.25, (False, 2): 0.25})


def never_ends(data, rng):
    while True:
        rng.random()


def test_a_loop_without_a_way_out_is_not_followed_and_ends():
    assert law_of(never_ends, None).rest == 1.0


def test_factors_of_nested_loops():
    """An inner loop with p = 1/2 and an outer one with p = 1/3 of what leaves the inner one."""
    ended = [((0,), 0.25), ((1, 0), 0.1)]
    back = [Comeback((1, 1, 0), (1,), 0.3, 0.0), Comeback((1, 1, 1), (), 0.35, 0.0)]
    scales, rest, _ = factors(ended, back, [])
    inner = 0.75 / 0.45  # from state (1,): weight 0.75, of which 0.3 comes back
    outer = 1.0 / (1.0 - 0.35 * inner)
    assert scales == pytest.approx([outer, inner * outer])
    assert rest == 0.0
    assert sum(scale * weight for scale, (_, weight) in zip(scales, ended, strict=True)) == pytest.approx(1.0)


def test_paths_that_are_not_followed_are_bracketed():
    scales, rest, _ = factors([((0,), 0.5)], [Comeback((1, 0), (), 0.3, 0.0)], [((1, 1), 0.2)])
    assert scales == pytest.approx([1.0 / 0.7])  # as if nothing of the rest came back: the least it can be
    assert 0.5 * scales[0] + rest == pytest.approx(1.0)
