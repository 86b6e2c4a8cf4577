"""Running one round: its blocks in order, here or on an executor, and as much of it as time allows.

Wealth may be read after any contiguous prefix of complete block pairs, because the prefix was fixed before it was drawn.
Blocks completed beyond a gap are thrown away: which of them complete first can depend on their outputs.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import replace

from dpaudit.engine.sampling import (
    FEWEST_BLOCKS,
    BlockPair,
    Ended,
    OutOfTime,
    Task,
    block_sizes,
    run_sent_task,
    run_task,
)
from dpaudit.errors import InvalidArgument, MechanismError

WORTH_SENDING = 0.02  # seconds of work that a task should hold at least
TASKS_PER_WORKER = 2  # in flight at once: enough to keep a worker busy, few enough to keep memory flat


class LostWorker(Exception):
    """A worker died, or its answer never came."""


def run_round(
    task: Task,
    size: int,
    *,
    deadline: float | None,
    executor: Executor | None,
    seconds_each: float,
    on_block: Callable[[int], None],
) -> Ended:
    """Draw ``size`` outputs of each side, block by block.

    ``seconds_each`` is what one output took so far; it only decides who draws, never what is drawn.
    """
    sizes = block_sizes(size)
    if executor is None or 2 * size * seconds_each < 2 * WORTH_SENDING:
        return _run_here(task, sizes, deadline, on_block)
    return _run_there(task, sizes, deadline, executor, seconds_each, on_block)


def _run_here(task: Task, sizes: Sequence[int], deadline: float | None, on_block: Callable[[int], None]) -> Ended:
    done: list[BlockPair] = []
    # Groups bound the memory: small blocks of one group are held until they are counted together.
    for start in range(0, len(sizes), FEWEST_BLOCKS):
        piece = replace(task, first=start, sizes=tuple(sizes[start : start + FEWEST_BLOCKS]))
        ended = run_task(piece, deadline=deadline, on_block=on_block)
        done.extend(ended.blocks)
        if ended.cause is not None:
            return Ended(tuple(done), ended.cause)
    return Ended(tuple(done))


def _run_there(
    task: Task,
    sizes: Sequence[int],
    deadline: float | None,
    executor: Executor,
    seconds_each: float,
    on_block: Callable[[int], None],
) -> Ended:
    workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    fewest = max(1, round(WORTH_SENDING / max(2 * sizes[0] * seconds_each, 1e-9)))
    per_task = max(1, min(fewest, -(-len(sizes) // workers)))
    waiting = deque(
        replace(task, first=start, sizes=tuple(sizes[start : start + per_task]))
        for start in range(0, len(sizes), per_task)
    )
    flying: deque[tuple[Task, Future[Ended]]] = deque()
    signatures: set[int] = set()
    workers_seen = _WORKERS.setdefault(task.audit, {})
    done: list[BlockPair] = []
    cause: BaseException | None = None
    try:
        while cause is None and (waiting or flying):
            while waiting and len(flying) < TASKS_PER_WORKER * workers:
                piece = waiting.popleft()
                flying.append((piece, executor.submit(run_sent_task, piece)))
            piece, future = flying.popleft()
            ended = future.result(timeout=None if deadline is None else max(deadline - time.monotonic(), 0.0))
            done.extend(ended.blocks)
            cause = ended.cause
            _refuse_replays(ended, signatures, workers_seen)
            on_block(2 * sum(block.size for block in ended.blocks))
    except KeyboardInterrupt as interrupt:
        cause = interrupt
    except TimeoutError:
        cause = OutOfTime()
    except (BrokenExecutor, CancelledError) as error:
        cause = LostWorker(f"{type(error).__name__}: {error}")
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        if "pickle" not in str(error):
            raise
        raise InvalidArgument(
            f"The mechanism or its data cannot be sent to a worker process ({error}). Name it 'package.module:factory', define "
            "it at the top level of a module, or use an executor that pickles by value, such as loky's."
        ) from error
    except Exception as error:
        if type(error).__name__ not in ("KilledWorker", "CommClosedError"):  # Dask's, without importing it
            raise
        cause = LostWorker(f"{type(error).__name__}: {error}")
    finally:
        for _, future in flying:
            future.cancel()
    return Ended(tuple(done), cause)


_WORKERS: dict[str, dict[int, int]] = {}  # per audit: signature of a worker's first outputs -> its process


def _refuse_replays(ended: Ended, seen: set[int], workers: dict[int, int]) -> None:
    process, first = ended.worker
    shared = first is not None and workers.setdefault(first, process) != process
    for block in ended.blocks:
        shared |= block.signature is not None and block.signature in seen
        if block.signature is not None:
            seen.add(block.signature)
    if shared:
        raise MechanismError(
            "Workers gave the same sequence of outputs: they share random state, such as a generator made when a module is "
            "imported. Draw from the `rng` that is handed in."
        )
