"""Drawing outputs: seeds, blocks, and the task that a worker runs.

A round is an ordered list of equal blocks of D and D', fixed before anything is drawn. Every block of either side has a
generator of its own, seeded from the child of one ``SeedSequence`` that (pair, round, block) names, so who draws it, and
when, cannot matter. A task returns counts and a few outputs to learn from, never all samples.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from dpaudit.engine.drift import log_collision
from dpaudit.engine.outputs import Encoded, container, digest, encode, record_keys, same_to_each, stack, unwrapped
from dpaudit.engine.views import Block, RecordView, ScoreView, View
from dpaudit.errors import DPAuditError, MechanismError
from dpaudit.mechanism import (
    Fresh,
    Mechanism,
    Outputs,
    PerRelease,
    Plain,
    Raised,
    checked_outputs,
    exited,
    kept,
)
from dpaudit.values import fingerprint

Counts: TypeAlias = NDArray[np.int64]
Container: TypeAlias = tuple[str, tuple[int, ...]]

ONE_EACH = (PerRelease, Plain, Fresh)  # mechanisms whose calls make one release each
LARGEST_BLOCK = 131_072  # outputs drawn at once,
MOST_NUMBERS = 1 << 19  # and numbers, where an output holds several: what bounds the memory
TOGETHER = 32_768  # outputs of a block below which the blocks of a task are counted together,
MOST_TOGETHER = 1 << 16  # unless they are so wide that it holds more numbers than this
ALL_LEARNED = 1024  # outputs of a block below which all are learned from
SIGNED = (32, 512, 4096)  # outputs that tell processes apart; more where fewer could be the same by chance
COMMON_SEED = (4, 0)  # from which all processes draw once, to see whether they draw alike
CHANGED_INPUT = (
    "The mechanism changed its input, so later releases saw other data than earlier ones. Copy the data inside the mechanism "
    "before sorting, popping or assigning."
)
LOOK_EVERY = 32  # blocks, in one of which exact repeats are looked for
LOOKED_AT = 16_384  # its first outputs: looking is sorting
FEWEST_BLOCKS = 16  # a round is cut at least this fine, so that a stop in its middle loses little,
LEAST_CALL = 256  # but calls that make many outputs have a cost of their own: without a deadline they make so many


class BatchRaised(DPAuditError):
    """A call for several outputs raised: it yields no releases, so nothing of its block may be settled."""


class TellingContainer(BatchRaised):
    """Calls for several outputs came in containers in which the same output looks different, so each tells of the others."""


class OutOfTime(Exception):
    """The deadline of the audit passed in the middle of a block, which is therefore thrown away."""


class TimedOut(BaseException):
    """One call of the mechanism took longer than ``timeout``. Not an Exception, so that no handler mistakes it for output."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """How one output batch is drawn: the mechanism, one call per release or many, and the time a call may take."""

    mechanism: Mechanism
    one_by_one: bool = False
    timeout: float | None = None
    timeout_is_output: bool = False

    def draw(
        self, data: Any, size: int, seed: ISeedSequence, deadline: float | None = None, *, held: bool = True
    ) -> Outputs:
        """Draw ``size`` outputs with a generator of their own; past the deadline, give up between two calls.

        Those that are not ``held`` must be looked at before the next call, which may write into the same memory.
        """
        rng = np.random.Generator(np.random.PCG64(seed))  # type: ignore[arg-type]  # numpy's stubs leave out the interface
        if _is_secret(data) and not getattr(self.mechanism, "samples_secrets", False):
            # Pufferfish: the data are drawn anew in every trial.
            return _collect((self._one(data.draw(rng), rng) for _ in range(size)), deadline)
        if isinstance(self.mechanism, ONE_EACH) and self.timeout is None:
            return _collect(self.mechanism.releases(data, size, rng), deadline)
        if size == 1 or not self.batched:
            return _collect((self._one(data, rng) for _ in range(size)), deadline)
        with _time_limit(self.timeout, size):
            try:
                outputs = self.mechanism.sample(data, size, rng)
            except MechanismError:
                raise
            except SystemExit as stop:
                raise exited(stop) from stop
            except Exception as error:
                raise BatchRaised(f"{type(error).__name__}: {error}") from error
        outputs = unwrapped(checked_outputs(outputs, size))
        return kept(outputs) if held else outputs

    def _one(self, data: Any, rng: np.random.Generator) -> Any:
        try:
            with _time_limit(self.timeout, 1):
                outputs = self.mechanism.sample(data, 1, rng)
        except TimedOut:
            if self.timeout_is_output:
                return Raised("TimeoutError", "took longer than the time-out")
            raise
        except MechanismError:
            raise  # it broke the protocol; any other error is what the caller of a release sees
        except SystemExit as stop:
            raise exited(stop) from stop
        except Exception as error:
            return Raised.from_exception(error)
        return kept(unwrapped(checked_outputs(outputs, 1))[0])

    def blocks(self, total: int, *, timed: bool, width: int = 1) -> tuple[int, ...]:
        """How a round is cut; what is ``timed`` must be able to stop after few outputs, of ``width`` numbers each."""
        least = LEAST_CALL if self.batched and not timed else 1
        return block_sizes(total, least=least, largest=max(MOST_NUMBERS // max(width, 1), 1))

    @property
    def batched(self) -> bool:
        """Whether one call makes several releases, so that an exception may lose more than one."""
        return not self.one_by_one and not isinstance(self.mechanism, ONE_EACH)


def _is_secret(data: Any) -> bool:
    """Whether the data are a Pufferfish secret, without importing Hypothesis where there is none."""
    neighbours = sys.modules.get("dpaudit.neighbours")
    return neighbours is not None and isinstance(data, neighbours.Secret)


def _collect(releases: Generator[Any], deadline: float | None) -> list[Any]:
    """All outputs of an iterator that ends in time."""
    if deadline is None:
        return list(releases)
    outputs = []
    with closing(releases):
        for output in releases:
            outputs.append(output)
            if time.monotonic() > deadline:
                break
        else:
            return outputs
    raise OutOfTime


@dataclass(frozen=True, slots=True)
class Task:
    """A contiguous run of blocks of one round."""

    sampler: Sampler
    data: Any
    neighbour: Any
    views: tuple[View, ...]
    entropy: int
    key: tuple[int, ...]  # (pair, round)
    first: int  # number of the first block
    sizes: tuple[int, ...]
    keep: int  # outputs of each side and block to hand back for learning
    audit: str = ""  # names the audit, for workers that serve several; nothing is drawn from it
    introduction: int = 0  # outputs that a worker may draw at once to introduce itself


@dataclass(frozen=True, slots=True)
class BlockPair:
    """What one block of D and its twin of D' brought."""

    size: int
    counts: tuple[Counts, ...]  # per view and side its cells, and what it studies
    learn: tuple[Encoded, Encoded]
    repeats: tuple[tuple[int, Any, int, str], ...]
    seconds: tuple[float, float]  # spent in the mechanism, and in all
    containers: frozenset[Container] = frozenset()  # in which its outputs came


