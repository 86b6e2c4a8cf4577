"""Blocks, seeds, tasks and rounds: results do not depend on which process draws, and only drawn blocks are settled."""

from __future__ import annotations

import functools
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpaudit
from dpaudit.engine.encoding.batch import encode
from dpaudit.engine.sampling import blocks as sampling
from dpaudit.engine.sampling.blocks import (
    BLOCKS,
    BatchRaised,
    BlockPair,
    OutOfTime,
    Sampler,
    Task,
    TimedOut,
    block_sizes,
    merge,
    run_task,
)
from dpaudit.engine.sampling.executor import TaskRunner
from dpaudit.engine.sampling.rounds import run_round
from dpaudit.engine.sampling.seeds import BlockSeeds, seed_child
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.learner import Learner, Settled
from dpaudit.mechanism import Raised, as_mechanism

ENTROPY = 17


def noisy(data: list[int], size: int, rng: np.random.Generator) -> Any:
    return len(data) + rng.laplace(size=size)


def task_of(function: Any, sizes: tuple[int, ...] = (), *, views: Any = (), keep: int = 5, **how: Any) -> Task:
    sampler = Sampler(as_mechanism(function), **how)
    return Task(sampler, [], [1], views, ENTROPY, (1, 0), 0, sizes, keep)


def views_of(function: Any) -> Any:
    learner = Learner(build_views)
    rng = np.random.default_rng(0)
    mechanism = as_mechanism(function)
    sides = encode(mechanism.sample([], 300, rng)), encode(mechanism.sample([1], 300, rng))
    learner.settle(Settled((), sides), 300)
    return learner.views


def same(first: BlockPair, second: BlockPair) -> bool:
    """Equal in all that evidence and learning see; times differ."""
    learned = all(
        np.array_equal(a.codes, b.codes) and np.array_equal(a.values, b.values, equal_nan=True)
        for a, b in zip(first.learn, second.learn, strict=True)
    )
    counted = all(np.array_equal(a, b) for a, b in zip(first.counts, second.counts, strict=True))
    return learned and counted and first.size == second.size and first.repeats == second.repeats


