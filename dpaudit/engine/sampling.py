"""Drawing outputs: seeds, blocks, and the task that a worker runs.

A round is an ordered list of equal blocks of D and D', fixed before anything is drawn. Every block has its own child of
one ``SeedSequence``, named by (pair, round, block, side), so who draws it, and when, cannot matter. A task returns counts
and a few outputs to learn from, never all samples.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.outputs import Encoded, encode, record_keys, stack
from dpaudit.engine.views import Block, RecordView, View
from dpaudit.errors import DPAuditError, MechanismError
from dpaudit.mechanism import Fresh, Mechanism, Outputs, PerRelease, Plain, Raised, checked_outputs

Counts: TypeAlias = NDArray[np.int64]

LARGEST_BLOCK = 65_536  # outputs drawn at once: what bounds the memory
SMALL_BLOCK = 1024
FEWEST_BLOCKS = 16  # a round is cut at least this fine, so that a stop in its middle loses little


class BatchRaised(DPAuditError):
    """A call for several outputs raised: it yields no releases, so nothing of its block may be settled."""


class TimedOut(BaseException):
    """One call of the mechanism took longer than ``timeout``. Not an Exception, so that no handler mistakes it for output."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """How one output batch is drawn: the mechanism, one call per release or many, and the time a call may take."""

    mechanism: Mechanism
    one_by_one: bool = False
    timeout: float | None = None
    timeout_is_output: bool = False

    def draw(self, data: Any, size: int, seed: np.random.SeedSequence) -> Outputs:
        """Draw ``size`` outputs with a generator of their own."""
        rng = np.random.Generator(np.random.PCG64(seed))
        draw_data = getattr(data, "draw", None)
        if draw_data is not None and not getattr(self.mechanism, "samples_secrets", False):
            # Pufferfish: the data are drawn anew in every trial.
            return [self._one(draw_data(rng), rng) for _ in range(size)]
        if self.one_by_one or size == 1 or (self.timeout is not None and not self.batched):
            return [self._one(data, rng) for _ in range(size)]
        with _time_limit(self.timeout, size):
            try:
                outputs = self.mechanism.sample(data, size, rng)
            except DPAuditError:
                raise
            except Exception as error:
                raise BatchRaised(f"{type(error).__name__}: {error}") from error
        return checked_outputs(outputs, size)

    def _one(self, data: Any, rng: np.random.Generator) -> Any:
        try:
            with _time_limit(self.timeout, 1):
                outputs = self.mechanism.sample(data, 1, rng)
        except TimedOut:
            if self.timeout_is_output:
                return Raised("TimeoutError", "took longer than the time-out")
            raise
        except DPAuditError:
            raise
        except Exception as error:
            return Raised.from_exception(error)
        return checked_outputs(outputs, 1)[0]

    @property
    def batched(self) -> bool:
        """Whether one call makes several releases, so that an exception may lose more than one."""
        return not self.one_by_one and not isinstance(self.mechanism, PerRelease | Plain | Fresh)


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


@dataclass(frozen=True, slots=True)
class BlockPair:
    """What one block of D and its twin of D' brought."""

    size: int
    counts: tuple[Counts, ...]  # one (2, cells) array per view
    learn: tuple[Encoded, Encoded]
    repeats: tuple[tuple[int, Any, int, str], ...]
    seconds: tuple[float, float]  # spent in the mechanism, and in all


def seed_child(entropy: int, *key: int) -> np.random.SeedSequence:
    """The child of the root seed with that name."""
    return np.random.SeedSequence(entropy, spawn_key=key)


def run_task(
    task: Task, *, go_on: Callable[[], bool] = lambda: True, on_block: Callable[[int], None] = lambda _: None
) -> list[BlockPair]:
    """Draw and count the blocks of a task, in order, for as long as ``go_on`` says so (but one at least).

    Small blocks are drawn one by one and counted together. That changes nothing: counts add up, and outputs to learn from
    are taken from every block alike.
    """
    done: list[BlockPair] = []
    small: list[tuple[int, Outputs, Outputs]] = []
    drawing = 0.0
    for block, size in enumerate(task.sizes, start=task.first):
        if (done or small) and not go_on():
            break
        begin = time.perf_counter()
        drawn = [
            task.sampler.draw(data, size, seed_child(task.entropy, *task.key, block, side))
            for side, data in enumerate((task.data, task.neighbour))
        ]
        drawing += time.perf_counter() - begin
        small.append((size, drawn[0], drawn[1]))
        if size >= SMALL_BLOCK:
            done.append(_count(task, small, drawing))
            small, drawing = [], 0.0
        on_block(2 * size)
    if small:
        done.append(_count(task, small, drawing))
    return done


