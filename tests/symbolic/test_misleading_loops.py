"""Loops of at most three tries that look as if they tried for ever: what counts is hidden, or the tries are made by C code."""

from __future__ import annotations

import collections
import dataclasses
import functools
import io
import itertools
import os
import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.symbolic import law_of

Loop = Callable[[np.random.Generator], int]


def made_counter() -> Callable[[], int]:
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return count

    return step


class Described:
    """A descriptor that counts how often it is read."""

    def __init__(self) -> None:
        self.reads = 0

    def __get__(self, _owner: Any, _kind: Any) -> int:
        self.reads += 1
        return self.reads


class Listed(list[int]):
    count = 0


class Whole(int):
    count = 0


class Rows(np.ndarray):  # type: ignore[type-arg]
    count = 0


@dataclasses.dataclass(slots=True)
class Slotted:
    count: int = 0


def counted_in(holder: Any) -> Loop:
    """A loop that counts in an attribute of what ``holder`` makes."""

    def loop(rng: np.random.Generator) -> int:
        box = holder()
        while box.count < 3:
            box.count += 1
            if rng.random() < 0.5:
                return 1
        return 0

    return loop


def function_with_attribute() -> Any:
    def box() -> None: ...

    box.count = 0  # type: ignore[attr-defined]
    return box


def class_with_attribute() -> Any:
    class Box:
        count = 0

    return Box


def partial_with_attribute() -> Any:
    box = functools.partial(int)
    box.count = 0  # type: ignore[attr-defined]
    return box


def closure_made_elsewhere(rng: np.random.Generator) -> int:
    step = made_counter()
    while step() < 4:
        if rng.random() < 0.5:
            return 1
    return 0


def method_of_a_list(rng: np.random.Generator) -> int:
    last = [True, False, False].pop
    while True:
        if rng.random() < 0.5:
            return 1
        if last():
            return 0


def descriptor(rng: np.random.Generator) -> int:
    class Owner:
        tries = Described()

    owner = Owner()
    while owner.tries < 4:
        if rng.random() < 0.5:
            return 1
    return 0


def factory_of_a_default(rng: np.random.Generator) -> int:
    box = collections.defaultdict(itertools.count().__next__)
    while True:
        if rng.random() < 0.5:
            return 1
        if box["x"] == 2:
            return 0
        del box["x"]


def exception_arguments(rng: np.random.Generator) -> int:
    error = ValueError(0)
    while error.args[0] < 3:
        error.args = (error.args[0] + 1,)
        if rng.random() < 0.5:
            return 1
    return 0


def text_stream(rng: np.random.Generator) -> int:
    stream = io.StringIO("aaa")
    while stream.read(1):
        if rng.random() < 0.5:
            return 1
    return 0


def environment(rng: np.random.Generator) -> int:
    os.environ["TRIES_OF_A_TEST"] = ""
    while len(os.environ["TRIES_OF_A_TEST"]) < 3:
        os.environ["TRIES_OF_A_TEST"] += "x"
        if rng.random() < 0.5:
            return 1
    return 0


def attributes_of_a_frame(rng: np.random.Generator) -> int:
    frame = pd.DataFrame()
    frame.attrs["tries"] = 0
    while frame.attrs["tries"] < 3:
        frame.attrs["tries"] += 1
        if rng.random() < 0.5:
            return 1
    return 0


def seeded_numbers(rng: np.random.Generator) -> int:
    number = random.Random(3).random  # 0.24, 0.54, 0.37, 0.60
    while True:
        if rng.random() < 0.5:
            return 1
        if 0.3 < number() < 0.4:
            return 0


def filtered_map(rng: np.random.Generator) -> int:
    found = filter(lambda x: x < 0.0, map(rng.laplace, [0.0] * 3))
    return 0 if next(found, None) is None else 1


def any_of_a_map(rng: np.random.Generator) -> int:
    def try_once(_: int) -> bool:
        return bool(rng.random() < 0.5)

    return int(any(map(try_once, range(3))))


def reduced(rng: np.random.Generator) -> int:
    return functools.reduce(lambda found, _: 1 if found or rng.random() < 0.5 else 0, range(3), 0)


def generator_of_draws(rng: np.random.Generator) -> int:
    def draws() -> Any:
        while True:
            yield rng.random() < 0.5

    return int(any(itertools.islice(draws(), 3)))


def object_with_next(rng: np.random.Generator) -> int:
    class Three:
        left = 3

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> bool:
            if self.left == 0:
                raise StopIteration
            self.left -= 1
            return bool(rng.random() < 0.5)

    return int(any(Three()))