@given(total=st.integers(1, 3_000_000))
def test_blocks_make_up_the_round(total: int) -> None:
    sizes = block_sizes(total)
    assert sum(sizes) == total
    assert min(sizes) >= 1
    assert max(sizes) <= BLOCKS.largest
    assert max(sizes) <= -(-total // 16)
    coarse = block_sizes(total, least=256)
    assert sum(coarse) == total
    assert max(coarse) == max(max(sizes), min(256, total))
    assert len(set(sizes[:-1])) <= 1


@pytest.mark.parametrize("width", [1, 10, 1000, 10**7])
def test_blocks_of_wide_outputs_hold_fewer_of_them(width: int) -> None:
    sampler = Sampler(dpaudit.batched(lambda data, size, rng: rng.random((size, width))))
    sizes = sampler.blocks(1_000_000, timed=False, width=width)
    assert sum(sizes) == 1_000_000
    assert max(sizes) * width <= max(BLOCKS.most_numbers, width)


def test_seeds_descend_from_one_root_and_differ() -> None:
    keys = [
        (pair, round_, block, side) for pair in range(3) for round_ in range(3) for block in range(3) for side in (0, 1)
    ]
    states = {tuple(seed_child(ENTROPY, *key).generate_state(4).tolist()) for key in keys}
    assert len(states) == len(keys)
    assert (
        seed_child(5, 1, 2).generate_state(2).tolist()
        == np.random.SeedSequence(5, spawn_key=(1, 2)).generate_state(2).tolist()
    )


def test_seeds_of_blocks_are_the_state_words_of_a_seed_sequence() -> None:
    words = np.random.SeedSequence(ENTROPY, spawn_key=(1, 2, 2)).generate_state(128, np.uint64).reshape(16, 2, 4)
    seed = BlockSeeds(ENTROPY, (1, 2)).of(37, 1)
    np.testing.assert_array_equal(seed.generate_state(4, np.uint64), words[5, 1])


def test_streams_of_blocks_are_pinned() -> None:
    drawn = [
        int(np.random.Generator(np.random.PCG64(BlockSeeds(7, (1, 2)).of(block, side))).integers(2**63))
        for block, side in ((0, 0), (15, 1), (40, 0))
    ]
    assert drawn == [8103687356882019347, 1974658943544680693, 8797338238276632693]


def test_which_side_is_first_is_a_fair_coin_that_the_block_decides() -> None:
    seeds, again = BlockSeeds(ENTROPY, (1, 2)), BlockSeeds(ENTROPY, (1, 2))
    first = [seeds.first_side(block) for block in range(640)]
    assert 260 < sum(first) < 380  # 4.7 standard deviations; the seed is fixed
    assert [again.first_side(block) for block in reversed(range(640))] == first[::-1]


def test_seeds_of_blocks_do_not_depend_on_the_order_of_requests() -> None:
    """The seed of a block depends on its name alone, not on which blocks the same worker drew before."""
    in_order = BlockSeeds(ENTROPY, (1, 2))
    words = {(block, side): in_order.of(block, side) for block in range(40) for side in (0, 1)}
    backwards = BlockSeeds(ENTROPY, (1, 2))
    draws = set()
    for block, side in sorted(words, reverse=True):
        first, again = (
            np.random.Generator(np.random.PCG64(seed)).integers(2**63, size=2).tolist()
            for seed in (words[block, side], backwards.of(block, side))
        )
        assert first == again
        draws.update(first)
    for key in [(1, 3), (2, 2)]:
        draws.update(
            np.random.Generator(np.random.PCG64(BlockSeeds(ENTROPY, key).of(0, 0))).integers(2**63, size=2).tolist()
        )
    assert len(draws) == 2 * (40 * 2 + 2)


def test_both_sides_are_independent_streams() -> None:
    """Without data in the output the two sides must still differ, or they would be coupled."""
    done = run_task(task_of(dpaudit.batched(lambda data, size, rng: rng.random(size)), (50, 50), keep=50)).blocks
    first, second = (merge(done).learn[side].values[:, 0] for side in (0, 1))
    assert np.intersect1d(first, second).size == 0
    assert np.unique(first).size == 100


@pytest.mark.parametrize(
    "function", [dpaudit.batched(noisy), dpaudit.per_release(lambda data, rng: len(data) + rng.laplace())]
)
@pytest.mark.parametrize("sizes", [(40,) * 16, (2000,) * 4 + (7,), (1,)])
def test_blocks_may_be_drawn_by_anyone(function: Any, sizes: tuple[int, ...]) -> None:
    views = views_of(function)
    task = task_of(function, sizes, views=views)
    whole = merge(run_task(task).blocks)
    parts: list[BlockPair] = []
    for first in range(0, len(sizes), 3):
        piece = Task(
            task.sampler,
            task.data,
            task.neighbour,
            views,
            ENTROPY,
            task.key,
            first,
            sizes[first : first + 3],
            task.keep,
        )
        parts.extend(run_task(piece).blocks)
    assert same(whole, merge(parts))


def test_wide_outputs_are_not_held_until_others_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen blocks of a thousand numbers an output took gigabytes; counting each by itself changes nothing."""
    function = dpaudit.batched(lambda data, size, rng: rng.laplace(len(data), size=(size, 3)))
    task = task_of(function, (40,) * 16, views=views_of(function))
    together = run_task(task).blocks
    monkeypatch.setattr(sampling, "BLOCKS", replace(BLOCKS, most_numbers_together=100))
    apart = run_task(task).blocks
    assert (len(together), len(apart)) == (1, 16)
    assert same(merge(together), merge(apart))


@pytest.mark.parametrize("most_together", [1 << 16, 10])
@pytest.mark.parametrize("sizes", [(40,) * 16, (40_000,) * 2])
def test_outputs_may_come_in_memory_that_the_next_call_writes_to(
    sizes: tuple[int, ...], most_together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "BLOCKS", replace(BLOCKS, most_numbers_together=most_together))
    memory = np.empty(max(sizes))

    def into_memory(data: list[int], size: int, rng: np.random.Generator) -> Any:
        memory[:size] = noisy(data, size, rng)
        return memory[:size]

    views = views_of(dpaudit.batched(noisy))
    own, shared = (
        merge(run_task(task_of(dpaudit.batched(function), sizes, views=views)).blocks)
        for function in (noisy, into_memory)
    )
    assert same(own, shared)


def test_tasks_and_their_answers_pickle() -> None:
    from mechanisms.broken.laplace import MisscaledLaplace

    mechanism = MisscaledLaplace(1.0, 0.5)
    rng = np.random.default_rng(0)
    learner = Learner(build_views)
    low, high = np.array([0.0, 1.0]), np.array([1.0, 1.0])
    sides = encode(mechanism.sample(low, 200, rng)), encode(mechanism.sample(high, 200, rng))
    learner.settle(Settled((), sides), 200)
    task = Task(Sampler(mechanism), low, high, learner.views, ENTROPY, (1, 0), 0, (30, 30), 5)
    here, there = run_task(task), pickle.loads(pickle.dumps(run_task(pickle.loads(pickle.dumps(task)))))
    assert same(merge(here.blocks), merge(there.blocks))


@pytest.mark.parametrize("size", [50, 3000, 40_000])
def test_rounds_do_not_depend_on_the_executor(size: int) -> None:
    function = dpaudit.batched(noisy)
    views = views_of(function)

    def drawn(executor: Any, seconds_each: float) -> BlockPair:
        task = task_of(function, views=views)
        ended = run_round(
            task,
            block_sizes(size),
            deadline=None,
            runner=TaskRunner(executor),
            seconds_each=seconds_each,
            on_block=lambda _: None,
        )
        assert ended.cause is None
        return merge(ended.blocks)

    alone = drawn(None, 0.0)
    assert alone.size == size
    with ThreadPoolExecutor(3) as executor:
        for seconds_each in (0.0, 1e-5, 1.0):
            assert same(alone, drawn(executor, seconds_each))


class Countdown:
    """Raises something at a given call."""

    def __init__(self, calls: int, error: BaseException) -> None:
        self.calls = calls
        self.error = error

    def __call__(self, data: list[int]) -> float:
        self.calls -= 1
        if self.calls == 0:
            raise self.error
        return float(len(data))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TimedOut("late")])
def test_a_task_that_is_cut_short_keeps_a_prefix_of_complete_pairs(error: BaseException) -> None:
    sizes = (10,) * 8
    for calls in (1, 15, 35, 60, 155):
        ended = run_task(task_of(Countdown(calls, error), sizes))
        assert type(ended.cause) is type(error)
        assert sum(block.size for block in ended.blocks) == 10 * ((calls - 1) // 20)
        for block in ended.blocks:
            assert len(block.learn[0]) == len(block.learn[1])


def test_the_deadline_is_kept_between_calls() -> None:
    def slow(data: list[int]) -> float:
        time.sleep(0.02)
        return 1.0

    begin = time.monotonic()
    ended = run_task(task_of(slow, (3,) * 10), deadline=begin + 0.2)
    assert time.monotonic() - begin < 0.2 + 0.02 + 0.2
    assert isinstance(ended.cause, OutOfTime)
    assert sum(block.size for block in ended.blocks) % 3 == 0


def test_one_release_that_raises_is_an_output_and_many_are_none() -> None:
    def raises(data: list[int], size: int, rng: np.random.Generator) -> Any:
        raise ValueError(f"row {rng.integers(100)} is bad")

    sampler = Sampler(dpaudit.batched(raises))
    with pytest.raises(BatchRaised, match="ValueError: row"):
        sampler.draw([], 3, seed_child(0, 1))
    assert sampler.draw([], 1, seed_child(0, 1)) == [Raised("ValueError", "row # is bad")]
    one_by_one = Sampler(dpaudit.batched(raises), one_by_one=True)
    assert one_by_one.draw([], 3, seed_child(0, 1)) == [Raised("ValueError", "row # is bad")] * 3


def test_control_c_is_never_an_output() -> None:
    for error in (KeyboardInterrupt(), GeneratorExit()):
        with pytest.raises(type(error)):
            Sampler(as_mechanism(Countdown(1, error))).draw([], 1, seed_child(0, 1))


@pytest.mark.parametrize("wrap", [as_mechanism, dpaudit.batched, lambda leaves: dpaudit.fresh(lambda: leaves)])
@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize("size", [1, 3])
def test_leaving_the_program_is_a_broken_protocol(wrap: Any, timeout: float | None, size: int) -> None:
    def leaves(data: Any, *more: Any) -> Any:
        raise SystemExit(0)

    with pytest.raises(dpaudit.MechanismError, match=r"called sys\.exit\(0\)"):
        Sampler(wrap(leaves), timeout=timeout).draw([], size, seed_child(0, 1))


def test_data_with_a_method_draw_are_data() -> None:
    class Deck:
        def draw(self, rng: Any) -> Any:
            raise AssertionError("the data of a user are not ours to draw from")

        def __len__(self) -> int:
            return 52

    assert Sampler(as_mechanism(len)).draw(Deck(), 2, seed_child(0, 1)) == [52, 52]


def test_unequal_blocks_are_refused() -> None:
    """A mechanism cannot make the two sides unequal: a wrong number of outputs is an error, not a smaller block."""
    with pytest.raises(dpaudit.MechanismError, match="must return exactly"):
        run_task(task_of(dpaudit.batched(lambda data, size, rng: rng.random(size - len(data))), (10,)))


def test_how_many_pairs_are_probed_does_not_depend_on_the_clock() -> None:
    def coins(data: Any, size: int, rng: np.random.Generator, wait: float) -> Any:
        time.sleep(wait)
        return rng.integers(2, size=size)

    fast, slow = (
        dpaudit.audit(
            dpaudit.batched(functools.partial(coins, wait=wait)), dpaudit.PureDP(1.0), dpaudit.neighbours.answers(1, 0, 10),
            samples=3000, seed=3, detect_factor=20.0,
        )
        for wait in (0.0, 0.002)
    )  # fmt: skip
    assert fast.trajectory == slow.trajectory
