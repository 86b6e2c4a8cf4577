"""The channel timing without a clock that matters: bets on labels, refusals, the harness, and what is reported."""

from __future__ import annotations

import copy
import gc
import math
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit import Channel, Relation, Verdict, neighbours
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.evidence.e_process import Points, bet_sizes
from dpaudit.engine.timing.clock import Stopwatch, microseconds
from dpaudit.engine.timing.duration_event import Duration, threshold_event
from dpaudit.engine.timing.label_bets import LabelWealth, SettledBlock, label_gains, lower_bound
from dpaudit.engine.timing.pairs import RECENT, counts_of, cuts_of, relative_to_recent
from dpaudit.engine.timing.run import TIMING_LIMITATIONS, TimingRun
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.report.document import Document, Entry
from dpaudit.result.model import StoppedBy

PAIR = [([0, 0], [0, 1])]
BETS = bet_sizes(1000)


def spin(data, rng):
    """Takes much longer on [0, 1] than on [0, 0]."""
    total = 0.0
    for _ in range(200 + 4000 * sum(data)):
        total += 1.0
    return total + rng.laplace()


def watch(mechanism, seed=0):
    return Stopwatch(mechanism, np.random.default_rng(seed), np.random.default_rng(seed + 1))


# The proof, cell by cell: for laws that keep the claim, the mean of every factor is at most one.


