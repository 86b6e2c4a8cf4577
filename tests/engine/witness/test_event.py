"""Events are chosen to be read."""

import numpy as np

import dpaudit


def record(data: int, rng: np.random.Generator) -> str:
    """A line of CSV whose second field depends on the data, beside a number that does not."""
    second = "x" if rng.random() < (0.8 if data else 0.2) else "y"
    return f"{rng.integers(1, 9)},{second},{rng.random():.5f}"


def test_structures_alone_are_an_event_where_the_numbers_beside_them_say_nothing():
    result = dpaudit.audit(dpaudit.per_release(record), dpaudit.PureDP(1.0), [(0, 1)], samples=20_000, seed=1)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert "<" not in result.witness.event
    assert ",y,number'" in result.witness.event or ",x,number'" in result.witness.event
