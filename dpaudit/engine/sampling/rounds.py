"""Draw the blocks of one round in order, in this process or on workers, and as many as time allows.

Wealth may be read after any contiguous prefix of complete block pairs, because the prefix was fixed before it was drawn.
Blocks completed beyond a gap are thrown away: which of them complete first can depend on their outputs.
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import pairwise

from dpaudit.engine.sampling.blocks import (
    BLOCKS,
    SIGNATURE_SIZES,
    BlockPair,
    OutOfTime,
    Task,
    TaskResult,
    merge,
    run_task,
)
from dpaudit.engine.sampling.executor import GaveUp, LostWorker, TaskRunner, about_pickling, cannot_be_sent


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """Division of a round into tasks, and the time that workers are given."""

    longest_task: float = 1.0
    """Longest task in seconds, if its blocks allow: the work that is lost with a worker or at a stop."""
    most_losses: int = 3
    """Times that the same blocks may be lost with their worker before the round ends."""
    per_worker: int = 8
    """Tasks of a round per worker, so that no worker waits long for a slow one at the end of the round."""
    in_flight: int = 2
    """Tasks per worker that are sent at once: enough to keep it busy, few enough to bound the memory."""
    ahead: int = 8
    """Tasks per worker that may finish before an earlier one has."""
    most_blocks: int = 64
    """Blocks that are held before they are added up."""
    outputs_held: int = 2048
    """Outputs of a side that are held before they are counted, in a round with a deadline."""
    signature_seconds: float = 1.0
    """Longest time that a worker's signatures, on which nothing is bet, may take."""
    check_every: float = 5.0
    """Seconds between two checks that there are workers left."""
    overdue: float = 5.0
    """A task is overdue after this multiple of the longest task so far."""
    shortest_overdue: float = 1.0
    """A task is never reported as overdue before this many seconds."""
    without_workers: float = 45.0
    """Seconds without a single worker after which a cluster is given up; with two checks before, less than a minute."""


LIMITS = TaskLimits()


def run_round(
    task: Task,
    sizes: Sequence[int],
    *,
    deadline: float | None,
    runner: TaskRunner,
    seconds_each: float,
    on_block: Callable[[int], None],
) -> TaskResult:
    """Draw the blocks of a round.

    Parameters
    ----------
    task : Task
        The pair, views and seeds; its blocks are set here.
    sizes : sequence of int
        The number of outputs of each side in each block.
    deadline : float, optional
        Monotonic time after which no block is started.
    runner : TaskRunner
        The workers, if any.
    seconds_each : float
        Time that one output took so far. It decides which process draws a block, never what is drawn.
    on_block : callable
        Called with the number of outputs of every finished block.
    """
    # A mechanism with random state of its own is drawn only by workers: they may have started from the state of this process.
    if runner.executor is None or (runner.reproducible and 2 * sum(sizes) * seconds_each < 2 * runner.worth_sending):
        return _run_locally(task, sizes, deadline, on_block)
    affordable = [size for size in SIGNATURE_SIZES if 2 * size * seconds_each <= LIMITS.signature_seconds]
    task = replace(task, signature_size=affordable[-1]) if affordable else replace(task, audit="")
    if task.audit and not runner.can_compare_workers(task, deadline):
        return _run_locally(task, sizes, deadline, on_block)
    try:
        return _RemoteRound(task, sizes, deadline, runner, seconds_each, on_block).run()
    except LostWorker as loss:  # the cluster that knows what was lost is gone
        return TaskResult((), loss)


class _Prefix:
    """The blocks drawn so far, in order, added up as they come so that memory does not grow with the round."""

    def __init__(self) -> None:
        self._blocks: list[BlockPair] = []

    def extend(self, blocks: Sequence[BlockPair]) -> None:
        self._blocks.extend(blocks)
        if len(self._blocks) > LIMITS.most_blocks:
            self._blocks = [merge(self._blocks)]

    def ended(self, cause: BaseException | None) -> TaskResult:
        return TaskResult(tuple(self._blocks), cause)


