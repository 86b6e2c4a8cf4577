"""Running one round: its blocks in order, here or on an executor, and as much of it as time allows.

Wealth may be read after any contiguous prefix of complete block pairs, because the prefix was fixed before it was drawn.
Blocks completed beyond a gap are thrown away: which of them complete first can depend on their outputs.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

from dpaudit.engine.sampling import FEWEST_BLOCKS, BatchRaised, BlockPair, Task, TimedOut, block_sizes, run_task

SMALL_ROUND = 20_000  # outputs below which a round is not worth sending away
TASKS_PER_WORKER = 2  # in flight at once: enough to keep a worker busy, few enough to keep memory flat


class LostWorker(Exception):
    """A worker died, or its answer never came."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A round as far as it went: the contiguous prefix of complete blocks, and what cut it short, if anything did."""

    blocks: tuple[BlockPair, ...]
    cause: BaseException | None = None
    out_of_time: bool = False


def run_round(
    task: Task, size: int, *, deadline: float | None, executor: Executor | None, on_block: Callable[[int], None]
) -> Ended:
    """Draw ``size`` outputs of each side, block by block."""
    sizes = block_sizes(size)
    if executor is None or 2 * size < SMALL_ROUND:
        return _run_here(task, sizes, deadline, on_block)
    return _run_there(task, sizes, deadline, executor, on_block)


def _run_here(task: Task, sizes: Sequence[int], deadline: float | None, on_block: Callable[[int], None]) -> Ended:
    cut = False

    def go_on() -> bool:
        nonlocal cut
        cut = deadline is not None and time.monotonic() >= deadline
        return not cut

    done: list[BlockPair] = []
    try:
        # Groups bound the memory: small blocks of one group are held until they are counted together.
        for start in range(0, len(sizes), FEWEST_BLOCKS):
            if cut:
                break
            piece = replace(task, first=start, sizes=tuple(sizes[start : start + FEWEST_BLOCKS]))
            done.extend(run_task(piece, go_on=go_on, on_block=on_block))
    except (KeyboardInterrupt, TimedOut, BatchRaised) as cause:
        return Ended(tuple(done), cause)
    return Ended(tuple(done), out_of_time=cut)


def _run_there(
    task: Task, sizes: Sequence[int], deadline: float | None, executor: Executor, on_block: Callable[[int], None]
) -> Ended:
    workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    per_task = max(1, len(sizes) // (4 * workers))
    pieces = [
        replace(task, first=start, sizes=tuple(sizes[start : start + per_task]))
        for start in range(0, len(sizes), per_task)
    ]
    waiting = deque(pieces)
    flying: deque[tuple[Task, Future[list[BlockPair]]]] = deque()
    done: list[BlockPair] = []
    try:
        while waiting or flying:
            while waiting and len(flying) < TASKS_PER_WORKER * workers:
                piece = waiting.popleft()
                flying.append((piece, executor.submit(run_task, piece)))
            piece, future = flying.popleft()
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            try:
                blocks = future.result(timeout=left)
            except TimeoutError:
                if not future.done():
                    _cancel(future, flying)
                    return Ended(tuple(done), out_of_time=True)
                raise
            done.extend(blocks)
            on_block(2 * sum(piece.sizes))
    except (KeyboardInterrupt, TimedOut, BatchRaised) as cause:
        _cancel(None, flying)
        return Ended(tuple(done), cause)
    except Exception as error:
        from concurrent.futures import BrokenExecutor, CancelledError

        _cancel(None, flying)
        if isinstance(error, BrokenExecutor | CancelledError) or type(error).__name__ == "KilledWorker":
            return Ended(tuple(done), LostWorker(f"{type(error).__name__}: {error}"))
        raise
    return Ended(tuple(done))


def _cancel(current: Future[list[BlockPair]] | None, flying: deque[tuple[Task, Future[list[BlockPair]]]]) -> None:
    for future in ([current] if current is not None else []) + [future for _, future in flying]:
        future.cancel()
