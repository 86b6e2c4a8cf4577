"""Draw outputs in blocks: the seeds, the blocks, and the task that a worker runs.

A round is an ordered list of equal blocks of D and D', fixed before anything is drawn. Every block of either side has a
generator of its own, seeded from the child of one ``SeedSequence`` that (pair, round, block) names, so it does not matter
which process draws it, or when. A task returns counts and a few outputs to learn from, never all samples.
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

from dpaudit._util.parent_process import limited_processor_time
from dpaudit._util.surroundings import engine_state, mechanism_state
from dpaudit._util.values import fingerprint
from dpaudit.engine.encoding.batch import (
    Encoded,
    container,
    digest,
    encode,
    record_keys,
    same_to_each,
    stack,
    unwrapped,
)
from dpaudit.engine.encoding.feature_table import table_of_blocks
from dpaudit.engine.encoding.single_output import rows_as_arrays
from dpaudit.engine.encoding.suspects import Suspect, with_suspects
from dpaudit.engine.sampling.independence import REPEAT_BY_CHANCE, log_collision
from dpaudit.engine.sampling.seeds import SEEDS_PER_CHILD, BlockSeeds, seed_child
from dpaudit.engine.views.view import Block, RecordView, View
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
from dpaudit.mechanism.waiting import DeadlinePassed, waiting_until

Counts: TypeAlias = NDArray[np.int64]
Container: TypeAlias = tuple[str, tuple[int, ...]]

ONE_EACH = (PerRelease, Plain, Fresh)  # mechanisms whose calls make one release each
SIGNATURE_SIZES = (32, 512, 4096)  # outputs drawn to identify a process; more if fewer could be equal by chance
COMMON_SEED = (4, 0)  # key of the seed from which every process draws once, to compare the processes
CHANGED_INPUT = (
    "The mechanism changed its input, so later releases saw other data than earlier ones. Copy the data inside the mechanism "
    "before sorting, popping or assigning."
)


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Division of a round into blocks, and which blocks are counted together."""

    largest: int = 131_072
    """The most outputs that are drawn in one call."""
    most_numbers: int = 1 << 19
    """The most numbers that one block may hold, where an output holds several; bounds the memory."""
    per_round: int = SEEDS_PER_CHILD
    """A round has at least this many blocks where they are large enough, so that a stop in the middle loses little."""
    smallest_call: int = 256
    """The fewest outputs of a call that makes several and has no deadline, because every call has a cost of its own."""
    counted_together: int = 32_768
    """Blocks with fewer outputs are held until the end of their task and counted together."""
    most_numbers_together: int = 1 << 16
    """Blocks that hold more numbers than this are counted one by one, however few outputs they have."""
    fewest_searched: int = 1024
    """Blocks with fewer outputs are not searched for exact repeats: all of their outputs are learned from."""
    search_repeats_every: int = 32
    """One block in this many is searched for exact repeats while nothing has repeated yet."""
    outputs_searched: int = 16_384
    """Outputs of such a block that are searched, its first ones; searching means sorting."""


BLOCKS = BlockSizes()


class BatchRaised(DPAuditError):
    """A call for several outputs raised: it yields no releases, so nothing of its block may be settled."""


class BatchDependentContainer(BatchRaised):
    """Calls returned containers in which an output looks different depending on the other outputs of its call."""


class OutOfTime(Exception):
    """The deadline of the audit passed in the middle of a block, which is therefore thrown away."""