@settings(max_examples=40)
@given(
    past=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=8),
    weights=st.data(),
    epsilon=st.sampled_from([0.0, 0.3, 1.0, 3.0]),
    delta=st.sampled_from([0.0, 0.01, 0.2]),
)
def test_every_factor_has_mean_at_most_one_under_the_claim(past, weights, epsilon, delta):
    cells = len(past)
    likelihood = st.lists(st.floats(0.001, 1.0), min_size=cells, max_size=cells)
    p, q = (np.array(weights.draw(likelihood)) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    # Mix the two laws until they are (epsilon, delta)-close, as tightly as bisection gets.
    low, high = 0.0, 1.0

    def mixed(t):
        return (1 - t / 2) * p + t / 2 * q, (1 - t / 2) * q + t / 2 * p

    def excess(t):
        a, b = mixed(t)
        c = math.exp(epsilon)
        return max(np.maximum(a - c * b, 0).sum(), np.maximum(b - c * a, 0).sum())

    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= delta else (middle, high)
    a, b = mixed(high)
    counts = np.array(past).T
    points = Points.of([(epsilon, delta)])
    mean = 0.0
    for side, law in enumerate((a, b)):
        for cell in range(cells):
            new = np.zeros((2, cells), dtype=np.int64)
            new[side, cell] = 1
            mean = mean + 0.5 * law[cell] * np.exp(label_gains(counts, new, points, BETS))
    assert mean.max() <= 1.0 + 1e-9


def test_a_block_is_the_product_of_its_calls():
    rng = np.random.default_rng(0)
    past, new = rng.integers(1, 30, (2, 6)), rng.integers(0, 5, (2, 6))
    points = Points.of([(0.5, 0.0), (1.0, 0.01)])
    single = 0.0
    for side in range(2):
        for cell in range(6):
            one = np.zeros((2, 6), dtype=np.int64)
            one[side, cell] = 1
            single = single + new[side, cell] * label_gains(past, one, points, BETS)
    assert np.allclose(label_gains(past, new, points, BETS), single)


def test_nothing_is_bet_on_a_one_sided_past():
    assert not label_gains(np.array([[3, 2], [0, 0]]), np.array([[1, 0], [0, 1]]), Points.of([(1.0, 0.0)]), BETS).any()
    empty = (np.zeros((2, 1), int), np.ones((2, 1), int))
    assert (LabelWealth(Points.of([(1.0, 0.0)]), BETS).settle([empty, empty]) == 0.0).all()


def test_the_bound_reads_upwards_and_agrees_with_the_verdict():
    past = np.array([[900, 100], [100, 900]])
    timeline = [SettledBlock(0, ((past * k, past),) * 2) for k in range(1, 6)]

    def bound(threshold, claimed=1.0):
        return lower_bound(
            timeline,
            lambda value: points_of(dpaudit.PureDP(value)),
            claimed,
            log_threshold=threshold,
            shares=1,
            bets=BETS,
            largest=60.0,
        )

    assert 1.5 < bound(math.log(1e6)) < math.log(9.0)
    assert bound(1e9) == 0.0
    assert bound(math.log(1e6), claimed=2.0) >= bound(math.log(1e9), claimed=2.0)


# The harness.


def test_every_call_gets_a_fresh_copy_and_labels_are_fair():
    seen = []
    data, neighbour = [1, 2], [1, 3]

    def mechanism(rows):
        seen.append(tuple(rows))
        rows.clear()

    timed = watch(mechanism).run([(data, neighbour), (data, data)], 2000)
    assert (data, neighbour) == ([1, 2], [1, 3])
    assert set(seen) == {(1, 2), (1, 3)}
    assert len(timed) == 2000
    assert timed.labels.shape == timed.nanoseconds.shape == (2000, 2)
    assert (timed.nanoseconds > 0).all()
    assert sum(rows == (1, 3) for rows in seen) == timed.labels[:, 0].sum()
    # Six standard deviations: P < 2e-9 for each coin, and for the agreement of the two.
    assert np.abs(timed.labels.mean(axis=0) - 0.5).max() < 6 / (2 * math.sqrt(2000))
    assert abs((timed.labels[:, 0] == timed.labels[:, 1]).mean() - 0.5) < 6 / (2 * math.sqrt(2000))


def test_labels_depend_on_the_seed_of_the_coins_alone():
    runs = [
        Stopwatch(len, np.random.default_rng(noise), np.random.default_rng(7)).run([([], [])], 50) for noise in (1, 2)
    ]
    assert (runs[0].labels == runs[1].labels).all()


def test_an_exception_is_an_output_with_its_time():
    timed = watch(lambda data: 1 / data[0]).run([([0], [1])], 100)
    assert timed.raised == (timed.labels == 0).sum()
    assert (timed.nanoseconds > 0).all()


def test_garbage_collection_waits_and_comes_back():
    states = []
    watch(lambda data: states.append(gc.isenabled())).run([([], [])], 5)
    assert not any(states)
    assert gc.isenabled()


def test_an_interrupt_keeps_the_complete_turns():
    calls = []

    def mechanism(data):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt

    timed = watch(mechanism).run([([], []), ([], [])], 100)
    assert len(timed) == 3  # the eighth call was the second of the fourth turn
    assert isinstance(timed.cause, KeyboardInterrupt)


def test_instances_are_made_outside_the_clock():
    def make():
        time.sleep(0.002)
        return lambda data: len(data)

    timed = watch(dpaudit.fresh(make)).run([([1], [2])], 20)
    assert np.median(timed.nanoseconds) < 1_000_000


@pytest.mark.parametrize(
    "mechanism",
    [
        dpaudit.per_release(lambda data, rng: rng.random()),
        dpaudit.batched(lambda data, size, rng: rng.random(size)),
        len,
    ],
)
def test_every_kind_of_mechanism_is_timed(mechanism):
    on_data, on_neighbour = microseconds(mechanism, [1], [2], calls=30, seed=0)
    assert len(on_data) + len(on_neighbour) == 30


@given(st.lists(st.integers(1, 50), min_size=1, max_size=300), st.integers(0, 2**31))
def test_cells_count_every_call(nanoseconds, seed):
    times = np.array(nanoseconds)
    labels = np.random.default_rng(seed).integers(0, 2, times.size)
    counts = counts_of(labels, times, cuts_of(times))
    assert counts.sum() == times.size
    assert counts[1].sum() == labels.sum()


def test_relative_durations_use_earlier_calls_alone():
    rng = np.random.default_rng(0)
    times = rng.integers(50, 5000, 200)
    whole = relative_to_recent(times[:100], times[100:])
    expected = [
        now / np.sort(times[place - RECENT : place])[RECENT // 4] for place, now in enumerate(times) if place >= 100
    ]
    assert whole.tolist() == expected
    parts = [relative_to_recent(times[:100], times[100:130]), relative_to_recent(times[:130], times[130:])]
    assert np.concatenate(parts).tolist() == expected
    assert relative_to_recent(times[:0], times[:40])[:RECENT].tolist() == [1.0] * RECENT


def test_the_event_is_the_threshold_between_two_clusters():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    times = (np.where(labels == 1, 20_000, 10_000) + rng.integers(-500, 500, labels.size)).astype(np.int64)
    event = threshold_event(labels, times, points_of(dpaudit.PureDP(1.0)))
    assert event is not None
    assert 10.4 < event.microseconds <= 20.5
    assert event.at_least == event.swapped  # long calls are likelier on the neighbour
    inside = event.contains(times)
    assert abs(inside[labels == event.swapped].mean() - 1.0) < 0.05
    assert inside[labels != event.swapped].mean() < 0.05
    assert threshold_event(np.zeros(3, dtype=np.int64), times[:3], points_of(dpaudit.PureDP(1.0))) is None
    assert str(Duration(12.3, False, False)) == "call takes less than 12.3 microseconds"


# What is refused, and what is said.


@pytest.mark.parametrize(
    ("close", "claim", "options", "message"),
    [
        (
            neighbours.add_remove(st.integers(0, 3)),
            dpaudit.PureDP(1.0),
            {},
            r"add-remove.*sizes differ.*size as public",
        ),
        (neighbours.fixed([([1], [1, 2])]), dpaudit.PureDP(1.0), {}, r"sizes differ"),
        (neighbours.fixed(PAIR), dpaudit.PureDP(1.0, Relation.ADD_REMOVE), {}, r"claim=.*add-remove.*sizes differ"),
        (
            neighbours.secrets([(neighbours.Secret("a", lambda rng: []), neighbours.Secret("b", lambda rng: []))]),
            dpaudit.PureDP(1.0),
            {},
            r"secrets.*drawn anew",
        ),
        (neighbours.fixed(PAIR), dpaudit.PureDP(1.0), {"timeout": 1.0}, r"timeout=1.0 cannot be used.*seconds="),
        (neighbours.fixed(PAIR), dpaudit.PureDP, {}, r"must be a claim"),
    ],
)
def test_refusals(close, claim, options, message):
    with pytest.raises(InvalidArgument, match=f"(?s){message}"):
        dpaudit.audit(dpaudit.per_release(spin), claim, close, channel="timing", samples=1000, **options)


def test_workers_are_refused():
    class Executor:
        def submit(self):
            raise AssertionError

    with pytest.raises(InvalidArgument, match=r"executor=.*cannot be used with channel='timing'.*--workers"):
        dpaudit.audit(len, dpaudit.PureDP(1.0), PAIR, channel="timing", executor=Executor())


def test_pairs_of_unequal_sizes_are_left_out():
    mixed = neighbours.fixed([*PAIR, ([1], [1, 2])])
    result = dpaudit.audit(len, dpaudit.PureDP(1.0), mixed, channel="timing", samples=8000)
    assert result.pairs == 1
    assert any("1 of 2 pairs were left out" in message for message in result.messages)


def test_a_mechanism_that_always_raises_is_an_error():
    with pytest.raises(MechanismError, match=r"(?s)raised on every call.*ZeroDivisionError"):
        dpaudit.audit(lambda data: 1 / 0, dpaudit.PureDP(1.0), PAIR, channel="timing", samples=500)


def test_too_few_calls_are_inconclusive():
    result = dpaudit.audit(len, dpaudit.PureDP(1.0), PAIR, channel="timing", samples=300)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.samples <= 300
    assert any("Too few calls" in message for message in result.messages)


class Generations:
    """Data whose copies know how often they were copied: what a harness that favours originals would look like."""

    def __init__(self, generation=0):
        self.generation = generation

    def __deepcopy__(self, memo):
        return Generations(self.generation + 1)


def test_a_control_that_fails_is_inconclusive():
    def mechanism(data):
        return sum(range(5000 * data.generation))

    # The copy of D is one generation older than D, and so are its copies.
    pair = (Generations(), copy.deepcopy(Generations()))
    result = dpaudit.audit(mechanism, dpaudit.PureDP(1.0), [pair], channel="timing", samples=20_000)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.stopped_by is StoppedBy.CONTROL
    assert result.epsilon_lower == 0.0
    assert result.witness is None
    assert any("control failed" in message for message in result.messages)
    assert "the control failed" in str(result)


def test_a_violation_is_an_ordinary_result(tmp_path):
    result = dpaudit.audit(dpaudit.per_release(spin), dpaudit.PureDP(1.0), PAIR, channel="timing", samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.channel is Channel.TIMING
    assert result.epsilon_lower >= 1.0
    assert not result.reproducible
    assert TIMING_LIMITATIONS in result.messages
    witness = result.witness
    assert "microseconds" in witness.event
    assert witness.on_data.trials + witness.on_neighbour.trials == result.samples_after
    assert witness.on_data.estimate > witness.on_neighbour.estimate
    assert dpaudit.Result.from_dict(result.to_dict()) == result
    document = Document(entries=(Entry(result=result),))
    assert Document.from_json(document.to_json()) == document
    script = witness.script()
    compile(script, "script", "exec")
    filled = script.replace(f"placeholder('the mechanism {__name__}.spin')", "dpaudit.per_release(spin)")
    assert filled != script or "spin" in script
    path = tmp_path / "again.py"
    helper = (
        "import dpaudit\n\n\ndef spin(data, rng):\n    return sum(range(200 + 20000 * sum(data))) + rng.laplace()\n\n\n"
    )
    path.write_text(helper + filled)
    shown = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert "event on data:" in shown.stdout
    assert "log-ratio" in shown.stdout


def test_an_interrupt_while_the_witness_is_measured_is_reported(monkeypatch):
    measuring = False

    def mechanism(data, rng):
        if measuring:
            raise KeyboardInterrupt
        return spin(data, rng)

    def measure(run, leader, measured=TimingRun._witness):
        nonlocal measuring
        measuring = True
        return measured(run, leader)

    monkeypatch.setattr(TimingRun, "_witness", measure)
    result = dpaudit.audit(dpaudit.per_release(mechanism), dpaudit.PureDP(1.0), PAIR, channel="timing", samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.stopped_by is StoppedBy.INTERRUPT
    assert result.witness is None
    assert "Interrupted; this is the result so far." in result.messages


@pytest.mark.parametrize("complete", [400, 601, 777])  # of calls, warming up included
def test_an_interrupt_at_any_call_gives_a_result(complete):
    calls = 0

    def mechanism(data, rng):
        nonlocal calls
        calls += 1
        if calls > complete:
            raise KeyboardInterrupt
        return rng.laplace()

    result = dpaudit.audit(dpaudit.per_release(mechanism), dpaudit.PureDP(1.0), PAIR, channel="timing", samples=20_000)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.stopped_by is StoppedBy.INTERRUPT


def test_time_is_up():
    result = dpaudit.audit(len, dpaudit.PureDP(1.0), PAIR, channel="timing", seconds=0.05)
    assert result.stopped_by in (StoppedBy.SECONDS, StoppedBy.SAMPLES)
    assert result.seconds < 5.0


def test_a_moment_claim_is_audited_through_its_profile():
    result = dpaudit.audit(
        dpaudit.per_release(spin), dpaudit.GaussianDP(1.0), PAIR, channel="timing", samples=20_000, shrink=False
    )
    assert result.verdict is Verdict.VIOLATION
    assert result.parameter_lower >= 1.0
