"""The checker of sample-monotone functions, and the counted costs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpaudit.errors import InvalidArgument
from dpaudit.statements import check_sample_monotone
from dpaudit.statements.growth import fitted_exponents, printed_histogram_comparisons, sorting_comparisons


def violates(function, points, size):
    """Definition 3.2.0.1 read literally, over all data and all pairs of values."""
    data_sets = list(itertools.product(points, repeat=size))
    values = sorted({function(x) for x in data_sets})

    def length(x, t):
        return min(sum(a != b for a, b in zip(x, y, strict=True)) for y in data_sets if function(y) == t)

    return any(
        (function(x) <= s <= t or t <= s <= function(x)) and length(x, s) > length(x, t)
        for x in data_sets
        for s, t in itertools.product(values, repeat=2)
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sorted(x)[1],
        lambda x: max(x),
        lambda x: sum(x) / 3,
        lambda x: max(sorted(set(x)), key=x.count),
        lambda x: float(np.var(x)),
        lambda x: len(set(x)),
        lambda x: max(x) - min(x),
    ],
    ids=["median", "maximum", "mean", "mode", "variance", "distinct", "range"],
)
def test_the_search_agrees_with_the_definition(function):
    found = check_sample_monotone(function, [0, 1, 2], 3, examples=300)
    assert found.counterexample_found == violates(function, [0, 1, 2], 3)


def test_the_counterexample_is_one():
    found = check_sample_monotone(lambda x: max(sorted(set(x)), key=x.count), [0, 1, 2], 3)
    assert found.nearer_length > found.farther_length
    assert found.value <= found.nearer <= found.farther or found.value >= found.nearer >= found.farther
    assert "takes" in str(found)


def test_too_many_data_sets_are_refused():
    with pytest.raises(InvalidArgument, match="can be enumerated"):
        check_sample_monotone(max, range(100), 4)


def test_counted_costs_have_the_claimed_exponents():
    points = [(n, k) for n in (5, 10, 20) for k in (4, 8)]
    assert fitted_exponents(points, [printed_histogram_comparisons(n, k) for n, k in points]) == pytest.approx((1, 1))
    assert printed_histogram_comparisons(7, 3, cleared=False) == 45 * 7 * 3
    assert sorting_comparisons(1024) <= 1024 * math.log2(1024)
