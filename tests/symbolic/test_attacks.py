"""Functions made to mislead the extraction: each is followed rightly, or stops it; none gets a wrong law."""
# ruff: noqa: E722 - the functions under test are meant to be bad

from __future__ import annotations

import copy
import functools
import math
import random
import time
import types

import numpy as np
import pytest

from dpaudit.errors import CannotFollow
from dpaudit.symbolic import law_of

HELD = types.SimpleNamespace(generators=[np.random.default_rng(5)], python=[random.Random(5)])
CALLS: list[float] = []
COUNT = [0]


def asks_for_the_type(data, rng):
    noise = rng.laplace()
    return data + noise if type(noise) is float else data


def swallows_everything(data, rng):
    try:
        return float(str(rng.laplace())) + data
    except:
        return data


def swallows_base_exception(data, rng):
    try:
        return data + np.float32(rng.laplace())
    except BaseException:
        return 7.0


def keeps_a_list(data, rng):
    CALLS.append(rng.laplace())
    return data + CALLS[0]


def counts_calls(data, rng):
    COUNT[0] += 1
    return data if COUNT[0] % 3 == 0 else data + rng.laplace()


def hides_a_numpy_generator(data, rng):
    return data + (HELD.generators[0].random() < 0.001)


def hides_a_python_generator(data, rng):
    return data + (HELD.python[0].random() < 0.001)


class Remembers:
    """A mechanism that changes an attribute of its class."""

    last = None

    def __call__(self, data, rng):
        Remembers.last = 1
        return data + rng.laplace()


remembers = Remembers()


def counts_in_a_default_argument(data, rng, *, cache={}):  # noqa: B006
    cache["calls"] = cache.get("calls", 0) + 1
    return data + rng.laplace() + (cache["calls"] > 50)


def goes_around_the_methods(data, rng):
    return data + np.random.Generator.laplace(rng)


def copies_the_generator(data, rng):
    return rng.laplace() - copy.deepcopy(rng).laplace()


def makes_a_generator_without_a_seed(data, rng):
    return data + np.random.Generator(np.random.PCG64()).laplace()


def looks_at_the_clock(data, rng):
    return data + time.time_ns() % 2


@functools.lru_cache
def _cached_coin(data):
    return random.random() < 0.5


def caches_a_coin(data):
    return _cached_coin(data) + 0


def adds_numpy_truth_values(data, rng):
    first, second = rng.random(2) < 0.5
    return first + second


def inverts_a_python_truth_value(data):
    return ~(random.random() < 0.5)


def wraps_around(data, rng):
    return np.array([rng.integers(250, 260)]).astype(np.uint8)[0]


def rounds_to_single_precision(data, rng):
    out = np.zeros(1, dtype=np.float32)
    out[0] = rng.laplace()
    return out


def formats_and_parses(data, rng):
    return float(f"{rng.laplace():.3f}")


def hashes(data, rng):
    return hash(rng.laplace()) % 2


def uses_as_a_key(data, rng):
    return {rng.laplace(): data}


def is_close(data, rng):
    return math.isclose(rng.laplace(), 0.0, abs_tol=0.5)


def writes_into_a_foreign_array(data, rng):
    out = np.frombuffer(bytearray(8), dtype=float).copy()
    out[0] = rng.laplace()
    return out


def multiplies_draws(data, rng):
    return rng.laplace() * rng.normal()


def compares_three(data, rng):
    return bool(rng.laplace() + rng.laplace() > rng.laplace())


def compares_in_a_circle(data, rng):
    x, y, z = rng.laplace(size=3)
    return [bool(x + y > 0), bool(y + z > 0), bool(z + x > 0)]


def releases_a_draw_twice(data, rng):
    x = rng.laplace()
    return [data + x, 2 * data + x]


def sum_and_rounded_sum(data, rng):
    x, y = rng.normal(), rng.normal()
    return [round(x + y), x]


def reseeds(data):
    random.seed(1)
    return data + random.gauss(0, 1)


STOPPED = [
    swallows_everything,
    swallows_base_exception,
    keeps_a_list,
    counts_calls,
    hides_a_numpy_generator,
    hides_a_python_generator,
    remembers,
    counts_in_a_default_argument,
    goes_around_the_methods,
    copies_the_generator,
    makes_a_generator_without_a_seed,
    looks_at_the_clock,
    caches_a_coin,
    adds_numpy_truth_values,
    inverts_a_python_truth_value,
    rounds_to_single_precision,
    formats_and_parses,
    hashes,
    uses_as_a_key,
    is_close,
    writes_into_a_foreign_array,
    multiplies_draws,
    compares_three,
    compares_in_a_circle,
    releases_a_draw_twice,
    sum_and_rounded_sum,
    reseeds,
    asks_for_the_type,
]


@pytest.mark.parametrize("function", STOPPED, ids=lambda function: getattr(function, "__name__", "remembers"))
def test_code_that_cannot_be_followed_stops_the_extraction(function):
    with pytest.raises(CannotFollow):
        law_of(function, 3)


def test_wrapping_around_is_followed():
    assert law_of(wraps_around, 0).outcomes() == pytest.approx({k % 256: 0.1 for k in range(250, 260)})


def test_the_message_names_the_users_line():
    with pytest.raises(CannotFollow) as caught:
        law_of(formats_and_parses, 3)
    first = formats_and_parses.__code__.co_firstlineno
    assert caught.value.filename == __file__
    assert caught.value.line == first + 1
    assert caught.value.function == "formats_and_parses"
    assert f"line {first + 1}" in str(caught.value)


def with_a_default_generator(data, generator=np.random.default_rng(3)):  # noqa: B008
    return data + generator.laplace()


def seeded_inside(data):
    return data + np.random.default_rng(42).laplace()


def test_a_generator_in_a_default_argument_is_replaced():
    assert law_of(with_a_default_generator, 3).to_exact().location == 3.0


def test_a_fixed_seed_makes_a_constant():
    expected = 3 + np.random.default_rng(42).laplace()
    assert law_of(seeded_inside, 3).outcomes() == {expected: 1.0}


def changes_its_data(data, rng):
    data.append(rng.laplace())
    return sum(data)


def test_data_are_copied_for_every_run():
    data = [1.0, 2.0]
    assert law_of(changes_its_data, data).to_exact().location == 3.0
    assert data == [1.0, 2.0]


def test_everything_that_was_replaced_is_put_back():
    before = (random.random, math.log, np.zeros, np.random.default_rng, time.time, globals().get("float"))
    law_of(with_a_default_generator, 3)
    for function in (formats_and_parses, reseeds):
        with pytest.raises(CannotFollow):
            law_of(function, 3)
    after = (random.random, math.log, np.zeros, np.random.default_rng, time.time, globals().get("float"))
    assert all(x is y for x, y in zip(before, after, strict=True))