class TimedOut(BaseException):
    """One call of the mechanism took longer than ``timeout``. Not an Exception, so that it is never taken for an output."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draw batches of outputs: the mechanism, one call per release or one for many, and the time limit of a call."""

    mechanism: Mechanism
    one_by_one: bool = False
    timeout: float | None = None
    timeout_is_output: bool = False
    suspects: tuple[Suspect, ...] = ()  # evaluated on the outputs where these are encoded

    def draw(
        self, data: Any, size: int, seed: ISeedSequence, deadline: float | None = None, *, held: bool = True
    ) -> Outputs:
        """Draw outputs with a generator of their own.

        Parameters
        ----------
        data : object
            The data set, or a Pufferfish secret from which one is drawn for every release.
        size : int
            The number of outputs.
        seed : ISeedSequence
            The seed of the generator.
        deadline : float, optional
            Monotonic time after which :class:`OutOfTime` is raised between two calls.
        held : bool
            Copy the outputs if needed. If False, use them before the next call, which may write into the same memory.
        """
        try:
            with waiting_until(deadline), mechanism_state():
                return self._draw(data, size, seed, deadline, held=held)
        except DeadlinePassed as stop:
            raise OutOfTime(str(stop)) from None

    def _draw(self, data: Any, size: int, seed: ISeedSequence, deadline: float | None, *, held: bool) -> Outputs:
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
        outputs = rows_as_arrays(unwrapped(checked_outputs(outputs, size)))
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
        return kept(rows_as_arrays(unwrapped(checked_outputs(outputs, 1)))[0])

    def blocks(self, total: int, *, timed: bool, width: int = 1) -> tuple[int, ...]:
        """Cut a round of ``total`` outputs of ``width`` numbers each; a ``timed`` round has small blocks, to stop in time."""
        least = BLOCKS.smallest_call if self.batched and not timed else 1
        return block_sizes(total, least=least, largest=max(BLOCKS.most_numbers // max(width, 1), 1))

    @property
    def batched(self) -> bool:
        """True if one call makes several releases, so that an exception may lose more than one."""
        return not self.one_by_one and not isinstance(self.mechanism, ONE_EACH)


def _is_secret(data: Any) -> bool:
    """Return whether the data are a Pufferfish secret, without importing Hypothesis."""
    neighbours = sys.modules.get("dpaudit.neighbours")
    return neighbours is not None and isinstance(data, neighbours.Secret)


def _collect(releases: Generator[Any], deadline: float | None) -> list[Any]:
    """Collect the outputs of an iterator; raise OutOfTime if it does not end before the deadline."""
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
    features: bool = False  # also compute the features of every output
    audit: str = ""  # names the audit, for workers that serve several; no seed depends on it
    signature_size: int = 0  # the most outputs that a worker may draw to identify itself


@dataclass(frozen=True, slots=True)
class BlockPair:
    """The counts of one block of D and of the equal block of D'."""

    size: int
    counts: tuple[Counts, ...]  # per view: (2, cells), followed by the counts that scores are refitted on
    learn: tuple[Encoded, Encoded]
    repeats: tuple[tuple[int, Any, int, str], ...]
    seconds: tuple[float, float]  # in the mechanism, and in total
    containers: frozenset[Container] = frozenset()  # kinds of containers in which the outputs came


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The contiguous prefix of complete blocks, and the exception that ended it early, if any."""

    blocks: tuple[BlockPair, ...]
    cause: BaseException | None = None
    # Process id, and signatures of what it drew first from its own seed, and from the seed that all workers share.
    worker: tuple[int, int | None, int | None] = (0, None, None)


_SIGNATURES: dict[str, tuple[int | None, int | None]] = {}  # per audit, in a worker process
MOST_SIGNATURES = 256  # signatures that a worker keeps; workers of a cluster serve many audits


def run_sent_task(task: Task, seconds: float | None = None) -> TaskResult:
    """Run a task in a worker, for at most ``seconds``. Before the first task of an audit, draw the worker's signatures."""
    deadline = None if seconds is None else time.monotonic() + seconds
    if task.audit and task.audit not in _SIGNATURES:
        if len(_SIGNATURES) >= MOST_SIGNATURES:
            _SIGNATURES.clear()
        _SIGNATURES[task.audit] = worker_signatures(task, deadline)
    signatures = _SIGNATURES.get(task.audit, (None, None))
    before = fingerprint((task.data, task.neighbour))
    with engine_state():
        ended = run_task(task, deadline=deadline)
    if fingerprint((task.data, task.neighbour)) != before:
        raise MechanismError(CHANGED_INPUT)
    return replace(ended, worker=(os.getpid(), *signatures))


def worker_signatures(task: Task, deadline: float | None) -> tuple[int | None, int | None]:
    """Return signatures of a few outputs on which nothing is bet: from a seed of this process, and from a common seed.

    Equal signatures from different seeds mean that processes share random state, such as a generator made at import time.
    Equal signatures from the common seed mean that the mechanism gives the same outputs in every process.
    """
    return signature_of_seed(task, deadline, 3, os.getpid()), signature_of_seed(task, deadline, *COMMON_SEED)


def signature_of_seed(task: Task, deadline: float | None, *key: int) -> int | None:
    """Return a digest of what this process draws from one seed; None if it could be equal by chance."""
    for size in SIGNATURE_SIZES:
        if size > task.signature_size:
            break
        try:
            drawn = encode(task.sampler.draw(task.data, size, seed_child(task.entropy, 0, 0, *key), deadline))
        except (TimedOut, BatchRaised, OutOfTime):
            break
        keys = record_keys(drawn)
        if is_distinctive(keys):
            return digest(keys.tobytes().hex())
    return None


def run_task(
    task: Task, *, deadline: float | None = None, on_block: Callable[[int], None] = lambda _: None
) -> TaskResult:
    """Draw and count the blocks of a task, in order.

    A large block is counted while it is in the cache. Small blocks are drawn one by one and counted together, with the same
    result: counts add up, and the outputs to learn from are taken from every block.
    """
    _raise_trim_threshold()
    done: list[BlockPair] = []
    small: list[tuple[int, Outputs, Outputs]] = []
    drawing = 0.0
    cause: BaseException | None = None
    together: bool | None = None  # decided by the first block; later ones are about as wide
    seeds = BlockSeeds(task.entropy, task.key)
    begin = time.perf_counter()
    try:
        for block, size in enumerate(task.sizes, start=task.first):
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTime
            sides: list[Any] = [None, None]
            first = seeds.first_side(block)
            for side in (first, 1 - first):
                data = task.neighbour if side else task.data
                since = time.perf_counter()
                held = size < BLOCKS.counted_together and together is not False
                outputs = task.sampler.draw(data, size, seeds.of(block, side), deadline, held=held)
                drawing += time.perf_counter() - since
                if together is None:
                    together = held and _numbers(outputs) <= BLOCKS.most_numbers_together
                sides[side] = outputs if together else _count(task, block, [outputs], [size])
                del outputs  # the next block is drawn into the same memory
            if together:
                small.append((size, sides[0], sides[1]))  # in one step, because an interrupt may come between two
            else:
                now = time.perf_counter()
                done.append(_paired(size, sides, (drawing, now - begin)))
                begin, drawing = now, 0.0
            on_block(2 * size)
    except (KeyboardInterrupt, TimedOut, BatchRaised, OutOfTime) as error:
        cause = error.with_traceback(None)  # the frames would keep a suspended mechanism and its locks alive
    if small:
        sizes, *outputs_of = zip(*small, strict=True)
        counted = [_count(task, task.first, outputs, sizes) for outputs in outputs_of]
        done.append(_paired(sum(sizes), counted, (drawing, time.perf_counter() - begin)))
    return TaskResult(tuple(done), cause)


def _numbers(outputs: Outputs) -> int:
    """Return about how many numbers, or pieces of eight bytes, a block holds."""
    if isinstance(outputs, np.ndarray):
        return outputs.nbytes // 8
    first = outputs[0] if isinstance(outputs, list) and outputs else None
    return len(outputs) * (
        first.size if isinstance(first, np.ndarray) else len(first) if isinstance(first, list | tuple) else 1
    )


@cache
def _raise_trim_threshold() -> None:
    """Make the C library keep freed memory for the next block, by freeing one large allocation that is never touched.

    Glibc returns freed memory beyond twice its largest freed allocation to the system. Fetching it again, page by page, takes
    18 % of an audit of 10^6 words and 4 % of one of 10^6 floats.
    """
    np.empty(16 << 20, np.uint8)


@dataclass(frozen=True, slots=True)
class OneSide:
    """Consecutive blocks of one side, counted."""

    counts: tuple[Counts, ...]  # per view: cells, followed by the counts that scores are refitted on
    learn: Encoded
    repeats: tuple[tuple[Any, int, str], ...]
    containers: frozenset[Container]


def looked_at(blocks: Sequence[Outputs], sampler: Sampler, *, features: bool) -> Encoded:
    """Encode blocks together, with the values of the user's functions and, if wanted, with features."""
    batch = with_suspects(encoded(blocks), blocks, sampler.suspects)
    return batch.with_features(table_of_blocks(map(unwrapped, blocks))) if features else batch


def _count(task: Task, first: int, blocks: Sequence[Outputs], sizes: Sequence[int]) -> OneSide:
    """Count consecutive blocks of one side in every view, and look for outputs that repeat exactly.

    Each block is searched by itself: the result must not depend on how blocks were divided among workers.
    """
    batch = looked_at(blocks, task.sampler, features=task.features)
    prepared = Block(batch)
    repeats: list[tuple[Any, int, str]] = []
    ends = list(itertools.accumulate(sizes))  # a list, because there is usually one block
    for view in task.views:
        if not isinstance(view, RecordView) or sizes[0] < BLOCKS.fewest_searched:
            continue
        known = bool(view.table.keys.size)
        for number, (stop, size) in enumerate(zip(ends, sizes, strict=True), first):
            if known and len(sizes) == 1:
                repeats.extend(view.unknown(prepared))
            # Where nothing has repeated yet, searching needs a sort that counting does not: search a part of some blocks.
            elif size >= BLOCKS.fewest_searched and (known or number % BLOCKS.search_repeats_every == 0):
                seen = slice(stop - size, stop if known else min(stop, stop - size + BLOCKS.outputs_searched))
                repeats.extend(view.unknown(Block(batch.rows(seen))))
    counts = tuple(view.study(prepared) for view in task.views)
    near = batch.counted is not None  # encoding counts only integers of a small range, which floats hold exactly
    held = frozenset(found for block in blocks if (found := container(block, near=near)) is not None)
    return OneSide(counts, _heads(batch, sizes, task.keep), tuple(repeats), held)


def _paired(size: int, sides: Sequence[OneSide], seconds: tuple[float, float]) -> BlockPair:
    of_d, of_neighbour = sides
    counts = tuple(np.array(both) for both in zip(of_d.counts, of_neighbour.counts, strict=True))
    repeats = tuple((side, *repeat) for side, counted in enumerate(sides) for repeat in counted.repeats)
    containers = of_d.containers | of_neighbour.containers
    return BlockPair(size, counts, (of_d.learn, of_neighbour.learn), repeats, seconds, containers)


def is_distinctive(keys: NDArray[np.uint64]) -> bool:
    """Return whether an independent sequence is equal with probability below 1e-9, estimated from collisions."""
    return bool(keys.size * log_collision(keys) < np.log(REPEAT_BY_CHANCE))


def encoded(blocks: Sequence[Outputs]) -> Encoded:
    """Encode blocks together. Arrays are joined only if dtype and shape agree, because joining may change the dtype."""
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
        return batch.first(keep)
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
    """Raise BatchDependentContainer if an output may look different depending on the others of its call."""
    if not same_to_each(known):
        names = [f"{kind} of shape {shape}" if shape else kind for kind, shape in sorted(known)]
        raise BatchDependentContainer(
            f"Calls for several outputs returned {' and '.join(names)}, in which an output may look different depending on "
            "the others of its call"
        )


def block_sizes(total: int, *, least: int = 1, largest: int = BLOCKS.largest) -> tuple[int, ...]:
    """Cut a round of ``total`` outputs per side into blocks of a sixteenth, but ``least`` to ``largest`` outputs.

    >>> block_sizes(50), block_sizes(300, least=256), len(block_sizes(10_000_000))
    ((4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2), (256, 44), 77)
    """
    size = min(max(-(-total // BLOCKS.per_round), least), largest, BLOCKS.largest)
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
        with limited_processor_time(seconds * size):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
