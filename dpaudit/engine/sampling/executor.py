"""Run an audit's tasks on an executor, and recover when a worker dies.

A block that was lost with its worker is drawn again, from its own seed child, only if the mechanism was shown to be
reproducible: then every process draws the same outputs. Otherwise the second draw would replace the first, and whether it
does can depend on the first (the evidence against a mechanism that dies on one answer would be lost).
"""

from __future__ import annotations

import importlib
import os
import pickle
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, Self

from dpaudit.engine.sampling.blocks import COMMON_SEED, Task, TaskResult, run_sent_task, signature_of_seed
from dpaudit.engine.sampling.processes import Unpicklable, Workers
from dpaudit.errors import DPAuditError, InvalidArgument, MechanismError

WORTH_SENDING = 0.005  # shortest task, in seconds, that is worth sending to a process of this machine
WORTH_SENDING_FAR = (
    0.2  # the same for a cluster: with Dask a task costs 14 ms of processor time, half of it in the worker
)
NO_SUBSTITUTE = "its pool broke, and the mechanism cannot be sent to new processes"
DASK_LOSSES = (
    "KilledWorker",
    "CommClosedError",
    "FutureCancelledError",
    "FuturesCancelledError",
)  # exceptions of Dask, by name: it is not imported


class LostWorker(Exception):
    """A worker died or did not answer."""


class GaveUp(LostWorker):
    """An executor that repeats lost tasks by itself failed to complete one."""


class CannotBeSent(InvalidArgument):
    """The mechanism, its data or its outputs cannot be pickled."""


class TaskRunner:
    """Run tasks of one audit. ``reproducible`` is set once the probe has shown the mechanism to be so in this process."""

    def __init__(self, executor: Executor | None) -> None:
        self.executor = self._given = executor
        self.reproducible = False
        self.longest = 0.0  # the longest time in seconds from sending a task to its result
        self._served = False  # the executor has returned a result: if it fails later, what was settled remains valid
        self._substitute: Workers | None = None
        self._lost_before: frozenset[str] | None = None
        self._firsts: dict[int, int] = {}  # signature of a process's first outputs -> process id
        self._replays: dict[str, set[int]] = {}  # per pair: signatures of what processes drew from the common seed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._substitute is not None:
            self._substitute.shutdown(cancel_futures=True)
            self.executor, self._substitute = self._given, None

    @property
    def size(self) -> int:
        """Number of tasks that the executor runs at once; zero if a cluster has lost all of its workers."""
        cluster = _cluster(self.executor)
        if cluster is not None:
            return int(sum(_query(cluster.nthreads).values()))
        for name in ("count", "_max_workers"):
            workers = getattr(self.executor, name, None)
            if isinstance(workers, int) and workers > 0:
                return workers
        return os.cpu_count() or 1

    @property
    def worth_sending(self) -> float:
        """Shortest task, in seconds, that is worth sending."""
        return WORTH_SENDING if _cluster(self.executor) is None else WORTH_SENDING_FAR

    def submit(self, task: Task, seconds: float | None) -> Future[TaskResult]:
        """Submit a task to the executor, or to new processes if its pool is broken."""
        try:
            return self._submit(task, seconds)
        except BrokenProcessPool:
            # Nothing of this task was drawn yet, so nothing is drawn twice. Not in this process, which might die too.
            broken = self.executor
            self.executor = self._substitute = Workers(
                self.size,
                initializer=getattr(broken, "_initializer", None),
                initargs=getattr(broken, "_initargs", ()),
            )
            return self._submit(task, seconds)
        except (RuntimeError, OSError) as error:
            if self._served and not about_pickling(error):
                raise LostWorker(f"the executor accepts no more tasks: {_first_sentence(error)}") from error
            if "shutdown" not in str(error):
                raise
            raise InvalidArgument(
                f"executor={self.executor!r} accepts no more tasks ({error}); pass a new executor."
            ) from None

    def _submit(self, task: Task, seconds: float | None) -> Future[TaskResult]:
        assert self.executor is not None
        # These pools lose a worker when unpickling a task fails, so send bytes and unpickle inside the task.
        if _cluster(self.executor) is not None:
            return self.executor.submit(run_packed, importlib.import_module("cloudpickle").dumps(task), seconds)
        if self._substitute is not None:
            return self._substitute.submit(run_packed, _packed_by_value(task), seconds)
        if isinstance(self.executor, ProcessPoolExecutor):
            return self.executor.submit(run_packed, pickle.dumps(task), seconds)
        return self.executor.submit(run_sent_task, task, seconds)

    def received(self, future: Future[TaskResult]) -> TaskResult:
        """Return the result of a finished future; raise LostWorker for every way of losing a worker."""
        try:
            ended = received(future)
            self._served = True
            return ended
        except CannotBeSent as error:
            if self._substitute is None:
                raise
            raise LostWorker(NO_SUBSTITUTE) from error  # it could be sent before, and what was settled remains valid

    def start(self) -> None:
        """Note which workers a cluster lost before this audit."""
        if self._lost_before is None:
            self._lost_before = self._losses()

    def drew_again(self) -> bool:
        """Return whether a cluster lost a worker with tasks of this audit; it repeats such tasks without asking."""
        return self._losses() != self._lost_before

    def _losses(self) -> frozenset[str]:
        cluster = _cluster(self.executor)
        if cluster is None:
            return frozenset()
        return frozenset(
            str(event.get("stimulus_id"))
            for _, event in _query(cluster.get_events, "all")
            if isinstance(event, dict) and event.get("action") == "remove-worker" and _had_our_tasks(event)
        )

    @property
    def alike(self) -> bool:
        """True if all processes seen so far drew the same outputs from the common seed."""
        return all(len(drawn) <= 1 for drawn in self._replays.values())

    @property
    def replayable(self) -> bool:
        """True if lost blocks may be drawn again: every process draws the same outputs from a seed."""
        return self.reproducible and self.alike

    def can_compare_workers(self, task: Task, deadline: float | None) -> bool:
        """Return whether outputs on this pair vary enough to detect processes that share random state."""
        if task.audit not in self._replays:
            # Draw here too, so that a difference between processes shows before a worker is lost.
            self._note_common_draw(task.audit, signature_of_seed(task, deadline, *COMMON_SEED))
        return bool(self._replays[task.audit])

    def _note_common_draw(self, audit: str, replay: int | None) -> None:
        """Note the signature of what a process drew from the common seed; None if it could be equal by chance."""
        drawn = self._replays.setdefault(audit, set())
        if replay is not None:
            drawn.add(replay)

    def check_worker(self, audit: str, process: int, first: int | None, replay: int | None = None) -> None:
        """Raise MechanismError if two processes drew the same outputs from different seeds: they share random state."""
        if replay is not None:
            self._note_common_draw(audit, replay)
        if first is not None and self._firsts.setdefault(first, process) != process:
            raise MechanismError(
                "Workers gave the same sequence of outputs: they share random state, such as a generator made when a module is "
                "imported. Draw from the `rng` that is handed in."
            )


