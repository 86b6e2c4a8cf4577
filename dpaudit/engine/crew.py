"""Who draws the blocks of one audit: an executor, what is known about its workers, and what to do when one is lost.

A block that was lost with its worker is drawn again, from its own seed child, only where the mechanism was shown to be
reproducible: then the same outputs come out, whoever draws them. Otherwise a second draw would be a second chance, and
whether there is one can depend on the first (evidence of a mechanism that dies on one answer would be lost with it).
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

from dpaudit.engine.sampling import COMMON_SEED, Ended, Task, run_sent_task, signature_of_seed
from dpaudit.engine.workers import Unpicklable, Workers
from dpaudit.errors import DPAuditError, InvalidArgument, MechanismError

WORTH_SENDING = 0.005  # seconds of work that a task should hold at least, for processes of this machine
WORTH_SENDING_FAR = 0.05  # and for a cluster, where every task passes a scheduler
TOOK_ALONG = "its pool broke, and the mechanism cannot be sent to processes that would take over"
LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError", "FuturesCancelledError")  # Dask's, not imported


class LostWorker(Exception):
    """A worker died, or its answer never came."""


class GaveUp(LostWorker):
    """An executor that tries again by itself did so, in vain."""


class CannotBeSent(InvalidArgument):
    """The mechanism, its data or its outputs exist in one process alone."""


class Crew:
    """The workers of one audit. ``reproducible`` is set once the mechanism was shown to be, in this process."""

    def __init__(self, executor: Executor | None) -> None:
        self.executor = self._given = executor
        self.reproducible = False
        self.longest = 0.0  # seconds that a task took, from when it was sent
        self._served = False  # it has answered: what was settled stands, whatever becomes of it
        self._substitute: Workers | None = None
        self._lost_before: frozenset[str] | None = None
        self._firsts: dict[int, int] = {}  # signature of a process's first outputs -> the process
        self._replays: dict[str, set[int]] = {}  # per pair: signatures of what processes drew from one common seed

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
        """How many tasks its executor runs at once, now; zero where a cluster has lost all of its workers."""
        cluster = _cluster(self.executor)
        if cluster is not None:
            return int(sum(_asked(cluster.nthreads).values()))
        for name in ("count", "_max_workers"):
            workers = getattr(self.executor, name, None)
            if isinstance(workers, int) and workers > 0:
                return workers
        return os.cpu_count() or 1

    @property
    def worth_sending(self) -> float:
        """Seconds of work that a task should hold at least."""
        return WORTH_SENDING if _cluster(self.executor) is None else WORTH_SENDING_FAR

    def submit(self, task: Task, seconds: float | None) -> Future[Ended]:
        """Hand a task to the executor; where its processes are gone for good, to new ones."""
        try:
            return self._submit(task, seconds)
        except BrokenProcessPool:
            # Nothing of this task was drawn yet, so nothing is drawn twice. Never in this process: it might die too.
            broken = self.executor
            self.executor = self._substitute = Workers(
                self.size,
                initializer=getattr(broken, "_initializer", None),
                initargs=getattr(broken, "_initargs", ()),
            )
            return self._submit(task, seconds)
        except (RuntimeError, OSError) as error:
            if self._served and not _about_pickling(error):
                raise LostWorker(f"the executor takes no more work: {_first_sentence(error)}") from error
            if "shutdown" not in str(error):
                raise
            raise InvalidArgument(f"executor={self.executor!r} takes no more work ({error}); make a new one.") from None

    def _submit(self, task: Task, seconds: float | None) -> Future[Ended]:
        assert self.executor is not None
        # Workers of these die of what they cannot unpickle, so they unpickle where that is an exception.
        if _cluster(self.executor) is not None:
            return self.executor.submit(run_packed, importlib.import_module("cloudpickle").dumps(task), seconds)
        if self._substitute is not None:
            return self._substitute.submit(run_packed, _packed_by_value(task), seconds)
        if isinstance(self.executor, ProcessPoolExecutor):
            return self.executor.submit(run_packed, pickle.dumps(task), seconds)
        return self.executor.submit(run_sent_task, task, seconds)

    def received(self, future: Future[Ended]) -> Ended:
        """What a finished future holds, with every way to lose a worker as :class:`LostWorker`."""
        try:
            ended = received(future)
            self._served = True
            return ended
        except CannotBeSent as error:
            if self._substitute is None:
                raise
            raise LostWorker(TOOK_ALONG) from error  # it could be sent before, and what was settled stands

    def start(self) -> None:
        """Remember what a cluster has lost before."""
        if self._lost_before is None:
            self._lost_before = self._losses()

    def drew_again(self) -> bool:
        """Whether a cluster has lost workers with tasks of ours since: it runs those again without asking."""
        return self._losses() != self._lost_before

    def _losses(self) -> frozenset[str]:
        cluster = _cluster(self.executor)
        if cluster is None:
            return frozenset()
        return frozenset(
            str(event.get("stimulus_id"))
            for _, event in _asked(cluster.get_events, "all")
            if isinstance(event, dict) and event.get("action") == "remove-worker" and _concerns_us(event)
        )

    @property
    def alike(self) -> bool:
        """Whether all processes drew the same from one seed, as far as was seen."""
        return all(len(drawn) <= 1 for drawn in self._replays.values())

    @property
    def replayable(self) -> bool:
        """Whether blocks that were lost may be drawn again: the mechanism is reproducible, and in all processes alike."""
        return self.reproducible and self.alike

    def tells(self, task: Task, deadline: float | None) -> bool:
        """Whether the outputs on this pair vary enough to see processes that share random state. Where not, one draws alone."""
        if task.audit not in self._replays:
            # Whether processes draw alike shows before any of them is lost.
            self._know(task.audit, signature_of_seed(task, deadline, *COMMON_SEED))
        return bool(self._replays[task.audit])

    def _know(self, audit: str, replay: int | None) -> None:
        """Note what a process drew from the common seed, if that can tell anything."""
        drawn = self._replays.setdefault(audit, set())
        if replay is not None:
            drawn.add(replay)

    def meet(self, audit: str, process: int, first: int | None, replay: int | None = None) -> None:
        """Refuse processes that share random state: what they draw first is the same where the seeds differ."""
        if replay is not None:
            self._know(audit, replay)
        if first is not None and self._firsts.setdefault(first, process) != process:
            raise MechanismError(
                "Workers gave the same sequence of outputs: they share random state, such as a generator made when a module is "
                "imported. Draw from the `rng` that is handed in."
            )


def run_packed(packed: bytes, seconds: float | None) -> Ended:
    """What a worker runs that gets its task in one piece."""
    try:
        task = pickle.loads(packed)
    except (Exception, SystemExit) as error:  # a pool would raise the second in the caller, whose program it would end
        raise Unpicklable(f"{type(error).__name__}: {error}") from None
    return run_sent_task(task, seconds)


def received(future: Future[Ended]) -> Ended:
    """What a finished future holds, with every way to lose a worker as :class:`LostWorker`."""
    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        raise LostWorker(_first_sentence(error) or type(error).__name__) from error
    except Exception as error:
        if type(error).__name__ in LOST:
            raise GaveUp(_first_sentence(error)) from error
        if isinstance(error, DPAuditError) or not _about_pickling(error):
            raise
        raise cannot_be_sent(error) from error


def _first_sentence(error: BaseException) -> str:
    """What happened; guesses why, and exit codes of other workers, come after it."""
    return str(error).partition(". ")[0].rstrip(".")


def _packed_by_value(task: Task) -> bytes:
    """For processes that take over from others, which may have pickled by value, as loky's do."""
    try:
        by_value: Any = importlib.import_module("cloudpickle")
    except ImportError:
        by_value = pickle
    try:
        return bytes(by_value.dumps(task))
    except Exception as error:
        raise LostWorker(TOOK_ALONG) from error