def equality_of_an_object(rng: np.random.Generator) -> int:
    class Coin:
        def __eq__(self, _: object) -> bool:
            return bool(rng.random() < 0.5)

    coin = Coin()
    try:
        return [1, 1, 1].index(coin) * 0 + 1  # type: ignore[arg-type]
    except ValueError:
        return 0


LOOPS = [
    *(closure_made_elsewhere, method_of_a_list, descriptor, factory_of_a_default, exception_arguments, text_stream),
    *(environment, attributes_of_a_frame, seeded_numbers, filtered_map, any_of_a_map, reduced, generator_of_draws),
    *(object_with_next, equality_of_an_object),
]
HOLDERS = [
    *(
        function_with_attribute,
        class_with_attribute,
        partial_with_attribute,
        types.SimpleNamespace,
        Slotted,
        Listed,
        Whole,
    ),
    lambda: np.arange(1).view(Rows),
]


@pytest.mark.parametrize("loop", LOOPS)
def test_three_tries_are_not_endless(loop: Loop) -> None:
    assert law_of(lambda _, rng: loop(rng), None).outcomes() == pytest.approx({1: 0.875, 0: 0.125})


@pytest.mark.parametrize("holder", HOLDERS)
def test_three_counted_tries_are_not_endless(holder: Any) -> None:
    made = (lambda: types.SimpleNamespace(count=0)) if holder is types.SimpleNamespace else holder
    loop = counted_in(made)
    assert law_of(lambda _, rng: loop(rng), None).outcomes() == pytest.approx({1: 0.875, 0: 0.125})


# Loops that do try again, in the ways in which people write them.


def until_valid(data: list[int], rng: np.random.Generator) -> int:
    while True:
        try:
            number = round(sum(data) + rng.laplace())
            if number < 0:
                raise ValueError("negative")
            return min(number, 2)
        except ValueError:
            continue


class Mechanism:
    def __init__(self, scale: float, rng: np.random.Generator) -> None:
        self.scale, self.rng = scale, rng

    def draw(self, centre: float) -> Any:
        return centre + self.rng.laplace(scale=self.scale)

    def release(self, data: list[int]) -> Any:
        while (number := self.draw(sum(data))) < 0.0:
            pass
        return min(round(number), 2)


def of_a_class(data: list[int], rng: np.random.Generator) -> Any:
    return Mechanism(1.0, rng).release(data)


def with_helpers(data: list[int], rng: np.random.Generator) -> int:
    def noisy() -> Any:
        return sum(data) + rng.laplace()

    number = noisy()
    while number < 0.0:
        number = noisy()
    return min(round(number), 2)


@dataclasses.dataclass
class Range:
    low: float = 0.0
    scale: float = 1.0


RANGE = Range()


def with_a_configuration(data: list[int], rng: np.random.Generator) -> int:
    while not RANGE.low <= (number := sum(data) + rng.laplace(scale=RANGE.scale)) < np.inf:
        pass
    return min(round(number), 2)


@pytest.mark.parametrize(
    ("function", "first"), [(until_valid, -0.5), (of_a_class, 0.0), (with_helpers, 0.0), (with_a_configuration, 0.0)]
)
def test_loops_that_try_again_have_an_exact_law(function: Any, first: float) -> None:
    law = law_of(function, [1])
    below = [0.5 * np.exp(-abs(x - 1.0)) if x < 1.0 else 1.0 - 0.5 * np.exp(1.0 - x) for x in (first, 0.5, 1.5)]
    inside = 1.0 - below[0]
    expected = {0: (below[1] - below[0]) / inside, 1: (below[2] - below[1]) / inside, 2: (1.0 - below[2]) / inside}
    assert law.rest == 0.0
    assert np.exp(law.log_prob(list(expected))) == pytest.approx(list(expected.values()), rel=1e-10)


def test_a_draw_that_was_put_where_the_loop_no_longer_looks_is_not_renamed() -> None:
    def kept(log: list[Any] | None, rng: np.random.Generator) -> Any:
        number = rng.random()
        log.append(number)  # type: ignore[union-attr]
        log = None
        while number >= 0.5:
            if rng.random() < 0.5:
                break
            number = rng.random()
        return number

    def function(_: Any, rng: np.random.Generator) -> Any:
        log: list[Any] = []
        number = kept(log, rng)
        return [bool(number < 0.75), bool(log[0] < 0.75)]

    # The first number is kept with probability 3/4; a later one is below 3/4 with probability 5/6.
    expected = {(True, True): 35 / 48, (False, False): 7 / 48, (True, False): 5 / 48, (False, True): 1 / 48}
    assert law_of(function, None).outcomes() == pytest.approx(expected)
