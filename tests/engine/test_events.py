"""The stream of events of an audit: what is emitted, in which order, and that it changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import dpaudit
from dpaudit import neighbours
from dpaudit.engine.events import (
    Confirming,
    Event,
    Finished,
    OutputsDrawn,
    PairChosen,
    RoundSettled,
    Shrinking,
    Started,
    ViolationFound,
)

PAIR = [([], [1])]


@dpaudit.batched
def half_scale(data: list[int], size: int, rng: np.random.Generator) -> Any:
    return len(data) + rng.laplace(scale=0.5, size=size)


def events_of(mechanism: Any, where: Any, **options: Any) -> tuple[dpaudit.Result, list[Event]]:
    seen: list[Event] = []
    result = dpaudit.audit(mechanism, dpaudit.PureDP(1.0), where, on_event=seen.append, **{"seed": 0, **options})
    return result, seen


def kinds(events: list[Event]) -> list[type[Event]]:
    """The kinds of the events, neighbouring equal ones once."""
    names = [type(event) for event in events if not isinstance(event, OutputsDrawn)]
    return [kind for place, kind in enumerate(names) if not place or names[place - 1] is not kind]


def test_a_violation_emits_every_kind_of_event_in_order() -> None:
    result, events = events_of(half_scale, neighbours.add_remove(st.integers(0, 10), max_size=4), samples=50_000)
    found = kinds(events)
    assert found[0] is Started
    assert found[-4:] == [ViolationFound, Shrinking, Confirming, Finished]
    assert set(found[1:-4]) == {PairChosen, RoundSettled}
    assert events[-1] == Finished(result)


def test_rounds_and_draws_add_up_to_the_samples() -> None:
    result, events = events_of(half_scale, PAIR, samples=20_000, until="budget", shrink=False)
    settled = [event for event in events if isinstance(event, RoundSettled)]
    assert [(event.samples, event.log_wealth) for event in settled] == list(result.trajectory)
    chosen = sum(2 * event.size for event in events if isinstance(event, PairChosen))
    before = events[: events.index(settled[-1])]
    assert sum(event.outputs for event in before if isinstance(event, OutputsDrawn)) == chosen
    assert settled[-1].samples == result.samples


def test_membership_scores_are_settled_like_outputs_that_are_drawn() -> None:
    rng = np.random.default_rng(0)
    result = dpaudit.audit_scores(rng.normal(3.0, size=500), rng.normal(size=500), dpaudit.PureDP(0.5))
    assert result.trajectory[-1][0] == result.samples == 1000


def test_timing_emits_the_same_stream() -> None:
    _, events = events_of(lambda data: sum(data), [([1, 2], [1, 3])], samples=400, channel="timing")
    found = kinds(events)
    assert found[0] is Started
    assert found[-1] is Finished
    assert set(found[1:-1]) == {PairChosen, RoundSettled}


def test_pairs_are_proposed_only_after_the_second_attempt_has_sampled_some() -> None:
    """The second attempt begins with more samples drawn than the first proposals wait for."""

    def raises_late(data: list[int], size: int, rng: np.random.Generator) -> Any:
        values = rng.laplace(scale=10.0, size=size)
        if (np.abs(values) > 106.0).any():
            raise ValueError("too large")
        return values

    where = neighbours.add_remove(st.integers(0, 10), max_size=4)
    result, events = events_of(dpaudit.batched(raises_late), where, samples=120_000, seed=2)
    assert result.verdict is not dpaudit.Verdict.VIOLATION
    assert sum(isinstance(event, Started) for event in events) == 2