def cannot_be_sent(error: BaseException) -> CannotBeSent:
    """The message for a mechanism that exists in this process alone."""
    return CannotBeSent(
        f"The mechanism or its data cannot be sent to a worker process ({error}). A lambda, a function inside a function or one "
        "typed into a notebook exists in this process alone. Put it at the top level of a module that workers can import, or "
        "name a factory 'package.module:factory'; or use an executor that pickles by value, such as loky's or Dask's."
    )


def _about_pickling(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, Unpicklable | pickle.PickleError):
            return True
        if "pickle" in str(error).lower() or "deserializ" in str(error).lower():
            return True
        error = error.__cause__
    return False


def _cluster(executor: Any) -> Any:
    """The client behind Dask's executor, known by what it can do: Dask is not imported for this."""
    client = getattr(executor, "_client", None)
    return client if hasattr(client, "get_events") and hasattr(client, "nthreads") else None


def _asked(question: Callable[..., Any], *arguments: Any) -> Any:
    """An answer of the cluster, which may be gone."""
    try:
        return question(*arguments)
    except Exception as error:
        raise GaveUp(f"the cluster does not answer: {type(error).__name__}: {error}") from error


def _concerns_us(event: dict[str, Any]) -> bool:
    keys = [*(event.get("processing-tasks") or ()), *(event.get("lost-computed-tasks") or ())]
    return any(str(key).startswith(run_packed.__name__) for key in keys)