def _count(task: Task, blocks: Sequence[tuple[int, Outputs, Outputs]], drawing: float) -> BlockPair:
    """Count consecutive blocks in every view."""
    begin = time.perf_counter()
    sizes = [size for size, _, _ in blocks]
    counts: list[list[Counts]] = []
    learn: list[Encoded] = []
    repeats: list[tuple[int, Any, int, str]] = []
    for side in (0, 1):
        batch = encode(_joined([(of_d, of_neighbour)[side] for _, of_d, of_neighbour in blocks]))
        learn.append(_heads(batch, sizes, task.keep))
        prepared = Block(batch)
        counts.append([view.count(prepared) for view in task.views])
        if sizes[0] >= SMALL_BLOCK:  # all outputs of smaller blocks are learned from anyway
            for view in task.views:
                if isinstance(view, RecordView):
                    repeats.extend((side, key, count, text) for key, count, text in view.unknown(prepared))
    paired = tuple(np.stack([a, b]) for a, b in zip(*counts, strict=True))
    seconds = (drawing, drawing + time.perf_counter() - begin)
    return BlockPair(sum(sizes), paired, (learn[0], learn[1]), tuple(repeats), seconds)


def _joined(parts: Sequence[Outputs]) -> Outputs:
    if len(parts) == 1:
        return parts[0]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({(part.dtype, part.shape[1:]) for part in arrays}) == 1:
        return np.concatenate(arrays)
    return [output for part in parts for output in part]


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
    return BlockPair(sum(block.size for block in blocks), counts, (learn[0], learn[1]), repeats, seconds)


def block_sizes(total: int) -> list[int]:
    """Cut a round of ``total`` outputs per side into blocks of at most a sixteenth, and of at most ``LARGEST_BLOCK``.

    >>> block_sizes(50), len(block_sizes(10_000_000))
    ([4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2], 100)
    """
    largest = min(-(-total // FEWEST_BLOCKS), LARGEST_BLOCK)
    whole, rest = divmod(total, largest)
    return [largest] * whole + ([rest] if rest else [])


@dataclass(frozen=True, slots=True)
class Probe:
    """What a few draws, on which nothing is ever bet, told about the mechanism."""

    reproducible: bool
    samples: int


def probe(sampler: Sampler, data: Any, neighbour: Any, entropy: int) -> Probe:
    """Look for shared random state before any bet, and whether the mechanism is reproducible.

    The same seed is drawn twice, another seed once, and the neighbour once. Equal sequences from different seeds are
    refused where chance could not have made them (less than one in a thousand million, by the collisions seen).
    """
    begin = time.perf_counter()
    size = 8
    drawn = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 0, 0)))
    if time.perf_counter() - begin < 0.01:
        size = 64
        drawn = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 0, 0)))
    again = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 0, 0)))
    other_seed = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 1, 0)))
    other_side = encode(sampler.draw(neighbour, size, seed_child(entropy, 0, 0, 0, 1)))
    _, frequency = np.unique(record_keys(stack([drawn, other_seed])), return_counts=True)
    collision = float(((frequency / frequency.sum()) ** 2).sum())
    if all(label.startswith("raises ") for batch in (drawn, other_side) for label in batch.labels.values()):
        raise MechanismError(
            "The mechanism raised on every call, on both data sets, so there is nothing to audit:\n\n"
            + _traceback(sampler.mechanism, data, seed_child(entropy, 0, 0, 2, 0))
        )
    telling = size * np.log(collision) < np.log(1e-9)
    if telling and _same(drawn, other_seed):
        raise MechanismError(
            "The mechanism gave the same sequence of outputs for two different seeds: it draws from a generator of its own "
            "that starts afresh in every call (a fixed seed?). Draw from the `rng` handed in, or make the generator once."
        )
    if telling and _same(drawn, other_side):
        raise MechanismError(
            "The mechanism gave the same sequence of outputs on both data sets: the two sides share their random numbers, "
            "so they are not independent. Draw from the `rng` that is handed in."
        )
    return Probe(_same(drawn, again), 4 * size)


def _traceback(mechanism: Mechanism, data: Any, seed: np.random.SeedSequence) -> str:
    """Call once more, this time without turning the exception into an output."""
    rng = np.random.Generator(np.random.PCG64(seed))
    try:
        match mechanism:
            case Plain():
                mechanism.function(data)
            case PerRelease():
                mechanism.function(data, rng)
            case Fresh():
                mechanism.release(data, rng)
            case _:
                mechanism.sample(data, 1, rng)
    except Exception:
        return traceback.format_exc()
    return "(and did not raise when called once more)"


def _same(a: Encoded, b: Encoded) -> bool:
    return bool(
        a.values.shape == b.values.shape
        and (a.codes == b.codes).all()
        and np.array_equal(a.values, b.values, equal_nan=True)
    )


@contextmanager
def _time_limit(seconds: float | None, size: int) -> Iterator[None]:
    """Interrupt a call after ``seconds`` per release, through the interval timer of the main thread."""
    if seconds is None:
        yield
        return
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise MechanismError("timeout= needs the main thread of a Unix process; run the audit there, or leave it out.")

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
