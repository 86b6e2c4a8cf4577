"""Running one round: its blocks in order, here or by a crew of workers, and as much of it as time allows.

Wealth may be read after any contiguous prefix of complete block pairs, because the prefix was fixed before it was drawn.
Blocks completed beyond a gap are thrown away: which of them complete first can depend on their outputs.
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import pairwise

from dpaudit.engine.crew import Crew, GaveUp, LostWorker, cannot_be_sent
from dpaudit.engine.sampling import (
    FEWEST_BLOCKS,
    SIGNED,
    BlockPair,
    Ended,
    OutOfTime,
    Task,
    merge,
    run_task,
)

LONGEST_TASK = 1.0  # seconds of work, where its blocks allow: what is lost with a worker, or at a stop
MOST_LOSSES = 3  # of the same blocks
TASKS_EACH = 8  # tasks of a round per worker, so that none is left waiting for a slow one at the end
IN_FLIGHT = 2  # tasks per worker at once: enough to keep it busy, few enough to keep memory flat
AHEAD = 8  # tasks per worker that may be finished before an earlier one is
MOST_BLOCKS = 64  # held before they are added up
COUNTED_IN_TIME = 2048  # outputs of a side that are held until they are counted, where there is a deadline
INTRODUCTION = 1.0  # seconds that a worker's first outputs, on which nothing is bet, may take
LOOK_EVERY = 5.0  # seconds between two looks at whether anybody is left to wait for
OVERDUE = 5.0  # times the longest task before it
HANGING = 1.0  # seconds; what takes less is not told
NOBODY = 60.0  # seconds without a single worker after which a cluster is given up


def run_round(
    task: Task,
    sizes: Sequence[int],
    *,
    deadline: float | None,
    crew: Crew,
    seconds_each: float,
    on_block: Callable[[int], None],
) -> Ended:
    """Draw the blocks of a round, as many outputs of either side.

    ``seconds_each`` is what one output took so far; it only decides who draws, never what is drawn.
    """
    # A mechanism with random state of its own is left to the workers: they may have started from the state it has here.
    if crew.executor is None or (crew.reproducible and 2 * sum(sizes) * seconds_each < 2 * crew.worth_sending):
        return _run_here(task, sizes, deadline, on_block)
    affordable = [size for size in SIGNED if 2 * size * seconds_each <= INTRODUCTION]
    task = replace(task, introduction=affordable[-1]) if affordable else replace(task, audit="")
    if task.audit and not crew.tells(task, deadline):
        return _run_here(task, sizes, deadline, on_block)
    try:
        return _There(task, sizes, deadline, crew, seconds_each, on_block).run()
    except LostWorker as loss:  # whoever could tell what was lost is gone
        return Ended((), loss)


class _Prefix:
    """The blocks drawn so far, in their order, added up as they come: memory does not grow with the round."""

    def __init__(self) -> None:
        self._blocks: list[BlockPair] = []

    def extend(self, blocks: Sequence[BlockPair]) -> None:
        self._blocks.extend(blocks)
        if len(self._blocks) > MOST_BLOCKS:
            self._blocks = [merge(self._blocks)]

    def ended(self, cause: BaseException | None) -> Ended:
        return Ended(tuple(self._blocks), cause)


def _run_here(task: Task, sizes: Sequence[int], deadline: float | None, on_block: Callable[[int], None]) -> Ended:
    done = _Prefix()
    # Groups bound the memory: small blocks of one group are held until they are counted together.
    together = FEWEST_BLOCKS if deadline is None else min(max(1, COUNTED_IN_TIME // sizes[0]), FEWEST_BLOCKS)
    for start in range(0, len(sizes), together):
        piece = replace(task, first=start, sizes=tuple(sizes[start : start + together]))
        ended = run_task(piece, deadline=deadline, on_block=on_block)
        done.extend(ended.blocks)
        if ended.cause is not None:
            return done.ended(ended.cause)
    return done.ended(None)


def cut(sizes: Sequence[int], workers: int, seconds: float, worth: float) -> list[tuple[int, tuple[int, ...]]]:
    """Cut the blocks of a round into tasks, each named by its first block: as many for each worker, and as equal as can be.

    ``seconds`` is what the round is expected to take in all, ``worth`` what a task should take at least.

    >>> [len(blocks) for _, blocks in cut([100] * 16, 3, 0.03, 0.005)]
    [3, 3, 3, 3, 2, 2]
    >>> len(cut([100] * 1000, 2, 10.0, 0.005)), len(cut([100] * 1000, 2, 100.0, 0.005))
    (16, 100)
    """
    tasks = max(min(seconds / worth, TASKS_EACH * workers), seconds / LONGEST_TASK, 1.0)
    tasks = min(-(-int(tasks) // workers) * workers, len(sizes))
    each, longer = divmod(len(sizes), tasks)
    starts = [number * each + min(number, longer) for number in range(tasks + 1)]
    return [(first, tuple(sizes[first:last])) for first, last in pairwise(starts)]


class _There:
    """One round that a crew draws."""

    def __init__(
        self,
        task: Task,
        sizes: Sequence[int],
        deadline: float | None,
        crew: Crew,
        seconds_each: float,
        on_block: Callable[[int], None],
    ) -> None:
        self._deadline = deadline
        self._crew = crew
        self._on_block = on_block
        self._workers = max(crew.size, 1)
        seconds = 2 * sum(sizes) * seconds_each
        parts = cut(sizes, self._workers, seconds, crew.worth_sending)
        self._pieces = [replace(task, first=first, sizes=part) for first, part in parts]
        self._usual = seconds / len(parts)  # that a task is expected to take
        self._flying: dict[Future[Ended], int] = {}
        self._sent: dict[int, float] = {}
        self._finished: queue.SimpleQueue[Future[Ended]] = queue.SimpleQueue()
        self._landed: dict[int, Ended] = {}  # beyond a gap, until it closes
        self._losses: Counter[int] = Counter()
        self._drew_again = False
        self._end = len(self._pieces)  # nothing from here on can be settled any more

    def run(self) -> Ended:
        self._crew.start()
        name = self._pieces[0].audit
        done = _Prefix()
        cause: BaseException | None = None
        sent = settled = 0
        try:
            while cause is None and settled < self._end:
                last = min(self._end, settled + AHEAD * self._workers)
                while sent < last and len(self._flying) < IN_FLIGHT * self._workers:
                    self._send(sent)
                    sent += 1
                self._land()
                while cause is None and settled in self._landed:
                    ended = self._landed.pop(settled)
                    self._crew.meet(name, *ended.worker)
                    done.extend(ended.blocks)
                    self._on_block(2 * sum(block.size for block in ended.blocks))
                    cause = ended.cause
                    settled += 1
        except (KeyboardInterrupt, OutOfTime, LostWorker) as stop:
            cause = stop
        finally:
            for future in self._flying:
                future.cancel()
        # A cluster runs what it lost again without asking, and processes may turn out to differ only after a loss. Where a
        # second draw was a second chance, nothing of the round counts.
        if not self._crew.replayable and (self._drew_again or self._crew.drew_again()):
            return Ended(
                (), LostWorker("blocks of this round went with it, and drawing them again would be a second chance")
            )
        return done.ended(cause)

    def _send(self, number: int) -> None:
        seconds = None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)
        try:
            future = self._crew.submit(self._pieces[number], seconds)
        except Exception as error:
            if isinstance(error, LostWorker) or "pickle" not in str(error):
                raise
            raise cannot_be_sent(error) from error
        self._flying[future] = number
        self._sent[number] = time.monotonic()
        future.add_done_callback(self._finished.put)

    def _land(self) -> None:
        """Wait for the next task, whichever it is."""
        future = self._wait()
        number = self._flying.pop(future)
        self._crew.longest = max(self._crew.longest, time.monotonic() - self._sent[number])
        try:
            ended = self._crew.received(future)
        except LostWorker as loss:
            self._losses[number] += 1
            if not self._crew.replayable:
                loss = LostWorker(f"{loss}; its blocks were not drawn again, because that would be a second chance")
            elif isinstance(loss, GaveUp):
                pass
            elif self._losses[number] < MOST_LOSSES:
                self._drew_again = True
                self._send(number)
                return
            else:
                loss = LostWorker(f"{loss}, as did those that took over its blocks: {MOST_LOSSES} in all")
            ended = Ended((), loss)
        self._landed[number] = ended
        if ended.cause is not None:
            self._end = min(self._end, number + 1)

    def _overdue(self, now: float) -> str:
        """What to say of a task that never ended; nothing where all of them were on their way."""
        waited = now - min(self._sent[number] for number in self._flying.values())
        usual = max(self._usual, self._crew.longest)
        if waited < max(OVERDUE * usual, HANGING):
            return ""
        return (
            f"A worker had not answered after {waited:.1f} s when the time was up, where others took {usual:.2g} s at most. If a "
            "call hangs, that tells something too: with timeout= it ends the audit, or with timeout_is_output=True is an output."
        )

    def _wait(self) -> Future[Ended]:
        alone_since: float | None = None
        while True:
            now = time.monotonic()
            if self._deadline is not None and now >= self._deadline:
                raise OutOfTime(self._overdue(now))
            left = LOOK_EVERY if self._deadline is None else min(LOOK_EVERY, self._deadline - now)
            try:
                return self._finished.get(timeout=left)
            except queue.Empty:
                if self._crew.size > 0:
                    alone_since = None
                elif alone_since is None:
                    alone_since = now
                elif now - alone_since > NOBODY:
                    raise LostWorker(f"no worker has been there for {NOBODY:.0f} seconds") from None
