"""Fast ways to draw, against the slow ones they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mechanisms import _common, noisy_max
from mechanisms._common import CELLS, FEW_CUTS, bernoulli, laplace_noise, place
from mechanisms.composition import Composition
from mechanisms.laplace import LaplaceMechanism
from mechanisms.noisy_max import _largest


@pytest.fixture(autouse=True, scope="module")
def ways_of_large_arrays() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (_common, noisy_max):
            patch.setattr(module, "FEW_CELLS", 0)
        yield


class EveryByte:
    """In place of a generator: all 256 bytes once, and one uniform number for the rest of those that are undecided."""

    def __init__(self, rest: float) -> None:
        self.rest = rest

    def integers(self, low: int, high: int, size: int, dtype: Any) -> Any:
        return np.arange(8 * size, dtype=np.uint8).view(dtype)

    def random(self, size: int) -> Any:
        return np.full(size, self.rest)


@given(rate=st.floats(0.0, 1.0), rest=st.floats(0.0, 1.0, exclude_max=True))
@example(rate=1.0, rest=1.0 - 2.0**-53)
@example(rate=1.0 - 2.0**-53, rest=0.5)
@example(rate=0.375, rest=0.0)
@example(rate=5e-324, rest=0.0)
def test_one_in_256_decides_by_the_rest(rate: float, rest: float) -> None:
    """Ones among all bytes are floor(256 rate), and one more if the rest lies below what is left: together the rate."""
    ones = bernoulli(rate, (256,), EveryByte(rest))  # type: ignore[arg-type]
    whole = min(math.floor(256 * Fraction(rate)), 255)
    assert ones.sum() == whole + (Fraction(rest) < 256 * Fraction(rate) - whole)


def test_rates_belong_to_their_columns() -> None:
    rates = np.array([0.0, 0.1, 0.5, 0.77, 1.0])
    ones = bernoulli(rates, (100_000, 5), np.random.default_rng(1))
    # Hoeffding, for five columns: a false alarm in 1e6
    assert np.abs(ones.mean(axis=0) - rates).max() < math.sqrt(math.log(1e7) / 2e5)


@given(
    cuts=hnp.arrays(np.int64, st.integers(0, 2 * FEW_CUTS), elements=st.integers(-9, 9)),
    values=hnp.arrays(np.int64, st.integers(0, 20), elements=st.integers(-10, 10)),
    side=st.sampled_from(["left", "right"]),
)
def test_place_is_searchsorted(cuts: Any, values: Any, side: Any) -> None:
    cuts.sort()
    assert np.array_equal(place(cuts, values, side), np.searchsorted(cuts, values, side))


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 12)), elements=st.integers(0, 4)))
def test_largest_is_argmax(values: Any) -> None:
    assert np.array_equal(_largest(values), np.argmax(values, axis=0))


def test_more_answers_than_a_byte_counts() -> None:
    values = np.zeros((300, 400))
    values[299, 7] = values[256, 8] = 1.0
    assert np.array_equal(_largest(values), np.argmax(values, axis=0))


@pytest.mark.parametrize("shape", [0, 1, 7, (3, 5), CELLS + 3])
def test_noise_of_any_shape(shape: Any) -> None:
    noise = laplace_noise(2.0, shape, np.random.default_rng(0))
    assert noise.shape == np.empty(shape).shape
    assert noise.size < 7 or len(np.unique(noise)) == noise.size > (noise < 0).sum() > 0
    assert not laplace_noise(0.0, shape, np.random.default_rng(0)).any()


@pytest.mark.parametrize("size", [0, 7, CELLS + 3])
def test_noise_around_a_centre_into_an_array(size: int) -> None:
    out = np.full(size, np.nan)
    assert laplace_noise(1e-6, size, np.random.default_rng(0), centre=-3.0, out=out) is out
    assert np.allclose(out, -3.0, atol=1e-4)
    assert (laplace_noise(0.0, size, np.random.default_rng(0), centre=-3.0) == -3.0).all()


def test_copies_of_one_mechanism_lie_side_by_side() -> None:
    precise = LaplaceMechanism(1e9)
    rows = Composition((precise, precise, LaplaceMechanism(1e9))).sample([1.0, 2.0], 4, np.random.default_rng(0))
    assert np.array_equal(np.rint(rows), np.tile([1.0, 2.0], (4, 3)))
    assert len(np.unique(rows)) == rows.size
    assert Composition((precise,) * 3).sample([1.0, 2.0], 0, np.random.default_rng(0)).shape == (0, 6)
