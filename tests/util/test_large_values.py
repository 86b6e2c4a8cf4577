"""Large data sets: compared by a digest, and shown by their size and ends."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit._util.values import described, fingerprint

LONG = 20_000


@pytest.mark.parametrize(
    "make",
    [
        lambda: list(range(LONG)),
        lambda: [float(number) for number in range(LONG)],
        lambda: [(number, str(number), None) for number in range(LONG)],
        lambda: [{"age": number, "name": "x"} for number in range(LONG)],
        lambda: np.arange(float(LONG)),
        lambda: pd.DataFrame({"a": range(LONG), "b": "x"}),
    ],
    ids=["int", "float", "tuple", "dict", "array", "frame"],
)
def test_equal_contents_and_no_others_are_equal(make: Any) -> None:
    assert fingerprint(make()) == fingerprint(make())
    other = make()
    if isinstance(other, pd.DataFrame):
        other.loc[LONG - 1, "a"] = -1
    else:
        other[LONG - 1] = other[0]
    assert fingerprint(other) != fingerprint(make())
    text, whole = described(make())
    assert not whole
    assert len(text) < 1500
    assert f"of {LONG:,} rows, digest " in text
    assert described(other)[0] != text


def test_types_and_the_order_of_keys() -> None:
    assert fingerprint([1] * LONG) != fingerprint([1.0] * LONG)
    assert fingerprint([True] * LONG) != fingerprint([1] * LONG)
    assert fingerprint([0.0] * LONG) != fingerprint([-0.0] * LONG)
    assert fingerprint([(1,)] * LONG) != fingerprint([[1]] * LONG)
    assert fingerprint([{"a": 1, "b": 2}] * LONG) == fingerprint([{"b": 2, "a": 1}] * LONG)


def test_a_result_on_a_long_data_set_is_short() -> None:
    rows = list(range(LONG))
    half = dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(scale=0.5, size=size))
    result = dpaudit.audit(half, dpaudit.PureDP(1.0), [(rows, rows[:-1])], samples=20_000)
    assert result.witness is not None
    assert not result.witness.literal
    assert "<list of 20,000 rows, digest " in str(result)
    assert len(str(result)) < 2000
    assert len(json.dumps(result.to_dict(), allow_nan=False)) < 20_000
    compile(result.witness.script(), "script", "exec")