def _run_locally(
    task: Task, sizes: Sequence[int], deadline: float | None, on_block: Callable[[int], None]
) -> TaskResult:
    done = _Prefix()
    # Groups bound the memory, because the small blocks of a group are held until they are counted together.
    together = BLOCKS.per_round if deadline is None else min(max(1, LIMITS.outputs_held // sizes[0]), BLOCKS.per_round)
    for start in range(0, len(sizes), together):
        piece = replace(task, first=start, sizes=tuple(sizes[start : start + together]))
        ended = run_task(piece, deadline=deadline, on_block=on_block)
        done.extend(ended.blocks)
        if ended.cause is not None:
            return done.ended(ended.cause)
    return done.ended(None)


def cut(sizes: Sequence[int], workers: int, seconds: float, worth: float) -> list[tuple[int, tuple[int, ...]]]:
    """Divide the blocks of a round into tasks of about equal size, as many for each worker.

    Parameters
    ----------
    sizes : sequence of int
        The sizes of the blocks.
    workers : int
        The number of workers.
    seconds : float
        Expected time of the whole round.
    worth : float
        Shortest time of a task that is worth sending.

    Returns
    -------
    list of (int, tuple of int)
        For each task, the number of its first block and the sizes of its blocks.

    Examples
    --------
    >>> [len(blocks) for _, blocks in cut([100] * 16, 3, 0.03, 0.005)]
    [3, 3, 3, 3, 2, 2]
    >>> len(cut([100] * 1000, 2, 10.0, 0.005)), len(cut([100] * 1000, 2, 100.0, 0.005))
    (16, 100)
    """
    tasks = max(min(seconds / worth, LIMITS.per_worker * workers), seconds / LIMITS.longest_task, 1.0)
    tasks = min(-(-int(tasks) // workers) * workers, len(sizes))
    each, longer = divmod(len(sizes), tasks)
    starts = [number * each + min(number, longer) for number in range(tasks + 1)]
    return [(first, tuple(sizes[first:last])) for first, last in pairwise(starts)]


class _RemoteRound:
    """One round that workers draw."""

    def __init__(
        self,
        task: Task,
        sizes: Sequence[int],
        deadline: float | None,
        runner: TaskRunner,
        seconds_each: float,
        on_block: Callable[[int], None],
    ) -> None:
        self._deadline = deadline
        self._runner = runner
        self._on_block = on_block
        self._workers = max(runner.size, 1)
        seconds = 2 * sum(sizes) * seconds_each
        parts = cut(sizes, self._workers, seconds, runner.worth_sending)
        self._pieces = [replace(task, first=first, sizes=part) for first, part in parts]
        self._usual = seconds / len(parts)  # expected seconds of a task
        self._pending: dict[Future[TaskResult], int] = {}
        self._sent: dict[int, float] = {}
        self._finished: queue.SimpleQueue[Future[TaskResult]] = queue.SimpleQueue()
        self._early: dict[int, TaskResult] = {}  # results of tasks beyond an unfinished one
        self._losses: Counter[int] = Counter()
        self._drew_again = False
        self._end = len(self._pieces)  # tasks from here on can no longer be settled

    def run(self) -> TaskResult:
        self._runner.start()
        name = self._pieces[0].audit
        done = _Prefix()
        cause: BaseException | None = None
        sent = settled = 0
        try:
            while cause is None and settled < self._end:
                last = min(self._end, settled + LIMITS.ahead * self._workers)
                while sent < last and len(self._pending) < LIMITS.in_flight * self._workers:
                    self._send(sent)
                    sent += 1
                self._receive_next()
                while cause is None and settled in self._early:
                    ended = self._early.pop(settled)
                    self._runner.check_worker(name, *ended.worker)
                    done.extend(ended.blocks)
                    self._on_block(2 * sum(block.size for block in ended.blocks))
                    cause = ended.cause
                    settled += 1
        except (KeyboardInterrupt, OutOfTime, LostWorker) as stop:
            cause = stop
        finally:
            for future in self._pending:
                future.cancel()
        # A cluster repeats lost tasks without asking, and processes may turn out to differ only after a loss. If a second draw
        # may have differed from the first, nothing of the round is settled.
        if not self._runner.replayable and (self._drew_again or self._runner.drew_again()):
            return TaskResult(
                (),
                LostWorker("blocks of this round were lost with it, and drawing them again could give other outputs"),
            )
        return done.ended(cause)

    def _send(self, number: int) -> None:
        seconds = None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)
        try:
            future = self._runner.submit(self._pieces[number], seconds)
        except Exception as error:
            if isinstance(error, LostWorker) or not about_pickling(error):
                raise
            raise cannot_be_sent(error) from error
        self._pending[future] = number
        self._sent[number] = time.monotonic()
        future.add_done_callback(self._finished.put)

    def _receive_next(self) -> None:
        """Wait for the next task that finishes, and note its result."""
        future = self._wait()
        number = self._pending.pop(future)
        self._runner.longest = max(self._runner.longest, time.monotonic() - self._sent[number])
        try:
            ended = self._runner.received(future)
        except LostWorker as loss:
            self._losses[number] += 1
            if not self._runner.replayable:
                loss = LostWorker(f"{loss}; its blocks were not drawn again, because that could give other outputs")
            elif isinstance(loss, GaveUp):
                pass
            elif self._losses[number] < LIMITS.most_losses:
                self._drew_again = True
                self._send(number)
                return
            else:
                loss = LostWorker(
                    f"{loss}, as did the workers that drew its blocks again: {LIMITS.most_losses} in total"
                )
            ended = TaskResult((), loss)
        self._early[number] = ended
        if ended.cause is not None:
            self._end = min(self._end, number + 1)

    def _overdue(self, now: float) -> str:
        """Return a message about a task that seems to hang; empty if there is none."""
        waited = now - min(self._sent[number] for number in self._pending.values())
        usual = max(self._usual, self._runner.longest)
        if waited < max(LIMITS.overdue * usual, LIMITS.shortest_overdue):
            return ""
        return (
            f"A worker had not answered after {waited:.1f} s when the time was up; other tasks took at most {usual:.2g} s. "
            "Whether a call hangs may depend on the data: timeout= ends the audit there, timeout_is_output=True makes it an "
            "output."
        )

    def _wait(self) -> Future[TaskResult]:
        without_since: float | None = None
        while True:
            now = time.monotonic()
            if self._deadline is not None and now >= self._deadline:
                raise OutOfTime(self._overdue(now))
            left = LIMITS.check_every if self._deadline is None else min(LIMITS.check_every, self._deadline - now)
            try:
                return self._finished.get(timeout=left)
            except queue.Empty:
                if self._runner.size > 0:
                    without_since = None
                elif without_since is None:
                    without_since = now
                elif now - without_since > LIMITS.without_workers:
                    raise LostWorker(
                        f"the cluster has had no worker for {LIMITS.without_workers:.0f} seconds; start workers and run the "
                        "audit again"
                    ) from None