def seed_child(entropy: int, *key: int) -> np.random.SeedSequence:
    """The child of the root seed with that name."""
    return np.random.SeedSequence(entropy, spawn_key=key)


def state_words(seed: np.random.SeedSequence, count: int) -> NDArray[np.uint64]:
    """``seed.generate_state(count, numpy.uint64)`` at once, which numpy makes word by word: a tenth of a millisecond for many.

    >>> seed = seed_child(7, 1, 2)
    >>> bool((state_words(seed, 5) == seed.generate_state(5, np.uint64)).all())
    True
    """
    # The hash of numpy's SeedSequence: every word of the pool in turn, with a factor that goes on from word to word.
    factors = np.full(2 * count + 1, 0x58F38DED, np.uint32)
    factors[0] = 0x8B51F9DD
    np.multiply.accumulate(factors, out=factors)
    words = np.resize(np.asarray(seed.pool, np.uint32), 2 * count)
    words ^= factors[:-1]
    words *= factors[1:]
    words ^= words >> np.uint32(16)
    return words.astype("<u4").view("<u8").astype(np.uint64)


class _Words(ISeedSequence):
    """The words that seed one generator, drawn from a seed child beforehand."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """Hand out the words; PCG64 asks once, for as many as there are."""
        if n_words != self.words.size or np.dtype(dtype) != self.words.dtype:
            raise AssertionError(f"{n_words} words of {dtype} are not what a PCG64 asks for")
        return self.words


class BlockSeeds:
    """Seeds of the blocks of one round, a few blocks to a seed child: a child costs as much as drawing 500 numbers."""

    def __init__(self, entropy: int, key: tuple[int, ...]) -> None:
        self._entropy = entropy
        self._key = key
        self._group = -1
        self._words = np.empty((0, 2, 4), np.uint64)

    def of(self, block: int, side: int) -> ISeedSequence:
        """The seed of one block of one side."""
        group, place = divmod(block, FEWEST_BLOCKS)
        if group != self._group:
            child = seed_child(self._entropy, *self._key, group)
            self._words = state_words(child, FEWEST_BLOCKS * 2 * 4).reshape(FEWEST_BLOCKS, 2, 4)
            self._group = group
        return _Words(self._words[place, side])


@dataclass(frozen=True, slots=True)
class Ended:
    """Blocks as far as they went: the contiguous prefix of complete ones, and what cut it short, if anything did."""

    blocks: tuple[BlockPair, ...]
    cause: BaseException | None = None
    # Process, and signatures of what it drew first from a seed of its own, and from the one that all workers share.
    worker: tuple[int, int | None, int | None] = (0, None, None)


_INTRODUCTIONS: dict[str, tuple[int | None, int | None]] = {}  # per audit, in a worker
MOST_INTRODUCTIONS = 256  # kept, because workers of a cluster live long


def run_sent_task(task: Task, seconds: float | None = None) -> Ended:
    """What a worker runs: the task, for as long as there is time, and before its first one of an audit an introduction."""
    deadline = None if seconds is None else time.monotonic() + seconds
    if task.audit and task.audit not in _INTRODUCTIONS:
        if len(_INTRODUCTIONS) >= MOST_INTRODUCTIONS:
            _INTRODUCTIONS.clear()
        _INTRODUCTIONS[task.audit] = introduction(task, deadline)
    signatures = _INTRODUCTIONS.get(task.audit, (None, None))
    before = fingerprint((task.data, task.neighbour))
    ended = run_task(task, deadline=deadline)
    if fingerprint((task.data, task.neighbour)) != before:
        raise MechanismError(CHANGED_INPUT)
    return replace(ended, worker=(os.getpid(), *signatures))


def introduction(task: Task, deadline: float | None) -> tuple[int | None, int | None]:
    """Signatures of a few outputs on which nothing is bet.

    From different seeds, processes that start from one random state (a generator made at import time) draw the same; from
    one seed, processes of a mechanism that can be replayed do.
    """
    return signature_of_seed(task, deadline, 3, os.getpid()), signature_of_seed(task, deadline, *COMMON_SEED)


def signature_of_seed(task: Task, deadline: float | None, *key: int) -> int | None:
    """A digest of what this process draws from one seed, on which nothing is bet; None where chance could repeat it."""
    for size in SIGNED:
        if size > task.introduction:
            break
        try:
            drawn = encode(task.sampler.draw(task.data, size, seed_child(task.entropy, 0, 0, *key), deadline))
        except (TimedOut, BatchRaised, OutOfTime):
            break
        keys = record_keys(drawn)
        if telling(keys):
            return digest(keys.tobytes().hex())
    return None


def run_task(task: Task, *, deadline: float | None = None, on_block: Callable[[int], None] = lambda _: None) -> Ended:
    """Draw and count the blocks of a task, in order.

    A large block is counted while it is in the cache. Small ones are drawn one by one and counted together, which changes
    nothing: counts add up, and outputs to learn from are taken from every block alike.
    """
    _keep_memory()
    done: list[BlockPair] = []
    small: list[tuple[int, Outputs, Outputs]] = []
    drawing = 0.0
    cause: BaseException | None = None
    together: bool | None = None  # decided on the first outputs: the widths of the others hardly differ
    seeds = BlockSeeds(task.entropy, task.key)
    begin = time.perf_counter()
    try:
        for block, size in enumerate(task.sizes, start=task.first):
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTime
            sides: list[Any] = []
            for side, data in enumerate((task.data, task.neighbour)):
                since = time.perf_counter()
                held = size < TOGETHER and together is not False
                outputs = task.sampler.draw(data, size, seeds.of(block, side), deadline, held=held)
                drawing += time.perf_counter() - since
                if together is None:
                    together = held and _numbers(outputs) <= MOST_TOGETHER
                sides.append(outputs if together else _count(task, block, [outputs], [size]))
                del outputs  # the next block is drawn into the same memory
            if together:
                small.append((size, sides[0], sides[1]))  # in one step: an interrupt may come after any
            else:
                now = time.perf_counter()
                done.append(_paired(size, sides, (drawing, now - begin)))
                begin, drawing = now, 0.0
            on_block(2 * size)
    except (KeyboardInterrupt, TimedOut, BatchRaised, OutOfTime) as error:
        cause = error.with_traceback(None)  # its frames would keep a suspended mechanism, and its locks, alive
    if small:
        sizes, *outputs_of = zip(*small, strict=True)
        counted = [_count(task, task.first, outputs, sizes) for outputs in outputs_of]
        done.append(_paired(sum(sizes), counted, (drawing, time.perf_counter() - begin)))
    return Ended(tuple(done), cause)


def _numbers(outputs: Outputs) -> int:
    """About how many numbers a block holds, or words of eight bytes."""
    if isinstance(outputs, np.ndarray):
        return outputs.nbytes // 8
    first = outputs[0] if isinstance(outputs, list) and outputs else None
    return len(outputs) * (
        first.size if isinstance(first, np.ndarray) else len(first) if isinstance(first, list | tuple) else 1
    )


@cache
def _keep_memory() -> None:
    """Let the process keep a few megabytes instead of returning them after every block and fetching them for the next.

    The C library of Linux keeps as much as twice the largest piece that was ever freed; this one is never touched. Without
    it half of the time of a fast mechanism goes into page faults.
    """
    np.empty(16 << 20, np.uint8)


@dataclass(frozen=True, slots=True)
class OneSide:
    """Consecutive blocks of one side, counted."""

    counts: tuple[Counts, ...]  # per view its cells, and what it studies
    learn: Encoded
    repeats: tuple[tuple[Any, int, str], ...]
    containers: frozenset[Container]


def _count(task: Task, first: int, blocks: Sequence[Outputs], sizes: Sequence[int]) -> OneSide:
    """Count consecutive blocks of one side in every view, and look for outputs that repeat exactly.

    They are looked for in each block by itself: what is found must not depend on how blocks were shared out among workers.
    """
    batch = encoded(blocks)
    prepared = Block(batch)
    repeats: list[tuple[Any, int, str]] = []
    ends = list(itertools.accumulate(sizes))  # of one block mostly, for which an array costs more than it counts
    for view in task.views:
        if not isinstance(view, RecordView) or sizes[0] < ALL_LEARNED:
            continue
        known = bool(view.table.keys.size)
        for number, (stop, size) in enumerate(zip(ends, sizes, strict=True), first):
            if known and len(sizes) == 1:
                repeats.extend(view.unknown(prepared))
            # Where nothing repeated so far, looking costs a sort that counting does without: a part of one block in a few.
            elif size >= ALL_LEARNED and (known or number % LOOK_EVERY == 0):
                seen = slice(stop - size, stop if known else min(stop, stop - size + LOOKED_AT))
                repeats.extend(view.unknown(Block(batch.rows(seen))))
    counts = tuple(view.study(prepared) if isinstance(view, ScoreView) else view.count(prepared) for view in task.views)
    near = batch.counted is not None  # encoding counts integers of a small range only
    held = frozenset(found for block in blocks if (found := container(block, near=near)) is not None)
    return OneSide(counts, _heads(batch, sizes, task.keep), tuple(repeats), held)


def _paired(size: int, sides: Sequence[OneSide], seconds: tuple[float, float]) -> BlockPair:
    of_d, of_neighbour = sides
    counts = tuple(np.array(both) for both in zip(of_d.counts, of_neighbour.counts, strict=True))
    repeats = tuple((side, *repeat) for side, counted in enumerate(sides) for repeat in counted.repeats)
    containers = of_d.containers | of_neighbour.containers
    return BlockPair(size, counts, (of_d.learn, of_neighbour.learn), repeats, seconds, containers)


def telling(keys: NDArray[np.uint64]) -> bool:
    """Whether an equal sequence has a chance below one in a thousand million, by the collisions in this one."""
    return bool(keys.size * log_collision(keys) < np.log(1e-9))


def encoded(blocks: Sequence[Outputs]) -> Encoded:
    """Encode blocks together. Arrays are joined where they are of one kind: another would change what is in them."""
    if len(blocks) == 1:
        return encode(blocks[0])
    if all(isinstance(block, list) for block in blocks):
        return encode([output for block in blocks for output in block])
    arrays = [block for block in blocks if isinstance(block, np.ndarray)]
    if len(arrays) == len(blocks) and len({(block.shape[1:], block.dtype) for block in arrays}) == 1:
        return encode(np.concatenate(arrays))
    return stack([encode(block) for block in blocks])


def _heads(batch: Encoded, sizes: Sequence[int], keep: int) -> Encoded:
    if len(sizes) == 1 or keep == 0:
        return batch.head(keep)
    if keep >= max(sizes):
        return batch
    starts = np.cumsum([0, *sizes[:-1]])
    return batch.rows(
        np.concatenate([np.arange(start, start + min(keep, size)) for start, size in zip(starts, sizes, strict=True)])
    )


def merge(blocks: Sequence[BlockPair]) -> BlockPair:
    """Add up a contiguous prefix of block pairs."""
    if len(blocks) == 1:
        return blocks[0]
    counts = tuple(np.sum(parts, axis=0) for parts in zip(*(block.counts for block in blocks), strict=True))
    learn = tuple(
        stack([block.learn[side] for block in blocks if len(block.learn[side])] or [blocks[0].learn[side]])
        for side in (0, 1)
    )
    repeats = tuple(repeat for block in blocks for repeat in block.repeats)
    seconds = (sum(block.seconds[0] for block in blocks), sum(block.seconds[1] for block in blocks))
    containers = frozenset[Container]().union(*(block.containers for block in blocks))
    return BlockPair(sum(block.size for block in blocks), counts, (learn[0], learn[1]), repeats, seconds, containers)


def check_containers(known: Collection[Container]) -> None:
    """Refuse containers in which an output looks different because of others that came with it."""
    if not same_to_each(known):
        names = [f"{kind} of shape {shape}" if shape else kind for kind, shape in sorted(known)]
        raise TellingContainer(
            f"Calls for several outputs came as {' and as '.join(names)}, where an output may look different because of "
            "others that came with it"
        )


def block_sizes(total: int, *, least: int = 1, largest: int = LARGEST_BLOCK) -> tuple[int, ...]:
    """Cut a round of ``total`` outputs per side into blocks of a sixteenth, but ``least`` to ``largest`` outputs.

    >>> block_sizes(50), block_sizes(300, least=256), len(block_sizes(10_000_000))
    ((4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2), (256, 44), 77)
    """
    size = min(max(-(-total // FEWEST_BLOCKS), least), largest, LARGEST_BLOCK)
    whole, rest = divmod(total, size)
    return (size,) * whole + ((rest,) if rest else ())


def _time_limit(seconds: float | None, size: int) -> AbstractContextManager[None]:
    """Interrupt a call after ``seconds`` per release, through the interval timer of the main thread."""
    return _UNLIMITED if seconds is None else _alarm(seconds, size)


_UNLIMITED = nullcontext()


@contextmanager
def _alarm(seconds: float, size: int) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise MechanismError(
            "timeout= needs the main thread of a Unix process: workers that are threads (ThreadPoolExecutor, Dask) cannot be "
            "interrupted. Use processes, such as ProcessPoolExecutor(2), run the audit in the main thread, or leave it out."
        )

    def expire(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise TimedOut(f"A call for {size} output(s) took longer than timeout={seconds} seconds each.")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds * size)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
