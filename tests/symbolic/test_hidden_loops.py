"""Loops whose state is hidden outside of the function's frames: they count, and are not taken for loops that try again."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

from dpaudit.symbolic import law_of

CALLS: list[int] = []
QUEUE: collections.deque[int] = collections.deque()


def hidden_counter() -> tuple[Any, Any]:
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return count

    def reset() -> None:
        nonlocal count
        count = 0

    return step, reset


STEP, RESET = hidden_counter()


def counted_in_a_list(data: Any, rng: np.random.Generator) -> int:
    while True:
        CALLS.append(1)
        if rng.random() < 0.5 or len(CALLS) == 4:
            fourth = len(CALLS) == 4
            CALLS.clear()
            return int(fourth)


def counted_in_a_queue(data: Any, rng: np.random.Generator) -> int:
    while True:
        QUEUE.append(1)
        if rng.random() < 0.5 or len(QUEUE) == 4:
            fourth = len(QUEUE) == 4
            QUEUE.clear()
            return int(fourth)


def counted_in_a_closure(data: Any, rng: np.random.Generator) -> int:
    while True:
        fourth = STEP() == 4
        if rng.random() < 0.5 or fourth:
            RESET()
            return int(fourth)


def counted_in_an_attribute(data: Any, rng: np.random.Generator) -> int:
    counted_in_an_attribute.calls = getattr(counted_in_an_attribute, "calls", 0)  # type: ignore[attr-defined]
    while True:
        counted_in_an_attribute.calls += 1  # type: ignore[attr-defined]
        if rng.random() < 0.5 or counted_in_an_attribute.calls == 4:  # type: ignore[attr-defined]
            fourth = counted_in_an_attribute.calls == 4  # type: ignore[attr-defined]
            del counted_in_an_attribute.calls  # type: ignore[attr-defined]
            return int(fourth)


@pytest.mark.parametrize(
    "function", [counted_in_a_list, counted_in_a_queue, counted_in_a_closure, counted_in_an_attribute]
)
def test_a_loop_that_counts_in_a_hidden_place_is_not_taken_for_one_that_tries_again(function: Any) -> None:
    law = law_of(function, [1]).to_exact()
    assert np.exp(law.log_prob([1])[0]) == pytest.approx(0.125, abs=1e-9)