def run_packed(packed: bytes, seconds: float | None) -> TaskResult:
    """Unpickle a task and run it in a worker."""
    try:
        task = pickle.loads(packed)
    except (Exception, SystemExit) as error:  # a pool would raise SystemExit in the caller and end the program
        raise Unpicklable(f"{type(error).__name__}: {error}") from None
    return run_sent_task(task, seconds)


def received(future: Future[TaskResult]) -> TaskResult:
    """Return the result of a finished future; raise LostWorker for every way of losing a worker."""
    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        raise LostWorker(_first_sentence(error) or type(error).__name__) from error
    except Exception as error:
        if type(error).__name__ in DASK_LOSSES:
            raise GaveUp(_first_sentence(error)) from error
        if isinstance(error, DPAuditError) or not about_pickling(error):
            raise
        raise cannot_be_sent(error) from error


def _first_sentence(error: BaseException) -> str:
    """Return the first sentence of a message; guesses at the reason follow it."""
    return str(error).partition(". ")[0].rstrip(".")


def _packed_by_value(task: Task) -> bytes:
    """Pickle for substitute processes. By value if possible, because the broken pool may have done so, as loky does."""
    try:
        by_value: Any = importlib.import_module("cloudpickle")
    except ImportError:
        by_value = pickle
    try:
        return bytes(by_value.dumps(task))
    except Exception as error:
        raise LostWorker(NO_SUBSTITUTE) from error


def cannot_be_sent(error: BaseException) -> CannotBeSent:
    """Return the error for a mechanism or data that cannot be pickled."""
    return CannotBeSent(
        f"The mechanism or its data cannot be sent to a worker process ({error}). A lambda, a function inside a function or one "
        "typed into a notebook exists in this process alone. Put it at the top level of a module that workers can import, or "
        "name a factory 'package.module:factory'; or use an executor that pickles by value, such as loky's or Dask's."
    )


def about_pickling(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is that something cannot be pickled or unpickled."""
    while error is not None:
        if isinstance(error, Unpicklable | pickle.PickleError):
            return True
        # Python 3.13 says "Can't get local object" where others say "Can't pickle local object".
        if any(word in str(error).lower() for word in ("pickle", "deserializ", "get local object")):
            return True
        error = error.__cause__
    return False


def _cluster(executor: Any) -> Any:
    """Return the client of Dask's executor, recognised by its methods so that Dask need not be imported."""
    client = getattr(executor, "_client", None)
    return client if hasattr(client, "get_events") and hasattr(client, "nthreads") else None


def _query(question: Callable[..., Any], *arguments: Any) -> Any:
    """Ask the cluster; raise GaveUp if it does not answer."""
    try:
        return question(*arguments)
    except Exception as error:
        raise GaveUp(f"the cluster does not answer: {type(error).__name__}: {error}") from error


def _had_our_tasks(event: dict[str, Any]) -> bool:
    keys = [*(event.get("processing-tasks") or ()), *(event.get("lost-computed-tasks") or ())]
    return any(str(key).startswith(run_packed.__name__) for key in keys)
